/* SPDX-License-Identifier: MIT */
/*
 * The life of a job's tenant; see jobs.h. A tenant of a job is known by its match line "first job=N",
 * which a command has set, and N in its name: nothing else is kept, so that nothing else can be left
 * behind.
 */
#include "slurm/jobs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/file.h"
#include "proto/client.h"

enum {
	PATIENCE_MS = 2000, /* a collector that starts again is waited for */
	SWEEP_MOST = 8,	    /* questions to Slurm's controller in one sweep */
	LISTED_MOST = 512,  /* tenants of jobs on a node */
	CGROUP_SIZE = 200,
	GUARD_MS = 5000,
	GUARD_STEP_MS = 50,
};

#define JOB_LINE "first job="
#define DIGITS "0123456789"
/* Behind the path of the collector's socket. */
#define SWEEP_LOCK ".slurm"

static int job_path(const struct plugin_settings *settings, char ret_path[PROTO_PATH],
		    char problem[PROBLEM_SIZE])
{
	int result = proto_socket_path(settings->socket, ret_path);

	return result < 0 ? problem_set(result, problem, "socket: path too long") : 0;
}

static int job_ask(const struct plugin_settings *settings, enum message type, const void *body,
		   void *ret_body, char problem[PROBLEM_SIZE])
{
	char path[PROTO_PATH];
	int result = job_path(settings, path, problem);

	return result < 0 ? result :
			    proto_call(path, type, body, ret_body, NULL, 0, PATIENCE_MS, problem);
}

static int job_ask_rows(const struct plugin_settings *settings, enum message type,
			const struct proto_choose *choose, proto_row_function *each, void *closure,
			char problem[PROBLEM_SIZE])
{
	char path[PROTO_PATH];
	int result = job_path(settings, path, problem);

	return result < 0 ? result :
			    proto_rows(path, type, choose, each, closure, PATIENCE_MS, problem);
}

/* ---- which jobs have tenants */

struct jobs_listed {
	unsigned count;
	struct listed {
		uint32_t number;
		char tenant[NAME_SIZE];
	} job[LISTED_MOST];
};

/* Whether a name has the job's number in it, as job_name gives it: an administrator may have put the job
 * into another tenant by the same line. */
static bool name_has_number(const char *name, uint32_t number)
{
	while (*(name += strcspn(name, DIGITS))) {
		char *end;

		if (strtoull(name, &end, 10) == number)
			return true;
		name = end;
	}
	return false;
}

static int match_take(const void *row, void *closure)
{
	struct proto_match match = *(const struct proto_match *)row;
	struct jobs_listed *jobs = closure;
	unsigned long number;
	char *end;

	proto_text(match.tenant);
	proto_text(match.source);
	proto_text(match.text);
	if (strcmp(match.source, "command") != 0 || jobs->count == LISTED_MOST ||
	    strncmp(match.text, JOB_LINE, strlen(JOB_LINE)) != 0)
		return 0;
	errno = 0;
	number = strtoul(match.text + strlen(JOB_LINE), &end, 10);
	if (errno || *end || !isdigit((unsigned char)end[-1]) || number > UINT32_MAX ||
	    !name_has_number(match.tenant, (uint32_t)number))
		return 0;
	jobs->job[jobs->count].number = (uint32_t)number;
	strcpy(jobs->job[jobs->count++].tenant, match.tenant);
	return 0;
}

static int jobs_list(const struct plugin_settings *settings, struct jobs_listed *ret_jobs,
		     char problem[PROBLEM_SIZE])
{
	const struct proto_choose all = { .pid = 0 };

	ret_jobs->count = 0;
	return job_ask_rows(settings, MESSAGE_GET_MATCHES, &all, match_take, ret_jobs, problem);
}

/* The name of the job's tenant: 0, -ENOENT, or another -errno with a sentence. */
static int job_tenant(const struct plugin_settings *settings, uint32_t number,
		      char ret_tenant[NAME_SIZE], char problem[PROBLEM_SIZE])
{
	struct jobs_listed jobs;
	int result = jobs_list(settings, &jobs, problem);

	if (result < 0)
		return result;
	for (unsigned i = 0; i < jobs.count; i++)
		if (jobs.job[i].number == number) {
			strcpy(ret_tenant, jobs.job[i].tenant);
			return 0;
		}
	return problem_set(-ENOENT, problem, "job %" PRIu32 " has no tenant of its own", number);
}

