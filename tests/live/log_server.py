#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A server with a log of its own of what reached it: method, target, length and hashes of the body, key, and which
process sent it. Shares nothing with the observer but the rules: Python's http.server reads the requests.

usage: log_server.py LOG    prints its port; one JSON line a request, written before the answer
"""

import http.server
import json
import os
import sys
import threading
import urllib.parse

from harness import canonical_sha, own_namespace, sha

UNRESERVED = "-._~"  # beside letters and digits: RFC 3986 section 2.3


def form_sha(body):
    """The canonical form of a form: decoded, sorted by name, spelled one way."""
    pairs = []
    for piece in body.split(b"&"):
        if piece:
            name, _, value = piece.partition(b"=")
            pairs.append([urllib.parse.unquote_to_bytes(part.replace(b"+", b" ")) for part in (name, value)])
    pairs.sort(key=lambda pair: pair[0])
    return sha("&".join("=".join(urllib.parse.quote(part, safe=UNRESERVED) for part in pair) for pair in pairs).encode())


def canonical(content_type, body):
    """Of a multipart body the log says nothing: its rules would have to be written down twice."""
    kind = content_type.partition(";")[0].strip().lower()
    if not body:
        return "none", sha(b"")
    if kind == "application/json":
        return "json", canonical_sha(body)
    if kind == "application/x-www-form-urlencoded":
        return "form", form_sha(body)
    if kind == "multipart/form-data":
        return "multipart", None
    return "raw", sha(body)


def inode_of(port, peer_port):
    """The socket at the other end of a loopback connection, by its two ports; a client may speak IPv4 on an IPv6 one."""
    for name in ("tcp", "tcp6"):
        with open(f"/proc/self/net/{name}", encoding="ascii") as table:
            for line in table.readlines()[1:]:
                fields = line.split()
                if fields[1].endswith(f":{peer_port:04X}") and fields[2].endswith(f":{port:04X}"):
                    return fields[9]
    return None


def processes():
    """Those in this network namespace."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if str(os.stat(f"/proc/{name}/ns/net").st_ino) == own_namespace():
                yield int(name)
        except OSError:
            continue


def owner_of(inode):
    for pid in processes():
        try:
            fds = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for fd in fds:
            try:
                if os.readlink(f"/proc/{pid}/fd/{fd}") == f"socket:[{inode}]":
                    return pid
            except OSError: # closed meanwhile
                continue
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def chunks(self):
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            return self.chunks()
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def answer(self):
        body = self.body()
        kind, canonical_hash = canonical(self.headers.get("Content-Type", ""), body)
        line = {
            "method": self.command, "target": self.path, "len": len(body), "sha_raw": sha(body), "canon": kind,
            "sha": canonical_hash, "idem": self.headers.get("Idempotency-Key"),
            "pid": owner_of(inode_of(self.server.server_address[1], self.client_address[1])),
        }
        with self.server.lock:
            self.server.log.write(json.dumps(line) + "\n")
        answer = b'{"ok": true}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that resets its idle connection is no news; what a request lacks, the log lacks."""


def main():
    server = Server(("127.0.0.1", 0), Handler)
    server.lock = threading.Lock()
    with open(sys.argv[1], "a", encoding="utf-8", buffering=1) as server.log:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
