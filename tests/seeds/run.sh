#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs one program with the library preloaded, on a ledger and a log of its
# own, and ends as it ended.
#
# usage: run.sh [-t transcript] [NAME=value...] program [argument...]
#   -t  its stdout must also be the transcript, character for character
set -eu
# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

expected=
if [ "$1" = -t ]; then
	expected=$2
	shift 2
fi
try with "$@"
cat "$work/out"
cat "$work/err" >&2
if [ "$status" -eq 0 ] && [ -n "$expected" ]; then
	same_output "$expected" || exit 1
fi
exit "$status"
