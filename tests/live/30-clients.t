#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Real clients, each with its own way to write a request: the ledger is the server's own log, line for line."""

import os
import subprocess

from clients import compare, json_came, needs
from harness import SLOW, Skip, equal, fact, play, sha


@fact
def curl(live):
    result = compare(live, ["sh", "-c", """
        curl -s "$URL" -H 'Content-Type: application/json' -H 'Idempotency-Key: k-1' -d "$BODY"
        curl -s "$URL?page=2" "$URL?page=3"
        head -c 1500000 /dev/zero | curl -s "$URL" -H 'Expect: 100-continue' --data-binary @-
        curl -s "$URL" -H 'Transfer-Encoding: chunked' -d a=1
        curl -s -I "$URL"
        curl -s "$URL" -F one=1 -F 'file=@/etc/hostname;filename=f'
    """], 7)
    json_came(result)
    equal([line["query"] for line in result.ledger][1:3], ["page=2", "page=3"], "queries")
    equal(result.ledger[3]["sha_raw"], sha(bytes(1500000)), "hash of the large body")


@fact
def python_urllib(live):
    script = live.write("client.py", """
import os, urllib.request as u
url, body = os.environ["URL"], os.environ["BODY"].encode()
u.urlopen(u.Request(url, body, {"Content-Type": "application/json", "Idempotency-Key": "k-1"})).read()
u.urlopen(u.Request(url, b"a=1&b=2")).read()
u.urlopen(u.Request(url, iter([b"a" * 70000, b"b", b"c" * 70000]))).read()
""")
    json_came(compare(live, ["/usr/bin/python3", script], 3))


@fact
def python_requests(live):
    script = live.write("client.py", """
import os, requests
url, body = os.environ["URL"], os.environ["BODY"].encode()
s = requests.Session()
s.post(url, data=body, headers={"Content-Type": "application/json", "Idempotency-Key": "k-1"})
s.get(url, params={"q": "x y"})
s.post(url, data=(b"part %d" % i for i in range(5)))
s.post(url, files={"file": ("name.bin", bytes(range(256)))})
s.put(url, data={"a": "1"})
""")
    json_came(compare(live, ["/usr/bin/python3", script], 5))


@fact
def node_fetch(live):
    script = live.write("client.mjs", """
const { URL: url, BODY: body } = process.env;
const post = (body, headers = {}) => fetch(url, { method: "POST", body, headers }).then(r => r.text());
await post(body, { "Content-Type": "application/json", "Idempotency-Key": "k-1" });
await post(new URLSearchParams({ a: "1", b: "ü" }));
await post("x".repeat(300000));
await fetch(url + "?q=1").then(r => r.text());
const form = new FormData(); form.set("file", new Blob(["hello"]), "hello.txt");
await post(form);
""")
    json_came(compare(live, ["node", script], 5))


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
await send("POST", { "Content-Type": "application/json", "Idempotency-Key": "k-1", "Content-Length": Buffer.byteLength(body) }, body);
await send("POST", {}, "one", "two", "x".repeat(200000));
await send("GET", {});
await send("DELETE", {});
agent.destroy();
""")
    json_came(compare(live, ["node", script], 4))


@fact
def wget(live):
    needs("wget")
    json_came(compare(live, ["sh", "-c", """
        wget -q -O /dev/null --header 'Content-Type: application/json' --header 'Idempotency-Key: k-1' --post-data "$BODY" "$URL"
        wget -q -O /dev/null --post-data 'b=2&a=1' "$URL"
        wget -q -O /dev/null "$URL?page=1" "$URL?page=2"
        wget -q -O /dev/null --method PUT --body-data 'text' "$URL"
        wget -q --spider "$URL"
    """], 6))


PYTHON_PACKAGE = """
import os
url, body = os.environ["URL"], os.environ["BODY"]
json_headers = {"Content-Type": "application/json", "Idempotency-Key": "k-1"}
"""


def python_package(live, name, script, want_count):
    if subprocess.run(["/usr/bin/python3", "-c", f"import {name}"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip(f"python3-{name} is not installed")
    json_came(compare(live, ["/usr/bin/python3", live.write("client.py", PYTHON_PACKAGE + script)], want_count))


@fact
def python_httpx(live):
    python_package(live, "httpx", """
