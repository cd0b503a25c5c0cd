/* SPDX-License-Identifier: MIT */
/*
 * Processes whose objects a kernel of files counts (kernel.h), beside a real collector: guarded ones
 * and others, and what the collector says of them.
 */
#ifndef TESTS_DAEMON_WATCHED_H
#define TESTS_DAEMON_WATCHED_H

#include "collector.h"
#include "harness.h"
#include "kernel.h"

/* Words of the shared page. */
enum { WORD_READY, WORD_GO, WORD_END, WORD_MADE };

/* The collector looks every second, give or take a quarter. */
#define SAMPLE 1.25

/* Where the monitor's files are, and the collector's variable that says so. */
extern char watched_directory[128], watched_variables[256];

/* Called first in a driver, whose cases run at once. */
void watched_prepare(void);

/* A monitor and a collector with this policy. */
void watched_begin(const char *policy, enum monitor_mode mode);

void wait_seconds(double seconds);

/* ---- processes */

/* The scenario "holder:N" makes N QPs, "idle" has the library and no use for it. Both stay until
 * WORD_END is 1. */
void watched_holder(const char *argument);
void watched_idle(const char *argument);

/* Starts a scenario and waits until it is ready. */
pid_t guarded_start(const char *scenario, const char *settings);

/* One without the library. */
pid_t unguarded_start(void);

void process_kill(pid_t pid);

/* Gives the kernel what the books say of the process; returns its row. */
unsigned kernel_mirror(pid_t pid, const char *device);

/* ---- what the collector says */

struct proto_status collector_state(void);

struct wanted {
	enum proto_event_type type;
	pid_t pid;
	unsigned count;
	char text[256]; /* of the last */
};

/* Asks for events only, which makes the collector look at nothing. */
struct wanted events_of(enum proto_event_type type, pid_t pid);

/* The last row of an answer about one device. */
struct proto_row row_on_device(enum message type, const char *tenant, pid_t pid,
				  const char *device);

bool process_has(pid_t pid, uint32_t flag);

#endif
