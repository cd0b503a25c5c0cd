/* SPDX-License-Identifier: MIT */
/*
 * The state that the collector reported at one moment. A sample does not change once it is
 * made, so that any number of requests can read it while the next one is taken; each holder
 * releases it.
 */
#ifndef DASHBOARD_SAMPLE_H
#define DASHBOARD_SAMPLE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/problem.h"
#include "dashboard/text.h"
#include "output/table.h"
#include "proto/messages.h"
#include "view/status.h"

enum metrics_format { METRICS_PROMETHEUS, METRICS_OPENMETRICS, METRICS_FORMATS };

/* Counters and gauges of tenants: asked for every SAMPLE_DETAILS_S, and shared by the samples in
 * between. */
struct sample_details {
	unsigned references; /* atomically */
	uint64_t asked_ns;   /* CLOCK_MONOTONIC */
	struct list rows;    /* struct proto_details; device "": in total */
};

struct sample {
	unsigned references; /* atomically */
	uint64_t time_ns;    /* CLOCK_REALTIME */
	bool up;	     /* the collector answered; otherwise: */
	char problem[PROBLEM_SIZE];
	struct collector_view collector;
	struct list rows;   /* struct proto_row: the host and tenants, in total and on devices */
	/* What changes seldom is asked for every SAMPLE_SELDOM_S, and copied in between: */
	uint64_t seldom_ns; /* CLOCK_MONOTONIC: when that was */
	struct list rules;  /* struct proto_rule */
	struct list guards; /* struct proto_guard; the first is the host's */
	struct list rates;  /* struct proto_rate, of tenants */
	struct list paces;  /* struct proto_pace */
	struct sample_details *details;
	/* Made when first asked for: */
	pthread_mutex_t lock;
	struct body *metrics[METRICS_FORMATS];
};

/* A sample without rows, with one reference. */
struct sample *sample_make(const char *socket);

enum { SAMPLE_SELDOM_S = 5, SAMPLE_DETAILS_S = 10 };

/* Asks the collector for everything but processes; what changes seldom may come from the sample
 * before. The sample says whether the collector answered. */
struct sample *sample_take(const char *socket, const struct sample *before);

/* Appends a row as the collector sends it: a proto_row_function on a list of struct proto_row. */
int sample_row_take(const void *row, void *rows);

/* The same for rows of GET_DETAILS: on a list of struct proto_details. */
int sample_details_take(const void *row, void *rows);

struct sample *sample_hold(struct sample *sample);
void sample_release(struct sample *sample);

#endif
