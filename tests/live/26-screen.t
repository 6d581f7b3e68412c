#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `watch` and `replay --screen` show on the full screen, driven by keys."""

import os
import re
import subprocess

from harness import BUILD, HANG_SECONDS, NIGHTCLERK, ROOT, check, contains, equal, fact, play, wait_until
from terminal import Terminal, post, watch

SCRIPT = """
{build}/flaky-tool --timeout-ms 500 {url}
curl -s -o /dev/null {url} -d 'n=1'
curl -s -o /dev/null '{url}?limit=1'
curl -s -o /dev/null {url} -d 'n=1'
"""


def script(live, mock):
    """A charge that is made twice after a time-out, one that is made twice after a 200, and a GET."""
    return ["sh", live.write("script.sh", SCRIPT.format(build=BUILD, url=mock.url))]


def record(live):
    mock = live.mock("--delay-ms", "1000")
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
    return re.sub(r"STEP (\d\d)/\1, \d\.\d/\d\.\d s", "STEP NN/NN, T.T/T.T s", text)


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
replay script.recording  STEP NN/NN, T.T/T.T s   5 calls, 2 high 0 medium 0 low
FINDINGS 1 (and 1 of info): f and Enter show both attempts side by side
HIGH        dup_after_success          2 of 2 POST :PORT./v1/charges
CALLS 2 of 5, filter: curl !get
  TIME         PID COMMAND    METHOD  ST   GOT      MS TARGET
+ 12:00:00     PID curl       POST   200    36    MS.M :PORT./v1/charges
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
replay script.recording  STEP NN/NN, T.T/T.T s   5 calls, 2 high 0 medium 0 low
FINDINGS 2 (and 1 of info): f and Enter show both attempts side by side
HIGH        dup_after_success          2 of 2 POST :PORT./v1/charges
HIGH        dup_after_timeout          2 of 2 POST :PORT./v1/charges
CALLS 5, by largest
  TIME         PID COMMAND    METHOD  ST   GOT      MS TARGET
+ 12:00:00     PID flaky-tool POST   200    36    MS.M :PORT./v1/charges
H 12:00:00     PID flaky-tool POST   200    36    MS.M :PORT./v1/charges
+ 12:00:00     PID curl       POST   200    36    MS.M :PORT./v1/charges
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


LIVE = """
watch port PORT  LIVE                            3 calls, 1 high 0 medium 0 low
FINDINGS 1: f and Enter show both attempts side by side
HIGH        dup_after_success          2 of 2 POST :PORT./v1/charges
CALLS 3
  TIME         PID COMMAND    METHOD  ST   GOT      MS TARGET
+ 12:00:00     PID curl       POST   200    36    MS.M :PORT./v1/charges
  12:00:00     PID curl       POST   404    13    MS.M :PORT./v1/charges/2
H 12:00:00     PID curl       POST   200    36    MS.M :PORT./v1/charges









PROCESSES AND PATHS 3, by duplicates
    PID COMMAND     CALLS   MUT ATTEMPTS  DUPS LAST TOKENS PATH
    PID curl            1     1        1     1  200      0 :PORT./v1/charges
    PID curl            1     1        0     0  200      0 :PORT./v1/charges
    PID curl            1     1        0     0  404      0 :PORT./v1/charges/2
not seen: holes 0  blind streams 0  broken 0  lost 0  ring 0% (peak 0%)
? help  f findings  Enter open  Tab pane  / filter  s sort  p pause  q quit
"""


def normal_live(text):
    """The share of the ring that was full at its fullest depends on the machine."""
    text = re.sub(r"watch port \d{5}", "watch port PORT ", normal(text))
    return re.sub(r"peak \d%", "peak 0%", text)


@fact
def calls_show_as_they_come_and_all_of_them_after_a_pause(live):
    mock = live.mock()
    terminal = watch(live, "--port", str(mock.port))
    for path in ("", "/2", ""):
        post(mock, path=path)
    terminal.becomes(LIVE.replace("PORT  LIVE", "PORT   LIVE").replace("LIVE    ", "LIVE   ", 1), normal_live)
    terminal.keys("p")
    terminal.shows("^CALLS 3, PAUSED: 0 more since$")
    post(mock, path="/3")
    post(mock, path="/4")
    terminal.shows("^CALLS 3 of 5, PAUSED: 2 more since$")
    check("/v1/charges/3" not in terminal.screen(), "a call shows although the list is held")
    terminal.keys("p")
    terminal.shows(r"POST +404 .*/v1/charges/3\n.*POST +404 .*/v1/charges/4$")
    terminal.keys("q")
    text = terminal.ends(0)
    contains(text, "HIGH dup_after_success", "the findings once more")
    contains(text.replace("\n", " "), "nightclerk: 5 requests (5 mutating), 1 finding", "summary")


