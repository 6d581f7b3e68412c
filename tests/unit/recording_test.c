/* SPDX-License-Identifier: BSD-2-Clause */
/* user/recording*.c: what was written comes back, and nothing else is taken for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>
#include <zlib.h>

#include "call.h"
#include "recording_parts.h"
#include "wire_build.h"

#define FILE_HEAD_BYTES 16
#define BLOCK_HEAD_BYTES 20

static const struct run_facts facts = {
	.boot_id = {0x00, 0x01, 0xfe, 0xff, [15] = 0x7f},
	.salt = {0xde, 0xad, [31] = 0x99},
	.run_id = "0123456789abcdef",
	.version = "0.1.0",
	.door = "tracepoint",
	.kernel = "6.18.44",
	.canary = "seen",
	.scope = "tree",
	.command = "/usr/bin/a \"quoted\" \x01 and \xc3\xa9 and \xff",
	.argument_count = 3,
	.wall_offset_ns = -5,
	.start_ns = UINT64_MAX - 1,
	.options = "{\"window_ms\":600000, \"path\" : \"/a\"}",
};

/* ---- files in memory ---- */

struct file {
	char *data;
	size_t size;
};

static struct recording_writer *new_writer(struct file *file)
{
	struct recording_writer *writer = NULL;
	FILE *stream = open_memstream(&file->data, &file->size);

	assert_non_null(stream);
	assert_int_equal(recording_writer_new(stream, &facts, &writer), 0);
	return writer;
}

/* The reader and, in *ret_err, what recording_reader_new() said. */
static struct recording_reader *open_reader(const void *data, size_t size, int *ret_err)
{
	struct recording_reader *reader = NULL;
	FILE *stream = size ? fmemopen((void *)data, size, "rb") : fopen("/dev/null", "rb");

	assert_non_null(stream);
	*ret_err = recording_reader_new(stream, &reader);
	assert_non_null(reader);
	return reader;
}

static struct recording_reader *open_good(const struct file *file)
{
	int err;
	struct recording_reader *reader = open_reader(file->data, file->size, &err);

	assert_int_equal(err, 0);
	return reader;
}

/* ---- inputs ---- */

static struct input tick(uint64_t now_ns)
{
	return (struct input){.kind = INPUT_TICK, .now_ns = now_ns, .tick = {now_ns / 2}};
}

static struct input closing(uint64_t now_ns)
{
	return (struct input){
		.kind = INPUT_CLOSING,
		.now_ns = now_ns,
		.closing = {.command_status = 137,
			    .survivor_count = 2,
			    .survivors = {{4711, "agent"}, {4712, "fifteen-letters"}},
			    .ring_size_bytes = 64 << 20,
			    .ring_peak_bytes = 12345,
			    .wall_ms = 1000,
			    .cpu_ms = UINT64_MAX,
			    .unwritten_bytes = 7,
			    .counters_unread = 1},
	};
}

static struct input wire(const struct wire_event *event, const char *text)
{
	return (struct input){
		.kind = INPUT_WIRE, .now_ns = event->when_ns, .wire = {event, bytes_of_string(text)}};
}

/* A small recording with several blocks: header, two of inputs, closing. */
static void write_small(struct file *file)
{
	const struct wire_event open = wire_build_open(WIRE_BUILD_CLIENT, 100);
	const struct wire_event data = wire_build_data(WIRE_BUILD_CLIENT, 0, 5, 0, 200);
	const struct input inputs[] = {wire(&open, ""), wire(&data, "POST "), tick(300)};
	const struct input last = closing(400);
	struct recording_writer *writer = new_writer(file);

	assert_int_equal(recording_write(writer, &inputs[0]), 0);
	assert_int_equal(recording_write(writer, &inputs[1]), 0);
	assert_int_equal(recording_flush(writer), 0);
	assert_int_equal(recording_write(writer, &inputs[2]), 0);
	assert_int_equal(recording_write(writer, &last), 0);
	assert_int_equal(recording_writer_free(writer), 0);
}

/* ---- round trips ---- */

static void the_facts_of_the_run_come_back(void **state)
{
	struct file file = {0};
	struct recording_writer *writer = new_writer(&file);
	struct recording_reader *reader;

	(void)state;
	assert_int_equal(recording_writer_free(writer), 0);
	reader = open_good(&file);
	assert_memory_equal(recording_facts(reader), &facts, sizeof(facts));
	assert_string_equal(recording_error(reader), "");
	recording_reader_free(reader);
	free(file.data);
}

/* The file is opened only once the canary was seen: what came before it is there all the same. */
static void what_came_before_the_file_is_in_it(void **state)
{
	const struct wire_event data = wire_build_data(WIRE_BUILD_CLIENT, 0, 5, 0, 200);
	const struct input inputs[] = {wire(&data, "POST "), tick(300), closing(400)};

	(void)state;
	for (size_t given_at = 0; given_at <= 3; given_at++) {
		struct file file = {0}, early = {0};
		struct recording_writer *plain = new_writer(&file), *late = NULL;

		assert_int_equal(recording_writer_new(NULL, &facts, &late), 0);
		for (size_t i = 0; i < 3; i++) {
			if (i == given_at)
				assert_int_equal(recording_writer_start(late, open_memstream(&early.data, &early.size)), 0);
			assert_int_equal(recording_write(late, &inputs[i]), 0);
			assert_int_equal(recording_flush(late), 0);
			assert_int_equal(recording_write(plain, &inputs[i]), 0);
			assert_int_equal(recording_flush(plain), 0);
		}
		if (given_at == 3)
			assert_int_equal(recording_writer_start(late, open_memstream(&early.data, &early.size)), 0);
		assert_int_equal(recording_writer_free(late), 0);
		assert_int_equal(recording_writer_free(plain), 0);
		assert_int_equal(early.size, file.size);
		assert_memory_equal(early.data, file.data, file.size);
		free(early.data);
		free(file.data);
	}
}

