/* SPDX-License-Identifier: MIT */
/* The table of live objects against a plain array, through growth and reuse. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "intercept/handles.h"

enum { KEYS = 5000, STEPS = 400000 };

static struct handles table;
static bool present[KEYS];

static const void *key_of(unsigned i)
{
	return (const void *)(uintptr_t)(0x550000001000 + i * 16ull);
}

static struct handle handle_of(unsigned i)
{
	return (struct handle){ .key = key_of(i), .owner = i % 3 + 1, .object = OBJECT_mr,
				.cost = COST2(mr, 1, mr_bytes, i) };
}

/* Puts and takes handles at random; present[] says which are in the table. */
static void walk(unsigned seed, unsigned steps)
{
	struct handle handle, replaced;
	unsigned wrong = 0;

	for (unsigned step = 0; step < steps; step++) {
		unsigned i = (unsigned)rand_r(&seed) % KEYS;

		if (present[i]) {
			wrong += !handles_take(&table, key_of(i), OBJECT_mr, &handle) ||
				 handle.cost.amount[1] != i;
		} else {
			wrong += handles_take(&table, key_of(i), OBJECT_mr, &handle);
			handle = handle_of(i);
			wrong += handles_put(&table, &handle, &replaced) != 0;
		}
		present[i] = !present[i];
	}
	CHECK(wrong == 0, "%u wrong answers", wrong);
}

static void random_walk(void)
{
	walk(1, STEPS);
}

static bool is_second(const struct handle *handle, const void *closure)
{
	return handle->owner == *(const uint32_t *)closure;
}

static void owners(void)
{
	const uint32_t second = 2;
	unsigned expected = 0, found = 0;
	struct handle handle;

	walk(2, 2 * KEYS);
	for (unsigned i = 0; i < KEYS; i++)
		expected += present[i] && i % 3 + 1 == 2;
	CHECK(handles_have(&table, is_second, &second));
	while (handles_take_any(&table, is_second, &second, &handle)) {
		found++;
		CHECK(handle.owner == 2);
	}
	CHECK(found == expected, "%u of %u", found, expected);
	CHECK(!handles_have(&table, is_second, &second));
	for (unsigned i = 0; i < KEYS; i++)
		if (i % 3 + 1 != 2)
			CHECK(handles_take(&table, key_of(i), OBJECT_mr, &handle) == present[i]);
	memset(present, 0, sizeof(present));
}

static void kinds_of_object(void)
{
	struct handle handle = handle_of(1), replaced, *held;

	handles_take(&table, key_of(1), OBJECT_mr, &replaced);
	present[1] = false;
	CHECK(handles_put(&table, &handle, &replaced) == 0);
	handle.cost.amount[1] = 7;
	CHECK(handles_put(&table, &handle, &replaced) == HANDLES_REPLACED &&
	      replaced.cost.amount[1] == 1, "the replaced handle is not returned");
	CHECK(!handles_take(&table, key_of(1), OBJECT_qp, &handle), "an object of another kind was taken");
	CHECK(!handles_hold(&table, key_of(1), OBJECT_qp));
	held = handles_hold(&table, key_of(1), OBJECT_mr);
	CHECK(held != NULL);
	held->cost.amount[1] = 99;
	handles_release(&table, key_of(1));
	CHECK(handles_take(&table, key_of(1), OBJECT_mr, &handle) && handle.cost.amount[1] == 99);
	CHECK(!handles_take(&table, key_of(1), OBJECT_mr, &handle));
}

static bool is_any(const struct handle *handle, const void *closure)
{
	return true;
}

/* Moves count objects: with 100 the shards have their first slots, with 5000 larger tables. One
 * shard is locked, as if another thread had been changing it. */
static void moved(unsigned count)
{
	static struct handles from, to;
	struct handle handle, replaced;
	unsigned found = 0, lost;

	for (unsigned i = 0; i < count; i++) {
		handle = handle_of(i);
		CHECK(handles_put(&from, &handle, &replaced) == 0);
	}
	lost = from.shard[3].count;
	CHECK(lost > 0);
	from.shard[3].lock.word = LOCK_HELD;
	handles_move(&from, &to);
	CHECK(!handles_have(&from, is_any, NULL), "objects are left in the old table");
	for (unsigned i = 0; i < count; i++) { /* which can be used at once */
		handle = handle_of(i);
		handles_put(&from, &handle, &replaced);
	}
	for (unsigned i = 0; i < count; i++)
		found += handles_take(&to, key_of(i), OBJECT_mr, &handle) &&
			 handle.cost.amount[1] == i;
	CHECK(found == count - lost, "%u of %u", found, count - lost);
	for (unsigned i = 0; i < count; i++)
		CHECK(handles_take(&from, key_of(i), OBJECT_mr, &handle));
	memset(&from, 0, sizeof(from));
	memset(&to, 0, sizeof(to));
}

static void moves(void)
{
	moved(100);
	moved(KEYS);
}

static void driver(void)
{
	RUN(random_walk);
	RUN(owners);
	RUN(kinds_of_object);
	RUN(moves);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
