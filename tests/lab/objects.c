/* SPDX-License-Identifier: MIT */
/*
 * Makes objects on a real stack and compares, step by step, what the ledger
 * says of this process with what the kernel says of the device (rdma resource),
 * on each device separately.
 * Usage: objects steps          every kind of object, counts compared
 *        objects hold N         N QPs and N MRs on the first device, then waits
 *        objects heir N         the same, with a forked child that waits too
 *        objects ledger DEVICE  what living processes hold there, by the ledger
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "intercept/config.h"
#include "ledger/view.h"

enum { DEVICES = 2, COLUMNS = 6 };

/* What an older kernel does not list (5.10 has no column for SRQs). */
#define UNLISTED UINT64_MAX

static const struct {
	const char *name; /* as rdma calls it, and we */
	enum kind kind;
} columns[COLUMNS] = {
	{ "ctx", KIND_ctx }, { "pd", KIND_pd }, { "cq", KIND_cq },
	{ "qp", KIND_qp },   { "mr", KIND_mr }, { "srq", KIND_srq },
};

static uint64_t baseline[DEVICES][COLUMNS];
static char device_names[DEVICES][64];
static unsigned failures;

static const char *from_environment(const char *name)
{
	return getenv(name);
}

/* "0: rxe0: pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0" */
static void kernel_counts(const char *device, uint64_t counts[COLUMNS])
{
	char command[128], line[512] = "", word[32];
	unsigned long value;
	int used;
	FILE *pipe;

	for (unsigned i = 0; i < COLUMNS; i++)
		counts[i] = UNLISTED;
	snprintf(command, sizeof(command), "env -u LD_PRELOAD rdma resource show %s", device);
	pipe = popen(command, "re");
	if (!pipe || !fgets(line, sizeof(line), pipe)) {
		fprintf(stderr, "rdma resource show %s: no answer\n", device);
		exit(1);
	}
	pclose(pipe);
	for (const char *at = strstr(line, device) + strlen(device) + 1;
	     sscanf(at, " %31s %lu%n", word, &value, &used) == 2; at += used)
		for (unsigned i = 0; i < COLUMNS; i++)
			if (!strcmp(word, columns[i].name))
				counts[i] = value;
}

static bool same(const struct ledger_view *view, unsigned d, unsigned column, uint64_t kernel,
		 uint64_t *ret_ledger)
{
	int number = ledger_view_device(view, device_names[d]);

	*ret_ledger = number < 0 ? 0 : ledger_view_used(view, number, columns[column].kind);
	return kernel == UNLISTED || *ret_ledger == kernel - baseline[d][column];
}

/* Everything that both sides know, on both devices. The kernel is asked again for a
 * moment: what it frees after a system call has returned is still there at first. */
static void compare(const char *what)
{
	static struct config config;
	char problem[PROBLEM_SIZE];
	struct ledger_view view;
	unsigned before = failures;

	config_read(&config, from_environment);
	if (ledger_view_open(&view, config.shm_name, problem) < 0) {
		printf("FAIL  %s: %s\n", what, problem);
		failures++;
		return;
	}
	for (unsigned d = 0; d < DEVICES; d++) {
		uint64_t kernel[COLUMNS], ledger;
		bool equal = false;

		for (unsigned attempt = 0; attempt < 20 && !equal; attempt++) {
			if (attempt)
				usleep(50000);
			kernel_counts(device_names[d], kernel);
			equal = true;
			for (unsigned i = 0; i < COLUMNS; i++)
				equal &= same(&view, d, i, kernel[i], &ledger);
		}
		for (unsigned i = 0; i < COLUMNS; i++) {
			if (same(&view, d, i, kernel[i], &ledger))
				continue;
			failures++;
			printf("FAIL  %s: %s on %s: ledger %llu, kernel %llu\n", what, columns[i].name,
			       device_names[d], (unsigned long long)ledger,
			       (unsigned long long)(kernel[i] - baseline[d][i]));
		}
	}
	ledger_view_close(&view);
	if (failures == before)
		printf("ok    %s\n", what);
}

/* A kind that the kernel does not list. */
static void ledger_has(const char *what, const char *device, enum kind kind, uint64_t wanted)
{
	static struct config config;
	char problem[PROBLEM_SIZE];
	struct ledger_view view;
	uint64_t seen = 0;

	config_read(&config, from_environment);
	if (ledger_view_open(&view, config.shm_name, problem) == 0) {
		int number = device ? ledger_view_device(&view, device) : -1;

		seen = ledger_view_used(&view, number, kind);
		ledger_view_close(&view);
	}
	if (seen != wanted) {
		failures++;
		printf("FAIL  %s: %s is %llu, not %llu\n", what, kind_rows[kind].name,
		       (unsigned long long)seen, (unsigned long long)wanted);
	} else {
		printf("ok    %s\n", what);
	}
}

