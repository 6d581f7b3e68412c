#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Cases of tests/cases, and each with one detail changed, played with real processes and sockets under `nightclerk run`."""

import glob
import json
import os
import re
import shutil

from harness import BUILD, ROOT, Failure, check, contains, equal, fact, facts, play, read_lines, wait_for_line

PLAY = os.path.join(BUILD, "tests", "live", "play")
CASES = [f"{number:02}" for number in range(1, 21)]
STATES = {"answered": True, "incomplete": False, "no_answer": False, "pending": False}


def compare_answer(llm, answer, what):
    """What the model said, of which a row names all that was reported."""
    usage, expected = answer["usage"], llm["usage"]
    equal(usage is None, expected is None, what + "usage")
    if expected is None:
        equal(answer["answer_complete"], None, what + "answer_complete")
        return
    for name in ("input_tokens", "output_tokens", "cached_tokens"):
        equal(usage[name], expected.get(name), what + name)
    equal(usage["final"], answer["response_complete"], what + "final")
    equal(answer["answer_complete"], answer["response_complete"], what + "answer_complete")
    equal(answer["response_model"], llm["model"], what + "response_model")
    if "finish" in llm:
        equal(answer["finish_reason"], llm["finish"], what + "finish_reason")


def compare_rows(result, rows, real_pid):
    ledger = result.ledger
    equal(len(ledger), len(rows), "ledger lines")
    responses = {event["of"]: event for event in result.of_kind("response")}
    for line, row in zip(ledger, rows):
        what = f"row {row['n']}: "
        path = line["path"] + ("?" + line["query"] if line["query"] is not None else "")
        equal((line["method"], path), (row["method"], row["path"]), what + "target")
        if row["body_kind"] != "multipart":  # its canonical text is each project's own
            equal(line["sha"], row["body_sha256"], what + "sha")
        equal(line["idem"], row["idempotency_key"], what + "idem")
        equal(line["canon"], row["body_kind"], what + "canon")
        equal(line["pid"], real_pid[row["pid"]], what + "pid")
        equal(line["comm"], "agent", what + "comm")
        answer = responses[line["id"]]
        equal(answer["status"], row["status"], what + "status")
        equal(answer["response_complete"], STATES[row["state"]], what + "response_complete")
        if "llm" in row:
            equal(line["model"], row["llm"]["model"], what + "model")
            compare_answer(row["llm"], answer, what)
        if row.get("client_closed_first"):
            equal(answer["closed_first"], "client", what + "closed_first")
        if row.get("closed_by"):
            equal(answer["closed_first"], row["closed_by"], what + "closed_first")
    groups = [row["same_operation_group"] for row in rows]
    prints = [line["prompt_fingerprint"] or line["fingerprint"] for line in ledger]
    for i, a in enumerate(groups):
        for j, b in enumerate(groups[:i]):
            if a is not None and b is not None:
                equal(prints[i] == prints[j], a == b, f"rows {j + 1} and {i + 1}: equal fingerprints")


def compare_verdict(result, expected):
    standing = result.findings("medium")
    if expected["verdict"] == "ok":
        equal(result.status, 0, "exit status")
        low = [entry.split(":")[0] for entry in expected.get("also_expected", []) if entry.endswith(":low")]
        found = [(name, severity) for name, severity, _ in result.findings("low")]
        equal(found, [(name, "low") for name in low], "findings above info")
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


def play_directory(live, directory, server_outside):
    command = [PLAY, "--map", live.path("map.jsonl")]
    if server_outside:
        control = ["--control", live.path("control")]
        server = live.start([PLAY, "--server", *control, directory])
        contains(wait_for_line(server, "play --server"), "listening on 127.0.0.1:", "its line")
        command += ["--client", *control]
    result = live.run([*command, directory])
    check(result.status in (0, 10), f"exit status {result.status}\n{result.stderr}")
    return result


