/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers of every model API that usage.c reads, plain and as streams, and what
 * each says: "input/output/cached/cache write/reasoning final|bound
 * complete|unfinished|- finish id model", "-" for what is not reported.
 */
#ifndef NIGHTCLERK_USAGE_ROWS_H
#define NIGHTCLERK_USAGE_ROWS_H

#include <stddef.h>

#define ROW_PIECES 10

struct usage_row {
	const char *name;
	const char *path;
	const char *request;
	const char *plain; /* NULL = this API only streams so */
	const char *plain_says;
	const char *cut_plain; /* the plain answer ends behind these words */
	const char *cut_plain_says;
	const char *type; /* of the stream */
	const char *pieces[ROW_PIECES]; /* of the stream: events, lines */
	const char *stream_says;
	size_t cut_at; /* the stream ends inside that piece */
	const char *cut_says;
};

#define SSE "text/event-stream"

static const struct usage_row usage_rows[] = {
	{
		.name = "OpenAI chat",
		.path = "/v1/chat/completions",
		.request = "{\"model\":\"demo-large\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}",
		.plain = "{\"id\":\"cmpl-9\",\"object\":\"chat.completion\",\"model\":\"demo-large-1\",\"choices\":[{\"index\":0,"
			 "\"finish_reason\":\"stop\",\"message\":{\"role\":\"assistant\",\"content\":\"\\\"usage\\\":{\"}}],"
			 "\"usage\":{\"prompt_tokens\":812,\"completion_tokens\":41,\"total_tokens\":853,"
			 "\"prompt_tokens_details\":{\"cached_tokens\":256,\"cache_write_tokens\":12},"
			 "\"completion_tokens_details\":{\"reasoning_tokens\":32}}}",
		.plain_says = "812/41/256/12/32 final complete stop cmpl-9 demo-large-1",
		.cut_plain = "\"completion_tokens\":41,",
		.cut_plain_says = "812/41/-/-/- bound unfinished stop cmpl-9 demo-large-1",
		.type = SSE,
		.pieces =
			{
				"data: {\"id\":\"c1\",\"model\":\"demo-large-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"},"
				"\"finish_reason\":null}],\"usage\":null}\n\n",
				": keep-alive\n\n",
				"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"},\"finish_reason\":null}],\"usage\":null}\n\n",
				"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}],\"usage\":null}\n\n",
				"data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":812,\"completion_tokens\":41,"
				"\"prompt_tokens_details\":{\"cached_tokens\":0},\"completion_tokens_details\":{\"reasoning_tokens\":0}}}\n\n",
				"data: [DONE]\n\n",
			},
		.stream_says = "812/41/0/-/0 final complete length c1 demo-large-1",
		.cut_at = 3,
		.cut_says = "- - unfinished - c1 demo-large-1",
	},
	{
		.name = "OpenAI chat, usage on the last content chunk (Azure)",
		.path = "/openai/deployments/d/chat/completions?api-version=1",
		.request = "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"stream\":true}",
		.type = SSE,
		.pieces =
			{
				"data: {\"id\":\"c2\",\"model\":\"demo\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"},\"finish_reason\":null}]}\r\n\r\n",
				"data: {\"id\":\"c2\",\"model\":\"demo\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],"
				"\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}\r\n\r\n",
			},
		.stream_says = "5/7/-/-/- final complete stop c2 demo",
		.cut_at = 1,
		.cut_says = "- - unfinished - c2 demo",
	},
	{
		.name = "OpenAI responses",
		.path = "/v1/responses",
		.request = "{\"model\":\"demo-mini\",\"input\":\"Hi\"}",
		.plain = "{\"id\":\"resp_2\",\"object\":\"response\",\"status\":\"incomplete\",\"error\":null,"
			 "\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"model\":\"demo-mini\","
			 "\"output\":[{\"id\":\"msg_1\",\"status\":\"in_progress\",\"model\":\"no\"}],"
			 "\"usage\":{\"input_tokens\":44,\"input_tokens_details\":{\"cached_tokens\":40},\"output_tokens\":17,"
			 "\"output_tokens_details\":{\"reasoning_tokens\":9},\"total_tokens\":61}}",
		.plain_says = "44/17/40/-/9 final complete incomplete resp_2 demo-mini",
		.cut_plain = "\"output_tokens\":17,",
		.cut_plain_says = "44/17/40/-/- bound unfinished incomplete resp_2 demo-mini",
		.type = SSE,
		.pieces =
			{
				"event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_3\","
				"\"status\":\"in_progress\",\"model\":\"demo-mini\",\"usage\":null}}\n\n",
				"event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"item\":{\"id\":\"msg_1\","
				"\"status\":\"completed\"}}\n\n",
				"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_3\","
				"\"status\":\"completed\",\"model\":\"demo-mini\",\"usage\":{\"input_tokens\":44,"
				"\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":17,"
				"\"output_tokens_details\":{\"reasoning_tokens\":0}}}}\n\n",
			},
		.stream_says = "44/17/0/-/0 final complete completed resp_3 demo-mini",
		.cut_at = 2,
		.cut_says = "- - unfinished - resp_3 demo-mini",
	},
	{
		.name = "OpenAI embeddings",
		.path = "/v1/embeddings",
		.request = "{\"model\":\"embed\",\"input\":\"Hi\"}",
		.plain = "{\"object\":\"list\",\"model\":\"embed-1\",\"usage\":{\"prompt_tokens\":8,\"total_tokens\":8},"
			 "\"data\":[{\"object\":\"embedding\",\"index\":0,\"embedding\":[-0.006929283,1e-3,0.5]}]}",
		.plain_says = "8/0/-/-/- final complete - - embed-1",
		.cut_plain = "\"prompt_tokens\":8,",
		.cut_plain_says = "8/-/-/-/- bound unfinished - - embed-1",
	},
	{
		.name = "Anthropic messages",
		.path = "/v1/messages",
		.request = "{\"model\":\"demo-opus\",\"max_tokens\":99,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}",
		.plain = "{\"id\":\"msg_2\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"demo-opus\","
			 "\"content\":[{\"type\":\"text\",\"text\":\"Mon\"}],\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":812,"
			 "\"cache_read_input_tokens\":4096,\"cache_creation_input_tokens\":100,"
			 "\"cache_creation\":{\"ephemeral_5m_input_tokens\":60,\"ephemeral_1h_input_tokens\":40},"
			 "\"output_tokens\":9,\"output_tokens_details\":{\"thinking_tokens\":4}}}",
		.plain_says = "5008/9/4096/100/4 final complete end_turn msg_2 demo-opus",
		.cut_plain = "\"cache_read_input_tokens\":4096,",
		.cut_plain_says = "4908/-/4096/-/- bound unfinished end_turn msg_2 demo-opus",
		.type = SSE,
		.pieces =
			{
				"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"demo-opus\","
				"\"stop_reason\":null,\"usage\":{\"input_tokens\":812,\"cache_read_input_tokens\":4096,"
				"\"cache_creation\":{\"ephemeral_5m_input_tokens\":60,\"ephemeral_1h_input_tokens\":40},\"output_tokens\":2}}}\n\n",
				"event: ping\ndata: {\"type\":\"ping\"}\n\n",
				"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\","
				"\"id\":\"toolu_1\"}}\n\n",
				"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},"
				"\"usage\":{\"output_tokens\":15}}\n\n",
				"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
			},
		.stream_says = "5008/15/4096/100/- final complete tool_use msg_1 demo-opus",
		.cut_at = 3,
		.cut_says = "5008/2/4096/100/- bound unfinished - msg_1 demo-opus",
	},
	{
		.name = "Anthropic messages, the marker alone is missing",
		.path = "/v1/messages",
		.request = "{\"model\":\"demo-opus\",\"max_tokens\":99,\"messages\":[]}",
		.type = SSE,
		.pieces =
			{
				"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"demo-opus\","
				"\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
				"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},"
				"\"usage\":{\"input_tokens\":3,\"output_tokens\":15}}\n\n",
			},
		.stream_says = "3/15/-/-/- final unfinished end_turn msg_1 demo-opus",
		.cut_at = 1,
		.cut_says = "3/1/-/-/- bound unfinished - msg_1 demo-opus",
	},
	{
		.name = "Gemini generateContent",
		.path = "/v1beta/models/gemini-demo:streamGenerateContent?alt=sse",
		.request = "{\"contents\":[{\"parts\":[{\"text\":\"Hi\"}]}]}",
		.plain = "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"A\"}]},\"finishReason\":\"STOP\"}],"
			 "\"usageMetadata\":{\"promptTokenCount\":100,\"cachedContentTokenCount\":64,\"candidatesTokenCount\":20,"
			 "\"thoughtsTokenCount\":30,\"toolUsePromptTokenCount\":5,\"totalTokenCount\":155},"
			 "\"modelVersion\":\"gemini-demo-1\",\"responseId\":\"g1\"}",
		.plain_says = "105/50/64/-/30 final complete STOP g1 gemini-demo-1",
		.cut_plain = "\"candidatesTokenCount\":20,",
		.cut_plain_says = "100/20/64/-/- bound unfinished STOP - -",
		.type = SSE,
		.pieces =
			{
				"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"A\"}]},\"index\":0}],\"usageMetadata\":{"
				"\"promptTokenCount\":100,\"totalTokenCount\":100},\"modelVersion\":\"gemini-demo-1\",\"responseId\":\"g2\"}\r\n\r\n",
				"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"B\"}]},\"index\":0}],\"usageMetadata\":{"
				"\"promptTokenCount\":100,\"candidatesTokenCount\":3}}\r\n\r\n",
				"data: {\"candidates\":[{\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":100,"
				"\"candidatesTokenCount\":20,\"thoughtsTokenCount\":30}}\r\n\r\n",
			},
		.stream_says = "100/50/-/-/30 final complete STOP g2 gemini-demo-1",
		.cut_at = 2,
		.cut_says = "100/3/-/-/- bound unfinished - g2 gemini-demo-1",
	},
	{
		.name = "Gemini streamGenerateContent, an array that grows",
		.path = "/v1beta/models/gemini-demo:streamGenerateContent",
		.request = "{\"contents\":[{\"parts\":[{\"text\":\"Hi\"}]}]}",
		.type = "application/json",
		.pieces =
			{
				"[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"A\"}]}}],\"usageMetadata\":{\"promptTokenCount\":100},"
				"\"modelVersion\":\"gemini-demo-1\",\"responseId\":\"g3\"}\n",
				",\n{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"B\"}]}}],\"usageMetadata\":{\"promptTokenCount\":100,"
				"\"candidatesTokenCount\":3}}\n",
				",\n{\"candidates\":[{\"finishReason\":\"MAX_TOKENS\"}],\"usageMetadata\":{\"promptTokenCount\":100,"
				"\"candidatesTokenCount\":20,\"thoughtsTokenCount\":30}}\n",
				"]\n",
			},
		.stream_says = "100/50/-/-/30 final complete MAX_TOKENS g3 gemini-demo-1",
		.cut_at = 2,
		.cut_says = "100/3/-/-/- bound unfinished MAX_TOKENS g3 gemini-demo-1",
	},
	{
		.name = "Gemini interactions",
		.path = "/v1beta/interactions",
		.request = "{\"model\":\"gemini-demo\",\"input\":\"Hi\"}",
		.plain = "{\"id\":\"v1_a\",\"status\":\"completed\",\"model\":\"gemini-demo\",\"usage\":{\"total_input_tokens\":9,"
			 "\"total_output_tokens\":779,\"total_thought_tokens\":912,\"total_cached_tokens\":4,\"total_tokens\":1700},"
			 "\"steps\":[{\"type\":\"thought\"}]}",
		.plain_says = "9/1691/4/-/912 final complete completed v1_a gemini-demo",
		.cut_plain = "\"total_output_tokens\":779,",
		.cut_plain_says = "9/779/-/-/- bound unfinished completed v1_a gemini-demo",
		.type = SSE,
		.pieces =
			{
				"event: interaction.start\ndata: {\"event_type\":\"interaction.start\",\"interaction\":{\"id\":\"v1_b\","
				"\"model\":\"gemini-demo\",\"status\":\"in_progress\"}}\n\n",
				"event: content.delta\ndata: {\"event_type\":\"content.delta\",\"delta\":{\"type\":\"text\",\"text\":\"A\"}}\n\n",
				"event: interaction.complete\ndata: {\"event_type\":\"interaction.complete\",\"interaction\":{\"id\":\"v1_b\","
				"\"status\":\"completed\",\"usage\":{\"total_input_tokens\":9,\"total_output_tokens\":779,"
				"\"total_tool_use_tokens\":1,\"total_thought_tokens\":0}}}\n\n",
			},
		.stream_says = "10/779/-/-/0 final complete completed v1_b gemini-demo",
		.cut_at = 2,
		.cut_says = "- - unfinished - v1_b gemini-demo",
	},
	{
		.name = "Ollama chat",
		.path = "/api/chat",
		.request = "{\"model\":\"llama\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}",
		.plain = "{\"model\":\"llama:8b\",\"created_at\":\"2026-01-01T00:00:00Z\",\"message\":{\"role\":\"assistant\",\"content\":\"A\"},"
			 "\"done_reason\":\"stop\",\"done\":true,\"total_duration\":5589157167,\"prompt_eval_count\":26,\"eval_count\":298}",
		.plain_says = "26/298/-/-/- final complete stop - llama:8b",
		.cut_plain = "\"prompt_eval_count\":26,",
		.cut_plain_says = "26/-/-/-/- bound unfinished stop - llama:8b",
		.type = "application/x-ndjson",
		.pieces =
			{
				"{\"model\":\"llama:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"A\"},\"done\":false}\n",
				"{\"model\":\"llama:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"B\"},\"done\":false}\n",
				"{\"model\":\"llama:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"length\","
				"\"eval_count\":298}\n",
			},
		.stream_says = "-/298/-/-/- final complete length - llama:8b",
		.cut_at = 1,
		.cut_says = "- - unfinished - - llama:8b",
	},
	{
		.name = "Ollama generate",
		.path = "/api/generate",
		.request = "{\"model\":\"llama\",\"prompt\":\"Hi\"}",
		.plain = "{\"model\":\"llama:8b\",\"response\":\"A\",\"done\":true,\"done_reason\":\"stop\",\"context\":[1,2,3],"
			 "\"prompt_eval_count\":26,\"eval_count\":3}",
		.plain_says = "26/3/-/-/- final complete stop - llama:8b",
		.cut_plain = "\"context\":[1,2",
		.cut_plain_says = "- - unfinished stop - llama:8b",
		.type = "application/x-ndjson",
		.pieces =
			{
				"{\"model\":\"llama:8b\",\"response\":\"A\",\"done\":false}\n",
				"{\"model\":\"llama:8b\",\"response\":\"\",\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":26,\"eval_count\":3}\n",
			},
		.stream_says = "26/3/-/-/- final complete stop - llama:8b",
		.cut_at = 1,
		.cut_says = "- - unfinished - - llama:8b",
	},
	{
		.name = "vLLM, usage in every chunk",
		.path = "/v1/chat/completions",
		.request = "{\"model\":\"qwen\",\"messages\":[],\"stream\":true,\"stream_options\":{\"continuous_usage_stats\":true}}",
		.plain = "{\"id\":\"chatcmpl-1\",\"model\":\"qwen\",\"choices\":[{\"index\":0,\"finish_reason\":\"stop\"}],"
			 "\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":16}},"
			 "\"prompt_logprobs\":null}",
		.plain_says = "30/4/16/-/- final complete stop chatcmpl-1 qwen",
		.cut_plain = "\"prompt_tokens\":30,",
		.cut_plain_says = "30/-/-/-/- bound unfinished stop chatcmpl-1 qwen",
		.type = SSE,
		.pieces =
			{
				"data: {\"id\":\"chatcmpl-2\",\"model\":\"qwen\",\"choices\":[{\"index\":0,\"delta\":{}}],\"usage\":{\"prompt_tokens\":30,"
				"\"completion_tokens\":0,\"prompt_tokens_details\":null}}\n\n",
				"data: {\"id\":\"chatcmpl-2\",\"model\":\"qwen\",\"choices\":[{\"index\":0,\"delta\":{}}],\"usage\":{\"prompt_tokens\":30,"
				"\"completion_tokens\":2}}\n\n",
				"data: {\"id\":\"chatcmpl-2\",\"model\":\"qwen\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],"
				"\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":4}}\n\n",
				"data: [DONE]\n\n",
			},
		.stream_says = "30/4/-/-/- final complete stop chatcmpl-2 qwen",
		.cut_at = 2,
		.cut_says = "30/2/-/-/- bound unfinished - chatcmpl-2 qwen",
	},
	{
		.name = "llama.cpp completion",
		.path = "/completion",
		.request = "{\"prompt\":\"Hi\",\"n_predict\":8}",
		.plain = "{\"index\":0,\"content\":\"A\",\"tokens\":[],\"id_slot\":0,\"stop\":true,\"model\":\"m.gguf\",\"tokens_predicted\":8,"
			 "\"tokens_evaluated\":50,\"stop_type\":\"limit\",\"tokens_cached\":40,\"truncated\":false,"
			 "\"timings\":{\"prompt_n\":10,\"cache_n\":40,\"predicted_n\":8}}",
		.plain_says = "50/8/40/-/- final complete limit - m.gguf",
		.cut_plain = "\"tokens_evaluated\":50,",
		.cut_plain_says = "50/8/-/-/- bound unfinished - - m.gguf",
		.type = SSE,
		.pieces =
			{
				"data: {\"index\":0,\"content\":\"A\",\"tokens\":[1],\"stop\":false,\"id_slot\":0,\"tokens_predicted\":1,\"tokens_evaluated\":50}\n\n",
				"data: {\"content\":\"\",\"stop\":true,\"stop_type\":\"eos\",\"tokens_predicted\":8,\"tokens_evaluated\":50,"
				"\"tokens_cached\":57}\n\n",
			},
		.stream_says = "50/8/-/-/- final complete eos - -",
		.cut_at = 1,
		.cut_says = "50/1/-/-/- bound unfinished - - -",
	},
	{
		.name = "llama.cpp completion, timings alone",
		.path = "/completion",
		.request = "{\"prompt\":\"Hi\"}",
		.plain = "{\"content\":\"A\",\"stop\":true,\"stop_type\":\"word\",\"timings\":{\"prompt_n\":10,\"cache_n\":40,\"predicted_n\":8,"
			 "\"predicted_ms\":12.5}}",
		.plain_says = "50/8/40/-/- final complete word - -",
		.cut_plain = "\"prompt_n\":10,",
		.cut_plain_says = "10/-/-/-/- bound unfinished word - -",
	},
	{
		.name = "llama.cpp, OpenAI style",
		.path = "/v1/chat/completions",
		.request = "{\"model\":\"m\",\"messages\":[],\"id_slot\":1}",
		.plain = "{\"choices\":[{\"finish_reason\":\"stop\",\"index\":0}],\"model\":\"m.gguf\",\"id\":\"chatcmpl-x\","
			 "\"usage\":{\"completion_tokens\":8,\"prompt_tokens\":50},\"timings\":{\"cache_n\":40,\"prompt_n\":10,\"predicted_n\":8}}",
		.plain_says = "50/8/40/-/- final complete stop chatcmpl-x m.gguf",
		.cut_plain = "\"completion_tokens\":8,",
		.cut_plain_says = "-/8/-/-/- bound unfinished stop chatcmpl-x m.gguf",
		.type = SSE,
		.pieces =
			{
				"data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"content\":\"A\"}}],\"id\":\"chatcmpl-y\",\"model\":\"m.gguf\"}\n\n",
				"data: {\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"delta\":{}}],\"id\":\"chatcmpl-y\",\"model\":\"m.gguf\","
				"\"usage\":{\"completion_tokens\":8,\"prompt_tokens\":50,\"prompt_tokens_details\":{\"cached_tokens\":40}},"
				"\"timings\":{\"cache_n\":40,\"prompt_n\":10,\"predicted_n\":8}}\n\n",
				"data: [DONE]\n\n",
			},
		.stream_says = "50/8/40/-/- final complete stop chatcmpl-y m.gguf",
		.cut_at = 1,
		.cut_says = "- - unfinished - chatcmpl-y m.gguf",
	},
};

#define USAGE_ROW_COUNT (sizeof(usage_rows) / sizeof(usage_rows[0]))

#endif
