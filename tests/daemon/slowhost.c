/* SPDX-License-Identifier: MIT */
/*
 * Preloaded to a collector: a host whose answers are late. Names of users and groups that begin
 * with "slow-" and mappings of processes are held back while there is a file of that name
 * (or of the process's number) in the directory SLOW_HOST; "asked" appears there when somebody
 * waits. The one who waits sleeps; if the file is not empty it works, as one that is about to answer
 * on a busy machine. Who asks for a name that begins with "fatal-" dies. Every number of a user has
 * the name "slow-user", which is held back while there is a file "getpwuid".
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void host_path(const char *name, char ret[512])
{
	const char *directory = getenv("SLOW_HOST");

	snprintf(ret, 512, "%s/%s", directory ? directory : "/nonexistent", name);
}

static void host_await(const char *name)
{
	char path[512], asked[512];
	struct stat status;
	int fd;

	host_path(name, path);
	host_path("asked", asked);
	while (!stat(path, &status)) {
		fd = creat(asked, 0600);
		if (fd >= 0)
			close(fd);
		if (status.st_size)
			sched_yield();
		else
			usleep(2000);
	}
}

static int name_is_ours(const char *name)
{
	if (!strncmp(name, "fatal-", 6))
		abort();
	if (strncmp(name, "slow-", 5) != 0)
		return 0;
	host_await(name);
	return 1;
}

struct passwd *getpwnam(const char *name)
{
	static struct passwd user = { .pw_name = "slow" };
	struct passwd *(*next)(const char *) = dlsym(RTLD_NEXT, "getpwnam");

	user.pw_uid = geteuid();
	return name_is_ours(name) ? &user : next(name);
}

struct group *getgrnam(const char *name)
{
	static struct group group = { .gr_name = "slow" };
	struct group *(*next)(const char *) = dlsym(RTLD_NEXT, "getgrnam");

	group.gr_gid = 61000;
	return name_is_ours(name) ? &group : next(name);
}

/* Of this one number, for who shows names. */
struct passwd *getpwuid(uid_t uid)
{
	static struct passwd user = { .pw_name = "slow-user" };

	host_await("getpwuid");
	user.pw_uid = uid;
	return &user;
}

/* Only the form that opens what exists. */
int open(const char *path, int flags, ...)
{
	char name[32], end[8] = "";

	if (sscanf(path, "/proc/%15[0-9]/%7s", name, end) == 2 && !strcmp(end, "maps"))
		host_await(name);
	return openat(AT_FDCWD, path, flags, 0600);
}
