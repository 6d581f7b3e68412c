#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""replay --profile: every stage once, and the same ledger as without it. Prints TAP."""

import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("NIGHTCLERK_BUILD", os.path.join(ROOT, "build"))
STAGES = ["other", "reading", "sequencer", "calls", "body", "class", "fingerprint", "ledger", "events", "attempts", "writing"]


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def facts(directory):
    recording, plain, profiled = (os.path.join(directory, name) for name in ("recording", "plain", "profiled"))
    nightclerk = os.path.join(BUILD, "nightclerk")
    made = run(os.path.join(BUILD, "tests", "bench", "exchanges"), "count=50", "connections=3", "keyed=1", recording)
    yield "a recording of 50 exchanges", made.returncode == 0, made.stderr
    run(nightclerk, "replay", recording, "--ledger", plain)
    yield "has 50 calls in its ledger", read(plain).count("\n") == 50, read(plain)[:300]
    done = run(nightclerk, "replay", recording, "--profile", "--json", "--ledger", profiled)
    told = json.loads(done.stdout or "{}")
    yield "the profile counts 50 exchanges", told.get("exchanges") == 50, done.stdout
    stages = {stage["stage"]: stage["entered"] for stage in told.get("stages", [])}
    yield "and names every stage, in order", list(stages) == STAGES, done.stdout
    once = [stages.get(stage) for stage in ("body", "class", "fingerprint", "ledger")]
    yield "a call enters each of its stages once", once == [50] * 4, done.stdout
    yield "the ledger is the same with it", read(profiled) == read(plain), ""
    done = run(nightclerk, "replay", recording, "--profile")
    rows = [line.split()[0] for line in done.stdout.splitlines()]
    yield "the table has the same rows, and their sum", rows == ["stage", *STAGES, "all"], done.stdout
    yield "no summary line beside it", done.stderr == "", done.stderr
    done = run(nightclerk, "replay", recording, "--json")
    yield "--json alone is refused", (done.returncode, done.stdout) == (2, ""), done.stderr


def main():
    failed = number = 0
    with tempfile.TemporaryDirectory() as directory:
        for number, (name, holds, said) in enumerate(facts(directory), 1):
            failed += not holds
            print(f"{'ok' if holds else 'not ok'} {number} - {name}")
            if not holds:
                print("# " + said.replace("\n", "\n# "))
    print(f"1..{number}")
    return 1 if failed else 0


sys.exit(main())
