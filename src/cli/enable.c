/* SPDX-License-Identifier: MIT */
/*
 * enable and disable: the library for every program of the host, by /etc/ld.so.preload, or for login
 * shells. A mistake here could leave a host that starts no program, so programs are tried at each
 * step: by LD_PRELOAD, with the new file in a mount namespace that only the trial sees, and when it is
 * in place, after which a failure brings the old file back. Between two steps the file is whole and
 * has passed the trials before it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/translation.h"
#include "cli/cli.h"
#include "cli/etc_file.h"
#include "cli/library.h"
#include "cli/preload_list.h"
#include "cli/trial.h"
#include "output/form.h"
#include "output/page.h"

#define PROFILE_FILE "/etc/profile.d/rdma_intercept.sh"

/* Root's privileges, and the system in another directory. */
static int enable_enter(const struct cli *cli)
{
	const char *root = cli_value(&cli->options.root);
	int result = cli_operands(cli, 0, 0);

	if (result)
		return result;
	if (geteuid() != 0)
		return cli_fail(cli, CLI_FORBIDDEN, "%s: not permitted: expected root, who may write to /etc",
				cli->command->name);
	if (root && (chroot(root) || chdir("/")))
		return cli_fail(cli, CLI_WRONG, "--root: %s: %s", root, strerror(errno));
	/* Or the end of a trial could not be waited for; the caller may ignore it. */
	signal(SIGCHLD, SIG_DFL);
	umask(022); /* every program reads what is written here */
	return CLI_OK;
}

/* Who may write the file, or a directory of its path, decides what every program executes. */
static int library_check_trust(const char *path, char problem[PROBLEM_SIZE])
{
	char part[PATH_MAX];
	struct stat status;

	snprintf(part, sizeof(part), "%s", path);
	for (bool file = true;; file = false) {
		if (stat(*part ? part : "/", &status))
			return problem_set(-errno, problem, "%s: %s", part, strerror(errno));
		if (status.st_uid != 0)
			return problem_set(-EPERM, problem,
					   _("%s: it belongs to user %u: expected root, since every program "
					     "loads the library"),
					   *part ? part : "/", (unsigned)status.st_uid);
		/* (Debian gives /usr/local to a group whose members may install programs) */
		if (status.st_mode & (file ? 022 : 002))
			return problem_set(-EPERM, problem,
					   _("%s: other users may write it (mode %04o): expected a path that "
					     "only root may change"),
					   *part ? part : "/", (unsigned)status.st_mode & 07777);
		if (!*part)
			return 0;
		*strrchr(part, '/') = '\0';
	}
}

static int library_check(char ret_path[PATH_MAX], char problem[PROBLEM_SIZE])
{
	int result = library_find(ret_path, problem);

	if (!result && strpbrk(ret_path, "\t\r\n#'\"$`\\"))
		result = problem_set(-EINVAL, problem,
				     _("%s: the path has a character that /etc/ld.so.preload or a shell reads "
				       "in another way"),
				     ret_path);
	if (!result && strcmp(strrchr(ret_path, '/') + 1, LIBRARY_FILE))
		result = problem_set(-EINVAL, problem, _("%s: expected a file with the name %s"), ret_path,
				     LIBRARY_FILE);
	if (!result)
		result = library_check_trust(ret_path, problem);
	return result ? result : library_load_try(ret_path, problem);
}

