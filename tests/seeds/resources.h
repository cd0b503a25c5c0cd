/* SPDX-License-Identifier: MIT */
/*
 * The device, protection domain and completion queue that each of the
 * programs here starts with, on whatever libibverbs the loader finds. Knows
 * nothing of the library under test.
 */
#ifndef SEEDS_RESOURCES_H
#define SEEDS_RESOURCES_H

#include <infiniband/verbs.h>

enum { EXIT_NO_DEVICE = 77 };

struct resources {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

/* The device that the user asks for: argument, or RDMA_TEST_DEVICE, or NULL for the first. */
const char *resources_wanted(const char *argument);

/* 0, or the exit status for main after a message on stderr. */
int resources_open(struct resources *resources, const char *wanted);

/* NULL with errno, as ibv_create_qp. cap gets what the device granted; it may be NULL. */
struct ibv_qp *resources_qp(const struct resources *resources, enum ibv_qp_type type,
			    struct ibv_qp_cap *ret_cap);

/* Destroys the QPs from the last to the first, NULL ones are left out. 0 or 1, with a message. */
int resources_destroy(struct ibv_qp **qps, unsigned count);

/* 0 or 1, with a message on stderr for each object that would not go. Empty ones are left out. */
int resources_close(struct resources *resources);

#endif
