/* SPDX-License-Identifier: MIT */
/* What the log says of verbs that failed in the provider or the kernel; see failures.h. */
#include "intercept/failures.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc.h"
#include "intercept/prototypes.h"
#include "intercept/library.h"
#include "intercept/refusals.h"

enum { REASON_TEXT = 360, STATUS_TEXT = 1200, QUEUES_BYTES = 1 << 20 };

/* Errors by which the kernel says that there is no more of something. */
static const struct failure_error {
	int error;
	const char *name;
	const char *reason; /* where it cannot be told more exactly; NULL: nothing is written then */
} failure_errors[] = {
	{ ENOMEM, "ENOMEM", "the kernel or the device has no memory or no object left for it" },
	{ EAGAIN, "EAGAIN",
	  "the cgroup is at its limit (rdma.max), or the device has no object left for it" },
	{ ENOSPC, "ENOSPC", "the device has no room left for it" },
	{ EDQUOT, "EDQUOT",
	  "the guard in the kernel refused it; 'rdma_intercept events' shows the limit" },
	{ EMFILE, "EMFILE", "the process has no file descriptor left" },
	{ ENFILE, "ENFILE", "the host has no file descriptor left (fs.file-max)" },
	/* Of RLIMIT_MEMLOCK 0; otherwise it says nothing of resources. */
	{ EPERM, "EPERM", NULL },
};

static const struct failure_error *failure_error_find(int error)
{
	for (unsigned i = 0; i < sizeof(failure_errors) / sizeof(failure_errors[0]); i++)
		if (failure_errors[i].error == error)
			return &failure_errors[i];
	return NULL;
}

static bool memory_may_be_locked(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return !syscall(SYS_capget, &header, data) &&
	       data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK);
}

/* What the kernel compares with the limit: memory that devices have pinned. */
static uint64_t memory_pinned(struct library *library)
{
	char text[STATUS_TEXT];
	const char *line = proc_read(getpid(), "status", text, sizeof(text)) > 0 ?
				   strstr(text, "\nVmPin:") :
				   NULL;

	return line ? strtoull(line + strlen("\nVmPin:"), NULL, 10) << 10 :
		      ledger_used(&library->ledger, KIND_mr_bytes);
}

/* By RLIMIT_MEMLOCK: ENOMEM, or EPERM if it is 0. Queues are pinned, too, and their size is not known
 * before. */
static bool reason_memlock(struct library *library, const struct failure *failure, char *ret_text)
{
	uint64_t pinned, wanted = failure->bytes ? failure->bytes : QUEUES_BYTES;
	char more[48] = "";
	struct rlimit limit;

	if ((failure->error != ENOMEM && failure->error != EPERM) ||
	    getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    (failure->error == EPERM && limit.rlim_cur) || memory_may_be_locked())
		return false;
	pinned = memory_pinned(library);
	if (wanted <= limit.rlim_cur && pinned <= limit.rlim_cur - wanted)
		return false;
	if (failure->bytes)
		snprintf(more, sizeof(more), ", %llu more are wanted",
			 (unsigned long long)failure->bytes);
	snprintf(ret_text, REASON_TEXT,
		 "locked memory is limited to %llu bytes (RLIMIT_MEMLOCK), %llu are pinned%s: raise it "
		 "by 'ulimit -l', /etc/security/limits.conf or LimitMEMLOCK= of the unit",
		 (unsigned long long)limit.rlim_cur, (unsigned long long)pinned, more);
	return true;
}

static bool reason_descriptors(struct library *library, const struct failure *failure, char *ret_text)
{
	struct rlimit limit;

	if (failure->error != EMFILE || getrlimit(RLIMIT_NOFILE, &limit))
		return false;
	snprintf(ret_text, REASON_TEXT,
		 "the process has no file descriptor left of %llu (RLIMIT_NOFILE): raise it by "
		 "'ulimit -n' or LimitNOFILE= of the unit",
		 (unsigned long long)limit.rlim_cur);
	return true;
}

/* How many objects of the kind a device has, over all processes, and how many this process has. */
static bool reason_device(struct library *library, const struct failure *failure, char *ret_text)
{
	static __typeof__(ibv_query_device) *query;
	struct ibv_device_attr attr;
	const struct {
		enum object object;
		enum kind kind;
		const char *name;
		const int *most;
	} rows[] = {
		{ OBJECT_pd, KIND_pd, "max_pd", &attr.max_pd },
		{ OBJECT_cq, KIND_cq, "max_cq", &attr.max_cq },
		{ OBJECT_qp, KIND_qp, "max_qp", &attr.max_qp },
		{ OBJECT_mr, KIND_mr, "max_mr", &attr.max_mr },
		{ OBJECT_mw, KIND_mw, "max_mw", &attr.max_mw },
		{ OBJECT_srq, KIND_srq, "max_srq", &attr.max_srq },
		{ OBJECT_ah, KIND_ah, "max_ah", &attr.max_ah },
	};
	const struct failure_error *error = failure_error_find(failure->error);
	bool is_known = false;

	if (!error)
		return false;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if ((int)rows[i].object != failure->object)
			continue;
		if (!query)
			query = real_helper("libibverbs.so.1", "ibv_query_device");
		is_known = failure->context && query && query(failure->context, &attr) == 0;
		if (is_known)
			snprintf(ret_text, REASON_TEXT,
				 "%s; the device has %s=%d for all processes, this process has %llu",
				 error->reason, rows[i].name, *rows[i].most,
				 (unsigned long long)ledger_used(&library->ledger, rows[i].kind));
	}
	return is_known;
}

static bool failure_is_of_device(int error)
{
	return error == ENOMEM || error == EAGAIN || error == ENOSPC;
}

__attribute__((cold)) void failure_report(struct library *library, const struct failure *failure)
{
	const struct failure_error *row = failure_error_find(failure->error);
	char reason[REASON_TEXT];
	uint64_t unshown;
	int saved = errno;

	if (!row || !log_wants(&library->log, LOG_WARN))
		return;
	*reason = '\0';
	if (!row->reason && !reason_memlock(library, failure, reason))
		goto out;
	if (!report_may_be_shown(&library->failures_shown, &unshown))
		goto out;
	if (!*reason && !reason_memlock(library, failure, reason) &&
	    !reason_descriptors(library, failure, reason) &&
	    !(failure_is_of_device(row->error) && reason_device(library, failure, reason)))
		snprintf(reason, sizeof(reason), "%s", row->reason);
	log_write(&library->log, LOG_WARN,
		  "%s failed with %s in the kernel or the provider, not by a limit of this library: "
		  "%s%s%.0llu%s",
		  failure->verb, row->name, reason, unshown ? " (and " : "",
		  (unsigned long long)unshown, unshown ? " more not shown)" : "");
out:
	errno = saved;
}
