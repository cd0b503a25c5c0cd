/* SPDX-License-Identifier: MIT */
/* Settings of tenants: from the effective policy into the lease tables, where processes read them. */
#ifndef COLLECTOR_SETTINGS_H
#define COLLECTOR_SETTINGS_H

#include "collector/collector.h"

/* Of every tenant on the books, and of one that has just got its number. */
void settings_apply(struct collector *collector);
void settings_apply_tenant(struct collector *collector, unsigned tenant);

#endif
