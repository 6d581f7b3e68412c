#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`mark`, `sync` and the README's examples, from inside a run."""

import os
import re
import socket
import subprocess

from harness import BUILD, NIGHTCLERK, ROOT, check, contains, equal, fact, play, read_lines

# The full count of the acceptance test takes minutes: NIGHTCLERK_REPEATS=50.
REPEATS = int(os.environ.get("NIGHTCLERK_REPEATS", "3"))

AT_MOST_ONE = """
import json, os, subprocess, urllib.request

def test_charges_once():
    for _ in range(int(os.environ["POSTS"])):
        urllib.request.urlopen(os.environ["CHARGES"], b'{"amount": 1}').read()
    subprocess.run(["nightclerk", "sync"], check=True)
    assert len([r for r in map(json.loads, open("call_ledger.jsonl")) if r["path"] == "/v1/charges"]) <= 1
"""

TWO_EQUAL_TESTS = """
import os, urllib.request

def post():
    urllib.request.urlopen(os.environ["CHARGES"], b'{"amount": 1}').read()

def test_one():
    post()

def test_other():
    post()
"""

PYTEST = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def readme_example(language, holding):
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        blocks = re.findall(rf"```{language}\n(.*?)```", file.read(), re.S)
    found = [block for block in blocks if holding in block]
    equal(len(found), 1, f"README examples in {language} that hold {holding!r}")
    return found[0]


def inside(live, mock, **more):
    """The environment of a watched command that finds nightclerk on its PATH."""
    return dict(os.environ, PATH=f"{BUILD}:{os.environ['PATH']}", CHARGES=mock.url, URL=mock.url,
                HOME=live.directory, **more)


def fresh(live, number):
    path = live.path(f"run{number}")
    os.mkdir(path)
    return path


@fact
def a_test_reads_the_ledger_right_after_a_call(live):
    mock = live.mock()
    for number in range(REPEATS):
        for posts, status in (("1", 0), ("2", 1)):
            directory = fresh(live, f"{number}-{posts}")
            with open(os.path.join(directory, "test_once.py"), "w", encoding="utf-8") as file:
                file.write(AT_MOST_ONE)
            done = subprocess.run(
                [NIGHTCLERK, "run", "--fail-on", "high", "--quiet", "--", *PYTEST, "test_once.py"], cwd=directory,
                env=inside(live, mock, POSTS=posts), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                check=False)
            # Two posts: pytest fails (1), and the gate says why (10).
            equal(done.returncode, status and 10, f"{posts} posts: {done.stdout.decode()}")
            contains(done.stdout.decode(), "1 failed" if status else "1 passed", "pytest")


@fact
def two_tests_with_equal_bodies_are_a_finding(live):
    mock = live.mock()
    test = live.write("test_two.py", TWO_EQUAL_TESTS)
    live.run([*PYTEST, test], env=inside(live, mock)).expect(10)
    equal(len(mock.log), 2, "charges")


@fact
def the_readme_s_fixture_gives_each_test_its_own_window(live):
    mock = live.mock()
    test = live.write("test_two.py", TWO_EQUAL_TESTS)
    live.write("conftest.py", readme_example("python", "autouse"))
    result = live.run([*PYTEST, test], env=inside(live, mock)).expect(0)
    equal([row["mark"] for row in result.ledger], ["test_one", "test_other"], "marks")
    equal([event["label"] for event in result.of_kind("mark")], ["test_one", "test_other"], "mark events")
    equal(result.findings(), [], "findings")


@fact
def the_readme_s_bats_example_passes(live):
    mock = live.mock()
    live.write("charges.bats", readme_example("bash", "@test"))
    result = live.run(["bats", "charges.bats"], env=inside(live, mock)).expect(0)
    equal(len(result.ledger), 1, "lines")
    # Once more: the ledger is appended to.
    again = live.nightclerk(["run", "--", "bats", "charges.bats"], env=inside(live, mock))
    equal(len(live.finish(again).expect(0).ledger), 2, "lines after a second run")
    live.write("charges.bats", readme_example("bash", "@test").replace("nightclerk sync", 'curl -s "$URL" -d {}; nightclerk sync'))
    again = live.nightclerk(["run", "--", "bats", "charges.bats"], env=inside(live, mock))
    contains(live.finish(again).expect(1).stdout.decode(), "not ok 1 charges once", "bats, where it charges twice")


@fact
def the_readme_s_node_example_passes(live):
    mock = live.mock()
    live.write("charges.test.cjs", readme_example("js", "node:test"))
    result = live.run(["node", "--test", "charges.test.cjs"], env=inside(live, mock)).expect(0)
    equal([row["mark"] for row in result.ledger], ["charges once"], "marks")


@fact
def a_mark_stands_between_the_calls_around_it(live):
    mock = live.mock()
    script = f"""
        post() {{ curl -s -o /dev/null {mock.url} -d '{{"amount": 1}}'; }}
        post; nightclerk mark second; post; nightclerk mark; post; post
    """
    result = live.run(["sh", "-c", script], env=inside(live, mock)).expect(10)
    equal([row["mark"] for row in result.ledger], [None, "second", "", ""], "marks")
    equal([(name, event["attempt"]) for name, _, event in result.findings()], [("dup_after_success", 2)], "findings")


