# SPDX-License-Identifier: BSD-2-Clause
"""
What every live test uses: a network namespace of its own, processes that end
with the test, `nightclerk run` with its files read back, TAP for prove.

A test file holds functions marked @fact; each is one line of TAP, named after
the function, and gets a Live. play() runs them all. Nothing here sleeps: tests
wait for lines, for bytes and for processes to end; timeouts only turn a hang
into a failure.
"""

import decimal
import hashlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("NIGHTCLERK_BUILD", os.path.join(ROOT, "build"))
NIGHTCLERK = os.path.join(BUILD, "nightclerk")
# One line for each nightclerk that a live test started: 90-nothing-left.t reads it.
STARTED = os.path.join(BUILD, "tests", "live", "started.jsonl")
HANG_SECONDS = int(os.environ.get("NIGHTCLERK_HANG_SECONDS", "120"))
# An emulated kernel: what must be seen within a second of the clock may not be.
SLOW = "NIGHTCLERK_SLOW" in os.environ

facts = []


def fact(function):
    facts.append(function)
    return function


class Failure(Exception):
    pass


class Skip(Exception):
    """What the test needs is not there; the text says why."""


def equal(got, want, what="value"):
    if got != want or type(got) is not type(want):
        raise Failure(f"{what}\n  got:  {got!r}\n  want: {want!r}")


def check(condition, what):
    if not condition:
        raise Failure(what)


def contains(text, part, what="text"):
    if part not in text:
        raise Failure(f"{what} has no {part!r}\n  {text!r}")


# ---- the namespace ----


def own_namespace():
    return str(os.stat("/proc/self/ns/net").st_ino)


def inside_namespace():
    return os.environ.get("NIGHTCLERK_LIVE_OUTSIDE", own_namespace()) != own_namespace()


def enter_namespace():
    """Runs this script again inside a new network namespace; it ends with its last process."""
    if inside_namespace():
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    if os.geteuid() != 0:
        print("1..0 # SKIP live tests need root")
        sys.exit(0)
    if not os.access(NIGHTCLERK, os.X_OK):
        print(f"Bail out! {NIGHTCLERK} is not built: run make")
        sys.exit(1)
    os.environ["NIGHTCLERK_LIVE_OUTSIDE"] = own_namespace()
    os.execvp("unshare", ["unshare", "--net", "--", sys.executable, *sys.argv])


# ---- what a run left behind ----


def read_lines(path):
    """The JSON objects of a file, one a line; every line must be whole."""
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        text = file.read()
    check(text == b"" or text.endswith(b"\n"), f"{path} does not end with a newline")
    return [json.loads(line, parse_float=decimal.Decimal) for line in text.splitlines()]


class Result:
    def __init__(self, status, stdout, stderr, ledger_path, events_path):
        self.status = status
        self.stdout = stdout
        self.stderr = stderr.decode(errors="replace")
        self.ledger_path = ledger_path
        self.events_path = events_path

    @property
    def ledger(self):
        return read_lines(self.ledger_path)

    @property
    def events(self):
        return read_lines(self.events_path)

    def of_kind(self, kind):
        return [event for event in self.events if event["kind"] == kind]

    @property
    def summary(self):
        summaries = self.of_kind("summary")
        equal(len(summaries), 1, "summary events")
        check(self.events[-1]["kind"] == "summary", "the summary is not the last event")
        return summaries[0]

    def findings(self, at_least="low"):
        """(finding, severity, event) as they stand at the end: upgrades applied, withdrawn ones left out."""
        order = ["info", "low", "medium", "high"]
        standing = {}
        for event in self.events:
            if event["kind"] == "finding":
                # One pair stands for each attempt; findings of one call alone have no earlier.
                key = event["of"], None if event["earlier"] else event["finding"]
                standing[key] = (event["finding"], event["severity"], event)
            elif event["kind"] == "upgrade":
                name, _, severity = event["to"].partition(" ")
                if name == "none":
                    del standing[event["of"], None]
                else:
                    standing[event["of"], None] = (name, severity or None, event)
        return [
            entry
            for entry in standing.values()
            if entry[1] is None or order.index(entry[1]) >= order.index(at_least)
        ]

    def expect(self, status):
        if self.status != status:
            raise Failure(f"exit status {self.status}, want {status}\n--- stderr\n{self.stderr}")
        return self


