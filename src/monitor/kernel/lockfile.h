/* SPDX-License-Identifier: MIT */
/* Locks between processes of rdma_monitor, which end with the process that has them. */
#ifndef MONITOR_KERNEL_LOCKFILE_H
#define MONITOR_KERNEL_LOCKFILE_H

#define LOCKFILE_DIRECTORY "/run/rdma_intercept"
#define LOCKFILE_CHANGE LOCKFILE_DIRECTORY "/monitor.change" /* held while something is changed */
#define LOCKFILE_KEEPER                                                                            \
	LOCKFILE_DIRECTORY "/monitor.keeper" /* held by the one who looks after it */

/* `how` as of flock. A descriptor to close; -EWOULDBLOCK when another has it and we do not wait; or
 * -errno. */
int lockfile_take(const char *path, int how);

#endif
