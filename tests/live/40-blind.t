#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What cannot be read is said, never passed over: TLS, HTTP/2, WebSocket; and what is no HTTP at all is let be."""

import os
import socket
import subprocess
import threading

from harness import Skip, check, contains, equal, fact, play, wait_for_line


def tls_server(live):
    live.start(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost", "-days", "2"],
               stderr=subprocess.DEVNULL).communicate()
    server = live.start(["openssl", "s_server", "-accept", "127.0.0.1:8443", "-key", "key.pem", "-cert", "cert.pem",
                         "-www"], stderr=subprocess.DEVNULL)
    while wait_for_line(server, "s_server") != "ACCEPT":
        pass
    return "https://127.0.0.1:8443/"


@fact
def tls_is_undecidable_and_named(live):
    url = tls_server(live)
    result = live.run(["curl", "-sk", "-o", "/dev/null", url]).expect(11)
    contains(result.stderr, "tls", "stderr")
    blind = result.of_kind("blind")
    equal(len(blind), 1, "blind records of one connection")
    equal(blind[0]["blind_kind"], "tls", "kind")
    equal(blind[0]["comm"], "curl", "comm")
    check(blind[0]["bytes_out"] > 0 and blind[0]["bytes_in"] > 0, "bytes each way")
    equal(result.ledger, [], "ledger")
    count = result.summary["bytes"]
    equal(count["accepted"], count["in_blind"], "accepted bytes")
    equal(count["in_blind"], blind[0]["bytes_out"] + blind[0]["bytes_in"], "bytes of the blind record")
    want = {name: blind[0][name] for name in ("pid", "comm", "bytes_out", "bytes_in")}
    equal(result.summary["blind_by"], [{**want, "streams": {"tls": 1}}], "blind streams by process")
    contains(result.stderr, f"\nnightclerk: could not be read: curl ({blind[0]['pid']}): 1 tls\n", "stderr")


@fact
def allowed_tls_gives_the_command_s_own_status(live):
    url = tls_server(live)
    live.run(["curl", "-sk", "-o", "/dev/null", url], ["--allow-blind", "tls"]).expect(0)
    live.run(["curl", "-sk", "-o", "/no/such/file", url], ["--allow-blind", "h2,tls"]).expect(23)
    live.run(["curl", "-sk", "-o", "/dev/null", url], ["--allow-blind", "h2"]).expect(11)
    live.run(["curl", "-sk", "-o", "/dev/null", url], ["--allow-incomplete"]).expect(0)


@fact
def a_finding_outranks_a_blind_stream(live):
    url = tls_server(live)
    mock = live.mock()
    post = f"curl -s -o /dev/null {mock.url} -d a=1"
    live.run(["sh", "-c", f"curl -sk -o /dev/null {url}; {post}; {post}"]).expect(10)


@fact
def http2_with_prior_knowledge_is_undecidable_and_named(live):
    script = live.write("server.mjs", """
import http2 from "node:http2";
const server = http2.createServer((request, response) => response.end("hello"));
server.listen(8082, "127.0.0.1", () => console.log("ready"));
""")
    server = live.start(["node", script])
    equal(wait_for_line(server, "node"), "ready", "the server's line")
    command = ["curl", "-s", "-o", "/dev/null", "--http2-prior-knowledge", "http://127.0.0.1:8082/"]
    result = live.run(command).expect(11)
    contains(result.stderr, "h2", "stderr")
    equal([event["blind_kind"] for event in result.of_kind("blind")], ["h2"], "blind records")
    live.run(command, ["--allow-blind", "h2"]).expect(0)


ANY_BYTES = """
import socket, sys
for _ in range(2):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.sendall(sys.argv[2].encode())
    while s.recv(1000):
        pass
"""


def answer_all(answer):
    """A server outside of the scope that answers the first bytes of each connection. Its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    return str(listener.getsockname()[1])


@fact
def what_is_answered_in_http_was_http(live):
    post = "POST /charges HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
    http, other = answer_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), answer_all(b"+PONG\r\n")
    for first in ("PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" + post, " " + post, "\ufeff" + post):
        result = live.run(["/usr/bin/python3", "-c", ANY_BYTES, http, first]).expect(11)
        equal([event["reason"] for event in result.of_kind("broken")],
              ["an answer to a request that could not be read"] * 2, "broken streams")
        live.run(["/usr/bin/python3", "-c", ANY_BYTES, other, first]).expect(0)


WEBSOCKET = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def serve():
    s, _ = server.accept()
    data = b""
    while b"\\r\\n\\r\\n" not in data: data += s.recv(4096)
    s.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n")
    s.recv(4096)
    s.sendall(b"\\x81\\x05hello")
    s.close()
thread = threading.Thread(target=serve); thread.start()
c = socket.create_connection(server.getsockname())
c.sendall(b"GET /socket HTTP/1.1\\r\\nHost: x\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
          b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n")
while b"\\r\\n\\r\\n" not in c.recv(4096): pass
c.sendall(b"\\x81\\x84\\x00\\x00\\x00\\x00POST")
while c.recv(4096): pass
thread.join()
"""


