/* SPDX-License-Identifier: MIT */
/*
 * doctor: one line for each thing that has to be right on a host before programs
 * are guarded, and how to put it right. A check is a row of doctor.def, and none of
 * them changes anything. Those that look at the host as such are in doctor_host.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/translation.h"
#include "cli/doctor.h"
#include "cli/library.h"
#include "output/form.h"
#include "output/page.h"
#include "terms/variables.h"
#include "view/host.h"

#define DEVICES "/sys/class/infiniband"
#define NODES "/dev/infiniband"

const struct level fine = { "ok", "OK", COLOUR_GOOD };
const struct level doubtful = { "warn", "WARN", COLOUR_WARNING };
const struct level broken = { "fail", "FAIL", COLOUR_BAD };
const struct level untried = { "skip", "SKIP", NULL };

static void level_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct level *level = *(const struct level *const *)field;

	cell_print(ret_cell, level->colour, "%s", level->title);
}

static json_t *level_json(const struct form *form, const void *field)
{
	return form_json_text((*(const struct level *const *)field)->name);
}

static const struct form form_level = { .show = level_show, .json = level_json };

static void finding_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct finding *finding = field;

	cell_print(ret_cell, NULL, "%s%s%s", finding->text, finding->hint ? "; " : "",
		   finding->hint ? finding->hint : "");
}

static const struct form form_finding = { .show = finding_show };

static const struct column finding_columns[] = {
	COLUMN(struct finding, level, "level", "", form_level),
	COLUMN(struct finding, check, "check", "", form_string),
	COLUMN(struct finding, text, "text", NULL, form_text),
	COLUMN(struct finding, hint, "hint", NULL, form_string),
	{ .title = "", .form = &form_finding, .flows = true },
	COLUMNS_END,
};

void finding_set(struct finding *finding, const struct level *level, const char *hint,
		 const char *format, ...)
{
	va_list arguments;

	finding->level = level;
	finding->hint = hint ? _(hint) : NULL;
	va_start(arguments, format);
	vsnprintf(finding->text, sizeof(finding->text), _(format), arguments);
	va_end(arguments);
}

/* ---- the library */

void check_library(const struct facts *facts, struct finding *finding)
{
	char path[PATH_MAX], problem[PROBLEM_SIZE];

	if (library_find(path, problem) < 0) {
		finding_set(finding, &broken, "without it, no limit of the library holds", "%s", problem);
		return;
	}
	if (library_load_try(path, problem) < 0)
		finding_set(finding, &broken, "install the library that was built for this system", "%s",
		     problem);
	else
		finding_set(finding, &fine, NULL, "%s can be loaded", path);
}

/* ---- the collector */

static bool facts_lack_collector(const struct facts *facts)
{
	return facts->answer == -ENOENT || facts->answer == -ECONNREFUSED;
}

void check_collector(const struct facts *facts, struct finding *finding)
{
	if (!facts->answer)
		finding_set(finding, &fine, NULL, "pid %d at %s, version %s", (int)facts->status.pid,
		     facts->path, facts->status.version);
	else if (facts_lack_collector(facts))
		finding_set(finding, &doubtful,
			    "without one each user's processes are counted apart, by the limits of "
			    "the environment",
			    "%s; start it: %s", facts->problem, host_start(HOST_COLLECTOR));
	else if (facts->answer != -EPROTO) /* of which check_protocol speaks */
		finding_set(finding, &broken, "until this is repaired, the library refuses what exceeds the present leases",
		     "%s", facts->problem);
}

