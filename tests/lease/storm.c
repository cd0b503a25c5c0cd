/* SPDX-License-Identifier: MIT */
/*
 * A storm of SIGKILL on both sides of leases: clients of two tenants charge and refund at random
 * on two devices, against limits that they meet often, and are killed at random moments, and so is
 * the collector, which is started again at once. The test counts beside the ledger how much the
 * clients hold, which must never be above a limit; the books must be sound whenever the collector
 * was killed, and empty when all clients have ended. It ends after RDMA_INTERCEPT_TEST_KILLS kills
 * of clients, with one kill of the collector for every so many of them. With
 * RDMA_INTERCEPT_TEST_SHARES the tenants have weights and guarantees, and share nearly always; they
 * have rates, too, above which all clients of a tenant together never are, and paces, whose shares
 * never add up to more than the pace.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit.h"
#include "collector/members.h"
#include "family.h"
#include "harness.h"
#include "ledger/ledger.h"
#include "proto/client.h"
#include "storm.h"

enum {
	BURST_MAX = 8,	       /* kills at once */
	PAUSE_MAX_US = 3000,   /* between two bursts, several times if necessary: */
	PROGRESS_LEAST = 20,   /* until the clients had so many answers, or */
	PAUSES_MAX = 20,       /* so many times in an outage */
	OUTAGE_KILLS = 80,     /* kills of clients between two of the collector, on average */
	OUTAGE_SOON_KILLS = 8, /* between some: while it starts */
	CALM_KILLS = 2000,     /* then all clients are killed, and nothing may be left */
	KILLS_DEFAULT = 9000,
};

/* Of all clients of a tenant together. */
static const struct {
	struct rate rate; /* of create_qp */
	uint64_t pace;	  /* bytes a second */
} speeds[TENANTS] = { { { 2000, 400 }, 5000000 }, { { 3000, 300 }, 300000 } };

static const struct log no_log = { .level = LOG_OFF };
static pid_t clients[CLIENTS];

static void clients_start(void)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (clients[i])
			continue;
		clients[i] = family_fork();
		if (clients[i] == 0)
			storm_client_live(i);
	}
}

/* Waits for one that was sent a signal; whether it has ended. */
static bool client_has_ended(unsigned client, int flags)
{
	int status = 0;

	waitpid(clients[client], &status, flags);
	if (WIFSTOPPED(status))
		return false;
	if (!CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
			   (WIFEXITED(status) && WEXITSTATUS(status) == 0),
		   "a client ended with status %#x", (unsigned)status))
		storm_count(&storm_tally->faults);
	return true;
}

/*
 * Kills those of the set that are there; how many they were. They are stopped first, and their shares
 * dropped: otherwise what the collector gives to others at their death would be counted
 * twice for a moment.
 */