@fact
def every_name_of_a_test_is_a_label(live):
    names = ["--help", "-h", "-x", "--", "a b", "x" * 255 + "\u00e9" * 9]
    script = f"""
import subprocess
for name in {names!r}:
    subprocess.run(["nightclerk", "mark", "--", name], check=True)
for label in (["-v"], []):
    subprocess.run(["nightclerk", "mark", *label], check=True)
help = subprocess.run(["nightclerk", "mark", "--help"], check=True, stdout=subprocess.PIPE).stdout
assert help.startswith(b"usage: nightclerk mark [--] [LABEL]\\n"), help
assert subprocess.run(["nightclerk", "mark", "a", "b"], stderr=subprocess.DEVNULL).returncode == 2
"""
    result = live.run(["/usr/bin/python3", "-c", script], env=inside(live, live.mock())).expect(0)
    equal([event["label"] for event in result.of_kind("mark")], [*names[:-1], "x" * 255, "-v", ""], "labels")


@fact
def of_runs_inside_one_another_the_inner_one_is_marked(live):
    mock = live.mock()
    for number in range(REPEATS * 2):
        inner = live.path(f"inner-{number}")
        script = f"curl -s -o /dev/null {mock.url} -d a=1; nightclerk mark in; nightclerk sync; curl -s -o /dev/null {mock.url} -d a=1"
        command = [NIGHTCLERK, "run", "--ledger", inner, "--quiet", "--", "sh", "-c", script]
        result = live.run(command, env=inside(live, mock)).expect(10)
        equal([row["mark"] for row in read_lines(inner)], [None, "in"], "the inner run's marks")
        equal([row["mark"] for row in result.ledger if row["path"] == "/v1/charges"], [None, None], "the outer run's")


@fact
def a_nightclerk_inside_a_run_is_no_duplicate(live):
    for command in (["doctor"], ["run", "--quiet", "--ledger", "/dev/null", "--", "true"]):
        result = live.run([NIGHTCLERK, *command]).expect(0)
        equal(result.findings(), [], f"{command[0]}'s findings")
        equal({row["class_by"] for row in result.ledger}, {"nightclerk's own canary"}, "why")
        check(result.ledger, "its canary is in the ledger: it crossed loopback")


@fact
def outside_a_run_they_exit_2_with_a_hint(live):
    for verb in ("mark", "sync"):
        done = subprocess.run([NIGHTCLERK, verb], stderr=subprocess.PIPE, timeout=60, check=False)
        equal(done.returncode, 2, f"{verb}'s status")
        contains(done.stderr.decode(), "call it inside `nightclerk run -- ...`", "stderr")


@fact
def in_another_network_namespace_they_exit_2(live):
    result = live.run(["unshare", "--net", NIGHTCLERK, "sync"]).expect(2)
    contains(result.stderr, "from the network namespace of the run", "stderr")


@fact
def a_stranger_is_refused_and_counted(live):
    process = live.nightclerk(["run", "--ledger", live.path("l"), "--", "sh", "-c", "echo ready; read line"],
                              stdin=subprocess.PIPE)
    equal(process.stdout.readline(), b"ready\n", "the command")
    done = subprocess.run([NIGHTCLERK, "mark", "forged"], stderr=subprocess.PIPE, timeout=60, check=False)
    equal(done.returncode, 2, "the stranger's status")
    contains(done.stderr.decode(), "refused", "the stranger's stderr")
    _, err = process.communicate(b"go\n", timeout=60)
    equal(process.returncode, 0, "the run's status")
    contains(err.decode(), "1 mark or sync request of processes outside the run was refused", "stderr")


@fact
def a_caller_that_says_nothing_does_not_hold_the_run_up(live):
    process = live.nightclerk(["run", "--ledger", live.path("l"), "--", "sh", "-c", "echo ready; read line"],
                              stdin=subprocess.PIPE)
    equal(process.stdout.readline(), b"ready\n", "the command")
    with open("/proc/net/unix", encoding="utf-8") as file:
        names = re.findall(r"@(nightclerk-\S+)", file.read())
    equal(len(names), 1, "observers here")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.connect("\0" + names[0])
        process.communicate(b"go\n", timeout=60)
    equal(process.returncode, 0, "the run's status")


@fact
def a_descendant_without_its_ancestry_still_finds_its_observer(live):
    mock = live.mock()
    # setsid and a parent that has ended: no ancestor leads to the observer any more.
    script = "(setsid sh -c 'nightclerk mark orphan; echo marked $?' > out 2>&1 &) ; while ! grep -q marked out; do :; done"
    live.run(["sh", "-c", script], env=inside(live, mock)).expect(0)
    with open(live.path("out"), encoding="utf-8") as file:
        equal(file.read(), "marked 0\n", "what the orphan printed")


@fact
def sync_waits_for_lines_to_be_written(live):
    mock = live.mock()
    script = f"""
        for i in 1 2 3 4 5 6 7 8 9 10; do
            curl -s -o /dev/null {mock.url} -d "{{\\"amount\\": $i}}"
            nightclerk sync
            wc -l < call_ledger.jsonl
        done
    """
    result = live.run(["sh", "-c", script], env=inside(live, mock)).expect(0)
    equal(result.stdout.decode().split(), [str(i) for i in range(1, 11)], "lines seen after each call")
    check(len(mock.log) == 10, "calls reached the server")


play()