def play_case(live, directory, server_outside):
    with open(os.path.join(directory, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    result = play_directory(live, directory, server_outside)
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


def directory_of(number):
    (directory,) = glob.glob(os.path.join(ROOT, "tests", "cases", number + "-*"))
    return directory


def add_case(number, server_outside):
    directory = directory_of(number)

    def function(live):
        play_case(live, directory, server_outside)

    place = "server_outside_the_tree" if server_outside else "server_in_the_tree"
    function.__name__ = f"{os.path.basename(directory)}_{place}"
    facts.append(function)


@fact
def all_twenty_in_one_run(live):
    """One after another, each with servers and processes of its own: what stands is what stands of each alone."""
    script = 'for case; do "$0" "$case" || exit; done'
    result = live.run(["sh", "-c", script, PLAY, *map(directory_of, CASES)]).expect(10)
    ids = [line["id"] for line in result.ledger]
    expected, first, model_calls = [], 0, 0
    for number in CASES:
        with open(os.path.join(directory_of(number), "expected.json"), encoding="utf-8") as file:
            case = json.load(file)
        if case["verdict"] == "flag":
            a, b = case["pair"]
            expected.append((case["kind"], case["severity"], first + a, first + b))
        first += len(case["rows"])
        model_calls += sum("llm" in row for row in case["rows"])
    equal(len(ids), first, "ledger lines")
    equal([(name, severity, ids.index(event["earlier"]) + 1, ids.index(event["of"]) + 1)
           for name, severity, event in result.findings("medium")], expected, "findings")
    equal(sum(line["class"] == "llm" for line in result.ledger), model_calls, "model calls")
    tokens = [event["usage"] for event in result.of_kind("response") if event["usage"]]
    equal((sum(usage["input_tokens"] for usage in tokens), sum(usage["output_tokens"] for usage in tokens)),
          (21 + 2 * 4908 + 44 + 3 * 11, 1 + 2 + 9 + 17 + 3), "tokens")


def change(directory, flip):
    """In the files of the flip, find becomes replace, and Content-Length and the timeline follow."""
    sizes = {}
    for name in flip["files"]:
        path = os.path.join(directory, name)
        with open(path, "rb") as file:
            content = file.read()
        head, blank, body = content.partition(b"\r\n\r\n")
        changed = content.replace(flip["find"].encode(), flip["replace"].encode())
        check(changed != content, f"{name} has no {flip['find']!r}")
        new_body = changed.partition(b"\r\n\r\n")[2]
        if re.search(rb"\r\nContent-Length: %d(\r|$)" % len(body), head):
            changed = changed.replace(b"Content-Length: %d\r" % len(body), b"Content-Length: %d\r" % len(new_body))
        with open(path, "wb") as file:
            file.write(changed)
        sizes[name, len(content)] = len(changed)
    path = os.path.join(directory, "timeline.json")
    with open(path, encoding="utf-8") as file:
        timeline = json.load(file)
    for event in timeline:
        if "file" in event:
            event["to"] = sizes.get((event["file"], event["to"]), event["to"])
    with open(path, "w", encoding="utf-8") as file:
        json.dump(timeline, file)


def add_flip(flip):
    def function(live):
        directory = live.path("case")
        shutil.copytree(os.path.join(ROOT, "tests", "cases", flip["case"]), directory)
        change(directory, flip)
        if "also" in flip:
            change(directory, flip["also"])
        result = play_directory(live, directory, False)
        ids = [line["id"] for line in result.ledger]
        found = [f"{name} {severity} {ids.index(event['earlier']) + 1}-{ids.index(event['of']) + 1}"
                 for name, severity, event in result.findings("info") if event["earlier"]]
        equal(found, flip["findings"], "findings")
        equal(result.status, 10 if re.search(" (medium|high) ", " ".join(found)) else 0, "exit status")

    function.__name__ = f"{flip['case'][:2]}: {flip['change']}"
    facts.append(function)


with open(os.path.join(ROOT, "tests", "cases", "flips.json"), encoding="utf-8") as flips:
    for one in json.load(flips):
        add_flip(one)

for case in CASES:
    add_case(case, False)
    add_case(case, True)

play()