@fact
def a_websocket_is_undecidable_after_its_handshake(live):
    command = ["/usr/bin/python3", live.write("client.py", WEBSOCKET)]
    result = live.run(command).expect(11)
    contains(result.stderr, "websocket", "stderr")
    equal([line["path"] for line in result.ledger], ["/socket"], "ledger")
    equal([r["status"] for r in result.of_kind("response")], [101], "status")
    count = result.summary["bytes"]
    equal(count["in_blind"], 10 + 7, "blind bytes")
    equal(count["accepted"], count["in_messages"] + count["in_holes"] + count["in_blind"], "accepted bytes")
    live.run(command, ["--allow-blind", "websocket"]).expect(0)


TUNNEL = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def serve():
    s, _ = server.accept()
    data = b""
    while b"\\r\\n\\r\\n" not in data: data += s.recv(4096)
    s.sendall(b"HTTP/1.1 200 Connection established\\r\\n\\r\\n")
    assert s.recv(4096) == b"POST /in HTTP/1.1\\r\\n\\r\\n"
    s.sendall(b"HTTP/1.1 204 N\\r\\n\\r\\n")
    s.close()
thread = threading.Thread(target=serve); thread.start()
c = socket.create_connection(server.getsockname())
c.sendall(b"CONNECT far.example:443 HTTP/1.1\\r\\nHost: far.example:443\\r\\n\\r\\n")
while b"\\r\\n\\r\\n" not in c.recv(4096): pass
c.sendall(b"POST /in HTTP/1.1\\r\\n\\r\\n")
while c.recv(4096): pass
thread.join()
"""


@fact
def a_connect_tunnel_is_undecidable_after_its_200(live):
    command = ["/usr/bin/python3", live.write("client.py", TUNNEL)]
    result = live.run(command).expect(11)
    contains(result.stderr, "): 1 connect\n", "stderr")
    equal([(line["method"], line["host"]) for line in result.ledger], [("CONNECT", "far.example:443")], "ledger")
    equal([(b["blind_kind"], b["bytes_out"], b["bytes_in"]) for b in result.of_kind("blind")], [("connect", 21, 18)], "blind records")
    live.run(command, ["--allow-blind", "connect"]).expect(0)


MULTIPATH = """
import socket, threading
server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
server.bind(("127.0.0.1", 0))
server.listen()
def serve():
    s, _ = server.accept()
    s.recv(4096)
    s.sendall(b"HTTP/1.1 204 N\\r\\n\\r\\n")
    s.close()
thread = threading.Thread(target=serve); thread.start()
c = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
c.connect(server.getsockname())
c.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
while c.recv(4096): pass
thread.join()
"""


@fact
def an_mptcp_connection_is_undecidable_and_named(live):
    if not os.path.exists("/proc/sys/net/mptcp/enabled"):
        raise Skip("this kernel has no MPTCP")
    command = ["/usr/bin/python3", live.write("client.py", MULTIPATH)]
    result = live.run(command).expect(11)
    contains(result.stderr, "mptcp", "stderr")
    equal([event["blind_kind"] for event in result.of_kind("blind")], ["mptcp"], "blind records")
    live.run(command, ["--allow-blind", "mptcp"]).expect(0)


EXCHANGE = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def serve():
    s, _ = server.accept()
    s.recv(4096)
    s.sendall(b"HTTP/1.1 204 N\\r\\n\\r\\n")
    s.close()
thread = threading.Thread(target=serve); thread.start()
c = socket.create_connection(server.getsockname())
c.sendall(b"POST / HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 0\\r\\n\\r\\n")
while c.recv(4096): pass
thread.join()
"""


@fact
def a_network_namespace_that_the_command_makes_is_undecidable_and_named(live):
    script = live.write("client.py", EXCHANGE)
    inside = f"ip link set lo up; /usr/bin/python3 {script}; exec /usr/bin/python3 {script}"
    command = ["unshare", "--net", "sh", "-c", inside]
    result = live.run(command).expect(11)
    equal(result.ledger, [], "ledger")
    blind = result.of_kind("blind")
    seen = [(event["blind_kind"], event["comm"], event["bytes_out"], event["bytes_in"]) for event in blind]
    equal(seen, [("netns", "python3", None, None)] * 2, "blind records")
    contains(result.stderr, "in another network namespace could not be seen: run nightclerk inside it", "stderr")
    equal([row["streams"] for row in result.summary["blind_by"]], [{"netns": 1}] * 2, "blind streams by process")
    equal(result.summary["bytes"]["accepted"], 0, "accepted bytes")
    live.run(command, ["--allow-blind", "netns"]).expect(0)


@fact
def what_others_do_in_their_own_namespaces_is_not_seen(live):
    script = live.write("client.py", EXCHANGE)
    inside = f"ip link set lo up; echo up; read go; /usr/bin/python3 {script}; echo done"
    other = live.start(["unshare", "--net", "sh", "-c", inside], stdin=subprocess.PIPE)
    equal(wait_for_line(other, "the other one"), "up", "its line")
    command = live.nightclerk(live.run_arguments(["sh", "-c", "echo started; read line"]), stdin=subprocess.PIPE)
    equal(wait_for_line(command, "run"), "started", "the command's line")
    other.stdin.write(b"go\n")
    equal(wait_for_line(other, "the other one"), "done", "its line")
    result = live.finish(command, b"end\n").expect(0)
    equal([event["kind"] for event in result.events if event["kind"] not in ("start", "summary")], [], "events")


