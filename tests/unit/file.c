/* SPDX-License-Identifier: MIT */
/* Small files are read whole or cut at the end, replaced whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/proc.h"
#include "harness.h"

static char directory[] = "/tmp/rdma_file.XXXXXX";

/* In the place of libc's: another user may be faster than what follows it, and then there is a link
 * where the directory was. */
static const char *planted;

int mkdir(const char *path, mode_t mode)
{
	int result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);

	if (!result && planted && (rmdir(path) || symlink(planted, path)))
		abort();
	return result;
}

static const char *path_of(const char *name)
{
	static char paths[2][160];
	static unsigned turn;
	char *path = paths[turn++ % 2];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static int text_print(FILE *file, const void *closure)
{
	fputs(closure, file);
	return 0;
}

static int text_give_up(FILE *file, const void *closure)
{
	fputs(closure, file);
	return -EFBIG;
}

static void of_a_process(void)
{
	char text[64], long_text[4096];

	CHECK(proc_read(getpid(), "comm", text, sizeof(text)) > 0);
	CHECK(!strncmp(text, "unit_file", 9) && strchr(text, '\n'), "%s", text);
	CHECK(proc_read(getpid(), "status", long_text, sizeof(long_text)) > 100 &&
	      strstr(long_text, "Name:") == long_text);
	CHECK(proc_read(-1, "comm", text, sizeof(text)) == -ENOENT && !text[0]);
}

static void replacing(void)
{
	char text[8];
	struct stat status;

	CHECK(file_replace(path_of("a"), text_print, "first\n") == 0);
	CHECK(file_read_small(path_of("a"), text, sizeof(text)) == 6 && !strcmp(text, "first\n"));
	CHECK(stat(path_of("a"), &status) == 0 && (status.st_mode & 07777) == 0600);
	CHECK(file_replace(path_of("a"), text_print, "0123456789") == 0);
	CHECK(file_read_small(path_of("a"), text, sizeof(text)) == 7 && !strcmp(text, "0123456"));
	/* A failure leaves the old one, and nothing beside it. */
	CHECK(file_replace(path_of("a"), text_give_up, "new") == -EFBIG);
	CHECK(file_read_small(path_of("a"), text, sizeof(text)) == 7 && !strcmp(text, "0123456"));
	CHECK(file_replace(path_of("nowhere/a"), text_print, "x") == -ENOENT);
	CHECK(file_read_small(path_of("b"), text, sizeof(text)) == -ENOENT && !text[0]);
	CHECK(file_replace(path_of(""), text_print, "x") < 0);
	unlink(path_of("a"));
}

static void directories(void)
{
	mode_t old = umask(077);
	struct stat status;

	CHECK(file_make_directories(path_of("x/y"), 0755, 0700, true) == 0);
	CHECK(stat(path_of("x"), &status) == 0 && (status.st_mode & 07777) == 0755);
	CHECK(stat(path_of("x/y"), &status) == 0 && (status.st_mode & 07777) == 0700);
	CHECK(file_make_directories(path_of("x/y"), 0755, 0755, true) == 0);
	CHECK(stat(path_of("x/y"), &status) == 0 && (status.st_mode & 07777) == 0700);
	CHECK(file_make_directories(path_of("z"), 0755, 0755, false) == 0);
	CHECK(stat(path_of("z"), &status) == 0 && (status.st_mode & 07777) == 0700);
	umask(old);
	CHECK(file_replace(path_of("f"), text_print, "x") == 0);
	CHECK(file_make_directories(path_of("f/g"), 0755, 0755, false) == -ENOTDIR);
	unlink(path_of("f"));
	rmdir(path_of("x/y"));
	rmdir(path_of("x"));
	rmdir(path_of("z"));
}

static void planted_link(void)
{
	char target[160];
	struct stat status;

	snprintf(target, sizeof(target), "%s", path_of("target"));
	CHECK(mkdir(target, 0700) == 0);
	planted = target;
	CHECK(file_make_directories(path_of("l"), 0755, 0755, true) < 0, "a link is taken");
	planted = NULL;
	CHECK(lstat(path_of("l"), &status) == 0 && S_ISLNK(status.st_mode), "there was no link");
	CHECK(stat(target, &status) == 0);
	CHECK((status.st_mode & 07777) == 0700, "the mode was set behind the link: %o",
	      (unsigned)status.st_mode);
	unlink(path_of("l"));
	rmdir(target);
}

static void driver(void)
{
	if (!mkdtemp(directory))
		abort();
	RUN(of_a_process);
	RUN(replacing);
	RUN(directories);
	RUN(planted_link);
	CHECK(rmdir(directory) == 0, "something was left in %s", directory);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
