#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a command line may not say, each with the sentence for it. Prints TAP."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NIGHTCLERK = os.path.join(os.environ.get("NIGHTCLERK_BUILD", os.path.join(ROOT, "build")), "nightclerk")

SIZE = "takes a power of two from 4096 to 2G, in bytes or with K, M, G"
STDOUT = "takes a file or fd:N: standard output belongs to the command"
CGROUP = "takes the directory of a cgroup, such as /sys/fs/cgroup/NAME"

NAME = "takes the name of a file"
SO_CALLED = "takes a file: for one that is called so, put ./ before its name"
OPEN = "takes a descriptor that is open when nightclerk starts: fd:3 and 3>FILE"

# (command, options, complaint)
WRONG = [
    ("run", "-x -- true", "-x is not an option of it"),
    ("run", "-xy -- true", "-x is not an option of it"),
    ("run", "--nope -- true", "--nope is not an option of it"),
    ("run", "--quiet=1 -- true", "--quiet=1 is too much: that option takes no value"),
    ("run", "--ledger", "--ledger wants a value"),
    ("run", "--ring-size 68719476737G -- true", f"--ring-size {SIZE}"),
    ("run", "--ring-size 4294967296 -- true", f"--ring-size {SIZE}"),
    ("run", "--ring-size 4G -- true", f"--ring-size {SIZE}"),
    ("run", "--ring-size 2048 -- true", f"--ring-size {SIZE}"),
    ("run", "--ring-size +4096 -- true", f"--ring-size {SIZE}"),
    ("run", "--ring-size 6M -- true", f"--ring-size {SIZE}"),
    ("run", "--events - -- true", f"--events {STDOUT}"),
    ("watch", "--events - -- true", f"--events {STDOUT}"),
    ("watch", "--cgroup /tmp", f"--cgroup {CGROUP}"),
    ("watch", "--cgroup /proc/self/cgroup", f"--cgroup {CGROUP}"),
    ("watch", "--cgroup /nowhere", f"--cgroup {CGROUP}"),
    ("watch", "--port 80 --port 81", "--port is a second scope: give one"),
    ("watch", "--port 80 -- true", "give a scope or a command, not both"),
    ("watch", "--pid 4194305", "--pid is of a process that is not there"),  # beyond the largest that Linux gives
    ("watch", "--comm=", "--comm takes the name of a program"),
    ("replay", "-x f", "-x is not an option of it"),
    ("replay", "--fail-on high f", "--fail-on is not an option of it"),
    ("replay", "--quiet=1 f", "--quiet=1 is too much: that option takes no value"),
    ("replay", "f --ledger", "--ledger wants a value"),
    ("replay", "f --lease x", "--lease takes a time above 0: seconds, or with m, h, d: 90, 15m, 2h, 7d"),
    ("replay", "f --cut x", "--cut takes a number from 1 on"),
    ("replay", "f --json", "--json says how to print a profile: give it --profile as well"),
    ("replay", "f --ledger -", f"--ledger {SO_CALLED}"),
    ("replay", "f --db=", f"--db {NAME}"),
    ("replay", "f --events fd:9", f"--events {OPEN}"),
    ("check", "--nope f", "--nope is not an option of it"),
    ("check", "f --policy", "--policy wants a value"),
    ("check", "--strict=1 f", "--strict=1 is too much: that option takes no value"),
    ("check-policy", "--nope f", "--nope is not an option of it"),
    ("check-policy", "f --path", "--path wants a value"),
] + [
    ("run", f"{option}={value} -- true", f"{option} {complaint}")
    for option in ("--ledger", "--record", "--junit", "--db")
    for value, complaint in (("", NAME), ("-", SO_CALLED), ("fd:2", SO_CALLED))
] + [
    ("watch", "--output=- -- true", f"--output {SO_CALLED}"),
    ("run", "--policy= -- true", f"--policy {NAME}"),
    ("run", "--events= -- true", f"--events {NAME}"),
] + [
    # What nightclerk opens for itself has these numbers.
    ("run", f"--events fd:{fd} -- true", f"--events {OPEN}") for fd in ("", "x", "-1", "+1", 3, 4, 5, 9, 12, 16, 4000000000)
]


def complaint(command, options):
    done = subprocess.run([NIGHTCLERK, command, *options.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def main():
    failed = 0
    print(f"1..{len(WRONG)}")
    for number, (command, options, expected) in enumerate(WRONG, 1):
        want = (125 if command == "run" else 2, "",
                f"nightclerk {command}: {expected}; see nightclerk {command} --help\n")
        got = complaint(command, options)
        failed += got != want
        print(f"{'ok' if got == want else 'not ok'} {number} - {command} {options}")
        if got != want:
            print(f"# got  {got!r}\n# want {want!r}")
    return 1 if failed else 0


sys.exit(main())
