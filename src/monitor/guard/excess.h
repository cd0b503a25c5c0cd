/* SPDX-License-Identifier: MIT */
/*
 * Takes away objects over a limit. A tenant can get one by changing a command after the guard
 * has looked at it; the guard then closes the file of the object, so that no command is carried
 * out on it any more (guard_closed). The object lives as long as a process has that file open.
 */
#ifndef MONITOR_GUARD_EXCESS_H
#define MONITOR_GUARD_EXCESS_H

#include "monitor/guard/tenancy.h"

/*
 * Kills each process of the tenant to blame that has a closed file open. Where processes of
 * other tenants have it open, the objects over the limit are destroyed on a copy of their
 * descriptor; the processes and their own objects are not touched. Not found: a file that is on
 * its way in a socket and that no process has open.
 */
void excess_end(const char *directory, const struct tenancy *tenancy, struct guard_counts *counts);

#endif
