/* SPDX-License-Identifier: MIT */
/* Events of the history; see past_events.h. */
#include "cli/past_events.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "history/history.h"
#include "history/place.h"
#include "history/span.h"
#include "view/event.h"

enum { PAST_EVENTS_MOST = 100000 };

static int past_open_fail(const struct cli *cli, const char *path, int error)
{
	if (error == ENOENT)
		return cli_fail(cli, CLI_WRONG,
				"%s: there is no history: rdma_dashboard records it while it runs: start it "
				"with 'systemctl start rdma_dashboard' or '%s dashboard', or name its "
				"directory with --state",
				path, CLI_NAME);
	return cli_fail(cli, error == EACCES ? CLI_FORBIDDEN : CLI_WRONG,
			"%s: the history cannot be read: %s: run this as root or as the user of "
			"rdma_dashboard, or name another directory with --state",
			path, strerror(error));
}

int past_open(const struct cli *cli, bool is_needed, char ret_path[PATH_MAX],
	      struct history **ret_history)
{
	char directory[PATH_MAX], problem[PROBLEM_SIZE];
	int result = place_directory(cli_value(&cli->options.state), directory);

	*ret_history = NULL;
	if (!result)
		result = place_file(directory, PLACE_HISTORY, ret_path);
	if (result < 0)
		return cli_fail(cli, CLI_WRONG, "the dashboard's files cannot be found: %s",
				strerror(-result));
	/* SQLite does not tell a file that is missing from one that may not be read. */
	if (access(ret_path, R_OK))
		return errno == ENOENT && !is_needed ? CLI_OK : past_open_fail(cli, ret_path, errno);
	result = history_open_reader(ret_path, ret_history, problem);
	if (!result)
		return CLI_OK;
	return cli_fail(cli, result == -EACCES ? CLI_FORBIDDEN : CLI_WRONG, "%s", problem);
}

int past_events_since(const struct cli *cli, uint64_t *ret_ns)
{
	int64_t now = (int64_t)(clock_ns(CLOCK_REALTIME) / CLOCK_SECOND_NS), since = 0;
	const char *text = cli_value(&cli->options.since);

	if (text && span_parse(text, now, &since) < 0)
		return cli_fail(cli, CLI_USAGE, "--since: invalid value '%s': expected " SPAN_EXPECTED,
				text);
	*ret_ns = since > 0 ? (uint64_t)since * CLOCK_SECOND_NS : text != NULL;
	return CLI_OK;
}

struct past_reading {
	const struct list *known;
	struct list *events;
};

/* One that was repeated since the dashboard saw it has a later time and a higher count. Another
 * collector's of the same sequence has another time. */
static bool event_is_known(const struct list *known, const struct event *event)
{
	for (size_t i = 0; i < known->count; i++) {
		const struct proto_event *one = &((const struct event *)list_at(known, i))->given;

		if (one->sequence == event->given.sequence && one->type == event->given.type &&
		    one->pid == event->given.pid && one->number == event->given.number &&
		    (one->time_ns == event->given.time_ns || one->count > event->given.count))
			return true;
	}
	return false;
}

static int past_event_take(const char *document, void *closure)
{
	struct past_reading *reading = closure;
	struct event event;

	if (event_read_document(&event, document) && !event_is_known(reading->known, &event))
		*(struct event *)list_add(reading->events) = event;
	return 0;
}

int past_events_read(const struct cli *cli, uint64_t since_ns, const struct list *known,
		     struct list *events)
{
	struct past_reading reading = { known, events };
	struct history *history;
	char path[PATH_MAX];
	int result = past_open(cli, false, path, &history);

	if (result || !history)
		return result;
	result = history_read_events(history, NULL, (int64_t)(since_ns / CLOCK_SECOND_NS),
				     PAST_EVENTS_MOST, past_event_take, &reading);
	if (result < 0)
		result = cli_fail(cli, CLI_WRONG, "%s: cannot be read: %s", path,
				  history_problem(history));
	history_close(history);
	return result;
}
