/* SPDX-License-Identifier: MIT */
/*
 * JSON values are jansson's. This is the only file that includes its header, so that one place
 * decides which library writes JSON. The rules of what is written are form.h's and page.h's;
 * docs/json.md says them to users.
 */
#ifndef OUTPUT_JSON_H
#define OUTPUT_JSON_H

#include <jansson.h>

#endif