static int ledger_show(const char *device)
{
	static struct config config;
	char problem[PROBLEM_SIZE];
	struct ledger_view view;
	int number = -1;
	bool there;

	config_read(&config, from_environment);
	there = ledger_view_open(&view, config.shm_name, problem) == 0;
	if (there)
		number = ledger_view_device(&view, device);
	printf("the ledger:  %s:", device);
	for (unsigned i = 0; i < COLUMNS; i++)
		printf(" %s %llu", columns[i].name,
		       number < 0 ? 0ull :
				    (unsigned long long)ledger_view_used(&view, number, columns[i].kind));
	printf("\n");
	if (there)
		ledger_view_close(&view);
	return 0;
}

struct resources {
	const char *device;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
};

static void *must(void *made, const char *what)
{
	if (!made) {
		printf("%s: %s\n", what, strerror(errno));
		exit(1);
	}
	return made;
}

static void gone(int result, const char *what)
{
	if (result) {
		printf("FAIL  %s: %s\n", what, strerror(result));
		failures++;
	}
}

static struct resources resources_open(struct ibv_device *device)
{
	struct resources r = { .device = ibv_get_device_name(device) };

	r.context = must(ibv_open_device(device), "ibv_open_device");
	r.pd = must(ibv_alloc_pd(r.context), "ibv_alloc_pd");
	r.channel = must(ibv_create_comp_channel(r.context), "ibv_create_comp_channel");
	r.cq = must(ibv_create_cq(r.context, 64, NULL, r.channel, 0), "ibv_create_cq");
	return r;
}

static void resources_close(struct resources *r)
{
	gone(ibv_destroy_cq(r->cq), "ibv_destroy_cq");
	gone(ibv_destroy_comp_channel(r->channel), "ibv_destroy_comp_channel");
	gone(ibv_dealloc_pd(r->pd), "ibv_dealloc_pd");
	gone(ibv_close_device(r->context), "ibv_close_device");
}

static struct ibv_qp *qp_make(struct resources *r, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.srq = srq,
		.qp_type = type,
		.cap = { 4, 4, 1, 1, 0 },
	};

	return ibv_create_qp(r->pd, &attr);
}

static void qp_steps(struct resources *r)
{
	static const struct {
		enum ibv_qp_type type;
		const char *name;
	} types[] = { { IBV_QPT_RC, "RC" }, { IBV_QPT_UC, "UC" }, { IBV_QPT_UD, "UD" } };
	struct ibv_qp *qps[3];
	char step[64];

	for (unsigned i = 0; i < 3; i++) {
		qps[i] = must(qp_make(r, types[i].type, NULL), types[i].name);
		snprintf(step, sizeof(step), "%s: a QP of type %s", r->device, types[i].name);
		compare(step);
	}
	for (unsigned i = 0; i < 3; i++)
		gone(ibv_destroy_qp(qps[i]), "ibv_destroy_qp");
	snprintf(step, sizeof(step), "%s: the QPs destroyed", r->device);
	compare(step);
}

static void srq_steps(struct resources *r)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq *srq = must(ibv_create_srq(r->pd, &attr), "ibv_create_srq");
	struct ibv_qp *qp;
	char step[64];

	snprintf(step, sizeof(step), "%s: an SRQ", r->device);
	compare(step);
	qp = must(qp_make(r, IBV_QPT_RC, srq), "a QP on the SRQ");
	snprintf(step, sizeof(step), "%s: a QP on the SRQ", r->device);
	compare(step);
	gone(ibv_destroy_qp(qp), "ibv_destroy_qp");
	gone(ibv_destroy_srq(srq), "ibv_destroy_srq");
	snprintf(step, sizeof(step), "%s: the SRQ destroyed", r->device);
	compare(step);
}

/* Not every device has these: said, not passed over. */
static void xrc_steps(struct resources *r)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = 0100,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(r->context, &attr);

	if (!xrcd) {
		printf("note  %s has no XRC (%s)\n", r->device, strerror(errno));
		ledger_has("nothing is charged for it", r->device, KIND_xrcd, 0);
		return;
	}
	ledger_has("an XRC domain", r->device, KIND_xrcd, 1);
	gone(ibv_close_xrcd(xrcd), "ibv_close_xrcd");
	ledger_has("the XRC domain closed", r->device, KIND_xrcd, 0);
}