void check_socket(const struct facts *facts, struct finding *finding)
{
	struct stat status;

	if (lstat(facts->path, &status))
		return;
	if (!S_ISSOCK(status.st_mode))
		finding_set(finding, &broken, "remove it and start collector_server", "%s is not a socket",
		     facts->path);
	else if (status.st_uid != 0 && status.st_uid != geteuid())
		finding_set(finding, &broken,
		     "another program may imitate the collector: remove the socket and start collector_server",
		     "%s belongs to user %u", facts->path, (unsigned)status.st_uid);
	else if (facts->answer == -ECONNREFUSED)
		finding_set(finding, &broken, "start collector_server, or remove it",
		     "%s is stale: no process listens on it", facts->path);
	else
		finding_set(finding, &fine, NULL, "%s belongs to user %u, mode %04o", facts->path,
		     (unsigned)status.st_uid, (unsigned)status.st_mode & 07777);
}

void check_protocol(const struct facts *facts, struct finding *finding)
{
	if (facts->answer == -EPROTO)
		finding_set(finding, &broken, "install command, library and collector of one version",
		     "%s", facts->problem);
	else if (!facts->answer && strcmp(facts->status.version, CLI_VERSION))
		finding_set(finding, &doubtful, "start the collector again after an update",
		     "the collector is of version %s, this command of %s", facts->status.version,
		     CLI_VERSION);
	else if (!facts->answer)
		finding_set(finding, &fine, NULL, "command and collector speak protocol version %d", PROTO_VERSION);
}

void check_policy(const struct facts *facts, struct finding *finding)
{
	if (facts->answer)
		return;
	if (facts->status.problem[0])
		finding_set(finding, &broken,
		     "the previous policy stays in force; correct the file, then run '" CLI_NAME
		     " reload'",
		     "%s", facts->status.problem);
	else if (!facts->status.policy[0])
		finding_set(finding, &doubtful, "only limits that commands have set are in force",
		     "the collector has no policy file");
	else if (facts->status.overrides == 1)
		finding_set(finding, &fine,
		     "'" CLI_NAME " limit get' shows it, '" CLI_NAME " limit reset' drops it",
		     "%s is in force; commands override 1 key", facts->status.policy);
	else if (facts->status.overrides)
		finding_set(finding, &fine,
		     "'" CLI_NAME " limit get' shows them, '" CLI_NAME " limit reset' drops them",
		     "%s is in force; commands override %u keys", facts->status.policy,
		     facts->status.overrides);
	else
		finding_set(finding, &fine, NULL, "%s is in force", facts->status.policy);
}

void check_monitor(const struct facts *facts, struct finding *finding)
{
	const struct proto_status *status = &facts->status;

	if (facts->answer)
		return;
	if (status->monitor_problem[0])
		finding_set(finding, &doubtful, "programs without the library are not seen",
			    "%s; start it: %s", status->monitor_problem, host_start(HOST_MONITOR));
	else if (status->lost_objects)
		finding_set(finding, &broken, "restart rdma_monitor: it counts again from the beginning",
		     "watching by %s; tables were full, and %" PRIu64 " objects are not counted",
		     status->monitor, status->lost_objects);
	else if (status->uncovered || status->drifting)
		finding_set(finding, &doubtful, "'" CLI_NAME " show process' shows which",
		     "watching by %s; processes uncovered: %" PRIu32 ", drifting: %" PRIu32,
		     status->monitor, status->uncovered, status->drifting);
	else if (status->lost_rows)
		finding_set(finding, &doubtful, "these objects are counted for the host only",
		     "watching by %s; tables were full, and the owners of %" PRIu64 " objects are unknown",
		     status->monitor, status->lost_rows);
	else
		finding_set(finding, &fine, NULL, "the kernel is watched by %s", status->monitor);
}

/* What the guards of all tenants come to. */
struct guarding {
	struct proto_guard host;
	unsigned weaker;	/* that are on, and have less than the kernel's guarantee */
	struct proto_guard one; /* of these */
};

static int guard_take(const void *row, void *closure)
{
	const struct proto_guard *guard = row;
	struct guarding *guarding = closure;

	if (guard->scope == ROW_HOST) {
		guarding->host = *guard;
	} else if (guard->on && guard->guarantee != GUARANTEE_KERNEL) {
		guarding->weaker++;
		guarding->one = *guard;
	}
	return 0;
}

