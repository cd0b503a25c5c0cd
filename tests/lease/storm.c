/* SPDX-License-Identifier: MIT */
/*
 * A storm of SIGKILL on both sides of leases: clients of two tenants charge and refund at random
 * on two devices, against limits that they meet often, and are killed at random moments, and so is
 * the collector, which is started again at once. The test counts beside the ledger how much the
 * clients hold, which must never be above a limit; the books must be sound whenever the collector
 * was killed, and empty when all clients have ended. It ends after RDMA_INTERCEPT_TEST_KILLS kills
 * of clients, with one kill of the collector for every so many of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit.h"
#include "collector/members.h"
#include "family.h"
#include "harness.h"
#include "ledger/ledger.h"
#include "proto/client.h"

enum {
	CLIENTS = 24,
	TENANTS = 2,
	FIRST_UID = 61000, /* of the tenants, where we are root; otherwise there is one tenant */
	DEVICES = 2,
	HELD_MAX = 6,	     /* charges that a client holds at once */
	OPERATIONS_MAX = 30, /* before it rests */
	REST_MAX_US = 2000,
	CLIENT_NICE = 5,       /* or the killer would mostly wait for a processor */
	BURST_MAX = 8,	       /* kills at once */
	PAUSE_MAX_US = 3000,   /* between two bursts, several times if necessary: */
	PROGRESS_LEAST = 20,   /* until the clients had so many answers, or */
	PAUSES_MAX = 20,       /* so many times in an outage */
	OUTAGE_KILLS = 80,     /* kills of clients between two of the collector, on average */
	OUTAGE_SOON_KILLS = 8, /* between some: while it starts */
	CALM_KILLS = 2000,     /* then all clients are killed, and nothing may be left */
	KILLS_DEFAULT = 9000,
};

static const double patience_seconds = 0.9; /* less than what a client waits in an outage */

/* ---- limits, and what is held beside them */

enum scope_number {
	HOST,
	ON_DEVICE,
	OF_TENANT = ON_DEVICE + DEVICES,
	LIMITED_SCOPES = OF_TENANT + TENANTS
};

static uint64_t limit[LIMITED_SCOPES][KIND_COUNT];
static unsigned tenants = TENANTS;

static const char *const device_names[DEVICES] = { "fake0", "fake1" };

static struct tally {
	/* Counted after a charge and before a refund, so never too much. */
	int64_t held[LIMITED_SCOPES][KIND_COUNT];
	struct {
		int64_t share[DEVICES][KIND_COUNT];
	} client[CLIENTS];
	uint64_t joins, charges, refusals, refunds, unanswered, excesses, faults;
	unsigned latest; /* the client that called the ledger last: likely to be inside it */
} * tally;

static void count(uint64_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
}

static unsigned below(unsigned *seed, unsigned most)
{
	return (unsigned)rand_r(seed) % most;
}

static void held_add(enum scope_number scope, unsigned kind, int64_t amount)
{
	int64_t now = __atomic_add_fetch(&tally->held[scope][kind], amount, __ATOMIC_SEQ_CST);

	if (amount > 0 && now > 0 && (uint64_t)now > limit[scope][kind]) {
		count(&tally->excesses);
		CHECK(false, "%lld %s held in scope %d, %llu allowed", (long long)now,
		      kind_rows[kind].name, (int)scope, (unsigned long long)limit[scope][kind]);
	}
}

static void scopes_add(unsigned tenant, unsigned device, unsigned kind, int64_t amount)
{
	held_add(HOST, kind, amount);
	held_add(ON_DEVICE + device, kind, amount);
	held_add(OF_TENANT + tenant, kind, amount);
}

/* The share first: who is killed in between is counted too low. */
static void hold(unsigned client, unsigned device, const struct cost *cost)
{
	for (unsigned i = 0; i < cost->count; i++) {
		tally->client[client].share[device][cost->kind[i]] += (int64_t)cost->amount[i];
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		scopes_add(client % tenants, device, cost->kind[i], (int64_t)cost->amount[i]);
	}
}

/* Likewise, the share last. */
static void let_go(unsigned client, unsigned device, const struct cost *cost)
{
	for (unsigned i = 0; i < cost->count; i++) {
		scopes_add(client % tenants, device, cost->kind[i], -(int64_t)cost->amount[i]);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		tally->client[client].share[device][cost->kind[i]] -= (int64_t)cost->amount[i];
	}
}

