#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
`nightclerk audit` of a whole guest for SOAK_SECONDS (60): five tenants call 500 times a second together, over
connections that stay open, while files turn over. Memory and descriptors stay as they are, and every call is in
the ledger of its tenant, once.
"""

import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "live"))

from auditing import Audit, status_of  # pylint: disable=wrong-import-position
from callers import Callers, done, order  # pylint: disable=wrong-import-position
from harness import HANG_SECONDS, check, equal, fact, play, wait_until  # pylint: disable=wrong-import-position

SECONDS = int(os.environ.get("SOAK_SECONDS", "60"))
TENANTS = 5
CALLS_PER_SECOND = int(os.environ.get("CALLS_PER_SECOND", "500"))
CGROUPS = "/sys/fs/cgroup"
ID = re.compile(rb'"id":"([^"]+)"')
LAG = re.compile(r"^nightclerk_event_lag_seconds ([0-9.]+)$", re.M)

class Ledger:
    """Counts the lines of a file that turns over, and their ids."""

    def __init__(self, path):
        self.path, self.file, self.lines, self.ids, self.cut = path, None, 0, set(), b""

    def read_on(self):
        while piece := self.file.read(1 << 20):
            *whole, self.cut = (self.cut + piece).split(b"\n")
            self.lines += len(whole)
            self.ids.update(hash(ID.search(line).group(1)) for line in whole)

    def read(self):
        while True:
            if self.file:
                self.read_on()
            try:
                now = open(self.path, "rb")
            except FileNotFoundError:
                return
            if self.file and os.fstat(now.fileno()).st_ino == os.fstat(self.file.fileno()).st_ino:
                now.close()
                return
            if self.file:
                self.read_on()
                self.file.close()
            self.file = now


def sizes(pids):
    """For each: resident KiB, of which the rings' pages are a part as far as they have been read; anonymous KiB; descriptors."""
    found = []
    for pid in pids:
        status = status_of(pid)
        found.append((int(status["VmRSS"].split()[0]), int(status["RssAnon"].split()[0]), len(os.listdir(f"/proc/{pid}/fd"))))
    return found


class Lags:
    """How far behind the collector was each time that it wrote its metrics."""

    def __init__(self, path):
        self.path, self.written_ns, self.seconds = path, 0, []

    def read(self):
        try:
            with open(self.path, encoding="utf-8") as file:
                written_ns, found = os.fstat(file.fileno()).st_mtime_ns, LAG.search(file.read())
        except FileNotFoundError:
            return
        if found and written_ns != self.written_ns:
            self.written_ns = written_ns
            self.seconds.append(float(found.group(1)))

    def say(self):
        ordered = sorted(self.seconds) or [0.0]
        p50, p99 = (ordered[min(len(ordered) - 1, len(ordered) * part // 100)] for part in (50, 99))
        print(f"# event lag, of {len(self.seconds)} looks: p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms", flush=True)


def say(when, figures):
    for name, (resident, anonymous, descriptors) in zip(("monitor", "collector"), figures):
        print(f"# {when}: {name}: RSS {resident} KiB, of which {anonymous} anonymous; {descriptors} descriptors", flush=True)


@fact
def every_call_is_in_its_ledger_and_memory_stays_as_it_is(live):
    folders = [os.path.join(CGROUPS, f"soak-{i}") for i in range(TENANTS)]
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
    audit = Audit(live, "--rotate-size", "8M", "--keep", "2", "--metrics", live.path("soak.prom"))
    callers = Callers(live)
    clients = [callers.paced(folder, SECONDS, CALLS_PER_SECOND / TENANTS) for folder in folders]
    ledgers = [Ledger(os.path.join(audit.directory, f"soak-{i}", "call_ledger.jsonl")) for i in range(TENANTS)]
    pids = audit.process.pid, audit.collector
    begin = time.monotonic()
    for client in clients:
        order(client)
    seen, lags = {}, Lags(live.path("soak.prom"))
    while any(client.poll() is None for client in clients):
        share = (time.monotonic() - begin) / SECONDS
        for when, least in (("start", 0.1), ("middle", 0.5), ("end", 0.9)):
            if share >= least and when not in seen:
                seen[when] = sizes(pids)
                say(when, seen[when])
        check(share < 1 + HANG_SECONDS / SECONDS, "the clients do not end")
        for ledger in ledgers:
            ledger.read()
        lags.read()
        time.sleep(0.5) # how often is of no matter
    sent = [done(client) for client in clients]

    def all_there():
        for ledger in ledgers:
            ledger.read()
        return sum(ledger.lines for ledger in ledgers) >= sum(sent)
    wait_until(all_there, f"{sent} lines: {[ledger.lines for ledger in ledgers]}")
    print(f"# {sum(sent)} calls in {SECONDS} s, {sum(ledger.lines for ledger in ledgers)} lines", flush=True)
    lags.say()
    status, said = audit.stop()
    for folder in folders:
        os.rmdir(folder)
    equal([ledger.lines for ledger in ledgers], sent, "lines of each tenant")
    equal([len(ledger.ids) for ledger in ledgers], sent, "different ids of each tenant")
    equal(status, 0, f"exit status; it said: {said}")
    check("end" in seen, "too short to tell")
    for name, first, last in zip(("monitor", "collector"), seen["middle"], seen["end"]):
        equal(last[2], first[2], f"descriptors of the {name}")
        check(last[1] <= first[1] * 1.05 + 4096, f"the {name} grows: {seen}")


play()
