#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the surroundings take away: the missing thing and the remedy in one line, 125, and nothing is started."""

import errno
import os
import platform
import subprocess

from harness import check, equal, fact, play, wait_for_line

# Forbids one system call to what it executes, as the profile of a container does.
WITHOUT = """
import ctypes, os, struct, sys

number, error = int(sys.argv[1]), int(sys.argv[2])
load, jump_if_equal, give = 0x20, 0x15, 0x06
steps = [(load, 0, 0, 0), (jump_if_equal, 0, 1, number), (give, 0, 0, 0x00050000 | error), (give, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
prctl = ctypes.CDLL(None, use_errno=True).prctl
prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong]
if prctl(38, 1, None, 0, 0) or prctl(22, 2, program, 0, 0):
    sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[3], sys.argv[3:])
"""
SYSTEM_CALLS = {"x86_64": {"bpf": 321, "wait4": 61, "signalfd4": 289, "openat2": 437},
                "aarch64": {"bpf": 280, "wait4": 260, "signalfd4": 74, "openat2": 437}}[platform.machine()]


def refused(live, prefix, line):
    marker = live.path("marker")
    result = live.run(["touch", marker], prefix=prefix).expect(125)
    lines = [text for text in result.stderr.splitlines() if "will hold request" not in text]
    equal(lines, [f"nightclerk: {line}; the command was not started"], "stderr")
    check(not os.path.exists(marker), "the command was started")


def without_call(live, name, error=errno.EPERM):
    return ["/usr/bin/python3", live.write("without.py", WITHOUT), str(SYSTEM_CALLS[name]), str(error)]


def without_capabilities(*names):
    change = ",".join(f"-{name}" for name in names)
    return ["setpriv", "--inh-caps", change, "--bounding-set", change]


@fact
def without_one_capability_it_names_that_one(live):
    refused(live, without_capabilities("perfmon", "sys_admin"), "needs CAP_PERFMON: run as root or with sudo")
    refused(live, without_capabilities("bpf", "sys_admin"), "needs CAP_BPF: run as root or with sudo")


@fact
def without_both_it_names_both(live):
    refused(live, without_capabilities("bpf", "perfmon", "sys_admin"),
            "needs CAP_BPF and CAP_PERFMON: run as root or with sudo")


@fact
def with_both_it_works_without_cap_sys_admin_or_says_what_asks_for_it(live):
    prefix = without_capabilities("sys_admin")
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
        strict = int(file.read()) > 2  # a level of Debian's, which asks for it on 5.10 and not on 6.1
    result = live.run(["true"], prefix=prefix)
    if result.status == 125 and strict:
        refused(live, prefix, "kernel.perf_event_paranoid is above 2, which takes CAP_SYS_ADMIN: run as root or with "
                              "sudo, or set it to 2")
    else:
        result.expect(0)


@fact
def a_seccomp_filter_on_bpf_is_named(live):
    refused(live, without_call(live, "bpf"), "a seccomp filter forbids bpf(2) or perf_event_open(2): let the "
                                             "container's profile allow them")


@fact
def without_a_call_that_a_run_rests_on_it_does_not_hang(live):
    refused(live, without_call(live, "wait4"), "cannot wait for the command: Operation not permitted")
    refused(live, without_call(live, "signalfd4"), "cannot take signals: Operation not permitted")


@fact
def an_audit_that_may_not_open_paths_without_links_says_what_takes_that_away(live):
    process = live.nightclerk(["audit", "--netns-only", "--directory", live.path("audit")], without_call(live, "openat2", errno.ENOSYS))
    result = live.finish(process)
    equal((result.status, result.stderr),
          (1, f"nightclerk: cannot use {live.path('audit')}: Function not implemented; openat2(2) is refused here: let the filter of "
                "the service or container allow it (RestrictSUIDSGID=yes of a unit takes it away)\n"), "status and stderr")


@fact
def a_kernel_without_btf_is_named(live):
    prefix = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh"]
    refused(live, prefix, "kernel has no BTF (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF")


@fact
def limits_that_are_too_low_are_named(live):
    refused(live, ["prlimit", "--nofile=52"], "52 open files are allowed, and 128 are needed: raise the limit (ulimit -n)")
    refused(live, ["prlimit", "--as=20000000"], "19 MiB of address space are allowed, and 256 are needed: raise the limit "
                                                "(ulimit -v), or give a smaller --ring-size")


@fact
def a_soft_limit_is_raised_and_the_command_keeps_its_own(live):
    result = live.run(["sh", "-c", "ulimit -Sn; ulimit -Sv"], prefix=["prlimit", "--nofile=20:4096", "--as=40000000:4000000000"])
    equal(result.expect(0).stdout, b"20\n39062\n", "the command's limits")


POSTS = """
import sys, urllib.request
print("ready", flush=True)
sys.stdin.readline()
for n in range(100):
    urllib.request.urlopen(sys.argv[1], f'{{"{sys.argv[2]}": {n}}}'.encode()).read()
"""


@fact
def two_at_once_see_each_its_own(live):
    mock = live.mock()
    script = live.write("posts.py", POSTS)
    runs = []
    for name in ("one", "other"):
        arguments = ["run", "--ledger", live.path(f"{name}.jsonl"), "--", "/usr/bin/python3", script, mock.url, name]
        runs.append((name, live.nightclerk(arguments, stdin=subprocess.PIPE)))
    for _, process in runs:
        equal(wait_for_line(process, "the command"), "ready", "its line")
    for _, process in runs:
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for name, process in runs:
        result = live.finish(process, ledger=f"{name}.jsonl").expect(0)
        bodies = {line["len"] for line in result.ledger}
        equal(len(result.ledger), 100, f"lines of {name}")
        equal(bodies, {len(f'{{"{name}": {n}}}') for n in range(100)}, f"lengths of {name}")
    equal(len(mock.log), 200, "requests that reached the server")


play()
