#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`run --confine`: nothing of the command leaves loopback, whatever it tries and whoever is killed."""

import errno
import fcntl
import glob
import json
import os
import signal
import socket
import subprocess

from harness import (NIGHTCLERK, bpf_objects, bpf_objects_of, check, contains, equal, fact, play, wait_for_line,
                     wait_until)

ELSEWHERE = "192.0.2.1"
ELSEWHERE_6 = "2001:db8:2::1"
OWN = "198.51.100.1"
OWN_6 = "2001:db8:1::1"
LINK_LOCAL = "fe80::1"
EPERM = errno.EPERM

# Tries what it is told to and prints one line of JSON: the errno of each, 0 where it worked.
TRY = r"""
import json, socket, sys
def tcp(family, address, protocol=0):
    with socket.socket(family, socket.SOCK_STREAM, protocol) as s:
        s.settimeout(5)
        s.connect(address)
def fast_open(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.sendto(b"x", socket.MSG_FASTOPEN, address)
def udp_send(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", address)
def udp_connect(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.connect(address)
        s.send(b"x")
def udp_flood(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        for _ in range(40000):
            try:
                s.sendto(b"x", address)
                return
            except OSError as error:
                last = error
    raise last
def mptcp(family, address):
    tcp(family, address, 262)
def attempt(how, host, port):
    try:
        globals()[how](socket.AF_INET6 if ":" in host else socket.AF_INET, (host, port))
        return 0
    except OSError as error:
        return error.errno
print(json.dumps([attempt(*each) for each in json.loads(sys.argv[1])]), flush=True)
"""


def devices():
    """Two ways out of this namespace: out4 speaks IPv4 only, so that a packet on it is one that somebody sent."""
    def ip(*words, check_it=True):
        return subprocess.run(["ip", *words], check=check_it, capture_output=True).returncode == 0

    if ip("link", "show", "out4", check_it=False):
        return
    for name, far in (("out4", "far4"), ("out6", "far6")):
        if not ip("link", "add", name, "type", "dummy", check_it=False):
            ip("link", "add", name, "type", "veth", "peer", "name", far)
            ip("link", "set", far, "up")
        ip("link", "set", name, "arp", "off")
    for setting in ("out4", "far4"):
        path = f"/proc/sys/net/ipv6/conf/{setting}/disable_ipv6"
        if os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write("1")
    ip("addr", "add", f"{OWN}/24", "dev", "out4")
    ip("addr", "add", f"{OWN_6}/64", "dev", "out6", "nodad")
    ip("addr", "add", f"{LINK_LOCAL}/64", "dev", "out6", "nodad")
    ip("link", "set", "out4", "up")
    ip("link", "set", "out6", "up")
    ip("route", "add", "192.0.2.0/24", "dev", "out4")
    ip("route", "add", "2001:db8:2::/64", "dev", "out6")


def sent_packets():
    """What the kernel has handed to the device, as its counter has it."""
    text = subprocess.run(["ip", "-s", "-j", "link", "show", "out4"], check=True, capture_output=True).stdout
    return json.loads(text)[0]["stats64"]["tx"]["packets"]


def unified():
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        return next(line.split()[1] for line in mounts if line.split()[2] == "cgroup2")


def cgroups():
    """The cgroups of nightclerk that there are now."""
    return set(glob.glob(f"{unified()}/**/nightclerk-confine-*", recursive=True))


def await_end(cgroup):
    """Until no process lives in it."""
    with open(f"{cgroup}/cgroup.events", encoding="utf-8") as events:
        wait_until(lambda: events.seek(0) == 0 and "populated 0" in events.read(), "everything in it has ended")


def tries(live, *each):
    return ["/usr/bin/python3", live.write("try.py", TRY), json.dumps(each)]


def refused(result):
    return [(event["comm"], event["dst"], event["refused"]) for event in result.of_kind("off_loopback")]


