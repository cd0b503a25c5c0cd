/* SPDX-License-Identifier: MIT */
/*
 * A program without libdl and libpthread, which glibc before 2.34 has as libraries of their own.
 * The library under test makes its weak dlsym and dlvsym callable: they must answer, not crash.
 *
 * usage: bare N     makes N queue pairs, or what it gets of them, and says how many
 */
#include <pthread.h>
#include <stdbool.h>

#include "../process/fixture.h"

void *dlsym(void *handle, const char *name) __attribute__((weak));
void *dlvsym(void *handle, const char *name, const char *version) __attribute__((weak));

/* For the stand-in; glibc 2.31 has it in libpthread. */
int pthread_once(pthread_once_t *once, void (*function)(void))
{
	if (!*once)
		function();
	*once = 1;
	return 0;
}

static bool is_loaded(const char *library)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	bool found = false;

	while (maps && fgets(line, sizeof(line), maps))
		found = found || strstr(line, library);
	fclose(maps);
	return found;
}

int main(int argc, char **argv)
{
	int wanted = argc > 1 ? atoi(argv[1]) : 0, made = 0;
	struct ibv_device **devices;
	struct fixture fixture;

	if (is_loaded("libpthread") || is_loaded("libdl")) {
		puts("libpthread or libdl is loaded");
		return 1;
	}
	if (dlsym && dlsym(NULL, "no_such_function"))
		return 1;
	if (dlvsym && dlvsym(NULL, "ibv_create_qp", "IBVERBS_1.1"))
		return 1;
	printf("dlsym is %s\n", dlsym ? "there" : "missing");
	devices = ibv_get_device_list(NULL);
	if (!devices || !ibv_open_device(devices[0])) {
		printf("no context: %s\n", strerror(errno));
		return 0;
	}
	fixture = fixture_open();
	while (made < wanted && qp_make(&fixture, IBV_QPT_RC))
		made++;
	printf("made %d\n", made);
	return 0;
}