@fact
def a_store_that_takes_nothing_is_on_the_screen(live):
    mock = live.mock()
    live.write("text.db", "no database" * 100)
    terminal = watch(live, "--port", str(mock.port), "--db", live.path("text.db"))
    terminal.shows(r"STORE: \d+ rows lost  ring")
    terminal.keys("q")
    terminal.ends(0)


@fact
def a_finding_opens_on_live_traffic(live):
    mock = live.mock()
    terminal = watch(live, "--port", str(mock.port), columns=100, rows=40)
    post(mock, '{"n": 1}')
    post(mock, '{"n": 1}')
    terminal.shows("^FINDINGS 1")
    terminal.keys("f", "Enter")
    terminal.shows("^= # +ATTEMPT 1 +ATTEMPT 2$")
    terminal.shows(r"^key +\S none +none$")
    terminal.shows(r"^client read +107 of 107 bytes, head included +107 of 107 bytes, head included$")
    post(mock, '{"n": 1}')  # the story goes on: a third one
    terminal.shows("attempt 2 of 3")
    terminal.keys("q")
    terminal.shows("^FINDINGS 1")
    terminal.keys("q")
    terminal.ends(0)


@fact
def the_output_of_a_command_has_a_pane_and_a_file(live):
    mock = live.mock()
    command = ["sh", "-c", f"echo one; echo two >&2; curl -s {mock.url} -d n=1 -o answer; cat; echo three; exit 7"]
    terminal = watch(live, "--output", live.path("output"), "--", *command)
    terminal.shows("^watch -- sh +OVER: exit status 7 ")
    terminal.shows("^CALLS 1\n.*\n.* curl +POST +200 ")
    terminal.shows("^OUTPUT OF THE COMMAND 3 lines\none\ntwo\nthree\n")
    with open(live.path("output"), encoding="utf-8") as file:
        equal(file.read(), "one\ntwo\nthree\n", "the file of --output")
    terminal.keys("q")
    terminal.ends(0)


@fact
def q_asks_before_it_ends_the_command(live):
    os.mkfifo(live.path("fifo"))
    terminal = watch(live, "--", "sh", "-c", "trap 'exit 3' TERM; echo ready; read line < fifo")
    terminal.shows("^ready$")
    terminal.keys("q")
    terminal.shows("^the command still runs: q again sends it SIGTERM")
    terminal.keys("j")
    terminal.shows(r"^\? help")
    terminal.keys("q")
    terminal.ends(0)


@fact
def a_recording_is_stepped_through(live):
    terminal = Terminal(live, [NIGHTCLERK, "replay", record(live), "--screen"])
    terminal.shows(r"STEP (\d+)/\1, .* 5 calls, 2 high 0 medium")
    steps = int(re.search(r"STEP (\d+)/", terminal.screen()).group(1))
    terminal.keys("{", "{") # seconds back: the recording has less than two
    terminal.shows(rf"STEP 0/{steps}, 0.0/\S+ s .* 0 calls, 0 high 0 medium")
    seen = []
    for step in range(1, steps + 1):
        terminal.keys("]")
        terminal.shows(rf"STEP {step}/{steps}, ")
        seen.append(terminal.screen())
    # The first finding is medium until the late answer comes.
    check(any(" 2 calls, 0 high 1 medium" in screen for screen in seen), "no step is between the second attempt and the answer")
    for step in range(steps - 1, 0, -1):
        terminal.keys("[")
        terminal.becomes(seen[step - 1])
    terminal.keys("Space")
    terminal.shows(rf"STEP {steps}/{steps}, .* 5 calls, 2 high 0 medium")
    terminal.keys("q")
    terminal.ends(10)


