/* SPDX-License-Identifier: MIT */
/* See resources.h. */
#include "resources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CQ_DEPTH = 16, QP_DEPTH = 4 };

const char *resources_wanted(const char *argument)
{
	const char *wanted = argument ? argument : getenv("RDMA_TEST_DEVICE");

	return wanted && *wanted ? wanted : NULL;
}

static struct ibv_device *find(struct ibv_device **list, const char *wanted)
{
	while (*list && wanted && strcmp(ibv_get_device_name(*list), wanted))
		list++;
	return *list;
}

static int open_context(struct resources *resources, const char *wanted)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device *device;
	int result = 1;

	if (!list || !*list) {
		fprintf(stderr, "没有找到RDMA设备 (no RDMA device found)\n");
		result = EXIT_NO_DEVICE;
		goto out;
	}
	device = find(list, wanted);
	if (!device) {
		fprintf(stderr, "没有名为%s的RDMA设备 (no RDMA device of that name)\n", wanted);
		goto out;
	}
	resources->context = ibv_open_device(device);
	if (resources->context)
		result = 0;
	else
		fprintf(stderr, "无法打开设备%s: %s\n", ibv_get_device_name(device),
			strerror(errno));
out:
	if (list)
		ibv_free_device_list(list);
	return result;
}

int resources_open(struct resources *resources, const char *wanted)
{
	int result;

	*resources = (struct resources){ 0 };
	result = open_context(resources, wanted);
	if (result)
		return result;
	resources->pd = ibv_alloc_pd(resources->context);
	if (!resources->pd) {
		fprintf(stderr, "无法分配PD: %s\n", strerror(errno));
		goto failed;
	}
	resources->cq = ibv_create_cq(resources->context, CQ_DEPTH, NULL, NULL, 0);
	if (!resources->cq) {
		fprintf(stderr, "无法创建CQ: %s\n", strerror(errno));
		goto failed;
	}
	return 0;

failed:
	resources_close(resources);
	return 1;
}

struct ibv_qp *resources_qp(const struct resources *resources, enum ibv_qp_type type,
			    struct ibv_qp_cap *ret_cap)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = resources->cq,
		.recv_cq = resources->cq,
		.qp_type = type,
		.cap = { .max_send_wr = QP_DEPTH, .max_recv_wr = QP_DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(resources->pd, &attr);

	if (qp && ret_cap)
		*ret_cap = attr.cap;
	return qp;
}

static int gone(const char *what, int result)
{
	if (result)
		fprintf(stderr, "无法释放%s: %s\n", what, strerror(result < 0 ? errno : result));
	return result != 0;
}

int resources_destroy(struct ibv_qp **qps, unsigned count)
{
	int failed = 0;

	while (count--)
		if (qps[count])
			failed |= gone("QP", ibv_destroy_qp(qps[count]));
	return failed;
}

int resources_close(struct resources *resources)
{
	int failed = 0;

	if (resources->cq)
		failed |= gone("CQ", ibv_destroy_cq(resources->cq));
	if (resources->pd)
		failed |= gone("PD", ibv_dealloc_pd(resources->pd));
	if (resources->context)
		failed |= gone("context", ibv_close_device(resources->context));
	*resources = (struct resources){ 0 };
	return failed;
}