/* Writes one input and gives back what is read; the caller frees *ret_reader. */
static struct input round_trip(const struct input *input, struct recording_reader **ret_reader,
			       struct file *file)
{
	struct recording_writer *writer = new_writer(file);
	struct input last = closing(input->now_ns);
	struct input got, end;

	assert_int_equal(recording_write(writer, input), 0);
	if (input->kind != INPUT_CLOSING)
		assert_int_equal(recording_write(writer, &last), 0);
	assert_int_equal(recording_writer_free(writer), 0);
	*ret_reader = open_good(file);
	assert_int_equal(recording_next(*ret_reader, &got), RECORDING_INPUT);
	assert_int_equal(got.kind, input->kind);
	assert_int_equal(got.now_ns, input->now_ns);
	if (input->kind != INPUT_CLOSING)
		return got; /* its slices are valid until the next call */
	assert_int_equal(recording_next(*ret_reader, &end), RECORDING_END);
	assert_int_equal(recording_next(*ret_reader, &end), RECORDING_END);
	assert_string_equal(recording_error(*ret_reader), "");
	return got;
}

static void finish(struct recording_reader *reader, struct file *file)
{
	recording_reader_free(reader);
	free(file->data);
	*file = (struct file){0};
}

static void a_wire_event_comes_back_with_its_payload(void **state)
{
	struct wire_event event = wire_build_data(WIRE_BUILD_SERVER, 7, 12, 99, 5000);
	const struct input in = wire(&event, "HTTP/1.1 200");
	struct recording_reader *reader;
	struct file file = {0};
	struct input out = round_trip(&in, &reader, &file);

	(void)state;
	assert_memory_equal(out.wire.event, &event, sizeof(event));
	assert_int_equal(out.wire.payload.size, 12);
	assert_memory_equal(out.wire.payload.data, "HTTP/1.1 200", 12);
	finish(reader, &file);
}

static void every_kind_of_wire_event_comes_back(void **state)
{
	(void)state;
	for (int kind = WIRE_HOLE; kind <= WIRE_CONNECT; kind++) {
		struct wire_event event = wire_build(WIRE_BUILD_CLIENT, kind, 5000);
		const struct input in = wire(&event, "");
		struct recording_reader *reader;
		struct file file = {0};
		struct input out = round_trip(&in, &reader, &file);

		assert_memory_equal(out.wire.event, &event, sizeof(event));
		assert_int_equal(out.wire.payload.size, 0);
		finish(reader, &file);
	}
}

static void the_largest_payload_comes_back(void **state)
{
	static char text[WIRE_PAYLOAD_MAX + 1];
	struct wire_event event =
		wire_build_data(WIRE_BUILD_CLIENT, 0, WIRE_PAYLOAD_MAX, 0, 5000);
	struct recording_reader *reader;
	struct file file = {0};
	struct input in, out;

	(void)state;
	for (size_t i = 0; i < WIRE_PAYLOAD_MAX; i++)
		text[i] = (char)('a' + i % 23);
	in = wire(&event, text);
	out = round_trip(&in, &reader, &file);
	assert_int_equal(out.wire.payload.size, WIRE_PAYLOAD_MAX);
	assert_memory_equal(out.wire.payload.data, text, WIRE_PAYLOAD_MAX);
	finish(reader, &file);
}

static void a_tick_comes_back(void **state)
{
	const struct input in = {.kind = INPUT_TICK, .now_ns = 8, .tick = {INT64_MIN}};
	struct recording_reader *reader;
	struct file file = {0};
	struct input out = round_trip(&in, &reader, &file);

	(void)state;
	assert_int_equal(out.tick.wall_offset_ns, INT64_MIN);
	finish(reader, &file);
}

static void a_cgroup_name_comes_back(void **state)
{
	const struct input in = {
		.kind = INPUT_CGROUP, .now_ns = 8, .cgroup = {UINT64_MAX, BYTES("/a\xff/b")}};
	struct recording_reader *reader;
	struct file file = {0};
	struct input out = round_trip(&in, &reader, &file);

	(void)state;
	assert_int_equal(out.cgroup.id, UINT64_MAX);
	assert_true(bytes_equal(out.cgroup.path, BYTES("/a\xff/b")));
	finish(reader, &file);
}

static void a_counter_snapshot_comes_back(void **state)
{
	struct input in = {.kind = INPUT_COUNTERS, .now_ns = 8};
	struct recording_reader *reader;
	struct file file = {0};
	struct input out;

	(void)state;
	for (size_t i = 0; i < WIRE_COUNTER_COUNT; i++)
		in.counters.value[i] = i * 1000000007ULL;
	in.counters.recursion_misses = 42;
	out = round_trip(&in, &reader, &file);
	assert_memory_equal(&out.counters, &in.counters, sizeof(in.counters));
	finish(reader, &file);
}

static void a_mark_comes_back_also_without_a_label(void **state)
{
	static const char *const labels[] = {"", "step 2 \"paid\""};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct input in = {
			.kind = INPUT_MARK, .now_ns = 8, .mark = {bytes_of_string(labels[i])}};
		struct recording_reader *reader;
		struct file file = {0};
		struct input out = round_trip(&in, &reader, &file);

		assert_true(bytes_equal(out.mark.label, bytes_of_string(labels[i])));
		finish(reader, &file);
	}
}

static void a_drain_comes_back(void **state)
{
	const struct input in = {.kind = INPUT_DRAIN, .now_ns = 8};
	struct recording_reader *reader;
	struct file file = {0};

	(void)state;
	round_trip(&in, &reader, &file);
	finish(reader, &file);
}

