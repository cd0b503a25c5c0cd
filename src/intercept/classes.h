/* SPDX-License-Identifier: MIT */
/*
 * The classes of service that the tenant's policy sets: they are put into address vectors on their
 * way to the real verb. The caller's structure stays as it is. Without a class this is a look at
 * one word.
 */
#ifndef INTERCEPT_CLASSES_H
#define INTERCEPT_CLASSES_H

#include <infiniband/verbs.h>

#include "intercept/library.h"

/* Those in force (see terms/settings.h), 0: as the program asks. A forked child may come here with
 * its first verb. */
static inline uint64_t classes_in_force(void)
{
	const struct library *library = library_active();

	return library ? settings_classes(ledger_settings(&library->ledger)) : 0;
}

/* Puts the classes into an address; what differs from the program's is logged at DEBUG. */
void class_address_set(struct ibv_ah_attr *address, uint64_t classes, const char *verb);

/* The address to be used in place of the program's: that one, or the copy. */
static inline struct ibv_ah_attr *class_address(struct ibv_ah_attr *address,
						struct ibv_ah_attr *copy)
{
	uint64_t classes = classes_in_force();

	if (__builtin_expect(!classes, 1))
		return address;
	*copy = *address;
	class_address_set(copy, classes, "ibv_create_ah");
	return copy;
}

#endif
