#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rdma_intercept top in a real terminal (tmux), against a real collector: what it shows at several
# sizes, its keys, and that the terminal is as it was before, however the program ends.
# usage: tests/top.sh [--list | --only CASE]
# shellcheck disable=SC2154,SC2317 # variables of the fixture; functions that check calls
# shellcheck source=tests/dashboard/fixture.sh
. "$(dirname "$0")/dashboard/fixture.sh"

if ! command -v tmux >/dev/null; then
	echo "skipped: tmux is not installed"
	exit 77
fi
unset TMUX NO_COLOR
servers=0 # of tmux: one that ends takes a moment, so each terminal has its own
in_tmux() { tmux -S "$work/tmux.$servers" -f /dev/null "$@"; }
trap 'in_tmux kill-server 2>/dev/null; clean_up' EXIT

# What the terminal runs: top, then what the terminal is like after it.
cat >"$work/run" <<END
printf 'before\n'
ulimit -c 0
trap : INT # the shell goes on after a program that SIGINT ended
stty -g >"$work/before"
bash -c 'echo \$\$ >"$work/pid"; exec "$command" top -d 0.2 "\$@"' top "\$@"
echo "top ended with \$?"
stty -g >"$work/after"
END

# terminal columns lines: a new one, with a shell in it
terminal() {
	in_tmux kill-server 2>/dev/null || true
	servers=$((servers + 1))
	in_tmux new-session -d -x "$1" -y "$2" "env -u COLUMNS -u LINES ENV= PS1='shell> ' sh"
	eventually shows 'shell>'
}
# begin: top in it
begin() {
	rm -f "$work/after" "$work/pid"
	in_tmux send-keys -l "sh $work/run $*"
	in_tmux send-keys Enter
}
keys() { in_tmux send-keys "$@"; }
shows() { in_tmux capture-pane -p | tee "$work/screen" | grep -qF -e "$1"; }
shows_not() { ! shows "$1"; }
# last_line text: the last line of the screen has it
last_line() { in_tmux capture-pane -p | tee "$work/screen" | tail -1 | grep -qF -e "$1"; }
mode_is() { [ "$(in_tmux display -p "#{alternate_on} #{cursor_flag} #{keypad_flag}")" = "$1" ]; }
# clean status: top has ended with this status, and the terminal is as it was
clean() {
	eventually test -s "$work/after" && eventually shows "top ended with $1" && cmp "$work/before" "$work/after" &&
		shows before && mode_is '0 1 0' && shows_not 'Esc back'
}

collector_begin

sizes() {
	worker_start one RDMA_INTERCEPT_QUIET=1
	check "four QPs" makes one 4
	check "a fifth is refused" ask one qp refused
	terminal 80 24
	begin
	check "80x24: the tenant with its limit" eventually shows '!! 4/4'
	check "80x24: the whole screen is used" mode_is '1 0 1'
	check "80x24: a bar" shows '[██████████]'
	check "80x24: the keys in the last line" last_line 'q end  ? help'
	check "80x24: no line is longer" not grep -qE '.{81}' "$work/screen"
	check "80x24: refusals" grep -qE '^rdma_intercept .* refused 1, ' "$work/screen"
	in_tmux resize-window -x 200 -y 50
	check "200x50: more columns" eventually shows 'RECV_WR'
	check "200x50: the keys in the last line" eventually last_line 'q end  ? help'
	in_tmux resize-window -x 30 -y 6
	check "30x6: it goes on" eventually last_line 'q end'
	in_tmux resize-window -x 80 -y 24
	check "80x24: again" eventually shows '!! 4/4'
	worker_end one quit
	keys q
	check "it ends" clean 0
}

navigation() {
	worker_start two RDMA_INTERCEPT_QUIET=1
	check "three QPs" makes two 3
	terminal 100 30
	begin
	check "the tenant" eventually shows ' 3/4'
	check "tenants by used" shows 'tenants by used of qp'
	keys Enter
	check "its processes" eventually shows "$pid_two "
	check "of the tenant" shows 'tenant ours'
	keys Enter
	check "details" eventually shows "process $pid_two"
	check "the kinds on the device" eventually shows "$device "
	check "QPs by state" eventually shows 'qp_states'
	keys Escape
	check "back to the processes" eventually shows 'processes by used'
	keys Escape
	check "back to the tenants" eventually shows 'tenants by used'
	keys /
	check "the filter is typed" eventually shows 'filter:'
	keys -l their
	check "rows without the text are gone" eventually shows '1-1 of 1'
	check "the row with it is there" shows 'theirs'
	keys Enter
	keys Escape
	check "Esc takes the filter off" eventually shows 'of 3'
	keys s
	check "another order" eventually shows 'by part of the limit'
	keys '?'
	check "the help" eventually shows 'end the program'
	keys x
	check "any key ends it" eventually shows 'tenants by'
	worker_end two quit
	check "a process that ended holds nothing" eventually shows ' 0/4'
	keys q
	check "it ends" clean 0
}

# However it ends, the terminal is clean.
endings() {
	local signal

	terminal 80 24
	for signal in INT TERM HUP SEGV ABRT; do
		begin
		check "$signal: it runs" eventually shows 'Esc back'
		kill -"$signal" "$(cat "$work/pid")"
		check "$signal: the terminal is clean" clean $((128 + $(kill -l "$signal")))
	done
	begin
	check "Ctrl-C: it runs" eventually shows 'Esc back'
	keys C-c
	check "Ctrl-C: the terminal is clean" clean 130
}

restarts() {
	terminal 80 24
	begin
	check "it runs" eventually shows 'theirs'
	end "$collector_pid"
	check "it waits" eventually shows 'waiting for the collector'
	check "the last numbers stay" shows 'theirs'
	write_policy "qp = 5"
	collector_begin
	check "it goes on" eventually shows_not 'waiting for the collector'
	check "with new numbers" eventually shows '0/5'
	write_policy "qp = 4" # the collector sees it
	check "the policy as before" eventually shows '0/4'
	keys q
	check "it ends" clean 0
}

# Without a terminal, or where that cannot be used, it prints once.
plain() {
	try "$command" top -d 0.1
	check "in a file: status" test "$status" -eq 0
	check "in a file: the tenant" grep -qE '^ours +enforce .* 0/4' "$work/out"
	check "in a file: nothing for a terminal" not grep -q $'\e' "$work/out"
	terminal 80 24
	begin --once
	check "--once" eventually shows 'top ended with 0'
	check "--once: the tenant" shows '0/4'
	check "--once: not the whole screen" mode_is '0 1 0'
	in_tmux send-keys -l "TERM=nonsense; export TERM" && keys Enter
	begin
	check "an unknown terminal: it says so" eventually shows "TERM: unknown terminal 'nonsense'"
	check "an unknown terminal: it prints" eventually shows 'top ended with 0'
	try "$command" -j top -d 0.1
	check "JSON" jq -e '.tenants | map(.name) | index("ours")' "$work/out"
	check "JSON: what happens in a second" jq -e '.tenants[0].per_second | .refused == 0 and .growth.qp == 0' "$work/out"
	try "$command" top -d 0
	check "no time" says err "--delay: invalid value '0': expected 0.1 to 3600 seconds"
	try "$command" -s "$work/nothing" top
	check "no collector: status" test "$status" -eq 3
	check "no collector: it says so" says err "no collector at $work/nothing: No such file"
	check "no collector: what to do" says err "start it: collector_server --daemon --socket $work/nothing, or name another socket: --socket PATH"
	try "$command" -j -s "$work/nothing" top
	check "no collector: as JSON" jq -e '.error | contains("start it:")' "$work/out"
}

# On a terminal it waits for a collector that does not run yet.
absent() {
	export RDMA_INTERCEPT_DOCTOR_ROOT=$work/none # a host without systemd
	end "$collector_pid"
	rm -f "$RDMA_COLLECTOR_SOCKET"
	terminal 80 24
	begin
	check "no collector: it says so" eventually shows 'waiting for the collector: no collector at'
	check "no collector: what to do" shows 'Start the collector:     collector_server --daemon'
	check "no collector: another socket" shows 'rdma_intercept top --socket PATH'
	keys '?'
	check "no collector: the help" eventually shows 'end the program'
	keys x
	check "no collector: any key ends it" eventually shows 'No collector has answered yet'
	keys Enter
	keys Escape
	collector_begin
	check "it goes on by itself" eventually shows 'theirs'
	check "and shows no hint" shows_not 'No collector has answered yet'
	keys q
	check "it ends" clean 0
	begin -s "$work/absent"
	check "another socket: it waits" eventually shows 'waiting for the collector'
	keys q
	check "another socket: it ends" clean 0
}

run_cases "sizes navigation endings restarts plain absent" "$@"
