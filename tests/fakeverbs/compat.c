/* SPDX-License-Identifier: MIT */
/*
 * The twins of the first ABI (name@IBVERBS_1.0): they take structs that no
 * current header describes, so they only count the call and return 0 or NULL.
 */
#include "fake_internal.h"

#define VERB(name)
#define VERB_WITH_TWIN(name)                                       \
	void *old_##name(void);                                    \
	void *old_##name(void)                                     \
	{                                                          \
		fake_enter(VERB_OLD_##name);                       \
		return NULL;                                       \
	}                                                          \
	__asm__(".symver old_" #name "," #name "@IBVERBS_1.0");
#include "verbs.def"
