/* SPDX-License-Identifier: MIT */
/* The text of /etc/ld.so.preload: libraries for every program, between blanks, line ends or colons;
 * what follows a '#' is a comment. Nothing here opens a file. */
#ifndef CLI_PRELOAD_LIST_H
#define CLI_PRELOAD_LIST_H

#include <stdbool.h>

#define PRELOAD_FILE "/etc/ld.so.preload"

/* A new text without the library, whatever its directory; all else stays as it is, but for lines
 * that named only the library. */
char *preload_list_without(const char *text);

/* A new text in which the library is named once, by this path and as the last one. */
char *preload_list_with(const char *text, const char *path);

#endif
