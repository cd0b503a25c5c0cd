/* SPDX-License-Identifier: MIT */
/*
 * cdi: the specification (Container Device Interface) by which container engines give a container
 * what guarded programs need: the library, the directory of the collector's socket, the device nodes,
 * and for a tenant's device the hooks that bind the container to the tenant. --write puts it where
 * engines look, with the two files that it needs; --remove takes all of them away.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/translation.h"
#include "cli/collector.h"
#include "cli/container.h"
#include "cli/etc_file.h"
#include "cli/library.h"
#include "cli/owners.h"
#include "output/form.h"
#include "output/page.h"
#include "policy/policy.h"

#define CDI_VERSION "0.5.0"
#define CDI_FILE "/etc/cdi/rdma_intercept.json"
#define CDI_PRELOAD_FILE "/etc/rdma_intercept/ld.so.preload"
/* Podman reads no other directory unless it is told to. */
#define CDI_ENGINE_HOOK_FILE "/usr/share/containers/oci/hooks.d/rdma_intercept.json"
#define CDI_NODES "/dev/infiniband"

/* What the specification is made of. */
struct cdi {
	char library[PATH_MAX];
	char program[PATH_MAX];
	char socket[PROTO_PATH];
	bool nodes;
	const char *annotation;
	struct list tenants; /* of char[NAME_SIZE] */
};

/* ---- the tenants */

/* The names of devices begin and end with a letter or digit; those of patterns are no tenants. */
static bool tenant_can_be_a_device(const char *name)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

	return *name && strchr(plain, *name) && strchr(plain, name[strlen(name) - 1]) &&
	       !policy_name_is_pattern(name) && strcmp(name, CONTAINER_DEVICE);
}

static void cdi_tenant_add(struct cdi *cdi, const char *name)
{
	if (tenant_can_be_a_device(name))
		snprintf(list_add(&cdi->tenants), NAME_SIZE, "%s", name);
}

static int tenants_of_file(const struct cli *cli, const char *file, struct cdi *cdi)
{
	struct policy *policy = memory_need(policy_new());
	char problem[PROBLEM_SIZE] = "";
	int result = policy_read(policy, file, problem);

	for (const struct policy_tenant *tenant = policy->tenants; !result && tenant; tenant = tenant->next)
		cdi_tenant_add(cdi, tenant->name);
	policy_free(policy);
	if (result == 0)
		return CLI_OK;
	return problem[0] ? cli_fail(cli, CLI_WRONG, "%s", problem) :
			    cli_fail(cli, CLI_WRONG, "%s: %s", file, strerror(-result));
}

static int tenants_of_collector(const struct cli *cli, struct cdi *cdi)
{
	struct owners owners;
	int result = owners_ask(cli, MESSAGE_GET_STATS, NULL, &owners);

	for (size_t i = 0; !result && i < owners.in_total[ROW_TENANT].count; i++) {
		const struct owner *owner = list_at(&owners.in_total[ROW_TENANT], i);

		if (!(owner->row.flags & (ROW_PATTERN | ROW_REMOVED)))
			cdi_tenant_add(cdi, owner->row.tenant);
	}
	owners_free(&owners);
	return result;
}

/* ---- the parts of the specification */

static json_t *cdi_mount(const char *host, const char *container)
{
	return memory_need(json_pack("{s:s, s:s, s:[s,s,s,s]}", "hostPath", host, "containerPath", container,
				     "options", "ro", "rbind", "nosuid", "nodev"));
}

/* Only what programs open for verbs and connections: the others pass the library and its limits. */
static bool node_is_given(const char *name)
{
	return !strncmp(name, "uverbs", 6) || !strcmp(name, "rdma_cm");
}

