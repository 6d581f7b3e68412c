#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`watch` in its plain form: a line a call, a block a finding, and nothing that moves the cursor."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

from harness import HANG_SECONDS, NIGHTCLERK, check, contains, equal, fact, play, wait_for_line

HEADER = "TIME (UTC)       PID COMMAND         METHOD  ST   SENT    GOT        MS SERVER AND TARGET"
LINE = re.compile(r"^\d\d:\d\d:\d\d\.\d{3} +(\d+) (\S+) +(\S+) +(\d+|-) +(\d+) +(\d+) +(\S+) (\S+) (\S+)$")


class Watch:
    """`watch` with a scope: ready once its header is there, ended by Ctrl-C's signal."""

    def __init__(self, live, *options, **more):
        self.process = live.nightclerk(["watch", *options], **more)
        equal(wait_for_line(self.process, "watch"), HEADER, "header")

    def line(self):
        return wait_for_line(self.process, "watch")

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=HANG_SECONDS)
        equal(self.process.returncode, 0, f"status of watch\n{err.decode()}")
        return out.decode().splitlines(), err.decode()


def post(mock, body="{}", path=""):
    subprocess.run(["curl", "-s", "-o", "/dev/null", mock.url + path, "-d", body], check=True, timeout=HANG_SECONDS)


def fields(line):
    match = LINE.match(line)
    check(match, f"not a line of a call: {line!r}")
    return match.groups()


@fact
def events_on_standard_output_stand_there_alone(live):
    mock = live.mock()
    process = live.nightclerk(["watch", "--port", str(mock.port), "--events", "-"])
    contains(wait_for_line(process, "watch"), '"kind":"start"', "the first event")
    post(mock)
    post(mock)
    kinds = []
    while kinds.count("finding") < 1:
        kinds.append(json.loads(wait_for_line(process, "watch"))["kind"])
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANG_SECONDS)
    equal(process.returncode, 0, "status of watch")
    kinds += [json.loads(line)["kind"] for line in out.splitlines()]
    equal((kinds.count("request"), kinds[-1]), (2, "summary"), "events")
    contains(err.decode(), "2 requests (2 mutating), 1 finding", "summary")


@fact
def a_watched_command_fails_no_gate_and_the_summary_names_none(live):
    mock = live.mock()
    command = f"curl -s -o /dev/null {mock.url} -d a=1; curl -s -o /dev/null {mock.url} -d a=1; exit 7"
    process = live.nightclerk(["watch", "--plain", "--", "sh", "-c", command])
    _, err = process.communicate(timeout=HANG_SECONDS)
    equal(process.returncode, 0, "status of watch")
    line = err.decode().splitlines()[-1]
    equal((line.partition(", ")[0], line.rpartition("; ")[2]), ("nightclerk: 2 requests (2 mutating)", "command exited 7"), "summary")


@fact
def its_own_canary_is_no_call_of_anybody(live):
    process = live.nightclerk(["watch", "--comm", "nightclerk", "--events", "-", "--ledger", live.path("l")])
    contains(wait_for_line(process, "watch"), '"kind":"start"', "the first event")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=HANG_SECONDS)
    equal([json.loads(line)["kind"] for line in out.splitlines()], ["summary"], "events")
    equal(json.loads(out.splitlines()[-1])["bytes"]["accepted"], 0, "accepted bytes")
    equal(os.path.getsize(live.path("l")), 0, "bytes of the ledger")


@fact
def shows_a_line_a_call_for_a_port(live):
    mock = live.mock()
    watch = Watch(live, "--port", str(mock.port), "--plain")
    post(mock, '{"amount": 12}')
    line = fields(watch.line())
    equal((line[1], line[2], line[3], line[4], line[5], line[7], line[8]),
          ("curl", "POST", "200", "14", "36", f"127.0.0.1:{mock.port}", "/v1/charges"), "columns")
    rest, err = watch.stop()
    equal(rest, [], "further lines")
    contains(err, "1 request (1 mutating), 0 findings", "summary")


