#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs test programs that print TAP, shows what failed, counts.

usage: run.py [--label NAME] [--wrap 'COMMAND'] [--jobs N] PROGRAM... [--label NAME ...]

Programs run one after the other, or N at once; each option holds until it is
given again.

Exit status 0 only if nothing failed. A program that dies, prints no plan or
prints fewer tests than it planned has failed, whatever its lines say.
"""
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

LINE = re.compile(r"^(not )?ok\b\s*(\d+)?\s*-?\s*(.*)$")
LIMIT_SECONDS = int(os.environ.get("NIGHTCLERK_TEST_SECONDS", "900"))


def run(label, wrap, program):
    environment = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP")
    started = time.monotonic()
    try:
        done = subprocess.run(
            shlex.split(wrap) + [program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment, timeout=LIMIT_SECONDS, stdin=subprocess.DEVNULL)
        output, errors, status = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        output, errors, status = late.stdout or b"", late.stderr or b"", "no end"
    text = output.decode("utf-8", "replace")
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    shown, planned = [], None
    for line in text.splitlines():
        plan = re.match(r"^1\.\.(\d+)(\s*# [Ss][Kk][Ii][Pp]\S*\s*(.*))?$", line)
        if plan:
            planned = int(plan.group(1))
            if plan.group(2):
                counts["skipped"] += 1
                shown.append("skipped: " + (plan.group(3) or "no reason given"))
            continue
        match = LINE.match(line)
        if not match:
            continue
        if re.search(r"#\s*SKIP", line, re.I):  # cmocka writes "not ok" before it
            counts["skipped"] += 1
            shown.append(line)
        elif match.group(1):
            counts["failed"] += 1
            shown.append(line)
        else:
            counts["passed"] += 1
    seen = sum(counts.values())
    broken = None
    if status != 0 and not counts["failed"]:
        broken = "ended with %s" % status
    elif planned is None:
        broken = "printed no plan"
    elif seen < planned:
        broken = "printed %d of %d tests" % (seen, planned)
    if broken:
        counts["failed"] += 1
        shown.append("not ok - %s %s" % (program, broken))
    said = ["%-10s %-34s %4d passed %s%s  %.1f s" % (
        label, os.path.basename(program), counts["passed"],
        "%d FAILED" % counts["failed"] if counts["failed"] else "0 failed",
        " %d skipped" % counts["skipped"] if counts["skipped"] else "",
        time.monotonic() - started)]
    said += ["    " + line for line in shown]
    if counts["failed"]:
        said += ["    | " + line for line in (text + errors.decode("utf-8", "replace")).splitlines()[-60:]]
    print("\n".join(said), flush=True)
    return counts


def batches(words):
    """(label, wrap, jobs, programs), in order."""
    label, wrap, jobs, programs = "test", "", 1, []
    words = iter(words)
    for word in words:
        if word in ("--label", "--wrap", "--jobs"):
            if programs:
                yield label, wrap, jobs, programs
            programs, value = [], next(words)
            label = value if word == "--label" else label
            wrap = value if word == "--wrap" else wrap
            jobs = int(value) if word == "--jobs" else jobs
        else:
            programs.append(word)
    if programs:
        yield label, wrap, jobs, programs


def main(words):
    total = {"passed": 0, "failed": 0, "skipped": 0}
    for label, wrap, jobs, programs in batches(words):
        with ThreadPoolExecutor(jobs) as pool:
            for counts in pool.map(lambda program: run(label, wrap, program), programs):
                for name, count in counts.items():
                    total[name] += count
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % total, flush=True)
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
