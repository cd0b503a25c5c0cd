#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Packages under systemd, on a host that was set up by the README's five lines: the units start, a
# program is limited, later packages restart the units while it holds objects, and a purge leaves
# nothing.
# init: systemd
# label: long
set -euo pipefail
. lab/unitlib.sh
command=/usr/bin/rdma_intercept

# The first line has no network here, and no time to build: it makes packages of what this machine
# has built, and looks at no other file of the tree (what cpack would do for make). The editor
# changes nothing, and this machine may be a container, whose packages start no service. The lists of
# other packages and the index of man pages would take apt minutes here.
mkdir "$scratch/bin"
cat >"$scratch/build_all.sh" <<-END
	#!/bin/sh -e
	[ "\$*" = package ] || { echo "build_all.sh \$*: expected package" >&2; exit 2; }
	mkdir -p build-package/packages
	rm -f build-package/packages/*.deb
	cpack --config "$BUILD_DIRECTORY/CPackConfig.cmake" -G DEB -D CPACK_CMAKE_GENERATOR=Ninja \\
		-B "\$PWD/build-package/packages"
END
printf '#!/bin/sh\nexec test -f "$1"\n' >"$scratch/bin/editor"
chmod +x "$scratch/build_all.sh" "$scratch/bin/editor"
mount --bind "$scratch/build_all.sh" build_all.sh
rm -f /usr/sbin/policy-rc.d
mkdir "$scratch/lists"
mount --bind "$scratch/lists" /var/lib/apt/lists
rm -f /var/lib/man-db/auto-update

# What packages and services may leave besides the files of the packages. (/var/tmp is this machine's:
# whatever somebody has there, and changes meanwhile)
traces() {
	find /etc /var /run /dev/shm /sys/fs/bpf -xdev \( -path /var/lib/dpkg -o -path /var/tmp \) -prune -o \( -name '*rdma[-_]intercept*' \
		-o -name '*rdma_monitor*' -o -name '*rdma_dashboard*' -o -name '*rdma_fleet*' -o -name '*collector_server*' \) -print | sort
	bpftool prog show | awk '$2 ~ /kprobe|tracing|lsm|tracepoint|perf_event/ { print $2, $4 }' | sort
	getent group rdma_intercept || true
}
traces >"$scratch/before"

echo "-- the five lines of README.md"
check "they are five" test "$(lines README.md | wc -l)" -eq 5
paste_lines README.md
check "collector, monitor and page answer" eventually all_answer
prints() { "$command" "$1" 2>&1 | tee "$scratch/rows" | grep -qE "$2"; }
check "status shows the installed policy" prints status "$policy"
check "doctor finds that every program loads the library" prints doctor '^OK +preload '
check "doctor finds the units" prints doctor '^OK +units '

echo "-- process 1 with the library, as after the next boot"
init_has() { grep -q librdma_intercept /proc/1/maps; }
init_lacks() { ! init_has; }
check "systemd executes itself again" systemctl daemon-reexec
check "and has the library" eventually init_has
for unit in "${units[@]}"; do
	check "$unit is active" active "$unit"
done
check "and starts a service" systemctl restart rdma_dashboard

echo "-- a limited program"
sed -i -e 's/^mode = audit/mode = enforce/' -e 's/^#qp = 500/qp = 20/' "$policy"
check "the limit is reloaded" systemctl reload collector_server
check "and the status says so" eventually status_says collector_server 'is in force'
begin holder "$lives" batches rxe0
says holder 'ok 0'
tell holder +20
says holder 'ok 20'
counted 20 "at the limit"
full "at the limit"

echo "-- later packages, with another release of each program, while it holds objects"
declare -A pid
for unit in "${units[@]}"; do
	pid[$unit]=$(of_unit "$unit" MainPID)
done
tell holder -5
says holder 'ok 15'
mkdir "$scratch/later"
later_package() { # FILE
	rm -rf "$scratch/unpacked"
	dpkg-deb -R "$1" "$scratch/unpacked"
	sed -i -E 's/^(Version: .*)/\1+later/; s/\(= ([^)]*)\)/(= \1+later)/' "$scratch/unpacked/DEBIAN/control"
	find "$scratch/unpacked/usr" -path '*/sbin/*' -type f -exec env LC_ALL=C sed -i 's/1\.1\.0/1.1.9/g' {} +
	dpkg-deb -Zgzip -z1 -b "$scratch/unpacked" "$scratch/later" >"$scratch/rows"
}
for package in build-package/packages/*.deb; do
	later_package "$package"
done
upgrade() { dpkg -i "$scratch"/later/*.deb >"$scratch/rows" 2>&1; }
mark
if upgrade; then result=0; else result=1; fi
check "dpkg installs them ($(elapsed) ms)" test "$result" -eq 0
for unit in "${units[@]}"; do
	check "$unit: another process" replaced "$unit" "${pid[$unit]}"
	check "$unit: of the new file" test "/proc/$(of_unit "$unit" MainPID)/exe" -ef "/usr/sbin/$unit"
	check "$unit: of the new release" sh -c "/usr/sbin/$unit --version | grep -qx '$unit 1.1.9'"
done
check "the changed policy is kept" grep -qx 'qp = 20' "$policy"
check "all answer" eventually all_answer
counted 15 "after the upgrade"
tell holder +5
says holder 'ok 20'
full "after the upgrade"

echo "-- purge, while a program holds objects"
mapfile -t packages < <(dpkg-query -W -f '${Package}\n' '*rdma-intercept*')
packaged() { dpkg -L "${packages[@]}" | while read -r file; do [ -d "$file" ] || echo "$file"; done | sort -u; }
packaged >"$scratch/packaged"
check "files of ${#packages[@]} packages are there" test "$(wc -l <"$scratch/packaged")" -gt 40
purge() { dpkg --purge "${packages[@]}" >"$scratch/rows" 2>&1; }
check "dpkg purges them" purge
for unit in "${units[@]}"; do
	check "$unit: systemd does not know it" unit_is "$unit" LoadState not-found
done
none_exists() { ! xargs -d '\n' ls -d <"$scratch/packaged" >"$scratch/rows" 2>/dev/null && [ ! -s "$scratch/rows" ]; }
check "no packaged file is left" none_exists
# (each look takes a second here: fewer tries than others have, or a failure would count as silence)
no_trace() {
	local tries
	for tries in 1 2 3 4 5 6 7 8 9 10; do
		! traces | diff "$scratch/before" - >"$scratch/rows" || return 0
		sleep 1
	done
	return 1
}
check "nor anything else in files, kernel and groups" no_trace
silent() { [ -z "$(/bin/true 2>&1)" ]; }
check "programs start, without a message" silent
check "systemd executes itself again" systemctl daemon-reexec
check "and has no library" eventually init_lacks
check "the holder's objects are there" has 20
end holder || check "the holder ends well" false
check "and gone with it" eventually has 0
finish
