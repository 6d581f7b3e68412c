#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The terminal under the full screen: given back at every end, any size, any locale, slow, gone, or none at all."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

from harness import HANG_SECONDS, NIGHTCLERK, check, contains, equal, fact, play, wait_until
from terminal import post, watch


def raw_request(mock, head, name=b"raw"):
    """One request of those bytes by a process of that name, through nothing that would mend them."""
    script = f"""
import ctypes, socket, sys
ctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)  # PR_SET_NAME
s = socket.create_connection(("127.0.0.1", {mock.port}))
s.sendall(sys.stdin.buffer.read())
while s.recv(4096): pass
"""
    subprocess.run(["/usr/bin/python3", "-c", script], input=head, check=True, timeout=HANG_SECONDS)


@fact
def a_signal_gives_the_terminal_back(live):
    mock = live.mock()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        terminal = watch(live, "--port", str(mock.port))
        os.kill(terminal.pid, number)
        contains(terminal.ends(0).replace("\n", ""), "nightclerk: 0 requests", f"summary after signal {number}")


@fact
def ctrl_c_ends_it(live):
    terminal = watch(live, "--port", str(live.mock().port))
    terminal.keys("C-c")
    contains(terminal.ends(0).replace("\n", ""), "nightclerk: 0 requests", "summary")


@fact
def ctrl_z_does_not_stop_it(live):
    terminal = watch(live, "--port", str(live.mock().port))
    terminal.keys("C-z")
    terminal.shows("^Ctrl-Z would stop the watch and lose calls; q leaves$")
    terminal.keys("q")
    terminal.ends(0)


@fact
def a_crash_gives_the_terminal_back(live):
    mock = live.mock()
    for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE):
        terminal = watch(live, "--port", str(mock.port))
        os.kill(terminal.pid, number)
        terminal.ends(128 + number)


@fact
def a_command_that_is_killed_takes_nothing_with_it(live):
    terminal = watch(live, "--", "sh", "-c", "echo $$; exec sleep 1000")
    terminal.shows(r"OUTPUT OF THE COMMAND 1 line\n\d+")
    os.kill(int(re.search(r"1 line\n(\d+)", terminal.screen()).group(1)), signal.SIGKILL)
    terminal.shows("OVER: exit status 137")
    terminal.keys("q")
    terminal.ends(0)


@fact
def a_signal_to_nightclerk_ends_the_command_too(live):
    terminal = watch(live, "--", "sh", "-c", "echo ready; exec sleep 1000")
    terminal.shows("^ready$")
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.ends(0)


@fact
def what_cannot_start_says_so_on_the_terminal(live):
    terminal = watch(live, "--", "./not-there", opens=False)
    contains(terminal.ends(1), "nightclerk: ./not-there: No such file or directory", "text")


@fact
def the_plain_form_where_there_is_no_full_screen(live):
    mock = live.mock()
    for name, reason in (("dumb", "TERM is dumb"), ("no-such-terminal", "TERM names a terminal that terminfo does not know"),
                         ("", "TERM is not set")):
        terminal = watch(live, "--port", str(mock.port), environment=[f"TERM={name}"], columns=200, opens=False)
        terminal.shows(f"^nightclerk: {reason}.*: the plain form instead of the full screen$")
        terminal.shows("^TIME .UTC.")
        terminal.keys("C-c")
        terminal.ends(0)
    process = live.nightclerk(["watch", "--port", str(mock.port)])
    contains(process.stdout.readline().decode(), "TIME (UTC)", "first line")
    process.terminate()
    _, err = process.communicate(timeout=HANG_SECONDS)
    equal(err.decode().split("\n")[0], "nightclerk: standard output is no terminal: the plain form instead of the full screen", "stderr")
    process = live.nightclerk(["watch", "--plain", "--port", str(mock.port)])
    contains(process.stdout.readline().decode(), "TIME (UTC)", "first line")
    process.terminate()
    _, err = process.communicate(timeout=HANG_SECONDS)
    check(err.decode().startswith("nightclerk: 0 requests"), f"--plain says more than the summary: {err!r}")


@fact
def any_size_and_a_storm_of_them(live):
    mock = live.mock()
    terminal = watch(live, "--port", str(mock.port))
    for n in range(5):
        post(mock, path=f"/{n}")
    terminal.shows(r" POST +404 .*/v1/charges/4$")
    first = terminal.screen()
    for n in range(200):
        terminal.resize(20 + n * 7 % 280, 5 + n * 5 % 75)
    terminal.resize(1, 1)
    terminal.resize(300, 80)
    terminal.shows(r"^nightclerk watch port \d+ .* 5 calls, 5 mutating, 5 answered, 0 high 0 medium 0 low$")
    terminal.shows(r"\A(.*\n){79}\? help")
    terminal.resize(40, 10)
    terminal.shows("^watch port .* 5 calls, 0 findings$")
    terminal.shows(r"\A(.*\n){9}\? help")
    terminal.resize(80, 24)
    terminal.becomes(first)
    terminal.keys("q")
    terminal.ends(0)


