#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`nightclerk audit` in a network namespace of its own: rights, files, signals, deaths."""

import os
import signal
import subprocess

from auditing import Audit, is_alive, status_of, whole_lines
from harness import (HANG_SECONDS, NIGHTCLERK, bpf_objects, bpf_objects_of, check, contains, equal, fact, play,
                     read_lines, wait_until)

ALL = ("--netns-only", "--split", "none")


def post(mock, body, **more):
    done = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-d", body, mock.url],
                          stdout=subprocess.PIPE, timeout=HANG_SECONDS, check=True, **more)
    equal(done.stdout, b"200", "status of the answer")


def said_by(*arguments):
    done = subprocess.run([NIGHTCLERK, "audit", *arguments], capture_output=True, timeout=HANG_SECONDS, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@fact
def the_collector_has_no_rights_and_the_ledger_has_the_calls(live):
    audit = Audit(live, *ALL)
    mock = live.mock()
    collector = audit.collector
    status = status_of(collector)
    check(status["Uid"].split()[0] != "0", "the collector is root")
    equal(len(set(status["Uid"].split())), 1, "its user ids")
    equal(status["Groups"].strip(), "", "its groups")
    for field in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        equal(status[field], "0000000000000000", field)
    equal(status["NoNewPrivs"], "1", "NoNewPrivs")
    equal(status["Seccomp"], "2", "Seccomp")
    equal(bpf_objects_of(collector), set(), "what of the kernel side the collector has open")
    post(mock, '{"amount": 1}')
    post(mock, '{"amount": 1}')
    lines = audit.wait_for_lines("all", 2)
    equal([line["path"] for line in lines], ["/v1/charges"] * 2, "paths")
    audit.wait_for_lines("all", 6, "events.jsonl") # start, two requests and answers, the finding
    status, said = audit.stop()
    equal(status, 0, "exit status")
    contains(said, "the collector is ", "what it said at its start")
    events = audit.lines("all", "events.jsonl")
    equal([e["finding"] for e in events if e["kind"] == "finding"], ["dup_after_success"], "findings")
    equal(events[-1]["kind"], "summary", "the last event")
    equal(events[-1]["incomplete"], [], "what keeps it from telling")
    equal(os.stat(os.path.join(audit.directory, "all", "call_ledger.jsonl")).st_mode & 0o777, 0o600, "mode of the ledger")
    check(not os.path.exists(os.path.join(audit.directory, ".audit.running")), "its mark stays behind")


@fact
def users_have_ledgers_of_their_own(live):
    audit = Audit(live, "--netns-only", "--split", "uid")
    mock = live.mock()
    post(mock, '{"of": "root"}')
    post(mock, '{"of": "nobody"}', user=65534, group=65534, extra_groups=[], cwd="/")
    equal(len(audit.wait_for_lines("uid-0", 1)), 1, "root's calls")
    equal(len(audit.wait_for_lines("uid-65534", 1)), 1, "nobody's calls")
    path = os.path.join(audit.directory, "uid-0", "call_ledger.jsonl")
    done = subprocess.run(["cat", path], user=65534, group=65534, extra_groups=[], capture_output=True, check=False)
    check(done.returncode != 0, "another tenant can read it")
    equal(audit.stop()[0], 0, "exit status")
    names = [name for name in os.listdir(audit.directory) if os.path.isdir(os.path.join(audit.directory, name))]
    equal(sorted(names), ["uid-0", "uid-65534"], "tenants: the canary is none's")
    for name in names:
        summary = audit.lines(name, "events.jsonl")[-1]
        equal((summary["requests"], summary["bytes"]["in_holes"], summary["incomplete"]), (1, 0, []), f"summary of {name}")


@fact
def sighup_opens_the_files_again_and_loses_no_line(live):
    audit = Audit(live, *ALL)
    mock = live.mock()
    post(mock, "1=1")
    audit.wait_for_lines("all", 1)
    path = os.path.join(audit.directory, "all", "call_ledger.jsonl")
    os.rename(path, path + ".old") # as logrotate does it
    audit.process.send_signal(signal.SIGHUP)
    audit.wait_for("RELOADING=1")
    audit.wait_for("READY=1")
    wait_until(lambda: os.path.exists(path), "a new file")
    post(mock, "2=2")
    new = audit.wait_for_lines("all", 1)
    old = read_lines(path + ".old")
    equal((len(old), len(new)), (1, 1), "lines before and after")
    check(old[0]["id"] != new[0]["id"], "an id is there twice")
    equal(audit.stop()[0], 0, "exit status")


@fact
def a_broken_policy_is_said_and_the_old_one_stays(live):
    policy = live.write("policy.json", '{"rules": [{"match": {"path": "/v1/charges"}, "class": "read"}]}')
    audit = Audit(live, *ALL, "--policy", policy)
    mock = live.mock()
    live.write("policy.json", '{"rules": [{"clas": 1}]}')
    audit.process.send_signal(signal.SIGHUP)
    audit.wait_for("READY=1")
    post(mock, "1=1")
    equal(audit.wait_for_lines("all", 1)[0]["class"], "read", "class by the old policy")
    status, said = audit.stop()
    equal(status, 0, "exit status")
    contains(said, "policy.json:1:", "what is wrong with it")
    contains(said, "the policy before it stays", "what becomes of it")


@fact
def a_new_policy_is_about_the_calls_that_follow(live):
    policy = live.write("policy.json", '{"rules": [{"match": {"path": "/v1/charges"}, "class": "read"}]}')
    audit = Audit(live, *ALL, "--policy", policy)
    mock = live.mock()
    post(mock, "1=1")
    audit.wait_for_lines("all", 1)
    live.write("policy.json", '{"rules": [{"match": {"path": "/nothing"}}, {"match": {"path": "/v1/charges"}, "severity": "low"}]}')
    audit.process.send_signal(signal.SIGHUP)
    audit.wait_for("READY=1")
    post(mock, "2=2")
    post(mock, "2=2")
    lines = audit.wait_for_lines("all", 3)
    equal([line["class"] for line in lines], ["read", "mutating", "mutating"], "classes")
    equal(audit.stop()[0], 0, "exit status")
    findings = [(e["finding"], e["severity"]) for e in audit.lines("all", "events.jsonl") if e["kind"] == "finding"]
    equal(findings, [("dup_after_success", "low")], "findings, with the severity of the new policy")


@fact
def a_killed_collector_is_started_again_and_the_gap_is_said(live):
    audit = Audit(live, *ALL)
    mock = live.mock()
    post(mock, "1=1")
    before = audit.wait_for_lines("all", 1)
    first = audit.collector
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not is_alive(first), "the end of the collector")
    check(audit.collector != first, "no other collector")
    post(mock, "2=2")
    lines = audit.wait_for_lines("all", 2)
    equal(lines[0], before[0], "the line from before")
    equal(len({line["id"] for line in lines}), 2, "different ids")
    equal(len({line["run"] for line in lines}), 2, "different runs")
    status, said = audit.stop()
    equal(status, 0, "exit status")
    contains(said, "the collector was killed by signal 9", "stderr")
    events = audit.lines("all", "events.jsonl")
    equal([e["cause"] for e in events if e["kind"] == "gap"], ["the collector was killed by signal 9 (Killed)"], "gap events")
    check(any("the collector was started again" in reason for reason in events[-1]["incomplete"]),
          f"the summary does not say that something may be missing: {events[-1]['incomplete']}")


