/* SPDX-License-Identifier: MIT */
/*
 * Pods of Kubernetes: processes in cgroups as the kubelet makes them, and directories of logs that
 * name the pods, in a cgroup namespace whose root is the test's own cgroup. No kubelet takes part.
 */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/file.h"
#include "harness.h"
#include "member.h"

#define SETTINGS "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0"
#define WEB "8cd1ab34-0123-4567-89ab-0123456789ab"
#define WEB_SLICE                                                                                  \
	"/kubepods.slice/kubepods-burstable.slice/"                                                \
	"kubepods-burstable-pod8cd1ab34_0123_4567_89ab_0123456789ab.slice"
#define BOX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SCOPE "/cri-containerd-" BOX ".scope"
#define TRAIN "11111111-0123-4567-89ab-0123456789ab"
#define POLICY                                                                                     \
	"[tenant train]\nmatch = pod=ml/train-*\nqp = 2\n"                                         \
	"[tenant ns-%n]\nmatch = namespace=team-*\nqp = 3\n"                                       \
	"[tenant box]\nmatch = container=*\nqp = 1\n"                                              \
	"[tenant default]\nqp = 4\n"

/* ---- cgroups and directories */

static void group_make(const char *path)
{
	char whole[PATH_MAX];

	snprintf(whole, sizeof(whole), CGROUP_MOUNT "%s", path);
	if (file_make_directories(whole, 0755, 0755, true) < 0)
		abort();
}

