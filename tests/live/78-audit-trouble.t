#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`nightclerk audit` under load, killed, and given what it does not want, in a network namespace of its own."""

import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from auditing import Audit, anonymous_kib, is_alive, metrics_of, status_of, whole_lines
from callers import Callers, done, order
from harness import BUILD, HANG_SECONDS, SLOW, check, contains, equal, fact, play, wait_until

ALL = ("--netns-only", "--split", "none")
BY_UID = ("--netns-only", "--split", "uid")
COUNT = 50
UIDS = range(64001, 64007)
GAP = "the collector was started again: what the one before it had read and not written is missing"


def ids_of(lines):
    return [line["id"] for line in lines]


def read_so_far(audit):
    """What it has said on stderr by now."""
    audit.said = getattr(audit, "said", b"")
    os.set_blocking(audit.process.stderr.fileno(), False)
    audit.said += audit.process.stderr.read() or b""
    return audit.said


def connections_of(port):
    """States of the connections of this namespace that it is an end of."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in list(file)[1:]]
    ends = f":{int(port):04X}"
    return [row[3] for row in rows if ends in (row[1][-5:], row[2][-5:])]


def wait_until_read(collector, port):
    """Until both ends of each of its connections are closed, and the collector has slept so often since that it has read that."""
    def turns():
        return int(status_of(collector)["voluntary_ctxt_switches"])
    wait_until(lambda: set(connections_of(port)) <= {"06", "0A"}, "the end of the connections: TIME_WAIT, and who listens")
    before = turns()
    wait_until(lambda: turns() >= before + 50, "turns of the collector") # of 5 ms: the sequencer holds nothing so long


@fact
def who_floods_loses_his_own_and_nobody_elses(live):
    audit = Audit(live, *BY_UID, "--metrics", live.path("audit.prom"), "--ring-size", "512K")
    callers = Callers(live)
    flooder = callers.flooder("64000")
    others = [callers.caller(str(uid), COUNT) for uid in UIDS]
    order(flooder)
    audit.wait_for_lines("uid-64000", 20)
    for caller in others:
        order(caller)
    equal([done(caller) for caller in others], [COUNT] * len(UIDS), "calls that were answered")
    flooder.kill()
    for uid in UIDS:
        audit.wait_for_lines(f"uid-{uid}", COUNT)
    status, said = audit.stop()
    equal(status, 0, f"exit status; it said {said}")
    metrics = metrics_of(live.path("audit.prom"))
    for uid in UIDS:
        name = f"uid-{uid}"
        lines = audit.files(name)
        equal(len(set(ids_of(lines))), COUNT, f"lines of {name}")
        equal({line["uid"] for line in lines if "uid" in line} or {uid}, {uid}, f"whose they are in {name}")
        equal(audit.findings(name), ["dup_after_success"] * (COUNT // 10), f"findings of {name}")
        equal([name for name in metrics if f'tenant="{name}"' in name and "hole_bytes" in name], [], f"holes of {name}")
    holes = {series: value for series, value in metrics.items() if series.startswith('nightclerk_hole_bytes_total{tenant="uid-64000"')}
    print(f"# who floods: {len(audit.files('uid-64000'))} lines, {holes}", flush=True)
    check(any('cause="share"' in series for series in holes), "who floods has lost nothing of his share")


@fact
def a_new_life_counts_anew_and_its_sums_add_up(live):
    for options, name in ((ALL, "all"), (BY_UID, "uid-64001")):
        audit = Audit(live, *options, directory=f"audit-{name}")
        callers = Callers(live)
        for life in (1, 2):
            caller = callers.caller("64001", COUNT)
            order(caller)
            equal(done(caller), COUNT, "calls")
            caller.stdin.close()
            equal(caller.wait(timeout=HANG_SECONDS), 0, "exit status of the caller")
            audit.wait_for_lines(name, life * COUNT)
            if life == 1:
                first = audit.collector
                wait_until_read(first, callers.port)
                os.kill(first, signal.SIGKILL)
                wait_until(lambda pid=first: not is_alive(pid), "the end of the collector")
                check(audit.collector != first, "no other collector")
        equal(audit.stop()[0], 0, "exit status")
        lines = audit.files(name)
        equal((len(lines), len(set(ids_of(lines)))), (2 * COUNT, 2 * COUNT), "lines, and different ids")
        summaries = audit.summaries(name)
        equal([summary["incomplete"] for summary in summaries], [[GAP]], f"what keeps {name} from telling")
        equal(summaries[0]["bytes"]["accepted"], summaries[0]["bytes"]["in_messages"], "bytes")


@fact
def killed_under_load_no_line_that_was_read_is_lost_and_no_id_is_there_twice(live):
    audit = Audit(live, *ALL, "--rotate-size", "16384", "--keep", "900", "--metrics", live.path("audit.prom"))
    callers = Callers(live)
    callers_of = [callers.caller("", 200) for _ in range(2)]
    acknowledged, cut = set(), set()
    for number in range(3):
        for caller in callers_of:
            order(caller)

        def more_was_written():
            before = len(acknowledged)
            acknowledged.update(ids_of(whole_lines(audit, "all", cut=cut)))
            return len(acknowledged) > before
        wait_until(more_was_written, "lines of this round, in any of the files")
        first = audit.collector
        os.kill(first, signal.SIGKILL)
        wait_until(lambda pid=first: not is_alive(pid), "the end of the collector")
        equal([done(caller) for caller in callers_of], [200 * (number + 1)] * 2, "calls")
        check(audit.collector != first, "no other collector")
    acknowledged.update(ids_of(whole_lines(audit, "all", cut=cut)))

    def counted():
        metrics = metrics_of(live.path("audit.prom"))
        return metrics["nightclerk_gaps_total"], metrics["nightclerk_collector_restarts_total"]
    wait_until(lambda: counted() == (3, 3), "three gaps and three restarts in the metrics")
    collector = audit.collector
    for caller in callers_of:
        order(caller)
    audit.process.kill()
    audit.process.wait()
    wait_until(lambda: not is_alive(collector), "the end of the collector")
    for caller in callers_of:
        done(caller)
    again = Audit(live, *ALL)
    order(callers_of[0])
    done(callers_of[0])
    status, said = again.stop()
    equal(status, 0, "exit status")
    contains(said, "ended unclean", "what the next one says")
    ids = ids_of(whole_lines(audit, "all", cut=cut))
    equal(len(ids), len(set(ids)), "different ids")
    equal(acknowledged - set(ids), set(), "lines that were there and are not")
    gaps = {event["cause"] for event in whole_lines(audit, "all", "events.jsonl", cut) if event["kind"] == "gap"}
    equal(gaps, {"the collector was killed by signal 9 (Killed)"}, "gaps in the events")
    check(len(cut) <= 2 * 3, f"more lines are cut than two files and three kills can leave: {cut}")


@fact
def files_are_opened_again_under_load_and_no_line_is_lost(live):
    audit = Audit(live, *ALL)
    callers = Callers(live)
    caller = callers.caller("", 800)
    folder = os.path.join(audit.directory, "all")
    for number in range(1, 6):
        order(caller)
        audit.wait_for_lines("all", 1)
        for name in ("call_ledger.jsonl", "events.jsonl"): # as logrotate does it
            os.rename(os.path.join(folder, name), os.path.join(folder, f"{name}.old-{number}"))
        audit.process.send_signal(signal.SIGHUP)
        audit.wait_for("RELOADING=1")
        audit.wait_for("READY=1")
        equal(done(caller), 800 * number, "calls")
        wait_until(lambda want=800 * number: sum(1 for _ in whole_lines(audit, "all")) >= want, f"{800 * number} lines")
    equal(audit.stop()[0], 0, "exit status")
    ids = ids_of(audit.files("all"))
    equal((len(ids), len(set(ids))), (4000, 4000), "lines, and different ids")
    events = audit.files("all", "events.jsonl")
    equal(dict(collections.Counter(event["kind"] for event in events)),
          {"start": 1, "request": 4000, "response": 4000, "finding": 400, "summary": 1}, "events")


@fact
def the_same_policy_again_costs_no_memory(live):
    rules = [{"name": f"rule-{i}", "match": {"path": f"/never/{i}/*"}, "class": "read"} for i in range(250)]
    audit = Audit(live, *ALL, "--policy", live.write("policy.json", json.dumps({"rules": rules})))
    collector = audit.collector

    def reload(count):
        for _ in range(count):
            audit.process.send_signal(signal.SIGHUP)
            audit.wait_for("READY=1")
        caller = callers.caller("", 1)
        order(caller)
        done(caller)
        audit.wait_for_lines("all", len(anonymous) + 1) # what the monitor said is taken before what is captured later
        anonymous.append(anonymous_kib(collector))
    callers, anonymous = Callers(live), []
    reload(1)
    reload(300)
    print(f"# anonymous KiB after 1 and 301 reloads: {anonymous}", flush=True)
    check(anonymous[1] < anonymous[0] + 2048, f"a policy is kept for each reload: {anonymous} KiB")
    equal(audit.stop()[0], 0, "exit status")


@fact
def neither_the_collector_nor_a_tenant_opens_what_is_anothers(live):
    os.chmod(live.directory, 0o755)
    audit = Audit(live, *BY_UID)
    callers = Callers(live)
    for uid in UIDS[:2]:
        caller = callers.caller(str(uid), 1)
        order(caller)
        done(caller)
    for uid in UIDS[:2]:
        audit.wait_for_lines(f"uid-{uid}", 1)
    collector = int(status_of(audit.collector)["Uid"].split()[0])
    paths = [os.path.join(audit.directory, f"uid-{uid}", file) for uid in UIDS[:2] for file in ("call_ledger.jsonl", "events.jsonl")]
    for uid, forbidden in ((collector, paths), (UIDS[0], paths[2:]), (UIDS[1], paths[:2])):
        for path in forbidden:
            for mode in ("rb", "ab", "r+b"):
                tried = subprocess.run([sys.executable, "-c", "import sys\ntry:\n open(*sys.argv[1:])\nexcept OSError as e:\n print(e.errno)",
                                        path, mode], user=uid, group=uid, extra_groups=[], cwd="/", stdout=subprocess.PIPE,
                                       timeout=HANG_SECONDS, check=True)
                equal(tried.stdout, b"13\n", f"errno of open {mode} of {path} as {uid}")
    equal(audit.stop()[0], 0, "exit status")


@fact
def a_disk_that_fills_and_comes_back_costs_no_line(live):
    folder = live.path("disk")
    os.mkdir(folder)
    audit = Audit(live, *ALL, directory="disk/audit", prefix=[
        "unshare", "--mount", "--propagation", "private", "sh", "-c",
        'mount -t tmpfs -o size=1m none "$0" && exec "$@"', folder])
    inside = f"/proc/{audit.process.pid}/root"
    folder, audit.directory = inside + folder, inside + audit.directory
    callers = Callers(live)
    caller = callers.caller("", COUNT)
    order(caller)
    done(caller)
    audit.wait_for_lines("all", COUNT)
    with open(os.path.join(folder, "ballast"), "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    for _ in range(3): # more than is left of the last page
        order(caller)
        done(caller)
    wait_until(lambda: b"cannot write all/call_ledger.jsonl" in read_so_far(audit), "what it says of the disk")
    os.unlink(os.path.join(folder, "ballast"))
    lines = audit.wait_for_lines("all", 4 * COUNT)
    equal((len(lines), len(set(ids_of(lines)))), (4 * COUNT, 4 * COUNT), "lines, and different ids")
    wait_until(lambda: b"all/call_ledger.jsonl can be written again" in read_so_far(audit), "that it says so")
    audit.process.send_signal(signal.SIGTERM)
    audit.process.wait(timeout=HANG_SECONDS)
    equal(audit.process.returncode, 0, "exit status")
    said = read_so_far(audit).decode()
    equal(said.count("cannot write all/call_ledger.jsonl"), 1, f"how often it is said: {said}")


@fact
def a_directory_that_vanishes_is_made_again(live):
    audit = Audit(live, *ALL)
    callers = Callers(live)
    caller = callers.caller("", COUNT)
    order(caller)
    done(caller)
    before = ids_of(audit.wait_for_lines("all", COUNT))
    os.rename(audit.directory, audit.directory + ".gone") # at once: what is made again is not in the way
    shutil.rmtree(audit.directory + ".gone")
    wait_until(lambda: os.path.exists(os.path.join(audit.directory, "all", "call_ledger.jsonl")), "a new file")
    order(caller)
    done(caller)
    lines = audit.wait_for_lines("all", COUNT)
    equal((len(lines), len(set(ids_of(lines) + before))), (COUNT, 2 * COUNT), "lines, and different ids of both")
    status, said = audit.stop()
    equal(status, 0, f"exit status; it said {said}")
    contains(said, audit.directory, "what it says of it")


@fact
def a_symbolic_link_is_refused_and_said_once_and_no_line_is_lost(live):
    audit = Audit(live, *ALL)
    victim = live.write("victim", "mine\n")
    callers = Callers(live)
    caller = callers.caller("", COUNT)
    folder = os.path.join(audit.directory, "all")
    os.makedirs(folder, 0o700, exist_ok=True)
    path = os.path.join(folder, "call_ledger.jsonl")
    check(not os.path.exists(path), "a ledger before the first call")
    os.symlink(victim, path)
    order(caller)
    done(caller)
    wait_until(lambda: b"call_ledger.jsonl" in read_so_far(audit), "what it says of it")
    with open(victim, encoding="ascii") as file:
        equal(file.read(), "mine\n", "what the link points to")
    os.unlink(path)
    equal(len(audit.wait_for_lines("all", COUNT)), COUNT, "lines")
    audit.process.send_signal(signal.SIGTERM)
    equal(audit.process.wait(timeout=HANG_SECONDS), 0, "exit status")
    equal(read_so_far(audit).count(b"cannot write all/call_ledger.jsonl"), 1, f"how often it is said: {audit.said}")


@fact
def a_command_called_by_escape_sequences_stays_text(live):
    audit = Audit(live, *ALL, "--metrics", live.path("audit.prom"))
    callers = Callers(live)
    name = b'\x1b[2J"\\\xff\n\x07x'
    script = """
