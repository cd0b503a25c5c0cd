#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A reader who has only a bare Debian 12: makes such a root with debootstrap, from the mirror that
# this machine's apt uses, copies the checkout, and pastes README.md, docs/guide.md and
# docs/whole-host.md there, from the first command on (guide.sh does the pasting). Needs root, a
# mirror, and 4 GB below TMPDIR; takes long.
# usage: tests/bare.sh [DIRECTORY]   (DIRECTORY: keep the root there, and use it again)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=${SOURCE_DIRECTORY:-$(cd "$here/.." && pwd)}
leave() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || leave "not root: debootstrap and chroot need root"
command -v debootstrap >/dev/null || leave "debootstrap is not installed"
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
	awk '$2 == "bookworm" { print $1; exit }')
[ -n "$mirror" ] || leave "apt knows no mirror of Debian 12 (bookworm)"

root=${1-}
if [ -z "$root" ]; then
	root=$(mktemp -d -t rdma_bare.XXXXXX)
	trap 'rm -rf --one-file-system "$root"' EXIT
fi
SECONDS=0
if [ ! -e "$root/etc/debian_version" ]; then
	debootstrap --variant=minbase bookworm "$root" "$mirror" >"$root.log" 2>&1 || { tail "$root.log"; exit 1; }
	rm -f "$root.log"
	echo "debootstrap: $SECONDS s"
fi
# Packages come the way this machine gets them.
cp -a /etc/apt/apt.conf.d /etc/apt/sources.list* "$root/etc/apt/" 2>/dev/null || true
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
rm -rf "$root/checkout"
mkdir "$root/checkout"
(cd "$source" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -c) | tar -C "$root/checkout" -x --no-same-owner

# In namespaces of its own: what the session mounts and starts ends with it.
cat >"$root/enter" <<-'END'
	#!/bin/sh
	mount -t proc proc "$1/proc" && mount -t sysfs sysfs "$1/sys" && mount -t tmpfs dev "$1/dev" || exit 1
	mkdir "$1/dev/shm" "$1/dev/pts"
	mount -t tmpfs shm "$1/dev/shm" && mount -t devpts -o newinstance,ptmxmode=666 pts "$1/dev/pts" || exit 1
	for name in null zero full random urandom tty; do touch "$1/dev/$name" && mount --bind "/dev/$name" "$1/dev/$name"; done
	ln -s pts/ptmx "$1/dev/ptmx"
	ln -s /proc/self/fd "$1/dev/fd"
	# (not by exec: process 1 of the namespace gets orphans, which script does not expect)
	chroot "$1" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
		script -qec "bash $2" /dev/null
END
chmod 755 "$root/enter"
export GUIDE_ROOT=$root GUIDE_CASES='readme guide guide_lab whole_host'
status=0
"$here/guide.sh" || status=$?
echo "all: $SECONDS s"
exit $status
