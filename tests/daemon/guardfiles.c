/* SPDX-License-Identifier: MIT */
/* A guard of files for tests; see guardfiles.h. */
#include "guardfiles.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "kernel.h"

char guard_directory[128], guard_cgroups[128], guard_devices[128], guard_lsm[128];
char guard_variables[1024];

struct guard_head *guard_head;
struct guard_limits *guard_limits;
struct guard_counts *guard_counts;
struct guard_entry *guard_entries;
struct guard_cgroup *guard_tenants;
static struct guard_rule *guard_rules;

static void *file_make(const char *name, size_t bytes)
{
	char path[160], temporary[164];
	void *memory;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", guard_directory, name);
	snprintf(temporary, sizeof(temporary), "%s~", path);
	fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		abort();
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED || rename(temporary, path))
		abort();
	close(fd);
	return memory;
}

struct guard_head guard_usual(void)
{
	return (struct guard_head){
		.magic = GUARD_MAGIC,
		.version = GUARD_VERSION,
		.tenants = GUARD_TENANTS,
		.kinds = kinds_signature(),
		.guarded = GUARDED,
		.armed = 1,
		.ways = GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE,
		.counted = ~0ull,
		.tended_ns = 1ull << 62, /* as if rdma_monitor ran, for all the time of a test */
		.most = { [GUARD_OBJECTS] = PLACES, [GUARD_RUNNING] = PLACES },
	};
}

void guard_load(struct guard_head wanted)
{
	mkdir(guard_directory, 0755);
	guard_limits = file_make("guard_limits", GUARD_TENANTS * sizeof(*guard_limits));
	guard_counts = file_make("guard_counts", GUARD_TENANTS * sizeof(*guard_counts));
	guard_entries = file_make("guard_log", GUARD_LOG * sizeof(*guard_entries));
	guard_tenants = file_make("guard_tenants", GUARD_CGROUPS * sizeof(*guard_tenants));
	guard_rules = file_make("guard_rules", 2 * GUARD_RULES * sizeof(*guard_rules));
	guard_head = file_make("guard_head", sizeof(*guard_head));
	wanted.magic = 0;
	*guard_head = wanted;
	__atomic_store_n(&guard_head->magic, GUARD_MAGIC, __ATOMIC_RELEASE);
}

void guard_unload(void)
{
	static const char *const names[] = { "guard_head", "guard_limits", "guard_counts",
					     "guard_log", "guard_tenants", "guard_rules" };
	char path[160];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", guard_directory, names[i]);
		unlink(path);
	}
}

void guard_log(enum guard_event event, __u32 slot, pid_t pid, enum kind kind, __u64 used)
{
	__u64 number = __atomic_fetch_add(&guard_head->logged, 1, __ATOMIC_SEQ_CST);
	struct guard_entry *entry = &guard_entries[number % GUARD_LOG];

	__atomic_store_n(&entry->number, 0, __ATOMIC_SEQ_CST);
	entry->event = event;
	entry->slot = slot;
	entry->pid = (__u32)pid;
	entry->kind = kind;
	entry->amount = 1;
	entry->used = entry->limit = used;
	strcpy(entry->command, "intruder");
	__atomic_store_n(&entry->number, number + 1, __ATOMIC_SEQ_CST);
}

/* ---- cgroups */

const char *cgroup_path(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s%s", guard_cgroups, name);
	return path;
}

void cgroup_make(const char *name)
{
	if (mkdir(cgroup_path(name), 0755))
		abort();
}

__u64 cgroup_inode(const char *name)
{
	struct stat status;

	return stat(cgroup_path(name), &status) ? 0 : status.st_ino;
}

__u32 guard_inode_slot(__u64 inode)
{
	for (unsigned i = 0; inode && i < GUARD_CGROUPS; i++)
		if (__atomic_load_n(&guard_tenants[i].cgroup, __ATOMIC_ACQUIRE) == inode)
			return guard_tenants[i].slot;
	return 0;
}

__u32 guard_slot(const char *name)
{
	return guard_inode_slot(cgroup_inode(name));
}

