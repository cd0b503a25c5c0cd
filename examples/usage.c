/* SPDX-License-Identifier: MIT */
/*
 * Prints how much each tenant uses of one kind of resource, and of how much.
 * Build: cc usage.c $(pkg-config --cflags --libs rdma_intercept_client)
 * Usage: usage [KIND]
 */
#include <inttypes.h>
#include <stdio.h>

#include <rdma_intercept/client.h>

static int print_row(const struct rdma_intercept_row *row, void *closure)
{
	unsigned kind = *(const unsigned *)closure;
	uint64_t used = rdma_intercept_row_number(row, kind, RDMA_INTERCEPT_USED);
	uint64_t limit = rdma_intercept_row_number(row, kind, RDMA_INTERCEPT_LIMIT);

	if (rdma_intercept_row_device(row)[0]) /* only totals */
		return 0;
	printf("%s: %" PRIu64, rdma_intercept_row_tenant(row), used);
	if (limit != RDMA_INTERCEPT_UNLIMITED)
		printf(" of %" PRIu64, limit);
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "qp";
	char problem[RDMA_INTERCEPT_PROBLEM];
	int kind = rdma_intercept_kind_find(name);
	unsigned number = (unsigned)kind;

	if (kind < 0) {
		fprintf(stderr, "usage: %s: unknown kind: expected one such as qp or mr\n", name);
		return 2;
	}
	if (rdma_intercept_read(NULL, RDMA_INTERCEPT_TENANT, NULL, print_row, &number, problem) < 0) {
		fprintf(stderr, "usage: %s\n", problem);
		return 1;
	}
	return 0;
}
