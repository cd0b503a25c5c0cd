/* SPDX-License-Identifier: MIT */
/* The settings of a tenant in shared memory; see settings.h. */
#include "terms/settings.h"

#include <string.h>

enum {
	SETTINGS_WORDS = sizeof(struct tenant_settings) / sizeof(uint64_t),
	SETTINGS_TRIES = 64,
};

const struct tenant_settings settings_none;

/* Word by word, so that a reader at the same time meets whole words. The first is the version. A
 * reader that has seen a new word sees the version of its writer, too; the thread sanitizer knows
 * no fences. */
static void settings_copy(uint64_t *to, const uint64_t *from)
{
	for (unsigned i = 1; i < SETTINGS_WORDS; i++)
		__atomic_store_n(&to[i], __atomic_load_n(&from[i], __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
}

void settings_write(struct tenant_settings *to, const struct tenant_settings *from)
{
	uint64_t version = to->version | 1;

	if (!(to->version & 1)) {
		if (!memcmp(&to->version + 1, &from->version + 1,
			    sizeof(*to) - sizeof(to->version)))
			return;
		version = to->version + 1;
	}
	__atomic_store_n(&to->version, version, __ATOMIC_RELAXED);
	settings_copy(&to->version, &from->version);
	__atomic_store_n(&to->version, version + 1, __ATOMIC_RELEASE);
}

bool settings_read(const struct tenant_settings *from, struct tenant_settings *ret_settings)
{
	struct tenant_settings copy;

	for (unsigned i = 0; i < SETTINGS_TRIES; i++) {
		copy.version = settings_version(from);
		settings_copy(&copy.version, &from->version);
		if (!(copy.version & 1) &&
		    __atomic_load_n(&from->version, __ATOMIC_RELAXED) == copy.version) {
			*ret_settings = copy;
			return true;
		}
	}
	return false;
}
