#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Output files: with whose rights they are opened, what a failed start leaves, and readers that do not read."""

import os
import signal
import subprocess

from harness import NIGHTCLERK, contains, equal, fact, play, read_lines, wait_for_line, wait_until

NOBODY = 65534
AS_NOBODY = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}
OUTPUTS = ("--ledger", "--events", "--junit", "--record")
# Its events are more than the 64 KiB that a pipe holds.
CALLS = 300
POSTS = """
import http.client, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
for i in range(int(sys.argv[2])):
    c.request("POST", "/v1/charges", b"a=%d" % i)
    c.getresponse().read()
"""


def posts(live, mock, count=CALLS):
    return ["/usr/bin/python3", live.write("posts.py", POSTS), str(mock.port), str(count)]


def held(path):
    with open(path, "rb") as file:
        return file.read()


# ---- rights ----


@fact
def no_output_is_opened_where_the_invoking_user_may_not_write(live):
    os.chmod(live.directory, 0o755)
    for kind, mode, group in (("root_only", 0o700, 0), ("group_root", 0o770, 0)):
        os.mkdir(live.path(kind))
        os.chown(live.path(kind), 0, group)
        os.chmod(live.path(kind), mode)
        for option in OUTPUTS:
            target = live.path(f"{kind}/target")
            arguments = ["run"] + (["--ledger", "/dev/null"] if option != "--ledger" else []) + [option, target]
            process = live.nightclerk([*arguments, "--", "true"], env={**os.environ, **AS_NOBODY})
            result = live.finish(process).expect(125)
            contains(result.stderr, f"cannot open {target}: Permission denied; no permission", f"stderr of {option}")
            equal(os.listdir(live.path(kind)), [], f"files made for {option}")


@fact
def a_recording_is_private_and_the_user_s_own(live):
    os.chown(live.directory, NOBODY, NOBODY)
    for before in (None, 0o644):
        path = live.path("recording")
        if before:
            os.chmod(path, before)
        process = live.nightclerk(["run", "--ledger", "/dev/null", "--record", path, "--", "true"],
                                  env={**os.environ, **AS_NOBODY})
        live.finish(process).expect(0)
        status = os.stat(path)
        equal((status.st_uid, status.st_gid, status.st_mode & 0o777), (NOBODY, NOBODY, 0o600), "owner and mode")


@fact
def a_recording_that_others_could_read_is_refused(live):
    os.chmod(live.directory, 0o755)
    path = live.write("recording", "earlier", 0o666)
    process = live.nightclerk(["run", "--ledger", "/dev/null", "--record", path, "--", "true"],
                              env={**os.environ, **AS_NOBODY})
    result = live.finish(process).expect(125)
    contains(result.stderr, f"others can read {path}, and that cannot be changed: Operation not permitted; "
             "choose another place", "stderr")
    equal(held(path), b"earlier", "the file")


# ---- one file, one output ----


PAIRS = (("--ledger", "--events"), ("--ledger", "--junit"), ("--events", "--record"), ("--junit", "--db"))


@fact
def no_file_is_taken_for_two_outputs(live):
    live.write("one", "")
    os.link(live.path("one"), live.path("other"))
    for first, second in PAIRS:
        for names in (("new", "new"), ("new", "./new"), ("one", "other")):
            rest = [] if first == "--ledger" else ["--ledger", "/dev/null"]
            arguments = ["run", *rest, first, names[0], second, names[1], "--", "touch", "marker"]
            result = live.finish(live.nightclerk(arguments)).expect(125)
            equal(result.stderr.splitlines()[-1], f"nightclerk: {first} and {second} are one file, {names[1]}: give each its own; "
                  "the command was not started", "stderr")
            equal(os.path.exists(live.path("marker")), False, "the command was started")
            if second == "--db":  # an empty file is a store to be, and the store is opened first
                os.truncate(live.path(names[0]), 0)
                if names[0] == "new":
                    os.unlink(live.path("new"))
            equal((held(live.path("one")), os.path.exists(live.path("new"))), (b"", False), "what is in the file, or was left behind")


