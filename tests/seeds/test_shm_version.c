/* SPDX-License-Identifier: MIT */
/*
 * Test of the shared-memory version: does the ledger in /dev/shm say what was
 * really made? Run it with the library preloaded.
 *
 *   1. One process makes objects step by step, and compares after each.
 *   2. Two processes share the limit of the host.
 *   3. What a process held that was killed is there for the next.
 *
 * Each part runs in processes that this program starts from its own file, so
 * that limits in the caller's environment do not matter. Parts 2 and 3 set a
 * limit of the host; they use a ledger of their own, removed at the end.
 *
 * usage: test_shm_version [device]
 *        test_shm_version --count      part 1 alone, in this process
 *        test_shm_version --worker     obeys the lines on stdin, see worker()
 * exit: 0 all is equal, 1 otherwise, 77 no device
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "intercept/config.h"
#include "ledger/layout.h"
#include "ledger/view.h"
#include "resources.h"

enum { MEMORY = 4096, WORKER_QPS = 64, HOST_LIMIT = 3 };

static const char *lookup(const char *name)
{
	return getenv(name);
}

/* By the library's own rule. */
static const char *ledger_name(void)
{
	static struct config config;

	config_read(&config, lookup);
	return config.shm_name;
}

static int ledger_look(struct ledger_view *view)
{
	char problem[PROBLEM_SIZE];
	int result = ledger_view_open(view, ledger_name(), problem);

	if (result < 0)
		fprintf(stderr, "%s\n请用LD_PRELOAD加载librdma_intercept.so运行本测试\n", problem);
	return result;
}

/* ---- part 1: one process, step by step ---- */

