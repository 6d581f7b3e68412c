#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Cases of tests/cases, played with real processes and sockets under `nightclerk run`."""

import glob
import json
import os

from harness import BUILD, ROOT, Failure, check, contains, equal, facts, play, read_lines, wait_for_line

PLAY = os.path.join(BUILD, "tests", "live", "play")
CASES = "01 02 03 04 05 06 10 13 14".split()
STATES = {"answered": True, "incomplete": False, "no_answer": False, "pending": False}


def compare_rows(result, rows, real_pid):
    ledger = result.ledger
    equal(len(ledger), len(rows), "ledger lines")
    responses = {event["of"]: event for event in result.of_kind("response")}
    for line, row in zip(ledger, rows):
        what = f"row {row['n']}: "
        path = line["path"] + ("?" + line["query"] if line["query"] is not None else "")
        equal((line["method"], path), (row["method"], row["path"]), what + "target")
        equal(line["sha"], row["body_sha256"], what + "sha")
        equal(line["idem"], row["idempotency_key"], what + "idem")
        equal(line["canon"], row["body_kind"], what + "canon")
        equal(line["pid"], real_pid[row["pid"]], what + "pid")
        equal(line["comm"], "agent", what + "comm")
        answer = responses[line["id"]]
        equal(answer["status"], row["status"], what + "status")
        equal(answer["response_complete"], STATES[row["state"]], what + "response_complete")
        if row.get("client_closed_first"):
            equal(answer["closed_first"], "client", what + "closed_first")
        if row.get("closed_by"):
            equal(answer["closed_first"], row["closed_by"], what + "closed_first")
    groups = [row["same_operation_group"] for row in rows]
    prints = [line["fingerprint"] for line in ledger]
    for i, a in enumerate(groups):
        for j, b in enumerate(groups[:i]):
            if a is not None and b is not None:
                equal(prints[i] == prints[j], a == b, f"rows {j + 1} and {i + 1}: equal fingerprints")


def compare_verdict(result, expected):
    standing = result.findings("medium")
    if expected["verdict"] == "ok":
        equal(result.status, 0, "exit status")
        equal(result.findings("low"), [], "findings above info")
        return
    equal(result.status, 10, "exit status")
    equal([(name, severity) for name, severity, _ in standing], [(expected["kind"], expected["severity"])], "findings")
    ids = [line["id"] for line in result.ledger]
    event = standing[0][2]
    pair = [ids.index(event["earlier"]) + 1, ids.index(event["of"]) + 1]
    equal(pair, expected["pair"], "pair")
    contains(result.stderr, expected["kind"], "the alert")
    for name in expected.get("also_expected", []):
        check(any(event["finding"] == name for event in result.of_kind("finding")), f"no {name}")


def play_case(live, directory, server_outside):
    with open(os.path.join(directory, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    command = [PLAY, "--map", live.path("map.jsonl")]
    if server_outside:
        control = ["--control", live.path("control")]
        server = live.start([PLAY, "--server", *control, directory])
        contains(wait_for_line(server, "play --server"), "listening on 127.0.0.1:", "its line")
        command += ["--client", *control]
    result = live.run([*command, directory])
    check(result.status in (0, 10), f"exit status {result.status}\n{result.stderr}")
    roles = read_lines(live.path("map.jsonl"))
    real_pid = {role["case_pid"]: role["pid"] for role in roles if role["role"] == "client"}
    try:
        compare_rows(result, expected["rows"], real_pid)
        compare_verdict(result, expected)
        server_pid = next(role["pid"] for role in roles if role["role"] == "server")
        answered = [line for line, row in zip(result.ledger, expected["rows"]) if row["state"] == "answered"]
        check(all(line["server_pid"] in (server_pid, None) for line in answered), "server_pid")
    except Failure as failure:
        with open(result.events_path, encoding="utf-8") as file:
            raise Failure(f"{failure}\n--- events\n{file.read()}--- stderr\n{result.stderr}") from None


def add_case(number, server_outside):
    (directory,) = glob.glob(os.path.join(ROOT, "tests", "cases", number + "-*"))

    def function(live):
        play_case(live, directory, server_outside)

    place = "server_outside_the_tree" if server_outside else "server_in_the_tree"
    function.__name__ = f"{os.path.basename(directory)}_{place}"
    facts.append(function)


for case in CASES:
    add_case(case, False)
    add_case(case, True)

play()
