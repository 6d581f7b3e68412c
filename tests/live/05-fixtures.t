#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The fixtures against each other: charge-mock, flaky-tool and play do what the other tests rest on."""

import glob
import http.client
import json
import os
import re
import socket
import subprocess

from harness import BUILD, ROOT, check, contains, equal, fact, play, read_lines, sha, wait_until

PLAY = os.path.join(BUILD, "tests", "live", "play")


def tool(live, *arguments):
    process = live.start([os.path.join(BUILD, "flaky-tool"), *arguments], stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=30)
    return process.returncode, out.decode(), err.decode()


def charge_ids(mock):
    return [line["charge_id"] for line in mock.log]


@fact
def a_late_answer_makes_the_tool_charge_twice(live):
    mock = live.mock("--answer-after-client-leaves")
    status, out, err = tool(live, "--timeout-ms", "2000", mock.url)
    equal((status, json.loads(out)["charge_id"]), (0, "ch_0002"), "the tool's end")
    contains(err, "try 1 of 3: no whole answer in time", "stderr")
    equal(charge_ids(mock), ["ch_0001", "ch_0002"], "charges")
    equal(len({line["sha"] for line in mock.log}), 1, "different bodies")


@fact
def with_a_key_the_same_charge_comes_back(live):
    mock = live.mock("--answer-after-client-leaves=2")
    status, out, _ = tool(live, "--key", "--timeout-ms", "2000", mock.url)
    equal((status, json.loads(out)["charge_id"]), (0, "ch_0001"), "the tool's end")
    equal(charge_ids(mock), ["ch_0001"] * 3, "charges")
    keys = {line["idem"] for line in mock.log}
    check(len(keys) == 1 and re.fullmatch("[0-9a-f]{32}", keys.pop()), "one key on every try")


@fact
def a_new_run_of_the_tool_has_a_new_key(live):
    mock = live.mock()
    for _ in range(2):
        tool(live, "--key", "--timeout-ms", "5000", mock.url)
    equal(len({line["idem"] for line in mock.log}), 2, "different keys")
    equal(charge_ids(mock), ["ch_0001", "ch_0002"], "charges")


@fact
def the_tool_gives_up_after_its_tries(live):
    mock = live.mock("--answer-after-client-leaves=99")
    status, out, err = tool(live, "--tries", "2", "--timeout-ms", "20", mock.url)
    equal((status, out), (1, ""), "the tool's end")
    equal(err.count("no whole answer in time"), 2, "tries")
    wait_until(lambda: len(mock.log) == 2, "both requests in the log")
    mock.stop()
    equal(len(mock.log), 2, "requests")


@fact
def a_cut_answer_is_tried_again(live):
    mock = live.mock("--truncate", "10")
    status, _, err = tool(live, "--timeout-ms", "5000", mock.url)
    equal(status, 0, "the tool's end")
    contains(err, "try 1 of 3: the answer was cut", "stderr")
    equal(charge_ids(mock), ["ch_0001", "ch_0002"], "charges")


@fact
def truncation_sends_the_head_and_so_many_bytes_of_the_body(live):
    mock = live.mock("--truncate", "10")
    with socket.create_connection(("127.0.0.1", mock.port)) as client:
        client.sendall(b"POST /v1/charges HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1")
        head, _, body = client.makefile("rb").read().partition(b"\r\n\r\n")
    contains(head, b"Content-Length: 36", "the head")
    equal(body, b'{"ok": tru', "the body")


@fact
def the_first_answers_take_their_delays(live):
    mock = live.mock("--delay-ms", "0,60000")
    tool(live, "--timeout-ms", "5000", mock.url)
    status, _, err = tool(live, "--timeout-ms", "2000", mock.url)
    equal(status, 0, "the tool's end")
    equal(err.count("no whole answer in time"), 1, "late answers")
    equal(len(mock.log), 3, "requests")


@fact
def the_log_tells_the_raw_body_however_it_was_framed(live):
    mock = live.mock()
    client = http.client.HTTPConnection("127.0.0.1", mock.port)
    bodies = [b"", b"x" * 100000, bytes(range(256)) * 300]
    for body in bodies:
        client.request("POST", "/v1/charges?a=1", body)
        client.getresponse().read()
        client.request("POST", "/v1/charges", iter([body[:5], body[5:]]), encode_chunked=True)
        client.getresponse().read()
    client.close()
    equal([(line["len"], line["sha"]) for line in mock.log], [(len(b), sha(b)) for b in bodies for _ in "ab"], "log")
    equal(list(mock.log[0]), "t path len sha idem method status charge_id".split(), "fields")
    equal({line["path"] for line in mock.log}, {"/v1/charges"}, "paths")


@fact
def everything_but_the_one_endpoint_is_404(live):
    mock = live.mock()
    client = http.client.HTTPConnection("127.0.0.1", mock.port)
    for method, path in (("GET", "/v1/charges"), ("POST", "/v1/charge"), ("HEAD", "/"), ("POST", "/v1/charges/")):
        client.request(method, path, b"a=1" if method == "POST" else None)
        response = client.getresponse()
        response.read()
        equal(response.status, 404, f"{method} {path}")
    equal(charge_ids(mock), [None] * 4, "charges")


@fact
def bad_requests_get_400_and_no_log_line(live):
    mock = live.mock()
    for bad in (b"nonsense\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 1x\r\n\r\n",
                b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"POST / HTTP/2.0x\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", mock.port)) as client:
            client.sendall(bad)
            contains(client.makefile("rb").read(), b"HTTP/1.1 400 ", f"the answer to {bad}")
    equal(mock.log, [], "log")


@fact
def the_mock_ends_with_connections_open_and_counts_every_byte(live):
    mock = live.mock()
    request = b"POST /v1/charges HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na=1"
    clients = [socket.create_connection(("127.0.0.1", mock.port)) for _ in range(20)]
    for client in clients:
        client.sendall(request)
        client.recv(4096)
    mock.stop()
    equal(mock.received_bytes, 20 * len(request), "bytes received")
    for client in clients:
        equal(client.recv(1), b"", "the end of a connection")
        client.close()


@fact
def the_tool_refuses_what_is_not_loopback(live):
    for url in ("http://192.0.2.1/", "http://127.0.0.1@192.0.2.1/", "http://localhost.example/", "http://[::2]/",
                "https://127.0.0.1/"):
        status, _, err = tool(live, url)
        equal(status, 2, f"exit status for {url}")
        check(err.startswith("flaky-tool: "), f"no message for {url}")
    contains(tool(live, "http://192.0.2.1/")[2], "not loopback", "the message")


@fact
def every_case_can_be_played(live):
    for directory in sorted(glob.glob(os.path.join(ROOT, "tests", "cases", "[0-9]*"))):
        process = live.start([PLAY, "--map", live.path("map"), directory], stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=60)
        equal((process.returncode, err), (0, b""), f"playing {os.path.basename(directory)}")
        with open(os.path.join(directory, "timeline.json"), encoding="utf-8") as file:
            opens = [event for event in json.load(file) if event["ev"] == "open"]
        roles = read_lines(live.path("map"))
        equal(roles[0]["role"], "server", "the first line of the map")
        equal({role["case_pid"] for role in roles[1:]}, {event["pid"] for event in opens}, "the pids of the case")


play()
