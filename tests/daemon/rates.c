/* SPDX-License-Identifier: MIT */
/*
 * Rates that a collector leases: all processes of a tenant together never make more calls than
 * burst + rate * time, while the rate is divided by demand, processes are killed, the collector is
 * killed, and the rate changes; and every limit of it has an end that is seen.
 */
#include "collector.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "member.h"
#include "terms/rates.h"

#define SETTINGS "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0"

/* Words: how many calls of all processes succeeded, and the other results; whose turn it is. */
enum { WORD_CALLS = WORD_OWN, WORD_REFUSED, WORD_OTHER, WORD_TURN };

enum { ROWS = 16 };

struct rate_rows {
	unsigned count;
	struct proto_rate row[ROWS];
};

static int rate_note(const void *row, void *closure)
{
	struct rate_rows *rows = closure;

	if (rows->count < ROWS)
		rows->row[rows->count++] = *(const struct proto_rate *)row;
	return 0;
}

/* Of the tenants; of a process if it is named, of all of them for pid -1. */
static struct rate_rows rates_of(pid_t pid)
{
	struct proto_choose choose = { .pid = pid > 0 ? pid : 0,
				       .flags = pid ? CHOOSE_PROCESSES : 0 };
	struct rate_rows rows = { 0 };
	char problem[PROBLEM_SIZE];

	CHECK(proto_rows(collector_socket(), MESSAGE_GET_RATES, &choose, rate_note, &rows,
			 COLLECTOR_PATIENCE_MS, problem) >= 0,
	      "%s", problem);
	return rows;
}

/* Calls per second, in thousandths. */
static uint64_t leased(pid_t pid)
{
	return rates_of(pid).row[0].leased;
}

/* All processes together; at no moment more than the tenant's rate. */
static uint64_t leased_sum(uint64_t rate)
{
	struct rate_rows rows = rates_of(-1);
	uint64_t sum = 0;

	for (unsigned i = 0; i < rows.count; i++)
		sum += rows.row[i].leased;
	CHECK(sum <= rate * 1000, "%llu", (unsigned long long)sum);
	return sum;
}

/* Whether a process has between so many hundredths of what all have. Waits compare with that, and
 * not with the rate, so that they end if too much is leased; leased_sum compares with the rate. */
static bool has_share(pid_t pid, uint64_t rate, unsigned from, unsigned to)
{
	uint64_t its = leased(pid) * 100, sum = leased_sum(rate);

	return its >= from * sum && its <= to * sum;
}

/* ---- members */

static struct ibv_mr *memory_register(struct fixture *fixture)
{
	static char memory[MR_LENGTH];

	return ibv_reg_mr(fixture->pd, memory, sizeof(memory), 0);
}

/* One call and its end, counted. */
static void memory_pair(struct fixture *fixture)
{
	struct ibv_mr *mr = memory_register(fixture);

	if (mr)
		word_add(WORD_CALLS, 1);
	else
		word_add(errno == EAGAIN ? WORD_REFUSED : WORD_OTHER, 1);
	if (mr && ibv_dereg_mr(mr))
		word_add(WORD_OTHER, 1);
}

/* Registers and deregisters as fast as it can until WORD_GO is 3; while it is 1 a process with the
 * argument "idle" does nothing. */
static void member_loop(const char *argument)
{
	struct fixture fixture = member_fixture();

	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1);
	if (!strcmp(argument, "idle"))
		word_await(WORD_GO, 2);
	while (word_load(WORD_GO) < 3)
		memory_pair(&fixture);
	fixture_close(&fixture);
}

/* The same in every second turn: the even ones or, with "odd", the others. */
static void member_swaps(const char *argument)
{
	struct fixture fixture = member_fixture();
	uint64_t turn;

	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1);
	while (word_load(WORD_GO) < 3) {
		turn = word_load(WORD_TURN);
		if (turn % 2 == !strcmp(argument, "odd"))
			memory_pair(&fixture);
		else
			word_await(WORD_TURN, turn + 1);
	}
	fixture_close(&fixture);
}

/* Makes so many calls; each must succeed ("all"), or they go on until one is refused, and are not many
 * more, but with "+". */
