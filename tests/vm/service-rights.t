#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What packaging/nightclerk.service leaves the program, in a guest: with that the probe loads and fires by
every door of this kernel; without any one of the rights to load it does not. Prints TAP.
"""

import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NIGHTCLERK = os.path.join(ROOT, "build", "nightclerk")
PARANOID = "/proc/sys/kernel/perf_event_paranoid"

# Read-only as ProtectSystem=strict and ProtectKernelTunables=yes make it, but for ReadWritePaths.
CONFINED = """
mount --make-rprivate /
for place in $(awk '$2 ~ "^/(sys|proc/sys)" { print $2 }' /proc/mounts) /proc/sys; do
	case " $WRITABLE " in *" $place "*) continue ;; esac
	mountpoint -q "$place" || mount --bind "$place" "$place"
	mount -o remount,bind,ro "$place"
done
! touch /sys/kernel/mm/ksm/run 2>/dev/null || exit 99
ulimit -l unlimited # LimitMEMLOCK: Linux 5.10 counts the tables against it
exec setpriv --bounding-set="-all$RIGHTS" --inh-caps=-all --no-new-privs "$NIGHTCLERK" doctor --json
"""
failed = count = 0


def setting(name):
    with open(os.path.join(ROOT, "packaging", "nightclerk.service"), encoding="utf-8") as unit:
        return re.search(rf"^{name}=(.*)$", unit.read(), re.M).group(1).split()


def doctor(rights):
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", CONFINED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=600,
        env=dict(os.environ, NIGHTCLERK=NIGHTCLERK, WRITABLE=" ".join(path.lstrip("-") for path in setting("ReadWritePaths")),
                 RIGHTS="".join(",+" + right[len("CAP_"):].lower() for right in rights)))
    if done.returncode not in (0, 1):
        raise RuntimeError(f"ended with {done.returncode}: {done.stderr!r}")
    said = json.loads(done.stdout)
    return {check["name"]: check["state"] for check in said["checks"] if check["name"].startswith("door")}, said


def test(name, good, said):
    global failed, count  # pylint: disable=global-statement
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        print(f"# {said!r}")


def paranoid(level):
    with open(PARANOID, "w", encoding="ascii") as file:
        file.write(level)


def main():
    rights = setting("CapabilityBoundingSet")
    with open(PARANOID, encoding="ascii") as file:
        print(f"# kernel.perf_event_paranoid was {file.read().strip()}")
    paranoid("3")
    doors, said = doctor(rights)
    test("the service may load and fire at level 3", doors["door of run"] == "ok" and said["trusted"], said)
    has_kprobe = doors["door kprobe"] == "ok"
    test("the kprobe door too, as a Debian kernel has it", has_kprobe, said)
    admin_free = [right for right in rights if right != "CAP_SYS_ADMIN"]
    doors, said = doctor(admin_free)
    test("level 3: the kprobe door takes CAP_SYS_ADMIN", doors["door kprobe"] == "note", said)
    paranoid("2")
    doors, said = doctor(admin_free)
    test("level 2: without CAP_SYS_ADMIN", doors["door of run"] == "ok" and doors["door kprobe"] == "ok", said)
    for right in ("CAP_BPF", "CAP_PERFMON"):
        doors, said = doctor([other for other in admin_free if other != right])
        test(f"not without {right}", doors["door of run"] == "bad", said)
    print(f"1..{count}")
    return 1 if failed else 0


sys.exit(main())
