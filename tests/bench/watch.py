#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Figures of `watch --plain`: lines lost at a given rate, and the time from a send to its alert.

usage: watch.py [CALLS_PER_SECOND [SECONDS [ALERTS]]], as root; prints figures, judges nothing.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")


def request(path, body):
    return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


def answer(connection):
    data = b""
    while b"\r\n\r\n" not in data or len(data) < data.index(b"\r\n\r\n") + 4 + 36:
        data += connection.recv(65536)


def main(rate=5000, seconds=10, alerts=200):
    if os.environ.get("INSIDE") != "yes":
        os.environ["INSIDE"] = "yes"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.chdir(tempfile.mkdtemp(prefix="nightclerk-bench-"))
    mock = subprocess.Popen([os.path.join(BUILD, "charge-mock")], stdout=subprocess.PIPE)
    port = int(mock.stdout.readline().rpartition(b":")[2])
    watch = subprocess.Popen([os.path.join(BUILD, "nightclerk"), "watch", "--port", str(port), "--plain"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    watch.stdout.readline()
    seen = {"calls": 0}
    blocks, block_came = [], threading.Semaphore(0)

    def read():
        for line in watch.stdout:
            now = time.monotonic()
            if line.startswith(b"nightclerk: "):
                blocks.append(now)
                block_came.release()
            elif line[2:3] == b":":
                seen["calls"] += 1

    reader = threading.Thread(target=read)
    reader.start()
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sent, start = 0, time.monotonic()
    while time.monotonic() - start < seconds:
        due = int((time.monotonic() - start) * rate)
        while sent < due:
            connection.sendall(request("/v1/charges", json.dumps({"n": sent}).ljust(200)))
            answer(connection)
            sent += 1
    took = time.monotonic() - start
    times = []
    for n in range(alerts):
        for _ in range(2):
            now = time.monotonic()
            connection.sendall(request("/v1/charges", json.dumps({"alert": n})))
            answer(connection)
        times.append(now)
        if not block_came.acquire(timeout=10):
            print(f"alert {n} never came")
            break
    time.sleep(1)
    watch.send_signal(signal.SIGINT)
    reader.join()
    summary = watch.stderr.read().decode().strip()
    watch.wait()
    mock.terminate()
    delays = sorted((came - sent_at) * 1000 for came, sent_at in zip(blocks, times))
    print(f"calls sent: {sent} in {took:.1f} s ({sent / took:.0f}/s), lines shown: {seen['calls']} of {sent + 2 * alerts}")
    print(f"alerts: {len(delays)} of {alerts}; send to alert: p50 {delays[len(delays) // 2]:.1f} ms, "
          f"p99 {delays[int(len(delays) * 0.99)]:.1f} ms, max {delays[-1]:.1f} ms")
    print(summary)


main(*[int(word) for word in sys.argv[1:]])
