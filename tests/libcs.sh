#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One library for every C library: librdma_intercept.so as it was built here, in programs that were
# compiled with glibc 2.31 and run with it, with the machine's own glibc, with the newest glibc of
# Debian, and with musl. The stand-in libibverbs is compiled with each of them, too.
# usage: tests/libcs.sh [--list | --only CASE]
# shellcheck disable=SC2317 # functions that run_cases and check call
set -euo pipefail
sources=${SOURCE_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)}
build=${BUILD_DIRECTORY:-$sources/build}
library=$build/librdma_intercept.so
# shellcheck source=tests/cases.sh
. "$(dirname "$0")/cases.sh"
[ -e "$library" ] || { echo "$library is missing: build the project first" >&2; exit 1; }
if grep -qE '^(RDMA_INTERCEPT_SANITIZER:STRING=.|CMAKE_C_FLAGS:.*coverage)' "$build/CMakeCache.txt"; then
	echo "skipped: an instrumented library needs the libc that it was linked with"
	exit 77
fi
unset LD_PRELOAD LD_LIBRARY_PATH "${!RDMA_INTERCEPT_@}"
export RDMA_COLLECTOR_SOCKET=$work/none RDMA_INTERCEPT_LOG_FILE_PATH=$work/log
machine=$(uname -m)-linux-gnu

# ---- C libraries: how to compile, where their files are, what they say they are

declare -A compiler=() flags=() files=() version=()
declare -A missing=( # why one is not here
	[old]='packaging/sysroot cannot be made' [newest]='the glibc of Debian unstable cannot be fetched'
	[musl]='musl-gcc is not installed'
)

libc_own() {
	compiler[own]=gcc flags[own]=-DGLIBC
	version[own]=$(getconf GNU_LIBC_VERSION | sed 's/glibc //')
}

# The loader of the release is the one that the programs name.
libc_old() {
	local root
	root=$("$sources/packaging/sysroot") || return 0
	files[old]=$root/lib/$machine:$root/usr/lib/$machine
	compiler[old]=gcc version[old]=2.31
	flags[old]="-DGLIBC --sysroot=$root -B$root/usr/lib/$machine -L$root/usr/lib/$machine -L$root/lib/$machine
		-Wl,--dynamic-linker=$(echo "$root/lib/$machine"/ld-2.31.so)"
}

# Programs of this machine, with the newest loader and glibc.
libc_newest() {
	local root
	root=$("$sources/lab/root" --unpack unstable libc6) || return 0
	files[newest]=$root/usr/lib/$machine
	compiler[newest]=gcc
	flags[newest]="-DGLIBC -Wl,--dynamic-linker=$(echo "$root/usr/lib/$machine"/ld-linux-*)"
	version[newest]=$(strings "${files[newest]}/libc.so.6" | sed -n 's/^GNU C Library .* version \([0-9.]*[0-9]\)\.$/\1/p')
}

libc_musl() {
	command -v musl-gcc >/dev/null || return 0
	compiler[musl]=musl-gcc version[musl]=musl
	flags[musl]="-idirafter /usr/include -idirafter /usr/include/$machine"
}

# compile LIBC OUTPUT ARGUMENT...
compile() {
	local libc=$1 output=$2 options
	shift 2
	read -r -d '' -a options <<<"${flags[$libc]}" || true
	"${compiler[$libc]}" -std=gnu11 -D_GNU_SOURCE -O1 -o "$work/$libc/$output" "$@" "${options[@]}"
}

# need LIBC: compiles the stand-in libibverbs and the program, once; false if the C library is missing
need() {
	local libc=$1 stand=$sources/tests/fakeverbs
	[ -n "${compiler[$libc]-}" ] || return 1
	[ ! -e "$work/$libc/loaded" ] || return 0
	mkdir -p "$work/$libc"
	stand_in "$libc" libibverbs.so.1 -pthread
	compile "$libc" linked -DLINKED "$sources/tests/libcs/user.c" "$work/$libc/libibverbs.so.1" -pthread -ldl
	compile "$libc" loaded "$sources/tests/libcs/user.c" -pthread -ldl
	check "$libc: programs run with ${version[$libc]}" [ "$(under "$libc" "$work/$libc/loaded" libc)" = "${version[$libc]}" ]
}

# stand_in LIBC OUTPUT ARGUMENT...
stand_in() {
	local stand=$sources/tests/fakeverbs
	compile "$1" "$2" -fPIC -shared -fvisibility=default -I"$stand" -Wl,-soname,libibverbs.so.1 \
		-Wl,--version-script="$stand/ibverbs.map" -Wl,--version-script="$stand/ibverbs-newer.map" \
		"$stand"/{compat,control,device,events,inline,memory,object,queues,strings}.c "${@:3}"
}