void check_guard(const struct facts *facts, struct finding *finding)
{
	static const struct proto_choose everything;
	struct guarding guarding = { .weaker = 0 };
	char problem[PROBLEM_SIZE];

	if (facts->answer || proto_rows(facts->path, MESSAGE_GUARD, &everything, guard_take,
					&guarding, 0, problem) < 0)
		return;
	if (guarding.weaker)
		finding_set(finding, &doubtful, "'" CLI_NAME " guard status' shows each tenant",
		     "%u of %u tenants with guard = on are not fully guarded by the kernel; %s: %s",
		     guarding.weaker, guarding.host.on, proto_text(guarding.one.tenant),
		     proto_text(guarding.one.reason));
	else if (guarding.host.on && guarding.host.reason[0])
		finding_set(finding, &doubtful,
		     "guarded tenants stay guarded; until this is repaired, no other tenant can be guarded",
		     "%s", proto_text(guarding.host.reason));
	else if (guarding.host.on)
		finding_set(finding, &fine, NULL, "tenants that the kernel guards: %u", guarding.host.on);
	else
		finding_set(finding, &untried, NULL, "no tenant has guard = on");
}

/* ---- the host */

static int name_is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The names in a directory, sorted, with spaces between, and how many. */
static int names_in(const char *path, char *ret_names, size_t size)
{
	struct dirent **entries;
	int count = scandir(path, &entries, name_is_shown, versionsort);

	*ret_names = '\0';
	for (int i = 0; i < count; i++) {
		size_t used = strlen(ret_names);

		snprintf(ret_names + used, size - used, "%s%s", i ? " " : "", entries[i]->d_name);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return count < 0 ? 0 : count;
}

void check_devices(const struct facts *facts, struct finding *finding)
{
	char names[FINDING_TEXT / 2], path[PATH_MAX];

	if (names_in(host_path(DEVICES, path), names, sizeof(names)) > 0)
		finding_set(finding, &fine, NULL, "%s", names);
	else
		finding_set(finding, &doubtful,
		     "load the card's driver, or 'rdma link add rxe0 type rxe netdev ...'",
		     "there is no RDMA device in %s", DEVICES);
}

void check_nodes(const struct facts *facts, struct finding *finding)
{
	char names[FINDING_TEXT / 2], path[PATH_MAX], *rest = names, *name;
	const struct level *missing =
		names_in(host_path(DEVICES, path), names, sizeof(names)) > 0 ? &broken : &doubtful;
	int count = names_in(host_path(NODES, path), names, sizeof(names)), found = 0, fd;

	while (count > 0 && (name = strsep(&rest, " "))) {
		if (strncmp(name, "uverbs", 6))
			continue;
		found++;
		host_path(NODES, path);
		snprintf(path + strlen(path), NAME_SIZE, "/%s", name);
		fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0) {
			finding_set(finding, &broken,
				    "programs of this user cannot use the device: chmod 0666 "
				    "/dev/infiniband/uverbs*, as the rules of rdma-core do",
				    "%s: %s", path, strerror(errno));
			return;
		}
		close(fd);
	}
	if (found)
		finding_set(finding, &fine, NULL, "%d in %s, and this user could open them", found, NODES);
	else
		finding_set(finding, missing, "modprobe ib_uverbs; a container needs the directory (--device /dev/infiniband)",
		     "there is no uverbs node in %s", NODES);
}

static bool may_lock_memory(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return !syscall(SYS_capget, &header, data) &&
	       data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK);
}

