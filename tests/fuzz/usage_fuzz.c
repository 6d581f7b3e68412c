/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a model's answer. The first byte says how the rest is cut, the
 * second where a gap is. However it is cut, the same is read; counts are within
 * their bounds; what is complete is not unfinished; and nothing is final, or
 * unfinished, behind a gap.
 */
#include <stdint.h>

#include "usage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static struct usage_reader *read_slices(struct bytes entity, size_t slice)
{
	struct usage_reader *reader = usage_reader_new();

	CHECK(reader);
	while (entity.size)
		usage_reader_feed(reader, bytes_take(&entity, slice));
	return reader;
}

static void check_count(int64_t count)
{
	CHECK(count >= -1 && count <= 4 * USAGE_TOKENS_MAX);
}

static void check_answer(const struct model_answer *answer)
{
	const struct usage *usage = &answer->usage;

	check_count(usage->input_tokens);
	check_count(usage->output_tokens);
	check_count(usage->cached_tokens);
	check_count(usage->cache_write_tokens);
	check_count(usage->reasoning_tokens);
	CHECK(!(answer->complete && answer->unfinished));
	CHECK(usage->seen || !usage->final);
	CHECK(answer->finish_reason.size <= CALL_NAME_BYTES && answer->id.size <= CALL_NAME_BYTES &&
	      answer->model.size <= CALL_NAME_BYTES);
}

static bool same(const struct model_answer *a, const struct model_answer *b)
{
	return a->usage.input_tokens == b->usage.input_tokens && a->usage.output_tokens == b->usage.output_tokens &&
	       a->usage.cached_tokens == b->usage.cached_tokens &&
	       a->usage.cache_write_tokens == b->usage.cache_write_tokens &&
	       a->usage.reasoning_tokens == b->usage.reasoning_tokens && a->usage.final == b->usage.final &&
	       a->usage.seen == b->usage.seen && a->refused == b->refused && a->complete == b->complete &&
	       a->unfinished == b->unfinished && bytes_equal(a->finish_reason, b->finish_reason) &&
	       bytes_equal(a->id, b->id) && bytes_equal(a->model, b->model);
}

static void check_gap(struct bytes entity, size_t at)
{
	struct usage_reader *reader = usage_reader_new();
	struct model_answer before, after;

	CHECK(reader);
	usage_reader_feed(reader, bytes_take(&entity, at));
	usage_reader_answer(reader, &before);
	usage_reader_gap(reader);
	usage_reader_feed(reader, entity);
	usage_reader_answer(reader, &after);
	check_answer(&after);
	CHECK(!after.usage.final && !after.unfinished);
	CHECK(!before.complete || after.complete || !before.usage.seen || after.usage.seen);
	usage_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct usage_reader *whole, *cut;
	struct model_answer a, b;
	struct bytes entity;

	if (size < 3)
		return 0;
	entity = (struct bytes){data + 2, size - 2};
	whole = read_slices(entity, entity.size);
	cut = read_slices(entity, 1 + data[0] % 64);
	usage_reader_answer(whole, &a);
	usage_reader_answer(cut, &b);
	check_answer(&a);
	CHECK(same(&a, &b));
	check_gap(entity, entity.size * data[1] / 256);
	usage_reader_free(whole);
	usage_reader_free(cut);
	return 0;
}
