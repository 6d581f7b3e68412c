#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A local server for the clients of packages: one port for each way in which a first attempt ends.

usage: server.py ENDING...

Prints one line, {"ENDING": port, ...}, and serves until it is ended. On each port the first POST or PUT of each
path ends in that way, all others are answered as the client expects. With MCP only tools/call is a first attempt.
"""

import json
import socket
import struct
import sys
import threading

ANSWERS = {
    "/v1/chat/completions": {
        "id": "c-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    },
    "/v1/messages": {
        "id": "m-1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "hi"}], "usage": {"input_tokens": 3, "output_tokens": 1},
    },
    "/v1/models": {"object": "list", "data": [], "has_more": False},
}
TOOLS = [
    {"name": "create_ticket", "inputSchema": {"type": "object"}},
    {"name": "read_gauge", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]


def mcp_result(message):
    return {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "local", "version": "1"}},
        "tools/list": {"tools": TOOLS},
        "tools/call": {"content": [{"type": "text", "text": "done"}]},
    }[message["method"]]


def read_request(stream):
    """(method, path, headers, body), or None at the end of the stream."""
    line = stream.readline()
    if not line:
        return None
    method, target, _ = line.decode().split()
    headers = {}
    while (line := stream.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    body = b""
    if headers.get("transfer-encoding") == "chunked":
        while size := int(stream.readline(), 16):
            body += stream.read(size)
            stream.readline()
        stream.readline()
    else:
        body = stream.read(int(headers.get("content-length", 0)))
    return method, target.partition("?")[0], headers, body


def answer(status, value, kind="application/json"):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return b"HTTP/1.1 %d Status\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (
        status, kind.encode(), len(body)) + body


def good_answer(method, path, headers, body):
    if path != "/mcp":
        return answer(200, ANSWERS.get(path, {"id": "o-1", "object": "order"}))
    if method == "GET" and "last-event-id" in headers:  # the rest of a stream that was cut
        message = {"jsonrpc": "2.0", "id": int(headers["last-event-id"].split("-")[1]),
                   "result": {"content": [{"type": "text", "text": "done"}]}}
        return answer(200, b"id: b-1\ndata: " + json.dumps(message).encode() + b"\n\n", "text/event-stream")
    if method != "POST":
        return answer(405, {})
    message = json.loads(body)
    if "id" not in message:
        return answer(202, b"")
    return answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": mcp_result(message)})


def is_first_attempt(method, path, body):
    if path == "/mcp":
        return method == "POST" and json.loads(body).get("method") == "tools/call"
    return method in ("POST", "PUT")


def end(ending, sock, stream, body):
    """Ends a first attempt; true when the connection is over."""
    if ending.isdigit():
        sock.sendall(answer(int(ending), {"error": {"message": "no"}}))
        return False
    if ending in ("rst", "reuse"):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif ending == "timeout":
        stream.read()  # until the client has closed
    elif ending == "trunc":
        sock.sendall(answer(200, b" " * 500)[:-480])
    elif ending == "tchunk":
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"14\r\n" + b" " * 20 + b"\r\n")
    elif ending == "resume":
        event = b"id: a-%d\ndata: \n\n" % json.loads(body)["id"]
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"%x\r\n%s\r\n" % (len(event), event))
    return True


def serve(sock, ending, seen):
    with sock, sock.makefile("rb") as stream:
        while request := read_request(stream):
            method, path, headers, body = request
            first = is_first_attempt(method, path, body) and (method, path) not in seen
            if first:
                seen.add((method, path))
                if end(ending, sock, stream, body):
                    break
            else:
                sock.sendall(good_answer(method, path, headers, body))
    # makefile() holds the socket open until here


def listen(ending):
    listener = socket.create_server(("127.0.0.1", 0))
    seen = set()

    def accept():
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=quietly, args=(sock, ending, seen), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def quietly(sock, ending, seen):
    try:
        serve(sock, ending, seen)
    except OSError:  # the client has gone
        pass


print(json.dumps({ending: listen(ending) for ending in sys.argv[1:]}), flush=True)
threading.Event().wait()
