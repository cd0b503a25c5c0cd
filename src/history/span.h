/* SPDX-License-Identifier: MIT */
/* Moments as people write them: "30s", "10m", "2h", "7d" ago, seconds since 1970, or a date. */
#ifndef HISTORY_SPAN_H
#define HISTORY_SPAN_H

#include <stdint.h>

#define SPAN_EXPECTED "10m, 2h, 7d, seconds since 1970, 2026-11-16 or 2026-11-16T10:30Z"

/* 0 or -EINVAL. A date is in UTC, unless it says otherwise as in RFC 3339. */
int span_parse(const char *text, int64_t now, int64_t *ret_moment);

#endif
