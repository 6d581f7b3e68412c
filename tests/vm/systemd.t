#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The unit as it is packaged under a real systemd, which is process 1 of a pid namespace in the guest: what the unit
forbids, nothing of the service needs. Only where its program lies is another place than a package's.
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "live"))

from auditing import children_of, is_collector, lines_so_far, parsed, status_of  # pylint: disable=wrong-import-position
from harness import HANG_SECONDS, NIGHTCLERK, ROOT, Skip, check, equal, fact, play, wait_until  # pylint: disable=wrong-import-position

SYSTEMD = "/usr/lib/systemd/systemd"
UNIT = "/etc/systemd/system/nightclerk.service"
LOGS = "/var/log/nightclerk"
SAID = "/run/nightclerk.said"
CGROUP = "/sys/fs/cgroup/system.slice/nightclerk.service"
PRIVATE = "/run/systemd/private" # systemctl's way to it where there is no D-Bus
SYSTEM = [] # the process that started it
TARGET = "[Unit]\nDescription=Nothing but what is asked for\nDefaultDependencies=no\n"


def install():
    """What the package puts in place, but for the program and its manual."""
    os.makedirs(os.path.dirname(UNIT), exist_ok=True)
    os.makedirs("/etc/nightclerk", exist_ok=True)
    os.makedirs("/var/log", exist_ok=True)
    os.makedirs("/var/lib", exist_ok=True)
    shutil.copy(os.path.join(ROOT, "packaging", "audit.json"), "/etc/nightclerk/audit.json")
    with open(os.path.join(ROOT, "packaging", "nightclerk.service"), encoding="utf-8") as file:
        unit, count = re.subn(r"^ExecStart=nightclerk ", f"ExecStart={NIGHTCLERK} ", file.read(), flags=re.M)
    equal(count, 1, "lines that start it")
    with open(UNIT, "w", encoding="utf-8") as file:
        file.write(unit)
    os.makedirs(UNIT + ".d", exist_ok=True)
    with open(os.path.join(UNIT + ".d", "said.conf"), "w", encoding="utf-8") as file:
        file.write(f"[Service]\nStandardError=append:{SAID}\n") # there is no journal
    with open(os.path.join(os.path.dirname(UNIT), "bare.target"), "w", encoding="utf-8") as file:
        file.write(TARGET)


def inside():
    """A command that runs the one behind it where systemd is process 1: it refuses who has no pid there."""
    return ["nsenter", "--target", str(children_of(SYSTEM[0].pid)[0]), "--pid", "--mount"]


def systemctl(*arguments):
    done = subprocess.run([*inside(), "systemctl", "--no-pager", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, timeout=HANG_SECONDS)
    equal(done.returncode, 0, f"exit status of systemctl {arguments}, which said {done.stdout!r}")
    return done.stdout.strip()


def shown(name):
    return systemctl("show", "--value", "-p", name, "nightclerk.service")


def processes():
    """Those of the unit, as this pid namespace knows them."""
    try:
        with open(os.path.join(CGROUP, "cgroup.procs"), encoding="ascii") as file:
            return [int(line) for line in file]
    except FileNotFoundError:
        return []


def collectors():
    return [pid for pid in processes() if is_collector(pid)]


def events():
    return [parsed(line) for path in glob.glob(os.path.join(LOGS, "*", "events.jsonl")) for line in lines_so_far(path)]


def count_of(kind):
    return sum(event["kind"] == kind for event in events())


def call(mock, body):
    """One call, and its line."""
    before = count_of("request")
    subprocess.run(["curl", "-sS", "-o", "/dev/null", "-d", body, mock.url], check=True, timeout=HANG_SECONDS)
    wait_until(lambda: count_of("request") > before, f"the request {body}")


def start_and_use(mock):
    systemctl("start", "nightclerk.service")
    equal(shown("ActiveState"), "active", "state after the start")
    wait_until(lambda: len(collectors()) == 1, "a collector")
    equal(len(processes()), 2, "processes of the unit")
    for pid in processes():
        status = status_of(pid)
        equal((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"), f"rights of {status['Name']}")
    status = status_of(collectors()[0])
    check(status["Uid"].split()[0] != "0", "the collector is root")
    equal(status["CapEff"], "0000000000000000", "capabilities of the collector")
    call(mock, "a=1")
    call(mock, "a=1")
    wait_until(lambda: count_of("finding") == 1, "the finding")


def reload_and_kill(mock):
    systemctl("reload", "nightclerk.service")
    equal((shown("ActiveState"), shown("NRestarts")), ("active", "0"), "state after the reload")
    first = collectors()[0]
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: collectors() not in ([], [first]), "the next collector")
    call(mock, "a=2")
    equal((shown("ActiveState"), shown("NRestarts"), count_of("gap")), ("active", "0", 1),
          "state, restarts and gaps after the collector's death")
    systemctl("kill", "--kill-whom=main", "--signal=KILL", "nightclerk.service")
    wait_until(lambda: shown("NRestarts") == "1" and shown("ActiveState") == "active", "the restart of a service that was killed")
    call(mock, "a=3")


@fact
def the_unit_starts_sees_reloads_comes_back_and_stops(live):
    if not os.path.exists(SYSTEMD):
        raise Skip("there is no systemd")
    install()
    mock = live.mock()
    system = live.start(["unshare", "--fork", "--pid", "--kill-child", "--mount", "--mount-proc", SYSTEMD, "--system",
                         "--unit=bare.target", "--log-target=console", "--log-level=info"],
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "container": "test"})
    SYSTEM.append(system)
    wait_until(lambda: os.path.exists(PRIVATE) or system.poll() is not None, "systemd")
    equal(system.poll(), None, "exit status of systemd")
    try:
        start_and_use(mock)
        reload_and_kill(mock)
        systemctl("stop", "nightclerk.service")
        equal((shown("ActiveState"), shown("Result"), shown("ExecMainStatus")), ("inactive", "success", "0"), "how it stopped")
        equal(processes(), [], "what is left of it")
        equal(events()[-1]["kind"], "summary", "the last event")
        for path, mode in ((LOGS, 0o755), (glob.glob(os.path.join(LOGS, "*", "call_ledger.jsonl"))[0], 0o600)):
            equal((os.stat(path).st_uid, os.stat(path).st_mode & 0o777), (0, mode), f"owner and mode of {path}")
    except Exception:
        subprocess.run([*inside(), "systemctl", "--no-pager", "status", "nightclerk.service"], stderr=subprocess.STDOUT, check=False)
        if os.path.exists(SAID):
            with open(SAID, encoding="utf-8") as file:
                print("# it said: " + file.read().rstrip().replace("\n", "\n# it said: "), flush=True)
        raise


play()
