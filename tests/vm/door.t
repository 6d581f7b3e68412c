#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The kprobe door, in a guest: it is the one that is taken, it says so when it does not fire, it leaves nothing."""

import contextlib
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "live"))

from harness import NIGHTCLERK, check, contains, equal, fact, play  # pylint: disable=wrong-import-position

TRACEFS = "/sys/kernel/tracing"
BY_RETURN = not os.path.exists(f"{TRACEFS}/events/sock/sock_send_length")
SENDS_PAGES = "do_tcp_sendpages" in open("/proc/kallsyms", encoding="ascii").read()
EVENTS = 2 + BY_RETURN + SENDS_PAGES  # the returns of a send's two waits, of a send, of a send of pages
HAS_TRACEPOINTS = os.path.exists(f"{TRACEFS}/events/tcp/tcp_sendmsg_locked")
SENDERS = 40
BODY_BYTES = 200_000

# All senders sleep in their send at once, because the server does not read before all of them have come. Then it
# reads of all at once: with so small a window a sender may wait for a timer of 200 ms before each segment.
BLOCKED = """
import select, socket, sys, threading

senders, body_bytes = map(int, sys.argv[1:3])
head = b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n"
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
listener.bind(("127.0.0.1", 0))
listener.listen(senders)

def send(number):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    sock.connect(listener.getsockname())
    sock.sendall(b"POST /%d HTTP/1.1\\r\\nHost: h\\r\\nContent-Length: %d\\r\\n\\r\\n" % (number, body_bytes)
                 + bytes([number]) * body_bytes)
    while sock.recv(4096):
        pass

def asleep(thread):  # in sendto(2); wchan would say more, but before 5.16 often says 0
    with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
        return file.read().split()[0] == "44"

def answer(sock):
    got = b""
    while b"\\r\\n\\r\\n" not in got:
        got += sock.recv(65536)
    left = body_bytes - len(got.partition(b"\\r\\n\\r\\n")[2])
    while left:
        left -= len(sock.recv(65536))
    sock.sendall(head)
    sock.close()

threads = [threading.Thread(target=send, args=(n,)) for n in range(senders)]
for thread in threads: thread.start()
peers = [listener.accept()[0] for _ in range(senders)]
while not all(map(asleep, threads)): select.select([], [], [], 0.01)
threads += [threading.Thread(target=answer, args=(peer,)) for peer in peers]
for thread in threads[senders:]: thread.start()
for thread in threads: thread.join()
"""


def doctor(prefix=()):
    """The exit status and the checks, by name."""
    done = subprocess.run([*prefix, NIGHTCLERK, "doctor", "--json"], capture_output=True, check=False)
    checks = json.loads(done.stdout)["checks"]
    return done.returncode, {c["name"]: c for c in checks}


@contextlib.contextmanager
def kprobes_off():
    """The kernel takes probes, and none of them fires."""
    switch = "/sys/kernel/debug/kprobes/enabled"
    with open(switch, "w", encoding="ascii") as file:
        file.write("0")
    try:
        yield
    finally:
        with open(switch, "w", encoding="ascii") as file:
            file.write("1")


def own_events():
    with open(f"{TRACEFS}/kprobe_events", encoding="ascii") as file:
        return [line.split()[0].partition(":")[2] for line in file if "nightclerk/" in line]


@fact
def doctor_trusts_the_gate_through_the_kprobe_door(_):
    status, checks = doctor()
    for name in ("door kprobe", "door of run"):
        contains("{found} {remedy}".format(**checks[name]), "kprobe: loads and fires", name)
    equal(status, 0, "exit status")


@fact
def a_run_names_its_door(live):
    result = live.run(["true"]).expect(0)
    equal(result.of_kind("start")[0]["door"], "kprobe", "door")
    equal(result.of_kind("start")[0]["kernel"], os.uname().release, "kernel")


@fact
def every_sender_that_slept_is_whole(live):
    script = live.write("blocked.py", BLOCKED)
    result = live.run(["/usr/bin/python3", script, str(SENDERS), str(BODY_BYTES)]).expect(0)
    equal(sorted(line["path"] for line in result.ledger), sorted(f"/{n}" for n in range(SENDERS)), "paths")
    equal({line["request_complete"] for line in result.ledger}, {True}, "request_complete")
    equal({line["len"] for line in result.ledger}, {BODY_BYTES}, "lengths")
    count = result.summary["bytes"]
    equal((count["in_holes"], count["in_blind"]), (0, 0), "holes and blind bytes")
    equal(result.summary["recursion_misses"], 0, "recursion_misses")


@fact
def probes_that_do_not_fire_are_125_and_nothing_is_started(live):
    with kprobes_off():
        result = live.run(["touch", live.path("started")]).expect(125)
        status, checks = doctor()
    contains(result.stderr, "the probes load but do not fire (door kprobe)", "stderr")
    check(not os.path.exists(live.path("started")), "the command was started")
    equal(checks["door kprobe"]["found"], "loads, does not fire", "door kprobe")
    if checks["door tracepoint"]["state"] != "ok":
        equal(status, 1, "exit status of doctor")


@fact
def without_tracefs_it_says_so_or_takes_the_other_door(live):
    hide = 'umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug; exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", hide, "sh"]
    if HAS_TRACEPOINTS:  # then there is another door
        equal(live.run(["true"], prefix=prefix).expect(0).of_kind("start")[0]["door"], "tracepoint", "door")
        return
    result = live.run(["touch", live.path("started")], prefix=prefix).expect(125)
    contains(result.stderr, "tracefs", "stderr")
    check(not os.path.exists(live.path("started")), "the command was started")


@fact
def the_events_of_a_run_end_with_it(live):
    result = live.run(["cat", f"{TRACEFS}/kprobe_events"]).expect(0)
    equal(result.stdout.count(b"nightclerk/"), EVENTS, "events during the run")
    equal(own_events(), [], "events after it")


@fact
def what_a_killed_run_left_goes_with_the_next(live):
    process = live.nightclerk(live.run_arguments(["sh", "-c", "echo started; exec cat"]), stdin=subprocess.PIPE)
    equal(process.stdout.readline(), b"started\n", "the command's line")
    process.send_signal(signal.SIGKILL)
    process.stdin.close()
    process.wait()
    equal(len(own_events()), EVENTS, "events that it left")
    live.run(["true"]).expect(0)
    equal(own_events(), [], "events after the next run")


play()
