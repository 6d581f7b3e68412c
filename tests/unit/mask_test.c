/* SPDX-License-Identifier: BSD-2-Clause */
/* user/mask.c: what a mask takes out of canonical JSON, and what is no mask. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "mask.h"

#define MASKS 4

/* masks: separated by spaces. What is left; removed: the pieces, each with an LF. */
static void leaves(const char *masks_text, const char *text, const char *rest, const char *removed)
{
	struct mask masks[MASKS] = {0};
	struct buffer out = {0}, taken = {0};
	struct bytes list = bytes_of_string(masks_text);
	const char *wrong;
	size_t count = 0, at;
	int changed;

	while (list.size) {
		struct bytes mask = bytes_take(&list, bytes_find(list, ' '));

		bytes_take(&list, 1);
		assert_int_equal(mask_parse(mask, &masks[count++], &wrong, &at), 0);
	}
	changed = mask_text(masks, count, bytes_of_string(text), &out, &taken);
	assert_int_equal(changed, strcmp(text, rest) != 0);
	if (changed) {
		assert_int_equal(out.size, strlen(rest));
		assert_memory_equal(out.data, rest, out.size);
	}
	assert_int_equal(taken.size, strlen(removed));
	if (taken.size)
		assert_memory_equal(taken.data, removed, taken.size);
	buffer_done(&out);
	buffer_done(&taken);
	for (size_t i = 0; i < count; i++)
		mask_done(&masks[i]);
}

static void takes_a_member_with_its_comma(void **state)
{
	(void)state;
	leaves("$.a", "{\"a\":1,\"b\":2,\"c\":3}", "{\"b\":2,\"c\":3}", "\"a\":1\n");
	leaves("$.b", "{\"a\":1,\"b\":2,\"c\":3}", "{\"a\":1,\"c\":3}", "\"b\":2\n");
	leaves("$.c", "{\"a\":1,\"b\":2,\"c\":3}", "{\"a\":1,\"b\":2}", "\"c\":3\n");
	leaves("$.a $.b", "{\"a\":1,\"b\":2,\"c\":3}", "{\"c\":3}", "\"a\":1\n\"b\":2\n");
	leaves("$.a $.c", "{\"a\":1,\"b\":2,\"c\":3}", "{\"b\":2}", "\"a\":1\n\"c\":3\n");
	leaves("$.a", "{\"a\":{\"x\":[1,2]}}", "{}", "\"a\":{\"x\":[1,2]}\n");
	leaves("$.a", "{\"a\":1,\"a\":2,\"b\":3}", "{\"b\":3}", "\"a\":1\n\"a\":2\n");
}

static void leaves_what_no_mask_finds(void **state)
{
	(void)state;
	leaves("$.x", "{\"a\":1}", "{\"a\":1}", "");
	leaves("$.a", "{\"ab\":1,\"A\":2}", "{\"ab\":1,\"A\":2}", "");
	leaves("$.a.b", "{\"a\":[{\"b\":1}]}", "{\"a\":[{\"b\":1}]}", "");
	leaves("$[0]", "{\"0\":1}", "{\"0\":1}", "");
	leaves("$.a", "\"a\"", "\"a\"", "");
	leaves("$.a", "", "", "");
}

static void follows_elements_and_members(void **state)
{
	(void)state;
	leaves("$.items[*].ts", "{\"items\":[{\"n\":1,\"ts\":5},{\"n\":2,\"ts\":6},7],\"ts\":1}",
	       "{\"items\":[{\"n\":1},{\"n\":2},7],\"ts\":1}", "\"ts\":5\n\"ts\":6\n");
	leaves("$.items[1].ts", "{\"items\":[{\"ts\":5},{\"ts\":6}]}", "{\"items\":[{\"ts\":5},{}]}", "\"ts\":6\n");
	leaves("$[*].id", "[{\"id\":1},{\"id\":2,\"x\":3}]", "[{},{\"x\":3}]", "\"id\":1\n\"id\":2\n");
	leaves("$.*.z", "{\"a\":{\"z\":1},\"b\":{\"y\":3,\"z\":2}}", "{\"a\":{},\"b\":{\"y\":3}}", "\"z\":1\n\"z\":2\n");
	leaves("$.a.b $.a.c.d", "{\"a\":{\"b\":1,\"c\":{\"d\":1,\"e\":2}},\"c\":2}",
	       "{\"a\":{\"c\":{\"e\":2}},\"c\":2}", "\"b\":1\n\"d\":1\n");
	leaves("$.a.b $.a", "{\"a\":{\"b\":1},\"c\":2}", "{\"c\":2}", "\"a\":{\"b\":1}\n");
}

