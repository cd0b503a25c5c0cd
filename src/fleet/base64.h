/* SPDX-License-Identifier: MIT */
/* Keys and values as the JSON gateway of etcd has them. */
#ifndef FLEET_BASE64_H
#define FLEET_BASE64_H

#include <stddef.h>
#include <sys/types.h>

/* New memory with a NUL at the end. */
char *base64_encode(const void *data, size_t length);

/* Likewise; *RET_LENGTH is without the NUL. NULL if the text is not base64. */
char *base64_decode(const char *text, size_t *ret_length);

#endif
