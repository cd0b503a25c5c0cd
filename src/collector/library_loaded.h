/* SPDX-License-Identifier: MIT */
/* Whether the library is loaded in a process that is not registered. */
#ifndef COLLECTOR_LIBRARY_LOADED_H
#define COLLECTOR_LIBRARY_LOADED_H

#include <sys/types.h>

/* 1, 0, or -errno where that cannot be seen now. It takes 0.1 s at most. */
int library_is_loaded(pid_t pid);

#endif
