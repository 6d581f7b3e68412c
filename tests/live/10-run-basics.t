#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`nightclerk run`: the command is left alone, and the exit status says what the wire saw."""

import os
import signal
import socket
import stat

from harness import HANG_SECONDS, check, contains, equal, fact, play, wait_for_line, wait_until

LEDGER_KEYS = (
    "t path len sha idem method query host id run schema class class_by fingerprint prompt_fingerprint "
    "principal sha_raw canon canon_why idem_from request_complete holes mark pid tid ns_pid start_ns comm uid "
    "cgroup netns src dst server_pid server_comm retry_hint tool model t_first escaped why"
).split()


def curl(url, body=None):
    return f"curl -s -o /dev/null {url}" + (f" -d '{body}'" if body is not None else "")


@fact
def passes_an_exit_status_on(live):
    live.run(["sh", "-c", "exit 7"]).expect(7)
    live.run(["true"]).expect(0)


@fact
def reports_a_signal_as_a_shell_does(live):
    live.run(["sh", "-c", "kill -TERM $$"]).expect(143)
    live.run(["sh", "-c", "kill -KILL $$"]).expect(137)


@fact
def a_command_that_is_not_there_is_127(live):
    result = live.run(["no-such-command-anywhere"]).expect(127)
    contains(result.stderr, "no-such-command-anywhere", "stderr")


@fact
def a_command_that_cannot_be_executed_is_126(live):
    live.run([live.write("plain", "not a program\n")]).expect(126)


@fact
def leaves_stdin_and_stdout_alone(live):
    given = bytes(range(256)) * 1000
    equal(live.run(["cat"], given=given).expect(0).stdout, given, "stdout of cat")


@fact
def leaves_the_environment_arguments_and_directory_alone(live):
    result = live.run(["sh", "-c", 'printf "%s|" "$@" "$PWD" "$MARK"', "sh", "a b", "", "--quiet"],
                      env={**os.environ, "MARK": "kept"}).expect(0)
    equal(result.stdout.decode(), f"a b||--quiet|{live.directory}|kept|", "what the command saw")


@fact
def gives_the_command_no_descriptor_of_its_own(live):
    result = live.run(["sh", "-c", "ls -1 /proc/self/fd | wc -l"]).expect(0)
    bare = live.start(["sh", "-c", "ls -1 /proc/self/fd | wc -l"]).communicate()[0]
    equal(result.stdout, bare, "descriptors that a command has")


@fact
def keeps_the_signal_mask_and_ignored_signals_of_its_caller(live):
    def shield():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

    command = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"]
    bare = live.start(command, preexec_fn=shield, restore_signals=False).communicate()[0]
    result = live.run(command, preexec_fn=shield, restore_signals=False).expect(0)
    equal(result.stdout, bare, "signals of the command")


@fact
def two_equal_posts_of_two_processes_are_a_finding(live):
    mock = live.mock()
    post = curl(mock.url, "amount=5")
    result = live.run(["sh", "-c", f"{post}; {post}"]).expect(10)
    equal([(f, s) for f, s, _ in result.findings()], [("dup_after_success", "high")], "findings")
    finding = result.of_kind("finding")[0]
    equal(finding["cross_process"], True, "cross_process")
    equal((finding["attempt"], finding["attempts"]), (2, 2), "attempt of attempts")
    first, second = result.ledger
    equal((finding["earlier"], finding["of"]), (first["id"], second["id"]), "the pair")
    check(first["pid"] != second["pid"], "both lines name one pid")
    equal((first["comm"], second["comm"]), ("curl", "curl"), "comm")
    equal(result.summary["command_status"], 0, "command_status")
    equal(result.summary["exit"], 10, "exit")
    contains(result.stderr, "dup_after_success", "the alert on stderr")


@fact
def two_equal_gets_are_not(live):
    mock = live.mock()
    get = curl(mock.url)
    result = live.run(["sh", "-c", f"{get}; {get}"]).expect(0)
    equal(result.findings("info"), [], "findings")
    equal([line["method"] for line in result.ledger], ["GET", "GET"], "methods")


@fact
def two_posts_with_other_bodies_are_not(live):
    mock = live.mock()
    result = live.run(["sh", "-c", f"{curl(mock.url, 'a=1')}; {curl(mock.url, 'a=2')}"]).expect(0)
    equal(result.findings("info"), [], "findings")


@fact
def a_finding_outranks_the_command_s_own_status(live):
    mock = live.mock()
    post = curl(mock.url, "amount=5")
    result = live.run(["sh", "-c", f"{post}; {post}; exit 3"]).expect(10)
    equal((result.summary["command_status"], result.summary["exit"]), (3, 10), "both statuses")


