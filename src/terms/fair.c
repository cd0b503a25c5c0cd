/* SPDX-License-Identifier: MIT */
/* Reasons of limits in force; see fair.h. */
#include "terms/fair.h"

#include "base/translation.h"

const char *const fair_reason_names[FAIR_REASONS] = {
	[FAIR_CONFIGURED] = "configured", [FAIR_LIMIT] = "limit", [FAIR_GUARANTEE] = "guarantee",
	[FAIR_DEMAND] = "demand",	  [FAIR_SHARE] = "share", [FAIR_WAITING] = "waiting",
	[FAIR_DRAINING] = "draining",
};

const char *const fair_reason_texts[FAIR_REASONS] = {
	[FAIR_CONFIGURED] = N_("the configured limit"),
	[FAIR_LIMIT] = N_("the configured limit is not above its share"),
	[FAIR_GUARANTEE] = N_("its guarantee"),
	[FAIR_DEMAND] = N_("its demand, and its part of the unused rest"),
	[FAIR_SHARE] = N_("its share by weight"),
	[FAIR_WAITING] = N_("waits for the rest of its share until others give back"),
	[FAIR_DRAINING] = N_("its share; it holds more, and gets nothing new until it is below"),
};