static void the_closing_input_comes_back(void **state)
{
	const struct input in = closing(77);
	struct recording_reader *reader;
	struct file file = {0};
	struct input out = round_trip(&in, &reader, &file);

	(void)state;
	assert_memory_equal(&out.closing, &in.closing, sizeof(in.closing));
	finish(reader, &file);
}

static void more_survivors_than_fit_are_still_counted(void **state)
{
	struct input in = closing(77);
	struct recording_reader *reader;
	struct file file = {0};
	struct input out;

	(void)state;
	in.closing.survivor_count = 1000;
	for (uint32_t i = 0; i < CLOSING_SURVIVORS_MAX; i++)
		in.closing.survivors[i].pid = 9000 + i;
	out = round_trip(&in, &reader, &file);
	assert_memory_equal(&out.closing, &in.closing, sizeof(in.closing));
	finish(reader, &file);
}

static void the_sums_of_a_store_come_back_with_the_closing_input(void **state)
{
	struct input in = closing(77);
	struct recording_reader *reader;
	struct file file = {0};
	struct input out;

	(void)state;
	in.closing.has_store = true;
	in.closing.store_rows = 12;
	in.closing.store_lost = UINT64_MAX;
	out = round_trip(&in, &reader, &file);
	assert_memory_equal(&out.closing, &in.closing, sizeof(in.closing));
	finish(reader, &file);
}

static struct past_attempt past_attempt(void)
{
	return (struct past_attempt){
		.id = {1, 2, 3},
		.first_ns = 1790000000000000000LL,
		.closed_ns = -1,
		.tgid = 4711,
		.status = 504,
		.delivered = DELIVERED_NONE,
		.closed_first = CLOSER_SERVER,
		.idem_state = IDEM_UNKNOWN,
		.idem_size = PAST_KEY_MAX,
		.flags = PAST_FLAGS_ALL,
		.idem = "a key",
	};
}

static void an_attempt_of_an_earlier_run_comes_back(void **state)
{
	const struct past_attempt past = past_attempt();
	struct input in = {.kind = INPUT_PAST, .now_ns = 5, .past = &past};
	struct recording_reader *reader;
	struct file file = {0};
	struct input out = round_trip(&in, &reader, &file);

	(void)state;
	assert_memory_equal(out.past, &past, sizeof(past));
	finish(reader, &file);
}

static void many_blocks_come_back_in_order(void **state)
{
	static char text[1001];
	struct file file = {0};
	struct recording_writer *writer = new_writer(&file);
	struct recording_reader *reader;
	struct input in, out;

	(void)state;
	memset(text, 'x', 1000);
	for (uint32_t i = 0; i < 2000; i++) {
		struct wire_event event =
			wire_build_data(WIRE_BUILD_CLIENT, i * 1000ULL, 1000, 0, i);

		in = wire(&event, text);
		assert_int_equal(recording_write(writer, &in), 0);
	}
	in = closing(2000);
	assert_int_equal(recording_write(writer, &in), 0);
	assert_int_equal(recording_writer_free(writer), 0);
	assert_true(file.size > 2000 * 1176);

	reader = open_good(&file);
	for (uint32_t i = 0; i < 2000; i++) {
		assert_int_equal(recording_next(reader, &out), RECORDING_INPUT);
		assert_int_equal(out.wire.event->offset, i * 1000ULL);
		assert_memory_equal(out.wire.payload.data, text, 1000);
	}
	assert_int_equal(recording_next(reader, &out), RECORDING_INPUT);
	assert_int_equal(out.kind, INPUT_CLOSING);
	assert_int_equal(recording_next(reader, &out), RECORDING_END);
	finish(reader, &file);
}

static void a_flush_makes_all_inputs_readable(void **state)
{
	struct file file = {0};
	struct recording_writer *writer = new_writer(&file);
	const struct input in = tick(5);
	struct recording_reader *reader;
	struct input out;

	(void)state;
	assert_int_equal(recording_write(writer, &in), 0);
	assert_int_equal(recording_flush(writer), 0);
	reader = open_good(&file);
	assert_int_equal(recording_next(reader, &out), RECORDING_INPUT);
	assert_int_equal(out.tick.wall_offset_ns, 2);
	assert_int_equal(recording_next(reader, &out), RECORDING_CUT);
	recording_reader_free(reader);
	assert_int_equal(recording_writer_free(writer), 0);
	free(file.data);
}

/* ---- what the writer refuses ---- */

static void refused(struct input in, int expected)
{
	struct file file = {0};
	struct recording_writer *writer = new_writer(&file);
	const struct input good = tick(UINT64_MAX);
	size_t before = file.size;

	assert_int_equal(recording_write(writer, &in), expected);
	assert_int_equal(recording_write(writer, &good), expected);
	assert_int_equal(recording_flush(writer), expected);
	assert_int_equal(recording_writer_free(writer), expected);
	assert_int_equal(file.size, before);
	free(file.data);
}

static void an_input_larger_than_a_block_is_refused_and_the_error_sticks(void **state)
{
	static uint8_t large[RECORDING_BLOCK_MAX];

	(void)state;
	refused((struct input){.kind = INPUT_MARK, .mark = {{large, sizeof(large)}}}, -EMSGSIZE);
	refused((struct input){.kind = INPUT_MARK, .mark = {{large, sizeof(large) - 15}}},
		-EMSGSIZE);
}

