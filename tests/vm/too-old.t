#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A kernel before 5.17, in a guest: nightclerk does not work there, and says so before anything is started."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "live"))

from harness import NIGHTCLERK, check, contains, equal, fact, play  # pylint: disable=wrong-import-position

REASON = "this kernel is too old: the probe needs bpf_loop (Linux 5.17 or later)"


@fact
def a_run_is_125_with_the_reason_and_starts_nothing(live):
    result = live.run(["touch", live.path("started")]).expect(125)
    contains(result.stderr, REASON, "stderr")
    check(not os.path.exists(live.path("started")), "the command was started")


@fact
def doctor_does_not_trust_the_gate(_):
    done = subprocess.run([NIGHTCLERK, "doctor"], capture_output=True, check=False)
    contains(done.stdout.decode(), REASON, "what doctor says")
    equal(done.returncode, 1, "exit status")


play()
