#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Scopes, where processes have other numbers: pid namespaces around nightclerk and around the command; cgroups."""

import os
import re
import signal
import subprocess

from harness import HANG_SECONDS, NIGHTCLERK, check, contains, equal, fact, play, wait_for_line

INSIDE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]

POST = """
import os, sys, urllib.request
urllib.request.urlopen(sys.argv[1], b'{"n": 1}').read()
print(os.getpid(), flush=True)
"""

KNOCKER = """
import os, sys, urllib.request
print(os.getpid(), flush=True)
for line in sys.stdin:
    urllib.request.urlopen(sys.argv[1], line.strip().encode()).read()
    print("posted", flush=True)
"""

# In the namespace: two processes that post, and a watch of the first.
WATCH = """
import signal, subprocess, sys
nightclerk, knocker, url = sys.argv[1:]

def knock(process, text):
    process.stdin.write(text + "\\n")
    process.stdin.flush()
    process.stdout.readline()

knockers = [subprocess.Popen(["/usr/bin/python3", knocker, url], stdin=-1, stdout=-1, text=True) for _ in range(2)]
own = [int(process.stdout.readline()) for process in knockers]
watch = subprocess.Popen([nightclerk, "watch", "--pid", str(own[0])], stdout=-1, text=True)
print(watch.stdout.readline(), end="")
knock(knockers[1], '{"n": 22}')
knock(knockers[0], '{"n": 1}')
print(watch.stdout.readline(), end="")
watch.send_signal(signal.SIGINT)
print(watch.communicate()[0], end="")
for process in knockers: process.communicate()
print("inside", own[0])
sys.exit(watch.returncode)
"""


@fact
def run_works_inside_a_pid_namespace(live):
    mock = live.mock()
    result = live.run(["/usr/bin/python3", live.write("post.py", POST), mock.url], prefix=INSIDE).expect(0)
    equal(len(result.ledger), 1, "ledger lines")
    line = result.ledger[0]
    equal(line["ns_pid"], int(result.stdout), "ns_pid")
    check(line["pid"] > line["ns_pid"], f"pid {line['pid']} is not the machine's number")
    equal(result.summary["bytes"]["in_holes"], 0, "holes")


@fact
def sync_and_mark_find_their_run_inside_a_pid_namespace(live):
    mock = live.mock()
    script = live.write("post.py", POST)
    post = f"/usr/bin/python3 {script} {mock.url}"
    command = f"{post}; {NIGHTCLERK} sync && wc -l <{live.path('call_ledger.jsonl')} && {NIGHTCLERK} mark again; {post}"
    result = live.run(["sh", "-c", command], prefix=INSIDE).expect(0)
    equal(result.stdout.split()[1:2], [b"1"], "ledger lines at the sync")
    equal([line["mark"] for line in result.ledger], [None, "again"], "marks")


@fact
def who_lives_on_is_named_as_the_namespace_numbers_it(live):
    command = ["sh", "-c", "setsid sh -c 'echo $$ >pid; exec sleep 300' >/dev/null 2>&1 & "
                           "while ! [ -s pid ]; do :; done"]
    result = live.run(command, ["--linger", "0"], prefix=INSIDE, replay=False).expect(0)
    with open(live.path("pid"), encoding="utf-8") as file:
        pid = int(file.read())
    equal([survivor["pid"] for survivor in result.summary["survivors"]], [pid], "survivors")


@fact
def watch_takes_the_pid_of_its_own_namespace(live):
    mock = live.mock()
    arguments = [NIGHTCLERK, live.write("knocker.py", KNOCKER), mock.url]
    done = subprocess.run([*INSIDE, "/usr/bin/python3", live.write("watch.py", WATCH), *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_SECONDS, check=False)
    equal(done.returncode, 0, f"status of watch\n{done.stderr.decode()}")
    lines = done.stdout.decode().splitlines()
    equal(len(lines), 3, f"lines {lines}")
    equal(lines[1].split()[5], "8", "bytes of the body that the first one sent")
    equal(len(mock.log), 2, "requests that reached the server")


@fact
def watch_refuses_a_process_of_another_network_namespace_and_works_from_inside(live):
    script = live.write("ready.py", "print('ready', flush=True); input()")
    other = live.start(["unshare", "--net", "/usr/bin/python3", script], stdin=subprocess.PIPE)
    equal(wait_for_line(other, "the other one"), "ready", "its line")
    watch = ["watch", "--pid", str(other.pid)]
    done = subprocess.run([NIGHTCLERK, *watch], stderr=subprocess.PIPE, timeout=HANG_SECONDS, check=False)
    equal(done.returncode, 2, "status")
    contains(done.stderr.decode(), "--pid is of a process in another network namespace: put nsenter -t PID -n before "
                                   "nightclerk", "stderr")
    inside = live.nightclerk(watch, ["nsenter", "-t", str(other.pid), "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"])
    wait_for_line(inside, "watch")
    inside.send_signal(signal.SIGINT)
    _, err = inside.communicate(timeout=HANG_SECONDS)
    equal(inside.returncode, 0, f"status of watch\n{err.decode()}")


@fact
def a_child_in_a_pid_namespace_of_its_own_is_followed(live):
    mock = live.mock()
    result = live.run([*INSIDE, "/usr/bin/python3", live.write("post.py", POST), mock.url]).expect(0)
    equal(result.stdout, b"1\n", "its own number")
    equal([line["ns_pid"] for line in result.ledger], [1], "ns_pid")


# ---- cgroups ----


def cgroup_root():
    with open("/proc/mounts", encoding="utf-8") as mounts:
        return next(line.split()[1] for line in mounts if line.split()[2] == "cgroup2")


def remove(cgroup):
    """Its processes are the test's own, and have ended or are about to."""
    with open(f"{cgroup}/cgroup.procs", encoding="utf-8") as file:
        for pid in file.read().split():
            os.kill(int(pid), signal.SIGKILL)
    with open(f"{cgroup}/cgroup.events", encoding="utf-8") as events:
        while "populated 1" in events.read():
            os.sched_yield()
            events.seek(0)
    os.rmdir(cgroup)


def knock(process, text):
    process.stdin.write(text.encode() + b"\n")
    process.stdin.flush()
    equal(wait_for_line(process, "knocker"), "posted", "knocker")


@fact
def watch_follows_a_cgroup_and_what_is_below_it(live):
    mock = live.mock()
    script = live.write("knocker.py", KNOCKER)
    cgroup = f"{cgroup_root()}/nightclerk-test-{os.getpid()}"
    inner = f"{cgroup}/inner"
    os.makedirs(inner)
    try:
        knockers = []
        for where in (cgroup, inner, None):
            process = live.start(["/usr/bin/python3", script, mock.url], stdin=subprocess.PIPE)
            wait_for_line(process, "knocker")
            if where:
                with open(f"{where}/cgroup.procs", "w", encoding="ascii") as file:
                    file.write(str(process.pid))
            knockers.append(process)
        watch = live.nightclerk(["watch", "--cgroup", cgroup])
        wait_for_line(watch, "watch")
        for number, process in enumerate(reversed(knockers)):
            knock(process, f'{{"n": {number}}}')
        watch.send_signal(signal.SIGINT)
        out, err = watch.communicate(timeout=HANG_SECONDS)
        equal(watch.returncode, 0, f"status of watch\n{err.decode()}")
        pids = [int(re.split(" +", line)[1]) for line in out.decode().splitlines()]
        equal(pids, [knockers[1].pid, knockers[0].pid], "pids of the lines")
        contains(err.decode(), "2 requests (2 mutating)", "summary")
    finally:
        remove(inner)
        remove(cgroup)


play()
