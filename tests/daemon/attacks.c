/* SPDX-License-Identifier: MIT */
/*
 * Attacks on the collector, one row each: an unprivileged tenant tries everything that
 * it can reach, while two processes of another tenant take their whole quota in turns.
 * Whatever the attacker does, the victim gets exactly its quota and is answered in
 * time, and afterwards the collector is as it was before.
 */
#include "collector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "ledger/leaselayout.h"
#include "ledger/ledger.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

#define ADMIN_GROUP "games"
#define DEVICE "rxe0" /* of which the policy speaks */
#define OTHER_DEVICE "rxe1"

enum {
	VICTIM_UID = 60001,
	ATTACKER_UID = 60002,
	QUOTA = 16, /* of each of the two; together they are all that the host has */
	QUOTA_ON_DEVICE = 12,
	PATIENCE_MS = 2000,
	ATTACKERS_MAX = 16,
	SAMPLES_MAX = 1 << 16,
	P99_MS = 2000, /* generous: others may use this machine too */
	ROUNDS_LEAST = 1,
	DESCRIPTORS_MORE = 700, /* what one user may cost the collector beyond its members */
	DESCRIPTORS_OURS = 4,	/* of our own questions, just answered */
	RESIDENT_MORE_KB = 64 << 10,
	SETTLE_SECONDS = 10,
	CROWD = 8, /* processes of each attacker */
	TRICKLE_SECONDS = 6, /* for a request that is to be there in 2 */
};

/* ---- what driver, victims and attackers share */

struct victims {
	unsigned rounds;
	unsigned lost;	     /* units of the quota that were refused */
	unsigned gained;     /* units beyond it that were given */
	unsigned unanswered; /* nobody answered in time */
	unsigned samples;
	uint64_t sample_ns[SAMPLES_MAX];
};

static struct {
	unsigned ready, stop;
	uint64_t note[4 * ATTACKERS_MAX]; /* four for each attacker */
	struct victims victims;
} *shared;

static unsigned add(unsigned *word, unsigned amount)
{
	return __atomic_add_fetch(word, amount, __ATOMIC_SEQ_CST);
}

static bool going(void)
{
	return !__atomic_load_n(&shared->stop, __ATOMIC_SEQ_CST);
}

static void ready(void)
{
	add(&shared->ready, 1);
}

