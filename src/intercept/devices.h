/* SPDX-License-Identifier: MIT */
/*
 * Which devices the process may use, by the settings of its tenant. The collector allows nothing on
 * the others either; here they are hidden, and refused where the collector cannot be asked.
 */
#ifndef INTERCEPT_DEVICES_H
#define INTERCEPT_DEVICES_H

#include "intercept/gate.h"

/* Whether it has to be refused: the tenant's devices do not include it, and its mode is enforce. */
bool device_is_forbidden(const struct library *library, const char *name);

/* Refuses a context on a forbidden device that the ledger granted all the same: it has no number
 * there. Gives back, tells, and returns false with errno EACCES. */
bool device_refuse(struct creation *creation);

#endif
