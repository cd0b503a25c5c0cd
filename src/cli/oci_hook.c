/* SPDX-License-Identifier: MIT */
/*
 * oci-hook env, start and stop: what container engines and runtimes call on the host. `env` puts the
 * library into LD_PRELOAD before a container is made. `start` has the collector add match lines for
 * the container's control group to a tenant, `stop` takes them out. Which tenant it is comes from the
 * command line of the hook or an annotation, which the engine has, never from the container.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/file.h"
#include "base/proc.h"
#include "base/translation.h"
#include "cli/change.h"
#include "cli/collector.h"
#include "cli/container.h"
#include "cli/matches.h"
#include "cli/oci_config.h"
#include "output/form.h"
#include "output/page.h"
#include "policy/policy.h"

enum { INPUT_MOST = 16 << 20 };

/* Standard input as a text, to be freed; NULL with errno. */
static char *input_read(void)
{
	size_t size = 1 << 16, used = 0;
	char *text = memory_need(malloc(size));
	ssize_t length;

	while ((length = file_read(STDIN_FILENO, text + used, size - used - 1)) > 0) {
		used += (size_t)length;
		if (used < size - 1)
			break;
		if (size >= INPUT_MOST) {
			length = -EFBIG;
			break;
		}
		size *= 2;
		text = memory_need(realloc(text, size));
	}
	if (length < 0) {
		free(text);
		errno = (int)-length;
		return NULL;
	}
	text[used] = '\0';
	return text;
}

/* ---- env */

int command_oci_hook_env(const struct cli *cli)
{
	char *config, *changed = NULL;
	int result = cli_operands(cli, 0, 0);

	if (result)
		return result;
	config = input_read();
	if (!config)
		return cli_fail(cli, CLI_WRONG, "%s: standard input: %s", cli->command->name,
				strerror(errno));
	result = oci_config_preload(config, CONTAINER_LIBRARY, &changed);
	if (result < 0)
		result = cli_fail(cli, CLI_WRONG,
				  "%s: standard input: expected the configuration of a container "
				  "(config.json)",
				  cli->command->name);
	else if (fputs(changed ? changed : config, stdout) == EOF)
		result = CLI_WRONG; /* the end of the program says why */
	else
		result = CLI_OK;
	free(changed);
	free(config);
	return result;
}

/* ---- the container that a runtime tells of */

#define LINE_BEGIN POLICY_FIRST " cgroup="

/* The collector keeps the text of a match line in so many bytes, and a cut one could not be named
 * when it is to be taken out. */
enum { CGROUP_MOST = POLICY_PATH - (int)sizeof(LINE_BEGIN "/*") };

struct oci_container {
	char *input;
	json_t *state;
	const char *id;
	pid_t pid;
	const char *tenant; /* NULL: the policy decides */
	char cgroup[CGROUP_MOST + 1];
};

static void oci_container_free(struct oci_container *container)
{
	json_decref(container->state);
	free(container->input);
}

/* Characters that a match line takes for signs of a pattern, or for its end. */
#define NOT_IN_A_PATH "*?[ \t#;"

static bool id_is_usable(const char *id)
{
	return *id && strlen(id) < POLICY_PATH / 2 && !strpbrk(id, "/" NOT_IN_A_PATH);
}

static int state_read(const struct cli *cli, struct oci_container *ret_container)
{
	const char *wanted = cli_value(&cli->options.tenant);
	const char *annotation = cli_value(&cli->options.annotation), *id;
	int result = cli_operands(cli, 0, 0);

	*ret_container = (struct oci_container){ .id = "", .tenant = wanted };
	if (result)
		return result;
	ret_container->input = input_read();
	if (!ret_container->input)
		return cli_fail(cli, CLI_WRONG, "%s: standard input: %s", cli->command->name,
				strerror(errno));
	ret_container->state = json_loads(ret_container->input, 0, NULL);
	id = json_string_value(json_object_get(ret_container->state, "id"));
	ret_container->id = id ? id : "";
	ret_container->pid =
		(pid_t)json_integer_value(json_object_get(ret_container->state, "pid"));
	if (annotation && !wanted)
		ret_container->tenant = json_string_value(json_object_get(
			json_object_get(ret_container->state, "annotations"), annotation));
	if (id_is_usable(ret_container->id))
		return CLI_OK;
	return cli_fail(cli, CLI_WRONG,
			"%s: standard input: expected the state of a container, as a runtime gives it "
			"to a hook",
			cli->command->name);
}

