#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The account book of model calls, from real runs: what the sqlite3 shell finds, who is blocked and who is not, what is
left when somebody is killed. NIGHTCLERK_KILLS says how often nightclerk itself is (10)."""

import glob
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys

from answering import MODEL
from harness import BUILD, HANG_SECONDS, NIGHTCLERK, ROOT, check, contains, equal, fact, play, read_lines, wait_for_line, wait_until

KILLS = int(os.environ.get("NIGHTCLERK_KILLS", "10"))
THE_SUM = "SELECT status, COUNT(*), SUM(prompt_tokens+output_tokens) FROM calls GROUP BY status;"
PATH = "/v1/chat/completions"
REQUEST = {"model": "demo-large", "messages": [{"role": "user", "content": "Grade bolt M8."}], "temperature": 0}

# Prints its port, then a line a request. Answers with the statuses of argv, the last one for good; "hold" keeps a call
# open until a line comes on stdin.
SERVER = MODEL + """
statuses = sys.argv[1:]

class Handler(Model):
    def do_POST(self):
        self.take_body()
        status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        print(status, flush=True)
        if status == "hold":
            sys.stdin.readline()
            status = "200"
        self.answer_model(status == "200", int(status))

serve(Handler)
"""

CLIENT = """
import http.client, sys

port, body, attempts = sys.argv[1:4]
headers = {"Content-Type": "application/json", "Authorization": "Bearer planted-secret", "Cookie": "c=planted-secret"}
for attempt in range(int(attempts)):
    connection = http.client.HTTPConnection("127.0.0.1", int(port))
    connection.request("POST", "/v1/chat/completions?api_key=planted-secret", body, headers)
    connection.getresponse().read()
    connection.close()
