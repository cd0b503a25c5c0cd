/* SPDX-License-Identifier: MIT */
/*
 * What a forked child has of the processes before it: their objects, which are charged to
 * them. While such a process lives it answers for them. When it has ended the child carries on
 * with them, and gives back to the charge of the dead what it destroys.
 */
#ifndef INTERCEPT_INHERITED_H
#define INTERCEPT_INHERITED_H

#include <stdbool.h>

#include "intercept/handles.h"

struct inherited;
struct library;

/* At the start of a process: what the table has is of the one before, and leaves it empty. */
void inherited_take_over(struct handles *handles);

/* As handles_look and handles_take; the latter returns whose it was, or NULL. */
bool inherited_look(const void *key, enum object object, struct handle *ret_handle);
struct inherited *inherited_release(const void *key, enum object object, struct handle *ret_handle);

/* After the real verb: the object is gone, if the result is 0. */
void inherited_close(struct library *library, struct inherited *from, const struct handle *handle,
		     int result);

/* The last context of a group was closed here. Others may still have its file. */
void inherited_close_group(uint32_t group);

/* Before a refusal: gives back what could not be while the process before lived. True: some. */
bool inherited_refund_pending(struct library *library);

#endif
