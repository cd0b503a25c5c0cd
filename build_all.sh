#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing, builds, and on request shows or tests.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
	cat <<-TEXT
	usage: ./build_all.sh [demo | package [ARCH] | arm64 | test [OPTION...] [LABEL]]
	  (no argument)  install missing packages and build into build/
	  demo           build, then show the whole: library, collector, monitor, guard, top
	  package        make .deb and .rpm files in build-package/packages, which work on Debian 11 and
	                 later; ARCH: amd64 or arm64, another one in build-package-ARCH
	  arm64          install a cross compiler and build for aarch64 into build-arm64/
	  test           build, then run all tests: on stand-in libraries, in virtual machines on a
	                 real kernel, and under the sanitizers
	  test LABEL     only the tests with this label: quick (a minute, no virtual machine),
	                 daemon, kill, model, lab, analysis
	    --only NAME  only this test; NAME:CASE only this case of it
	    --list       print the names and labels of the tests, and run none
	    --long       in addition full sizes, all kernels and the long tests (hours)
	TEXT
}

say() { printf '\n== %s\n' "$*"; }

# Debian packages by what they are for.
build_packages=(gcc libc6-dev make cmake pkgconf libibverbs-dev librdmacm-dev libsystemd-dev libjansson-dev
	libmicrohttpd-dev libcurl4-openssl-dev libsqlite3-dev libncurses-dev
	clang bpftool libbpf-dev libmnl-dev gettext)
# What makes packages, from libraries of other releases that packaging/sysroot fetches.
packaging_packages=(rpm binutils)
# The lab: a virtual machine, Soft-RoCE's tools, and what the demonstration runs in it.
lab_packages=(qemu-system-x86 busybox-static kmod cpio xz-utils iproute2 rdma-core ibverbs-providers perftest
	systemd)
# Real applications for the scenarios.
test_packages=(jq valgrind strace shellcheck cppcheck spin ibverbs-utils rdmacm-utils libfabric-bin ucx-utils
	openmpi-bin libopenmpi-dev python3 python3-pyverbs python3-kubernetes prometheus curl tmux
	etcd-server etcd-client openssl
	chromium fonts-wqy-microhei locales groff musl-tools)
# Batch jobs: the plugin is built where these headers are, and tried with a whole Slurm.
test_packages+=(libslurm-dev slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge)
# Containers.
test_packages+=(podman crun runc)
# What the documents are checked with.
test_packages+=(mandoc hunspell hunspell-en-gb debootstrap)

# A cross compiler, and emulators of the processor and of a machine.
arm64_packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static qemu-system-arm)

