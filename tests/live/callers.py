# SPDX-License-Identifier: BSD-2-Clause
"""Who calls, and who answers, where a test needs many calls of which it knows each."""

import subprocess
import sys

from harness import equal, wait_for_line

# Answers with a head alone, whatever comes: the least that a call can cost.
SERVER = """
import re, selectors, socket
selector, listener = selectors.DefaultSelector(), socket.create_server(("127.0.0.1", 0), backlog=1024)
selector.register(listener, selectors.EVENT_READ, b"")
print(listener.getsockname()[1], flush=True)
def answer(key):
    # (unfinished head, bytes of a body to skip)
    head, skip = key.data or (b"", 0)
    piece = key.fileobj.recv(1 << 20)
    if not piece:
        return None
    while piece:
        if skip:
            piece, skip = piece[skip:], max(0, skip - len(piece))
        else:
            head += piece
            end = head.find(b"\\r\\n\\r\\n")
            if end < 0:
                break
            skip = int(re.search(rb"Content-Length: (\\d+)", head).group(1))
            head, piece = b"", head[end + 4:]
            if skip:
                piece, skip = piece[skip:], max(0, skip - len(piece))
        if not skip:
            key.fileobj.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
    return head, skip
while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            selector.register(listener.accept()[0], selectors.EVENT_READ, None)
            continue
        try:
            data = answer(key)
        except OSError:
            data = None
        if data is None:
            selector.unregister(key.fileobj)
            key.fileobj.close()
        else:
            selector.modify(key.fileobj, selectors.EVENT_READ, data)
"""

COMMON = """
import os, socket, sys, threading
who, port = sys.argv[1], int(sys.argv[2])
if who.startswith("/"):
    open(who + "/cgroup.procs", "w").write(str(os.getpid()))
elif who:
    os.setgroups([]); os.setgid(int(who)); os.setuid(int(who))
def connect():
    return socket.create_connection(("127.0.0.1", port))
def call(peer, body):
    peer.sendall(b"POST /v1/charges HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Type: application/json\\r\\n"
                 b"Content-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
    answer = b""
    while b"\\r\\n\\r\\n" not in answer:
        piece = peer.recv(65536)
        if not piece:
            sys.exit("the server closed")
        answer += piece
"""

# COUNT calls over one connection; each tenth one repeats the one before it. Then it says how many, keeps the connection
# and does as many more for each line that it is given.
CALLER = COMMON + """
count, done = int(sys.argv[3]), 0
peer = connect()
print("ready", flush=True)
for line in sys.stdin:
    for i in range(done, done + count):
        call(peer, b'{"of": "%s", "n": %d}' % (who.encode(), i - (i % 10 == 9)))
    done += count
    print(done, flush=True)
"""

# So many seconds long so many calls a second, over two connections in turn; then it says how many.
PACED = COMMON + """
import time
seconds, rate = float(sys.argv[3]), float(sys.argv[4])
peers = [connect() for _ in range(2)]
print("ready", flush=True)
sys.stdin.readline()
begin, count = time.monotonic(), 0
while True:
    now = time.monotonic()
    if now >= begin + seconds:
        break
    due = begin + count / rate
    if due > now:
        time.sleep(due - now)
    call(peers[count % 2], b'{"of": "%s", "n": %d}' % (who.encode(), count))
    count += 1
for peer in peers:
    peer.close()
print(count, flush=True)
"""

# Bodies of a MiB back to back, and connections with one call each, until it is ended.
FLOODER = COMMON + """
body = b'{"flood": "' + b"x" * (1 << 20) + b'"}'
print("ready", flush=True)
sys.stdin.readline()
def short():
    while True:
        peer = connect()
        call(peer, b'{"short": 1}')
        peer.close()
threading.Thread(target=short, daemon=True).start()
peer = connect()
while True:
    call(peer, body)
"""


class Callers:
    """who: the folder of a cgroup, a uid, or "" for the caller's own."""

    def __init__(self, live):
        self.live = live
        self.port = wait_for_line(live.start([sys.executable, "-c", SERVER]), "the server")

    def start(self, script, who, *arguments):
        process = self.live.start([sys.executable, "-c", script, who, self.port, *arguments], stdin=subprocess.PIPE)
        equal(wait_for_line(process, "a caller"), "ready", "what a caller says")
        return process

    def caller(self, who, count):
        return self.start(CALLER, who, str(count))

    def paced(self, who, seconds, rate):
        return self.start(PACED, who, str(seconds), str(rate))

    def flooder(self, who):
        return self.start(FLOODER, who)


def order(process):
    process.stdin.write(b"\n")
    process.stdin.flush()


def done(process):
    """How many calls it has had answered."""
    return int(wait_for_line(process, "a caller"))
