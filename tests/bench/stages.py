#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What each stage of the collector takes, from recordings that tests/bench/exchanges makes.

Nanoseconds are those of `replay --profile`, the least of several rounds. Instructions are those of
callgrind, which no other load on the machine changes; its CPU has no SHA instructions, so libcrypto is
shown apart. Text on stdout, JSON in build/bench/stages.json."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build")
NIGHTCLERK = os.path.join(BUILD, "nightclerk")
EXCHANGES = os.path.join(BUILD, "tests", "bench", "exchanges")

# name, how many exchanges (a tenth of them under callgrind), and what they are
WORKLOADS = [
    ("300 B POST", 50000, []),
    ("300 B POST with credentials and a key", 50000, ["keyed=1"]),
    ("300 B POST, all equal", 50000, ["equal=1"]),
    ("4 KiB POST", 20000, ["body=4096"]),
    ("4 KiB POST, members out of order", 10000, ["body=4096", "orders=1"]),
    ("64 KiB POST", 2000, ["body=65500"]),
    ("64 KiB POST, members out of order", 1000, ["body=65500", "orders=1"]),
    ("1 MiB POST", 100, ["body=1048500"]),
    ("1 MiB POST, members out of order", 60, ["body=1048500", "orders=1"]),
    ("stream of 1,000 chunks", 200, ["chunks=1000"]),
]
# The functions that a stage is entered by.
ENTERED_BY = {
    "reading": ["recording_next"],
    "calls": ["connections_feed", "connections_next"],
    "body": ["call_body_canonical"],
    "class": ["classify_call", "model_keys_call", "classify_comparable_text"],
    "fingerprint": ["fingerprint_call"],
    "ledger": ["ledger_line"],
    "attempts": ["attempts_add", "attempts_update", "attempts_next_change", "attempts_close"],
    "libcrypto in all of them": ["digest_start", "digest_finish", "digest_of", "EVP_DigestUpdate"],
}


FOUND = 10  # exit code of a run with findings, which equal bodies are


def replay(command, **options):
    done = subprocess.run(command, check=False, **options)
    if done.returncode not in (0, FOUND):
        raise subprocess.CalledProcessError(done.returncode, command)
    return done


def record(directory, count, shape):
    path = os.path.join(directory, f"{count}{'-'.join(shape)}.rec")
    if not os.path.exists(path):
        subprocess.run([EXCHANGES, f"count={count}", *shape, path], check=True)
    return path


def profile(path, rounds):
    """The round in which the stages together took least."""
    best = None
    for _ in range(rounds):
        done = replay([NIGHTCLERK, "replay", path, "--profile", "--json", "--ledger", "/dev/null"],
                      stdout=subprocess.PIPE, text=True)
        told = {stage["stage"]: stage["ns_per_exchange"] for stage in json.loads(done.stdout)["stages"]}
        if best is None or sum(told.values()) < sum(best.values()):
            best = told
    return best


def instructions(directory, path, count):
    out = os.path.join(directory, "callgrind.out")
    replay(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}", NIGHTCLERK, "replay", path,
            "--ledger", "/dev/null", "--quiet"], stderr=subprocess.DEVNULL)
    text = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--auto=no", "--threshold=100", out],
                          stdout=subprocess.PIPE, check=True, text=True).stdout
    taken = {}
    for cost, function in re.findall(r"^\s*([\d,]+) \([^)]*\)\s+\S*?:(\w+)(?:'\d+)?(?:\s|$)", text, re.M):
        taken[function] = max(taken.get(function, 0), int(cost.replace(",", "")))
    told = {stage: sum(taken.get(name, 0) for name in names) // count for stage, names in ENTERED_BY.items()}
    told["all"] = int(re.search(r"^\s*([\d,]+).*PROGRAM TOTALS", text, re.M)[1].replace(",", "")) // count
    return told


def show(name, nanoseconds, counted):
    live = {stage: ns for stage, ns in nanoseconds.items() if stage != "reading"}
    print(f"{name}: {sum(live.values()):,} ns an exchange without reading the recording")
    for stage in [*nanoseconds, *(set(counted) - set(nanoseconds))]:
        ns = f"{nanoseconds[stage]:12,}" if stage in nanoseconds else f"{'':12}"
        count = f"{counted[stage]:14,}" if stage in counted else ""
        print(f"  {stage:26}{ns} ns{count + ' instructions' if count else ''}")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-callgrind", action="store_true")
    parser.add_argument("--only", help="workloads whose name begins so")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="nightclerk-bench-") as directory:
        for name, count, shape in WORKLOADS:
            if options.only and not name.startswith(options.only):
                continue
            nanoseconds = profile(record(directory, count, shape), options.rounds)
            few = max(count // 10, 10)
            counted = {} if options.no_callgrind else instructions(directory, record(directory, few, shape), few)
            show(name, nanoseconds, counted)
            results.append({"workload": name, "exchanges": count, "ns": nanoseconds, "instructions": counted})
    os.makedirs(os.path.join(BUILD, "bench"), exist_ok=True)
    with open(os.path.join(BUILD, "bench", "stages.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    return 0


sys.exit(main())
