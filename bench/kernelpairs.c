/* SPDX-License-Identifier: MIT */
/*
 * Repeats one operation on a real device and prints what each took of the clock. In the
 * lab with --icount the clock counts instructions, and so does this.
 * Usage: kernelpairs OPERATION COUNT
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static char memory[4096];

static struct ibv_qp *qp_make(unsigned send, unsigned receive)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = send,
			 .max_recv_wr = receive,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	return ibv_create_qp(pd, &attr);
}

static int qp_pair(unsigned send, unsigned receive)
{
	struct ibv_qp *made = qp_make(send, receive);

	return made ? ibv_destroy_qp(made) : -1;
}

/* With the queues of a usual program. */
static int do_qp(void)
{
	return qp_pair(64, 64);
}

static int do_small_qp(void)
{
	return qp_pair(16, 16);
}

static int do_mr(void)
{
	struct ibv_mr *made = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);

	return made ? ibv_dereg_mr(made) : -1;
}

static int do_pd(void)
{
	struct ibv_pd *made = ibv_alloc_pd(context);

	return made ? ibv_dealloc_pd(made) : -1;
}

static int do_cq(void)
{
	struct ibv_cq *made = ibv_create_cq(context, 16, NULL, NULL, 0);

	return made ? ibv_destroy_cq(made) : -1;
}

static int do_post_recv(void)
{
	struct ibv_sge piece = { .addr = (uintptr_t)memory, .length = 8 };
	struct ibv_recv_wr wr = { .sg_list = &piece, .num_sge = 1 }, *bad;

	ibv_post_recv(qp, &wr, &bad); /* full soon: the way there is what is measured */
	return 0;
}

static int do_poll_cq(void)
{
	struct ibv_wc wc;

	return ibv_poll_cq(cq, 1, &wc) < 0;
}

/* An ioctl that is not RDMA's. */
static int do_ioctl(void)
{
	int bytes;

	ioctl(STDIN_FILENO, FIONREAD, &bytes);
	return 0;
}

/* Nor is this write. */
static int do_write(void)
{
	static int null = -1;

	if (null < 0)
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return write(null, memory, 1) != 1;
}

/* A page to a file in memory: a write that does something. */
static int do_page(void)
{
	static int file = -1;

	if (file < 0)
		file = memfd_create("page", MFD_CLOEXEC);
	return pwrite(file, memory, 4096, 0) != 4096;
}

static const struct {
	const char *name;
	int (*run)(void);
} operations[] = {
	{ "qp", do_qp },
	{ "small_qp", do_small_qp },
	{ "mr", do_mr },
	{ "pd", do_pd },
	{ "cq", do_cq },
	{ "post_recv", do_post_recv },
	{ "poll_cq", do_poll_cq },
	{ "ioctl", do_ioctl },
	{ "write", do_write },
	{ "page", do_page },
};

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int measure(int (*run)(void), long count)
{
	double start;

	for (long i = 0; i < 16; i++) /* once for the caches of the allocators */
		if (run())
			return 1;
	start = now_ns();
	for (long i = 0; i < count; i++)
		if (run())
			return 1;
	printf("%.0f\n", (now_ns() - start) / (double)count);
	return 0;
}

int main(int argc, char **argv)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	long count = argc == 3 ? atol(argv[2]) : 0;

	context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	if (!context) {
		fprintf(stderr, "kernelpairs: no device\n");
		return 1;
	}
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	qp = pd && cq ? qp_make(16, 16) : NULL;
	for (unsigned i = 0; qp && i < sizeof(operations) / sizeof(operations[0]) && count > 0; i++)
		if (!strcmp(argv[1], operations[i].name))
			return measure(operations[i].run, count);
	fprintf(stderr, "usage: kernelpairs OPERATION COUNT\n");
	return 2;
}
