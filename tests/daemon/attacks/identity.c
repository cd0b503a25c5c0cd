/* SPDX-License-Identifier: MIT */
/*
 * Attacks on identity and rights: cookies of other processes, registrations that come and go,
 * rights that a user does not have, and the process number of another. The collector asks the
 * kernel for the identity of a client.
 */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* ---- registration */

/* The first registers, the others use its cookie. */
static void cookies(unsigned number)
{
	struct member member = { 0 };
	struct proto_grow_request need;

	if (number == 0) {
		CHECK(join(&member));
		note_set(0, member.cookie);
		ready();
		need = want(&member, KIND_qp, 8);
		member.usage->row[0].used[KIND_qp] = 8;
		while (going())
			CHECK(ask(&need) == 0);
		return;
	}
	while (!(member.cookie = note(0)) && attack_is_on())
		usleep(100);
	ready();
	need = want(&member, KIND_qp, 0);
	need.flags = GROW_EXACT;
	while (going())
		CHECK(ask(&need) == -ESTALE, "another's cookie");
}

static void hellos(unsigned number)
{
	struct proto_hello hello;
	struct proto_welcome welcome;
	struct proto_grow_request need;
	struct member member;

	ready();
	for (unsigned i = 0; going(); i++) {
		if (!CHECK(join(&member)))
			return;
		need = want(&member, KIND_qp, 4);
		CHECK(ask(&need) == 0);
		leave(&member);
		memset(&hello, i % 2 ? 0xff : 0, sizeof(hello));
		CHECK(collector_call(MESSAGE_HELLO, &hello, &welcome) == 0, "limits of all sorts");
	}
}

static void births(unsigned number)
{
	struct member member;

	ready();
	for (unsigned i = 0; going(); i++) {
		pid_t child = split();

		if (child == 0) {
			if (i % 2)
				CHECK(join(&member));
			else
				tell(dial(), MESSAGE_HELLO, &(struct proto_hello){ 0 });
			finish();
		}
		CHECK(reap(child) == 0);
	}
}

/* ---- rights */

static const struct right {
	enum message type;
	const char *section, *text;
} rights[] = {
	{ MESSAGE_CHANGE_POLICY, "tenant attacker", "mr = 5" },
	{ MESSAGE_CHANGE_POLICY, "tenant attacker", "mr = unset" },
	{ MESSAGE_TENANT_ADD, "tenant stranger", "qp = 1000\nmatch = uid=99999" },
	{ MESSAGE_TENANT_REMOVE, "tenant stranger", "" },
	{ MESSAGE_RELOAD, "", "" },
};

static void rights_use(int expected)
{
	for (unsigned i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
		struct proto_change change = { 0 };
		int result;

		strcpy(change.section, rights[i].section);
		strcpy(change.text, rights[i].text);
		result = collector_call(rights[i].type, &change, NULL);
		CHECK(result == expected, "right %u: %d, not %d", i, result, expected);
	}
}

static void changes(unsigned number)
{
	ready();
	while (going())
		rights_use(-EPERM);
}

/* Limits change by a right that exists, while the victims go on. */
static void changes_look(void)
{
	struct proto_status before = { 0 }, after = { 0 };
	struct proto_row row;
	pid_t child;

	CHECK(collector_call(MESSAGE_STATUS, NULL, &before) == 0);
	usleep(100000);
	CHECK(collector_call(MESSAGE_STATUS, NULL, &after) == 0);
	CHECK(before.reloads == after.reloads && before.tenants == after.tenants, "changed");
	row = collector_tenant("attacker");
	CHECK(row.limit[KIND_qp] == QUOTA && row.limit[KIND_mr] == UNLIMITED);
	if (!getgrnam(ADMIN_GROUP)) {
		skip_part("rights by a group: there is no group " ADMIN_GROUP "");
		return;
	}
	child = split();
	if (child == 0) {
		become(attacker_uid(), ADMIN_GROUP);
		rights_use(0);
		finish();
	}
	CHECK(reap(child) == 0);
	CHECK(collector_call(MESSAGE_STATUS, NULL, &after) == 0);
	CHECK(after.reloads == before.reloads + 1 && after.tenants == before.tenants);
}

