/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes, cut in any way, give the same parts: the input is read whole, byte
 * by byte, and in slices of the input's own choice, and the three transcripts
 * are compared. Slices must lie in their input, and bytes must be taken in order.
 *
 * Input: one byte of choices (bit 0: response; bits 1-2: what it answers; bit 3:
 * ends by RST; bits 4-7: slice size less one), then the stream.
 */
#include "http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void add(struct buffer *transcript, struct bytes text)
{
	uint32_t size = (uint32_t)text.size;

	check(buffer_append(transcript, (struct bytes){(const uint8_t *)&size, sizeof(size)}) == 0);
	check(buffer_append(transcript, text) == 0);
}

static void add_number(struct buffer *transcript, uint64_t number)
{
	struct bytes bytes = {(const uint8_t *)&number, sizeof(number)};

	check(buffer_append(transcript, bytes) == 0);
}

static void add_head(struct buffer *transcript, const struct http_head *head)
{
	const uint64_t numbers[] = {
		head->side,
		head->status,
		head->http_major,
		head->http_minor,
		head->field_count,
		head->fields_dropped,
		head->cut,
		head->framing_ambiguous,
		head->obs_fold,
		head->keep_alive,
		head->expects_continue,
		head->has_content_length,
		head->content_length,
		head->transfer_coded,
		head->chunked,
	};

	check(head->http_major == 1);
	check(head->field_count <= LIMIT_HEAD_FIELDS);
	add(transcript, head->method);
	add(transcript, head->target);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		add_number(transcript, numbers[i]);
	for (size_t i = 0; i < head->field_count; i++) {
		check(head->fields[i].name.size > 0);
		check(bytes_find(head->fields[i].value, '\r') == head->fields[i].value.size);
		check(bytes_find(head->fields[i].value, '\n') == head->fields[i].value.size);
		check(bytes_trim(head->fields[i].value).size == head->fields[i].value.size);
		add(transcript, head->fields[i].name);
		add(transcript, head->fields[i].value);
	}
}

static void add_part(struct buffer *transcript, enum http_step step, const struct http_part *part)
{
	if (step == HTTP_BODY) {
		/* byte by byte: the number of slices depends on how the input was cut */
		for (size_t i = 0; i < part->body.size; i++) {
			add_number(transcript, HTTP_BODY);
			add_number(transcript, part->body.data[i]);
		}
		return;
	}
	add_number(transcript, step);
	if (step == HTTP_HEAD)
		add_head(transcript, part->head);
	if (step == HTTP_END)
		add_number(transcript, part->ended);
	if (step == HTTP_BROKEN)
		add(transcript, bytes_of_string(part->reason));
}

static bool feed(struct http_reader *reader, struct bytes slice, struct buffer *transcript)
{
	struct bytes input = slice;
	struct http_part part;
	enum http_step step;

	while ((step = http_next(reader, &input, &part)) != HTTP_NEED_MORE) {
		check(input.data + input.size == slice.data + slice.size);
		if (step == HTTP_BODY)
			check(part.body.size && part.body.data >= slice.data &&
			      part.body.data + part.body.size == input.data);
		add_part(transcript, step, &part);
		if (step == HTTP_TUNNEL || step == HTTP_BROKEN)
			return false;
	}
	check(!input.size);
	return true;
}

static void read_stream(uint8_t choices, struct bytes stream, size_t slice,
			struct buffer *transcript)
{
	static const char *const methods[] = {"GET", "HEAD", "CONNECT", "POST"};
	struct http_reader *reader = http_reader_new(choices & 1 ? HTTP_RESPONSE : HTTP_REQUEST);
	struct http_part part;
	enum http_step step;
	bool more = true;

	check(reader != NULL);
	http_reader_expect(reader, bytes_of_string(methods[choices >> 1 & 3]));
	while (more && stream.size)
		more = feed(reader, bytes_take(&stream, slice), transcript);
	if (more) {
		step = http_finish(reader, !(choices & 8), &part);
		check(step == HTTP_NEED_MORE || step == HTTP_END || step == HTTP_BROKEN);
		add_part(transcript, step, &part);
	}
	http_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer whole = {0}, pieces = {0}, single = {0};
	struct bytes stream = {data + 1, size - 1};

	if (!size)
		return 0;
	read_stream(data[0], stream, stream.size, &whole);
	read_stream(data[0], stream, 1, &single);
	read_stream(data[0], stream, (size_t)(data[0] >> 4) + 1, &pieces);
	check(bytes_equal(buffer_bytes(&whole), buffer_bytes(&single)));
	check(bytes_equal(buffer_bytes(&whole), buffer_bytes(&pieces)));
	buffer_done(&whole);
	buffer_done(&pieces);
	buffer_done(&single);
	return 0;
}
