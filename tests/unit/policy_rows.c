/* SPDX-License-Identifier: MIT */
/*
 * Each row of the policy's tables reaches everything that is made from them: reader, writer, merge,
 * comparison, commands and messages. trials.sh builds this once more with rows of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "policy/conditions.h"
#include "policy/keys.h"
#include "policy/problem.h"

static char path[] = "/tmp/rdma_policy_rows.XXXXXX";
static char problem[PROBLEM_SIZE];

static struct policy *text_read(const char *text)
{
	struct policy *policy = policy_new();
	FILE *file = fopen(path, "w");

	if (!policy || !file || fputs(text, file) < 0 || fclose(file))
		abort();
	CHECK(policy_read_file(policy, path, false, problem) == 0, "%s: %s", text, problem);
	return policy;
}

static const char *text_of(const struct policy *policy)
{
	static char text[1 << 16];
	FILE *file;

	CHECK(policy_write(policy, path) == 0);
	file = fopen(path, "r");
	if (!file)
		abort();
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

/* A value that the key takes: what counts without one, unless that is nothing. */
static void sample_print(const struct policy_key *key, char *text, size_t size)
{
	FILE *file = fmemopen(text, size, "w");

	key->type->print(file, key->initial);
	fclose(file);
	if (!text[0])
		strcpy(text, key->type == &policy_type_group  ? "root" :
			     key->type == &policy_type_tenant ? "sample" :
								"/sample");
}

static void key_check(const struct policy_section *section, const struct policy_key *key,
		      const struct policy_place *place)
{
	char name[POLICY_KEY_NAME], sample[POLICY_PATH] = "", title[32], line[600], text[700];
	struct policy *policy, *merged, *empty = policy_new();

	sample_print(key, sample, sizeof(sample));
	policy_key_print(key, place, name);
	snprintf(title, sizeof(title), "%s%s", section->name,
		 section->bit == POLICY_IN_TENANT ? " t" : "");
	snprintf(line, sizeof(line), "%s = %s\n", name, sample);
	snprintf(text, sizeof(text), "[%s]\n%s", title, line);
	policy = text_read(text);
	CHECK(strstr(text_of(policy), line) != NULL, "%s is not written", name);
	merged = policy_merge(empty, policy);
	CHECK(strstr(text_of(merged), line) != NULL, "%s is not merged", name);
	policy_free(merged);
	if (section->by_command) {
		CHECK(policy_change(empty, title, "", problem) == 0);
		CHECK(policy_lacks(empty, policy, problem) && strstr(problem, name),
		      "%s is not missed: %s", name, problem);
		snprintf(text, sizeof(text), "%s = unset", name);
		CHECK(policy_change(policy, title, text, problem) == 0, "%s", problem);
		CHECK(!strstr(text_of(policy), line), "%s is not unset", name);
		CHECK(policy_change(policy, title, line, problem) == 0, "%s", problem);
		CHECK(strstr(text_of(policy), line) != NULL, "%s is not set", name);
	}
	policy_free(policy);
	policy_free(empty);
}

/* A message about another key names this one. */
static void message_check(const struct policy_section *section, const struct policy_key *key)
{
	const struct policy_source source = { .problem = problem };
	const struct policy_key *found;
	char form[POLICY_KEY_NAME];
	struct policy_place place;

	CHECK(policy_key_parse(&source, section, "nosuch", &found, &place) == -EINVAL);
	for (unsigned i = 0; policy_key_form(key, i, form); i++) {
		/* Of a family, by the word that stands for all of them. */
		if (key->type->family)
			strcpy(strrchr(form, '.') + 1, key->type->family);
		CHECK(strstr(problem, form) != NULL, "%s: %s", form, problem);
	}
}

static void keys(void)
{
	for (int i = 0; i < POLICY_SECTIONS; i++)
		for (int number = 0; number < POLICY_KEYS; number++) {
			const struct policy_key *key = &policy_keys[number];
			struct policy_place place = { .kind = KIND_mr_bytes };

			if (!(key->sections & policy_sections[i].bit))
				continue;
			message_check(&policy_sections[i], key);
			if (!CHECK(key->help[0] && key->type->expected[0], "%s", key->name) ||
			    policy_keys[number].type->shape == POLICY_LINES)
				continue;
			key_check(&policy_sections[i], key, &place);
			strcpy(place.device, "mlx5_0");
			if (key->type->shape == POLICY_PER_KIND)
				key_check(&policy_sections[i], key, &place);
		}
	printf("%d keys\n", POLICY_KEYS);
}

/* "NAME=VALUE" with the first value that the condition takes. */
static void condition_print(const struct policy_condition *condition, char text[64])
{
	static const char *const values[] = { "1", "/x" };
	const struct policy_source source = { .problem = problem };
	int result = -EINVAL;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]) && result < 0; i++) {
		struct policy_rule rule = { .next = NULL };
		char copy[64];

		snprintf(text, 64, "%s=%s", condition->name, values[i]);
		strcpy(copy, text);
		result = policy_condition_parse(&source, copy, &rule);
	}
	CHECK(result == 0, "%s: %s", condition->name, problem);
}

static void conditions(void)
{
	for (int i = 0; i < POLICY_CONDITIONS; i++) {
		const struct policy_condition *condition = &policy_conditions[i];
		struct policy_rule rule = { .next = NULL };
		const struct policy_source source = { .problem = problem };
		char sample[64], text[160], nosuch[] = "nosuch=1";
		struct policy *policy, *merged, *empty = policy_new();

		condition_print(condition, sample);
		snprintf(text, sizeof(text), "[tenant t]\nmatch = %s\n", sample);
		policy = text_read(text);
		CHECK(policy->rules &&
		      policy_rule_in_kernel(policy->rules) == condition->in_kernel);
		CHECK(strstr(text_of(policy), text) != NULL, "%s is not written", sample);
		merged = policy_merge(empty, policy);
		CHECK(strstr(text_of(merged), text) != NULL, "%s is not merged", sample);
		policy_free(merged);
		policy_free(policy);
		/* Beside a condition that the kernel has. */
		if (!condition->in_kernel) {
			snprintf(text, sizeof(text), "[tenant t]\nmatch = cgroup=/x %s\n", sample);
			policy = text_read(text);
			CHECK(policy->rules && !policy_rule_in_kernel(policy->rules), "%s", sample);
			policy_free(policy);
		}
		CHECK(policy_condition_parse(&source, nosuch, &rule) == -EINVAL);
		CHECK(strstr(problem, condition->name) != NULL, "%s", problem);
		policy_free(empty);
	}
	printf("%d conditions\n", POLICY_CONDITIONS);
}

static void driver(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		abort();
	close(fd);
	RUN(keys);
	RUN(conditions);
	unlink(path);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
