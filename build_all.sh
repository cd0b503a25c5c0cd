#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing, builds, and on request shows or tests.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
	cat <<-TEXT
	usage: ./build_all.sh [demo | test]
	  (nothing)  install what is missing and build into build/
	  demo       build, then show the main job: a program at its limit
	  test       build, then run all tests: on stand-in libraries, in the lab's virtual
             machine on a real kernel, and under the sanitizers
	TEXT
}

say() { printf '\n== %s\n' "$*"; }

# Debian packages by what they are for.
build_packages=(gcc libc6-dev make cmake pkgconf libibverbs-dev librdmacm-dev libsystemd-dev libjansson-dev
	clang bpftool libbpf-dev)
# The lab: a virtual machine, Soft-RoCE's tools, and what the demonstration runs in it.
lab_packages=(qemu-system-x86 busybox-static kmod cpio xz-utils iproute2 rdma-core ibverbs-providers perftest)
# Real applications for the scenarios.
test_packages=(valgrind strace shellcheck spin ibverbs-utils rdmacm-utils libfabric-bin ucx-utils
	openmpi-bin libopenmpi-dev python3-pyverbs gcc-multilib)

# install_missing PACKAGE...
install_missing() {
	local package missing=() as_root=()
	for package in "$@"; do
		if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
			missing+=("$package")
		fi
	done
	[ ${#missing[@]} -eq 0 ] && return
	if [ "$(id -u)" -ne 0 ]; then
		if ! command -v sudo >/dev/null; then
			echo "missing packages, to be installed by root: ${missing[*]}" >&2
			exit 1
		fi
		as_root=(sudo)
	fi
	say "Installing ${missing[*]} (this may take a few minutes)"
	"${as_root[@]}" apt-get update -qq
	DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
		"${missing[@]}" >/dev/null
}

# build DIRECTORY CMAKE-ARGUMENT...
build() {
	local directory=$1
	shift
	say "Building $directory"
	cmake -S . -B "$directory" "$@" >/dev/null
	cmake --build "$directory" -j "$(nproc)" -- --no-print-directory |
		{ grep -v -e '\] Built target' -e '\] Building' -e '\] Linking' || true; }
}

# run_tests DIRECTORY CTEST-ARGUMENT...
run_tests() {
	local directory=$1
	shift
	say "Testing $directory"
	ctest --test-dir "$directory" --output-on-failure --no-tests=error "$@"
}

# The run-time of a sanitizer must be loaded before everything else.
# sanitized NAME SANITIZERS RUN-TIME SECONDS
sanitized() {
	local runtime
	runtime=$(gcc -print-file-name="$3")
	build "build-$1" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DCMAKE_C_FLAGS="-fsanitize=$2 -fno-omit-frame-pointer" \
		-DRDMA_INTERCEPT_WERROR=ON -DRDMA_INTERCEPT_TEST_PRELOAD="$runtime"
	RDMA_INTERCEPT_TEST_SECONDS=$4 run_tests "build-$1"
}

case ${1-} in
'')
	install_missing "${build_packages[@]}"
	build build
	say "Done. Try: ./build_all.sh demo"
	;;
demo)
	install_missing "${build_packages[@]}" "${lab_packages[@]}"
	build build
	exec tests/demo.sh
	;;
test)
	install_missing "${build_packages[@]}" "${lab_packages[@]}" "${test_packages[@]}"
	build build -DRDMA_INTERCEPT_WERROR=ON
	run_tests build
	sanitized asan address,undefined libasan.so 3
	sanitized tsan thread libtsan.so 3
	;;
-h | --help)
	usage
	;;
*)
	echo "build_all.sh: unknown argument '$1'" >&2
	usage >&2
	exit 2
	;;
esac