/* Waits for the end without using the processor: others are measured meanwhile. */
static void rest(void)
{
	while (going())
		syscall(SYS_futex, &shared->stop, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void stop(void)
{
	__atomic_store_n(&shared->stop, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &shared->stop, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static uint64_t note(unsigned index)
{
	return __atomic_load_n(&shared->note[index], __ATOMIC_SEQ_CST);
}

static void note_set(unsigned index, uint64_t value)
{
	__atomic_store_n(&shared->note[index], value, __ATOMIC_SEQ_CST);
}

static void note_add(unsigned index)
{
	__atomic_add_fetch(&shared->note[index], 1, __ATOMIC_SEQ_CST);
}

static bool note_wait(unsigned index, uint64_t value)
{
	double until = seconds_now() + SETTLE_SECONDS;

	while (note(index) != value) {
		if (seconds_now() > until)
			return false;
		usleep(500);
	}
	return true;
}

static uint64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- processes */

/* A user without rights. It may look at itself below /proc, as one who logged in may. */
static void become(uid_t uid, const char *group)
{
	const struct group *entry = group ? getgrnam(group) : NULL;
	gid_t more = entry ? entry->gr_gid : 0;

	if (setgroups(entry ? 1 : 0, &more) || setresgid(uid, uid, uid) ||
	    setresuid(uid, uid, uid) || prctl(PR_SET_DUMPABLE, 1) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL)) /* forgotten with the old uid */
		abort();
}

static unsigned failures_before;

/* A process of the test that ends with its parent. */
static pid_t split(void)
{
	pid_t parent = getpid(), child;

	fflush(stdout);
	failures_before = checks_failed();
	child = fork();
	if (child < 0)
		abort();
	if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
		_exit(1);
	return child;
}

static void __attribute__((noreturn)) finish(void)
{
	fflush(stdout);
	_exit(checks_failed() != failures_before);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- talking by hand */

static int dial_at(const char *path, int flags)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int dial(void)
{
	return dial_at(collector_socket(), 0);
}

struct letter {
	struct proto_header header;
	char body[PROTO_REQUEST_MAX];
};

static struct letter letter(enum message type, const void *body)
{
	size_t size = proto_message(type)->request;
	struct letter letter = { .header = proto_header(type, 0, size) };

	if (body)
		memcpy(letter.body, body, size);
	return letter;
}

static bool put(int fd, const void *bytes, size_t size)
{
	return send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool tell(int fd, enum message type, const void *body)
{
	struct letter whole = letter(type, body);

	return put(fd, &whole, whole.header.length);
}

/* The status of the reply, or 1 when the connection ends without one. */
static int hear(int fd)
{
	struct timeval patience = { SETTLE_SECONDS, 0 };
	struct proto_header header;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return recv(fd, &header, sizeof(header), MSG_WAITALL) == sizeof(header) ? header.status : 1;
}

/* ---- a member that knows the protocol and keeps to no rule */

struct member {
	uint64_t cookie;
	int connection, usage_fd, table_fd;
	struct usage_page *usage;
	const struct lease_table *table;
};

static struct proto_hello no_wishes(void)
{
	struct proto_hello hello = { 0 };

	memset(hello.process_limit, 0xff, sizeof(hello.process_limit));
	memset(hello.host_limit, 0xff, sizeof(hello.host_limit));
	return hello;
}

static bool join(struct member *member)
{
	struct proto_hello hello = no_wishes();
	struct proto_welcome welcome;
	struct proto_reply reply;
	char problem[PROTO_PROBLEM];
	int result = proto_call(collector_socket(), MESSAGE_HELLO, &hello, &welcome, &reply,
				PROTO_KEEP_CONNECTION, PATIENCE_MS, problem);

	if (result < 0)
		return false;
	*member = (struct member){ .cookie = welcome.cookie,
				   .connection = reply.connection,
				   .usage_fd = reply.fd[0],
				   .table_fd = reply.fd[1] };
	member->usage = mmap(NULL, sizeof(*member->usage), PROT_READ | PROT_WRITE, MAP_SHARED,
			     member->usage_fd, 0);
	member->table =
		mmap(NULL, sizeof(*member->table), PROT_READ, MAP_SHARED, member->table_fd, 0);
	return member->usage != MAP_FAILED && member->table != MAP_FAILED;
}

static void leave(struct member *member)
{
	munmap(member->usage, sizeof(*member->usage));
	munmap((void *)member->table, sizeof(*member->table));
	close(member->usage_fd);
	close(member->table_fd);
	close(member->connection);
}

static struct proto_need want(const struct member *member, unsigned kind, uint64_t total)
{
	struct proto_need need = { .cookie = member->cookie,
				   .count = 1,
				   .kind = { kind },
				   .total = { total },
				   .wanted = { total } };

	memset(need.device_limit, 0xff, sizeof(need.device_limit));
	return need;
}

/* The status of the answer, or -errno. */
static int ask(const struct proto_need *need)
{
	char problem[PROTO_PROBLEM];
	struct proto_give give;
	struct proto_reply reply;
	int result = proto_call(collector_socket(), MESSAGE_NEED, need, &give, &reply, 0,
				PATIENCE_MS, problem);

	return result < 0 ? result : reply.status;
}

/* ---- the victims: two processes that pass the turn to each other, so that the credit
 * of one has to be taken back for the other each time */

static struct ledger ledger;
static struct ledger_limits no_limits;
static const struct log complaints = { .level = LOG_WARN, .to_stderr = true };

/* How long a call took that had to ask the collector. */
static void sample(uint64_t begun)
{
	unsigned place = __atomic_fetch_add(&shared->victims.samples, 1, __ATOMIC_RELAXED);

	if (place < SAMPLES_MAX)
		shared->victims.sample_ns[place] = nanoseconds() - begun;
}

static bool victim_open(void)
{
	char problem[LEDGER_PROBLEM] = "";
	uint64_t begun = nanoseconds();
	int result;
	struct ledger_options options = { .transport = TRANSPORT_LEASE,
					  .socket = collector_socket(),
					  .limits = &no_limits,
					  .log = &complaints };

	ledger_limits_clear(&no_limits);
	result = ledger_open(&ledger, &options, problem);
	sample(begun);
	return CHECK(result == 0, "the victim is not let in: %s", problem);
}

static int charge(unsigned device, bool sampled)
{
	struct victims *victims = &shared->victims;
	struct cost cost = COST1(qp, 1);
	struct ledger_refusal refusal;
	uint64_t begun = nanoseconds();
	int result = ledger_charge(&ledger, device, &cost, &refusal);

	if (sampled)
		sample(begun);
	victims->unanswered += result == LEDGER_UNANSWERED;
	return result;
}

/* So many units and not one more. Returns how many were got. */
static unsigned take_exactly(unsigned device, unsigned amount)
{
	struct victims *victims = &shared->victims;
	unsigned got = 0;

	for (unsigned i = 0; i < amount; i++)
		got += charge(device, i == 0) == 0;
	victims->lost += amount - got;
	if (charge(device, true) == 0) {
		victims->gained++;
		got++;
	}
	return got;
}

static void victim_turn(unsigned device, unsigned other)
{
	struct cost cost = COST1(qp, 1);
	unsigned got = take_exactly(device, QUOTA_ON_DEVICE);
	unsigned more = take_exactly(other, QUOTA - QUOTA_ON_DEVICE);

	while (got--)
		ledger_refund(&ledger, device, &cost);
	while (more--)
		ledger_refund(&ledger, other, &cost);
	shared->victims.rounds++;
}

static void victim(int turns)
{
	int device, other;
	char token;

	become(VICTIM_UID, NULL);
	if (!victim_open())
		finish();
	device = ledger_device(&ledger, DEVICE);
	other = ledger_device(&ledger, OTHER_DEVICE);
	CHECK(!strcmp(ledger_tenant(&ledger), "victim"), "%s", ledger_tenant(&ledger));
	while (read(turns, &token, 1) == 1) {
		if (token == 'e')
			break;
		victim_turn((unsigned)device, (unsigned)other);
		token = going() ? 't' : 'e';
		if (write(turns, &token, 1) != 1 || token == 'e')
			break;
	}
	finish();
}

static void victims_start(pid_t ret_pid[2])
{
	int ends[2];

	memset(&shared->victims, 0, sizeof(shared->victims));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) || write(ends[0], "t", 1) != 1)
		abort();
	for (int i = 0; i < 2; i++) {
		ret_pid[i] = split();
		if (ret_pid[i] == 0) {
			close(ends[!i]);
			victim(ends[i]);
		}
	}
	close(ends[0]);
	close(ends[1]);
}

static int ascending(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static double milliseconds_at(double part)
{
	const struct victims *victims = &shared->victims;

	if (!victims->samples)
		return 0;
	return (double)victims->sample_ns[(unsigned)(part * (victims->samples - 1))] / 1e6;
}

static void victims_judge(const char *name, const pid_t pid[2])
{
	struct victims *victims = &shared->victims;

	for (int i = 0; i < 2; i++)
		CHECK(spawn_wait(pid[i]) == 0, "%s: a victim failed", name);
	if (victims->samples > SAMPLES_MAX)
		victims->samples = SAMPLES_MAX;
	qsort(victims->sample_ns, victims->samples, sizeof(victims->sample_ns[0]), ascending);
	printf("%-14s %5u rounds, asking p50 %.3f ms, p99 %.3f ms, slowest %.3f ms\n", name,
	       victims->rounds, milliseconds_at(0.5), milliseconds_at(0.99), milliseconds_at(1));
	CHECK(victims->lost == 0 && victims->gained == 0, "%s: %u units lost, %u too many", name,
	      victims->lost, victims->gained);
	CHECK(victims->unanswered == 0, "%s: %u calls were not answered", name,
	      victims->unanswered);
	CHECK(victims->rounds >= ROUNDS_LEAST, "%s: only %u rounds", name, victims->rounds);
	CHECK(milliseconds_at(0.99) < P99_MS, "%s: p99 %.0f ms", name, milliseconds_at(0.99));
}

/* ---- memory that was handed over */

static void usage_memory(unsigned number)
{
	off_t size = sizeof(struct usage_page);
	struct member member;
	struct proto_need need;
	int fd;

	if (!CHECK(join(&member)))
		return;
	ready();
	fd = member.usage_fd;
	need = want(&member, KIND_qp, 1);
	CHECK(ask(&need) == 0);
	CHECK(ftruncate(fd, 0) && errno == EPERM, "shrink");
	CHECK(ftruncate(fd, 4096) && errno == EPERM, "shrink to a page");
	CHECK(ftruncate(fd, 2 * size) && errno == EPERM, "grow");
	CHECK(fallocate(fd, 0, size, 4096) && errno == EPERM, "grow by fallocate");
	CHECK(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096), "collapse");
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM, "seal");
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) && errno == EPERM, "seal");
	/* A hole is read as zeros: nobody may be hurt by looking at it. */
	for (unsigned i = 0; going(); i++) {
		need.row = i % LEDGER_DEVICES;
		need.total[0] = i % (2 * QUOTA);
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size);
		CHECK(ask(&need) >= 0);
		memset(member.usage, 0xff, sizeof(*member.usage));
	}
}

/* Every way to a descriptor of the same file that can be written. */
static void table_reopen(int fd, const char *who)
{
	static const int flags[] = { O_RDWR, O_WRONLY, O_WRONLY | O_APPEND, O_RDWR | O_TRUNC };
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		CHECK(open(path, flags[i] | O_CLOEXEC) < 0, "%s opened the table with %x", who,
		      (unsigned)flags[i]);
	CHECK(truncate(path, 0), "%s truncated the table", who);
	CHECK(chmod(path, 0666), "%s changed the table's mode", who);
	CHECK(linkat(AT_FDCWD, path, AT_FDCWD, "/tmp/rdma_attack_link", AT_SYMLINK_FOLLOW),
	      "%s has a name for the table", who);
}

static void table_write(const struct member *member)
{
	size_t size = sizeof(struct lease_table);
	int fd = member->table_fd, memory;
	uint64_t word = UINT64_MAX;
	void *place = (void *)&member->table->row[0].cap[KIND_qp];

	CHECK(ftruncate(fd, 0) && ftruncate(fd, (off_t)(2 * size)), "another size");
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size), "hole");
	CHECK(fallocate(fd, 0, 0, (off_t)(2 * size)), "growth");
	CHECK(write(fd, &word, sizeof(word)) < 0 && pwrite(fd, &word, sizeof(word), 64) < 0,
	      "write");
	CHECK(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED &&
		      errno == EACCES,
	      "map");
	CHECK(mprotect((void *)member->table, size, PROT_READ | PROT_WRITE) && errno == EACCES,
	      "mprotect");
	memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	CHECK(memory >= 0, "%s", strerror(errno));
	CHECK(pwrite(memory, &word, sizeof(word), (off_t)(uintptr_t)place) < 0, "/proc/self/mem");
	close(memory);
	CHECK(fchmod(fd, 0666) && fchown(fd, ATTACKER_UID, ATTACKER_UID), "ownership");
}