import ctypes, http.client, sys
ctypes.CDLL(None).prctl(15, bytes.fromhex(sys.argv[2]), 0, 0, 0) # PR_SET_NAME
peer = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
peer.request("POST", "/v1/charges", "1")
peer.getresponse().read()
"""
    subprocess.run([sys.executable, "-c", script, callers.port, name.hex()], timeout=HANG_SECONDS, check=True)
    line = audit.wait_for_lines("all", 1)[0]
    status, said = audit.stop()
    equal(status, 0, "exit status")
    contains(line["comm"], "\x1b[2J\"\\", "the name")
    for path in [os.path.join(audit.directory, "all", file) for file in ("call_ledger.jsonl", "events.jsonl")] + [live.path("audit.prom")]:
        with open(path, "rb") as file:
            check(b"\x1b" not in file.read(), f"an escape in {path}")
    check("\x1b" not in said, "an escape on stderr")


@fact
def what_a_backlog_took_is_given_back(live):
    audit = Audit(live, *ALL)
    callers = Callers(live)
    caller, last, flooder = callers.caller("", 100 if SLOW else 1000), callers.caller("", 1), callers.flooder("")
    collector = audit.collector

    before = anonymous_kib(collector)
    os.kill(collector, signal.SIGSTOP)
    try:
        order(flooder)
        for _ in range(30): # each has a time of its own
            order(caller)
            done(caller)
        flooder.kill()
        flooder.wait()
    finally: # a stopped one would outlive its monitor
        os.kill(collector, signal.SIGCONT)

    def last_is_there(): # the first ones find the ring full
        order(last)
        done(last)
        return any(line["pid"] == last.pid for line in whole_lines(audit, "all"))
    wait_until(last_is_there, "a call after the backlog")
    read = anonymous_kib(collector)
    wait_until(lambda: anonymous_kib(collector) < before + (32 << 10), f"the end of what the backlog took: {before} KiB before")
    print(f"# {before} KiB anonymous before a backlog, {read} when it was read, {anonymous_kib(collector)} at last", flush=True)
    equal((audit.collector, audit.stop()[0]), (collector, 0), "the collector, and the exit status")


@fact
def a_hundred_thousand_short_processes_cost_no_memory_and_no_call(live):
    count = 300 if SLOW else 100000
    audit = Audit(live, *ALL)
    callers = Callers(live)
    caller = callers.caller("", COUNT)

    order(caller)
    done(caller)
    before, begin = anonymous_kib(audit.collector), time.monotonic()
    processes = live.start([os.path.join(BUILD, "tests", "live", "short_processes"), str(count)])
    order(caller)
    done(caller)
    equal(processes.wait(timeout=5 * HANG_SECONDS), 0, "exit status of who starts them")
    per_minute = count * 60 / (time.monotonic() - begin)
    order(caller)
    done(caller)
    lines = audit.wait_for_lines("all", 3 * COUNT)
    after = anonymous_kib(audit.collector)
    print(f"# {count} processes, {per_minute:.0f} a minute: {before} KiB anonymous before, {after} after", flush=True)
    check(after < before + 4096, f"memory grows: {before}, {after} KiB")
    equal(audit.stop()[0], 0, "exit status")
    equal((len(lines), len(set(ids_of(lines)))), (3 * COUNT, 3 * COUNT), "lines, and different ids")
    equal(audit.summaries("all")[-1]["incomplete"], [], "what keeps it from telling")


play()
