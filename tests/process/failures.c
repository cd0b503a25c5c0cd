/* SPDX-License-Identifier: MIT */
/*
 * A verb that fails behind the library, for want of something, has a line in the log with the likely
 * reason; a refusal has none of these. The program's errno is that of the real verb, and standard
 * error stays empty.
 */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fakeverbs.h"
#include "fixture.h"
#include "harness.h"

enum { LOCKED = 64 << 10, REGION = 128 << 10 };

static char memory[REGION];

/* ---- scenarios ---- */

static void limit_set(int resource, rlim_t value)
{
	struct rlimit limit = { value, value };

	CHECK(!setrlimit(resource, &limit));
}

static void region_fails(struct fixture *fixture, size_t length, int error)
{
	fake_set("ibv_reg_mr", FAKE_FAIL, error, 0, 1);
	errno = 0;
	CHECK(!ibv_reg_mr(fixture->pd, memory, length, IBV_ACCESS_LOCAL_WRITE) && errno == error,
	      "errno %d", errno);
}

/* From here on this process may lock no more than its limit, also if it is root's. */
static void capability_drop(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	CHECK(!syscall(SYS_capget, &header, data));
	data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
	CHECK(!syscall(SYS_capset, &header, data));
}

static void memlock(const char *argument)
{
	struct fixture fixture = fixture_open();
	bool is_zero = !strcmp(argument, "zero");

	limit_set(RLIMIT_MEMLOCK, is_zero ? 0 : strcmp(argument, "enough") ? LOCKED : REGION);
	if (strcmp(argument, "root"))
		capability_drop();
	region_fails(&fixture, REGION, is_zero || !strcmp(argument, "forbidden") ? EPERM : ENOMEM);
	fixture_close(&fixture);
}

static void others(const char *argument)
{
	static const struct {
		const char *name;
		int error;
	} errors[] = { { "EMFILE", EMFILE }, { "EAGAIN", EAGAIN }, { "ENOSPC", ENOSPC },
		       { "EDQUOT", EDQUOT }, { "EINVAL", EINVAL }, { "ENFILE", ENFILE } };
	struct fixture fixture = fixture_open();

	for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (!strcmp(argument, errors[i].name)) {
			fake_set("ibv_create_qp", FAKE_FAIL, errors[i].error, 0, 1);
			errno = 0;
			CHECK(!qp_make(&fixture, IBV_QPT_RC) && errno == errors[i].error);
		}
	fixture_close(&fixture);
}

static void changes(const char *argument)
{
	struct fixture fixture = fixture_open();

	fake_set("ibv_resize_cq", FAKE_FAIL, ENOMEM, 0, 1);
	CHECK(ibv_resize_cq(fixture.cq, 2 * CQ_DEPTH) == ENOMEM);
	fixture_close(&fixture);
}

static void often(const char *argument)
{
	struct fixture fixture = fixture_open();

	for (unsigned i = 0; i < 200; i++)
		region_fails(&fixture, 4096, ENOMEM);
	fixture_close(&fixture);
}

static void refused(const char *argument)
{
	struct fixture fixture = fixture_open();

	errno = 0;
	CHECK(!ibv_reg_mr(fixture.pd, memory, REGION, IBV_ACCESS_LOCAL_WRITE) && errno == ENOMEM);
	fixture_close(&fixture);
}

/* ---- drivers ---- */

#define FAILED "in the kernel or the provider, not by a limit of this library"

static void tells(const char *scenario, const char *settings, const char *text)
{
	log_clear();
	shm_remove();
	spawn(scenario, settings);
	if (text)
		CHECK(strstr(log_text(), FAILED) && strstr(log_text(), text), "%s: %s", scenario,
		      log_text());
	else
		CHECK(!strstr(log_text(), FAILED), "%s: %s", scenario, log_text());
}

static void locked_memory(void)
{
	static const char reason[] =
		"ibv_reg_mr failed with ENOMEM " FAILED ": locked memory is limited to 65536 bytes "
		"(RLIMIT_MEMLOCK), 0 are pinned, 131072 more are wanted: raise it";

	tells("memlock:user", "", reason);
	CHECK(!*stderr_text(), "%s", stderr_text());
	/* As the kernel does it; otherwise EPERM says nothing of resources. */
	tells("memlock:zero", "", "failed with EPERM " FAILED ": locked memory is limited to 0 bytes");
	tells("memlock:forbidden", "", NULL);
	tells("memlock:enough", "", "this process has 0");
	CHECK(!strstr(log_text(), "RLIMIT"), "%s", log_text());
	if (geteuid() != 0)
		skip_part("root may lock as much as it likes");
	else
		tells("memlock:root", "", "the device has max_mr=");
	CHECK(!strstr(log_text(), "RLIMIT"), "%s", log_text());
}

static void other_errors(void)
{
	tells("others:EMFILE", "", "ibv_create_qp failed with EMFILE " FAILED ": the process has no file "
				   "descriptor left of ");
	tells("others:ENFILE", "", "fs.file-max");
	tells("others:EAGAIN", "", "(rdma.max), or the device has no object left for it; the device has "
				   "max_qp=262144 for all processes, this process has 0");
	tells("others:ENOSPC", "", "max_qp=262144");
	tells("others:EDQUOT", "", "the guard in the kernel refused it");
	tells("others:EINVAL", "", NULL);
	tells("changes", "", "ibv_resize_cq failed with ENOMEM");
}

/* A line in the log a second, whatever the machine does meanwhile. */
static void at_most_one_a_second(void)
{
	unsigned lines;

	tells("often", "", "ibv_reg_mr failed with ENOMEM");
	lines = occurrences(log_text(), FAILED);
	CHECK(lines < 100, "%u lines", lines);
	tells("often", "LOG_LEVEL=0", NULL);
}

static void refusals(void)
{
	tells("refused", "LIMITS=process:mr_bytes=4096\nDENY_ERRNO=ENOMEM", NULL);
	CHECK(strstr(log_text(), "refused ibv_reg_mr"), "%s", log_text());
}

static void driver(void)
{
	RUN(locked_memory);
	RUN(other_errors);
	RUN(at_most_one_a_second);
	RUN(refusals);
}

static const struct scenario scenarios[] = {
	{ "memlock", memlock }, { "others", others },	{ "changes", changes },
	{ "often", often },	{ "refused", refused }, { NULL, NULL },
};

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
