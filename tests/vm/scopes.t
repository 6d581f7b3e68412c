#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What each scope of `watch` takes in, in a guest: what is outside leaves no byte, not even in a recording."""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "live"))

from harness import (HANG_SECONDS, contains, equal, fact, play,  # pylint: disable=wrong-import-position
                     read_lines, wait_for_line)

CGROUPS = "/sys/fs/cgroup"

KNOCKER = """
import os, sys, urllib.request
name, uid, url = sys.argv[1:]
with open("/proc/self/comm", "w") as comm: comm.write(name)
os.setuid(int(uid))
print("ready", flush=True)
for line in sys.stdin:
    urllib.request.urlopen(url, line.strip().encode()).read()
    print("posted", flush=True)
"""

# Both ends in a network namespace of its own.
RECLUSE = """
import os, socket, subprocess, sys, threading
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
server = socket.create_server(("127.0.0.1", 0))
os.setuid(int(sys.argv[1]))
print("ready", flush=True)
for line in sys.stdin:
    client = socket.create_connection(server.getsockname())
    client.sendall(b"POST /recluse HTTP/1.1\\r\\nContent-Length: 0\\r\\n\\r\\n")
    server.accept()[0].close()
    client.close()
    print("posted", flush=True)
"""


def ready(live, argv):
    process = live.start(argv, stdin=subprocess.PIPE)
    equal(wait_for_line(process, argv[-1]), "ready", "its line")
    return process


def knocker(live, mock, name="knocker", uid=0):
    return ready(live, ["/usr/bin/python3", live.write("knocker.py", KNOCKER), name, str(uid), mock.url])


def recluse(live, uid=0):
    return ready(live, ["unshare", "--net", "/usr/bin/python3", live.write("recluse.py", RECLUSE), str(uid)])


def knock(process, text):
    process.stdin.write(text.encode() + b"\n")
    process.stdin.flush()
    equal(wait_for_line(process, "knocker"), "posted", "its line")


def watched(live, scope, outside, inside):
    """Those outside knock, then the one inside, of whose call alone is told. The events of other kinds."""
    paths = {name: live.path(name) for name in ("ledger", "events", "record")}
    watch = live.nightclerk(["watch", *scope, *(word for name, path in paths.items() for word in (f"--{name}", path))])
    wait_for_line(watch, "watch")
    for process in outside:
        knock(process, "the outsider")
    knock(inside, "the insider.")
    watch.send_signal(signal.SIGINT)
    _, err = watch.communicate(timeout=HANG_SECONDS)
    equal(watch.returncode, 0, f"status of watch\n{err.decode()}")
    equal([line["pid"] for line in read_lines(paths["ledger"])], [inside.pid], "pids of the ledger")
    with open(paths["record"], "rb") as file:
        recorded = file.read()
    equal((recorded.count(b"the insider."), recorded.count(b"the outsider")), (1, 0), "bodies that were recorded")
    *events, summary = read_lines(paths["events"])[1:]
    count = summary["bytes"]
    equal((count["in_messages"], count["in_holes"], count["in_blind"]), (count["accepted"], 0, 0), "accepted bytes")
    return [event for event in events if event["kind"] not in ("request", "response")]


@fact
def a_process(live):
    mock = live.mock()
    inside = knocker(live, mock)
    equal(watched(live, ["--pid", str(inside.pid)], [knocker(live, mock)], inside), [], "other events")


@fact
def a_user(live):
    mock = live.mock()
    inside = knocker(live, mock, uid=1000)
    equal(watched(live, ["--uid", "1000"], [knocker(live, mock), recluse(live, 1000)], inside), [], "other events")


@fact
def a_name(live):
    mock = live.mock()
    inside = knocker(live, mock, name="agent")
    equal(watched(live, ["--comm", "agent"], [knocker(live, mock, name="agents")], inside), [], "other events")


@fact
def a_port(live):
    mock, other = live.mock(), live.mock("--log", live.path("other.jsonl"))
    equal(watched(live, ["--port", str(mock.port)], [knocker(live, other)], knocker(live, mock)), [], "other events")


@fact
def a_cgroup_and_that_it_went_to_another_network_namespace(live):
    mock = live.mock()
    inside, away, outside = knocker(live, mock), recluse(live), knocker(live, mock)
    cgroup = f"{CGROUPS}/nightclerk-test-{os.getpid()}"
    os.mkdir(cgroup)
    try:
        for process in (inside, away):
            with open(f"{cgroup}/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(process.pid))
        events = watched(live, ["--cgroup", cgroup], [outside, away], inside)
    finally:
        for process in (inside, away):
            with open(f"{CGROUPS}/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(process.pid))
        os.rmdir(cgroup)
    seen = [(event["kind"], event["blind_kind"], event["pid"]) for event in events]
    equal(seen, [("blind", "netns", away.pid)], "other events")


@fact
def everybody_only_where_that_is_said(live):
    """The one scope that no other test may use: this machine is the test's own."""
    mock = live.mock()
    inside = knocker(live, mock)
    events = live.path("events")
    watch = live.nightclerk(["watch", "--all=host-wide", "--events", events])
    wait_for_line(watch, "watch")
    knock(inside, "hello")
    knock(recluse(live), "hello")
    watch.send_signal(signal.SIGINT)
    _, err = watch.communicate(timeout=HANG_SECONDS)
    equal(watch.returncode, 0, f"status of watch\n{err.decode()}")
    paths = [event["path"] for event in read_lines(events) if event["kind"] == "request"]
    equal(paths, ["/v1/charges", "/recluse"], "paths")
    contains(err.decode(), "2 requests", "summary")


play()
