/* SPDX-License-Identifier: MIT */
/*
 * Looks at a program file before it is started; see program.h. It finds the file as execvp() does,
 * follows scripts, and reads ELF headers by the rules of the kernel and of the dynamic linker. It
 * starts nothing. What is not certain counts as fine: the program then starts as it would have.
 */
#include "cli/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/translation.h"

enum {
	SCRIPTS_MOST = 5,     /* the kernel follows fewer */
	HEAD_SIZE = 256,      /* that the kernel reads of a script, too */
	SEGMENTS_MOST = 64,   /* program headers that are read */
	LOADER_SIZE = 256,    /* of the dynamic linker's path */
	PROBLEM_PATH = 160,   /* of a path in a message */
};

static const char guard_help[] =
	N_("use the guard ('rdma_intercept guard on TENANT'), which needs no library");
static const char try_help[] = N_("--try starts it anyway, without limits");

struct program {
	char path[PATH_MAX];
	unsigned char head[HEAD_SIZE];
	ssize_t length;		  /* of the head; 0: it cannot be read */
	char loader[LOADER_SIZE]; /* "": it has none, if the headers are known */
	bool headers_known;
};

/* ---- finding the file */

static bool program_is_executable(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode) && !access(path, X_OK);
}

static bool program_find(const char *name, char ret_path[PATH_MAX])
{
	const char *places = getenv("PATH");

	if (!*name)
		return false;
	if (strchr(name, '/'))
		return snprintf(ret_path, PATH_MAX, "%s", name) < PATH_MAX &&
		       program_is_executable(ret_path);
	for (const char *at = places ? places : "/bin:/usr/bin";; at++) {
		int length = (int)strcspn(at, ":");

		if (snprintf(ret_path, PATH_MAX, "%.*s%s%s", length, at, length ? "/" : "", name) <
			    PATH_MAX &&
		    program_is_executable(ret_path))
			return true;
		at += length;
		if (!*at)
			return false;
	}
}

/* ---- reading it */

static bool is_elf(const struct program *program)
{
	return program->length >= 20 && !memcmp(program->head, ELFMAG, SELFMAG);
}

static bool elf_is_ours(const unsigned char *head, ssize_t length)
{
	return length >= (ssize_t)sizeof(ElfW(Ehdr)) && !memcmp(head, ELFMAG, SELFMAG) &&
	       head[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
	       head[EI_DATA] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB :
									     ELFDATA2MSB);
}

/* The path of the dynamic linker, if the headers can be read. False: they cannot. */
static bool elf_read_loader(int fd, struct program *program)
{
	ElfW(Ehdr) header;
	ElfW(Phdr) segment;

	program->loader[0] = '\0';
	memcpy(&header, program->head, sizeof(header));
	if (header.e_phentsize != sizeof(segment) || header.e_phnum > SEGMENTS_MOST)
		return false;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		off_t place = (off_t)(header.e_phoff + i * sizeof(segment));

		if (pread(fd, &segment, sizeof(segment), place) != (ssize_t)sizeof(segment))
			return false;
		if (segment.p_type != PT_INTERP)
			continue;
		if (segment.p_filesz < 2 || segment.p_filesz > sizeof(program->loader) ||
		    pread(fd, program->loader, segment.p_filesz, (off_t)segment.p_offset) !=
			    (ssize_t)segment.p_filesz)
			return false;
		program->loader[segment.p_filesz - 1] = '\0';
		return true;
	}
	return true;
}

