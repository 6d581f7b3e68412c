#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The manual: a page per command, every option in it, and mandoc finds nothing wrong. Prints TAP."""

import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("NIGHTCLERK_BUILD", os.path.join(ROOT, "build"))
NIGHTCLERK = os.path.join(BUILD, "nightclerk")
PAGES = sorted(glob.glob(os.path.join(BUILD, "man", "*.[15]")))
FORMATS = "nightclerk-ledger.5"
failed = count = 0


def equal(name, got, want):
    global failed, count  # pylint: disable=global-statement
    count += 1
    failed += got != want
    print(f"{'ok' if got == want else 'not ok'} {count} - {name}")
    if got != want:
        print(f"# got  {got!r}\n# want {want!r}")


def output(*words):
    return subprocess.run(words, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def commands():
    text = output(NIGHTCLERK, "--help")
    listed = re.findall(r"^  ([a-z-]+) +\S", text, re.M)
    return [name for name in listed if name != "and"] + re.search(r"^  and +(.*)$", text, re.M).group(1).split()


def options(text):
    return re.findall(r"^ +(--[a-z-]+)", text, re.M)


def sees(page):
    with open(page, encoding="utf-8") as source:
        return set(f"{name}.{section}" for name, section in re.findall(r"^(?:\.|\.It )Xr (nightclerk\S*) (\d)", source.read(), re.M))


def main():
    if not shutil.which("mandoc"):
        print("1..0 # SKIP there is no mandoc: run 'make deps' as root")
        return 0
    names = [os.path.basename(page) for page in PAGES]
    wanted = [f"nightclerk-{command}.1" for command in commands()] + ["nightclerk.1", FORMATS]
    equal("a page for each command", names, sorted(wanted))
    for page, name in zip(PAGES, names):
        equal("lint " + name, output("mandoc", "-T", "lint", "-W", "warning", page), "")
        equal("what it refers to is there: " + name, sees(page) - set(names), set())
        if name not in ("nightclerk.1", FORMATS):
            text = output("mandoc", "-T", "utf8", "-O", "width=200", page)
            section = re.sub(".\b", "", text).split("OPTIONS\n")[1].split("\nEXIT STATUS")[0]
            section = section.split("\nENVIRONMENT\n")[0].split("\nFILES\n")[0]
            equal("every option, in the order of --help: " + name, options(section),
                  options(output(NIGHTCLERK, name[len("nightclerk-"):-len(".1")], "--help")))
    print(f"1..{count}")
    return 1 if failed else 0


sys.exit(main())
