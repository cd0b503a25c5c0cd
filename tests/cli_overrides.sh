# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # variables and functions of cli.sh
# A case of cli.sh, which sources this: what commands set over the policy file.

# shows_line PATTERN ARGUMENT...: the command prints such a line
shows_line() {
	try "$command" "${@:2}"
	[ "$status" -eq 0 ] && grep -qE -e "$1" "$work/out"
}

# What commands set over the file is counted, dropped, and known by its author.
overrides() {
	collector_begin
	user=$(id -un)
	check "status: nothing overridden" exits 0 status
	check "status: 0" grep -qE '^overrides +0$' "$work/out"
	"$command" limit set host cq=7 >/dev/null
	check "status: one" exits 0 status
	check "status: one key" grep -qE '^overrides +1 key of the policy, by a command ' "$work/out"
	check "reload: one" exits 0 reload
	check "reload: one key" says out 'commands override 1 key: '
	"$command" doctor >"$work/out" || true
	check "doctor: one key" says out 'commands override 1 key; '
	check "limit reset: one" exits 0 limit reset
	check "limit reset: one key" says out '1 key that a command had set is dropped'
	check "reload: nothing overridden" exits 0 reload
	check "reload: says nothing of it" not says out override
	"$command" limit set host cq=7 >/dev/null
	"$command" limit set tenant ours qp=3 mr=5 >/dev/null
	"$command" limit set tenant default pd=2 >/dev/null
	"$command" tenant add new qp=9 --match uid=4000001 >/dev/null
	check "status: overrides" exits 0 status
	check "status: how many" grep -qE '^overrides +4 keys' "$work/out"
	check "status: as JSON" exits 0 -j status
	check "status: the number" says out '"overrides":4'
	check "status: the built-in tenant is none of a command" not grep -qE '^default .*runtime' "$work/out"
	"$command" doctor >"$work/out" || true
	check "doctor: how many" grep -qE "^OK +policy +$policy is in force; commands override 4 keys; .*limit reset" "$work/out"
	check "reload: overrides" exits 0 reload
	check "reload: how many" says out 'commands override 4 keys'
	check "reload: as JSON" answers reload
	check "limit reset: of a tenant" exits 0 limit reset tenant ours
	check "limit reset: how many" says out '2 keys'
	check "limit get: of the file" exits 0 limit get tenant ours
	check "limit get: the line" grep -qE "^tenant ours +qp +4 +$policy:9\$" "$work/out"
	check "limit reset: not of an added tenant" complains 1 "tenant 'new' was added by a command" limit reset tenant new
	check "limit reset: nobody's" complains 1 "'x'" limit reset tenant x
	check "limit reset: an unknown owner" complains 2 "expected host, default or tenant NAME" limit reset all
	check "limit reset: all" exits 0 limit reset
	check "limit reset: the rest" says out '2 keys'
	check "limit reset: as JSON" answers limit reset
	check "limit reset: no more" says out '"keys":0'
	check "limit reset: and in words" exits 0 limit reset
	check "limit reset: says that there is none" says out 'commands have set no key: nothing is dropped'
	check "limit get: the added tenant stays" exits 0 limit get tenant new
	check "limit get: with its limit" grep -qE '^tenant new +qp +9 +command$' "$work/out"
	check "tenant remove" exits 0 tenant remove new
	check "events: who" exits 0 events
	check "events: of limit set" grep -qE "limits .*\[tenant ours\] qp = 3 mr = 5, by $user \(uid $(id -u)\)$" "$work/out"
	check "events: of tenant add" grep -qE "limits .*\[tenant new\] .*, by $user \(uid $(id -u)\)$" "$work/out"
	check "events: of tenant remove" grep -qE "limits .*tenant new removed, by $user" "$work/out"
	check "events: of limit reset" grep -qE "limits .*\[tenant ours\] reset: keys of commands dropped: 2, by $user" "$work/out"
	check "events: of reload" grep -qE "reloaded .*$policy, by $user" "$work/out"
	check "events: not of the start" grep -qE "reloaded .*$policy$" "$work/out"
	check "events: as JSON" answers events
	check "events: the user" says out "\"uid\":$(id -u),\"user\":\"$user\""
}
