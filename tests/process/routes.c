/* SPDX-License-Identifier: MIT */
/*
 * Every way by which an application reaches libibverbs: each is limited at
 * exactly three, and look-ups that have nothing to do with us answer as they
 * would without us. This program itself is linked to no RDMA library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum { LIMIT = 3 };

static void *must(void *pointer, const char *what)
{
	if (!CHECK(pointer != NULL, "%s: %s", what, dlerror()))
		exit(1);
	return pointer;
}

static void *library(const char *name, int flags)
{
	return must(dlopen(name, RTLD_NOW | flags), name);
}

static void *beside(const char *file)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/tests/%s", getenv("BUILD_DIRECTORY"), file);
	return library(path, RTLD_LOCAL);
}

/* The verbs that count_qps needs, looked up in one of several ways. */
struct route {
	void *handle;
	const char *version; /* NULL = by dlsym */
};

static void *look_up(const struct route *route, const char *name)
{
	return must(route->version ? dlvsym(route->handle, name, route->version) :
				     dlsym(route->handle, name), name);
}

static int count_qps(const struct route *route)
{
	struct ibv_device **(*get_list)(int *) = look_up(route, "ibv_get_device_list");
	struct ibv_context *(*open_device)(struct ibv_device *) = look_up(route, "ibv_open_device");
	struct ibv_pd *(*alloc_pd)(struct ibv_context *) = look_up(route, "ibv_alloc_pd");
	struct ibv_cq *(*create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *,
				    int) = look_up(route, "ibv_create_cq");
	struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *) =
		look_up(route, "ibv_create_qp");
	int (*destroy_qp)(struct ibv_qp *) = look_up(route, "ibv_destroy_qp");
	struct ibv_context *context = open_device(get_list(NULL)[0]);
	struct ibv_pd *pd = alloc_pd(context);
	struct ibv_cq *cq = create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp *qp[LIMIT + 1];
	int made = 0;

	for (unsigned round = 0; round < 2; round++) {
		for (made = 0; made <= LIMIT; made++) {
			struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq,
							 .qp_type = IBV_QPT_RC,
							 .cap = { 1, 1, 1, 1, 0 } };

			qp[made] = create_qp(pd, &attr);
			if (!qp[made])
				break;
		}
		CHECK(errno == EDQUOT);
		CHECK(used(KIND_qp) == (uint64_t)made, "%llu", (unsigned long long)used(KIND_qp));
		for (int i = 0; i < made; i++)
			CHECK(destroy_qp(qp[i]) == 0);
		CHECK(used(KIND_qp) == 0);
	}
	return made;
}

static void by_dlsym(const char *argument)
{
	struct route route = { library("libibverbs.so.1", RTLD_LOCAL), NULL };

	CHECK(count_qps(&route) == LIMIT);
	CHECK(dlerror() == NULL, "a look-up that succeeds leaves no error");
}

static void by_dlvsym(const char *argument)
{
	struct route route = { library("libibverbs.so.1", RTLD_LOCAL), "IBVERBS_1.1" };

	CHECK(count_qps(&route) == LIMIT);
	CHECK(dlerror() == NULL);
}

static void by_default(const char *argument)
{
	struct route route = { RTLD_DEFAULT, NULL };

	library("libibverbs.so.1", RTLD_GLOBAL);
	CHECK(count_qps(&route) == LIMIT);
}

static void by_program_handle(const char *argument)
{
	struct route route = { dlopen(NULL, RTLD_NOW), NULL };

	library("libibverbs.so.1", RTLD_GLOBAL);
	CHECK(count_qps(&route) == LIMIT);
}

static int user(const char *function)
{
	int (*count)(void) = must(dlsym(beside("libuser.so"), function), function);

	return count();
}

static void by_local_library(const char *argument)
{
	CHECK(user("user_linked") == LIMIT);
}

static void by_inline_qp(const char *argument)
{
	CHECK(user("user_inline_qp") == LIMIT);
}

static void by_inline_cq(const char *argument)
{
	CHECK(user("user_inline_cq") == LIMIT);
}

static void by_cm(const char *argument)
{
	CHECK(user("user_cm") == LIMIT);
}

/* With a second preloaded library: its wrapper is called for each attempt that
 * gets so far, by handle and by link. */
