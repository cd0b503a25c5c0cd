/* SPDX-License-Identifier: MIT */
/*
 * Finding the library; see library.h. What the user names is taken at its word;
 * otherwise it is looked for relative to this program, so that a build directory
 * and an installation below any prefix work without being told.
 */
#include "cli/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool usable(const char *path)
{
	struct stat status;

	if (stat(path, &status) || access(path, R_OK))
		return false;
	errno = EINVAL;
	return S_ISREG(status.st_mode);
}

void library_own_directory(char ret_path[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", ret_path, PATH_MAX - 1);

	while (length > 0 && ret_path[length - 1] != '/')
		length--;
	ret_path[length > 0 ? length - 1 : 0] = '\0';
}

static bool search(char ret_path[PATH_MAX])
{
	static const char *const places[] = {
		"",
		"/../lib/" CLI_LIBRARY_ARCHITECTURE,
		"/../lib",
		"/../lib64",
	};
	char directory[PATH_MAX];

	library_own_directory(directory);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int length =
			snprintf(ret_path, PATH_MAX, "%s%s/%s", directory, places[i], LIBRARY_FILE);

		if (length < PATH_MAX && usable(ret_path))
			return true;
	}
	strcpy(ret_path, CLI_LIBRARY_DIRECTORY "/" LIBRARY_FILE);
	return usable(ret_path);
}

int library_find(char ret_path[PATH_MAX], char problem[PROBLEM_SIZE])
{
	const char *named = getenv(LIBRARY_VARIABLE);
	char found[PATH_MAX];

	if (named && !usable(named))
		return problem_set(-errno, problem, "%s=%s: %s", LIBRARY_VARIABLE, named,
				   strerror(errno));
	if (!named && !search(found))
		return problem_set(-ENOENT, problem,
				   "%s is neither near this program nor in %s; set %s",
				   LIBRARY_FILE, CLI_LIBRARY_DIRECTORY, LIBRARY_VARIABLE);
	if (!realpath(named ? named : found, ret_path))
		return problem_set(-errno, problem, "%s: %s", named ? named : found,
				   strerror(errno));
	if (strpbrk(ret_path, ": "))
		return problem_set(-EINVAL, problem,
				   "%s: LD_PRELOAD takes no path with a colon or a space in it",
				   ret_path);
	return 0;
}

/* Where no child can be made the library counts as good: the program's start will tell. */
int library_load_try(const char *path, char problem[PROBLEM_SIZE])
{
	char reason[PROBLEM_SIZE] = "";
	int fds[2], status = 0;
	ssize_t length;
	pid_t child;

	if (pipe2(fds, O_CLOEXEC))
		return 0;
	child = fork();
	if (child == 0) {
		const char *text = dlopen(path, RTLD_NOW | RTLD_LOCAL) ? "" : dlerror();

		length = write(fds[1], text, strlen(text));
		_exit(length < 0);
	}
	close(fds[1]);
	if (child > 0) {
		length = TEMP_FAILURE_RETRY(read(fds[0], reason, sizeof(reason) - 1));
		reason[length > 0 ? length : 0] = '\0';
		TEMP_FAILURE_RETRY(waitpid(child, &status, 0));
	}
	close(fds[0]);
	if (WIFSIGNALED(status))
		return problem_set(-ECHILD, problem, "%s: loading it ends with signal %d", path,
				   WTERMSIG(status));
	return *reason ? problem_set(-ELIBBAD, problem, "%s", reason) : 0;
}