static const struct column {
	const char *title;
	int width;
	bool is_type;
	int index; /* enum kind or enum qp_type */
} columns[] = {
	{ "ctx", 4, false, KIND_ctx },
	{ "pd", 4, false, KIND_pd },
	{ "cq", 4, false, KIND_cq },
	{ "cqe", 6, false, KIND_cqe },
	{ "mr", 4, false, KIND_mr },
	{ "mr_bytes", 9, false, KIND_mr_bytes },
	{ "qp", 4, false, KIND_qp },
	{ "send_wr", 8, false, KIND_send_wr },
	{ "recv_wr", 8, false, KIND_recv_wr },
	{ "RC", 4, true, QP_RC },
	{ "UC", 4, true, QP_UC },
	{ "UD", 4, true, QP_UD },
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

/* What was made: what the ledger must say. */
struct made {
	uint64_t kind[KIND_COUNT];
	uint64_t type[QP_TYPES];
};

static const struct layout_slot *own_slot(const struct ledger_view *view)
{
	for (unsigned seat = 0; seat < ledger_view_seats(view); seat++) {
		pid_t pid;
		const struct layout_slot *slot = ledger_view_seat(view, seat, &pid);

		if (slot && pid == getpid())
			return slot;
	}
	return NULL;
}

static uint64_t seen_of(const struct layout_slot *slot, int device, const struct column *column)
{
	const struct layout_slot_device *row = &slot->device[device];

	return column->is_type ? __atomic_load_n(&row->gauges.qp_type[column->index], __ATOMIC_RELAXED) :
				 ledger_view_held(slot, (unsigned)device, column->index);
}

/* Prints the row; false when the ledger says anything else than made. */
static bool same(const char *device_name, const struct made *made, const char *step)
{
	const struct layout_slot *slot;
	struct ledger_view view;
	bool equal = true;
	int device;

	if (ledger_look(&view) < 0)
		return false;
	slot = own_slot(&view);
	device = ledger_view_device(&view, device_name);
	if (!slot || device < 0) {
		printf("共享内存中没有%s（%s）: librdma_intercept.so是否已用LD_PRELOAD加载？\n",
		       slot ? "本设备" : "本进程", step);
		equal = false;
		goto out;
	}
	for (int i = 0; i < COLUMNS; i++) {
		const struct column *column = &columns[i];
		uint64_t wanted = (column->is_type ? made->type : made->kind)[column->index];
		uint64_t seen = seen_of(slot, device, column);

		printf("%*" PRIu64, column->width, seen);
		equal &= seen == wanted;
	}
	printf("  %s  %s\n", equal ? "一致  " : "不一致", step);
	if (!equal) {
		for (int i = 0; i < COLUMNS; i++)
			printf("%*" PRIu64, columns[i].width,
			       (columns[i].is_type ? made->type : made->kind)[columns[i].index]);
		printf("  期望\n");
	}
out:
	ledger_view_close(&view);
	return equal;
}

static bool unsupported(int code)
{
	return code == EOPNOTSUPP || code == ENOSYS || code == EINVAL || code == EPROTONOSUPPORT;
}

static void qp_made(struct made *made, enum qp_type type, const struct ibv_qp_cap *cap)
{
	made->kind[KIND_qp]++;
	made->kind[KIND_send_wr] += cap->max_send_wr;
	made->kind[KIND_recv_wr] += cap->max_recv_wr;
	made->type[type]++;
}

static void qp_gone(struct made *made, enum qp_type type, const struct ibv_qp_cap *cap)
{
	made->kind[KIND_qp]--;
	made->kind[KIND_send_wr] -= cap->max_send_wr;
	made->kind[KIND_recv_wr] -= cap->max_recv_wr;
	made->type[type]--;
}

/* Creates a QP of each type the device knows, destroys them; the number of failures. */
static unsigned count_qps(const struct resources *resources, const char *device, struct made *made)
{
	static const struct {
		enum ibv_qp_type verbs;
		enum qp_type ledger;
		const char *created, *destroyed;
	} types[] = {
		{ IBV_QPT_RC, QP_RC, "创建RC QP", "销毁RC QP" },
		{ IBV_QPT_UC, QP_UC, "创建UC QP", "销毁UC QP" },
		{ IBV_QPT_UD, QP_UD, "创建UD QP", "销毁UD QP" },
	};
	enum { TYPES = sizeof(types) / sizeof(types[0]) };
	struct ibv_qp *qps[TYPES];
	struct ibv_qp_cap caps[TYPES];
	unsigned failures = 0, created = 0;

	for (int i = 0; i < TYPES; i++) {
		qps[i] = resources_qp(resources, types[i].verbs, &caps[i]);
		if (qps[i]) {
			qp_made(made, types[i].ledger, &caps[i]);
			created++;
		} else if (unsupported(errno)) {
			printf("设备不支持: %s (%s)\n", types[i].created, strerror(errno));
		} else {
			printf("失败: %s (%s)\n", types[i].created, strerror(errno));
			failures++;
		}
		failures += !same(device, made, types[i].created);
	}
	failures += !created;
	for (int i = 0; i < TYPES; i++) {
		if (!qps[i])
			continue;
		if (resources_destroy(&qps[i], 1)) {
			failures++;
			continue;
		}
		qp_gone(made, types[i].ledger, &caps[i]);
		failures += !same(device, made, types[i].destroyed);
	}
	return failures;
}

static unsigned count_memory(const struct resources *resources, const char *device,
			     struct made *made)
{
	void *memory = aligned_alloc(MEMORY, MEMORY);
	struct ibv_mr *mr = NULL;
	unsigned failures = 0;

	if (memory)
		mr = ibv_reg_mr(resources->pd, memory, MEMORY, IBV_ACCESS_LOCAL_WRITE);
	if (!mr) {
		printf("MR注册失败: %s\n", strerror(errno));
		free(memory);
		return 1;
	}
	made->kind[KIND_mr] = 1;
	made->kind[KIND_mr_bytes] = MEMORY;
	failures += !same(device, made, "注册MR");
	failures += count_qps(resources, device, made);
	if (ibv_dereg_mr(mr)) {
		printf("MR注销失败\n");
		failures++;
	}
	made->kind[KIND_mr] = made->kind[KIND_mr_bytes] = 0;
	failures += !same(device, made, "注销MR");
	free(memory);
	return failures;
}

static int count(const char *wanted)
{
	struct made made = { .kind = { [KIND_ctx] = 1, [KIND_pd] = 1, [KIND_cq] = 1 } };
	struct resources resources;
	unsigned failures = 0;
	char device[64];
	int result = resources_open(&resources, wanted);

	if (result)
		return result;
	snprintf(device, sizeof(device), "%s", ibv_get_device_name(resources.context->device));
	printf("使用设备: %s\n共享内存: /dev/shm/%s\n", device, ledger_name());
	for (int i = 0; i < COLUMNS; i++)
		printf("%*s", columns[i].width, columns[i].title);
	printf("  结果    步骤\n");
	made.kind[KIND_cqe] = (uint64_t)resources.cq->cqe;
	if (!same(device, &made, "打开设备，分配PD，创建CQ")) {
		resources_close(&resources);
		return 1;
	}
	failures += count_memory(&resources, device, &made);
	failures += resources_close(&resources) != 0;
	failures += !same(device, &(struct made){ 0 }, "释放全部");
	return failures ? 1 : 0;
}

/* ---- parts 2 and 3: several processes ---- */

/*
 * Lines on stdin, and the answers on stdout:
 *   qp      creates a QP and keeps it: "ok", or "refused" and the reason
 *   used    QPs of all living processes by the ledger
 *   quit    destroys everything and ends, as does the end of the input
 * Ends with its parent.
 */
static int worker(const char *wanted)
{
	struct ibv_qp *qps[WORKER_QPS];
	struct resources resources;
	struct ledger_view view;
	unsigned held = 0;
	char line[32];
	int result;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	result = resources_open(&resources, wanted);
	if (result)
		return result;
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "quit\n")) {
		if (!strcmp(line, "qp\n") && held < WORKER_QPS) {
			qps[held] = resources_qp(&resources, IBV_QPT_RC, NULL);
			if (qps[held]) {
				held++;
				printf("ok\n");
			} else {
				printf("refused %s\n", strerror(errno));
			}
		} else if (!strcmp(line, "used\n") && ledger_look(&view) == 0) {
			printf("%" PRIu64 "\n", ledger_view_used(&view, -1, KIND_qp));
			ledger_view_close(&view);
		} else {
			printf("error\n");
		}
	}
	result = resources_destroy(qps, held);
	result |= resources_close(&resources);
	return result;
}