static void map_write(const char *file, const char *format, unsigned id)
{
	char path[64], text[64];
	int fd, length = snprintf(text, sizeof(text), format, id);

	snprintf(path, sizeof(path), "/proc/self/%s", file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, (size_t)length) != length)
		printf("%s: %s\n", path, strerror(errno));
	close(fd);
}

/* Root of a user namespace of its own; false where that is not allowed. */
static bool become_container_root(void)
{
	uid_t uid = geteuid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return false;
	map_write("setgroups", "deny", 0);
	map_write("uid_map", "0 %u 1", uid);
	map_write("gid_map", "0 %u 1", uid);
	return geteuid() == 0;
}

static void table_of_container_root(const struct member *member)
{
	char path[64];
	int tree;

	if (!become_container_root()) {
		printf("no user namespaces here: root of one is not tried\n");
		return;
	}
	table_reopen(member->table_fd, "root of a user namespace");
	/* Another mount of the file, without the old one's flags. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", member->table_fd);
	CHECK(mount(path, "/tmp", NULL, MS_BIND, NULL), "mounted");
	tree = (int)syscall(SYS_open_tree, member->table_fd, "", AT_EMPTY_PATH | 1 /* clone */);
	CHECK(tree < 0, "open_tree gave a mount of its own");
}

/* uid 0 of a container without a user namespace: it may pass over file modes, not mount. */
static void table_of_capable_root(int fd)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { 0 };

	data[0].effective = data[0].permitted = 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER |
						1u << CAP_CHOWN | 1u << CAP_DAC_READ_SEARCH;
	if (syscall(SYS_capset, &header, data))
		abort();
	table_reopen(fd, "root of a container");
}

static void lease_table(unsigned number)
{
	struct lease_table *before = malloc(sizeof(*before));
	struct member member;
	struct proto_need need;
	pid_t child;

	if (!CHECK(join(&member)))
		return;
	ready();
	need = want(&member, KIND_qp, QUOTA);
	CHECK(ask(&need) == 0);
	memcpy(before, member.table, sizeof(*before));
	table_reopen(member.table_fd, "a user");
	table_write(&member);
	child = split();
	if (child == 0) {
		table_of_container_root(&member);
		finish();
	}
	CHECK(spawn_wait(child) == 0);
	CHECK(!memcmp(before, member.table, sizeof(*before)), "the table changed");
	rest();
}

/* The same table from the side of a root that is not quite one. */
static void lease_table_look(void)
{
	struct member member;
	pid_t child = split();

	if (child == 0) {
		if (strstr(collector_log(), "no read-only mount"))
			printf("no mounts here: root of a container is not tried\n");
		else if (CHECK(join(&member)))
			table_of_capable_root(member.table_fd);
		finish();
	}
	CHECK(spawn_wait(child) == 0);
}

/* ---- scribbling */

static struct member scribbled;

static void *scribble_thread(void *argument)
{
	uint64_t *word = (uint64_t *)scribbled.usage, random = 88172645463325252u;
	size_t words = sizeof(*scribbled.usage) / sizeof(*word);

	for (unsigned round = 0; going(); round++)
		for (size_t i = 0; i < words; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			word[i] = round % 4 == 0 ? 0 :
				  round % 4 == 1 ? UINT64_MAX :
				  round % 4 == 2 ? QUOTA :
						   random;
		}
	return NULL;
}

static void scribble(unsigned number)
{
	pthread_t thread;

	if (!CHECK(join(&scribbled)) || pthread_create(&thread, NULL, scribble_thread, NULL))
		return;
	ready();
	for (unsigned i = 0; going(); i++) {
		struct proto_need need =
			want(&scribbled, i % KIND_COUNT, i % 3 ? i % 100 : 1ull << 62);

		need.row = i % LEDGER_DEVICES;
		need.flags = i % 7 == 0 ? NEED_EXACT : 0;
		snprintf(need.device, sizeof(need.device), "%s", i % 2 ? DEVICE : OTHER_DEVICE);
		CHECK(ask(&need) >= 0);
	}
	pthread_join(thread, NULL);
}

/* Everything that the books let it have, and a claim to far more. */
static void claim_everything(unsigned number)
{
	struct member member;
	struct proto_need need;

	if (!CHECK(join(&member)))
		return;
	memset(member.usage, 0xff, sizeof(*member.usage));
	need = want(&member, KIND_qp, 1);
	while (ask(&need) == 0)
		need.total[0]++;
	ready();
	for (need.total[0] = QUOTA + 1; going(); usleep(100))
		CHECK(ask(&need) == PROTO_REFUSED);
}

static void claim_everything_look(void)
{
	CHECK(collector_tenant("attacker").used[KIND_qp] == QUOTA,
	      "the claim counts as far as granted");
}

/* ---- requests that make no sense */

/* What differs from a question for one QP. */
static const struct nonsense {
	const char *what;
	uint32_t row, count, kind[2];
	uint64_t total[2];
} nonsense[] = {
	{ "no kind", 0, 0, { KIND_qp }, { 1 } },
	{ "too many kinds", 0, COST_KINDS + 1, { KIND_qp }, { 1 } },
	{ "far too many kinds", 0, UINT32_MAX, { KIND_qp }, { 1 } },
	{ "a kind past the last", 0, 1, { KIND_COUNT }, { 1 } },
	{ "a kind far past it", 0, 1, { UINT32_MAX }, { 1 } },
	{ "a kind twice", 0, 2, { KIND_qp, KIND_qp }, { 1, QUOTA } },
	{ "a row past the last", LEDGER_DEVICES, 1, { KIND_qp }, { 1 } },
	{ "a row far past it", UINT32_MAX, 1, { KIND_qp }, { 1 } },
	{ "more than there can be", 0, 1, { KIND_qp }, { (1ull << 63) + 1 } },
	{ "all ones", 0, 1, { KIND_qp }, { UINT64_MAX } },
};

static int ask_nonsense(const struct member *member, const struct nonsense *nonsensical)
{
	struct proto_need need = want(member, KIND_qp, 1);

	need.row = nonsensical->row;
	need.count = nonsensical->count;
	memcpy(need.kind, nonsensical->kind, sizeof(nonsensical->kind));
	memcpy(need.total, nonsensical->total, sizeof(nonsensical->total));
	return ask(&need);
}

