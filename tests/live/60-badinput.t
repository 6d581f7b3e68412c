#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Bad places for the ledger, watched programs that spoil it, signals, and nightclerk's own death."""

import fcntl
import os
import pty
import re
import signal
import subprocess
import termios

from harness import NIGHTCLERK, bpf_objects, bpf_objects_of, check, contains, equal, fact, play
from harness import wait_for_line, wait_until

POST = "curl -s -o /dev/null {url} -d a={n}"


def refuses_the_ledger(live, ledger, prefix=()):
    """A ledger that cannot be opened is found out before the command is started."""
    marker = live.path("marker")
    process = live.nightclerk(["run", "--ledger", ledger, "--", "touch", marker], prefix)
    result = live.finish(process).expect(125)
    contains(result.stderr, ledger, "stderr")
    check(not os.path.exists(marker), "the command was started")


@fact
def a_ledger_in_a_directory_that_is_not_there(live):
    refuses_the_ledger(live, live.path("no/such/ledger.jsonl"))


@fact
def a_ledger_that_is_a_symbolic_link(live):
    target = live.write("target", "")
    os.symlink(target, live.path("link.jsonl"))
    refuses_the_ledger(live, live.path("link.jsonl"))
    equal(os.path.getsize(target), 0, "what the link points at")


@fact
def a_ledger_that_is_a_directory(live):
    refuses_the_ledger(live, live.directory)


@fact
def a_ledger_that_cannot_be_written(live):
    os.mkdir(live.path("shut"))
    subprocess.run(["mount", "--version"], check=True, capture_output=True)
    shut = live.path("shut")
    script = 'mount -t tmpfs -o ro none "$1" && shift && exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", script, "sh", shut]
    refuses_the_ledger(live, os.path.join(shut, "ledger.jsonl"), prefix)


@fact
def the_invoking_user_s_rights_are_used_to_open_files(live):
    os.chmod(live.directory, 0o755)
    os.mkdir(live.path("root_only"), 0o700)
    process = live.nightclerk(["run", "--ledger", live.path("root_only/ledger.jsonl"), "--", "true"],
                              env={**os.environ, "SUDO_UID": "65534", "SUDO_GID": "65534"})
    live.finish(process).expect(125)
    equal(os.listdir(live.path("root_only")), [], "files")


@fact
def a_full_disk_is_said_and_the_gate_cannot_tell(live):
    mock = live.mock()
    full = live.path("full")
    os.mkdir(full)
    posts = live.write("posts.py", f"""
import http.client
c = http.client.HTTPConnection("127.0.0.1", {mock.port})
for i in range(300):
    c.request("POST", "/v1/charges", b"a=%d" % i)
    c.getresponse().read()
print("posted 300")
""")
    script = 'mount -t tmpfs -o size=64k,nr_inodes=16 none "$1" && shift && exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", script, "sh", full]
    process = live.nightclerk(["run", "--ledger", f"{full}/ledger.jsonl", "--", "/usr/bin/python3", posts], prefix)
    result = live.finish(process).expect(11)
    equal(result.stdout, b"posted 300\n", "the command is not disturbed")
    contains(result.stderr, "No space left", "stderr")
    contains(result.stderr, "cannot tell: an output could not be written\n", "stderr")
    contains(result.stderr, "command exited 0; exit 11\n", "stderr")
    equal(len(mock.log), 300, "requests that reached the server")


SPOIL = """
import http.client, os, sys
port, ledger, how = int(sys.argv[1]), sys.argv[2], sys.argv[3]
c = http.client.HTTPConnection("127.0.0.1", port)
def post(i):
    c.request("POST", "/v1/charges", b"a=%d" % i)
    c.getresponse().read()
def lines(): return open(ledger, "rb").read().count(b'"path":"/v1/charges"')
post(0); post(1)
while lines() < 2: pass
if how == "truncate":
    os.truncate(ledger, 0)
if how == "half":
    with open(ledger, "ab") as f: f.write(b'{"t": 1, "path": "/forged')
if how == "whole":
    with open(ledger, "ab") as f: f.write(b'{"t": 1, "path": "/forged"}\\n' * 3)
if how == "unlink":
    os.unlink(ledger)
post(2); post(3)
"""