@fact
def shows_a_block_for_a_finding(live):
    mock = live.mock()
    watch = Watch(live, "--port", str(mock.port))
    post(mock)
    post(mock)
    rest, _ = watch.stop()
    equal(len([line for line in rest if LINE.match(line)]), 2, "lines of calls")
    blocks = [line for line in rest if line.startswith("nightclerk: ")]
    equal(len(blocks), 1, "blocks")
    contains(blocks[0], f"HIGH dup_after_success: POST /v1/charges at 127.0.0.1:{mock.port}, attempt 2 of 2", "block")


@fact
def other_ports_are_out_of_scope(live):
    mock, other = live.mock(), live.mock("--log", live.path("other.jsonl"))
    watch = Watch(live, "--port", str(mock.port))
    post(other)
    post(mock)
    equal(fields(watch.line())[7], f"127.0.0.1:{mock.port}", "server")
    equal(watch.stop()[0], [], "further lines")


KNOCKER = """
import sys, urllib.request
print("ready", flush=True)
for line in sys.stdin:
    urllib.request.urlopen(sys.argv[1], line.strip().encode()).read()
    print("posted", flush=True)
"""


def knocker(live, mock, prefix=(), **more):
    process = live.start([*prefix, "/usr/bin/python3", live.write("knocker.py", KNOCKER), mock.url],
                         stdin=subprocess.PIPE, **more)
    equal(wait_for_line(process, "knocker"), "ready", "knocker")
    return process


def knock(process, text):
    process.stdin.write(text.encode() + b"\n")
    process.stdin.flush()
    equal(wait_for_line(process, "knocker"), "posted", "knocker")


@fact
def follows_one_process(live):
    mock = live.mock()
    one, other = knocker(live, mock), knocker(live, mock)
    watch = Watch(live, "--pid", str(one.pid))
    knock(other, '{"n": 1}')
    knock(one, '{"n": 2}')
    equal(fields(watch.line())[0], str(one.pid), "pid")
    equal(watch.stop()[0], [], "further lines")


@fact
def follows_a_user(live):
    mock = live.mock()
    os.chmod(live.directory, 0o755)
    one = knocker(live, mock, ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])
    other = knocker(live, mock)
    watch = Watch(live, "--uid", "65534")
    knock(other, '{"n": 1}')
    knock(one, '{"n": 2}')
    equal(fields(watch.line())[0], str(one.pid), "pid")
    equal(watch.stop()[0], [], "further lines")


@fact
def follows_a_name(live):
    mock = live.mock()
    watch = Watch(live, "--comm", "curl")
    knock(knocker(live, mock), '{"n": 1}')
    post(mock, '{"n": 2}')
    equal(fields(watch.line())[1], "curl", "name")
    equal(watch.stop()[0], [], "further lines")


@fact
def follows_a_command(live):
    mock = live.mock()
    process = live.nightclerk(["watch", "--", "curl", "-s", "-o", "/dev/null", mock.url, "-d", "{}"])
    out, err = process.communicate(timeout=HANG_SECONDS)
    equal(process.returncode, 0, err.decode())
    equal(fields(out.decode().splitlines()[1])[1], "curl", "name")


@fact
def without_a_scope_it_asks_for_one(live):
    for argv, words in ((["watch"], "watch what?"), (["watch", "--all", "yes"], "say --all=host-wide"),
                        (["watch", "--pid", "x"], "takes a process id"), (["watch", "--port", "70000"], "takes a port"),
                        (["watch", "--pid", "1", "--uid", "1"], "a second scope"),
                        (["watch", "--pid", "1", "--", "true"], "a scope or a command, not both")):
        done = subprocess.run([NIGHTCLERK, *argv], stderr=subprocess.PIPE, timeout=60, check=False)
        equal(done.returncode, 2, f"status of {argv}")
        contains(done.stderr.decode(), words, f"stderr of {argv}")


