/* SPDX-License-Identifier: MIT */
/*
 * The report of a reader that goes on after a mistake: all findings, and which line has set what.
 * A policy with a report (struct policy) is read in this way; only `check` does so. The collector
 * has none and stops at the first mistake.
 */
#ifndef POLICY_REPORT_H
#define POLICY_REPORT_H

#include "policy/keys.h"
#include "policy/problem.h"

enum { POLICY_FINDINGS = 1000 }; /* further ones are only counted */

enum policy_check_number {
#define MISTAKE(name, text) POLICY_CHECK_##name,
#define WARNING(name, text) POLICY_CHECK_##name,
#include "policy/checks.def"
#undef MISTAKE
#undef WARNING
	POLICY_CHECKS
};

struct policy_finding {
	enum policy_check_number check;
	const char *file; /* of the report */
	unsigned line;	  /* 0: the file as a whole */
	unsigned order;	  /* in which it was found */
	char text[PROBLEM_SIZE];
};

/* A line of a file. */
struct policy_mark {
	struct policy_mark *next;	    /* the one before it */
	const struct policy_tenant *tenant; /* the section; NULL: [collector] or [host] */
	const struct policy_key *key;	    /* NULL: the title of the section */
	struct policy_place place;
	const char *file; /* of the report */
	unsigned line;
	bool invalid; /* it has set nothing */
};

struct policy_report {
	struct policy_finding *finding;
	unsigned count, left_out;
	unsigned errors, warnings; /* those that are left out included */
	struct policy_mark *marks;
	struct policy_file *files; /* every one that was read, the last first */
	bool incomplete;	   /* there was no memory for all of it */
};

struct policy_file {
	struct policy_file *next;
	char path[];
};

/* Whether the collector does not accept a policy that has it; check.c has the table. */
bool policy_check_is_error(enum policy_check_number number);

void policy_report_free(struct policy_report *report);

/* Adds a file that is read, unless it is there, or a finding. */
const char *policy_report_file(struct policy_report *report, const char *path);
void policy_report_add(struct policy_report *report, enum policy_check_number check,
		       const char *file, unsigned line, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* A failure of reading: 0 if the policy has a report, which has it then, for the reader to go on.
 * Otherwise the result; so, too, if it is no failure or there is no memory. */
int policy_report_mistake(const struct policy *policy, enum policy_check_number check,
			  const struct policy_source *source, int result);

/* Notes what the line of the source is, if the policy has a report. */
void policy_report_mark(const struct policy *policy, const struct policy_source *source,
			const struct policy_mark *mark);

/* The last line that has set a value of the section, or (key NULL) its first title; NULL. */
const struct policy_mark *policy_report_find(const struct policy_report *report,
					     const struct policy_tenant *tenant,
					     const struct policy_key *key,
					     const struct policy_place *place);

#endif
