/* SPDX-License-Identifier: MIT */
/* Whether the library is loaded in a process that is not registered. */
#ifndef COLLECTOR_LIBRARY_LOADED_H
#define COLLECTOR_LIBRARY_LOADED_H

#include <stdint.h>
#include <sys/types.h>

struct collector;

int library_looks_open(struct collector *collector);
void library_looks_close(struct collector *collector);

/* Looks at the mappings of a process; coverage_library_seen is called with what was found. -errno:
 * it is not called. */
int library_look(struct collector *collector, pid_t pid, uint64_t start);

#endif