static void an_element_becomes_null_so_that_it_still_counts(void **state)
{
	(void)state;
	leaves("$.t[0] $.t[2]", "{\"t\":[1,2,[3]]}", "{\"t\":[null,2,null]}", "1\n[3]\n");
	leaves("$[*]", "[1,[2]]", "[null,null]", "1\n[2]\n"); /* a mask without any name */
	leaves("$.t[*]", "{\"t\":[1,\"x\"]}", "{\"t\":[null,null]}", "1\n\"x\"\n");
}

static void a_quoted_name_may_hold_anything(void **state)
{
	(void)state;
	leaves("$['a\"']", "{\"a\\\"\":1,\"b\":2}", "{\"b\":2}", "\"a\\\"\":1\n");
	leaves("$[\"a.b\"]", "{\"a\":{\"b\":1},\"a.b\":2}", "{\"a\":{\"b\":1}}", "\"a.b\":2\n");
	leaves("$['*']", "{\"*\":1,\"b\":2}", "{\"b\":2}", "\"*\":1\n");
	leaves("$.\xc3\xa9", "{\"\xc3\xa9\":1}", "{}", "\"\xc3\xa9\":1\n");
}

static void a_broken_text_is_left_alone(void **state)
{
	struct mask mask = {0};
	struct buffer out = {0}, removed = {0};
	const char *wrong;
	size_t at;

	(void)state;
	assert_int_equal(mask_parse(BYTES("$.a"), &mask, &wrong, &at), 0);
	assert_int_equal(mask_text(&mask, 1, BYTES("{\"a\":1,"), &out, &removed), 0);
	mask_done(&mask);
	buffer_done(&out);
	buffer_done(&removed);
}

static void says_what_is_wrong_and_where(void **state)
{
	static const struct {
		const char *text;
		const char *wrong;
		size_t at;
	} rows[] = {
		{"", "a mask starts with $, as in $.nonce", 0},
		{"nonce", "a mask starts with $, as in $.nonce", 0},
		{"$", "$ alone is the whole body", 1},
		{"$.", "a name is missing here", 2},
		{"$..a", "a mask names every step: there is no ..", 2},
		{"$.a[", "brackets hold *, a number from 0 or a quoted name", 4},
		{"$[-1]", "brackets hold *, a number from 0 or a quoted name", 2},
		{"$['a", "the quote is not closed", 4},
		{"$['a'", "a ] is missing here", 5},
		{"$.a*", "* stands for a whole name", 2},
		{"$.a b", "here a . or a [ is expected", 3},
		{"$.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", "a mask has at most 16 steps", 35},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mask mask = {0};
		const char *wrong = NULL;
		size_t at = 999;

		assert_int_equal(mask_parse(bytes_of_string(rows[i].text), &mask, &wrong, &at), -EINVAL);
		assert_string_equal(wrong, rows[i].wrong);
		assert_int_equal(at, rows[i].at);
		mask_done(&mask);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_a_member_with_its_comma),
		cmocka_unit_test(leaves_what_no_mask_finds),
		cmocka_unit_test(follows_elements_and_members),
		cmocka_unit_test(an_element_becomes_null_so_that_it_still_counts),
		cmocka_unit_test(a_quoted_name_may_hold_anything),
		cmocka_unit_test(a_broken_text_is_left_alone),
		cmocka_unit_test(says_what_is_wrong_and_where),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