@fact
def a_connection_off_loopback_is_refused_and_a_high_finding(live):
    devices()
    before, there = sent_packets(), cgroups()
    result = live.run(["curl", "-sS", "-m", "20", f"http://{ELSEWHERE}/"], ["--confine"]).expect(10)
    equal(sent_packets(), before, "packets that left")
    equal(refused(result), [("curl", "192.0.2.1:80", True)], "off_loopback events")
    equal(result.summary["command_status"], 7, "curl's own status: it could not connect")
    equal(result.summary["findings"], {"off_loopback": 1}, "findings")
    equal(result.of_kind("start")[0]["scope"], "tree, confined", "scope")
    contains(result.stderr, "nightclerk: HIGH off_loopback: curl (pid ", "stderr")
    contains(result.stderr, ") tried to connect to 192.0.2.1:80 and was refused; next: point the program at a local",
             "stderr")
    equal(cgroups(), there, "cgroups of nightclerk")


@fact
def without_confine_it_leaves_and_is_only_told(live):
    devices()
    before = sent_packets()
    result = live.run(["sh", "-c", f"curl -s -m 2 http://{ELSEWHERE}/; exit 0"]).expect(0)
    check(sent_packets() > before, "no packet left: the counter does not count")
    equal(refused(result), [("curl", "192.0.2.1:80", False)], "off_loopback events")
    check("off_loopback" not in result.stderr, f"an alert for what is only told\n{result.stderr}")


@fact
def fail_on_high_lets_no_refusal_pass(live):
    devices()
    command = ["curl", "-s", f"http://{ELSEWHERE}/"]
    live.run(command, ["--confine", "--fail-on", "high"]).expect(10)
    quiet = live.run(command, ["--confine", "--quiet"], replay=False).expect(10)
    check("curl" not in quiet.stderr, f"--quiet speaks\n{quiet.stderr}")


@fact
def calls_over_loopback_in_the_same_run_are_unharmed(live):
    devices()
    mock = live.mock()
    post = f"curl -s -o /dev/null {mock.url} -d"
    result = live.run(["sh", "-c", f"{post} a=1; curl -s http://{ELSEWHERE}/; {post} a=2"], ["--confine"]).expect(10)
    equal([line["path"] for line in result.ledger], ["/v1/charges"] * 2, "ledger")
    equal(len(mock.log), 2, "requests that reached the server")
    equal(len(refused(result)), 1, "off_loopback events")
    check("/nightclerk-confine-" in result.ledger[0]["cgroup"], f"cgroup {result.ledger[0]['cgroup']}")
    live.run(["sh", "-c", f"{post} a=3"], ["--confine"]).expect(0)


@fact
def every_way_out_is_refused(live):
    devices()
    each = [[how, host, 80] for how in ("tcp", "fast_open", "udp_send", "udp_connect")
            for host in (ELSEWHERE, f"::ffff:{ELSEWHERE}", ELSEWHERE_6)]
    before = sent_packets()
    result = live.run(tries(live, *each), ["--confine"]).expect(10)
    equal(json.loads(result.stdout), [EPERM] * len(each), f"errno of each of {each}")
    equal(sent_packets(), before, "packets that left")
    dst = {ELSEWHERE: "192.0.2.1:80", f"::ffff:{ELSEWHERE}": "192.0.2.1:80", ELSEWHERE_6: "[2001:db8:2::1]:80"}
    equal(refused(result), [("python3", dst[host], True) for _, host, _ in each], "off_loopback events")
    contains(result.stderr, "tried to connect to 192.0.2.1:80 and was refused, 4 times;", "stderr")
    contains(result.stderr, "tried to reach [2001:db8:2::1]:80 over UDP and was refused, 2 times;", "stderr")


