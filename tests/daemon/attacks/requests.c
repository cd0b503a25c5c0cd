/* SPDX-License-Identifier: MIT */
/*
 * Requests that make no sense, and frames that are no requests: the collector refuses each by the
 * right error, and gives no number, name or memory away for them.
 */
#include "attack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ledger/ledger.h"

/* ---- requests */

/* Each differs from a valid request for one QP. */
static const struct nonsense {
	const char *problem;
	uint32_t row, count, kind[2];
	uint64_t total[2];
} nonsense[] = {
	{ "no kind", 0, 0, { KIND_qp }, { 1 } },
	{ "too many kinds", 0, COST_KINDS + 1, { KIND_qp }, { 1 } },
	{ "far too many kinds", 0, UINT32_MAX, { KIND_qp }, { 1 } },
	{ "a kind past the last", 0, 1, { KINDS_COUNTED }, { 1 } },
	{ "a kind far past it", 0, 1, { UINT32_MAX }, { 1 } },
	{ "a kind twice", 0, 2, { KIND_qp, KIND_qp }, { 1, QUOTA } },
	{ "a row past the last", DEVICES_MAX, 1, { KIND_qp }, { 1 } },
	{ "a row far past it", UINT32_MAX, 1, { KIND_qp }, { 1 } },
	{ "more than there can be", 0, 1, { KIND_qp }, { (1ull << 63) + 1 } },
	{ "all ones", 0, 1, { KIND_qp }, { UINT64_MAX } },
};

static int ask_nonsense(const struct member *member, const struct nonsense *nonsensical)
{
	struct proto_grow_request need = want(member, KIND_qp, 1);

	need.row = nonsensical->row;
	need.count = nonsensical->count;
	memcpy(need.kind, nonsensical->kind, sizeof(nonsensical->kind));
	memcpy(need.total, nonsensical->total, sizeof(nonsensical->total));
	return ask(&need);
}

