/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members are picked out of a line by name, nearly always in the order in which
 * they were written; then each is read as what the schema says it is.
 */
#include "check_row.h"

#include "json_scan.h"

#include <arpa/inet.h>
#include <errno.h>

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

static const char not_an_object[] = "it is no JSON object, or it is cut";

/* ---- picking members ---- */

/* Values of the named members, in the order of names; empty where there is none. */
static const char *pick(struct bytes line, const char *const *names, size_t count, struct bytes *values)
{
	struct bytes object, name, value;
	struct json_scan scan;
	size_t next = 0;

	for (size_t i = 0; i < count; i++)
		values[i] = (struct bytes){0};
	if (!json_scan_whole(line, &object) || !json_scan_is_object(object))
		return not_an_object;
	json_scan_open(&scan, object);
	while (json_scan_next(&scan, &name, &value)) {
		size_t i = 0;

		while (i < count && !json_scan_says(name, names[(next + i) % count]))
			i++;
		if (i == count)
			continue;
		i = (next + i) % count;
		values[i] = value;
		next = i + 1;
	}
	return scan.broken ? not_an_object : NULL;
}

static bool is_unknown(struct bytes value)
{
	return bytes_equal(value, BYTES("\"unknown\""));
}

static bool is_absent(struct bytes value)
{
	return json_scan_is_null(value) || is_unknown(value);
}

static bool read_unsigned(struct bytes value, uint64_t *ret_number)
{
	uint64_t number = 0;

	for (size_t i = 0; i < value.size; i++) {
		uint64_t digit = (uint64_t)value.data[i] - '0';

		if (digit > 9 || number > (UINT64_MAX - digit) / 10)
			return false;
		number = 10 * number + digit;
	}
	*ret_number = number;
	return value.size != 0;
}

/* Seconds with up to nine decimals. */
static bool read_time(struct bytes value, uint64_t *ret_ns)
{
	struct bytes seconds = bytes_take(&value, bytes_find(value, '.')), decimals = value;
	uint64_t whole, part = 0;

	bytes_take(&decimals, 1);
	if (!read_unsigned(seconds, &whole) || whole > UINT64_MAX / 2000000000 || decimals.size > 9 ||
	    (decimals.size && !read_unsigned(decimals, &part)))
		return false;
	for (size_t i = decimals.size; i < 9; i++)
		part *= 10;
	*ret_ns = whole * 1000000000 + part;
	return true;
}

static bool read_bool(struct bytes value, bool *ret_value)
{
	*ret_value = json_scan_is_true(value);
	return *ret_value || bytes_equal(value, BYTES("false"));
}

static bool read_hex(struct bytes value, uint8_t *bytes, size_t count)
{
	return json_scan_is_string(value) && hex_read(json_inside(value), bytes, count);
}

/* The place of a text in names; count when it is none of them. */
static size_t read_name(struct bytes value, const char *(*name_of)(size_t i), size_t count)
{
	size_t i = 0;

	while (i < count && !(name_of(i) && json_scan_says(value, name_of(i))))
		i++;
	return i;
}

/* "127.0.0.1:8765", "[::1]:8765" */
static bool read_endpoint(struct bytes value, struct endpoint *ret_endpoint)
{
	char text[ENDPOINT_TEXT_MAX + 1];
	struct in_addr v4;
	uint64_t port;
	size_t size = json_scan_text(value, (uint8_t *)text, sizeof(text) - 1, NULL);
	char *colon;

	text[size] = '\0';
	colon = strrchr(text, ':');
	if (!colon || !read_unsigned(bytes_of_string(colon + 1), &port) || port > 65535)
		return false;
	*colon = '\0';
	*ret_endpoint = (struct endpoint){.port = (uint16_t)port};
	if (inet_pton(AF_INET, text, &v4) == 1) {
		memset(ret_endpoint->address + 10, 0xff, 2);
		memcpy(ret_endpoint->address + 12, &v4, 4);
		return true;
	}
	if (text[0] != '[' || colon == text || colon[-1] != ']')
		return false;
	colon[-1] = '\0';
	return inet_pton(AF_INET6, text + 1, ret_endpoint->address) == 1;
}