@fact
def multipath_tcp_is_refused_too(live):
    devices()
    if not os.path.exists("/proc/sys/net/mptcp/enabled"):
        return
    before = sent_packets()
    result = live.run(tries(live, ["mptcp", ELSEWHERE, 80], ["mptcp", ELSEWHERE_6, 80]), ["--confine"]).expect(10)
    equal(json.loads(result.stdout), [EPERM, EPERM], "errno")
    equal(sent_packets(), before, "packets that left")


@fact
def loopback_in_every_spelling_is_allowed(live):
    devices()
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64) as server:
        port = server.getsockname()[1]
        hosts = ["127.0.0.1", "127.9.8.7", "0.0.0.0", OWN, "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0",
                 f"::ffff:{OWN}", OWN_6]
        each = [["tcp", host, port] for host in hosts]
        result = live.run(tries(live, *each), ["--confine", "--allow-blind", "other"]).expect(0)
    equal(json.loads(result.stdout), [0] * len(each), f"errno of each of {each}")
    equal(refused(result), [], "off_loopback events")
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as server:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind(("::", 0))
        port = server.getsockname()[1]
        each = [[how, host, port] for how in ("udp_send", "udp_connect") for host in hosts]
        result = live.run(tries(live, *each), ["--confine"]).expect(0)
    equal(json.loads(result.stdout), [0] * len(each), f"errno of each of {each}")


@fact
def an_own_address_that_another_machine_may_have_too_is_no_loopback(live):
    devices()
    result = live.run(tries(live, ["tcp", f"{LINK_LOCAL}%out6", 80]), ["--confine"]).expect(10)
    equal(json.loads(result.stdout), [EPERM], "errno")
    equal(refused(result), [("python3", "[fe80::1]:80", True)], "off_loopback events")


@fact
def children_daemons_and_other_namespaces_are_confined(live):
    devices()
    script = " ".join(f"'{word}'" for word in tries(live, ["tcp", ELSEWHERE, 80]))
    # In a namespace without a route the kernel alone would say ENETUNREACH.
    command = (f"({script}); setsid -w {script}; unshare --net {script}; unshare --cgroup {script}; "
               f"unshare --pid --fork {script}; unshare --user {script}")
    result = live.run(["sh", "-c", command], ["--confine"]).expect(10)
    equal(result.stdout.decode(), f"[{EPERM}]\n" * 6, "errno of each")
    equal(len(refused(result)), 6, "off_loopback events")


@fact
def another_user_is_confined_too(live):
    devices()
    os.chmod(live.directory, 0o777)
    result = live.run(tries(live, ["tcp", ELSEWHERE, 80]), ["--confine", "--user", "nobody"], replay=False).expect(10)
    equal(json.loads(result.stdout), [EPERM], "errno")


@fact
def inside_a_confined_run_both_say_no_and_both_say_so(live):
    devices()
    there = cgroups()
    inner = [NIGHTCLERK, "run", "--confine", "--ledger", live.path("inner.jsonl"), "--events",
             live.path("inner-events.jsonl"), "--", "curl", "-s", f"http://{ELSEWHERE}/"]
    result = live.run(inner, ["--confine"]).expect(10)
    equal(result.summary["command_status"], 10, "status of the inner one")
    equal(len(refused(result)), 1, "off_loopback events of the outer one")
    equal(cgroups(), there, "cgroups of nightclerk")


WAITER = "echo up; read go; {tries}; echo over; read go; {tries}; exit 3"


def start_waiter(live, options=("--confine",)):
    """A confined command that tries to get out each time it reads a line."""
    words = " ".join(f"'{word}'" for word in tries(live, ["tcp", ELSEWHERE, 80]))
    process = live.nightclerk(live.run_arguments(["sh", "-c", WAITER.format(tries=words)], options),
                              stdin=subprocess.PIPE)
    equal(wait_for_line(process, "the command"), "up", "its line")
    return process


