/* SPDX-License-Identifier: MIT */
/*
 * The common words; see vocabulary.h. The protocol carries scopes and modes as the
 * ledger's numbers, so this one file looks at the ledger's names for them rather
 * than writing them down again. Of the rest of the ledger the command knows nothing.
 */
#include "cli/vocabulary.h"

#include <stdio.h>

#include "ledger/ledger.h"
#include "proto/messages.h"

_Static_assert((int)MODE_ENFORCE == PROTO_ENFORCE && (int)MODE_WARN == PROTO_WARN &&
		       (int)MODE_AUDIT == PROTO_AUDIT,
	       "modes travel as numbers");

const struct form form_mode = {
	.show = form_name_show,
	.json = form_name_json,
	.names = ledger_mode_names,
	.count = LEDGER_MODES,
};

const struct words vocabulary_modes = { ledger_mode_names, LEDGER_MODES };
const struct words vocabulary_transports = { ledger_transport_names, LEDGER_TRANSPORTS };

const struct limit_place *vocabulary_place(uint32_t scope)
{
	static const struct limit_place places[LEDGER_SCOPES] = {
		[SCOPE_PROCESS] = { .of_each_process = true },
		[SCOPE_PROCESS_DEVICE] = { .of_each_process = true, .on_device = true },
		[SCOPE_TENANT] = { .on_device = false },
		[SCOPE_TENANT_DEVICE] = { .on_device = true },
		[SCOPE_DEVICE] = { .of_host = true, .on_device = true },
		[SCOPE_HOST] = { .of_host = true },
	};

	return scope < LEDGER_SCOPES ? &places[scope] : NULL;
}

const char *vocabulary_scope(uint32_t scope)
{
	return scope < LEDGER_SCOPES ? ledger_scope_names[scope] : NULL;
}

void vocabulary_key(bool of_each_process, const char *device, const char *kind,
		    char ret_key[LIMIT_KEY])
{
	snprintf(ret_key, LIMIT_KEY, "%s%s%s%s%s", of_each_process ? "process." : "",
		 *device ? "device." : "", device, *device ? "." : "", kind);
}
