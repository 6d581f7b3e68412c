/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads texts on stdin, each behind its length (4 bytes, little endian), and
 * writes one line for each: kind, SHA-256 of what stands for it, and "d" and
 * "s" for its flags. For the oracles beside it, which know the rules but share
 * no code with them. The one argument is the content type; the default is
 * application/json.
 */
#include <endian.h>

#include "canonical.h"
#include "digest.h"
#include "limits.h"

static bool read_text(struct buffer *text)
{
	uint32_t size;

	if (fread(&size, sizeof(size), 1, stdin) != 1)
		return false;
	size = le32toh(size);
	buffer_clear(text);
	if (size > LIMIT_BODY_BYTES || buffer_reserve(text, size))
		return false;
	text->size = fread(text->data, 1, size, stdin);
	return text->size == size;
}

static bool write_line(const struct canonical *canonical, struct bytes body)
{
	bool own_text = canonical->kind != CANONICAL_RAW && canonical->kind != CANONICAL_NONE;
	char hex[2 * DIGEST_BYTES + 1];
	struct digest digest;

	if (digest_of(own_text ? buffer_bytes(&canonical->text) : body, &digest))
		return false;
	hex_of(digest.byte, DIGEST_BYTES, hex);
	return printf("%s %s %s%s\n", canonical_kind_name(canonical->kind), hex,
		      canonical->duplicate_key ? "d" : "",
		      canonical->lone_surrogate ? "s" : "") > 0;
}

int main(int argc, char **argv)
{
	struct bytes content_type = bytes_of_string(argc > 1 ? argv[1] : "application/json");
	struct canonical canonical = {0};
	struct buffer text = {0};
	bool ok = true;

	while (ok && read_text(&text))
		ok = canonical_make(content_type, buffer_bytes(&text), &canonical) == 0 &&
		     write_line(&canonical, buffer_bytes(&text));
	ok = ok && feof(stdin) && fflush(stdout) == 0;
	canonical_done(&canonical);
	buffer_done(&text);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