@fact
def nothing_is_left_after_a_clean_end(live):
    devices()
    there = cgroups()
    process = start_waiter(live)
    objects = bpf_objects_of(process.pid)
    own = cgroups() - there
    equal(len(own), 1, "cgroups of this run")
    shown = subprocess.run(["bpftool", "-j", "cgroup", "show", own.pop()], check=True, capture_output=True).stdout
    equal(len(json.loads(shown)), 4, "programs on it")
    programs = {("prog", str(program["id"])) for program in json.loads(shown)}
    check(programs <= objects, "they are not nightclerk's own")
    live.finish(process, b"\n\n").expect(10)
    equal(cgroups(), there, "cgroups of nightclerk")
    wait_until(lambda: not objects & bpf_objects(), f"{len(objects)} objects are gone")


@fact
def nothing_is_left_after_a_command_that_cannot_be_started(live):
    there = cgroups()
    live.run(["no-such-command-anywhere"], ["--confine"], replay=False).expect(127)
    live.run([live.write("plain", "not a program\n")], ["--confine"], replay=False).expect(126)
    equal(cgroups(), there, "cgroups of nightclerk")


@fact
def what_a_killed_nightclerk_leaves_is_confined_until_it_ends(live):
    devices()
    before, there = sent_packets(), cgroups()
    process = start_waiter(live)
    own = (cgroups() - there).pop()
    process.kill()
    process.wait()
    process.stdin.write(b"\n")
    equal(wait_for_line(process, "the command"), f"[{EPERM}]", "errno after the kill")
    equal(wait_for_line(process, "the command"), "over", "its line")

    other = live.run(["true"], replay=False).expect(0)
    check("left behind" not in other.stderr, f"it was not empty\n{other.stderr}")
    process.stdin.write(b"\n")
    equal(wait_for_line(process, "the command"), f"[{EPERM}]", "errno after the next start")
    await_end(own)
    check(os.path.isdir(own), "the cgroup went by itself")

    other = live.run(["true"], replay=False).expect(0)
    contains(other.stderr, "nightclerk: removed 1 cgroup that an earlier run left behind", "stderr")
    equal(cgroups(), there, "cgroups of nightclerk")
    equal(sent_packets(), before, "packets that left")


@fact
def a_ring_that_nobody_reads_any_more_opens_no_door(live):
    devices()
    before, there = sent_packets(), cgroups()
    words = " ".join(f"'{word}'" for word in tries(live, ["udp_flood", ELSEWHERE, 9], ["udp_flood", ELSEWHERE_6, 9]))
    process = live.nightclerk(live.run_arguments(["sh", "-c", f"echo up; read go; {words}"], ["--confine"]),
                              stdin=subprocess.PIPE)
    equal(wait_for_line(process, "the command"), "up", "its line")
    own = (cgroups() - there).pop()
    process.kill()
    process.wait()
    process.stdin.write(b"\n")
    equal(wait_for_line(process, "the command"), f"[{EPERM}, {EPERM}]", "errno of 80,000 tries, more than the ring holds")
    equal(sent_packets(), before, "packets that left")
    await_end(own)
    live.run(["true"], replay=False).expect(0)
    equal(cgroups(), there, "cgroups of nightclerk")


@fact
def what_the_command_leaves_running_stays_confined(live):
    devices()
    before, there = sent_packets(), cgroups()
    fifo = live.path("fifo")
    os.mkfifo(fifo)
    words = " ".join(f"'{word}'" for word in tries(live, ["tcp", ELSEWHERE, 80]))
    daemon = live.write("daemon.sh", f"read go <{fifo}; {words} >{live.path('errno')}; read go <{fifo}\n")
    result = live.run(["sh", "-c", f"setsid sh {daemon} </dev/null >/dev/null 2>&1 &"], ["--confine"]).expect(0)
    own = cgroups() - there
    equal(len(own), 1, "cgroups of nightclerk")
    own = own.pop()
    contains(result.stderr, "nightclerk: what the command left running stays confined; the cgroup goes with the first "
             f"start of nightclerk after it has ended: {own}\n", "stderr")

    with open(fifo, "w", encoding="utf-8") as file:
        file.write("\n")
    wait_until(lambda: os.path.exists(live.path("errno")) and os.path.getsize(live.path("errno")), "it has tried")
    with open(live.path("errno"), encoding="utf-8") as file:
        equal(file.read(), f"[{EPERM}]\n", "errno after the run")
    live.run(["true"], replay=False).expect(0)
    check(os.path.isdir(own), "the cgroup of a living process is gone")
    with open(fifo, "w", encoding="utf-8") as file:
        file.write("\n")
    await_end(own)
    live.run(["true"], replay=False).expect(0)
    equal(cgroups(), there, "cgroups of nightclerk")
    equal(sent_packets(), before, "packets that left")


