/* SPDX-License-Identifier: MIT */
/*
 * Where a policy puts a process: by which match line, in which tenant, under which limits. The
 * policy's room finds it, and the protocol carries it as it is.
 */
#ifndef TERMS_PLACEMENT_H
#define TERMS_PLACEMENT_H

#include <stdint.h>

#include "terms/kinds.h"
#include "terms/terms.h"

enum {
	PLACEMENT_TEXT = 256,
	POD_SIZE = 320, /* NAMESPACE/NAME: at most 63 and 253 characters */
};

struct placement {
	uint32_t mode; /* enum mode */
	uint32_t guard; /* the policy wants the kernel to keep the limits, too */
	char tenant[NAME_SIZE];
	char pattern[NAME_SIZE]; /* by which the tenant is made; "": by none */
	char container[2 * NAME_SIZE]; /* as given, or as the cgroup's path tells; "" */
	char job[NAME_SIZE];	       /* likewise */
	char pod[POD_SIZE];	       /* as given; "" */
	char source[PLACEMENT_TEXT];   /* of the match line: "FILE:LINE" or "command"; "": none */
	char text[PLACEMENT_TEXT];     /* what stands behind its "match =" */
	/* In total, by the policy: UNLIMITED where it sets none. */
	uint64_t limit[KIND_COUNT];
	uint64_t process_limit[KIND_COUNT];
};

#endif
