#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who ended a connection, and what was read of it: as this kernel tells it."""

import socket
import threading

from harness import equal, fact, play

CLIENT = """
import socket, sys

def connect():
    return socket.create_connection(("127.0.0.1", int(sys.argv[1])))

def post(path, body, key=""):
    return (f"POST {path} HTTP/1.1\\r\\nHost: h\\r\\n{key}Content-Type: application/json\\r\\n"
            f"Content-Length: {len(body)}\\r\\n\\r\\n{body}").encode()

def read_all(s):
    data = b""
    while piece := s.recv(65536):
        data += piece
    return data
"""

RESEND = CLIENT + """
s = connect()
s.sendall(post("/other", "1"))
read_all(s)                       # to the server's FIN: it has closed, and we hold on
try:
    s.sendall(post("/charges", "{}", sys.argv[2]))
    s.recv(100)
except OSError:
    pass
if sys.argv[4] == "close":
    s.close()
t = connect()
t.sendall(post("/charges", "{}", sys.argv[3]))
read_all(t)
"""

HALF_CLOSE = CLIENT + """
import select

for number in range(20):
    for attempt in range(2):
        s = connect()
        s.sendall(post("/charges", f"[{number}]"))
        s.shutdown(socket.SHUT_WR)
        poll = select.poll()
        poll.register(s, 0)           # POLLHUP alone: the FINs of both have come
        poll.poll()
        answer = read_all(s)
        assert answer.endswith(b"ok"), answer
        s.close()
"""

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def serve_one_each(live):
    """A server outside of the scope: one answer on each connection, then close(). Its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            connection, _ = listener.accept()
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            connection.sendall(ANSWER)
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    return str(listener.getsockname()[1])


@fact
def a_request_into_a_connection_that_the_server_had_closed_is_no_attempt(live):
    port = serve_one_each(live)
    keys = [("", ""), ("Idempotency-Key: a\r\n", "Idempotency-Key: b\r\n")]
    for first, second in keys:
        for old in ("close", "keep"):
            result = live.run(["/usr/bin/python3", "-c", RESEND, port, first, second, old]).expect(0)
            equal(result.findings("info"), [], f"findings, {first!r}, the old socket {old}")
            unanswered = [r for r in result.of_kind("response") if r["status"] is None]
            equal([r["closed_first"] for r in unanswered], ["server"], "who ended what was not answered")


@fact
def what_a_client_reads_after_its_half_close_was_delivered(live):
    port = serve_one_each(live)
    result = live.run(["/usr/bin/python3", "-c", HALF_CLOSE, port]).expect(10)
    equal({(r["delivered"], r["delivered_bytes"]) for r in result.of_kind("response")}, {("all", len(ANSWER))}, "read")
    equal({finding for finding, _, _ in result.findings()}, {"dup_after_success"}, "findings")


play()
