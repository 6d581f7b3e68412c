/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One input as bytes. Decoding trusts nothing: a checksum says that the bytes
 * are those that were written, not that whoever wrote them meant well.
 */
#include "recording_parts.h"
#include "call.h"

struct input_head {
	uint32_t kind;
	uint32_t body_bytes;
	uint64_t now_ns;
};

static_assert(sizeof(struct input_head) == 16, "no padding in the file");
static_assert(sizeof(struct counters) == 8 * (WIRE_COUNTER_COUNT + 1), "no padding in the file");

/* What a wire event must be for later stages to take it in. NULL, or what is wrong. */
static const char *wire_is_wrong(const struct wire_event *event, size_t payload_bytes)
{
	if (event->version != WIRE_EVENT_VERSION)
		return "a wire event has another version";
	if (event->kind < WIRE_DATA || event->kind > WIRE_CONNECT)
		return "a wire event has an unknown kind";
	if (event->cause >= WIRE_CAUSE_COUNT)
		return "a wire event has an unknown cause";
	if (event->captured_bytes != payload_bytes)
		return "a wire event does not have the payload it names";
	if (event->captured_bytes > event->length_bytes || payload_bytes > WIRE_PAYLOAD_MAX)
		return "a wire event has more payload than it may";
	return NULL;
}

/* ---- writing ---- */

static void put(struct buffer *out, const void *value, size_t size)
{
	memcpy(out->data + out->size, value, size);
	out->size += size;
}

static void put_slice(struct buffer *out, struct bytes slice)
{
	if (slice.size)
		put(out, slice.data, slice.size);
}

#define CLOSING_FIXED_BYTES (4 * sizeof(uint32_t) + 5 * sizeof(uint64_t))
#define CLOSING_STORE_BYTES (2 * sizeof(uint64_t)) /* after the survivors, where the run had a store */
#define SURVIVOR_BYTES (sizeof(uint32_t) + WIRE_COMM_BYTES)

static uint32_t survivors_kept(const struct closing *closing)
{
	return closing->survivor_count < CLOSING_SURVIVORS_MAX ? closing->survivor_count
							       : CLOSING_SURVIVORS_MAX;
}

static void put_closing(struct buffer *out, const struct closing *closing)
{
	const uint64_t numbers[] = {closing->ring_size_bytes, closing->ring_peak_bytes,
				    closing->wall_ms, closing->cpu_ms, closing->unwritten_bytes};
	uint32_t kept = survivors_kept(closing);

	put(out, &closing->command_status, sizeof(closing->command_status));
	put(out, &closing->survivor_count, sizeof(closing->survivor_count));
	put(out, &kept, sizeof(kept));
	put(out, numbers, sizeof(numbers));
	put(out, &closing->counters_unread, sizeof(closing->counters_unread));
	for (uint32_t i = 0; i < kept; i++) {
		put(out, &closing->survivors[i].pid, sizeof(closing->survivors[i].pid));
		put(out, closing->survivors[i].comm, WIRE_COMM_BYTES);
	}
	if (!closing->has_store)
		return;
	put(out, &closing->store_rows, sizeof(closing->store_rows));
	put(out, &closing->store_lost, sizeof(closing->store_lost));
}

/* SIZE_MAX for an input that cannot be written. */
static size_t body_size(const struct input *input)
{
	switch (input->kind) {
	case INPUT_WIRE:
		if (!input->wire.event ||
		    wire_is_wrong(input->wire.event, input->wire.payload.size))
			return SIZE_MAX;
		return sizeof(*input->wire.event) + input->wire.payload.size;
	case INPUT_TICK:
		return sizeof(input->tick.wall_offset_ns);
	case INPUT_CGROUP:
		return sizeof(input->cgroup.id) + input->cgroup.path.size;
	case INPUT_COUNTERS:
		return sizeof(input->counters);
	case INPUT_MARK:
		return input->mark.label.size;
	case INPUT_DRAIN:
		return 0;
	case INPUT_CLOSING:
		return CLOSING_FIXED_BYTES + survivors_kept(&input->closing) * SURVIVOR_BYTES +
		       (input->closing.has_store ? CLOSING_STORE_BYTES : 0);
	case INPUT_PAST:
		return sizeof(*input->past);
	}
	return SIZE_MAX;
}

static void put_body(struct buffer *out, const struct input *input)
{
	switch (input->kind) {
	case INPUT_WIRE:
		put(out, input->wire.event, sizeof(*input->wire.event));
		put_slice(out, input->wire.payload);
		break;
	case INPUT_TICK:
		put(out, &input->tick.wall_offset_ns, sizeof(input->tick.wall_offset_ns));
		break;
	case INPUT_CGROUP:
		put(out, &input->cgroup.id, sizeof(input->cgroup.id));
		put_slice(out, input->cgroup.path);
		break;
	case INPUT_COUNTERS:
		put(out, &input->counters, sizeof(input->counters));
		break;
	case INPUT_MARK:
		put_slice(out, input->mark.label);
		break;
	case INPUT_DRAIN:
		break;
	case INPUT_CLOSING:
		put_closing(out, &input->closing);
		break;
	case INPUT_PAST:
		put(out, input->past, sizeof(*input->past));
		break;
	}
}

