/* SPDX-License-Identifier: MIT */
/* Policy files in a directory of the test; see policyfiles.h. */
#include "policyfiles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char policy_directory[] = "/tmp/rdma_policy.XXXXXX";
char policy_complaint[PROBLEM_SIZE];

void policy_files_begin(void)
{
	if (!mkdtemp(policy_directory))
		abort();
}

void policy_files_remove(void)
{
	static const char *const names[] = { "policy.conf", "written", "again" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(file_path(names[i]));
	CHECK(rmdir(policy_directory) == 0, "something was left in %s", policy_directory);
}

const char *file_path(const char *name)
{
	static char paths[4][160];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", policy_directory, name);
	return path;
}

void file_write(const char *name, const char *bytes, size_t length)
{
	FILE *file = fopen(file_path(name), "w");

	if (!file || fwrite(bytes, 1, length, file) != length || fclose(file))
		abort();
}

void file_is(const char *name, const char *text)
{
	file_write(name, text, strlen(text));
}

char *file_text(const char *path)
{
	static char texts[2][1 << 20];
	static unsigned turn;
	char *text = texts[turn++ % 2];
	FILE *file = fopen(path, "r");

	if (!file)
		abort();
	text[fread(text, 1, sizeof(texts[0]) - 1, file)] = '\0';
	fclose(file);
	return text;
}

struct policy *policy_from_files(int *ret_result)
{
	struct policy *policy = policy_new();

	policy_complaint[0] = '\0';
	*ret_result = policy_read(policy, file_path("policy.conf"), policy_complaint);
	if (*ret_result == 0)
		return policy;
	policy_free(policy);
	return NULL;
}

struct policy *policy_good(const char *text)
{
	struct policy *policy;
	int result;

	file_is("policy.conf", text);
	policy = policy_from_files(&result);
	CHECK(result == 0, "%s: %s", text, policy_complaint);
	return policy ? policy : policy_new();
}

void policy_bad_bytes(const char *text, size_t length, unsigned line, const char *words)
{
	char begin[200], list[200], *at = list, *word;
	int result;

	file_write("policy.conf", text, length);
	policy_free(policy_from_files(&result));
	CHECK(result < 0 && result != -ENOENT, "%s: %d", text, result);
	if (line)
		snprintf(begin, sizeof(begin), "%s:%u: ", file_path("policy.conf"), line);
	else
		snprintf(begin, sizeof(begin), "%s: ", file_path("policy.conf"));
	CHECK(!strncmp(policy_complaint, begin, strlen(begin)), "%s: %s", text, policy_complaint);
	snprintf(list, sizeof(list), "%s", words);
	while ((word = strsep(&at, "|")))
		CHECK(strstr(policy_complaint, word) != NULL, "%s: %s", word, policy_complaint);
}

void policy_bad(const char *text, unsigned line, const char *words)
{
	policy_bad_bytes(text, strlen(text), line, words);
}

char *policy_written(const struct policy *policy)
{
	CHECK(policy_write(policy, file_path("written")) == 0);
	return file_text(file_path("written"));
}

uint64_t policy_limit_of(const struct policy *policy, const char *name, bool process,
			     const char *device, enum kind kind)
{
	return policy_tenant_limit(policy, policy_tenant_find(policy, name), process, device, kind);
}

void policy_belongs(const struct policy *policy, uid_t uid, gid_t gid, const char *cgroup,
		    const char *tenant)
{
	static const gid_t groups[] = { 70, 27 };
	struct policy_subject subject = {
		.uid = uid, .gid = gid, .groups = 2, .group = groups, .cgroup = cgroup
	};
	const struct policy_rule *rule = policy_match(policy, &subject);
	const char *found = rule ? rule->tenant->name : "default";

	CHECK(!strcmp(found, tenant), "%u %u %s: %s, not %s", uid, gid, cgroup ? cgroup : "-",
	      found, tenant);
}