static void needs(unsigned number)
{
	struct member member;
	struct proto_need need = { .count = 1, .total = { 1 } };

	CHECK(ask(&need) == -ESTALE, "before HELLO");
	if (!CHECK(join(&member)))
		return;
	ready();
	while (going()) {
		for (unsigned i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
			CHECK(ask_nonsense(&member, &nonsense[i]) == -EINVAL, "%s",
			      nonsense[i].what);
		need = want(&member, KIND_qp, 1ull << 63);
		CHECK(ask(&need) == PROTO_REFUSED, "as much as can be said");
		need.cookie++;
		CHECK(ask(&need) == -ESTALE, "wrong cookie");
		/* No limit here: sums of many such must not wrap around. */
		for (need = want(&member, KIND_ah, 1ull << 63); need.row < LEDGER_DEVICES;
		     need.row++)
			CHECK(ask(&need) == 0, "row %u", need.row);
		memset(&need, 0xff, sizeof(need));
		CHECK(ask(&need) == -ESTALE);
	}
}

/* The first registers, the others use its cookie. */
static void cookies(unsigned number)
{
	struct member member = { 0 };
	struct proto_need need;

	if (number == 0) {
		CHECK(join(&member));
		note_set(0, member.cookie);
		ready();
		need = want(&member, KIND_qp, 8);
		member.usage->row[0].used[KIND_qp] = 8;
		while (going())
			CHECK(ask(&need) == 0);
		return;
	}
	while (!(member.cookie = note(0)) && going())
		usleep(100);
	ready();
	need = want(&member, KIND_qp, 0);
	need.flags = NEED_EXACT;
	while (going())
		CHECK(ask(&need) == -ESTALE, "another's cookie");
}

static void hellos(unsigned number)
{
	struct proto_hello hello;
	struct proto_welcome welcome;
	struct proto_need need;
	struct member member;

	ready();
	for (unsigned i = 0; going(); i++) {
		if (!CHECK(join(&member)))
			return;
		need = want(&member, KIND_qp, 4);
		CHECK(ask(&need) == 0);
		leave(&member);
		memset(&hello, i % 2 ? 0xff : 0, sizeof(hello));
		CHECK(collector_call(MESSAGE_HELLO, &hello, &welcome) == 0, "wishes of all sorts");
	}
}

static void births(unsigned number)
{
	struct member member;

	ready();
	for (unsigned i = 0; going(); i++) {
		pid_t child = split();

		if (child == 0) {
			if (i % 2)
				CHECK(join(&member));
			else
				tell(dial(), MESSAGE_HELLO, &(struct proto_hello){ 0 });
			finish();
		}
		CHECK(spawn_wait(child) == 0);
	}
}

/* ---- names of devices */

static void names(unsigned number)
{
	static const char *const odd[] = { ".", "..", "../..", "a/b", "\n", "\033[2J", "%s%n", " " };
	struct member member;
	struct proto_need need;
	unsigned seed = number;

	ready();
	while (going()) {
		if (!CHECK(join(&member)))
			return;
		need = want(&member, KIND_qp, 0);
		for (need.row = 0; need.row < LEDGER_DEVICES; need.row++) {
			unsigned which = (unsigned)rand_r(&seed);

			memset(need.device, 'x', sizeof(need.device)); /* and no end */
			if (which % 4 == 0)
				snprintf(need.device, sizeof(need.device), "%s",
					 odd[which / 4 % 8]);
			else
				snprintf(need.device, 17, "d%x", which);
			CHECK(ask(&need) == 0);
		}
		leave(&member);
	}
}

/* There is still a number for a device of which the policy will speak. */
static void names_after(void)
{
	struct proto_choose choose = { .device = "later0" };
	struct proto_row row;
	pid_t child;

	CHECK(collector_set("tenant victim", "device.later0.qp = 2") == 0);
	child = split();
	if (child == 0) {
		int device;

		become(VICTIM_UID, NULL);
		victim_open();
		device = ledger_device(&ledger, choose.device);
		CHECK(charge((unsigned)device, false) == 0 && charge((unsigned)device, false) == 0);
		CHECK(charge((unsigned)device, false) == LEDGER_REFUSED, "a limit without effect");
		finish();
	}
	CHECK(spawn_wait(child) == 0);
	row = collector_tenant("victim");
	CHECK(row.limit[KIND_qp] == QUOTA);
	CHECK(collector_set("tenant victim", "device.later0.qp = unset") == 0);
}

/* ---- floods */

static void flood(unsigned number)
{
	enum { UNREAD = 16 };
	struct proto_choose choose = { 0 };
	struct member member;
	struct proto_need need;
	int fd[UNREAD];

	if (!CHECK(join(&member)))
		return;
	ready();
	memset(fd, -1, sizeof(fd));
	need = want(&member, KIND_qp, QUOTA + 1);
	for (unsigned i = 0; going(); i = (i + 1) % UNREAD) {
		close(fd[i]);
		fd[i] = dial();
		if (number % 4 == 3) {
			tell(fd[i], MESSAGE_GET_PROC_STATS, &choose);
			continue;
		}
		tell(fd[i], number % 4 == 2 ? MESSAGE_PING : MESSAGE_NEED, &need);
		hear(fd[i]);
	}
}

/* Many processes on the books, and lists of them that nobody reads. */
static void crowd(unsigned number)
{
	enum { UNREAD = 64 };
	struct proto_choose choose = { 0 };
	int fd[UNREAD];
	struct member member;
	struct proto_need need;

	for (unsigned i = 0; i < CROWD; i++)
		if (split() == 0) {
			CHECK(join(&member));
			need = want(&member, KIND_qp, 0);
			for (need.row = 0; need.row < 4; need.row++)
				ask(&need);
			note_add(number * 4);
			rest();
			finish();
		}
	note_wait(number * 4, CROWD);
	ready();
	memset(fd, -1, sizeof(fd));
	for (unsigned i = 0; going(); i++) {
		close(fd[i % UNREAD]);
		fd[i % UNREAD] = dial();
		tell(fd[i % UNREAD], MESSAGE_GET_PROC_STATS, &choose);
	}
	while (wait(NULL) > 0)
		;
}

/* A lease on every row of many processes, all of them to be swept for each refusal. */
static void leases(unsigned number)
{
	enum { MEMBERS = 15 };
	struct member member;
	struct proto_need need;

	for (unsigned i = 0; i < MEMBERS; i++)
		if (split() == 0) {
			CHECK(join(&member));
			need = want(&member, KIND_qp, 0);
			for (need.row = 0; need.row < LEDGER_DEVICES; need.row++)
				CHECK(ask(&need) == 0);
			note_add(number * 4);
			rest();
			finish();
		}
	note_wait(number * 4, MEMBERS);
	CHECK(join(&member));
	need = want(&member, KIND_qp, QUOTA + 1);
	ready();
	while (going())
		CHECK(ask(&need) == PROTO_REFUSED);
	while (wait(NULL) > 0)
		;
}

static void storm(unsigned number)
{
	enum { OPEN = 1000 };
	int fd[OPEN];

	ready();
	memset(fd, -1, sizeof(fd));
	for (unsigned i = 0; going(); i++) {
		close(fd[i % OPEN]);
		fd[i % OPEN] = dial_at(collector_socket(), SOCK_NONBLOCK);
	}
}

/* ---- connections */

static void silence(unsigned number)
{
	enum { SILENT = 512 };

	for (unsigned i = 0; i < SILENT; i++)
		dial();
	ready();
	rest();
}

static unsigned descriptors(pid_t pid)
{
	char path[64];
	unsigned count = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	directory = opendir(path);
	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	return count;
}

static unsigned descriptors_at_start;

/* One user alone cannot use up what all share; and who is in charge still sees. */
static void bounded_look(void)
{
	double until = seconds_now() + 5;
	unsigned now;

	do {
		now = descriptors(collector_pid());
		usleep(10000);
	} while (now > descriptors_at_start + DESCRIPTORS_MORE && seconds_now() < until);
	CHECK(now <= descriptors_at_start + DESCRIPTORS_MORE,
	      "the collector has %u descriptors, %u before", now, descriptors_at_start);
	CHECK(collector_tenant("victim").limit[KIND_qp] == QUOTA, "nobody can look");
}

static void sees_look(void)
{
	CHECK(collector_tenant("victim").limit[KIND_qp] == QUOTA, "nobody can look");
}

/* Answered by -EPROTO, or the connection ends: in any case it is over. */
static void refused_frame(const char *what, const void *bytes, size_t size)
{
	int fd = dial(), status;

	put(fd, bytes, size);
	shutdown(fd, SHUT_WR);
	status = hear(fd);
	CHECK(status == -EPROTO || status == 1, "%s: %d", what, status);
	close(fd);
}

static void frames(unsigned number)
{
	static const uint32_t lengths[] = {
		0, 1, 23, 25, 4096, 4097, 1 << 20, INT32_MAX, UINT32_MAX
	};
	static const unsigned types[] = { 0, 14, 15, 99, 0x7fff, 0xffff };
	unsigned seed = number;
	char garbage[PROTO_REQUEST_MAX];

	ready();
	while (going()) {
		struct letter whole = letter(MESSAGE_PING, NULL), two[2] = { 0 };

		for (size_t i = 0; i < sizeof(garbage); i++)
			garbage[i] = (char)rand_r(&seed);
		refused_frame("garbage", garbage, sizeof(garbage));
		refused_frame("nothing", garbage, 0);
		refused_frame("half a header", &whole, sizeof(whole.header) / 2);
		for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			whole = letter(MESSAGE_PING, NULL);
			whole.header.length = lengths[i];
			refused_frame("length", &whole, sizeof(whole));
			memcpy(whole.body, garbage, sizeof(whole.body));
			refused_frame("length", &whole, sizeof(whole.header));
		}
		for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			whole = letter(MESSAGE_PING, NULL);
			whole.header.type = (uint16_t)types[i];
			refused_frame("type", &whole, sizeof(whole.header));
		}
		whole = letter(MESSAGE_PING, NULL);
		whole.header.kinds++;
		refused_frame("kinds", &whole, sizeof(whole.header));
		whole.header.kinds--;
		whole.header.version++;
		refused_frame("version", &whole, sizeof(whole.header));
		two[0] = two[1] = letter(MESSAGE_PING, NULL);
		memmove(two[0].body, &two[1].header, sizeof(two[1].header));
		refused_frame("two at once", two, 2 * sizeof(two[0].header));
	}
}

