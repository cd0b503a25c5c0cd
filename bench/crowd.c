/* SPDX-License-Identifier: MIT */
/*
 * Thousands of processes of a thousand tenants that hold something on one device of a running
 * collector, until the standard input ends. Needs root, since a tenant is a user here.
 *
 * Usage: crowd SOCKET TENANTS PROCESSES FIRST-UID
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "terms/tallies.h"

static const struct cost held = {
	.count = 4,
	.kind = { KIND_pd, KIND_cq, KIND_qp, KIND_mr },
	.amount = { 1, 2, 5, 3 },
};

static void give_up(const char *what, const char *problem)
{
	fprintf(stderr, "crowd: %s: %s\n", what, problem);
	_exit(1);
}

/* The calls that made what is held, each of which took about 10 microseconds. */
static void calls_tell(struct tallies *tallies)
{
	static const enum verb_class called[] = { VERB_create_qp, VERB_modify_qp, VERB_create_cq,
						  VERB_reg_mr, VERB_create_other };

	for (unsigned i = 0; i < sizeof(called) / sizeof(called[0]); i++) {
		struct verb_tally *verb = &tallies->verb[called[i]];

		verb->ns = 100000;
		for (unsigned bucket = 2; bucket < 6; bucket++)
			verb->latency[bucket] = 2 + bucket;
	}
}

static void member_live(const char *socket, uid_t uid, int told)
{
	static const struct log no_log = { .level = LOG_OFF };
	static struct ledger_limits limits;
	static struct ledger ledger;
	const struct ledger_options options = {
		.transport = TRANSPORT_LEASE, .socket = socket, .limits = &limits, .log = &no_log,
	};
	struct ledger_refusal refusal;
	char problem[PROBLEM_SIZE];
	int device;

	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		give_up("setresuid", strerror(errno));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ledger_limits_clear(&limits);
	if (ledger_open(&ledger, &options, problem) < 0)
		give_up(socket, problem);
	device = ledger_device(&ledger, "bench0");
	if (device < 0 || ledger_charge(&ledger, (unsigned)device, &held, &refusal))
		give_up(socket, "the collector refused what a process holds");
	calls_tell(ledger.tallies);
	if (write(told, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void ended(int signal_number)
{
	_exit(1);
}

int main(int argc, char **argv)
{
	unsigned tenants, processes;
	uid_t first;
	int told[2];
	char byte;

	if (argc != 5 || pipe(told)) {
		fprintf(stderr, "usage: crowd SOCKET TENANTS PROCESSES FIRST-UID\n");
		return 2;
	}
	tenants = (unsigned)atoi(argv[2]);
	processes = (unsigned)atoi(argv[3]);
	first = (uid_t)atoi(argv[4]);
	/* One after the other, since the collector may answer 4,000 at once too late. A member that
	 * gives up ends all. */
	signal(SIGCHLD, ended);
	for (unsigned i = 0; i < processes; i++) {
		if (fork() == 0)
			member_live(argv[1], first + i % tenants, told[1]);
		if (read(told[0], &byte, 1) != 1)
			return 1;
	}
	printf("%u processes of %u tenants\n", processes, tenants);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