static bool program_read(struct program *program)
{
	int fd = open(program->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	program->headers_known = false;
	program->length = 0;
	if (fd < 0)
		return false;
	program->length = read(fd, program->head, sizeof(program->head));
	if (program->length > 0 && elf_is_ours(program->head, program->length))
		program->headers_known = elf_read_loader(fd, program);
	close(fd);
	return program->length > 0;
}

/* The next word of a line of a script: up to a blank, the end of the line, or of what was read. */
static size_t word_next(const char **at)
{
	*at += strspn(*at, " \t");
	return strcspn(*at, " \t\n");
}

/* The name of the program that a script's first line asks for; with "env", of the one that env
 * would start, by PATH. False: the line names no program, or the name is too long. */
static bool script_interpreter(const struct program *program, char ret_name[PATH_MAX],
			       bool *ret_by_path)
{
	char line[HEAD_SIZE];
	const char *at = line, *base;
	size_t length;

	snprintf(line, sizeof(line), "%.*s", (int)program->length - 2,
		 (const char *)program->head + 2);
	length = word_next(&at);
	if (!length)
		return false;
	snprintf(ret_name, PATH_MAX, "%.*s", (int)length, at);
	*ret_by_path = false;
	base = strrchr(ret_name, '/');
	if (!base || strcmp(base, "/env"))
		return true;
	for (at += length; (length = word_next(&at)); at += length)
		if (*at != '-' && !memchr(at, '=', length)) {
			snprintf(ret_name, PATH_MAX, "%.*s", (int)length, at);
			*ret_by_path = true;
			break;
		}
	return true;
}

/* The file that a name stands for: the kernel takes the interpreter of a script from the current
 * directory, however it is written; programs that execvp() or env starts are searched in PATH. */
static bool program_locate(const char *name, bool by_path, char ret_path[PATH_MAX])
{
	if (by_path)
		return program_find(name, ret_path);
	return snprintf(ret_path, PATH_MAX, "%s", name) < PATH_MAX && program_is_executable(ret_path);
}

/* Follows scripts to a file that the kernel executes itself, and reads it if it may. False: there is
 * no such file; program->path is the last one that was looked for, *ret_script the script that names
 * it ("": none does). */
static bool program_resolve(const char *name, struct program *program, char ret_script[PATH_MAX])
{
	bool by_path = true;
	char next[PATH_MAX];

	ret_script[0] = '\0';
	for (unsigned i = 0; i < SCRIPTS_MOST; i++) {
		if (!program_locate(name, by_path, program->path)) {
			snprintf(program->path, sizeof(program->path), "%s", name);
			return false;
		}
		if (!program_read(program) || is_elf(program))
			return true;
		if (program->length < 2 || program->head[0] != '#' || program->head[1] != '!')
			strcpy(next, "/bin/sh"); /* as execvp() does */
		else if (!script_interpreter(program, next, &by_path))
			return false;
		strcpy(ret_script, program->path);
		name = next;
	}
	return false;
}

/* ---- looking at it */

/* "aarch64", or the number of an architecture that is not in the table. */
static const char *machine_name(unsigned machine, char ret_text[24])
{
	static const struct {
		unsigned machine;
		const char *name;
	} machines[] = {
		{ EM_X86_64, "x86-64" }, { EM_386, "i386" },	 { EM_AARCH64, "aarch64" },
		{ EM_ARM, "arm" },	 { EM_PPC64, "ppc64" },	 { EM_S390, "s390" },
		{ EM_RISCV, "riscv" },	 { EM_MIPS, "mips" },
	};

	snprintf(ret_text, 24, "machine %u", machine);
	for (unsigned i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].machine == machine)
			snprintf(ret_text, 24, "%s", machines[i].name);
	return ret_text;
}

static unsigned head_machine(const unsigned char *head)
{
	return head[EI_DATA] == ELFDATA2MSB ? head[18] << 8 | head[19] : head[19] << 8 | head[18];
}

static unsigned head_bits(const unsigned char *head)
{
	return head[EI_CLASS] == ELFCLASS32 ? 32 : 64;
}