static void signals(unsigned number)
{
	static const int all[] = { SIGKILL, SIGTERM, SIGHUP, SIGSTOP, SIGINT, SIGSEGV };
	pid_t pid = collector_pid();
	char path[64];

	ready();
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		CHECK(kill(pid, all[i]) && errno == EPERM, "signal %d", all[i]);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	CHECK(open(path, O_RDWR | O_CLOEXEC) < 0);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	CHECK(open(path, O_RDONLY | O_CLOEXEC) < 0);
	CHECK(unlink(collector_socket()) && errno == EACCES);
	CHECK(rename(collector_socket(), "/tmp/rdma_attack_socket"));
	CHECK(truncate(harness_path("policy.conf"), 0));
	CHECK(open(harness_path("state/ledger"), O_RDWR | O_CLOEXEC) < 0);
	rest();
}

/* ---- the process number of a process that has ended */

enum { NOTE_TAKEN, NOTE_DONE, NOTE_DROPPED };

/* Connects, registers, leaves its connections to a child, and ends. */
static void __attribute__((noreturn)) predecessor(void)
{
	struct proto_hello hello = hello_without_limits();
	struct member member;
	struct proto_grow_request need;
	int first, second;

	become(attacker_uid(), NULL);
	CHECK(join(&member));
	first = dial();
	second = dial();
	if (split_heir() == 0) {
		int status[2];

		note_wait(NOTE_TAKEN, 1);
		need = want(&member, KIND_qp, 0);
		need.flags = GROW_EXACT;
		tell(first, MESSAGE_GROW, &need);
		status[0] = hear(first);
		tell(second, MESSAGE_HELLO, &hello);
		status[1] = hear(second);
		CHECK(status[0] != 0, "the collector takes the cookie of a dead process");
		CHECK(status[1] != 0, "the heir registered as another process");
		/* The collector drops a connection that says nothing for 2 s. */
		note_set(NOTE_DROPPED, status[0] > 0 || status[1] > 0);
		note_set(NOTE_DONE, 1);
	}
	finish();
}

/* A victim with the number of the dead process; the heir must not disturb it. */
static void __attribute__((noreturn)) successor(void)
{
	unsigned device;
	int result;

	victim_enter();
	device = victim_device(OTHER_DEVICE);
	CHECK(victim_take(device, QUOTA / 2 + 1) >= QUOTA / 2);
	note_set(NOTE_TAKEN, 1);
	note_wait(NOTE_DONE, 1);
	result = victim_charge(device);
	CHECK(result == 0, "the registration is lost: %d", result);
	note_set(NOTE_DONE, 2);
	rest();
	finish();
}

/* Returns false when the machine was too slow: the collector had dropped the connections. */
static bool number_reuse_once(const char *kernel)
{
	struct proto_row row;
	pid_t first, second;

	stage_clear();
	first = split();
	if (first == 0)
		predecessor();
	CHECK(reap(first) == 0);
	usleep(50000); /* the start time in clock ticks must differ */
	second = split_as(first);
	if (second == 0)
		successor();
	if (second < 0) {
		skip_part("%s: the process number cannot be chosen: %s", kernel,
		       strerror(errno));
		end((pid_t)note(NOTE_HEIR));
		return true;
	}
	CHECK(note_wait(NOTE_DONE, 2), "%s: state %llu", kernel,
	      (unsigned long long)note(NOTE_DONE));
	row = collector_process(second);
	CHECK(!strcmp(row.tenant, "victim") && row.uid == victim_uid() &&
		      row.used[KIND_qp] > QUOTA / 2,
	      "%s: process %d is %s's and holds %llu", kernel, (int)second, row.tenant,
	      (unsigned long long)row.used[KIND_qp]);
	end(second);
	CHECK(reap((pid_t)note(NOTE_HEIR)) == 0, "%s: the heir", kernel);
	return !note(NOTE_DROPPED);
}