size_t recording_input_bytes(const struct input *input)
{
	size_t size = body_size(input);

	return size > SIZE_MAX - sizeof(struct input_head) ? 0 : sizeof(struct input_head) + size;
}

int recording_put_input(struct buffer *out, const struct input *input)
{
	size_t size = recording_input_bytes(input);
	struct input_head head = {.kind = input->kind, .now_ns = input->now_ns};
	int err = buffer_reserve(out, size);

	if (err)
		return err;
	head.body_bytes = (uint32_t)(size - sizeof(head));
	put(out, &head, sizeof(head));
	put_body(out, input);
	return 0;
}

/* ---- reading ---- */

static bool take(struct bytes *from, void *to, size_t size)
{
	if (from->size < size)
		return false;
	memcpy(to, bytes_take(from, size).data, size);
	return true;
}

static const char *take_wire(struct bytes body, struct wire_event *event, struct input *ret_input)
{
	if (!take(&body, event, sizeof(*event)))
		return "a wire event is too short";
	ret_input->wire.event = event;
	ret_input->wire.payload = body;
	return wire_is_wrong(event, body.size);
}

static const char *take_closing(struct bytes body, struct closing *ret_closing)
{
	uint64_t numbers[5];
	uint32_t kept;

	memset(ret_closing, 0, sizeof(*ret_closing));
	if (!take(&body, &ret_closing->command_status, sizeof(ret_closing->command_status)) ||
	    !take(&body, &ret_closing->survivor_count, sizeof(ret_closing->survivor_count)) ||
	    !take(&body, &kept, sizeof(kept)) || !take(&body, numbers, sizeof(numbers)) ||
	    !take(&body, &ret_closing->counters_unread, sizeof(ret_closing->counters_unread)))
		return "the closing input is too short";
	if (kept != survivors_kept(ret_closing) || body.size < kept * SURVIVOR_BYTES)
		return "the closing input names more survivors than it holds";
	ret_closing->ring_size_bytes = numbers[0];
	ret_closing->ring_peak_bytes = numbers[1];
	ret_closing->wall_ms = numbers[2];
	ret_closing->cpu_ms = numbers[3];
	ret_closing->unwritten_bytes = numbers[4];
	for (uint32_t i = 0; i < kept; i++) {
		take(&body, &ret_closing->survivors[i].pid, sizeof(uint32_t));
		take(&body, ret_closing->survivors[i].comm, WIRE_COMM_BYTES);
	}
	if (body.size == 0)
		return NULL;
	if (body.size != CLOSING_STORE_BYTES)
		return "the closing input has the wrong size";
	ret_closing->has_store = true;
	take(&body, &ret_closing->store_rows, sizeof(ret_closing->store_rows));
	take(&body, &ret_closing->store_lost, sizeof(ret_closing->store_lost));
	return NULL;
}

static const char *take_past(struct bytes body, struct past_attempt *past)
{
	if (body.size != sizeof(*past))
		return "an attempt of an earlier run has the wrong size";
	take(&body, past, sizeof(*past));
	if (past->delivered > DELIVERED_NONE || past->closed_first > CLOSER_SERVER ||
	    past->idem_state > IDEM_UNKNOWN || past->flags > PAST_FLAGS_ALL)
		return "an attempt of an earlier run is not what it says";
	return NULL;
}

static const char *take_body(struct bytes body, struct input_room *room, struct input *ret_input)
{
	switch (ret_input->kind) {
	case INPUT_WIRE:
		return take_wire(body, &room->event, ret_input);
	case INPUT_TICK:
		if (body.size != sizeof(ret_input->tick.wall_offset_ns))
			return "a tick has the wrong size";
		take(&body, &ret_input->tick.wall_offset_ns, body.size);
		return NULL;
	case INPUT_CGROUP:
		if (!take(&body, &ret_input->cgroup.id, sizeof(ret_input->cgroup.id)))
			return "a cgroup name is too short";
		ret_input->cgroup.path = body;
		return NULL;
	case INPUT_COUNTERS:
		if (body.size != sizeof(ret_input->counters))
			return "a counter snapshot has the wrong size";
		take(&body, &ret_input->counters, body.size);
		return NULL;
	case INPUT_MARK:
		ret_input->mark.label = body;
		return NULL;
	case INPUT_DRAIN:
		return body.size ? "a drain has the wrong size" : NULL;
	case INPUT_CLOSING:
		return take_closing(body, &ret_input->closing);
	case INPUT_PAST:
		ret_input->past = &room->past;
		return take_past(body, &room->past);
	}
	return "an input has an unknown kind";
}

const char *recording_take_input(struct bytes *block, struct input_room *room,
				 struct input *ret_input)
{
	struct input_head head;

	memset(ret_input, 0, sizeof(*ret_input));
	if (!take(block, &head, sizeof(head)) || head.body_bytes > block->size)
		return "an input goes beyond its block";
	/* Before it becomes an enum: another value would be no value of it. */
	if (head.kind < INPUT_WIRE || head.kind > INPUT_PAST)
		return "an input has an unknown kind";
	ret_input->kind = head.kind;
	ret_input->now_ns = head.now_ns;
	return take_body(bytes_take(block, head.body_bytes), room, ret_input);
}