static void an_input_as_large_as_a_block_comes_back(void **state)
{
	static uint8_t large[RECORDING_BLOCK_MAX];
	struct input in = {.kind = INPUT_MARK, .mark = {{large, sizeof(large) - 16}}};
	const struct input small = tick(0), last = closing(0);
	struct file file = {0};
	struct recording_writer *writer = new_writer(&file);
	struct recording_reader *reader;
	struct input out;

	(void)state;
	assert_int_equal(recording_write(writer, &small), 0);
	assert_int_equal(recording_write(writer, &in), 0);
	assert_int_equal(recording_write(writer, &last), 0);
	assert_int_equal(recording_writer_free(writer), 0);
	reader = open_good(&file);
	assert_int_equal(recording_next(reader, &out), RECORDING_INPUT);
	assert_int_equal(recording_next(reader, &out), RECORDING_INPUT);
	assert_int_equal(out.mark.label.size, sizeof(large) - 16);
	assert_int_equal(recording_next(reader, &out), RECORDING_INPUT);
	assert_int_equal(recording_next(reader, &out), RECORDING_END);
	finish(reader, &file);
}

static void a_wire_event_that_is_not_what_it_says_is_refused(void **state)
{
	struct wire_event event = wire_build_data(WIRE_BUILD_CLIENT, 0, 3, 0, 5);
	const struct wire_event good = event;

	(void)state;
	refused(wire(&event, "ab"), -EINVAL);
	event.length_bytes = 2;
	refused(wire(&event, "abc"), -EINVAL);
	event = good;
	event.version++;
	refused(wire(&event, "abc"), -EINVAL);
	event = good;
	event.kind = 0;
	refused(wire(&event, "abc"), -EINVAL);
	event.kind = WIRE_CONNECT + 1;
	refused(wire(&event, "abc"), -EINVAL);
	event = good;
	event.cause = WIRE_CAUSE_COUNT;
	refused(wire(&event, "abc"), -EINVAL);
	refused((struct input){.kind = 99}, -EINVAL);
}

static void time_that_runs_backwards_is_refused(void **state)
{
	struct file file = {0};
	struct recording_writer *writer = new_writer(&file);
	const struct input later = tick(10), same = tick(10), earlier = tick(9);

	(void)state;
	assert_int_equal(recording_write(writer, &later), 0);
	assert_int_equal(recording_write(writer, &same), 0);
	assert_int_equal(recording_write(writer, &earlier), -EINVAL);
	assert_int_equal(recording_writer_free(writer), -EINVAL);
	free(file.data);
}

static void nothing_may_follow_the_closing_input(void **state)
{
	struct file file = {0};
	struct recording_writer *writer = new_writer(&file);
	const struct input last = closing(10), more = tick(11);

	(void)state;
	assert_int_equal(recording_write(writer, &last), 0);
	assert_int_equal(recording_write(writer, &more), -EINVAL);
	assert_int_equal(recording_writer_free(writer), -EINVAL);
	free(file.data);
}

static void a_full_disk_is_an_error_of_the_writer(void **state)
{
	FILE *full = fopen("/dev/full", "wb");
	struct recording_writer *writer = NULL;

	(void)state;
	if (!full)
		skip();
	assert_int_equal(recording_writer_new(full, &facts, &writer), -ENOSPC);
	assert_null(writer);
	assert_int_equal(recording_writer_free(NULL), 0);
}

/* ---- what the reader meets ---- */

/* Reads to the end. The number of inputs, and how it ended. */
static size_t read_all(struct recording_reader *reader, enum recording_result *ret_result)
{
	struct input input;
	size_t count = 0;

	while ((*ret_result = recording_next(reader, &input)) == RECORDING_INPUT)
		count++;
	assert_int_equal(recording_next(reader, &input), *ret_result);
	return count;
}

/* Offsets at which the blocks of a file end: header, inputs, inputs, closing. */
static size_t block_ends(const struct file *file, size_t ends[8])
{
	size_t at = FILE_HEAD_BYTES, count = 0;

	while (at < file->size) {
		uint32_t payload_bytes;

		memcpy(&payload_bytes, file->data + at + 8, sizeof(payload_bytes));
		at += BLOCK_HEAD_BYTES + payload_bytes;
		assert_true(count < 8);
		ends[count++] = at;
	}
	assert_int_equal(at, file->size);
	return count;
}

static void a_recording_cut_anywhere_is_readable_to_its_last_whole_block(void **state)
{
	static const size_t inputs_before[] = {0, 2, 3, 4};
	struct file file = {0};
	size_t ends[8];

	(void)state;
	write_small(&file);
	assert_int_equal(block_ends(&file, ends), 4);
	for (size_t size = 0; size <= file.size; size++) {
		int err;
		struct recording_reader *reader = open_reader(file.data, size, &err);
		enum recording_result result;
		size_t whole = 0;

		if (size < ends[0]) {
			assert_int_equal(err, -EBADMSG);
			assert_string_not_equal(recording_error(reader), "");
			recording_reader_free(reader);
			continue;
		}
		assert_int_equal(err, 0);
		while (whole + 1 < 4 && size >= ends[whole + 1])
			whole++;
		assert_int_equal(read_all(reader, &result), inputs_before[whole]);
		assert_int_equal(result, size == file.size ? RECORDING_END : RECORDING_CUT);
		if (result == RECORDING_CUT) {
			char expected[120];

			snprintf(expected, sizeof(expected),
				 "byte %zu: the file ends here, before its closing block", size);
			assert_string_equal(recording_error(reader), expected);
		}
		recording_reader_free(reader);
	}
	free(file.data);
}

