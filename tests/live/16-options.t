#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The options of `run`, `doctor`, and recordings that cannot be read."""

import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as xml

from harness import NIGHTCLERK, check, contains, equal, fact, play

NOBODY = 65534


def call(*argv, **more):
    return subprocess.run([NIGHTCLERK, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False,
                          **more)


def twice(mock):
    return ["sh", "-c", f"for i in 1 2; do curl -s -o /dev/null {mock.url} -d '{{\"amount\": 1}}'; done"]


@fact
def says_its_version(live):
    done = call("--version")
    equal((done.returncode, done.stdout), (0, b"nightclerk 0.1.0\n"), "--version")


@fact
def alone_it_shows_its_commands_in_15_lines(live):
    done = call()
    equal(done.returncode, 0, "status")
    lines = done.stdout.decode().splitlines()
    check(len(lines) <= 15, f"{len(lines)} lines")
    equal(lines[-3].split(), "and once key reserve commit get release sweep check-policy".split(), "the others")
    for name in ("run", "watch", "replay", "report", "doctor", "mark", "sync"):
        equal(len([line for line in lines if line.split()[:1] == [name]]), 1, f"lines that start with {name}")


@fact
def an_unknown_command_is_2(live):
    done = call("listen")
    equal(done.returncode, 2, "status")
    contains(done.stderr.decode(), "no command called listen", "stderr")


@fact
def quiet_says_nothing(live):
    mock = live.mock()
    done = call("run", "--quiet", "--ledger", live.path("l"), "--", *twice(mock))
    equal((done.returncode, done.stderr), (10, b""), "status and stderr")


@fact
def the_command_runs_as_another_user(live):
    os.chmod(live.directory, 0o777)
    ledger = live.path("theirs.jsonl")
    mock = live.mock()
    script = f"id -u; id -g; echo $HOME $USER; curl -s -o /dev/null {mock.url} -d x"
    for user in ("nobody", str(NOBODY)):
        done = call("run", "--user", user, "--ledger", ledger, "--", "sh", "-c", script)
        equal(done.returncode, 0, done.stderr.decode())
        equal(done.stdout.decode().split(), [str(NOBODY), str(NOBODY), "/nonexistent", "nobody"], "who it was")
    equal((os.stat(ledger).st_uid, os.stat(ledger).st_mode & 0o777), (NOBODY, 0o600), "owner and mode of the ledger")


@fact
def a_user_that_is_not_there_is_125(live):
    for user in ("no-such-user", "4294967294", "4294967295", "65534x"):
        done = call("run", "--user", user, "--ledger", live.path("l"), "--", "true")
        equal((done.returncode, done.stderr.decode()), (125, f"nightclerk: no user called {user}: see getent passwd\n"), user)


@fact
def through_sudo_the_files_are_the_caller_s(live):
    os.chmod(live.directory, 0o777)
    environment = dict(os.environ, SUDO_UID=str(NOBODY), SUDO_GID=str(NOBODY))
    ledger, recording, events = live.path("l"), live.path("rec"), live.path("e")
    done = call("run", "--ledger", ledger, "--record", recording, "--events", events, "--", "true", env=environment)
    equal(done.returncode, 0, done.stderr.decode())
    for path in (ledger, recording, events):
        equal((os.stat(path).st_uid, os.stat(path).st_mode & 0o777), (NOBODY, 0o600), f"owner and mode of {path}")


@fact
def through_sudo_the_caller_s_rights_are_enough_and_no_more(live):
    os.chmod(live.directory, 0o755)
    environment = dict(os.environ, SUDO_UID=str(NOBODY), SUDO_GID=str(NOBODY))
    done = call("run", "--ledger", live.path("l"), "--", "touch", live.path("started"), env=environment)
    equal(done.returncode, 125, "status")
    contains(done.stderr.decode(), f"cannot open {live.path('l')}: Permission denied", "stderr")
    check(not os.path.exists(live.path("started")), "the command was started")


@fact
def junit_has_a_case_for_each_finding_and_reason(live):
    mock = live.mock()
    report = live.path("report.xml")
    live.run(twice(mock), ["--junit", report]).expect(10)
    root = xml.parse(report).getroot()
    cases = root.findall(".//testcase")
    equal([(case.get("classname"), case.find("failure") is not None) for case in cases],
          [("nightclerk.dup_after_success", True)], "cases")
    equal(root.get("failures"), "1", "failures")
    live.run(["true"], ["--junit", report]).expect(0)
    cases = xml.parse(report).getroot().findall(".//testcase")
    equal([len(list(case)) for case in cases], [0], "a clean run has one case that passes")


@fact
def doctor_trusts_a_machine_where_the_canary_is_heard(live):
    done = call("doctor")
    equal(done.returncode, 0, done.stdout.decode())
    check(done.stdout.decode().endswith("The gate can be trusted here.\n"), done.stdout.decode())
    facts = json.loads(call("doctor", "--json").stdout)
    equal(facts["trusted"], True, "trusted")
    states = {entry["name"]: entry["state"] for entry in facts["checks"]}
    equal((states["BTF"], states["capabilities"], states["door of run"]), ("ok", "ok", "ok"), "states")


@fact
def doctor_says_what_to_do_where_loopback_is_down(live):
    done = subprocess.run(
        ["unshare", "--net", NIGHTCLERK, "doctor"], stdout=subprocess.PIPE, timeout=120, check=False)
    equal(done.returncode, 1, "status")
    contains(done.stdout.decode(), "bring the loopback device up (ip link set lo up)", "stdout")


@fact
def doctor_names_what_is_not_seen_on_any_machine(live):
    checks = json.loads(call("doctor", "--json").stdout)["checks"]
    equal([entry["name"] for entry in checks if entry["found"].startswith(("not seen", "not read", "counted", "a guest", "its loop"))],
          ["TLS, HTTP/2", "Unix sockets, stdio", "other hosts", "other network namespaces", "HTTP/3 (UDP), SCTP",
           "VMs (Kata, Firecracker)", "gVisor"], "limits")


@fact
def without_btf_the_refusal_names_the_option(live):
    hide = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh", NIGHTCLERK]
    done = subprocess.run([*hide, "run", "--ledger", live.path("l"), "--", "touch", live.path("started")],
                          stderr=subprocess.PIPE, timeout=120, check=False)
    equal((done.returncode, done.stderr.decode()),
          (125, "nightclerk: kernel has no BTF (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF; "
                "the command was not started\n"), "status and stderr")
    equal(os.listdir(live.directory), [], "files")
    done = subprocess.run([*hide, "doctor", "--json"], stdout=subprocess.PIPE, timeout=120, check=False)
    checks = {entry["name"]: entry for entry in json.loads(done.stdout)["checks"]}
    equal((done.returncode, checks["BTF"]["state"], checks["BTF"]["remedy"]),
          (1, "bad", "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y"), "doctor")


@fact
def a_unix_socket_is_not_seen(live):
    """What README and doctor say: silence, and no verdict on it."""
    server = live.write("server.py", """
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind("s"); s.listen()
if os.fork(): os.execvp("sh", ["sh", "-c", "for i in 1 2; do curl -s --unix-socket s http://h/v1/charges -d a=1; done"])
for i in range(2):
    c = s.accept()[0]; c.recv(65536); c.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok"); c.close()
""")
    result = live.run(["/usr/bin/python3", server]).expect(0)
    equal(result.stdout, b"okok", "the two answers")
    equal((result.ledger, result.summary["requests"]), ([], 0), "what was seen")


@fact
def where_the_canary_is_not_heard_the_command_is_not_started(live):
    done = subprocess.run(
        ["unshare", "--net", NIGHTCLERK, "run", "--ledger", live.path("l"), "--", "touch", live.path("started")],
        stderr=subprocess.PIPE, timeout=120, check=False)
    equal(done.returncode, 125, "status")
    contains(done.stderr.decode(), "bring the loopback device up", "stderr")
    check(not os.path.exists(live.path("started")), "the command was started")


def recorded(live):
    live.run(twice(live.mock())).expect(10)
    return live.path("recording")


def as_a_pipe(command, path):
    """What it says of the bytes of a file that come from a pipe, and of the file."""
    with open(path, "rb") as file:
        piped = call(command, "/dev/stdin", input=file.read())
    done = call(command, path)
    return ((piped.returncode, (piped.stdout + piped.stderr).replace(b"/dev/stdin", os.fsencode(path))),
            (done.returncode, done.stdout + done.stderr))


@fact
def a_pipe_is_read_as_a_file_is(live):
    recording = recorded(live)
    for command, path, status in (("check", live.path("call_ledger.jsonl"), 11), ("check", live.path("events.jsonl"), 10),
                                  ("check", recording, 10), ("replay", recording, 10),
                                  ("check-policy", live.write("policy.json", '{"strict": true}\n'), 0),
                                  ("check", live.write("none", ""), 11), ("check", live.write("short", "{}"), 11),
                                  ("check", live.write("magic", "nightclerk rec"), 1),
                                  ("check", live.write("cut", "nightclerk r"), 11)):
        piped, done = as_a_pipe(command, path)
        equal(piped, done, f"{command} {path}")
        equal(piped[0], status, f"status of {command} {path}")


@fact
def a_cut_recording_is_judged_as_far_as_it_goes(live):
    path = recorded(live)
    with open(path, "rb") as file:
        whole = file.read()
    with open(path, "wb") as file:
        file.write(whole[:-10])
    done = call("replay", path, "--ledger", live.path("again"))
    equal(done.returncode, 1, "status")
    contains(done.stderr.decode(), "recording: ", "stderr")
    with open(live.path("again"), encoding="utf-8") as file:
        equal(len(file.readlines()), 2, "ledger lines")


@fact
def a_damaged_recording_is_named(live):
    path = recorded(live)
    with open(path, "r+b") as file:
        file.seek(-40, os.SEEK_END)
        byte = file.read(1)
        file.seek(-40, os.SEEK_END)
        file.write(bytes([byte[0] ^ 1]))
    done = call("replay", path)
    equal(done.returncode, 1, "status")
    contains(done.stderr.decode(), "byte ", "stderr names the place")


@fact
def what_is_no_recording_is_named(live):
    path = live.write("text", "POST /v1/charges\n" * 100)
    for target, words in ((path, "it is not a nightclerk recording"), (live.path("nowhere"), "No such file")):
        done = call("replay", target)
        equal(done.returncode, 1, "status")
        contains(done.stderr.decode(), words, "stderr")
    equal(call("replay").returncode, 2, "no file: status")


@fact
def replay_needs_no_rights(live):
    path = recorded(live)
    os.chmod(live.directory, 0o755)
    os.chmod(path, 0o644)
    shutil.copy(NIGHTCLERK, live.path("nightclerk"))
    done = subprocess.run(
        ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--no-new-privs",
         live.path("nightclerk"), "replay", path], stderr=subprocess.PIPE, timeout=60, check=False)
    equal(done.returncode, 10, done.stderr.decode())


play()
