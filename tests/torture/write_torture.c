/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every write failed once, and every write from one on: of the output files
 * (write(2) is wrapped) and of a recording (its FILE is ours). No line is lost,
 * torn or written twice while the disk comes back; where it does not, what is
 * there is a front of what should be, and the caller is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "output.h"
#include "recording.h"
#include "wire_build.h"

/* ---- failures ---- */

enum failure { FAIL_ENOSPC, FAIL_EIO, FAIL_EINTR, FAIL_ZERO, FAIL_SHORT, FAIL_SHORT_THEN_ENOSPC, FAILURE_COUNT };

static enum failure failure;
static long writes;    /* so far */
static long fail_from; /* the first one that fails; 0 = none */
static bool for_good;  /* and all after it */

/* Bytes that this write takes of size; below 0: none, and errno says why. */
static ssize_t allowed(size_t size)
{
	static const int errors[FAILURE_COUNT] = {ENOSPC, EIO, EINTR, 0, 0, ENOSPC};

	writes++;
	if (!fail_from || writes < fail_from || (writes > fail_from && !for_good && failure != FAIL_SHORT_THEN_ENOSPC))
		return (ssize_t)size;
	if (failure == FAIL_SHORT || (failure == FAIL_SHORT_THEN_ENOSPC && writes == fail_from))
		return (ssize_t)(size + 1) / 2;
	if (failure == FAIL_SHORT_THEN_ENOSPC && writes > fail_from + 1 && !for_good)
		return (ssize_t)size;
	errno = errors[failure];
	return failure == FAIL_ZERO ? 0 : -1;
}

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
	ssize_t n = allowed(size);

	return n > 0 ? __real_write(fd, data, (size_t)n) : n;
}

static void arm(enum failure kind, long from, bool all)
{
	failure = kind;
	fail_from = from;
	for_good = all;
	writes = 0;
}

/* ---- output files ---- */

#define BATCHES 5

static const char *const batches[BATCHES] = {
	"{\"t\":1}\n", "{\"t\":2}\n{\"t\":3}\n", "{\"t\":4}\n", "{\"t\":5}\n{\"t\":6}\n{\"t\":7}\n", "{\"t\":8}\n"};
static const char all_lines[] = "{\"t\":1}\n{\"t\":2}\n{\"t\":3}\n{\"t\":4}\n"
				"{\"t\":5}\n{\"t\":6}\n{\"t\":7}\n{\"t\":8}\n";

static char path[] = "/tmp/nightclerk-torture-XXXXXX";

static struct bytes content(void)
{
	static uint8_t text[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text));

	assert_true(n >= 0);
	close(fd);
	return (struct bytes){text, (size_t)n};
}

/* What output_close() said; *ret_failed: output_write() failed at least once. */
static int write_batches(bool *ret_failed)
{
	const struct output_owner self = {(uid_t)-1, (gid_t)-1};
	struct output *output = NULL;
	char reason[OUTPUT_REASON_MAX];
	const char *notice = NULL;

	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(output_open(path, false, &self, &output, reason), 0);
	*ret_failed = false;
	for (int i = 0; i < BATCHES; i++) {
		int err = output_write(output, bytes_of_string(batches[i]), &notice);

		assert_true((err != 0) == (output_unwritten(output) > 0));
		*ret_failed |= err != 0;
	}
	assert_null(notice);
	return output_close(output);
}

static void a_write_that_fails_once_loses_no_line_and_tears_none(void **state)
{
	(void)state;
	for (int kind = 0; kind < FAILURE_COUNT; kind++)
		for (long n = 1; n <= BATCHES; n++) {
			bool failed;

			arm(kind, n, false);
			assert_int_equal(write_batches(&failed), 0);
			assert_int_equal(failed, kind != FAIL_EINTR && kind != FAIL_SHORT);
			assert_true(bytes_equal(content(), BYTES(all_lines)));
		}
}

static void a_disk_that_stays_full_leaves_a_front_and_says_so(void **state)
{
	static const enum failure kinds[] = {FAIL_ENOSPC, FAIL_EIO, FAIL_ZERO, FAIL_SHORT_THEN_ENOSPC};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (long n = 1; n <= BATCHES; n++) {
			int expected = kinds[i] == FAIL_EIO || kinds[i] == FAIL_ZERO ? -EIO : -ENOSPC;
			bool failed;
			struct bytes there;

			arm(kinds[i], n, true);
			assert_int_equal(write_batches(&failed), expected);
			assert_true(failed);
			there = content();
			assert_true(there.size < sizeof(all_lines) - 1);
			assert_true(bytes_starts_with(BYTES(all_lines), there));
		}
}

