#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does an exchange cost more among many connections, or with many calls remembered?

Recordings come through a pipe from tests/bench/exchanges, so none has to fit on the disk. The cost is that of
`replay --profile` without reading, the least of several rounds. What setting up takes is no growth: of so many
connections it is the cost of the second half of the exchanges, of N remembered calls that of the last nine tenths.
Text on stdout, JSON in build/bench/growth.json."""

import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build")


def stages(count, connections):
    """Nanoseconds that the collector took for all of them, by stage."""
    maker = subprocess.Popen([os.path.join(BUILD, "tests", "bench", "exchanges"), f"count={count}",
                              f"connections={connections}", "/dev/stdout"], stdout=subprocess.PIPE)
    done = subprocess.run([os.path.join(BUILD, "nightclerk"), "replay", "/dev/stdin", "--profile", "--json",
                           "--ledger", "/dev/null"], stdin=maker.stdout, stdout=subprocess.PIPE, check=True, text=True)
    maker.stdout.close()
    if maker.wait():
        sys.exit("growth: no recording could be made")
    return {stage["stage"]: stage["ns_per_exchange"] * count for stage in json.loads(done.stdout)["stages"]
            if stage["stage"] != "reading"}


def least(count, connections, rounds):
    return min((stages(count, connections) for _ in range(rounds)), key=lambda taken: sum(taken.values()))


def later(before, after, fresh):
    """Nanoseconds of each of the fresh exchanges that only the longer recording has."""
    return {stage: max(ns - before.get(stage, 0), 0) / fresh for stage, ns in after.items()}


def show(title, rows):
    print(title)
    first = sum(rows[0][1].values())
    for number, taken in rows:
        whole = sum(taken.values())
        heavy = ", ".join(f"{stage} {ns:,.0f}" for stage, ns in sorted(taken.items(), key=lambda item: -item[1])[:5])
        print(f"  {number:>9,}  {whole:8,.0f} ns  {whole / first:5.2f}  ({heavy})")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=1000000, help="remembered at most")
    options = parser.parse_args()
    by_connections, by_calls = [], []
    for connections in (1, 10, 100, 1000, 10000):
        taken = [least(count, connections, options.rounds) for count in (50000, 100000)]
        by_connections.append((connections, later(*taken, 50000)))
    show("connections: ns for each of the last 50,000 of 100,000", by_connections)
    count, before = 1000, {}
    while count <= options.calls:
        taken = least(count, 16, options.rounds if count < 1000000 else 1)
        by_calls.append((count, later(before, taken, count - count // 10 if before else count)))
        before, count = taken, count * 10
    show("remembered calls: ns for each of the last nine tenths of them", by_calls)
    os.makedirs(os.path.join(BUILD, "bench"), exist_ok=True)
    with open(os.path.join(BUILD, "bench", "growth.json"), "w", encoding="utf-8") as file:
        json.dump({"connections": by_connections, "remembered": by_calls}, file, indent=1)
    return 0


sys.exit(main())
