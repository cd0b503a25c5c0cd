/* SPDX-License-Identifier: MIT */
/*
 * Failed calls; see failed_calls.h. The library counts calls of each class of verbs: those that were
 * refused by a limit never reached the kernel, those that failed did. Why they failed is in the log
 * of the library; the limit of locked memory, the usual reason, can be read from here.
 */
#include "cli/failed_calls.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/translation.h"
#include "cli/collector.h"
#include "output/form.h"
#include "output/page.h"

enum { PROC_TEXT = 4096 };

struct failed_call {
	const char *class;
	uint64_t calls, failed, refused;
};

static const struct column failed_call_columns[] = {
	COLUMN(struct failed_call, class, "class", "verbs", form_string),
	COLUMN(struct failed_call, calls, "calls", "calls", form_count),
	COLUMN(struct failed_call, failed, "failed", "failed in the kernel", form_count),
	COLUMN(struct failed_call, refused, "refused", "refused by a limit", form_count),
	COLUMNS_END,
};

static int failed_calls_take(const void *received, void *closure)
{
	const struct proto_details *row = received;

	for (unsigned class = 0; !row->device[0] && class < VERB_CLASSES; class ++) {
		const struct verb_tally *tally = &row->tallies.verb[class];
		struct failed_call *call;

		if (!tally->failed)
			continue;
		call = list_add(closure);
		*call = (struct failed_call){ verb_class_rows[class].name, 0, tally->failed,
					      tally->refused };
		for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
			call->calls += tally->latency[i];
	}
	return 0;
}

/* The number behind a word of a file of /proc; false: it has none there, such as "unlimited". */
static bool proc_number(int32_t pid, const char *file, const char *word, uint64_t *ret_number)
{
	char text[PROC_TEXT], *at, *end;

	if (proc_read(pid, file, text, sizeof(text)) <= 0 || !(at = strstr(text, word)))
		return false;
	at += strlen(word);
	*ret_number = strtoull(at, &end, 10);
	return end != at;
}

static void failed_calls_advise(struct page *page, int32_t pid)
{
	char limit_text[BYTES_TEXT], pinned_text[BYTES_TEXT];
	uint64_t limit, pinned;

	page_sentence(page, "failed_advice",
		      "These calls passed the limits and failed in the kernel or the provider. The log of "
		      "the library has the error and the likely reason (RDMA_INTERCEPT_LOG_FILE_PATH, by "
		      "default /tmp/rdma_intercept.log).");
	if (proc_number(pid, "limits", "Max locked memory", &limit) &&
	    proc_number(pid, "status", "\nVmPin:", &pinned))
		page_sentence(page, "locked_memory",
			      "Locked memory of the process is limited to %s (RLIMIT_MEMLOCK), and %s are "
			      "pinned. Registering more fails with ENOMEM, unless the process has "
			      "CAP_IPC_LOCK: raise it by 'ulimit -l' or LimitMEMLOCK= of the unit.",
			      bytes_text(limit, limit_text), bytes_text(pinned << 10, pinned_text));
}

int failed_calls_show(const struct cli *cli, struct page *page, int32_t pid)
{
	const struct proto_choose choose = { .pid = pid };
	struct list calls = { .size = sizeof(struct failed_call) };
	int result = collector_rows(cli, MESSAGE_GET_DETAILS, &choose, failed_calls_take, &calls);

	if (!result && calls.count) {
		page_table(page, "failed_calls", failed_call_columns, &calls);
		failed_calls_advise(page, pid);
	} else if (!result) {
		page_json(page, "failed_calls", json_array());
	}
	free(calls.row);
	return result;
}