# npm bundles the page; whoever has one from elsewhere needs no package.
command -v npm >/dev/null || build_packages+=(nodejs npm)

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
	apt_get update
	apt_get install -y --no-install-recommends "${missing[@]}"
}
# apt_get ARGUMENT...: waits while another installation, such as an automatic upgrade, has apt's locks
apt_get() {
	local said='' waits=''
	until said=$("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -qq "$@" 2>&1 >/dev/null); do
		grep -qE '^E: (Could not get lock|Unable to (acquire|lock))' <<<"$said" || { echo "$said" >&2; return 1; }
		[ -n "$waits" ] || grep -m 1 '^E: ' <<<"$said" >&2
		waits=1
		sleep 2
	done
}

# Programs for 32 bits need gcc-12-multilib, or the like of the gcc that is installed. gcc-multilib,
# which depends on it, conflicts with the cross compiler.
multilib_package() { dpkg-query -W -f '${Depends}' gcc | grep -o 'gcc-[0-9]*' | sed 's/$/-multilib/;q'; }

# build DIRECTORY CMAKE-ARGUMENT...
build() {
	local directory=$1
	shift
	say "Building $directory"
	cmake -S . -B "$directory" "$@" |
		{ grep -e 'Installing the packages of the page' -e 'page of rdma_dashboard: left out' \
			-e 'Messages in Chinese: left out' || true; }
	cmake --build "$directory" -j "$(nproc)" -- --no-print-directory |
		{ grep -v -e '\] Built target' -e '\] Building' -e '\] Linking' || true; }
}

# make_packages [ARCH]: the library's directory is another one in packages of the other kind
make_packages() {
	local own arch directory=build-package machine sysroot
	own=$(dpkg --print-architecture)
	arch=${1:-$own}
	case $arch in
	amd64) machine=x86_64 ;;
	arm64) machine=aarch64 ;;
	*) echo "build_all.sh: package: unknown architecture '$arch': expected amd64 or arm64" >&2; exit 2 ;;
	esac
	if [ "$arch" != "$own" ]; then
		directory=build-package-$arch
		packaging_packages+=("gcc-${machine/_/-}-linux-gnu")
	fi
	install_missing "${build_packages[@]}" "${packaging_packages[@]}"
	sysroot=$(packaging/sysroot "$arch")
	rm -f "$directory"/packages/*.{deb,rpm}
	for generator in DEB:lib/$machine-linux-gnu RPM:lib64; do
		build "$directory" -DCMAKE_TOOLCHAIN_FILE="$PWD/packaging/sysroot.cmake" -DCMAKE_INSTALL_PREFIX=/usr \
			-DRDMA_INTERCEPT_SYSROOT="$sysroot" -DRDMA_INTERCEPT_ARCH="$arch" -DRDMA_INTERCEPT_TESTS=OFF \
			-DCMAKE_INSTALL_LIBDIR="${generator#*:}"
		(cd "$directory" && cpack -G "${generator%%:*}" >cpack.log 2>&1) || {
			cat "$directory/cpack.log" >&2
			exit 1
		}
	done
	rm -rf "$directory/packages/_CPack_Packages"
	say "Packages:"
	ls "$directory"/packages/*
}

# sanitized NAME SANITIZER: builds into build-NAME, without the page, whose code is no C
sanitized() {
	build "build-$1" -DRDMA_INTERCEPT_WERROR=ON -DRDMA_INTERCEPT_SANITIZER="$2" -DRDMA_INTERCEPT_PAGE=OFF
}

# run_tests BUILD... -- CTEST-ARGUMENT...: the tests of several builds as one run of ctest, so that
# there is one count, in the last line
run_tests() {
	local every=$PWD/build/every-build status=0
	mkdir -p "$every"
	: >"$every/CTestTestfile.cmake"
	while [ "$1" != -- ]; do
		printf 'subdirs("%s")\n' "$PWD/$1" >>"$every/CTestTestfile.cmake"
		shift
	done
	shift
	ctest --test-dir "$every" --output-on-failure --no-tests=error -j "$(nproc)" "$@" |
		tee "$every/output" || status=$?
	awk '/^ *[0-9]+\/[0-9]+ Test +#/ { if (/   Passed /) passed++; else if (/\*\*\*Skipped/) skipped++; else failed++ }
		END { printf "%d passed, %d failed", passed, failed; if (skipped) printf ", %d skipped", skipped; print "" }' \
		"$every/output"
	return $status
}

# pattern TEXT: a regular expression that matches this text only
pattern() { sed 's/[][().*+?^$|\\]/\\&/g' <<<"$1"; }

# list_tests: NAME and LABELS of each; needs no build. The sanitizer builds have the same tests but
# for those that cannot differ, as asan.NAME and tsan.NAME.
list_tests() {
	cmake -S . -B build >/dev/null
	ctest --test-dir build --build-config long --show-only=json-v1 | awk -F '"' '
		/^      "name" : / { name = $4 }
		/^          "name" : "LABELS"/ { labels = 1; next }
		labels && /"value"/ { next }
		labels && /"/ { list = list " " $2 }
		labels && /\]/ { printf "%-40s%s\n", name, list; labels = 0; list = "" }'
}

test_command() {
	local label='' only='' list='' long='' builds=(build) arguments=()
	while [ $# -gt 0 ]; do
		case $1 in
		--only)
			[ -z "$only" ] || { echo "build_all.sh: --only: given twice: expected one NAME" >&2; exit 2; }
			only=${2-}
			[[ $only = [!-]* ]] || { echo "build_all.sh: --only: missing NAME: --list prints the names" >&2; exit 2; }
			shift
			;;
		--list) list=1 ;;
		--long) long=1 ;;
		quick | daemon | kill | model | lab | analysis | long)
			[ -z "$label" ] || { echo "build_all.sh: test: two labels '$label' and '$1': expected one" >&2; exit 2; }
			label=$1
			;;
		*) echo "build_all.sh: test: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
		esac
		shift
	done
	install_missing "${build_packages[@]}"
	install_missing "${lab_packages[@]}" "${test_packages[@]}" "${arm64_packages[@]}" "$(multilib_package)"
	if [ -n "$list" ]; then
		list_tests
		return
	fi
	if [ -n "$only" ]; then
		[ "$only" = "${only%%:*}" ] || export TEST_CASE=${only#*:}
		only=${only%%:*}
		list_tests | grep -E "^$(pattern "${only#[at]san.}") " >/dev/null || {
			echo "build_all.sh: --only: no test named '$only': --list prints the names" >&2
			exit 2
		}
	fi
	build build -DRDMA_INTERCEPT_WERROR=ON
	case $label$only in
	'' | asan.* | tsan.*)
		sanitized asan address
		sanitized tsan thread
		builds+=(build-asan build-tsan)
		;;
	esac
	[ -z "$label" ] || arguments+=(--label-regex "^$label\$")
	[ -z "$only" ] || arguments+=(--tests-regex "^$(pattern "$only")\$")
	if [ -n "$long" ] || [ "$label" = long ]; then
		export RDMA_INTERCEPT_TEST_FACTOR=${RDMA_INTERCEPT_TEST_FACTOR:-5}
		arguments+=(--build-config long)
	fi
	say "Testing ${builds[*]}"
	run_tests "${builds[@]}" -- "${arguments[@]}"
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
package)
	shift
	[ $# -le 1 ] || { usage >&2; exit 2; }
	make_packages "$@"
	;;
arm64)
	install_missing "${build_packages[@]}" "${arm64_packages[@]}"
	say "Building build-arm64"
	packaging/cross arm64
	;;
test)
	shift
	test_command "$@"
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