@fact
def what_belongs_to_a_store_is_no_other_output(live):
    for name in ("store", "store-wal", "store-shm", "store-journal", "store.salt"):
        for content in ("earlier\n", None):
            if content:
                live.write(name, content)
            result = live.finish(live.nightclerk(["run", "--ledger", name, "--db", "store", "--", "touch", "marker"]))
            if content or name != "store-journal":  # a journal that is not there yet is not made either
                result.expect(125)
                equal(result.stderr.splitlines()[-1], f"nightclerk: --ledger and --db are one file, {name}: give each its own; "
                      "the command was not started", "stderr")
                equal(os.path.exists(live.path("marker")), False, "the command was started")
            if content:
                equal(held(live.path(name)), content.encode(), "what was in the file")
                equal([n for n in os.listdir(live.directory) if n.startswith("store")], [name], "what was made")
            for other in os.listdir(live.directory):
                if other.startswith("store") or other == "marker":
                    os.unlink(live.path(other))


@fact
def a_descriptor_and_a_path_are_one_file_too(live):
    with open(live.path("file"), "ab") as file:
        arguments = ["run", "--ledger", "file", "--events", f"fd:{file.fileno()}", "--", "true"]
        result = live.finish(live.nightclerk(arguments, pass_fds=[file.fileno()])).expect(125)
    equal(result.stderr, f"nightclerk: --ledger and --events are one file, {arguments[4]}: give each its own; "
          "the command was not started\n", "stderr")


@fact
def two_outputs_to_nowhere_are_fine(live):
    arguments = ["run", "--ledger", "/dev/null", "--events", "/dev/null", "--", "true"]
    live.finish(live.nightclerk(arguments)).expect(0)


@fact
def a_replay_does_not_write_into_its_recording(live):
    live.run(["true"]).expect(0)
    before = held(live.path("recording"))
    for option in ("--ledger", "--events", "--db"):
        done = subprocess.run([NIGHTCLERK, "replay", "recording", option, "./recording"], cwd=live.directory,
                              stderr=subprocess.PIPE, timeout=60, check=False)
        equal(held(live.path("recording")), before, f"the recording after {option}")
        equal((done.returncode, done.stderr.decode()),
              (2, f"nightclerk replay: the recording and {option} are one file, ./recording: give each its own\n"), option)


@fact
def a_descriptor_for_reading_is_no_output(live):
    with open("/dev/null", "rb") as file:
        arguments = ["run", "--events", f"fd:{file.fileno()}", "--", "true"]
        result = live.finish(live.nightclerk(arguments, pass_fds=[file.fileno()])).expect(125)
    equal(result.stderr, "nightclerk run: --events takes a descriptor that can be written to; see nightclerk run --help\n", "stderr")


@fact
def with_closed_standard_descriptors_nothing_is_said_into_a_file(live):
    live.run(["true"]).expect(0)
    closed = ["sh", "-c", 'exec "$@" <&- 2>&-', "sh"]
    done = subprocess.run([*closed, NIGHTCLERK, "replay", "recording", "--ledger", "again"], cwd=live.directory,
                          timeout=60, check=False)
    equal((done.returncode, held(live.path("again"))), (0, b""), "status and ledger of the replay")


@fact
def a_command_gets_them_as_closed_as_they_were(live):
    closed = ["sh", "-c", 'exec "$@" <&- 2>&-', "sh"]
    command = ["sh", "-c", "for n in 0 1 2; do [ -e /proc/$$/fd/$n ] && echo $n; done; true"]
    equal(live.finish(live.nightclerk(live.run_arguments(command), closed)).expect(0).stdout, b"1\n", "what is open")


# ---- a start that fails ----


@fact
def a_failed_start_leaves_every_file_as_it_was(live):
    """Without loopback the canary cannot speak."""
    for there_before in (True, False):
        files = {option: live.path("file" + option) for option in OUTPUTS}
        for path in files.values():
            if there_before:
                live.write(os.path.basename(path), "earlier\n")
        arguments = [word for pair in files.items() for word in pair]
        process = live.nightclerk(["run", *arguments, "--", "touch", live.path("marker")], ["unshare", "--net"])
        live.finish(process).expect(125)
        for path in files.values():
            if there_before:
                equal(held(path), b"earlier\n", path)
                os.unlink(path)
        equal(os.listdir(live.directory), [], "files left behind")


# ---- readers ----


@fact
def a_pipe_that_nobody_reads_is_refused(live):
    os.mkfifo(live.path("pipe"))
    process = live.nightclerk(["run", "--ledger", "/dev/null", "--events", live.path("pipe"), "--", "true"])
    result = live.finish(process).expect(125)
    contains(result.stderr, "nobody reads this pipe: start its reader first", "stderr")


