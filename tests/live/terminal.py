# SPDX-License-Identifier: BSD-2-Clause
"""
A terminal for tests: tmux keeps it, keys are typed on it, and its screen is
read back as text. Nothing sleeps: a test waits until the screen is as it should
be.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

from harness import HANG_SECONDS, NIGHTCLERK, STARTED, Failure, check, contains, equal, wait_until

if not shutil.which("tmux"):
    print("1..0 # SKIP tmux is missing: make deps installs it")
    sys.exit(0)

terminals = []
HISTORY = ["-S", "-200"]  # also what has scrolled out


class Terminal:
    """A terminal of that size, and a command on it; a shell stays when that has ended."""

    def __init__(self, live, argv, columns=80, rows=24, environment=(), locale="C.UTF-8"):
        self.name = f"nightclerk-test-{os.getpid()}-{len(terminals)}"
        terminals.append(self)
        variables = [f"LC_ALL={locale}", "TERM=tmux-256color", *environment]
        command = "trap : INT; " + shlex.join(["env", *variables, *argv]) + '; echo "status $?"; stty -a; exec sleep 1000'
        clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TMUX", "LINES", "COLUMNS")}
        subprocess.run(["tmux", "-L", self.name, "-f", live.write("tmux.conf", "set -g status off"), "-u", "new-session", "-d",
                        "-x", str(columns), "-y", str(rows), "-c", live.directory, "sh", "-c", command],
                       check=True, timeout=HANG_SECONDS, env={**clean, "LC_ALL": "C.UTF-8"})
        live.processes.append(self)
        self.shell_pid = int(self.tell("display", "-p", "#{pane_pid}"))

    @property
    def pid(self):
        """Of the command."""
        found = []

        def is_there():
            with open(f"/proc/{self.shell_pid}/task/{self.shell_pid}/children", encoding="utf-8") as file:
                found[:] = [int(word) for word in file.read().split()]
            return bool(found)

        wait_until(is_there, "the command has started")
        return found[0]

    def tell(self, *words):
        done = subprocess.run(["tmux", "-L", self.name, *words], check=True, timeout=HANG_SECONDS, stdout=subprocess.PIPE)
        return done.stdout.decode().rstrip("\n")

    def keys(self, *names):
        self.tell("send-keys", *names)

    def type(self, text):
        self.tell("send-keys", "-l", text)

    def resize(self, columns, rows):
        self.tell("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self, *options):
        """What is on it: lines without spaces at their ends."""
        return "\n".join(line.rstrip() for line in self.tell("capture-pane", "-p", *options).split("\n")).rstrip("\n")

    def becomes(self, want, normal=lambda text: text):
        """Waits until the screen is exactly that."""
        want = want.strip("\n")
        seen = [""]

        def is_there():
            seen[0] = normal(self.screen())
            return seen[0] == want

        try:
            wait_until(is_there, "the screen")
        except Failure:
            raise Failure(f"the screen never became\n{want}\n--- but is\n{seen[0]}") from None

    def shows(self, pattern, *options):
        """Waits until that is somewhere on the screen."""
        try:
            wait_until(lambda: re.search(pattern, self.screen(*options), re.M), pattern)
        except Failure:
            raise Failure(f"never on the screen: {pattern}\n{self.screen(*options)}") from None

    def ends(self, status):
        """Waits for the end of the command; the terminal is as it was before."""
        self.shows("^status ", *HISTORY)
        self.shows("echoke", *HISTORY)
        text = self.screen(*HISTORY)
        equal(re.findall(r"^status (\d+)$", text, re.M), [str(status)], "status")
        for word in ("icanon", "echo", "isig", "icrnl", "ixon", "onlcr"):
            check(re.search(rf"(^| ){word}\b", text, re.M), f"{word} is off after the end\n{text}")
        contains(text, "susp = ^Z", "modes after the end")
        equal(self.tell("display", "-p", "#{alternate_on} #{cursor_flag} #{keypad_cursor_flag} #{keypad_flag}"), "0 1 0 0",
              "alternate screen, cursor, keypad after the end")
        return text

    # What harness.py does with everything that a test started.
    stdin = stdout = stderr = None

    def poll(self):
        return None

    def kill(self):
        subprocess.run(["tmux", "-L", self.name, "kill-server"], check=False, stderr=subprocess.DEVNULL)

    def wait(self):
        pass


def watch(live, *arguments, opens=True, **more):
    """`watch` on a terminal, once its screen is there; 90-nothing-left.t will ask after it."""
    terminal = Terminal(live, [NIGHTCLERK, "watch", *arguments], **more)
    with open(f"/proc/{terminal.pid}/stat", encoding="utf-8") as file:
        start = file.read().rpartition(")")[2].split()[19]
    with open(STARTED, "a", encoding="utf-8") as file:
        file.write(json.dumps({"pid": terminal.pid, "start": start}) + "\n")
    if opens:
        terminal.shows("^not seen:")
    return terminal


def post(mock, body="{}", path=""):
    subprocess.run(["curl", "-s", "-o", "/dev/null", mock.url + path, "-d", body], check=True, timeout=HANG_SECONDS)
