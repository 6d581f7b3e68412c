/* SPDX-License-Identifier: BSD-2-Clause */
/* user/sequencer.c: the rules of sequencer.h, one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "limits.h"
#include "sequencer.h"
#include "wire_build.h"

#define CLIENT WIRE_BUILD_CLIENT
#define SERVER WIRE_BUILD_SERVER
#define MS 1000000ULL
#define START (1000 * MS)
#define AFTER_WATERMARK (START + 100 * MS)

/* ---- events are told apart by a letter, kept in uid ---- */

static void push(struct sequencer *sequencer, char letter, struct wire_event event)
{
	static const uint8_t payload[4096];

	event.uid = (uint32_t)letter;
	assert_int_equal(sequencer_push(sequencer, &event,
					(struct bytes){payload, event.captured_bytes}),
			 0);
}

/* The letters of everything that leaves at now_ns. */
static const char *pull(struct sequencer *sequencer, uint64_t now_ns)
{
	static char letters[256];
	const struct wire_event *event;
	struct bytes payload;
	size_t count = 0;

	while (sequencer_pull(sequencer, now_ns, &event, &payload)) {
		assert_true(count + 1 < sizeof(letters));
		assert_int_equal(payload.size, event->captured_bytes);
		letters[count++] = (char)event->uid;
	}
	letters[count] = '\0';
	return letters;
}

static int make(void **state)
{
	*state = sequencer_new();
	return *state ? 0 : -1;
}

/* Every test leaves nothing behind that draining would not bring out. */
static int drop(void **state)
{
	struct sequencer *sequencer = *state;

	sequencer_drain(sequencer);
	pull(sequencer, 0);
	assert_int_equal(sequencer_held_count(sequencer), 0);
	assert_int_equal(sequencer_held_bytes(sequencer), 0);
	sequencer_free(sequencer);
	return 0;
}

static struct wire_event data(enum wire_build_end end, uint64_t offset, uint32_t size,
			      uint64_t received, uint64_t at_us)
{
	return wire_build_data(end, offset, size, received, START + at_us * 1000);
}

static struct wire_event fork_at(uint64_t when_ns)
{
	return wire_build_fork(1, 2, "child", when_ns);
}

/* ---- what goes in comes out ---- */

static void an_event_comes_out_as_it_went_in(void **state)
{
	const uint8_t text[] = "POST /charge";
	struct wire_event in = wire_build_data(CLIENT, 0, sizeof(text), 0, START);
	const struct wire_event *out;
	struct bytes payload;

	assert_int_equal(sequencer_push(*state, &in, (struct bytes){text, sizeof(text)}), 0);
	assert_int_equal(sequencer_held_count(*state), 1);
	assert_int_equal(sequencer_held_bytes(*state), sizeof(in) + sizeof(text));
	assert_true(sequencer_pull(*state, AFTER_WATERMARK, &out, &payload));
	assert_memory_equal(out, &in, sizeof(in));
	assert_int_equal(payload.size, sizeof(text));
	assert_memory_equal(payload.data, text, sizeof(text));
	assert_ptr_not_equal(payload.data, text);
	assert_int_equal(sequencer_held_count(*state), 0);
	assert_int_equal(sequencer_held_bytes(*state), 0);
	assert_false(sequencer_pull(*state, AFTER_WATERMARK, &out, &payload));
}

static void payloads_of_every_size_are_kept(void **state)
{
	static const uint32_t sizes[] = {0,    1,    23,    24,	   255,	  256,	 4096,
					 8000, 8192, 16384, 32768, 65360, 66560, 200000};
	static uint8_t text[200000];
	const struct wire_event *out;
	struct bytes payload;
	uint64_t offset = 0;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 7 + i / 251);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct wire_event in =
				wire_build_data(CLIENT, offset, sizes[i], 0, START + offset);

			offset += sizes[i];
			assert_int_equal(
				sequencer_push(*state, &in, (struct bytes){text, sizes[i]}), 0);
		}
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			assert_true(sequencer_pull(*state, AFTER_WATERMARK, &out, &payload));
			assert_int_equal(payload.size, sizes[i]);
			if (sizes[i])
				assert_memory_equal(payload.data, text, sizes[i]);
		}
	}
}

static void the_oldest_event_held_is_known_wherever_it_is(void **state)
{
	const struct wire_event *event;
	struct bytes payload;

	assert_int_equal(sequencer_oldest_ns(*state), 0);
	push(*state, 'c', fork_at(START + 90 * MS));
	assert_int_equal(sequencer_oldest_ns(*state), START + 90 * MS);
	push(*state, 'b', data(CLIENT, 10, 10, 0, 2));
	assert_int_equal(sequencer_oldest_ns(*state), START + 2000);
	assert_string_equal(pull(*state, START + 50 * MS), "");
	assert_int_equal(sequencer_oldest_ns(*state), START + 2000);

	push(*state, 'z', fork_at(START + 1));
	assert_int_equal(sequencer_oldest_ns(*state), START + 1);
	assert_string_equal(pull(*state, START + 50 * MS), "z");

	/* One leaves by one pull and frees the other, which is then ready. */
	push(*state, 'a', data(CLIENT, 0, 10, 0, 5));
	assert_true(sequencer_pull(*state, START + 50 * MS, &event, &payload));
	assert_int_equal(event->uid, 'a');
	assert_int_equal(sequencer_oldest_ns(*state), START + 2000);
	assert_string_equal(pull(*state, START + 50 * MS), "b");
	assert_int_equal(sequencer_oldest_ns(*state), START + 90 * MS);
	assert_string_equal(pull(*state, AFTER_WATERMARK), "c");
	assert_int_equal(sequencer_oldest_ns(*state), 0);
}

