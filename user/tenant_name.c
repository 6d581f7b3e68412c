/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One walk over the components of a path. Only what systemd or an engine, that
 * is root, puts there is believed: once a component belongs to somebody else,
 * all that follows stays below it.
 */
#include "tenant_name.h"
#include "digest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define CONTAINER_ID_DIGITS 64 /* of Docker, Podman, containerd's CRI plugin, CRI-O and nerdctl: 256 bits */
#define SHOWN_ID_DIGITS 12
#define POD_UID_BYTES 36
#define SUFFIX_DIGITS 16
#define SUFFIX_BYTES (1 + SUFFIX_DIGITS)

static const struct engine {
	const char *prefix; /* of a component, before the id */
	const char *name;
} engines[] = {
	{"docker-", "docker"}, {"libpod-", "podman"}, {"cri-containerd-", "containerd"}, {"crio-", "crio"},
	{"nerdctl-", "containerd"},
};

/* Directories of the cgroupfs drivers, right below the root. */
static const struct engine parents[] = {
	{"docker", "docker"}, {"libpod_parent", "podman"}, {"kubepods", "k8s"}, {"lxc", "lxc"},
};

struct walk {
	struct bytes path;   /* up to and with the component in hand */
	struct bytes before; /* up to it */
	struct bytes parent; /* the component before it */
	struct bytes unit;   /* the first that only slices hold */
	struct bytes user;   /* the slice of a user that holds it, without ".slice" */
	struct bytes pod;    /* uid of a pod that was passed */
	struct bytes front;  /* up to the first that may belong to others, it included; empty = not yet */
	const char *driver;  /* of the directory of a cgroupfs driver; NULL = none */
	const char *engine;  /* of the container that was found */
	struct bytes id;     /* and its id, or its name where it has none */
};

struct draft {
	struct tenant_name *name;
	size_t size;
	bool changed; /* the name alone does not tell it from others */
};

/* ---- what a component is ---- */

static bool cut_start(struct bytes *text, const char *start)
{
	struct bytes prefix = bytes_of_string(start);

	if (!bytes_starts_with(*text, prefix))
		return false;
	bytes_take(text, prefix.size);
	return true;
}

static bool cut_end(struct bytes *text, const char *end)
{
	struct bytes suffix = bytes_of_string(end);

	if (!bytes_ends_with(*text, suffix))
		return false;
	text->size -= suffix.size;
	return true;
}

static bool is_slice(struct bytes component)
{
	return bytes_ends_with(component, BYTES(".slice"));
}

static bool is_unit(struct bytes component)
{
	return bytes_ends_with(component, BYTES(".service")) || bytes_ends_with(component, BYTES(".scope")) ||
	       bytes_ends_with(component, BYTES(".socket")) || bytes_ends_with(component, BYTES(".mount")) ||
	       bytes_ends_with(component, BYTES(".swap"));
}

static bool is_container_id(struct bytes text)
{
	uint8_t id[CONTAINER_ID_DIGITS / 2];

	return hex_read(text, id, sizeof(id));
}

/* "pod<uid>", or "kubepods-burstable-pod<uid>.slice" with "_" for "-"; kind has its kubelet's name before that. */
static bool find_pod(struct bytes component, struct bytes *ret_uid)
{
	if (cut_end(&component, ".slice")) {
		cut_start(&component, "kubelet-");
		if (!cut_start(&component, "kubepods-"))
			return false;
		if (!cut_start(&component, "burstable-"))
			cut_start(&component, "besteffort-");
	}
	if (!cut_start(&component, "pod") || component.size != POD_UID_BYTES)
		return false;
	*ret_uid = component;
	return true;
}

/* "docker-<id>.scope", "crio-<id>", "<id>" */
static bool find_container(struct walk *walk, struct bytes component)
{
	cut_end(&component, ".scope");
	walk->engine = walk->driver ? walk->driver : "container";
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (cut_start(&component, engines[i].prefix)) {
			walk->engine = engines[i].name;
			break;
		}
	walk->id = component;
	if (is_container_id(component))
		return true;
	walk->engine = NULL;
	return false;
}

