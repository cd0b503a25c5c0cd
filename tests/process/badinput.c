/* SPDX-License-Identifier: MIT */
/*
 * Wrong settings, a damaged or foreign shared file, a full or read-only
 * /dev/shm, a log that cannot be written: each gets one clear sentence, and the
 * application runs on (fail=open) or is refused cleanly (fail=closed).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"
#include "intercept/config.h"
#include "ledger/layout.h"
#include "ledger/shmfile.h"

/* ---- scenarios ---- */

static void works(const char *argument)
{
	struct fixture fixture;

	if (!strcmp(argument, "small_files")) {
		struct rlimit limit = { 1 << 20, 1 << 20 };

		setrlimit(RLIMIT_FSIZE, &limit);
	}
	fixture = fixture_open();
	for (unsigned i = 0; i < 3; i++)
		CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	fixture_close(&fixture);
}

static void refuses(const char *argument)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);

	errno = 0;
	CHECK(!ibv_open_device(devices[0]) && errno == EDQUOT, "errno %d", errno);
}

static void joins(const char *argument)
{
	struct fixture fixture = fixture_open();

	CHECK(used(KIND_ctx) == 1);
	word_store(0, 1);
	if (!strcmp(argument, "stay"))
		for (;;)
			pause();
	fixture_close(&fixture);
}

/* Gets exactly so many QPs. */
static void gets(const char *argument)
{
	struct fixture fixture = fixture_open();
	int made = 0;

	while (made < 10 && qp_make(&fixture, IBV_QPT_RC))
		made++;
	CHECK(made == atoi(argument), "%d made", made);
	word_store(0, 1);
	word_await(1, 1);
	fixture_close(&fixture);
}

static const struct scenario scenarios[] = {
	{ "works", works }, { "refuses", refuses }, { "joins", joins }, { "gets", gets }, { 0 },
};

/* ---- settings ---- */

/* The sentence names the variable, the value and what is allowed, once. */
static void complained(const char *variable, const char *value, const char *allowed)
{
	char sentence[512];

	snprintf(sentence, sizeof(sentence), "%s: invalid value '%s': expected %s", variable, value,
		 allowed);
	CHECK(occurrences(stderr_text(), sentence) == 1, "stderr: %s", stderr_text());
	if (!strstr(variable, "LOG_"))
		CHECK(occurrences(log_text(), sentence) == 1, "log: %s", log_text());
}

static void wrong_value(const struct config_setting *setting, const char *value)
{
	char settings[256];

	log_clear();
	shm_remove();
	snprintf(settings, sizeof(settings), "!%s=%s", setting->name, value);
	spawn("works", settings);
	complained(setting->name, value, setting->allowed);
	if (!strcmp(setting->name, CONFIG_PREFIX "FAIL"))
		return;
	log_clear();
	strcat(settings, "\nFAIL=closed");
	spawn("refuses", settings);
	CHECK(strstr(stderr_text(), "every new object is refused") != NULL, "%s", stderr_text());
}

