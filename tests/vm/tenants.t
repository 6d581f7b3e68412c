#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
`nightclerk audit` of a whole guest with twenty tenants. One floods: bodies of a MiB back to back, and connections of
one call each. The others call TENANT_CALLS (500) times each, and each tenth call repeats the one before it.
"""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "live"))

from auditing import Audit, anonymous_kib, metrics_of  # pylint: disable=wrong-import-position
from callers import Callers, done, order  # pylint: disable=wrong-import-position
from harness import check, equal, fact, play, wait_until  # pylint: disable=wrong-import-position

CGROUPS = "/sys/fs/cgroup"
TENANTS = 20
CALLS = int(os.environ.get("TENANT_CALLS", "500"))


def holes_of(metrics, name):
    return {series: value for series, value in metrics.items() if series.startswith(f'nightclerk_hole_bytes_total{{tenant="{name}"')}


@fact
def who_floods_loses_his_own_and_nobody_elses(live):
    names = [f"tenant-{i}" for i in range(TENANTS)]
    folders = [os.path.join(CGROUPS, name) for name in names]
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
    audit = Audit(live, "--metrics", live.path("audit.prom"))
    callers = Callers(live)
    flooder = callers.flooder(folders[0])
    others = [Callers(live).caller(folder, CALLS) for folder in folders[1:]]
    order(flooder)
    audit.wait_for_lines(names[0], 20)
    for caller in others:
        order(caller)
    equal([done(caller) for caller in others], [CALLS] * len(others), "calls that were answered")
    flooder.kill()
    flooder.wait()
    for name in names[1:]:
        audit.wait_for_lines(name, CALLS)
    status, said = audit.stop()
    equal(status, 0, f"exit status; it said {said}")
    metrics = metrics_of(live.path("audit.prom"))
    for name in names[1:]:
        lines = audit.files(name)
        equal((len(lines), len({line["id"] for line in lines})), (CALLS, CALLS), f"lines, and different ids, of {name}")
        equal({line["cgroup"] for line in lines}, {f"/{name}"}, f"cgroups in the ledger of {name}")
        equal(audit.findings(name), ["dup_after_success"] * (CALLS // 10), f"findings of {name}")
        equal([summary["bytes"]["in_holes"] for summary in audit.summaries(name)], [0], f"bytes in holes of {name}")
        equal(holes_of(metrics, name), {}, f"holes of {name} in the metrics")
    print(f"# {len(others)} x {CALLS} calls; who floods: {len(audit.files(names[0]))} lines, holes {holes_of(metrics, names[0])}; "
          f"ring {metrics['nightclerk_ring_peak_ratio']} at most; its summary: {audit.summaries(names[0])[-1]}; "
          f"anothers: {audit.summaries(names[1])[-1]['incomplete']}", flush=True)
    check(audit.files(names[0]), "nothing of who floods")
    lost = sum(holes_of(metrics, names[0]).values(), 0.0) # none where the collector keeps up; live/78 makes sure that some are
    equal(lost, metrics.get('nightclerk_lost_bytes_total{cause="share"}', 0.0), "all that was lost, and what who floods lost")
    equal(lost, float(audit.summaries(names[0])[-1]["bytes"]["in_holes"]), "the same by his summary")


@fact
def short_processes_cost_no_memory_and_no_call(live):
    count = 1000
    folder = os.path.join(CGROUPS, "beside")
    os.makedirs(folder, exist_ok=True)
    audit = Audit(live)
    caller = Callers(live).caller(folder, 50)
    order(caller)
    done(caller)

    before, begin = anonymous_kib(audit.collector), time.monotonic()
    subprocess.run(["/bin/sh", "-c", f"i=0; while [ $i -lt {count} ]; do (exec /bin/true); i=$((i + 1)); done"], check=True)
    per_minute = count * 60 / (time.monotonic() - begin)
    order(caller)
    done(caller)
    lines = audit.wait_for_lines("beside", 100)
    after = anonymous_kib(audit.collector)
    print(f"# {count} processes, {per_minute:.0f} a minute: {before} KiB anonymous before, {after} after", flush=True)
    check(after < before + 4096, f"memory grows: {before}, {after} KiB")
    equal(audit.stop()[0], 0, "exit status")
    equal(len({line["id"] for line in lines}), 100, "different ids")


@fact
def a_clock_that_jumps_changes_times_and_nothing_else(live):
    folder = os.path.join(CGROUPS, "jumps")
    os.makedirs(folder, exist_ok=True)
    audit = Audit(live, "--rotate-age", "1d")
    caller = Callers(live).caller(folder, 10)
    counts = []
    for jump in (0, 40 * 86400, -80 * 86400, 40 * 86400):
        time.clock_settime(time.CLOCK_REALTIME, time.time() + jump)
        order(caller)
        counts.append(done(caller))
        wait_until(lambda count=counts[-1]: len(audit.files("jumps")) >= count, "its lines")
    status, said = audit.stop()
    equal(status, 0, f"exit status; it said {said}")
    lines = audit.files("jumps")
    equal((len(lines), len({line["id"] for line in lines})), (40, 40), "lines, and different ids")
    equal(audit.findings("jumps"), ["dup_after_success"] * 4, "findings")
    equal(audit.summaries("jumps")[-1]["incomplete"], [], "what keeps it from telling")


play()
