/* SPDX-License-Identifier: MIT */
/* Policy files that change; see policywatch.c. */
#ifndef COLLECTOR_POLICYWATCH_H
#define COLLECTOR_POLICYWATCH_H

#include "collector/collector.h"

/* Watches the directories of the policy; where that is impossible, a line in the log says so. */
int policywatch_open(struct collector *collector);
void policywatch_close(struct collector *collector);

#endif
