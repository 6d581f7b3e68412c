#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The commands that ask the store first, `report` and `sweep`, as a user runs
them, without root: exit status, output, what the sqlite3 shell then sees.
Time is an argument (--now): nothing here waits for a lease. Prints TAP.
"""

import csv
import fcntl
import hashlib
import io
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NIGHTCLERK = os.path.join(os.environ.get("NIGHTCLERK_BUILD", os.path.join(ROOT, "build")), "nightclerk")
BODY = {"model": "a-model", "messages": [{"role": "user", "content": "say a"}], "temperature": 0}
PATH = "/v1/chat/completions"

facts = []


def fact(function):
    facts.append(function)
    return function


def equal(got, want):
    if got != want:
        raise AssertionError("got %r, want %r" % (got, want))


def is_running(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("never came true")
        time.sleep(0.01)


class Place:
    def __init__(self, directory):
        self.directory = directory
        self.db = self.path("calls.db")
        self.environment = dict(os.environ, NIGHTCLERK_DB=self.db)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return self.path(name)

    def run(self, status, *words, given=b""):
        done = subprocess.run([NIGHTCLERK, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, input=given,
                              env=self.environment, cwd=self.directory, timeout=60, check=False)
        if done.returncode != status:
            raise AssertionError("%s: exit %d, want %d\n%s%s" % (
                words, done.returncode, status, done.stdout.decode(), done.stderr.decode()))
        return done

    def out(self, status, *words, given=b""):
        done = self.run(status, *words, given=given)
        equal(done.stderr, b"")
        return done.stdout.decode()

    def err(self, status, *words):
        done = self.run(status, *words)
        equal(done.stdout, b"")
        return done.stderr.decode()

    def sql(self, question):
        """Through the sqlite3 shell, as a user would ask."""
        done = subprocess.run(["sqlite3", self.db, question], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60, check=False)
        equal(done.stderr, b"")
        return done.stdout.decode().strip()


def field(data):
    return struct.pack("<Q", len(data)) + data


def documented_key(version, model, extra, prompt_hash):
    parts = [b"nightclerk model key", version, model, extra, prompt_hash]
    return hashlib.sha256(b"".join(map(field, parts))).hexdigest()


# ---- key ----


@fact
def the_key_of_a_request_is_the_documented_hash(place):
    body = place.write("body.json", json.dumps(dict(BODY, max_tokens=7, stream=True)))
    canonical = b'{"messages":[{"content":"say a","role":"user"}],"model":"a-model","temperature":0}'
    want = documented_key(b"v1", b"a-model", b"", hashlib.sha256(canonical).digest())
    equal(place.out(0, "key", "--request", body, "--path", PATH), want + "\n")
    want = documented_key(b"v2", b"a-model", b"abc", hashlib.sha256(canonical).digest())
    said = place.out(0, "key", "--request", "-", "--path", PATH, "--extra", "abc", "--schema-version", "v2",
                     given=json.dumps(BODY).encode())
    equal(said, want + "\n")


@fact
def the_key_of_a_prompt_without_http_is_the_documented_hash(place):
    prompt = place.write("prompt.txt", "all that is asked")
    want = documented_key(b"v1", b"m", b"", hashlib.sha256(b"all that is asked").digest())
    equal(place.out(0, "key", "--model", "m", "--prompt", prompt), want + "\n")


@fact
def what_is_no_request_of_a_model_has_no_key(place):
    body = place.write("body.json", '{"amount": 1}')
    equal(place.err(1, "key", "--request", body, "--path", "/v1/charges"),
          "nightclerk key: path and body are no call of a model that is known; a rule of --policy may say that they are\n")
    equal(place.err(1, "key", "--request", "none", "--path", PATH),
          "nightclerk: cannot read none: No such file or directory\n")
    equal(place.err(2, "key"), "nightclerk key: the key of what? give --request and --path, or --model and --prompt; "
                               "see nightclerk key --help\n")
    equal(place.err(2, "key", "--request", body), "nightclerk key: --request and --path belong together; "
                                                  "see nightclerk key --help\n")


# ---- reserve, commit, get, release ----


@fact
def one_is_told_to_go_on_the_next_to_wait_and_all_later_ones_the_result(place):
    equal(place.out(0, "reserve", "k"), "")
    equal(place.out(4, "reserve", "k"), "")
    equal(place.out(4, "get", "k"), "")
    equal(place.out(0, "commit", "k", "-", given=b"the\0result\n"), "")
    equal(place.out(3, "reserve", "k"), "the\0result\n")
    equal(place.out(0, "get", "k"), "the\0result\n")
    equal(place.err(0, "commit", "k", "-"), "nightclerk commit: it was done already; the first result stays\n")
    equal(place.sql("SELECT status, attempts, billed, length(result), result_sha FROM calls"),
          "done|0|0|11|" + hashlib.sha256(b"the\0result\n").hexdigest())


@fact
def a_key_may_be_made_from_the_request_in_the_same_step(place):
    body = place.write("body.json", json.dumps(BODY))
    key = place.out(0, "key", "--request", body, "--path", PATH).strip()
    equal(place.out(0, "reserve", "--request", body, "--path", PATH), "")
    equal(place.sql("SELECT key, model, owner FROM calls"), key + "|a-model|reserve")
    equal(place.out(4, "reserve", key), "")


@fact
def done_without_a_result_is_still_done(place):
    equal(place.out(0, "commit", "k"), "")
    for verb in ("reserve", "get"):
        equal(place.err(3, verb, "k"), "nightclerk %s: it is done, but no result was kept\n" % verb)
    equal(place.out(5, "get", "another"), "")


@fact
def an_empty_result_is_a_result(place):
    equal(place.out(0, "commit", "k", "-"), "")
    equal(place.out(0, "get", "k"), "")


@fact
def a_reservation_ends_with_its_lease_or_when_it_is_given_back(place):
    equal(place.out(0, "reserve", "k", "--lease", "90", "--now", "1000"), "")
    equal(place.out(4, "reserve", "k", "--lease", "90", "--now", "1089"), "")
    equal(place.out(0, "reserve", "k", "--lease", "2m", "--now", "1090"), "")
    equal(place.sql("SELECT lease FROM calls"), "1210.0")
    equal(place.out(0, "release", "k", "--now", "1100"), "")
    equal(place.sql("SELECT status, reason FROM calls"), "abandoned|released")
    equal(place.out(5, "get", "k"), "")
    equal(place.err(0, "release", "k"), "nightclerk release: nobody had reserved it\n")
    equal(place.out(0, "reserve", "k"), "")


@fact
def a_warning_where_another_try_may_give_another_answer(place):
    for temperature, says in ((0, ""), (0.7, "above 0"), (None, "not set")):
        body = place.write("body.json", json.dumps(dict(BODY, temperature=temperature)))
        want = says and ("nightclerk reserve: the request's temperature is " + says + ": another try may give another "
                         "answer, and the kept one stands for all of them\n")
        equal(place.err(0, "reserve", "k%s" % temperature, "--request", body, "--path", PATH), want)


@fact
def results_older_than_the_time_to_live_do_not_count(place):
    place.run(0, "commit", "k", "-", "--now", "1000", given=b"old")
    equal(place.out(3, "reserve", "k", "--ttl", "1h", "--now", "4599"), "old")
    equal(place.out(0, "reserve", "k", "--ttl", "1h", "--now", "4600"), "")


@fact
def fifty_at_once_and_each_key_is_given_to_one(place):
    keys = ["key-%d" % i for i in range(5)]
    script = 'for k in %s; do "$0" reserve $k >/dev/null && echo $k && echo $$ | "$0" commit $k -; done; :' % " ".join(keys)
    processes = [subprocess.Popen(["sh", "-c", script, NIGHTCLERK], env=place.environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) for i in range(50)]
    won = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        equal(err, b"")
        won += out.decode().split()
    equal(sorted(won), keys)
    equal(place.sql("SELECT COUNT(*), SUM(status = 'done'), COUNT(result) FROM calls"), "5|5|5")


# ---- the README ----


def readme(start, end):
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    equal(text.count(start), 1)
    return start + text.split(start)[1].split(end)[0]


def with_a_model(place, script):
    """Runs it in a shell that finds nightclerk, and for curl a program that prints one answer a call."""
    os.makedirs(place.path("bin"), exist_ok=True)
    if not os.path.exists(place.path("bin/nightclerk")):
        os.symlink(NIGHTCLERK, place.path("bin/nightclerk"))
    os.chmod(place.write("bin/curl", '#!/bin/sh\necho "$@" >>calls\necho answer $(wc -l <calls)\n'), 0o755)
    place.write("body.json", json.dumps(BODY))
    environment = dict(place.environment, PATH=place.path("bin") + ":" + os.environ["PATH"], URL="http://127.0.0.1:1")
    return subprocess.run(["bash", "-c", script], env=environment, cwd=place.directory, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)


def read(place, name):
    with open(place.path(name), encoding="utf-8") as file:
        return file.read()


@fact
def the_readmes_job_asks_before_it_calls(place):
    script = readme("key=$(nightclerk key", "```")
    for _ in range(2):
        done = with_a_model(place, script)
        equal((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        equal(read(place, "answer.json"), "answer 1\n")
    equal(read(place, "calls"), "-s http://127.0.0.1:1/v1/chat/completions --json @body.json\n")
    place.sql("UPDATE calls SET status = 'pending', owner = 'reserve', lease = 9e9, result = NULL")
    equal(with_a_model(place, script).returncode, 75)


@fact
def the_readmes_command_runs_once(place):
    script = readme("nightclerk once --request body.json", "\n")
    for _ in range(2):
        done = with_a_model(place, script)
        equal((done.returncode, done.stdout, done.stderr), (0, b"answer 1\n", b""))
    equal(read(place, "calls"), "-s http://127.0.0.1:1/v1/chat/completions --json @body.json\n")


# ---- once ----


@fact
def a_command_runs_once_and_its_output_is_printed_again(place):
    script = "echo run >>%s; printf 'out\\000put'; echo note >&2" % place.path("runs")
    done = place.run(0, "once", "--key", "k", "--", "sh", "-c", script)
    equal((done.stdout, done.stderr), (b"out\0put", b"note\n"))
    done = place.run(0, "once", "--key", "k", "--", "sh", "-c", script)
    equal((done.stdout, done.stderr), (b"out\0put", b""))
    with open(place.path("runs"), encoding="utf-8") as file:
        equal(file.read(), "run\n")


@fact
def what_fails_is_not_kept_and_may_run_again(place):
    equal(place.out(7, "once", "--key", "k", "--", "sh", "-c", "echo half; exit 7"), "half\n")
    equal(place.sql("SELECT status, reason, result IS NULL FROM calls"), "abandoned|exit_7|1")
    equal(place.out(143, "once", "--key", "k", "--", "sh", "-c", "kill $$"), "")
    equal(place.out(0, "once", "--key", "k", "--", "echo", "whole"), "whole\n")
    equal(place.out(0, "get", "k"), "whole\n")
    place.write("text", "no program")
    equal(place.err(126, "once", "--key", "x", "--", place.path("text")),
          "nightclerk once: %s: Permission denied\n" % place.path("text"))
    equal(place.err(127, "once", "--key", "x", "--", "/none"), "nightclerk once: /none: No such file or directory\n")


@fact
def nothing_runs_while_somebody_else_is_at_it_or_where_no_output_was_kept(place):
    place.run(0, "reserve", "k")
    place.run(0, "commit", "done")
    ran = place.path("ran")
    equal(place.err(4, "once", "--key", "k", "--", "touch", ran),
          "nightclerk once: somebody else is at it; nothing was run\n")
    equal(place.err(3, "once", "--key", "done", "--", "touch", ran),
          "nightclerk once: it is done, but no output was kept; nothing was run\n")
    equal(os.path.exists(ran), False)


@fact
def one_that_was_killed_is_taken_over_after_its_lease_and_its_command_is_gone(place):
    fifo = place.path("fifo")
    os.mkfifo(fifo)
    words = [NIGHTCLERK, "once", "--key", "k", "--now", "1000", "--lease", "900", "--", "sh", "-c", "echo $$ >%s; exec cat %s" % (fifo, fifo)]
    process = subprocess.Popen(words, env=place.environment, stdout=subprocess.DEVNULL)
    with open(fifo, encoding="utf-8") as file:
        command = int(file.readline())
    process.kill()
    process.wait()
    wait_until(lambda: not is_running(command))
    equal(place.err(4, "once", "--key", "k", "--now", "1899", "--", "echo", "x"),
          "nightclerk once: somebody else is at it; nothing was run\n")
    equal(place.out(0, "once", "--key", "k", "--now", "1900", "--", "echo", "second"), "second\n")


@fact
def nothing_that_it_started_outlives_one_that_was_killed(place):
    fifo = place.path("fifo")
    os.mkfifo(fifo)
    script = "setsid sh -c 'echo $$ >%s; exec sleep 1000' & (sleep 1000 & echo $! >%s); echo $$ >%s; wait" % (fifo, fifo, fifo)
    process = subprocess.Popen([NIGHTCLERK, "once", "--key", "k", "--", "sh", "-c", script], env=place.environment,
                               stdout=subprocess.DEVNULL)
    pids = []
    while len(pids) < 3:
        with open(fifo, encoding="utf-8") as file:
            pids += map(int, file.read().split())
    equal([is_running(pid) for pid in pids], [True] * 3)
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(is_running, pids)))


@fact
def what_it_leaves_behind_may_go_on_when_it_is_over(place):
    pid = int(place.out(0, "once", "--key", "k", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"))
    try:
        equal(is_running(pid), True)
    finally:
        os.kill(pid, signal.SIGKILL)


@fact
def output_of_what_it_left_behind_is_waited_for_unless_a_signal_comes(place):
    fifo = place.path("fifo")
    os.mkfifo(fifo)
    script = "(read line <%s; echo $line) & echo early" % fifo
    for name, end, result in (("k", lambda process: place.write("fifo", "late\n"), (0, b"late\n")),
                              ("l", lambda process: process.terminate(), (143, b""))):
        process = subprocess.Popen([NIGHTCLERK, "once", "--key", name, "--", "sh", "-c", script], env=place.environment,
                                   stdout=subprocess.PIPE, bufsize=0)
        equal(process.stdout.readline(), b"early\n")
        end(process)
        try:
            equal((process.wait(60), process.stdout.read()), result)
        finally:
            process.kill()
    equal(place.sql("SELECT key, status, reason, CAST(result AS TEXT) FROM calls ORDER BY key"),
          "k|done||early\nlate\n\nl|abandoned|exit_143|")
    place.write("fifo", "end\n") # what was left behind reads on, and ends


@fact
def output_that_finds_no_room_waits_and_what_cannot_be_written_is_said(place):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = subprocess.Popen([NIGHTCLERK, "once", "--key", "k", "--", "head", "-c", "300000", "/dev/zero"],
                               env=place.environment, stdout=writer)
    os.close(writer)
    pending = bytearray(4)
    wait_until(lambda: fcntl.ioctl(reader, termios.FIONREAD, pending) == 0 and struct.unpack("i", pending)[0] > 60000)
    with open(reader, "rb") as file:
        equal(len(file.read()), 300000)
    equal(process.wait(60), 0)

    said = "nightclerk once: cannot write the output: No space left on device; it is kept: nightclerk get full\n"
    for _ in range(2):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([NIGHTCLERK, "once", "--key", "full", "--", "echo", "x"], env=place.environment, stdout=full,
                                  stderr=subprocess.PIPE, timeout=60, check=False)
        equal((done.returncode, done.stderr.decode()), (125, said))
    equal(place.out(0, "get", "full"), "x\n")

    reader, writer = os.pipe()
    os.close(reader)
    for _ in range(2):
        done = subprocess.run([NIGHTCLERK, "once", "--key", "pipe", "--", "echo", "x"], env=place.environment, stdout=writer,
                              stderr=subprocess.PIPE, timeout=60, check=False)
        equal((done.returncode, done.stderr), (141, b""))
    os.close(writer)
    equal(place.out(0, "get", "pipe"), "x\n")


class Running:
    """`once` whose command says that it began, and ends with the status that it is told."""

    def __init__(self, place, name, *words):
        self.said, self.told = place.path(name + "-said"), place.path(name + "-told")
        os.mkfifo(self.said)
        os.mkfifo(self.told)
        script = "echo $$ >%s; read status <%s; exit $status" % (self.said, self.told)
        self.process = subprocess.Popen([NIGHTCLERK, "once", *words, "--", "sh", "-c", script], env=place.environment,
                                        stderr=subprocess.PIPE)
        with open(self.said, encoding="utf-8") as file:
            self.command = int(file.readline())

    def end(self, status):
        with open(self.told, "w", encoding="utf-8") as file:
            file.write("%d\n" % status)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err.decode()


@fact
def one_whose_lease_was_over_gives_nothing_back_that_another_one_has(place):
    first = Running(place, "first", "--key", "k", "--now", "1000")
    second = Running(place, "second", "--key", "k", "--now", "2000")
    equal(first.end(1), (1, ""))
    equal(place.sql("SELECT status, owner_pid FROM calls"), "pending|%d" % second.process.pid)
    equal(place.err(4, "release", "k"), "nightclerk release: another process has reserved it and is still there; it stays "
                                        "reserved until that one gives it back or ends, or the lease is over\n")
    equal(second.end(0), (0, ""))
    equal(place.sql("SELECT status FROM calls"), "done")


@fact
def a_signal_to_us_reaches_the_command(place):
    fifo = place.path("fifo")
    os.mkfifo(fifo)
    script = "import os, signal, sys; signal.signal(signal.SIGTERM, lambda *_: os._exit(9));" \
             "open(sys.argv[1], 'w').write('up\\n'); signal.pause()"
    process = subprocess.Popen([NIGHTCLERK, "once", "--key", "k", "--", sys.executable, "-c", script, fifo], env=place.environment)
    with open(fifo, encoding="utf-8") as file:
        equal(file.readline(), "up\n")
    process.send_signal(signal.SIGTERM)
    try:
        equal(process.wait(60), 9)
    finally:
        process.kill()


# ---- report, sweep ----


def rows(place):
    """Two calls of one model: one asked twice and billed twice, one left pending; one of another model."""
    place.run(0, "commit", "warm-up", "--now", "1")
    place.sql(
        "DELETE FROM calls; DELETE FROM attempts; DELETE FROM blind; DELETE FROM runs;"
        "INSERT INTO calls (key, status, model, schema_version, process, path, prompt_tokens, output_tokens,"
        " cached_tokens, usage, attempts, billed, wasted_tokens, created_at, updated_at) VALUES"
        " ('k1', 'done', 'a', 'v1', 'agent', '/p', 812, 41, 12, 'whole', 2, 2, 853, 86400, 86500),"
        " ('k2', 'pending', 'a', 'v1', 'job', '/p', NULL, NULL, NULL, NULL, 1, 0, 0, 172800, 172800),"
        " ('k3', 'abandoned', 'b,\"2\"', 'v1', 'job', '/q', NULL, NULL, NULL, NULL, 1, 1, 5, 172900, 172900);"
        "INSERT INTO attempts (id_number, id, key, run, t, outcome, over, response_complete, answer_complete, model, path, comm,"
        " prompt_tokens, output_tokens, cached_tokens, billed, used, holes, finding, flags, idem_state) VALUES"
        " (1, '1', 'k1', 'r', 86400, 'answered', 1, 1, 1, 'a', '/p', 'agent', 812, 41, 12, 1, 1, 0, NULL, 0, 0),"
        " (2, '2', 'k1', 'r', 86450, 'answered', 1, 1, 1, 'a', '/p', 'job', 812, 41, 0, 1, 0, 0, 'llm_repeat', 0, 0),"
        " (3, '3', 'k2', 'r', 172800, NULL, 0, 0, 0, 'a', '/p', 'job', NULL, NULL, NULL, 0, 0, 3, NULL, 0, 0),"
        " (4, '4', 'k3', 'r', 172900, 'cut', 1, 0, 0, 'b,\"2\"', '/q', 'job', 5, NULL, NULL, 1, 0, 0, NULL, 0, 0);"
        "INSERT INTO blind VALUES ('r', 86400, 'tls', 7, 'agent', 1, 2);"
        "INSERT INTO runs VALUES ('r', 86400, 173000, 'boot', 1, 9), ('s', 86401, NULL, 'boot', 0, 0)")


NAMES = ["calls", "attempts", "billed", "input_tokens", "output_tokens", "cached_tokens", "wasted_tokens", "duplicates",
         "pending", "abandoned", "blind", "hole_bytes"]
TOTAL = [3, 4, 3, 812, 41, 12, 858, 1, 1, 1, 1, 3]
BY = {
    ("model", "a"): [2, 3, 2, 812, 41, 12, 853, 1, 1, 0, 0, 3],
    ("model", 'b,"2"'): [1, 1, 1, 0, 0, 0, 5, 0, 0, 1, 0, 0],
    ("process", "agent"): [1, 1, 1, 812, 41, 12, 0, 0, 0, 0, 1, 0],
    ("process", "job"): [2, 3, 2, 0, 0, 0, 858, 1, 1, 1, 0, 3],
    ("path", "/p"): [2, 3, 2, 812, 41, 12, 853, 1, 1, 0, 0, 3],
    ("path", "/q"): [1, 1, 1, 0, 0, 0, 5, 0, 0, 1, 0, 0],
    ("day", "1970-01-02"): [1, 2, 2, 812, 41, 12, 853, 1, 0, 0, 1, 0],
    ("day", "1970-01-03"): [2, 2, 1, 0, 0, 0, 5, 0, 1, 1, 0, 3],
}


@fact
def a_report_sums_up_by_model_process_path_and_day(place):
    rows(place)
    report = json.loads(place.out(0, "report", "--json"))
    equal(list(report), ["total", "by_model", "by_process", "by_path", "by_day", "run_hole_bytes", "unclean_runs"])
    equal(report["total"], dict(zip(NAMES, TOTAL)))
    got = {(by, row.pop(by)): list(row.values()) for by in ("model", "process", "path", "day")
           for row in report["by_" + by]}
    equal(got, BY)
    equal((report["run_hole_bytes"], report["unclean_runs"]), (9, 1))


@fact
def the_same_as_csv_and_for_people(place):
    rows(place)
    table = list(csv.reader(io.StringIO(place.run(0, "report", "--csv").stdout.decode(), newline="")))
    equal(table[0], ["by", "name", *NAMES])
    equal(table[1], ["total", "", *map(str, TOTAL)])
    equal({(row[0], row[1]): list(map(int, row[2:])) for row in table[2:]}, BY)
    lines = place.out(0, "report").splitlines()
    equal(lines[0].split(), ["calls", "attempts", "billed", "in", "out", "cached", "wasted", "dup", "pending",
                             "abandoned", "blind", "holes"])
    equal(lines[1].split(), ["total", *map(str, TOTAL)])
    equal(lines[2].split(), ["model", "a", *map(str, BY["model", "a"])])
    equal(lines[-2:], ["not seen in all runs together: 9 bytes", "runs that go on, or ended unclean: 1"])
    equal(len(lines), 12)


@fact
def since_leaves_out_what_began_before(place):
    rows(place)
    for since in ("1970-01-03", "1970-01-03T00:00:00Z", "2h"):
        report = json.loads(place.out(0, "report", "--json", "--since", since, "--now", "180000"))
        equal([report["total"][name] for name in NAMES], [2, 2, 1, 0, 0, 0, 5, 0, 1, 1, 0, 3])


@fact
def prices_are_the_users_and_a_model_without_one_has_no_cost(place):
    rows(place)
    prices = place.write("prices.json", '{"a": {"input": 2, "cached": 1, "output": 10}}')
    report = json.loads(place.out(0, "report", "--json", "--prices", prices))
    # 800 fresh, 12 cached, 41 out; again without a cache.
    equal((report["by_model"][0]["cost"], report["by_model"][0]["wasted_cost"]), (0.004056, 0.002034))
    equal((report["by_model"][1]["cost"], report["total"]["cost"]), (None, None))
    for text, says in (
            ("[]", 'is not an object of models: {"MODEL": {"input": 2.5, "output": 10}}'),
            ('{"a": 1}', "a is no object of prices: prices are numbers for a million tokens"),
            ('{"a": {"input": -1, "output": 1}}', 'a has no number as "input": prices are numbers for a million tokens'),
            ('{"a": {"input": 1}}', 'a has no number as "output": prices are numbers for a million tokens'),
            ('{"a": {"input": 1, "output": 1, "cache": 1}}',
             "a has something beside input, cached and output: prices are numbers for a million tokens")):
        path = place.write("bad.json", text)
        equal(place.err(2, "report", "--prices", path), "nightclerk report: %s: %s\n" % (path, says))


def see_all(place):
    place.sql("DELETE FROM blind; UPDATE runs SET hole_bytes = 0, ended_at = 173000")


@fact
def an_assertion_that_holds_of_what_was_seen_alone_ends_with_11_and_says_why(place):
    rows(place)
    see_all(place)
    words = ("report", "--assert", "billed<=2")
    equal(place.out(0, *words), "")
    for change, says in (
            ("INSERT INTO blind VALUES ('r', 86400, 'tls', 7, 'agent', 1, 2)",
             "1 streams could not be read: a call may be in them"),
            ("UPDATE runs SET hole_bytes = 9 WHERE run = 'r'", "9 bytes were not seen: a call may be in them"),
            ("UPDATE runs SET ended_at = NULL WHERE run = 's'",
             "1 runs go on, were killed or lost rows: the store does not have all of them"),
            ("UPDATE attempts SET key = NULL WHERE id = '4'",
             "1 attempts were not seen whole: of which call they are is not known"),
            ("UPDATE attempts SET status = 200 WHERE id = '3'",
             "1 answers reported no tokens that could be read: whether they were billed is not known")):
        rows(place)
        see_all(place)
        place.sql(change)
        equal(place.err(11, *words), "nightclerk report: cannot tell: %s\n" % says)
    equal(place.out(0, "report", "--assert", "attempts<=2"), "")
    equal(place.out(0, "report", "--assert", "billed<=2", "--key", "k1"), "")
    equal(place.run(10, "report", "--assert", "billed<=1").stderr.decode(), "")


@fact
def nothing_asserted_of_no_call_is_not_told(place):
    place.run(0, "reserve", "k")
    place.sql("DELETE FROM calls")
    equal(place.err(11, "report", "--assert", "attempts==1"), "nightclerk report: cannot tell: there is no call\n")
    equal(place.out(0, "report", "--assert", "billed<=1"), "")


@fact
def what_was_sent_again_since_is_asserted_of_though_it_began_before(place):
    rows(place)
    see_all(place)
    place.sql("UPDATE attempts SET t = 172850 WHERE id = '2'")
    for since, status in (("172851", 0), ("172850", 10)):
        said = place.out(status, "report", "--assert", "billed<=1", "--since", str(180000 - int(since)), "--now", "180000")
        equal(said, "does not hold: billed<=1: call k1, model a, done: 2 attempts, 2 billed, 853 tokens wasted\n"
              if status else "")


@fact
def a_run_that_was_killed_counts_where_it_asked_something_since(place):
    rows(place)
    see_all(place)
    place.sql("UPDATE runs SET ended_at = NULL WHERE run = 'r'")
    since = ("--since", "7100", "--now", "180000")
    equal(json.loads(place.out(0, "report", "--json", *since))["unclean_runs"], 1)
    place.sql("UPDATE attempts SET run = 's'")
    equal(json.loads(place.out(0, "report", "--json", *since))["unclean_runs"], 0)


@fact
def an_assertion_that_does_not_hold_ends_with_10_and_names_the_call(place):
    rows(place)
    see_all(place)
    equal(place.out(10, "report", "--assert", "billed<=1"),
          "does not hold: billed<=1: call k1, model a, done: 2 attempts, 2 billed, 853 tokens wasted\n")
    equal(place.out(0, "report", "--assert", "billed <= 2", "--assert", "attempts>0"), "")
    equal(place.out(0, "report", "--assert", "billed<=1", "--key", "k2"), "")
    equal(place.out(10, "report", "--assert", "tokens<=1000", "--key", "k2"),
          "does not hold: tokens<=1000: call k2, model a, pending: 1 attempts, 0 billed, 0 tokens wasted\n")
    equal(place.out(0, "report", "--assert", "tokens=853", "--key", "k1"), "")
    equal(place.run(10, "report", "--assert", "billed==1", "--key", "never").stderr.decode(),
          "nightclerk report: there is no call never; it counts as one with 0 attempts\n")
    for text in ("billed", "billed<=", "billed<=x", "billed=>1", "bill<=1", "billed<=1 or", "billed<=-1"):
        place.run(2, "report", "--assert", text)


@fact
def sweep_marks_what_was_left_and_removes_what_is_old(place):
    place.run(0, "reserve", "left", "--now", "1000", "--lease", "10")
    place.run(0, "commit", "old", "--now", "1000")
    place.run(0, "commit", "new", "--now", "5000")
    equal(place.out(0, "sweep", "--now", "1009"), "0 abandoned, 0 removed\n")
    equal(place.out(0, "sweep", "--now", "1010"), "1 abandoned, 0 removed\n")
    equal(place.sql("SELECT status, reason FROM calls WHERE key = 'left'"), "abandoned|lease_over")
    equal(place.out(0, "sweep", "--now", "5001", "--ttl", "1h"), "0 abandoned, 2 removed\n")
    equal(place.sql("SELECT group_concat(key) FROM calls"), "new")


# ---- bad input ----


@fact
def a_store_that_cannot_be_used_is_named_with_the_remedy(place):
    equal(place.err(1, "report"), "nightclerk report: there is no store at %s; `nightclerk run --db %s -- COMMAND` makes one\n"
          % (place.db, place.db))
    place.write("calls.db", b"SQLite format 3\0" + bytes(range(200)) * 30)
    done = place.run(1, "reserve", "k").stderr.decode()
    equal(done, "nightclerk reserve: cannot read %s: file is not a database; it is no store or is damaged: keep a copy "
                "and try `sqlite3 FILE .recover`, or give another file\n" % place.db)
    equal(place.err(125, "once", "--key", "k", "--", "echo", "x"), done.replace("reserve:", "once:"))
    os.unlink(place.db)
    place.run(0, "reserve", "k")
    place.sql("PRAGMA user_version = 9")
    equal(place.err(1, "get", "k"),
          "nightclerk get: %s was written by a newer nightclerk: its schema is 9, this one knows 1; use the newer nightclerk, "
          "or give another file\n" % place.db)


@fact
def an_option_that_is_wrong_is_named(place):
    place.environment.pop("NIGHTCLERK_DB")
    for words, says in (
            (("get", "k"), "which store? give --db FILE, or set NIGHTCLERK_DB"),
            (("reserve", "--db", "x"), "which one? give a KEY; `nightclerk key` makes one"),
            (("get", "k", "l", "--db", "x"), "there is an argument too many"),
            (("reserve", "k" * 256, "--db", "x"), "a KEY has 1 to 255 bytes"),
            (("report", "--json", "--csv", "--db", "x"), "give --json or --csv, not both"),
            (("once", "--key", "k", "--db", "x"), "no command given: nightclerk once --key KEY -- COMMAND [ARGUMENT...]"),
            (("reserve", "k", "--lease", "0"), "--lease takes a time above 0: seconds, or with m, h, d: 90, 15m, 2h, 7d"),
            (("sweep", "--ttl", "1y"), "--ttl takes a time above 0: seconds, or with m, h, d: 90, 15m, 2h, 7d")):
        equal(place.err(2, *words), "nightclerk %s: %s; see nightclerk %s --help\n" % (words[0], says, words[0]))


def main():
    only = sys.argv[1:]
    chosen = [f for f in facts if not only or f.__name__ in only]
    print("1..%d" % len(chosen))
    failed = 0
    for number, function in enumerate(chosen, 1):
        try:
            with tempfile.TemporaryDirectory(prefix="nightclerk-store-") as directory:
                function(Place(directory))
            print("ok %d - %s" % (number, function.__name__.replace("_", " ")))
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print("not ok %d - %s" % (number, function.__name__.replace("_", " ")))
            print("\n".join("# " + line for line in traceback.format_exc().splitlines()))
    sys.exit(1 if failed else 0)


main()
