/* SPDX-License-Identifier: MIT */
/* Tells the kernel which devices the guarded tenants may use: by the numbers of their files, which
 * the programs in the kernel see before anything of a device is open. */
#include "collector/guard_parts.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define UVERBS_VARIABLE "RDMA_COLLECTOR_UVERBS" /* for tests: another place than */
#define UVERBS "/sys/class/infiniband_verbs"

/* The names of the devices that exist now, by number; "" if no device has the number. */
struct uverbs_names {
	char name[GUARD_DEVICES][NAME_SIZE];
};

static void uverbs_names_read(struct uverbs_names *ret_names)
{
	const char *named = getenv(UVERBS_VARIABLE), *directory = named && *named ? named : UVERBS;
	DIR *listed = opendir(directory);
	char path[PATH_MAX], name[NAME_SIZE];
	struct dirent *entry;
	unsigned number;

	memset(ret_names, 0, sizeof(*ret_names));
	while (listed && (entry = readdir(listed))) {
		if (sscanf(entry->d_name, "uverbs%u", &number) != 1 || number >= GUARD_DEVICES)
			continue;
		snprintf(path, sizeof(path), "%s/%.32s/ibdev", directory, entry->d_name);
		if (file_read_small(path, name, sizeof(name)) <= 0)
			continue;
		name[strcspn(name, "\n")] = '\0';
		strcpy(ret_names->name[number], name);
	}
	if (listed)
		closedir(listed);
}

const char *guards_device_name(unsigned number)
{
	static struct uverbs_names names;

	uverbs_names_read(&names);
	return number < GUARD_DEVICES ? names.name[number] : "";
}

const char *guards_tenant_devices(const struct collector *collector,
				  const struct guards_tenant *tenant)
{
	const struct policy *policy = collector->effective;

	if (!tenant || !tenant->enforced)
		return "*";
	return policy_tenant_devices(policy, policy_tenant_find(policy, tenant->name));
}

void guards_devices_write(struct collector *collector,
			  const struct guards_tenant *of_slot[GUARD_TENANTS])
{
	static struct uverbs_names names;
	struct guards *guards = &collector->guards;
	bool known = false;

	for (__u32 slot = 1; slot < GUARD_TENANTS; slot++) {
		const char *patterns = guards_tenant_devices(collector, of_slot[slot]);
		__u64 bits[GUARD_DEVICES / 64] = { 0 };

		if (!strcmp(patterns, "*")) {
			monitor_guard_devices(&guards->guard, slot, NULL);
			continue;
		}
		if (!known)
			uverbs_names_read(&names);
		known = true;
		for (unsigned i = 0; i < GUARD_DEVICES; i++)
			if (names.name[i][0] && settings_device_matches(patterns, names.name[i]))
				bits[i / 64] |= 1ull << i % 64;
		monitor_guard_devices(&guards->guard, slot, bits);
	}
}