static json_t *cdi_nodes(void)
{
	json_t *nodes = memory_need(json_array());
	struct dirent **entries;
	int count = scandir(CDI_NODES, &entries, NULL, versionsort);

	for (int i = 0; i < count; i++) {
		char path[sizeof(CDI_NODES) + NAME_MAX + 1];

		snprintf(path, sizeof(path), CDI_NODES "/%s", entries[i]->d_name);
		if (node_is_given(entries[i]->d_name))
			json_array_append_new(nodes, memory_need(json_pack("{s:s}", "path", path)));
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return nodes;
}

/* `how` and `value`: what start is told beside the socket. */
static json_t *cdi_hook(const struct cdi *cdi, const char *when, const char *word, const char *how,
			const char *value)
{
	json_t *arguments = memory_need(json_pack("[s,s,s,s,s]", CLI_NAME, "--socket", cdi->socket,
						  "oci-hook", word));

	if (how) {
		json_array_append_new(arguments, json_string(how));
		json_array_append_new(arguments, json_string(value));
	}
	return memory_need(json_pack("{s:s, s:s, s:o}", "hookName", when, "path", cdi->program, "args",
				     arguments));
}

static json_t *cdi_device(const struct cdi *cdi, const char *name, const char *how, const char *value)
{
	char variable[sizeof(CONTAINER_SOCKETS) + 2 * PROTO_PATH];
	json_t *edits;

	snprintf(variable, sizeof(variable), PROTO_SOCKET_VARIABLE "=" CONTAINER_SOCKETS "%s",
		 strrchr(cdi->socket, '/'));
	/* (the variable stands in each device: a device that edits nothing is not allowed) */
	edits = memory_need(json_pack("{s:[s]}", "env", variable));
	if (how)
		json_object_set_new(edits, "hooks",
				    json_pack("[o,o]", cdi_hook(cdi, "createRuntime", "start", how, value),
					      cdi_hook(cdi, "poststop", "stop", NULL, NULL)));
	return memory_need(json_pack("{s:s, s:o}", "name", name, "containerEdits", edits));
}

static json_t *cdi_document(const struct cdi *cdi)
{
	json_t *devices = memory_need(json_array()), *edits = memory_need(json_object()), *nodes;
	char directory[PROTO_PATH];

	snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(cdi->socket, '/') - cdi->socket),
		 cdi->socket);
	json_array_append_new(devices, cdi_device(cdi, CONTAINER_DEVICE,
						  cdi->annotation ? "--annotation" : NULL, cdi->annotation));
	for (size_t i = 0; i < cdi->tenants.count; i++) {
		const char *name = list_at(&cdi->tenants, i);

		json_array_append_new(devices, cdi_device(cdi, name, "--tenant", name));
	}
	nodes = cdi->nodes ? cdi_nodes() : NULL;
	if (json_array_size(nodes))
		json_object_set(edits, "deviceNodes", nodes);
	json_decref(nodes);
	json_object_set_new(edits, "mounts",
			    memory_need(json_pack("[o,o,o]", cdi_mount(cdi->library, CONTAINER_LIBRARY),
						  cdi_mount(CDI_PRELOAD_FILE, "/etc/ld.so.preload"),
						  cdi_mount(directory, CONTAINER_SOCKETS))));
	return memory_need(json_pack("{s:s, s:s, s:o, s:o}", "cdiVersion", CDI_VERSION, "kind",
				     CONTAINER_KIND, "devices", devices, "containerEdits", edits));
}

/* For engines that let a program change the configuration of a container. It is called for each
 * container, also when this program is not installed any more: then the configuration stays. */
static json_t *engine_hook_document(const struct cdi *cdi)
{
	json_t *script = memory_need(json_sprintf(
		"if [ -x '%s' ]; then exec '%s' oci-hook env; else exec cat; fi", cdi->program,
		cdi->program));

	return memory_need(json_pack("{s:s, s:{s:s, s:[s,s,o]}, s:{s:b}, s:[s]}", "version", "1.0.0",
				     "hook", "path", "/bin/sh", "args", "sh", "-c", script, "when", "always",
				     1, "stages", "precreate"));
}

/* ---- what it needs to know */