static void every_single_flipped_bit_is_found(void **state)
{
	struct file file = {0};
	size_t ends[8];

	(void)state;
	write_small(&file);
	block_ends(&file, ends);
	for (size_t bit = 0; bit < 8 * file.size; bit++) {
		size_t at = bit / 8;
		struct recording_reader *reader;
		enum recording_result result;
		int err;

		file.data[at] ^= (char)(1 << bit % 8);
		reader = open_reader(file.data, file.size, &err);
		if (at < ends[0]) {
			assert_int_equal(err, at >= 14 && at < 16 ? -EPROTONOSUPPORT : -EBADMSG);
		} else {
			assert_int_equal(err, 0);
			read_all(reader, &result);
			assert_int_equal(result, RECORDING_DAMAGED);
		}
		assert_string_not_equal(recording_error(reader), "");
		recording_reader_free(reader);
		file.data[at] ^= (char)(1 << bit % 8);
	}
	free(file.data);
}

static void damage_is_named_with_its_place(void **state)
{
	struct file file = {0};
	struct recording_reader *reader;
	enum recording_result result;
	char expected[120];
	size_t ends[8];

	(void)state;
	write_small(&file);
	block_ends(&file, ends);
	file.data[ends[0] + BLOCK_HEAD_BYTES + 50] ^= 1;
	reader = open_good(&file);
	assert_int_equal(read_all(reader, &result), 0);
	assert_int_equal(result, RECORDING_DAMAGED);
	snprintf(expected, sizeof(expected), "byte %zu: a block is damaged",
		 ends[0] + BLOCK_HEAD_BYTES);
	assert_string_equal(recording_error(reader), expected);
	finish(reader, &file);
}

static void a_block_that_is_missing_or_repeated_is_damage(void **state)
{
	struct file file = {0};
	char edited[8192];
	size_t ends[8], size;
	enum recording_result result;
	struct recording_reader *reader;
	int err;

	(void)state;
	write_small(&file);
	block_ends(&file, ends);
	assert_true(2 * file.size < sizeof(edited));

	memcpy(edited, file.data, ends[0]);
	memcpy(edited + ends[0], file.data + ends[1], file.size - ends[1]);
	reader = open_reader(edited, file.size - (ends[1] - ends[0]), &err);
	assert_int_equal(read_all(reader, &result), 0);
	assert_int_equal(result, RECORDING_DAMAGED);
	recording_reader_free(reader);

	size = ends[1] - ends[0];
	memcpy(edited, file.data, ends[1]);
	memcpy(edited + ends[1], file.data + ends[0], file.size - ends[0]);
	reader = open_reader(edited, file.size + size, &err);
	assert_int_equal(read_all(reader, &result), 2);
	assert_int_equal(result, RECORDING_DAMAGED);
	recording_reader_free(reader);
	free(file.data);
}

static void something_after_the_closing_block_is_damage(void **state)
{
	struct file file = {0};
	char *longer;
	struct recording_reader *reader;
	enum recording_result result;
	int err;

	(void)state;
	write_small(&file);
	longer = calloc(1, file.size + 1);
	assert_non_null(longer);
	memcpy(longer, file.data, file.size);
	reader = open_reader(longer, file.size + 1, &err);
	assert_int_equal(read_all(reader, &result), 4);
	assert_int_equal(result, RECORDING_DAMAGED);
	recording_reader_free(reader);
	free(longer);
	free(file.data);
}

static void what_is_no_recording_says_so(void **state)
{
	static const char text[] = "{\"t\":1,\"this is\":\"a ledger\"}\n";
	struct recording_reader *reader;
	struct input input;
	int err;

	(void)state;
	reader = open_reader(text, sizeof(text) - 1, &err);
	assert_int_equal(err, -EBADMSG);
	assert_string_equal(recording_error(reader), "it is not a nightclerk recording");
	assert_int_equal(recording_next(reader, &input), RECORDING_DAMAGED);
	recording_reader_free(reader);

	reader = open_reader("nightclerk", 10, &err);
	assert_int_equal(err, -EBADMSG);
	assert_string_equal(recording_error(reader), "it is not a nightclerk recording");
	recording_reader_free(reader);

	reader = open_reader("", 0, &err);
	assert_int_equal(err, -EBADMSG);
	assert_string_equal(recording_error(reader), "the file is empty");
	recording_reader_free(reader);
	recording_reader_free(NULL);
}

static void another_version_says_what_to_do(void **state)
{
	struct file file = {0};
	struct recording_reader *reader;
	int err;

	(void)state;
	write_small(&file);
	file.data[14] = 7;
	reader = open_reader(file.data, file.size, &err);
	assert_int_equal(err, -EPROTONOSUPPORT);
	assert_string_equal(recording_error(reader),
			    "it has format version 7 and this build reads version 1: "
			    "replay it with the nightclerk that recorded it");
	finish(reader, &file);
}

static void a_file_that_cannot_be_read_is_an_io_error(void **state)
{
	struct recording_reader *reader = NULL;
	FILE *directory = fopen("/", "rb");

	(void)state;
	assert_non_null(directory);
	assert_int_equal(recording_reader_new(directory, &reader), -EIO);
	assert_string_equal(recording_error(reader), "byte 0: the file cannot be read");
	recording_reader_free(reader);
}

/* ---- blocks by hand: good checksums around hostile content ---- */

struct forged {
	struct buffer bytes;
	uint64_t next_number;
};

static void forge_block(struct forged *forged, uint32_t kind, struct bytes payload,
			uint32_t payload_bytes)
{
	uint32_t head[5] = {0x6b6c4243u, kind, payload_bytes,
			    (uint32_t)crc32_z(0, payload.data, payload.size)};
	uLong crc = crc32_z(0, (const uint8_t *)&forged->next_number, 8);

	head[4] = (uint32_t)crc32_z(crc, (const uint8_t *)head, 16);
	forged->next_number++;
	assert_int_equal(buffer_append(&forged->bytes,
				       (struct bytes){(const uint8_t *)head, sizeof(head)}),
			 0);
	assert_int_equal(buffer_append(&forged->bytes, payload), 0);
}