/* Whether a group has the name that runtimes give a container's: the id, alone or behind a word of the
 * runtime, as a scope of systemd or not. Ids may be words that others contain: web, web-2. */
static bool name_is_of_id(const char *name, size_t length, const char *id)
{
	static const char scope[] = ".scope";
	size_t behind = sizeof(scope) - 1, of_id = strlen(id);

	if (length > of_id && length > behind && !memcmp(name + length - behind, scope, behind))
		length -= behind;
	return length >= of_id && !memcmp(name + length - of_id, id, of_id) &&
	       (length == of_id || strchr("-:", name[length - of_id - 1]));
}

/* Behind the last name in the path that is that of the container: those above may be of the same word.
 * NULL if no name is that of the container. */
static char *id_find_end(char *path, const char *id)
{
	char *end = NULL;

	for (char *at = path; *at;) {
		size_t length;

		at += strspn(at, "/");
		length = strcspn(at, "/");
		if (length && name_is_of_id(at, length, id))
			end = at + length;
		at += length;
	}
	return end;
}

/* The path in the unified hierarchy if that is used, otherwise the first of the others that says
 * more than "/", as the collector takes it. */
static bool process_cgroup(pid_t pid, char ret_path[PATH_MAX])
{
	char text[16384], *line, *rest = text;

	ret_path[0] = '\0';
	if (proc_read(pid, "cgroup", text, sizeof(text)) <= 0)
		return false;
	while ((line = strsep(&rest, "\n"))) {
		char *path = strchr(line, ':');

		path = path ? strchr(path + 1, ':') : NULL;
		if (!path || !path[1] || !strcmp(path, ":/") || strlen(path + 1) >= PATH_MAX)
			continue;
		if (!strncmp(line, "0::", 3) || !ret_path[0])
			strcpy(ret_path, path + 1);
	}
	return ret_path[0] != '\0';
}

static bool path_is_within(const char *path, const char *group)
{
	size_t length = strlen(group);

	return !strncmp(path, group, length) && (!path[length] || path[length] == '/');
}

/* The group that is the container's as a whole: runtimes may put its processes into one below. */
static bool container_cgroup(const struct oci_container *container, char ret_path[PATH_MAX])
{
	char *end;

	if (container->pid <= 0 || !process_cgroup(container->pid, ret_path))
		return false;
	end = id_find_end(ret_path, container->id);
	if (end)
		*end = '\0';
	return strlen(ret_path) <= CGROUP_MOST && !strpbrk(ret_path, NOT_IN_A_PATH);
}

static int cgroup_find(const struct cli *cli, struct oci_container *container)
{
	char path[PATH_MAX], own[PATH_MAX];

	if (!container_cgroup(container, path))
		return cli_fail(cli, CLI_WRONG,
				"%s: container %s: the control group of process %d has no usable path: "
				"expected a container with a control group of its own",
				cli->command->name, container->id, (int)container->pid);
	if (process_cgroup(getpid(), own) && path_is_within(own, path))
		return cli_fail(cli, CLI_WRONG,
				"%s: container %s: it shares the control group %s with other programs: "
				"expected a container with a control group of its own",
				cli->command->name, container->id, path);
	strcpy(container->cgroup, path);
	return CLI_OK;
}

/* ---- match lines that a hook has added */

/* The group of such a line; "" for every other line. */
static void line_cgroup(const struct proto_match *match, char ret_cgroup[POLICY_PATH])
{
	size_t length;

	ret_cgroup[0] = '\0';
	if (strcmp(match->source, POLICY_COMMAND) || strncmp(match->text, LINE_BEGIN, strlen(LINE_BEGIN)))
		return;
	snprintf(ret_cgroup, POLICY_PATH, "%s", match->text + strlen(LINE_BEGIN));
	length = strlen(ret_cgroup);
	if (length > 2 && !strcmp(ret_cgroup + length - 2, "/*"))
		ret_cgroup[length - 2] = '\0';
	if (strpbrk(ret_cgroup, NOT_IN_A_PATH) || !strchr(ret_cgroup, '/'))
		ret_cgroup[0] = '\0';
}

/* A container's group that does not exist any more. Of the unified hierarchy only: in the others,
 * each controller has its own directory. */
static bool container_is_gone(const char *cgroup)
{
	char path[sizeof(CGROUP_MOUNT) + POLICY_PATH], container[2 * NAME_SIZE], job[NAME_SIZE];
	struct stat status;

	policy_labels(cgroup, container, job);
	if (!container[0] || strcmp(cgroup_mount(), CGROUP_MOUNT))
		return false;
	snprintf(path, sizeof(path), CGROUP_MOUNT "%s", cgroup);
	return stat(path, &status) && errno == ENOENT;
}