@fact
def fail_on_moves_the_bar(live):
    mock = live.mock()
    put = f"curl -s -o /dev/null -X PUT {mock.url} -d a=1"
    live.run(["sh", "-c", f"{put}; {put}; exit 5"]).expect(5)
    post = curl(mock.url, "amount=5")
    live.run(["sh", "-c", f"{post}; {post}; exit 5"], ["--fail-on", "high"]).expect(10)


@fact
def a_key_makes_the_repeat_allowed_and_is_in_the_ledger(live):
    mock = live.mock()
    post = curl(mock.url, "amount=5") + " -H 'Idempotency-Key: k-1'"
    result = live.run(["sh", "-c", f"{post}; {post}"]).expect(0)
    equal([line["idem"] for line in result.ledger], ["k-1", "k-1"], "keys")
    equal([(f, s) for f, s, _ in result.findings("info")], [("retry_after_success", "low")], "findings")


@fact
def a_ledger_line_has_the_documented_keys_in_order(live):
    mock = live.mock()
    result = live.run(["sh", "-c", curl(mock.url + "?a=1", "amount=5")]).expect(0)
    line = result.ledger[0]
    equal(list(line), LEDGER_KEYS, "keys")
    equal(line["path"], "/v1/charges", "path")
    equal(line["query"], "a=1", "query")
    equal(line["host"], f"127.0.0.1:{mock.port}", "host")
    equal(line["dst"], f"127.0.0.1:{mock.port}", "dst")
    equal((line["method"], line["len"], line["idem"]), ("POST", 8, None), "method, len, idem")
    equal((line["schema"], line["class"], line["canon"]), (1, "mutating", "form"), "schema, class, canon")
    equal((line["request_complete"], line["holes"], line["uid"]), (True, 0, 0), "complete, holes, uid")
    equal(line["netns"], os.stat("/proc/self/ns/net").st_ino, "netns")
    equal(stat.S_IMODE(os.stat(result.ledger_path).st_mode), 0o600, "mode of the ledger")


@fact
def names_the_server_once_it_has_answered_on_the_connection(live):
    mock = live.mock()
    url = mock.url
    ledger = live.run(["curl", "-s", "-d", "a=1", url + "?1", url + "?2"]).expect(0).ledger
    equal(ledger[0]["src"], ledger[1]["src"], "the connection of both")
    check(ledger[0]["server_pid"] in (None, mock.process.pid), "server_pid before any answer")
    equal((ledger[1]["server_pid"], ledger[1]["server_comm"]), (mock.process.pid, "charge-mock"), "the server")


@fact
def appends_to_a_ledger_that_is_there(live):
    mock = live.mock()
    for body in ("a=1", "a=2"):
        live.finish(live.nightclerk(live.run_arguments(["sh", "-c", curl(mock.url, body)]))).expect(0)
    ledger = live.path("call_ledger.jsonl")
    with open(ledger, encoding="utf-8") as file:
        equal(len(file.readlines()), 2, "lines of two runs")


@fact
def the_default_ledger_is_in_the_current_directory(live):
    mock = live.mock()
    live.finish(live.nightclerk(["run", "--", "sh", "-c", curl(mock.url, "a=1")])).expect(0)
    with open(live.path("call_ledger.jsonl"), encoding="utf-8") as file:
        equal(len(file.readlines()), 1, "lines")


@fact
def sees_every_descendant(live):
    mock = live.mock()
    deep = f"sh -c \"sh -c '({curl(mock.url)} -d a=1)'\""
    daemon = f"setsid sh -c '{curl(mock.url)} -d a=2'"
    result = live.run(["sh", "-c", f"{deep} & wait; {daemon} & wait"]).expect(0)
    equal(len(result.ledger), 2, "lines")


@fact
def sees_ipv6_and_mapped_loopback(live):
    script = live.write("six.py", """
import http.client, http.server, socket, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *a): pass
class Server(http.server.HTTPServer):
    address_family = socket.AF_INET6
    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()
server = Server(("::", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
port = server.server_address[1]
for host in ("::1", "::ffff:127.0.0.1", "127.0.0.9"):
    connection = http.client.HTTPConnection(host, port)
    connection.request("POST", "/" + host, b"x=" + host.encode())
    connection.getresponse().read()
    connection.close()
""")
    result = live.run(["/usr/bin/python3", script]).expect(0)
    equal([line["path"] for line in result.ledger], ["/::1", "/::ffff:127.0.0.1", "/127.0.0.9"], "paths")
    check(result.ledger[0]["dst"].startswith("[::1]:"), "dst of ::1")
    check(result.ledger[1]["dst"].startswith("127.0.0.1:"), "dst of the mapped address")


