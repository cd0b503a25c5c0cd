/* SPDX-License-Identifier: MIT */
/*
 * The names under which applications find the wrappers, made from the rows of
 * verbs.def. Each is exported under the version node of the real verb:
 * callers of an older node, with other structures, are not ours. entry_VERB
 * is the same address by a hidden name, for our own tables: a reference to
 * the exported one could be diverted by another preloaded library.
 */
#include "intercept/machine.h"

#define ENTRY(verb)                                                                                \
	.globl entry_##verb; .hidden entry_##verb; .type entry_##verb, %function;                  \
	entry_##verb: LANDING; JUMP wrap_##verb; .size entry_##verb, . - entry_##verb;
#define EXPORT(verb, name)                                                                         \
	.globl export_##verb; .type export_##verb, %function;                                      \
	.set export_##verb, entry_##verb; .symver export_##verb, name

#define CREATE(library, node, verb, ...) ENTRY(verb) EXPORT(verb, verb@@@node);
#define DESTROY(library, node, verb, ...) ENTRY(verb) EXPORT(verb, verb@@@node);
#define SPECIAL(library, node, verb, ...) ENTRY(verb) EXPORT(verb, verb@@@node);
#define UNVERSIONED(library, verb, ...)                                                            \
	ENTRY(verb) .globl verb; .type verb, %function; .set verb, entry_##verb;

	.text
#include "intercept/verbs.def"

	OBJECT_NOTES
