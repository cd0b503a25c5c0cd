/* SPDX-License-Identifier: MIT */
/*
 * Sends numbered messages over a connected pair of queue pairs of one device, and checks that each
 * arrives whole, once and in order. Prints what was sent after each tenth of a second.
 * Usage: stream DEVICE plain|extended BYTES SECONDS
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEPTH = 32 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq[2];
static struct ibv_qp *qp[2]; /* sends, receives */
static struct ibv_mr *mr[2];
static char *memory[2];
static uint32_t length;
static union ibv_gid gid;

static void need(const void *thing, const char *what)
{
	if (thing)
		return;
	perror(what);
	exit(2);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list, "ibv_get_device_list");
	for (; *list && strcmp(ibv_get_device_name(*list), name); list++)
		;
	need(*list, name);
	need(context = ibv_open_device(*list), "ibv_open_device");
	need(pd = ibv_alloc_pd(context), "ibv_alloc_pd");
	if (ibv_query_gid(context, 1, 1, &gid) && ibv_query_gid(context, 1, 0, &gid))
		need(NULL, "ibv_query_gid");
}

static void side_make(int side)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	need(cq[side] = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0), "ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq[side];
	need(qp[side] = ibv_create_qp_ex(context, &attr), "ibv_create_qp_ex");
	need(memory[side] = calloc(DEPTH, length), "memory");
	need(mr[side] = ibv_reg_mr(pd, memory[side], (size_t)DEPTH * length, IBV_ACCESS_LOCAL_WRITE),
	     "ibv_reg_mr");
	if (ibv_modify_qp(qp[side], &init,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		need(NULL, "INIT");
}

static void side_connect(int side)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp[!side]->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .port_num = 1, .is_global = 1,
			     .grh = { .dgid = gid, .sgid_index = 1, .hop_limit = 1 } },
	};
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7,
				   .rnr_retry = 7, .max_rd_atomic = 1 };

	if (ibv_modify_qp(qp[side], &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER))
		need(NULL, "RTR");
	if (ibv_modify_qp(qp[side], &rts,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		need(NULL, "RTS");
}

static void receive_post(uint64_t number)
{
	struct ibv_sge sge = { (uintptr_t)(memory[1] + number % DEPTH * length), length,
			       mr[1]->lkey };
	struct ibv_recv_wr wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(qp[1], &wr, &bad))
		need(NULL, "ibv_post_recv");
}

/* Every word of a message is a function of its number. */
static uint64_t word_of(uint64_t number, uint32_t at)
{
	return (number + 1) * 0x9e3779b97f4a7c15u + at;
}

static void send_post(uint64_t number, int extended)
{
	char *at = memory[0] + number % DEPTH * length;
	struct ibv_sge sge = { (uintptr_t)at, length, mr[0]->lkey };
	struct ibv_send_wr wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND }, *bad;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp[0]);

	for (uint32_t i = 0; i < length / 8; i++)
		((uint64_t *)(void *)at)[i] = word_of(number, i);
	if (!extended) {
		if (ibv_post_send(qp[0], &wr, &bad))
			need(NULL, "ibv_post_send");
		return;
	}
	ibv_wr_start(ex);
	ex->wr_id = number;
	ex->wr_flags = 0;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length);
	if (ibv_wr_complete(ex))
		need(NULL, "ibv_wr_complete");
}

static int is_whole(uint64_t number)
{
	const uint64_t *at = (const void *)(memory[1] + number % DEPTH * length);

	for (uint32_t i = 0; i < length / 8; i++)
		if (at[i] != word_of(number, i))
			return 0;
	return 1;
}

static int function_is_ours(void *function)
{
	Dl_info info;

	return dladdr(function, &info) && strstr(info.dli_fname, "librdma_intercept");
}

int main(int argc, char **argv)
{
	uint64_t sent = 0, done = 0, received = 0, wrong = 0, last = 0;
	double begun, seconds, told = 0;
	struct ibv_wc wc;
	int extended;

	if (argc != 5) {
		fprintf(stderr, "usage: stream DEVICE plain|extended BYTES SECONDS\n");
		return 2;
	}
	extended = !strcmp(argv[2], "extended");
	length = (uint32_t)atoi(argv[3]);
	seconds = atof(argv[4]);
	device_open(argv[1]);
	side_make(0);
	side_make(1);
	side_connect(0);
	side_connect(1);
	for (uint64_t i = 0; i < DEPTH; i++)
		receive_post(i);
	begun = now();
	while (now() - begun < seconds || done < sent || received < sent) {
		double passed = now() - begun;

		if (passed >= told + 0.1 && passed < seconds) {
			printf("at %.3f %llu\n", passed, (unsigned long long)(sent - last) * length);
			fflush(stdout);
			told = passed;
			last = sent;
			/* A verb, at which the library learns that a pace was set. */
			ibv_dealloc_pd(ibv_alloc_pd(context));
		}
		if (passed < seconds && sent - done < DEPTH / 2 && sent - received < DEPTH / 2)
			send_post(sent++, extended);
		while (ibv_poll_cq(cq[0], 1, &wc) > 0) {
			wrong += wc.status != IBV_WC_SUCCESS || wc.wr_id != done;
			done++;
		}
		while (ibv_poll_cq(cq[1], 1, &wc) > 0) {
			wrong += wc.status != IBV_WC_SUCCESS || wc.wr_id != received ||
				 wc.byte_len != length || !is_whole(received);
			receive_post(received + DEPTH);
			received++;
		}
	}
	printf("sent %llu received %llu wrong %llu seconds %.3f rate %.0f ours %d\n",
	       (unsigned long long)sent, (unsigned long long)received, (unsigned long long)wrong,
	       seconds, (double)sent * length / seconds,
	       function_is_ours((void *)context->ops.post_send) ||
		       function_is_ours((void *)ibv_qp_to_qp_ex(qp[0])->wr_start));
	return wrong || received != sent;
}
