#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Connections that are older than the observer: their next request is read, and marked."""

import signal
import subprocess

from harness import HANG_SECONDS, equal, fact, play, read_lines, wait_for_line

# One connection, a request for each line of its input: the body is the line.
KEEPER = """
import http.client, sys
client = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
for line in sys.stdin:
    client.request("POST", "/v1/charges", line.strip())
    client.getresponse().read()
    print("posted", flush=True)
"""


def keeper(live, mock):
    process = live.start(["/usr/bin/python3", live.write("keeper.py", KEEPER), str(mock.port)], stdin=subprocess.PIPE)
    knock(process, '{"old": 1}')
    return process


def knock(process, text):
    process.stdin.write(text.encode() + b"\n")
    process.stdin.flush()
    equal(wait_for_line(process, "the client"), "posted", "its line")


def watched(live, scope, acts):
    """The ledger and the events of a watch with that scope, while acts() runs."""
    ledger, events = live.path("watch.jsonl"), live.path("events.jsonl")
    watch = live.nightclerk(["watch", *scope, "--ledger", ledger, "--events", events])
    wait_for_line(watch, "watch")
    acts()
    watch.send_signal(signal.SIGINT)
    _, err = watch.communicate(timeout=HANG_SECONDS)
    equal(watch.returncode, 0, f"status of watch\n{err.decode()}")
    return read_lines(ledger), read_lines(events)


def two_posts(live, scope_of):
    mock = live.mock()
    client = keeper(live, mock)

    def acts():
        knock(client, '{"new": 22}')
        knock(client, '{"new": 333}')

    ledger, events = watched(live, scope_of(client, mock), acts)
    equal([line["len"] for line in ledger], [11, 12], "lengths of the bodies")
    equal([line["pid"] for line in ledger], [client.pid] * 2, "pids")
    responses = [event for event in events if event["kind"] == "response"]
    equal([event["status"] for event in responses], [200, 200], "statuses")
    summary = events[-1]
    count = summary["bytes"]
    equal(count["accepted"], count["in_messages"] + count["in_holes"] + count["in_blind"], "accepted bytes")
    equal((count["in_holes"], count["in_blind"]), (0, 0), "holes and blind bytes")
    return ledger


@fact
def the_next_request_of_a_client_is_read_and_marked(live):
    ledger = two_posts(live, lambda client, mock: ["--pid", str(client.pid)])
    equal(ledger[0]["why"], "the connection is older than the observer", "why of the first")
    equal(ledger[1]["why"], None, "why of the second")


@fact
def the_same_where_only_the_server_is_in_scope(live):
    two_posts(live, lambda client, mock: ["--pid", str(mock.process.pid)])


@fact
def the_same_by_port(live):
    two_posts(live, lambda client, mock: ["--port", str(mock.port)])


@fact
def of_one_that_says_nothing_nothing_is_said(live):
    mock = live.mock()
    client = keeper(live, mock)

    def acts():
        client.stdin.close()  # it ends, and its connection with it
        client.wait(timeout=HANG_SECONDS)
        subprocess.run(["curl", "-s", "-o", "/dev/null", mock.url, "-d", "{}"], check=True, timeout=HANG_SECONDS)

    ledger, events = watched(live, ["--pid", str(mock.process.pid)], acts)
    equal([line["len"] for line in ledger], [2], "lengths of the bodies")
    equal([event["kind"] for event in events if event["kind"] not in ("start", "request", "response", "summary")], [],
          "other events")


play()