static unsigned clients_kill(unsigned set)
{
	unsigned kills = 0;

	for (unsigned i = 0; i < CLIENTS; i++) {
		if (!clients[i])
			set &= ~(1u << i);
		if (set >> i & 1)
			kill(clients[i], SIGSTOP);
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		if (set >> i & 1) {
			bool ended = client_has_ended(i, WUNTRACED);

			storm_share_drop(i);
			if (ended) {
				set &= ~(1u << i);
				clients[i] = 0;
			}
		}
	for (unsigned i = 0; i < CLIENTS; i++)
		if (set >> i & 1)
			kill(clients[i], SIGKILL);
	for (unsigned i = 0; i < CLIENTS; i++)
		if (set >> i & 1) {
			client_has_ended(i, 0);
			clients[i] = 0;
			kills++;
		}
	return kills;
}

static unsigned victims_choose(void)
{
	unsigned set = 1u << __atomic_load_n(&storm_tally->latest, __ATOMIC_RELAXED);

	for (int more = rand() % BURST_MAX; more; more--)
		set |= 1u << rand() % CLIENTS;
	return set;
}

/* ---- the collector */

static pid_t collector;
static char state_path[96];
static unsigned outages;

static void collector_exec(void)
{
	char program[256], policy[128];
	int fd = open(harness_path("collector.log"), O_WRONLY | O_CREAT | O_APPEND, 0600);

	dup2(fd, STDERR_FILENO);
	snprintf(program, sizeof(program), "%s/collector_server", getenv("BUILD_DIRECTORY"));
	snprintf(policy, sizeof(policy), "%s", harness_path("policy.conf"));
	execl(program, "collector_server", "--socket", storm_socket, "--state", state_path,
	      "--policy", policy, "--log-level", "warn", NULL);
	_exit(126);
}

static void collector_start(void)
{
	collector = family_fork();
	if (collector == 0)
		collector_exec();
}

static void collector_log_print(void)
{
	char line[512];
	FILE *file = fopen(harness_path("collector.log"), "r");
	unsigned lines = 0;

	while (file && fgets(line, sizeof(line), file) && lines++ < 10)
		fputs(line, stdout);
	if (file)
		fclose(file);
}

/* It ends when it is told to, and not otherwise. */
static void collector_look(void)
{
	int status;

	if (waitpid(collector, &status, WNOHANG) != collector)
		return;
	CHECK(false, "the collector ended with status %#x", (unsigned)status);
	storm_count(&storm_tally->faults);
	collector_log_print();
	collector_start();
}

static unsigned tenant_number(const struct frozen *frozen, unsigned tenant)
{
	char name[16];

	snprintf(name, sizeof(name), "t%u", tenant);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (!strcmp(frozen->file->tenant[i].name, name))
			return i;
	return BOOKS_TENANTS; /* it is not made yet, and has nothing */
}

static unsigned device_number(const struct frozen *frozen, unsigned device)
{
	for (unsigned i = 1; i < DEVICES_MAX; i++)
		if (!strcmp(frozen->file->device[i].name, storm_devices[device]))
			return i;
	return DEVICES_MAX;
}

static unsigned frozen_over(const struct frozen *frozen, enum scope_number scope, unsigned tenant,
			    unsigned device)
{
	unsigned over = 0;

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		wide granted = frozen_granted(frozen, tenant, device, kind);

		over += !CHECK(granted <= storm_limit[scope][kind], "%llu %s granted in scope %d of %llu",
			       (unsigned long long)granted, kind_rows[kind].name, (int)scope,
			       (unsigned long long)storm_limit[scope][kind]);
	}
	return over;
}

/* What the processes of a tenant may post together, as a killed collector left it: each lease has at
 * least 1 byte a second more than nothing. */
static unsigned frozen_paces_over(const struct frozen *frozen, unsigned tenant, uint64_t pace)
{
	uint64_t sum = 0, leases = 0;

	if (tenant >= FROZEN_TENANTS || !frozen->table[tenant])
		return 0;
	for (unsigned i = 0; i < frozen->file->leases_high; i++) {
		const struct book_lease *row = &frozen->file->lease[i];

		if (row->state != BOOK_TAKEN || frozen->file->member[row->member].tenant != tenant)
			continue;
		sum += frozen->table[tenant]->row[i].share.bytes;
		leases++;
	}
	return !CHECK(sum <= pace + 2 * leases, "%llu leases may post %llu bytes/s of %llu",
		      (unsigned long long)leases, (unsigned long long)sum,
		      (unsigned long long)pace);
}

/* The books as a killed collector left them. */
static void books_look(void)
{
	struct frozen frozen = { 0 };
	unsigned bad;

	frozen_map(&frozen, state_path);
	if (!frozen.file)
		return;
	bad = frozen_faults(&frozen) + frozen_over(&frozen, HOST, BOOKS_NOBODY, BOOKS_NOBODY);
	for (unsigned i = 0; i < DEVICES; i++)
		bad += frozen_over(&frozen, ON_DEVICE + i, BOOKS_NOBODY, device_number(&frozen, i));
	for (unsigned i = 0; i < storm_tenants; i++)
		bad += frozen_over(&frozen, OF_TENANT + i, tenant_number(&frozen, i), BOOKS_NOBODY);
	for (unsigned i = 0; i < storm_tenants; i++)
		if (storm_rate[i].per_second)
			bad += frozen_paces_over(&frozen, tenant_number(&frozen, i),
						 speeds[i].pace);
	storm_tally->faults += bad;
	frozen_unmap(&frozen);
}

static void collector_kill(void)
{
	kill(collector, SIGKILL);
	waitpid(collector, NULL, 0);
	outages++;
	books_look();
	collector_start();
}

/* Kills of clients until the next outage: now and then before the collector has even started. */
static unsigned outage_pause(void)
{
	if (rand() % 8 == 0)
		return (unsigned)rand() % OUTAGE_SOON_KILLS;
	return OUTAGE_KILLS / 2 + (unsigned)rand() % OUTAGE_KILLS;
}