static int tenant_remove(const struct plugin_settings *settings, const char *tenant,
			 char problem[PROBLEM_SIZE])
{
	struct proto_change change = { .via = "Slurm" };

	snprintf(change.section, sizeof(change.section), "tenant %s", tenant);
	return job_ask(settings, MESSAGE_TENANT_REMOVE, &change, NULL, problem);
}

int job_unregister(const struct plugin_settings *settings, uint32_t number,
		   char problem[PROBLEM_SIZE])
{
	char tenant[NAME_SIZE];
	int result = job_tenant(settings, number, tenant, problem);

	return result < 0 ? result : tenant_remove(settings, tenant, problem);
}

/* ---- control groups */

/* The scope that slurmd makes in the unified hierarchy for its jobs, as a path in it; false if there is
 * none. Slurm 22.05 has the node's name in it, others only where several slurmd share a host. */
static bool scope_find(const char *node, char ret_scope[CGROUP_SIZE])
{
	char path[PATH_MAX];

	for (int named = 1; named >= 0; named--) {
		int length = snprintf(ret_scope, CGROUP_SIZE, "/system.slice/%s%sslurmstepd.scope",
				      named ? node : "", named ? "_" : "");

		snprintf(path, sizeof(path), "%s%s", cgroup_mount(), ret_scope);
		if (length < CGROUP_SIZE && access(path, F_OK) == 0)
			return true;
	}
	return false;
}

/* Whether the job certainly runs here. A group without processes is one that was left behind. */
static bool job_has_processes(const char *node, uint32_t number)
{
	char scope[CGROUP_SIZE], path[PATH_MAX], text[128];

	if (!scope_find(node, scope))
		return false;
	snprintf(path, sizeof(path), "%s%s/job_%" PRIu32 "/cgroup.events", cgroup_mount(), scope,
		 number);
	return file_read_small(path, text, sizeof(text)) > 0 && strstr(text, "populated 1");
}

/* ---- added */

static void subject_groups(const struct job *job, struct proto_subject *subject)
{
	enum { MOST = sizeof(subject->group) / sizeof(subject->group[0]) };
	const struct passwd *user = getpwuid(job->uid);
	gid_t groups[MOST];
	int count = MOST;

	if (!user)
		return;
	if (getgrouplist(user->pw_name, job->gid, groups, &count) < 0)
		count = MOST;
	for (int i = 0; i < count; i++)
		subject->group[i] = groups[i];
	subject->groups = (uint32_t)count;
}

/* Where the policy puts a task of the job. */
static int job_place(const struct plugin_settings *settings, const struct job *job,
		     struct placement *ret_placement, char problem[PROBLEM_SIZE])
{
	struct proto_subject subject = { .uid = job->uid, .gid = job->gid, .flags = SUBJECT_JOB };
	struct proto_placement placement;
	char scope[CGROUP_SIZE];
	int result;

	subject_groups(job, &subject);
	snprintf(subject.job, sizeof(subject.job), "%" PRIu32, job->number);
	if (scope_find(job->node, scope))
		snprintf(subject.cgroup, sizeof(subject.cgroup), "%s/job_%" PRIu32 "/step_0/user/task_0",
			 scope, job->number);
	result = job_ask(settings, MESSAGE_EXPLAIN_AS, &subject, &placement, problem);
	if (result < 0)
		return result;
	*ret_placement = placement.placement;
	proto_text(ret_placement->tenant);
	proto_text(ret_placement->pattern);
	return 0;
}

/* The tenant's name, and the one that it is within. False: the policy has no tenant for each job, so
 * that the job stays in one that it shares, and may not leave the limits of all of them together. */
static bool job_name(const struct plugin_settings *settings, const struct job *job,
		     const struct placement *placement, char ret_name[NAME_SIZE],
		     char ret_within[NAME_SIZE])
{
	bool by_job = strstr(placement->pattern, "%j") != NULL;

	if (!by_job && !settings->within[0])
		return false;
	strcpy(ret_within, settings->within[0] ? settings->within : placement->pattern);
	if (by_job)
		strcpy(ret_name, placement->tenant);
	else
		snprintf(ret_name, NAME_SIZE, "slurm-%" PRIu32, job->number);
	return true;
}