__u32 guard_rule_slot(const char *path)
{
	__u32 said = __atomic_load_n(&guard_head->rules, __ATOMIC_ACQUIRE), slot = 0;

	monitor_guard_rules_name(guard_rules + (said & GUARD_RULES_HALF ? GUARD_RULES : 0),
				 said & ~GUARD_RULES_HALF, path, &slot);
	return slot;
}

unsigned guard_mapped(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < GUARD_CGROUPS; i++)
		count += guard_tenants[i].cgroup != 0;
	return count;
}

__u64 guard_limit(const char *name, enum kind kind)
{
	__u32 slot = guard_slot(name);

	return slot ? __atomic_load_n(&guard_limits[slot].limit[kind], __ATOMIC_SEQ_CST) : 0;
}

/* ---- the collector's word */

static int row_keep(const void *row, void *closure)
{
	memcpy(closure, row, sizeof(struct proto_guard));
	return 0;
}

struct proto_guard guard_row(const char *tenant)
{
	struct proto_choose choose = { .tenant = "-" };
	struct proto_guard row = { 0 };
	char problem[PROBLEM_SIZE];

	if (tenant)
		snprintf(choose.tenant, sizeof(choose.tenant), "%s", tenant);
	CHECK(proto_rows(collector_socket(), MESSAGE_GUARD, &choose, row_keep, &row,
			 COLLECTOR_PATIENCE_MS, problem) >= 0,
	      "%s", problem);
	return row;
}

bool guard_is(const char *tenant, enum proto_guarantee guarantee, const char *reason)
{
	struct proto_guard row = guard_row(tenant);

	return !strcmp(row.tenant, tenant) && row.guarantee == guarantee &&
	       strstr(row.reason, reason) && !row.reason[0] == !reason[0];
}

FILE *command_begin(const char *arguments)
{
	char line[512];
	FILE *output;

	snprintf(line, sizeof(line), "%s/rdma_intercept -s %s %s 2>&1", getenv("BUILD_DIRECTORY"),
		 collector_socket(), arguments);
	output = popen(line, "re");
	if (!output)
		abort();
	return output;
}

const char *command_end(FILE *output, int status)
{
	static char text[65536];
	size_t length = fread(text, 1, sizeof(text) - 1, output);
	int ended = pclose(output);

	text[length] = '\0';
	CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == status, "%d: %s", ended, text);
	return text;
}

const char *command_output(const char *arguments)
{
	return command_end(command_begin(arguments), 0);
}

void guard_fresh(const char *policy)
{
	guard_unload();
	guard_load(guard_usual());
	/* Of others, who are no more: something, and something to remember. */
	guard_counts[1].used[KIND_qp] = 1;
	guard_counts[2].refused[KIND_qp] = 1;
	collector_fresh(policy, guard_variables);
}

static int event_count(const void *row, void *closure)
{
	const struct proto_event *event = row;
	struct told *told = closure;

	if (event->pid == told->pid && event->ring == RING_KERNEL) {
		told->count += (unsigned)event->count;
		told->last = *event;
	}
	return 0;
}

struct told told_of(pid_t pid)
{
	struct told told = { .pid = pid };
	struct proto_choose all = { 0 };
	char problem[PROBLEM_SIZE];

	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &all, event_count, &told,
			 COLLECTOR_PATIENCE_MS, problem) >= 0,
	      "%s", problem);
	return told;
}

void guard_files_prepare(void)
{
	snprintf(guard_directory, sizeof(guard_directory), "%s", harness_path("monitor"));
	snprintf(guard_cgroups, sizeof(guard_cgroups), "%s", harness_path("cgroups"));
	snprintf(guard_devices, sizeof(guard_devices), "%s", harness_path("devices"));
	snprintf(guard_lsm, sizeof(guard_lsm), "%s", harness_path("lsm"));
	snprintf(guard_variables, sizeof(guard_variables),
		 MONITOR_VARIABLE "=%s\nRDMA_COLLECTOR_CGROUPS=%s\nRDMA_COLLECTOR_DEVICES=%s\n"
				  "RDMA_COLLECTOR_LSM=%s\n",
		 guard_directory, guard_cgroups, guard_devices, guard_lsm);
	mkdir(guard_cgroups, 0755);
	mkdir(guard_devices, 0755);
	cgroup_make("/a");
	cgroup_make("/b");
	cases_at_once();
}