/* ---- no client is left */

static int row_first(const void *row, void *closure)
{
	memcpy(closure, row, sizeof(struct proto_row));
	return 1;
}

static bool collector_says_nothing(void)
{
	const struct proto_choose all = { 0 };
	char problem[PROBLEM_SIZE];
	struct proto_row host;

	if (proto_rows(storm_socket, MESSAGE_GET_STATS, &all, row_first, &host, 1000, problem) < 0 ||
	    host.processes)
		return false;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (host.granted[kind] || host.used[kind])
			return false;
	return true;
}

/* All clients are killed: the collector must give back all they had, and the count begins anew. */
static unsigned calm(void)
{
	struct waiting waiting = { .for_what = "the collector counts nothing any more" };
	unsigned kills = clients_kill((1u << CLIENTS) - 1);

	while (!collector_says_nothing()) {
		collector_look();
		if (!waiting_goes_on(&waiting)) {
			CHECK(false, "the collector still counts something, without any client");
			storm_count(&storm_tally->faults);
			collector_log_print();
			break;
		}
	}
	memset(storm_tally->held, 0, sizeof(storm_tally->held));
	return kills;
}

/* After the collector's orderly end: nothing is left in the books. */
static unsigned books_left(void)
{
	static struct books books;
	struct members members;
	char problem[PROBLEM_SIZE] = "";
	unsigned left;

	if (!CHECK(books_open(&books, state_path, &no_log, problem) == 0, "%s", problem))
		return 1;
	left = audit_nothing(&books);
	if (!CHECK(members_init(&members, &books) == 0))
		return left + 1;
	members_attach(&members);
	while (members_are_sought(&members))
		members_search(&members, UINT64_MAX);
	left += audit_nothing(&books);
	members_close(&members);
	books_close(&books);
	return left;
}

/* ---- the storm */

static uint64_t answers(void)
{
	return __atomic_load_n(&storm_tally->charges, __ATOMIC_RELAXED) +
	       __atomic_load_n(&storm_tally->refusals, __ATOMIC_RELAXED) +
	       __atomic_load_n(&storm_tally->joins, __ATOMIC_RELAXED);
}

/* Lets the clients work for a moment, which is longer on a busy machine. */
static void progress_wait(void)
{
	uint64_t before = answers();

	for (unsigned pauses = 0; pauses < PAUSES_MAX; pauses++) {
		usleep((useconds_t)(rand() % PAUSE_MAX_US));
		if (answers() >= before + PROGRESS_LEAST)
			return;
	}
}

static bool speeds_hold(double since)
{
	for (unsigned i = 0; i < storm_tenants; i++)
		if (!storm_rate_holds(i, since))
			storm_count(&storm_tally->faults);
	return !storm_tally->faults;
}

/* How much of its rate each tenant used. */
static void speeds_print(double since)
{
	for (unsigned i = 0; i < storm_tenants && storm_rate[i].per_second; i++)
		printf("tenant %u: %.0f calls/s of %u/s\n", i,
		       (double)storm_tally->calls[i] / (seconds_now() - since),
		       storm_rate[i].per_second);
}

static void storm(unsigned wanted)
{
	unsigned kills = 0, calms = 0, next_outage = OUTAGE_KILLS, next_calm = CALM_KILLS;
	double start = seconds_now();

	collector_start();
	while (kills < wanted && speeds_hold(start) && !storm_tally->excesses) {
		clients_start();
		collector_look();
		if (kills >= next_outage) {
			collector_kill();
			next_outage = kills + outage_pause();
		}
		progress_wait();
		kills += clients_kill(victims_choose());
		if (kills >= next_calm) {
			kills += calm();
			calms++;
			next_calm = kills + CALM_KILLS;
		}
	}
	clients_start();
	kills += calm();
	speeds_hold(start);
	speeds_print(start);
	printf("%u clients and %u collectors killed, %u calms; %.1f s\n", kills, outages,
	       calms + 1, seconds_now() - start);
	CHECK(kills < wanted || outages >= wanted / (2 * OUTAGE_KILLS), "%u collectors killed",
	      outages);
}

static unsigned collector_end(void)
{
	int status = -1;

	kill(collector, SIGTERM);
	waitpid(collector, &status, 0);
	return !CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		      "the collector ended with status %#x", (unsigned)status);
}