@fact
def what_is_shown_is_written_into_a_file(live):
    terminal = Terminal(live, [NIGHTCLERK, "replay", record(live), "--screen"], columns=40, rows=10)
    terminal.shows("^CALLS 5$")
    terminal.keys("w")
    terminal.shows(r"^written: nightclerk-\d{8}-\d{6}.txt")
    [name] = [name for name in os.listdir(live.directory) if name.startswith("nightclerk-")]
    equal(oct(os.stat(live.path(name)).st_mode & 0o777), "0o600", "mode of the file")
    with open(live.path(name), encoding="utf-8") as file:
        lines = file.read().split("\n")
    equal([line.split()[3:5] for line in lines[7:12]],
          [["POST", "200"], ["POST", "200"], ["POST", "200"], ["GET", "404"], ["POST", "200"]], "calls")
    terminal.keys("q")
    terminal.ends(10)


@fact
def a_screen_for_a_replay_writes_no_files(live):
    terminal = Terminal(live, [NIGHTCLERK, "replay", "x", "--screen", "--events", "-"])
    contains(terminal.ends(2).replace("\n", ""), "nightclerk replay: --screen only shows", "text")
    terminal = Terminal(live, [NIGHTCLERK, "replay", "x", "--screen"])
    contains(terminal.ends(1), "cannot open x: No such file or directory", "text")


@fact
def somebody_is_told_of_a_finding(live):
    mock = live.mock()
    told = live.path("told")
    notify = f'echo "$NIGHTCLERK_SEVERITY $NIGHTCLERK_FINDING $NIGHTCLERK_TEXT" >> {told}; echo noise'
    expected = f"high dup_after_success HIGH dup_after_success: POST /v1/charges at 127.0.0.1:{mock.port}\n"

    def is_told():
        if not os.path.exists(told):
            return False
        with open(told, encoding="utf-8") as file:
            return file.read() == expected

    terminal = watch(live, "--port", str(mock.port), "--notify", notify)
    post(mock)
    post(mock)
    wait_until(is_told, "told of the finding")
    terminal.shows("^noise$")  # a message of whatever writes to standard error: in the foot
    post(mock)  # the third time of the same
    terminal.shows("3 of 3")
    terminal.keys("q")
    terminal.ends(0)
    check(is_told(), "told once")
    os.unlink(told)
    plain = live.nightclerk(["watch", "--port", str(mock.port), "--fail-on", "high", "--notify", notify])
    plain.stdout.readline()
    post(mock, "{}", "?again")
    post(mock, "{}", "?again")
    expected = expected.replace("/v1/charges at", "/v1/charges?again at")
    wait_until(is_told, "told of the finding in the plain form")
    plain.terminate()
    plain.communicate()


@fact
def no_secret_is_shown_written_or_told(live):
    mock = live.mock()
    secret = "sEcReTsEcReT"
    told = live.path("told")
    terminal = watch(live, "--port", str(mock.port), "--notify", f'env > {told}', columns=200, rows=60)
    url = mock.url.replace("http://", f"http://user:{secret}@").replace("/v1/charges", f"/bot{secret}/v1/charges")
    for _ in range(2):
        subprocess.run(["curl", "-s", "-o", "/dev/null", f"{url}?api_key={secret}&page=1", "-H", f"X-Api-Key: {secret}",
                        "-H", f"Cookie: session={secret}", "-d", f"token={secret}"], check=True, timeout=HANG_SECONDS)
    for _ in range(2):
        post(mock, f"token={secret}", f"?token={secret}&page=1")
    terminal.shows("^FINDINGS 1 .*\n")
    seen = [terminal.screen()]
    terminal.keys("w")
    terminal.shows("^written: ")
    for open_keys, what in ((["f", "Enter"], "token=~"), (["Escape", "Tab", "g", "Enter"], "Authorization, ")):
        terminal.keys(*open_keys)
        terminal.shows(f"(?s)^WHAT WAS SENT$.*{what}")
        seen.append(terminal.screen())
    contains(seen[1], "token=~", "the masked query")
    contains(seen[2], "Authorization, ", "the names of the fields")
    terminal.keys("q", "q")
    seen.append(terminal.ends(0))
    wait_until(lambda: os.path.exists(told) and os.path.getsize(told), "told of the finding")
    for name in os.listdir(live.directory):
        with open(live.path(name), encoding="utf-8") as file:
            if name != "charge_mock.jsonl":
                seen.append(file.read())
    equal([text for text in seen if secret in text], [], "a secret")


play()
