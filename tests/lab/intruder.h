/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the program intruder share: one file of uverbs, what objects on it are made of,
 * making and destroying them, processes and threads. intruder.c explains the program.
 */
#ifndef LAB_INTRUDER_H
#define LAB_INTRUDER_H

#include <sys/types.h>

#include "raw.h"

enum {
	SMALL = 1,
	LARGE = 1 << 20,
	UNKNOWN = 0xfff, /* object, method or attribute */
};

extern int uverbs;
extern struct parts parts;

/* ---- intruder_parts.c */

sender by_padded;

/* How many of up to BATCH; errno is about the next one. */
unsigned object_make(const struct path *path, enum kind kind, unsigned n, __u32 *ret_handles);
bool object_destroy(const struct path *path, enum kind kind, __u32 handle);

/* A context, and what that kind is made of but memory. */
void context_prepare(enum kind kind);
/* Memory that children share. */
void *memory_share(size_t size);

void thread_start(void *(*work)(void *), void *argument);
/* A child that ends with its parent, whatever becomes of that. */
pid_t child_start(void);

/* ---- intruder_flips.c: a command that changes while it is read */

/* Between the child, which writes it, and its parent. */
struct tally {
	unsigned long made;
	bool absent;
};
extern struct tally *tally;

/* With the file and the parts that are there: the first of the places, by the ioctl. */
_Noreturn void flip_first(enum kind kind);
/* Whether somebody else killed it within that time, and before it had enough. */
bool flip_wait(pid_t pid, unsigned seconds, unsigned long enough);
/* Flipping goes on for no longer than this: more than any limit of the scenario. */
enum { ENOUGH = 8 };
int flip_run(enum kind kind, bool of_bytes, bool written, unsigned seconds);

/* ---- intruder_heirs.c: a file that several have */

int heirs_run(enum kind kind, unsigned seconds, const char *name);
int receive_run(const char *name);

/* ---- intruder_wrong.c: what fails, and what is no command */

int failing_run(const struct path *path, enum kind kind, unsigned count);
int unknown_run(void);

#endif
