/* SPDX-License-Identifier: MIT */
/* What /proc says of a process; see process.h. */
#include "monitor/polling/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/proc.h"

static bool process_read(__u32 pid, const char *name, char *text, size_t size)
{
	return proc_read((pid_t)pid, name, text, size) > 0;
}

/* When it started; *ret_ended: a zombie without threads, which holds no descriptors. */
static bool process_start_read(__u32 pid, __u64 *ret_ns, bool *ret_ended)
{
	struct proc_stat stat;

	if (proc_stat_read((pid_t)pid, &stat) < 0)
		return false;
	*ret_ns = stat.start * proc_tick_ns();
	*ret_ended = proc_stat_has_ended(&stat);
	return true;
}

static __u32 process_status_number(const char *text, const char *label, __u32 otherwise)
{
	const char *line = strstr(text, label);

	return line ? (__u32)strtoul(line + strlen(label), NULL, 10) : otherwise;
}

/* The process that a thread belongs to. False: it has just ended, or is hidden from us. */
bool process_of(__u32 task, struct process *ret_process)
{
	char text[8192];
	bool ended;

	*ret_process = (struct process){ .pid = task, .uid = (__u32)-1 };
	if (!process_read(task, "status", text, sizeof(text)))
		return false;
	ret_process->pid = process_status_number(text, "\nTgid:", task);
	ret_process->uid = process_status_number(text, "\nUid:", (__u32)-1);
	return process_start_read(ret_process->pid, &ret_process->start_ns, &ended);
}

bool process_has_ended(__u32 pid, __u64 start_ns)
{
	__u64 start;
	bool ended;

	if (kill((pid_t)pid, 0) && errno == ESRCH)
		return true;
	if (!start_ns || !process_start_read(pid, &start, &ended))
		return false;
	return ended || start != start_ns;
}

void process_command(__u32 pid, char *ret_command, size_t size)
{
	if (!pid || !process_read(pid, "comm", ret_command, size))
		ret_command[0] = '\0';
	*strchrnul(ret_command, '\n') = '\0';
}