static void memory_steps(struct resources *r)
{
	static char memory[3][8192];
	struct ibv_mr *mrs[3];
	struct ibv_mw *mw;
	char step[64];

	for (unsigned i = 0; i < 3; i++)
		mrs[i] = must(ibv_reg_mr(r->pd, memory[i], sizeof(memory[i]),
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND), "ibv_reg_mr");
	snprintf(step, sizeof(step), "%s: three MRs", r->device);
	compare(step);
	ledger_has("their bytes", r->device, KIND_mr_bytes, sizeof(memory));
	mw = ibv_alloc_mw(r->pd, IBV_MW_TYPE_2);
	if (mw) {
		ledger_has("a memory window", r->device, KIND_mw, 1);
		gone(ibv_dealloc_mw(mw), "ibv_dealloc_mw");
	} else {
		printf("note  %s has no memory windows (%s)\n", r->device, strerror(errno));
	}
	ledger_has("no memory window", r->device, KIND_mw, 0);
	for (unsigned i = 0; i < 3; i++)
		gone(ibv_dereg_mr(mrs[i]), "ibv_dereg_mr");
	snprintf(step, sizeof(step), "%s: the MRs deregistered", r->device);
	compare(step);
}

static void address_steps(struct resources *r)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1, .grh = { .hop_limit = 1 } };
	struct ibv_ah *ah;

	if (ibv_query_gid(r->context, 1, 0, &attr.grh.dgid)) {
		printf("FAIL  ibv_query_gid\n");
		failures++;
		return;
	}
	ah = must(ibv_create_ah(r->pd, &attr), "ibv_create_ah");
	ledger_has("an address handle", r->device, KIND_ah, 1);
	gone(ibv_destroy_ah(ah), "ibv_destroy_ah");
	ledger_has("no address handle", r->device, KIND_ah, 0);
}

static void queue_steps(struct resources *r)
{
	char step[64];
	struct ibv_cq *cq = must(ibv_create_cq(r->context, 5, NULL, NULL, 0), "ibv_create_cq");
	uint64_t depth = (uint64_t)r->cq->cqe + (uint64_t)cq->cqe;

	snprintf(step, sizeof(step), "%s: a second CQ, rounded up to %d", r->device, cq->cqe);
	compare(step);
	ledger_has("the depth as it was rounded up", r->device, KIND_cqe, depth);
	if (ibv_resize_cq(cq, 100) == 0)
		depth = (uint64_t)r->cq->cqe + (uint64_t)cq->cqe;
	ledger_has("the depth after resizing", r->device, KIND_cqe, depth);
	ledger_has("a completion channel", r->device, KIND_comp_channel, 1);
	gone(ibv_destroy_cq(cq), "ibv_destroy_cq");
	snprintf(step, sizeof(step), "%s: the second CQ destroyed", r->device);
	compare(step);
}

static int steps(struct ibv_device **list)
{
	struct resources r[DEVICES];

	for (unsigned d = 0; d < DEVICES; d++) {
		r[d] = resources_open(list[d]);
		compare("a context, a PD and a CQ with its channel");
	}
	for (unsigned d = 0; d < DEVICES; d++) {
		qp_steps(&r[d]);
		srq_steps(&r[d]);
		xrc_steps(&r[d]);
		memory_steps(&r[d]);
		address_steps(&r[d]);
		queue_steps(&r[d]);
	}
	must(qp_make(&r[1], IBV_QPT_RC, NULL), "a QP left behind");
	gone(ibv_close_device(r[1].context), "ibv_close_device");
	compare("a context closed with objects in it");
	resources_close(&r[0]);
	compare("everything closed");
	return failures ? 1 : 0;
}

static __attribute__((noreturn)) void hold(struct ibv_device *device, unsigned count, bool heir)
{
	struct resources r = resources_open(device);
	char *memory = malloc((size_t)count * 4096);

	for (unsigned i = 0; i < count; i++) {
		must(qp_make(&r, IBV_QPT_RC, NULL), "a QP");
		must(ibv_reg_mr(r.pd, memory + (size_t)i * 4096, 4096, 0), "an MR");
	}
	printf("holding %u QPs and %u MRs\n", count, count);
	if (heir) {
		pid_t child = fork();

		if (child > 0)
			printf("heir %d\n", (int)child);
	}
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "ledger"))
		return ledger_show(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "hold") && list && count)
		hold(list[0], (unsigned)atoi(argv[2]), false);
	if (argc == 3 && !strcmp(argv[1], "heir") && list && count)
		hold(list[0], (unsigned)atoi(argv[2]), true);
	if (!list || count < DEVICES) {
		printf("skipped: this needs two RDMA devices, there are %d\n", list ? count : 0);
		return 77;
	}
	for (unsigned d = 0; d < DEVICES; d++) {
		snprintf(device_names[d], sizeof(device_names[d]), "%s", ibv_get_device_name(list[d]));
		kernel_counts(device_names[d], baseline[d]);
	}
	for (unsigned i = 0; i < COLUMNS; i++)
		if (baseline[0][i] == UNLISTED)
			printf("note  this kernel does not list %s: not compared\n", columns[i].name);
	if (argc == 2 && !strcmp(argv[1], "steps"))
		return steps(list);
	fprintf(stderr, "usage: objects steps | objects hold N | objects ledger DEVICE\n");
	return 2;
}
