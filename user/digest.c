/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SHA-256 through EVP, so that libcrypto picks the CPU's own instructions.
 * Looking the algorithm up costs more than hashing a small body: it is done
 * once, and a context is used again for every further hash. Small fields are
 * gathered before they go there, because each trip costs as much as a block.
 */
#include "digest.h"
#include "ascii.h"

#include <endian.h>
#include <errno.h>
#include <openssl/evp.h>

#define GATHERED_BYTES 512

struct digest_state {
	EVP_MD_CTX *context;
	size_t gathered;
	uint8_t gather[GATHERED_BYTES];
};

/* The one mutable static here: read-only once it is set. NULL when out of memory. */
static const EVP_MD *sha256(void)
{
	static EVP_MD *algorithm;

	if (!algorithm)
		algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
	return algorithm;
}

struct digest_state *digest_state_new(void)
{
	struct digest_state *state = calloc(1, sizeof(*state));

	if (!state)
		return NULL;
	state->context = EVP_MD_CTX_new();
	if (!state->context || digest_start(state)) {
		digest_state_free(state);
		return NULL;
	}
	return state;
}

void digest_state_free(struct digest_state *state)
{
	if (!state)
		return;
	EVP_MD_CTX_free(state->context);
	free(state);
}

int digest_start(struct digest_state *state)
{
	const EVP_MD *algorithm = sha256();

	state->gathered = 0;
	return algorithm && EVP_DigestInit_ex2(state->context, algorithm, NULL) == 1 ? 0 : -ENOMEM;
}

static int update(struct digest_state *state, struct bytes bytes)
{
	return EVP_DigestUpdate(state->context, bytes.data, bytes.size) == 1 ? 0 : -ENOMEM;
}

static int hand_over(struct digest_state *state)
{
	struct bytes gathered = {state->gather, state->gathered};

	state->gathered = 0;
	return gathered.size ? update(state, gathered) : 0;
}

int digest_add(struct digest_state *state, struct bytes bytes)
{
	int err;

	if (bytes.size > GATHERED_BYTES - state->gathered) {
		err = hand_over(state);
		if (err || bytes.size > GATHERED_BYTES)
			return err ? err : update(state, bytes);
	}
	if (bytes.size)
		memcpy(state->gather + state->gathered, bytes.data, bytes.size);
	state->gathered += bytes.size;
	return 0;
}

int digest_add_number(struct digest_state *state, uint64_t number)
{
	uint64_t bytes = htole64(number);

	return digest_add(state, (struct bytes){(const uint8_t *)&bytes, sizeof(bytes)});
}

int digest_add_field(struct digest_state *state, struct bytes bytes)
{
	int err = digest_add_number(state, bytes.size);

	return err ? err : digest_add(state, bytes);
}

int digest_finish(struct digest_state *state, struct digest *ret_digest)
{
	uint8_t result[EVP_MAX_MD_SIZE];
	unsigned int size = 0;

	if (hand_over(state) || EVP_DigestFinal_ex(state->context, result, &size) != 1 || size != DIGEST_BYTES)
		return -ENOMEM;
	memcpy(ret_digest->byte, result, DIGEST_BYTES);
	return 0;
}

int digest_of(struct bytes bytes, struct digest *ret_digest)
{
	const EVP_MD *algorithm = sha256();
	uint8_t result[EVP_MAX_MD_SIZE];
	unsigned int size = 0;
	const void *data = bytes.size ? (const void *)bytes.data : "";

	if (!algorithm || EVP_Digest(data, bytes.size, result, &size, algorithm, NULL) != 1 ||
	    size != DIGEST_BYTES)
		return -ENOMEM;
	memcpy(ret_digest->byte, result, DIGEST_BYTES);
	return 0;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
	return memcmp(a->byte, b->byte, DIGEST_BYTES) == 0;
}

void hex_of(const uint8_t *bytes, size_t byte_count, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < byte_count; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 0xf];
	}
	text[2 * byte_count] = '\0';
}

static int lower_hex_value(uint8_t c)
{
	return c == ascii_lower(c) ? ascii_hex_value(c) : -1;
}

bool hex_read(struct bytes text, uint8_t *bytes, size_t byte_count)
{
	if (text.size != 2 * byte_count)
		return false;
	for (size_t i = 0; i < byte_count; i++) {
		int high = lower_hex_value(text.data[2 * i]), low = lower_hex_value(text.data[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}
