/* SPDX-License-Identifier: MIT */
/* Names of environment variables; see variables.h. */
#include "terms/variables.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

enum { VARIABLE_NAME = 64 }; /* no variable of the library has a longer name */

static const char *const variable_names[] = {
#define SETTING(name, parser, allowed) VARIABLES_PREFIX #name,
#include "terms/variables.def"
#undef SETTING
	/* Those of collector, command, monitor and dashboard. */
	VARIABLES_PREFIX "LIBRARY",
	VARIABLES_PREFIX "POLICY",
	"RDMA_COLLECTOR_CGROUPS",
	"RDMA_COLLECTOR_DEVICES",
	"RDMA_COLLECTOR_LSM",
	"RDMA_COLLECTOR_SOCKET",
	"RDMA_COLLECTOR_STATE",
	"RDMA_COLLECTOR_UVERBS",
	"RDMA_DASHBOARD_STATE",
	"RDMA_MONITOR_DEBUG",
	"RDMA_MONITOR_DIRECTORY",
};
enum { VARIABLE_NAMES = sizeof(variable_names) / sizeof(variable_names[0]) };

/* Of the tests. */
#define TEST_PREFIX VARIABLES_PREFIX "TEST_"

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

bool variable_is_unknown(const char *entry, char ret_text[VARIABLE_TEXT])
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
	size_t length = strspn(entry, letters);
	char name[VARIABLE_NAME];
	struct nearest nearest = { .word = name };
	bool is_ours = has_prefix(entry, VARIABLES_PREFIX) && !has_prefix(entry, TEST_PREFIX);

	/* A shell can set no other names; and others are compared only if they begin alike. */
	if (entry[length] != '=' || length >= sizeof(name) || (!is_ours && !has_prefix(entry, "RDMA")))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)length, entry);
	for (unsigned i = 0; i < VARIABLE_NAMES; i++)
		if (!strcmp(name, variable_names[i]))
			return false;
	for (unsigned i = 0; i < VARIABLE_NAMES; i++)
		nearest_offer(&nearest, variable_names[i], strlen(variable_names[i]));
	if (!is_ours && (!nearest.best || has_prefix(entry, TEST_PREFIX)))
		return false;
	snprintf(ret_text, VARIABLE_TEXT, "%s: unknown variable, it has no effect%s%s%s", name,
		 nearest.best ? ": did you mean " : "", nearest.best ? nearest.best : "",
		 nearest.best ? "?" : "");
	return true;
}