@fact
def a_start_removes_only_what_nobody_holds_and_nobody_lives_in(live):
    root, there = unified(), cgroups()
    held, left, other = (f"{root}/{name}-{os.getpid()}" for name in
                         ("nightclerk-confine-held", "nightclerk-confine-left", "nightclerk-test-other"))
    made = [held, left, f"{left}/made-by-the-command", other]
    for path in made:
        os.mkdir(path)
    try:
        lock = os.open(held, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = live.run(["true"], replay=False).expect(0)
        contains(result.stderr, "removed 1 cgroup that", "stderr")
        equal([os.path.isdir(path) for path in made], [True, False, False, True], "what is there")
        os.close(lock)
        live.run(["true"], replay=False).expect(0)
        equal([os.path.isdir(path) for path in made], [False, False, False, True], "what is there")
    finally:
        for path in reversed(made):
            if os.path.isdir(path):
                os.rmdir(path)
    equal(cgroups(), there, "cgroups of nightclerk")


@fact
def where_it_cannot_confine_it_does_not_start_the_command(live):
    there, root = cgroups(), unified()
    mark = live.path("started")
    arguments = " ".join([NIGHTCLERK, *live.run_arguments(["touch", mark], ["--confine"])])
    for breakage, reason in (
            (f"umount {root}", "there is no cgroup v2 here: mount -t cgroup2 none "),
            (f"mount -o remount,bind,ro {root}", "Read-only file system: run as root where that is writable")):
        process = live.start(["unshare", "--mount", "sh", "-c", f"{breakage} && exec {arguments}"],
                             stderr=subprocess.PIPE)
        result = live.finish(process).expect(125)
        contains(result.stderr, "nightclerk: --confine: ", "stderr")
        contains(result.stderr, reason, "stderr")
        contains(result.stderr, "; the command was not started\n", "stderr")
    process = live.start(["setpriv", "--bounding-set", "-net_admin,-sys_admin", NIGHTCLERK,
                          *live.run_arguments(["touch", mark], ["--confine"])], stderr=subprocess.PIPE)
    result = live.finish(process).expect(125)
    # Where the probe itself wants CAP_SYS_ADMIN, it is the first to say so.
    check("CAP_PERFMON and CAP_NET_ADMIN: run as root" in result.stderr or "run as root or with sudo" in result.stderr,
          f"stderr\n{result.stderr}")
    check(not os.path.exists(mark), "the command ran")
    equal(cgroups(), there, "cgroups of nightclerk")


@fact
def a_terminated_run_leaves_nothing(live):
    there = cgroups()
    process = live.nightclerk(live.run_arguments(["sh", "-c", "echo up; exec sleep 1000"], ["--confine"]))
    equal(wait_for_line(process, "the command"), "up", "its line")
    process.send_signal(signal.SIGTERM)
    live.finish(process).expect(143)
    equal(cgroups(), there, "cgroups of nightclerk")


@fact
def watch_has_no_confine(live):
    process = live.nightclerk(["watch", "--confine", "--", "true"])
    equal(live.finish(process).status, 2, "exit status")


play()
