#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Components are built alone, and programs of others are built with what is installed.
# usage: tests/components.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that check calls
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
sources=${SOURCE_DIRECTORY:-$here/..}

# pkg-config finds nothing here, and clang is not looked for.
configures_alone() {
	PKG_CONFIG_LIBDIR=/nonexistent PKG_CONFIG_PATH='' cmake -S "$sources" -B "$work/library" -DCLANG=NOTFOUND \
		-DBPFTOOL=NOTFOUND -DRDMA_INTERCEPT_{COLLECTOR,MONITOR,CLI,DASHBOARD,FLEET,CLIENT}=OFF -DSPANK_INCLUDE=/nonexistent >"$work/summary" 2>&1
}
library_alone() {
	check "the library is configured without other packages" configures_alone
	check "the summary has what is built" grep -q 'RDMA_INTERCEPT_LIBRARY: ON' "$work/summary"
	check "and what is not" grep -q 'RDMA_INTERCEPT_TESTS: OFF' "$work/summary"
	check "the plugin for Slurm is left out, with the reason" grep -q 'SLURM: left out: slurm/spank.h is missing' "$work/summary"
	check "it builds" make -s -C "$work/library" -j2
	check "the library is there" test -f "$work/library/librdma_intercept.so"
	check "the collector is not" test ! -e "$work/library/collector_server"
}

configures_command() {
	cmake -S "$sources" -B "$work/command" -DRDMA_INTERCEPT_NCURSES=OFF \
		-DRDMA_INTERCEPT_{LIBRARY,COLLECTOR,MONITOR,DASHBOARD,FLEET,CLIENT}=OFF >"$work/configured" 2>&1
}
# Without ncurses the command is the same, but for top, which prints once.
without_ncurses() {
	check "the command is configured" configures_command
	check "the configuration says so" grep -q 'Without ncurses' "$work/configured"
	check "it builds" make -s -C "$work/command" -j2 rdma_intercept_command
	check "it needs no ncurses" not sh -c "ldd '$work/command/rdma_intercept' | grep -q curses"
	: >"$work/plain.conf"
	RDMA_INTERCEPT_POLICY=$work/plain.conf RDMA_COLLECTOR_SOCKET=$work/plain RDMA_COLLECTOR_STATE=$work/plain.state \
		background "$build/collector_server" &
	workers+=($!)
	check "a collector starts" eventually test -S "$work/plain"
	script -qec "'$work/command/rdma_intercept' -s '$work/plain' top -d 0.1" /dev/null </dev/null >"$work/screen" || true
	check "top says so" grep -q 'built without ncurses' "$work/screen"
	check "top prints the tenants" grep -q '^default' "$work/screen"
}

fails_with() { # PROGRAM TEXT ARGUMENT...
	! "$1" "${@:3}" >"$work/out" 2>&1 && grep -q "$2" "$work/out"
}
prints() { # PROGRAM LINE ARGUMENT...
	"$1" "${@:3}" | grep -qx "$2"
}

client() {
	local headers library program examples=("$work/usage")
	DESTDIR=$work/root cmake --install "$build" >/dev/null
	headers=$(dirname "$(dirname "$(find "$work/root" -name client.h)")")
	library=$(dirname "$(find "$work/root" -name librdma_intercept_client.so)")
	check "pkg-config knows it" env PKG_CONFIG_PATH="$library/pkgconfig" pkg-config --exists rdma_intercept_client
	check "the example builds" gcc -Wall -Wextra -Werror -o "$work/usage" "$sources/examples/usage.c" \
		-I"$headers" -L"$library" "$(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --libs-only-l rdma_intercept_client | xargs)"
	if python3 -c 'import ctypes' 2>/dev/null; then
		examples+=("$sources/examples/usage.py")
	else
		skip_part "python3 is not installed"
	fi
	export LD_LIBRARY_PATH=$library RDMA_COLLECTOR_SOCKET=$work/socket
	for program in "${examples[@]}"; do
		check "${program##*/}: without a collector it says so" fails_with "$program" "$work/socket"
	done
	printf '[tenant web]\nmatch = uid=4000000000\nqp = 7\n' >"$work/policy"
	RDMA_INTERCEPT_POLICY=$work/policy RDMA_COLLECTOR_STATE=$work/state background "$build/collector_server" &
	workers+=($!)
	check "a collector starts" eventually test -S "$work/socket"
	for program in "${examples[@]}"; do
		check "${program##*/}: it reads the limit" eventually prints "$program" 'web: 0 of 7' qp
		check "${program##*/}: a kind without a limit" prints "$program" 'web: 0' mr
		check "${program##*/}: a kind that does not exist" fails_with "$program" 'unknown kind' house
	done
}

entries() { (cd "$root" && find . | sort); }
removes() { DESTDIR=$root cmake --build "$build" --target uninstall >"$work/removed" 2>&1; }
# What is there before the installation is there after `make uninstall`, and nothing else.
uninstall() {
	local root=$work/host
	rm -f "$build/install_manifest.txt" "$build/install_directories.txt"
	check "without an installation it fails" not removes
	# (CMake breaks lines by the length of the path)
	check "and says what is expected" grep -q "expected a build directory in which 'make install' was run" \
		<(tr -s ' \n' ' ' <"$work/removed")
	mkdir -p "$root/usr/local/bin" "$root/usr/local/share/man/man5" "$root/etc"
	: >"$root/usr/local/bin/of-somebody-else"
	entries >"$work/before"
	for _ in first again; do # the second installation finds the directories of the first
		DESTDIR=$root cmake --install "$build" >/dev/null
	done
	check "it was installed" test -e "$root/usr/local/bin/rdma_intercept"
	check "and the directory of the policy, too" test -d "$root/etc/rdma_intercept/tenants.d"
	echo /usr/local/lib/librdma_intercept.so >"$root/etc/ld.so.preload"
	check "not while every program loads the library" not removes
	check "the message has the way out" grep -q "sed -i '/librdma_intercept/d' $root/etc/ld.so.preload" "$work/removed"
	check "and everything is still there" test -e "$root/usr/local/lib/librdma_intercept.so"
	rm "$root/etc/ld.so.preload"
	check "make uninstall" removes
	entries >"$work/after"
	check "find says the same before and after" diff "$work/before" "$work/after"
}

run_cases "library_alone without_ncurses client uninstall" "$@"
