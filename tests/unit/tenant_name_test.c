/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths as the engines make them, and as somebody makes them who wants another's name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tenant_name.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "8f1e6d2c-3b4a-4c5d-9e8f-0a1b2c3d4e5f"
#define POD_ "8f1e6d2c_3b4a_4c5d_9e8f_0a1b2c3d4e5f"

struct row {
	const char *path;
	const char *name;
};

static void check_rows(const struct row *rows, size_t count)
{
	struct tenant_name name;

	for (size_t i = 0; i < count; i++) {
		assert_int_equal(tenant_name_of_cgroup(bytes_of_string(rows[i].path), &name), 0);
		assert_string_equal(name.text, rows[i].name);
	}
}

#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void containers_are_named_by_engine_and_id(void **state)
{
	static const struct row rows[] = {
		{"/system.slice/docker-" ID ".scope", "docker-0123456789ab"},
		{"/docker/" ID, "docker-0123456789ab"},
		{"/machine.slice/libpod-" ID ".scope", "podman-0123456789ab"},
		{"/libpod_parent/libpod-" ID, "podman-0123456789ab"},
		{"/system.slice/nerdctl-" ID ".scope", "containerd-0123456789ab"},
		{"/system.slice:docker:" ID, "docker-0123456789ab"},
		{"/machine.slice/crio-" ID ".scope", "crio-0123456789ab"},
		{"/lxc/web", "lxc-web"},
		{"/lxc.payload.web", "lxc-web"},
		{"/" ID, "container-0123456789ab"},
	};

	(void)state;
	CHECK(rows);
}

static void containers_of_a_pod_have_its_uid(void **state)
{
	static const struct row rows[] = {
		{"/kubepods/pod" POD "/" ID, "k8s-" POD "-0123456789ab"},
		{"/kubepods/burstable/pod" POD "/" ID, "k8s-" POD "-0123456789ab"},
		{"/kubepods/besteffort/pod" POD "/crio-" ID, "k8s-" POD "-0123456789ab"},
		{"/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope", "k8s-" POD "-0123456789ab"},
		{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice/crio-" ID ".scope",
		 "k8s-" POD "-0123456789ab"},
		{"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_ ".slice/docker-" ID ".scope",
		 "k8s-" POD "-0123456789ab"},
		{"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope",
		 "k8s-" POD "-0123456789ab"},
		{"/kubepods-burstable-pod" POD_ ".slice:cri-containerd:" ID, "k8s-" POD "-0123456789ab"},
		{"/kubepods/burstable/pod" POD, "k8s-" POD},
		{"/kubepods.slice/kubepods-pod" POD_ ".slice", "k8s-" POD},
	};

	(void)state;
	CHECK(rows);
}

static void units_of_systemd_keep_their_names(void **state)
{
	static const struct row rows[] = {
		{"/system.slice/nginx.service", "nginx.service"},
		{"/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service"},
		{"/init.scope", "init.scope"},
		{"/machine.slice/machine-web.scope", "machine-web.scope"},
		{"/user.slice/user-1000.slice/session-3.scope", "user-1000+session-3.scope"},
		{"/user.slice/user-1000.slice/user@1000.service", "user@1000.service"},
		{"/user.slice/user-1000.slice", "user.slice+user-1000.slice"},
	};

	(void)state;
	CHECK(rows);
}

static void what_lies_below_belongs_to_it(void **state)
{
	static const struct row rows[] = {
		{"/system.slice/docker-" ID ".scope/init.scope", "docker-0123456789ab"},
		{"/docker/" ID "/kubelet.slice/cri-containerd-" ID ".scope", "docker-0123456789ab"},
		{"/lxc.payload.web/system.slice/nginx.service", "lxc-web"},
		{"/system.slice/nginx.service/worker/7", "nginx.service"},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope", "user@1000.service"},
		{"/user.slice/user-1000.slice/session-3.scope/mine", "user-1000+session-3.scope"},
	};

	(void)state;
	CHECK(rows);
}

