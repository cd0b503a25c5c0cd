/* SPDX-License-Identifier: MIT */
/*
 * The documented test of sequential use under a limit of two QPs: what is
 * destroyed may be created again, round after round; a third one at the same
 * time may not.
 *
 * usage: test_sequential [device]
 * exit: 0 as said above, 1 otherwise, 77 no device
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "resources.h"

enum { LIMIT = 2, ROUNDS = 10 };

/* Fills the limit; 0 or 1. */
static int fill(const struct resources *resources, struct ibv_qp *qps[LIMIT + 1])
{
	for (int i = 0; i < LIMIT; i++) {
		qps[i] = resources_qp(resources, IBV_QPT_RC, NULL);
		if (!qps[i]) {
			printf("第%d个QP创建失败: %s\n", i + 1, strerror(errno));
			return 1;
		}
	}
	return 0;
}

static int empty(struct ibv_qp *qps[LIMIT + 1])
{
	int result = resources_destroy(qps, LIMIT + 1);

	memset(qps, 0, (LIMIT + 1) * sizeof(qps[0]));
	return result;
}

static int rounds(const struct resources *resources, struct ibv_qp *qps[LIMIT + 1])
{
	for (int round = 1; round <= ROUNDS; round++) {
		int failed;

		printf("第%d轮: 依次创建%d个QP...\n", round, LIMIT);
		failed = fill(resources, qps);
		failed |= empty(qps);
		if (failed) {
			printf("第%d轮失败 - 已释放的配额没有恢复\n", round);
			return 1;
		}
		printf("第%d轮: %d个QP已创建并销毁\n", round, LIMIT);
	}
	return 0;
}

static int one_too_many(const struct resources *resources, struct ibv_qp *qps[LIMIT + 1])
{
	if (fill(resources, qps))
		return 1;
	printf("%d个QP已创建，尝试创建第%d个QP（应该被拦截）...\n", LIMIT, LIMIT + 1);
	qps[LIMIT] = resources_qp(resources, IBV_QPT_RC, NULL);
	if (qps[LIMIT]) {
		printf("第%d个QP已创建 - 限制没有生效\n", LIMIT + 1);
		return 1;
	}
	printf("第%d个QP创建失败 - 这是正常的，因为我们设置了限制为%d\n", LIMIT + 1, LIMIT);
	return 0;
}

/* The refused attempt must have taken nothing: a place that is freed fits one QP again. */
static int after_refusal(const struct resources *resources, struct ibv_qp *qps[LIMIT + 1])
{
	int result = resources_destroy(&qps[0], 1);

	qps[0] = resources_qp(resources, IBV_QPT_RC, NULL);
	if (!qps[0]) {
		printf("销毁1个QP后重新创建失败: %s\n", strerror(errno));
		return 1;
	}
	printf("销毁1个QP后，新的QP已创建\n");
	return result;
}

int main(int argc, char **argv)
{
	struct ibv_qp *qps[LIMIT + 1] = { NULL };
	struct resources resources;
	int result;

	/* The library's lines, which go to stderr, shall stand between ours. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	result = resources_open(&resources, resources_wanted(argc > 1 ? argv[1] : NULL));
	if (result)
		return result;
	printf("使用设备: %s\n", ibv_get_device_name(resources.context->device));
	result = rounds(&resources, qps) || one_too_many(&resources, qps) ||
		 after_refusal(&resources, qps);
	result |= empty(qps);
	result |= resources_close(&resources);
	if (!result)
		printf("测试完成\n");
	return result;
}
