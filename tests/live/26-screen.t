#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The full screen of `watch` and `replay --screen`, driven by keys on a terminal that tmux keeps."""

import json
import os
import re
import shlex
import signal
import subprocess

from harness import BUILD, HANG_SECONDS, NIGHTCLERK, ROOT, STARTED, Failure, check, contains, equal, fact, play, wait_until

terminals = []
HISTORY = ["-S", "-200"]  # also what has scrolled out


class Terminal:
    """A terminal of that size, and a command on it; a shell stays when that has ended."""

    def __init__(self, live, argv, columns=80, rows=24, environment=(), locale="C.UTF-8"):
        self.name = f"nightclerk-test-{os.getpid()}-{len(terminals)}"
        terminals.append(self)
        variables = [f"LC_ALL={locale}", "TERM=tmux-256color", *environment]
        command = shlex.join(["env", *variables, *argv]) + '; echo "status $?"; stty -a; exec sleep 1000'
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


def watch(live, *arguments, **more):
    """`watch` on a terminal; 90-nothing-left.t will ask after it."""
    terminal = Terminal(live, [NIGHTCLERK, "watch", *arguments], **more)
    with open(f"/proc/{terminal.pid}/stat", encoding="utf-8") as file:
        start = file.read().rpartition(")")[2].split()[19]
    with open(STARTED, "a", encoding="utf-8") as file:
        file.write(json.dumps({"pid": terminal.pid, "start": start}) + "\n")
    terminal.shows("^not seen:")
    return terminal


def post(mock, body="{}", path=""):
    subprocess.run(["curl", "-s", "-o", "/dev/null", mock.url + path, "-d", body], check=True, timeout=HANG_SECONDS)


SCRIPT = """
{build}/flaky-tool --timeout-ms 150 {url}
curl -s -o /dev/null {url} -d 'n=1'
curl -s -o /dev/null '{url}?limit=1'
curl -s -o /dev/null {url} -d 'n=1'
"""


def script(live, mock):
    """A charge that is made twice after a time-out, one that is made twice after a 200, and a GET."""
    return ["sh", live.write("script.sh", SCRIPT.format(build=BUILD, url=mock.url))]


def record(live):
    mock = live.mock("--delay-ms", "300")
    live.run(script(live, mock), options=["--record", live.path("script.recording")], replay=False).expect(10)
    return live.path("script.recording")


def normal(text):
    """Times, pids and ports as if they were always the same; widths stay."""
    text = re.sub(r"\d\d:\d\d:\d\d", "12:00:00", text)
    text = re.sub(r"12:00:00\.\d{3}", "12:00:00.000", text)
    text = re.sub(r"^(.{11})[ \d]{6}\d( (?:flaky-tool|curl))", r"\1    PID\2", text, flags=re.M)
    text = re.sub(r"^[ \d]{6}\d( (?:flaky-tool|curl))", r"    PID\1", text, flags=re.M)
    text = re.sub(r"[ \d]{3}\d\.\d(?= :\d)", "  MS.M", text)
    text = re.sub(r":\d{5}\b", ":PORT.", text)
    return re.sub(r"\d\.\d/\d\.\d s", "T.T/T.T s", text)


def normal_story(text):
    """The same where columns do not stand still: a gap is two spaces."""
    text = normal(text)
    text = re.sub(r"pid \d+", "pid N", text)
    text = re.sub(r"(under )?\d+(\.\d)? ms", "N ms", text)
    text = re.sub(r"127\.0\.0\.1:PORT\.", "127.0.0.1:PORT", text)
    text = re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b", "HEX", text)
    return re.sub(r" {2,}", "  ", text)


def documented(number):
    """The number-th picture in docs/watch.md."""
    with open(os.path.join(ROOT, "docs", "watch.md"), encoding="utf-8") as file:
        return re.findall(r"```\n(.*?)```", file.read(), re.S)[number]


FILTERED = """
replay script.recording  STEP 13/13, T.T/T.T s   5 calls, 2 high 0 medium 0 low
FINDINGS 1 (and 1 of info)
HIGH        dup_after_success          2 of 2 POST :PORT./v1/charges
CALLS 2 of 5, filter: curl !get
  TIME         PID COMMAND    METHOD  ST   GOT      MS TARGET
  12:00:00     PID curl       POST   200    36    MS.M :PORT./v1/charges
H 12:00:00     PID curl       POST   200    36    MS.M :PORT./v1/charges










PROCESSES AND PATHS 3, by duplicates
    PID COMMAND     CALLS   MUT ATTEMPTS  DUPS LAST TOKENS PATH
    PID curl            1     1        1     1  200      0 :PORT./v1/charges
    PID curl            1     1        0     0  200      0 :PORT./v1/charges
    PID curl            1     0        0     0  404      0 :PORT./v1/charges
not seen: holes 0  blind streams 0  broken 0  lost 0
filter: curl !get
"""

SORTED = """
replay script.recording  STEP 13/13, T.T/T.T s   5 calls, 2 high 0 medium 0 low
FINDINGS 2 (and 1 of info)
HIGH        dup_after_success          2 of 2 POST :PORT./v1/charges
HIGH        dup_after_timeout          2 of 2 POST :PORT./v1/charges
CALLS 5, by largest
  TIME         PID COMMAND    METHOD  ST   GOT      MS TARGET
i 12:00:00     PID flaky-tool POST   200    36    MS.M :PORT./v1/charges
H 12:00:00     PID flaky-tool POST   200    36    MS.M :PORT./v1/charges
  12:00:00     PID curl       POST   200    36    MS.M :PORT./v1/charges
H 12:00:00     PID curl       POST   200    36    MS.M :PORT./v1/charges
  12:00:00     PID curl       GET    404    13    MS.M :PORT./v1/charges?limit=1





PROCESSES AND PATHS 4, by duplicates
    PID COMMAND     CALLS   MUT ATTEMPTS  DUPS LAST TOKENS PATH
    PID flaky-tool      2     2        1     1  200      0 :PORT./v1/charges
    PID curl            1     1        1     1  200      0 :PORT./v1/charges
    PID curl            1     1        0     0  200      0 :PORT./v1/charges
    PID curl            1     0        0     0  404      0 :PORT./v1/charges
not seen: holes 0  blind streams 0  broken 0  lost 0
calls sorted by largest
"""

SMALL = """
replay script.reco> 5 calls, 2 findings
FINDINGS 2 (and 1 of info)
  FINDING           CALL
H dup_after_success POST :PORT./v1/char>
H dup_after_timeout POST :PORT./v1/char>
CALLS 5
  METH  ST     MS TARGET
H POST 200   MS.M :PORT./v1/charges
not seen: holes 0  blind streams 0  bro>
calls sorted by time
"""


@fact
def a_recording_is_looked_at(live):
    terminal = Terminal(live, [NIGHTCLERK, "replay", record(live), "--screen"])
    terminal.becomes(normal(documented(0)), normal)
    terminal.keys("/")
    terminal.type("curl !get")
    terminal.becomes(FILTERED, normal)
    terminal.keys("Enter", "Escape", "s", "s")
    terminal.becomes(SORTED, normal)
    terminal.resize(120, 50)
    terminal.keys("f", "j", "Enter")
    terminal.becomes(normal_story(documented(1)), normal_story)
    terminal.resize(40, 10)
    terminal.keys("Escape", "s", "s")
    terminal.becomes(SMALL, normal)
    terminal.keys("q")
    terminal.ends(10)


play()