/* One row for each limit: the line of the policy says the same. */
static const struct rule {
	enum scope_number scope;
	enum kind kind;
	uint64_t most;
	const char *key;
} rules[] = {
	{ HOST, KIND_qp, 36, "qp" },
	{ HOST, KIND_mr_bytes, 4 << 20, "mr_bytes" },
	{ ON_DEVICE, KIND_qp, 22, "device.fake0.qp" },
	{ ON_DEVICE + 1, KIND_recv_wr, 2500, "device.fake1.recv_wr" },
	{ OF_TENANT, KIND_qp, 20, "qp" },
	{ OF_TENANT, KIND_mr, 12, "mr" },
	{ OF_TENANT + 1, KIND_qp, 24, "qp" },
	{ OF_TENANT + 1, KIND_send_wr, 3000, "send_wr" },
};

static void rules_write(FILE *file, unsigned first, unsigned last)
{
	for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].scope < first || rules[i].scope > last)
			continue;
		storm_limit[rules[i].scope][rules[i].kind] = rules[i].most;
		fprintf(file, "%s = %llu\n", rules[i].key, (unsigned long long)rules[i].most);
	}
}

/* Limits of tenants change all the time then: they are computed from what the tenants want. */
static bool shares_wanted(void)
{
	return getenv("RDMA_INTERCEPT_TEST_SHARES");
}

static void speeds_write(FILE *file, unsigned tenant)
{
	storm_rate[tenant] = speeds[tenant].rate;
	fprintf(file, "rate.create_qp = %u/s burst %u\npace.bytes = %llu/s\n",
		storm_rate[tenant].per_second, storm_rate[tenant].burst,
		(unsigned long long)speeds[tenant].pace);
}

static void policy_make(void)
{
	FILE *file = fopen(harness_path("policy.conf"), "w");

	if (!file)
		abort();
	memset(storm_limit, 0xff, sizeof(storm_limit));
	fprintf(file, "[host]\n%s", shares_wanted() ? "pressure = 30%\n" : "");
	rules_write(file, HOST, OF_TENANT - 1);
	for (unsigned i = 0; i < storm_tenants; i++) {
		fprintf(file, "[tenant t%u]\nmatch = uid=%u\n", i,
			storm_tenants > 1 ? FIRST_UID + i : (unsigned)geteuid());
		rules_write(file, OF_TENANT + i, OF_TENANT + i);
		if (!shares_wanted())
			continue;
		fprintf(file, "weight = %u\nguarantee.qp = %u\nguarantee.device.fake0.qp = 2\n",
			1 + i, 4 + i);
		speeds_write(file, i);
	}
	fclose(file);
}

static unsigned kills_wanted(void)
{
	const char *wish = getenv("RDMA_INTERCEPT_TEST_KILLS");

	return wish && atoi(wish) > 0 ? (unsigned)atoi(wish) : KILLS_DEFAULT;
}

static void storm_of_kills(void)
{
	unsigned left;

	storm_tally = mmap(NULL, sizeof(*storm_tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (storm_tally == MAP_FAILED)
		abort();
	srand((unsigned)getpid());
	storm_tenants = geteuid() == 0 ? TENANTS : 1;
	snprintf(storm_socket, sizeof(storm_socket), "%s", harness_path("collector.sock"));
	snprintf(state_path, sizeof(state_path), "%s", harness_path("state"));
	/* The tenants' users must come to the socket. */
	if (chmod(harness_path("."), 0711))
		abort();
	policy_make();
	storm(kills_wanted());
	left = collector_end() + books_left();
	printf("%llu joins, %llu charges, %llu refunds, %llu refusals, %llu throttled, "
	       "%llu unanswered; %llu times over a limit, %llu faults, %u left\n",
	       (unsigned long long)storm_tally->joins, (unsigned long long)storm_tally->charges,
	       (unsigned long long)storm_tally->refunds, (unsigned long long)storm_tally->refusals,
	       (unsigned long long)storm_tally->throttled,
	       (unsigned long long)storm_tally->unanswered, (unsigned long long)storm_tally->excesses,
	       (unsigned long long)storm_tally->faults, left);
	if (left || storm_tally->faults)
		collector_log_print();
	CHECK(left == 0 && storm_tally->excesses == 0 && storm_tally->faults == 0);
	CHECK(storm_tally->charges > 0 && storm_tally->refusals > 0);
	CHECK(storm_tally->throttled > 0 || !shares_wanted());
}

static void driver(void)
{
	RUN(storm_of_kills);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
