/* SPDX-License-Identifier: MIT */
/* The names of modes, transports and scopes; see terms.h. */
#include "terms/terms.h"

const char *const mode_names[MODES] = { "enforce", "warn", "audit" };
const char *const transport_names[TRANSPORTS] = { "auto", "lease", "embedded", "socket" };
const char *const scope_names[SCOPES] = {
	[SCOPE_PROCESS] = "process", [SCOPE_PROCESS_DEVICE] = "process on the device",
	[SCOPE_TENANT] = "tenant",   [SCOPE_TENANT_DEVICE] = "tenant on the device",
	[SCOPE_DEVICE] = "device",   [SCOPE_HOST] = "host",
};
const char *const scope_port_names[SCOPES] = {
	[SCOPE_PROCESS] = "process", [SCOPE_PROCESS_DEVICE] = "process on the port",
	[SCOPE_TENANT] = "tenant",   [SCOPE_TENANT_DEVICE] = "tenant on the port",
	[SCOPE_DEVICE] = "port",     [SCOPE_HOST] = "host",
};
