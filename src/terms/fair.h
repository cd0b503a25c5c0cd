/* SPDX-License-Identifier: MIT */
/*
 * Why a tenant's limit in force is what it is, where tenants share a limit of the host or a device:
 * the collector computes it, the command shows it.
 */
#ifndef TERMS_FAIR_H
#define TERMS_FAIR_H

enum fair_reason {
	FAIR_CONFIGURED, /* no pressure: the configured limit */
	FAIR_LIMIT,	 /* pressure, but the configured limit is not above the share */
	FAIR_GUARANTEE,	 /* the guarantee: the share by weight, or the demand, is not above it */
	FAIR_DEMAND,	 /* the demand is met; what all tenants leave is divided by weight on top */
	FAIR_SHARE,	 /* the share by weight: the demand is above it */
	FAIR_WAITING,	 /* below the share until tenants that are above theirs give back */
	FAIR_DRAINING,	 /* the tenant holds more than its share */
	FAIR_REASONS
};

extern const char *const fair_reason_names[FAIR_REASONS];
/* The same in words, for people. */
extern const char *const fair_reason_texts[FAIR_REASONS];

#endif
