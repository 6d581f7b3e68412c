#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Figures of the full screen: calls counted at a given rate, what the view costs, how late it shows a call.

usage: screen.py [CALLS_PER_SECOND [SECONDS [COLUMNS [ROWS]]]], as root; prints figures, judges nothing.

The same load twice, with `watch --plain` into /dev/null and with the full screen on a terminal that takes all it is
given. The view's own cost is the difference in processor time, in percent of one core.
"""

import fcntl
import os
import pty
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
NIGHTCLERK = os.path.join(BUILD, "nightclerk")


def request(path, body):
    return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


def take_answer(connection):
    data = b""
    while not data.endswith(b"}") and not data.endswith(b"\n"):
        data += connection.recv(65536)


def load(port, rate, seconds):
    """Calls at that rate, every tenth to a new path, every hundredth a repeat: how many, in which time."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sent, start = 0, time.monotonic()
    while time.monotonic() - start < seconds:
        due = int((time.monotonic() - start) * rate)
        while sent < due:
            number = sent - 1 if sent % 100 == 99 else sent
            path = "/v1/charges" if number % 10 else f"/v1/orders/{number}"
            connection.sendall(request(path, f'{{"n": {number}}}'.ljust(200)))
            take_answer(connection)
            sent += 1
        time.sleep(0.0005)
    connection.close()
    return sent, time.monotonic() - start


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(process, port, rate, seconds):
    time.sleep(0.5)
    before = cpu_seconds(process.pid)
    sent, took = load(port, rate, seconds)
    time.sleep(0.5)
    return sent, took, cpu_seconds(process.pid) - before


def watch_plain(port, rate, seconds):
    process = subprocess.Popen([NIGHTCLERK, "watch", "--plain", "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    drain = threading.Thread(target=lambda: [None for _ in iter(lambda: process.stdout.read(1 << 16), b"")])
    drain.start()
    result = measure(process, port, rate, seconds)
    process.send_signal(signal.SIGINT)
    err = process.stderr.read().decode()
    process.wait()
    return (*result, err)


class Terminal(threading.Thread):
    """Takes what it is given, and notes when."""

    def __init__(self, columns, rows):
        super().__init__(daemon=True)
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.text, self.size = b"", 0
        self.marks = {}

    def run(self):
        while True:
            try:
                piece = os.read(self.master, 1 << 20)
            except OSError:
                return
            if not piece:
                return
            now = time.monotonic()
            self.size += len(piece)
            self.text = (self.text + piece)[-200000:]
            for mark in re.findall(rb"/mark/(\w+)", self.text[-len(piece) - 20:]):
                self.marks.setdefault(mark.decode(), now)


def delays(terminal, port, count=50):
    """Milliseconds from a send to its call on the screen."""
    connection = socket.create_connection(("127.0.0.1", port))
    found = []
    for n in range(count):
        # No letter in the place of its predecessor's: only what differs is sent to a terminal.
        mark = "".join(random.choice("abcdefghijklm" if n % 2 else "nopqrstuvwxyz") for _ in range(8))
        start = time.monotonic()
        connection.sendall(request(f"/mark/{mark}", "{}"))
        while mark not in terminal.marks and time.monotonic() < start + 1:
            time.sleep(0.001)
        if mark in terminal.marks:
            found.append((terminal.marks[mark] - start) * 1000)
        time.sleep(0.037)
    connection.close()
    terminal.marks_sent = count
    return sorted(found)


def watch_screen(port, rate, seconds, columns, rows):
    terminal = Terminal(columns, rows)
    process = subprocess.Popen([NIGHTCLERK, "watch", "--port", str(port)], stdin=terminal.slave, stdout=terminal.slave,
                               stderr=subprocess.PIPE, env={**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    os.close(terminal.slave)
    terminal.start()
    late = threading.Thread(target=lambda: terminal.__dict__.update(late=delays(terminal, port)))
    while b"not seen" not in terminal.text:
        time.sleep(0.01)
    size_before = terminal.size
    loaded = threading.Timer(seconds / 4, late.start)
    loaded.start()
    sent, took, cpu = measure(process, port, rate, seconds)
    late.join()
    size = terminal.size - size_before
    time.sleep(0.5)
    os.write(terminal.master, b"q")
    err = process.stderr.read().decode()
    process.wait()
    return sent + terminal.marks_sent, took, cpu, err, size, terminal.late


def main(rate=5000, seconds=10, columns=80, rows=24):
    if os.environ.get("INSIDE") != "yes":
        os.environ["INSIDE"] = "yes"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.chdir(tempfile.mkdtemp(prefix="nightclerk-bench-"))
    mock = subprocess.Popen([os.path.join(BUILD, "charge-mock")], stdout=subprocess.PIPE)
    port = int(mock.stdout.readline().rpartition(b":")[2])
    sent, took, plain_cpu, err = watch_plain(port, rate, seconds)
    requests = int(re.search(r"(\d+) requests", err).group(1))
    print(f"plain:  {sent} calls in {took:.1f} s ({sent / took:.0f}/s), {requests} counted; {plain_cpu / took * 100:.1f} % of a core")
    sent, took, cpu, err, size, late = watch_screen(port, rate, seconds, columns, rows)
    requests = int(re.search(r"(\d+) requests", err).group(1))
    print(f"screen: {sent} calls in {took:.1f} s ({sent / took:.0f}/s), {requests} counted; {cpu / took * 100:.1f} % of a core; "
          f"{columns}x{rows}, {size / took / 1024:.0f} KiB/s")
    print(f"the view: {(cpu - plain_cpu) / took * 100:+.1f} % of a core; send to screen: p50 {late[len(late) // 2]:.0f} ms, "
          f"p90 {late[int(len(late) * 0.9)]:.0f} ms, max {late[-1]:.0f} ms of {len(late)}")
    print(err.strip().split("\n")[-1])
    mock.terminate()


main(*[int(word) for word in sys.argv[1:]])