# Each has a ledger of its own, under a new name.
ledgers=0
fresh() {
	ledgers=$((ledgers + 1))
	export RDMA_INTERCEPT_SHM_NAME=${work##*/}.$ledgers
}

# with LIBC COMMAND...: the environment of a program of that C library, in $environment
environment=()
with() { environment=(env LD_PRELOAD="$library" LD_LIBRARY_PATH="$work/$1:${files[$1]-}"); }
under() {
	with "$1"
	"${environment[@]}" "${@:2}"
}
# run LIBC [NAME=VALUE...] PROGRAM ARGUMENT...: exit status in $status, output in $work/out and $work/err
run() {
	status=0
	under "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
}
# run_fresh LIMITS LIBC PROGRAM ARGUMENT...: with these limits, in a new ledger
run_fresh() {
	fresh
	run "$2" RDMA_INTERCEPT_LIMITS="$1" "$work/$2/$3" "${@:4}"
}

show_run() {
	echo "    exit status $status"
	sed 's/^/    /' "$work/out" "$work/err"
	false
}
# It said OK; and went_well: on standard error one line, a refusal.
ended_well() { [ "$status:$(cat "$work/out")" = 0:OK ] || show_run; }
went_well() {
	ended_well && { [ "$(grep -c '' "$work/err")" -eq 1 ] && grep -q '^rdma_intercept: refused ibv_create_[a-z_]*: tenant=default .* qp used \([0-9]*\)/\1, wanted 1 more, limit of ' \
		"$work/err" || show_run; }
}

# ---- what holds for every C library

routes() {
	local libc=$1 route routes=(linked inline next default dlsym dlvsym) later=(dlsym dlvsym)
	if [ "$libc" = musl ]; then # it has no dlvsym
		routes=(linked inline next default dlsym) later=(dlsym)
	fi
	for route in "${routes[@]}"; do
		run_fresh process:qp=3 "$libc" linked "$route" 3
		check "$libc: $route: exactly 3, given back, and one line says why" went_well
	done
	for route in "${later[@]}"; do
		run_fresh process:qp=5 "$libc" loaded "$route" 5
		check "$libc: libibverbs loaded later, $route: exactly 5" went_well
	done
	run_fresh process:cq=4 "$libc" linked inline_cq 4
	check "$libc: CQs by an operation of the context: exactly 4" ended_well
}

# lives LIBC LIMIT [LIMITS]: threads, a forked child, a killed one
lives() {
	local libc=$1 limit=$2 limits=${3-} life
	for life in threads fork killed; do
		run_fresh "$limits" "$libc" linked "$life" "$limit"
		check "$libc: $life: exactly $limit" ended_well
	done
}

# start LIBC WHAT N: in the background; its output in $work/started.N.out; its input is open until release
started=() inputs=()
start() {
	local fd file=$work/started.${#started[@]}
	mkfifo "$file"
	with "$1"
	background "${environment[@]}" "$work/$1/linked" "$2" "$3" <"$file" >"$file.out" 2>>"$work/started.err" &
	workers+=($!)
	started+=($!)
	exec {fd}>"$file"
	inputs+=("$fd")
}
all_say() { [ "$(cat "$work"/started.*.out | grep -c "^$1")" -eq ${#started[@]} ]; }
release() { # COMMAND...: what to do with each process
	local fd pid
	for fd in "${inputs[@]}"; do
		exec {fd}>&-
	done
	for pid in "${started[@]}"; do
		"$@" "$pid"
	done
	rm -f "$work"/started.*
	started=() inputs=()
}
ends_well() { check "a process ends well" wait "$1"; }
end_killed() {
	kill -KILL "$1" || true
	wait "$1" 2>/dev/null || true
}

# together NAME LIBC...: two of each at the same time, each wants 5 of 12
together() {
	local libc name=$1 made
	for libc in "${@:2}" "${@:2}"; do
		start "$libc" most 5
	done
	check "$name: all have made theirs" eventually all_say made
	made=$(cat "$work"/started.*.out | awk '{ sum += $2 } END { print sum }')
	check "$name: 12 together ($made)" [ "$made" -eq 12 ]
	release ends_well
}

# killed_at_work LIBC...: killed at any instruction, they leave a ledger that is exact and not locked
killed_at_work() {
	local libc round
	fresh
	export RDMA_INTERCEPT_LIMITS=host:qp=100
	for ((round = 0; round < 5; round++)); do
		for libc in "$@" "$@"; do
			start "$libc" hammer 1000
		done
		check "round $round: they work" eventually all_say begun
		release end_killed
	done
	for libc in "$@"; do
		run "$libc" "$work/$libc/linked" linked 100
		check "$libc: exactly 100 after kills" went_well
	done
	unset RDMA_INTERCEPT_LIMITS
}

# present LIBC...: in $libcs those that are here; false if none is
present() {
	local libc
	libcs=()
	for libc in "$@"; do
		if need "$libc"; then
			libcs+=("$libc")
		else
			skip_part "${missing[$libc]}"
		fi
	done
	[ ${#libcs[@]} -gt 0 ]
}

# ---- cases

one() {
	present "$1" || return 0
	routes "$1"
	lives "$1" 5 host:qp=5
	killed_at_work "$1"
}
own() { one own; }
old() { one old; }
newest() { one newest; }
musl() { one musl; }

shown_by_name() { # PID
	RDMA_INTERCEPT_SHM_NAME=$RDMA_INTERCEPT_SHM_NAME.musl "$build/rdma_intercept" show process "$1" |
		grep -q '^ *qp  *2 '
}
# All versions of glibc share a ledger; musl has another one, since its locks differ.
one_ledger() {
	present own old newest musl || return 0
	[[ ${libcs[-1]} != musl ]] || unset "libcs[-1]"
	fresh
	export RDMA_INTERCEPT_LIMITS=host:qp=12
	together "one ledger" "${libcs[@]}"
	unset RDMA_INTERCEPT_LIMITS
	killed_at_work "${libcs[@]}"
	need musl || return 0
	run_fresh host:qp=3 musl linked linked 3
	check "musl: its file has a name of its own" [ -e "/dev/shm/$RDMA_INTERCEPT_SHM_NAME.musl" ]
	check "and no other is made" [ ! -e "/dev/shm/$RDMA_INTERCEPT_SHM_NAME" ]
	fresh
	status=0
	env LD_LIBRARY_PATH="$work/musl" RDMA_INTERCEPT_LIMITS=process:qp=3 "$build/rdma_intercept" run \
		"$work/musl/linked" linked 3 >"$work/out" 2>"$work/err" || status=$?
	check "rdma_intercept run starts a program of musl with the library" went_well
	start musl hold 2
	check "a process of musl holds 2" eventually all_say 'made 2'
	check "the command shows it under that name" shown_by_name "${started[0]}"
	release ends_well
}

collector_there() { [ -S "$RDMA_COLLECTOR_SOCKET" ]; }
collector() {
	local libc collector
	printf '[tenant default]\nqp = 12\n' >"$work/policy"
	export RDMA_COLLECTOR_SOCKET=$work/socket
	RDMA_INTERCEPT_POLICY=$work/policy RDMA_COLLECTOR_STATE=$work/state \
		background "$build/collector_server" >"$work/collector" 2>&1 &
	collector=$!
	workers+=($!)
	check "a collector is there" eventually collector_there
	present own old newest musl || return 0
	for libc in "${libcs[@]}"; do
		run "$libc" "$work/$libc/linked" linked 12
		check "$libc: with a lease, exactly 12" went_well
		check "$libc: the tenant's limit is named" grep -q 'limit of the tenant' "$work/err"
		run "$libc" "$work/$libc/loaded" dlsym 12
		check "$libc: with a lease, by dlsym, exactly 12" went_well
		lives "$libc" 12
	done
	together "leases" "${libcs[@]}"
	if [[ " ${libcs[*]} " = *' old '* ]]; then
		bare_compile
		run old "LD_LIBRARY_PATH=$work/old/bare:${files[old]}" "$work/old/bare/bare" 20
		check "without libpthread, with a lease, exactly 12" said 'made 12'
	fi
	kill "$collector"
	wait "$collector" || true
	export RDMA_COLLECTOR_SOCKET=$work/none
}

bare_compile() {
	[ ! -e "$work/old/bare/bare" ] || return 0
	mkdir -p "$work/old/bare"
	stand_in old bare/libibverbs.so.1
	compile old bare/bare -fPIE -pie -Wl,-z,dynamic-undefined-weak "$sources/tests/libcs/bare.c" "$work/old/bare/libibverbs.so.1"
}
said() { [ "$status" -eq 0 ] && grep -qF "$1" "$work/out" || show_run; }
# Without libpthread there is no lock for a ledger. A program with the real libibverbs has it.
bare() {
	local own="LD_LIBRARY_PATH=$work/old/bare:${files[old]-}"
	present old || return 0
	bare_compile
	status=0
	env "$own" "$work/old/bare/bare" 9 >"$work/out" 2>"$work/err" || status=$?
	check "without the library: it makes 9" said 'made 9'
	check "and has no dlsym" said 'dlsym is missing'
	fresh
	run old "$own" RDMA_INTERCEPT_LIMITS=process:qp=3 "$work/old/bare/bare" 9
	check "with the library: dlsym answers" said 'dlsym is there'
	check "it is not limited" said 'made 9'
	check "one line says so" [ "$(cat "$work/err")" = \
		"rdma_intercept: libpthread is not loaded; this process is not counted and not limited" ]
	run old "$own" RDMA_INTERCEPT_LIMITS=process:qp=3 RDMA_INTERCEPT_FAIL=closed "$work/old/bare/bare" 9
	check "with RDMA_INTERCEPT_FAIL=closed it gets nothing" said 'no context'
}

for libc in own old newest musl; do
	"libc_$libc"
done
run_cases "own old newest musl one_ledger collector bare" "$@"