/* Of a client that stands still for good. */
static void share_drop(unsigned client)
{
	for (unsigned device = 0; device < DEVICES; device++)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
			int64_t *share = &tally->client[client].share[device][kind];

			if (*share)
				scopes_add(client % tenants, device, kind, -*share);
			*share = 0;
		}
}

/* ---- a client */

static struct ledger ledger;
static struct ledger_limits no_limits;
static const struct log no_log = { .level = LOG_OFF };
static char socket_path[PROTO_PATH];
static pid_t clients[CLIENTS];

struct holding {
	unsigned device;
	struct cost cost;
};

static struct holding holding_invent(unsigned *seed)
{
	struct holding holding = { .device = below(seed, DEVICES) };

	if (below(seed, 2))
		holding.cost = COST3(qp, 1 + below(seed, 3), send_wr, below(seed, 300), recv_wr,
				     below(seed, 300));
	else
		holding.cost = COST2(mr, 1, mr_bytes, 4096u * (1 + below(seed, 64)));
	return holding;
}

/* A client without an answer must have waited for it; then the client ends. Its share is dropped
 * first, since the collector gives it to others at once. */
static void unanswered(unsigned client, double since, const char *what)
{
	count(&tally->unanswered);
	if (!CHECK(seconds_now() - since >= patience_seconds, "%s: unanswered after %.3f s", what,
		   seconds_now() - since))
		count(&tally->faults);
	share_drop(client);
	_exit(0);
}

/* A refusal must be right by its own numbers. */
static bool charge(unsigned client, const struct holding *holding)
{
	struct ledger_refusal refusal;
	double before = seconds_now();
	int result;

	__atomic_store_n(&tally->latest, client, __ATOMIC_RELAXED);
	result = ledger_charge(&ledger, 1 + holding->device, &holding->cost, &refusal);
	if (result == LEDGER_REFUSED) {
		count(&tally->refusals);
		if (!CHECK(refusal.used <= refusal.limit &&
				   refusal.used + refusal.wanted > refusal.limit,
			   "refused %s: %llu used, %llu wanted, %llu allowed",
			   kind_rows[refusal.kind].name, (unsigned long long)refusal.used,
			   (unsigned long long)refusal.wanted, (unsigned long long)refusal.limit))
			count(&tally->faults);
		return false;
	}
	if (result == LEDGER_UNANSWERED)
		unanswered(client, before, "a charge");
	if (!CHECK(result == 0, "charge: %d", result))
		count(&tally->faults);
	hold(client, holding->device, &holding->cost);
	count(&tally->charges);
	return true;
}

static void join(unsigned client)
{
	const struct ledger_options options = {
		.transport = TRANSPORT_LEASE,
		.socket = socket_path,
		.limits = &no_limits,
		.log = &no_log,
	};
	char problem[PROBLEM_SIZE] = "";
	double before = seconds_now();

	if (ledger_open(&ledger, &options, problem) < 0)
		unanswered(client, before, problem);
	for (unsigned i = 0; i < DEVICES; i++)
		if (!CHECK(ledger_device(&ledger, device_names[i]) == (int)(1 + i)))
			count(&tally->faults);
	count(&tally->joins);
}

/* Works until it is killed. */
static void client_live(unsigned client)
{
	unsigned seed = (unsigned)getpid(), holds = 0;
	uid_t uid = FIRST_UID + client % tenants;
	struct holding held[HELD_MAX];

	if (tenants > 1 && setresuid(uid, uid, uid))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user's process has lost it */
	setpriority(PRIO_PROCESS, 0, CLIENT_NICE);
	join(client);
	for (;;) {
		for (unsigned left = below(&seed, OPERATIONS_MAX); left; left--) {
			if (holds < HELD_MAX && below(&seed, 2)) {
				held[holds] = holding_invent(&seed);
				holds += charge(client, &held[holds]);
			} else if (holds) {
				holds--;
				let_go(client, held[holds].device, &held[holds].cost);
				ledger_refund(&ledger, 1 + held[holds].device, &held[holds].cost);
				count(&tally->refunds);
			}
		}
		usleep(below(&seed, REST_MAX_US));
	}
}

