#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A real reverse proxy between client and server, with a pool of connections to it: each call crosses loopback twice,
and is one call all the same."""

import os
import subprocess

from answering import HANDLER
from harness import NIGHTCLERK, equal, fact, play

# Prints its port. One thread a connection of a client; the connections to the server are kept and used again.
PROXY = HANDLER + """
import http.client, queue

server_port, pool = int(sys.argv[1]), queue.SimpleQueue()

class Proxy(Answering):
    def pass_on(self):
        body = self.take_body()
        try:
            upstream = pool.get_nowait()
        except queue.Empty:
            upstream = http.client.HTTPConnection("127.0.0.1", server_port)
        headers = {name: value for name, value in self.headers.items() if name not in ("Host", "Content-Length")}
        upstream.request(self.command, "/v1" + self.path, body, {**headers, "Via": "1.1 proxy"})
        answer = upstream.getresponse()
        content = answer.read()
        pool.put(upstream)
        self.answer(answer.status, content)

    do_POST = do_GET = pass_on

serve(Proxy)
"""

# One kept-alive connection; the proxy ends with it.
CLIENT = """
import http.client, json, subprocess, sys

proxy = subprocess.Popen([sys.executable, sys.argv[1], sys.argv[2]], stdout=subprocess.PIPE)
connection = http.client.HTTPConnection("127.0.0.1", int(proxy.stdout.readline()))
for order in json.loads(sys.argv[3]):
    method, path, body = order
    connection.request(method, path, body, {"Content-Type": "application/json"})
    connection.getresponse().read()
connection.close()
proxy.terminate()
proxy.wait()
print(proxy.pid)
"""


def through_proxy(live, orders):
    mock = live.mock()
    command = ["/usr/bin/python3", live.write("client.py", CLIENT), live.write("proxy.py", PROXY), str(mock.port), orders]
    result = live.run(command, env={**os.environ})
    return mock, int(result.stdout), result


def hops(result):
    """(row of the hop, row of its parent), by the lines of the ledger."""
    ids = [line["id"] for line in result.ledger]
    return sorted((ids.index(event["of"]) + 1, ids.index(event["parent"]) + 1) for event in result.of_kind("hop"))


@fact
def each_call_is_seen_twice_linked_and_no_finding(live):
    mock, proxy, result = through_proxy(
        live, '[["POST","/charges","{\\"a\\":1}"],["POST","/charges","{\\"a\\":2}"],["GET","/charges?page=1",null],'
              '["POST","/charges","{\\"a\\":3}"]]')
    result.expect(0)
    equal([(line["path"], line["pid"] == proxy) for line in result.ledger],
          [("/charges", False), ("/v1/charges", True)] * 4, "who asked for what")
    # The GET has no body, and the proxy wrote its path anew: nothing tells that the two are one.
    equal(hops(result), [(2, 1), (4, 3), (8, 7)], "hops")
    equal(result.findings("info"), [], "findings")
    # All four went over one connection of the pool.
    equal(len({line["src"] for line in result.ledger if line["pid"] == proxy}), 1, "connections of the pool")
    equal(len(mock.log), 4, "calls that reached the server")
    checked = subprocess.run([NIGHTCLERK, "check", result.events_path], capture_output=True, check=False)
    equal((checked.returncode, checked.stderr), (0, b""), "check of the events")


@fact
def a_call_that_the_client_repeats_is_found_at_both_doors(live):
    _, proxy, result = through_proxy(live, '[["POST","/charges","{\\"a\\":1}"],["POST","/charges","{\\"a\\":1}"]]')
    result.expect(10)
    equal(hops(result), [(2, 1), (4, 3)], "hops")
    rows = {line["id"]: number for number, line in enumerate(result.ledger, 1)}
    found = [(name, severity, rows[event["earlier"]], rows[event["of"]]) for name, severity, event in result.findings("info")]
    equal(found, [("dup_after_success", "high", 1, 3), ("dup_after_success", "high", 2, 4)], "findings")


play()
