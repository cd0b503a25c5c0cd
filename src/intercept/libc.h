/* SPDX-License-Identifier: MIT */
/*
 * What differs between the C libraries that the library meets: glibc from 2.31 on, and musl. The
 * file is linked with neither (libc.txt); what may be missing at the start is looked up here.
 */
#ifndef INTERCEPT_LIBC_H
#define INTERCEPT_LIBC_H

#include <stdbool.h>

struct link_map;

/* musl: no versions of symbols, names of libraries by file and not by soname. */
bool libc_is_musl(void);

/* The first loaded object, of the loader's list for debuggers; NULL if it has none. */
const struct link_map *libc_objects(void);

/* Finds what is in libpthread before glibc 2.34: false if it is not loaded. */
bool libc_find_mutex(void);

#endif
