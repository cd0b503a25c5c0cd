# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # variables of fleet.sh, and for the scripts
# Quotas of a fleet on this machine: what was ever handed out, what is in force, and programs that use it.
# For scripts that source it after fleet.sh.

# Everything that etcd ever had under the prefix, change by change.
history_begin() {
	background etcdctl --endpoints "$endpoints" watch --rev=1 --prefix /rdma/ >"$work/history" 2>&1 &
	workers+=($!)
}

# Adds up all shares after each change. A transaction has its records before the ledger; with the
# ledger, shares and what is free are the quota. Prints the highest sum.
history_check() {
	awk -v quota="$1" '
		function field(name, text) {
			if (!match(text, "\"" name "\":-?[0-9]+")) return 0
			return substr(text, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0
		}
		/^(PUT|DELETE)$/ { what = $0; getline key; getline value
			if (key ~ "/share/") {
				sum += (what == "PUT" ? field("share", value) : 0) - share[key]
				share[key] = what == "PUT" ? field("share", value) : 0
				if (field("target", value) > share[key] || field("kept", value) > share[key]) bad++
				changes++
			}
			if (key ~ "/ledger/" && what == "PUT") {
				if (sum + field("free", value) != field("quota", value)) { bad++; print "ledger:", sum, value }
			}
			if (sum > most) most = sum
			if (sum > quota) { bad++; print "handed out:", sum, key, value }
		}
		END { printf "%d changes of shares, at most %d handed out\n", changes, most; exit bad > 0 || !changes }
	' "$work/history" || return 1
}

# What the collectors enforce, all together. Two looks at each; a share that moves between them
# counts with the smaller one.
enforced_check() {
	local quota=$1 name sum=0 first=() second=() i=0

	for name in "${hosts[@]}"; do
		first+=("$(limit_on "$name")")
	done
	for name in "${hosts[@]}"; do
		second+=("$(limit_on "$name")")
	done
	for name in "${hosts[@]}"; do
		[[ ${first[i]}-${second[i]} =~ ^[0-9]+-[0-9]+$ ]] || return 0 # a collector that begins
		sum=$((sum + (first[i] < second[i] ? first[i] : second[i])))
		i=$((i + 1))
	done
	[ "$sum" -le "$quota" ] || {
		echo "enforced: $sum of $quota: ${first[*]}, ${second[*]}"
		return 1
	}
}

divided() { # QUOTA: all of it is handed out, and confirmed
	local name sum=0 limit

	for name in "${hosts[@]}"; do
		limit=$(limit_on "$name")
		[[ $limit =~ ^[0-9]+$ ]] || return 1
		sum=$((sum + limit))
	done
	[ "$sum" -eq "$1" ]
}

# worker_on NAME: a guarded program that obeys ask
worker_on() {
	worker_start "$1" RDMA_COLLECTOR_SOCKET="$work/$1/socket" RDMA_INTERCEPT_QUIET=1
}

# holds NAME NUMBER: makes queue pairs until it is refused, and says how many there are
fill() {
	local name=$1 most=$2 heard

	filled=0
	while [ "$filled" -lt "$most" ]; do
		tell "$name" qp
		heard=$(hear "$name")
		[ "$heard" = ok ] || return 0
		filled=$((filled + 1))
	done
}

# The process grows as far as the shares let it.
grows_to() { # NAME NUMBER
	fill "$1" $(($2 - grown))
	grown=$((grown + filled))
	[ "$grown" -ge "$2" ]
}

# reported NAME NUMBER: what the host holds, as it told the fleet
reported() {
	etcdctl --endpoints "$endpoints" get --print-value-only "/rdma/report/host-$1" | grep -q "\"held\":$2,"
}

divider_host() {
	fleet_command status | sed -n 's/^quotas are divided by host-//p'
}

another_divider() {
	local now

	now=$(divider_host)
	[ -n "$now" ] && [ "$now" != "$1" ]
}