/* Ends of connections at every moment, bytes one by one, requests without a listener. */
static void hang_ups(unsigned number)
{
	struct proto_choose choose = { 0 };
	unsigned seed = number;

	ready();
	while (going()) {
		struct letter whole = letter(MESSAGE_HELLO, &(struct proto_hello){ 0 });
		size_t size = whole.header.length, half = (size_t)rand_r(&seed) % size;
		int fd = dial(), status;

		tell(fd, MESSAGE_GET_STATS, &choose);
		shutdown(fd, SHUT_RD);
		close(fd);
		fd = dial();
		tell(fd, MESSAGE_EVENTS, &choose);
		close(fd);
		fd = dial();
		put(fd, &whole, half);
		close(fd);
		fd = dial();
		shutdown(fd, SHUT_RDWR);
		close(fd);
		fd = dial();
		tell(fd, MESSAGE_HELLO, NULL);
		close(fd);
		fd = dial();
		for (size_t i = 0; i < size; i++)
			put(fd, (char *)&whole + i, 1);
		status = hear(fd);
		CHECK(status == 0, "byte by byte: %d", status);
		close(fd);
	}
}

static bool has_ended(int fd)
{
	char byte;

	return recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

/* Neither a trickle nor a newcomer moves the deadline. */
static void trickle(unsigned number)
{
	enum { TRICKLES = 64, PAUSE_US = 200000 };
	struct letter whole = letter(MESSAGE_EXPLAIN, &(struct proto_ask){ .pid = 1 });
	double begun = seconds_now();
	int fd[TRICKLES];

	for (int i = 0; i < TRICKLES; i++)
		fd[i] = dial();
	ready();
	for (size_t sent = 0; sent + 1 < whole.header.length && !has_ended(fd[0]); sent++) {
		for (int i = 0; i < TRICKLES; i++)
			put(fd[i], (char *)&whole + sent, 1);
		dial();
		usleep(PAUSE_US);
	}
	CHECK(seconds_now() - begun < TRICKLE_SECONDS, "%.1f s", seconds_now() - begun);
	rest();
}

/* Descriptors that nobody asked for, with whole requests, with parts and with rubbish. */
static void gifts(unsigned number)
{
	enum { GIFTS = 64 };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(GIFTS * sizeof(int))];
	} control = { 0 };
	struct letter whole = letter(MESSAGE_PING, NULL);
	int gift = memfd_create("gift", MFD_CLOEXEC);

	ready();
	for (unsigned i = 0; going(); i++) {
		struct iovec part = { &whole, i % 3 == 0 ? sizeof(whole.header) : 1 + i % 24 };
		struct msghdr message = { .msg_iov = &part,
					  .msg_iovlen = 1,
					  .msg_control = &control,
					  .msg_controllen = sizeof(control) };
		int fd = dial();

		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(GIFTS * sizeof(int));
		for (int j = 0; j < GIFTS; j++)
			memcpy(CMSG_DATA(&control.header) + (size_t)j * sizeof(gift), &gift,
			       sizeof(gift));
		sendmsg(fd, &message, MSG_NOSIGNAL);
		if (i % 3 == 0)
			CHECK(hear(fd) == 0);
		close(fd);
	}
}

/* Half of them read and half do not; and there is much to tell. */
static void subscribers(unsigned number)
{
	enum { SUBSCRIBED = 256 };
	/* The past of all would be more than is kept for one that does not read. */
	struct proto_choose choose = { .flags = CHOOSE_FOLLOW, .pid = getpid() };
	struct member member;
	struct proto_need need;
	struct pollfd fd[SUBSCRIBED];
	char text[65536];

	if (!CHECK(join(&member)))
		return;
	for (int i = 0; i < SUBSCRIBED; i++) {
		fd[i] = (struct pollfd){ .fd = dial(), .events = i % 2 ? POLLIN : 0 };
		tell(fd[i].fd, MESSAGE_EVENTS, &choose);
	}
	ready();
	need = want(&member, KIND_qp, QUOTA + 1);
	while (going()) {
		if (number % 2)
			ask(&need);
		poll(fd, SUBSCRIBED, 0);
		for (int i = 1; i < SUBSCRIBED; i += 2)
			if (fd[i].revents && recv(fd[i].fd, text, sizeof(text), MSG_DONTWAIT) == 0)
				fd[i].fd = -1;
	}
}

/* ---- rights */

static const struct right {
	enum message type;
	const char *section, *text;
} rights[] = {
	{ MESSAGE_SET_LIMIT, "tenant attacker", "mr = 5" },
	{ MESSAGE_SET_LIMIT, "tenant attacker", "mr = unset" },
	{ MESSAGE_TENANT_ADD, "tenant stranger", "qp = 1000\nmatch = uid=60003" },
	{ MESSAGE_TENANT_REMOVE, "tenant stranger", "" },
	{ MESSAGE_RELOAD, "", "" },
};

static void rights_use(int expected)
{
	for (unsigned i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
		struct proto_change change = { 0 };
		int result;

		strcpy(change.section, rights[i].section);
		strcpy(change.text, rights[i].text);
		result = collector_call(rights[i].type, &change, NULL);
		CHECK(result == expected, "right %u: %d, not %d", i, result, expected);
	}
}

static void changes(unsigned number)
{
	ready();
	while (going())
		rights_use(-EPERM);
}

/* The victim goes on and on while limits of others change by a right that exists. */
static void changes_look(void)
{
	struct proto_pong before = { 0 }, after = { 0 };
	struct proto_row row;
	pid_t child;

	CHECK(collector_call(MESSAGE_PING, NULL, &before) == 0);
	usleep(300000);
	CHECK(collector_call(MESSAGE_PING, NULL, &after) == 0);
	CHECK(before.reloads == after.reloads && before.tenants == after.tenants, "changed");
	row = collector_tenant("attacker");
	CHECK(row.limit[KIND_qp] == QUOTA && row.limit[KIND_mr] == PROTO_UNLIMITED);
	if (!getgrnam(ADMIN_GROUP)) {
		printf("no group " ADMIN_GROUP " here: rights by a group are not tried\n");
		return;
	}
	child = split();
	if (child == 0) {
		become(ATTACKER_UID, ADMIN_GROUP);
		rights_use(0);
		finish();
	}
	CHECK(spawn_wait(child) == 0);
	CHECK(collector_call(MESSAGE_PING, NULL, &after) == 0);
	CHECK(after.reloads == before.reloads + 1 && after.tenants == before.tenants);
}

