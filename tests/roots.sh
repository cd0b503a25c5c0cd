# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2034,SC2154 # shells in the root; for the scripts; of cases.sh
# Root file systems for tests of what an installation does to a host: each is an overlay above one of
# lab/root, which stays as it is, in namespaces of its own. Sourced by scripts that have sourced
# cases.sh; it knows no test.

source=${SOURCE_DIRECTORY:-$(cd "$(dirname "$0")/.." && pwd)}
build=${BUILD_DIRECTORY:-$source/build}
own=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
needed=(libjansson4 libmicrohttpd12 libcurl4 libsqlite3-0 libsystemd0 libncursesw6 libtinfo6 libmnl0 libelf1 zlib1g)
unset LD_PRELOAD LD_LIBRARY_PATH "${!RDMA_INTERCEPT_@}"
skip_all() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip_all "not root: chroot and mounts need root"
command -v debootstrap >/dev/null || skip_all "debootstrap is not installed"
chmod 755 "$work" # for users without privileges

# ---- a root

# root_enter BASE NAME COMMAND...: in namespaces of its own, with the root at $work/NAME/root; what
# is written stays in $work/NAME/up
root_enter() {
	local base=$1 place=$work/$2
	shift 2
	mkdir -p "$place"/{up,work,root}
	unshare --mount --pid --fork --kill-child bash -ec '
		base=$1 place=$2
		shift 2
		mount -t overlay overlay -o "lowerdir=$base,upperdir=$place/up,workdir=$place/work" "$place/root"
		mount -t proc proc "$place/root/proc"
		mount -t tmpfs dev "$place/root/dev"
		mkdir -m 1777 "$place/root/dev/shm"
		for name in null zero full random urandom tty; do
			touch "$place/root/dev/$name"
			mount --bind "/dev/$name" "$place/root/dev/$name"
		done
		ln -s /proc/self/fd "$place/root/dev/fd"
		"$@"' enter "$base" "$place" "$@"
}

# session NAME BASE PACKAGE-FILE...: pastes standard input into a shell of the root. There,
# "step NAME command..." runs a command, and its output and status are for the checks below.
session() {
	local name=$1 base=$2
	shift 2
	place=$work/$name
	mkdir -p "$place/up/packages"
	[ $# -eq 0 ] || cp "$@" "$place/up/packages/"
	cp -L /etc/resolv.conf /etc/hosts "$place/"
	{
		cat <<-'END'
			export DEBIAN_FRONTEND=noninteractive LC_ALL=C HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin
			step() { local name=$1; shift; local status=0; "$@" >/steps/$name 2>&1 </dev/null || status=$?; echo $status >/steps/$name.status; }
			# Not what dpkg, apt, debconf and the tools for users write for themselves.
			entries() {
				find / -xdev \( -path /proc -o -path /steps -o -path /packages -o -path /var/lib/dpkg -o -path /var/lib/apt -o \
					-path /var/cache -o -path /var/log/apt -o -path /var/lib/rpm -o -path /var/lib/systemd/deb-systemd-helper-enabled \) -prune -o \
					! -path /session ! -name dpkg.log ! -path '/etc/g*-' ! -path / -printf '%p %M %u %g %l\n' | sort; find /dev/shm | sort; }
			installed() { dpkg-query -W -f '${Package}\n' | sort; }
		END
		cat
	} >"$place/up/session"
	mkdir -p "$place/up/steps"
	root_enter "$base" "$name" chroot "$place/root" bash /session >"$place/log" 2>&1 ||
		{ echo "the session ended with $?"; tail "$place/log"; }
}
# What is written in /dev of a root is gone after the session.
ended() { # NAME STATUS: how a step ended; what it printed, if otherwise
	[ "$(cat "$place/up/steps/$1.status" 2>/dev/null)" = "$2" ] || { tail -n 20 "$place/up/steps/$1" >&2; return 1; }
}
printed() { grep -qE -e "$2" "$place/up/steps/$1" || { tail -n 20 "$place/up/steps/$1" >&2; return 1; }; }
lacks() { ! grep -e "$2" "$1" >&2; }
same() { diff "$place/up/steps/$1" "$place/up/steps/$2" >&2; }

# ---- packages

# own_packages [COMPONENT...]: what this machine has built, as packages
own_packages() {
	[ ! -d "$work/packages" ] || return 0
	cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/packages" ${1:+-D CPACK_COMPONENTS_ALL="$(IFS=';'; echo "$*")"} \
		>"$work/cpack" 2>&1 ||
		{ cat "$work/cpack"; return 1; }
	rm -rf "$work/packages/_CPack_Packages"
}
# later_packages [EDIT]: the same files as a later version, with a policy that sed has edited
later_packages() {
	local file policy
	mkdir -p "$work/later"
	for file in "$work"/packages/*.deb; do
		rm -rf "$work/unpacked"
		dpkg-deb -R "$file" "$work/unpacked"
		sed -i -E 's/^(Version: .*)/\1+later/; s/\(= ([^)]*)\)/(= \1+later)/' "$work/unpacked/DEBIAN/control"
		policy=$work/unpacked/etc/rdma_intercept/policy.conf
		[ ! -e "$policy" ] || [ -z "${1-}" ] || sed -i "$1" "$policy"
		dpkg-deb -Zgzip -z1 -b "$work/unpacked" "$work/later/$(basename "$file")" >/dev/null
	done
}