@fact
def when_the_monitor_is_killed_the_collector_writes_and_ends_and_nothing_stays(live):
    audit = Audit(live, *ALL)
    mock = live.mock()
    collector = audit.collector
    ours = bpf_objects_of(audit.process.pid)
    check(ours, "the monitor has nothing open")
    post(mock, "1=1")
    audit.wait_for_lines("all", 1)
    audit.process.kill()
    audit.process.wait()
    wait_until(lambda: not is_alive(collector), "the end of the collector")
    equal(audit.lines("all", "events.jsonl")[-1]["kind"], "summary", "the last event")
    wait_until(lambda: not ours & bpf_objects(), "nothing of it in the kernel")
    again = Audit(live, *ALL)
    status, said = again.stop()
    equal(status, 0, "exit status")
    contains(said, "ended unclean: its last lines may be missing", "what the next one says")


@fact
def a_second_one_on_the_same_directory_is_refused(live):
    audit = Audit(live, *ALL)
    status, _, said = said_by(*ALL, "--directory", audit.directory)
    equal(status, 1, "exit status")
    equal(said, f"nightclerk: another audit writes to {audit.directory}: stop it, or give another --directory\n", "stderr")
    equal(audit.stop(signal.SIGINT)[0], 0, "exit status of the first")


@fact
def files_turn_over_under_load_and_no_line_is_lost(live):
    audit = Audit(live, *ALL, "--rotate-size", "4096", "--keep", "500")
    mock = live.mock()
    folder = os.path.join(audit.directory, "all")
    with open(f"/proc/{audit.collector}/limits", encoding="utf-8") as file:
        limits = [line.split()[3:5] for line in file if line.startswith("Max file size")]
    equal(limits, [[str(4096 + (64 << 20))] * 2], "the most that the collector can write into one file")
    for i in range(40):
        post(mock, f"n={i}")

    def ids():
        names = [name for name in os.listdir(folder) if name.startswith("call_ledger")] if os.path.isdir(folder) else []
        return [line["id"] for name in names for line in read_lines(os.path.join(folder, name))]
    wait_until(lambda: sum(1 for _ in whole_lines(audit, "all")) >= 40, "40 lines")
    equal(audit.stop()[0], 0, "exit status")
    equal((len(ids()), len(set(ids()))), (40, 40), "lines, and different ids")
    check(os.path.exists(os.path.join(folder, "call_ledger.jsonl.1")), "no file was set aside")