struct peer {
	pid_t pid;
	FILE *to, *from;
};

static unsigned failures_of_peers;

static void settings_clear(void)
{
	static const char *const names[] = { "ENABLE", "ENABLE_QP_CONTROL", "ENABLE_MR_CONTROL",
		"MAX_QP", "MAX_QP_PER_PROCESS", "MAX_GLOBAL_QP", "MAX_MR_PER_PROCESS",
		"MAX_GLOBAL_MR", "MAX_MEMORY_PER_PROCESS", "MAX_GLOBAL_MEMORY", "LIMITS", "MODE",
		"FAIL" };
	char name[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), CONFIG_PREFIX "%s", names[i]);
		unsetenv(name);
	}
}

static bool peer_start(struct peer *peer)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		return false;
	peer->pid = fork();
	if (peer->pid == 0) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
			close(fd);
		execl("/proc/self/exe", "test_shm_version", "--worker", NULL);
		_exit(126);
	}
	close(to[0]);
	close(from[1]);
	peer->to = fdopen(to[1], "w");
	peer->from = fdopen(from[0], "r");
	return peer->pid > 0 && peer->to && peer->from;
}

/* Ends it with quit, or with a signal; the wait status. */
static int peer_end(struct peer *peer, int signal_number)
{
	int status = -1;

	if (signal_number)
		kill(peer->pid, signal_number);
	fclose(peer->to);
	fclose(peer->from);
	waitpid(peer->pid, &status, 0);
	return status;
}

static bool peer_qp(struct peer *peer)
{
	char line[128] = "";

	fprintf(peer->to, "qp\n");
	fflush(peer->to);
	return fgets(line, sizeof(line), peer->from) && !strcmp(line, "ok\n");
}

