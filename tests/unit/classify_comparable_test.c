/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which members of a body two attempts are not compared by, per protocol, and
 * that nothing else is ever left out.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "classify_builder.h"

struct text_row {
	enum call_protocol protocol;
	const char *text;
	const char *comparable; /* NULL = the text as it is */
	const char *prompt;     /* the same */
};

typedef int text_maker(const struct call *call, struct bytes canonical_text, struct buffer *out);

static void assert_made(text_maker *make, const struct call *call, const char *text,
			const char *expected)
{
	struct buffer out = {0};

	assert_int_equal(buffer_append(&out, BYTES("old")), 0);
	assert_int_equal(make(call, bytes_of_string(text), &out), expected ? 1 : 0);
	assert_says(buffer_bytes(&out), expected);
	buffer_done(&out);
}

static void assert_texts(const struct text_row *rows, size_t count)
{
	struct call call = {.canon = CANONICAL_JSON};

	for (size_t i = 0; i < count; i++) {
		call.protocol = rows[i].protocol;
		assert_made(classify_comparable_text, &call, rows[i].text, rows[i].comparable);
		assert_made(classify_prompt_text, &call, rows[i].text, rows[i].prompt);
	}
}

static void leaves_out_each_volatile_member_of_its_protocol(void **state)
{
	static const struct {
		enum call_protocol protocol;
		const char *name;
	} rows[] = {
		{PROTOCOL_JSON_RPC, "id"},
		{PROTOCOL_MCP, "id"},
		{PROTOCOL_A2A, "id"},
		{PROTOCOL_OPENAI, "user"},
		{PROTOCOL_OPENAI, "metadata"},
		{PROTOCOL_OPENAI, "store"},
		{PROTOCOL_OPENAI, "stream"},
		{PROTOCOL_OPENAI, "stream_options"},
		{PROTOCOL_OPENAI, "service_tier"},
		{PROTOCOL_OPENAI, "prompt_cache_key"},
		{PROTOCOL_OPENAI, "safety_identifier"},
		{PROTOCOL_OPENAI, "request_id"},
		{PROTOCOL_OPENAI, "priority"},
		{PROTOCOL_OPENAI, "cache_salt"},
		{PROTOCOL_OPENAI, "id_slot"},
		{PROTOCOL_OPENAI, "cache_prompt"},
		{PROTOCOL_OPENAI, "timings_per_token"},
		{PROTOCOL_ANTHROPIC, "stream"},
		{PROTOCOL_ANTHROPIC, "metadata"},
		{PROTOCOL_OLLAMA, "stream"},
		{PROTOCOL_OLLAMA, "keep_alive"},
		{PROTOCOL_LLAMA_CPP, "stream"},
		{PROTOCOL_LLAMA_CPP, "id_slot"},
		{PROTOCOL_LLAMA_CPP, "cache_prompt"},
		{PROTOCOL_LLAMA_CPP, "timings_per_token"},
	};
	static const char *const shapes[][2] = {
		{"{\"%s\":1}", "{}"},
		{"{\"!\":1,\"%s\":{\"a\":[\"}\"]}}", "{\"!\":1}"},
		{"{\"%s\":\"\\\"\",\"~\":2}", "{\"~\":2}"},
		{"{\"!\":1,\"%s\":null,\"~\":2}", "{\"!\":1,\"~\":2}"},
		{"{\"%s\":1,\"%s\":2,\"~\":3}", "{\"~\":3}"},
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		for (size_t j = 0; j < ROW_COUNT(shapes); j++) {
			struct text_row row = {rows[i].protocol, text, shapes[j][1], shapes[j][1]};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
			snprintf(text, sizeof(text), shapes[j][0], rows[i].name, rows[i].name);
#pragma GCC diagnostic pop
			assert_texts(&row, 1);
		}
	}
}