/* Whether processes are in a group, as far as the unified hierarchy tells. */
static bool cgroup_has_processes(const char *cgroup)
{
	char path[PATH_MAX], text[128];

	snprintf(path, sizeof(path), "%s%s/cgroup.events", cgroup_mount(), cgroup);
	return file_read_small(path, text, sizeof(text)) > 0 && strstr(text, "populated 1");
}

/* Whether a line is of this container: by its group, or by the name of a group that no other container
 * has now. */
static bool line_is_of_container(const char *cgroup, const struct oci_container *container)
{
	const char *name = strrchr(cgroup, '/') + 1;

	return !strcmp(cgroup, container->cgroup) ||
	       (name_is_of_id(name, strlen(name), container->id) && !cgroup_has_processes(cgroup));
}

/* Another hook may have taken the line out meanwhile, or somebody has removed the tenant. */
static int line_drop(const struct cli *cli, const struct proto_match *match)
{
	char value[sizeof("unset ") + sizeof(match->text)], path[PROTO_PATH], problem[PROBLEM_SIZE];
	struct proto_change change;
	int result = collector_path(cli, path);

	if (!result)
		result = change_tenant(cli, match->tenant, &change);
	snprintf(value, sizeof(value), "unset %s", match->text);
	if (!result)
		result = change_line(cli, &change, "match", value);
	if (result)
		return result;
	result = proto_call(path, MESSAGE_CHANGE_POLICY, &change, NULL, NULL, PROTO_LOOKS_UP, 0, problem);
	if (result == 0 || result == -EINVAL || result == -ENOENT)
		return CLI_OK;
	return collector_fail_change(cli, path, result, problem);
}

/* Takes out the lines of this container, and those of containers whose hook `stop` was killed or
 * found no collector. */
static int lines_drop(const struct cli *cli, const struct oci_container *container, uint32_t *ret_dropped)
{
	struct list matches = { .size = sizeof(struct proto_match) };
	int result = matches_ask(cli, "", &matches);
	char cgroup[POLICY_PATH];

	*ret_dropped = 0;
	for (size_t i = 0; !result && i < matches.count; i++) {
		const struct proto_match *match = list_at(&matches, i);

		line_cgroup(match, cgroup);
		if (!cgroup[0] || (!line_is_of_container(cgroup, container) && !container_is_gone(cgroup)))
			continue;
		result = line_drop(cli, match);
		*ret_dropped += !result;
	}
	free(matches.row);
	return result;
}

static int lines_add(const struct cli *cli, const struct oci_container *container)
{
	char value[sizeof(LINE_BEGIN) + POLICY_PATH + 2];
	struct proto_change change;
	int result = change_tenant(cli, container->tenant, &change);

	for (unsigned below = 0; !result && below < 2; below++) {
		snprintf(value, sizeof(value), LINE_BEGIN "%s%s", container->cgroup, below ? "/*" : "");
		result = change_line(cli, &change, "match", value);
	}
	return result ? result : change_ask(cli, MESSAGE_CHANGE_POLICY, &change);
}

/* ---- start and stop */

static int oci_answer(const struct cli *cli, const struct oci_container *container, uint32_t dropped)
{
	struct page page;

	cli_page_begin(&page, cli);
	page_json(&page, "container", form_json_text(container->id));
	page_json(&page, "cgroup", form_json_text(container->cgroup));
	page_json(&page, "tenant", form_json_text(container->tenant));
	page_json(&page, "dropped", form_json_number(dropped));
	return page_end(&page);
}

int command_oci_hook_start(const struct cli *cli)
{
	struct oci_container container;
	int result = state_read(cli, &container);
	uint32_t dropped = 0;

	if (!result && container.tenant) {
		result = cgroup_find(cli, &container);
		if (!result)
			result = lines_drop(cli, &container, &dropped);
		if (!result)
			result = lines_add(cli, &container);
	}
	if (!result)
		result = oci_answer(cli, &container, dropped);
	oci_container_free(&container);
	return result;
}

int command_oci_hook_stop(const struct cli *cli)
{
	struct oci_container container;
	int result = state_read(cli, &container);
	uint32_t dropped = 0;

	if (!result)
		result = lines_drop(cli, &container, &dropped);
	if (!result)
		result = oci_answer(cli, &container, dropped);
	oci_container_free(&container);
	return result;
}
