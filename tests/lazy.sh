#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A process that never touches RDMA pays nothing: the library needs libc only,
# and /bin/true under it opens no file but the library and creates nothing.
set -euo pipefail
build=${BUILD_DIRECTORY:?}
library=$build/librdma_intercept.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

check() { # TEXT COMMAND...
	local text=$1
	shift
	if "$@"; then echo "ok    $text"; else echo "FAIL  $text"; failed=1; fi
}

command -v strace >/dev/null || { echo "skipped: strace is not installed"; exit 77; }

# System calls of /bin/true that name a file or make a mapping, in order, without addresses.
calls() {
	strace -f -o "$work/trace" -e trace='%file,memfd_create,mmap,ftruncate,clone,socket' "$@" /bin/true
	sed -E 's/^[0-9]+ +//; s/0x[0-9a-f]+/ADDRESS/g' "$work/trace"
}

needed=$(LC_ALL=C readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | paste -sd' ')
check "the library needs libc and the loader only (it needs: $needed)" \
	grep -qxE '(ld-linux-x86-64\.so\.2 )?libc\.so\.6( ld-linux-x86-64\.so\.2)?' <<<"$needed"

calls >"$work/bare"
calls -E LD_PRELOAD="$library" -E RDMA_INTERCEPT_LOG_FILE_PATH="$work/log" \
	-E RDMA_INTERCEPT_SHM_NAME="lazy.$$" -E RDMA_INTERCEPT_LOG_LEVEL=DEBUG >"$work/with"
opened=$(grep -E '^open' "$work/with" | grep -v ENOENT | sed 's/.*"\(.*\)".*/\1/' | sort)
before=$(grep -E '^open' "$work/bare" | grep -v ENOENT | sed 's/.*"\(.*\)".*/\1/' | sort)
more=$(comm -13 <(echo "$before") <(echo "$opened"))
check "/bin/true opens nothing more than the library (more: $more)" [ "$more" = "$library" ]
check "nothing is written or created" [ ! -e "$work/log" ] && [ ! -e "/dev/shm/lazy.$$" ]
anonymous() { grep -c 'MAP_ANONYMOUS' "$1" || true; }
check "no memory is mapped beyond the library's own segments" \
	[ "$(anonymous "$work/with")" -le $(($(anonymous "$work/bare") + 1)) ]
exit $failed
