// SPDX-License-Identifier: BSD-2-Clause
// Real packages, each made to retry. Runs in the folder that npm installed into.
// usage: client.mjs CLIENT PORTS
//   CLIENT  one of the names below
//   PORTS   {"ENDING": port, ...} from server.py: one logical call on each, all at once
import http from "node:http";

const [name, ports] = process.argv.slice(2);
const TIMEOUT_MS = process.env.NIGHTCLERK_SLOW ? 8000 : 2000; // of all endings at once, the package's own start included
const order = { sku: "bolt-m8", qty: 40 };

async function openai(port, ending) {
	const { default: OpenAI } = await import("openai");
	const client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "k", maxRetries: 1, timeout: TIMEOUT_MS });
	if (ending === "reuse")
		await client.models.list();
	await client.chat.completions.create({ model: "m", messages: [{ role: "user", content: "hello" }] });
}

async function anthropic(port, ending) {
	const { default: Anthropic } = await import("@anthropic-ai/sdk");
	const client = new Anthropic({ baseURL: `http://127.0.0.1:${port}`, apiKey: "k", maxRetries: 1, timeout: TIMEOUT_MS });
	if (ending === "reuse")
		await client.models.list();
	await client.messages.create({ model: "m", max_tokens: 8, messages: [{ role: "user", content: "hello" }] });
}

async function stripe(port, ending) {
	const { default: Stripe } = await import("stripe");
	const client = new Stripe("k", { host: "127.0.0.1", port, protocol: "http", maxNetworkRetries: 1, timeout: TIMEOUT_MS });
	if (ending === "reuse")
		await client.balance.retrieve();
	await client.charges.create({ amount: 5000, currency: "eur", source: "tok_demo" });
}

async function axiosRetry(port, ending, method) {
	const { default: axios } = await import("axios");
	const { default: retry } = await import("axios-retry");
	const agent = new http.Agent({ keepAlive: true });
	const client = axios.create({ baseURL: `http://127.0.0.1:${port}`, timeout: TIMEOUT_MS, httpAgent: agent });
	retry(client, { retries: 1 });
	if (ending === "reuse")
		await client.get("/v1/orders/1");
	await client.request({ url: "/v1/orders", method, data: order }).finally(() => agent.destroy());
}

async function got(port, ending, methods) {
	const { default: got } = await import("got");
	const calculateDelay = ({ computedValue }) => (computedValue ? 50 : 0);
	const retry = methods ? { limit: 1, methods, calculateDelay } : { limit: 1, calculateDelay };
	await got.post(`http://127.0.0.1:${port}/v1/orders`, { json: order, retry, timeout: { request: TIMEOUT_MS } });
}

async function retryAgent(port, ending, methods) {
	const { Agent, RetryAgent, request } = await import("undici");
	const options = { maxRetries: 1, minTimeout: 50, ...(methods && { methods }) };
	const inner = new Agent({ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
	const answer = await request(`http://127.0.0.1:${port}/v1/orders`, {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: JSON.stringify(order),
		dispatcher: new RetryAgent(inner, options),
	});
	await answer.body.text();
}

// The SDK never sends tools/call again by itself: the loop of an agent does.
async function mcp(port, ending, tool) {
	const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
	const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
	const client = new Client({ name: "agent", version: "1" });
	await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)));
	await client.listTools();
	const timeout = ending === "resume" ? 10 * TIMEOUT_MS : TIMEOUT_MS; // it asks for the rest after a second
	const call = () => client.callTool({ name: tool, arguments: { title: "Belt slips" } }, undefined, { timeout });
	await call().catch(call);
	await client.close();
}

const clients = {
	openai,
	anthropic,
	stripe,
	"axios-retry POST": (port, ending) => axiosRetry(port, ending, "post"),
	"axios-retry PUT": (port, ending) => axiosRetry(port, ending, "put"),
	"got": got,
	"got for POST": (port, ending) => got(port, ending, ["POST"]),
	"undici": retryAgent,
	"undici for POST": (port, ending) => retryAgent(port, ending, ["POST"]),
	"mcp write tool": (port, ending) => mcp(port, ending, "create_ticket"),
	"mcp read tool": (port, ending) => mcp(port, ending, "read_gauge"),
};

// How the calls ended is for people who look into a failure: the test reads the ledger.
const calls = Object.entries(JSON.parse(ports)).map(([ending, port]) => clients[name](port, ending).then(
	() => console.log(ending, "answered"),
	error => console.log(ending, String(error), String(error.cause ?? ""))));
Promise.all(calls).then(() => process.exit(0)); // not awaited: stripe never settles a call whose answer was cut
