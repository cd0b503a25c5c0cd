/* SPDX-License-Identifier: MIT */
/* The ports of the host's RDMA devices, from sysfs; see ports.h. */
#include "cli/ports.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "output/form.h"
#include "terms/terms.h"

#define DEVICES_VARIABLE "RDMA_COLLECTOR_DEVICES" /* for tests, as in the collector */
#define DEVICES "/sys/class/infiniband"

struct port {
	char device[NAME_SIZE];
	uint32_t number;
	char state[NAME_SIZE]; /* ACTIVE, DOWN, ... */
	char link[NAME_SIZE];  /* InfiniBand or Ethernet */
	char rate[NAME_SIZE];
};

static void port_state_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	cell_print(ret_cell, strcmp(field, "ACTIVE") ? COLOUR_WARNING : NULL, "%s",
		   (const char *)field);
}

static const struct form form_port_state = { .show = port_state_show, .json = form_text_json };

static const struct column port_columns[] = {
	COLUMN(struct port, device, "device", "device", form_text),
	COLUMN(struct port, number, "port", "port", form_number),
	COLUMN(struct port, state, "state", "state", form_port_state),
	COLUMN(struct port, link, "link_layer", "link", form_text),
	COLUMN(struct port, rate, "rate", "rate", form_text),
	COLUMNS_END,
};

static int name_is_plain(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && strlen(entry->d_name) < NAME_SIZE;
}

/* The line of a file of the port, behind "NUMBER: " if that stands before it. */
static void port_read(const char *directory, const char *name, char ret_text[NAME_SIZE])
{
	char path[PATH_MAX], text[NAME_SIZE], *colon;

	snprintf(path, sizeof(path), "%.2000s/%.64s", directory, name);
	file_read_small(path, text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	colon = strstr(text, ": ");
	strcpy(ret_text, colon ? colon + 2 : text);
}

/* Calls add() for each name in the directory, sorted. */
static void names_each(const char *directory, struct list *ports, const char *device,
		       void (*add)(const char *directory, const char *name, const char *device,
				   struct list *ports))
{
	struct dirent **entries;
	int count = scandir(directory, &entries, name_is_plain, versionsort);

	for (int i = 0; i < count; i++) {
		add(directory, entries[i]->d_name, device, ports);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

static void port_add(const char *directory, const char *name, const char *device,
		     struct list *ports)
{
	struct port *port = list_add(ports);
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.2000s/%.64s", directory, name);
	snprintf(port->device, sizeof(port->device), "%s", device);
	port->number = (uint32_t)strtoul(name, NULL, 10);
	port_read(path, "state", port->state);
	port_read(path, "link_layer", port->link);
	port_read(path, "rate", port->rate);
}

static void device_add(const char *directory, const char *name, const char *unused,
		       struct list *ports)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.2000s/%.64s/ports", directory, name);
	names_each(path, ports, name, port_add);
}

void ports_show(struct page *page)
{
	const char *directory = getenv(DEVICES_VARIABLE);
	struct list ports = { .size = sizeof(struct port) };

	names_each(directory ? directory : DEVICES, &ports, "", device_add);
	page_table(page, "ports", port_columns, &ports);
	free(ports.row);
}
