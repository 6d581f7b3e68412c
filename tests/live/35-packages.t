#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Packages from npm, each made to retry by each way in which a first attempt may end: what they put on the wire, and
exactly the finding that it deserves.

`npm ci` installs what packages/package-lock.json names, into build/, before the namespace is entered; where it
cannot, every fact is skipped with the reason.
"""

import json
import os
import shutil
import subprocess

from harness import BUILD, ROOT, Failure, Skip, equal, fact, facts, inside_namespace, play, wait_for_line

SOURCE = os.path.join(ROOT, "tests", "live", "packages")
INSTALLED = os.path.join(BUILD, "tests", "live", "packages")
TROUBLE = os.path.join(INSTALLED, "trouble")
INSTALL_SECONDS = 180


def install():
    """Installs what the lockfile names, if it is not there; the reason if it cannot be."""
    lock = os.path.join(SOURCE, "package-lock.json")
    done = os.path.join(INSTALLED, "installed-lock.json")
    if os.path.exists(done) and open(done, "rb").read() == open(lock, "rb").read():
        return ""
    if not shutil.which("npm"):
        return "there is no npm"
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(SOURCE, name), INSTALLED)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
    try:
        subprocess.run(command, cwd=INSTALLED, capture_output=True, timeout=INSTALL_SECONDS, check=True)
    except subprocess.TimeoutExpired:
        return f"npm did not install them within {INSTALL_SECONDS} s"
    except subprocess.CalledProcessError as failed:
        lines = failed.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        return f"npm ci failed: {lines[0]}"
    shutil.copy(lock, done)
    return ""


# What stands at the end about the calls on one port: the number of requests, then the findings.
NOTHING = ()
TWICE_BILLED = ("llm_maybe_billed_twice medium",)
CUT = ("truncated_response info",)
SAFE = ("safe_retry info",)
GATEWAY = ("dup_after_gateway_error medium",)
GATEWAY_LOW = ("dup_after_gateway_error low",)
NO_RESPONSE = ("dup_after_no_response medium",)
LEFT = ("abandoned_call info",)

MODEL_CALLS = {
    "503": (2, NOTHING), "429": (2, NOTHING),
    "504": (2, TWICE_BILLED), "500": (2, TWICE_BILLED), "409": (2, TWICE_BILLED),
    "close": (2, TWICE_BILLED), "rst": (2, TWICE_BILLED), "reuse": (3, TWICE_BILLED),
    "timeout": (2, LEFT + TWICE_BILLED),
    "trunc": (1, CUT), "tchunk": (1, CUT),
}
# By default POST is none of the methods that they send again.
ONCE = {
    "503": (1, NOTHING), "504": (1, NOTHING), "500": (1, NOTHING), "409": (1, NOTHING), "429": (1, NOTHING),
    "close": (1, NOTHING), "rst": (1, NOTHING), "timeout": (1, LEFT), "trunc": (1, CUT), "tchunk": (1, CUT),
}
CUT_AND_AGAIN = ("dup_after_truncated_success high",) + CUT

CLIENTS = {
    "openai": MODEL_CALLS,
    "anthropic": MODEL_CALLS,
    "stripe": {  # one Idempotency-Key on both
        "503": (2, SAFE), "504": (2, SAFE), "500": (2, SAFE), "409": (2, SAFE), "429": (1, NOTHING),
        "close": (2, SAFE), "rst": (2, SAFE), "reuse": (3, SAFE), "timeout": (2, LEFT + SAFE),
        "trunc": (1, CUT), "tchunk": (1, CUT),
    },
    "axios-retry POST": {  # on network errors whatever the method, no delay
        "503": (1, NOTHING), "504": (1, NOTHING), "500": (1, NOTHING), "409": (1, NOTHING), "429": (1, NOTHING),
        "close": (2, NO_RESPONSE), "rst": (2, NO_RESPONSE), "reuse": (3, NO_RESPONSE),
        "timeout": (1, LEFT), "trunc": (1, CUT), "tchunk": (1, CUT),
    },
    "axios-retry PUT": {  # idempotent by definition
        "503": (2, ("retry_without_key low",)), "429": (2, ("retry_without_key low",)),
        "504": (2, GATEWAY_LOW), "500": (2, GATEWAY_LOW), "409": (1, NOTHING),
        "close": (2, ("dup_after_no_response low",)), "rst": (2, ("dup_after_no_response low",)),
        "timeout": (1, LEFT), "trunc": (1, CUT), "tchunk": (1, CUT),
    },
    "got": ONCE,
    "got for POST": {
        "503": (2, ("retry_without_key low",)), "504": (2, GATEWAY), "500": (2, GATEWAY), "409": (1, NOTHING),
        "429": (2, ("retry_without_key low",)), "close": (2, NO_RESPONSE), "rst": (2, NO_RESPONSE),
        "timeout": (2, LEFT + ("dup_after_timeout medium",)), "trunc": (2, CUT_AND_AGAIN), "tchunk": (2, CUT_AND_AGAIN),
    },
    "undici": ONCE,
    "undici for POST": {
        "503": (2, ("retry_without_key low",)), "504": (2, GATEWAY), "500": (2, GATEWAY), "409": (1, NOTHING),
        "429": (2, ("retry_without_key low",)), "close": (2, NO_RESPONSE), "rst": (2, NO_RESPONSE),
        "timeout": (1, LEFT), "trunc": (2, CUT_AND_AGAIN), "tchunk": (2, CUT_AND_AGAIN),
    },
}
# The agent's loop calls again, under a new JSON-RPC id.
MCP_CALLS = {
    "503": (2, ("retry_without_key low",)), "429": (2, ("retry_without_key low",)),
    "504": (2, GATEWAY), "500": (2, GATEWAY), "409": (2, ("dup_after_gateway_error low",)),
    "close": (2, NO_RESPONSE), "rst": (2, NO_RESPONSE), "timeout": (2, LEFT + ("dup_in_flight medium",)),  # the SDK leaves its connection open
    "trunc": (2, CUT_AND_AGAIN), "tchunk": (2, CUT_AND_AGAIN),
    "resume": (1, CUT),  # the SDK asks for the rest by GET with Last-Event-ID
}


def played(live, client, endings):
    """Runs that client under nightclerk; ({port: ending}, result)."""
    server = live.start(["/usr/bin/python3", os.path.join(SOURCE, "server.py"), *endings])
    ports = json.loads(wait_for_line(server, "server.py"))
    environment = {**os.environ, "NODE_NO_WARNINGS": "1"}
    command = ["node", os.path.join(INSTALLED, "client.mjs"), client, json.dumps(ports)]
    return {port: ending for ending, port in ports.items()}, live.run(command, env=environment)


def port_of(line):
    return int(line["dst"].rpartition(":")[2])


def by_ending(result, endings):
    """{ending: (ledger lines, sorted findings)} of what stands at the end."""
    of = {line["id"]: endings[port_of(line)] for line in result.ledger}
    found = {ending: ([], []) for ending in endings.values()}
    for line in result.ledger:
        found[of[line["id"]]][0].append(line)
    for name, severity, event in result.findings("info"):
        found[of[event["of"]]][1].append(f"{name} {severity}")
    return {ending: (lines, sorted(findings)) for ending, (lines, findings) in found.items()}


def gate(table):
    worst = {severity.split()[1] for _, findings in table.values() for severity in findings}
    return 10 if worst & {"medium", "high"} else 0


def compare(live, client, table):
    endings, result = played(live, client, table)
    found = by_ending(result, endings)
    try:
        equal({ending: (len(lines), findings) for ending, (lines, findings) in found.items()},
              {ending: (count, sorted(findings)) for ending, (count, findings) in table.items()}, client)
        result.expect(gate(table))
        equal(result.summary["bytes"]["in_holes"], 0, "bytes in holes")
    except Failure as failure:
        raise Failure(f"{failure}\n--- client\n{result.stdout.decode()}--- stderr\n{result.stderr}") from None
    return result, found


def add_client(client, table):
    def function(live):
        skip_if_not_installed()
        compare(live, client, table)

    function.__name__ = client.replace(" ", "_")
    facts.append(function)


def skip_if_not_installed():
    with open(TROUBLE, encoding="utf-8") as file:
        trouble = file.read()
    if trouble:
        raise Skip(trouble)


for NAME, TABLE in CLIENTS.items():
    add_client(NAME, TABLE)


def tool_calls(lines):
    return [line for line in lines if line["tool"] in ("create_ticket", "read_gauge")]


@fact
def mcp_write_tool(live):
    skip_if_not_installed()
    endings, result = played(live, "mcp write tool", MCP_CALLS)
    found = by_ending(result, endings)
    equal({ending: (len(tool_calls(lines)), findings) for ending, (lines, findings) in found.items()},
          {ending: (count, sorted(findings)) for ending, (count, findings) in MCP_CALLS.items()}, "MCP")
    result.expect(10)


@fact
def mcp_tool_that_the_server_says_is_read_only(live):
    skip_if_not_installed()
    endings, result = played(live, "mcp read tool", ["504", "close", "timeout", "tchunk"])
    found = by_ending(result, endings)
    equal({ending: (len(tool_calls(lines)), findings) for ending, (lines, findings) in found.items()},
          {"504": (2, []), "close": (2, []), "timeout": (2, list(LEFT)), "tchunk": (2, list(CUT))}, "MCP")
    result.expect(0)


@fact
def what_the_SDKs_say_about_their_attempts(live):
    skip_if_not_installed()
    for client, of_stripe in (("openai", False), ("anthropic", False), ("stripe", True)):
        endings, result = played(live, client, ["504"])
        first, second = by_ending(result, endings)["504"][0]
        equal(first["fingerprint"], second["fingerprint"], f"{client}: fingerprints")
        if of_stripe:
            equal(first["idem"], second["idem"], "keys of stripe")
            equal(first["idem"].startswith("stripe-node-retry-"), True, first["idem"])
            continue
        equal([first["idem"], second["idem"]], [None, None], f"{client}: keys")
        equal([line["retry_hint"]["x-stainless-retry-count"] for line in (first, second)], ["0", "1"], client)
        equal("the SDK retried: x-stainless-retry-count 0 then 1" in result.stderr, True, result.stderr)


if not inside_namespace():
    os.makedirs(INSTALLED, exist_ok=True)
    reason = install()
    shutil.copy(os.path.join(SOURCE, "client.mjs"), INSTALLED)
    with open(TROUBLE, "w", encoding="utf-8") as out:
        out.write(reason)
play()
