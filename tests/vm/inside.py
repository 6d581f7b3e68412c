# SPDX-License-Identifier: BSD-2-Clause
"""inside.py OUT TEST...: runs test programs in a guest and leaves one TAP of all of them in OUT/tap.

TEST is a program, or program:argument,... for some of its tests. One that
dies, prints no plan or prints fewer tests than it planned is a failed test of
its own. What each of them said stays in OUT/<name>.txt; how many seconds each
of its tests took, in OUT/seconds.
"""
import os
import re
import select
import subprocess
import sys
import time

LIMIT_SECONDS = int(os.environ.get("NIGHTCLERK_VM_TEST_SECONDS", "1200"))


def lines_of(pipe, deadline):
    """The lines that come before the deadline; whoever else holds the pipe may hold it for ever."""
    text = b""
    while select.select([pipe], [], [], max(0, deadline - time.monotonic()))[0]:
        read = os.read(pipe.fileno(), 65536)
        if not read:
            break
        *whole, text = (text + read).split(b"\n")
        yield from whole
    if text:
        yield text


def run(command, log_path, took):
    """The program's lines and what is wrong with its end. took(seconds, line) is told each test as it ends."""
    lines = []
    before = time.monotonic()
    deadline = before + LIMIT_SECONDS
    with open(log_path, "w", encoding="utf-8", buffering=1) as log, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) as process:
        for line in lines_of(process.stdout, deadline):
            lines.append(line.decode(errors="replace"))
            log.write(lines[-1] + "\n")
            if re.match(r"(not )?ok ", lines[-1]):
                now = time.monotonic()
                took(now - before, lines[-1])
                before = now
        try:
            status = process.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            return lines, f"had not ended after {LIMIT_SECONDS} s"
    return lines, f"ended with {status}" if status else None


def main(out, programs):
    number = failed = 0
    with open(os.path.join(out, "tap"), "w", encoding="utf-8", buffering=1) as tap, \
            open(os.path.join(out, "seconds"), "w", encoding="utf-8", buffering=1) as seconds:
        for program in programs:
            program, _, chosen = program.partition(":")
            name = os.path.basename(program)
            print("running", name, flush=True)
            started = time.monotonic()
            try:
                lines, trouble = run([program, *filter(None, chosen.split(","))], os.path.join(out, name + ".txt"),
                                     lambda took, line, name=name: seconds.write(f"{took:7.1f} {name}: {line}\n"))
            except OSError as error:  # there is no such program
                lines, trouble = [], str(error)
            tap.write(f"# {name}: {time.monotonic() - started:.0f} s\n")
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
