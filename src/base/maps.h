/* SPDX-License-Identifier: MIT */
/* What this process has mapped, as /proc tells it. */
#ifndef BASE_MAPS_H
#define BASE_MAPS_H

#include <stdbool.h>
#include <stddef.h>

/* The file behind a descriptor; "" when it cannot be told. */
void maps_path_of(int fd, char *ret_path, size_t size);

/* Whether any part of that file is mapped. Not for hot paths. */
bool maps_have(const char *path);

#endif
