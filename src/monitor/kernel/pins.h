/* SPDX-License-Identifier: MIT */
/*
 * What is kept in a directory of the bpf file system, so that it stays in the kernel when
 * the process that put it there ends: maps and iterators by their names, links below links/.
 */
#ifndef MONITOR_KERNEL_PINS_H
#define MONITOR_KERNEL_PINS_H

#include <limits.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/problem.h"

/* A call that began before a hook was attached ends unseen by it. So long after attaching, all
 * that is there is looked for, step by step. */
enum {
	PINS_YOUNG_MS = 10000,
	PINS_YOUNG_STEP_MS = 1000,
};

struct bpf_link;
struct bpf_map;
struct bpf_object;
struct bpf_program;

/* From now on, what libbpf complains of is kept for our sentences (or printed for who debugs). */
void pins_listen(void);

bool pins_is_bpf(const char *path);
void pins_path(const char *directory, const char *kind, const char *name, char ret[PATH_MAX]);

/* Makes a directory to pin in, and mounts the bpf file system above it if need be; removes it with
 * everything in it. */
int pins_directory_make(const char *directory, char problem[PROBLEM_SIZE]);
int pins_remove(const char *directory);

/* The maps of an object, all but the nameless, are taken up where they are pinned, and pinned
 * where they are made. None of its programs is loaded unless somebody asks for it. */
void pins_object(const char *directory, struct bpf_object *object);
int pins_load(struct bpf_object *object, char problem[PROBLEM_SIZE]);

/* How many places this machine can spare for a table that has one for each object. */
unsigned pins_places(void);

/* A map that is made gets so many places; one that is pinned already keeps those that it has.
 * How many it will have. */
unsigned pins_size(const char *directory, struct bpf_map *map, unsigned places);

/* A map's or a program's descriptor, or -errno; a map's memory, or NULL. */
int pins_open(const char *directory, const char *name);
void *pins_memory(const char *directory, const char *name, size_t bytes);

/* Attached and pinned; where the kernel has no links for kprobes, the link is for the caller
 * to keep (otherwise NULL). Calls that are in a function while programs are attached to it or
 * detached end with none of its fexit programs run, also none of those that were there before:
 * the kernel skips them, and counts no miss. */
int pins_attach(const char *directory, struct bpf_program *prog, const char *pin,
		struct bpf_link **ret_link, char problem[PROBLEM_SIZE]);
bool pins_has_link(const char *directory, const char *name);
void pins_unlink(const char *directory, const char *name);

/*
 * The kernel skips a program that is running on the same processor already, as it is when a
 * thread was preempted in it, and counts that.
 */
__u64 pins_misses(const char *directory, const char *name);

/* A program that nothing calls but us. */
int pins_program(const char *directory, struct bpf_program *prog, char problem[PROBLEM_SIZE]);

/* An iterator, of tasks' files or (map) of a map; runs when it is read, to its end. */
int pins_iterator(const char *directory, struct bpf_program *prog, const struct bpf_map *map,
		  char problem[PROBLEM_SIZE]);

/* What an iterator prints is records of one size, of which a page holds a whole number. */
typedef void pins_each(void *closure, const void *record);
int pins_iterate(const char *directory, const char *name, size_t size, pins_each *each,
		 void *closure);

/* The records that an iterator prints now and again a moment later. */
void pins_iterate_twice(const char *directory, const char *name, size_t size, pins_each *each,
			void *closure);

#endif
