#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A process that never touches RDMA pays nothing: the library needs libc only,
# and /bin/true under it opens no file but the library and creates nothing.
# usage: tests/lazy.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that run_cases calls
set -euo pipefail
build=${BUILD_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)/build}
library=$build/librdma_intercept.so
command -v strace >/dev/null || { echo "skipped: strace is not installed"; exit 77; }
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
shm=${work##*/}

# System calls of /bin/true that name a file or make a mapping, in order, without addresses.
calls() {
	strace -f -o "$work/trace" -e trace='%file,memfd_create,mmap,ftruncate,clone,socket' "$@" /bin/true
	sed -E 's/^[0-9]+ +//; s/0x[0-9a-f]+/ADDRESS/g' "$work/trace"
}
calls >"$work/bare"
calls -E LD_PRELOAD="$library" -E RDMA_INTERCEPT_LOG_FILE_PATH="$work/log" \
	-E RDMA_INTERCEPT_SHM_NAME="$shm" -E RDMA_INTERCEPT_LOG_LEVEL=DEBUG >"$work/with"

opened_by() {
	grep -E '^open' "$1" | grep -v ENOENT | sed 's/.*"\(.*\)".*/\1/' | sort
}
anonymous() {
	grep -c 'MAP_ANONYMOUS' "$1" || true
}

needs_libc_only() {
	local needed

	needed=$(LC_ALL=C readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort |
		paste -sd' ')
	check "the library needs libc and the loader only (it needs: $needed)" \
		grep -qxE '(ld-linux-x86-64\.so\.2 )?libc\.so\.6( ld-linux-x86-64\.so\.2)?' <<<"$needed"
}

opens_nothing_more() {
	local more

	more=$(comm -13 <(opened_by "$work/bare") <(opened_by "$work/with"))
	check "/bin/true opens nothing more than the library (more: $more)" [ "$more" = "$library" ]
}

creates_nothing() {
	check "no log is written" [ ! -e "$work/log" ]
	check "no shared memory is created" [ ! -e "/dev/shm/$shm" ]
}

maps_nothing_more() {
	check "no memory is mapped beyond the library's own segments" \
		[ "$(anonymous "$work/with")" -le $(($(anonymous "$work/bare") + 1)) ]
}

run_cases "needs_libc_only opens_nothing_more creates_nothing maps_nothing_more" "$@"