static void leaves_out_the_token_budget_for_the_prompt_only(void **state)
{
	static const struct text_row rows[] = {
		{PROTOCOL_OPENAI, "{\"max_tokens\":9,\"model\":\"m\"}", NULL, "{\"model\":\"m\"}"},
		{PROTOCOL_OPENAI, "{\"max_completion_tokens\":9,\"model\":\"m\"}", NULL,
		 "{\"model\":\"m\"}"},
		{PROTOCOL_OPENAI, "{\"max_output_tokens\":9,\"model\":\"m\"}", NULL,
		 "{\"model\":\"m\"}"},
		{PROTOCOL_ANTHROPIC, "{\"max_tokens\":9,\"model\":\"m\",\"stream\":true}",
		 "{\"max_tokens\":9,\"model\":\"m\"}", "{\"model\":\"m\"}"},
		{PROTOCOL_LLM, "{\"max_tokens\":9,\"x\":1}", NULL, "{\"x\":1}"},
		{PROTOCOL_LLAMA_CPP, "{\"n_predict\":9,\"prompt\":\"x\"}", NULL,
		 "{\"prompt\":\"x\"}"},
		{PROTOCOL_OLLAMA, "{\"model\":\"m\",\"options\":{\"num_predict\":5,\"seed\":1}}",
		 NULL, "{\"model\":\"m\",\"options\":{\"seed\":1}}"},
		/* an object that held nothing else goes too, and so does an empty one */
		{PROTOCOL_OLLAMA, "{\"model\":\"m\",\"options\":{\"num_predict\":5},\"z\":1}", NULL,
		 "{\"model\":\"m\",\"z\":1}"},
		{PROTOCOL_OLLAMA, "{\"options\":{\"num_predict\":5},\"z\":1}", NULL, "{\"z\":1}"},
		{PROTOCOL_OLLAMA, "{\"model\":\"m\",\"options\":{}}", NULL, "{\"model\":\"m\"}"},
		{PROTOCOL_OLLAMA, "{\"num_predict\":5}", NULL, NULL},
		{PROTOCOL_OLLAMA, "{\"options\":5}", NULL, NULL},
		{PROTOCOL_GEMINI,
		 "{\"generationConfig\":{\"maxOutputTokens\":5,\"temperature\":0}}", NULL,
		 "{\"generationConfig\":{\"temperature\":0}}"},
		{PROTOCOL_LLM, "{\"inferenceConfig\":{\"maxTokens\":5,\"topP\":1}}", NULL,
		 "{\"inferenceConfig\":{\"topP\":1}}"},
	};

	(void)state;
	assert_texts(rows, ROW_COUNT(rows));
}

static void leaves_out_the_meta_of_mcp_params(void **state)
{
	static const struct text_row rows[] = {
		{PROTOCOL_MCP,
		 "{\"id\":7,\"params\":{\"_meta\":{\"progressToken\":\"p\"},\"name\":\"t\"}}",
		 "{\"params\":{\"name\":\"t\"}}", "{\"params\":{\"name\":\"t\"}}"},
		{PROTOCOL_MCP, "{\"params\":{\"_meta\":{}}}", "{}", "{}"},
		{PROTOCOL_MCP, "{\"params\":{\"arguments\":{\"_meta\":1,\"id\":2}}}", NULL, NULL},
		{PROTOCOL_MCP, "{\"_meta\":{\"a\":1}}", NULL, NULL},
		{PROTOCOL_JSON_RPC, "{\"id\":7,\"params\":{\"_meta\":{}}}",
		 "{\"params\":{\"_meta\":{}}}", "{\"params\":{\"_meta\":{}}}"},
		{PROTOCOL_A2A, "{\"id\":7,\"params\":{\"_meta\":{}}}",
		 "{\"params\":{\"_meta\":{}}}", "{\"params\":{\"_meta\":{}}}"},
		/* a batch: of each message */
		{PROTOCOL_MCP,
		 "[{\"id\":1,\"method\":\"a\"},5,{\"id\":2,\"params\":{\"_meta\":1,\"b\":2}}]",
		 "[{\"method\":\"a\"},5,{\"params\":{\"b\":2}}]",
		 "[{\"method\":\"a\"},5,{\"params\":{\"b\":2}}]"},
	};

	(void)state;
	assert_texts(rows, ROW_COUNT(rows));
}

