/* SPDX-License-Identifier: MIT */
/* The settings of a tenant; see tenant_settings.h. */
#include "cli/tenant_settings.h"

#include <stdio.h>

#include "base/translation.h"
#include "cli/collector.h"
#include "output/form.h"

static const struct form form_devices = {
	.show = form_text_show,
	.json = form_text_json,
	.nothing = N_("all"),
};

static uint32_t class_of(const struct form *form, const void *field)
{
	uint64_t classes = *(const uint64_t *)field;

	return form->count ? classes_traffic_class(classes) : classes_service_level(classes);
}

static void class_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	char text[CLASS_TEXT];

	cell_print(ret_cell, NULL, "%s", class_text(class_of(form, field), form->count, text));
}

static json_t *class_json(const struct form *form, const void *field)
{
	char text[CLASS_TEXT];

	return class_of(form, field) == CLASS_KEEP ?
		       json_null() :
		       form_json_text(class_text(class_of(form, field), form->count, text));
}

/* Both are one word; the count says which: 1 for the traffic class. */
static const struct form form_traffic_class = { .show = class_show, .json = class_json, .count = 1 };
static const struct form form_service_level = { .show = class_show, .json = class_json };

static const struct column settings_columns[] = {
	COLUMN(struct proto_settings, settings.devices, "devices", "devices", form_devices),
	COLUMN(struct proto_settings, settings.classes, "traffic_class", "traffic class",
	       form_traffic_class),
	COLUMN(struct proto_settings, settings.classes, "service_level", "service level",
	       form_service_level),
	COLUMNS_END,
};

static int settings_row_take(const void *row, void *closure)
{
	struct proto_settings *settings = closure;

	*settings = *(const struct proto_settings *)row;
	proto_text(settings->tenant);
	proto_text(settings->settings.devices);
	return 0;
}

int tenant_settings_show(const struct cli *cli, struct page *page, const char *tenant)
{
	struct proto_choose choose = { .pid = 0 };
	struct proto_settings settings = { 0 };
	int result;

	snprintf(choose.tenant, sizeof(choose.tenant), "%s", tenant);
	result = collector_rows(cli, MESSAGE_GET_SETTINGS, &choose, settings_row_take, &settings);
	if (!result)
		page_record(page, "settings", settings_columns, &settings);
	return result;
}