static void row(bool good, const char *step)
{
	printf("  %s  %s\n", good ? "通过  " : "未通过", step);
	failures_of_peers += !good;
}

static void qp_row(struct peer *peer, bool wanted, const char *step)
{
	row(peer_qp(peer) == wanted, step);
}

static void used_row(uint64_t wanted, const char *step)
{
	struct ledger_view view;
	bool good = false;

	if (ledger_look(&view) == 0) {
		good = ledger_view_used(&view, -1, KIND_qp) == wanted;
		ledger_view_close(&view);
	}
	row(good, step);
}

static void share_limit(struct peer *a, struct peer *b)
{
	printf("两个进程共享全局限制（%d个QP）:\n", HOST_LIMIT);
	qp_row(a, true, "进程A创建第1个QP");
	qp_row(a, true, "进程A创建第2个QP");
	used_row(2, "共享内存: QP=2");
	qp_row(b, true, "进程B创建第1个QP");
	used_row(3, "共享内存: QP=3");
	qp_row(b, false, "进程B的第2个QP被拦截");
	qp_row(a, false, "进程A的第3个QP被拦截");
	used_row(3, "共享内存: QP=3");
	row(peer_end(a, 0) == 0, "进程A正常结束");
	used_row(1, "共享内存: QP=1");
	qp_row(b, true, "进程B创建第2个QP");
	qp_row(b, true, "进程B创建第3个QP");
	used_row(3, "共享内存: QP=3");
}

static void kill_and_return(struct peer *b, struct peer *c)
{
	int status = peer_end(b, SIGKILL);

	printf("进程被SIGKILL终止后配额恢复:\n");
	row(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "进程B被SIGKILL终止");
	used_row(0, "共享内存: 存活进程QP=0");
	if (!peer_start(c)) {
		row(false, "进程C启动");
		return;
	}
	for (int i = 0; i < HOST_LIMIT; i++)
		qp_row(c, true, "进程C创建QP");
	qp_row(c, false, "进程C的下一个QP被拦截");
	used_row(HOST_LIMIT, "共享内存: QP=3");
	row(peer_end(c, 0) == 0, "进程C正常结束");
	used_row(0, "共享内存: QP=0");
}

static void peers(void)
{
	char name[64], path[96], limit[16];
	struct peer a, b, c;

	snprintf(name, sizeof(name), "test_shm_version.%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/shm/%s", name);
	snprintf(limit, sizeof(limit), "%d", HOST_LIMIT);
	setenv(CONFIG_PREFIX "SHM_NAME", name, 1);
	setenv(CONFIG_PREFIX "ENABLE_QP_CONTROL", "1", 1);
	setenv(CONFIG_PREFIX "MAX_GLOBAL_QP", limit, 1);
	setenv(CONFIG_PREFIX "QUIET", "1", 1);
	unlink(path);
	if (peer_start(&a) && peer_start(&b)) {
		share_limit(&a, &b);
		kill_and_return(&b, &c);
	} else {
		row(false, "启动两个进程");
	}
	unlink(path);
}

static int run_count(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/proc/self/exe", "test_shm_version", "--count", NULL);
		_exit(126);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	const char *wanted;
	int result;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strcmp(argv[1], "--count"))
		return count(resources_wanted(NULL));
	if (argc > 1 && !strcmp(argv[1], "--worker"))
		return worker(resources_wanted(NULL));
	wanted = resources_wanted(argc > 1 ? argv[1] : NULL);
	if (wanted)
		setenv("RDMA_TEST_DEVICE", wanted, 1);
	signal(SIGPIPE, SIG_IGN); /* a worker that died shows in its answers */
	settings_clear();
	result = run_count();
	if (result == EXIT_NO_DEVICE)
		return result;
	/* A ledger that is not there, or miscounts one process, need not be tried with two. */
	if (result == 0)
		peers();
	if (result || failures_of_peers) {
		printf("测试失败\n");
		return 1;
	}
	printf("测试完成\n");
	return 0;
}
