#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""make install puts exactly these files in place, make uninstall takes all of them away; the unit. Prints TAP."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNIT = os.path.join(ROOT, "packaging", "nightclerk.service")
MANUAL = sorted(os.path.basename(page) for page in glob.glob(os.path.join(ROOT, "docs", "man", "*.[15]")))
INSTALLED = sorted(
    [("bin/nightclerk", 0o755), ("share/bash-completion/completions/nightclerk", 0o644),
     ("lib/systemd/system/nightclerk.service", 0o644), ("share/doc/nightclerk/examples/audit.json", 0o644)]
    + [(f"share/man/man{page[-1]}/{page}", 0o644) for page in MANUAL])
failed = count = 0


def report(name, directive, good, detail=""):
    global failed, count  # pylint: disable=global-statement
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}{directive}")
    if not good:
        print("# " + detail.replace("\n", "\n# "))


def equal(name, got, want):
    report(name, "", got == want, f"got  {got!r}\nwant {want!r}")


def make(*words):
    """Not as a part of the make that may run this test."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    done = subprocess.run(["make", "-s", "-C", ROOT, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=environment, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout)


def files(place):
    found = []
    for folder, _, names in os.walk(place):
        for name in names:
            path = os.path.join(folder, name)
            found.append((os.path.relpath(path, place), os.stat(path).st_mode & 0o7777))
    return sorted(found)


def contents(place):
    completion = os.path.join(place, "share/bash-completion/completions/nightclerk")
    program = os.path.join(place, "bin/nightclerk")
    said = subprocess.run([program, "completion", "bash"], check=True, stdout=subprocess.PIPE).stdout
    with open(completion, "rb") as file:
        equal("the completion is that of the program", file.read(), said)


def configuration():
    example = os.path.join(ROOT, "packaging", "audit.json")
    done = subprocess.run([os.path.join(ROOT, "build", "nightclerk"), "audit", "--check-config", example],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    equal("the example of a configuration is valid", (done.returncode, done.stdout), (0, example + ": these options are valid\n"))


def unit():
    """nightclerk need not be installed here: the program that was built takes its place."""
    with open(UNIT, encoding="utf-8") as file:
        text = file.read()
    equal("the unit runs audit with its configuration", re.findall(r"^Exec\w+=.*$", text, re.M),
          ["ExecStart=nightclerk audit --config /etc/nightclerk/audit.json", "ExecReload=kill -HUP $MAINPID"])
    if not shutil.which("systemd-analyze"):
        report("systemd-analyze verify", " # SKIP there is no systemd-analyze", True)
        return
    with tempfile.TemporaryDirectory() as place:
        copy = os.path.join(place, "nightclerk.service")
        with open(copy, "w", encoding="utf-8") as file:
            file.write(text.replace("ExecStart=nightclerk", "ExecStart=" + os.path.join(ROOT, "build", "nightclerk")))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        equal("systemd-analyze verify", (done.returncode, done.stdout), (0, ""))
        done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=35", "--no-pager", copy],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        report("systemd-analyze security: 3.5 of 10 at most", "", done.returncode == 0, done.stdout)


def main():
    with tempfile.TemporaryDirectory() as place:
        for prefix in ("/usr", "/usr/local"):
            there = place + prefix
            make("install", "DESTDIR=" + place, "prefix=" + prefix)
            equal("installed below " + prefix, files(place), sorted((prefix[1:] + "/" + path, mode) for path, mode in INSTALLED))
            contents(there)
            make("uninstall", "DESTDIR=" + place, "prefix=" + prefix)
            equal("uninstalled from " + prefix, files(place), [])
            equal("no folder of our own is left", os.path.exists(there + "/share/doc/nightclerk"), False)
    configuration()
    unit()
    print(f"1..{count}")
    return 1 if failed else 0


sys.exit(main())
