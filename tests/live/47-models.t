#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A model server behind a gateway that gives up twice: three prompts, one answer, and a second process that asks again.
What the events say of it, to the token."""

import hashlib
import json
import struct
import subprocess
import sys

from answering import HANDLER
from harness import NIGHTCLERK, contains, equal, fact, facts, play, wait_for_line

MODEL = "demo-large"
REQUEST = {"model": MODEL, "messages": [{"role": "user", "content": "Grade bolt M8."}], "temperature": 0}
USAGE = {"prompt_tokens": 812, "completion_tokens": 41, "total_tokens": 853,
         "prompt_tokens_details": {"cached_tokens": 256}, "completion_tokens_details": {"reasoning_tokens": 0}}
SAID = {"input_tokens": 812, "output_tokens": 41, "cached_tokens": 256, "cache_write_tokens": None,
        "reasoning_tokens": 0, "final": True}

# Prints its port. Every path is answered 504, 504, then 200 for good; the path says how. Each event is a chunk of its own.
SERVER = HANDLER + """
import zlib

usage = json.loads(sys.argv[1])
seen = {}

def pieces(stream):
    head = {"id": "cmpl-9", "model": "demo-large-1"}
    if not stream:
        yield json.dumps({**head, "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "A"}}],
                          "usage": usage})
        return
    for delta, finish in (({"role": "assistant"}, None), ({"content": "A"}, None), ({}, "stop")):
        chunk = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}
        yield "data: " + json.dumps(chunk) + "\\r\\n\\r\\n"
    yield ": waiting\\r\\n\\r\\ndata: " + json.dumps({**head, "choices": [], "usage": usage}) + "\\r\\n\\r\\n"
    yield "data: [DONE]\\r\\n\\r\\n"

class Gateway(Answering):
    def do_POST(self):
        self.take_body()
        seen[self.path] = seen.get(self.path, 0) + 1
        if seen[self.path] < 3:
            self.answer(504, b"<html>504</html>")
            return
        how = self.path.split("/")[1].split("-")
        coder = zlib.compressobj(wbits=31) if "gzip" in how else None
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if "stream" in how else "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        if coder:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        for number, piece in enumerate(pieces("stream" in how)):
            if "cut" in how and number == 2:
                self.close_connection = True
                return
            content = piece.encode()
            if coder:
                content = coder.compress(content) + coder.flush(zlib.Z_SYNC_FLUSH)
            self.chunk(content)
        if coder:
            self.chunk(coder.flush())
        self.wfile.write(b"0\\r\\n\\r\\n")

    def chunk(self, content):
        self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(content), content))
        self.wfile.flush()

serve(Gateway)
"""

# Asks so many times, at most until an answer is cut; then a fresh process asks once more.
CLIENT = """
import http.client, subprocess, sys

port, path, body, attempts = sys.argv[1:]
connection = http.client.HTTPConnection("127.0.0.1", int(port))
for attempt in range(int(attempts)):
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    try:
        connection.getresponse().read()
    except http.client.IncompleteRead:
        break
connection.close()
if attempts != "1":
    subprocess.run([sys.executable, sys.argv[0], port, path, body, "1"], check=True)