@fact
def inside_a_pid_namespace_the_cgroup_is_named(live):
    """The process ids of the kernel are no ids there, or those of others."""
    mock = live.mock()
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = [line[3:].rstrip("\n") for line in file if line.startswith("0::")]
    for prefix in ([], ["unshare", "--pid", "--fork", "--mount-proc"]):
        result = live.run(["curl", "-s", "-o", "/dev/null", mock.url, "-d", "a=1"], prefix=prefix).expect(0)
        equal([row["cgroup"] for row in result.ledger], own, "cgroups")


@fact
def wrong_usage_is_125_and_starts_nothing(live):
    marker = live.path("marker")
    for options in (["--nonsense"], ["--fail-on", "severe"], ["--allow-blind", "nothing"], ["--linger", "x"],
                    ["--ring-size", "1x"]):
        process = live.nightclerk(["run", *options, "--", "touch", marker])
        live.finish(process).expect(125)
    live.finish(live.nightclerk(["run"])).expect(125)
    check(not os.path.exists(marker), "the command was started")


@fact
def without_privileges_it_says_which_are_missing_and_starts_nothing(live):
    os.chmod(live.directory, 0o777)
    marker = live.path("marker")
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps", "-all"]
    result = live.run(["touch", marker], prefix=nobody).expect(125)
    contains(result.stderr, "CAP_BPF", "stderr")
    contains(result.stderr, "CAP_PERFMON", "stderr")
    check(not os.path.exists(marker), "the command was started")


@fact
def the_canary_leaves_no_trace_in_ledger_or_findings(live):
    result = live.run(["true"]).expect(0)
    equal(result.ledger, [], "ledger")
    equal([event["kind"] for event in result.events], ["start", "summary"], "events")
    equal(result.events[0]["canary"], "seen", "canary")
    equal(result.summary["bytes"], {"accepted": 0, "in_messages": 0, "in_holes": 0, "in_blind": 0}, "bytes")


GIVEN_UP = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"POST /charges HTTP/1.1\\r\\nHost: h\\r\\nContent-Length: 2\\r\\n\\r\\nhi")
"""


@fact
def a_signal_after_the_command_ends_the_linger(live):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(HANG_SECONDS)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            command = ["/usr/bin/python3", "-c", GIVEN_UP, str(silent.getsockname()[1])]
            process = live.nightclerk(live.run_arguments(command, ["--linger", "3600"]))
            connection, _ = silent.accept()
            with connection:
                children = f"/proc/{process.pid}/task/{process.pid}/children"
                wait_until(lambda path=children: not open(path, encoding="ascii").read(), "the command was reaped")
                process.send_signal(number)
                result = live.finish(process).expect(0)
            equal(result.summary["command_status"], 0, "the command's own status")
            os.unlink(result.events_path)


@fact
def a_command_that_ended_before_the_probes_were_on_is_no_survivor(live):
    process = live.nightclerk(live.run_arguments(["sleep", "3600"]))
    children = f"/proc/{process.pid}/task/{process.pid}/children"

    def held():
        with open(children, encoding="ascii") as file:
            return file.read().split()

    wait_until(held, "the command is held")
    os.kill(int(held()[0]), signal.SIGKILL)
    equal(live.finish(process).expect(137).summary["survivors"], [], "survivors")


TRAPS = """
sleep 3600 &
for pair in USR1:41 USR2:42 ALRM:43; do trap "kill $!; exit ${pair#*:}" ${pair%:*}; done
echo ready
wait
"""


@fact
def signals_for_the_command_reach_it(live):
    for number, status in ((signal.SIGUSR1, 41), (signal.SIGUSR2, 42), (signal.SIGALRM, 43)):
        process = live.nightclerk(live.run_arguments(["sh", "-c", TRAPS]))
        equal(wait_for_line(process, "the command"), "ready", "its line")
        process.send_signal(number)
        live.finish(process).expect(status)


@fact
def a_file_at_its_limit_is_a_full_disk(live):
    mock = live.mock()
    ledger = live.path("limited")
    command = "; ".join(curl(mock.url, f"n={number}") for number in range(12))
    process = live.nightclerk(["run", "--ledger", ledger, "--", "sh", "-c", command], prefix=["prlimit", "--fsize=4096"])
    _, err = process.communicate(timeout=HANG_SECONDS)
    equal(process.returncode, 11, "status")
    contains(err.decode(), f"cannot write {ledger}: File too large", "stderr")
    equal(os.path.getsize(ledger), 4096, "bytes written")


play()
