/* SPDX-License-Identifier: MIT */
/* The report of a reader that goes on after a mistake; see report.h. */
#include "policy/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"

void policy_report_free(struct policy_report *report)
{
	while (report->marks) {
		struct policy_mark *mark = report->marks;

		report->marks = mark->next;
		free(mark);
	}
	while (report->files) {
		struct policy_file *file = report->files;

		report->files = file->next;
		free(file);
	}
	free(report->finding);
	*report = (struct policy_report){ .count = 0 };
}

/* The same path for as long as the report lives. Files are read one after the other. */
const char *policy_report_file(struct policy_report *report, const char *path)
{
	struct policy_file *file = report->files;

	while (file && strcmp(file->path, path))
		file = file->next;
	if (file)
		return file->path;
	file = malloc(sizeof(*file) + strlen(path) + 1);
	if (!file) {
		report->incomplete = true;
		return "";
	}
	strcpy(file->path, path);
	file->next = report->files;
	report->files = file;
	return file->path;
}

static struct policy_finding *report_finding(struct policy_report *report,
					     enum policy_check_number check)
{
	struct policy_finding *more;
	/* Room grows by doubling: 16, 32, ... */
	bool full = report->count == 0 ||
		    (report->count >= 16 && !(report->count & (report->count - 1)));

	if (policy_check_is_error(check))
		report->errors++;
	else
		report->warnings++;
	if (report->count == POLICY_FINDINGS) {
		report->left_out++;
		return NULL;
	}
	if (full) {
		more = reallocarray(report->finding, report->count ? 2 * report->count : 16,
				    sizeof(*more));
		if (!more) {
			report->incomplete = true;
			report->left_out++;
			return NULL;
		}
		report->finding = more;
	}
	return &report->finding[report->count++];
}

void policy_report_add(struct policy_report *report, enum policy_check_number check,
		       const char *file, unsigned line, const char *format, ...)
{
	struct policy_finding *finding = report_finding(report, check);
	va_list arguments;

	if (!finding)
		return;
	finding->check = check;
	finding->file = policy_report_file(report, file);
	finding->line = line;
	finding->order = report->count;
	va_start(arguments, format);
	vsnprintf(finding->text, sizeof(finding->text), _(format), arguments);
	va_end(arguments);
}

int policy_report_mistake(const struct policy *policy, enum policy_check_number check,
			  const struct policy_source *source, int result)
{
	if (result >= 0 || result == -ENOMEM || !policy->report)
		return result;
	policy_report_add(policy->report, check, source->file ? source->file : policy->file,
			  source->line, "%s", source->problem + policy_problem_prefix(source));
	return 0;
}

void policy_report_mark(const struct policy *policy, const struct policy_source *source,
			const struct policy_mark *mark)
{
	struct policy_report *report = policy->report;
	struct policy_mark *added;

	if (!report || !source->file)
		return;
	added = malloc(sizeof(*added));
	if (!added) {
		report->incomplete = true;
		return;
	}
	*added = *mark;
	added->file = policy_report_file(report, source->file);
	added->line = source->line;
	added->next = report->marks;
	report->marks = added;
}

static bool place_is_same(const struct policy_place *a, const struct policy_place *b)
{
	return !b || (a->kind == b->kind && !strcmp(a->device, b->device));
}

const struct policy_mark *policy_report_find(const struct policy_report *report,
					     const struct policy_tenant *tenant,
					     const struct policy_key *key,
					     const struct policy_place *place)
{
	const struct policy_mark *found = NULL;

	for (const struct policy_mark *mark = report->marks; mark; mark = mark->next) {
		if (mark->tenant != tenant || mark->key != key || mark->invalid ||
		    (key && !place_is_same(&mark->place, place)))
			continue;
		found = mark;
		if (key)
			break;
	}
	return found;
}
