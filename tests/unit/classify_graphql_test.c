/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GraphQL over HTTP: which operation is run, whatever the comments, strings
 * and other definitions of the document say.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "classify_builder.h"

static int make_classifier(void **state)
{
	*state = classifier_new();
	return *state ? 0 : -1;
}

static int free_classifier(void **state)
{
	classifier_free(*state);
	return 0;
}

#define UNCLEAR "graphql document unclear"

struct document_row {
	const char *document; /* as in a JSON string */
	const char *name;     /* operationName, NULL = no such member */
	const char *by;
};

static void assert_operation(struct classifier *classifier, const char *path, const char *body,
			     const char *by)
{
	bool mutation = strcmp(by, "graphql mutation") == 0, unclear = strcmp(by, UNCLEAR) == 0;
	struct class_row row = ROW(path, body, mutation || unclear ? CLASS_MUTATING : CLASS_READ,
				   unclear ? CLASS_BY_METHOD : CLASS_BY_PROTOCOL, by,
				   .known_write = mutation, .protocol = PROTOCOL_GRAPHQL);

	assert_posts(classifier, &row, 1);
}

static void assert_documents(struct classifier *classifier, const struct document_row *rows,
			     size_t count)
{
	char body[1000];

	for (size_t i = 0; i < count; i++) {
		if (rows[i].name)
			snprintf(body, sizeof(body), "{\"query\":\"%s\",\"operationName\":\"%s\"}",
				 rows[i].document, rows[i].name);
		else
			snprintf(body, sizeof(body), "{\"query\":\"%s\"}", rows[i].document);
		assert_operation(classifier, "/graphql", body, rows[i].by);
	}
}

static void finds_the_kind_of_the_only_operation(void **state)
{
	static const struct document_row rows[] = {
		{"{ a }", NULL, "graphql query"},
		{"{a{b{c}}}", NULL, "graphql query"},
		{"query { a }", NULL, "graphql query"},
		{"query{a}", NULL, "graphql query"},
		{"query Q($x: [Int!]! = [1]) @d(a: {b: 1}) { a(x: $x) }", NULL, "graphql query"},
		{"query Q($x: In = {mutation: 1}) { a }", NULL, "graphql query"},
		{"mutation { pay }", NULL, "graphql mutation"},
		{"mutation Pay($c: Int!) { pay(c: $c) { id } }", NULL, "graphql mutation"},
		{"\\tmutation\\n,Pay{pay}", NULL, "graphql mutation"},
		{"\\ufeffmutation{pay}", NULL, "graphql mutation"},
		{"\\u006dutation{pay}", NULL, "graphql mutation"},
		{"subscription S { ticks }", NULL, "graphql subscription"},
		{"fragment F on T { a } query { ...F }", NULL, "graphql query"},
		{"fragment mutation on T { a } { ...mutation }", NULL, "graphql query"},
		{"query mutation { a }", NULL, "graphql query"},
		{"mutation query { a }", NULL, "graphql mutation"},
		{"{ mutation { query } }", NULL, "graphql query"},
		{"fragment F on T { a } mutation { ...F }", NULL, "graphql mutation"},
	};

	assert_documents(*state, rows, ROW_COUNT(rows));
}

static void looks_into_no_comment_and_no_string(void **state)
{
	static const struct document_row rows[] = {
		{"# mutation { pay }\\nquery { a }", NULL, "graphql query"},
		{"# { query }\\rmutation { pay }", NULL, "graphql mutation"},
		{"#\\n#\\n{a}#mutation{b}", NULL, "graphql query"},
		{"{ a(t: \\\"} mutation { pay } {\\\") }", NULL, "graphql query"},
		{"{ a(t: \\\"\\\\\\\"} mutation { pay\\\") }", NULL, "graphql query"},
		{"{ a(t: \\\"\\\\\\\\\\\") } mutation { pay }", NULL, "graphql mutation"},
		{"{ a(t: \\\"\\\") b(t: \\\"}\\\") }", NULL, "graphql query"},
		{"{ a(t: \\\"\\\"\\\"} \\\" mutation { pay } \\\"\\\"\\\") }", NULL,
		 "graphql query"},
		{"{ a(t: \\\"\\\"\\\"x \\\\\\\"\\\"\\\" } mutation {y} \\\"\\\"\\\") }", NULL,
		 "graphql query"},
		{"{ a(t: \\\"\\\"\\\"\\\\\\\"\\\"\\\") } mutation {y}", NULL, UNCLEAR},
		{"{ a(t: \\\"x) }", NULL, UNCLEAR},
		{"{ a(t: \\\"x\\\\", NULL, UNCLEAR},
	};

	assert_documents(*state, rows, ROW_COUNT(rows));
}