static void freeing_accepts_null_and_a_full_sequencer(void **state)
{
	struct sequencer *sequencer = sequencer_new();
	const struct wire_event *event;
	struct bytes payload;

	(void)state;
	sequencer_free(NULL);
	push(sequencer, 'a', data(CLIENT, 0, 10, 0, 1));
	push(sequencer, 'b', data(CLIENT, 10, 10, 0, 2));
	push(sequencer, 'c', data(CLIENT, 50, 10, 0, 3));
	push(sequencer, 'y', fork_at(START + 900 * MS));
	/* One is lent, one is ready, one waits, one is young. */
	assert_true(sequencer_pull(sequencer, AFTER_WATERMARK, &event, &payload));
	sequencer_free(sequencer);
}

/* ---- rule 1 ---- */

static void nothing_leaves_before_the_watermark_has_passed(void **state)
{
	push(*state, 'a', fork_at(START));
	assert_string_equal(pull(*state, START), "");
	assert_string_equal(pull(*state, START + SEQUENCER_WATERMARK_NS - 1), "");
	assert_string_equal(pull(*state, START + SEQUENCER_WATERMARK_NS), "a");
}

static void a_later_arrival_with_an_earlier_time_finds_its_place(void **state)
{
	push(*state, 'c', fork_at(START + 3));
	push(*state, 'a', fork_at(START + 1));
	assert_string_equal(pull(*state, START + 4), "");
	push(*state, 'b', fork_at(START + 2));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
}

static void an_arrival_behind_the_watermark_leaves_at_once(void **state)
{
	push(*state, 'b', fork_at(START + 2));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "b");
	push(*state, 'a', fork_at(START + 1));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "a");
}

static void equal_times_keep_the_order_of_flow_offset_kind_arrival(void **state)
{
	struct wire_event end = wire_build_end(CLIENT, 10, 0, START);

	push(*state, 'h', wire_build_end(SERVER, 0, 0, START));
	push(*state, 'f', wire_build_reset(CLIENT, 10, 0, START));
	push(*state, 'g', end);
	push(*state, 'e', wire_build_data(CLIENT, 10, 0, 0, START));
	push(*state, 'd', wire_build_data(CLIENT, 0, 10, 0, START));
	push(*state, 'c', wire_build_open(CLIENT, START));
	push(*state, 'a', fork_at(START));
	push(*state, 'b', fork_at(START));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abcdefgh");
}

static void many_events_leave_in_order_of_time(void **state)
{
	const struct wire_event *event;
	struct bytes payload;
	uint64_t last = 0;
	uint32_t random = 12345;

	for (int i = 0; i < 5000; i++) {
		random = random * 1664525u + 1013904223u;
		push(*state, 'a', fork_at(START + random % 1000000));
	}
	assert_int_equal(sequencer_held_count(*state), 5000);
	for (int i = 0; i < 5000; i++) {
		assert_true(sequencer_pull(*state, AFTER_WATERMARK, &event, &payload));
		assert_true(event->when_ns >= last);
		last = event->when_ns;
	}
	assert_false(sequencer_pull(*state, AFTER_WATERMARK, &event, &payload));
}

/* ---- rule 2 ---- */

