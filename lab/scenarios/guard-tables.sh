#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tables of the guard and of the accounting that are full: nobody gets past a limit by that, one
# tenant does not use up what others need, and guard status tells. The tables are small here.
set -euo pipefail
. lab/guardlib.sh
places=1024
no_room=12 # ENOMEM
guard_start --tables $places

# places_are TENANT OBJECTS THREADS
places_are() {
	local numbers
	numbers=$(of places "$1") || numbers='not known'
	echo "places of $1: $numbers; should be: $2 $3" >"$scratch/rows"
	[[ $numbers == "objects $2 threads $3 "* ]]
}
none_taken() { "$guardrows" head 2>/dev/null | tee "$scratch/rows" | grep -q ' objects 0 threads 0 incomplete 0 '; }
nothing_left() { # TENANT
	all_back "$1"
	check "all places are free, and everything is listed" eventually none_taken
}
crowded() { # NAME GROUP ARGUMENTS...: begins the intruder there, which finds no room
	begin "$1" "${inside[@]}" "tenants/$2" "$intruder" "${@:3}"
	says "$1" '^made'
	cp "$scratch/$1.out" "$scratch/rows"
	check "$2: ${*:3}: refused for want of room ($(<"$scratch/$1.out"))" grep -q " errno $no_room\$" "$scratch/$1.out"
}

echo "-- the charges: a tenant without a limit fills them"
crowded hog crowd/1 fill pd 1200
check "it has half of what is there, less a reserve" places_are crowd 480 1
intrude owner a/1 "made 5 errno $refusal" fill qp 8
check "another tenant gets what its limit allows, and no more" is used a 'qp 5' qp
intrude other b/1 "made 5 errno $refusal" fill qp 8
intrude third others/1 "made 9 errno $refusal" fill qp 12
check "guard status says that the first has its share" eventually tells '"guarantee": *"partly".*table of objects is full' -j guard status crowd
check "the second misses nothing" tells '"guarantee": *"kernel"' -j guard status a
check "an event names the reason" tells "the tenant has used its share of the guard's table" -j events
for name in owner other third hog; do
	end $name
done
nothing_left crowd
check "guard status is as before" eventually tells '"guarantee": *"kernel", *"reason": *null' -j guard status crowd
intrude hog crowd/1 'made 400 errno 0' fill pd 400
end hog

echo "-- the charges: filled by a way that is not guarded"
writes_guarded off
intrude hog crowd/1 'made 980 errno 0' fill pd 980 write
intrude third others/1 "made 0 errno $no_room" fill pd 4
intrude owner a/1 'made 40 errno 0' fill pd 40 write
check "what has no place is charged all the same" is used a 'pd 40' pd
intrude other a/1 "made 0 errno $refusal" fill pd 1
tell owner destroy
says owner 'destroyed 40'
check "and given back" eventually is used a '' pd
for name in owner other third hog; do
	end $name
done
nothing_left crowd
all_back a
writes_guarded on

echo "-- the threads"
begin hog "${inside[@]}" tenants/crowd/1 "$intruder" storm pd 1 150
says hog '^made'
check "a tenant has its share of these as well ($(<"$scratch/hog.out"))" grep -q -x 'made 3[56][0-9] refused 0 other [89][0-9]' "$scratch/hog.out"
check "guard status says so" eventually tells '"guarantee": *"partly".*table of threads is full' -j guard status crowd
intrude owner a/1 "made 5 errno $refusal" fill qp 8
end owner
killed hog
nothing_left crowd
intrude owner a/1 'made 1 errno 0' chain 300
"$command" guard on late >/dev/null # has everything looked for
"$command" guard off late >/dev/null
check "threads that went on under another number keep no places" eventually places_are a 1 1
end owner
nothing_left a

echo "-- the rows of the accounting"
begin stranger "$intruder" storm pd 40 1
says stranger '^made'
check "more processes than rows" grep -qx 'made 120 refused 0 other 0' "$scratch/stranger.out"
intrude owner late/1 'made 8 errno 0' fill qp 8
"$command" guard on late >/dev/null
check "what a process without a row has is found and charged" eventually is used late 'qp 8' qp
intrude other late/1 "made 0 errno $refusal" fill qp 1
end other
end owner
end stranger
all_back late
"$command" guard off late >/dev/null

echo "-- the objects of the accounting"
begin stranger "$intruder" fill pd 2500
says stranger '^made 2500 errno 0'
check "some were not counted" grep -q 'lost_objects [1-9]' <("$rows" head)
intrude owner a/1 "made 5 errno $refusal" fill qp 8
check "limits hold" is used a 'qp 5' qp
check "guard status says that some are not known" eventually tells '"guarantee": *"partly".*no room to list all objects' -j guard status a
end owner
end stranger
check "when there is room, all is known again" eventually tells '"guarantee": *"kernel"' -j guard status a
all_back a
guard_stop
