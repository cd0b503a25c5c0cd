/* SPDX-License-Identifier: MIT */
/*
 * A real collector for a test: its own policy, socket and books in the test's
 * directory. It ends with the test, however that ends.
 */
#ifndef TESTS_DAEMON_COLLECTOR_H
#define TESTS_DAEMON_COLLECTOR_H

#include <sys/types.h>

#include "proto/client.h"

/* How long a request of a test waits for the collector: longer than any busy machine needs. */
enum { COLLECTOR_PATIENCE_MS = 60000 };

/* Writes the policy file (a text; "" for none). */
void collector_policy(const char *text);

/* Starts it with further variables "NAME=value" separated by newlines, and waits until it
 * answers. The test ends if it does not. */
pid_t collector_start(const char *variables);

/* The same, but where there is no policy file none is made. */
pid_t collector_restart(const char *variables);

/* Removes the last good policy, so that the next collector accepts one that says less. */
void collector_forget_policy(void);

/* The same with this policy, and without the state and the log of earlier collectors. */
pid_t collector_fresh(const char *policy, const char *variables);

/* SIGKILL, and gone when this returns. */
void collector_kill(void);
/* SIGTERM; returns the exit status, which must be 0. */
int collector_stop(void);
pid_t collector_pid(void);

const char *collector_socket(void);

/* What it has written to stderr so far. */
const char *collector_log(void);

/* The test stops if the collector that it started has ended by itself. */
void collector_must_live(void);

/* One request; ret_body may be NULL. The result of proto_call, or the reply's status. */
int collector_call(enum message type, const void *body, void *ret_body);

/* Changes limits as the command does: collector_set("tenant a", "qp = 10"). */
int collector_set(const char *section, const char *text);

/* The row of a tenant (NULL: the host) in total. Zeros if there is none. */
struct proto_row collector_tenant(const char *name);
/* The row of a process in total. */
struct proto_row collector_process(pid_t pid);

/* Waits until the tenant (NULL: the host) holds that much of a kind; false if it stands still
 * at another amount. */
bool collector_wait_used(const char *tenant, enum kind kind, uint64_t amount);

#endif