static void signals(unsigned number)
{
	static const int all[] = { SIGKILL, SIGTERM, SIGHUP, SIGSTOP, SIGINT, SIGSEGV };
	pid_t pid = collector_pid();
	char path[64];

	ready();
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		CHECK(kill(pid, all[i]) && errno == EPERM, "signal %d", all[i]);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	CHECK(open(path, O_RDWR | O_CLOEXEC) < 0);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	CHECK(open(path, O_RDONLY | O_CLOEXEC) < 0);
	CHECK(unlink(collector_socket()) && errno == EACCES);
	CHECK(rename(collector_socket(), "/tmp/rdma_attack_socket"));
	CHECK(truncate(harness_path("policy.conf"), 0));
	CHECK(open(harness_path("state/ledger"), O_RDWR | O_CLOEXEC) < 0);
	rest();
}

/* ---- deaths: what a member was handed lives on with somebody else */

enum { NOTE_USAGE, NOTE_LIFELINE, NOTE_WAIT, NOTES };

/* A child with the same table of descriptors: what it opens stays when it has ended. */
static pid_t split_sharing(void)
{
	fflush(stdout);
	failures_before = checks_failed();
	return (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
}

/* Registers, holds something, and ends when it may. */
static void __attribute__((noreturn)) die_holding(unsigned number)
{
	struct member member;
	struct proto_need need;

	if (!CHECK(join(&member)))
		finish();
	need = want(&member, KIND_qp, 1);
	CHECK(ask(&need) >= 0);
	member.usage->row[0].used[KIND_qp] = 1;
	close(member.table_fd);
	note_set(number * 4 + NOTE_LIFELINE, (uint64_t)member.connection);
	note_set(number * 4 + NOTE_USAGE, (uint64_t)member.usage_fd);
	while (note(number * 4 + NOTE_WAIT))
		usleep(100);
	finish();
}

/* As many descriptors as the system allows, to be searched through at each death. */
static void heirs(unsigned number)
{
	enum { KEPT = 16 };
	int usage[KEPT], lifeline[KEPT];
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	while (dup(STDOUT_FILENO) >= 0)
		;
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	memset(usage, -1, sizeof(usage));
	memset(lifeline, -1, sizeof(lifeline));
	ready();
	for (unsigned i = 0; going(); i = (i + 1) % KEPT) {
		pid_t child = split_sharing();

		if (child == 0)
			die_holding(number);
		CHECK(spawn_wait(child) == 0);
		close(usage[i]);
		close(lifeline[i]);
		usage[i] = (int)note(number * 4 + NOTE_USAGE);
		lifeline[i] = (int)note(number * 4 + NOTE_LIFELINE);
	}
}

struct flipping {
	int place, page, other;
	bool stop;
};

static void *flip_thread(void *argument)
{
	struct flipping *flipping = argument;

	while (!__atomic_load_n(&flipping->stop, __ATOMIC_RELAXED)) {
		dup3(flipping->other, flipping->place, O_CLOEXEC);
		dup3(flipping->page, flipping->place, O_CLOEXEC);
	}
	return NULL;
}

/* A descriptor that is a usage page when it is looked at and, when it is opened, a pipe
 * to which nobody will ever write. */
static void flip(unsigned number)
{
	struct flipping flipping;
	char path[64];
	int pipe_fd;
	pthread_t thread;

	snprintf(path, sizeof(path), "/tmp/rdma_attack.%d", (int)getpid());
	if (mkfifo(path, 0666))
		abort();
	pipe_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	unlink(path);
	ready();
	while (going()) {
		pid_t child;

		note_set(number * 4 + NOTE_USAGE, 0);
		note_set(number * 4 + NOTE_WAIT, 1);
		child = split_sharing();
		if (child == 0)
			die_holding(number);
		while (!note(number * 4 + NOTE_USAGE) && going())
			usleep(100);
		flipping = (struct flipping){ .place = (int)note(number * 4 + NOTE_USAGE),
					      .other = pipe_fd };
		flipping.page = fcntl(flipping.place, F_DUPFD_CLOEXEC, 200);
		pthread_create(&thread, NULL, flip_thread, &flipping);
		note_set(number * 4 + NOTE_WAIT, 0);
		spawn_wait(child);
		usleep(20000);
		__atomic_store_n(&flipping.stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		close(flipping.place);
		close(flipping.page);
		close((int)note(number * 4 + NOTE_LIFELINE));
	}
}

/* ---- the table of attacks */

static const struct attack {
	const char *name;
	const char *holds; /* besides what the victim gets */
	unsigned processes;
	double seconds;
	void (*run)(unsigned number); /* in each of the attacker's processes */
	void (*look)(void);	      /* in the driver, meanwhile */
	void (*after)(void);	      /* in the driver, when they have ended */
} attacks[] = {
	{ "usage memory", "its size cannot be changed, a hole in it hurts nobody", 2, 1,
	  usage_memory, NULL, NULL },
	{ "lease table", "nobody gets a way to write it, as root of a container neither", 1, 1,
	  lease_table, lease_table_look, NULL },
	{ "scribble", "counts of the scribbler alone are wrong", 2, 2, scribble, NULL, NULL },
	{ "claims", "a claim counts up to what was granted", 4, 1, claim_everything,
	  claim_everything_look, NULL },
	{ "needs", "each is refused by its own number", 4, 1, needs, NULL, NULL },
	{ "cookies", "one of another process is worth nothing", 4, 1, cookies, NULL, NULL },
	{ "hellos", "the last one counts", 4, 1, hellos, NULL, NULL },
	{ "births", "who has ended is forgotten", 4, 1, births, NULL, NULL },
	{ "names", "numbers are left for devices that exist", 4, 1, names, NULL, names_after },
	{ "flood", "16 processes ask as fast as they can", 16, 2, flood, sees_look, NULL },
	{ "crowd", "many processes, and lists of them that nobody reads", 16, 2, crowd, NULL, NULL },
	{ "leases", "7,680 leases to be swept", 16, 2, leases, NULL, NULL },
	{ "storm", "16,000 connections, as fast as they can be made", 16, 2, storm, NULL, NULL },
	{ "silence", "8,192 connections cost no more than some", 16, 2, silence, bounded_look,
	  NULL },
	{ "frames", "no message that is none is taken for one", 4, 1, frames, NULL, NULL },
	{ "hang-ups", "a connection may end at any moment", 4, 1, hang_ups, NULL, NULL },
	{ "trickle", "the time for a request is the same for all", 2, 4, trickle, NULL, NULL },
	{ "gifts", "descriptors that come are not kept", 4, 1, gifts, bounded_look, NULL },
	{ "subscribers", "4,096 subscribers cost no more than some", 16, 2, subscribers,
	  bounded_look, NULL },
	{ "changes", "nothing is changed without the right to", 2, 1, changes, changes_look, NULL },
	{ "signals", "the collector and its files are out of reach", 1, 1, signals, NULL, NULL },
	{ "heirs", "a death is no long search", 4, 2, heirs, NULL, NULL },
	{ "flip", "what is searched for is not waited for", 4, 2, flip, NULL, NULL },
};

static bool collector_answers(void)
{
	struct proto_pong pong;

	return collector_call(MESSAGE_PING, NULL, &pong) == 0 && pong.pid == collector_pid();
}

static bool is_idle(void)
{
	struct proto_row victim = collector_tenant("victim"),
			 attacker = collector_tenant("attacker");
	struct proto_pong pong;

	if (collector_call(MESSAGE_PING, NULL, &pong) || pong.processes || pong.leases)
		return false;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (victim.used[kind] || victim.granted[kind] || attacker.used[kind] ||
		    attacker.granted[kind])
			return false;
	return descriptors(collector_pid()) <= descriptors_at_start + DESCRIPTORS_OURS;
}

/* Everybody has gone: nothing is left of them. */
static void aftermath(const char *name)
{
	double until = seconds_now() + SETTLE_SECONDS;
	struct proto_pong pong = { 0 };

	if (!CHECK(collector_answers(), "%s: the collector does not answer any more: %s", name,
		   collector_log())) {
		collector_kill();
		collector_start("");
		return;
	}
	while (!is_idle() && seconds_now() < until)
		usleep(10000);
	collector_call(MESSAGE_PING, NULL, &pong);
	CHECK(is_idle(), "%s: %u processes, %u leases, %u descriptors (%u before)", name,
	      pong.processes, pong.leases, descriptors(collector_pid()), descriptors_at_start);
	CHECK(collector_tenant("attacker").peak[KIND_qp] <= QUOTA &&
		      collector_tenant("victim").peak[KIND_qp] <= QUOTA &&
		      collector_tenant(NULL).peak[KIND_qp] <= 2 * QUOTA,
	      "%s: a limit was exceeded", name);
}

static void attack(const struct attack *row)
{
	pid_t attackers[ATTACKERS_MAX], victims[2];
	double until = seconds_now() + SETTLE_SECONDS;

	shared->ready = shared->stop = 0;
	memset(shared->note, 0, sizeof(shared->note));
	for (unsigned i = 0; i < row->processes; i++) {
		attackers[i] = split();
		if (attackers[i] == 0) {
			become(ATTACKER_UID, NULL);
			row->run(i);
			finish();
		}
	}
	while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < row->processes &&
	       seconds_now() < until)
		usleep(1000);
	CHECK(shared->ready == row->processes, "%s: %u of %u are ready", row->name, shared->ready,
	      row->processes);
	victims_start(victims);
	until = seconds_now() + row->seconds;
	if (row->look)
		row->look();
	while (seconds_now() < until)
		usleep(10000);
	stop();
	victims_judge(row->name, victims);
	for (unsigned i = 0; i < row->processes; i++)
		CHECK(spawn_wait(attackers[i]) == 0, "%s: %s", row->name, row->holds);
	aftermath(row->name);
	if (row->after)
		row->after();
}

/* ---- the number of a process that was another's */

/* With that number, if the system lets us. */
static pid_t split_as(pid_t wanted)
{
	struct clone_args arguments = { .exit_signal = SIGCHLD,
					.set_tid = (uintptr_t)&wanted,
					.set_tid_size = 1 };

	fflush(stdout);
	failures_before = checks_failed();
	return (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
}

enum { NOTE_COOKIE = 8, NOTE_HEIR, NOTE_TAKEN, NOTE_DONE };

/* Connects, registers, leaves its connections to a child, and ends. */
static void __attribute__((noreturn)) predecessor(void)
{
	struct proto_hello hello = no_wishes();
	struct member member;
	struct proto_need need;
	int first, second;

	become(ATTACKER_UID, NULL);
	CHECK(join(&member));
	note_set(NOTE_COOKIE, member.cookie);
	first = dial();
	second = dial();
	if (fork() == 0) {
		note_set(NOTE_HEIR, 1);
		note_wait(NOTE_TAKEN, 1);
		need = want(&member, KIND_qp, 0);
		need.flags = NEED_EXACT;
		tell(first, MESSAGE_NEED, &need);
		CHECK(hear(first) < 0, "the dead one's cookie is good");
		tell(second, MESSAGE_HELLO, &hello);
		CHECK(hear(second) < 0, "registered in the name of another");
		fflush(stdout);
		note_set(NOTE_DONE, checks_failed() != failures_before ? 2 : 1);
		_exit(0);
	}
	note_wait(NOTE_HEIR, 1);
	finish();
}

/* The victim with the dead one's number; it must not notice anything. */
static void __attribute__((noreturn)) successor(void)
{
	unsigned device;
	int result;

	become(VICTIM_UID, NULL);
	victim_open();
	device = (unsigned)ledger_device(&ledger, OTHER_DEVICE);
	CHECK(take_exactly(device, QUOTA / 2 + 1) >= QUOTA / 2);
	note_set(NOTE_TAKEN, 1);
	note_wait(NOTE_DONE, 1);
	result = charge(device, false);
	CHECK(result == 0, "the registration is lost: %d", result);
	note_set(NOTE_DONE, 3);
	rest();
	finish();
}

static void number_used_again(const char *kernel)
{
	struct proto_row row;
	pid_t first, second;

	memset(shared, 0, offsetof(typeof(*shared), victims));
	first = split();
	if (first == 0)
		predecessor();
	CHECK(spawn_wait(first) == 0);
	usleep(50000); /* who started in the same tick of the clock cannot be told apart by it */
	second = split_as(first);
	if (second == 0)
		successor();
	if (second < 0) {
		printf("a process number cannot be chosen here (%s): not tried\n", strerror(errno));
		note_set(NOTE_TAKEN, 1);
		return;
	}
	CHECK(note_wait(NOTE_DONE, 3), "%s: state %llu", kernel,
	      (unsigned long long)note(NOTE_DONE));
	row = collector_process(second);
	CHECK(!strcmp(row.tenant, "victim") && row.uid == VICTIM_UID &&
		      row.used[KIND_qp] > QUOTA / 2,
	      "%s: process %d is %s's and holds %llu", kernel, (int)second, row.tenant,
	      (unsigned long long)row.used[KIND_qp]);
	end(second);
}

/* The same where the kernel cannot give a pidfd of a peer. */
static void number_used_again_before_6_5(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_PEERPIDFD, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	pid_t child = split();

	if (child == 0) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
			printf("no seccomp here: an older kernel is not tried\n");
			_exit(0);
		}
		collector_start("");
		number_used_again("before Linux 6.5");
		collector_stop();
		finish();
	}
	CHECK(spawn_wait(child) == 0);
}

