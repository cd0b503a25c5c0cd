/* SPDX-License-Identifier: MIT */
/*
 * Words that programs, library and collector have in common: modes, scopes of
 * limits, and how the policy's keys are put together from them.
 */
#ifndef VIEW_VOCABULARY_H
#define VIEW_VOCABULARY_H

#include <stdbool.h>
#include <stdint.h>

#include "output/form.h"

extern const struct form form_mode; /* uint32_t, enum mode */

/* Where in a policy the limit of a scope (enum limit_scope) stands; NULL for one that is none. */
struct limit_place {
	bool of_host; /* otherwise of a tenant */
	bool of_each_process;
	bool on_device;
};
const struct limit_place *vocabulary_place(uint32_t scope);

/* The scope in the words that the library has for it, or NULL. A device with a slash is a port. */
const char *vocabulary_scope(uint32_t scope, const char *device);

/* The key "process.device.NAME.KIND", or the parts of it that apply; "port.NAME/PORT.KIND" if the
 * device has a slash. */
enum { LIMIT_KEY = 160 };
void vocabulary_key(bool of_each_process, const char *device, const char *kind,
		    char ret_key[LIMIT_KEY]);

#endif