/* The lines of the tenant's section. */
static int job_lines(const struct plugin_settings *settings, const struct job *job,
		     const struct job_limits *limits, const char *within,
		     char ret_text[PROTO_TEXT], char problem[PROBLEM_SIZE])
{
	char scope[CGROUP_SIZE] = "", lines[PROTO_TEXT];
	bool has_scope = scope_find(job->node, scope);
	int result = job_limits_print(limits, lines, sizeof(lines)), length;

	length = snprintf(ret_text, PROTO_TEXT, "match = " JOB_LINE "%" PRIu32 "\nwithin = %s\n",
			  job->number, within);
	if (settings->guard && has_scope)
		length += snprintf(ret_text + length, PROTO_TEXT - (size_t)length,
				   "match = first cgroup=%s/job_%" PRIu32 "/*\nguard = on\n", scope,
				   job->number);
	if (result == 0 && (size_t)length + strlen(lines) >= PROTO_TEXT)
		result = -E2BIG;
	if (result < 0)
		return problem_set(result, problem, "the job asks for too many limits");
	strcpy(ret_text + length, lines);
	return settings->guard && !has_scope ? JOB_UNGUARDED : 0;
}

static int job_guard_take(const void *row, void *closure)
{
	const struct proto_guard *one = row;

	if (one->scope == ROW_TENANT)
		*(struct proto_guard *)closure = *one;
	return 0;
}

/* The job's processes begin when the kernel knows its limits. The collector tells it at once, unless
 * this is the node's first guarded tenant: then programs are loaded. */
static bool guard_await(const struct plugin_settings *settings, const char *tenant)
{
	struct proto_choose choose = { .pid = 0 };
	char problem[PROBLEM_SIZE];

	strcpy(choose.tenant, tenant);
	for (unsigned waited = 0; waited < GUARD_MS; waited += GUARD_STEP_MS) {
		struct proto_guard guard = { .scope = ROW_HOST };

		if (job_ask_rows(settings, MESSAGE_GUARD, &choose, job_guard_take, &guard, problem) < 0 ||
		    guard.scope != ROW_TENANT)
			return false;
		if (guard.guarantee == GUARANTEE_KERNEL || guard.guarantee == GUARANTEE_PARTLY)
			return true;
		if (!guard.pending)
			return false;
		usleep(GUARD_STEP_MS * 1000);
	}
	return false;
}

/* What job_register returns. */
static int job_add(const struct plugin_settings *settings, const struct job *job,
		   const struct job_limits *limits, const char *name, const char *within,
		   char problem[PROBLEM_SIZE])
{
	struct proto_change change = { .via = "Slurm" };
	int lines = job_lines(settings, job, limits, within, change.text, problem), result;

	if (lines < 0)
		return lines;
	snprintf(change.section, sizeof(change.section), "tenant %s", name);
	result = job_ask(settings, MESSAGE_TENANT_ADD, &change, NULL, problem);
	/* The pattern has made it already, for what an earlier run of the job has left. */
	if (result == -EEXIST)
		result = job_ask(settings, MESSAGE_CHANGE_POLICY, &change, NULL, problem);
	if (result == 0 && settings->guard && lines == 0 && !guard_await(settings, name))
		lines = JOB_UNGUARDED;
	return result < 0 ? result : lines;
}

int job_register(const struct plugin_settings *settings, const struct job *job,
		 const struct job_limits *limits, char problem[PROBLEM_SIZE])
{
	char name[NAME_SIZE], within[NAME_SIZE], other[PROBLEM_SIZE];
	struct placement placement;
	struct job_limits none;
	int result = job_unregister(settings, job->number, problem), added;

	if (result == 0 || result == -ENOENT)
		result = job_place(settings, job, &placement, problem);
	if (result < 0)
		return result;
	if (!job_name(settings, job, &placement, name, within))
		return JOB_IS_OF_OTHERS;
	result = job_add(settings, job, limits, name, within, problem);
	if ((result != -E2BIG && result != -EINVAL) || !job_limits_are_set(limits))
		return result;
	/* No option lifts the guard, and be it by limits that are refused. */
	job_limits_init(&none);
	added = job_add(settings, job, &none, name, within, other);
	return added < 0 ? result : added | JOB_WITHOUT_OPTIONS;
}

/* ---- what it used */

struct figures {
	struct proto_row row;
	struct proto_details details;
	struct proto_guard guard;
	bool has_details;
};

static int figures_row_take(const void *row, void *closure)
{
	struct figures *figures = closure;
	const struct proto_row *one = row;

	if (one->scope == ROW_TENANT && !one->device[0])
		figures->row = *one;
	return 0;
}

static int figures_details_take(const void *row, void *closure)
{
	struct figures *figures = closure;
	const struct proto_details *one = row;

	if (!one->pid && !one->device[0]) {
		figures->details = *one;
		figures->has_details = true;
	}
	return 0;
}

