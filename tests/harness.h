/* SPDX-License-Identifier: MIT */
/*
 * What the process tests share. A test program is a table of scenarios; the
 * program without arguments is the driver, which spawns itself once for each
 * scenario it wants, preloaded and with the settings it names. Every driver
 * has a shared-memory name and a log of its own and removes them at the end.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "terms/kinds.h"
#include "session.h"

/* Counts, and says where and what when it fails. Usable in driver and scenarios. */
#define CHECK(condition, ...)                                                                      \
	check_one((condition), __FILE__, __LINE__, #condition, " " __VA_ARGS__)
__attribute__((format(printf, 5, 6))) bool check_one(bool good, const char *file, int line,
						      const char *text, const char *format, ...);

/*
 * Waits until CONDITION holds, and checks it. The wait has no time limit that a busy machine could
 * miss: it ends when the test stands still (see waiting_goes_on), and says what it waited for.
 */
#define EVENTUALLY(condition, ...)                                                                 \
	({                                                                                         \
		struct waiting waiting_ = { .for_what = #condition, .file = __FILE__, .line = __LINE__ }; \
		bool good_;                                                                        \
		while (!(good_ = (condition)) && waiting_goes_on(&waiting_))                       \
			;                                                                          \
		check_one(good_, __FILE__, __LINE__, #condition, " " __VA_ARGS__);                 \
	})

/* The same, and the driver or scenario stops here if the wait fails: the rest needs it. */
#define NEED(condition, ...)                                                                       \
	do {                                                                                       \
		if (!EVENTUALLY(condition, __VA_ARGS__))                                           \
			stop_here();                                                               \
	} while (0)
__attribute__((noreturn)) void stop_here(void);

/*
 * One step of a wait: sleeps a moment. Returns false when it makes no sense to wait any longer: a
 * child of this process has crashed, the session stands still for STILL_SECONDS (session.h), or has
 * used PATIENCE_CPU_SECONDS of processor time since the wait began. Zero-initialise the structure;
 * the named fields are optional.
 */
struct waiting {
	const char *for_what, *file;
	int line;
	unsigned steps;
	bool reported;
	double begin, looked; /* seconds_now() */
	struct session_watch watch;
};
bool waiting_goes_on(struct waiting *waiting);

/*
 * A part of a driver that can be run alone: CASE("name") { ... }, or RUN(function). The driver's
 * "--list" prints the names and "--only NAME" runs one of them, so a case must not need what an
 * earlier case did. Code outside of cases runs always.
 */
#define CASE(name) for (bool case_ = case_begin(name); case_; case_ = case_end())
#define RUN(function) CASE(#function) function()
bool case_begin(const char *name);
bool case_end(void); /* returns false */

/* Called first in a driver: its cases run at once, each in a driver process of its own. For
 * drivers that mostly wait for timers of the program under test. */
void cases_at_once(void);

/* How much more work than usual is wanted: RDMA_INTERCEPT_TEST_FACTOR, at least 1. */
unsigned test_factor(void);

/* How many failed in this process so far: for a child that ends by _exit. */
unsigned checks_failed(void);

struct scenario {
	const char *name;
	void (*run)(const char *argument); /* in the child; "" if none was given */
};

/* main() of a test program: the driver (with --list or --only NAME), or one scenario of the table. */
int harness_main(int argc, char **argv, const struct scenario *scenarios, void (*driver)(void));

/* SKIP: the driver says why and the program ends with 77. */
__attribute__((format(printf, 1, 2), noreturn)) void skip(const char *format, ...);

/* A part of the present case cannot run here: the case counts as skipped, not as passed. */
__attribute__((format(printf, 1, 2))) void skip_part(const char *format, ...);

/*
 * Runs a scenario ("name" or "name:argument") under the library, with settings
 * "NAME=value" separated by newlines ("" for none; NAME without the prefix
 * RDMA_INTERCEPT_ unless it begins with '!', as in "!LD_LIBRARY_PATH=/x").
 * spawn returns the exit status, 128+signal if it was killed, and counts a
 * scenario with failed checks as a failure of the driver.
 */
int spawn(const char *scenario, const char *settings);
pid_t spawn_start(const char *scenario, const char *settings);
int spawn_wait(pid_t pid);

/*
 * This program again, under that name and with one or two arguments (NULL: one): what to execute.
 * Where an emulator runs the tests, HARNESS_EMULATOR is its path, and it is executed. exec_again
 * does it, and returns only if that fails.
 */
struct again {
	const char *program;
	char *arguments[8];
};
struct again program_again(const char *name, const char *first, const char *second);
void exec_again(const char *name, const char *first, const char *second);

/* fork(), but the child is killed when its parent ends. A change of user cancels that: a
 * scenario that changes its user calls die_with_parent after it. */
pid_t fork_child(void);
void die_with_parent(void);

/* The letter of /proc/PID/stat ('S', 'T', 'Z'...); 0: there is no such process. */
char process_state(pid_t pid);

/* Without the library, for comparison. */
int spawn_bare(const char *scenario, const char *settings);

/* The driver's shared memory: what living processes hold of a kind. */
uint64_t used(enum kind kind);
uint64_t used_on(const char *device, enum kind kind);
void shm_remove(void);
const char *shm_name(void);

/* A path in the driver's own directory, which is removed at the end. The collector that the
 * children would find is "collector.sock" there, and there is none unless a test starts it. */
const char *harness_path(const char *file);

/* The log of the driver's children so far, and what they wrote to stderr. */
const char *log_text(void);
const char *stderr_text(void);
void log_clear(void);
unsigned occurrences(const char *text, const char *word);

/* A word in the driver's shared page, for children to report in: 16 of them. */
uint64_t *shared_word(unsigned index);

/* Words as signals: word_await sleeps, without using the processor, until the word has reached
 * the value. Only word_store and word_add wake it up. */
uint64_t word_load(unsigned index);
void word_store(unsigned index, uint64_t value);
uint64_t word_add(unsigned index, uint64_t amount); /* returns the new value */
void word_await(unsigned index, uint64_t value);
void words_clear(void);

double seconds_now(void);

#endif
