#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# All figures of docs/benchmarks.md, of a tree that is built: what a charge costs by each
# way, what registrations cost, and the counts that are the same on every run. Takes about
# three minutes. Exits with 1 when a target is missed.
# Usage: leases.sh [BUILD-DIRECTORY]
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
BUILD_DIRECTORY=$(cd "${1:-$here/../build}" && pwd) || exit 2
export BUILD_DIRECTORY
missed=0

"$BUILD_DIRECTORY/bench/leases" 1 || missed=1
echo
"$BUILD_DIRECTORY/bench/leases" 3 || missed=1
echo
"$BUILD_DIRECTORY/bench/registrations" || missed=1
echo
"$here/../tests/leasecost.sh" || missed=1
exit $missed