static struct forged forge(struct bytes header)
{
	struct forged forged = {0};

	assert_int_equal(buffer_append(&forged.bytes, BYTES("nightclerk rec\x01\0")), 0);
	forge_block(&forged, 1, header, (uint32_t)header.size);
	return forged;
}

static struct forged forge_good_header(void)
{
	struct buffer header = {0};
	struct forged forged;

	assert_int_equal(recording_put_facts(&header, &facts), 0);
	forged = forge(buffer_bytes(&header));
	buffer_done(&header);
	return forged;
}

/* Reads a forged file; the message must hold what, and before it so many inputs. */
static void forged_is_damaged(struct forged *forged, size_t inputs, const char *what)
{
	int err;
	struct recording_reader *reader =
		open_reader(forged->bytes.data, forged->bytes.size, &err);
	enum recording_result result;

	assert_int_equal(err, 0);
	assert_int_equal(read_all(reader, &result), inputs);
	assert_int_equal(result, RECORDING_DAMAGED);
	if (!strstr(recording_error(reader), what))
		fail_msg("\"%s\" does not say \"%s\"", recording_error(reader), what);
	recording_reader_free(reader);
	buffer_done(&forged->bytes);
}

static void a_hostile_block_length_is_not_believed(void **state)
{
	static const uint32_t lengths[] = {0, RECORDING_BLOCK_MAX + 1, 0x7fffffff, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct forged forged = forge_good_header();

		forge_block(&forged, 2, BYTES("abc"), lengths[i]);
		forged_is_damaged(&forged, 0, "a block has an impossible length");
	}
}

static void a_block_kind_out_of_place_is_damage(void **state)
{
	static const uint32_t kinds[] = {0, 1, 4, UINT32_MAX};
	struct recording_reader *reader;
	struct forged forged = {0};
	int err;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		forged = forge_good_header();
		forge_block(&forged, kinds[i], BYTES("abc"), 3);
		forged_is_damaged(&forged, 0, "a block has a kind that has no place here");
	}
	forged = (struct forged){0};
	assert_int_equal(buffer_append(&forged.bytes, BYTES("nightclerk rec\x01\0")), 0);
	forge_block(&forged, 2, BYTES("abc"), 3);
	reader = open_reader(forged.bytes.data, forged.bytes.size, &err);
	assert_int_equal(err, -EBADMSG);
	recording_reader_free(reader);
	buffer_done(&forged.bytes);
}

/* One input with a head of its own. */
static void append_raw(struct buffer *block, uint32_t kind, uint32_t body_bytes, uint64_t now_ns,
		       struct bytes body)
{
	const uint32_t head[4] = {kind, body_bytes, (uint32_t)now_ns, (uint32_t)(now_ns >> 32)};

	assert_int_equal(
		buffer_append(block, (struct bytes){(const uint8_t *)head, sizeof(head)}), 0);
	assert_int_equal(buffer_append(block, body), 0);
}

static void raw_is_damaged(uint32_t block_kind, uint32_t kind, uint32_t body_bytes,
			   struct bytes body, const char *what)
{
	struct forged forged = forge_good_header();
	struct buffer block = {0};

	append_raw(&block, kind, body_bytes, 5, body);
	forge_block(&forged, block_kind, buffer_bytes(&block), (uint32_t)block.size);
	buffer_done(&block);
	forged_is_damaged(&forged, 0, what);
}

static void hostile_inputs_in_a_good_block_are_damage(void **state)
{
	(void)state;
	raw_is_damaged(2, INPUT_MARK, 4, BYTES("abc"), "an input goes beyond its block");
	raw_is_damaged(2, INPUT_MARK, UINT32_MAX, BYTES("abc"), "an input goes beyond its block");
	raw_is_damaged(2, 0, 0, BYTES(""), "an input has an unknown kind");
	raw_is_damaged(2, INPUT_PAST + 1, 0, BYTES(""), "an input has an unknown kind");
	raw_is_damaged(2, INPUT_PAST, 3, BYTES("abc"), "an attempt of an earlier run has the wrong size");
	raw_is_damaged(2, UINT32_MAX, 0, BYTES(""), "an input has an unknown kind");
	raw_is_damaged(2, INPUT_WIRE, 3, BYTES("abc"), "a wire event is too short");
	raw_is_damaged(2, INPUT_TICK, 7, BYTES("1234567"), "a tick has the wrong size");
	raw_is_damaged(2, INPUT_TICK, 9, BYTES("123456789"), "a tick has the wrong size");
	raw_is_damaged(2, INPUT_CGROUP, 7, BYTES("1234567"), "a cgroup name is too short");
	raw_is_damaged(2, INPUT_COUNTERS, 8, BYTES("12345678"), "a counter snapshot has the wrong");
	raw_is_damaged(2, INPUT_DRAIN, 1, BYTES("1"), "a drain has the wrong size");
	raw_is_damaged(3, INPUT_CLOSING, 43, BYTES("1234567890123456789012345678901234567890123"),
		       "the closing input is too short");
	raw_is_damaged(3, INPUT_DRAIN, 0, BYTES(""), "the closing input is not in the closing");
}

static void hostile_attempts_of_an_earlier_run_are_damage(void **state)
{
	const struct past_attempt good = past_attempt();
	struct past_attempt bad[4] = {good, good, good, good};

	(void)state;
	bad[0].delivered = DELIVERED_NONE + 1;
	bad[1].closed_first = CLOSER_SERVER + 1;
	bad[2].idem_state = IDEM_UNKNOWN + 1;
	bad[3].flags = PAST_FLAGS_ALL + 1;
	for (size_t i = 0; i < 4; i++)
		raw_is_damaged(2, INPUT_PAST, sizeof(bad[i]), (struct bytes){(const uint8_t *)&bad[i], sizeof(bad[i])},
			       "an attempt of an earlier run is not what it says");
}

