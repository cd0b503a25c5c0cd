/* SPDX-License-Identifier: MIT */
/*
 * The common words; see vocabulary.h.
 */
#include "view/vocabulary.h"

#include <stdio.h>
#include <string.h>

#include "terms/terms.h"

const struct form form_mode = {
	.show = form_name_show,
	.json = form_name_json,
	.names = mode_names,
	.count = MODES,
};

const struct limit_place *vocabulary_place(uint32_t scope)
{
	static const struct limit_place places[SCOPES] = {
		[SCOPE_PROCESS] = { .of_each_process = true },
		[SCOPE_PROCESS_DEVICE] = { .of_each_process = true, .on_device = true },
		[SCOPE_TENANT] = { .on_device = false },
		[SCOPE_TENANT_DEVICE] = { .on_device = true },
		[SCOPE_DEVICE] = { .of_host = true, .on_device = true },
		[SCOPE_HOST] = { .of_host = true },
	};

	return scope < SCOPES ? &places[scope] : NULL;
}

const char *vocabulary_scope(uint32_t scope, const char *device)
{
	const char *const *names = strchr(device, '/') ? scope_port_names : scope_names;

	return scope < SCOPES ? names[scope] : NULL;
}

void vocabulary_key(bool of_each_process, const char *device, const char *kind,
		    char ret_key[LIMIT_KEY])
{
	snprintf(ret_key, LIMIT_KEY, "%s%s%s%s%s", of_each_process ? "process." : "",
		 strchr(device, '/') ? "port." :
		 *device	     ? "device." :
				       "",
		 device, *device ? "." : "", kind);
}
