/* SPDX-License-Identifier: MIT */
/*
 * Plays the kernel: owns the objects of each opened device file, who pins
 * whom, and what remains at close. It knows nouns, but no verb.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"

static struct fake_group *groups;
static pthread_mutex_t groups_mutex = PTHREAD_MUTEX_INITIALIZER;

struct fake_context *fake_context_of(struct ibv_context *context)
{
	struct fake_context *fake = (struct fake_context *)((char *)context -
				    offsetof(struct fake_context, verbs.context));

	if (fake->magic != FAKE_MAGIC_ALIVE)
		fake_die("not an open context", context);
	return fake;
}

struct fake_object *fake_object_of(const void *object, enum fake_noun noun)
{
	struct fake_object *header = fake_header(object);

	if (header->magic != FAKE_MAGIC_ALIVE)
		fake_die("not a living object", object);
	if (header->noun != noun)
		fake_die("an object of another kind", object);
	return header;
}

static struct fake_object *kernel_object(struct fake_object *object)
{
	return object->origin ? object->origin : object;
}

static void link_object(struct fake_group *group, struct fake_object *object)
{
	struct fake_object *head = &group->objects;

	object->group = group;
	object->prev = head->prev;
	object->next = head;
	head->prev->next = object;
	head->prev = object;
}

static void unref(struct fake_object *object)
{
	if (--object->refs)
		return;
	object->prev->next = object->next;
	object->next->prev = object->prev;
	free(object);
}

static bool pin(struct fake_object *object, const void *const uses[])
{
	for (unsigned i = 0; i < FAKE_USES; i++) {
		struct fake_object *used;

		if (!uses[i])
			continue;
		used = kernel_object(fake_header(uses[i]));
		if (fake_header(uses[i])->magic != FAKE_MAGIC_ALIVE)
			fake_die("used after its end", uses[i]);
		if (used->group != object->group || !used->alive)
			return false;
		used->users++;
		object->uses[i] = used;
	}
	return true;
}

static void unpin(struct fake_object *object)
{
	for (unsigned i = 0; i < FAKE_USES; i++) {
		if (object->uses[i])
			object->uses[i]->users--;
		object->uses[i] = NULL;
	}
}

/* Not calloc: glibc's takes the long way around the thread's cache. */
static struct fake_object *block_new(enum fake_noun noun, size_t size)
{
	struct fake_object *object = malloc(sizeof(*object) + size);

	if (object) {
		*object = (struct fake_object){ .magic = FAKE_MAGIC_ALIVE, .noun = noun };
		memset(object + 1, 0, size);
	}
	return object;
}

void *fake_object_new(struct ibv_context *context, enum fake_noun noun, size_t size,
		      const void *const uses[])
{
	struct fake_group *group = fake_context_of(context)->group;
	struct fake_object *object = block_new(noun, size);
	bool pinned;

	if (!object)
		return NULL;
	object->alive = true;
	object->refs = 2;
	object->group = group;
	pthread_mutex_lock(&group->mutex);
	pinned = pin(object, uses);
	if (pinned) {
		object->handle = ++group->last_handle;
		link_object(group, object);
	} else {
		unpin(object);
	}
	pthread_mutex_unlock(&group->mutex);
	if (!pinned) {
		free(object);
		errno = EINVAL;
		return NULL;
	}
	fake_live_add(noun, 1);
	return object + 1;
}

int fake_object_kill(struct fake_object *object)
{
	struct fake_object *kernel = kernel_object(object);

	if (!kernel->alive)
		return ENOENT;
	if (kernel->users)
		return EBUSY;
	unpin(kernel);
	kernel->alive = false;
	fake_live_add(kernel->noun, -1);
	unref(kernel);
	return 0;
}

void fake_object_release(struct fake_object *object)
{
	object->magic = FAKE_MAGIC_DEAD;
	if (object->origin)
		unref(object->origin);
	unref(object);
}

