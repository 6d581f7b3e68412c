#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`nightclerk audit` of a whole guest: tenants by cgroup, whatever network namespace they are in."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "live"))

from auditing import Audit, status_of  # pylint: disable=wrong-import-position
from harness import check, equal, fact, play  # pylint: disable=wrong-import-position

CGROUPS = "/sys/fs/cgroup"


def call_from(cgroup, mock, body, count=1):
    os.makedirs(os.path.join(CGROUPS, cgroup), exist_ok=True)
    subprocess.run(["sh", "-c", 'echo $$ >"$0/cgroup.procs"; for i in $(seq $3); do curl -sS -o /dev/null -d "$1" "$2"; done',
                    os.path.join(CGROUPS, cgroup), body, mock.url, str(count)], check=True)


@fact
def each_cgroup_has_its_own_ledger_and_findings(live):
    audit = Audit(live)
    mock = live.mock()
    call_from("one", mock, "a=1", 2)
    call_from("two", mock, "a=1")
    one, two = audit.wait_for_lines("one", 2), audit.wait_for_lines("two", 1)
    equal({line["cgroup"] for line in one}, {"/one"}, "cgroups of the first")
    equal({line["cgroup"] for line in two}, {"/two"}, "cgroups of the second")
    status, said = audit.stop()
    equal(status, 0, f"exit status; it said {said}")
    findings = {name: [event["finding"] for event in audit.lines(name, "events.jsonl") if event["kind"] == "finding"]
                for name in ("one", "two")}
    equal(findings, {"one": ["dup_after_success"], "two": []}, "findings")


@fact
def another_network_namespace_is_seen_too(live):
    audit = Audit(live)
    os.makedirs(os.path.join(CGROUPS, "inner"), exist_ok=True)
    subprocess.run(["unshare", "--net", "sh", "-c",
                    'echo $$ >"$0/cgroup.procs"; ip link set lo up; python3 -m http.server 8000 >/dev/null 2>&1 & server=$!; '
                    'until curl -s -o /dev/null http://127.0.0.1:8000/; do :; done; kill $server',
                    os.path.join(CGROUPS, "inner")], check=True)
    check(audit.wait_for_lines("inner", 1), "nothing of it")
    equal(audit.stop()[0], 0, "exit status")


@fact
def a_cgroup_with_a_hostile_name_stays_in_the_directory(live):
    audit = Audit(live)
    mock = live.mock()
    name = "..\\..\\etc\x1b[2J.jsonl" # cgroup_mkdir() refuses LF
    call_from(name, mock, "a=1")
    status, _ = audit.stop()
    equal(status, 0, "exit status")
    folders = [entry for entry in os.listdir(audit.directory) if not entry.startswith(".")]
    check(any(os.path.exists(os.path.join(audit.directory, folder, "call_ledger.jsonl")) for folder in folders), f"no ledger: {folders}")
    for folder in folders:
        check(folder.isprintable() and "\\" not in folder, f"a name {folder!r}")


@fact
def the_collector_has_no_rights(live):
    audit = Audit(live)
    status = status_of(audit.collector)
    check(status["Uid"].split()[0] != "0", "the collector is root")
    equal((status["CapEff"], status["NoNewPrivs"], status["Seccomp"]), ("0000000000000000", "1", "2"), "its rights")
    equal(audit.stop()[0], 0, "exit status")


play()