/* ---- a file that passes for a usage page when the collector is started again */

enum { NOTE_PLACED = 12, NOTE_RESTARTED, NOTE_CUT };
enum { INODES_MOST = 500000 }; /* what a young system has given out; more would take long */

/* A file of that number, size and name, without the seals. -1 where there cannot be one. */
static int imposter_make(uint64_t inode)
{
	static const char path[] = "/tmp/memfd:rdma_intercept_usage";
	struct stat status = { 0 };
	int fd = -1;

	if (inode > INODES_MOST || !become_container_root() ||
	    mount("tmpfs", "/tmp", "tmpfs", 0, NULL))
		return -1;
	do {
		close(fd);
		unlink(path);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	} while (fd >= 0 && !fstat(fd, &status) && status.st_ino < inode);
	/* On a mount that is gone its path is its name alone. */
	if (status.st_ino != inode || ftruncate(fd, sizeof(struct usage_page)) ||
	    umount2("/tmp", MNT_DETACH))
		return -1;
	return fd;
}

static void __attribute__((noreturn)) imposter(void)
{
	struct proto_need need;
	struct member member;
	struct stat status;
	int fd;

	become(ATTACKER_UID, NULL);
	CHECK(join(&member));
	need = want(&member, KIND_qp, 1);
	CHECK(ask(&need) == 0 && fstat(member.usage_fd, &status) == 0);
	fd = imposter_make(status.st_ino);
	leave(&member);
	note_set(NOTE_PLACED, fd < 0 ? 2 : 1);
	note_wait(NOTE_RESTARTED, 1);
	if (fd >= 0)
		CHECK(ftruncate(fd, 0) == 0);
	note_set(NOTE_CUT, 1);
	rest();
	finish();
}

static void page_of_another(void)
{
	double until = seconds_now() + 3 * SETTLE_SECONDS;
	pid_t child;

	memset(shared, 0, offsetof(typeof(*shared), victims));
	child = split();
	if (child == 0)
		imposter();
	while (!note(NOTE_PLACED) && seconds_now() < until)
		usleep(1000);
	if (note(NOTE_PLACED) != 1)
		printf("no file can be made here that passes for a usage page: not tried\n");
	collector_kill();
	collector_start("");
	note_set(NOTE_RESTARTED, 1);
	note_wait(NOTE_CUT, 1);
	CHECK(collector_process(child).uid == ATTACKER_UID, "the collector looked and fell: %s",
	      collector_log());
	stop();
	CHECK(spawn_wait(child) == 0);
}

