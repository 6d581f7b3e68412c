#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Memory of `nightclerk run` while many keep-alive connections are idle and one is busy.

usage: idle.py [CONNECTIONS [CALLS_PER_SECOND [SECONDS]]], as root; default 10000 1000 10.

Prints RssAnon of the collector, in KiB: at rest, with every connection open, each after one exchange, at the end of
the busy time, and its highest. The ring is shared memory and no part of RssAnon. Fails above 64 MiB.
"""

import json
import os
import resource
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
LIMIT_KIB = 64 * 1024
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"ok\": true}"


def more_descriptors(count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 1000, count + 1000))


def serve(listener):
    """Answers every request, on any number of connections; each request comes in one send."""
    selector = selectors.EpollSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                connection, _ = listener.accept()
                selector.register(connection, selectors.EVENT_READ)
            elif key.fileobj.recv(65536):
                key.fileobj.sendall(ANSWER)
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()


def ask(connection, request):
    connection.sendall(request)
    data = b""
    while len(data) < len(ANSWER):
        data += connection.recv(65536)


def client(port, connections, rate, seconds):
    """The command that is watched; says on stdout how far it is, and waits for a line before it ends."""
    more_descriptors(connections)
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    for n, connection in enumerate(idle):
        ask(connection, b"GET /idle/%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: */*\r\nUser-Agent: idle/1.0\r\n\r\n" % (n, port))
    print("idle", flush=True)
    sys.stdin.readline()
    busy = socket.create_connection(("127.0.0.1", port))
    busy.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sent, start = 0, time.monotonic()
    while time.monotonic() - start < seconds:
        while sent < (time.monotonic() - start) * rate:
            body = json.dumps({"order": sent, "sku": "bolt-m8"}).encode().ljust(300)
            ask(busy, b"POST /v1/orders HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                      b"Content-Length: %d\r\n\r\n" % (port, len(body)) + body)
            sent += 1
        time.sleep(0.001)
    print(sent, flush=True)
    sys.stdin.readline()


def rss_anon_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:"))


def wait_for_events(path, count):
    """So many calls were answered: what is in flight is no part of what is idle."""
    while True:
        with open(path, "rb") as file:
            if file.read().count(b'"kind":"response"') >= count:
                return
        time.sleep(0.2)


def main(connections=10000, rate=1000, seconds=10):
    if os.environ.get("INSIDE") != "yes":
        os.environ["INSIDE"] = "yes"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    more_descriptors(connections)
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    port = listener.getsockname()[1]
    directory = tempfile.mkdtemp(prefix="nightclerk-bench-")
    events = os.path.join(directory, "events.jsonl")
    run = subprocess.Popen(
        [os.path.join(BUILD, "nightclerk"), "run", "--ledger", os.path.join(directory, "ledger.jsonl"), "--events", events, "--",
         sys.executable, os.path.abspath(__file__), "--client", str(port), str(connections), str(rate), str(seconds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    run.stdout.readline()
    wait_for_events(events, connections)
    idle = highest = rss_anon_kib(run.pid)
    run.stdin.write(b"\n")
    ready = threading.Event()
    words = []
    threading.Thread(target=lambda: (words.append(int(run.stdout.readline())), ready.set()), daemon=True).start()
    while not ready.wait(0.1):
        highest = max(highest, rss_anon_kib(run.pid))
    wait_for_events(events, connections + words[0])
    busy = rss_anon_kib(run.pid)
    run.stdin.write(b"\n")
    run.wait()
    shutil.rmtree(directory)
    print(f"{connections} idle connections: {idle} KiB, {idle * 1024 // connections} bytes each")
    print(f"and {words[0] / seconds:.0f} requests/s for {seconds} s: {busy} KiB at the end, {max(highest, busy)} KiB at most; limit {LIMIT_KIB} KiB")
    return max(highest, busy) > LIMIT_KIB


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        client(*map(int, sys.argv[2:]))
    else:
        sys.exit(main(*map(int, sys.argv[1:])))
