/* SPDX-License-Identifier: MIT */
/*
 * The settings of a tenant that its processes follow besides their limits. The collector writes
 * them into memory that the processes read at any time (a sequence lock: one writer, no waiting).
 */
#ifndef TERMS_SETTINGS_H
#define TERMS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum { SETTINGS_DEVICES = 256 };

struct tenant_settings {
	uint64_t version;		/* goes up by two with each change; odd during one */
	char devices[SETTINGS_DEVICES]; /* patterns with blanks between; "": all devices */
};

_Static_assert(sizeof(struct tenant_settings) % sizeof(uint64_t) == 0, "it is copied by words");

/* Settings that change nothing. */
extern const struct tenant_settings settings_none;

/* Writes all but the version, if anything differs. A writer that died in the middle left an odd
 * version: the next one writes everything again. */
void settings_write(struct tenant_settings *to, const struct tenant_settings *from);

/* A copy of one moment; false, with nothing written, while a change is going on. */
bool settings_read(const struct tenant_settings *from, struct tenant_settings *ret_settings);

/* Changes with the settings. */
static inline uint64_t settings_version(const struct tenant_settings *settings)
{
	return __atomic_load_n(&settings->version, __ATOMIC_ACQUIRE);
}

#endif
