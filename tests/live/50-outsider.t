#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A program outside the scope, talking to the same server in the same namespace, leaves no byte anywhere."""

import re
import secrets
import subprocess
import urllib.request

from harness import bpf_objects_of, check, contains, equal, fact, play, wait_for_line

INSIDER = """
import sys, urllib.request
def post(body):
    urllib.request.urlopen(urllib.request.Request(sys.argv[1], body.encode(), {"X-Who": body})).read()
post(sys.argv[2] + "1")
print("posted", flush=True)
sys.stdin.readline()
post(sys.argv[2] + "2")
"""


def memory_of(pid):
    """Everything that a process has mapped and that can be read: its heap, its stacks and the rings."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        ranges = [line.split()[0].split("-") for line in maps if line.split()[1].startswith("r")]
    out = []
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for start, end in ((int(a, 16), int(b, 16)) for a, b in ranges):
            at = start
            while at < end:
                try:
                    memory.seek(at)
                    piece = memory.read(min(1 << 20, end - at))
                except (OSError, OverflowError, ValueError):
                    break
                if not piece:
                    break
                out.append(piece)
                at += len(piece)
    return b"".join(out)


def dump_of(map_id):
    """The content of a BPF map as bytes; a ring buffer gives none (its memory is read instead)."""
    dump = subprocess.run(["bpftool", "map", "dump", "id", map_id], capture_output=True, check=False).stdout.decode()
    return dump.encode() + bytes(int(b, 16) for b in re.findall(r"(?<![0-9a-z])[0-9a-f]{2}(?![0-9a-z])", dump))


@fact
def an_outsider_leaves_no_byte_anywhere(live):
    mock = live.mock()
    inside, outside = "INSIDER" + secrets.token_hex(8), "OUTSIDER" + secrets.token_hex(8)
    script = live.write("insider.py", INSIDER)
    arguments = live.run_arguments(["/usr/bin/python3", script, mock.url, inside],
                                   ["--record", live.path("run.recording")])
    process = live.nightclerk(arguments, stdin=subprocess.PIPE)
    equal(wait_for_line(process, "the insider"), "posted", "the insider's line")
    for i in range(20):
        body = (outside + str(i)) * 50
        urllib.request.urlopen(urllib.request.Request(mock.url, body.encode(), {"X-Who": outside})).read()
    memory = memory_of(process.pid)
    ids = sorted(number for kind, number in bpf_objects_of(process.pid) if kind == "map")
    maps = b"".join(map(dump_of, ids))
    result = live.finish(process, b"go on\n").expect(0)

    check(len(ids) >= 3, f"maps of nightclerk: {ids}")
    # The same search must find what is there, or finding nothing would prove nothing.
    check(inside.encode() in memory, "the insider's bytes are not in the ring: the search does not work")
    check(outside.encode() not in memory, "the outsider's bytes are in nightclerk's memory or in a ring")
    check(outside.encode() not in maps, "the outsider's bytes are in a BPF map")
    for name, must in (("call_ledger.jsonl", None), ("events.jsonl", None), ("run.recording", inside)):
        with open(live.path(name), "rb") as file:
            content = file.read()
        check(outside.encode() not in content, f"the outsider's bytes are in {name}")
        check(must is None or must.encode() in content, f"the insider's bytes are not in {name}")
    check(outside not in result.stderr, "the outsider's bytes are on stderr")
    equal(len(result.ledger), 2, "ledger lines")
    equal(len(mock.log), 22, "requests that reached the server")
    equal({line["comm"] for line in result.ledger}, {"python3"}, "comm")
    count = result.summary["bytes"]
    equal(count["accepted"], count["in_messages"], "accepted bytes")


@fact
def another_network_namespace_is_out_of_scope_too(live):
    script = live.write("both.sh", """
/usr/bin/python3 - <<'END'
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def serve():
    s, _ = server.accept()
    s.recv(4096); s.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n"); s.close()
threading.Thread(target=serve).start()
c = socket.create_connection(server.getsockname())
c.sendall(b"POST /far HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 0\\r\\n\\r\\n"); c.recv(4096)
END
""")
    result = live.run(["unshare", "--net", "sh", "-c", f"ip link set lo up; . {script}"]).expect(11)
    equal(result.summary["blind_by"][0]["streams"], {"netns": 1}, "what is said of it")
    equal(result.ledger, [], "ledger")
    equal(result.summary["bytes"]["accepted"], 0, "accepted bytes")


@fact
def secrets_of_the_watched_program_are_in_no_output(live):
    mock = live.mock()
    secret = "sEcReT" + secrets.token_hex(8)
    url = mock.url.replace("http://", f"http://user:{secret}@")
    command = (f"curl -s -o /dev/null '{url}?api_key={secret}&page=1' -H 'Authorization: Bearer {secret}' "
               f"-H 'Cookie: session={secret}' -H 'X-Api-Key: {secret}' -d 'token={secret}'")
    result = live.run(["sh", "-c", f"{command}; {command}", secret]).expect(10)
    for name in ("call_ledger.jsonl", "events.jsonl"):
        with open(live.path(name), "rb") as file:
            check(secret.encode() not in file.read(), f"the secret is in {name}")
    check(secret not in result.stderr, "the secret is on stderr")
    contains(result.ledger[0]["query"], "page=1", "query")
    check(re.fullmatch(r"api_key=~[0-9a-f]{16}&page=1", result.ledger[0]["query"]), f"query {result.ledger[0]['query']}")


play()
