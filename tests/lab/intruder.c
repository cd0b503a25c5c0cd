/* SPDX-License-Identifier: MIT */
/*
 * Takes what it can get of RDMA objects, past every library: what a limit in the kernel has
 * to stand. It only tells what it got, and knows of limits nothing but EDQUOT.
 * Usage: intruder fill KIND N [WAY]     tries N times to make one: "made M errno E", E of the
 *                                       first failure or 0; after that it tries on
 *        intruder bytes SIZE N [WAY]    the same with MRs: "made M errno E bytes B"
 *        intruder storm KIND PROCESSES THREADS [WAY]
 *                                       all at once, each thread three times: "made M refused R
 *                                       other O", of which refused are those with EDQUOT
 *        intruder flip KIND SECONDS [write]
 *                                       changes its command while the kernel reads it, so long
 *                                       at most in each place that it knows: "PLACE made M killed
 *                                       yes|no" or "PLACE absent"; then the most that it made:
 *                                       "made M killed yes|some|no". Of mr_bytes, M are bytes.
 *                                       By the ioctl, or by write()
 *        intruder heirs KIND SECONDS [SOCKET]
 *                                       a process makes all that it gets, passes its file to who
 *                                       receives at the SOCKET, and has children flip on it, one
 *                                       after the other: "heirs K keeper alive|killed", K of the
 *                                       children that were killed
 *        intruder receive SOCKET        takes a file; at each line of its input makes a PD on it,
 *                                       and one on a file of its own: "passed E own E", of errno
 *        intruder failing KIND N [WAY]  N times wrong: "failed F made M refused R"
 *        intruder chain N               becomes this program N times, each time but the last by a
 *                                       thread that is not the first; then the same as fill pd 1
 *        intruder unknown               what no kernel knows, and what is no command: "survived"
 * KIND is one of rows[] but cm_id. WAY is one of paths[], ioctl if none is given, or padded: the
 * old command in the ioctl behind attributes that the kernel passes over. The first three then
 * hold what they made until their input ends, and failing stays as long; at the line "destroy"
 * the first two destroy it: "destroyed M".
 */
#include "intruder.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { TRIES = 3 }; /* of a thread in a storm */

static const struct path padded = { "padded", false, by_padded, NULL };

static int fill(const struct path *path, enum kind kind, unsigned count, bool with_bytes)
{
	__u32 *handles = calloc(count + BATCH, sizeof(*handles));
	unsigned made = 0, tried = 0;
	char line[64];
	int error = 0;

	if (!handles)
		fail("calloc", errno);
	context_prepare(kind);
	while (tried < count) {
		unsigned n = count - tried < BATCH ? count - tried : BATCH;
		unsigned done = object_make(path, kind, n, handles + made);

		if (done < n && !error)
			error = errno;
		made += done;
		tried += done + (done < n);
	}
	printf("made %u errno %d", made, error);
	if (with_bytes)
		printf(" bytes %llu", (unsigned long long)made * parts.length);
	printf("\n");
	while (fgets(line, sizeof(line), stdin)) {
		unsigned gone = 0;

		if (strcmp(line, "destroy\n") != 0)
			continue;
		while (made && object_destroy(path, kind, handles[made - 1])) {
			made--;
			gone++;
		}
		printf("destroyed %u\n", gone);
		if (made)
			fail("destroying", errno);
	}
	return 0;
}

/* ---- a process that goes on under other numbers */

static const char *chain_rest; /* how often still, as text */

static void *chain_thread(void *unused)
{
	const struct path *path = path_find("ioctl");
	__u32 handle;

	if (object_make(path, PD, 1, &handle) != 1 || !object_destroy(path, PD, handle)) {
		printf("made 0 errno %d\n", errno);
		exit(1);
	}
	execl("/proc/self/exe", "intruder", "chain", chain_rest, NULL);
	fail("exec", errno);
}

static int chain(unsigned count)
{
	char rest[16];

	if (count == 1)
		return fill(path_find("ioctl"), PD, 1, false);
	snprintf(rest, sizeof(rest), "%u", count - 1);
	chain_rest = rest;
	context_prepare(PD);
	thread_start(chain_thread, NULL);
	for (;;)
		pause();
}

/* ---- all at once */

static struct storm {
	const struct path *path;
	enum kind kind;
	unsigned ready, done; /* threads */
	unsigned begun;
	unsigned made, refused, other;
} * storm;