/* ---- which line ---- */

const char *check_row_kind(struct bytes line, enum check_kind *ret_kind, char ret_run[CHECK_RUN_BYTES + 1])
{
	static const char *const names[] = {"kind", "run", "id"};
	static const struct {
		const char *name;
		enum check_kind kind;
	} kinds[] = {
		{"request", CHECK_REQUEST}, {"response", CHECK_RESPONSE}, {"finding", CHECK_FINDING},
		{"upgrade", CHECK_UPGRADE}, {"start", CHECK_START},	  {"mark", CHECK_MARK},
		{"blind", CHECK_BLIND},	    {"off_loopback", CHECK_OFF_LOOPBACK}, {"summary", CHECK_SUMMARY},
		{"hole", CHECK_OTHER},	    {"broken", CHECK_OTHER},	  {"hop", CHECK_OTHER},
	};
	struct bytes values[COUNT_OF(names)];
	const char *wrong = pick(line, names, COUNT_OF(names), values);
	size_t size;

	if (wrong)
		return wrong;
	size = json_scan_text(values[1], (uint8_t *)ret_run, CHECK_RUN_BYTES, NULL);
	ret_run[size] = '\0';
	if (size == 0 || strlen(ret_run) < size)
		return "it has no run";
	if (!values[0].size) {
		*ret_kind = CHECK_LEDGER;
		return values[2].size ? NULL : "it is neither a ledger line nor an event";
	}
	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		if (json_scan_says(values[0], kinds[i].name)) {
			*ret_kind = kinds[i].kind;
			return NULL;
		}
	return "it is an event of a kind that this build does not know";
}

/* ---- requests ---- */

enum request_field {
	FIELD_T, FIELD_PATH, FIELD_LEN, FIELD_SHA, FIELD_IDEM, FIELD_METHOD, FIELD_QUERY, FIELD_HOST, FIELD_ID,
	FIELD_SCHEMA, FIELD_CLASS, FIELD_CLASS_BY, FIELD_FINGERPRINT, FIELD_PROMPT, FIELD_PRINCIPAL, FIELD_CANON,
	FIELD_IDEM_FROM, FIELD_COMPLETE, FIELD_HOLES, FIELD_MARK, FIELD_PID, FIELD_START_NS, FIELD_COMM, FIELD_CGROUP,
	FIELD_NETNS, FIELD_SRC, FIELD_DST, FIELD_TOOL, FIELD_MODEL, FIELD_RETRY_HINT, FIELD_T_FIRST, FIELD_WHY, FIELD_COUNT,
};

static const char *const request_fields[FIELD_COUNT] = {
	"t", "path", "len", "sha", "idem", "method", "query", "host", "id",
	"schema", "class", "class_by", "fingerprint", "prompt_fingerprint", "principal", "canon",
	"idem_from", "request_complete", "holes", "mark", "pid", "start_ns", "comm", "cgroup",
	"netns", "src", "dst", "tool", "model", "retry_hint", "t_first", "why",
};

/* The text of a value, kept in request->texts, which has room; empty for what is not there. */
static struct bytes keep_text(struct check_request *request, struct bytes value)
{
	uint8_t *room = request->texts.data + request->texts.size;
	size_t size = json_scan_text(value, room, value.size, NULL);

	room[size] = '\0';
	request->texts.size += size + 1;
	return (struct bytes){room, size};
}

/* The same of a value that stays JSON. */
static struct bytes keep_json(struct check_request *request, struct bytes value)
{
	uint8_t *room = request->texts.data + request->texts.size;

	memcpy(room, value.data, value.size);
	request->texts.size += value.size;
	return (struct bytes){room, value.size};
}