static void amounts_print(FILE *file, const char *word, const uint64_t *amount)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (amount[kind])
			fprintf(file, " %s.%s=%" PRIu64, word, kind_rows[kind].name, amount[kind]);
}

static void figures_print(const struct figures *figures, FILE *file)
{
	const struct tallies *tallies = &figures->details.tallies;
	const struct posted *posted = &figures->details.gauges.posted;
	uint64_t calls[RATE_TALLIES] = { 0 };

	amounts_print(file, "peak", figures->row.peak);
	amounts_print(file, "refused", figures->row.refused);
	amounts_print(file, "tolerated", figures->row.tolerated);
	amounts_print(file, "guard.refused", figures->guard.refused);
	if (!figures->has_details)
		return;
	for (unsigned tally = 0; tally < RATE_TALLIES; tally++)
		for (unsigned class = 0; class < RATE_CLASSES; class++)
			calls[tally] += tallies->rate[tally][class];
	if (calls[RATE_THROTTLED])
		fprintf(file, " throttled.calls=%" PRIu64 " throttled.ms=%" PRIu64,
			calls[RATE_THROTTLED], calls[RATE_THROTTLED_NS] / 1000000);
	if (calls[RATE_REFUSED])
		fprintf(file, " refused.calls=%" PRIu64, calls[RATE_REFUSED]);
	if (posted->delays)
		fprintf(file, " paced.posts=%" PRIu64 " paced.ms=%" PRIu64, posted->delays,
			posted->delayed_ns / 1000000);
}

int job_account(const struct plugin_settings *settings, const struct job *job, char *ret_text,
		size_t size, char problem[PROBLEM_SIZE])
{
	struct proto_choose choose = { .flags = CHOOSE_TENANTS };
	struct figures figures = { .has_details = false };
	int result = job_tenant(settings, job->number, choose.tenant, problem);
	size_t length;
	FILE *file;

	ret_text[0] = '\0';
	if (result == 0)
		result = job_ask_rows(settings, MESSAGE_GET_STATS, &choose, figures_row_take, &figures, problem);
	if (result == 0)
		result = job_ask_rows(settings, MESSAGE_GET_DETAILS, &choose, figures_details_take, &figures,
				      problem);
	if (result == 0 && settings->guard)
		result = job_ask_rows(settings, MESSAGE_GUARD, &choose, job_guard_take, &figures.guard,
				      problem);
	if (result < 0)
		return result;
	file = fmemopen(ret_text, size, "w");
	if (!file)
		return problem_set(-errno, problem, "the figures: %s", strerror(errno));
	fprintf(file, JOB_FIGURES "%s tenant=%s", job->node, choose.tenant);
	length = (size_t)ftell(file);
	figures_print(&figures, file);
	if ((size_t)ftell(file) == length)
		length = 0;
	fclose(file);
	ret_text[length ? size - 1 : 0] = '\0';
	return 0;
}

/* ---- left behind */

/* Held by the process that sweeps; -1 if another one has it. A lock for writing, on a file that root alone
 * can write: users could hold one of another sort for ever. */
static int sweep_lock(const char *socket)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[PROTO_PATH + sizeof(SWEEP_LOCK)];
	int file;

	snprintf(path, sizeof(path), "%s" SWEEP_LOCK, socket);
	file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file >= 0 && fcntl(file, F_OFD_SETLK, &whole)) {
		close(file);
		file = -1;
	}
	return file;
}

int jobs_sweep(const struct plugin_settings *settings, const struct job *job,
	       bool (*is_over)(uint32_t number, const char *node), char problem[PROBLEM_SIZE])
{
	struct jobs_listed jobs;
	char path[PROTO_PATH];
	unsigned questions = 0;
	int result = job_path(settings, path, problem), lock, removed = 0;

	if (result < 0)
		return result;
	lock = sweep_lock(path);
	if (lock < 0)
		return 0;
	result = jobs_list(settings, &jobs, problem);
	for (unsigned i = 0; result == 0 && i < jobs.count && questions < SWEEP_MOST; i++) {
		const struct listed *one = &jobs.job[i];

		if (one->number == job->number || job_has_processes(job->node, one->number))
			continue;
		questions++;
		if (!is_over(one->number, job->node))
			continue;
		result = tenant_remove(settings, one->tenant, problem);
		removed += result == 0;
		result = result == -ENOENT ? 0 : result;
	}
	close(lock);
	return result < 0 ? result : removed;
}
