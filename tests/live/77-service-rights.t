#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
`audit` with the capabilities that packaging/nightclerk.service leaves it, and no others, in a network
namespace of its own: it starts, sees calls, reloads, and ends with 0. Prints TAP.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNIT = os.path.join(ROOT, "packaging", "nightclerk.service")
LIMIT_SECONDS = 120
# Awaits the line that says so, calls twice, reloads, ends it.
INSIDE = """
import http.server, os, signal, subprocess, sys, threading, urllib.request

subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
audit = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, text=True)
try:
    print(audit.stderr.readline().split(" (")[0])
    with open(f"/proc/{audit.pid}/task/{audit.pid}/children") as children:
        collector = children.read().split()[0]
    with open(f"/proc/{collector}/status") as status:
        said = dict(line.split(":", 1) for line in status)
    print(said["Uid"].split()[0] != "0", said["CapEff"].strip(), said["Seccomp"].strip())
    for _ in range(2):
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{server.server_port}/v1/charges", b"{}", method="POST"))
    audit.send_signal(signal.SIGHUP)
    print(audit.stderr.readline().rstrip())
    audit.send_signal(signal.SIGTERM)
    print("ended with", audit.wait())
finally:
    audit.kill()
"""


def main():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        print("1..0 # SKIP this needs root, and setpriv")
        return 0
    with open(UNIT, encoding="utf-8") as unit:
        rights = re.search(r"^CapabilityBoundingSet=(.*)$", unit.read(), re.M).group(1).split()
    bounding = "-all" + "".join(",+" + right[len("CAP_"):].lower() for right in rights)
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            ["unshare", "--net", sys.executable, "-c", INSIDE, "setpriv", "--bounding-set=" + bounding, "--inh-caps=-all",
             "--no-new-privs", os.path.join(ROOT, "build", "nightclerk"), "audit", "--netns-only", "--directory", place,
             "--user", "nobody", "--db", os.path.join(place, "stores")], stdout=subprocess.PIPE, text=True, check=False, timeout=LIMIT_SECONDS)
        lines = 0
        for folder, _, names in os.walk(place):
            for name in names:
                if name == "call_ledger.jsonl":
                    with open(os.path.join(folder, name), encoding="utf-8") as ledger:
                        lines += len(ledger.readlines())
    tests = [("it starts, leaves its collector no rights, reloads, and ends", done.stdout.splitlines(),
              ["nightclerk: audit of this network namespace", "True 0000000000000000 2", "nightclerk: reloaded", "ended with 0"]),
             ("both calls are in the ledger", lines, 2)]
    for number, (name, got, want) in enumerate(tests, 1):
        print(f"{'ok' if got == want else 'not ok'} {number} - {name}")
        if got != want:
            print(f"# got  {got!r}\n# want {want!r}")
    print(f"1..{len(tests)}")
    return 0 if all(got == want for _, got, want in tests) else 1


sys.exit(main())