static bool read_digest(struct bytes value, bool *ret_has, struct digest *ret_digest)
{
	*ret_has = !is_absent(value);
	return !*ret_has || read_hex(value, ret_digest->byte, DIGEST_BYTES);
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* The words of class_by that say what the class rests on; see classify*.c. */
static enum class_source source_of(const char *by, enum call_class class)
{
	if (starts_with(by, "policy rule "))
		return CLASS_BY_POLICY;
	if (starts_with(by, "method "))
		return CLASS_BY_METHOD;
	if (starts_with(by, "tool prefix "))
		return CLASS_BY_TOOL_NAME;
	if (starts_with(by, "path segment ") || starts_with(by, "google verb :") || starts_with(by, "llm path embed") ||
	    starts_with(by, "llm path :embed") || starts_with(by, "llm path :batchEmbed"))
		return CLASS_BY_PATH;
	return class == CLASS_READ || class == CLASS_LLM ? CLASS_BY_PROTOCOL : CLASS_BY_PATH;
}

static bool says_write(const char *by)
{
	return starts_with(by, "policy rule ") || starts_with(by, "tool prefix ") || starts_with(by, "a2a ") ||
	       starts_with(by, "mcp annotation ") || strcmp(by, "graphql mutation") == 0 ||
	       strcmp(by, "json-rpc tasks/cancel") == 0;
}

static bool says_idempotent(const char *by)
{
	static const char *const all[] = {
		"method PUT",
		"method DELETE",
		"mcp annotation idempotentHint",
		"mcp resources/subscribe",
		"mcp resources/unsubscribe",
		"json-rpc tasks/cancel",
		"a2a tasks:cancel",
		"a2a CancelTask",
		"a2a DeleteTaskPushNotificationConfig",
		"a2a tasks/pushNotificationConfig/delete",
		"a2a tasks/pushNotificationConfig/set",
	};

	for (size_t i = 0; i < COUNT_OF(all); i++)
		if (strcmp(by, all[i]) == 0)
			return true;
	return false;
}

static const char *class_name_of(size_t i)
{
	return call_class_name((enum call_class)i);
}

static bool read_class(struct check_request *request, const struct bytes *values)
{
	struct call *call = &request->call;
	size_t class = read_name(values[FIELD_CLASS], class_name_of, CLASS_TELEMETRY + 1);

	if (class > CLASS_TELEMETRY && !is_absent(values[FIELD_CLASS]))
		return false;
	call->class = class > CLASS_TELEMETRY ? CLASS_MUTATING : (enum call_class)class;
	call->class_by = (const char *)keep_text(request, values[FIELD_CLASS_BY]).data;
	call->class_source = source_of(call->class_by, call->class);
	call->known_write = call->class == CLASS_MUTATING && says_write(call->class_by);
	call->idempotent_hint = says_idempotent(call->class_by) ||
				(call->class_source == CLASS_BY_POLICY && (bytes_equal(call->method, BYTES("PUT")) ||
									   bytes_equal(call->method, BYTES("DELETE"))));
	return true;
}

/* "unknown" is a key that was not seen or is none, unless it is a key of that text. */
static void read_key(struct check_request *request, const struct bytes *values, struct bytes why)
{
	struct call *call = &request->call;
	bool is_list = why.size && memmem(why.data, why.size, "is a list or was sent twice", 27);

	call->idem_state = IDEM_ABSENT;
	if (json_scan_is_null(values[FIELD_IDEM]))
		return;
	call->idem_state = IDEM_PRESENT;
	if (is_unknown(values[FIELD_IDEM]) && is_list)
		call->idem_state = IDEM_INVALID;
	else if (is_unknown(values[FIELD_IDEM]) && is_absent(values[FIELD_IDEM_FROM]))
		call->idem_state = IDEM_UNKNOWN;
	else
		call->idem = keep_text(request, values[FIELD_IDEM]);
	call->idem_from = (const char *)keep_text(request, values[FIELD_IDEM_FROM]).data;
}

static bool read_process(struct check_request *request, const struct bytes *values)
{
	struct process *process = &request->call.process;
	uint64_t pid = 0, netns;
	struct bytes comm;

	if (!is_absent(values[FIELD_PID]) &&
	    (!read_unsigned(values[FIELD_PID], &pid) || !read_unsigned(values[FIELD_START_NS], &process->start_ns)))
		return false;
	process->tgid = (uint32_t)pid;
	comm = is_absent(values[FIELD_COMM]) ? (struct bytes){0} : keep_text(request, values[FIELD_COMM]);
	snprintf(process->comm, sizeof(process->comm), "%.*s", (int)comm.size, (const char *)comm.data);
	if (!is_absent(values[FIELD_CGROUP])) { /* its number is not in the line; any that is equal for equal paths will do */
		struct bytes path = keep_text(request, values[FIELD_CGROUP]);

		for (size_t i = 0; i < path.size; i++)
			process->cgroup_id = (process->cgroup_id ^ path.data[i]) * 0x100000001b3ULL + 1;
	}
	if (!read_unsigned(values[FIELD_NETNS], &netns))
		return false;
	request->call.netns = (uint32_t)netns;
	return read_endpoint(values[FIELD_SRC], &request->call.client) &&
	       read_endpoint(values[FIELD_DST], &request->call.server);
}

static void read_target(struct check_request *request, const struct bytes *values)
{
	struct call *call = &request->call;

	call->method = is_absent(values[FIELD_METHOD]) ? (struct bytes){0} : keep_text(request, values[FIELD_METHOD]);
	call->path = is_unknown(values[FIELD_PATH]) ? (struct bytes){0} : keep_text(request, values[FIELD_PATH]);
	call->has_query = !is_absent(values[FIELD_QUERY]);
	if (call->has_query)
		call->query = keep_text(request, values[FIELD_QUERY]);
	call->has_host = !is_absent(values[FIELD_HOST]);
	if (call->has_host)
		call->host = keep_text(request, values[FIELD_HOST]);
	if (!is_absent(values[FIELD_TOOL]))
		call->tool = keep_text(request, values[FIELD_TOOL]);
	if (!is_absent(values[FIELD_MODEL]))
		call->model = keep_text(request, values[FIELD_MODEL]);
	if (json_scan_is_object(values[FIELD_RETRY_HINT]))
		call->retry_hint = keep_json(request, values[FIELD_RETRY_HINT]);
	/* Where a protocol has volatile members, the fingerprint says whether two bodies are one. */
	if (call->tool.size)
		call->protocol = PROTOCOL_JSON_RPC;
	else if (call->model.size)
		call->protocol = PROTOCOL_LLM;
	if (bytes_equal(values[FIELD_CANON], BYTES("\"form\"")))
		call->content_type = BYTES("application/x-www-form-urlencoded");
	else if (bytes_equal(values[FIELD_CANON], BYTES("\"multipart\"")))
		call->content_type = BYTES("multipart/form-data");
}

static const char *read_numbers(struct check_request *request, const struct bytes *values)
{
	struct call *call = &request->call;
	uint64_t schema;

	if (!read_unsigned(values[FIELD_SCHEMA], &schema))
		return "it has no schema";
	if (schema != 1)
		return "it is of another schema than this build reads";
	if (!read_hex(values[FIELD_ID], call->id, CALL_ID_BYTES))
		return "it has no good id";
	if (!read_time(values[FIELD_T], &call->seen_ns) || !read_time(values[FIELD_T_FIRST], &call->first_ns))
		return "it has no good time";
	if (!read_bool(values[FIELD_COMPLETE], &call->request_complete) ||
	    !read_unsigned(values[FIELD_HOLES], &call->request_holes) ||
	    !read_unsigned(values[FIELD_LEN], &call->body_bytes))
		return "it does not say how the request ended";
	if (!read_digest(values[FIELD_SHA], &call->has_sha, &call->sha) ||
	    !read_digest(values[FIELD_FINGERPRINT], &call->has_fingerprint, &call->fingerprint) ||
	    !read_digest(values[FIELD_PROMPT], &call->has_prompt_fingerprint, &call->prompt_fingerprint))
		return "it has a hash that is none";
	call->has_principal = !is_absent(values[FIELD_PRINCIPAL]);
	if (call->has_principal && !read_hex(values[FIELD_PRINCIPAL], call->principal.byte, 16))
		return "it has a principal that is none";
	return NULL;
}

const char *check_row_request(struct bytes line, struct check_request *request)
{
	struct buffer texts = request->texts;
	struct bytes values[FIELD_COUNT];
	const char *wrong = pick(line, request_fields, FIELD_COUNT, values);

	*request = (struct check_request){.texts = texts};
	buffer_clear(&request->texts);
	if (wrong)
		return wrong;
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (!values[i].size)
			return "a field of the schema is missing";
	/* No text is longer than in the line, each gets a NUL. */
	if (buffer_reserve(&request->texts, line.size + FIELD_COUNT))
		return "out of memory";
	wrong = read_numbers(request, values);
	if (wrong)
		return wrong;
	read_target(request, values);
	read_key(request, values, is_absent(values[FIELD_WHY]) ? (struct bytes){0} : keep_text(request, values[FIELD_WHY]));
	request->has_mark = json_scan_is_string(values[FIELD_MARK]);
	request->mark = keep_text(request, values[FIELD_MARK]);
	if (!read_class(request, values))
		return "it has a class that this build does not know";
	if (!read_process(request, values))
		return "it does not say who asked whom";
	request->call.sent_ns = request->call.request_complete ? request->call.seen_ns : 0;
	request->call.retry_after_s = -1;
	request->call.undecidable = request->call.request_holes != 0;
	if (!is_unknown(values[FIELD_PATH]))
		request->call.head = &request->head;
	return NULL;
}

void check_request_done(struct check_request *request)
{
	buffer_done(&request->texts);
}

/* ---- other events ---- */

static const char *ended_name_of(size_t i)
{
	return call_ended_name((enum call_ended)i);
}

static const char *delivered_name_of(size_t i)
{
	return call_delivered_name((enum call_delivered)i);
}

/* -1 for null. Lines of before these counts do not have all of them. */
static bool read_tokens(struct bytes value, int64_t *ret_tokens)
{
	uint64_t tokens;

	*ret_tokens = -1;
	if (!value.size || json_scan_is_null(value))
		return true;
	if (!read_unsigned(value, &tokens) || tokens > INT64_MAX)
		return false;
	*ret_tokens = (int64_t)tokens;
	return true;
}

static bool read_usage(struct bytes object, struct usage *ret_usage)
{
	static const char *const names[] = {"input_tokens",	  "output_tokens",    "cached_tokens",
					    "cache_write_tokens", "reasoning_tokens", "final"};
	struct bytes values[COUNT_OF(names)];
	struct usage usage = {-1, -1, -1, -1, -1, false, false};

	*ret_usage = usage;
	if (!object.size || json_scan_is_null(object))
		return true;
	usage.seen = true;
	if (pick(object, names, COUNT_OF(names), values) || !read_tokens(values[0], &usage.input_tokens) ||
	    !read_tokens(values[1], &usage.output_tokens) || !read_tokens(values[2], &usage.cached_tokens) ||
	    !read_tokens(values[3], &usage.cache_write_tokens) || !read_tokens(values[4], &usage.reasoning_tokens) ||
	    !read_bool(values[5], &usage.final))
		return false;
	*ret_usage = usage;
	return true;
}

/* What the model said: usage, answer_complete (null = nothing that has an end), usage_refused. */
static bool read_answer(const struct bytes values[3], struct check_response *response)
{
	if (values[1].size && !json_scan_is_null(values[1]) && !read_bool(values[1], &response->answer_complete))
		return false;
	response->answer_unfinished = bytes_equal(values[1], BYTES("false"));
	if (values[2].size && !read_unsigned(values[2], &response->usage_refused))
		return false;
	return read_usage(values[0], &response->usage);
}

const char *check_row_response(struct bytes line, struct check_response *ret_response)
{
	static const char *const names[] = {"t",     "of",	"status",    "http.response.body.size", "response_complete",
					    "ended", "t_first", "delivered", "delivered_bytes",		"closed_first",
					    "replayed", "usage", "answer_complete", "usage_refused", "t_closed", "request_read"};
	struct bytes values[COUNT_OF(names)];
	const char *wrong = pick(line, names, COUNT_OF(names), values);
	struct check_response response = {.ended = CALL_ENDED_NONE};
	uint64_t status = 0;
	size_t ended, delivered;

	if (wrong)
		return wrong;
	response.unseen = is_unknown(values[2]) || is_unknown(values[5]);
	ended = read_name(values[5], ended_name_of, CALL_ENDED_CUT + 1);
	delivered = read_name(values[7], delivered_name_of, DELIVERED_NONE + 1);
	if (!read_time(values[0], &response.ended_ns) || !read_hex(values[1], response.of, CALL_ID_BYTES) ||
	    (!is_absent(values[2]) && (!read_unsigned(values[2], &status) || status > 999)) ||
	    (!is_absent(values[3]) && !read_unsigned(values[3], &response.body_bytes)) ||
	    !read_bool(values[4], &response.complete) || (ended > CALL_ENDED_CUT && !response.unseen) ||
	    (!is_absent(values[6]) && !read_time(values[6], &response.first_ns)) || delivered > DELIVERED_NONE ||
	    (!is_absent(values[8]) && !read_unsigned(values[8], &response.delivered_bytes)) ||
	    !read_bool(values[10], &response.replayed) || !read_answer(&values[11], &response) ||
	    (values[14].size && !is_absent(values[14]) && !read_time(values[14], &response.closed_ns)))
		return "a field of the response is not as it should be";
	response.status = (unsigned int)status;
	response.ended = ended > CALL_ENDED_CUT ? CALL_ENDED_NONE : (enum call_ended)ended;
	response.delivered = (enum call_delivered)delivered;
	response.request_read_all = json_scan_says(values[15], "all");
	response.request_read_known = response.request_read_all || json_scan_says(values[15], "part");
	if (json_scan_says(values[9], "client"))
		response.closed_first = CLOSER_CLIENT;
	else if (json_scan_says(values[9], "server"))
		response.closed_first = CLOSER_SERVER;
	*ret_response = response;
	return NULL;
}

static const char *finding_name_of(size_t i)
{
	return finding_name((enum finding)i);
}

/* "dup_after_timeout high" -> the finding; FINDING_COUNT for none. */
static enum finding finding_of_verdict(struct bytes value)
{
	uint8_t text[64];
	struct bytes verdict = {text, json_scan_text(value, text, sizeof(text), NULL)};

	verdict.size = bytes_find(verdict, ' ');
	for (size_t i = 0; i < FINDING_COUNT; i++)
		if (bytes_equal(verdict, bytes_of_string(finding_name((enum finding)i))))
			return (enum finding)i;
	return FINDING_COUNT;
}

const char *check_row_finding(struct bytes line, struct check_finding *ret_finding)
{
	static const char *const names[] = {"finding", "of", "earlier", "masked", "rule", "to"};
	struct bytes values[COUNT_OF(names)];
	const char *wrong = pick(line, names, COUNT_OF(names), values);
	struct check_finding finding = {0};

	if (wrong)
		return wrong;
	finding.is_upgrade = values[5].size != 0;
	finding.finding = finding.is_upgrade ? finding_of_verdict(values[5])
					     : (enum finding)read_name(values[0], finding_name_of, FINDING_COUNT);
	finding.has_earlier = values[2].size && !is_absent(values[2]);
	if (finding.finding == FINDING_COUNT || !read_hex(values[1], finding.of, CALL_ID_BYTES) ||
	    (finding.has_earlier && !read_hex(values[2], finding.earlier, CALL_ID_BYTES)))
		return "a field of the finding is not as it should be";
	finding.masked = json_scan_is_string(values[3]);
	finding.row_open = bytes_starts_with(values[4], BYTES("\"open/")) ||
			   finding.finding == FINDING_LLM_IDENTICAL_IN_FLIGHT;
	finding.row_refused = bytes_starts_with(values[4], BYTES("\"refused/"));
	finding.row_undecidable =
		bytes_starts_with(values[4], BYTES("\"undecidable/")) ||
		(finding.finding == FINDING_UNDECIDABLE &&
		 (finding.is_upgrade || bytes_starts_with(values[4], BYTES("\"model call"))));
	*ret_finding = finding;
	return NULL;
}

const char *check_row_start(struct bytes line, struct check_start *ret_start)
{
	static const char *const names[] = {"version", "schema", "policy", "options"};
	struct bytes values[COUNT_OF(names)];
	const char *wrong = pick(line, names, COUNT_OF(names), values);
	struct check_start start = {0};
	uint64_t schema;
	size_t size;

	if (wrong)
		return wrong;
	if (!read_unsigned(values[1], &schema) || schema != 1)
		return "it is of another schema than this build reads";
	if (!read_digest(values[2], &start.has_policy, &start.policy_sha) || !json_scan_is_object(values[3]))
		return "a field of the start is not as it should be";
	size = json_scan_text(values[0], (uint8_t *)start.version, sizeof(start.version) - 1, NULL);
	start.version[size] = '\0';
	start.options = values[3];
	*ret_start = start;
	return NULL;
}

static const char *blind_name_of(size_t i)
{
	return blind_kind_name((enum blind_kind)i);
}

const char *check_row_blind(struct bytes line, struct check_blind *ret_blind)
{
	static const char *const names[] = {"blind_kind", "pid", "comm", "bytes_out", "bytes_in"};
	struct check_blind blind = {0};
	struct bytes values[COUNT_OF(names)];
	const char *wrong = pick(line, names, COUNT_OF(names), values);
	uint64_t pid = 0;
	size_t kind;

	if (wrong)
		return wrong;
	kind = read_name(values[0], blind_name_of, BLIND_COUNT);
	if (kind == BLIND_COUNT)
		return "it is blind in a way that this build does not know";
	if ((values[1].size && !is_absent(values[1]) && !read_unsigned(values[1], &pid)) ||
	    (values[3].size && !is_absent(values[3]) && !read_unsigned(values[3], &blind.bytes_out)) ||
	    (values[4].size && !is_absent(values[4]) && !read_unsigned(values[4], &blind.bytes_in)))
		return "a field of the blind stream is not as it should be";
	blind.kind = (enum blind_kind)kind;
	blind.process.tgid = (uint32_t)pid;
	json_scan_text(values[2], (uint8_t *)blind.process.comm, WIRE_COMM_BYTES, NULL);
	*ret_blind = blind;
	return NULL;
}

const char *check_row_off_loopback(struct bytes line, bool *ret_refused)
{
	static const char *const names[] = {"refused"};
	struct bytes value;
	const char *wrong = pick(line, names, 1, &value);

	if (!wrong && !read_bool(value, ret_refused))
		wrong = "it does not say whether the connection was refused";
	return wrong;
}

/* Members of an object that may be missing, and are 0 then. */
static const char *read_counts(struct bytes object, const char *const *names, size_t count, uint64_t *const *numbers)
{
	struct bytes values[8];
	const char *wrong = pick(object, names, count, values);

	for (size_t i = 0; !wrong && i < count; i++)
		if (values[i].size && !read_unsigned(values[i], numbers[i]))
			wrong = "a number of the summary is none";
	return wrong;
}

const char *check_row_summary(struct bytes line, struct check_summary *ret_summary)
{
	static const char *const names[] = {"bytes", "drops", "incomplete"};
	static const char *const bytes_names[] = {"accepted", "in_messages", "in_holes", "in_blind"};
	static const char *const drop_names[] = {"no_flow", "no_call", "lifecycle_records"};
	static const char *const other_names[] = {"recursion_misses", "wall_ms", "evicted", "requests"};
	struct check_summary summary = {0};
	uint64_t *const bytes_numbers[] = {&summary.accepted_bytes, &summary.message_bytes, &summary.hole_bytes,
					   &summary.blind_bytes};
	uint64_t *const drop_numbers[] = {&summary.no_flow, &summary.no_call, &summary.lifecycle_lost};
	uint64_t *const other_numbers[] = {&summary.recursion_misses, &summary.wall_ms, &summary.evicted,
					   &summary.requests};
	struct bytes values[COUNT_OF(names)];
	const char *wrong = pick(line, names, COUNT_OF(names), values);

	if (!wrong)
		wrong = read_counts(values[0], bytes_names, COUNT_OF(bytes_names), bytes_numbers);
	if (!wrong)
		wrong = read_counts(values[1], drop_names, COUNT_OF(drop_names), drop_numbers);
	if (!wrong)
		wrong = read_counts(line, other_names, COUNT_OF(other_names), other_numbers);
	if (!wrong && !json_scan_is_array(values[2]))
		wrong = "the summary does not say whether anything was not seen";
	summary.incomplete = values[2];
	if (!wrong)
		*ret_summary = summary;
	return wrong;
}
