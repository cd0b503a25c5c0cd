# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034 # of the other parts of the script
# The package of the library: no host names a library that is gone.
unit=

# Takes the library out of /etc/ld.so.preload, as 'rdma_intercept disable' does: that command is
# another package, which may have been removed before. What other lines say stays. The lock is of
# that command, too: a file that only root can open, and which who has the lock removes.
preload_remove() {
	file=/etc/ld.so.preload
	new=$file.rdma_intercept
	ours='([^[:space:]:#]*/)?librdma_intercept\.so'
	rm -f "$new"
	grep -q 'librdma_intercept\.so' "$file" 2>/dev/null || return 0
	lock=/etc/.rdma_intercept.lock
	before=$(umask)
	umask 077
	while
		exec 9>>"$lock"
		flock 9 2>/dev/null && own=$(stat -c %i - <&9) &&
			[ "$own" != "$(stat -c %i "$lock" 2>/dev/null)" ]
	do :; done
	# Lines that name only the library, and then the library in other lines, up to a comment.
	sed -E "\\,^([[:space:]:]*$ours)+[[:space:]:]*\$,d
		:again
		s,^(([^#]*[[:space:]:])?)$ours([[:space:]:]+|\$),\\1,
		t again" "$file" >"$new"
	chmod --reference="$file" "$new"
	chown --reference="$file" "$new"
	sync "$new"
	if [ -s "$new" ]; then
		mv -f "$new" "$file"
	else
		rm -f "$file" "$new"
	fi
	umask "$before"
	rm -f "$lock"
	exec 9<&-
}

package_install() { :; }
package_remove() {
	preload_remove
	rm -f /etc/profile.d/rdma_intercept.sh
}
# What programs with the library left: their books without a collector, and their log.
package_forget_run() {
	rm -f /dev/shm/rdma_intercept_shm /dev/shm/rdma_intercept_shm.[0-9]* /tmp/rdma_intercept.log*
}
package_forget() { :; }
