#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# At every step of making and freeing objects of all kinds, on each of two devices, the
# ledger's counts equal what the kernel lists.
set -euo pipefail
. lab/lib.sh
check "every step" env LD_PRELOAD="$library" "$BUILD_DIRECTORY/lab/objects" steps
finish
