#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
`check-policy` and `check` as a user runs them, without root: exit status,
what goes to which stream, and the three formats. Prints TAP.
"""

import json
import os
import subprocess
import sys
import tempfile
import traceback
import xml.etree.ElementTree
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NIGHTCLERK = os.path.join(os.environ.get("NIGHTCLERK_BUILD", os.path.join(ROOT, "build")), "nightclerk")
DATA = os.path.join(ROOT, "tests", "cli", "data")
EVENTS = os.path.join(DATA, "events.jsonl")
LEDGER = os.path.join(DATA, "ledger.jsonl")
MASKS = os.path.join(DATA, "masks.json")

facts = []


def fact(function):
    facts.append(function)
    return function


def equal(got, want):
    if got != want:
        raise AssertionError("got %r, want %r" % (got, want))


def contains(text, part):
    if part not in text:
        raise AssertionError("no %r in %r" % (part, text))


def run(status, *words):
    done = subprocess.run([NIGHTCLERK, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, timeout=60)
    if done.returncode != status:
        raise AssertionError("%s: exit %d, want %d\n%s%s" % (
            words, done.returncode, status, done.stdout, done.stderr))
    return done


def write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def readme_policy():
    with open(os.path.join(ROOT, "README.md")) as file:
        return file.read().split('```json\n')[1].split("```")[0]


@fact
def the_printed_default_is_a_valid_policy(directory):
    text = run(0, "check-policy", "--print-default").stdout
    equal(json.loads(text)["rules"], [])
    contains(run(0, "check-policy", write(directory, "default.json", text)).stdout, "a valid policy with 0 rules")


@fact
def the_rule_that_decides_is_named_with_what_it_sets(directory):
    path = write(directory, "policy.json", readme_policy())
    said = run(0, "check-policy", path, "--path", "/v1/orders/7/search").stdout
    equal(said.splitlines()[1:], ["  rule 1 (order search) decides",
                                  "  class: read, by policy rule 1 (order search)"])
    said = run(0, "check-policy", path, "--path", "/v1/charges", "--port", "8080").stdout
    contains(said, "rule 1 (order search) does not match: path")
    contains(said, "rule 2 (charges carry a nonce) decides")
    contains(said, "compared without: nonce, items[*].ts")
    contains(said, "key in header: X-Order-Key")
    contains(said, "key in body member: order_key")
    said = run(0, "check-policy", path, "--tool", "send_report").stdout
    contains(said, "severity: low at most")
    contains(said, "attempts of one process count for 900 s")
    said = run(0, "check-policy", path, "--host", "a.localhost", "--header", "x-load-test: 1").stdout
    contains(said, "severity: none, nothing is reported")
    contains(run(0, "check-policy", path, "--path", "/v1/search").stdout,
             "no rule is about this request: the built-in rules decide\n  class: read, by path segment search")


@fact
def a_mistake_has_a_line_and_a_column(directory):
    path = write(directory, "policy.json", '{\n  "rules": [\n    {"match": {"pth": "/a"}}\n  ]\n}\n')
    said = run(2, "check-policy", path)
    equal(said.stdout, "")
    equal(said.stderr, 'nightclerk: %s:3:16: match has no field "pth"; it has method, host, port, path, header, tool\n'
          % path)
    for words in (["check", EVENTS], ["watch", "--port", "1"], ["replay", EVENTS]):
        status = 1 if words[0] == "replay" else 2  # the recording is looked at first
        run(status, *words, "--policy", path)
    contains(run(125, "run", "--policy", path, "--", "true").stderr, ":3:16:")


@fact
def what_is_not_there_is_no_policy(directory):
    contains(run(1, "check-policy", os.path.join(directory, "none")).stderr, "No such file")
    run(2, "check-policy")
    run(2, "check-policy", MASKS, "--port", "0")
    run(2, "check-policy", MASKS, "--header", "no colon")
    run(2, "check-policy", MASKS, "--nonsense")
    contains(run(0, "check-policy", "--help").stdout, "--print-default")


@fact
def events_are_judged_as_in_their_run(directory):
    said = run(10, "check", EVENTS)
    contains(said.stdout, "HIGH dup_after_success: POST /v1/charges?key=~5e710e29cc363f07 at 127.0.0.1:8765")
    contains(said.stdout, "the run had a policy that is not given here")
    equal(said.stderr, "")
    contains(run(10, "check", EVENTS, "--policy", MASKS).stdout, "(weaker: equal except nonce)")


@fact
def a_ledger_alone_cannot_tell(directory):
    said = run(11, "check", LEDGER).stdout
    contains(said, "from a ledger alone no outcome is known")
    contains(said, "UNDECIDABLE")
    run(0, "check", LEDGER, "--allow-incomplete")
    run(10, "check", LEDGER, EVENTS)


@fact
def another_policy_another_judgement(directory):
    read = write(directory, "read.json", '{"rules": [{"match": {"path": "/v1/*"}, "class": "read"}]}')
    equal(json.loads(run(0, "check", EVENTS, "--policy", read, "--format", "json").stdout)["findings"], [])
    low = write(directory, "low.json", '{"fail_on": "low", "rules": [{"match": {}, "severity": "low"}]}')
    run(10, "check", EVENTS, "--policy", low)
    run(0, "check", EVENTS, "--policy", low, "--fail-on", "medium")


@fact
def a_broken_line_is_named_and_skipped(directory):
    with open(EVENTS) as file:
        lines = file.read().splitlines(True)
    path = write(directory, "events.jsonl", "".join(lines[:2]) + "{\"t\":1, cut\n" + "".join(lines[2:]))
    said = run(10, "check", path)
    contains(said.stderr, "%s:3: it is no JSON object, or it is cut; skipped" % path)
    contains(said.stdout, "dup_after_success")
    said = run(11, "check", path, "--fail-on", "high", "--policy",
               write(directory, "p.json", '{"rules": [{"match": {}, "severity": "low"}]}'), "--format", "json")
    found = json.loads(said.stdout)
    equal(found["broken_lines"], [{"file": path, "line": 3, "reason": "it is no JSON object, or it is cut"}])
    equal(found["incomplete"], ["a line could not be read"])
    equal(found["exit"], 11)


@fact
def json_is_one_object(directory):
    found = json.loads(run(10, "check", EVENTS, "--format", "json", "--policy", MASKS).stdout)
    equal(found["exit"], 10)
    equal(found["requests"], 2)
    equal(found["mutating"], 2)
    equal([(f["finding"], f["severity"], f["attempt"], f["attempts"], f["masked"]) for f in found["findings"]],
          [("dup_after_success", "high", 2, 2, "equal except nonce")])
    equal(found["notices"], [])


@fact
def junit_is_valid_xml(directory):
    suites = xml.etree.ElementTree.fromstring(run(10, "check", EVENTS, "--format", "junit").stdout)
    equal(suites.attrib["failures"], "1")
    suites = xml.etree.ElementTree.fromstring(run(11, "check", LEDGER, "--format", "junit").stdout)
    equal((suites.attrib["failures"], suites.attrib["errors"]), ("0", "2"))


@fact
def what_cannot_be_read_is_1_and_usage_is_2(directory):
    contains(run(1, "check", os.path.join(directory, "none")).stderr, "No such file")
    run(1, "check", directory)
    run(2, "check")
    run(2, "check", EVENTS, "--fail-on", "never")
    run(2, "check", EVENTS, "--format", "xml")
    contains(run(0, "check", "--help").stdout, "--allow-incomplete")
    run(11, "check", write(directory, "empty", ""))


def recording(policy):
    """A recording that was cut behind its header."""
    facts = {"wire_event_version": VERSIONS[0], "counters": VERSIONS[1], "argument_count": 0, "wall_offset_ns": 0,
             "start_ns": 1, "boot_id": "00" * 16, "salt": "00" * 32, "run_id": "0123456789abcdef",
             "version": "0.1.0", "door": "kprobe", "kernel": "6.12.0", "canary": "none", "scope": "tree",
             "command": "", "options": "{}", "policy": policy}
    payload = json.dumps(facts).encode()
    head = b"".join(number.to_bytes(4, "little") for number in (
        0x6b6c4243, 1, len(payload), zlib.crc32(payload)))
    head += zlib.crc32(head, zlib.crc32((0).to_bytes(8, "little"))).to_bytes(4, "little")
    return b"nightclerk rec" + (1).to_bytes(2, "little") + head + payload


def read_versions():
    """Of the wire events that this build reads: a header says them."""
    text = open(os.path.join(ROOT, "bpf", "wire_event.h")).read()
    version = int(text.split("#define WIRE_EVENT_VERSION ")[1].split()[0])
    program = ("#include \"%s/bpf/wire_event.h\"\n#include <stdio.h>\n"
               "int main(void) { printf(\"%%d\", WIRE_COUNTER_COUNT); }\n" % ROOT)
    with tempfile.TemporaryDirectory() as directory:
        source, binary = os.path.join(directory, "a.c"), os.path.join(directory, "a")
        with open(source, "w") as file:
            file.write(program)
        subprocess.run(["cc", "-std=gnu17", "-o", binary, source], check=True)
        count = int(subprocess.run([binary], stdout=subprocess.PIPE, check=True, text=True).stdout)
    return version, count


@fact
def a_cut_recording_is_judged_and_unreadable(directory):
    path = write(directory, "cut.rec", recording('{"rules": []}'))
    said = run(1, "check", path)
    contains(said.stderr, "the file ends here, before its closing block")
    contains(said.stdout, "0 requests")
    run(1, "replay", path)


@fact
def a_recording_with_a_bad_policy_says_where(directory):
    path = write(directory, "bad.rec", recording('{"rules": [{}]}'))
    contains(run(1, "replay", path).stderr, "bad.rec:1:12: a rule needs the field match")
    contains(run(1, "check", path).stderr, "bad.rec:1:12: a rule needs the field match")
    contains(run(1, "replay", path, "--policy", MASKS).stderr, "before its closing block")


def main():
    failed = 0
    print("1..%d" % len(facts))
    for number, function in enumerate(facts, 1):
        with tempfile.TemporaryDirectory() as directory:
            try:
                function(directory)
                print("ok %d - %s" % (number, function.__name__))
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print("not ok %d - %s" % (number, function.__name__))
                for line in traceback.format_exc().splitlines():
                    print("# " + line)
    return 1 if failed else 0


VERSIONS = read_versions()

if __name__ == "__main__":
    sys.exit(main())