import httpx
with httpx.Client() as client:
    client.post(url, content=body, headers=json_headers)
    client.post(url, json={"a": 1.5})
    client.post(url, data={"b": "x y", "a": "ü"})
    client.post(url, files={"file": ("name.bin", bytes(range(256)))})
    client.post(url, content=(b"part %d" % i for i in range(5)))
    client.get(url, params={"q": "x y"})
    client.delete(url)
""", 7)


@fact
def python_aiohttp(live):
    python_package(live, "aiohttp", """
import aiohttp, asyncio
async def parts():
    for i in range(5):
        yield b"part %d" % i
async def main():
    async with aiohttp.ClientSession() as session:
        async def send(method, **more):
            async with session.request(method, more.pop("to", url), **more) as answer:
                await answer.read()
        await send("POST", data=body, headers=json_headers)
        await send("POST", json={"a": 1.5})
        await send("POST", data={"b": "x y", "a": "ü"})
        await send("POST", data=parts())
        await send("POST", data=b"z" * 300000, expect100=True)
        await send("GET", to=url + "?q=1")
asyncio.run(main())
""", 6)


@fact
def perl_http_tiny(live):
    needs("perl")
    script = live.write("client.pl", """
use strict; use HTTP::Tiny;
my ($url, $body) = @ENV{"URL", "BODY"};
my $http = HTTP::Tiny->new;
$http->post($url, { headers => { "Content-Type" => "application/json", "Idempotency-Key" => "k-1" }, content => $body });
$http->post_form($url, [b => "x y", a => 1]);
my @parts = ("one", "two", "");
$http->put($url, { content => sub { shift @parts } });
$http->get("$url?q=1");
$http->delete($url);
""")
    json_came(compare(live, ["perl", script], 5))


@fact
def java_http_client(live):
    """It asks for HTTP/2 on the first request of a connection; the server goes on in HTTP/1.1."""
    needs("javac")
    if SLOW:
        raise Skip("a Java compiler takes minutes on an emulated kernel")
    script = live.write("Client.java", """
import java.net.*; import java.net.http.*; import java.net.http.HttpRequest.BodyPublishers;
public class Client {
	static HttpClient client = HttpClient.newHttpClient();
	static void send(HttpRequest.Builder request) throws Exception {
		client.send(request.build(), HttpResponse.BodyHandlers.ofString());
	}
	static HttpRequest.Builder to(String url) { return HttpRequest.newBuilder(URI.create(url)); }
	public static void main(String[] arguments) throws Exception {
		String url = System.getenv("URL"), body = System.getenv("BODY");
		send(to(url).header("Content-Type", "application/json").header("Idempotency-Key", "k-1").POST(BodyPublishers.ofString(body)));
		send(to(url).POST(BodyPublishers.ofInputStream(() -> new java.io.ByteArrayInputStream(new byte[100000]))));
		send(to(url).PUT(BodyPublishers.ofByteArray(new byte[50000])).expectContinue(true));
		send(to(url + "?q=1"));
		send(to(url).DELETE());
	}
}
""")
    subprocess.run(["javac", "-d", live.directory, script], check=True, capture_output=True)
    json_came(compare(live, ["java", "-cp", live.directory, "Client"], 5))


@fact
def go_net_http(live):
    needs("go")
    script = live.write("client.go", """
package main

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

func finish(answer *http.Response, err error) {
	if err != nil {
		panic(err)
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
}

func main() {
	to, body := os.Getenv("URL"), os.Getenv("BODY")
	request, _ := http.NewRequest("POST", to, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", "k-1")
	finish(http.DefaultClient.Do(request))
	finish(http.PostForm(to, url.Values{"b": {"x y"}, "a": {"1"}}))
	finish(http.Post(to, "text/plain", io.MultiReader(bytes.NewReader(make([]byte, 70000)), strings.NewReader("end"))))
	finish(http.Get(to + "?q=1"))
}
""")
    program = live.path("client")
    env = {**os.environ, "GOCACHE": live.path("cache"), "GO111MODULE": "off"}
    subprocess.run(["go", "build", "-o", program, script], check=True, capture_output=True, env=env)
    json_came(compare(live, [program], 4))


@fact
def a_64_mib_upload_keeps_its_raw_hash(live):
    with open(live.path("upload"), "wb") as file:
        for n in range(64):
            file.write(bytes([n]) * (1 << 20))
    result = compare(live, ["sh", "-c", 'curl -sf -o /dev/null -T upload "$URL"'], 1)
    equal([(line["len"], line["canon"]) for line in result.ledger], [(64 << 20, "raw")], "length and kind")


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
