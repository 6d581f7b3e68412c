# SPDX-License-Identifier: BSD-2-Clause
"""inside.py OUT TEST...: runs test programs in a guest and leaves one TAP of all of them in OUT/tap.

A program that dies, prints no plan or prints fewer tests than it planned is a
failed test of its own. What each of them said stays in OUT/<name>.txt.
"""
import os
import re
import subprocess
import sys

LIMIT_SECONDS = int(os.environ.get("NIGHTCLERK_VM_TEST_SECONDS", "1200"))


def run(program, log_path):
    with open(log_path, "wb") as log:
        try:
            status = subprocess.run([program], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                    timeout=LIMIT_SECONDS, check=False).returncode
            trouble = f"ended with {status}" if status else None
        except subprocess.TimeoutExpired:
            trouble = f"had not ended after {LIMIT_SECONDS} s"
    with open(log_path, encoding="utf-8", errors="replace") as log:
        return log.read().splitlines(), trouble


def main(out, programs):
    number = failed = 0
    with open(os.path.join(out, "tap"), "w", encoding="utf-8", buffering=1) as tap:
        for program in programs:
            name = os.path.basename(program)
            print("running", name, flush=True)
            lines, trouble = run(program, os.path.join(out, name + ".txt"))
            planned, seen, bad = None, 0, 0
            for line in lines:
                plan = re.match(r"1\.\.(\d+)(.*)", line)
                test = re.match(r"(not )?ok \d+(?: - )?(.*)", line)
                if plan:
                    planned = int(plan.group(1))
                    if planned == 0:
                        number += 1
                        tap.write(f"ok {number} - {name}{plan.group(2) or ' # SKIP'}\n")
                elif test:
                    number, seen = number + 1, seen + 1
                    bad += bool(test.group(1))
                    tap.write(f"{test.group(1) or ''}ok {number} - {name}: {test.group(2)}\n")
                elif line.startswith("#"):
                    tap.write(line + "\n")
            if planned is None:
                trouble = trouble or "printed no plan"
            elif seen < planned:
                trouble = f"printed {seen} of {planned} tests" + (f", {trouble}" if trouble else "")
            if trouble and not bad or planned is None:
                number, bad = number + 1, bad + 1
                tap.write(f"not ok {number} - {name}: {trouble}\n")
                tap.write("".join(f"# {line}\n" for line in lines[-20:]))
            failed += bad
        tap.write(f"1..{number}\n")
    return 1 if failed or not number else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