def spoil(live, how):
    mock = live.mock()
    script = live.write("spoil.py", SPOIL)
    ledger = live.path("call_ledger.jsonl")
    result = live.run(["/usr/bin/python3", script, str(mock.port), ledger, how], replay=how == "not at all")
    equal(len(mock.log), 4, "requests that reached the server")
    text = b""
    if os.path.exists(ledger):
        with open(ledger, "rb") as file:
            text = file.read()
    return result, text


@fact
def a_ledger_truncated_by_the_watched_program_is_named(live):
    result, text = spoil(live, "truncate")
    check(b"\0" not in text, "the ledger has a hole of zero bytes")
    equal(len(result.ledger), 2, "whole lines after the truncation")
    equal(result.stderr.count("call_ledger.jsonl"), 1, "times that stderr names the ledger")
    equal(result.summary["requests"], 4, "requests in the summary")


@fact
def a_half_line_of_the_watched_program_does_not_spoil_the_next(live):
    result, text = spoil(live, "half")
    lines = text.split(b"\n")
    equal(lines[2], b'{"t": 1, "path": "/forged', "the foreign half line stands alone")
    equal(len([line for line in lines if b'"path":"/v1/charges"' in line]), 4, "our lines")
    for line in lines[:2] + lines[3:5]:
        check(line.startswith(b'{"t":') and line.endswith(b"}"), f"a line is not whole: {line!r}")
    equal(result.stderr.count("call_ledger.jsonl"), 1, "times that stderr names the ledger")


@fact
def foreign_lines_in_the_ledger_are_named_once(live):
    result, text = spoil(live, "whole")
    equal(text.count(b"/forged"), 3, "foreign lines")
    equal(len(result.ledger), 7, "lines")
    equal(result.stderr.count("call_ledger.jsonl"), 1, "times that stderr names the ledger")


@fact
def a_clean_run_does_not_name_the_ledger_as_spoiled(live):
    result, _ = spoil(live, "not at all")
    equal(result.expect(0).stderr.count("call_ledger.jsonl"), 0, "times that stderr names the ledger")


# ---- signals and death ----

# Tells its pid, posts, then waits for SIGTERM, SIGINT or the end of stdin.
PATIENT = """
import os, signal, sys, urllib.request
def stopped(number, frame):
    print("signal", number, flush=True)
    sys.exit(40 + number)
signal.signal(signal.SIGTERM, stopped)
signal.signal(signal.SIGINT, stopped)
print(os.getpid(), flush=True)
urllib.request.urlopen(urllib.request.Request(sys.argv[1], b"a=1")).read()
print("posted", flush=True)
sys.stdin.readline()
urllib.request.urlopen(urllib.request.Request(sys.argv[1], b"a=2")).read()
print("end", flush=True)
"""


def start_patient(live):
    mock = live.mock()
    script = live.write("patient.py", PATIENT)
    process = live.nightclerk(live.run_arguments(["/usr/bin/python3", script, mock.url]), stdin=subprocess.PIPE,
                              start_new_session=True)
    pid = int(wait_for_line(process, "the command"))
    equal(wait_for_line(process, "the command"), "posted", "its line")
    return mock, process, pid


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@fact
def sigterm_is_passed_to_the_command_and_the_run_ends_judged(live):
    _, process, pid = start_patient(live)
    process.send_signal(signal.SIGTERM)
    equal(wait_for_line(process, "the command"), "signal 15", "its line")
    result = live.finish(process).expect(40 + signal.SIGTERM)
    equal(result.summary["command_status"], 55, "command_status")
    equal(len(result.ledger), 1, "ledger lines")
    check(not alive(pid), "the command lives on")


@fact
def sigint_to_nightclerk_alone_is_passed_on(live):
    _, process, pid = start_patient(live)
    process.send_signal(signal.SIGINT)
    equal(wait_for_line(process, "the command"), "signal 2", "its line")
    result = live.finish(process).expect(40 + signal.SIGINT)
    equal(result.summary["command_status"], 42, "command_status")
    check(not alive(pid), "the command lives on")