static void member_calls(const char *argument)
{
	struct fixture fixture = member_fixture();
	bool all = !strncmp(argument, "all", 3);
	unsigned wanted = all ? (unsigned)atoi(argument + 3) : (unsigned)atoi(argument), made = 0;
	double begun = seconds_now();

	while ((!all || made < wanted) && memory_register(&fixture)) {
		word_add(WORD_CALLS, 1);
		made++;
	}
	if (all)
		CHECK(made == wanted, "%u, errno %d", made, errno);
	else
		CHECK(made >= wanted && errno == EAGAIN &&
			      (strchr(argument, '+') ||
			       made <= wanted + 1 + (seconds_now() - begun)),
		      "%u, errno %d", made, errno);
	word_add(WORD_READY, 1);
	if (strchr(argument, 'w'))
		pause();
	fixture_close(&fixture);
}

/* ---- */

/*
 * What all calls since a moment must not exceed. The calls were counted before this looks at the
 * clock, which is the one that the buckets are filled by, so a slow machine only makes them fewer.
 * LATE calls had their part before that moment and were counted after it.
 */
static bool within(uint64_t calls, double begun, double rate, double burst, unsigned late)
{
	double may = burst + rate * (seconds_now() - begun) + late;

	return CHECK(calls <= may, "%llu calls, at most %f", (unsigned long long)calls, may);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(spawn_wait(pid) == 128 + SIGKILL);
}

/* Three processes share a rate; one is idle and comes, one is killed, the collector is killed. */
static void shared(void)
{
	enum { RATE = 200, BURST = 10 };
	uint64_t seen;
	double begun;
	pid_t pid[3];

	words_clear();
	collector_fresh("[default]\nrate.reg_mr = 200/s burst 10\nmax_delay = 60s\n", "");
	for (int i = 0; i < 3; i++)
		pid[i] = spawn_start(i < 2 ? "loop" : "loop:idle", SETTINGS);
	NEED(word_load(WORD_READY) == 3);
	begun = seconds_now();
	word_store(WORD_GO, 1);
	/* Two of them want all they can get, and the idle one nothing. */
	EVENTUALLY(has_share(pid[0], RATE, 40, 60) && has_share(pid[1], RATE, 40, 60) &&
			   has_share(pid[2], RATE, 0, 10),
		   "%llu %llu %llu", (unsigned long long)leased(pid[0]),
		   (unsigned long long)leased(pid[1]), (unsigned long long)leased(pid[2]));
	NEED(word_load(WORD_CALLS) > 100);
	within(word_load(WORD_CALLS), begun, RATE, BURST, 0);
	word_store(WORD_GO, 2);
	EVENTUALLY(has_share(pid[0], RATE, 30, 37) && has_share(pid[2], RATE, 30, 37));
	for (int i = 0; i < 100; i++)
		leased_sum(RATE);
	within(word_load(WORD_CALLS), begun, RATE, BURST, 0);
	stop(pid[1]);
	EVENTUALLY(has_share(pid[0], RATE, 45, 55) && has_share(pid[2], RATE, 45, 55) &&
		   leased_sum(RATE) > 9 * RATE * 100);
	within(word_load(WORD_CALLS), begun, RATE, BURST, 0);
	/* The last leases stay in force. */
	collector_kill();
	seen = word_load(WORD_CALLS);
	NEED(word_load(WORD_CALLS) > seen + 50);
	within(word_load(WORD_CALLS), begun, RATE, BURST, 0);
	collector_start("");
	stop(pid[2]);
	EVENTUALLY(has_share(pid[0], RATE, 100, 100) && leased_sum(RATE) > 9 * RATE * 100);
	seen = word_load(WORD_CALLS);
	NEED(word_load(WORD_CALLS) > seen + 50);
	within(word_load(WORD_CALLS), begun, RATE, BURST, 0);
	CHECK(word_load(WORD_REFUSED) == 0 && word_load(WORD_OTHER) == 0);
	CHECK(rates_of(0).row[0].throttled > 0 && rates_of(0).row[0].throttled_ns > 0);
	word_store(WORD_GO, 3);
	CHECK(spawn_wait(pid[0]) == 0);
	collector_stop();
}

/* More processes than the burst has calls: they take turns. */
static void turns(void)
{
	uint64_t seen;
	double begun;
	pid_t pid[4];

	words_clear();
	collector_fresh("[default]\nrate.reg_mr = 100/s burst 2\nmax_delay = 60s\n", "");
	for (int i = 0; i < 4; i++)
		pid[i] = spawn_start("loop", SETTINGS);
	NEED(word_load(WORD_READY) == 4);
	begun = seconds_now();
	word_store(WORD_GO, 1);
	for (unsigned calls = 100; calls <= 300; calls += 100) {
		NEED(word_load(WORD_CALLS) > calls);
		within(word_load(WORD_CALLS), begun, 100, 2, 0);
	}
	/* Each of them makes progress. */
	for (int i = 0; i < 4; i++) {
		seen = rates_of(pid[i]).row[0].throttled;
		EVENTUALLY(rates_of(pid[i]).row[0].throttled > seen + 3, "process %d", i);
	}
	CHECK(word_load(WORD_REFUSED) == 0 && word_load(WORD_OTHER) == 0);
	word_store(WORD_GO, 3);
	for (int i = 0; i < 4; i++)
		CHECK(spawn_wait(pid[i]) == 0);
	within(word_load(WORD_CALLS), begun, 100, 2, 0);
	collector_stop();
}

