/* SPDX-License-Identifier: MIT */
/*
 * Labels: which container, job and pod the names in a cgroup's path tell. Knows how
 * container engines, batch systems and the kubelet name their cgroups, and nothing of rules.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "policy/policy.h"

/* One name of a path, or a part of it. */
struct span {
	const char *text;
	size_t length;
};

/* What stands between the two, if anything does. */
static bool span_between(struct span name, const char *prefix, const char *suffix, struct span *ret)
{
	size_t before = strlen(prefix), after = strlen(suffix);

	if (name.length <= before + after || memcmp(name.text, prefix, before) ||
	    memcmp(name.text + name.length - after, suffix, after))
		return false;
	*ret = (struct span){ name.text + before, name.length - before - after };
	return true;
}

static bool span_consists_of(struct span span, const char *characters)
{
	return strspn(span.text, characters) >= span.length;
}

static int hex_digit(char digit)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = digit ? strchr(digits, digit) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* Copies a name; systemd writes '-' and other characters in it as \x2d and so on. */
static void label_copy(struct span from, char *label, size_t size)
{
	size_t used = 0;

	for (size_t at = 0; at < from.length && used + 1 < size; at++) {
		const char *text = from.text + at;

		label[used] = text[0];
		if (from.length - at >= 4 && text[0] == '\\' && text[1] == 'x' &&
		    hex_digit(text[2]) >= 0 && hex_digit(text[3]) >= 0) {
			label[used] = (char)(hex_digit(text[2]) << 4 | hex_digit(text[3]));
			at += 3;
		}
		used++;
	}
	label[used] = '\0';
}

/* The 64 hexadecimal digits by which container engines call a container. */
static bool container_id(struct span name, struct span *ret_id)
{
	enum { DIGITS = 64 };

	for (size_t at = 0, run; at < name.length; at += run + 1) {
		for (run = 0; at + run < name.length && hex_digit(name.text[at + run]) >= 0; run++)
			;
		if (run == DIGITS) {
			*ret_id = (struct span){ name.text + at, run };
			return true;
		}
	}
	return false;
}

static bool container_of_name(struct span name, struct span *ret_container)
{
	struct span slice;

	/* A slice only groups others: Podman calls a pod by an id of the same form. */
	if (span_between(name, "", ".slice", &slice))
		return false;
	return container_id(name, ret_container) ||
	       span_between(name, "lxc.payload.", "", ret_container) ||
	       span_between(name, "systemd-nspawn@", ".service", ret_container) ||
	       span_between(name, "machine-", ".scope", ret_container);
}

/* Whether a name stands where Slurm has its jobs: /slurm/uid_N/, /slurm_NODE/uid_N/ or, with the
 * unified hierarchy, /system.slice/slurmstepd.scope/ and NODE_slurmstepd.scope/. */
static bool name_is_in_slurm(const char *cgroup, struct span name)
{
	char above[POLICY_PATH];

	if ((size_t)(name.text - cgroup) >= sizeof(above))
		return false;
	snprintf(above, sizeof(above), "%.*s", (int)(name.text - cgroup), cgroup);
	return !fnmatch("/slurm/uid_*/", above, FNM_PATHNAME) ||
	       !fnmatch("/slurm_*/uid_*/", above, FNM_PATHNAME) ||
	       !fnmatch("/system.slice/slurmstepd.scope/", above, FNM_PATHNAME) ||
	       !fnmatch("/system.slice/*_slurmstepd.scope/", above, FNM_PATHNAME);
}

/* Slurm's job_N, and the name below one of the places that PBS has. */
static bool job_of_name(const char *cgroup, struct span name, struct span *ret_job)
{
	static const char *const pbs[] = { "/pbs_jobs.service/jobid/", "/pbs_jobs.service/jobs/" };

	if (span_between(name, "job_", "", ret_job) && span_consists_of(*ret_job, "0123456789") &&
	    name_is_in_slurm(cgroup, name))
		return true;
	*ret_job = name;
	for (size_t i = 0; i < sizeof(pbs) / sizeof(pbs[0]); i++)
		if ((size_t)(name.text - cgroup) == strlen(pbs[i]) &&
		    !memcmp(cgroup, pbs[i], strlen(pbs[i])))
			return true;
	return false;
}

/*
 * From the root downwards, and no further than to a container or a user's own
 * service manager: what is below belongs to those inside, who may give
 * themselves any names there.
 */
void policy_labels(const char *cgroup, char ret_container[2 * NAME_SIZE],
		   char ret_job[NAME_SIZE])
{
	struct span name = { cgroup, 0 }, found;

	ret_container[0] = ret_job[0] = '\0';
	for (;; name.text += name.length) {
		name.text += strspn(name.text, "/");
		name.length = strcspn(name.text, "/");
		if (name.length == 0 || span_between(name, "user@", ".service", &found))
			return;
		if (!ret_job[0] && job_of_name(cgroup, name, &found))
			label_copy(found, ret_job, NAME_SIZE);
		if (container_of_name(name, &found)) {
			label_copy(found, ret_container, 2 * NAME_SIZE);
			return;
		}
	}
}

/*
 * Where the kubelet makes the cgroups of pods, with its driver `systemd` and its driver `cgroupfs`,
 * and what stands before and behind the UID in their names. Systemd's '-' divides slices, so the
 * kubelet writes '_' for it in names there.
 */
static const struct pod_place {
	const char *above, *prefix, *suffix;
} pod_places[] = {
	{ "/kubepods.slice/", "kubepods-pod", ".slice" },
	{ "/kubepods.slice/kubepods-burstable.slice/", "kubepods-burstable-pod", ".slice" },
	{ "/kubepods.slice/kubepods-besteffort.slice/", "kubepods-besteffort-pod", ".slice" },
	{ "/kubepods/", "pod", "" },
	{ "/kubepods/burstable/", "pod", "" },
	{ "/kubepods/besteffort/", "pod", "" },
};

bool policy_pod_uid(const char *cgroup, char ret_uid[NAME_SIZE])
{
	static const char characters[] = POLICY_POD_UID_CHARACTERS "_";

	for (size_t i = 0; i < sizeof(pod_places) / sizeof(pod_places[0]); i++) {
		const struct pod_place *place = &pod_places[i];
		size_t above = strlen(place->above);
		struct span name = { cgroup + above, 0 }, uid;

		if (strncmp(cgroup, place->above, above))
			continue;
		name.length = strcspn(name.text, "/");
		if (!span_between(name, place->prefix, place->suffix, &uid) ||
		    uid.length >= NAME_SIZE || !span_consists_of(uid, characters))
			continue;
		snprintf(ret_uid, NAME_SIZE, "%.*s", (int)uid.length, uid.text);
		for (char *sign = strchr(ret_uid, '_'); place->suffix[0] && sign;
		     sign = strchr(sign, '_'))
			*sign = '-';
		return !strchr(ret_uid, '_');
	}
	return false;
}