static int check_architecture(const struct program *program, const struct program *library,
			      char problem[PROBLEM_SIZE])
{
	char own[24], other[24];

	if (!is_elf(program) || !is_elf(library) ||
	    (head_machine(program->head) == head_machine(library->head) &&
	     program->head[EI_CLASS] == library->head[EI_CLASS] &&
	     program->head[EI_DATA] == library->head[EI_DATA]))
		return 0;
	return problem_set(-ENOEXEC, problem,
			   _("%.*s: not started: the program is for %s (%u bits) and the library %.*s for "
			     "%s (%u bits): set RDMA_INTERCEPT_LIBRARY to a library for %s; %s"),
			   PROBLEM_PATH, program->path, machine_name(head_machine(program->head), other),
			   head_bits(program->head), PROBLEM_PATH, library->path,
			   machine_name(head_machine(library->head), own), head_bits(library->head),
			   other, _(try_help));
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The dynamic linker can be started as a program, with the real one as its argument. */
static bool is_loader(const struct program *program, const char *own)
{
	struct stat one, other;

	return !strcmp(file_name(program->path), file_name(own)) ||
	       (!stat(program->path, &one) && !stat(own, &other) && one.st_ino == other.st_ino &&
		one.st_dev == other.st_dev);
}

/* What the dynamic linkers of musl are called; the library loads with them, too. */
#define MUSL_LOADER "ld-musl-"

static int check_loader(const struct program *program, const char *own, char problem[PROBLEM_SIZE])
{
	if (!program->loader[0] && is_loader(program, own))
		return 0;
	if (!program->loader[0])
		return problem_set(-ENOEXEC, problem,
				   _("%.*s: not started: the program is statically linked, so that no "
				     "library can be loaded into it: link it dynamically, or %s; %s"),
				   PROBLEM_PATH, program->path, _(guard_help), _(try_help));
	if (strcmp(file_name(program->loader), file_name(own)) &&
	    strncmp(file_name(program->loader), MUSL_LOADER, strlen(MUSL_LOADER)))
		return problem_set(-ENOEXEC, problem,
				   _("%.*s: not started: the program uses another C library (its dynamic "
				     "linker is %.*s, the library needs %s): build it for this C library, "
				     "or %s; %s"),
				   PROBLEM_PATH, program->path, PROBLEM_PATH, program->loader,
				   file_name(own), _(guard_help), _(try_help));
	return 0;
}

/* File capabilities that a process gets by executing the file. */
static bool gains_capabilities(const char *path)
{
	struct vfs_ns_cap_data data;
	ssize_t length = getxattr(path, "security.capability", &data, sizeof(data));

	if (length < (ssize_t)(sizeof(data.magic_etc) + sizeof(data.data[0])) || getuid() == 0)
		return false;
	return data.data[0].permitted ||
	       (length >= (ssize_t)sizeof(struct vfs_cap_data) && data.data[1].permitted);
}

/* Where the kernel raises privileges, the dynamic linker ignores LD_PRELOAD. */
static int check_privileges(const struct program *program, char problem[PROBLEM_SIZE])
{
	const char *how = NULL;
	struct statvfs mount;
	struct stat status;

	if (stat(program->path, &status) || statvfs(program->path, &mount) ||
	    mount.f_flag & ST_NOSUID || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return 0;
	if (status.st_mode & S_ISUID && status.st_uid != getuid())
		how = N_("set-user-ID");
	else if ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
		 status.st_gid != getgid())
		how = N_("set-group-ID");
	else if (gains_capabilities(program->path))
		how = N_("file capabilities");
	if (!how)
		return 0;
	return problem_set(-ENOEXEC, problem,
			   _("%.*s: not started: the program runs with raised privileges (%s), and the "
			     "dynamic linker then ignores LD_PRELOAD: start it as the user whose "
			     "privileges it needs, such as by 'sudo rdma_intercept run', or %s; %s"),
			   PROBLEM_PATH, program->path, _(how), _(guard_help), _(try_help));
}

/* What does not exist: the program, the interpreter of a script, or the dynamic linker. */
static void failure_absent(const char *name, char problem[PROBLEM_SIZE])
{
	char script[PATH_MAX];
	struct program program;

	if (program_resolve(name, &program, script)) {
		if (program.headers_known && program.loader[0] && access(program.loader, F_OK))
			problem_set(-ENOENT, problem,
				    "%.*s: its dynamic linker '%s' does not exist: install the C library "
				    "that the program was built for",
				    PROBLEM_PATH, program.path, program.loader);
	} else if (script[0] && access(program.path, F_OK)) {
		problem_set(-ENOENT, problem,
			    "%.*s: the interpreter '%.*s' of its first line (#!) does not exist: install "
			    "it, or write the path of another one there",
			    PROBLEM_PATH, script, PROBLEM_PATH, program.path);
	} else if (!strchr(name, '/')) {
		problem_set(-ENOENT, problem,
			    "%.*s: not found in PATH: expected the name of a program in PATH, or its path",
			    PROBLEM_PATH, name);
	}
}

void program_failure(const char *name, int error, char problem[PROBLEM_SIZE])
{
	struct stat status;

	problem_set(-error, problem, "%.*s: %s", PROBLEM_PATH, name, strerror(error));
	if (error == ENOENT)
		failure_absent(name, problem);
	if (error != EACCES || stat(name, &status))
		return;
	if (S_ISDIR(status.st_mode))
		problem_set(-error, problem, "%.*s: is a directory: expected a program", PROBLEM_PATH,
			    name);
	else if (S_ISREG(status.st_mode) && !(status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
		problem_set(-error, problem,
			    "%.*s: the file is not executable: expected a program, or a script after "
			    "'chmod +x'",
			    PROBLEM_PATH, name);
}

int program_check(const char *name, const char *library, char problem[PROBLEM_SIZE])
{
	char script[PATH_MAX];
	struct program program, own = { .length = 0 }, preloaded = { .length = 0 };
	int result;

	snprintf(own.path, sizeof(own.path), "/proc/self/exe");
	snprintf(preloaded.path, sizeof(preloaded.path), "%s", library);
	if (!program_resolve(name, &program, script) || !program_read(&own) || !program_read(&preloaded))
		return 0; /* execvp() tells */
	result = check_architecture(&program, &preloaded, problem);
	/* Headers of another architecture, and too many of them, are not read. */
	if (!result && program.headers_known && own.loader[0])
		result = check_loader(&program, own.loader, problem);
	return result ? result : check_privileges(&program, problem);
}
