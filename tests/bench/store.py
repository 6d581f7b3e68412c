#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the store takes: a million model calls replayed into it, and the report of them.

usage: store.py [ATTEMPTS [KEYS]]     (1000000 200000)

Prints one JSON object: seconds of the replay with and without the store, by the
clock and of the processor (on a busy machine they differ), rows a second,
seconds of the report (best of three), bytes of the file. Exit status
1 where less than 50,000 rows a second were written or the report took over 3 s.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("NIGHTCLERK_BUILD", os.path.join(ROOT, "build"))
NIGHTCLERK = os.path.join(BUILD, "nightclerk")


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(*words):
    """By the clock, of the processor, and what was printed."""
    started, used = time.monotonic(), cpu_seconds()
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 10):
        sys.exit("%s: exit %d\n%s" % (words, done.returncode, done.stderr.decode()))
    return time.monotonic() - started, cpu_seconds() - used, done.stdout


def main():
    attempts = int(sys.argv[1]) if len(sys.argv) > 1 else 1000000
    keys = int(sys.argv[2]) if len(sys.argv) > 2 else attempts // 5
    with tempfile.TemporaryDirectory(prefix="nightclerk-bench-") as directory:
        recording, db = os.path.join(directory, "calls.rec"), os.path.join(directory, "calls.db")
        subprocess.run([os.path.join(BUILD, "tests", "bench", "model_calls"), str(attempts), str(keys), recording], check=True)
        bare, bare_cpu, _ = seconds(NIGHTCLERK, "replay", recording, "--quiet")
        whole, whole_cpu, _ = seconds(NIGHTCLERK, "replay", recording, "--quiet", "--db", db)
        reports = [seconds(NIGHTCLERK, "report", "--db", db, "--json") for _ in range(3)]
        total = json.loads(reports[0][2])["total"]
        if total["attempts"] != attempts or total["calls"] != keys:
            sys.exit("the store holds %(attempts)d attempts of %(calls)d calls" % total)
        result = {
            "attempts": attempts, "keys": keys,
            "replay_seconds": round(bare, 2), "replay_cpu_seconds": round(bare_cpu, 2),
            "replay_with_store_seconds": round(whole, 2), "replay_with_store_cpu_seconds": round(whole_cpu, 2),
            "rows_per_second": round(attempts / whole),
            "report_seconds": round(min(report[0] for report in reports), 2),
            "report_cpu_seconds": round(min(report[1] for report in reports), 2),
            "file_bytes": os.path.getsize(db), "bytes_per_attempt": round(os.path.getsize(db) / attempts),
        }
    print(json.dumps(result))
    sys.exit(0 if result["rows_per_second"] >= 50000 and result["report_seconds"] <= 3 else 1)


main()
