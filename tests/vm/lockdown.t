#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A kernel that is locked down, in a guest, and the last test of it: there is no way back."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "live"))

from harness import check, contains, fact, play  # pylint: disable=wrong-import-position

LOCKDOWN = "/sys/kernel/security/lockdown"


def lock_down(how):
    if not os.path.exists(LOCKDOWN):
        subprocess.run(["mount", "-t", "securityfs", "none", "/sys/kernel/security"], check=True)
    with open(LOCKDOWN, "w", encoding="ascii") as file:
        file.write(how)


@fact
def integrity_is_no_hindrance(live):
    lock_down("integrity")
    live.run(["true"]).expect(0)


@fact
def confidentiality_is_125_with_the_reason_and_starts_nothing(live):
    lock_down("confidentiality")
    result = live.run(["touch", live.path("started")]).expect(125)
    contains(result.stderr, "the kernel is locked down, and does not let its memory be read: boot without "
                            "lockdown=confidentiality (integrity is fine); the command was not started", "stderr")
    check(not os.path.exists(live.path("started")), "the command was started")


play()