# ---- processes ----


def wait_for_line(process, what):
    """The next line of the process's stdout."""
    ready, _, _ = select.select([process.stdout], [], [], HANG_SECONDS)
    check(ready, f"{what}: no line came")
    line = process.stdout.readline()
    check(line, f"{what}: ended without a line")
    return line.decode().rstrip("\n")


def wait_until(condition, what):
    """Polls a condition that has no descriptor to wait on (a file's content, /proc)."""
    deadline = time.monotonic() + HANG_SECONDS
    while not condition():
        check(time.monotonic() < deadline, f"never came true: {what}")
        select.select([], [], [], 0.01)


class Mock:
    """charge-mock, outside the scope of any run."""

    def __init__(self, live, *options):
        self.log_path = live.path("charge_mock.jsonl")
        self.process = live.start([os.path.join(BUILD, "charge-mock"), "--log", self.log_path, *options])
        line = wait_for_line(self.process, "charge-mock")
        self.port = int(line.rpartition(":")[2])
        self.url = f"http://127.0.0.1:{self.port}/v1/charges"
        self.received_bytes = None

    @property
    def log(self):
        return read_lines(self.log_path)

    def stop(self):
        """Ends it and learns how many bytes it received."""
        self.process.terminate()
        out, _ = self.process.communicate(timeout=HANG_SECONDS)
        equal(self.process.returncode, 0, "charge-mock's exit status")
        self.received_bytes = int(out.decode().rsplit(None, 1)[1])


class Live:
    def __init__(self, name):
        self.directory = tempfile.mkdtemp(prefix=f"nightclerk-{name[:20]}-")
        self.processes = []

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def start(self, argv, **more):
        # Unbuffered: wait_for_line() must not leave a line in a buffer that select() cannot see.
        process = subprocess.Popen(argv, bufsize=0, cwd=self.directory, **{"stdout": subprocess.PIPE, **more})
        self.processes.append(process)
        return process

    def mock(self, *options):
        return Mock(self, *options)

    def nightclerk(self, argv, prefix=(), **more):
        """Starts nightclerk itself; the pid is noted for 90-nothing-left.t."""
        process = self.start([*prefix, NIGHTCLERK, *argv], stderr=subprocess.PIPE, **more)
        with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
            start = file.read().rpartition(")")[2].split()[19]
        with open(STARTED, "a", encoding="utf-8") as file:
            file.write(json.dumps({"pid": process.pid, "start": start}) + "\n")
        return process

    def run_arguments(self, command, options=(), ledger="call_ledger.jsonl"):
        files = ["--ledger", self.path(ledger), "--events", self.path("events.jsonl")]
        return ["run", *files, *options, "--", *command]

    def finish(self, process, given=None, ledger="call_ledger.jsonl"):
        out, err = process.communicate(given, timeout=HANG_SECONDS)
        return Result(process.returncode, out, err, self.path(ledger), self.path("events.jsonl"))

    def run(self, command, options=(), given=b"", prefix=(), replay=True, **more):
        """Runs, and judges the recording of it again: both must say the same."""
        for name in ("call_ledger.jsonl", "events.jsonl", "recording"):
            if os.path.isfile(self.path(name)):
                os.unlink(self.path(name))
        if replay:
            options = [*options, "--record", self.path("recording")]
        process = self.nightclerk(self.run_arguments(command, options), prefix, stdin=subprocess.PIPE, **more)
        result = self.finish(process, given)
        if replay and result.status not in (125, 126, 127):
            self.replay(result)
        return result

    def replay(self, result):
        """`replay` gives the same ledger, events, alerts and verdict, byte for byte, and without privileges."""
        again = [self.path("replayed-ledger.jsonl"), self.path("replayed-events.jsonl")]
        for path in again:
            if os.path.exists(path):
                os.unlink(path)
        done = subprocess.run(
            [NIGHTCLERK, "replay", self.path("recording"), "--ledger", again[0], "--events", again[1]],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_SECONDS, check=False)
        for path, first in zip(again, (result.ledger_path, result.events_path)):
            with open(path, "rb") as file, open(first, "rb") as other:
                equal(file.read(), other.read(), f"replayed {os.path.basename(first)}")
        text = done.stderr.decode(errors="replace")
        check(result.stderr.endswith(text), f"replay says something else\n--- run\n{result.stderr}\n--- replay\n{text}")
        equal(done.returncode, result.status if result.status in (10, 11) else 0, "exit status of replay")
        os.unlink(again[0])
        if not SLOW:
            self.replay_in_pieces(result, again[0], done.returncode)
        result.stderr = "".join(
            line for line in result.stderr.splitlines(keepends=True) if "will hold request and response bodies" not in line)

    def replay_in_pieces(self, result, ledger, status):
        cut = subprocess.run(
            [NIGHTCLERK, "replay", self.path("recording"), "--ledger", ledger, "--quiet", "--cut", "7"],
            stderr=subprocess.PIPE, timeout=HANG_SECONDS, check=False)
        with open(ledger, "rb") as file, open(result.ledger_path, "rb") as other:
            equal(file.read(), other.read(), "the ledger replayed in pieces")
        equal(cut.returncode, status, "exit status of a replay in pieces")

    def done(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        shutil.rmtree(self.directory, ignore_errors=True)


# ---- what the kernel holds ----


def bpf_objects_of(pid):
    """(kind, id) of the programs, maps and links that a process has open."""
    objects = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="utf-8") as file:
                objects.update(re.findall(r"^(prog|map|link)_id:\s*(\d+)$", file.read(), re.M))
        except FileNotFoundError: # closed meanwhile
            continue
    return objects


