#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Real clients, each with its own way to write a request: the ledger is the server's own log, line for line."""

import os

from harness import canonical_sha, equal, fact, play, sha

BODY = '{"b": 1.0, "a": "\\u00e9"}'


def compare(live, command, want_count, **more):
    """Runs it against a mock and compares the ledger with the mock's log."""
    mock = live.mock()
    env = {**os.environ, "URL": mock.url, "BODY": BODY}
    result = live.run(command, env=env, **more).expect(0)
    ledger = [[l["method"], l["path"], l["len"], l["sha_raw"], l["idem"]] for l in result.ledger]
    log = [[l["method"], l["path"], l["len"], l["sha"], l["idem"]] for l in mock.log]
    equal(ledger, log, "ledger against the log of charge-mock")
    equal(len(log), want_count, "requests")
    equal([l["request_complete"] for l in result.ledger], [True] * want_count, "request_complete")
    equal([r["response_complete"] for r in result.of_kind("response")], [True] * want_count, "response_complete")
    count = result.summary["bytes"]
    equal((count["in_holes"], count["in_blind"]), (0, 0), "holes and blind bytes")
    equal(count["accepted"], count["in_messages"], "accepted bytes")
    return result


def json_lines_are_canonical(result):
    shas = {line["sha"] for line in result.ledger if line["canon"] == "json"}
    equal(shas, {canonical_sha(BODY)}, "canonical hashes of the JSON bodies")


@fact
def curl(live):
    result = compare(live, ["sh", "-c", """
        curl -s "$URL" -H 'Content-Type: application/json' -H 'Idempotency-Key: c-1' -d "$BODY"
        curl -s "$URL?page=2" "$URL?page=3"
        head -c 1500000 /dev/zero | curl -s "$URL" -H 'Expect: 100-continue' --data-binary @-
        curl -s "$URL" -H 'Transfer-Encoding: chunked' -d a=1
        curl -s -I "$URL"
        curl -s "$URL" -F one=1 -F 'file=@/etc/hostname;filename=f'
    """], 7)
    json_lines_are_canonical(result)
    equal([line["query"] for line in result.ledger][1:3], ["page=2", "page=3"], "queries")
    equal(result.ledger[3]["sha_raw"], sha(bytes(1500000)), "hash of the large body")


@fact
def python_urllib(live):
    script = live.write("client.py", """
import os, urllib.request as u
url, body = os.environ["URL"], os.environ["BODY"].encode()
u.urlopen(u.Request(url, body, {"Content-Type": "application/json", "Idempotency-Key": "u-1"})).read()
u.urlopen(u.Request(url, b"a=1&b=2")).read()
u.urlopen(u.Request(url, iter([b"a" * 70000, b"b", b"c" * 70000]))).read()
""")
    json_lines_are_canonical(compare(live, ["/usr/bin/python3", script], 3))


@fact
def python_requests(live):
    script = live.write("client.py", """
import os, requests
url, body = os.environ["URL"], os.environ["BODY"].encode()
s = requests.Session()
s.post(url, data=body, headers={"Content-Type": "application/json", "Idempotency-Key": "r-1"})
s.get(url, params={"q": "x y"})
s.post(url, data=(b"part %d" % i for i in range(5)))
s.post(url, files={"file": ("name.bin", bytes(range(256)))})
s.put(url, data={"a": "1"})
""")
    json_lines_are_canonical(compare(live, ["/usr/bin/python3", script], 5))


@fact
def node_fetch(live):
    script = live.write("client.mjs", """
const { URL: url, BODY: body } = process.env;
const post = (body, headers = {}) => fetch(url, { method: "POST", body, headers }).then(r => r.text());
await post(body, { "Content-Type": "application/json", "Idempotency-Key": "f-1" });
await post(new URLSearchParams({ a: "1", b: "ü" }));
await post("x".repeat(300000));
await fetch(url + "?q=1").then(r => r.text());
const form = new FormData(); form.set("file", new Blob(["hello"]), "hello.txt");
await post(form);
""")
    json_lines_are_canonical(compare(live, ["node", script], 5))


@fact
def node_http(live):
    script = live.write("client.mjs", """
import http from "node:http";
const { URL: url, BODY: body } = process.env;
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const send = (method, headers, ...parts) => new Promise((done, fail) => {
	const request = http.request(url, { method, headers, agent }, response => {
		response.resume(); response.on("end", done);
	});
	request.on("error", fail);
	parts.forEach(part => request.write(part));
	request.end();
});
await send("POST", { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) }, body);
await send("POST", { "Idempotency-Key": "n-1" }, "one", "two", "x".repeat(200000));
await send("GET", {});
await send("DELETE", {});
agent.destroy();
""")
    json_lines_are_canonical(compare(live, ["node", script], 4))


@fact
def many_small_writes_and_one_vector_of_a_thousand_pieces(live):
    script = live.write("client.py", """
import os, socket, urllib.parse
port = urllib.parse.urlparse(os.environ["URL"]).port
def answer(s):
    data = b""
    while b"}" not in data: data += s.recv(4096)
body = b"".join(b"piece %d;" % i for i in range(1000))
head = b"POST /v1/charges HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body)
s = socket.create_connection(("127.0.0.1", port))
for i in range(0, len(head + body), 7): s.sendall((head + body)[i:i + 7])
answer(s)
pieces = [head] + [b"PIECE %d;" % i for i in range(1000)]
assert s.sendmsg(pieces) == len(head) + len(body)
answer(s)
""")
    compare(live, ["/usr/bin/python3", script], 2)


@fact
def a_partial_write_with_its_tail_sent_again_is_one_call(live):
    script = live.write("client.py", """
import os, select, socket, urllib.parse
port = urllib.parse.urlparse(os.environ["URL"]).port
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
s.connect(("127.0.0.1", port))
s.setblocking(False)
body = bytes(i * 7 % 251 for i in range(900000))
data = b"POST /v1/charges HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body
while data:
    try:
        data = data[s.send(data):]
    except BlockingIOError:
        select.select([], [s], [])
s.setblocking(True)
s.recv(4096)
""")
    compare(live, ["/usr/bin/python3", script], 1)


play()
