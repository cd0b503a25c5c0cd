/* SPDX-License-Identifier: MIT */
/*
 * The terms that every program of the project shares, beside the kinds (kinds.h): limits that
 * are not numbers, what is done at a limit, whose limit it is, where numbers live, and how long a name may be.
 * Shared memory, messages and policies hold these numbers. Programs in the kernel include it.
 */
#ifndef TERMS_TERMS_H
#define TERMS_TERMS_H

#include <stdbool.h>
#include <stdint.h>

/* Limits: one that never refuses, and one that its source does not mention. */
#define UNLIMITED UINT64_MAX
#define UNSET (UNLIMITED - 1)

/* Names of tenants, devices and commands, with the final NUL. */
enum { NAME_SIZE = 64 };

/* Devices of a host; the first place is for objects of no known device. */
enum { DEVICES_MAX = 32 };

/* What is done at a limit. */
enum mode { MODE_ENFORCE, MODE_WARN, MODE_AUDIT, MODES, MODE_UNSET = MODES };
extern const char *const mode_names[MODES];

/* Where a process's numbers live. AUTO: with the collector if there is one, otherwise EMBEDDED. */
enum transport {
	TRANSPORT_AUTO,
	TRANSPORT_LEASE,
	TRANSPORT_EMBEDDED,
	TRANSPORT_SOCKET,
	TRANSPORTS
};
extern const char *const transport_names[TRANSPORTS];

/* Whose limit it is. */
enum limit_scope {
	SCOPE_PROCESS,
	SCOPE_PROCESS_DEVICE,
	SCOPE_TENANT,
	SCOPE_TENANT_DEVICE,
	SCOPE_DEVICE,
	SCOPE_HOST,
	SCOPES
};
extern const char *const scope_names[SCOPES];
/* Of a limit on a device: the name if it is on one of its ports. */
extern const char *const scope_port_names[SCOPES];

/* A limit of a tenant, of which its share may be less. */
static inline bool scope_has_shares(unsigned scope)
{
	return scope == SCOPE_TENANT || scope == SCOPE_TENANT_DEVICE;
}

#endif
