/* SPDX-License-Identifier: MIT */
/* The settings of a tenant in shared memory; see settings.h. */
#include "terms/settings.h"

#include <stdio.h>
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

/* One pattern of that length. A star first matches nothing, and one character more each time that
 * what follows it does not match. */
static bool device_pattern_matches(const char *pattern, size_t length, const char *device)
{
	const char *end = pattern + length, *star = NULL, *resume = NULL;

	while (*device) {
		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			resume = device;
		} else if (pattern < end && (*pattern == '?' || *pattern == *device)) {
			pattern++;
			device++;
		} else if (star) {
			pattern = star;
			device = ++resume;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}

bool settings_device_matches(const char *patterns, const char *device)
{
	if (!*patterns)
		return true;
	for (size_t length; *(patterns += strspn(patterns, " ")); patterns += length) {
		length = strcspn(patterns, " ");
		if (device_pattern_matches(patterns, length, device))
			return true;
	}
	return false;
}

const char *class_text(uint32_t class, bool hexadecimal, char ret_text[CLASS_TEXT])
{
	unsigned first = class_first(class), last = class_last(class);

	if (class == CLASS_KEEP)
		return strcpy(ret_text, "keep");
	if (first == last)
		snprintf(ret_text, CLASS_TEXT, hexadecimal ? "0x%02x" : "%u", first);
	else
		snprintf(ret_text, CLASS_TEXT, hexadecimal ? "0x%02x-0x%02x" : "%u-%u", first, last);
	return ret_text;
}