/* The linker's file must exist for a trial to cover it: an empty one changes nothing. */
static int preload_try(const struct trial_results *before, const char *library, bool exists,
		       char problem[PROBLEM_SIZE])
{
	int empty = -1, result = 0;

	if (!exists) {
		empty = open(PRELOAD_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (empty < 0)
			return problem_set(-errno, problem, "%s: %s", PRELOAD_FILE, strerror(errno));
		close(empty);
	}
	result = trial_compare_with_file(before, library, PRELOAD_FILE ETC_FILE_CANDIDATE, PRELOAD_FILE,
					 problem);
	if (result && !exists)
		unlink(PRELOAD_FILE);
	return result;
}

/* Restores the old file, unless another program has changed it; problem keeps the earlier failure. */
static void preload_restore(const char *old, const char *new)
{
	char ignored[PROBLEM_SIZE];

	if (!old)
		etc_file_remove(PRELOAD_FILE, ignored);
	else if (!etc_file_prepare(PRELOAD_FILE, old, ignored))
		etc_file_commit(PRELOAD_FILE, new, ignored);
}

/* The end of a change: what is not in place by now is not going to be. */
static int change_end(const char *path, int result, char *old, char *new)
{
	if (result < 0)
		etc_file_abandon(path);
	free(old);
	free(new);
	return result;
}

/* 1: the file names the library from now on; 0: it did before. */
static int preload_enable(const struct trial_results *before, const char *library,
			  char problem[PROBLEM_SIZE])
{
	char *old = NULL, *new = NULL;
	int result = etc_file_read(PRELOAD_FILE, &old, problem);

	if (result)
		return result;
	new = preload_list_with(old ? old : "", library);
	if (old && !strcmp(old, new))
		return change_end(PRELOAD_FILE, trial_compare(before, library, false, problem), old, new);
	result = etc_file_prepare(PRELOAD_FILE, new, problem);
	if (!result)
		result = preload_try(before, library, old, problem);
	if (!result)
		result = etc_file_commit(PRELOAD_FILE, old, problem);
	if (!result) {
		result = trial_compare(before, library, false, problem);
		if (result)
			preload_restore(old, new);
	}
	return change_end(PRELOAD_FILE, result ? result : 1, old, new);
}

static char *profile_text(const char *library)
{
	char *text;

	if (asprintf(&text,
		     "# Loads the library of rdma_intercept into what this shell starts. Written by\n"
		     "# 'rdma_intercept enable --profile', removed by 'rdma_intercept disable'.\n"
		     "if [ -r %s ]; then\n"
		     "\tcase \":${LD_PRELOAD-}:\" in\n"
		     "\t*:%s:*) ;;\n"
		     "\t*)\n"
		     "\t\tLD_PRELOAD=%s${LD_PRELOAD:+:$LD_PRELOAD}\n"
		     "\t\texport LD_PRELOAD\n"
		     "\t\t;;\n"
		     "\tesac\n"
		     "fi\n",
		     library, library, library) < 0)
		memory_need(NULL);
	return text;
}

/* A shell that reads the candidate starts programs with the library. */
static int profile_try(const char *library, char problem[PROBLEM_SIZE])
{
	static char *const words[] = { "/bin/sh", "-c",
				       ". " PROFILE_FILE ETC_FILE_CANDIDATE
				       "; /bin/true && LD_TRACE_LOADED_OBJECTS=1 exec /bin/true",
				       NULL };
	char text[PROBLEM_SIZE * 4];

	if (trial_start(words, &(struct trial){ .preload = NULL }, text, sizeof(text)) ||
	    !strstr(text, library))
		return problem_set(-ELIBBAD, problem,
				   _("%s: a shell that reads it does not start programs with the library: %.300s"),
				   PROFILE_FILE, text);
	return 0;
}

static int profile_enable(const char *library, char problem[PROBLEM_SIZE])
{
	char *old = NULL, *new = profile_text(library);
	int result = etc_file_read(PROFILE_FILE, &old, problem);

	if (!result && old && !strcmp(old, new))
		return change_end(PROFILE_FILE, 0, old, new);
	if (!result)
		result = etc_file_prepare(PROFILE_FILE, new, problem);
	if (!result)
		result = profile_try(library, problem);
	if (!result)
		result = etc_file_commit(PROFILE_FILE, old, problem);
	return change_end(PROFILE_FILE, result ? result : 1, old, new);
}

int command_enable(const struct cli *cli)
{
	bool profile = cli->options.profile.count;
	const char *file = profile ? PROFILE_FILE : PRELOAD_FILE;
	char library[PATH_MAX], problem[PROBLEM_SIZE];
	struct trial_results *before;
	struct page page;
	int result = enable_enter(cli), lock;

	if (result)
		return result;
	if (library_check(library, problem) < 0)
		return cli_fail(cli, CLI_WRONG, "enable: %s", problem);
	lock = etc_file_lock(problem);
	if (lock < 0)
		return cli_fail(cli, CLI_WRONG, "enable: %s", problem);
	before = trial_record();
	result = trial_compare(before, library, true, problem);
	if (!result)
		result = profile ? profile_enable(library, problem) :
				   preload_enable(before, library, problem);
	free(before);
	etc_file_unlock(lock);
	if (result < 0)
		return cli_fail(cli, CLI_WRONG, "enable: nothing was changed: %s", problem);
	cli_page_begin(&page, cli);
	if (!result)
		page_sentence(&page, NULL, "%s names %s already; programs work with it", file, library);
	else if (profile)
		page_sentence(&page, NULL,
			      "%s: login shells that begin from now on start programs with %s; to undo "
			      "it: rdma_intercept disable",
			      file, library);
	else
		page_sentence(&page, NULL,
			      "%s: programs that start from now on load %s; to undo it: "
			      "rdma_intercept disable",
			      file, library);
	page_json(&page, "file", form_json_text(file));
	page_json(&page, "library", form_json_text(library));
	page_json(&page, "changed", json_boolean(result));
	return page_end(&page);
}

/* 1: the library was taken out; 0: it was not in. */
static int preload_disable(char problem[PROBLEM_SIZE])
{
	char *old = NULL, *new = NULL;
	int result = etc_file_read(PRELOAD_FILE, &old, problem);

	etc_file_abandon(PRELOAD_FILE);
	if (result || !old)
		return result;
	new = preload_list_without(old);
	if (!strcmp(old, new))
		return change_end(PRELOAD_FILE, 0, old, new);
	if (*new)
		result = etc_file_prepare(PRELOAD_FILE, new, problem);
	if (!result)
		result = *new ? etc_file_commit(PRELOAD_FILE, old, problem) :
				etc_file_remove(PRELOAD_FILE, problem);
	return change_end(PRELOAD_FILE, result ? result : 1, old, new);
}

static int profile_disable(char problem[PROBLEM_SIZE])
{
	int result;

	etc_file_abandon(PROFILE_FILE);
	if (access(PROFILE_FILE, F_OK))
		return 0;
	result = etc_file_remove(PROFILE_FILE, problem);
	return result ? result : 1;
}

int command_disable(const struct cli *cli)
{
	char problem[PROBLEM_SIZE];
	int result = enable_enter(cli), lock, preload, profile = 0;
	struct page page;

	if (result)
		return result;
	lock = etc_file_lock(problem);
	preload = lock < 0 ? lock : preload_disable(problem);
	if (preload >= 0)
		profile = profile_disable(problem);
	if (lock >= 0)
		etc_file_unlock(lock);
	if (preload < 0 || profile < 0)
		return cli_fail(cli, CLI_WRONG, "disable: %s", problem);
	cli_page_begin(&page, cli);
	if (preload)
		page_sentence(&page, NULL, "%s: programs that start from now on do not load the library",
			      PRELOAD_FILE);
	if (profile)
		page_sentence(&page, NULL, "%s: removed; login shells keep the library until they end",
			      PROFILE_FILE);
	if (!preload && !profile)
		page_sentence(&page, NULL, "neither %s nor %s names the library", PRELOAD_FILE,
			      PROFILE_FILE);
	page_json(&page, "preload", json_boolean(preload));
	page_json(&page, "profile", json_boolean(profile));
	return page_end(&page);
}
