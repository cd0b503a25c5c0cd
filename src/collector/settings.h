/* SPDX-License-Identifier: MIT */
/* Settings of tenants: from the effective policy into the lease tables, where processes read them. */
#ifndef COLLECTOR_SETTINGS_H
#define COLLECTOR_SETTINGS_H

#include "collector/collector.h"

/* Of every tenant on the books. */
void settings_apply(struct collector *collector);

#endif
