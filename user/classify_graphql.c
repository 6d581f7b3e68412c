/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GraphQL over HTTP: which operation does a POST run? The document is lexed
 * just far enough to find its definitions (GraphQL October 2021, section 2):
 * comments and strings are skipped, brackets are counted, and the first word
 * of each definition and the name behind it are read.
 */
#include "classify_rules.h"

#include <errno.h>

/* What a document holds, and the operation that was asked for. */
struct operations {
	struct bytes wanted; /* operationName; empty = none */
	bool queries;
	bool subscriptions;
	bool mutations;
	bool found; /* the one with the wanted name */
	const char *found_kind;
	bool broken;
};

/* One definition in progress. */
struct lexer {
	struct bytes rest;
	size_t depth;      /* open brackets of any kind */
	struct bytes kind; /* first word; empty between definitions */
	struct bytes name; /* the word behind it */
	bool at_name;      /* the next token may be the name */
	bool in_body;      /* its selection set is open: depth 0 then ends it */
};

static bool is_name_start(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_size(struct bytes text)
{
	size_t size = 0;

	while (size < text.size && (is_name_start(text.data[size]) ||
				    (text.data[size] >= '0' && text.data[size] <= '9')))
		size++;
	return size;
}

/* Past a "..." or a block string, the opening quote first. False when it does not end. */
static bool skip_string(struct bytes *rest)
{
	bool block = bytes_starts_with(*rest, BYTES("\"\"\""));

	bytes_take(rest, block ? 3 : 1);
	while (rest->size) {
		if (rest->data[0] == '\\') {
			/* In a block only \""" is an escape; elsewhere any byte may follow. */
			if (!block)
				bytes_take(rest, 2);
			else
				bytes_take(rest,
					   bytes_starts_with(*rest, BYTES("\\\"\"\"")) ? 4 : 1);
		} else if (block && bytes_starts_with(*rest, BYTES("\"\"\""))) {
			bytes_take(rest, 3);
			return true;
		} else if (!block && rest->data[0] == '"') {
			bytes_take(rest, 1);
			return true;
		} else {
			bytes_take(rest, 1);
		}
	}
	return false;
}

static void end_definition(struct lexer *lexer, struct operations *operations)
{
	bool found = operations->wanted.size && bytes_equal(lexer->name, operations->wanted);
	const char *kind = NULL;

	if (lexer->kind.size == 0 || bytes_equal(lexer->kind, BYTES("query"))) {
		operations->queries = true;
		kind = "query";
	} else if (bytes_equal(lexer->kind, BYTES("mutation"))) {
		operations->mutations = true;
		kind = "mutation";
	} else if (bytes_equal(lexer->kind, BYTES("subscription"))) {
		operations->subscriptions = true;
		kind = "subscription";
	} else if (!bytes_equal(lexer->kind, BYTES("fragment"))) {
		operations->broken = true; /* a type definition is nothing to execute */
	}
	if (kind && found) {
		operations->broken = operations->broken || operations->found; /* two of one name */
		operations->found = true;
		operations->found_kind = kind;
	}
	*lexer = (struct lexer){.rest = lexer->rest};
}

static void take_name(struct lexer *lexer)
{
	struct bytes name = bytes_take(&lexer->rest, name_size(lexer->rest));

	if (lexer->depth)
		return;
	if (lexer->kind.size == 0) {
		lexer->kind = name;
		lexer->at_name = true;
		return;
	}
	if (lexer->at_name)
		lexer->name = name;
	lexer->at_name = false;
}

static void take_bracket(struct lexer *lexer, struct operations *operations)
{
	uint8_t c = bytes_take(&lexer->rest, 1).data[0];

	lexer->at_name = false;
	if (c == '{' || c == '(' || c == '[') {
		if (c == '{' && lexer->depth == 0)
			lexer->in_body = true;
		lexer->depth++;
		return;
	}
	if (lexer->depth == 0) {
		operations->broken = true;
		return;
	}
	lexer->depth--;
	if (lexer->depth == 0 && lexer->in_body) {
		operations->broken = operations->broken || c != '}';
		end_definition(lexer, operations);
	}
}

static void read_document(struct bytes document, struct operations *operations)
{
	struct lexer lexer = {.rest = document};

	while (lexer.rest.size && !operations->broken) {
		uint8_t c = lexer.rest.data[0];

		if (c == '#') {
			while (lexer.rest.size && lexer.rest.data[0] != '\n' &&
			       lexer.rest.data[0] != '\r')
				bytes_take(&lexer.rest, 1);
		} else if (c == '"') {
			lexer.at_name = false;
			if (!skip_string(&lexer.rest))
				operations->broken = true;
		} else if (is_name_start(c)) {
			take_name(&lexer);
		} else if (memchr("{}()[]", c, 6)) {
			take_bracket(&lexer, operations);
		} else {
			/* Spaces and commas are nothing; other marks end the place for a name. */
			if (c > ' ' && c != ',' && c < 0x80)
				lexer.at_name = false;
			bytes_take(&lexer.rest, 1);
		}
	}
	if (lexer.depth || lexer.kind.size)
		operations->broken = true;
}

static struct class_verdict verdict_of(enum call_class class, enum class_source source,
				       const char *by)
{
	return (struct class_verdict){.class = class, .source = source, .by = by};
}

static struct class_verdict mutation(const char *by)
{
	struct class_verdict verdict = verdict_of(CLASS_MUTATING, CLASS_BY_PROTOCOL, by);

	verdict.known_write = true;
	return verdict;
}

/* No operation of that name: the server will refuse it, or take another; the worst one counts. */
static struct class_verdict judge_operations(const struct operations *operations)
{
	const char *kind = operations->found ? operations->found_kind : NULL;

	if (operations->broken ||
	    (!operations->queries && !operations->mutations && !operations->subscriptions))
		return verdict_of(CLASS_MUTATING, CLASS_BY_METHOD, "graphql document unclear");
	if (!kind)
		kind = operations->mutations ? "mutation"
		       : operations->queries ? "query"
					     : "subscription";
	if (kind[0] == 'm')
		return mutation("graphql mutation");
	return verdict_of(CLASS_READ, CLASS_BY_PROTOCOL,
			  kind[0] == 'q' ? "graphql query" : "graphql subscription");
}

/* The members of one request. */
struct request {
	struct bytes query;
	struct bytes operation_name;
	bool persisted; /* extensions.persistedQuery, or the id of a stored document */
	bool twice;
};

static bool has_persisted_query(struct bytes extensions)
{
	struct json_scan scan;
	struct bytes name, value;

	json_scan_open(&scan, json_scan_is_object(extensions) ? extensions : (struct bytes){0});
	while (json_scan_next(&scan, &name, &value))
		if (json_scan_says(name, "persistedQuery") && json_scan_is_object(value))
			return true;
	return false;
}

static struct request read_request(struct bytes object)
{
	struct request request = {0};
	struct json_scan scan;
	struct bytes name, value;

	json_scan_open(&scan, json_scan_is_object(object) ? object : (struct bytes){0});
	while (json_scan_next(&scan, &name, &value)) {
		if (json_scan_says(name, "query") && !json_scan_is_null(value)) {
			request.twice = request.twice || request.query.size;
			request.query = value;
		} else if (json_scan_says(name, "operationName") && !json_scan_is_null(value)) {
			request.twice = request.twice || request.operation_name.size;
			request.operation_name = value;
		} else if (json_scan_says(name, "extensions")) {
			request.persisted = request.persisted || has_persisted_query(value);
		} else if (json_scan_says(name, "documentId") || json_scan_says(name, "doc_id")) {
			request.persisted = true;
		}
	}
	request.twice = request.twice || scan.broken;
	return request;
}

/* What a string says, whole, in scratch. 0, -EINVAL when it is none, -ENOMEM. */
static int decode(struct bytes value, struct buffer *scratch)
{
	int err;

	buffer_clear(scratch);
	if (!json_scan_is_string(value))
		return -EINVAL;
	err = buffer_reserve(scratch, value.size);
	if (!err)
		scratch->size = json_scan_text(value, scratch->data, scratch->capacity, NULL);
	return err;
}

/* Only the name is known: a hint, as with tools. */
static struct class_verdict judge_persisted(struct bytes operation_name)
{
	struct class_verdict verdict;

	if (classify_names_tool(operation_name, &verdict))
		return verdict;
	return verdict_of(CLASS_MUTATING, CLASS_BY_METHOD, "graphql persisted query");
}

static struct class_verdict judge_request(struct bytes object, struct buffer *scratch)
{
	struct request request = read_request(object);
	uint8_t name_text[CALL_NAME_BYTES];
	struct operations operations = {0};
	bool cut = false;
	int err;

	operations.wanted.data = name_text;
	operations.wanted.size =
		json_scan_text(request.operation_name, name_text, sizeof(name_text), &cut);
	if (request.twice || cut)
		return verdict_of(CLASS_MUTATING, CLASS_BY_METHOD, "graphql document unclear");
	if (request.query.size == 0 && request.persisted)
		return judge_persisted(operations.wanted);
	err = decode(request.query, scratch);
	if (err) {
		struct class_verdict unclear =
			verdict_of(CLASS_MUTATING, CLASS_BY_METHOD, "graphql document unclear");

		unclear.out_of_memory = err == -ENOMEM;
		return unclear;
	}
	read_document(buffer_bytes(scratch), &operations);
	return judge_operations(&operations);
}

/* Any mutation makes a batch mutating; else the least certain member speaks for it. */
static struct class_verdict judge_batch(struct bytes array, struct buffer *scratch)
{
	struct class_verdict verdict =
		verdict_of(CLASS_MUTATING, CLASS_BY_METHOD, "graphql document unclear");
	struct bytes name, value;
	struct json_scan scan;
	bool first = true, out_of_memory = false;

	json_scan_open(&scan, array);
	while (json_scan_next(&scan, &name, &value)) {
		struct class_verdict next = judge_request(value, scratch);
		bool worse =
			next.class == CLASS_MUTATING
				? verdict.class != CLASS_MUTATING || next.source > verdict.source
				: verdict.class != CLASS_MUTATING && next.source < verdict.source;

		if (first || worse)
			verdict = next;
		first = false;
		out_of_memory = out_of_memory || next.out_of_memory;
	}
	if (scan.broken)
		verdict = verdict_of(CLASS_MUTATING, CLASS_BY_METHOD, "graphql document unclear");
	verdict.out_of_memory = out_of_memory;
	return verdict;
}

static bool is_graphql(struct bytes segment)
{
	return bytes_equal_nocase(segment, BYTES("graphql")) ||
	       bytes_equal_nocase(segment, BYTES("gql")) ||
	       bytes_equal_nocase(segment, BYTES("graphql.json"));
}

/* application/graphql: the body is the document. */
static bool is_bare_document(const struct call *call)
{
	struct bytes type = call->content_type;

	type.size = bytes_find(type, ';');
	return call->body_held &&
	       bytes_equal_nocase(bytes_trim(type), BYTES("application/graphql"));
}

bool classify_graphql(struct call *call, const struct path_tail *tail, struct buffer *scratch,
		      struct class_verdict *ret_verdict)
{
	struct operations operations = {0};
	struct bytes whole;

	if (!is_graphql(tail->last) && !is_graphql(tail->second))
		return false;
	if (is_bare_document(call)) {
		read_document(call->body, &operations);
		*ret_verdict = judge_operations(&operations);
	} else if (classify_body_json(call, &whole) != BODY_JSON) {
		return false;
	} else if (json_scan_is_array(whole)) {
		*ret_verdict = judge_batch(whole, scratch);
	} else {
		*ret_verdict = judge_request(whole, scratch);
	}
	call->protocol = PROTOCOL_GRAPHQL;
	return true;
}
