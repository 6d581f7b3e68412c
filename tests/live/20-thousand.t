#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""1,000 requests of 8 threads over kept-alive connections: every byte is accounted for."""

import collections
import json

from harness import SLOW, canonical_sha, check, equal, fact, play, sha

THREADS = 8
EACH = 125

CLIENT = """
import http.client, json, socket, sys, threading

port, threads, each = map(int, sys.argv[1:4])
sent, received, bodies = [0] * threads, [0] * threads, [None] * threads

class Counting(socket.socket):
    def sendall(self, data, *more):
        sent[self.number] += len(data)
        return super().sendall(data, *more)
    def recv_into(self, *more):
        n = super().recv_into(*more)
        received[self.number] += n
        return n

class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = Counting(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.number = self.number
        self.sock.connect(("127.0.0.1", port))

def spelled(number, i):
    # every spelling of JSON that a canonical form must see through
    amount = ["%d.50" % i, "%de0" % i, "%d" % (9007199254740993 + i), "-0.000%d" % (i + 1),
              "1.5e%d" % (i % 40)][i % 5]
    text = ('{ "thread": %d, "amount" : %s, "note": "caf\\\\u00e9 \\\\/ %d \\\\n", '
            '"list": [1.0, {"b":2,"a":null}, true] }')
    return (text % (number, amount, i) + " " * (i * 37 % 3000)).encode()

def work(number):
    connection = Connection("127.0.0.1", port)
    connection.number = number
    bodies[number] = []
    for i in range(each):
        body = spelled(number, i)
        bodies[number].append(body.decode())
        headers = {"Content-Type": "application/json", "X-Number": str(i)}
        connection.request("POST", "/v1/charges", body, headers)
        response = connection.getresponse()
        assert response.status == 200, response.status
        response.read()
    connection.close()

all_threads = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
for thread in all_threads: thread.start()
for thread in all_threads: thread.join()
json.dump({"sent": sum(sent), "received": sum(received), "bodies": bodies}, sys.stdout)
"""

shared = {}


@fact
def a_thousand_requests_are_a_thousand_lines(live):
    mock = live.mock()
    script = live.write("client.py", CLIENT)
    result = live.run(["/usr/bin/python3", script, str(mock.port), str(THREADS), str(EACH)]).expect(0)
    mock.stop()
    shared.update(ledger=result.ledger, log=mock.log, client=json.loads(result.stdout), summary=result.summary,
                  server_received=mock.received_bytes, findings=result.findings("info"),
                  responses=result.of_kind("response"))
    equal(len(result.ledger), THREADS * EACH, "ledger lines")
    equal(len({line["id"] for line in result.ledger}), THREADS * EACH, "different ids")
    equal(result.summary["requests"], THREADS * EACH, "requests in the summary")


@fact
def every_hash_is_right(_):
    bodies = [body.encode() for thread in shared["client"]["bodies"] for body in thread]
    want = collections.Counter((canonical_sha(body), sha(body), len(body)) for body in bodies)
    got = collections.Counter((line["sha"], line["sha_raw"], line["len"]) for line in shared["ledger"])
    equal(len(want), THREADS * EACH, "different bodies")
    equal(sorted((want - got).elements())[:3], [], "bodies that are not in the ledger")
    equal(sorted((got - want).elements())[:3], [], "ledger lines without a body")


@fact
def each_thread_s_lines_are_in_its_order(_):
    by_thread = collections.defaultdict(list)
    for line in shared["ledger"]:
        by_thread[line["src"]].append(line["sha_raw"])
    want = sorted([sha(body.encode()) for body in thread] for thread in shared["client"]["bodies"])
    equal(sorted(by_thread.values()) == want, True, "the order of the lines of a connection")


@fact
def the_ledger_is_the_server_s_own_log(_):
    want = collections.Counter((line["path"], line["len"], line["sha"], line["idem"]) for line in shared["log"])
    got = collections.Counter((line["path"], line["len"], line["sha_raw"], line["idem"]) for line in shared["ledger"])
    equal(got == want, True, "ledger and the log of charge-mock")


@fact
def every_call_is_closed_by_one_response(_):
    ids = sorted(line["id"] for line in shared["ledger"])
    equal(sorted(event["of"] for event in shared["responses"]), ids, "ids")
    seen = collections.Counter((e["status"], e["response_complete"], e["ended"], e["delivered"])
                               for e in shared["responses"])
    if SLOW:  # a client that takes its time to read leaves "unknown"
        seen[200, True, "length", "all"] += seen.pop((200, True, "length", "unknown"), 0)
    equal(dict(seen), {(200, True, "length", "all"): THREADS * EACH}, "how the calls ended")


@fact
def accepted_bytes_are_messages_holes_and_blind_bytes(_):
    count = shared["summary"]["bytes"]
    equal(count["accepted"], count["in_messages"] + count["in_holes"] + count["in_blind"], "accepted bytes")
    equal((count["in_holes"], count["in_blind"]), (0, 0), "holes and blind bytes")


@fact
def accepted_bytes_are_what_both_ends_received(_):
    client = shared["client"]
    equal(client["sent"], shared["server_received"], "what the client sent, as the server counts it")
    equal(shared["summary"]["bytes"]["accepted"], shared["server_received"] + client["received"], "accepted bytes")


@fact
def nothing_was_missed_or_dropped(_):
    equal(shared["summary"]["recursion_misses"], 0, "recursion_misses")
    check(not any(shared["summary"]["drops"].values()), f"drops {shared['summary']['drops']}")
    equal(shared["findings"], [], "findings")


play()
