/* SPDX-License-Identifier: MIT */
/* Reasons of limits in force; see fair.h. */
#include "terms/fair.h"

const char *const fair_reason_names[FAIR_REASONS] = {
	[FAIR_CONFIGURED] = "configured", [FAIR_LIMIT] = "limit", [FAIR_GUARANTEE] = "guarantee",
	[FAIR_DEMAND] = "demand",	  [FAIR_SHARE] = "share", [FAIR_WAITING] = "waiting",
	[FAIR_DRAINING] = "draining",
};

const char *const fair_reason_texts[FAIR_REASONS] = {
	[FAIR_CONFIGURED] = "the configured limit",
	[FAIR_LIMIT] = "the configured limit is not above its share",
	[FAIR_GUARANTEE] = "its guarantee",
	[FAIR_DEMAND] = "what it wants, and its part of what nobody wants",
	[FAIR_SHARE] = "its share by weight",
	[FAIR_WAITING] = "waits for the rest of its share until others give back",
	[FAIR_DRAINING] = "its share; it holds more, and gets nothing new until it is below",
};
