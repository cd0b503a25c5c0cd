/* SPDX-License-Identifier: MIT */
/* The metrics of a sample in the formats of Prometheus; which there are is in metrics.def. */
#ifndef DASHBOARD_METRICS_H
#define DASHBOARD_METRICS_H

#include "dashboard/sample.h"

struct feed;

extern const char *const metrics_types[METRICS_FORMATS]; /* of the content */

/* The format that an Accept header asks for; NULL: the request has no such header. */
enum metrics_format metrics_negotiate(const char *accept);

/* The text, made once for each sample; body_release gives it back. */
struct body *metrics_of(struct sample *sample, struct feed *feed, enum metrics_format format);

#endif
