#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The door that no guest takes by itself: where its programs are preempted it loses calls, and must say so.
CAPTURE_PROBE_DOOR=tracepoint exec "$(dirname "$0")/../../build/tests/live/capture_probe" "$@"