static void bytes_of_a_flow_leave_in_order_of_offset(void **state)
{
	push(*state, 'c', data(CLIENT, 20, 10, 0, 1));
	push(*state, 'b', data(CLIENT, 10, 10, 0, 2));
	push(*state, 'a', data(CLIENT, 0, 10, 0, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
}

static void a_hole_counts_as_the_bytes_it_stands_for(void **state)
{
	push(*state, 'c', data(CLIENT, 30, 10, 0, 1));
	push(*state, 'a', data(CLIENT, 0, 10, 0, 2));
	push(*state, 'b', wire_build_hole(CLIENT, 10, 20, WIRE_CAUSE_RING_FULL, START + 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
}

static void a_hole_waits_for_the_bytes_before_it(void **state)
{
	push(*state, 'b', wire_build_hole(CLIENT, 10, 20, WIRE_CAUSE_RING_FULL, START + 1));
	push(*state, 'a', data(CLIENT, 0, 10, 0, 2));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void bytes_that_were_accepted_but_not_captured_count_as_left(void **state)
{
	struct wire_event truncated = data(CLIENT, 0, 10, 0, 1);

	truncated.length_bytes = 50;
	truncated.cause = WIRE_CAUSE_TRUNCATED;
	push(*state, 'a', truncated);
	push(*state, 'b', data(CLIENT, 50, 10, 0, 2));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void repeated_bytes_do_not_wait(void **state)
{
	push(*state, 'a', data(CLIENT, 0, 10, 0, 1));
	push(*state, 'b', data(CLIENT, 5, 10, 0, 2));
	push(*state, 'c', data(CLIENT, 0, 2, 0, 3));
	push(*state, 'd', data(CLIENT, 15, 10, 0, 4));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abcd");
}

static void other_flows_do_not_wait_with_a_flow(void **state)
{
	push(*state, 'c', data(CLIENT, 10, 10, 0, 1));
	push(*state, 'a', wire_build_on(data(CLIENT, 0, 10, 0, 2), 1));
	push(*state, 'b', data(CLIENT, 0, 10, 0, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
}

static void what_comes_later_in_a_flow_waits_behind_its_bytes(void **state)
{
	push(*state, 'b', data(CLIENT, 10, 10, 0, 1));
	push(*state, 'c', wire_build_reset(CLIENT, 20, 0, START + 2000));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "");
	push(*state, 'a', data(CLIENT, 0, 10, 0, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
}

static void nothing_waits_for_the_bytes_of_a_muted_flow(void **state)
{
	struct wire_event closing = wire_build_close(CLIENT, 900, 0, START + 2000);

	push(*state, 'a', data(CLIENT, 0, 10, 0, 0));
	push(*state, 'b', closing);
	assert_string_equal(pull(*state, AFTER_WATERMARK), "a");
	sequencer_mute(*state, WIRE_BUILD_SERVER_FLOW + 77); /* not known: left alone */
	assert_string_equal(pull(*state, AFTER_WATERMARK), "");
	sequencer_mute(*state, WIRE_BUILD_CLIENT_FLOW);
	assert_string_equal(pull(*state, AFTER_WATERMARK), "b");
}

static void a_state_change_waits_for_the_bytes_that_it_counts(void **state)
{
	/* A send into a reset: the socket is closed inside the call, the record comes at its end. */
	push(*state, 'b', wire_build_state(SERVER, WIRE_TCP_CLOSE, 200, 0, START + 1000));
	push(*state, 'a', data(SERVER, 0, 200, 0, 2));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void a_state_change_leaves_before_bytes_that_it_does_not_count(void **state)
{
	push(*state, 'a', wire_build_state(CLIENT, WIRE_TCP_CLOSE_WAIT, 0, 0, START + 1000));
	push(*state, 'b', data(CLIENT, 0, 10, 0, 2));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void a_state_change_may_count_its_own_fin(void **state)
{
	push(*state, 'a', data(CLIENT, 0, 10, 0, 1));
	push(*state, 'b', wire_build_close(CLIENT, 10, 0, START + 2000));
	push(*state, 'c', wire_build_state(CLIENT, WIRE_TCP_FIN_WAIT2, 11, 0, START + 3000));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
}

static void a_flow_that_joined_late_begins_where_it_was_seen_first(void **state)
{
	struct wire_event first = data(CLIENT, 5000, 10, 700, 1);

	first.flags |= WIRE_JOINED_LATE;
	push(*state, 'b', data(CLIENT, 5010, 10, 700, 2));
	push(*state, 'a', first);
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void offsets_beyond_4_gib_are_in_order(void **state)
{
	const uint64_t start = (1ULL << 32) - 5;
	struct wire_event first = data(CLIENT, start, 10, 0, 2);

	first.flags |= WIRE_JOINED_LATE;
	push(*state, 'a', first);
	push(*state, 'c', data(CLIENT, start + 20, 10, 0, 3));
	push(*state, 'b', data(CLIENT, start + 10, 10, 0, 4));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
}

/* ---- rule 3 ---- */

static void an_answer_waits_for_the_request_it_answers(void **state)
{
	push(*state, 'b', data(SERVER, 0, 200, 100, 1));
	push(*state, 'a', data(CLIENT, 0, 100, 0, 2));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void an_answer_waits_for_every_byte_that_was_received(void **state)
{
	push(*state, 'c', data(SERVER, 0, 200, 100, 1));
	push(*state, 'a', data(CLIENT, 0, 50, 0, 2));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "a");
	push(*state, 'b', data(CLIENT, 50, 50, 0, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "bc");
}

static void an_answer_waits_for_a_peer_that_was_not_seen_yet(void **state)
{
	push(*state, 'b', data(SERVER, 0, 200, 100, 1));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "");
	push(*state, 'a', data(CLIENT, 0, 100, 0, 2));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void an_answer_that_has_received_nothing_does_not_wait(void **state)
{
	push(*state, 'a', data(SERVER, 0, 20, 0, 1));
	push(*state, 'b', data(CLIENT, 0, 100, 20, 2));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void everything_behind_a_waiting_answer_waits_with_it(void **state)
{
	push(*state, 'b', data(SERVER, 0, 200, 100, 1));
	push(*state, 'c', data(SERVER, 200, 10, 0, 2));
	push(*state, 'd', wire_build_reset(SERVER, 210, 0, START + 3000));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "");
	push(*state, 'a', data(CLIENT, 0, 100, 0, 4));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abcd");
}

static void a_chain_of_requests_and_answers_resolves(void **state)
{
	push(*state, 'd', data(SERVER, 20, 20, 200, 1));
	push(*state, 'c', data(CLIENT, 100, 100, 20, 2));
	push(*state, 'b', data(SERVER, 0, 20, 100, 3));
	push(*state, 'a', data(CLIENT, 0, 100, 0, 4));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abcd");
}

static void what_becomes_free_together_leaves_oldest_first(void **state)
{
	push(*state, 'b', data(SERVER, 0, 20, 100, 1));
	push(*state, 'c', data(CLIENT, 100, 50, 0, 2));
	push(*state, 'a', data(CLIENT, 0, 100, 0, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
}

static void a_received_fin_counts_once_the_close_has_left(void **state)
{
	push(*state, 'a', data(CLIENT, 0, 100, 0, 1));
	push(*state, 'c', wire_build_state(SERVER, WIRE_TCP_CLOSE_WAIT, 0, 101, START + 2000));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "a");
	push(*state, 'b', wire_build_close(CLIENT, 100, 0, START + 3000));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "bc");
}

static void a_half_close_counts_as_a_fin(void **state)
{
	struct wire_event half = wire_build_state(CLIENT, WIRE_TCP_ESTABLISHED, 100, 0, START);

	half.shutdown = WIRE_SHUTDOWN_SEND;
	half.when_ns += 3000;
	push(*state, 'a', data(CLIENT, 0, 100, 0, 1));
	push(*state, 'c', data(SERVER, 0, 10, 101, 2));
	push(*state, 'b', half);
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
}

static void a_fin_does_not_excuse_a_missing_byte(void **state)
{
	push(*state, 'a', data(CLIENT, 0, 99, 0, 1));
	push(*state, 'b', wire_build_close(CLIENT, 99, 0, START + 2000));
	push(*state, 'c', data(SERVER, 0, 10, 101, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
	assert_string_equal(pull(*state, START + SEQUENCER_HOLD_NS + 3000), "c");
}

static void the_end_of_the_receiving_direction_sends_no_fin(void **state)
{
	push(*state, 'a', data(CLIENT, 0, 100, 0, 1));
	push(*state, 'b', wire_build_state(CLIENT, WIRE_TCP_CLOSE_WAIT, 100, 0, START + 2000));
	push(*state, 'c', data(SERVER, 0, 10, 101, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void ends_are_told_apart_by_their_sequence_numbers(void **state)
{
	/* The same 4-tuple again while an answer of the first connection is still due. */
	struct wire_event again = data(CLIENT, 0, 100, 0, 2);

	again.flow = 301;
	again.send_base_seq += 77777;
	again.receive_base_seq += 88888;
	push(*state, 'c', data(SERVER, 0, 200, 100, 1));
	push(*state, 'a', again);
	assert_string_equal(pull(*state, AFTER_WATERMARK), "a");
	push(*state, 'b', data(CLIENT, 0, 100, 0, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "bc");
}

static void ends_are_told_apart_by_their_network_namespace(void **state)
{
	struct wire_event elsewhere = data(CLIENT, 0, 100, 0, 2);

	elsewhere.flow = 301;
	elsewhere.netns++;
	push(*state, 'b', data(SERVER, 0, 200, 100, 1));
	push(*state, 'a', elsewhere);
	assert_string_equal(pull(*state, AFTER_WATERMARK), "a");
}

static void a_connection_to_itself_does_not_wait_for_itself(void **state)
{
	struct wire_event request = data(CLIENT, 0, 10, 0, 1), second = data(CLIENT, 10, 10, 10, 2);

	request.remote_port = second.remote_port = request.local_port;
	request.receive_base_seq = second.receive_base_seq = request.send_base_seq;
	push(*state, 'a', request);
	push(*state, 'b', second);
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void two_ends_that_count_each_other_leave_in_order_of_their_beginning(void **state)
{
	/* The answer came before the request's own record was made, and is counted in it. */
	struct wire_event request = data(CLIENT, 0, 100, 20, 9);

	request.start_ns = START;
	push(*state, 'b', data(SERVER, 0, 20, 100, 5));
	push(*state, 'a', request);
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void a_knot_is_cut_at_both_ends(void **state)
{
	struct wire_event answer = data(SERVER, 0, 20, 100, 9);

	answer.start_ns = START;
	push(*state, 'b', data(CLIENT, 0, 100, 20, 5));
	push(*state, 'a', answer);
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void no_knot_is_cut_while_the_bytes_may_still_come(void **state)
{
	/* The client's waits for a request that is on its way; only then does the server's rest on it. */
	push(*state, 'b', data(CLIENT, 50, 50, 0, 1));
	push(*state, 'c', data(SERVER, 0, 20, 100, 2));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "");
	push(*state, 'a', data(CLIENT, 0, 50, 0, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
}

/* ---- rule 4 ---- */

static void bytes_that_never_come_are_waited_for_until_the_hold_limit(void **state)
{
	push(*state, 'a', wire_build_data(CLIENT, 10, 10, 0, START));
	assert_string_equal(pull(*state, START + SEQUENCER_HOLD_NS - 1), "");
	assert_int_equal(sequencer_held_count(*state), 1);
	assert_string_equal(pull(*state, START + SEQUENCER_HOLD_NS), "a");
}

static void a_peer_that_never_comes_is_waited_for_until_the_hold_limit(void **state)
{
	push(*state, 'a', wire_build_data(SERVER, 0, 10, 100, START));
	assert_string_equal(pull(*state, START + SEQUENCER_HOLD_NS - 1), "");
	assert_string_equal(pull(*state, START + SEQUENCER_HOLD_NS), "a");
}

static void after_a_gap_was_given_up_the_stream_goes_on_from_there(void **state)
{
	push(*state, 'a', data(CLIENT, 10, 10, 0, 0));
	push(*state, 'b', data(CLIENT, 20, 10, 0, 500));
	assert_string_equal(pull(*state, START + SEQUENCER_HOLD_NS), "ab");
	push(*state, 'c', data(CLIENT, 30, 10, 0, 1000500));
	assert_string_equal(pull(*state, START + 2 * SEQUENCER_HOLD_NS), "c");
}

static void what_runs_out_of_patience_takes_along_what_stands_before_it(void **state)
{
	push(*state, 'b', data(CLIENT, 10, 10, 0, 0));
	push(*state, 'a', data(CLIENT, 0, 10, 50, 900000));
	assert_string_equal(pull(*state, START + SEQUENCER_HOLD_NS - 1), "");
	assert_string_equal(pull(*state, START + SEQUENCER_HOLD_NS), "ab");
}

static void two_ends_with_a_gap_each_resolve_by_the_hold_limit(void **state)
{
	push(*state, 'a', data(CLIENT, 10, 10, 20, 0));
	push(*state, 'b', data(SERVER, 10, 10, 20, 1));
	assert_string_equal(pull(*state, START + SEQUENCER_HOLD_NS - 1), "");
	assert_string_equal(pull(*state, START + SEQUENCER_HOLD_NS + 1000), "ab");
}

static void a_late_arrival_past_its_hold_limit_does_not_wait(void **state)
{
	push(*state, 'z', fork_at(START + 3 * SEQUENCER_HOLD_NS));
	assert_string_equal(pull(*state, START + 4 * SEQUENCER_HOLD_NS), "z");
	push(*state, 'a', data(CLIENT, 10, 10, 50, 0));
	assert_string_equal(pull(*state, START + 4 * SEQUENCER_HOLD_NS), "a");
}

static void a_peer_that_has_ended_is_not_waited_for(void **state)
{
	push(*state, 'a', data(CLIENT, 0, 50, 0, 1));
	push(*state, 'b', wire_build_open(SERVER, START + 2000));
	push(*state, 'c', wire_build_end(CLIENT, 100, 0, START + 3000));
	push(*state, 'd', data(SERVER, 0, 20, 101, 4));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abcd");
}

static void the_end_of_a_flow_lets_its_own_bytes_go(void **state)
{
	push(*state, 'a', data(CLIENT, 10, 10, 0, 1));
	push(*state, 'b', wire_build_state(CLIENT, WIRE_TCP_CLOSE, 30, 0, START + 2000));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "");
	push(*state, 'c', wire_build_end(CLIENT, 30, 0, START + 3000));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
}

static void the_end_of_a_flow_waits_for_what_it_had_received(void **state)
{
	push(*state, 'a', data(CLIENT, 0, 10, 0, 1));
	push(*state, 'c', wire_build_end(CLIENT, 10, 20, START + 2000));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "a");
	push(*state, 'b', data(SERVER, 0, 20, 10, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "bc");
}

static void two_ended_flows_with_gaps_do_not_wait_for_each_other(void **state)
{
	push(*state, 'a', wire_build_open(CLIENT, START));
	push(*state, 'b', wire_build_open(SERVER, START + 1));
	push(*state, 'c', wire_build_end(CLIENT, 100, 51, START + 2));
	push(*state, 'd', wire_build_end(SERVER, 50, 101, START + 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abcd");
}

static void a_late_joiner_without_a_peer_does_not_wait(void **state)
{
	struct wire_event event = data(SERVER, 500, 10, 9000, 1);

	event.flags |= WIRE_JOINED_LATE;
	push(*state, 'a', event);
	push(*state, 'b', data(SERVER, 510, 10, 9500, 2));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
}

static void draining_empties_it_in_the_order_that_time_would_give(void **state)
{
	push(*state, 'e', fork_at(START + 3 * SEQUENCER_HOLD_NS));
	push(*state, 'd', data(CLIENT, 10, 10, 0, 900000));
	push(*state, 'b', data(SERVER, 0, 20, 100, 1));
	push(*state, 'c', fork_at(START + 10000));
	push(*state, 'a', fork_at(START));
	assert_string_equal(pull(*state, START), "");
	sequencer_drain(*state);
	assert_string_equal(pull(*state, START), "acbde");
	push(*state, 'f', fork_at(START + 5));
	assert_string_equal(pull(*state, START), "f");
}

static void times_at_the_end_of_the_range_do_not_wrap(void **state)
{
	struct wire_event event = wire_build_data(CLIENT, UINT64_MAX, 10, UINT64_MAX, UINT64_MAX);

	push(*state, 'a', event);
	event.length_bytes = UINT64_MAX;
	push(*state, 'b', event);
	assert_string_equal(pull(*state, UINT64_MAX - 1), "");
	sequencer_drain(*state);
	assert_string_equal(pull(*state, 0), "ab");
}

static void a_stream_that_is_full_holds_nothing_back(void **state)
{
	struct wire_event event = data(CLIENT, 0, 10, 0, 1);

	event.length_bytes = 10;
	push(*state, 'a', event);
	event = wire_build_hole(CLIENT, 10, UINT64_MAX, WIRE_CAUSE_MUTED, START + 2000);
	push(*state, 'b', event);
	push(*state, 'c', data(CLIENT, UINT64_MAX - 20, 10, 0, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
}

static void past_the_byte_limit_nothing_waits_and_the_oldest_wait_ends_first(void **state)
{
	static uint8_t payload[65000];
	struct wire_event event = data(CLIENT, 10, sizeof(payload), 0, 0);
	const struct wire_event *out;
	struct bytes lent;
	size_t pushed = 0, pulled = 0;

	while (sequencer_held_bytes(*state) <= LIMIT_HELD_BYTES) {
		assert_int_equal(
			sequencer_push(*state, &event, (struct bytes){payload, sizeof(payload)}), 0);
		event.offset += sizeof(payload) + 1;
		event.when_ns++;
		pushed++;
	}
	while (sequencer_pull(*state, START, &out, &lent)) {
		assert_int_equal(out->when_ns, START + pulled);
		pulled++;
	}
	assert_int_equal(pulled, 1);
	assert_true(sequencer_held_bytes(*state) <= LIMIT_HELD_BYTES);
	assert_int_equal(sequencer_held_count(*state), pushed - 1);

	/* Past the watermark all wait for bytes: one more, and the oldest is let go. */
	assert_false(sequencer_pull(*state, AFTER_WATERMARK, &out, &lent));
	assert_int_equal(
		sequencer_push(*state, &event, (struct bytes){payload, sizeof(payload)}), 0);
	assert_true(sequencer_pull(*state, AFTER_WATERMARK, &out, &lent));
	assert_int_equal(out->when_ns, START + 1);
	assert_false(sequencer_pull(*state, AFTER_WATERMARK, &out, &lent));

	sequencer_drain(*state);
	while (sequencer_pull(*state, 0, &out, &lent))
		pulled++;
	assert_int_equal(pulled + 1, pushed + 1);
}

static void past_the_byte_limit_the_watermark_gives_way_last(void **state)
{
	static uint8_t payload[65000];
	const struct wire_event *out;
	struct bytes lent;
	struct wire_event event = fork_at(AFTER_WATERMARK);

	push(*state, 'a', data(CLIENT, 10, 10, 0, 0));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "");
	while (sequencer_held_bytes(*state) <= LIMIT_HELD_BYTES)
		assert_int_equal(sequencer_push(*state, &event,
						(struct bytes){payload, sizeof(payload)}),
				 0);
	assert_true(sequencer_pull(*state, AFTER_WATERMARK, &out, &lent));
	assert_int_equal(out->uid, 'a');
	if (sequencer_pull(*state, AFTER_WATERMARK, &out, &lent))
		assert_int_equal(out->kind, WIRE_FORK);
	assert_true(sequencer_held_bytes(*state) <= LIMIT_HELD_BYTES);
	sequencer_drain(*state);
	while (sequencer_pull(*state, 0, &out, &lent))
		assert_int_equal(lent.size, sizeof(payload));
}

/* ---- process events ---- */

static void process_events_never_wait(void **state)
{
	struct wire_event connect = wire_build_exec(5, "agent", START + 4);

	connect.kind = WIRE_CONNECT;
	connect.flow = 900;
	connect.remote_port = 443;
	connect.received_bytes = 100;
	push(*state, 'a', fork_at(START + 1));
	push(*state, 'b', wire_build_exec(2, "agent", START + 2));
	push(*state, 'c', wire_build_exit(2, "agent", START + 3));
	push(*state, 'd', connect);
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abcd");
}

/* ---- memory of flows ---- */

static void a_flow_is_forgotten_with_its_end(void **state)
{
	push(*state, 'a', data(CLIENT, 0, 10, 0, 1));
	push(*state, 'b', wire_build_end(CLIENT, 10, 0, START + 2000));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
	/* Never the same flow again in real life: here it shows that nothing is remembered. */
	push(*state, 'c', data(CLIENT, 10, 10, 0, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "");
	assert_string_equal(pull(*state, START + 2 * SEQUENCER_HOLD_NS), "c");
}

static void a_flow_whose_end_waited_for_its_peer_is_forgotten_too(void **state)
{
	push(*state, 'a', data(CLIENT, 0, 10, 0, 1));
	push(*state, 'c', wire_build_end(CLIENT, 10, 20, START + 2000));
	push(*state, 'b', data(SERVER, 0, 20, 10, 3));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "abc");
	push(*state, 'd', data(CLIENT, 10, 10, 0, 4));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "");
}

static void past_the_flow_limit_the_quietest_is_forgotten(void **state)
{
	const struct wire_event *event;
	struct bytes payload;

	push(*state, 'a', data(CLIENT, 0, 10, 0, 1));
	push(*state, 'b', wire_build_on(data(CLIENT, 0, 10, 0, 2), 1));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "ab");
	for (uint32_t n = 2; n < SEQUENCER_FLOWS_MAX; n++) {
		push(*state, 'x', wire_build_on(data(CLIENT, 0, 10, 0, 3), n));
		assert_true(sequencer_pull(*state, AFTER_WATERMARK, &event, &payload));
	}
	push(*state, 'c', data(CLIENT, 10, 10, 0, 4)); /* flow 0 speaks, so flow 1 is the quietest */
	push(*state, 'd', wire_build_on(data(CLIENT, 0, 10, 0, 5), SEQUENCER_FLOWS_MAX));
	push(*state, 'e', data(CLIENT, 20, 10, 0, 6));
	push(*state, 'f', wire_build_on(data(CLIENT, 10, 10, 0, 7), 1));
	assert_string_equal(pull(*state, AFTER_WATERMARK), "cde");
}

/* ---- determinism ---- */

#define CONNECTIONS 12
#define ROUNDS 6
#define EVENTS_MAX 1024
#define ORDERS 60

struct scenario {
	struct wire_event events[EVENTS_MAX];
	size_t count;
	uint32_t random;
};

static uint32_t pick(uint32_t *random, uint32_t below)
{
	*random ^= *random << 13;
	*random ^= *random >> 17;
	*random ^= *random << 5;
	return *random % below;
}

static void add(struct scenario *scenario, struct wire_event event)
{
	assert_true(scenario->count < EVENTS_MAX);
	event.uid = (uint32_t)scenario->count;
	scenario->events[scenario->count++] = event;
}

/*
 * One connection: requests in two sends by two threads that may finish in
 * either order, answers whose records may be older than the request's, holes,
 * lost bytes, a close, a reset, an end.
 */
static void add_connection(struct scenario *scenario, uint32_t n)
{
	uint32_t *random = &scenario->random;
	uint64_t at = START + pick(random, 2000) * 1000ULL;
	uint64_t sent = 0, answered = 0;

	add(scenario, wire_build_on(wire_build_open(CLIENT, at), n));
	add(scenario, wire_build_on(wire_build_open(SERVER, at + pick(random, 2)), n));
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t first = at + 1000 + pick(random, 3000000), second, answer;

		second = first + 2000000 - pick(random, 4000000);
		answer = first + 3000000 - pick(random, 4000000);
		add(scenario, wire_build_on(wire_build_data(CLIENT, sent, 40, answered, first), n));
		if (pick(random, 8) == 0) /* lost without a trace */
			sent += 10;
		else if (pick(random, 4) == 0)
			add(scenario, wire_build_on(wire_build_hole(CLIENT, sent + 40, 60,
								    WIRE_CAUSE_PAGES, second), n));
		else
			add(scenario, wire_build_on(wire_build_data(CLIENT, sent + 40, 60, answered,
								    second), n));
		sent += 100;
		add(scenario, wire_build_on(wire_build_data(SERVER, answered, 30, sent, answer),
					    n));
		answered += 30;
		if (pick(random, 3) == 0)
			add(scenario, wire_build_fork(1, n + 10, "child", answer));
		at = answer > second ? answer : second;
	}
	if (pick(random, 4) == 0)
		add(scenario, wire_build_on(wire_build_reset(CLIENT, sent, answered, at + 50), n));
	add(scenario, wire_build_on(wire_build_close(CLIENT, sent, answered, at + 100), n));
	add(scenario, wire_build_on(wire_build_state(SERVER, WIRE_TCP_CLOSE_WAIT, answered,
						     sent + 1, at + 100), n));
	if (pick(random, 3)) {
		add(scenario, wire_build_on(wire_build_end(CLIENT, sent, answered, at + 300), n));
		add(scenario, wire_build_on(wire_build_end(SERVER, answered, sent + 1, at + 200),
					    n));
	}
}

static uint64_t submitted_ns[EVENTS_MAX];

static int by_submission(const void *a, const void *b)
{
	const uint64_t x = submitted_ns[*(const size_t *)a], y = submitted_ns[*(const size_t *)b];

	return x < y ? -1 : x > y;
}

/* The two rings, each in the one order in which its records were submitted. */
static void fill_rings(struct scenario *scenario, size_t rings[2][EVENTS_MAX], size_t counts[2])
{
	counts[0] = counts[1] = 0;
	for (size_t i = 0; i < scenario->count; i++) {
		size_t ring = scenario->events[i].kind == WIRE_DATA ? 0 : 1;

		submitted_ns[i] = scenario->events[i].when_ns * 1000 +
				  pick(&scenario->random, 1000000) * 1000ULL + i % 1000;
		rings[ring][counts[ring]++] = i;
	}
	for (size_t ring = 0; ring < 2; ring++)
		qsort(rings[ring], counts[ring], sizeof(size_t), by_submission);
}

static void take_what_left(struct sequencer *sequencer, uint64_t now_ns, uint32_t *out,
			   size_t *count)
{
	const struct wire_event *event;
	struct bytes payload;

	while (sequencer_pull(sequencer, now_ns, &event, &payload)) {
		assert_true(*count < EVENTS_MAX);
		out[(*count)++] = event->uid;
	}
}

/*
 * Pushes both rings as time passes, each event somewhere within its watermark,
 * pulling now and then. Returns how many came out.
 */
static size_t run_once(const struct scenario *scenario, size_t rings[2][EVENTS_MAX],
		       const size_t counts[2], uint32_t *random, uint32_t *out)
{
	static const uint8_t payload[64];
	struct sequencer *sequencer = sequencer_new();
	size_t next[2] = {0, 0}, count = 0;
	uint64_t now = START;

	assert_non_null(sequencer);
	while (next[0] < counts[0] || next[1] < counts[1]) {
		size_t ring = pick(random, 2);
		const struct wire_event *event, *other;

		if (next[ring] == counts[ring])
			ring = !ring;
		event = &scenario->events[rings[ring][next[ring]]];
		other = next[!ring] < counts[!ring]
				? &scenario->events[rings[!ring][next[!ring]]]
				: NULL;
		/* One ring may run ahead of the other, but not by more than the watermark allows. */
		if (other && other->when_ns + 2 * MS < event->when_ns) {
			ring = !ring;
			event = other;
		}
		if (event->when_ns > now)
			now = event->when_ns;
		assert_true(now < event->when_ns + SEQUENCER_WATERMARK_NS);
		assert_int_equal(sequencer_push(sequencer, event,
						(struct bytes){payload, event->captured_bytes}),
				 0);
		next[ring]++;
		if (pick(random, 3) == 0)
			take_what_left(sequencer, now, out, &count);
	}
	if (pick(random, 2))
		take_what_left(sequencer, now + pick(random, 2000) * MS, out, &count);
	sequencer_drain(sequencer);
	take_what_left(sequencer, 0, out, &count);
	assert_int_equal(sequencer_held_count(sequencer), 0);
	sequencer_free(sequencer);
	return count;
}

static void the_order_does_not_depend_on_the_order_of_arrival(void **state)
{
	static struct scenario scenario;
	static size_t rings[2][EVENTS_MAX];
	static uint32_t expected[EVENTS_MAX], got[EVENTS_MAX];
	size_t counts[2];

	(void)state;
	for (uint32_t seed = 1; seed <= 5; seed++) {
		scenario.count = 0;
		scenario.random = seed * 2654435761u;
		for (uint32_t n = 0; n < CONNECTIONS; n++)
			add_connection(&scenario, n);
		fill_rings(&scenario, rings, counts);
		for (uint32_t order = 0; order < ORDERS; order++) {
			uint32_t random = seed * 1000 + order + 1;
			uint32_t *out = order ? got : expected;

			assert_int_equal(run_once(&scenario, rings, counts, &random, out),
					 scenario.count);
			if (order)
				assert_memory_equal(got, expected,
						    scenario.count * sizeof(*got));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)
		TEST(an_event_comes_out_as_it_went_in),
		TEST(payloads_of_every_size_are_kept),
		TEST(the_oldest_event_held_is_known_wherever_it_is),
		cmocka_unit_test(freeing_accepts_null_and_a_full_sequencer),
		TEST(nothing_leaves_before_the_watermark_has_passed),
		TEST(a_later_arrival_with_an_earlier_time_finds_its_place),
		TEST(an_arrival_behind_the_watermark_leaves_at_once),
		TEST(equal_times_keep_the_order_of_flow_offset_kind_arrival),
		TEST(many_events_leave_in_order_of_time),
		TEST(bytes_of_a_flow_leave_in_order_of_offset),
		TEST(a_hole_counts_as_the_bytes_it_stands_for),
		TEST(a_hole_waits_for_the_bytes_before_it),
		TEST(bytes_that_were_accepted_but_not_captured_count_as_left),
		TEST(repeated_bytes_do_not_wait),
		TEST(other_flows_do_not_wait_with_a_flow),
		TEST(what_comes_later_in_a_flow_waits_behind_its_bytes),
		TEST(nothing_waits_for_the_bytes_of_a_muted_flow),
		TEST(a_state_change_waits_for_the_bytes_that_it_counts),
		TEST(a_state_change_leaves_before_bytes_that_it_does_not_count),
		TEST(a_state_change_may_count_its_own_fin),
		TEST(a_flow_that_joined_late_begins_where_it_was_seen_first),
		TEST(offsets_beyond_4_gib_are_in_order),
		TEST(an_answer_waits_for_the_request_it_answers),
		TEST(an_answer_waits_for_every_byte_that_was_received),
		TEST(an_answer_waits_for_a_peer_that_was_not_seen_yet),
		TEST(an_answer_that_has_received_nothing_does_not_wait),
		TEST(everything_behind_a_waiting_answer_waits_with_it),
		TEST(a_chain_of_requests_and_answers_resolves),
		TEST(what_becomes_free_together_leaves_oldest_first),
		TEST(a_received_fin_counts_once_the_close_has_left),
		TEST(a_half_close_counts_as_a_fin),
		TEST(a_fin_does_not_excuse_a_missing_byte),
		TEST(the_end_of_the_receiving_direction_sends_no_fin),
		TEST(ends_are_told_apart_by_their_sequence_numbers),
		TEST(ends_are_told_apart_by_their_network_namespace),
		TEST(a_connection_to_itself_does_not_wait_for_itself),
		TEST(two_ends_that_count_each_other_leave_in_order_of_their_beginning),
		TEST(a_knot_is_cut_at_both_ends),
		TEST(no_knot_is_cut_while_the_bytes_may_still_come),
		TEST(bytes_that_never_come_are_waited_for_until_the_hold_limit),
		TEST(a_peer_that_never_comes_is_waited_for_until_the_hold_limit),
		TEST(after_a_gap_was_given_up_the_stream_goes_on_from_there),
		TEST(what_runs_out_of_patience_takes_along_what_stands_before_it),
		TEST(two_ends_with_a_gap_each_resolve_by_the_hold_limit),
		TEST(a_late_arrival_past_its_hold_limit_does_not_wait),
		TEST(a_peer_that_has_ended_is_not_waited_for),
		TEST(the_end_of_a_flow_lets_its_own_bytes_go),
		TEST(the_end_of_a_flow_waits_for_what_it_had_received),
		TEST(two_ended_flows_with_gaps_do_not_wait_for_each_other),
		TEST(a_late_joiner_without_a_peer_does_not_wait),
		TEST(draining_empties_it_in_the_order_that_time_would_give),
		TEST(times_at_the_end_of_the_range_do_not_wrap),
		TEST(past_the_byte_limit_nothing_waits_and_the_oldest_wait_ends_first),
		TEST(a_stream_that_is_full_holds_nothing_back),
		TEST(past_the_byte_limit_the_watermark_gives_way_last),
		TEST(process_events_never_wait),
		TEST(a_flow_is_forgotten_with_its_end),
		TEST(a_flow_whose_end_waited_for_its_peer_is_forgotten_too),
		TEST(past_the_flow_limit_the_quietest_is_forgotten),
		cmocka_unit_test(the_order_does_not_depend_on_the_order_of_arrival),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
