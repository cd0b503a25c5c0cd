/* SPDX-License-Identifier: MIT */
/* Where limits were set; see origins.h. */
#include "collector/origins.h"

#include <stdio.h>
#include <string.h>

/* Of a text that is too long the end counts: the name of the file and the line. */
static void text_keep_end(const char *text, char *ret, size_t size)
{
	size_t length = strlen(text);

	if (length < size)
		memcpy(ret, text, length + 1);
	else
		snprintf(ret, size, "...%s", text + length - (size - 4));
}

void origin_cut(const char *origin, char ret_origin[PROTO_ORIGIN])
{
	text_keep_end(origin, ret_origin, PROTO_ORIGIN);
}

void origin_of_refusal(const struct collector *collector, const struct proto_event *event,
		       enum kind kind, const char *device, char ret_origin[PROTO_ORIGIN])
{
	const struct policy *policy = collector->effective;
	const struct policy_tenant *tenant = policy_tenant_find(policy, event->tenant);
	char origin[POLICY_ORIGIN] = "environment";

	if (event->forbidden)
		policy_devices_origin(policy, tenant, origin);
	else if (!event->own)
		policy_limit_origin(policy, tenant, event->scope, device, kind, origin);
	origin_cut(origin, ret_origin);
}

void origin_shorten(const struct collector *collector, const char *origin,
		    char ret_short[PROTO_ORIGIN_SHORT])
{
	static const char when[] = "when ";
	size_t prefix = strncmp(origin, when, sizeof(when) - 1) ? 0 : sizeof(when) - 1;
	const char *slash = strrchr(collector->policy_path, '/');
	size_t directory = slash ? (size_t)(slash - collector->policy_path) + 1 : 0;
	char text[PROTO_ORIGIN];

	if (strncmp(origin + prefix, collector->policy_path, directory))
		directory = 0;
	snprintf(text, sizeof(text), "%.*s%s", (int)prefix, origin, origin + prefix + directory);
	text_keep_end(text, ret_short, PROTO_ORIGIN_SHORT);
}