static int cdi_socket_check(const struct cli *cli, const char *socket)
{
	char directory[PATH_MAX], real[PATH_MAX];
	struct stat status;

	snprintf(directory, sizeof(directory), "%.*s",
		 socket[0] == '/' ? (int)(strrchr(socket, '/') - socket) : 0, socket);
	/* /var/run/x is in /run. One that does not exist yet has no other name. */
	if (realpath(directory, real))
		strcpy(directory, real);
	if (strchr(directory, '/') == strrchr(directory, '/') ||
	    (!stat(directory, &status) && status.st_mode & S_IWOTH))
		return cli_fail(cli, CLI_WRONG,
				"cdi: the collector's socket is %s, and containers would get its whole "
				"directory: expected a directory of its own, such as " PROTO_SERVICE_SOCKET
				": --socket " PROTO_SERVICE_SOCKET,
				socket);
	return CLI_OK;
}

static int cdi_program_find(const struct cli *cli, struct cdi *cdi)
{
	char problem[PROBLEM_SIZE];
	ssize_t length = readlink("/proc/self/exe", cdi->program, sizeof(cdi->program) - 1);

	if (library_find(cdi->library, problem) < 0)
		return cli_fail(cli, CLI_WRONG, "cdi: %s", problem);
	if (length <= 0)
		return cli_fail(cli, CLI_WRONG, "cdi: /proc/self/exe: %s", strerror(errno));
	cdi->program[length] = '\0';
	if (strpbrk(cdi->program, "'\n"))
		return cli_fail(cli, CLI_WRONG, "cdi: %s: the path has a character that a shell reads in "
				"another way", cdi->program);
	return CLI_OK;
}

static int cdi_read(const struct cli *cli, struct cdi *ret_cdi)
{
	static const char *const which[] = { "all", "none" };
	static const struct words words = { which, sizeof(which) / sizeof(which[0]) };
	const char *nodes = cli_value(&cli->options.nodes), *file = cli_value(&cli->options.policy);
	int result = cli_operands(cli, 0, 0);

	*ret_cdi = (struct cdi){ .nodes = !nodes || !strcmp(nodes, "all"),
				 .annotation = cli_value(&cli->options.annotation),
				 .tenants = { .size = NAME_SIZE } };
	if (!result && nodes)
		result = cli_one_of(cli, "nodes", nodes, &words);
	if (!result)
		result = collector_path(cli, ret_cdi->socket);
	if (!result)
		result = cdi_socket_check(cli, ret_cdi->socket);
	if (!result)
		result = cdi_program_find(cli, ret_cdi);
	if (!result)
		result = file ? tenants_of_file(cli, file, ret_cdi) : tenants_of_collector(cli, ret_cdi);
	return result;
}

/* ---- files */

static const char *const cdi_files[] = { CDI_PRELOAD_FILE, CDI_ENGINE_HOOK_FILE, CDI_FILE };
enum { CDI_FILES = sizeof(cdi_files) / sizeof(cdi_files[0]) };

static int cdi_file_write(const char *path, const char *text, char problem[PROBLEM_SIZE])
{
	char directory[PATH_MAX], *old = NULL;
	int result;

	snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(path, '/') - path), path);
	result = file_make_directories(directory, 0755, 0755, true);
	if (result < 0)
		return problem_set(result, problem, "%s: %s", directory, strerror(-result));
	result = etc_file_read(path, &old, problem);
	if (!result)
		result = etc_file_prepare(path, text, problem);
	if (!result)
		result = etc_file_commit(path, old, problem);
	if (result)
		etc_file_abandon(path);
	free(old);
	return result;
}

static int cdi_file_write_json(const char *path, const json_t *document, char problem[PROBLEM_SIZE])
{
	char *text = memory_need(json_dumps(document, JSON_INDENT(2))), *whole;
	int result;

	if (asprintf(&whole, "%s\n", text) < 0)
		memory_need(NULL);
	result = cdi_file_write(path, whole, problem);
	free(whole);
	free(text);
	return result;
}