@fact
def a_reader_that_leaves_does_not_hold_the_run_up(live):
    mock = live.mock()
    os.mkfifo(live.path("pipe"))
    reader = os.open(live.path("pipe"), os.O_RDONLY | os.O_NONBLOCK)
    command = ["sh", "-c", 'echo ready; read go; exec "$@"', "sh", *posts(live, mock)]
    process = live.nightclerk(["run", "--ledger", live.path("ledger"), "--events", live.path("pipe"), "--", *command],
                              stdin=subprocess.PIPE)
    equal(wait_for_line(process, "the command"), "ready", "its line")
    os.close(reader)
    result = live.finish(process, b"go\n").expect(11)
    contains(result.stderr, f"cannot write {live.path('pipe')}: Broken pipe", "stderr")
    contains(result.stderr, "command exited 0; exit 11\nnightclerk: cannot tell: an output could not be written\n", "stderr")
    equal(len(read_lines(live.path("ledger"))), CALLS, "ledger lines")


def a_late_reader(live, open_pipe):
    """The ledger goes on while nobody reads the events; in the end they are all there."""
    mock = live.mock()
    reader, option, inherited = open_pipe()
    ledger = live.path("ledger")
    process = live.nightclerk(["run", "--ledger", ledger, "--events", option, "--", *posts(live, mock)],
                              pass_fds=inherited)
    for fd in inherited:
        os.close(fd)
    wait_until(lambda: os.path.exists(ledger) and held(ledger).count(b"\n") == CALLS, "the ledger is complete")
    os.set_blocking(reader, True)
    with open(reader, "rb") as file:
        events = file.read()
    result = live.finish(process).expect(0)
    equal(events.count(b'"kind":"response"'), CALLS, "response events")
    equal(events.count(b'"kind":"summary"'), 1, "summary events")
    equal(result.stderr.count("\n"), 1, "lines on stderr")


@fact
def a_late_reader_of_a_pipe_loses_nothing(live):
    def open_pipe():
        os.mkfifo(live.path("pipe"))
        return os.open(live.path("pipe"), os.O_RDONLY | os.O_NONBLOCK), live.path("pipe"), []

    a_late_reader(live, open_pipe)


@fact
def a_late_reader_of_a_descriptor_loses_nothing(live):
    def open_pipe():
        reader, writer = os.pipe()
        return reader, f"fd:{writer}", [writer]

    a_late_reader(live, open_pipe)


@fact
def a_reader_of_the_table_that_stands_still_does_not_stop_the_watch(live):
    mock = live.mock()
    ledger = live.path("ledger")
    process = live.nightclerk(["watch", "--ledger", ledger, "--", *posts(live, mock, 1500)])
    wait_until(lambda: os.path.exists(ledger) and held(ledger).count(b"\n") == 1500, "the ledger is complete")
    out, err = process.communicate(timeout=60)
    equal(out.count(b"/v1/charges"), 1500, "lines of the table")
    contains(err.decode(), "1500 requests (1500 mutating), 0 findings", "stderr")


# ---- the end ----


ENDLESS = r"""
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
body = bytes(32768)
for n in range(2):
    if os.fork() == 0:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        s = socket.create_connection(listener.getsockname())
        peer = listener.accept()[0]
        s.sendall(b"PUT /endless HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000000\r\n\r\n")
        with open(sys.argv[1], "a") as file: file.write("%d\n" % os.getpid())
        while True:
            s.sendall(body)
            got = len(body)
            while got: got -= len(peer.recv(got))
while not os.path.exists(sys.argv[1]) or len(open(sys.argv[1]).readlines()) < 2: pass
"""


@fact
def a_run_ends_while_what_it_left_behind_goes_on_sending(live):
    """Processes that outlive the command fill the rings faster than they can be emptied."""
    pids = live.path("pids")
    command = ["/usr/bin/python3", live.write("endless.py", ENDLESS), pids]
    process = live.nightclerk(["run", "--ledger", "/dev/null", "--linger", "0", "--allow-incomplete", "--", *command],
                              stdout=subprocess.DEVNULL)
    try:
        result = live.finish(process).expect(0)
        contains(result.stderr, "2 processes of the command live on", "stderr")
    finally:
        for pid in held(pids).split():
            os.kill(int(pid), signal.SIGKILL)


play()
