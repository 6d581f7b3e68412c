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