def colours(terminal):
    """The colours (SGR 30 to 37) that are on the screen."""
    found = set()
    for sequence in re.findall(r"\x1b\[([\d;]*)m", terminal.tell("capture-pane", "-p", "-e")):
        found.update(number for number in sequence.split(";") if re.fullmatch(r"3[0-7]", number))
    return found


@fact
def colours_where_there_are_some_and_they_are_wanted(live):
    mock = live.mock()
    for environment, want in (([], {"31"}), (["NO_COLOR=1"], set()), (["TERM=vt100"], set())):
        terminal = watch(live, "--port", str(mock.port), environment=environment)
        query = f"?{len(environment)}{want}".replace("'", "")
        post(mock, path=query)
        post(mock, path=query)
        terminal.shows("^HIGH +dup_after_success")
        equal(colours(terminal), want, f"colours with {environment}")
        terminal.keys("q")
        terminal.ends(0)


@fact
def what_others_send_cannot_move_the_cursor(live):
    mock = live.mock()
    terminal = watch(live, "--port", str(mock.port), columns=160)
    raw_request(mock, b"GET /\xff\xc2\x9b2J\xe6\xbc\xa2\xe2\x80\xae HTTP/1.1\r\nHost: \x80\r\nConnection: close\r\n\r\n", b"\x1b[2J\x07\n")
    terminal.shows(r" \\x1b\[2J\\x07\\x0a GET +404 .* /\\xff\\xc2\\x9b2J漢\\xe2\\x80\\xae$")
    text = terminal.screen()
    check("\x1b" not in text and "\x9b" not in text and "\x07" not in text, f"a control byte got through: {text!r}")
    contains(text.split("\n")[0], "nightclerk watch port", "first line")
    terminal.keys("q")
    terminal.ends(0)


@fact
def text_beyond_ascii_in_any_locale(live):
    mock = live.mock()
    for locale, want in (("C.UTF-8", "/漢字-é"), ("C", r"/\?\?-\?"), ("no_such.locale", r"/\?\?-\?")):
        terminal = watch(live, "--port", str(mock.port), locale=locale)
        raw_request(mock, "GET /漢字-é HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        terminal.shows(rf" GET +404 +\d+ +\S+ :\d+{want}$")
        terminal.keys("q")
        terminal.ends(0)


@fact
def a_filter_beyond_ascii(live):
    mock = live.mock()
    terminal = watch(live, "--port", str(mock.port))
    raw_request(mock, "GET /漢字 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
    raw_request(mock, b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    terminal.shows(" 2 calls, ")
    terminal.keys("/")
    terminal.type("字")
    terminal.shows("^CALLS 1 of 2, filter: 字$")
    terminal.keys("Enter", "q")
    terminal.ends(0)


CALLS = """
import http.client
client = http.client.HTTPConnection("127.0.0.1", {port})
for n in range({first}, {first} + {count}):
    client.request("POST", "/v1/charges", '{{"n": %d}}' % n)
    client.getresponse().read()
"""


class Deaf:
    """A terminal that nobody reads until it is told to."""

    def __init__(self, live, *arguments):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 80, 300, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        self.process = live.start([NIGHTCLERK, "watch", *arguments], stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                                  env=environment)
        os.close(slave)
        self.text = b""

    def read_until(self, wanted):
        while wanted not in self.text:
            ready, _, _ = select.select([self.master], [], [], HANG_SECONDS)
            check(ready, f"never came: {wanted!r}\n{self.text[-2000:]!r}")
            self.text += os.read(self.master, 65536)


@fact
def a_terminal_that_takes_nothing_keeps_no_call_waiting(live):
    mock = live.mock()
    deaf = Deaf(live, "--port", str(mock.port), "--ledger", live.path("ledger"), "--ring-size", "1M")
    deaf.read_until(b"not seen")
    # More than the ring holds, and more pictures than the terminal has room for, while it takes nothing at all.
    for n in range(20):
        script = CALLS.format(port=mock.port, first=500 * n, count=500)
        subprocess.run(["/usr/bin/python3", "-c", script], check=True, timeout=HANG_SECONDS)
        fcntl.ioctl(deaf.master, termios.TIOCSWINSZ, struct.pack("HHHH", 80, 300 - n % 2, 0, 0))
        deaf.process.send_signal(signal.SIGWINCH)

    def all_there():
        with open(live.path("ledger"), "rb") as file:
            return file.read().count(b"\n") == 10000

    wait_until(all_there, "every call is in the ledger although the terminal took nothing")
    deaf.read_until(b"0 high")
    os.write(deaf.master, b"q")
    while True:
        try:
            if not os.read(deaf.master, 65536):
                break
        except OSError:
            break
    equal(deaf.process.wait(timeout=HANG_SECONDS), 0, "status")
    contains(deaf.process.stderr.read().decode(), "10000 requests (10000 mutating)", "summary")
    os.close(deaf.master)


@fact
def a_terminal_that_is_closed_ends_it(live):
    mock = live.mock()
    deaf = Deaf(live, "--port", str(mock.port), "--ledger", live.path("ledger"))
    deaf.read_until(b"not seen")
    post(mock)
    os.close(deaf.master)
    equal(deaf.process.wait(timeout=HANG_SECONDS), 0, "status")
    contains(deaf.process.stderr.read().decode(), "nightclerk: 1 request", "summary")


play()