static void chain(const char *argument)
{
	struct route route = { library("libibverbs.so.1", RTLD_LOCAL), NULL };
	unsigned (*calls)(void) = must(dlsym(RTLD_DEFAULT, "second_calls"), "second_calls");
	unsigned before;

	CHECK(count_qps(&route) == LIMIT);
	before = calls();
	CHECK(before == (unsigned)atoi(argument), "the second library saw %u calls by handle", before);
	CHECK(user("user_linked") == LIMIT);
	CHECK(calls() > before, "the second library was left out of a linked call");
}

/* ---- look-ups that must answer as without us ---- */

static bool fails(void *handle, const char *name, const char *version)
{
	const char *error;
	void *found;

	dlerror();
	found = version ? dlvsym(handle, name, version) : dlsym(handle, name);
	error = dlerror();
	return !found && error && strstr(error, name);
}

static void probes_without_library(const char *argument)
{
	CHECK(fails(RTLD_DEFAULT, "ibv_create_qp", NULL));
	CHECK(fails(RTLD_DEFAULT, "ibv_create_qp", "IBVERBS_1.1"));
	CHECK(fails(RTLD_NEXT, "ibv_create_qp", NULL));
	CHECK(fails(dlopen(NULL, RTLD_NOW), "ibv_create_qp", NULL));
	CHECK(!dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD), "probing loaded libibverbs");
}

/* LD_LIBRARY_PATH leads to a libibverbs from before ibv_reg_dmabuf_mr. */
static void probes_of_old_library(const char *argument)
{
	void *old = library("libibverbs.so.1", RTLD_GLOBAL);

	CHECK(dlsym(old, "ibv_create_qp") != NULL && dlsym(old, "ibv_reg_mr_iova2") != NULL);
	CHECK(fails(old, "ibv_reg_dmabuf_mr", NULL));
	CHECK(fails(old, "ibv_reg_dmabuf_mr", "IBVERBS_1.12"));
	CHECK(fails(RTLD_DEFAULT, "ibv_reg_dmabuf_mr", NULL));
	CHECK(fails(dlopen(NULL, RTLD_NOW), "ibv_reg_dmabuf_mr", NULL));
	CHECK(fails(old, "ibv_create_qp", "IBVERBS_1.12"), "a node that the symbol does not have");
}

static bool plugins_end;

static void *plugins_come_and_go(void *unused)
{
	while (!__atomic_load_n(&plugins_end, __ATOMIC_RELAXED)) {
		void *one = beside("liblate.so"), *other = beside("libnamesake.so");

		dlclose(one);
		dlclose(other);
	}
	return NULL;
}

/* A thread unloads objects while another looks verbs up: those that nobody has, so that all are
 * searched. */
