/* SPDX-License-Identifier: MIT */
/*
 * Whether a kind is under pressure on the host or on a device, with hysteresis: it begins at once
 * and ends late, so that limits do not swing. Knows no clock: the caller says the time. A structure
 * of zeros is no pressure.
 */
#ifndef COLLECTOR_FAIR_PRESSURE_H
#define COLLECTOR_FAIR_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

enum { FAIR_PRESSURE_MARGIN = 10 }; /* per cent of the capacity */
#define FAIR_UNMET_NS 2000000000u   /* an unmet request keeps the pressure on for so long */

struct fair_pressure {
	bool on;
	bool unmet; /* a request was not met, at unmet_ns */
	uint64_t unmet_ns;
};

struct fair_load {
	uint64_t now_ns;
	uint64_t used; /* by all tenants, with the request at hand */
	uint64_t capacity;
	unsigned percent; /* pressure begins at so much of the capacity; 0: always */
	/* A request was refused by the capacity, or by a limit in force below the configured one. A
	 * tenant at its own configured limit is no reason. */
	bool unmet;
};

/* The state that follows LAST. Pressure begins at PERCENT of the capacity, or with an unmet
 * request. It ends FAIR_PRESSURE_MARGIN below (half of PERCENT if that is less than twice the
 * margin) if no request was unmet lately. An unlimited capacity has no pressure. */
struct fair_pressure fair_pressure_next(struct fair_pressure last, const struct fair_load *load);

#endif