static void clients_start(void)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (clients[i])
			continue;
		clients[i] = family_fork();
		if (clients[i] == 0)
			client_live(i);
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
		count(&tally->faults);
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

			share_drop(i);
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
	unsigned set = 1u << __atomic_load_n(&tally->latest, __ATOMIC_RELAXED);

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
	execl(program, "collector_server", "--socket", socket_path, "--state", state_path,
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
	count(&tally->faults);
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
		if (!strcmp(frozen->file->device[i].name, device_names[device]))
			return i;
	return DEVICES_MAX;
}

static unsigned frozen_over(const struct frozen *frozen, enum scope_number scope, unsigned tenant,
			    unsigned device)
{
	unsigned over = 0;

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		wide granted = frozen_granted(frozen, tenant, device, kind);

		over += !CHECK(granted <= limit[scope][kind], "%llu %s granted in scope %d of %llu",
			       (unsigned long long)granted, kind_rows[kind].name, (int)scope,
			       (unsigned long long)limit[scope][kind]);
	}
	return over;
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
	for (unsigned i = 0; i < tenants; i++)
		bad += frozen_over(&frozen, OF_TENANT + i, tenant_number(&frozen, i), BOOKS_NOBODY);
	tally->faults += bad;
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

	if (proto_rows(socket_path, MESSAGE_GET_STATS, &all, row_first, &host, 1000, problem) < 0 ||
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
			count(&tally->faults);
			collector_log_print();
			break;
		}
	}
	memset(tally->held, 0, sizeof(tally->held));
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
	return __atomic_load_n(&tally->charges, __ATOMIC_RELAXED) +
	       __atomic_load_n(&tally->refusals, __ATOMIC_RELAXED) +
	       __atomic_load_n(&tally->joins, __ATOMIC_RELAXED);
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

static void storm(unsigned wanted)
{
	unsigned kills = 0, calms = 0, next_outage = OUTAGE_KILLS, next_calm = CALM_KILLS;
	double start = seconds_now();

	collector_start();
	while (kills < wanted && !tally->faults && !tally->excesses) {
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
		limit[rules[i].scope][rules[i].kind] = rules[i].most;
		fprintf(file, "%s = %llu\n", rules[i].key, (unsigned long long)rules[i].most);
	}
}

static void policy_make(void)
{
	FILE *file = fopen(harness_path("policy.conf"), "w");

	if (!file)
		abort();
	memset(limit, 0xff, sizeof(limit));
	fprintf(file, "[host]\n");
	rules_write(file, HOST, OF_TENANT - 1);
	for (unsigned i = 0; i < tenants; i++) {
		fprintf(file, "[tenant t%u]\nmatch = uid=%u\n", i,
			tenants > 1 ? FIRST_UID + i : (unsigned)geteuid());
		rules_write(file, OF_TENANT + i, OF_TENANT + i);
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

	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (tally == MAP_FAILED)
		abort();
	srand((unsigned)getpid());
	tenants = geteuid() == 0 ? TENANTS : 1;
	snprintf(socket_path, sizeof(socket_path), "%s", harness_path("collector.sock"));
	snprintf(state_path, sizeof(state_path), "%s", harness_path("state"));
	/* The tenants' users must come to the socket. */
	if (chmod(harness_path("."), 0711))
		abort();
	ledger_limits_clear(&no_limits);
	policy_make();
	storm(kills_wanted());
	left = collector_end() + books_left();
	printf("%llu joins, %llu charges, %llu refunds, %llu refusals, %llu unanswered; "
	       "%llu times over a limit, %llu faults, %u left\n",
	       (unsigned long long)tally->joins, (unsigned long long)tally->charges,
	       (unsigned long long)tally->refunds, (unsigned long long)tally->refusals,
	       (unsigned long long)tally->unanswered, (unsigned long long)tally->excesses,
	       (unsigned long long)tally->faults, left);
	if (left || tally->faults)
		collector_log_print();
	CHECK(left == 0 && tally->excesses == 0 && tally->faults == 0);
	CHECK(tally->charges > 0 && tally->refusals > 0);
}

static void driver(void)
{
	RUN(storm_of_kills);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
