/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads streams on stdin and says what messages they hold, for the oracle
 * beside it. Integers are little endian.
 *
 *	u8 side: 0 requests, 1 responses; u8 count of methods, each u8 length and
 *	bytes: what the responses answer, in order; u32 cut: the stream is fed in
 *	pieces of so many bytes, 0 = whole; u32 length and bytes: the stream, which
 *	then ends by FIN
 *
 * One line a stream: for each whole message "method target length sha-256 end"
 * or "status length sha-256 end", method and target in hex, end = the offset
 * behind its last byte; then the state at the end of the stream:
 * "idle", "incomplete", "tunnel", "surplus" (more responses than methods) or
 * "broken: reason". Interim responses are messages too.
 */
#include <endian.h>

#include "digest.h"
#include "http.h"

#define METHODS_MAX 255
#define STREAM_BYTES_MAX (16 * 1024 * 1024)

struct stream_text {
	uint8_t side;
	uint8_t method_count;
	struct bytes methods[METHODS_MAX]; /* into memory */
	uint8_t memory[METHODS_MAX * 256];
	uint32_t cut;
	struct buffer bytes;
};

struct reading {
	struct http_reader *reader;
	struct digest_state *hash;
	const struct stream_text *text;
	size_t answered; /* final responses so far */
	struct http_head head;
	uint64_t body_bytes;
	uint64_t offset; /* of the piece being read */
	bool in_message;
	bool surplus; /* bytes came after the last response that was asked for */
};

static bool read_exactly(void *out, size_t size)
{
	return fread(out, 1, size, stdin) == size;
}

static bool read_u32(uint32_t *ret_value)
{
	if (!read_exactly(ret_value, sizeof(*ret_value)))
		return false;
	*ret_value = le32toh(*ret_value);
	return true;
}

static bool read_stream(struct stream_text *text)
{
	uint8_t *at = text->memory;
	uint32_t size;

	if (!read_exactly(&text->side, 1))
		return false;
	if (!read_exactly(&text->method_count, 1))
		return false;
	for (size_t i = 0; i < text->method_count; i++) {
		uint8_t length;

		if (!read_exactly(&length, 1) || !read_exactly(at, length))
			return false;
		text->methods[i] = (struct bytes){at, length};
		at += length;
	}
	if (!read_u32(&text->cut) || !read_u32(&size) || size > STREAM_BYTES_MAX)
		return false;
	buffer_clear(&text->bytes);
	if (buffer_reserve(&text->bytes, size))
		return false;
	text->bytes.size = size;
	return read_exactly(text->bytes.data, size);
}

static void write_hex(struct bytes bytes)
{
	for (size_t i = 0; i < bytes.size; i++)
		printf("%02x", bytes.data[i]);
	putchar(' ');
}

static bool begin_message(struct reading *reading, const struct http_head *head)
{
	reading->head = *head; /* its texts live until the next message begins */
	reading->body_bytes = 0;
	reading->in_message = true;
	return digest_start(reading->hash) == 0;
}

static bool end_message(struct reading *reading, uint64_t end)
{
	char hex[2 * DIGEST_BYTES + 1];
	struct digest digest;

	if (digest_finish(reading->hash, &digest))
		return false;
	hex_of(digest.byte, DIGEST_BYTES, hex);
	if (reading->text->side == HTTP_REQUEST) {
		write_hex(reading->head.method);
		write_hex(reading->head.target);
	} else {
		printf("%u ", reading->head.status);
	}
	printf("%llu %s %llu ", (unsigned long long)reading->body_bytes, hex, (unsigned long long)end);
	reading->in_message = false;
	if (reading->head.status >= 200)
		reading->answered++;
	return true;
}

/* As connection_bytes.c does it: the method that it answers is known before each response. */
static bool expect_response(struct reading *reading)
{
	const struct stream_text *text = reading->text;

	if (text->side == HTTP_REQUEST || !http_reader_idle(reading->reader))
		return true;
	if (reading->answered == text->method_count)
		return false;
	http_reader_expect(reading->reader, text->methods[reading->answered]);
	return true;
}

/* False when memory or a hash failed. *ret_step: why it stopped. */
static bool take_all(struct reading *reading, struct bytes input, enum http_step *ret_step, struct http_part *part)
{
	uint64_t end = reading->offset + input.size;
	enum http_step step;

	for (;;) {
		if (!expect_response(reading)) {
			reading->surplus |= input.size > 0;
			step = HTTP_NEED_MORE;
			break;
		}
		step = http_next(reading->reader, &input, part);
		if (step == HTTP_HEAD && !begin_message(reading, part->head))
			return false;
		if (step == HTTP_BODY) {
			reading->body_bytes += part->body.size;
			if (digest_add(reading->hash, part->body))
				return false;
		}
		if ((step == HTTP_END || step == HTTP_TUNNEL) && reading->in_message &&
		    !end_message(reading, end - input.size))
			return false;
		if (step != HTTP_HEAD && step != HTTP_BODY && step != HTTP_END)
			break;
	}
	*ret_step = step;
	return true;
}

static bool write_messages(const struct stream_text *text, struct reading *reading)
{
	struct bytes rest = buffer_bytes(&text->bytes);
	enum http_step step = HTTP_NEED_MORE;
	struct http_part part = {0};

	while (rest.size && step == HTTP_NEED_MORE && !reading->surplus) {
		struct bytes piece = bytes_take(&rest, text->cut ? text->cut : rest.size);

		if (!take_all(reading, piece, &step, &part))
			return false;
		reading->offset += piece.size;
	}
	if (reading->surplus)
		return puts("surplus") >= 0;
	if (step == HTTP_NEED_MORE) {
		step = http_finish(reading->reader, true, &part);
		if (step == HTTP_END && !end_message(reading, reading->offset))
			return false;
		if (step == HTTP_BROKEN && strcmp(part.reason, "ended inside a message") == 0)
			return puts("incomplete") >= 0;
		return puts("idle") >= 0;
	}
	return step == HTTP_TUNNEL ? puts("tunnel") >= 0 : printf("broken: %s\n", part.reason) > 0;
}

int main(void)
{
	struct digest_state *hash = digest_state_new();
	struct stream_text *text = calloc(1, sizeof(*text));
	bool ok = hash && text;

	while (ok && read_stream(text)) {
		struct reading reading = {.hash = hash, .text = text};

		reading.reader = http_reader_new(text->side ? HTTP_RESPONSE : HTTP_REQUEST);
		ok = reading.reader && write_messages(text, &reading);
		http_reader_free(reading.reader);
	}
	ok = ok && feof(stdin) && fflush(stdout) == 0;
	if (text)
		buffer_done(&text->bytes);
	free(text);
	digest_state_free(hash);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
