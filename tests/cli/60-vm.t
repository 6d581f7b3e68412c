#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What brings a guest's results back: the TAP that inside.py makes of test programs, and the table. Prints TAP."""

import os
import re
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VM = os.path.join(ROOT, "tests", "vm")

GOOD = "echo 1..2; echo 'ok 1 - one'; echo '# a word'; echo \"ok 2 - $*\""
SHORT = "echo 1..2; echo 'ok 1 - one'"
DIES = "echo 1..1; echo 'ok 1 - one'; exit 3"
SILENT = "true"
SKIPPED = "echo '1..0 # SKIP there is no such door'"
# It ends late, and so does another that holds its output.
LATE = "echo 1..1; echo 'ok 1 - one'; sleep 300 & echo $! >${0%/*}/other; exec sleep 300"

OK = "# door: kprobe\n# send write: ok\n# send splice: skip(no pipes)\n"

failures = 0
count = 0


def equal(name, got, want):
    global failures, count  # pylint: disable=global-statement
    count += 1
    failures += got != want
    print(f"{'ok' if got == want else 'not ok'} {count} - {name}")
    if got != want:
        print(f"# got  {got!r}\n# want {want!r}")


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def inside(folder, text, arguments="", seconds="60"):
    """The exit status of inside.py, and its TAP without the seconds."""
    program = write(os.path.join(folder, "x.t"), f"#!/bin/sh\n{text}\n", 0o755)
    done = subprocess.run([sys.executable, os.path.join(VM, "inside.py"), folder, program + arguments], check=False,
                          stdout=subprocess.DEVNULL, env=dict(os.environ, NIGHTCLERK_VM_TEST_SECONDS=seconds), timeout=60)
    if os.path.exists(other := os.path.join(folder, "other")):
        with open(other, encoding="utf-8") as file:
            os.kill(int(file.read()), signal.SIGKILL)
    with open(os.path.join(folder, "tap"), encoding="utf-8") as file:
        return done.returncode, [re.sub(r"^(# .*) \d+ s$", r"\1 N s", line) for line in file.read().splitlines()]


def table(folder, guests):
    """The exit status of the table of these guests, and its lines. A guest: what its probe said, why it was skipped."""
    for name, (said, skipped) in guests.items():
        if said:
            write(os.path.join(folder, name, "out", "02-capture.t.txt"), said)
        if skipped:
            write(os.path.join(folder, name, "skipped"), skipped)
    done = subprocess.run([os.path.join(VM, "table"), *(os.path.join(folder, name) for name in guests)], check=False,
                          stdout=subprocess.PIPE, text=True, timeout=60)
    return done.returncode, done.stdout.splitlines()


def tests_of_inside():
    for name, arguments, want in (
            ("a program", (GOOD,), (0, ["# x.t: N s", "ok 1 - x.t: one", "# a word", "ok 2 - x.t: ", "1..2"])),
            ("some of its tests", (GOOD, ":a,b"), (0, ["# x.t: N s", "ok 1 - x.t: one", "# a word", "ok 2 - x.t: a b", "1..2"])),
            ("one that is skipped", (SKIPPED,), (0, ["# x.t: N s", "ok 1 - x.t # SKIP there is no such door", "1..1"])),
            ("one that stops", (SHORT,), (1, ["# x.t: N s", "ok 1 - x.t: one", "not ok 2 - x.t: printed 1 of 2 tests",
                                              "# 1..2", "# ok 1 - one", "1..2"])),
            ("one that dies", (DIES,), (1, ["# x.t: N s", "ok 1 - x.t: one", "not ok 2 - x.t: ended with 3",
                                            "# 1..1", "# ok 1 - one", "1..2"])),
            ("one without a plan", (SILENT,), (1, ["# x.t: N s", "not ok 1 - x.t: printed no plan", "1..1"])),
            ("one that does not end", (LATE, "", "5"), (1, ["# x.t: N s", "ok 1 - x.t: one",
                                                          "not ok 2 - x.t: had not ended after 5 s",
                                                          "# 1..1", "# ok 1 - one", "1..2"]))):
        with tempfile.TemporaryDirectory() as folder:
            equal(f"inside.py: {name}", inside(folder, *arguments), want)
    with tempfile.TemporaryDirectory() as folder:
        status, lines = inside(folder, GOOD, "z")
        equal("inside.py: one that is not there", (status, lines[1].partition(" '")[0], lines[2:]),
              (1, "not ok 1 - x.tz: [Errno 2] No such file or directory:", ["1..1"]))


def tests_of_the_table():
    columns = ["send    5.10 kprobe", "write   ok", "splice  skip[1]", "[1] no pipes"]
    failed = OK.replace("write: ok", "write: failed")
    for name, guests, want in (
            ("what was skipped has its reason", {"guest-5.10": (OK, None)}, (0, columns)),
            ("so has a guest", {"guest-5.10": (OK, None), "guest-7": (None, "no kernel")}, (0, columns + ["7: skipped: no kernel"])),
            ("a guest without a result fails", {"guest-5.10": (OK, None), "guest-7": (None, None)}, (1, columns + ["7: no result"])),
            ("a cell that failed fails", {"guest-5.10": (failed, None)}, (1, [c.replace("ok", "failed") for c in columns]))):
        with tempfile.TemporaryDirectory() as folder:
            equal(f"table: {name}", table(folder, guests), want)


tests_of_inside()
tests_of_the_table()
print(f"1..{count}")
sys.exit(1 if failures else 0)
