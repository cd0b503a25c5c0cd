# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the scenarios of units share: a host that the lines of a document set up, what systemd says of
# the units, and queue pairs that kernel, collector and limit agree on. $command is the installed one.
# shellcheck disable=SC2034 # for the scenarios
. lab/lib.sh
# As a host has it, not as a test.
unset RDMA_INTERCEPT_SHM_NAME RDMA_INTERCEPT_LOG_FILE_PATH
export SYSTEMD_COLORS=0 SYSTEMD_PAGER=''
units=(rdma_monitor collector_server rdma_dashboard)
lives=$BUILD_DIRECTORY/lab/lives
policy=/etc/rdma_intercept/policy.conf

# lines DOCUMENT: the first of its blocks that sets up a host
lines() { awk '/^```sh host systemd/ { on = 1; next } /^```/ { if (on) exit } on' "$1"; }
# paste_lines DOCUMENT: with the stand-ins of $scratch/bin, until all units are active
pasted() { PATH=$scratch/bin:$PATH bash -c "$1" >"$scratch/rows" 2>&1; }
paste_lines() {
	local line result unit
	while IFS= read -r line <&3; do
		mark
		if pasted "$line"; then result=0; else result=1; fi
		check "$line ($(elapsed) ms)" test "$result" -eq 0
	done 3< <(lines "$1")
	for unit in "${units[@]}"; do
		check "$unit is active" active "$unit"
	done
}

# of UNIT PROPERTY
of_unit() { systemctl show -P "$2" "$1"; }
unit_is() { [ "$(of_unit "$1" "$2")" = "$3" ]; }
active() { unit_is "$1" ActiveState active; }
# replaced UNIT PID: another process serves
replaced() { active "$1" && [ "$(of_unit "$1" MainPID)" != "$2" ]; }
status_says() { of_unit "$1" StatusText | grep -q "$2"; }
# said UNIT PATTERN: what the unit said, and systemd of it
said() { journalctl -q -o cat -u "$1" | grep -qE "$2"; }
page_answers() { curl -sf http://127.0.0.1:9910/metrics | grep -q '^rdma_intercept_'; }
all_answer() { collector_answers && page_answers && monitor_counts; }

# uses N, has N: what the tenant default uses, and what the kernel lists
uses() {
	{ "$command" -j show kind qp || true; } >"$scratch/rows" 2>&1
	[ "$(grep -o '"used": *[0-9]*' "$scratch/rows" | head -n 1 | grep -o '[0-9]*' || echo 0)" = "$1" ]
}
made=$(rdma resource show qp | wc -l)
has() { [ "$(rdma resource show qp | wc -l)" -eq $((made + $1)) ]; }
# holds N TEXT: kernel and collector agree on N queue pairs, and a program with the library gets none
# beyond the limit of 20
counted() { # N TEXT
	check "$2: the kernel has $1 queue pairs" eventually has "$1"
	check "$2: the collector counts them" eventually uses "$1"
}
full() { # TEXT
	begin more "$lives" batches rxe0
	says more 'ok 0'
	tell more +1
	check "$1: one more is refused" eventually grep -q 'Disk quota exceeded' "$scratch/more.out"
	end more || true
}