def list_bpf(kind):
    """bpftool fails where an object of anybody's goes while it lists them: then once more."""
    for _ in range(100):
        listed = subprocess.run(["bpftool", kind, "list"], capture_output=True, check=False)
        if listed.returncode == 0:
            return listed.stdout.decode()
    raise AssertionError(f"bpftool {kind} list: {listed.stderr.decode()}")


def bpf_objects():
    """(kind, id) of every program, map and link in the kernel."""
    objects = set()
    for kind in ("prog", "map", "link"):
        text = list_bpf(kind)
        objects.update((kind, number) for number in re.findall(r"^(\d+):", text, re.M))
    return objects


# ---- our own canonical JSON, to check the ledger's hashes ----


def canonical_number(text):
    """The exact value of a JSON number in the layout of ECMAScript."""
    sign, digits, exponent = decimal.Decimal(text).as_tuple()
    digits = "".join(map(str, digits)).lstrip("0")
    if not digits:
        return "0"
    stripped = digits.rstrip("0")
    point = len(digits) + exponent
    digits, count = stripped, len(stripped)
    if count <= point <= 21:
        out = digits + "0" * (point - count)
    elif 0 < point <= 21:
        out = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        out = "0." + "0" * -point + digits
    else:
        out = digits[0] + ("." + digits[1:] if count > 1 else "") + f"e{point - 1:+d}"
    return ("-" if sign else "") + out


class Number(str):
    """A number as it was spelled."""


def canonical(value):
    if isinstance(value, Number):
        return canonical_number(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(key)}:{canonical(value[key])}" for key in keys) + "}"
    return {True: "true", False: "false", None: "null"}[value]


def canonical_sha(body):
    value = json.loads(body, parse_int=Number, parse_float=Number)
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def sha(body):
    return hashlib.sha256(body).hexdigest()


# ---- TAP ----


def one(function):
    """(why it failed, why it was skipped), both None when it is so."""
    live = Live(function.__name__)
    try:
        function(live)
        return None, None
    except Skip as skip:
        return None, str(skip)
    except Failure as failure:
        return str(failure), None
    except Exception:  # pylint: disable=broad-except
        return traceback.format_exc(), None
    finally:
        live.done()


def play():
    enter_namespace()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.makedirs(os.path.dirname(STARTED), exist_ok=True)
    only = sys.argv[1:]
    chosen = [f for f in facts if not only or f.__name__ in only]
    print(f"1..{len(chosen)}", flush=True)
    failed = 0
    for number, function in enumerate(chosen, 1):
        trouble, skipped = one(function)
        failed += trouble is not None
        name = function.__name__.replace("_", " ") + (f" # SKIP {skipped}" if skipped else "")
        print(f"{'not ok' if trouble else 'ok'} {number} - {name}", flush=True)
        if trouble:
            print("\n".join("# " + line for line in trouble.splitlines()), flush=True)
    sys.exit(1 if failed else 0)
