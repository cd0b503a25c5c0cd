/* SPDX-License-Identifier: MIT */
/*
 * A tenant that wants all there is: makes QPs whenever it may, and replaces one now and then, until
 * its input ends. With the library or without. It counts what it holds in a file that it shares
 * with others: after it was made and before it is destroyed, so that the file never says too much.
 * Usage: hungry FILE NUMBER LIMIT   counts in word NUMBER (from 1) and the sum in word 0; how often
 *                                   the sum was above LIMIT in the last word
 *        hungry FILE show           all words, as "SUM VIOLATIONS WORD1 WORD2 WORD3"
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 16, VIOLATIONS = WORDS - 1, QPS = 4096 };

static uint64_t *word;

static void count(unsigned number, int64_t change, uint64_t limit)
{
	__atomic_add_fetch(&word[number], (uint64_t)change, __ATOMIC_SEQ_CST);
	if (__atomic_add_fetch(&word[0], (uint64_t)change, __ATOMIC_SEQ_CST) > limit && change > 0)
		__atomic_add_fetch(&word[VIOLATIONS], 1, __ATOMIC_SEQ_CST);
}

static void words_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	if (fd >= 0 && !ftruncate(fd, WORDS * sizeof(*word)))
		word = mmap(NULL, WORDS * sizeof(*word), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!word || word == MAP_FAILED) {
		perror(path);
		exit(1);
	}
}

static bool input_ended(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	return poll(&input, 1, 2) > 0;
}

int main(int argc, char **argv)
{
	static struct ibv_qp *qp[QPS];
	struct ibv_qp_init_attr attributes = { .qp_type = IBV_QPT_RC,
					       .cap = { .max_send_wr = 1, .max_recv_wr = 1 } };
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	unsigned held = 0, number;
	uint64_t limit;

	if (argc < 3)
		return 2;
	words_open(argv[1]);
	if (!strcmp(argv[2], "show"))
		return printf("%llu %llu %llu %llu %llu\n", (unsigned long long)word[0],
			      (unsigned long long)word[VIOLATIONS], (unsigned long long)word[1],
			      (unsigned long long)word[2], (unsigned long long)word[3]) < 0;
	number = (unsigned)atoi(argv[2]);
	limit = strtoull(argv[3], NULL, 10);
	attributes.send_cq = attributes.recv_cq =
		pd ? ibv_create_cq(context, 1, NULL, NULL, 0) : NULL;
	if (!attributes.send_cq) {
		perror("the device");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	do {
		if (held) {
			count(number, -1, limit);
			if (ibv_destroy_qp(qp[--held]))
				perror("ibv_destroy_qp");
		}
		while (held < QPS && (qp[held] = ibv_create_qp(pd, &attributes))) {
			held++;
			count(number, 1, limit);
		}
		if (errno != EDQUOT)
			perror("ibv_create_qp");
	} while (!input_ended());
	count(number, -(int64_t)held, limit);
	return 0;
}