static void probes_beside_plugins(const char *argument)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, plugins_come_and_go, NULL) == 0);
	for (unsigned i = 0; i < 10000; i++)
		CHECK(dlsym(RTLD_DEFAULT, "ibv_create_srq") == NULL);
	__atomic_store_n(&plugins_end, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

static void probes(const char *argument)
{
	void *current = library("libibverbs.so.1", RTLD_LOCAL);
	int (*namesake)(void) = must(dlsym(beside("libnamesake.so"), "ibv_reg_mr"), "namesake");

	CHECK(fails(current, "ibv_create_qp_ex", NULL), "an inline verb is no symbol");
	CHECK(fails(current, "no_such_function", NULL));
	CHECK(namesake() == 4711, "only what is libibverbs' own is replaced");
	CHECK(dlsym(RTLD_DEFAULT, "strlen") != NULL && dlsym(RTLD_NEXT, "getpid") != NULL);
	/* From the program itself, the next dlsym after it is the first in line: ours. */
	CHECK(dlsym(RTLD_NEXT, "dlsym") != NULL);
}

/* Unloading by the application must not leave us with addresses of nothing. */
static void unloading(const char *argument)
{
	for (unsigned round = 0; round < 3; round++) {
		void *handle = library("libibverbs.so.1", RTLD_LOCAL);
		struct route route = { handle, NULL };

		CHECK(count_qps(&route) == LIMIT);
		dlclose(handle);
	}
}

static const struct scenario scenarios[] = {
	{ "by_dlsym", by_dlsym },
	{ "by_dlvsym", by_dlvsym },
	{ "by_default", by_default },
	{ "by_program_handle", by_program_handle },
	{ "by_local_library", by_local_library },
	{ "by_inline_qp", by_inline_qp },
	{ "by_inline_cq", by_inline_cq },
	{ "by_cm", by_cm },
	{ "chain", chain },
	{ "probes_without_library", probes_without_library },
	{ "probes_of_old_library", probes_of_old_library },
	{ "probes", probes },
	{ "probes_beside_plugins", probes_beside_plugins },
	{ "unloading", unloading },
	{ 0 },
};

static void chains(void)
{
	char settings[1024];
	const char *ours = getenv("HARNESS_PRELOAD"), *build = getenv("BUILD_DIRECTORY");

	/* Before us it sees all attempts, two rounds of four; after us only what we let pass. */
	snprintf(settings, sizeof(settings), "LIMITS=process:qp=3\n!LD_PRELOAD=%s:%s/tests/libsecond.so",
		 ours, build);
	spawn("chain:6", settings);
	if (strchr(ours, ':'))
		return; /* a sanitizer's run-time must stay first */
	snprintf(settings, sizeof(settings), "LIMITS=process:qp=3\n!LD_PRELOAD=%s/tests/libsecond.so:%s",
		 build, ours);
	spawn("chain:8", settings);
}

/* Our library twice, from two files: as with one. */
static void twice(void)
{
	static const char *const scenarios_of_one[] = {
		"by_dlsym", "by_dlvsym", "by_default", "by_program_handle", "by_local_library",
		"by_inline_qp", "by_cm", "unloading",
	};
	const char *ours = getenv("HARNESS_PRELOAD");
	char command[1024], settings[1024], copy[256];

	if (strchr(ours, ':')) {
		skip_part("a sanitizer's run-time must stay first");
		return;
	}
	snprintf(copy, sizeof(copy), "%s", harness_path("copy.so"));
	snprintf(command, sizeof(command), "cp '%s' '%s'", ours, copy);
	CHECK(system(command) == 0);
	for (unsigned order = 0; order < 3; order++) {
		/* The last time with another library between the two. */
		snprintf(settings, sizeof(settings),
			 "LIMITS=process:qp=3,cq=100\n!LD_PRELOAD=%s:%s%s:%s",
			 order == 1 ? copy : ours, order == 2 ? getenv("BUILD_DIRECTORY") : "",
			 order == 2 ? "/tests/libsecond.so" : "", order == 1 ? ours : copy);
		for (unsigned i = 0; i < sizeof(scenarios_of_one) / sizeof(scenarios_of_one[0]);
		     i++) {
			shm_remove();
			spawn(scenarios_of_one[i], settings);
		}
		spawn("probes", settings);
		if (order < 2)
			spawn("probes_without_library", settings);
		else
			spawn("chain:6", settings);
	}
	snprintf(settings, sizeof(settings), "LIMITS=process:cq=3\n!LD_PRELOAD=%s:%s", ours, copy);
	spawn("by_inline_cq", settings);
}

static void old_library(void)
{
	char old[512];

	snprintf(old, sizeof(old), "!LD_LIBRARY_PATH=%s/fakeverbs-old", getenv("BUILD_DIRECTORY"));
	spawn("probes_of_old_library", old);
}

static void driver(void)
{
	static const char *const limited[] = { "by_dlsym", "by_dlvsym", "by_default",
					       "by_program_handle", "by_local_library",
					       "by_inline_qp", "by_cm", "unloading" };

	for (unsigned i = 0; i < sizeof(limited) / sizeof(limited[0]); i++)
		CASE(limited[i])
			spawn(limited[i], "LIMITS=process:qp=3,cq=100");
	CASE("by_inline_cq")
		spawn("by_inline_cq", "LIMITS=process:cq=3");
	RUN(chains);
	RUN(twice);
	CASE("probes_without_library")
		spawn("probes_without_library", "");
	CASE("probes_beside_plugins")
		spawn("probes_beside_plugins", "");
	RUN(old_library);
	CASE("probes") {
		spawn("probes", "");
		spawn_bare("probes", "");
	}
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
