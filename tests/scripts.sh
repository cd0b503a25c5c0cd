#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Shellcheck finds no fault in any script of the tree.
set -euo pipefail
cd "${SOURCE_DIRECTORY:-$(dirname "$0")/..}"
command -v shellcheck >/dev/null || { echo "skipped: shellcheck is not installed"; exit 77; }
mapfile -t scripts < <(find . -path './build*' -prune -o -name node_modules -prune -o -name '*.sh' -print)
scripts+=(.ci/run build_all.sh lab/{run,check,kernel,root,foreign,guest} packaging/cross)
printf '%s\0' "${scripts[@]}" | xargs -0 -n 8 shellcheck -x -S warning
echo "${#scripts[@]} scripts checked"