static void containers_of_a_user_have_its_unit_before_them(void **state)
{
	static const struct row rows[] = {
		{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container",
		 "user@1000.service+podman-0123456789ab"},
		{"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope",
		 "user@1000.service+docker-0123456789ab"},
		{"/user.slice/user-1000.slice/session-3.scope/" ID, "user-1000+session-3.scope+container-0123456789ab"},
	};

	(void)state;
	CHECK(rows);
}

static void any_other_path_is_the_name(void **state)
{
	static const struct row rows[] = {
		{"/", "root"},
		{"", "root"},
		{"//", "root"},
		{"/sandbox-3", "sandbox-3"},
		{"/sandboxes/7", "sandboxes+7"},
		{"/sandboxes//7/", "sandboxes+7"},
		{"/sandboxes/7/docker-" ID ".scope", "sandboxes+7+docker-0123456789ab"},
	};

	(void)state;
	CHECK(rows);
}

/* Each has a digest of the whole path, so that no two are one. */
static void hostile_paths_are_made_harmless(void **state)
{
	static const struct row rows[] = {
		{"/../../etc", "_.+..+etc~faecc30613ad24c7"},
		{"/..", "_.~3a6aebc03771052d"},
		{"/.hidden", "_hidden~15e9cacd6c10143c"},
		{"/-rf", "_rf~206d03d3fe7f3eda"},
		{"/a b", "a_b~73c9c45d21e1dbba"},
		{"/a\tb", "a_b~30231c157ae123eb"},
		{"/a\x1b[2Jb", "a__2Jb~e939ef58285c427a"},
		{"/\xff\xfe", "__~eb3d3d1fc8e8e378"},
		{"/a+b", "a_b~7db5603f9d70f765"},
		{"/a~b", "a_b~ae3bd485fcafae67"},
		{"/system.slice/x\\x2dy.service", "x_x2dy.service~f2a484a6d14c8d25"},
	};

	(void)state;
	CHECK(rows);
}

static void nobody_takes_the_name_of_another(void **state)
{
	static const struct row rows[] = {
		{"/others", "others~1659c5293944c472"},
		{"/root", "root~94a6b447580330f9"},
		{"/uid-1000", "uid-1000~11618c600d8ca95d"},
		{"/cgroup-7", "cgroup-7~53fe379e5eed1b4c"},
		{"/docker-0123456789ab", "docker-0123456789ab~d945339908bebf39"},
		{"/mine/k8s-1", "mine+k8s-1"},
		{"/mine/nginx.service", "mine+nginx.service~9507fa8967a012e0"},
		{"/user-1000/session-3.scope", "user-1000+session-3.scope~9df6265357ed4515"},
		{"/system.slice/a.service/docker-" ID ".scope", "a.service+docker-0123456789ab"},
		{"/mine/system.slice/docker-" ID ".scope", "mine+system.slice+docker-0123456789ab"},
		{"/mine/kubepods/pod" POD "/" ID, "mine+kubepods+pod8f1e6d2c-3b4a-4c5d-9e8f-0a1b2c~9591b460f0a264bc"},
		{"/docker/mine/" ID, "docker+mine+docker-0123456789ab"},
	};

	(void)state;
	CHECK(rows);
}

static void long_paths_are_cut(void **state)
{
	char path[4096], other[4096];
	struct tenant_name name, second;

	(void)state;
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	memcpy(other, path, sizeof(other));
	other[sizeof(other) - 1] = 'y';
	assert_int_equal(tenant_name_of_cgroup((struct bytes){(uint8_t *)path, 65}, &name), 0);
	assert_int_equal(strlen(name.text), TENANT_NAME_BYTES);
	assert_int_equal(strspn(name.text, "x"), TENANT_NAME_BYTES);
	assert_int_equal(tenant_name_of_cgroup((struct bytes){(uint8_t *)path, 66}, &name), 0);
	assert_int_equal(strspn(name.text, "x"), TENANT_NAME_BYTES - 17);
	assert_int_equal(strlen(name.text), TENANT_NAME_BYTES);
	assert_int_equal(tenant_name_of_cgroup((struct bytes){(uint8_t *)path, sizeof(path)}, &name), 0);
	assert_int_equal(tenant_name_of_cgroup((struct bytes){(uint8_t *)other, sizeof(other)}, &second), 0);
	assert_int_equal(strlen(second.text), TENANT_NAME_BYTES);
	assert_string_not_equal(name.text, second.text);
}