static void number_reuse(const char *kernel)
{
	enum { ATTEMPTS = 20 };

	for (unsigned i = 0; i < ATTEMPTS; i++)
		if (number_reuse_once(kernel))
			return;
	skip_part("%s: the machine is too slow for the heir to ask within 2 s", kernel);
}

static void number_used_again(void)
{
	stage_open();
	number_reuse("this kernel");
	stage_is_clean("number_used_again");
}

/* The same on a kernel that cannot give a pidfd of a peer. */
static void number_used_again_before_6_5(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_PEERPIDFD, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { COUNT_OF(filter), filter };
	pid_t child;

	stage_prepare();
	if (collector_pid() > 0)
		collector_stop();
	child = split();
	if (child == 0) {
		/* The heir comes to the one who started its parent. */
		if (prctl(PR_SET_CHILD_SUBREAPER, 1))
			abort();
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
			skip_part("a kernel before 6.5: seccomp: %s", strerror(errno));
			_exit(0);
		}
		collector_start("");
		number_reuse("before Linux 6.5");
		collector_stop();
		finish();
	}
	CHECK(reap(child) == 0);
}

/* ---- who may ask about whom */

/* What the collector says of a process to a user, of that group (NULL: of none). */
static void explains(uid_t uid, const char *group, pid_t about, int expected)
{
	struct proto_explanation answer = { 0 };
	pid_t child = split();
	int result;

	if (child) {
		CHECK(reap(child) == 0);
		return;
	}
	become(uid, group);
	result = collector_call(MESSAGE_EXPLAIN,
				&(struct proto_ask){ .pid = about ? about : getpid() }, &answer);
	CHECK(result == expected, "of %d: %d, expected %d", (int)about, result, expected);
	CHECK(expected == 0 || (!answer.cgroup[0] && !answer.uid && !answer.alive));
	finish();
}

static void foreign_processes(void)
{
	pid_t victim;

	stage_open();
	victim = split();
	if (victim == 0) {
		become(victim_uid(), NULL);
		note_add(0);
		rest();
		finish();
	}
	note_wait(0, 1);
	explains(attacker_uid(), NULL, 0, 0);
	explains(attacker_uid(), NULL, victim, -EPERM);
	explains(attacker_uid(), NULL, getpid(), -EPERM);
	explains(attacker_uid(), NULL, 1, -EPERM);
	/* Not even whether there is one. */
	explains(attacker_uid(), NULL, 0x7ffffff0, -EPERM);
	explains(victim_uid(), NULL, victim, 0);
	explains(attacker_uid(), ADMIN_GROUP, victim, 0);
	explains(0, NULL, victim, 0);
	attack_stop();
	CHECK(reap(victim) == 0);
}

/* Name, promise, processes, rounds, turns, slowdown, and what runs. */
static const struct attack attacks[] = {
	{ "cookies", "the cookie of another process is worthless", 4,
	  200, 200, 50, cookies, NULL, NULL },
	{ "hellos", "the last registration counts", 4,
	  200, 100, 50, hellos, NULL, NULL },
	{ "births", "the collector forgets a process that has ended", 4,
	  200, 50, 50, births, NULL, NULL },
	{ "changes", "a user without the right changes nothing", 2,
	  200, 100, 50, changes, changes_look, NULL },
	{ "signals", "the collector and its files are out of reach", 1,
	  100, 1, 50, signals, NULL, NULL },
};

static void driver(void)
{
	attacks_run(attacks, COUNT_OF(attacks));
	RUN(foreign_processes);
	RUN(number_used_again);
	RUN(number_used_again_before_6_5);
	stage_close();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