@fact
def metrics_are_written_and_replaced_as_a_whole(live):
    path = live.path("nightclerk.prom")
    audit = Audit(live, *ALL, "--metrics", path)
    mock = live.mock()
    post(mock, "1=1")
    audit.wait_for_lines("all", 1)
    audit.stop()
    with open(path, encoding="utf-8") as file:
        text = file.read()
    contains(text, 'nightclerk_calls_total{tenant="all"} 1\n', "metrics")
    contains(text, 'nightclerk_mutating_total{tenant="all"} 1\n', "metrics")


@fact
def what_would_keep_secrets_is_refused(live):
    for option in ("--record=x", "--keep-results"):
        status, _, said = said_by(*ALL, "--directory", live.path("d"), option)
        equal(status, 2, "exit status")
        contains(said, "is refused in audit", option)
    config = live.write("audit.json", '{"record": "x"}')
    status, _, said = said_by("--check-config", config)
    equal(status, 2, "exit status")
    contains(said, "audit.json:1:2: record is refused in audit", "in a file")


@fact
def a_file_with_options_is_checked(live):
    config = live.write("audit.json", '{"directory": "/x", "split": "uid", "rotate-size": "64M", "strict": true}\n')
    equal(said_by("--check-config", config), (0, f"{config}: these options are valid\n", ""), "a good one")
    for text, said in (
            ('{\n  "spilt": "uid"}', ":2:3: spilt is no option that can stand in a file"),
            ('{"split": "sandbox"}', ":1:2: split takes cgroup, uid or none"),
            ('{"strict": "yes"}', ":1:2: strict is true or false"),
            ('{"keep": 0}', ":1:2: keep takes a number, 1 to 999"),
            ('{"split": "uid"', ":1:16: the file ends in the middle of the options"),
    ):
        config = live.write("audit.json", text)
        status, _, stderr = said_by("--check-config", config)
        equal(status, 2, "exit status")
        contains(stderr, config + said, "stderr")


play()
