# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034 # of the other parts of the script
# The package of the library: no host names a library that is gone.
unit=

# Takes the library out of /etc/ld.so.preload, as 'rdma_intercept disable' does: that command is
# another package, which may have been removed before. What other lines say stays. The lock is of
# that command, too: a file that only root can open, and which who has the lock removes. If the list
# cannot be changed this fails, and so does the removal of the package: the library stays.
preload_remove() {
	file=/etc/ld.so.preload
	new=$file.rdma_intercept
	profile=/etc/profile.d/rdma_intercept.sh
	lock=/etc/.rdma_intercept.lock
	ours='([^[:space:]:#]*/)?librdma_intercept\.so'
	# (the lock, too, may be of a command that was killed; the list that it made then is empty)
	if ! grep -q 'librdma_intercept\.so' "$file" 2>/dev/null && [ ! -e "$new" ] && [ ! -e "$lock" ] &&
		[ ! -e "$profile" ] && [ ! -e "$profile.rdma_intercept" ]; then
		return 0
	fi
	trap preload_failed EXIT
	before=$(umask)
	umask 077
	while
		exec 9>>"$lock"
		flock 9 2>/dev/null && own=$(stat -c %i - <&9) &&
			[ "$own" != "$(stat -c %i "$lock" 2>/dev/null)" ]
	do :; done
	rm -f "$profile" "$profile.rdma_intercept" "$new"
	if [ ! -f "$file" ]; then
		: # a directory is no list
	elif [ ! -s "$file" ]; then
		rm -f "$file"
	elif grep -q 'librdma_intercept\.so' "$file"; then
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
	fi
	umask "$before"
	rm -f "$lock"
	exec 9<&-
	trap - EXIT
}
preload_failed() {
	rm -f "$new" "$lock"
	echo "$file: cannot be changed: expected a list that can be changed, since it may name librdma_intercept.so" >&2
}

package_install() { :; }
package_remove() {
	preload_remove
}
# What programs with the library left: their books without a collector, and their log.
package_forget_run() {
	rm -f /dev/shm/rdma_intercept_shm /dev/shm/rdma_intercept_shm.[0-9]* /tmp/rdma_intercept.log*
}
package_forget() { :; }