static void a_block_with_part_of_an_input_head_is_damage(void **state)
{
	struct forged forged = forge_good_header();

	(void)state;
	forge_block(&forged, 2, BYTES("123456789012345"), 15);
	forged_is_damaged(&forged, 0, "an input goes beyond its block");
}

static void hostile_wire_events_are_damage(void **state)
{
	struct wire_event event = wire_build_data(WIRE_BUILD_CLIENT, 0, 0, 0, 5);
	const struct wire_event good = event;
	const struct bytes raw = {(const uint8_t *)&event, sizeof(event)};

	(void)state;
	event.captured_bytes = event.length_bytes = UINT32_MAX;
	raw_is_damaged(2, INPUT_WIRE, sizeof(event), raw, "does not have the payload it names");
	event = good;
	event.version = WIRE_EVENT_VERSION + 1;
	raw_is_damaged(2, INPUT_WIRE, sizeof(event), raw, "a wire event has another version");
	event = good;
	event.kind = 0;
	raw_is_damaged(2, INPUT_WIRE, sizeof(event), raw, "a wire event has an unknown kind");
	event = good;
	event.cause = 255;
	raw_is_damaged(2, INPUT_WIRE, sizeof(event), raw, "a wire event has an unknown cause");
}

static void a_payload_larger_than_the_kernel_side_makes_is_damage(void **state)
{
	static uint8_t body[sizeof(struct wire_event) + WIRE_PAYLOAD_MAX + 1];
	struct wire_event event =
		wire_build_data(WIRE_BUILD_CLIENT, 0, WIRE_PAYLOAD_MAX + 1, 0, 5);

	(void)state;
	memcpy(body, &event, sizeof(event));
	raw_is_damaged(2, INPUT_WIRE, sizeof(body), (struct bytes){body, sizeof(body)},
		       "a wire event has more payload than it may");
	event.captured_bytes = 1;
	event.length_bytes = 0;
	memcpy(body, &event, sizeof(event));
	raw_is_damaged(2, INPUT_WIRE, sizeof(event) + 1,
		       (struct bytes){body, sizeof(event) + 1},
		       "a wire event has more payload than it may");
}

static void a_closing_input_with_more_survivors_than_it_holds_is_damage(void **state)
{
	const struct input in = closing(5);
	struct buffer block = {0};

	(void)state;
	/* How many there were, how many are kept, both. */
	for (int fields = 1; fields <= 3; fields++) {
		struct forged forged = forge_good_header();

		buffer_clear(&block);
		assert_int_equal(recording_put_input(&block, &in), 0);
		if (fields & 1)
			block.data[16 + 4] = 3;
		if (fields & 2)
			block.data[16 + 8] = 3;
		forge_block(&forged, 3, buffer_bytes(&block), (uint32_t)block.size);
		forged_is_damaged(&forged, 0, "names more survivors than it holds");
	}
	buffer_done(&block);
}

static void inputs_in_places_they_may_not_be_are_damage(void **state)
{
	const struct input first = tick(9), earlier = tick(8), last = closing(9);
	struct buffer block = {0};
	struct forged forged = forge_good_header();

	(void)state;
	recording_put_input(&block, &first);
	recording_put_input(&block, &earlier);
	forge_block(&forged, 2, buffer_bytes(&block), (uint32_t)block.size);
	forged_is_damaged(&forged, 1, "time runs backwards");

	forged = forge_good_header();
	buffer_clear(&block);
	recording_put_input(&block, &last);
	forge_block(&forged, 2, buffer_bytes(&block), (uint32_t)block.size);
	forged_is_damaged(&forged, 0, "the closing input is not in the closing block");

	forged = forge_good_header();
	recording_put_input(&block, &last);
	forge_block(&forged, 3, buffer_bytes(&block), (uint32_t)block.size);
	forged_is_damaged(&forged, 0, "something follows the closing input");
	buffer_done(&block);
}

/* ---- hostile headers ---- */

/* The good header with one piece of its text replaced. */
static int open_with_header(const char *old, const char *new, char *message, size_t size)
{
	struct buffer header = {0}, edited = {0};
	struct forged forged;
	struct recording_reader *reader;
	char *text, *at;
	int err;

	assert_int_equal(recording_put_facts(&header, &facts), 0);
	assert_int_equal(buffer_append_byte(&header, '\0'), 0);
	text = (char *)header.data;
	at = strstr(text, old);
	assert_non_null(at);
	buffer_append(&edited, (struct bytes){header.data, (size_t)(at - text)});
	buffer_append(&edited, bytes_of_string(new));
	buffer_append(&edited, bytes_of_string(at + strlen(old)));
	forged = forge(buffer_bytes(&edited));
	reader = open_reader(forged.bytes.data, forged.bytes.size, &err);
	snprintf(message, size, "%s", recording_error(reader));
	recording_reader_free(reader);
	buffer_done(&forged.bytes);
	buffer_done(&header);
	buffer_done(&edited);
	return err;
}

struct header_case {
	const char *old, *new;
	int err;
	const char *message;
};

