/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Masks by position, never by what a value looks like. Where two readings of a
 * target are possible (";" as a separator, a percent-encoded name), the one
 * that hides more is taken.
 */
#include "secret.h"
#include "ascii.h"

#include "glob.h"
#include "limits.h"

/* In lower case, with "_" for "-". */
static const struct bytes secret_names[] = {
	BYTES("key"),
	BYTES("apikey"),
	BYTES("api_key"),
	BYTES("access_key"),
	BYTES("secret_key"),
	BYTES("private_key"),
	BYTES("subscription_key"),
	BYTES("token"),
	BYTES("access_token"),
	BYTES("refresh_token"),
	BYTES("id_token"),
	BYTES("auth_token"),
	BYTES("session_token"),
	BYTES("sig"),
	BYTES("signature"),
	BYTES("x_amz_signature"),
	BYTES("x_amz_credential"),
	BYTES("x_amz_security_token"),
	BYTES("x_goog_signature"),
	BYTES("x_goog_credential"),
	BYTES("code"),
	BYTES("code_verifier"),
	BYTES("password"),
	BYTES("passwd"),
	BYTES("pwd"),
	BYTES("secret"),
	BYTES("client_secret"),
	BYTES("client_assertion"),
	BYTES("auth"),
	BYTES("authorization"),
	BYTES("jwt"),
	BYTES("session"),
	BYTES("session_id"),
	BYTES("sessionid"),
};

/* Longer than any of them: what does not fit is none. */
#define SECRET_NAME_MAX 24

/* Takes one byte off the front of *text, percent-decoded where it is a whole escape. */
static uint8_t next_decoded(struct bytes *text)
{
	uint8_t c = text->data[0];

	if (c == '%' && text->size >= 3) {
		int high = ascii_hex_value(text->data[1]), low = ascii_hex_value(text->data[2]);

		if (high >= 0 && low >= 0) {
			bytes_take(text, 3);
			return (uint8_t)(high << 4 | low);
		}
	}
	bytes_take(text, 1);
	return c;
}

/*
 * The decoded text starts with prefix, without case; *ret_rest is what follows. prefix is lower
 * case.
 */
static bool decoded_starts_with(struct bytes text, struct bytes prefix, struct bytes *ret_rest)
{
	for (size_t i = 0; i < prefix.size; i++) {
		uint8_t c;

		if (text.size == 0)
			return false;
		c = next_decoded(&text);
		if (c >= 'A' && c <= 'Z')
			c |= 0x20;
		if (c != prefix.data[i])
			return false;
	}
	*ret_rest = text;
	return true;
}

static bool name_is_in(struct bytes name, const struct bytes *names, size_t count)
{
	struct bytes rest;

	for (size_t i = 0; i < count; i++)
		if (decoded_starts_with(name, names[i], &rest) && rest.size == 0)
			return true;
	return false;
}

/* Frameworks read "user[token]", "user.token" and "token[]" as a token of something; spaces they strip. */
static bool separates(uint8_t c)
{
	return c == '.' || c == '[' || c == ']' || c == ' ' || c == '\t' || c == '+' || c == '?';
}

/* The next part of a name between separators, decoded, in text; false after the last. */
static bool next_part(struct bytes *name, uint8_t text[SECRET_NAME_MAX], struct bytes *ret_part)
{
	size_t size = 0;

	while (name->size) {
		uint8_t c = next_decoded(name);

		if (separates(c) && size)
			break;
		if (separates(c))
			continue;
		if (size < SECRET_NAME_MAX)
			text[size] = c == '-' ? '_' : ascii_lower(c);
		size++;
	}
	*ret_part = (struct bytes){text, size <= SECRET_NAME_MAX ? size : 0};
	return size > 0;
}

static bool name_is_secret(const struct secret_rules *rules, struct bytes name)
{
	uint8_t text[SECRET_NAME_MAX];
	struct bytes part;

	if (rules && name_is_in(name, rules->query_names, rules->query_name_count))
		return true;
	while (next_part(&name, text, &part))
		for (size_t i = 0; i < sizeof(secret_names) / sizeof(secret_names[0]); i++)
			if (bytes_equal(part, secret_names[i]))
				return true;
	return false;
}

static bool is_secret_text(struct bytes text)
{
	if (text.size != 17 || text.data[0] != '~')
		return false;
	for (size_t i = 1; i < text.size; i++)
		if (ascii_hex_value(text.data[i]) < 0)
			return false;
	return true;
}

static int append_secret(struct fingerprinter *fingerprinter, struct bytes secret,
			 struct buffer *out)
{
	const struct secret_rules *rules = fingerprinter_secrets(fingerprinter);
	char text[18];

	if (secret.size == 0) /* nothing to hide */
		return 0;
	if (rules && rules->masked_before && is_secret_text(secret))
		return buffer_append(out, secret);
	secret_text(fingerprinter, secret, text);
	return buffer_append(out, bytes_of_string(text));
}

/*
 * Where the value of a secret starts in one "&" part, some servers splitting at ";" too; part.size
 * when there is none.
 */