static void *storm_thread(void *unused)
{
	__u32 handle;

	__atomic_fetch_add(&storm->ready, 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&storm->begun, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &storm->begun, FUTEX_WAIT, 0, NULL);
	for (unsigned i = 0; i < TRIES; i++) {
		bool made = object_make(storm->path, storm->kind, 1, &handle) == 1;
		unsigned *count = made		  ? &storm->made :
				  errno == EDQUOT ? &storm->refused :
						    &storm->other;

		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&storm->done, 1, __ATOMIC_RELEASE);
	for (;;) /* a thread that has ended needs no place anywhere */
		pause();
	return NULL;
}

/* Until so many threads are there; a process that ends before has failed. */
static void storm_wait(const unsigned *threads, unsigned wanted)
{
	while (__atomic_load_n(threads, __ATOMIC_ACQUIRE) < wanted) {
		if (waitpid(-1, NULL, WNOHANG) > 0)
			fail("a process of the storm", ECHILD);
		usleep(1000);
	}
}

static int storm_run(const struct path *path, enum kind kind, unsigned processes, unsigned threads)
{
	storm = memory_share(sizeof(*storm));
	storm->path = path;
	storm->kind = kind;
	for (unsigned i = 0; i < processes; i++) {
		if (child_start())
			continue;
		context_prepare(kind);
		for (unsigned k = 0; k < threads; k++)
			thread_start(storm_thread, NULL);
		for (;;)
			pause();
	}
	storm_wait(&storm->ready, processes * threads);
	__atomic_store_n(&storm->begun, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &storm->begun, FUTEX_WAKE, INT_MAX);
	storm_wait(&storm->done, processes * threads);
	printf("made %u refused %u other %u\n", storm->made, storm->refused, storm->other);
	while (getchar() != EOF)
		;
	return 0;
}

/* ---- */

static bool number(const char *text, unsigned *ret_number)
{
	char *end;

	*ret_number = (unsigned)strtoul(text, &end, 10);
	return *text && !*end && *ret_number > 0;
}

static bool kind_is(const char *name, enum kind *ret_kind)
{
	for (enum kind kind = 0; kind < CM_ID; kind++)
		if (!strcmp(name, rows[kind].name)) {
			*ret_kind = kind;
			return true;
		}
	return false;
}

static int usage(void)
{
	fprintf(stderr, "usage: intruder fill KIND N [WAY] | bytes SIZE N [WAY] |\n"
			"       storm KIND PROCESSES THREADS [WAY] | flip KIND SECONDS [write] |\n"
			"       heirs KIND SECONDS [SOCKET] | receive SOCKET |\n"
			"       failing KIND N [WAY] | chain N | unknown\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	bool is_storm = !strcmp(what, "storm"), is_flip = !strcmp(what, "flip"), of_bytes;
	bool is_heirs = !strcmp(what, "heirs");
	const char *way = !is_heirs && argc > 4 + is_storm ? argv[4 + is_storm] : "ioctl";
	const struct path *path = strcmp(way, "padded") ? path_find(way) : &padded;
	unsigned first = 0, second = 0;
	enum kind kind = MR;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && !strcmp(what, "unknown"))
		return unknown_run();
	if (argc == 3 && !strcmp(what, "receive"))
		return receive_run(argv[2]);
	if (argc == 3 && !strcmp(what, "chain") && number(argv[2], &first))
		return chain(first);
	if (argc < 4 || argc > 5 + is_storm || !path || !number(argv[3], &first))
		return usage();
	if (!strcmp(what, "bytes")) {
		if (!number(argv[2], &second))
			return usage();
		parts.length = second;
		parts.memory = memory_share(second);
		return fill(path, kind, first, true);
	}
	of_bytes = is_flip && !strcmp(argv[2], "mr_bytes");
	if (!of_bytes && !kind_is(argv[2], &kind))
		return usage();
	parts.memory = memory_share(PAGE);
	if (is_storm && argc > 4 && number(argv[4], &second))
		return storm_run(path, kind, first, second);
	if (!strcmp(what, "fill"))
		return fill(path, kind, first, false);
	if (is_heirs && kind == QP)
		return heirs_run(kind, first, argc > 4 ? argv[4] : NULL);
	if (is_flip && (path == path_find("ioctl") || path == path_find("write")))
		return flip_run(kind, of_bytes, !path->native, first);
	if (!strcmp(what, "failing") && path != &padded)
		return failing_run(path, kind, first);
	return usage();
}
