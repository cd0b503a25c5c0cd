/* SPDX-License-Identifier: MIT */
/*
 * QPs that come to a port and leave it, and address handles there, on a real stack. It makes all
 * QPs at once; then each line of its input is a command, and it answers with a line.
 * Usage: portqps DEVICE QPS
 *   enter N PORT  the next N QPs in RESET go to INIT there: "on N refused N failed N"
 *   leave N       N QPs go back to RESET: "on N"
 *   handles N     up to N address handles on port 1: "handles N errno N"
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QPS_MOST = 256 };

static struct ibv_qp *qp[QPS_MOST];
static unsigned qps, on;

static void *must(void *made, const char *what)
{
	if (!made) {
		printf("%s: %s\n", what, strerror(errno));
		exit(1);
	}
	return made;
}

static int enter(struct ibv_qp *one, unsigned port)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = (uint8_t)port,
				    .qp_access_flags = IBV_ACCESS_LOCAL_WRITE };

	return ibv_modify_qp(one, &attr,
			     IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
}

/* Those that are on a port stand first. */
static void enter_many(unsigned count, unsigned port)
{
	unsigned refused = 0, failed = 0;

	while (count-- && on < qps) {
		int result = enter(qp[on], port);

		on += result == 0;
		refused += result == EDQUOT;
		failed += result != 0 && result != EDQUOT;
	}
	printf("on %u refused %u failed %u\n", on, refused, failed);
}

static void leave_many(unsigned count)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	while (count-- && on && ibv_modify_qp(qp[on - 1], &attr, IBV_QP_STATE) == 0)
		on--;
	printf("on %u\n", on);
}

static void handles_make(struct ibv_pd *pd, unsigned count)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1 };
	unsigned made = 0;

	if (ibv_query_gid(pd->context, 1, 0, &attr.grh.dgid))
		must(NULL, "ibv_query_gid");
	errno = 0;
	while (made < count && ibv_create_ah(pd, &attr))
		made++;
	printf("handles %u errno %d\n", made, errno);
}

int main(int argc, char **argv)
{
	struct ibv_device **devices = must(ibv_get_device_list(NULL), "ibv_get_device_list");
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	char line[64];
	unsigned count, port;

	if (argc != 3 || atoi(argv[2]) < 1 || atoi(argv[2]) > QPS_MOST) {
		fprintf(stderr, "usage: portqps DEVICE QPS\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (*devices && strcmp(ibv_get_device_name(*devices), argv[1]) != 0)
		devices++;
	context = must(*devices ? ibv_open_device(*devices) : NULL, "ibv_open_device");
	pd = must(ibv_alloc_pd(context), "ibv_alloc_pd");
	cq = must(ibv_create_cq(context, 16, NULL, NULL, 0), "ibv_create_cq");
	for (qps = 0; qps < (unsigned)atoi(argv[2]); qps++) {
		struct ibv_qp_init_attr attr = { .send_cq = cq,
						 .recv_cq = cq,
						 .qp_type = IBV_QPT_RC,
						 .cap = { 1, 1, 1, 1, 0 } };

		qp[qps] = must(ibv_create_qp(pd, &attr), "ibv_create_qp");
	}
	printf("made %u\n", qps);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "enter %u %u", &count, &port) == 2)
			enter_many(count, port);
		else if (sscanf(line, "leave %u", &count) == 1)
			leave_many(count);
		else if (sscanf(line, "handles %u", &count) == 1)
			handles_make(pd, count);
		else
			printf("unknown command: %s", line);
	}
	return 0; /* with all of them: the kernel frees them */
}