static void settings(void)
{
	static const struct {
		const char *name;
		const char *values[6];
	} more[] = {
		{ "MAX_GLOBAL_QP", { "-1", "1.5", "10G", "18446744073709551616", " 5", "" } },
		{ "MAX_MEMORY_PER_PROCESS", { "10X", "M", "99999999999999999999", "1GG" } },
		{ "LIMITS", { "qp=1", "process:qp", "process:qp=", "process:nosuch=1", "device:qp=1",
			      "host:qp=1," } },
		{ "RATES", { "reg_mr=1/s", "process:reg_mr=100", "process:nosuch=1/s",
			     "process:reg_mr=1/s;action=wait", "process:reg_mr=1/s;max_delay=5",
			     "process:reg_mr=1/s," } },
		{ "SHM_NAME", { "a/b", "..", "/" } },
		{ "SHM_MODE", { "0400", "0777", "888", "1666" } },
		{ "DENY_ERRNO", { "0", "4096", "ENOSUCH" } },
		{ "ENABLE", { "yes", "2", "" } },
	};

	for (unsigned i = 0; i < config_settings_count; i++)
		if (!strstr(config_settings[i].name, "LOG_FILE_PATH"))
			wrong_value(&config_settings[i], "bo/gus!");
	for (unsigned i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		for (unsigned j = 0; j < 6 && more[i].values[j]; j++)
			for (unsigned k = 0; k < config_settings_count; k++)
				if (!strcmp(config_settings[k].name + strlen(CONFIG_PREFIX), more[i].name))
					wrong_value(&config_settings[k], more[i].values[j]);
}

/* ---- the shared file ---- */

static const char *shm_path(void)
{
	static char path[128];

	snprintf(path, sizeof(path), "/dev/shm/%s", shm_name());
	return path;
}

static void put_file(const void *bytes, size_t length)
{
	int fd = open(shm_path(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		abort();
	close(fd);
}

static void change_word(off_t offset, uint32_t value)
{
	int fd = open(shm_path(), O_RDWR | O_CLOEXEC);

	if (fd < 0 || pwrite(fd, &value, sizeof(value), offset) != sizeof(value))
		abort();
	close(fd);
}

/* Both policies with the file as it is now, and the file stays as it was. */
static void unusable(const char *sentence)
{
	struct stat before, after;
	bool there = lstat(shm_path(), &before) == 0;

	log_clear();
	spawn("works", ""); /* who has set no limit is told in the log only */
	CHECK(occurrences(log_text(), sentence) == 1, "log: %s", log_text());
	CHECK(stderr_text()[0] == '\0', "%s", stderr_text());
	log_clear();
	spawn("works", "LIMITS=host:qp=100");
	CHECK(occurrences(stderr_text(), sentence) == 1, "wanted '%s', stderr: %s", sentence,
	      stderr_text());
	CHECK(occurrences(log_text(), sentence) == 1, "log: %s", log_text());
	CHECK(strstr(stderr_text(), "this process is counted alone") != NULL, "%s", stderr_text());
	word_store(1, 1);
	spawn("gets:2", "LIMITS=process:qp=2\nQUIET=1"); /* which needs no file */
	spawn("gets:3", "LIMITS=host:qp=3\nQUIET=1");
	log_clear();
	spawn("refuses", "FAIL=closed");
	CHECK(occurrences(stderr_text(), sentence) == 1, "stderr: %s", stderr_text());
	if (there)
		CHECK(lstat(shm_path(), &after) == 0 && after.st_ino == before.st_ino &&
		      after.st_size == before.st_size, "nothing is lost");
}

static void shared_file(void)
{
	static unsigned char garbage[100000];
	char versions[96];

	for (unsigned i = 0; i < sizeof(garbage); i++)
		garbage[i] = (unsigned char)(i * 2654435761u >> 24);
	put_file("", 0);
	unusable("is truncated: 0 bytes");
	put_file(garbage, 20);
	unusable("is truncated: 20 bytes");
	put_file(garbage, sizeof(garbage));
	unusable("is not a ledger of rdma_intercept");

	shm_remove();
	spawn("joins", "");
	change_word(offsetof(struct layout_signature, version), 99);
	snprintf(versions, sizeof(versions), "has layout version 99, this program has version %d",
		 LAYOUT_VERSION);
	unusable(versions);
	change_word(offsetof(struct layout_signature, version), LAYOUT_VERSION);
	change_word(offsetof(struct layout_signature, word_bits), 32);
	unusable("belongs to 32-bit programs, this is a 64-bit one");
	change_word(offsetof(struct layout_signature, word_bits), 64);
	change_word(offsetof(struct layout_signature, kinds), 7);
	unusable("with other tables (7 kinds");
	change_word(offsetof(struct layout_signature, kinds), KINDS_COUNTED);
	if (truncate(shm_path(), 70000))
		abort();
	unusable("is truncated: 70000 of");
	shm_remove();

	if (symlink("/dev/null", shm_path()))
		abort();
	unusable("is a symbolic link");
	shm_remove();
	if (mkdir(shm_path(), 0700))
		abort();
	unusable("Is a directory");
	rmdir(shm_path());
	if (mkfifo(shm_path(), 0600))
		abort();
	unusable("is not a regular file");
	shm_remove();
}

/* ---- what another user made is not ours to use, unless the mode says so on purpose */

/* The name that is used if so many others are taken. */
static const char *step_path(unsigned number)
{
	static char path[136];

	if (!number)
		return shm_path();
	snprintf(path, sizeof(path), "%s.%u", shm_path(), number);
	return path;
}

static void plant(unsigned number)
{
	int fd = open(step_path(number), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || fchown(fd, 65534, 65534))
		abort();
	close(fd);
}

/* The others of the user count together all the same; and still do when the planted file has
 * gone again. */
static void planted_name(void)
{
	pid_t holder;

	plant(0);
	log_clear();
	words_clear();
	holder = spawn_start("gets:3", "LIMITS=host:qp=3\nQUIET=1");
	NEED(word_load(0) == 1);
	CHECK(strstr(log_text(), "belongs to user 65534") != NULL, "%s", log_text());
	CHECK(stderr_text()[0] == '\0', "%s", stderr_text());
	spawn("refuses", "LIMITS=host:ctx=0\nQUIET=1");
	unlink(step_path(0));
	spawn("refuses", "QUIET=1"); /* by the limit of the process before */
	word_store(1, 1);
	CHECK(spawn_wait(holder) == 0);
	CHECK(access(step_path(0), F_OK) != 0);
	unlink(step_path(1));
}

static void planted_names(void)
{
	for (unsigned number = 0; number < SHMFILE_NAMES; number++)
		plant(number);
	unusable("belongs to user 65534, not to user 0");
	for (unsigned number = 0; number < SHMFILE_NAMES; number++)
		unlink(step_path(number));
}

static void foreign_file(void)
{
	if (geteuid()) {
		skip_part("not root: files of other users are not tried");
		return;
	}
	planted_name();
	planted_names();
	spawn("joins", "");
	if (chown(shm_path(), 65534, 65534))
		abort();
	log_clear();
	spawn("joins", "SHM_MODE=0666");
	CHECK(strstr(log_text(), "can change all counts and limits") != NULL, "%s", log_text());
	shm_remove();
	spawn("joins", "SHM_MODE=0660");
	shm_remove();
}

/* ---- /dev/shm itself, in a mount namespace of a child ---- */

static void with_shm_mount(const char *options, unsigned long flags, void (*test)(void))
{
	pid_t pid = fork_child();
	int status;

	if (pid == 0) {
		if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("tmpfs", "/dev/shm", "tmpfs", 0, options))
			_exit(77);
		if (flags && mount("", "/dev/shm", NULL, MS_REMOUNT | flags, options))
			_exit(77);
		test();
		_exit(checks_failed() ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip_part("no mount namespaces here; /dev/shm with %s is not tried", options);
	else
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "/dev/shm with %s", options);
}

static void full_at_creation(void)
{
	unusable("cannot be created: No space left on device");
}

static void full_at_join(void)
{
	static const char page[4096];
	pid_t holder;
	int fd;

	word_store(0, 0);
	holder = spawn_start("joins:stay", "");
	NEED(word_load(0) == 1);
	fd = open("/dev/shm/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, page, sizeof(page)) > 0)
		;
	close(fd);
	unusable("No space left on device");
	kill(holder, SIGKILL);
	spawn_wait(holder);
	spawn("joins", ""); /* the dead one's seat has memory already */
}

static void read_only(void)
{
	unusable("cannot be created: Read-only file system");
}

/* ---- the log ---- */

static void log_file(void)
{
	char path[160], settings[256];
	struct stat status;

	shm_remove();
	log_clear();
	spawn("works", "LOG_FILE_PATH=/nonexistent/directory/log");
	CHECK(occurrences(stderr_text(), "RDMA_INTERCEPT_LOG_FILE_PATH='/nonexistent/directory/log': "
					 "cannot write there (No such file or directory)") == 1,
	      "%s", stderr_text());

	snprintf(path, sizeof(path), "%s", harness_path("planted"));
	unlink(path);
	if (symlink("/etc/hostname.rdma_test", path))
		abort();
	snprintf(settings, sizeof(settings), "LOG_FILE_PATH=%s", path);
	log_clear();
	spawn("works", settings);
	CHECK(strstr(stderr_text(), "cannot write there") != NULL, "%s", stderr_text());
	CHECK(access("/etc/hostname.rdma_test", F_OK) != 0, "a planted link was followed");
	unlink(path);

	spawn("works", settings);
	CHECK(stat(path, &status) == 0 && (status.st_mode & 07777) == 0600 && status.st_size > 0);
	if (geteuid() == 0) {
		off_t size = status.st_size;

		if (chown(path, 65534, 65534))
			abort();
		log_clear();
		spawn("works", settings);
		CHECK(strstr(stderr_text(), "cannot write there") != NULL, "%s", stderr_text());
		CHECK(stat(path, &status) == 0 && status.st_size == size, "wrote to another's file");
	}
	unlink(path);

	log_clear();
	spawn("works", "LOG_LEVEL=0");
	CHECK(log_text()[0] == '\0' && stderr_text()[0] == '\0');
	spawn("works", "LOG_LEVEL=DEBUG\nLOG_FILE_PATH=stderr");
	CHECK(strstr(stderr_text(), "[RDMA_HOOKS] 从共享内存获取进程资源使用情况: PID=") != NULL &&
	      strstr(stderr_text(), ", QP=2, MR=0, Memory=0") != NULL, "%s", stderr_text());
}

static void small_files(void)
{
	log_clear();
	spawn("works:small_files", "LIMITS=process:qp=3");
	CHECK(strstr(stderr_text(), "cannot be created: File too large") != NULL, "%s",
	      stderr_text());
}

static void driver(void)
{
	RUN(settings);
	shm_remove();
	RUN(shared_file);
	RUN(foreign_file);
	CASE("full_at_creation")
		with_shm_mount("size=16k", 0, full_at_creation);
	CASE("full_at_join")
		with_shm_mount("size=1m", 0, full_at_join);
	CASE("read_only")
		with_shm_mount("size=1m", MS_RDONLY, read_only);
	RUN(small_files);
	RUN(log_file);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
