#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""After a run, and after all the tests before this one, nothing of nightclerk is left in the kernel."""

import glob
import os
import signal
import subprocess

from harness import STARTED, bpf_objects, bpf_objects_of, check, equal, fact, play, read_lines, wait_for_line, wait_until


def tracefs_events():
    """kprobe events made in tracefs; absent where the kernel has no kprobes."""
    events = []
    for root in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        if os.path.exists(f"{root}/kprobe_events"):
            with open(f"{root}/kprobe_events", encoding="utf-8") as file:
                events += [line for line in file if "nightclerk" in line]
    return events


def run_until_it_waits(live):
    process = live.nightclerk(live.run_arguments(["sh", "-c", "echo up; read line"]), stdin=subprocess.PIPE)
    equal(wait_for_line(process, "the command"), "up", "its line")
    objects = bpf_objects_of(process.pid)
    equal({kind for kind, _ in objects} >= {"prog", "map"}, True, f"kinds in {objects}")
    check(objects <= bpf_objects(), "bpftool does not list what the process holds: the test does not work")
    return process, objects


@fact
def nothing_is_left_after_a_run(live):
    process, objects = run_until_it_waits(live)
    live.finish(process, b"\n").expect(0)
    wait_until(lambda: not (objects & bpf_objects()), f"{len(objects)} objects are gone")


@fact
def nothing_is_left_after_sigterm(live):
    process, objects = run_until_it_waits(live)
    process.send_signal(signal.SIGTERM)
    live.finish(process)
    wait_until(lambda: not (objects & bpf_objects()), f"{len(objects)} objects are gone")


@fact
def nothing_is_left_after_sigkill(live):
    process, objects = run_until_it_waits(live)
    process.kill()
    live.finish(process)
    wait_until(lambda: not (objects & bpf_objects()), f"{len(objects)} objects are gone")


@fact
def no_nightclerk_of_the_tests_is_alive(_):
    left = []
    for line in read_lines(STARTED):
        try:
            with open(f"/proc/{line['pid']}/comm", encoding="utf-8") as file:
                comm = file.read().strip()
            with open(f"/proc/{line['pid']}/stat", encoding="utf-8") as file:
                state = file.read().rpartition(")")[2].split()
        except FileNotFoundError:
            continue
        if comm == "nightclerk" and state[0] != "Z" and state[19] == line["start"]:
            left.append(line["pid"])
    equal(left, [], "pids")


@fact
def no_tracefs_event_pin_or_namespace_is_left(_):
    equal(tracefs_events(), [], "kprobe_events")
    equal(glob.glob("/sys/fs/bpf/nightclerk*"), [], "pins")
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, check=True).stdout.decode()
    equal([line for line in listed.splitlines() if line.startswith("nightclerk")], [], "namespaces")


play()