static void a_header_with_a_wrong_field_names_it(void **state)
{
	static const struct header_case cases[] = {
		{"{", "[", -EBADMSG, "its header has no good JSON text"},
		{"\"door\"", "\"dour\"", -EBADMSG, "its header has no good door"},
		{"\"tracepoint\"", "17", -EBADMSG, "its header has no good door"},
		{"\"tracepoint\"", "\"sixteen letters!\"", -EBADMSG, "its header has no good door"},
		{"\"tracepoint\"", "\"trace\\u0000\"", -EBADMSG, "its header has no good door"},
		{"\"0001feff", "\"0001fef", -EBADMSG, "its header has no good boot_id"},
		{"\"0001feff", "\"0001fefF", -EBADMSG, "its header has no good boot_id"},
		{"\"dead", "\"dea ", -EBADMSG, "its header has no good salt"},
		{":3,", ":3000000000,", -EBADMSG, "its header has no good argument_count"},
		{":-5,", ":\"-5\",", -EBADMSG, "its header has no good wall_offset_ns"},
		{":18446744073709551614,", ":-1,", -EBADMSG, "its header has no good start_ns"},
		{"\"wire_event_version\":1", "\"wire_event_version\":2", -EPROTONOSUPPORT,
		 "its wire events have another layout than this build reads: "
		 "replay it with the nightclerk that recorded it"},
		{"\"counters\":24", "\"counters\":25", -EPROTONOSUPPORT,
		 "its wire events have another layout than this build reads: "
		 "replay it with the nightclerk that recorded it"},
		{"\"wire_event_version\":1", "\"x\":[[[[[[[[1]]]]]]]]", -EBADMSG,
		 "its header has no good JSON text"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char message[200];

		assert_int_equal(open_with_header(cases[i].old, cases[i].new, message,
						  sizeof(message)),
				 cases[i].err);
		assert_string_equal(message, cases[i].message);
	}
}

static void a_header_that_is_cut_or_damaged_says_so(void **state)
{
	struct file file = {0};
	struct recording_reader *reader;
	int err;

	(void)state;
	write_small(&file);
	reader = open_reader(file.data, 100, &err);
	assert_int_equal(err, -EBADMSG);
	assert_string_equal(recording_error(reader),
			    "byte 100: the file ends here, before its closing block");
	recording_reader_free(reader);
	file.data[60] ^= 4;
	reader = open_reader(file.data, file.size, &err);
	assert_int_equal(err, -EBADMSG);
	assert_string_equal(recording_error(reader), "byte 36: a block is damaged");
	finish(reader, &file);
}

static void a_recording_can_be_read_from_a_pipe(void **state)
{
	struct file file = {0};
	struct recording_reader *reader = NULL;
	enum recording_result result;
	int ends[2];

	(void)state;
	write_small(&file);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], file.data, file.size), file.size);
	close(ends[1]);
	assert_int_equal(recording_reader_new(fdopen(ends[0], "rb"), &reader), 0);
	assert_int_equal(read_all(reader, &result), 4);
	assert_int_equal(result, RECORDING_END);
	finish(reader, &file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_facts_of_the_run_come_back),
		cmocka_unit_test(what_came_before_the_file_is_in_it),
		cmocka_unit_test(a_wire_event_comes_back_with_its_payload),
		cmocka_unit_test(every_kind_of_wire_event_comes_back),
		cmocka_unit_test(the_largest_payload_comes_back),
		cmocka_unit_test(a_tick_comes_back),
		cmocka_unit_test(a_cgroup_name_comes_back),
		cmocka_unit_test(a_counter_snapshot_comes_back),
		cmocka_unit_test(a_mark_comes_back_also_without_a_label),
		cmocka_unit_test(a_drain_comes_back),
		cmocka_unit_test(the_closing_input_comes_back),
		cmocka_unit_test(more_survivors_than_fit_are_still_counted),
		cmocka_unit_test(the_sums_of_a_store_come_back_with_the_closing_input),
		cmocka_unit_test(an_attempt_of_an_earlier_run_comes_back),
		cmocka_unit_test(many_blocks_come_back_in_order),
		cmocka_unit_test(a_flush_makes_all_inputs_readable),
		cmocka_unit_test(an_input_larger_than_a_block_is_refused_and_the_error_sticks),
		cmocka_unit_test(an_input_as_large_as_a_block_comes_back),
		cmocka_unit_test(a_wire_event_that_is_not_what_it_says_is_refused),
		cmocka_unit_test(time_that_runs_backwards_is_refused),
		cmocka_unit_test(nothing_may_follow_the_closing_input),
		cmocka_unit_test(a_full_disk_is_an_error_of_the_writer),
		cmocka_unit_test(a_recording_cut_anywhere_is_readable_to_its_last_whole_block),
		cmocka_unit_test(every_single_flipped_bit_is_found),
		cmocka_unit_test(damage_is_named_with_its_place),
		cmocka_unit_test(a_block_that_is_missing_or_repeated_is_damage),
		cmocka_unit_test(something_after_the_closing_block_is_damage),
		cmocka_unit_test(what_is_no_recording_says_so),
		cmocka_unit_test(another_version_says_what_to_do),
		cmocka_unit_test(a_file_that_cannot_be_read_is_an_io_error),
		cmocka_unit_test(a_hostile_block_length_is_not_believed),
		cmocka_unit_test(a_block_kind_out_of_place_is_damage),
		cmocka_unit_test(hostile_inputs_in_a_good_block_are_damage),
		cmocka_unit_test(hostile_attempts_of_an_earlier_run_are_damage),
		cmocka_unit_test(a_block_with_part_of_an_input_head_is_damage),
		cmocka_unit_test(hostile_wire_events_are_damage),
		cmocka_unit_test(a_payload_larger_than_the_kernel_side_makes_is_damage),
		cmocka_unit_test(a_closing_input_with_more_survivors_than_it_holds_is_damage),
		cmocka_unit_test(inputs_in_places_they_may_not_be_are_damage),
		cmocka_unit_test(a_header_with_a_wrong_field_names_it),
		cmocka_unit_test(a_header_that_is_cut_or_damaged_says_so),
		cmocka_unit_test(a_recording_can_be_read_from_a_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