/* What tells two wishes apart is never left out, nor is a name that stands deeper. */
static void keeps_everything_else(void **state)
{
	static const char everything[] =
		"{\"amount\":1,\"contents\":[],\"cursor\":\"c\",\"input\":\"i\",\"messages\":[{"
		"\"id\":1,\"stream\":true,\"user\":\"u\"}],"
		"\"model\":\"m\",\"n\":2,\"nonce\":3,\"offset\":4,\"order_id\":5,\"page\":6,"
		"\"previous_response_id\":\"r\","
		"\"quantity\":7,\"response_format\":{\"stream\":1},\"seed\":8,\"since\":9,"
		"\"system\":\"s\",\"temperature\":0,"
		"\"timestamp\":10,\"tool_choice\":\"auto\",\"tools\":[],\"top_p\":1}";
	static const enum call_protocol protocols[] = {
		PROTOCOL_NONE,    PROTOCOL_JSON_RPC,  PROTOCOL_MCP,       PROTOCOL_A2A,
		PROTOCOL_GRAPHQL, PROTOCOL_OPENAI,    PROTOCOL_ANTHROPIC, PROTOCOL_GEMINI,
		PROTOCOL_OLLAMA,  PROTOCOL_LLAMA_CPP, PROTOCOL_LLM,       PROTOCOL_AWS,
	};

	(void)state;
	for (size_t i = 0; i < ROW_COUNT(protocols); i++)
		assert_texts(&(struct text_row){protocols[i], everything, NULL, NULL}, 1);
}

static void takes_no_member_of_a_protocol_that_was_not_recognised(void **state)
{
	static const struct text_row rows[] = {
		{PROTOCOL_NONE, "{\"id\":1,\"max_tokens\":2,\"stream\":true,\"user\":\"u\"}", NULL,
		 NULL},
		{PROTOCOL_GRAPHQL, "{\"id\":1,\"query\":\"{a}\"}", NULL, NULL},
		{PROTOCOL_AWS, "{\"id\":1,\"metadata\":2}", NULL, NULL},
		{PROTOCOL_ANTHROPIC, "{\"service_tier\":1,\"user\":2}", NULL, NULL},
		{PROTOCOL_GEMINI, "{\"stream\":true}", NULL, NULL},
		{PROTOCOL_OLLAMA, "{\"user\":1}", NULL, NULL},
		{PROTOCOL_OPENAI, "{\"keep_alive\":1}", NULL, NULL},
		{PROTOCOL_OPENAI, "{\"id\":1}", NULL, NULL},
		{PROTOCOL_MCP, "{\"stream\":true}", NULL, NULL},
		/* an array is a batch of JSON-RPC only */
		{PROTOCOL_OPENAI, "[{\"stream\":true}]", NULL, NULL},
	};

	(void)state;
	assert_texts(rows, ROW_COUNT(rows));
}

static void uses_a_text_that_is_not_canonical_json_as_it_is(void **state)
{
	static const char *const texts[] = {
		"",
		"5",
		"\"id\"",
		"{",
		"{\"id\":1",
		"{\"id\":1,}",
		"{\"id\":1 \"a\":2}",
		"{\"id\":1}x",
		"[{\"id\":1},",
		"[{\"id\":1}{}]",
	};
	struct call call = {.canon = CANONICAL_RAW, .protocol = PROTOCOL_MCP};

	(void)state;
	assert_made(classify_comparable_text, &call, "{\"id\":1}", NULL);
	for (size_t i = 0; i < ROW_COUNT(texts); i++)
		assert_texts(&(struct text_row){PROTOCOL_MCP, texts[i], NULL, NULL}, 1);
}