@fact
def every_signal_that_would_end_it_is_passed_on(live):
    for number in (signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPWR, signal.SIGRTMIN, signal.SIGRTMAX):
        process = live.nightclerk(live.run_arguments(["sh", "-c", "echo ready; exec sleep 300"]))
        equal(wait_for_line(process, "the command"), "ready", "its line")
        process.send_signal(number)
        live.finish(process).expect(128 + number)


@fact
def an_alarm_that_who_started_it_had_set_ends_the_command(live):
    """An alarm outlives exec, but no fork: only nightclerk has it."""
    ready, writer = os.pipe()
    process = live.nightclerk(live.run_arguments(["sh", "-c", "echo; exec sleep 300"]), stdout=writer,
                              preexec_fn=lambda: signal.alarm(1))
    os.close(writer)
    live.finish(process).expect(128 + signal.SIGALRM)
    os.close(ready)


@fact
def without_a_command_it_is_for_nightclerk(live):
    for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGPWR):
        process = live.nightclerk(["watch", "--plain", "--port", "9"])
        contains(wait_for_line(process, "watch"), "TIME (UTC)", "its header")
        process.send_signal(number)
        equal(live.finish(process).expect(0).stderr, NOTHING, "stderr")


@fact
def started_by_who_ignores_its_children_it_ends_all_the_same(live):
    process = live.nightclerk(live.run_arguments(["sh", "-c", "exit 3"]),
                              preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    live.finish(process).expect(3)


# Counts its interrupts; ends once nightclerk has written a call that came after them.
COUNTING = """
import signal, sys, urllib.request
signal.signal(signal.SIGINT, lambda number, frame: print("signal", number, flush=True))
def post(body): urllib.request.urlopen(urllib.request.Request(sys.argv[1], body)).read()
post(b"a=1")
print("posted", flush=True)
sys.stdin.readline()
post(b"a=2")
while open(sys.argv[2], "rb").read().count(b"\\n") < 2: pass
"""


@fact
def a_terminal_s_interrupt_reaches_the_command_once(live):
    mock = live.mock()
    script = live.write("counting.py", COUNTING)
    master, slave = pty.openpty()
    arguments = live.run_arguments(["/usr/bin/python3", script, mock.url, live.path("call_ledger.jsonl")])
    process = live.nightclerk(arguments, stdin=slave, start_new_session=True,
                              preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(slave)
    try:
        equal(wait_for_line(process, "the command"), "posted", "its line")
        os.write(master, b"\x03")
        equal(wait_for_line(process, "the command"), "signal 2", "its line")
        os.write(master, b"\n")
        equal(live.finish(process).expect(0).stdout, b"", "further signals")
    finally:
        os.close(master)


@fact
def the_command_goes_on_when_nightclerk_is_killed(live):
    mock, process, pid = start_patient(live)
    objects = bpf_objects_of(process.pid)
    check(len(objects) >= 3, f"BPF objects of a running nightclerk: {objects}")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    check(alive(pid), "the command died with nightclerk")
    process.stdin.write(b"go on\n")
    process.stdin.flush()
    equal(wait_for_line(process, "the command"), "end", "its line")
    wait_until(lambda: not alive(pid), "the command ends")
    equal(len(mock.log), 2, "requests that reached the server")
    wait_until(lambda: not (objects & bpf_objects()), "nothing of it is left in the kernel")

    again = live.nightclerk(live.run_arguments(["true"]))
    contains(live.finish(again).expect(0).stderr, "ended unclean", "stderr of the next run")
    again = live.nightclerk(live.run_arguments(["true"]))
    check("unclean" not in live.finish(again).expect(0).stderr, "the run after that says so again")


@fact
def a_command_that_is_not_released_does_not_run_without_its_observer(live):
    """nightclerk killed before the probes are on: the command must never start."""
    marker = live.path("marker")
    for _ in range(10):
        process = subprocess.Popen([NIGHTCLERK, "run", "--ledger", live.path("l.jsonl"), "--", "sh", "-c",
                                    f"echo $PPID > {marker}"], stderr=subprocess.DEVNULL, cwd=live.directory)
        live.processes.append(process)
        process.kill()
        process.wait()
    check(not os.path.exists(marker), "the command was started")


# ---- the end of a run ----


@fact
def a_descendant_that_lives_on_is_named(live):
    daemon = "setsid sh -c 'echo $$ >pid; exec sleep 300' >/dev/null 2>&1"
    command = ["sh", "-c", daemon + " & while ! [ -s pid ]; do :; done"]
    result = live.run(command, ["--linger", "0"]).expect(0)
    with open(live.path("pid"), encoding="utf-8") as file:
        pid = int(file.read())
    try:
        equal([survivor["pid"] for survivor in result.summary["survivors"]], [pid], "survivors")
        contains(result.stderr, str(pid), "stderr")
    finally:
        os.kill(pid, signal.SIGKILL)


@fact
def one_that_lives_on_in_a_pid_namespace_is_named_as_its_watcher_sees_it(live):
    """Three namespaces: ours, that of nightclerk, and that of the process, where it is number 1."""
    script = live.write("nested.sh", """
        setsid unshare --pid --fork sleep 300 >/dev/null 2>&1 &
        until inner=$(cat "/proc/$!/task/$!/children") && [ "$inner" ] && grep -q sleep "/proc/${inner% }/comm"; do :; done
        echo $! $inner >pids
    """)
    prefix = ["unshare", "--pid", "--fork", "--mount-proc"]
    result = live.run(["sh", script], ["--linger", "0"], prefix=prefix).expect(0)
    with open(live.path("pids"), encoding="utf-8") as file:
        outer, inner = map(int, file.read().split())
    equal(sorted((survivor["pid"], survivor["comm"]) for survivor in result.summary["survivors"]),
          sorted([(outer, "unshare"), (inner, "sleep")]), "survivors")


@fact
def a_small_ring_loses_bytes_and_says_so(live):
    mock = live.mock()
    script = live.write("flood.py", f"""
import http.client, threading
def work(n):
    c = http.client.HTTPConnection("127.0.0.1", {mock.port})
    for i in range(60):
        c.request("POST", "/v1/charges", (b"%d %d " % (n, i)) * 20000)
        c.getresponse().read()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads: t.start()
for t in threads: t.join()
""")
    result = live.run(["/usr/bin/python3", script], ["--ring-size", "4096"]).expect(11)
    count = result.summary["bytes"]
    check(count["in_holes"] > 0, "no byte was lost: the test does not test")
    equal(count["accepted"], count["in_messages"] + count["in_holes"] + count["in_blind"], "accepted bytes")
    mock.stop()
    check(count["accepted"] > mock.received_bytes, "accepted bytes are less than the server received")
    check(sum(result.summary["drops"].values()) > 0, "drops")


@fact
def an_events_descriptor_works(live):
    mock = live.mock()
    reader, writer = os.pipe()
    process = live.nightclerk(["run", "--ledger", live.path("call_ledger.jsonl"), "--events", f"fd:{writer}", "--",
                               "sh", "-c", POST.format(url=mock.url, n=1)], pass_fds=[writer])
    os.close(writer)
    live.finish(process).expect(0)
    with open(reader, "rb") as file:
        kinds = re.findall(rb'"kind":"(\w+)"', file.read())
    equal(kinds, [b"start", b"request", b"response", b"summary"], "events")


@fact
def a_reader_of_events_that_leaves_does_not_end_the_run(live):
    mock = live.mock()
    reader, writer = os.pipe()
    process = live.nightclerk(["run", "--ledger", live.path("call_ledger.jsonl"), "--events", f"fd:{writer}", "--",
                               "sh", "-c", f"{POST.format(url=mock.url, n=1)}; echo done"], pass_fds=[writer])
    os.close(writer)
    os.close(reader)
    result = live.finish(process)
    equal(result.stdout, b"done\n", "the command's output")
    equal(len(result.ledger), 1, "ledger lines")


NOTHING = ("nightclerk: 0 requests (0 mutating), 0 findings (0 high, 0 medium, 0 low), "
           "0 bytes = 0 in messages + 0 in holes + 0 blind\n")


@fact
def an_empty_file_is_no_clean_run(live):
    done = subprocess.run([NIGHTCLERK, "check", live.write("empty", "")], stdout=subprocess.PIPE, timeout=60, check=False)
    equal((done.returncode, done.stdout.decode()), (11, NOTHING + "nightclerk: cannot tell: a file holds no line\n"), "check")


play()
