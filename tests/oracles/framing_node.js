// SPDX-License-Identifier: BSD-2-Clause
// The streams that framing.c reads, read by node's own HTTP server and client:
// one JSON line a stream, {messages, state}. A stream reaches them as a socket
// would bring it, through a Duplex; no network is touched.
"use strict";
const http = require("node:http");
const crypto = require("node:crypto");
const { Duplex } = require("node:stream");

const AT_ONCE = 200;

function readStreams(input) {
	const streams = [];
	let at = 0;
	const u8 = () => input[at++];
	const u32 = () => (at += 4, input.readUInt32LE(at - 4));
	const bytes = length => input.subarray(at, at += length);

	while (at < input.length) {
		const side = u8();
		const methods = Array.from({ length: u8() }, () => bytes(u8()).toString("latin1"));
		u32(); // the cut is for the other reader
		streams.push({ side, methods, bytes: bytes(u32()) });
	}
	return streams;
}

const hex = text => Buffer.from(text, "latin1").toString("hex");
// Long enough for every event of a stream whose bytes are all in memory.
const settled = async () => { for (let i = 0; i < 6; i++) await new Promise(setImmediate); };

// A socket whose other end sends these bytes and its FIN, and takes what it is sent.
function socketOf(bytes) {
	const socket = new Duplex({
		read() {},
		write(chunk, encoding, done) { done(); },
	});

	socket.setTimeout = socket.setNoDelay = socket.setKeepAlive = socket.ref = socket.unref = () => socket;
	// The FIN comes when the bytes have been read, as it does where they are many:
	// node drops what it has parsed but not yet told when both come at once.
	socket.deliver = async () => {
		socket.push(bytes);
		await settled();
		socket.push(null);
		await settled();
	};
	return socket;
}

// Counts and hashes a body; `whole` is set when its end was reached.
function follow(stream, head, messages) {
	const message = { head, length: 0, hash: crypto.createHash("sha256"), whole: false };

	messages.push(message);
	stream.on("data", piece => { message.length += piece.length; message.hash.update(piece); });
	stream.on("end", () => { message.whole = stream.complete; });
	stream.on("error", () => {});
	return message;
}

function withoutBody(head, messages) {
	messages.push({ head, length: 0, hash: crypto.createHash("sha256"), whole: true });
}

function resultOf(messages, state) {
	const whole = messages.filter(message => message.whole);

	return {
		messages: whole.map(({ head, length, hash }) => [...head, length, hash.digest("hex")]),
		state: state === "idle" && whole.length < messages.length ? "incomplete" : state,
	};
}

async function serve(stream) {
	const server = http.createServer({ requireHostHeader: false, connectionsCheckingInterval: 1 << 30 });
	const socket = socketOf(stream.bytes);
	const messages = [];
	let state = "idle";
	const answer = (request, response) => {
		follow(request, [hex(request.method), hex(request.url)], messages);
		response.end();
	};

	server.on("request", answer);
	server.on("checkContinue", answer);
	server.on("checkExpectation", answer);
	server.on("connect", request => {
		withoutBody([hex(request.method), hex(request.url)], messages);
		state = "tunnel";
	});
	server.on("clientError", error => {
		// A FIN inside a message is told as an error of the parser too.
		state = error.code === "HPE_INVALID_EOF_STATE" ? "incomplete" : `broken: ${error.code}`;
	});
	socket.on("error", () => {});
	server.emit("connection", socket);
	await socket.deliver();
	socket.destroy();
	return resultOf(messages, state);
}

async function ask(stream) {
	const socket = socketOf(stream.bytes);
	const messages = [];
	let state = "incomplete";
	const request = http.request({
		method: stream.methods[0], createConnection: () => socket, host: "x",
		headers: { Connection: "keep-alive" },
	});

	request.on("information", ({ statusCode }) => withoutBody([statusCode], messages));
	request.on("response", response => {
		follow(response, [response.statusCode], messages);
		state = "idle";
	});
	for (const event of ["connect", "upgrade"])
		request.on(event, response => {
			withoutBody([response.statusCode], messages);
			state = "tunnel";
		});
	request.on("error", error => {
		if (error.code !== "ECONNRESET") // "socket hang up": the FIN came first
			state = `broken: ${error.code}`;
	});
	request.end();
	await new Promise(setImmediate);
	await socket.deliver();
	socket.destroy();
	return resultOf(messages, state);
}

async function main() {
	const pieces = [];

	for await (const piece of process.stdin)
		pieces.push(piece);
	const streams = readStreams(Buffer.concat(pieces));
	for (let i = 0; i < streams.length; i += AT_ONCE) {
		const batch = streams.slice(i, i + AT_ONCE);
		const results = await Promise.all(batch.map(stream => stream.side ? ask(stream) : serve(stream)));
		process.stdout.write(results.map(result => JSON.stringify(result) + "\n").join(""));
	}
}

main();
