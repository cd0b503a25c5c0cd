/* SPDX-License-Identifier: MIT */
/*
 * The collector under attack and the run of one attack; see attack.h. The length of an attack is
 * set by the work that victims and attackers do, and the victims' rate is compared with their rate
 * just before, so that a busy machine changes both.
 */
#include "attack.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	CALM_ROUNDS = 60,
	/* The kernel divides the processor, not the collector. With equal priority, 16 attackers
	 * on a small machine leave the collector too little of it for any measurement. */
	ATTACKER_NICE = 10,
	FIRST_UID = 100000, /* beyond the users of a common system */
	UID_PAIRS = 1 << 22,	/* one for each process number */
	ATTEMPTS = 2,		/* at measuring calm and attack */
	DESCRIPTORS_MORE = 700, /* that one user may cost the collector beyond its members */
	DESCRIPTORS_OURS = 4,	/* of our own requests, just answered */
	RESIDENT_MORE_KB = 64 << 10,
	LOG_MOST_BYTES = 64 << 10, /* lines that a user can cause are written seldom */
};

static uid_t first_uid;
static unsigned descriptors_at_start;
static long resident_at_start;

uid_t victim_uid(void)
{
	return first_uid;
}

uid_t attacker_uid(void)
{
	return first_uid + 1;
}

/* ---- the collector */

static unsigned descriptors(pid_t pid)
{
	char path[64];
	unsigned count = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	directory = opendir(path);
	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	return count;
}

static long resident_kb(pid_t pid)
{
	char path[64], line[256];
	long kb = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "VmRSS: %ld", &kb);
	if (file)
		fclose(file);
	return kb;
}

static void collector_end(void)
{
	if (collector_pid() > 0)
		collector_kill();
}

