/* SPDX-License-Identifier: MIT */
/* What all requests share. Each member says under which lock it is read. */
#ifndef DASHBOARD_DASHBOARD_H
#define DASHBOARD_DASHBOARD_H

#include <limits.h>
#include <pthread.h>

#include "base/log.h"
#include "dashboard/sample.h"
#include "proto/client.h"

struct feed;
struct live;
struct recent;

enum { DASHBOARD_NAMES = 16, DASHBOARD_DETAILS = 8 };

/* Of a tenant: the members of its document that cost a question of their own. */
struct dashboard_detail {
	char tenant[NAME_SIZE];
	uint64_t ns; /* CLOCK_MONOTONIC: when that was; 0: not yet */
	struct body *body;
};

struct dashboard {
	/* Set once, before the first request: */
	char socket[PROTO_PATH];
	char token_path[PATH_MAX];
	char history_path[PATH_MAX]; /* "": no history is kept on disk */
	const char *names[DASHBOARD_NAMES]; /* of hosts that requests may name */
	unsigned names_count;
	struct log log;
	struct feed *feed;
	struct live *live;
	struct recent *recent;

	/* The latest sample, under the lock: dashboard_sample. */
	pthread_mutex_t lock;
	struct sample *sample;

	/* Processes, which are asked for only when somebody wants them; under their lock. */
	pthread_mutex_t processes_lock;
	uint64_t processes_ns;	/* CLOCK_MONOTONIC: when that was; 0: not yet */
	struct body *processes; /* the JSON array */
	struct dashboard_detail details[DASHBOARD_DETAILS];

	/* Advice, likewise; under its lock. */
	pthread_mutex_t advice_lock;
	uint64_t advice_ns;  /* CLOCK_MONOTONIC; 0: not yet */
	struct list *advice; /* struct advice */
};

void dashboard_prepare(struct dashboard *dashboard);
/* The latest sample; sample_release gives it back. */
struct sample *dashboard_sample(struct dashboard *dashboard);
/* Takes the reference. */
void dashboard_publish(struct dashboard *dashboard, struct sample *sample);

#endif