"""


class Store:
    def __init__(self, live):
        self.live = live
        self.path = live.path("calls.db")

    def ask(self, question):
        """Through the sqlite3 shell, as a user would."""
        done = subprocess.run(["sqlite3", self.path, question], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=HANG_SECONDS, check=False)
        equal(done.stderr, b"", "what the shell complains of")
        return done.stdout.decode(errors="backslashreplace").strip()

    def nightclerk(self, *words, says=""):
        done = subprocess.run([NIGHTCLERK, *words, "--db", self.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=HANG_SECONDS, check=False)
        equal(done.stderr.decode(), says, f"stderr of nightclerk {words}")
        return done.returncode, done.stdout.decode().strip()


def server(live, *statuses):
    process = live.start([sys.executable, live.write("server.py", SERVER), *statuses], stdin=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
    return process, wait_for_line(process, "the model server")


def client(live, port, attempts=1, body=json.dumps(REQUEST)):
    return [sys.executable, live.write("client.py", CLIENT), port, body, str(attempts)]


@fact
def two_gateway_errors_and_an_answer_are_one_call_and_so_is_a_repeat(live):
    store = Store(live)
    _, port = server(live, "504", "504", "200")
    result = live.run(client(live, port, 3), ["--db", store.path]).expect(10)
    equal(store.ask(THE_SUM), "done|1|853", "the sum")
    equal(store.ask("SELECT attempts, billed, wasted_tokens, model, process, path FROM calls"),
          f"3|1|0|demo-large|python3|{PATH}", "the call")
    equal(store.ask("SELECT group_concat(status), group_concat(outcome) FROM (SELECT * FROM attempts ORDER BY t)"),
          "504,504,200|status,status,answered", "attempts")
    equal(store.ask("SELECT group_concat(id) FROM (SELECT id FROM attempts ORDER BY t)"), ",".join(line["id"] for line in result.ledger), "ids")
    request = live.write("body.json", json.dumps({**REQUEST, "stream": True}))
    equal(store.nightclerk("reserve", "--request", request, "--path", PATH,
                           says="nightclerk reserve: it is done, but no result was kept\n"), (3, ""), "reserve")
    key = subprocess.run([NIGHTCLERK, "key", "--request", request, "--path", PATH], stdout=subprocess.PIPE, check=True)
    equal(store.ask("SELECT key FROM calls"), key.stdout.decode().strip(), "key")
    equal(result.summary["store"]["lost"], 0, "lost rows")

    again = live.run(client(live, port), ["--db", store.path]).expect(10)
    equal(store.ask(THE_SUM), "done|1|853", "the sum after a second process")
    equal(store.ask("SELECT attempts, billed, wasted_tokens FROM calls"), "4|2|853", "the call after a second process")
    equal([(name, severity, event["cross_process"], event["attempts"]) for name, severity, event in again.findings()],
          [("llm_maybe_billed_twice", "medium", True, 4)], "findings across runs")
    equal(store.ask("SELECT finding, severity, cross_process FROM findings ORDER BY t DESC LIMIT 1"),
          "llm_maybe_billed_twice|medium|1", "the finding's row")
    equal(store.nightclerk("report", "--assert", "billed<=1")[0], 10, "billed<=1")
    equal(store.nightclerk("report", "--assert", "billed<=2"), (0, ""), "billed<=2")
    for path in glob.glob(store.path + "*"):
        with open(path, "rb") as file:
            text = file.read()
        check(b"planted-secret" not in text and b"Grade bolt" not in text and b"8.8" not in text, f"a secret in {path}")
        equal(os.stat(path).st_mode & 0o777, 0o600, f"mode of {path}")


@fact
def a_run_may_assert_of_itself_and_one_that_was_killed_cannot_be_told(live):
    store = Store(live)
    _, port = server(live, "200")
    script = '"$@" && exec "$0" report --db ' + store.path + " --assert 'billed<=1'"
    live.run(["sh", "-c", script, NIGHTCLERK, *client(live, port)], ["--db", store.path]).expect(0)
    process = live.nightclerk(live.run_arguments(["sh", "-c", '"$@"; echo up; exec cat', "sh", *client(live, port)],
                                                 ["--db", store.path]), stdin=subprocess.PIPE, preexec_fn=os.setpgrp)
    equal(wait_for_line(process, "the command"), "up", "the command")
    process.kill()
    process.wait()
    says = "nightclerk report: cannot tell: 1 runs go on, were killed or lost rows: the store does not have all of them\n"
    equal(store.nightclerk("report", "--assert", "attempts<=2", says=says), (11, ""), "after a kill")


# Prints its port; passes everything on to the port of argv.
GATEWAY = """
import http.client, http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
        connection.request("POST", self.path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    log_message = lambda *more: None

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""

# Starts the gateway, asks through it, ends it: all of it is in the run.
THROUGH = """
import os, subprocess, sys

gateway, client, model, body = sys.argv[1:]
process = subprocess.Popen([sys.executable, gateway, model], stdout=subprocess.PIPE)
port = process.stdout.readline().decode().strip()
subprocess.run([sys.executable, client, port, body, "1"], check=True)
process.kill()
process.wait()
"""


@fact
def a_call_through_a_gateway_is_billed_once(live):
    store = Store(live)
    _, port = server(live, "200")
    command = [sys.executable, live.write("through.py", THROUGH), live.write("gateway.py", GATEWAY),
               live.write("client.py", CLIENT), port, json.dumps(REQUEST)]
    result = live.run(command, ["--db", store.path]).expect(0)
    equal(len(result.ledger), 2, "ledger lines")
    equal(store.ask("SELECT status, attempts, billed, wasted_tokens FROM calls"), "done|1|1|0", "the call")
    equal(store.ask(THE_SUM), "done|1|853", "the sum")
    equal(store.nightclerk("report", "--assert", "billed<=1"), (0, ""), "billed<=1")


@fact
def answers_are_kept_where_it_was_asked_for(live):
    store = Store(live)
    _, port = server(live, "200")
    live.run(client(live, port), ["--db", store.path, "--keep-results"]).expect(0)
    status, answer = store.nightclerk("get", store.ask("SELECT key FROM calls"))
    equal((status, json.loads(answer)["choices"][0]["message"]["content"]), (0, "8.8"), "the kept answer")


@fact
def a_replay_into_the_same_store_counts_nothing_twice(live):
    store = Store(live)
    _, port = server(live, "504", "200")
    live.run(client(live, port, 3), ["--db", store.path]).expect(10)
    everything = "SELECT * FROM calls; SELECT * FROM attempts; SELECT * FROM findings; SELECT * FROM runs"
    live_rows = store.ask(everything)
    equal(store.nightclerk("replay", live.path("recording"), "--quiet")[0], 10, "replay")
    equal(store.ask(everything), live_rows, "after a replay")
    other = Store(live)
    other.path = live.path("other.db")
    equal(other.nightclerk("replay", live.path("recording"), "--quiet")[0], 10, "replay into an empty store")
    equal(other.ask(everything), live_rows, "the replayed store")


@fact
def every_case_of_model_calls_says_the_same_live_and_replayed(live):
    store, replayed = Store(live), Store(live)
    replayed.path = live.path("replayed.db")
    attempts = 0
    for directory in sorted(glob.glob(os.path.join(ROOT, "tests", "cases", "[0-9]*"))):
        with open(os.path.join(directory, "expected.json"), encoding="utf-8") as file:
            rows = [row for row in json.load(file)["rows"] if row.get("llm")]
        files = ["--db", store.path, "--record", live.path("case.rec")]
        live.run([os.path.join(BUILD, "tests", "live", "play"), directory], files, replay=False)
        attempts += len(rows)
        replayed.nightclerk("replay", live.path("case.rec"), "--quiet")
    check(attempts >= 9, "there are hardly any cases of model calls")
    equal(store.ask("SELECT COUNT(*) FROM attempts"), str(attempts), "attempts")
    everything = "SELECT * FROM calls ORDER BY key; SELECT * FROM attempts ORDER BY t; SELECT * FROM findings"
    equal(replayed.ask(everything), store.ask(everything), "the replayed store")


@fact
def a_call_whose_client_was_killed_is_abandoned_and_the_next_one_completes_it(live):
    store = Store(live)
    model, port = server(live, "hold", "200")
    process = live.nightclerk(live.run_arguments(client(live, port), ["--db", store.path]), stdin=subprocess.PIPE)
    equal(wait_for_line(model, "the request"), "hold", "the request")
    wait_until(lambda: os.path.exists(store.path) and store.ask("SELECT status FROM calls") == "pending", "a pending row")
    pid = int(store.ask("SELECT owner_pid FROM calls"))
    os.kill(pid, signal.SIGKILL)
    live.finish(process).expect(137)
    equal(store.ask("SELECT status, reason FROM calls"), "abandoned|owner_exited", "the call")
    again = live.run(client(live, port), ["--db", store.path])
    equal([name for name, _, _ in again.findings()], ["llm_redispatched_job"], "findings")
    equal(store.ask("SELECT status, attempts, billed FROM calls"), "done|2|1", "the call after the next attempt")


@fact
def a_call_that_outlives_nightclerk_is_pending_until_its_lease_is_over(live):
    store = Store(live)
    model, port = server(live, "hold", "200")
    process = live.nightclerk(live.run_arguments(client(live, port), ["--db", store.path, "--lease", "100"]),
                              stdin=subprocess.PIPE)
    equal(wait_for_line(model, "the request"), "hold", "the request")
    wait_until(lambda: os.path.exists(store.path) and store.ask("SELECT status FROM calls") == "pending", "a pending row")
    process.kill()
    process.wait()
    pid, begun = store.ask("SELECT owner_pid, t FROM calls JOIN attempts USING (key)").split("|")
    try:
        equal(store.nightclerk("sweep", "--now", str(float(begun) + 99)), (0, "0 abandoned, 0 removed"), "within the lease")
        key = store.ask("SELECT key FROM calls")
        equal(store.nightclerk("reserve", key)[0], 4, "reserve of somebody else")
        equal(store.nightclerk("sweep", "--now", str(float(begun) + 101)), (0, "1 abandoned, 0 removed"), "after it")
        equal(store.ask("SELECT calls.status, reason, outcome FROM calls JOIN attempts USING (key)"),
              "abandoned|lease_over|lease_over", "the call")
    finally:
        os.kill(int(pid), signal.SIGKILL)
    live.run(client(live, port), ["--db", store.path])
    equal(store.ask("SELECT status, attempts, billed FROM calls"), "done|2|1", "the call after the next attempt")


@fact
def a_call_of_ones_own_blocks_others_and_not_oneself(live):
    store = Store(live)
    model, port = server(live, "hold")
    # The client has a call open and asks for its key: an outsider is told to wait, the client to go on.
    script = live.write("own.py", CLIENT + """
import os, socket, subprocess, threading
""" + """
connection = http.client.HTTPConnection("127.0.0.1", int(port))
connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
subprocess.run([sys.argv[4], "sync"], check=True)
print("open", flush=True)
sys.stdin.readline()
words = [sys.argv[4], "reserve", "--db", sys.argv[5], "--request", sys.argv[6], "--path", "/v1/chat/completions"]
print(subprocess.run(words).returncode, flush=True)
connection.getresponse().read()
""")
    request = live.write("body.json", json.dumps(REQUEST))
    process = live.nightclerk(live.run_arguments(
        [sys.executable, script, port, json.dumps(REQUEST), "0", NIGHTCLERK, store.path, request], ["--db", store.path]),
        stdin=subprocess.PIPE)
    equal(wait_for_line(process, "the client"), "open", "the client")
    equal(store.nightclerk("reserve", "--request", request, "--path", PATH)[0], 4, "reserve of somebody else")
    process.stdin.write(b"\n")
    process.stdin.flush()
    equal(wait_for_line(process, "its reserve"), "0", "its own reserve")
    model.stdin.write(b"\n")
    model.stdin.flush()
    live.finish(process).expect(0)
    equal(store.ask("SELECT status, owner, attempts, billed FROM calls"), "pending|reserve|1|1", "the call")
    equal(store.nightclerk("commit", store.ask("SELECT key FROM calls"))[0], 0, "commit")
    equal(store.ask(THE_SUM), "done|1|853", "the sum")


@fact
def several_nightclerks_and_the_shell_use_one_store_at_once(live):
    store = Store(live)
    _, port = server(live, "200")
    runs = []
    for number in range(3):
        body = json.dumps({**REQUEST, "seed": number})
        files = ["--ledger", live.path(f"ledger-{number}"), "--db", store.path, "--fail-on", "high"]
        runs.append(live.nightclerk(["run", *files, "--", *client(live, port, 100, body)], stdin=subprocess.DEVNULL))
    wait_until(lambda: os.path.exists(store.path), "the store")
    while any(run.poll() is None for run in runs):
        store.ask("SELECT COUNT(*) FROM sqlite_schema")
    for run in runs:
        _, err = run.communicate(timeout=HANG_SECONDS)
        check(b"locked" not in err, err.decode())
        equal(run.returncode, 0, "exit status")
    equal(store.ask("SELECT COUNT(*), SUM(attempts), SUM(billed), SUM(status = 'done') FROM calls"), "3|300|300|3", "calls")


@fact
def a_store_that_cannot_be_used_stops_nothing_and_every_lost_row_is_counted(live):
    _, port = server(live, "200")
    for name, content, says in (
            ("text.db", b"no database" * 100, "file is not a database"),
            ("directory.db", None, "it is a directory")):
        store = Store(live)
        store.path = live.path(name)
        if content is None:
            os.mkdir(store.path)
        else:
            with open(store.path, "wb") as file:
                file.write(content)
        result = live.run(client(live, port), ["--db", store.path]).expect(11)
        equal(len(result.ledger), 1, "ledger lines")
        contains(result.stderr, says, "stderr")
        contains(result.stderr, "the run goes on, its rows are counted as lost\n", "stderr")
        # at least before its answer and after it; on a slow machine what happens between has a row of its own
        lost = result.summary["store"]["lost"]
        check(lost >= 2, f"{lost} lost rows, want at least 2")
        equal(result.summary["store"]["rows"], 0, "written rows")
        contains(result.stderr, f"nightclerk: {lost + 1} rows are missing in the store {store.path}\n", "stderr, with the run's own")
        equal(result.summary["incomplete"], ["rows of the store could not be written"], "why it cannot tell")
    live.run(client(live, port), ["--db", store.path, "--allow-incomplete"]).expect(0)


@fact
def a_store_that_is_removed_in_a_run_has_lost_its_rows(live):
    store = Store(live)
    _, port = server(live, "200")
    script = '"$@" && "$0" sync && rm ' + store.path
    result = live.run(["sh", "-c", script, NIGHTCLERK, *client(live, port)], ["--db", store.path]).expect(11)
    check(result.summary["store"]["lost"] >= 2, "no row was lost with the file")
    equal(result.summary["store"]["rows"], 0, "written rows")
    contains(result.stderr, "its file was removed, renamed or replaced while it was in use; leave it where it is until the run "
                            "ends\n", "stderr")


@fact
def a_newer_store_is_left_as_it_is(live):
    store = Store(live)
    _, port = server(live, "200")
    live.run(client(live, port), ["--db", store.path]).expect(0)
    store.ask("PRAGMA user_version = 7")
    result = live.run(client(live, port), ["--db", store.path]).expect(11)
    contains(result.stderr, "was written by a newer nightclerk: its schema is 7, this one knows 1", "stderr")
    equal(store.ask("SELECT attempts FROM calls"), "1", "attempts")


@fact
def a_full_disk_costs_rows_of_the_store_and_no_line_of_the_ledger(live):
    os.mkdir(live.path("small"))
    _, port = server(live, "200")
    mount = 'mount -t tmpfs -o size=200k none "$0" && exec "$@"'
    process = live.nightclerk([], prefix=["unshare", "--mount", "sh", "-c", mount, live.path("small"), NIGHTCLERK,
                                          *live.run_arguments(client(live, port, 400), ["--db", live.path("small/calls.db"), "--fail-on", "high"])],
                              stdin=subprocess.DEVNULL)
    result = live.finish(process).expect(11)
    equal(len(result.ledger), 400, "ledger lines")
    check(result.summary["store"]["lost"] > 0, "no row was lost on a full disk")
    contains(result.stderr, "make room on the disk; rows are kept in memory and tried again, continuing\n", "stderr")
    contains(result.stderr, "missing in the store", "stderr")


# Sends another prompt each time, and notes the number once nightclerk has acknowledged it.
STORM = """
import http.client, json, subprocess, sys

port, program, acknowledged = sys.argv[1:]
connection = http.client.HTTPConnection("127.0.0.1", int(port))
with open(acknowledged, "a", buffering=1) as file:
    for number in range(1000000):
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"prompt {number}"}]})
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        connection.getresponse().read()
        if number == 0:
            print("up", flush=True)
        if number % 8 == 0 and subprocess.run([program, "sync"], stderr=subprocess.DEVNULL).returncode == 0:
            print(number, file=file)
"""


def is_whole(path):
    """Opened by another program: nothing torn, and the counts of a call are those of its attempts."""
    database = sqlite3.connect(path)
    equal(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity")
    wrong = database.execute(
        "SELECT key FROM calls WHERE attempts != (SELECT COUNT(*) FROM attempts WHERE attempts.key = calls.key AND parent IS NULL)"
        " OR billed != (SELECT SUM(billed) FROM attempts WHERE attempts.key = calls.key)").fetchall()
    equal(wrong, [], "calls that do not agree with their attempts")
    orphans = database.execute("SELECT COUNT(*) FROM attempts WHERE key NOT IN (SELECT key FROM calls)").fetchall()
    equal(orphans, [(0,)], "attempts without a call")
    database.close()


@fact
def nightclerk_may_be_killed_at_any_moment(live):
    store = Store(live)
    _, port = server(live, "200")
    randomness = random.Random(7)
    storm = live.write("storm.py", STORM)
    whole_lines = 0
    for trial in range(KILLS):
        acknowledged, ledger = live.path(f"acknowledged-{trial}"), live.path(f"ledger-{trial}")
        process = live.nightclerk(["run", "--ledger", ledger, "--db", store.path, "--",
                                   sys.executable, storm, port, NIGHTCLERK, acknowledged], stdin=subprocess.DEVNULL,
                                  preexec_fn=os.setpgrp)
        equal(wait_for_line(process, "the storm"), "up", "the storm")
        try:
            process.wait(randomness.random() * 0.2)
        except subprocess.TimeoutExpired:
            pass
        process.kill()
        process.wait()
        os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.stderr.close()
        is_whole(store.path)
        with open(ledger, "rb") as file:
            lines = file.read().split(b"\n")[:-1]
        for line in lines:
            json.loads(line)
        numbers = [int(line) for line in open(acknowledged, encoding="utf-8").read().split()]
        check(not numbers or len(lines) > numbers[-1], f"trial {trial}: {len(lines)} lines, {numbers[-1:]} acknowledged")
        whole_lines += len(lines)
    print(f"# killed {KILLS} times; {whole_lines} ledger lines, {store.ask('SELECT COUNT(*) FROM attempts')} attempts")
    status, said = store.nightclerk("sweep", "--now", "4000000000")
    equal(status, 0, "sweep")
    equal(store.ask("SELECT COUNT(*) FROM calls WHERE status = 'pending'"), "0", "pending calls after a sweep")


play()
