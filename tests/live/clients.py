# SPDX-License-Identifier: BSD-2-Clause
"""What 30-clients.t and 36-clients-npm.t share: a client runs, and the ledger must be the server's own log, line for
line."""

import os
import shutil
import sys

from harness import Skip, equal, read_lines, wait_for_line

BODY = '{"b": 1.0, "a": "\\u00e9"}'
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "log_server.py")


def needs(program):
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


def row(line):
    """One line of the ledger, or of the log, as both must have it."""
    target = line.get("target") or line["path"] + ("" if line["query"] is None else "?" + line["query"])
    return [line["method"], target, line["len"], line["sha_raw"], line["canon"],
            None if line["canon"] == "multipart" else line["sha"], line["idem"], line["pid"]]


def compare(live, command, want_count, **more):
    """Runs it against a server that keeps a log and compares: method, target, length, hashes, key and pid."""
    log_path = live.path("server.jsonl")
    server = live.start([sys.executable, SERVER, log_path])
    url = f"http://127.0.0.1:{wait_for_line(server, 'log_server.py')}/v1/charges"
    env = {**os.environ, "URL": url, "BODY": BODY}
    result = live.run(command, env=env, **more).expect(0)
    log = read_lines(log_path)
    equal([row(line) for line in result.ledger], [row(line) for line in log], "ledger against the log of the server")
    equal(len(log), want_count, "requests")
    equal([l["request_complete"] for l in result.ledger], [True] * want_count, "request_complete")
    equal([r["response_complete"] for r in result.of_kind("response")], [True] * want_count, "response_complete")
    count = result.summary["bytes"]
    equal((count["in_holes"], count["in_blind"]), (0, 0), "holes and blind bytes")
    equal(count["accepted"], count["in_messages"], "accepted bytes")
    return result


def json_came(result):
    """The first request is BODY as JSON, with the key that every client here gives it."""
    equal([(line["canon"], line["idem"]) for line in result.ledger][:1], [("json", "k-1")], "the first request")
