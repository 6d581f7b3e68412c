/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as the events of one flow: four bytes name an event (kind, offset,
 * length, captured), its payload follows. The pieces must cover the stream
 * once, in order, without a break, and lend only payload. The whole input is
 * also sniffed from both ends: a decision may never change with more bytes.
 */
#include <stdint.h>

#include "stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)           \
	do {                       \
		if (!(condition))  \
			abort();   \
	} while (0)

static void sniff(struct bytes text, bool from_client)
{
	enum stream_protocol decision = STREAM_UNDECIDED;

	for (size_t size = 0; size <= text.size && size <= STREAM_SNIFF_BYTES + 8; size++) {
		enum stream_protocol now =
			stream_sniff((struct bytes){text.data, size}, from_client);

		CHECK(decision == STREAM_UNDECIDED || now == decision);
		CHECK(now != STREAM_UNDECIDED || size < STREAM_SNIFF_BYTES);
		decision = now;
	}
}

/* Offsets near 0, near 4 GiB and near the end of the range. */
static uint64_t offset_of(uint8_t code)
{
	static const uint64_t bases[] = {0, 40, UINT32_MAX - 16, UINT64_MAX - 63};

	return bases[code >> 6] + (code & 63);
}

static void feed(struct stream *stream, const struct wire_event *event, struct bytes payload)
{
	struct stream_piece piece;
	enum stream_step step;
	unsigned int sum = 0;
	uint64_t next = stream->next_offset, holes = stream->hole_bytes;

	stream_feed(stream, event, payload);
	while ((step = stream_next(stream, &piece)) != STREAM_NOTHING) {
		CHECK(piece.length > 0 && piece.offset == next);
		CHECK(piece.length <= UINT64_MAX - next);
		next += piece.length;
		if (step == STREAM_HOLE) {
			CHECK(piece.cause > WIRE_CAUSE_NONE && piece.bytes.size == 0);
			CHECK(stream->hole_bytes >= holes);
			holes = stream->hole_bytes;
			continue;
		}
		CHECK(piece.bytes.size == piece.length);
		CHECK(piece.bytes.data >= payload.data);
		CHECK(piece.bytes.data + piece.length <= payload.data + payload.size);
		CHECK(piece.bytes.data == payload.data + (piece.offset - event->offset));
		for (size_t i = 0; i < piece.bytes.size; i++)
			sum += piece.bytes.data[i];
	}
	(void)sum;
	CHECK(stream->next_offset == next);
	CHECK(stream_next(stream, &piece) == STREAM_NOTHING);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes rest = {data, size};
	struct stream stream;

	sniff(rest, true);
	sniff(rest, false);
	stream_init(&stream, 0);
	while (rest.size >= 4) {
		struct bytes head = bytes_take(&rest, 4);
		struct wire_event event = {
			.version = WIRE_EVENT_VERSION,
			.kind = (uint8_t)(head.data[0] % (WIRE_CONNECT + 2)),
			.cause = (uint8_t)((head.data[0] >> 4) % WIRE_CAUSE_COUNT),
			.offset = offset_of(head.data[1]),
			.length_bytes = head.data[2],
			.captured_bytes = head.data[3],
		};
		uint64_t expected = event.length_bytes;

		if (event.length_bytes == UINT8_MAX)
			event.length_bytes = UINT64_MAX;
		if (expected > event.captured_bytes)
			expected = event.captured_bytes;
		feed(&stream, &event, bytes_take(&rest, (size_t)expected));
	}
	return 0;
}
