#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The bash completion as bash runs it: exact lists. Words are split as readline splits them, at = too. Prints TAP."""

import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NIGHTCLERK = os.path.join(os.environ.get("NIGHTCLERK_BUILD", os.path.join(ROOT, "build")), "nightclerk")

SEVERITIES = "info low medium high"
CHECK = "--policy --fail-on --strict --allow-incomplete --format --help"
# run and watch are long, and have what --help has: see below.
COMPLETIONS = [
    # (words before the cursor and the one at it, what is offered)
    ("re", "replay report reserve release"),
    ("--v", "--version"),
    ("nothing-", ""),
    ("nothing -", ""),
    ("check -", CHECK),
    ("check a --f", "--fail-on --format"),
    ("check --fail-on ", SEVERITIES),
    ("check --fail-on m", "medium"),
    ("check --fail-on =", SEVERITIES),
    ("check --fail-on = h", "high"),
    ("check --fail-on = high --format j", "json junit"),
    ("check ", "a-folder ledger.jsonl"),
    ("check ledger.jsonl a", "a-folder"),
    ("check --policy ", "a-folder ledger.jsonl"),
    ("check -- -", ""),
    ("check -- led", "ledger.jsonl"),
    ("replay led", "ledger.jsonl"),
    ("replay ledger.jsonl led", ""),
    ("watch --cgroup ", "a-folder"),
    ("watch --all ", "host-wide"),
    ("watch --all =", "host-wide"),
    ("watch --door k", "kprobe"),
    ("watch --pid ", ""),
    ("run --events ", "a-folder ledger.jsonl"),
    ("run --allow-blind tls,h", "tls,h2"),
    ("run --allow-blind j", "joined_late"),
    ("run --user roo", "root"),
    ("run --quiet --fail-on l", "low"),
    ("run --ledger x -- nightclerk-test-", "nightclerk-test-program"),
    ("run nightclerk-test-", "nightclerk-test-program"),
    ("run -- program led", "ledger.jsonl"),
    ("run program --fail-on ", "a-folder ledger.jsonl"),  # of the program's own
    ("commit ", ""),
    ("commit KEY l", "ledger.jsonl"),
    ("get KEY l", ""),
    ("sync --", "--help"),
    ("check-policy --", "--method --host --port --path --header --tool --print-default --help"),
]

ASK = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_nightclerk
for word in "${COMPREPLY[@]}"; do printf '%s\\n' "$word"; done
"""
OFFSET = "_command_offset() { COMPREPLY=(\"from word $1\"); }\n"


def completed(place, words, first=""):
    done = subprocess.run(["bash", "--norc", "-c", first + ASK, "bash", place + "/script", *words], cwd=place + "/in",
                          env=dict(os.environ, PATH=place + "/bin:" + os.environ["PATH"], LC_ALL="C"),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    return done.stdout.split("\n")[:-1], done.stderr


def output(*words):
    return subprocess.run([NIGHTCLERK, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def equal(self, name, got, want):
        self.count += 1
        self.failed += got != want
        print(f"{'ok' if got == want else 'not ok'} {self.count} - {name}")
        if got != want:
            print(f"# got  {got!r}\n# want {want!r}")


def commands():
    """From the list that people see."""
    text = output("--help")
    listed = re.findall(r"^  ([a-z-]+) +\S", text, re.M)
    return [name for name in listed if name != "and"] + re.search(r"^  and +(.*)$", text, re.M).group(1).split()


def options_of(command):
    return re.findall(r"^  (--[a-z-]+)", output(command, "--help"), re.M)


def make(place):
    os.makedirs(place + "/in/a-folder")
    os.makedirs(place + "/bin")
    open(place + "/in/ledger.jsonl", "w", encoding="ascii").close()
    program = place + "/bin/nightclerk-test-program"
    open(program, "w", encoding="ascii").close()
    os.chmod(program, 0o755)
    with open(place + "/script", "w", encoding="ascii") as script:
        script.write(output("completion", "bash"))


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as place:
        make(place)
        for line, want in COMPLETIONS:
            got, errors = completed(place, ["nightclerk", *line.split(" ")])
            order = sorted if want == "a-folder ledger.jsonl" else list
            tap.equal("nightclerk " + line, (order(got), errors), (want.split(), ""))
        tap.equal("every command", completed(place, ["nightclerk", ""])[0], commands() + ["--help", "--version"])
        for command in commands():
            takes_command = command in ("run", "watch", "once")
            tap.equal("every option of " + command, completed(place, ["nightclerk", command, "-"])[0],
                      options_of(command) + (["--"] if takes_command else []))
        tap.equal("bash-completion, where it is there, does the command behind --",
                  completed(place, ["nightclerk", "run", "--quiet", "--", "make", ""], OFFSET)[0], ["from word 4"])
        tap.equal("bash itself finds nothing wrong with it",
                  subprocess.run(["bash", "-n", place + "/script"], check=False).returncode, 0)
    refused = subprocess.run([NIGHTCLERK, "completion", "fish"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    tap.equal("another shell", (refused.returncode, refused.stderr),
              (2, b"nightclerk completion: takes the name of a shell: bash\n"))
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


sys.exit(main())
