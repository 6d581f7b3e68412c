#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every way to send, byte for byte: the program makes its own network namespace.
exec "${NIGHTCLERK_BUILD:-$(dirname "$0")/../../build}/tests/live/capture_probe" "$@"
