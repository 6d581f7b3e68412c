# SPDX-License-Identifier: BSD-2-Clause
"""`nightclerk audit` as a service manager sees it, for live tests and for guests."""

import decimal
import json
import os
import select
import signal
import socket

from harness import HANG_SECONDS, check, read_lines, wait_until


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def status_of(pid):
    """The fields of /proc/PID/status."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def is_alive(pid):
    try:
        return status_of(pid)["State"][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_collector(pid):
    """One that lives and has given its rights away."""
    try:
        status = status_of(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status["State"][0] != "Z" and (status["Name"], status["Seccomp"]) == ("clerk-collector", "2")


def lines_so_far(path):
    """Those that have their end: the last one may just be written. None of a file that is not there any more."""
    try:
        with open(path, "rb") as file:
            text = file.read()
    except FileNotFoundError:
        return []
    return text[:text.rfind(b"\n") + 1].splitlines()


def parsed(line):
    return json.loads(line, parse_float=decimal.Decimal)


def whole_lines(audit, name, file="call_ledger.jsonl", cut=None):
    """
    What a reader has while they are written and turned over: the lines of all files of that name. Each must be
    JSON; into the set cut, if one is given, go those that are not: SIGKILL in a write leaves half a line.
    """
    folder = os.path.join(audit.directory, name)
    for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        for line in lines_so_far(os.path.join(folder, entry)) if entry.startswith(file) else ():
            try:
                yield parsed(line)
            except json.JSONDecodeError:
                if cut is None:
                    raise
                cut.add(line)


def anonymous_kib(pid):
    return int(status_of(pid)["RssAnon"].split()[0])


def metrics_of(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").rpartition(" ") for line in file if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


class Audit:
    """Starts one and waits until it says that it is ready."""

    def __init__(self, live, *options, directory="audit", prefix=(), wait=True):
        """prefix: a command that becomes the one that follows it."""
        self.live = live
        self.directory = live.path(directory)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = live.path(f"notify-{len(live.processes)}")
        self.notify.bind(path)
        self.process = live.nightclerk(["audit", "--directory", self.directory, *options], prefix,
                                       env={**os.environ, "NOTIFY_SOCKET": path})
        if wait:
            self.wait_for("READY=1")

    def wait_for(self, state):
        """Until the service manager is told that, or the process ends."""
        pidfd = os.pidfd_open(self.process.pid)
        try:
            self.wait_beside(pidfd, state)
        finally:
            os.close(pidfd)

    def wait_beside(self, pidfd, state):
        while True:
            ready, _, _ = select.select([self.notify, pidfd], [], [], HANG_SECONDS)
            if self.notify not in ready:
                self.process.kill()
                raise AssertionError(f"{state} was not said: {self.process.communicate()[1]}")
            said = self.notify.recv(4096).decode()
            if said.split("\n")[0] == state:
                return

    @property
    def collector(self):
        """Its pid, once it has given its rights away."""
        found = []

        def look():
            found[:] = [child for child in children_of(self.process.pid) if is_collector(child)]
            return found
        wait_until(look, "a collector without rights")
        return found[0]

    def lines(self, name, file="call_ledger.jsonl"):
        return read_lines(os.path.join(self.directory, name, file))

    def wait_for_lines(self, name, count, file="call_ledger.jsonl"):
        path, lines = os.path.join(self.directory, name, file), []

        def look():
            lines[:] = lines_so_far(path)
            return len(lines) >= count
        wait_until(look, f"{count} lines in {name}/{file}")
        return [parsed(line) for line in lines]

    def files(self, name, file="call_ledger.jsonl"):
        """The lines of that name, those set aside, too."""
        folder = os.path.join(self.directory, name)
        return [line for entry in os.listdir(folder) if entry.startswith(file) for line in read_lines(os.path.join(folder, entry))]

    def findings(self, name):
        return [event["finding"] for event in self.files(name, "events.jsonl") if event["kind"] == "finding"]

    def summaries(self, name):
        return [event for event in self.files(name, "events.jsonl") if event["kind"] == "summary"]

    def stop(self, number=signal.SIGTERM):
        """(exit status, what was said on stderr)"""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=HANG_SECONDS)
        self.notify.close()
        check(said is not None, "stderr")
        return self.process.returncode, said.decode()