/* From the wire to the text, through the real canonical form. */
static void assert_same(struct classifier *classifier, text_maker *make, const char *path,
			const char *first, const char *second, bool same)
{
	const char *const bodies[] = {first, second};
	struct buffer texts[2] = {{0}, {0}};

	for (size_t i = 0; i < 2; i++) {
		struct canonical canonical = {0};
		struct built_call built;
		struct call *call = build_call(&built, "POST", path, "", bodies[i]);

		assert_int_equal(canonical_make(call->content_type, call->body, &canonical), 0);
		call->canon = canonical.kind;
		classify_call(classifier, call);
		if (make(call, buffer_bytes(&canonical.text), &texts[i]) == 0)
			assert_int_equal(buffer_append(&texts[i], buffer_bytes(&canonical.text)),
					 0);
		canonical_done(&canonical);
	}
	assert_int_equal(bytes_equal(buffer_bytes(&texts[0]), buffer_bytes(&texts[1])), same);
	buffer_done(&texts[0]);
	buffer_done(&texts[1]);
}

/* Wire cases 08 (budget and stream), 11 (new id), 16, 19 (seeds). */
static void makes_the_cases_equal_or_not(void **state)
{
	static const char stream[] = "{\"model\":\"demo-opus\",\"max_tokens\":32000,\"stream\":"
				     "true,\"messages\":[{\"role\":"
				     "\"user\",\"content\":\"Plan the week for line 4.\"}]}";
	static const char whole[] = "{\"model\":\"demo-opus\",\"max_tokens\":21333,\"messages\":[{"
				    "\"role\":\"user\",\"content\":"
				    "\"Plan the week for line 4.\"}]}";
	static const char seven[] =
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/"
		"call\",\"params\":{\"name\":\"create_ticket\","
		"\"arguments\":{\"title\":\"Belt slips\"},\"_meta\":{\"progressToken\":\"p-7\"}}}";
	static const char eight[] =
		"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/"
		"call\",\"params\":{\"name\":\"create_ticket\","
		"\"arguments\":{\"title\":\"Belt slips\"},\"_meta\":{\"progressToken\":\"p-8\"}}}";
	static const char other[] =
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/"
		"call\",\"params\":{\"name\":\"create_ticket\","
		"\"arguments\":{\"title\":\"Belt tears\"},\"_meta\":{\"progressToken\":\"p-7\"}}}";
	static const char seed_1[] =
		"{\"model\":\"demo-mini\",\"messages\":[],\"temperature\":1,\"seed\":1}";
	static const char seed_2[] =
		"{\"model\":\"demo-mini\",\"messages\":[],\"temperature\":1,\"seed\":2}";
	struct classifier *classifier = classifier_new();

	(void)state;
	assert_non_null(classifier);
	assert_same(classifier, classify_comparable_text, "/v1/messages", stream, whole, false);
	assert_same(classifier, classify_prompt_text, "/v1/messages", stream, whole, true);
	assert_same(classifier, classify_comparable_text, "/mcp", seven, eight, true);
	assert_same(classifier, classify_comparable_text, "/mcp", seven, other, false);
	assert_same(classifier, classify_comparable_text, "/v1/chat/completions", seed_1, seed_2,
		    false);
	assert_same(classifier, classify_prompt_text, "/v1/chat/completions", seed_1, seed_2,
		    false);
	/* the same two bodies on a path that nobody knows differ */
	assert_same(classifier, classify_prompt_text, "/v1/plans", stream, whole, false);
	classifier_free(classifier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_out_each_volatile_member_of_its_protocol),
		cmocka_unit_test(leaves_out_the_token_budget_for_the_prompt_only),
		cmocka_unit_test(leaves_out_the_meta_of_mcp_params),
		cmocka_unit_test(keeps_everything_else),
		cmocka_unit_test(takes_no_member_of_a_protocol_that_was_not_recognised),
		cmocka_unit_test(uses_a_text_that_is_not_canonical_json_as_it_is),
		cmocka_unit_test(makes_the_cases_equal_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
