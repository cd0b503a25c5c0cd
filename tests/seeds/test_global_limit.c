/* SPDX-License-Identifier: MIT */
/*
 * The documented test of a limit of two QPs: registers memory, creates two
 * QPs, expects that the third is refused. What it prints is documented too;
 * transcript.txt holds it word for word.
 *
 * usage: test_global_limit [device]
 * exit: 0 exactly the third was refused, 1 otherwise, 77 no device
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resources.h"

enum { LIMIT = 2, MEMORY = 4096 };

/* 0 when the QPs up to the limit exist and no more. */
static int attempt(const struct resources *resources, struct ibv_qp *qps[LIMIT + 1])
{
	for (int i = 0; i < LIMIT; i++) {
		printf("尝试创建第%d个QP...\n", i + 1);
		qps[i] = resources_qp(resources, IBV_QPT_RC, NULL);
		if (!qps[i]) {
			printf("第%d个QP创建失败: %s\n", i + 1, strerror(errno));
			return 1;
		}
		printf("第%d个QP已创建\n", i + 1);
	}
	printf("尝试创建第%d个QP（应该被拦截）...\n", LIMIT + 1);
	qps[LIMIT] = resources_qp(resources, IBV_QPT_RC, NULL);
	if (qps[LIMIT]) {
		printf("第%d个QP已创建 - 限制没有生效\n", LIMIT + 1);
		return 1;
	}
	printf("第%d个QP创建失败 - 这是正常的，因为我们设置了全局限制为%d\n", LIMIT + 1, LIMIT);
	return 0;
}

int main(int argc, char **argv)
{
	struct ibv_qp *qps[LIMIT + 1] = { NULL };
	struct resources resources;
	struct ibv_mr *mr;
	void *memory;
	int result;

	/* The library's lines, which go to stderr, shall stand between ours. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	result = resources_open(&resources, resources_wanted(argc > 1 ? argv[1] : NULL));
	if (result)
		return result;
	printf("使用设备: %s\n", ibv_get_device_name(resources.context->device));
	result = 1;
	memory = aligned_alloc(MEMORY, MEMORY);
	mr = memory ? ibv_reg_mr(resources.pd, memory, MEMORY, IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (mr) {
		printf("MR已注册\n");
		result = attempt(&resources, qps);
	} else {
		fprintf(stderr, "MR注册失败: %s\n", strerror(errno));
	}
	result |= resources_destroy(qps, LIMIT + 1);
	if (mr && ibv_dereg_mr(mr)) {
		fprintf(stderr, "无法注销MR\n");
		result = 1;
	}
	result |= resources_close(&resources);
	free(memory);
	if (!result)
		printf("测试完成\n");
	return result;
}