static void short_writes_for_ever_lose_nothing(void **state)
{
	bool failed;

	(void)state;
	arm(FAIL_SHORT, 1, true);
	assert_int_equal(write_batches(&failed), 0);
	assert_false(failed);
	assert_true(bytes_equal(content(), BYTES(all_lines)));
}

/* ---- recordings ---- */

static struct buffer file;

static ssize_t cookie_write(void *cookie, const char *data, size_t size)
{
	ssize_t n = allowed(size);

	(void)cookie;
	if (n > 0 && buffer_append(&file, (struct bytes){(const uint8_t *)data, (size_t)n}))
		abort();
	return n < 0 ? 0 : n; /* fopencookie(3): 0 is an error, errno stays */
}

#define INPUTS 12

/* Events with so much payload that stdio writes several times, ticks between them. */
static struct input input_at(int i, struct wire_event *event, uint8_t payload[3000])
{
	struct input input = {.kind = INPUT_TICK, .now_ns = 1000 + (uint64_t)i, .tick = {.wall_offset_ns = i}};

	if (i % 3 == 2)
		return input;
	memset(payload, 'a' + i, 3000);
	*event = wire_build_data(WIRE_BUILD_CLIENT, 3000 * (uint64_t)i, 3000, 0, input.now_ns);
	input.kind = INPUT_WIRE;
	input.wire.event = event;
	input.wire.payload = (struct bytes){payload, 3000};
	return input;
}

/* The first error of all, or 0. */
static int record(void)
{
	const cookie_io_functions_t functions = {.write = cookie_write};
	const struct run_facts facts = {.run_id = "0123456789abcdef", .options = "{}"};
	struct input closing = {.kind = INPUT_CLOSING, .now_ns = 5000};
	struct recording_writer *writer = NULL;
	FILE *stream = fopencookie(NULL, "w", functions);
	uint8_t payload[3000];
	struct wire_event event;
	int err, first;

	buffer_clear(&file);
	assert_non_null(stream);
	first = recording_writer_new(stream, &facts, &writer);
	if (first)
		return first;
	for (int i = 0; i < INPUTS; i++) {
		struct input input = input_at(i, &event, payload);

		err = recording_write(writer, &input);
		if (!err && input.kind == INPUT_TICK)
			err = recording_flush(writer);
		assert_true(!first || err == first); /* it sticks */
		first = first ? first : err;
	}
	err = recording_write(writer, &closing);
	first = first ? first : err;
	err = recording_writer_free(writer);
	return first ? first : err;
}

/* What can be read is a front of what was recorded, and only the whole of it ends well. */
static void check_front(bool whole)
{
	FILE *stream = file.size ? fmemopen(file.data, file.size, "rb") : fopen("/dev/null", "rb");
	struct recording_reader *reader = NULL;
	enum recording_result result = RECORDING_DAMAGED;
	struct input input;
	struct wire_event event;
	uint8_t payload[3000];
	int i = 0;

	if (recording_reader_new(stream, &reader) == 0)
		while ((result = recording_next(reader, &input)) == RECORDING_INPUT && input.kind != INPUT_CLOSING) {
			struct input expected = input_at(i++, &event, payload);

			assert_int_equal(input.kind, expected.kind);
			assert_int_equal(input.now_ns, expected.now_ns);
			if (input.kind == INPUT_WIRE)
				assert_true(bytes_equal(input.wire.payload, expected.wire.payload));
		}
	if (result == RECORDING_INPUT)
		result = recording_next(reader, &input);
	assert_int_equal(result == RECORDING_END, whole);
	assert_true(!whole || i == INPUTS);
	recording_reader_free(reader);
}

static void a_recording_whose_write_fails_says_so_and_is_a_front(void **state)
{
	static const enum failure kinds[] = {FAIL_ENOSPC, FAIL_EIO, FAIL_SHORT, FAIL_SHORT_THEN_ENOSPC};

	(void)state;
	arm(FAIL_ENOSPC, 0, false);
	assert_int_equal(record(), 0);
	assert_true(writes > 5);
	check_front(true);
	for (size_t i = 0; i < 2 * sizeof(kinds) / sizeof(kinds[0]); i++)
		for (long n = 1, last = 0; !last; n++) {
			int err;

			arm(kinds[i / 2], n, i % 2);
			err = record();
			last = writes < n;
			assert_int_equal(err == 0, last);
			if (err && kinds[i / 2] == FAIL_ENOSPC)
				assert_int_equal(err, -ENOSPC);
			check_front(last);
		}
	buffer_done(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_that_fails_once_loses_no_line_and_tears_none),
		cmocka_unit_test(a_disk_that_stays_full_leaves_a_front_and_says_so),
		cmocka_unit_test(short_writes_for_ever_lose_nothing),
		cmocka_unit_test(a_recording_whose_write_fails_says_so_and_is_a_front),
	};
	int fd = mkstemp(path), failed;

	if (fd < 0)
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