/* Two processes that take turns move nearly the whole burst each time. Only what the other has not
 * used may come with it: a burst is as much as comes in while they swap. */
static void moves(void)
{
	enum { RATE = 20, BURST = 20 };
	uint64_t seen;
	double begun;
	pid_t pid[2];

	words_clear();
	collector_fresh("[default]\nrate.reg_mr = 20/s burst 20\nmax_delay = 60s\n", "");
	pid[0] = spawn_start("swaps:even", SETTINGS);
	pid[1] = spawn_start("swaps:odd", SETTINGS);
	NEED(word_load(WORD_READY) == 2);
	begun = seconds_now();
	word_store(WORD_GO, 1);
	for (unsigned turn = 0; turn < 5; turn++) {
		NEED(has_share(pid[turn % 2], RATE, 90, 100));
		seen = word_load(WORD_CALLS);
		NEED(word_load(WORD_CALLS) > seen + 2);
		within(word_load(WORD_CALLS), begun, RATE, BURST, 0);
		word_add(WORD_TURN, 1);
	}
	word_store(WORD_GO, 3);
	word_add(WORD_TURN, 1);
	CHECK(spawn_wait(pid[0]) == 0 && spawn_wait(pid[1]) == 0);
	CHECK(word_load(WORD_REFUSED) == 0 && word_load(WORD_OTHER) == 0);
	collector_stop();
}

/* Set, changed and unset while a process runs. */
static void changes(void)
{
	uint64_t base;
	double begun;
	pid_t pid;

	words_clear();
	collector_fresh("", "");
	pid = spawn_start("loop", SETTINGS);
	NEED(word_load(WORD_READY) == 1);
	word_store(WORD_GO, 1);
	NEED(word_load(WORD_CALLS) > 1000);
	CHECK(rates_of(0).count == 0);
	CHECK(collector_set("default", "rate.reg_mr = 50/s burst 5\nmax_delay = 60s") == 0);
	begun = seconds_now();
	base = word_load(WORD_CALLS);
	NEED(word_load(WORD_CALLS) > base + 20);
	within(word_load(WORD_CALLS) - base, begun, 50, 5, 1);
	CHECK(collector_set("default", "rate.reg_mr = 5/s burst 5") == 0);
	begun = seconds_now();
	base = word_load(WORD_CALLS);
	NEED(word_load(WORD_CALLS) > base + 3);
	within(word_load(WORD_CALLS) - base, begun, 5, 5, 1);
	/* A when line goes over it. */
	CHECK(collector_set("host", "when = sun-sat : default.rate.reg_mr = 7/s burst 3") == 0);
	EVENTUALLY(rates_of(0).row[0].per_second == 7 && leased(0) > 5000);
	CHECK(leased(0) <= 7000, "%llu", (unsigned long long)leased(0));
	CHECK(collector_set("host", "when = unset") == 0);
	/* What is wrong changes nothing. */
	CHECK(collector_set("default", "rate.reg_mr = 100") < 0);
	CHECK(collector_set("default", "rate.nosuch = 100/s") < 0);
	EVENTUALLY(rates_of(0).count == 1 && rates_of(0).row[0].per_second == 5);
	CHECK(collector_set("default", "rate.reg_mr = unset") == 0);
	begun = seconds_now();
	base = word_load(WORD_CALLS);
	EVENTUALLY((double)(word_load(WORD_CALLS) - base) > 1000 + 50 * (seconds_now() - begun));
	CHECK(rates_of(0).count == 0);
	word_store(WORD_GO, 3);
	CHECK(spawn_wait(pid) == 0);
	CHECK(word_load(WORD_REFUSED) == 0 && word_load(WORD_OTHER) == 0);
	collector_stop();
}

static int event_count(const void *row, void *count)
{
	const struct proto_event *event = row;

	*(unsigned *)count += event->type == EVENT_RATE && strstr(event->text, "reg_mr") != NULL;
	return 0;
}

