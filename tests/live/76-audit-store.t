#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`nightclerk audit --db` in a network namespace of its own: an account book for each tenant, what is in it after
deaths, and what becomes of calls whose store takes nothing."""

import os
import pwd
import signal
import subprocess
import sys

from answering import MODEL
from auditing import Audit, is_alive, status_of
from harness import HANG_SECONDS, NIGHTCLERK, check, contains, equal, fact, play, wait_for_line, wait_until

ALL = ("--netns-only", "--split", "none")
THE_SUM = "SELECT status, COUNT(*), SUM(prompt_tokens+output_tokens) FROM calls GROUP BY status"
KILLS = int(os.environ.get("NIGHTCLERK_KILLS", "5"))

# Prints its port. What the prompt says is how it is answered: "504" twice and then well, "hold" only after a line on stdin.
SERVER = MODEL + """
seen = {}

class Handler(Model):
    def do_POST(self):
        prompt = json.loads(self.take_body())["messages"][0]["content"]
        seen[prompt] = seen.get(prompt, 0) + 1
        if prompt == "hold":
            print(prompt, flush=True)
            sys.stdin.readline()
        self.answer_model(not prompt.startswith("504") or seen[prompt] >= 3)

serve(Handler)
"""

# The prompts of argv, one after the other, over one connection; "PREFIX*" = without end, a line for each answer.
CLIENT = """
import http.client, itertools, json, sys

connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
for prompt in sys.argv[2:]:
    endless = prompt.endswith("*")
    for i in itertools.count() if endless else [0]:
        body = json.dumps({"model": "demo-large", "messages": [{"role": "user", "content": f"{prompt}{i}" if endless else prompt}]})
        connection.request("POST", "/v1/chat/completions", body,
                           {"Content-Type": "application/json", "Authorization": "Bearer planted-secret"})
        connection.getresponse().read()
        if endless:
            print(i, flush=True)
