/* SPDX-License-Identifier: MIT */
/*
 * Makes the kernel skip programs of kprobes: one thread on each processor writes a large value to a
 * BPF map, again and again. While a thread is in such a call the kernel runs no program of a kprobe
 * on its processor, also not for the threads that preempt it there.
 * Usage: mapcalls    until it is killed; prints "calling" when all threads are at it
 */
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	VALUE = 1 << 20, /* bytes: long enough to be preempted in the middle */
	PROCESSORS = 64,
};

static int map;
static char value[VALUE];

static void give_up(const char *what, int error)
{
	fprintf(stderr, "mapcalls: %s: %s\n", what, strerror(error));
	exit(1);
}

static long bpf(int command, union bpf_attr *attributes)
{
	return syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

static void map_write(void)
{
	__u32 zero = 0;
	union bpf_attr attributes = {
		.map_fd = (__u32)map, .key = (__u64)&zero, .value = (__u64)value
	};

	if (bpf(BPF_MAP_UPDATE_ELEM, &attributes))
		give_up("writing to the map", errno);
}

static void *calls(void *processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((long)processor, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		give_up("sched_setaffinity", errno);
	for (;;)
		map_write();
	return NULL;
}

int main(void)
{
	union bpf_attr attributes = { .map_type = BPF_MAP_TYPE_ARRAY,
				      .key_size = sizeof(__u32),
				      .value_size = VALUE,
				      .max_entries = 1 };
	long count = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t thread;
	int error;

	map = (int)bpf(BPF_MAP_CREATE, &attributes);
	if (map < 0)
		give_up("making a map", errno);
	map_write();
	for (long i = 0; i < count && i < PROCESSORS; i++) {
		error = pthread_create(&thread, NULL, calls, (void *)i);
		if (error)
			give_up("pthread_create", error);
	}
	puts("calling");
	fflush(stdout);
	pause();
	return 0;
}
