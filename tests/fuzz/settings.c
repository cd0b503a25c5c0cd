/* SPDX-License-Identifier: MIT */
/* Any bytes as the value of any setting: read without harm, or complained about. */
#include <stdlib.h>
#include <string.h>

#include "intercept/config.h"

static char value[4096];
static unsigned chosen;

static const char *lookup(const char *name)
{
	return strcmp(name, config_settings[chosen].name) ? NULL : value;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct config config;

	if (size < 1 || size > sizeof(value))
		return 0;
	chosen = data[0] % config_settings_count;
	memcpy(value, data + 1, size - 1);
	value[size - 1] = '\0';
	config_read(&config, lookup);
	if (config.complaints > 1 || config.limits.devices >= DEVICES_MAX ||
	    strchr(config.shm_name, '/') || !config.shm_name[0])
		abort();
	return 0;
}
