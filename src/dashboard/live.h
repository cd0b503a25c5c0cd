/* SPDX-License-Identifier: MIT */
/*
 * Pages that follow what happens, as server-sent events: each second the collector and the host,
 * the tenants that changed, and events as they come. A stream is what one client has not read
 * yet; one that does not read is closed.
 */
#ifndef DASHBOARD_LIVE_H
#define DASHBOARD_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "proto/messages.h"

struct live;
struct live_stream;
struct sample;

enum { LIVE_STREAMS = 64, LIVE_WAITING_MOST = 8 << 20 };

struct live *live_make(void);

/* What a sample has that the one before had not; nothing is done while nobody follows. */
void live_publish(struct live *live, const struct sample *before, const struct sample *after);
void live_publish_event(struct live *live, const struct proto_event *event);

/* A stream that begins with all of the sample; NULL when there are too many. A stream that waits
 * is told by wake(closure) that there is something to read. */
struct live_stream *live_open(struct live *live, const struct sample *sample,
			      void (*wake)(void *closure), void *closure);
void live_close(struct live_stream *stream);

/* Takes at most so many bytes. 0: nothing is there, the stream waits now, and `wait`, which was
 * called before anybody could wake it, has been called; -1: the stream has ended. */
ssize_t live_read(struct live_stream *stream, char *data, size_t most, void (*wait)(void *closure));

/* Ends all streams, for the end of the program. */
void live_end(struct live *live);

#endif
