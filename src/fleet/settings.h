/* SPDX-License-Identifier: MIT */
/* The settings of rdma_fleet: its options, over those of its file. */
#ifndef FLEET_SETTINGS_H
#define FLEET_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/problem.h"
#include "policy/fleet.h"

#define FLEET_NAME "rdma_fleet"
#define FLEET_FILE "/etc/rdma_intercept/fleet.conf"

enum { FLEET_VALUE = 512, FLEET_ENDPOINTS = 16, FLEET_ENDPOINT = 128, FLEET_PREFIX = 64 };
/* Of a lease, in seconds. */
enum { LEASE_LEAST_S = 3, LEASE_MOST_S = FLEET_LEASE_MOST_S };

struct fleet_settings {
#define FLEET_SETTING(field, name, initial, help) char field[FLEET_VALUE];
#include "fleet/settings.def"
#undef FLEET_SETTING
	/* What the values say: */
	char endpoint[FLEET_ENDPOINTS][FLEET_ENDPOINT]; /* "https://host:port" */
	unsigned endpoints;
	char prefix[FLEET_PREFIX]; /* "/rdma", without a slash at its end */
	char password[FLEET_VALUE];
	uint64_t lease_s;
	bool keeps_lost; /* when_lost = keep */
};

/* All settings as their rows have them. */
void fleet_settings_init(struct fleet_settings *settings);

/* Sets one by its name. -ENOENT if no setting has it, -E2BIG. */
int fleet_setting_set(struct fleet_settings *settings, const char *name, const char *value);

/* The lines of a file; -ENOENT if the file does not exist. -errno with a problem. */
int fleet_settings_read(struct fleet_settings *settings, const char *path,
			char problem[PROBLEM_SIZE]);

/* Works out what the values say. -EINVAL with a problem. */
int fleet_settings_finish(struct fleet_settings *settings, char problem[PROBLEM_SIZE]);

#endif
