/* SPDX-License-Identifier: MIT */
/*
 * A program of upgrades.sh: it makes queue pairs as the lines on its standard input say, and
 * answers each line with one. What it holds also stands in a file that all holders of a tenant map,
 * added after an object is made and taken off before it is destroyed: so the sum there is never
 * more than what exists, and one over the limit is a fault.
 *
 *   make N    tries to make N objects            answer: how many were made
 *   drop N    destroys N objects                 answer: how many were destroyed
 *   churn     destroys and makes objects, over the whole range, until the next line
 *                                                answer: rounds, refusals, and what it holds
 *   quit      ends                               no answer
 */
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

#include <stdbool.h>

#include "fixture.h"

enum { MOST = 64 };

struct sum {
	uint64_t held, peak;
};

static struct fixture fixture;
static struct ibv_qp *held[MOST];
static unsigned count;
static struct sum *sum;

static void sum_add(void)
{
	uint64_t now = __atomic_add_fetch(&sum->held, 1, __ATOMIC_SEQ_CST);
	uint64_t peak = __atomic_load_n(&sum->peak, __ATOMIC_SEQ_CST);

	while (peak < now && !__atomic_compare_exchange_n(&sum->peak, &peak, now, false,
							  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static bool holder_make(void)
{
	if (count == MOST || !(held[count] = qp_make(&fixture, IBV_QPT_RC)))
		return false;
	count++;
	sum_add();
	return true;
}

static bool holder_drop(void)
{
	if (!count)
		return false;
	__atomic_sub_fetch(&sum->held, 1, __ATOMIC_SEQ_CST);
	return !ibv_destroy_qp(held[--count]);
}

static void holder_churn(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned long rounds = 0, refused = 0;
	unsigned level = count;

	while (poll(&input, 1, 1) == 0) {
		while (count)
			holder_drop();
		while (count < level)
			if (!holder_make()) {
				refused++;
				break;
			}
		rounds++;
	}
	printf("%lu %lu %u\n", rounds, refused, count);
}

/* holder FILE: the file of the tenant's sum */
int main(int argc, char **argv)
{
	char line[64], word[32];
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setvbuf(stdin, NULL, _IONBF, 0); /* poll looks at the descriptor */
	setvbuf(stdout, NULL, _IOLBF, 0);
	sum = fd < 0 ? MAP_FAILED :
		       mmap(NULL, sizeof(*sum), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (sum == MAP_FAILED) {
		fprintf(stderr, "%s: expected the file of the sum\n", argv[0]);
		return 2;
	}
	fixture = fixture_open();
	while (fgets(line, sizeof(line), stdin)) {
		unsigned number = 0, done = 0;

		if (sscanf(line, "%31s %u", word, &number) < 1 || !strcmp(word, "quit"))
			break;
		if (!strcmp(word, "churn")) {
			holder_churn();
			continue;
		}
		while (done < number && (!strcmp(word, "make") ? holder_make() : holder_drop()))
			done++;
		printf("%u\n", done);
	}
	return 0;
}
