/* SPDX-License-Identifier: MIT */
/* The limits that run passes on, and the words for a limit that is not valid; see run_limits.h. */
#include "cli/run_limits.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/translation.h"
#include "terms/limit_list.h"

#define LIMITS_VARIABLE "RDMA_INTERCEPT_LIMITS"

enum { EXPECTED_TEXT = 512 };

static void expected_kinds(const char *word, size_t length, char ret_text[EXPECTED_TEXT])
{
	char meant[48];
	struct nearest nearest = { .word = meant };
	size_t used = 0;

	snprintf(meant, sizeof(meant), "%.*s", (int)length, word);
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		const char *name = kind_rows[kind].name;

		nearest_offer(&nearest, name, strlen(name));
		used += (size_t)snprintf(ret_text + used, EXPECTED_TEXT - used, "%s%s",
					 kind ? ", " : _("one of "), name);
	}
	if (nearest.best)
		snprintf(ret_text + used, EXPECTED_TEXT - used, _("; did you mean '%s'?"), nearest.best);
}

/* Names the wrong part of the limit at which reading stopped. */
static int limit_fail(const struct cli *cli, const char *source, const struct limit_list *list)
{
	const char *text = list->at, *equals;
	int length = (int)strcspn(text, ",;"), name;
	char expected[EXPECTED_TEXT];

	equals = memchr(text, '=', (size_t)length);
	name = equals ? (int)(equals - text) : length;
	switch (list->mistake) {
	case LIMIT_SCOPE:
		return cli_fail(cli, CLI_RUN,
				"%s: unknown or incomplete scope in '%.*s': expected process:, host:, "
				"device:NAME: or port:NAME/PORT: before KIND=VALUE",
				source, length, text);
	case LIMIT_PORT:
		text = strchr(text, '/') + 1; /* limit_list_next() has seen it, and the colon */
		return cli_fail(cli, CLI_RUN,
				"%s: invalid port '%.*s' in '%.*s': expected a number from 1 to %d",
				source, (int)strcspn(text, ":"), text, length, list->at, PORTS_COUNTED);
	case LIMIT_KIND:
		expected_kinds(text, (size_t)name, expected);
		return cli_fail(cli, CLI_RUN, "%s: unknown kind '%.*s' in '%.*s': expected %s", source,
				name, text, length, text, expected);
	case LIMIT_ON_PORT:
		return cli_fail(cli, CLI_RUN,
				"%s: '%.*s' cannot be limited on a port: expected qp or ah", source,
				name, text);
	case LIMIT_VALUE:
		return cli_fail(cli, CLI_RUN, "%s: invalid value '%.*s' in '%.*s': expected %s", source,
				length - name - 1, equals + 1, length, text,
				kind_rows[kind_find(text, (size_t)name)].unit == UNIT_BYTES ?
					_("a size such as 512M or 1.5G, or unlimited") :
					_("a count such as 10, or unlimited"));
	default:
		return cli_fail(cli, CLI_RUN,
				"%s: '%.*s' is not a limit: expected KIND=VALUE such as qp=10 or "
				"host:mr_bytes=1G",
				source, length, text);
	}
}

/* Warns of a device that this host does not have: the limit would have no effect. Where the
 * directory has no device, nothing is known of the devices. */
static void device_look(const char *source, const struct limit_item *item)
{
	const char *other = getenv("RDMA_COLLECTOR_DEVICES"); /* for tests, as in the collector */
	DIR *directory = opendir(other ? other : "/sys/class/infiniband");
	char names[EXPECTED_TEXT] = "";
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		size_t used = strlen(names), length = strlen(entry->d_name);

		if (entry->d_name[0] == '.')
			continue;
		snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", entry->d_name);
		if (length == item->device_length && !memcmp(entry->d_name, item->device, length))
			*names = '\0';
		if (!*names)
			break;
	}
	if (directory)
		closedir(directory);
	if (*names)
		fprintf(stderr,
			_("%s: warning: %s: this host has no device '%.*s': expected one of: %s\n"),
			CLI_NAME, source, (int)item->device_length, item->device, names);
}

/* Writes one list as the library takes it, with the scope of each part. */
static int list_write(const struct cli *cli, FILE *out, const char *source, const char *text)
{
	struct limit_list list = { .at = text, .typed = true, .mistake = LIMIT_FORM };
	struct limit_item item;
	int result;

	while ((result = limit_list_next(&list, &item)) > 0) {
		if (item.first && item.scope == SCOPE_DEVICE)
			device_look(source, &item);
		if (!item.first)
			fputc(',', out);
		else if (ftell(out))
			fputc(';', out);
		if (item.first && item.port)
			fprintf(out, "port:%.*s/%u:", (int)item.device_length, item.device,
				item.port);
		else if (item.first && item.scope == SCOPE_DEVICE)
			fprintf(out, "device:%.*s:", (int)item.device_length, item.device);
		else if (item.first)
			fprintf(out, "%s:", scope_names[item.scope]);
		fprintf(out, "%.*s", (int)item.length, item.text);
	}
	if (result < 0 || !*text) /* an empty list is a mistake, an empty end is not */
		return limit_fail(cli, source, &list);
	return CLI_OK;
}

int run_limits_set(const struct cli *cli)
{
	const struct given *option = &cli->options.limit;
	const char *inherited = getenv(LIMITS_VARIABLE);
	char *limits = NULL;
	size_t size;
	FILE *out;
	int result;

	if (!option->count)
		return CLI_OK;
	out = memory_need(open_memstream(&limits, &size));
	result = inherited && *inherited ? list_write(cli, out, LIMITS_VARIABLE, inherited) : CLI_OK;
	for (unsigned i = 0; !result && i < option->count; i++)
		result = list_write(cli, out, "--limit", option->value[i]);
	if (fclose(out))
		memory_need(NULL);
	if (!result && setenv(LIMITS_VARIABLE, limits, true))
		memory_need(NULL);
	free(limits);
	return result;
}
