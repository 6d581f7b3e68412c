/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * multipart/form-data (RFC 7578, delimiters of RFC 2046 section 5.1.1): the
 * boundary is random in each attempt, so what is compared is one line a part:
 *
 *	name HT filename HT type HT length HT SHA-256 of the content LF
 *
 * filename stands in double quotes, or is nothing where the part has none (an
 * empty one is a file input left empty); type is in lower case. Space, "%",
 * the quote and all that is not printable ASCII become %XX. Parts keep their
 * order.
 */
#include "canonical.h"
#include "digest.h"

#define BOUNDARY_BYTES_MAX 200 /* RFC 2046 allows 70 */

struct part {
	struct bytes name;
	struct bytes filename;
	bool has_name;
	bool has_filename;
	struct bytes type;
	struct bytes content;
};

/* ---- delimiters ---- */

struct delimiter {
	uint8_t text[BOUNDARY_BYTES_MAX + 4]; /* CRLF "--" boundary */
	size_t size;
};

static bool delimiter_init(struct delimiter *delimiter, struct bytes boundary)
{
	if (boundary.size == 0 || boundary.size > BOUNDARY_BYTES_MAX)
		return false;
	memcpy(delimiter->text, "\r\n--", 4);
	memcpy(delimiter->text + 4, boundary.data, boundary.size);
	delimiter->size = 4 + boundary.size;
	return true;
}

enum delimiter_end { NOT_A_DELIMITER, NEXT_PART, LAST_PART };

/* rest = what follows a boundary; on NEXT_PART the rest of its line is taken off. */
static enum delimiter_end take_delimiter_end(struct bytes *rest)
{
	struct bytes after = *rest;

	if (bytes_starts_with(after, BYTES("--")))
		return LAST_PART;
	while (after.size && (after.data[0] == ' ' || after.data[0] == '\t'))
		bytes_take(&after, 1);
	if (!bytes_starts_with(after, BYTES("\r\n")))
		return NOT_A_DELIMITER; /* the boundary of something else begins like ours */
	bytes_take(&after, 2);
	*rest = after;
	return NEXT_PART;
}

/* Cuts *ret_content, up to the next delimiter, and the delimiter off *text. */
static enum delimiter_end take_content(const struct delimiter *delimiter, struct bytes *text,
				       struct bytes *ret_content)
{
	struct bytes rest = *text;
	enum delimiter_end end = NOT_A_DELIMITER;
	const uint8_t *found;

	while (rest.size && end == NOT_A_DELIMITER) {
		found = memmem(rest.data, rest.size, delimiter->text, delimiter->size);
		if (!found)
			break;
		bytes_take(&rest, (size_t)(found - rest.data) + delimiter->size);
		end = take_delimiter_end(&rest);
		ret_content->data = text->data;
		ret_content->size = (size_t)(found - text->data);
	}
	*text = rest;
	return end;
}

/* The first delimiter may stand at the very start, without a line end before it. */
static enum delimiter_end take_preamble(const struct delimiter *delimiter, struct bytes *text)
{
	struct bytes dashes = {delimiter->text + 2, delimiter->size - 2}, rest = *text, preamble;
	enum delimiter_end end = NOT_A_DELIMITER;

	if (bytes_starts_with(rest, dashes)) {
		bytes_take(&rest, dashes.size);
		end = take_delimiter_end(&rest);
	}
	if (end == NOT_A_DELIMITER)
		return take_content(delimiter, text, &preamble);
	*text = rest;
	return end;
}

/* ---- part heads ---- */

/* Takes "; name=value" off *rest, or gives false. The value loses its quotes, not its escapes. */
static bool take_parameter(struct bytes *rest, struct bytes *ret_name, struct bytes *ret_value)
{
	size_t end = 0;

	*rest = bytes_trim(*rest);
	if (!rest->size || rest->data[0] != ';')
		return false;
	bytes_take(rest, 1);
	*rest = bytes_trim(*rest);
	while (end < rest->size && rest->data[end] != '=' && rest->data[end] != ';')
		end++;
	*ret_name = bytes_trim(bytes_take(rest, end));
	*ret_value = (struct bytes){0};
	if (!rest->size || rest->data[0] == ';')
		return true;
	bytes_take(rest, 1);
	*rest = bytes_trim(*rest);
	if (!rest->size || rest->data[0] != '"') {
		*ret_value = bytes_trim(bytes_take(rest, bytes_find(*rest, ';')));
		return true;
	}
	bytes_take(rest, 1);
	for (end = 0; end < rest->size && rest->data[end] != '"'; end++)
		if (rest->data[end] == '\\' && end + 1 < rest->size)
			end++;
	*ret_value = bytes_take(rest, end < rest->size ? end : rest->size);
	bytes_take(rest, 1);
	return true;
}

