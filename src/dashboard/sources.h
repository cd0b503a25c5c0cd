/* SPDX-License-Identifier: MIT */
/* In which file and line a section of the policy sets its keys, for whoever wants to change them. */
#ifndef DASHBOARD_SOURCES_H
#define DASHBOARD_SOURCES_H

#include "dashboard/text.h"

/*
 * An array of the lines that set a key in this section ("host", "tenant NAME"), of the policy file
 * and of tenants.d beside it; null if the file cannot be read. What a command set is not in files.
 */
void sources_write(struct text *text, const char *policy, const char *section);

#endif
