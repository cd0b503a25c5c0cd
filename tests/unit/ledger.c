/* SPDX-License-Identifier: MIT */
/* The ledger from one process: limits, all or nothing, charges that wait, and leaving. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "family.h"
#include "harness.h"
#include "ledger/layout.h"
#include "ledger/ledger.h"
#include "ledger/shmfile.h"
#include "ledger/view.h"

static struct ledger_limits limits;
static struct ledger ledger;
static struct ledger_refusal refusal;
static const struct log no_log;
static unsigned device;

static void join(struct ledger *member)
{
	const struct ledger_options options = {
		.name = shm_name(), .mode = 0600, .limits = &limits, .log = &no_log,
	};
	char problem[PROBLEM_SIZE] = "";

	CHECK(ledger_open(member, &options, problem) == 0, "%s", problem);
}

static uint64_t summed(enum kind kind)
{
	return ledger.embedded.header->used[kind];
}

static void limits_of_each_scope(void)
{
	CHECK(ledger_charge(&ledger, device, &COST1(qp, 5), &refusal) == 0);
	CHECK(ledger_charge(&ledger, device, &COST1(qp, 1), &refusal) == LEDGER_REFUSED);
	CHECK(refusal.scope == SCOPE_PROCESS && refusal.kind == KIND_qp && refusal.used == 5 &&
	      refusal.limit == 5 && refusal.wanted == 1);
	CHECK(ledger_charge(&ledger, device, &COST1(mr, 8), &refusal) == LEDGER_REFUSED &&
	      refusal.scope == SCOPE_DEVICE && refusal.limit == 7);
	CHECK(ledger_charge(&ledger, LEDGER_NAMELESS, &COST1(mr, 10), &refusal) == LEDGER_REFUSED &&
	      refusal.scope == SCOPE_HOST && refusal.limit == 9);
	CHECK(ledger_charge_forced(&ledger, device, &COST1(qp, 3)) == 0 && ledger_used(&ledger, KIND_qp) == 8);
	/* Over its limit already, but of this kind nothing is wanted. */
	CHECK(ledger_charge(&ledger, device, &COST2(qp, 0, pd, 1), &refusal) == 0);
	ledger_refund(&ledger, device, &COST2(qp, 8, pd, 1));
	CHECK(ledger_used(&ledger, KIND_qp) == 0 && ledger_used(&ledger, KIND_pd) == 0);
}

static void all_or_nothing(void)
{
	const struct cost cost = COST3(send_wr, 100, recv_wr, 50, qp, 6);

	CHECK(ledger_charge(&ledger, device, &cost, &refusal) == LEDGER_REFUSED &&
	      refusal.kind == KIND_qp);
	CHECK(ledger_used(&ledger, KIND_send_wr) == 0 && ledger_used(&ledger, KIND_recv_wr) == 0);
	CHECK(summed(KIND_send_wr) == 0 && summed(KIND_recv_wr) == 0 && summed(KIND_qp) == 0);
	/* The largest amount there may be meets every finite limit, and no sum wraps around. */
	CHECK(ledger_charge(&ledger, device, &COST1(qp, COST_MOST), &refusal) == LEDGER_REFUSED);
	CHECK(ledger_charge(&ledger, device, &COST1(mr_bytes, COST_MOST), &refusal) == 0);
	ledger_refund(&ledger, device, &COST1(mr_bytes, COST_MOST));
}

static void wait_word(uint64_t value)
{
	EVENTUALLY(__atomic_load_n(shared_word(0), __ATOMIC_SEQ_CST) == value);
}

/* Another process, which joined before the first one gave back what this one will need. */
static void neighbour(void)
{
	static struct ledger other;
	unsigned before = checks_failed();

	join(&other);
	*shared_word(0) = 1;
	wait_word(2);
	CHECK(ledger_charge(&other, device, &COST1(mr, 7), &refusal) == 0, "noticed before a refusal");
	ledger_refund(&other, device, &COST1(mr, 7));
	ledger_close(&other);
	_exit(checks_failed() != before);
}

