/* SPDX-License-Identifier: MIT */
/* The names of modes, transports and scopes; see terms.h. */
#include "terms/terms.h"

#include "base/translation.h"

const char *const mode_names[MODES] = { "enforce", "warn", "audit" };
const char *const transport_names[TRANSPORTS] = { "auto", "lease", "embedded", "socket" };
const char *const scope_names[SCOPES] = {
	[SCOPE_PROCESS] = N_("process"),
	[SCOPE_PROCESS_DEVICE] = N_("process on the device"),
	[SCOPE_TENANT] = N_("tenant"),
	[SCOPE_TENANT_DEVICE] = N_("tenant on the device"),
	[SCOPE_DEVICE] = N_("device"),
	[SCOPE_HOST] = N_("host"),
};
const char *const scope_port_names[SCOPES] = {
	[SCOPE_PROCESS] = N_("process"),
	[SCOPE_PROCESS_DEVICE] = N_("process on the port"),
	[SCOPE_TENANT] = N_("tenant"),
	[SCOPE_TENANT_DEVICE] = N_("tenant on the port"),
	[SCOPE_DEVICE] = N_("port"),
	[SCOPE_HOST] = N_("host"),
};