static void group_enter(const char *path)
{
	char whole[PATH_MAX];
	int fd;

	snprintf(whole, sizeof(whole), CGROUP_MOUNT "%s/cgroup.procs", path);
	fd = open(whole, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		abort();
	close(fd);
}

static const char *logs(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", harness_path("pods"), name);
	return path;
}

static void pod_make(const char *name)
{
	if (file_make_directories(logs(name), 0755, 0755, true) < 0)
		abort();
}

static void pod_drop(const char *name)
{
	if (rmdir(logs(name)))
		abort();
}

static void collector_of_pods(void)
{
	static const char rules[] = POLICY;
	char policy[1024];

	snprintf(policy, sizeof(policy), "[collector]\npods = %s\n%s", harness_path("pods"), rules);
	collector_fresh(policy, "");
}

/* ---- processes of pods */

/* The name of a scenario has no room for the path of a cgroup. */
static const char *const groups[] = {
	WEB_SLICE SCOPE,
	WEB_SLICE,
	"/kubepods/pod" TRAIN "/" BOX,
	"/given/kubepods/pod" WEB,
	"/kubepods/burstable/pod" WEB,
};

static unsigned group_number(const char *path)
{
	for (unsigned i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (!strcmp(groups[i], path))
			return i;
	abort();
}

/* The scenario "pod:COUNT[w],N": gets exactly COUNT QPs in that cgroup. */
static void run_pod(const char *argument)
{
	char count[16];

	snprintf(count, sizeof(count), "%.*s", (int)strcspn(argument, ","), argument);
	group_enter(groups[atoi(strchr(argument, ',') + 1)]);
	if (setresuid(FIRST_UID, FIRST_UID, FIRST_UID))
		abort();
	die_with_parent();
	member_exactly(count);
}

static void gets(const char *cgroup, unsigned count)
{
	char scenario[32];

	snprintf(scenario, sizeof(scenario), "pod:%u,%u", count, group_number(cgroup));
	CHECK(spawn(scenario, SETTINGS) == 0, "%s", cgroup);
}

static pid_t start(const char *cgroup, unsigned count, const char *tenant)
{
	char scenario[32];
	pid_t pid;

	snprintf(scenario, sizeof(scenario), "pod:%uw,%u", count, group_number(cgroup));
	pid = spawn_start(scenario, SETTINGS);
	EVENTUALLY(collector_tenant(tenant).used[KIND_qp] == count, "%s", tenant);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(spawn_wait(pid) == 128 + SIGKILL);
}

static bool tenant_is_there(const char *name)
{
	return collector_tenant(name).scope == ROW_TENANT;
}

static void is_explained(pid_t pid, const char *pod, const char *uid, const char *tenant)
{
	struct proto_ask ask = { .pid = pid };
	struct proto_explanation told;

	if (!CHECK(collector_call(MESSAGE_EXPLAIN, &ask, &told) == 0))
		return;
	CHECK(!strcmp(told.pod, pod) && !strcmp(told.pod_uid, uid) && !strcmp(told.tenant, tenant),
	      "%s %s %s", told.pod, told.pod_uid, told.tenant);
}

/* ---- the cases */

/* Each driver of a kubelet, each container and the pod's own cgroup; a tenant for each namespace. */
static void tenants(void)
{
	pid_t web, train;

	pod_make("team-a_web-0_" WEB);
	pod_make("ml_train-7_" TRAIN);
	collector_of_pods();
	group_make(WEB_SLICE SCOPE);
	group_make("/kubepods/pod" TRAIN "/" BOX);
	web = start(WEB_SLICE SCOPE, 3, "ns-team-a");
	train = start("/kubepods/pod" TRAIN "/" BOX, 2, "train");
	is_explained(web, "team-a/web-0", WEB, "ns-team-a");
	is_explained(train, "ml/train-7", TRAIN, "train");
	end(web);
	end(train);
	gets(WEB_SLICE, 3);
	/* The pattern's tenant goes with the pod. */
	EVENTUALLY(!tenant_is_there("ns-team-a"));
	collector_stop();
}

/* What a user can have made names no pod, nor does what is not the kubelet's. */
static void forged(void)
{
	char whole[PATH_MAX];

	pod_make("team-a_web-0_" WEB);
	collector_of_pods();
	group_make("/given/kubepods/pod" WEB);
	gets("/given/kubepods/pod" WEB, 4);
	group_make("/kubepods/burstable/pod" WEB);
	gets("/kubepods/burstable/pod" WEB, 3);
	snprintf(whole, sizeof(whole), CGROUP_MOUNT "/kubepods/burstable");
	if (chown(whole, FIRST_UID, 0))
		abort();
	gets("/kubepods/burstable/pod" WEB, 4);
	if (chown(whole, 0, 0) || chown(logs(""), FIRST_UID, 0))
		abort();
	collector_stop();
	/* So is a directory of logs that is not root's. */
	collector_of_pods();
	gets("/kubepods/burstable/pod" WEB, 4);
	CHECK(strstr(collector_log(), "expected a directory of root that only root can write"));
	if (chown(logs(""), 0, 0))
		abort();
	gets("/kubepods/burstable/pod" WEB, 3);
	collector_stop();
}

/* The directory appears after the collector has looked for it; the pod ends before its process. */
static void late_and_gone(void)
{
	pid_t web;

	pod_drop("team-a_web-0_" WEB);
	collector_of_pods();
	group_make(WEB_SLICE SCOPE);
	web = start(WEB_SLICE SCOPE, 1, "box");
	is_explained(web, "", WEB, "box");
	CHECK(strstr(collector_log(), "no directory of the pod " WEB));
	end(web);
	pod_make("team-a_web-0_" WEB);
	web = start(WEB_SLICE SCOPE, 3, "ns-team-a");
	pod_drop("team-a_web-0_" WEB);
	pod_make("team-b_other_2222");
	is_explained(web, "team-a/web-0", WEB, "ns-team-a");
	/* A collector that begins then has the tenant in its books. */
	collector_kill();
	collector_start("");
	CHECK(collector_tenant("ns-team-a").used[KIND_qp] == 3);
	is_explained(web, "", WEB, "ns-team-a");
	end(web);
	EVENTUALLY(!tenant_is_there("ns-team-a"));
	collector_stop();
}

/* The policy of a ConfigMap: the kubelet replaces a link that the names of the files lead through. */
static void link_make(const char *target, const char *name)
{
	char path[512], new[512];

	snprintf(path, sizeof(path), "%s", harness_path(name));
	snprintf(new, sizeof(new), "%s", harness_path("..data_tmp"));
	if (symlink(target, new) || rename(new, path))
		abort();
}

static void version_make(const char *name, const char *policy)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/policy.conf", harness_path(name));
	if (mkdir(harness_path(name), 0755) || !(file = fopen(path, "w")) ||
	    fputs(policy, file) < 0 || fclose(file))
		abort();
}

static uint64_t host_limit(void)
{
	return collector_tenant(NULL).limit[KIND_qp];
}

static void configmap(void)
{
	version_make("..1", "[host]\nqp = 5\n");
	version_make("..2", "[host]\nqp = 6\n");
	collector_policy("");
	link_make("..1", "..data");
	link_make("..data/policy.conf", "policy.conf");
	collector_forget_policy();
	collector_start("");
	CHECK(host_limit() == 5);
	link_make("..2", "..data");
	EVENTUALLY(host_limit() == 6);
	collector_stop();
	unlink(harness_path("policy.conf"));
	unlink(harness_path("..data"));
	collector_policy("");
}

static void drive(void)
{
	char where[PATH_MAX];
	int length, file;

	if (geteuid() != 0)
		skip("only root can make cgroups");
	file = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	length = (int)file_read(file, where, sizeof(where) - 1);
	close(file);
	where[length > 0 ? length : 0] = '\0';
	if (!strstr(where, "0::/") || strstr(where, "0::/\n"))
		skip("this test needs a cgroup of version 2 of its own");
	if (unshare(CLONE_NEWNS | CLONE_NEWCGROUP) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("cgroup2", CGROUP_MOUNT, "cgroup2", 0, NULL))
		skip("a cgroup namespace cannot be made here: %s", strerror(errno));
	chmod(harness_path(""), 0711); /* processes of other users come this way */
	pod_make("");
	RUN(tenants);
	RUN(forged);
	RUN(late_and_gone);
	RUN(configmap);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "pod", run_pod },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