void check_memlock(const struct facts *facts, struct finding *finding)
{
	struct rlimit limit;
	char text[BYTES_TEXT];

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	if (limit.rlim_cur == RLIM_INFINITY || may_lock_memory())
		finding_set(finding, &fine, NULL, "locked memory is not limited");
	else
		finding_set(finding, &doubtful,
		     "above it, the kernel refuses memory regions with ENOMEM: ulimit -l unlimited, or "
		     "LimitMEMLOCK=infinity in the unit of a service",
		     "locked memory is limited to %s",
		     bytes_text(limit.rlim_cur, text));
}

/* The file in which processes keep books without a collector; see librdma_intercept(7). */
void check_memory(const struct facts *facts, struct finding *finding)
{
	const char *name = getenv("RDMA_INTERCEPT_SHM_NAME");
	const char *mode = getenv("RDMA_INTERCEPT_SHM_MODE");
	bool shared = mode && strtoul(mode, NULL, 8) & 066;
	char own[40] = "rdma_intercept_shm", path[PATH_MAX];
	struct stat status;

	if (geteuid() != 0 && !shared)
		snprintf(strchr(own, '\0'), 16, ".%u", (unsigned)geteuid());
	snprintf(path, sizeof(path), "/dev/shm/%s", name && *name ? name : own);
	if (lstat(path, &status))
		finding_set(finding, &untried, NULL, "%s does not exist yet: the first process makes it",
			    path);
	else if (!S_ISREG(status.st_mode))
		finding_set(finding, &broken, "remove it", "%s is not a regular file", path);
	else if (status.st_uid != geteuid() && !shared)
		finding_set(finding, &broken, "the library will not use it; remove it",
		     "%s belongs to user %u", path, (unsigned)status.st_uid);
	else if (status.st_mode & 066)
		finding_set(finding, &doubtful, "every user who may write it can change counts and limits: expected mode 0600",
		     "%s has mode %04o", path, (unsigned)status.st_mode & 07777);
	else
		finding_set(finding, &fine, NULL, "%s belongs to user %u, mode %04o", path,
		     (unsigned)status.st_uid, (unsigned)status.st_mode & 07777);
}

/* Variables of this shell, which programs started from it would get. */
void check_variables(const struct facts *facts, struct finding *finding)
{
	char text[VARIABLE_TEXT];

	for (char **entry = environ; entry && *entry; entry++)
		if (variable_is_unknown(*entry, text)) {
			finding_set(finding, &doubtful, N_("the settings are listed in librdma_intercept(7)"),
				    "%s", text);
			return;
		}
	finding_set(finding, &fine, NULL, "no variable of this shell is misspelt");
}

static const struct {
	const char *name;
	void (*check)(const struct facts *facts, struct finding *finding);
} checks[] = {
#define DOCTOR(name, function) { name, check_##function },
#include "cli/doctor.def"
#undef DOCTOR
};

int command_doctor(const struct cli *cli)
{
	struct list findings = { .size = sizeof(struct finding) };
	struct facts facts = { .answer = 0 };
	struct page page;
	int result = cli_operands(cli, 0, 0);

	if (!result)
		result = collector_path(cli, facts.path);
	if (result)
		return result;
	facts.answer =
		proto_call(facts.path, MESSAGE_STATUS, NULL, &facts.status, NULL, 0, 0, facts.problem);
	proto_text(facts.status.version);
	proto_text(facts.status.policy);
	proto_text(facts.status.problem);
	proto_text(facts.status.monitor);
	proto_text(facts.status.monitor_problem);
	for (unsigned i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		struct finding *finding = list_add(&findings);

		finding->check = checks[i].name;
		checks[i].check(&facts, finding);
		if (finding->level == &broken)
			result = CLI_WRONG;
		if (!finding->level)
			finding_set(finding, &untried, NULL,
				    facts.answer ? N_("no collector answers") :
						   N_("nothing to check on this host"));
		if (finding->command[0])
			finding->hint = finding->command;
	}
	cli_page_begin(&page, cli);
	page_table(&page, "checks", finding_columns, &findings);
	page_end(&page);
	free(findings.row);
	return result;
}