"""


def field(content):
    return struct.pack("<Q", len(content)) + content


def documented_key(model, prompt):
    """user/model_key.h, by hand."""
    parts = [b"nightclerk model key", b"v1", model.encode(), b"", hashlib.sha256(prompt).digest()]
    return hashlib.sha256(b"".join(map(field, parts))).hexdigest()


def ask(live, path, body):
    server = live.start([sys.executable, live.write("server.py", SERVER), json.dumps(USAGE)])
    port = wait_for_line(server, "the model server")
    return live.run([sys.executable, live.write("client.py", CLIENT), port, path, json.dumps(body), "3"])


def what_was_said(event):
    names = ("status", "response_complete", "answer_complete", "finish_reason", "response_model", "response_id",
             "usage_refused", "usage")
    return {name: event[name] for name in names}


def answers(result):
    """What the answers said, in the order of their requests."""
    responses = {event["of"]: event for event in result.of_kind("response")}
    return [what_was_said(responses[line["id"]]) for line in result.ledger]


def standing(result):
    ids = [line["id"] for line in result.ledger]
    return [(name, severity, ids.index(event["earlier"]) + 1, ids.index(event["of"]) + 1, event["cross_process"])
            for name, severity, event in result.findings("info") if event["earlier"]]


NO_ANSWER = {"status": 504, "response_complete": True, "answer_complete": None, "finish_reason": None,
             "response_model": None, "response_id": None, "usage_refused": 0, "usage": None}
ANSWER = {"status": 200, "response_complete": True, "answer_complete": True, "finish_reason": "stop",
          "response_model": "demo-large-1", "response_id": "cmpl-9", "usage_refused": 0, "usage": SAID}


def add(how):
    def function(live):
        stream = {"stream": True} if "stream" in how else {}
        result = ask(live, f"/{how}/v1/chat/completions", {**REQUEST, **stream}).expect(10)
        equal(answers(result), [NO_ANSWER, NO_ANSWER, ANSWER, ANSWER], "answers")
        equal(standing(result), [
            ("llm_maybe_billed_twice", "medium", 1, 2, False),
            ("llm_maybe_billed_twice", "medium", 2, 3, False),
            ("llm_maybe_billed_twice", "medium", 2, 4, True),
        ], "findings")
        equal(len({line["pid"] for line in result.ledger}), 2, "processes")
        equal({line["model"] for line in result.ledger}, {MODEL}, "models")
        equal(len({line["prompt_fingerprint"] for line in result.ledger}), 1, "prompt fingerprints")
        prompt = json.dumps(REQUEST, sort_keys=True, separators=(",", ":")).encode()
        equal({event["model_key"] for event in result.of_kind("response")}, {documented_key(MODEL, prompt)}, "model keys")
        equal(result.summary["usage_refused"], 0, "usage_refused")
        contains(result.stderr, "200 after ", "the alert")
        contains(result.stderr, ", 812 tokens in, 41 out\n", "the alert")

    function.__name__ = f"three_prompts_one_answer_{how.replace('-', '_')}"
    facts.append(function)


for one in ("plain", "plain-gzip", "stream", "stream-gzip"):
    add(one)


@fact
def a_stream_that_is_cut_was_billed_and_its_repeat_is_a_second_bill(live):
    result = ask(live, "/stream-cut/v1/chat/completions", {**REQUEST, "stream": True}).expect(10)
    cut = {**ANSWER, "response_complete": False, "answer_complete": False, "finish_reason": None, "usage": None}
    equal(answers(result), [NO_ANSWER, NO_ANSWER, cut, cut], "answers")
    equal(standing(result)[-1], ("llm_billed_twice", "high", 3, 4, True), "the finding of the second process")


@fact
def another_schema_version_is_other_work(live):
    prompts = []
    for version in ("v1", "v2"):
        server = live.start([sys.executable, live.write("server.py", SERVER), json.dumps(USAGE)])
        port = wait_for_line(server, "the model server")
        command = [sys.executable, live.write("client.py", CLIENT), port, "/plain/v1/chat/completions", json.dumps(REQUEST), "1"]
        result = live.run(command, ["--schema-version", version]).expect(0)
        equal(result.events[0]["options"]["schema_version"], version, "schema_version")
        prompts.append(result.of_kind("response")[0]["model_key"])
    equal(len(set(prompts)), 2, "model keys")
    result = live.run(["true"], ["--schema-version", "v 1"], replay=False).expect(125)
    contains(result.stderr, "--schema-version takes 1 to 63 letters, digits or . _ - + : / @", "the message")


@fact
def check_reads_the_tokens_back(live):
    result = ask(live, "/plain/v1/chat/completions", REQUEST).expect(10)
    done = subprocess.run([NIGHTCLERK, "check", result.events_path], capture_output=True, check=False)
    equal(done.returncode, 10, "exit status of check")
    contains(done.stderr.decode() + done.stdout.decode(), ", 812 tokens in, 41 out\n", "check's alert")


play()
