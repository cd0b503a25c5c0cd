/* SPDX-License-Identifier: MIT */
/*
 * Checks of doctor that look at the host: programs and their libc, /etc/ld.so.preload, units of
 * systemd, and what the kernel has for rdma_monitor and the guard.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/translation.h"
#include "cli/doctor.h"
#include "cli/library.h"
#include "cli/preload_list.h"
#include "cli/trial.h"
#include "view/host.h"

/* ---- programs */

/* This program itself: the loader tells on its standard error what it could not preload. */
void check_program(const struct facts *facts, struct finding *finding)
{
	char path[PATH_MAX], problem[PROBLEM_SIZE], text[512];
	char *const words[] = { "/proc/self/exe", "--version", NULL };
	int status;

	if (library_find(path, problem) < 0) {
		finding_set(finding, &untried, NULL, "no library was found: no program was started with it");
		return;
	}
	status = trial_start(words, &(struct trial){ .preload = path }, text, sizeof(text));
	if (status < 0)
		finding_set(finding, &untried, NULL, "no program can be started: %s", strerror(errno));
	else if (WIFSIGNALED(status))
		finding_set(finding, &broken, "install the library that was built for this system",
			    "a program that is started with the library ends with signal %d",
			    WTERMSIG(status));
	else if (WEXITSTATUS(status) || strstr(text, "ld.so"))
		finding_set(finding, &broken, "install the library that was built for this system",
			    "a program that is started with the library fails: %s", text);
	else
		finding_set(finding, &fine, NULL, "a program was started with the library");
}

void check_libc(const struct facts *facts, struct finding *finding)
{
	char pattern[PATH_MAX];
	glob_t found;
	bool musl = !glob(host_path("/lib/ld-musl-*", pattern), 0, NULL, &found);

	if (musl)
		finding_set(finding, &doubtful,
			    "programs that use musl do not read /etc/ld.so.preload: start them with "
			    "rdma_intercept run, or rdma_intercept guard on TENANT",
			    "glibc %s, and %s for programs that use musl", gnu_get_libc_version(),
			    found.gl_pathv[0]);
	else
		finding_set(finding, &fine, NULL, "glibc %s", gnu_get_libc_version());
	if (musl)
		globfree(&found);
}

/* The first path of our library in the file, or "". */
static void preload_entry(char ret_entry[PATH_MAX])
{
	char path[PATH_MAX], text[4096], *rest = text, *word;

	*ret_entry = '\0';
	file_read_small(host_path(PRELOAD_FILE, path), text, sizeof(text));
	while ((word = strsep(&rest, " \t\n:")))
		if (strstr(word, LIBRARY_FILE) && !*ret_entry)
			snprintf(ret_entry, PATH_MAX, "%s", word);
}

void check_preload(const struct facts *facts, struct finding *finding)
{
	/* gcc links that sanitizer so; clang's, and others, do not mind. */
	static const char sanitized[] =
		N_("programs built with gcc -fsanitize=address do not start unless libasan.so is "
		   "named before it, or ASAN_OPTIONS has verify_asan_link_order=0");
	const char *variable = getenv("LD_PRELOAD");
	char entry[PATH_MAX];

	preload_entry(entry);
	if (*entry && access(entry, R_OK))
		finding_set(finding, &broken,
			    "every program prints an error at its start: '" CLI_NAME " disable', or sed -i "
			    "'/librdma_intercept/d' /etc/ld.so.preload",
			    "%s names %s: %s", PRELOAD_FILE, entry, strerror(errno));
	else if (*entry)
		finding_set(finding, &fine, sanitized, "%s loads the library into every program",
			    PRELOAD_FILE);
	else if (variable && strstr(variable, LIBRARY_FILE))
		finding_set(finding, &fine, sanitized,
			    "LD_PRELOAD loads the library into programs started from this shell");
	else
		finding_set(finding, &doubtful,
			    "the library is loaded only into programs that '" CLI_NAME " run' starts; for all: '"
			    CLI_NAME " enable'",
			    "neither LD_PRELOAD nor %s names the library", PRELOAD_FILE);
}

/* ---- units */

static const char *const units[] = { "collector_server", "rdma_monitor" };

/* The value of KEY= in what systemctl show prints. */
static void unit_value(const char *text, const char *key, char ret_value[32])
{
	const char *at = strstr(text, key);

	*ret_value = '\0';
	if (at)
		snprintf(ret_value, 32, "%.*s", (int)strcspn(at + strlen(key), "\n"),
			 at + strlen(key));
}