/* The specification is written last: it names the others. */
static int cdi_write(const struct cdi *cdi, const json_t *document, char problem[PROBLEM_SIZE])
{
	json_t *hook = engine_hook_document(cdi);
	int lock = etc_file_lock(problem), result = lock < 0 ? lock : 0;

	if (!result)
		result = cdi_file_write(CDI_PRELOAD_FILE, CONTAINER_LIBRARY "\n", problem);
	if (!result)
		result = cdi_file_write_json(CDI_ENGINE_HOOK_FILE, hook, problem);
	if (!result)
		result = cdi_file_write_json(CDI_FILE, document, problem);
	if (lock >= 0)
		etc_file_unlock(lock);
	json_decref(hook);
	return result;
}

static int cdi_need_root(const struct cli *cli)
{
	if (geteuid() != 0)
		return cli_fail(cli, CLI_FORBIDDEN, "%s: not permitted: expected root, who may write to /etc",
				cli->command->name);
	return CLI_OK;
}

static int cdi_remove(const struct cli *cli)
{
	json_t *removed = memory_need(json_array());
	char problem[PROBLEM_SIZE];
	int result = 0, lock = etc_file_lock(problem);
	struct page page;

	cli_page_begin(&page, cli);
	for (int i = CDI_FILES - 1; lock >= 0 && !result && i >= 0; i--) {
		if (access(cdi_files[i], F_OK))
			continue;
		result = etc_file_remove(cdi_files[i], problem);
		if (!result) {
			page_sentence(&page, NULL, "%s: removed", cdi_files[i]);
			json_array_append_new(removed, json_string(cdi_files[i]));
		}
	}
	if (lock >= 0)
		etc_file_unlock(lock);
	if (lock < 0 || result) {
		json_decref(removed);
		return cli_fail(cli, CLI_WRONG, "cdi: %s", problem);
	}
	page_json(&page, "removed", removed);
	return page_end(&page);
}

/* ---- the command */

static int cdi_print(const struct cli *cli, json_t *document)
{
	if (cli->options.json.count)
		page_json_line(json_incref(document));
	else if (json_dumpf(document, stdout, JSON_INDENT(2)) || putchar('\n') == EOF)
		return CLI_WRONG; /* the end of the program says why */
	return CLI_OK;
}

static int cdi_write_and_tell(const struct cli *cli, const struct cdi *cdi, json_t *document)
{
	char problem[PROBLEM_SIZE];
	struct page page;

	if (cdi_write(cdi, document, problem) < 0)
		return cli_fail(cli, CLI_WRONG, "cdi: %s", problem);
	if (cli->options.json.count)
		return cdi_print(cli, document);
	cli_page_begin(&page, cli);
	for (int i = 0; i < CDI_FILES; i++)
		page_sentence(&page, NULL, "%s: written", cdi_files[i]);
	page_sentence(&page, NULL, "devices for containers: %zu, such as --device " CONTAINER_KIND "=%s",
		      cdi->tenants.count + 1,
		      cdi->tenants.count ? (const char *)list_at(&cdi->tenants, 0) : CONTAINER_DEVICE);
	return page_end(&page);
}

int command_cdi(const struct cli *cli)
{
	bool writes = cli->options.write.count, removes = cli->options.remove.count;
	struct cdi cdi = { .nodes = true };
	json_t *document;
	int result;

	if (writes && removes)
		return cli_fail(cli, CLI_USAGE, "cdi: --write and --remove: expected one of them");
	result = writes || removes ? cdi_need_root(cli) : CLI_OK;
	if (!result && removes)
		return cdi_remove(cli);
	if (!result)
		result = cdi_read(cli, &cdi);
	if (!result) {
		document = cdi_document(&cdi);
		result = writes ? cdi_write_and_tell(cli, &cdi, document) : cdi_print(cli, document);
		json_decref(document);
	}
	free(cdi.tenants.row);
	return result;
}
