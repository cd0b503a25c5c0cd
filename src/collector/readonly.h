/* SPDX-License-Identifier: MIT */
/*
 * A descriptor of a directory that does not allow writing. A descriptor that was opened
 * read-only can be opened again for writing by way of /proc/self/fd when its receiver is
 * root somewhere; on a read-only mount the kernel refuses that to everybody.
 */
#ifndef COLLECTOR_READONLY_H
#define COLLECTOR_READONLY_H

#include "base/log.h"

/* A descriptor of the same directory on a read-only mount. Where the collector may not
 * mount (it runs as an ordinary user, for processes that could write the directory
 * anyway), one of the directory as it is, and a warning if it is root. -errno. */
int readonly_directory(int directory, const struct log *log);

#endif
