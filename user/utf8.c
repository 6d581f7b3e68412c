/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decoder follows RFC 3629 section 4: the first byte gives the length and
 * the least code point that may be written with it, so overlong forms fall out
 * by one comparison.
 */
#include "utf8.h"

size_t utf8_put(uint32_t code_point, uint8_t text[4])
{
	if (code_point < 0x80) {
		text[0] = (uint8_t)code_point;
		return 1;
	}
	if (code_point < 0x800) {
		text[0] = (uint8_t)(0xc0 | code_point >> 6);
		text[1] = (uint8_t)(0x80 | (code_point & 0x3f));
		return 2;
	}
	if (code_point < 0x10000) {
		text[0] = (uint8_t)(0xe0 | code_point >> 12);
		text[1] = (uint8_t)(0x80 | (code_point >> 6 & 0x3f));
		text[2] = (uint8_t)(0x80 | (code_point & 0x3f));
		return 3;
	}
	text[0] = (uint8_t)(0xf0 | code_point >> 18);
	text[1] = (uint8_t)(0x80 | (code_point >> 12 & 0x3f));
	text[2] = (uint8_t)(0x80 | (code_point >> 6 & 0x3f));
	text[3] = (uint8_t)(0x80 | (code_point & 0x3f));
	return 4;
}

bool utf8_is_control(uint32_t code_point)
{
	return code_point < 0x20 || (code_point >= 0x7f && code_point <= 0x9f);
}

size_t utf8_next(struct bytes text, uint32_t *ret_code_point)
{
	uint32_t code_point, least;
	size_t length;

	if (text.size == 0)
		return 0;
	code_point = text.data[0];
	if (code_point < 0x80) {
		*ret_code_point = code_point;
		return 1;
	}
	if ((code_point & 0xe0) == 0xc0) {
		length = 2;
		least = 0x80;
		code_point &= 0x1f;
	} else if ((code_point & 0xf0) == 0xe0) {
		length = 3;
		least = 0x800;
		code_point &= 0x0f;
	} else if ((code_point & 0xf8) == 0xf0) {
		length = 4;
		least = 0x10000;
		code_point &= 0x07;
	} else {
		return 0;
	}
	if (text.size < length)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((text.data[i] & 0xc0) != 0x80)
			return 0;
		code_point = code_point << 6 | (text.data[i] & 0x3f);
	}
	if (code_point < least || code_point > 0x10ffff ||
	    (code_point >= 0xd800 && code_point <= 0xdfff))
		return 0;
	*ret_code_point = code_point;
	return length;
}

/*
 * Bidirectional controls (UAX #9), line and paragraph separator, and what XML 1.0 section 2.2
 * leaves out.
 */
static bool is_treacherous(uint32_t code_point)
{
	return utf8_is_control(code_point) || code_point == 0x061c || code_point == 0x200e ||
	       code_point == 0x200f || (code_point >= 0x2028 && code_point <= 0x202e) ||
	       (code_point >= 0x2066 && code_point <= 0x2069) || code_point == 0xfeff ||
	       code_point == 0xfffe || code_point == 0xffff;
}

int text_harmless(struct bytes text, size_t max_bytes, struct buffer *out)
{
	static const char hex_digits[] = "0123456789abcdef";
	size_t start = out->size;

	while (text.size) {
		uint32_t code_point;
		size_t length = utf8_next(text, &code_point);
		bool as_it_is = length && !is_treacherous(code_point);
		struct bytes piece = bytes_take(&text, length ? length : 1);
		int err = 0;

		if (out->size - start + piece.size * (as_it_is ? 1 : 4) > max_bytes)
			return buffer_append(out, BYTES("..."));
		if (as_it_is)
			err = buffer_append(out, piece);
		for (size_t i = 0; !as_it_is && !err && i < piece.size; i++) {
			uint8_t escape[4] = {'\\', 'x', (uint8_t)hex_digits[piece.data[i] >> 4],
					     (uint8_t)hex_digits[piece.data[i] & 15]};

			err = buffer_append(out, (struct bytes){escape, sizeof(escape)});
		}
		if (err)
			return err;
	}
	return 0;
}