static void read_disposition(struct bytes value, struct part *part)
{
	struct bytes name, text;

	bytes_take(&value, bytes_find(value, ';'));
	while (take_parameter(&value, &name, &text)) {
		if (bytes_equal_nocase(name, BYTES("name")) && !part->has_name) {
			part->has_name = true;
			part->name = text;
		} else if (!part->has_filename && (bytes_equal_nocase(name, BYTES("filename")) ||
						   bytes_equal_nocase(name, BYTES("filename*")))) {
			part->has_filename = true;
			part->filename = text;
		}
	}
}

/* Takes the head and its blank line off *text. NULL or why not. */
static const char *take_part_head(struct bytes *text, struct part *part)
{
	struct bytes line, name;
	const uint8_t *end;

	for (;;) {
		end = text->size ? memmem(text->data, text->size, "\r\n", 2) : NULL;
		if (!end)
			return "multipart head not closed";
		line = bytes_take(text, (size_t)(end - text->data));
		bytes_take(text, 2);
		if (!line.size)
			return NULL;
		name = bytes_take(&line, bytes_find(line, ':'));
		if (!line.size)
			return "bad multipart head";
		bytes_take(&line, 1);
		line = bytes_trim(line);
		if (bytes_equal_nocase(name, BYTES("Content-Disposition")))
			read_disposition(line, part);
		else if (bytes_equal_nocase(name, BYTES("Content-Type")))
			part->type = line;
		else if (bytes_equal_nocase(name, BYTES("Content-Transfer-Encoding")) &&
			 !bytes_equal_nocase(line, BYTES("binary")) &&
			 !bytes_equal_nocase(line, BYTES("8bit")) &&
			 !bytes_equal_nocase(line, BYTES("7bit")))
			return "multipart transfer encoding";
	}
}

/* ---- lines ---- */

static int put_spelled(struct buffer *out, struct bytes text, bool lower)
{
	static const char digits[] = "0123456789ABCDEF";
	uint8_t c;

	if (buffer_reserve(out, 3 * text.size))
		return -1;
	for (size_t i = 0; i < text.size; i++) {
		c = text.data[i];
		if (lower && c >= 'A' && c <= 'Z')
			c |= 0x20;
		if (c > ' ' && c < 0x7f && c != '%' && c != '"') {
			out->data[out->size++] = c;
			continue;
		}
		out->data[out->size++] = '%';
		out->data[out->size++] = (uint8_t)digits[c >> 4];
		out->data[out->size++] = (uint8_t)digits[c & 0xf];
	}
	return 0;
}

/* A quoted name or filename keeps its backslashes: clients do not agree on what they mean. */
static const char *put_part(const struct part *part, struct digest_state *hash, struct buffer *out)
{
	char end[2 * DIGEST_BYTES + 32], hex[2 * DIGEST_BYTES + 1];
	struct digest digest;
	bool failed;
	int size;

	if (!part->has_name)
		return "multipart name missing";
	failed = digest_start(hash) || digest_add(hash, part->content) ||
		 digest_finish(hash, &digest);
	if (failed)
		return canonical_out_of_memory;
	hex_of(digest.byte, DIGEST_BYTES, hex);
	size = snprintf(end, sizeof(end), "\t%zu\t%s\n", part->content.size, hex);
	failed = put_spelled(out, part->name, false) || buffer_append_byte(out, '\t');
	if (part->has_filename)
		failed = failed || buffer_append_byte(out, '"') ||
			 put_spelled(out, part->filename, false) || buffer_append_byte(out, '"');
	failed = failed || buffer_append_byte(out, '\t') || put_spelled(out, part->type, true) ||
		 buffer_append(out, (struct bytes){(const uint8_t *)end, (size_t)size});
	return failed ? canonical_out_of_memory : NULL;
}

static const char *put_parts(const struct delimiter *delimiter, struct bytes text,
			     struct digest_state *hash, struct buffer *out)
{
	enum delimiter_end end = take_preamble(delimiter, &text);
	const char *why = NULL;

	while (!why && end == NEXT_PART) {
		struct part part = {0};

		why = take_part_head(&text, &part);
		if (why)
			return why;
		end = take_content(delimiter, &text, &part.content);
		if (end != NOT_A_DELIMITER)
			why = put_part(&part, hash, out);
	}
	return !why && end != LAST_PART ? "multipart not closed" : why;
}

const char *canonical_multipart(struct bytes text, struct bytes boundary, struct buffer *out)
{
	struct delimiter delimiter;
	struct digest_state *hash;
	size_t start = out->size;
	const char *why;

	if (!delimiter_init(&delimiter, boundary))
		return "multipart boundary missing";
	hash = digest_state_new();
	why = hash ? put_parts(&delimiter, text, hash, out) : canonical_out_of_memory;
	digest_state_free(hash);
	if (why)
		out->size = start;
	return why;
}