/* A file name whatever comes, and the same each time. */
static void any_bytes_give_a_file_name(void **state)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@:+~-";
	static const char *const pieces[] = {"/", ".", "-", "docker", ID, "pod" POD, ".slice", ".scope", ":", "kubepods",
					     "lxc", "\xff", "~", "+", "user-1", "session-1"};
	struct tenant_name name, again;
	char path[1024];

	(void)state;
	srand(1);
	for (int i = 0; i < 20000; i++) {
		size_t size = 0;

		for (int n = rand() % 10; n > 0; n--)
			size += (size_t)snprintf(path + size, sizeof(path) - size, "%s", pieces[rand() % 16]);
		assert_int_equal(tenant_name_of_cgroup((struct bytes){(uint8_t *)path, size}, &name), 0);
		assert_int_equal(tenant_name_of_cgroup((struct bytes){(uint8_t *)path, size}, &again), 0);
		assert_string_equal(name.text, again.text);
		assert_in_range(strlen(name.text), 1, TENANT_NAME_BYTES);
		assert_int_equal(strspn(name.text, plain), strlen(name.text));
		assert_null(strchr(".-+~@:", name.text[0]));
		assert_string_not_equal(name.text, TENANT_NAME_OTHERS);
	}
}

static void ids_are_named_by_their_number(void **state)
{
	struct tenant_name name;

	(void)state;
	tenant_name_of_cgroup_id(UINT64_MAX, &name);
	assert_string_equal(name.text, "cgroup-18446744073709551615");
	tenant_name_of_uid(0, &name);
	assert_string_equal(name.text, "uid-0");
	tenant_name_of_uid(UINT32_MAX, &name);
	assert_string_equal(name.text, "uid-4294967295");
}

static void a_name_tells_its_holder(void **state)
{
	static const struct row rows[] = {
		{"user-1000+session-3.scope", "user-1000"},
		{"user@1000.service+podman-0123456789ab", "user-1000"},
		{"user@1000.service", "user-1000"},
		{"user@.service+a", "user@.service"},
		{"user@1.socket", "user@1.socket"},
		{"sandboxes+7", "sandboxes"},
		{"sandboxes+7+8", "sandboxes"},
		{"docker-0123456789ab", "docker-0123456789ab"},
		{"nginx.service", "nginx.service"},
		{"cgroup-18446744073709551615", "cgroup"},
		{"uid-1000", "uid-1000"},
	};
	struct tenant_name name, holder;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(name.text, sizeof(name.text), "%s", rows[i].path);
		tenant_name_of_holder(&name, &holder);
		assert_string_equal(holder.text, rows[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containers_are_named_by_engine_and_id),
		cmocka_unit_test(containers_of_a_pod_have_its_uid),
		cmocka_unit_test(units_of_systemd_keep_their_names),
		cmocka_unit_test(what_lies_below_belongs_to_it),
		cmocka_unit_test(containers_of_a_user_have_its_unit_before_them),
		cmocka_unit_test(any_other_path_is_the_name),
		cmocka_unit_test(hostile_paths_are_made_harmless),
		cmocka_unit_test(nobody_takes_the_name_of_another),
		cmocka_unit_test(long_paths_are_cut),
		cmocka_unit_test(any_bytes_give_a_file_name),
		cmocka_unit_test(ids_are_named_by_their_number),
		cmocka_unit_test(a_name_tells_its_holder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