/* "kubepods-pod<uid>.slice:cri-containerd:<id>": a path for systemd in the hands of runc's cgroupfs driver. */
static bool find_colons(struct walk *walk, struct bytes component)
{
	struct bytes slice = bytes_take(&component, bytes_find(component, ':'));

	bytes_take(&component, 1);
	walk->id = component;
	bytes_take(&walk->id, bytes_find(component, ':') + 1);
	if (!is_slice(slice) || !is_container_id(walk->id))
		return false;
	find_pod(slice, &walk->pod);
	walk->engine = bytes_starts_with(component, BYTES("docker:")) ? "docker" : "containerd";
	return true;
}

/* What others give an id, LXC names. Its monitors ("lxc.monitor.NAME") are not the container. */
static bool find_lxc(struct walk *walk, struct bytes component)
{
	bool below = walk->driver && strcmp(walk->driver, "lxc") == 0;

	if (walk->front.size || (!below && (walk->parent.size || !cut_start(&component, "lxc.payload."))))
		return false;
	walk->engine = "lxc";
	walk->id = component;
	return true;
}

/* The directory of a driver, and what Kubernetes puts between that and a pod: nobody's own. */
static bool find_driver(struct walk *walk, struct bytes component)
{
	if (!walk->parent.size)
		for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++)
			if (bytes_equal(component, bytes_of_string(parents[i].prefix))) {
				walk->driver = parents[i].name;
				return true;
			}
	return walk->driver && strcmp(walk->driver, "k8s") == 0 &&
	       (bytes_equal(component, BYTES("burstable")) || bytes_equal(component, BYTES("besteffort")));
}

/* ---- the walk ---- */

/* True when the component is a container: the walk is over. */
static bool step(struct walk *walk, struct bytes component)
{
	bool ours = !walk->front.size;

	if (ours && find_pod(component, &walk->pod))
		return false;
	if (find_container(walk, component) || find_colons(walk, component) || find_lxc(walk, component))
		return true;
	if (!ours || (is_slice(component) && !walk->driver) || find_driver(walk, component))
		return false;
	if (is_unit(component) && !walk->driver) {
		walk->unit = component;
		if (is_slice(walk->parent) && bytes_starts_with(walk->parent, BYTES("user-")) &&
		    bytes_starts_with(component, BYTES("session-"))) {
			walk->user = walk->parent;
			cut_end(&walk->user, ".slice");
		}
	}
	walk->front = walk->path;
	return false;
}

static void walk_path(struct walk *walk, struct bytes path)
{
	struct bytes rest = path;

	while (rest.size) {
		struct bytes component;

		walk->before = walk->path;
		component = bytes_take(&rest, bytes_find(rest, '/'));
		walk->path = (struct bytes){path.data, path.size - rest.size};
		bytes_take(&rest, 1);
		if (!component.size)
			continue;
		if (step(walk, component))
			return;
		walk->parent = component;
	}
	if (walk->unit.size)
		walk->path = walk->front;
}

/* ---- the name ---- */