int fake_object_destroy(void *object, enum fake_noun noun)
{
	struct fake_object *header = fake_object_of(object, noun);
	struct fake_group *group = header->group;
	int err;

	pthread_mutex_lock(&group->mutex);
	err = fake_object_kill(header);
	if (!err)
		fake_object_release(header);
	pthread_mutex_unlock(&group->mutex);
	return err;
}

void *fake_object_import(struct ibv_context *context, enum fake_noun noun, uint32_t handle,
			 size_t size)
{
	struct fake_group *group = fake_context_of(context)->group;
	struct fake_object *object = block_new(noun, size);
	struct fake_object *origin;

	if (!object)
		return NULL;
	object->refs = 1;
	object->handle = handle;
	pthread_mutex_lock(&group->mutex);
	for (origin = group->objects.next; origin != &group->objects; origin = origin->next)
		if (origin->alive && origin->noun == noun && origin->handle == handle)
			break;
	if (origin != &group->objects) {
		memcpy(object + 1, origin + 1, size);
		object->origin = origin;
		origin->refs++;
		link_object(group, object);
	}
	pthread_mutex_unlock(&group->mutex);
	if (!object->origin) {
		free(object);
		errno = ENOENT;
		return NULL;
	}
	return object + 1;
}

void fake_object_unimport(void *object, enum fake_noun noun)
{
	struct fake_object *header = fake_object_of(object, noun);
	struct fake_group *group = header->group;

	pthread_mutex_lock(&group->mutex);
	fake_object_release(header);
	pthread_mutex_unlock(&group->mutex);
}

void fake_object_reuse(void *object, unsigned slot, const void *used)
{
	struct fake_object *kernel = kernel_object(fake_header(object));
	struct fake_object *next = kernel_object(fake_header(used));
	struct fake_group *group = kernel->group;

	pthread_mutex_lock(&group->mutex);
	if (kernel->uses[slot])
		kernel->uses[slot]->users--;
	next->users++;
	kernel->uses[slot] = next;
	pthread_mutex_unlock(&group->mutex);
}

struct fake_group *fake_group_new(struct ibv_device *device, dev_t dev, ino_t ino)
{
	struct fake_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	pthread_mutex_init(&group->mutex, NULL);
	group->objects.prev = group->objects.next = &group->objects;
	group->device = device;
	group->dev = dev;
	group->ino = ino;
	group->contexts = 1;
	pthread_mutex_lock(&groups_mutex);
	group->next = groups;
	groups = group;
	pthread_mutex_unlock(&groups_mutex);
	fake_live_add(FAKE_ctx, 1);
	return group;
}

struct fake_group *fake_group_find(dev_t dev, ino_t ino)
{
	struct fake_group *group;

	pthread_mutex_lock(&groups_mutex);
	for (group = groups; group; group = group->next)
		if (group->dev == dev && group->ino == ino)
			break;
	if (group)
		group->contexts++;
	pthread_mutex_unlock(&groups_mutex);
	return group;
}

static void group_free(struct fake_group *group)
{
	struct fake_object *object, *next;

	for (object = group->objects.next; object != &group->objects; object = next) {
		next = object->next;
		if (object->alive)
			fake_live_add(object->noun, -1);
		if (object->noun == FAKE_comp_channel)
			fake_channel_close((struct fake_channel *)(object + 1));
		object->magic = FAKE_MAGIC_DEAD;
		free(object);
	}
	fake_live_add(FAKE_ctx, -1);
	pthread_mutex_destroy(&group->mutex);
	free(group);
}

void fake_group_put(struct fake_group *group)
{
	bool last;

	pthread_mutex_lock(&groups_mutex);
	last = --group->contexts == 0;
	if (last) {
		struct fake_group **link = &groups;

		while (*link != group)
			link = &(*link)->next;
		*link = group->next;
	}
	pthread_mutex_unlock(&groups_mutex);
	if (last)
		group_free(group);
}