REDIS = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def serve():
    s, _ = server.accept()
    while s.recv(4096): s.sendall(b"+PONG\\r\\n")
    s.close()
thread = threading.Thread(target=serve); thread.start()
c = socket.create_connection(server.getsockname())
for _ in range(50):
    c.sendall(b"*1\\r\\n$4\\r\\nPING\\r\\n")
    assert c.recv(4096) == b"+PONG\\r\\n"
c.close()
thread.join()
"""


@fact
def traffic_that_is_no_http_is_counted_and_changes_nothing(live):
    result = live.run(["/usr/bin/python3", live.write("client.py", REDIS)]).expect(0)
    equal(result.ledger, [], "ledger")
    equal(result.findings("info"), [], "findings")
    count = result.summary["bytes"]
    equal(count["accepted"], 50 * (14 + 7), "accepted bytes")
    equal(count["accepted"], count["in_blind"], "blind bytes")


# A server that speaks first; argv: what it says, what the client then says, how often.
GREETING = """
import socket, sys, threading
greeting, question = (bytes.fromhex(text) for text in sys.argv[1:3])
server = socket.create_server(("127.0.0.1", 0))
def serve():
    s, _ = server.accept()
    s.sendall(greeting)
    while s.recv(4096): s.sendall(greeting)
    s.close()
thread = threading.Thread(target=serve); thread.start()
c = socket.create_connection(server.getsockname())
for _ in range(5):
    assert c.recv(4096) == greeting
    c.sendall(question)
assert c.recv(4096) == greeting
c.close()
thread.join()
"""


@fact
def a_server_that_greets_first_and_speaks_no_http_changes_nothing(live):
    script = live.write("client.py", GREETING)
    for greeting, question in ((b"220 mail ready\r\n", b"EHLO there\r\n"), (b"\x0a\x00\x00\x00\x0a8.0.36\0", b"\x03\0\0\1sel")):
        result = live.run(["/usr/bin/python3", script, greeting.hex(), question.hex()]).expect(0)
        count = result.summary["bytes"]
        equal(count["accepted"], 6 * len(greeting) + 5 * len(question), "accepted bytes")
        equal((count["in_holes"], count["in_blind"]), (0, count["accepted"]), "holes and blind bytes")
        equal([event["blind_kind"] for event in result.of_kind("blind")], ["other"], "blind records")


@fact
def http2_whose_server_speaks_first_is_named_too(live):
    script = live.write("client.py", GREETING)
    settings = "000000040000000000"
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".hex() + settings
    result = live.run(["/usr/bin/python3", script, settings, preface]).expect(11)
    equal([event["blind_kind"] for event in result.of_kind("blind")], ["h2"], "blind records")
    count = result.summary["bytes"]
    equal((count["in_holes"], count["in_blind"]), (0, count["accepted"]), "holes and blind bytes")


GARBAGE = """
import os, random, socket, threading
random.seed(7)
server = socket.create_server(("127.0.0.1", 0))
def serve():
    while True:
        s, _ = server.accept()
        data = s.recv(65536)
        try:
            s.sendall(random.choice(answers))
        except OSError: pass
        s.close()
threading.Thread(target=serve, daemon=True).start()
answers = [b"HTTP/1.1 200 OK\\r\\nContent-Length: x\\r\\n\\r\\n", b"HTTP/9.9 wat\\r\\n\\r\\n", os.urandom(50)]
heads = [b"POST / HTTP/1.1\\r\\nContent-Length: -5\\r\\n\\r\\n", b"GET  /  HTTP/1.1\\r\\n\\r\\n",
         b"POST / HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nzz\\r\\n",
         b"POST / HTTP/1.1\\r\\nA" + b"a" * 100000, b"\\x00" * 100, b"GET / HTTP/1.1\\r\\n: x\\r\\n\\r\\n",
         b"POST / HTTP/1.1\\r\\nContent-Length: 99999999999999999999\\r\\n\\r\\n", b"\\r\\n" * 500, b"P", b"POST"]
for i in range(200):
    c = socket.create_connection(server.getsockname())
    head = heads[i % len(heads)]
    try:
        c.sendall(head if i < 20 else bytes(b ^ (random.random() < .02) for b in head))
        c.recv(4096)
    except OSError: pass
    c.close()
"""


@fact
def http_garbage_is_survived_and_counted(live):
    result = live.run(["/usr/bin/python3", live.write("client.py", GARBAGE)])
    check(result.status in (0, 10, 11), f"exit status {result.status}\n{result.stderr}")
    count = result.summary["bytes"]
    equal(count["accepted"], count["in_messages"] + count["in_holes"] + count["in_blind"], "accepted bytes")
    check(len(result.of_kind("broken")) > 0, "no stream was called broken")


play()