@fact
def every_one_of_a_thousand_calls_has_its_line(live):
    mock = live.mock()
    script = f"""
import http.client
client = http.client.HTTPConnection("127.0.0.1", {mock.port})
for n in range(1000):
    client.request("POST", "/v1/charges", '{{"n": %d}}' % n)
    client.getresponse().read()
"""
    watch = Watch(live, "--port", str(mock.port))
    subprocess.run(["/usr/bin/python3", "-c", script], check=True, timeout=HANG_SECONDS)
    rest, err = watch.stop()
    equal(len([line for line in rest if LINE.match(line)]), 1000, "lines")
    contains(err, "1000 requests (1000 mutating), 0 findings", "summary")


@fact
def what_a_client_sends_cannot_move_the_cursor(live):
    mock = live.mock()
    watch = Watch(live, "--port", str(mock.port))
    script = f"""
import socket
s = socket.create_connection(("127.0.0.1", {mock.port}))
s.sendall(b"GET /\\x1b[2J\\xff\\xc2\\x9b HTTP/1.1\\r\\nHost: \\x1b]0;x\\x07\\r\\nConnection: close\\r\\n\\r\\n")
while s.recv(4096): pass
"""
    subprocess.run(["/usr/bin/python3", "-c", script], check=True, timeout=HANG_SECONDS)
    rest, _ = watch.stop()
    text = "\n".join(rest)
    check("\x1b" not in text and "\x9b" not in text and "\x07" not in text, f"a control byte got through: {text!r}")


def on_a_terminal(live, mock, columns, environment):
    """What `watch` prints on a terminal of that width while one finding arises."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = live.start([NIGHTCLERK, "watch", "--plain", "--port", str(mock.port)], stdout=slave, stderr=subprocess.DEVNULL,
                         env=environment)
    os.close(slave)
    text = b""

    def read_until(wanted):
        nonlocal text
        while wanted not in text:
            ready, _, _ = select.select([master], [], [], HANG_SECONDS)
            check(ready, f"never came: {wanted!r}\n{text!r}")
            text += os.read(master, 65536)

    read_until(b"TIME (UTC)")
    post(mock)
    post(mock)
    read_until(b"dup_after_success")
    process.send_signal(signal.SIGINT)
    process.wait(timeout=HANG_SECONDS)
    while True:
        try:
            more = os.read(master, 65536)
        except OSError:
            break
        if not more:
            break
        text += more
    os.close(master)
    return text.decode().replace("\r\n", "\n")


@fact
def on_a_terminal_it_has_colour_and_keeps_the_width(live):
    mock = live.mock()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    text = on_a_terminal(live, mock, 60, environment)
    check("\x1b[" in text, "no colour on a terminal")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    check("\x1b" not in plain, "an escape that is no colour")
    check(max(len(line) for line in plain.splitlines()) <= 60, f"a line is wider than the terminal\n{plain}")


@fact
def on_a_narrow_terminal_the_target_has_its_room(live):
    mock = live.mock()
    lines = on_a_terminal(live, mock, 80, dict(os.environ, NO_COLOR="1")).splitlines()
    equal(lines[0], "TIME (UTC)   METHOD  ST        MS SERVER AND TARGET", "header")
    match = re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} POST   200 +\d+\.\d (\S+) (\S+)", lines[1])
    check(match, f"not a line of a call: {lines[1]!r}")
    equal(match.groups(), (f"127.0.0.1:{mock.port}", "/v1/charges"), "server and target")


@fact
def a_block_that_comes_before_the_answer_says_that_its_line_follows(live):
    mock = live.mock("--delay-ms", "0,3000")
    watch = Watch(live, "--port", str(mock.port))
    post(mock)
    post(mock)
    rest, _ = watch.stop()
    later = [line for line in rest if line.startswith("  attempt 2 ")]
    equal([line.rpartition("no key  ")[2] for line in later], ["no answer yet: its line follows"], "attempt 2")
    check(LINE.match(rest[-1]), f"its line does not follow: {rest[-1]!r}")


@fact
def no_color_is_honoured(live):
    text = on_a_terminal(live, live.mock(), 100, dict(os.environ, NO_COLOR="1"))
    check("\x1b" not in text, "colour in spite of NO_COLOR")


play()