static void runs_the_operation_that_is_named(void **state)
{
#define BOTH "query Get { a } mutation Pay { pay } subscription Ticks { t }"
	static const struct document_row rows[] = {
		{BOTH, "Get", "graphql query"},
		{BOTH, "Pay", "graphql mutation"},
		{BOTH, "Ticks", "graphql subscription"},
		{BOTH, "P\\u0061y", "graphql mutation"},
		/* Nobody knows which: the worst one. */
		{BOTH, NULL, "graphql mutation"},
		{BOTH, "", "graphql mutation"},
		{BOTH, "pay", "graphql mutation"},
		{"query A { a } query B { b }", NULL, "graphql query"},
		{"query A { a } query B { b }", "C", "graphql query"},
		{"subscription A { a } query B { b }", NULL, "graphql query"},
		{"fragment Pay on T { a } query Get { a }", "Pay", "graphql query"},
		{"query A { a } mutation A { b }", "A", UNCLEAR},
		{"query @A { a } mutation A { b }", "A", "graphql mutation"},
	};

	assert_documents(*state, rows, ROW_COUNT(rows));
}

static void a_document_that_is_none_is_unclear(void **state)
{
	static const struct document_row rows[] = {
		{"", NULL, UNCLEAR},
		{"   ", NULL, UNCLEAR},
		{"query", NULL, UNCLEAR},
		{"{ a", NULL, UNCLEAR},
		{"{ a }}", NULL, UNCLEAR},
		{"}", NULL, UNCLEAR},
		{"{ a )", NULL, UNCLEAR},
		{"query Q( { a }", NULL, UNCLEAR},
		{"type T { a: Int }", NULL, UNCLEAR},
		{"fragment F on T { a }", NULL, UNCLEAR},
		{"status:open", NULL, UNCLEAR},
		{"# { a }", NULL, UNCLEAR},
		{"query { a } trailing", NULL, UNCLEAR},
	};

	assert_documents(*state, rows, ROW_COUNT(rows));
}

static void reads_requests_of_every_shape(void **state)
{
	static const struct {
		const char *path;
		const char *body;
		const char *by;
	} rows[] = {
		{"/api/graphql/", "{\"query\":\"{a}\"}", "graphql query"},
		{"/GraphQL", "{\"query\":\"{a}\"}", "graphql query"},
		{"/gql", "{\"query\":\"mutation{a}\"}", "graphql mutation"},
		{"/admin/api/graphql.json", "{\"query\":\"{a}\"}", "graphql query"},
		{"/graphql/v1", "{\"query\":\"{a}\"}", "graphql query"},
		{"/graphql", "{\"query\":\"{a}\",\"operationName\":null,\"variables\":{}}",
		 "graphql query"},
		{"/graphql", "{\"query\":\"{a}\",\"query\":\"mutation{a}\"}", UNCLEAR},
		{"/graphql", "{\"query\":\"{a}\",\"operationName\":\"A\",\"operationName\":\"B\"}",
		 UNCLEAR},
		{"/graphql", "{\"query\":\"{a}\" \"x\":1}", UNCLEAR},
		{"/graphql", "{\"query\":7}", UNCLEAR},
		{"/graphql", "{\"query\":{\"match\":1}}", UNCLEAR},
		{"/graphql", "{\"variables\":{}}", UNCLEAR},
		{"/graphql", "{}", UNCLEAR},
		{"/graphql", "[{\"query\":\"{a}\"},{\"query\":\"query{b}\"}]", "graphql query"},
		{"/graphql",
		 "[{\"query\":\"{a}\"},{\"query\":\"mutation{b}\"},{\"query\":\"{c}\"}]",
		 "graphql mutation"},
		{"/graphql", "[{\"query\":\"{a}\"},{\"query\":7}]", UNCLEAR},
		{"/graphql", "[{\"query\":7},{\"query\":\"mutation{b}\"}]", "graphql mutation"},
		{"/graphql", "[{\"query\":\"{a}\"} {\"query\":\"{a}\"}]", UNCLEAR},
		{"/graphql", "[]", UNCLEAR},
		{"/graphql", "[5]", UNCLEAR},
	};

	for (size_t i = 0; i < ROW_COUNT(rows); i++)
		assert_operation(*state, rows[i].path, rows[i].body, rows[i].by);
}

static void a_persisted_query_has_only_its_name(void **state)
{
#define HASH "\"extensions\":{\"persistedQuery\":{\"version\":1,\"sha256Hash\":\"ab\"}}"
#define GRAPHQL .protocol = PROTOCOL_GRAPHQL
	static const struct class_row rows[] = {
		ROW("/graphql", "{" HASH "}", CLASS_MUTATING, CLASS_BY_METHOD,
		    "graphql persisted query", GRAPHQL),
		ROW("/graphql", "{\"operationName\":\"Stock\"," HASH "}", CLASS_MUTATING,
		    CLASS_BY_METHOD, "graphql persisted query", GRAPHQL),
		ROW("/graphql", "{\"operationName\":\"GetStock\"," HASH "}", CLASS_READ,
		    CLASS_BY_TOOL_NAME, "tool prefix get_", GRAPHQL),
		ROW("/graphql", "{\"operationName\":\"CreateOrder\"," HASH "}", CLASS_MUTATING,
		    CLASS_BY_TOOL_NAME, "tool prefix create_", .known_write = true, GRAPHQL),
		ROW("/graphql", "{\"query\":null," HASH "}", CLASS_MUTATING, CLASS_BY_METHOD,
		    "graphql persisted query", GRAPHQL),
		ROW("/graphql", "{\"doc_id\":\"7\"}", CLASS_MUTATING, CLASS_BY_METHOD,
		    "graphql persisted query", GRAPHQL),
		ROW("/graphql", "{\"documentId\":\"7\"}", CLASS_MUTATING, CLASS_BY_METHOD,
		    "graphql persisted query", GRAPHQL),
		ROW("/graphql", "{\"query\":\"{a}\"," HASH "}", CLASS_READ, CLASS_BY_PROTOCOL,
		    "graphql query", GRAPHQL),
		ROW("/graphql", "{\"extensions\":{\"tracing\":{}}}", CLASS_MUTATING,
		    CLASS_BY_METHOD, UNCLEAR, GRAPHQL),
		ROW("/graphql", "[{\"query\":\"{a}\"},{\"operationName\":\"GetStock\"," HASH "}]",
		    CLASS_READ, CLASS_BY_TOOL_NAME, "tool prefix get_", GRAPHQL),
	};

	assert_posts(*state, rows, ROW_COUNT(rows));
}