static bool is_word(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* No name begins like a hidden file or an option. */
static bool is_plain(uint8_t c, bool first)
{
	return is_word(c) || (!first && (c == '.' || c == '@' || c == ':' || c == '-'));
}

static void put_byte(struct draft *draft, char c)
{
	if (draft->size < TENANT_NAME_BYTES)
		draft->name->text[draft->size++] = c;
	else
		draft->changed = true;
}

static void put(struct draft *draft, struct bytes text)
{
	for (size_t i = 0; i < text.size; i++) {
		bool plain = is_plain(text.data[i], draft->size == 0);

		draft->changed |= !plain;
		put_byte(draft, plain ? (char)text.data[i] : '_');
	}
}

static void put_path(struct draft *draft, struct bytes path)
{
	while (path.size) {
		struct bytes component = bytes_take(&path, bytes_find(path, '/'));

		bytes_take(&path, 1);
		if (component.size && draft->size)
			put_byte(draft, '+');
		put(draft, component);
	}
}

static void put_pod(struct draft *draft, struct bytes uid)
{
	put(draft, BYTES("k8s-"));
	for (size_t i = 0; i < uid.size; i++) /* a slice's name has no "-" of its own */
		put(draft, uid.data[i] == '_' ? BYTES("-") : (struct bytes){&uid.data[i], 1});
}

static void put_container(struct draft *draft, const struct walk *walk)
{
	if (draft->size)
		put_byte(draft, '+');
	if (walk->pod.size)
		put_pod(draft, walk->pod);
	else
		put(draft, bytes_of_string(walk->engine));
	put(draft, BYTES("-"));
	put(draft, is_container_id(walk->id) ? (struct bytes){walk->id.data, SHOWN_ID_DIGITS} : walk->id);
}

/* What is made otherwise: a whole path may not look like it. */
static bool is_taken(struct bytes name)
{
	static const char *const starts[] = {"cgroup-", "uid-", "k8s-", "docker-", "podman-", "containerd-", "crio-",
					     "container-", "lxc-"};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (bytes_starts_with(name, bytes_of_string(starts[i])))
			return true;
	return is_unit(name) || bytes_equal(name, BYTES(TENANT_NAME_OTHERS)) || bytes_equal(name, BYTES("root"));
}

static void put_whole(struct draft *draft, struct bytes path)
{
	put_path(draft, path);
	draft->changed |= is_taken((struct bytes){(const uint8_t *)draft->name->text, draft->size});
}

static void put_walk(struct draft *draft, const struct walk *walk)
{
	if (walk->unit.size) {
		put(draft, walk->user);
		if (walk->user.size)
			put_byte(draft, '+');
		put(draft, walk->unit);
	} else if (walk->front.size) {
		put_whole(draft, walk->engine ? walk->before : walk->path);
	} else if (!walk->engine && walk->pod.size) {
		put_pod(draft, walk->pod);
	} else if (!walk->engine) {
		put_whole(draft, walk->path);
	}
	if (walk->engine)
		put_container(draft, walk);
}

static int finish(struct draft *draft, struct bytes path)
{
	char hex[SUFFIX_DIGITS + 1];
	struct digest digest;
	int err;

	if (draft->changed) {
		err = digest_of(path, &digest);
		if (err)
			return err;
		hex_of(digest.byte, SUFFIX_DIGITS / 2, hex);
		if (draft->size > TENANT_NAME_BYTES - SUFFIX_BYTES)
			draft->size = TENANT_NAME_BYTES - SUFFIX_BYTES;
		draft->name->text[draft->size++] = '~';
		memcpy(draft->name->text + draft->size, hex, SUFFIX_DIGITS);
		draft->size += SUFFIX_DIGITS;
	}
	draft->name->text[draft->size] = '\0';
	return 0;
}

int tenant_name_of_cgroup(struct bytes path, struct tenant_name *ret_name)
{
	struct walk walk = {0};
	struct tenant_name name;
	struct draft draft = {.name = &name};
	int err;

	walk_path(&walk, path);
	put_walk(&draft, &walk);
	if (draft.size == 0) {
		put(&draft, BYTES("root"));
		draft.changed = false;
	}
	err = finish(&draft, walk.path);
	if (!err)
		*ret_name = name;
	return err;
}

void tenant_name_of_cgroup_id(uint64_t id, struct tenant_name *ret_name)
{
	snprintf(ret_name->text, sizeof(ret_name->text), "cgroup-%" PRIu64, id);
}

void tenant_name_of_uid(uint32_t uid, struct tenant_name *ret_name)
{
	snprintf(ret_name->text, sizeof(ret_name->text), "uid-%" PRIu32, uid);
}

void tenant_name_of_holder(const struct tenant_name *name, struct tenant_name *ret_holder)
{
	static const char unfound[] = "cgroup-", manager[] = "user@", unit[] = ".service";
	size_t size = strcspn(name->text, "+"), digits;

	if (strncmp(name->text, unfound, sizeof(unfound) - 1) == 0) {
		snprintf(ret_holder->text, sizeof(ret_holder->text), "cgroup");
		return;
	}
	snprintf(ret_holder->text, sizeof(ret_holder->text), "%.*s", (int)size, name->text);
	if (strncmp(ret_holder->text, manager, sizeof(manager) - 1) != 0)
		return;
	digits = strspn(ret_holder->text + sizeof(manager) - 1, "0123456789"); /* the user's own systemd */
	if (digits && strcmp(ret_holder->text + sizeof(manager) - 1 + digits, unit) == 0) {
		ret_holder->text[4] = '-';
		ret_holder->text[sizeof(manager) - 1 + digits] = '\0';
	}
}