/* Sums lag behind refunds, but no refusal comes of it. */
static void noticing(void)
{
	pid_t pid = family_fork();

	if (pid == 0)
		neighbour();
	wait_word(1);
	CHECK(ledger_charge(&ledger, device, &COST1(mr, 7), &refusal) == 0);
	ledger_refund(&ledger, device, &COST1(mr, 7));
	CHECK(summed(KIND_mr) == 7, "not noticed yet");
	*shared_word(0) = 2;
	CHECK(spawn_wait(pid) == 0);
	CHECK(summed(KIND_mr) == 0);
}

/* Charged in our own memory only, and given back before it was written. */
static void deferring(void)
{
	ledger_defer_charge(&ledger, device, &COST1(mr, 2));
	ledger_refund(&ledger, device, &COST1(mr, 2));
	CHECK(ledger_charge(&ledger, device, &COST1(pd, 1), &refusal) == 0);
	CHECK(summed(KIND_mr) == 0 && ledger_used(&ledger, KIND_mr) == 0);
	ledger_defer_charge(&ledger, device, &COST1(mr, 2));
	CHECK(ledger_used(&ledger, KIND_mr) == 2, "whoever takes the lock next writes it");
	ledger_refund(&ledger, device, &COST2(mr, 2, pd, 1));
	CHECK(ledger_used(&ledger, KIND_mr) == 0);
}

/* A thread that is still at work when the process leaves has no part in the sums: its charge
 * takes a seat again, and without a free one it touches nothing. */
static void leaving(void)
{
	struct layout_seat *seat = &ledger.embedded.header->seat[ledger.embedded.seat];

	ledger_close(&ledger);
	CHECK(seat->state == SEAT_FREE);
	ledger_refund(&ledger, device, &COST1(qp, 1));
	CHECK(ledger_charge(&ledger, device, &COST1(qp, 1), &refusal) == 0 && summed(KIND_qp) == 1);
	CHECK(seat->state == SEAT_TAKEN && seat->pid == getpid());
	ledger_close(&ledger);
	CHECK(seat->state == SEAT_TAKEN, "who holds something does not leave");
	ledger_refund(&ledger, device, &COST1(qp, 1));
	ledger_close(&ledger);
	CHECK(seat->state == SEAT_FREE);
	for (unsigned i = 0; i < ledger.embedded.header->seats_high; i++)
		ledger.embedded.header->seat[i].state = SEAT_TAKEN; /* by others */
	CHECK(ledger_charge(&ledger, device, &COST1(qp, 1), &refusal) == -ESHUTDOWN);
	ledger_refund(&ledger, device, &COST1(qp, 1));
	for (unsigned i = 0; i < ledger.embedded.header->seats_high; i++)
		ledger.embedded.header->seat[i].state = SEAT_FREE;
	for (int kind = 0; kind < KIND_COUNT; kind++)
		CHECK(summed((enum kind)kind) == 0, "%s", kind_rows[kind].name);
	CHECK(pthread_mutex_trylock(&ledger.embedded.header->lock) == 0, "the lock is free");
	pthread_mutex_unlock(&ledger.embedded.header->lock);
}

static void many_devices(void)
{
	char name[16];

	for (unsigned i = 0; i < DEVICES_MAX + 5; i++) {
		int number;

		snprintf(name, sizeof(name), "device%u", i);
		number = ledger_device(&ledger, name);
		CHECK(number >= 0 && number < DEVICES_MAX && ledger_device(&ledger, name) == number);
		CHECK((number == LEDGER_NAMELESS) == (i >= DEVICES_MAX - 2), "%u: %d", i, number);
	}
}

static void driver(void)
{
	ledger_limits_clear(&limits);
	limits.process[KIND_qp] = 5;
	limits.host[KIND_mr] = 9;
	ledger_limits_device(&limits, "rxe0", 4)->limit[KIND_mr] = 7;
	join(&ledger);
	device = (unsigned)ledger_device(&ledger, "rxe0");
	CHECK(device == 1 && !strcmp(ledger_device_name(&ledger, device), "rxe0"));
	RUN(limits_of_each_scope);
	RUN(all_or_nothing);
	RUN(noticing);
	RUN(deferring);
	RUN(many_devices);
	RUN(leaving);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