static void a_body_that_is_no_json_leaves_the_method(void **state)
{
	static const struct class_row rows[] = {
		ROW("/graphql", "query { a }", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/graphql", "{\"query\":\"{a}\"", CLASS_MUTATING, CLASS_BY_METHOD,
		    "method POST"),
		ROW("/graphql", "", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		/* another path with a member of that name */
		ROW("/tickets", "{\"query\":\"{a}\"}", CLASS_MUTATING, CLASS_BY_METHOD,
		    "method POST"),
	};

	assert_posts(*state, rows, ROW_COUNT(rows));
}

static void the_body_may_be_the_document_itself(void **state)
{
	struct built_call built;
	struct call *call = build_call(&built, "POST", "/graphql", "", "# x\nmutation { pay }");

	call->content_type = BYTES("Application/GraphQL ; charset=utf-8");
	classify_call(*state, call);
	assert_string_equal(call->class_by, "graphql mutation");
	call->body = BYTES("{ a }");
	classify_call(*state, call);
	assert_string_equal(call->class_by, "graphql query");
	call->body_held = false;
	classify_call(*state, call);
	assert_string_equal(call->class_by, "method POST");
}

/* Wire case 17: the word stands in a comment and in a string. */
static void gives_the_case_its_class(void **state)
{
	assert_operation(*state, "/graphql",
			 "{\"query\":\"# first comment says mutation\\nquery Stock($p: ID!) { "
			 "part(id: $p) { onHand note(text: "
			 "\\\"mutation\\\") } "
			 "}\",\"operationName\":\"Stock\",\"variables\":{\"p\":\"bolt-m8\"}}",
			 "graphql query");
}

/* Every cut of a document ends, and a cut one is never a certain read. */
static void a_document_cut_anywhere_is_no_read(void **state)
{
	static const char document[] = "query A($x: I = {a: \"q\\\"}\"}) @d { a(x: "
				       "\"\"\"b\\\"\"\"c\"\"\") }  mutation B { pay }";
	struct built_call built;
	struct call *call = build_call(&built, "POST", "/graphql", "", "");
	const char *first_end = strstr(document, "}  mutation") + 1;

	call->content_type = BYTES("application/graphql");
	for (size_t size = 0; size < sizeof(document); size++) {
		uint8_t *copy = malloc(size ? size : 1);
		bool whole_query = size >= (size_t)(first_end - document) &&
				   size <= (size_t)(first_end - document) + 2;

		memcpy(copy, document, size);
		call->body = (struct bytes){copy, size};
		classify_call(*state, call);
		assert_int_equal(call->class == CLASS_READ, whole_query);
		free(copy);
	}
}

static void reads_a_document_of_eight_mib(void **state)
{
	static const char start[] = "{\"query\":\"{a}#", end[] = "\"}";
	size_t size = 8 * 1024 * 1024;
	char *body = malloc(size);
	struct built_call built;
	struct call *call = build_call(&built, "POST", "/graphql", "", "");

	memset(body, 'x', size);
	memcpy(body, start, sizeof(start) - 1);
	memcpy(body + size - (sizeof(end) - 1), end, sizeof(end) - 1);
	call->body = (struct bytes){(uint8_t *)body, size};
	call->body_bytes = size;
	classify_call(*state, call);
	assert_string_equal(call->class_by, "graphql query");
	free(body);
	assert_operation(*state, "/graphql", "{\"query\":\"{a}\"}", "graphql query");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_classifier, free_classifier)
	const struct CMUnitTest tests[] = {
		TEST(finds_the_kind_of_the_only_operation),
		TEST(looks_into_no_comment_and_no_string),
		TEST(runs_the_operation_that_is_named),
		TEST(a_document_that_is_none_is_unclear),
		TEST(reads_requests_of_every_shape),
		TEST(a_persisted_query_has_only_its_name),
		TEST(a_body_that_is_no_json_leaves_the_method),
		TEST(the_body_may_be_the_document_itself),
		TEST(gives_the_case_its_class),
		TEST(a_document_cut_anywhere_is_no_read),
		TEST(reads_a_document_of_eight_mib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