static size_t secret_value_at(const struct secret_rules *rules, struct bytes part)
{
	size_t at = 0;

	while (at < part.size) {
		struct bytes piece = {part.data + at, part.size - at};
		size_t equals;

		piece.size = bytes_find(piece, ';');
		equals = bytes_find(piece, '=');
		if (equals < piece.size && name_is_secret(rules, (struct bytes){piece.data, equals}))
			return at + equals + 1;
		at += piece.size + 1;
	}
	return part.size;
}

/* Cuts what was appended since start to LIMIT_PATH_BYTES. */
static int cut_to_limit(struct buffer *out, size_t start)
{
	size_t end = start + LIMIT_PATH_BYTES;

	if (out->size <= end)
		return 0;
	while (end > start && (out->data[end] & 0xc0) == 0x80) /* not inside a code point */
		end--;
	out->size = end;
	return buffer_append(out, BYTES("..."));
}

int secret_mask_query(struct fingerprinter *fingerprinter, struct bytes query, struct buffer *out)
{
	const struct secret_rules *rules = fingerprinter_secrets(fingerprinter);
	size_t start = out->size;
	int err = 0;

	while (!err && query.size) {
		struct bytes part = bytes_take(&query, bytes_find(query, '&'));
		struct bytes plain = bytes_take(&part, secret_value_at(rules, part));

		err = buffer_append(out, plain);
		if (!err)
			err = append_secret(fingerprinter, part, out);
		if (!err && query.size)
			err = buffer_append(out, bytes_take(&query, 1));
	}
	return err ? err : cut_to_limit(out, start);
}

int secret_mask_target(struct fingerprinter *fingerprinter, struct bytes path, bool has_query, struct bytes query,
		       struct buffer *out)
{
	int err = secret_mask_path(fingerprinter, path, out);

	if (!err && has_query)
		err = buffer_append_byte(out, '?');
	return err || !has_query ? err : secret_mask_query(fingerprinter, query, out);
}

/* path = "/" and at least three more segments with something in them. */
static bool three_segments_follow(struct bytes path)
{
	unsigned int found = 0;

	while (path.size && found < 3) {
		bytes_take(&path, 1);
		if (bytes_take(&path, bytes_find(path, '/')).size)
			found++;
	}
	return found == 3;
}

/* The next segment of a path or of a glob for one; the slash behind it goes as well. */
static struct bytes take_segment(struct bytes *path)
{
	struct bytes segment = bytes_take(path, bytes_find(*path, '/'));

	bytes_take(path, 1);
	return segment;
}

/* Bit j: segment j of from is secret, since from begins as the glob says. Neither has a slash in front. */
static uint64_t secrets_by_glob(struct bytes glob, struct bytes from)
{
	uint64_t secrets = 0;

	for (unsigned int j = 0; glob.size && j < SECRET_GLOB_SEGMENTS_MAX; j++) {
		struct bytes wanted = take_segment(&glob);

		if (from.size == 0 || !glob_text_matches(wanted, take_segment(&from)))
			return 0;
		if (bytes_find(wanted, '*') < wanted.size)
			secrets |= UINT64_C(1) << j;
	}
	return secrets;
}

/* The same for all rules; from starts at a segment of path. */
static uint64_t secrets_from(const struct secret_rules *rules, struct bytes path, struct bytes from)
{
	bool leading_slash = path.data[0] == '/';
	uint64_t secrets = 0;

	if (!rules || (leading_slash && from.data == path.data))
		return 0;
	for (size_t i = 0; i < rules->path_count; i++) {
		struct bytes glob = rules->paths[i];

		bytes_take(&glob, 1);
		if (bytes_starts_with(glob, BYTES("**/")))
			bytes_take(&glob, 3);
		else if (from.data != path.data + leading_slash)
			continue;
		secrets |= secrets_by_glob(glob, from);
	}
	return secrets;
}

int secret_mask_path(struct fingerprinter *fingerprinter, struct bytes path, struct buffer *out)
{
	const struct secret_rules *rules = fingerprinter_secrets(fingerprinter);
	const struct bytes whole = path;
	size_t start = out->size;
	unsigned int secret_segments = 0; /* of those that come, empty ones not counted */
	uint64_t by_rules = 0;		  /* bit j: the j-th from here is secret */
	int err = 0;

	for (; !err && path.size; by_rules >>= 1) {
		struct bytes from = path, segment = bytes_take(&path, bytes_find(path, '/'));
		struct bytes rest;

		by_rules |= secrets_from(rules, whole, from);
		if (segment.size && secret_segments) {
			err = append_secret(fingerprinter, segment, out);
			secret_segments--;
		} else if (by_rules & 1) {
			err = append_secret(fingerprinter, segment, out);
		} else if (path.size && decoded_starts_with(segment, BYTES("bot"), &rest)) {
			err = append_secret(fingerprinter, segment, out);
		} else {
			err = buffer_append(out, segment);
			if (decoded_starts_with(segment, BYTES("services"), &rest) &&
			    rest.size == 0 && three_segments_follow(path))
				secret_segments = 3;
		}
		if (!err && path.size)
			err = buffer_append(out, bytes_take(&path, 1));
	}
	return err ? err : cut_to_limit(out, start);
}

struct bytes secret_strip_userinfo(struct bytes authority)
{
	for (size_t i = authority.size; i > 0; i--)
		if (authority.data[i - 1] == '@')
			return (struct bytes){authority.data + i, authority.size - i};
	return authority;
}
