# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the test scripts of this directory share; they source it. It finds the
# build, a device or the stand-in, gives every test a ledger and a log of its
# own, keeps score, and cleans up. It knows no test.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/cases.sh
. "$here/cases.sh"
build=${BUILD_DIRECTORY:-$here/../build}
build=$(cd "$build" 2>/dev/null && pwd) || {
	echo "no build directory: build the project first, or set BUILD_DIRECTORY" >&2
	exit 1
}
library=$build/librdma_intercept.so
# A sanitizer's run-time must come before every other preloaded library.
preload=${TEST_PRELOAD:+$TEST_PRELOAD:}$library

# How much longer than usual a test is to take; above 1 with --long.
# shellcheck disable=SC2034 # for the scripts
factor=${RDMA_INTERCEPT_TEST_FACTOR:-1}
# What the caller has set shall not decide what the tests see.
unset LD_PRELOAD "${!RDMA_INTERCEPT_@}"

ledgers=0 status=0

# A new ledger and a new log for what follows: limits of the host stay in a ledger.
fresh() {
	ledgers=$((ledgers + 1))
	export RDMA_INTERCEPT_SHM_NAME=${work##*/}.$ledgers
	export RDMA_INTERCEPT_LOG_FILE_PATH=$work/log.$ledgers
	# shellcheck disable=SC2034 # for the scripts
	shm=/dev/shm/$RDMA_INTERCEPT_SHM_NAME
	log=$RDMA_INTERCEPT_LOG_FILE_PATH
}
fresh

# with|without [NAME=value...] command [argument...]
with() {
	env LD_PRELOAD="$preload" "$@"
}
without() {
	env "$@"
}

# Runs the command: exit status in $status, output in $work/out and $work/err.
try() {
	status=0
	"$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
}

show() {
	sed "s/^/    $1: /" "$2"
}

# check "what should be so" command...: as in cases.sh, and tells what the last command said
check() {
	local what=$1

	shift
	if "$@" >"$work/check" 2>&1; then
		echo "ok    $what"
		return
	fi
	bad=$((bad + 1))
	echo "FAIL  $what (by: $*)"
	show "" "$work/check"
	if [ -e "$work/out" ]; then
		echo "    exit status of the last command: $status"
		show out "$work/out"
		show err "$work/err"
	fi
}

not() {
	! "$@"
}

# says out|err|log text: the text occurs in it
says() {
	local file=$work/$1

	[ "$1" != log ] || file=$log
	grep -qF -e "$2" "$file"
}

# counted out|err text number: lines with the text
counted() {
	[ "$(grep -cF -e "$2" "$work/$1")" -eq "$3" ]
}

silent() {
	[ ! -s "$work/$1" ]
}

# The last output is this text, with the name of our device for DEVICE.
same_output() {
	sed "s/DEVICE/$device/" "$1" | diff -u - "$work/out"
}

# What the documents show of test_global_limit.
as_documented() {
	same_output "$here/seeds/transcript.txt"
}

# worker_start name [NAME=value...]: a process with the library that makes QPs
# when told and keeps them; see worker() in seeds/test_shm_version.c.
worker_start() {
	local name=$1 fd

	shift
	mkfifo "$work/$name.in" "$work/$name.out"
	# Not by "with": a function runs in a shell of its own, and $! would be that one's.
	background env LD_PRELOAD="$preload" "$@" "$build/test_shm_version" --worker \
		<"$work/$name.in" >"$work/$name.out" 2>>"$work/$name.err" &
	workers+=($!)
	printf -v "pid_$name" %s $!
	# For reading too: to tell something to a worker that died must not be our death.
	exec {fd}<>"$work/$name.in"
	printf -v "to_$name" %s "$fd"
	exec {fd}<"$work/$name.out"
	printf -v "from_$name" %s "$fd"
}

# tell worker command: the command only; hear worker: the answer, or "no answer"
tell() {
	local to=to_$1

	echo "$2" >&"${!to}"
}
hear() {
	local from=from_$1 pid=pid_$1 answer='' still=0 state

	# It has ended, or it sleeps and does not answer: no answer will come.
	while ! read -r -t 5 answer <&"${!from}"; do
		state=$(sed 's/.*) //; s/ .*//' "/proc/${!pid}/stat" 2>/dev/null || echo Z)
		case $state in
		S) still=$((still + 1)) ;;
		Z | X) still=100 ;;
		*) still=0 ;;
		esac
		if [ "$still" -ge 6 ]; then
			answer="no answer"
			break
		fi
	done
	echo "$answer"
}

# ask worker command answer...: the answer begins so
ask() {
	local heard

	tell "$1" "$2"
	heard=$(hear "$1")
	echo "$1 answered: $heard"
	[[ $heard == "$3"* ]]
}

# worker_end worker quit|SIGNAL: its exit status in $status
worker_end() {
	local pid=pid_$1 to=to_$1 from=from_$1 fd

	if [ "$2" = quit ]; then
		tell "$1" quit
	else
		kill -"$2" "${!pid}"
	fi
	status=0
	wait "${!pid}" 2>/dev/null || status=$?
	fd=${!to}
	exec {fd}>&-
	fd=${!from}
	exec {fd}<&-
	rm -f "$work/$1.in" "$work/$1.out"
}

# The first device of the libibverbs that the loader finds, or of the stand-in.
find_device() {
	try without "$build/test_global_limit"
	device=$(sed -n 's/^使用设备: //p' "$work/out")
	rm -f "$work/out" "$work/err"
	[ -n "$device" ]
}

for needed in "$library" "$build/test_global_limit" "$build/test_sequential" \
	"$build/test_shm_version"; do
	if [ ! -e "$needed" ]; then
		echo "$needed is missing: build the project first" >&2
		exit 1
	fi
done
if ! find_device; then
	echo "no RDMA device here: using the stand-in libibverbs" >&2
	export LD_LIBRARY_PATH=$build/fakeverbs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	if ! find_device; then
		echo "the stand-in libibverbs in $build/fakeverbs has no device either" >&2
		exit 77
	fi
fi
