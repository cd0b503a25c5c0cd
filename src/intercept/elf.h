/* SPDX-License-Identifier: MIT */
/* Looks up symbols in loaded objects without dlsym, which we replace ourselves. */
#ifndef INTERCEPT_ELF_H
#define INTERCEPT_ELF_H

#include <link.h>
#include <stdbool.h>

/* Not strcmp: a sanitizer that calls dlsym at its own start has none yet. */
static inline bool elf_same_name(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* The default definition of a function in the loaded object of that soname. */
void *elf_find_in(const char *soname, const char *name);

/* The same in that object. */
void *elf_find_in_object(const struct link_map *object, const char *name);

/* The loaded object with this address in it, or NULL; the caller knows that nothing unloads it. */
const struct link_map *elf_find_object(const void *address);

/* The default definition of a function in the first object that was loaded
 * after this library and has one; failing that, in any other object. Other copies of
 * this library are passed over. */
void *elf_find_next(const char *name);

/* This library may be loaded more than once, from several files. Whether it is, and
 * whether another copy comes before this one. */
bool elf_has_copies(void);
bool elf_is_copy(void);

/* From now on what is asked waits for threads that load or unload: called by our constructor. */
void elf_begin_locking(void);

#endif
