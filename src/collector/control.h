/* SPDX-License-Identifier: MIT */
/*
 * The policy in force: four layers (environment, files, fleet, commands), each over the one before,
 * make the effective policy. A change takes effect whole, or not at all and the answer says so.
 */
#ifndef COLLECTOR_CONTROL_H
#define COLLECTOR_CONTROL_H

#include "base/problem.h"
#include "collector/collector.h"

/* What the collector's own environment says of the host. -EINVAL with the variable's name. */
int control_environment(struct collector *collector, char problem[PROBLEM_SIZE]);

/*
 * Reads the files anew; on failure everything stays as it was, and the reason is kept. Files
 * that are away, cut, or silent on what they said before are a failure, unless somebody said
 * that this is wanted.
 */
enum reload { RELOAD_WHOLE, RELOAD_LESS };
/* Names in the policy are being looked up: call again after collector_names_known. Nothing has
 * changed, and at the start it does not happen. */
enum { CONTROL_WAITS = 1 };

/* Who asked for a change, for its event and the log; NULL: no client did. */
struct control_author {
	uid_t uid;
	const char *via; /* for whom the client asked; "": for its own user */
};

int control_reload(struct collector *collector, enum reload how,
		   const struct control_author *author);

/* A command's change of one section, kept over restarts. CONTROL_WAITS, likewise. */
int control_change(struct collector *collector, const char *section, const char *text,
		   const struct control_author *author, char problem[PROBLEM_SIZE]);
int control_tenant_remove(struct collector *collector, const char *name,
			  const struct control_author *author, char problem[PROBLEM_SIZE]);

/* How much commands set over the files; and without that again, in a section ("": in all), with how
 * much it was. */
unsigned control_overrides(const struct collector *collector);
int control_reset(struct collector *collector, const char *section,
		  const struct control_author *author, unsigned *ret_keys,
		  char problem[PROBLEM_SIZE]);

/* A file that the collector has written itself, read at the start. */
int control_read_own(struct collector *collector, const char *path, bool runtime,
		     struct policy **ret_policy, char problem[PROBLEM_SIZE]);

/* Puts the layers into force again, since other when lines hold, or the fleet's layer is another
 * one. Unless it is CHECKED, guarantees that cannot be kept are no failure, but count in
 * proportion. -errno with a sentence, which is logged, and everything stays as it was. */
int control_renew(struct collector *collector, bool checked, char problem[PROBLEM_SIZE]);

/* Whether the files, or the fleet, name a tenant. */
bool control_names_tenant(const struct collector *collector, const char *name);

/* The layers as one, with these in place of files and runtime, and over them what when lines
 * set that are in force. NULL with errno and a sentence. Without a place for that (NULL) guarantees
 * that cannot be kept are no failure. */
struct policy *control_merge(struct collector *collector, const struct policy *files,
			     const struct policy *runtime, char problem[PROBLEM_SIZE]);

/* The tenant of a process by the rules in force, made if need be. Its number; or -errno with a reason,
 * which is text that stays. */
int control_tenant_of(struct collector *collector, const struct subject *subject,
		      const char **ret_reason);

/* ---- last_good.c: the policy files as they were when they were last in force */

#define CONTROL_GOOD "last-good" /* how the name of the copy begins */

/*
 * What was kept in that directory: until control_reload finds the files in order, it is what they
 * say. Nothing happens where nothing was kept.
 */
void control_recall(struct collector *collector, const char *directory);

/* Keeps what the files say for the next start. */
void control_keep(struct collector *collector);

/* Replaces a policy that is owned by another. */
void control_adopt(struct policy **place, struct policy *policy);

/* ---- control_books.c: the policy on the books */

/*
 * Makes everything that a policy needs on the books and that may fail: after that
 * control_apply cannot. -errno with a sentence; what was made is taken back by control_discard.
 */
int control_prepare(struct collector *collector, const struct policy *policy,
		    char problem[PROBLEM_SIZE]);
/* Takes back what was prepared for a policy that was not put into force. */
void control_discard(struct collector *collector);

/* Puts the effective policy into force: on the books, and in the kernel. */
void control_apply(struct collector *collector);

/* Limits, mode and settings of a tenant that has just got its number. */
void control_tenant_apply(struct collector *collector, unsigned tenant);

/* The number of a tenant; one that could not be made when the policy was put into force is made
 * now, with its limits. -errno. */
int control_tenant(struct collector *collector, const char *name);
/* The number of a device; if it is new, with its limits. */
unsigned control_device(struct collector *collector, const char *name);

#endif