/* ---- what is in the way at the start */

/* Runs a collector that is to refuse. Returns what it said. */
static const char *refusal(const char *socket_path, const char *state)
{
	static char text[4096];
	char program[PATH_MAX];
	int ends[2], status = -1;
	size_t length = 0;
	ssize_t part;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		abort();
	child = split();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		snprintf(program, sizeof(program), "%s/collector_server",
			 getenv("BUILD_DIRECTORY"));
		alarm(5); /* if it is content and serves */
		execl(program, "collector_server", "--socket", socket_path, "--state", state,
		      "--policy", harness_path("policy.conf"), NULL);
		_exit(126);
	}
	close(ends[1]);
	while ((part = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)part;
	text[length] = '\0';
	close(ends[0]);
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%s %s: status %x, %s", socket_path,
	      state, (unsigned)status, text);
	return text;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mode == b->st_mode &&
	       a->st_uid == b->st_uid && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int serve_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || chmod(path, 0777) ||
	    listen(fd, 10))
		return -1;
	return fd;
}

enum plant {
	PLANT_LINK,
	PLANT_DANGLING,
	PLANT_FILE,
	PLANT_DIRECTORY,
	PLANT_FIFO,
	PLANT_SOCKET,
	PLANTS
};

static void plant(enum plant what, const char *path, const char *target)
{
	int fd = -1;

	become(ATTACKER_UID, NULL);
	switch (what) {
	case PLANT_LINK:
		fd = symlink(target, path);
		break;
	case PLANT_DANGLING:
		fd = symlink("/etc/rdma_attack", path);
		break;
	case PLANT_FILE:
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		break;
	case PLANT_DIRECTORY:
		fd = mkdir(path, 0777);
		break;
	case PLANT_FIFO:
		fd = mkfifo(path, 0666);
		break;
	default:
		fd = serve_at(path);
		break;
	}
	CHECK(fd >= 0, "plant %d: %s", what, strerror(errno));
	note_set(0, 1);
	rest();
	finish();
}

/* A socket of another unprivileged user is nobody's collector. */
static void served_by_another(const char *path)
{
	char problem[PROTO_PROBLEM];
	struct proto_pong pong;
	pid_t child = split();

	if (child == 0) {
		become(VICTIM_UID, NULL);
		CHECK(proto_call(path, MESSAGE_PING, NULL, &pong, NULL, 0, 0, problem) == -EPERM,
		      "%s", problem);
		finish();
	}
	CHECK(spawn_wait(child) == 0);
	CHECK(proto_call(path, MESSAGE_PING, NULL, &pong, NULL, 0, 0, problem) == -EPERM, "%s",
	      problem);
}

static void planted_paths(void)
{
	char directory[PROTO_PATH - 8], path[PROTO_PATH], target[PATH_MAX], state[PATH_MAX];
	struct stat before, after, target_before, target_after;
	const char *said;

	snprintf(directory, sizeof(directory), "%s", harness_path("common"));
	snprintf(target, sizeof(target), "%s", harness_path("policy.conf"));
	snprintf(state, sizeof(state), "%s", harness_path("other_state"));
	if (mkdir(directory, 0777) || chmod(directory, 01777))
		abort();
	for (unsigned what = 0; what < PLANTS; what++) {
		pid_t planter;

		snprintf(path, sizeof(path), "%s/s%u", directory, what);
		shared->stop = 0;
		note_set(0, 0);
		planter = split();
		if (planter == 0)
			plant(what, path, target);
		note_wait(0, 1);
		CHECK(lstat(path, &before) == 0 && lstat(target, &target_before) == 0);
		said = refusal(path, state);
		CHECK(strstr(said, path) != NULL, "plant %u: %s", what, said);
		CHECK(lstat(path, &after) == 0 && same_file(&before, &after),
		      "plant %u was touched", what);
		CHECK(lstat(target, &target_after) == 0 && same_file(&target_before, &target_after),
		      "a link was followed");
		if (what == PLANT_SOCKET)
			served_by_another(path);
		stop();
		CHECK(spawn_wait(planter) == 0);
	}
	CHECK(access("/etc/rdma_attack", F_OK) != 0);
	/* The server of the last one has gone, its socket is still another's. */
	said = refusal(path, state);
	CHECK(strstr(said, path) != NULL, "%s", said);
}

static void planted_state(void)
{
	char path[PATH_MAX], good[PATH_MAX], socket_path[PATH_MAX];
	const char *said;

	snprintf(path, sizeof(path), "%s", harness_path("planted_state"));
	snprintf(good, sizeof(good), "%s", harness_path("good_state"));
	snprintf(socket_path, sizeof(socket_path), "%s", harness_path("unused.sock"));
	if (mkdir(path, 0700) || mkdir(good, 0700))
		abort();
	for (unsigned mode = 0701; mode <= 0777; mode += 0777 - 0701) {
		if (chmod(path, mode))
			abort();
		said = refusal(socket_path, path);
		CHECK(strstr(said, path) != NULL, "%s", said);
	}
	if (chmod(path, 0700) || chown(path, ATTACKER_UID, ATTACKER_UID))
		abort();
	said = refusal(socket_path, path);
	CHECK(strstr(said, path) != NULL, "%s", said);
	if (rmdir(path) || symlink(good, path))
		abort();
	said = refusal(socket_path, path);
	CHECK(strstr(said, path) != NULL, "%s", said);
	CHECK(rmdir(good) == 0, "something was written behind the link");
}

/* ---- */

static long resident_kb(pid_t pid)
{
	char path[64], line[256];
	long kb = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "VmRSS: %ld", &kb);
	if (file)
		fclose(file);
	return kb;
}

static void driver(void)
{
	long resident;
	double begun = seconds_now();
	char *slash;
	char directory[PATH_MAX];

	if (geteuid())
		skip("this needs root, to be two users");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	snprintf(directory, sizeof(directory), "%s", collector_socket());
	slash = strrchr(directory, '/');
	*slash = '\0';
	if (shared == MAP_FAILED || chmod(directory, 0711))
		abort();
	collector_policy("[collector]\nadmin_group = " ADMIN_GROUP "\n"
			 "[host]\nqp = 32\n"
			 "[tenant victim]\nmatch = uid=60001\nqp = 16\ndevice." DEVICE ".qp = 12\n"
			 "[tenant attacker]\nmatch = uid=60002\nqp = 16\n");
	collector_start("");
	descriptors_at_start = descriptors(collector_pid());
	resident = resident_kb(collector_pid());
	/* ATTACK=name: that one alone. */
	for (unsigned i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		if (!getenv("ATTACK") || !strcmp(getenv("ATTACK"), attacks[i].name))
			attack(&attacks[i]);
	number_used_again("this kernel");
	aftermath("a number used again");
	resident = resident_kb(collector_pid()) - resident;
	printf("the collector has %ld KB more than at the start\n", resident);
#ifndef __SANITIZE_ADDRESS__
	CHECK(resident < RESIDENT_MORE_KB, "%ld KB", resident);
#endif
	page_of_another();
	collector_stop();
	number_used_again_before_6_5();
	planted_paths();
	planted_state();
	CHECK(!strstr(collector_log(), "runtime error") && !strstr(collector_log(), "Sanitizer"),
	      "%s", collector_log());
	printf("%.0f s\n", seconds_now() - begun);
}

static const struct scenario no_scenarios[] = { { 0 } };

int main(int argc, char **argv)
{
	return harness_main(argc, argv, no_scenarios, driver);
}