static void needs(unsigned number)
{
	struct member member;
	struct proto_grow_request need = { .count = 1, .total = { 1 } };

	CHECK(ask(&need) == -ESTALE, "before HELLO");
	if (!CHECK(join(&member)))
		return;
	ready();
	while (going()) {
		for (unsigned i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
			CHECK(ask_nonsense(&member, &nonsense[i]) == -EINVAL, "%s",
			      nonsense[i].problem);
		need = want(&member, KIND_qp, 1ull << 63);
		CHECK(ask(&need) == PROTO_REFUSED, "the largest valid amount");
		need.cookie++;
		CHECK(ask(&need) == -ESTALE, "wrong cookie");
		/* This kind has no limit: the sum of many such amounts must not wrap around. */
		for (need = want(&member, KIND_ah, 1ull << 63); need.row < DEVICES_MAX;
		     need.row++)
			CHECK(ask(&need) == 0, "row %u", need.row);
		memset(&need, 0xff, sizeof(need));
		CHECK(ask(&need) == -ESTALE);
	}
}

/* ---- names of devices */

static void names(unsigned number)
{
	static const char *const odd[] = { ".",  "..",	     "../..", "a/b",
					   "\n", "\033[2J", "%s%n",  " " };
	struct member member;
	struct proto_grow_request need;
	unsigned seed = number;

	ready();
	while (going()) {
		if (!CHECK(join(&member)))
			return;
		need = want(&member, KIND_qp, 0);
		for (need.row = 0; need.row < DEVICES_MAX; need.row++) {
			unsigned which = (unsigned)rand_r(&seed);

			memset(need.device, 'x', sizeof(need.device)); /* without a final zero */
			if (which % 4 == 0)
				snprintf(need.device, sizeof(need.device), "%s",
					 odd[which / 4 % 8]);
			else
				snprintf(need.device, 17, "d%x", which);
			CHECK(ask(&need) == 0);
		}
		leave(&member);
	}
}

/* The collector still has a number for a device that the policy will name. */
static void names_after(void)
{
	struct proto_row row;
	pid_t child;

	CHECK(collector_set("tenant victim", "device.later0.qp = 2") == 0);
	child = split();
	if (child == 0) {
		unsigned device;

		victim_enter();
		device = victim_device("later0");
		CHECK(victim_charge(device) == 0 && victim_charge(device) == 0);
		CHECK(victim_charge(device) == LEDGER_REFUSED, "the limit has no effect");
		finish();
	}
	CHECK(reap(child) == 0);
	row = collector_tenant("victim");
	CHECK(row.limit[KIND_qp] == QUOTA);
	CHECK(collector_set("tenant victim", "device.later0.qp = unset") == 0);
}

/* ---- frames */

/* The collector answers by -EPROTO, or ends the connection. */
static void refused_frame(const char *problem, const void *bytes, size_t size)
{
	int fd = dial(), status;

	put(fd, bytes, size);
	shutdown(fd, SHUT_WR);
	status = hear(fd);
	CHECK(status == -EPROTO || status == 1, "%s: %d", problem, status);
	close(fd);
}

static void frames(unsigned number)
{
	static const uint32_t lengths[] = {
		0, 1, 23, 25, 4096, 4097, 1 << 20, INT32_MAX, UINT32_MAX
	};
	static const unsigned types[] = { 0, 14, 16, 99, 0x7fff, 0xffff };
	unsigned seed = number;
	char garbage[PROTO_REQUEST_MAX];

	ready();
	while (going()) {
		struct letter whole = letter(MESSAGE_STATUS, NULL), two[2] = { 0 };

		for (size_t i = 0; i < sizeof(garbage); i++)
			garbage[i] = (char)rand_r(&seed);
		refused_frame("garbage", garbage, sizeof(garbage));
		refused_frame("an empty frame", garbage, 0);
		refused_frame("half a header", &whole, sizeof(whole.header) / 2);
		for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			whole = letter(MESSAGE_STATUS, NULL);
			whole.header.length = lengths[i];
			refused_frame("length", &whole, sizeof(whole));
			memcpy(whole.body, garbage, sizeof(whole.body));
			refused_frame("length", &whole, sizeof(whole.header));
		}
		for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			whole = letter(MESSAGE_STATUS, NULL);
			whole.header.type = (uint16_t)types[i];
			refused_frame("type", &whole, sizeof(whole.header));
		}
		whole = letter(MESSAGE_STATUS, NULL);
		whole.header.kinds++;
		refused_frame("kinds", &whole, sizeof(whole.header));
		whole.header.kinds--;
		whole.header.version++;
		refused_frame("version", &whole, sizeof(whole.header));
		two[0] = two[1] = letter(MESSAGE_STATUS, NULL);
		memmove(two[0].body, &two[1].header, sizeof(two[1].header));
		refused_frame("two at once", two, 2 * sizeof(two[0].header));
	}
}

/* Connections that end at every moment, bytes one by one, requests whose reply is not read. */
static void hang_ups(unsigned number)
{
	struct proto_choose choose = { 0 };
	unsigned seed = number;

	ready();
	while (going()) {
		struct letter whole = letter(MESSAGE_HELLO, &(struct proto_hello){ 0 });
		size_t size = whole.header.length, half = (size_t)rand_r(&seed) % size;
		int fd = dial(), status;

		tell(fd, MESSAGE_GET_STATS, &choose);
		shutdown(fd, SHUT_RD);
		close(fd);
		fd = dial();
		tell(fd, MESSAGE_EVENTS, &choose);
		close(fd);
		fd = dial();
		put(fd, &whole, half);
		close(fd);
		fd = dial();
		shutdown(fd, SHUT_RDWR);
		close(fd);
		fd = dial();
		tell(fd, MESSAGE_HELLO, NULL);
		close(fd);
		fd = dial();
		for (size_t i = 0; i < size; i++)
			put(fd, (char *)&whole + i, 1);
		status = hear(fd);
		CHECK(status == 0, "byte by byte: %d", status);
		close(fd);
	}
}

/* Name, promise, processes, rounds, turns, slowdown, and what runs. */
static const struct attack attacks[] = {
	{ "needs", "each is refused by its own error number", 4,
	  200, 20, 50, needs, NULL, NULL },
	{ "names", "numbers are left for devices that exist", 4,
	  200, 10, 50, names, NULL, names_after },
	{ "frames", "the collector takes no broken message for a request", 4,
	  200, 20, 50, frames, NULL, NULL },
	{ "hang_ups", "a connection may end at any moment", 4,
	  200, 40, 50, hang_ups, NULL, NULL },
};

static void driver(void)
{
	attacks_run(attacks, COUNT_OF(attacks));
	stage_close();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
