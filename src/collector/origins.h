/* SPDX-License-Identifier: MIT */
/* Where a limit in force was set, for people: from the origins that the effective policy keeps. */
#ifndef COLLECTOR_ORIGINS_H
#define COLLECTOR_ORIGINS_H

#include "collector/collector.h"
#include "ledger/ledger.h"

/* The limit that is in the way, as struct proto_event says it. */
void origin_of_refusal(const struct collector *collector, const struct proto_event *event,
		       enum kind kind, const char *device, char ret_origin[PROTO_ORIGIN]);

/* The same for the line of a refusal: a file is named as seen from the policy's directory. */
void origin_shorten(const struct collector *collector, const char *origin,
		    char ret_short[PROTO_ORIGIN_SHORT]);

/* An origin of the policy, cut at the front if it is too long for a message. */
void origin_cut(const char *origin, char ret_origin[PROTO_ORIGIN]);

#endif