void stage_prepare(void)
{
	static bool prepared;
	char directory[PATH_MAX], policy[512];

	if (prepared)
		return;
	if (geteuid())
		skip("this test needs root, to act as two users");
	prepared = true;
	atexit(collector_end);
	/* Orphans come to us: we can reap them. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		abort();
	actors_share();
	victims_share();
	snprintf(directory, sizeof(directory), "%s", collector_socket());
	*strrchr(directory, '/') = '\0';
	if (chmod(directory, 0711))
		abort();
	first_uid = FIRST_UID + 2 * ((uid_t)getpid() % UID_PAIRS);
	snprintf(policy, sizeof(policy),
		 "[collector]\nadmin_group = " ADMIN_GROUP "\n"
		 "[host]\nqp = %d\n"
		 "[tenant victim]\nmatch = uid=%u\nqp = %d\ndevice." DEVICE ".qp = %d\n"
		 "[tenant attacker]\nmatch = uid=%u\nqp = %d\n",
		 2 * QUOTA, victim_uid(), QUOTA, QUOTA_ON_DEVICE, attacker_uid(), QUOTA);
	collector_policy(policy);
}

void stage_open(void)
{
	stage_prepare();
	stage_clear();
	if (collector_pid() > 0)
		return;
	collector_start("");
	descriptors_at_start = descriptors(collector_pid());
	resident_at_start = resident_kb(collector_pid());
}

void stage_clear(void)
{
	actors_clear();
	victims_share();
}

void stage_close(void)
{
	if (collector_pid() > 0)
		collector_stop();
	CHECK(!strstr(collector_log(), "runtime error") && !strstr(collector_log(), "Sanitizer"),
	      "%s", collector_log());
}

/*
 * Whether the condition comes true. To look makes the collector work, so this test never stands
 * still: looks are counted instead. They take longer than any deadline of the collector, and
 * those that ask it are answered only while it has the processor.
 */
static bool comes_true(bool (*condition)(void))
{
	enum { LOOKS_MOST = 4000, PAUSE_US = 5000 };

	for (unsigned looks = 0; looks < LOOKS_MOST; looks++) {
		if (condition())
			return true;
		usleep(PAUSE_US);
	}
	return false;
}

void stage_answers(void)
{
	CHECK(collector_tenant("victim").limit[KIND_qp] == QUOTA, "root gets no answer");
}

static bool is_bounded(void)
{
	return descriptors(collector_pid()) <= descriptors_at_start + DESCRIPTORS_MORE;
}

void stage_is_bounded_now(void)
{
	unsigned now = descriptors(collector_pid());

	CHECK(now <= descriptors_at_start + DESCRIPTORS_MORE,
	      "the collector has %u descriptors, %u at the start", now, descriptors_at_start);
	stage_answers();
}

void stage_is_bounded(void)
{
	CHECK(comes_true(is_bounded), "the collector has %u descriptors, %u before",
	      descriptors(collector_pid()), descriptors_at_start);
	stage_answers();
}

static bool collector_answers(void)
{
	struct proto_status collector_state;

	return collector_call(MESSAGE_STATUS, NULL, &collector_state) == 0 && collector_state.pid == collector_pid();
}

static bool is_clean(void)
{
	struct proto_row victim = collector_tenant("victim"),
			 attacker = collector_tenant("attacker");
	struct proto_status collector_state;

	if (collector_call(MESSAGE_STATUS, NULL, &collector_state) || collector_state.processes || collector_state.leases)
		return false;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (victim.used[kind] || victim.granted[kind] || attacker.used[kind] ||
		    attacker.granted[kind])
			return false;
	return descriptors(collector_pid()) <= descriptors_at_start + DESCRIPTORS_OURS;
}

void stage_is_clean(const char *name)
{
	struct proto_status collector_state = { 0 };
	struct stat log = { 0 };
	long more;

	if (has_child_ended(collector_pid()) ||
	    !CHECK(collector_answers(), "%s: the collector does not answer any more: %s", name,
		   collector_log())) {
		collector_kill(); /* the next case starts another */
		return;
	}
	if (!CHECK(comes_true(is_clean), "%s: the collector did not forget the processes", name)) {
		collector_call(MESSAGE_STATUS, NULL, &collector_state);
		printf("%s: %u processes, %u leases, %u descriptors (%u at the start)\n", name,
		       collector_state.processes, collector_state.leases, descriptors(collector_pid()),
		       descriptors_at_start);
	}
	CHECK(collector_tenant("attacker").peak[KIND_qp] <= QUOTA &&
		      collector_tenant("victim").peak[KIND_qp] <= QUOTA &&
		      collector_tenant(NULL).peak[KIND_qp] <= 2 * QUOTA,
	      "%s: a limit was exceeded", name);
	CHECK(stat(harness_path("collector.log"), &log) == 0 && log.st_size < LOG_MOST_BYTES,
	      "%s: the collector wrote %lld bytes into its log", name, (long long)log.st_size);
	more = resident_kb(collector_pid()) - resident_at_start;
#ifndef __SANITIZE_ADDRESS__
	CHECK(more < RESIDENT_MORE_KB, "%s: the collector has %ld KB more than at the start", name,
	      more);
#endif
}

/* ---- one attack */

/* The processes of one run. The collector, an attacker or a victim that ends before the run is over
 * has failed: the run is broken. */
struct run {
	const struct attack *row; /* NULL: a calm run */
	pid_t attackers[ATTACKERS_MAX], victims[2];
};

static bool is_broken(const struct run *run)
{
	bool broken = has_child_ended(collector_pid());

	for (unsigned i = 0; run->row && i < run->row->processes; i++)
		broken |= has_child_ended(run->attackers[i]);
	return broken || has_child_ended(run->victims[0]) || has_child_ended(run->victims[1]);
}

static bool is_done(const struct run *run)
{
	for (unsigned i = 0; run->row && i < run->row->processes; i++)
		if (actor_turns(i) < run->row->turns)
			return false;
	return victims_rounds() >= (run->row ? run->row->rounds : CALM_ROUNDS);
}

static bool victims_have_ended(const struct run *run)
{
	return has_child_ended(run->victims[0]) && has_child_ended(run->victims[1]);
}

/* Kills the processes that would wait for a collector that does not answer. */
static void run_kill(const struct run *run)
{
	for (unsigned i = 0; run->row && i < run->row->processes; i++)
		kill(run->attackers[i], SIGKILL);
	for (unsigned i = 0; i < COUNT_OF(run->victims); i++)
		if (!has_child_ended(run->victims[i]))
			kill(run->victims[i], SIGKILL);
}

static void attackers_start(struct run *run)
{
	for (unsigned i = 0; i < run->row->processes; i++) {
		run->attackers[i] = split();
		if (run->attackers[i] == 0) {
			if (nice(ATTACKER_NICE) < 0)
				abort();
			become(attacker_uid(), NULL);
			actor_is(i);
			run->row->run(i);
			finish();
		}
	}
}

/* One run of the victims, with the attackers of the row, or without if it is NULL. */
static struct victims_report measure(const struct attack *row)
{
	struct run run = { .row = row };
	struct victims_report report;
	const char *name = row ? row->name : "calm";
	bool broken;

	stage_clear();
	if (row) {
		attackers_start(&run);
		EVENTUALLY(actors_ready() == row->processes || is_broken(&run),
			   "%s: %u of %u are ready", name, actors_ready(), row->processes);
	}
	victims_start(row ? row->rounds : CALM_ROUNDS, run.victims);
	if (row && row->look && !is_broken(&run))
		row->look();
	EVENTUALLY(is_done(&run) || is_broken(&run), "%s: %u rounds", name, victims_rounds());
	broken = is_broken(&run);
	attack_stop();
	EVENTUALLY(victims_have_ended(&run) || has_child_ended(collector_pid()));
	CHECK(!has_child_ended(collector_pid()), "%s: the collector ended: %s", name,
	      collector_log());
	if (broken || has_child_ended(collector_pid()))
		run_kill(&run);
	report = victims_end(run.victims);
	CHECK(report.lost == 0 && report.gained == 0, "%s: %u units lost, %u too many", name,
	      report.lost, report.gained);
	for (unsigned i = 0; row && i < row->processes; i++)
		CHECK(reap(run.attackers[i]) == 0, "%s: %s", name, row->holds);
	stage_is_clean(name);
	return report;
}

/* Whether the victims got their share. A machine that is too busy to answer in the library's time
 * without an attack says nothing about the attack. */
static bool is_fair(const struct attack *row, const struct victims_report *before,
		    const struct victims_report *under)
{
	double ratio = under->rate > 0 ? before->rate / under->rate : 0;

	printf("%-14s calm %6.0f rounds/s, attacked %6.0f: 1/%.1f (1/%u is enough); %u rounds, "
	       "asking p50 %.3f ms, p99 %.3f, slowest %.3f; unanswered %u calm, %u attacked\n",
	       row->name, before->rate, under->rate, ratio, row->slowdown, under->rounds,
	       under->ms_half, under->ms_99, under->ms_all, before->unanswered, under->unanswered);
	return under->rate > 0 && ratio <= row->slowdown &&
	       (under->unanswered == 0 || before->unanswered > 0);
}

void attack_run(const struct attack *row)
{
	bool fair = false;

	stage_open();
	for (unsigned i = 0; i < ATTEMPTS && !fair && collector_pid() > 0; i++) {
		struct victims_report before = measure(NULL), under = { 0 };

		if (collector_pid() > 0)
			under = measure(row);
		fair = is_fair(row, &before, &under);
	}
	CHECK(fair, "%s: the victims did not get their share", row->name);
	if (row->after && collector_pid() > 0)
		row->after();
}

void attacks_run(const struct attack *rows, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		CASE(rows[i].name)
			attack_run(&rows[i]);
}