/* Whether there is something to tell of the unit. */
static bool unit_check(const char *unit, struct finding *finding)
{
	char program[PATH_MAX], text[512], loaded[32], enabled[32], active[32];
	char *const words[] = { (char *)host_path("/bin/systemctl", program), "show", "-p",
				"LoadState,UnitFileState,ActiveState", (char *)unit, NULL };

	if (trial_start(words, &(struct trial){ .preload = NULL }, text, sizeof(text)) != 0) {
		finding_set(finding, &untried, NULL, "systemctl does not answer: %.200s", text);
		return true;
	}
	unit_value(text, "LoadState=", loaded);
	unit_value(text, "UnitFileState=", enabled);
	unit_value(text, "ActiveState=", active);
	if (strcmp(loaded, "loaded")) {
		finding_set(finding, &doubtful,
			    "install the units: make install && systemctl daemon-reload",
			    "systemd has no unit %s (%s)", unit, loaded);
		return true;
	}
	if (!strcmp(active, "active") && !strncmp(enabled, "enabled", 7))
		return false;
	finding_set(finding, &doubtful, NULL, "%s is %s and %s", unit, enabled, active);
	snprintf(finding->command, sizeof(finding->command), "systemctl enable --now %s", unit);
	return true;
}

void check_units(const struct facts *facts, struct finding *finding)
{
	if (!host_has("/run/systemd/system")) {
		finding_set(finding, &untried, NULL, "systemd does not run here");
		return;
	}
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (unit_check(units[i], finding))
			return;
	finding_set(finding, &fine, NULL, "%s and %s are enabled and active", units[0], units[1]);
}

/* ---- the kernel */

static bool btf_is_readable(const char *path)
{
	char full[PATH_MAX];
	unsigned char head[2] = { 0, 0 };
	int fd = open(host_path(path, full), O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, head, sizeof(head));

	if (fd >= 0)
		close(fd);
	return length == 2 && ((head[0] == 0x9f && head[1] == 0xeb) ||
			       (head[0] == 0xeb && head[1] == 0x9f));
}

void check_btf(const struct facts *facts, struct finding *finding)
{
	static const char *const modules[] = { "ib_core", "ib_uverbs" };
	char path[64];

	if (!btf_is_readable("/sys/kernel/btf/vmlinux")) {
		finding_set(finding, &doubtful,
			    "rdma_monitor falls back to kprobes or netlink, and the guard cannot be "
			    "loaded; boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
			    "/sys/kernel/btf/vmlinux cannot be read");
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		/* What is built in has no state, and its types are in vmlinux. */
		snprintf(path, sizeof(path), "/sys/module/%s/initstate", modules[i]);
		if (!host_has(path))
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/btf/%s", modules[i]);
		if (btf_is_readable(path))
			continue;
		finding_set(finding, &doubtful,
			    "rdma_monitor falls back to kprobes or netlink; boot a kernel with "
			    "CONFIG_DEBUG_INFO_BTF_MODULES=y",
			    "module %s is loaded, and %s cannot be read", modules[i], path);
		return;
	}
	finding_set(finding, &fine, NULL, "types of the kernel and of its RDMA modules are readable");
}

static bool list_has(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += length)
		if ((at == list || strchr(", ", at[-1])) && strchr(", \n", at[length]))
			return true;
	return false;
}

void check_lsm(const struct facts *facts, struct finding *finding)
{
	char path[PATH_MAX], text[512];

	if (file_read_small(host_path("/sys/kernel/security/lsm", path), text, sizeof(text)) < 0) {
		finding_set(finding, &untried, "mount -t securityfs none /sys/kernel/security",
			    "/sys/kernel/security/lsm cannot be read: %s", strerror(errno));
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	if (list_has(text, "bpf")) {
		finding_set(finding, &fine, NULL, "active: %s", text);
		return;
	}
	finding_set(finding, &doubtful, NULL,
		    "bpf is not among the active security modules: the guard cannot refuse");
	snprintf(finding->command, sizeof(finding->command),
		 _("boot with lsm=%.150s%sbpf on the kernel's command line"), text, *text ? "," : "");
}

void check_cgroup(const struct facts *facts, struct finding *finding)
{
	char path[PATH_MAX], text[512];

	if (file_read_small(host_path("/sys/fs/cgroup/cgroup.controllers", path), text,
			    sizeof(text)) >= 0) {
		text[strcspn(text, "\n")] = '\0';
		if (list_has(text, "rdma"))
			finding_set(finding, &fine, NULL, "version 2, with the controller rdma");
		else
			finding_set(finding, &doubtful,
				    "modprobe ib_core, or boot a kernel with CONFIG_CGROUP_RDMA=y",
				    "version 2, without the controller rdma: the collector cannot set rdma.max");
	} else if (host_has("/sys/fs/cgroup/systemd") || host_has("/sys/fs/cgroup/memory")) {
		finding_set(finding, &doubtful,
			    "boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line",
			    "version 1: match lines with cgroup= use its first hierarchy, and the guard "
			    "needs version 2");
	} else {
		finding_set(finding, &untried, "mount -t cgroup2 none /sys/fs/cgroup",
			    "/sys/fs/cgroup is not mounted");
	}
}
