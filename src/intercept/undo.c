/* SPDX-License-Identifier: MIT */
/* How each object is destroyed by the real verb, made from objects.def. */
#include "intercept/contexts.h"
#include "intercept/gate.h"

#define DESTROY_EXPORTED(destroyer)                                                                \
	if (REAL(destroyer))                                                                       \
		REAL(destroyer)(pointer);
#define DESTROY_CONTEXT_OP(destroyer)                                                              \
	if (entry && entry->ops.destroyer)                                                         \
		entry->ops.destroyer(pointer);
#define DESTROY_BASIC_OP(destroyer) DESTROY_CONTEXT_OP(destroyer)
#define DESTROY_EXTENDED_OP(destroyer) DESTROY_CONTEXT_OP(destroyer)

/* Without a way to destroy it the object leaks, in the application's name. */
void object_undo(enum object object, struct ibv_context *context, void *pointer)
{
	struct context *entry = context ? context_find(context) : NULL;

	switch (object) {
#define OBJECT(name, reached, destroyer)                                                           \
	case OBJECT_##name:                                                                        \
		DESTROY_##reached(destroyer) break;
#include "intercept/objects.def"
#undef OBJECT
	case OBJECTS:
		break;
	}
}
