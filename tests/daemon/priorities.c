/* SPDX-License-Identifier: MIT */
/*
 * Priorities without any pace: posts of latency and bulk tenants are counted, a bulk tenant is held
 * to its floor on the device where a latency tenant posts, and gets everything back when that is
 * idle; the latency tenant is never delayed.
 */
#include "poster.h"

#include <sys/stat.h>
#include <unistd.h>

#define SETTINGS "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0\nFAIL=closed"
#define POLICY                                                                                     \
	"[tenant quick]\nmatch = uid=61000\npriority = latency\n"                                  \
	"[tenant large]\nmatch = uid=61001\npriority = bulk\nbulk_floor = 1MB/s\n"

enum { WORD_BULK = WORD_OWN, WORD_LATENCY, WORD_PING, WORD_DELAY };

/* "0" the latency tenant, which posts while WORD_PING is set; "1" the bulk one, which always does. */
static void run_tenant(const char *argument)
{
	bool bulk = argument[0] == '1';
	uid_t uid = (uid_t)(FIRST_UID + bulk);
	struct fixture fixture;
	struct ibv_qp *qp;

	if (setresuid(uid, uid, uid))
		abort();
	die_with_parent();
	fixture = member_fixture();
	qp = qp_make(&fixture, IBV_QPT_RC);
	CHECK(function_is_ours((void *)fixture.context->ops.post_send), "posts are not counted");
	word_add(WORD_READY, 1);
	while (word_load(WORD_GO) == 0) {
		if (!bulk && !word_load(WORD_PING)) {
			usleep(1000);
			continue;
		}
		post_plain(qp);
		__atomic_fetch_add(shared_word(bulk ? WORD_BULK : WORD_LATENCY), POST_BYTES,
				   __ATOMIC_RELAXED);
		usleep(bulk ? 100 : 2000);
	}
	fixture_close(&fixture);
}

static uint64_t bulk_in(double seconds, double *ret_seconds)
{
	double begun = seconds_now();
	uint64_t before = word_load(WORD_BULK), bytes;

	usleep((useconds_t)(seconds * 1e6));
	bytes = word_load(WORD_BULK) - before;
	*ret_seconds = seconds_now() - begun;
	return bytes;
}

static void held(void)
{
	uint64_t bytes, free_bytes;
	double seconds, begun;
	pid_t pid[2];

	if (geteuid()) {
		skip_part("only root can start programs of other users");
		return;
	}
	CHECK(chmod(harness_path("."), 0711) == 0);
	collector_fresh(POLICY, "");
	words_clear();
	for (int i = 0; i < 2; i++)
		pid[i] = spawn_start(i ? "tenant:1" : "tenant:0", SETTINGS);
	NEED(word_load(WORD_READY) == 2);
	CHECK(pace_of("quick").priority == 1 && pace_of("large").priority == 2);
	free_bytes = bulk_in(0.5, &seconds);
	CHECK(pace_of("large").held[0] == '\0', "held without need");
	CHECK(pace_of("large").posted.delays == 0);
	for (int round = 0; round < 3; round++) {
		begun = seconds_now();
		word_store(WORD_PING, 1);
		EVENTUALLY(!strcmp(pace_of("large").held, "rxe0"), "%s", pace_of("large").held);
		printf("held after %.0f ms\n", 1000 * (seconds_now() - begun));
		usleep(100000);
		bytes = bulk_in(1, &seconds);
		CHECK((double)bytes <= (seconds + 0.25) * (1 << 20) * 1.05 + 65536,
		      "%llu bytes in %.3f s", (unsigned long long)bytes, seconds);
		CHECK(bytes > 0, "the floor is not given");
		word_store(WORD_PING, 0);
		begun = seconds_now();
		EVENTUALLY(pace_of("large").held[0] == '\0');
		printf("given back after %.0f ms\n", 1000 * (seconds_now() - begun));
	}
	/* Its posts go out as before: nothing waits any more. */
	EVENTUALLY(pace_of("large").posted.waiting == 0);
	printf("bulk posted %.1f MB in half a second before, %.1f when held\n",
	       (double)free_bytes / (1 << 20), (double)bytes / seconds / 2 / (1 << 20));
	CHECK(pace_of("quick").posted.delays == 0 && pace_of("quick").posted.operations > 0);
	/* With one side gone nobody needs to count. */
	CHECK(collector_set("tenant quick", "priority = normal\n") == 0);
	EVENTUALLY(pace_of("large").is_counted == 0 && pace_of("quick").tenant[0] == '\0');
	word_store(WORD_GO, 1);
	for (int i = 0; i < 2; i++)
		CHECK(spawn_wait(pid[i]) == 0);
	collector_stop();
}

static void drive(void)
{
	RUN(held);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "tenant", run_tenant },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