static unsigned rate_events(void)
{
	char problem[PROBLEM_SIZE];
	unsigned count = 0;

	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &(struct proto_choose){ 0 },
			 event_count, &count, COLLECTOR_PATIENCE_MS, problem) >= 0,
	      "%s", problem);
	return count;
}

/* Refused at once, or after the longest wait; counted, and told as an event. */
static void denied(void)
{
	pid_t pid;

	words_clear();
	collector_fresh("[default]\nrate.reg_mr = 1/s burst 5\nrate_action = deny\n", "");
	pid = spawn_start("calls:5w", SETTINGS);
	NEED(word_load(WORD_READY) == 1);
	CHECK(rates_of(0).row[0].refused == 1 && rates_of(pid).row[0].refused == 1 &&
	      rates_of(0).row[0].throttled == 0);
	EVENTUALLY(rate_events() == 1);
	stop(pid);
	EVENTUALLY(rates_of(-1).count == 0);
	CHECK(rates_of(0).row[0].refused == 1, "the counters of an ended process are lost");
	CHECK(collector_set("default", "rate_action = throttle\nmax_delay = 20ms") == 0);
	pid = spawn_start("calls:0w", SETTINGS);
	NEED(word_load(WORD_READY) == 2);
	CHECK(rates_of(pid).row[0].refused == 1 && rates_of(pid).row[0].throttled >= 1 &&
	      rates_of(pid).row[0].throttled_ns >= 20000000);
	stop(pid);
	collector_stop();
}

/* The burst is spent, its process and the collector are killed: the next of both have none. */
static void restarted(void)
{
	double begun = seconds_now();
	pid_t pid;

	words_clear();
	collector_fresh("[default]\nrate.reg_mr = 1/s burst 20\nrate_action = deny\n", "");
	pid = spawn_start("calls:20w", SETTINGS);
	NEED(word_load(WORD_READY) == 1);
	for (unsigned round = 2; round < 5; round++) {
		collector_kill();
		stop(pid);
		collector_start("");
		pid = spawn_start("calls:0+w", SETTINGS);
		NEED(word_load(WORD_READY) == round);
		within(word_load(WORD_CALLS), begun, 1, 20, 0);
	}
	stop(pid);
	collector_stop();
}

/* What frees is delayed, also by "deny", and then passes: it is never counted as refused. */
static void frees(void)
{
	struct rate_rows rows;
	pid_t pid;

	words_clear();
	collector_fresh("[default]\nrate.dereg_mr = 1/s burst 1\nrate_action = deny\n"
			"max_delay = 10ms\n",
			"");
	pid = spawn_start("loop", SETTINGS);
	word_store(WORD_GO, 1);
	NEED(word_load(WORD_CALLS) > 20);
	rows = rates_of(pid);
	CHECK(rows.count == 1 && rows.row[0].class == RATE_dereg_mr && rows.row[0].refused == 0 &&
		      rows.row[0].throttled > 0 && rows.row[0].throttled_ns >= 10000000,
	      "%u rows, %llu refused, %llu throttled", rows.count,
	      (unsigned long long)rows.row[0].refused, (unsigned long long)rows.row[0].throttled);
	word_store(WORD_GO, 3);
	CHECK(spawn_wait(pid) == 0);
	CHECK(word_load(WORD_REFUSED) == 0 && word_load(WORD_OTHER) == 0);
	collector_stop();
}

/* Each process has its own; the burst of one is not the other's. */
static void processes(void)
{
	words_clear();
	collector_fresh("[default]\nprocess.rate.reg_mr = 1/s burst 5\nrate_action = deny\n", "");
	for (unsigned i = 1; i <= 3; i++) {
		spawn_start("calls:5w", SETTINGS);
		NEED(word_load(WORD_READY) == i);
	}
	collector_stop();
}

static void tolerant(void)
{
	pid_t pid;

	words_clear();
	collector_fresh("[default]\nmode = warn\nrate.reg_mr = 1/s burst 5\nrate_action = deny\n",
			"");
	pid = spawn_start("calls:all50w", SETTINGS);
	NEED(word_load(WORD_READY) == 1);
	CHECK(rates_of(pid).row[0].refused == 0 && rates_of(pid).row[0].tolerated > 0);
	stop(pid);
	collector_stop();
}

static void drive(void)
{
	RUN(shared);
	RUN(turns);
	RUN(moves);
	RUN(changes);
	RUN(denied);
	RUN(restarted);
	RUN(frees);
	RUN(processes);
	RUN(tolerant);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "loop", member_loop },
		{ "swaps", member_swaps },
		{ "calls", member_calls },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