"""


class Stores:
    """A directory that audit makes, below one of ours, and the model server."""

    def __init__(self, live):
        self.live = live
        self.directory = live.path("stores")
        self.server = live.start([sys.executable, live.write("server.py", SERVER)], stdin=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)
        self.port = wait_for_line(self.server, "the model server")
        self.client = live.write("client.py", CLIENT)
        os.chmod(self.client, 0o644)

    def path(self, tenant):
        return os.path.join(self.directory, tenant + ".db")

    def audit(self, *options, **more):
        return Audit(self.live, *ALL, "--db", self.directory, *options, **more)

    def ask_model(self, *prompts):
        with open(self.client, encoding="utf-8") as file:
            program = file.read()
        subprocess.run([sys.executable, "-c", program, self.port, *prompts], timeout=HANG_SECONDS, check=True, cwd="/")

    def ask(self, question, tenant="all"):
        done = subprocess.run(["sqlite3", self.path(tenant), question], capture_output=True, timeout=HANG_SECONDS, check=False)
        equal(done.stderr, b"", "what the shell complains of")
        return done.stdout.decode().strip()

    def wait_for(self, question, answer, tenant="all"):
        def look():
            done = subprocess.run(["sqlite3", self.path(tenant), question], capture_output=True, timeout=HANG_SECONDS, check=False)
            return done.stdout.decode().strip() == answer
        wait_until(lambda: os.path.exists(self.path(tenant)) and look(), f"{answer} in the store")


@fact
def two_gateway_errors_and_an_answer_are_one_call(live):
    stores = Stores(live)
    audit = stores.audit()
    collector = audit.collector
    equal(status_of(collector)["Seccomp"], "2", "Seccomp")
    equal(os.readlink(f"/proc/{collector}/root"), stores.directory, "the root of the collector")
    stores.ask_model("504", "504", "504")
    stores.wait_for(THE_SUM, "done|1|853")
    equal(stores.ask("SELECT attempts, billed, wasted_tokens, model FROM calls"), "3|1|0|demo-large", "the call")
    status, said = audit.stop()
    equal(status, 0, f"exit status: {said}")
    summary = audit.lines("all", "events.jsonl")[-1]
    equal((summary["store"]["lost"], summary["incomplete"]), (0, []), "what the summary says of the store")
    check(summary["store"]["rows"] > 0, "no row")
    equal(stores.ask("SELECT COUNT(*), COUNT(ended_at) FROM runs"), "1|1", "runs, and those that ended")
    done = subprocess.run([NIGHTCLERK, "report", "--db", stores.path("all"), "--assert", "billed<=1"], capture_output=True,
                          timeout=HANG_SECONDS, check=False)
    equal((done.returncode, done.stderr), (0, b""), "report as root")


@fact
def the_stores_belong_to_the_collectors_account_and_hold_no_secret(live):
    stores = Stores(live)
    audit = stores.audit()
    uid = int(status_of(audit.collector)["Uid"].split()[0])
    stores.ask_model("Grade bolt M8.")
    stores.wait_for(THE_SUM, "done|1|853")
    equal(audit.stop()[0], 0, "exit status")
    there = os.stat(stores.directory)
    equal((there.st_uid, there.st_mode & 0o777), (uid, 0o700), "owner and mode of the directory")
    names = sorted(os.listdir(stores.directory))
    equal(names, [".salt", "all.db", "all.db-shm", "all.db-wal"], "files")
    for name in names:
        path = os.path.join(stores.directory, name)
        there = os.stat(path)
        equal((there.st_uid, there.st_mode & 0o777), (uid, 0o600), name)
        with open(path, "rb") as file:
            text = file.read()
        check(b"planted-secret" not in text and b"Grade bolt" not in text and b"8.8" not in text, f"a secret in {name}")


@fact
def another_start_has_the_same_principals_and_knows_the_calls_of_the_last_one(live):
    stores = Stores(live)
    principals = []
    for number in (1, 2):
        audit = Audit(live, "--netns-only", "--split", "cgroup", "--db", stores.directory)
        stores.ask_model("Grade bolt M8.")

        def tenant():
            return next(name for name in os.listdir(audit.directory) if not name.startswith("."))
        wait_until(lambda: [name for name in os.listdir(audit.directory) if not name.startswith(".")], "a tenant")
        principals.append(audit.wait_for_lines(tenant(), number)[-1]["principal"])
        equal(audit.stop()[0], 0, "exit status")
    check(principals[0] and principals[0] == principals[1], f"principals {principals}")
    equal(stores.ask(THE_SUM, tenant()), "done|1|853", "the sum")
    equal(stores.ask("SELECT attempts, billed, wasted_tokens FROM calls", tenant()), "2|2|853", "the call")
    equal([(e["finding"], e["cross_process"]) for e in audit.lines(tenant(), "events.jsonl") if e["kind"] == "finding"],
          [("llm_repeat", True)], "findings")


@fact
def a_file_is_opened_at_the_first_model_call(live):
    stores = Stores(live)
    audit = stores.audit()
    subprocess.run(["curl", "-sS", "-o", "/dev/null", "-d", "1=1", live.mock().url], timeout=HANG_SECONDS, check=True)
    audit.wait_for_lines("all", 1)
    equal(audit.stop()[0], 0, "exit status")
    equal(os.listdir(stores.directory), [".salt"], "files")


@fact
def users_have_stores_of_their_own(live):
    stores = Stores(live)
    audit = Audit(live, "--netns-only", "--split", "uid", "--db", stores.directory)
    stores.ask_model("a")
    with open(stores.client, encoding="utf-8") as file:
        subprocess.run([sys.executable, "-c", file.read(), stores.port, "b", "c"], timeout=HANG_SECONDS, check=True,
                       user=65534, group=65534, extra_groups=[], cwd="/")
    stores.wait_for(THE_SUM, "done|1|853", "uid-0")
    stores.wait_for(THE_SUM, "done|2|1706", "uid-65534")
    equal(audit.stop()[0], 0, "exit status")


@fact
def a_collector_that_is_killed_under_load_leaves_a_sound_file(live):
    stores = Stores(live)
    audit = stores.audit()
    client = live.start([sys.executable, stores.client, stores.port, "load*"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rows = 0
    for _ in range(KILLS):
        wait_until(lambda: os.path.exists(stores.path("all")) and
                   int(stores.ask("SELECT COUNT(*) FROM calls WHERE status = 'done'")) > rows + 20, "twenty rows more")
        collector = audit.collector
        os.kill(collector, signal.SIGKILL)
        wait_until(lambda: not is_alive(collector), "the end of the collector")
        equal(stores.ask("PRAGMA integrity_check"), "ok", "the file")
        after = int(stores.ask("SELECT COUNT(*) FROM calls WHERE status = 'done'"))
        check(after > rows, f"rows that were there are gone: {rows}, {after}")
        rows = after
        check(audit.collector != collector, "no other collector")
    client.kill()
    client.wait()
    status, said = audit.stop()
    equal(status, 0, f"exit status: {said}")
    equal(stores.ask("PRAGMA integrity_check"), "ok", "the file at the end")
    check(int(stores.ask("SELECT COUNT(*) FROM calls WHERE status = 'done'")) >= rows, "rows are gone")
    equal(stores.ask("SELECT COUNT(*) - COUNT(ended_at) FROM runs"), str(KILLS), "runs without an end")
    equal(stores.ask("SELECT COUNT(*) FROM calls WHERE status = 'done' AND prompt_tokens + output_tokens <> 853"), "0",
          "calls with other tokens")


def metric(live, name):
    try:
        with open(live.path("n.prom"), encoding="utf-8") as file:
            return [line.split()[1] for line in file if line.startswith(f'nightclerk_{name}{{tenant="all"}}')][0]
    except (FileNotFoundError, IndexError):
        return None


@fact
def a_store_that_is_none_is_said_once_and_the_ledger_goes_on(live):
    for text, reason in (("no store at all, and long enough to be looked at: " * 20, "it is no store or is damaged"),
                         ("PRAGMA user_version = 99; PRAGMA application_id = 1313033291; CREATE TABLE t(x);",
                          "was written by a newer nightclerk")):
        stores = Stores(live)
        if not os.path.exists(stores.directory):
            os.mkdir(stores.directory, 0o700)
        for name in os.listdir(stores.directory):
            os.unlink(os.path.join(stores.directory, name))
        if text.startswith("PRAGMA"):
            subprocess.run(["sqlite3", stores.path("all"), text], timeout=HANG_SECONDS, check=True)
        else:
            with open(stores.path("all"), "w", encoding="utf-8") as file:
                file.write(text)
        account = account_of(live)
        for path in (stores.directory, stores.path("all")):
            os.chown(path, account.pw_uid, account.pw_gid)
        audit = stores.audit("--metrics", live.path("n.prom"), directory=f"audit-{len(text)}")
        stores.ask_model("a", "b", "c")
        audit.wait_for_lines("all", 3)
        status, said = audit.stop()
        equal(status, 0, "exit status")
        contains(said, reason, "stderr")
        equal(said.count("its rows are lost, and counted, continuing"), 1, f"how often it is said: {said}")
        check(int(metric(live, "store_rows_lost_total")) >= 3, "rows that are lost")
        summary = audit.lines("all", "events.jsonl")[-1]
        check(summary["store"]["lost"] >= 3 and summary["incomplete"], "the summary does not say it")


def account_of(_):
    """Whose rights audit leaves to its collector."""
    for name in ("nightclerk", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("neither nightclerk nor nobody")


@fact
def a_full_disk_costs_rows_of_the_store_and_no_line_of_the_ledger(live):
    stores = Stores(live)
    small = live.path("small")
    os.mkdir(small)
    stores.directory = os.path.join(small, "stores")
    mount = 'mount -t tmpfs -o size=200k none "$0" && exec "$@"'
    audit = stores.audit(prefix=("unshare", "--mount", "sh", "-c", mount, small))
    stores.ask_model(*(f"prompt {i}" for i in range(400)))
    audit.wait_for_lines("all", 400)
    status, said = audit.stop()
    equal(status, 0, f"exit status: {said}")
    equal(len(audit.lines("all")), 400, "ledger lines")
    contains(said, "make room on the disk; its rows are kept in memory and tried again, continuing\n", "stderr")
    contains(said, " missing in the stores\n", "stderr")
    check(audit.lines("all", "events.jsonl")[-1]["store"]["lost"] > 0, "no row was lost on a full disk")


@fact
def sighup_opens_the_file_again_that_was_set_aside(live):
    stores = Stores(live)
    audit = stores.audit()
    stores.ask_model("a")
    stores.wait_for(THE_SUM, "done|1|853")
    audit.process.send_signal(signal.SIGHUP)
    audit.wait_for("RELOADING=1")
    audit.wait_for("READY=1")
    stores.ask_model("b")
    stores.wait_for(THE_SUM, "done|2|1706")
    os.rename(stores.path("all"), stores.path("old"))
    stores.ask_model("c")
    stores.wait_for(THE_SUM, "done|1|853")
    equal(audit.stop()[0], 0, "exit status")
    equal(stores.ask(THE_SUM, "old"), "done|2|1706", "what was set aside")
    equal(stores.ask("PRAGMA integrity_check"), "ok", "the new one")


def refused(live, stores):
    done = subprocess.run([NIGHTCLERK, "audit", *ALL, "--directory", live.path("audit"), "--db", stores], capture_output=True,
                          timeout=HANG_SECONDS, check=False)
    equal(done.returncode, 1, "exit status")
    return done.stderr.decode()


@fact
def a_directory_that_others_made_is_refused(live):
    os.mkdir(live.path("real"))
    os.symlink(live.path("real"), live.path("link"))
    contains(refused(live, live.path("link")), "cannot use ", "a symbolic link")
    contains(refused(live, live.path("real")), "it belongs to somebody else than the collector's account", "root's")
    contains(refused(live, live.path("none/there")), "No such file or directory", "without a parent")
    os.mkdir(live.path("open"))
    os.chmod(live.path("open"), 0o777)
    contains(refused(live, live.path("open/stores")), "others may write to the directory it is in", "a parent that is open")


@fact
def a_second_one_on_the_same_stores_is_refused(live):
    stores = Stores(live)
    audit = stores.audit()
    done = subprocess.run([NIGHTCLERK, "audit", *ALL, "--directory", live.path("other"), "--db", stores.directory],
                          capture_output=True, timeout=HANG_SECONDS, check=False)
    equal(done.stderr.decode(),
          f"nightclerk: another audit has its stores in {stores.directory}: stop it, or give another --db\n", "stderr")
    equal(audit.stop()[0], 0, "exit status of the first")


play()
