/* SPDX-License-Identifier: MIT */
/*
 * rdma_dashboard: the command line, and what the program does each second. Requests are answered
 * by threads of the HTTP server from what is prepared here; events come by a thread of their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/notify.h"
#include "base/translation.h"
#include "dashboard/address.h"
#include "dashboard/archive.h"
#include "dashboard/dashboard.h"
#include "dashboard/feed.h"
#include "dashboard/http.h"
#include "dashboard/live.h"
#include "dashboard/recent.h"
#include "dashboard/token.h"
#include "history/place.h"
#include "output/json.h"
#include "output/memory.h"
#include "output/page.h"
#include "terms/size.h"

#define DASHBOARD_NAME "rdma_dashboard"
#define DEFAULT_ADDRESS "127.0.0.1:9910"

enum { EXIT_USAGE = 2 };

struct dashboard_options {
	const char *listen; /* "none": no address */
	const char *path;
	const char *socket;
	const char *state;
	bool token; /* print it and end, */
	bool json;  /* as JSON */
	bool no_history;
	uint64_t days;
	uint64_t size;
	uint64_t timeout; /* of a request with its answer, in seconds */
};

static const char dashboard_usage[] =
	N_("usage: rdma_dashboard [--listen ADDRESS:PORT | none] [--unix PATH] [--host NAME]...\n"
	   "                      [--socket PATH] [--state DIRECTORY] [--days N] [--size SIZE]\n"
	   "                      [--timeout SECONDS] [--no-history] [--token [--json]]\n"
	   "Serves metrics, state and history of the RDMA collector; see rdma_dashboard(8).\n");

static const char dashboard_options_help[] =
	N_("\n"
	   "  --listen ADDRESS:PORT  listen at this address (default 127.0.0.1:9910), or at none\n"
	   "  --unix PATH            listen at this Unix socket, too\n"
	   "  --host NAME            accept requests that name this host (may be repeated)\n"
	   "  --socket PATH          path of the collector's socket\n"
	   "  --state DIRECTORY      directory of the history and of the token\n"
	   "  --days N               keep the history for N days (default 30)\n"
	   "  --size SIZE            keep at most SIZE of history on disk (default 256M)\n"
	   "  --timeout SECONDS      end a request after SECONDS (default 20)\n"
	   "  --no-history           keep ten minutes in memory only\n"
	   "  --token                print the token that changes need, and exit; with --json as JSON\n"
	   "  -h, --help             print help and exit\n"
	   "  -V, --version          print the version and exit\n"
	   "\n"
	   "Examples:\n"
	   "  rdma_dashboard --listen 127.0.0.1:9910\n"
	   "  rdma_dashboard --token\n");

static int usage_fail(const char *option, const char *value, const char *expected)
{
	fprintf(stderr, _("%s: --%s: invalid value '%s': expected %s\n"), DASHBOARD_NAME, option,
		value, _(expected));
	return EXIT_USAGE;
}

static int argument_fail(const char *argument)
{
	fprintf(stderr, _("%s: unexpected argument '%s': expected options only; see --help\n"),
		DASHBOARD_NAME, argument);
	return EXIT_USAGE;
}

static int name_add(struct dashboard *dashboard, const char *name)
{
	if (dashboard->names_count == DASHBOARD_NAMES)
		return usage_fail("host", name, N_("at most a dozen names"));
	dashboard->names[dashboard->names_count++] = name;
	return 0;
}

/* 0, or an exit status that is returned as it is; -1 if the program is to end with success. */
static int dashboard_options_parse(int argc, char **argv, struct dashboard *dashboard,
				   struct dashboard_options *options)
{
	static const struct option longs[] = {
		{ "listen", required_argument, NULL, 'l' }, { "unix", required_argument, NULL, 'u' },
		{ "host", required_argument, NULL, 'H' },   { "socket", required_argument, NULL, 's' },
		{ "state", required_argument, NULL, 'S' },  { "days", required_argument, NULL, 'd' },
		{ "size", required_argument, NULL, 'z' },   { "no-history", no_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'j' },
		{ "token", no_argument, NULL, 't' },	    { "help", no_argument, NULL, 'h' },
		{ "timeout", required_argument, NULL, 'T' }, { "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	int option, result = 0;

	*options = (struct dashboard_options){ .listen = DEFAULT_ADDRESS,
					       .socket = getenv(PROTO_SOCKET_VARIABLE),
					       .days = HISTORY_KEPT_DAYS,
					       .size = HISTORY_SIZE_MOST,
					       .timeout = HTTP_EXCHANGE_S };
	while (!result && (option = getopt_long(argc, argv, "hV", longs, NULL)) != -1) {
		switch (option) {
		case 'l':
			options->listen = optarg;
			break;
		case 'u':
			options->path = optarg;
			break;
		case 'H':
			result = name_add(dashboard, optarg);
			break;
		case 's':
			options->socket = optarg;
			break;
		case 'S':
			options->state = optarg;
			break;
		case 'd':
			if (size_parse(optarg, strlen(optarg), 1, false, &options->days) < 0 ||
			    options->days < 1 || options->days > 3650)
				result = usage_fail("days", optarg, N_("1 to 3650"));
			break;
		case 'z':
			if (size_parse(optarg, strlen(optarg), 1, true, &options->size) < 0 ||
			    options->size < 1 << 20)
				result = usage_fail("size", optarg, N_("at least 1M"));
			break;
		case 'T':
			if (size_parse(optarg, strlen(optarg), 1, false, &options->timeout) < 0 ||
			    options->timeout < 1 || options->timeout > 3600)
				result = usage_fail("timeout", optarg, N_("1 to 3600 seconds"));
			break;
		case 'n':
			options->no_history = true;
			break;
		case 't':
			options->token = true;
			break;
		case 'j':
			options->json = true;
			break;
		case 'h':
			fputs(_(dashboard_usage), stdout);
			fputs(_(dashboard_options_help), stdout);
			return -1;
		case 'V':
			puts(DASHBOARD_NAME " " DASHBOARD_VERSION);
			return -1;
		default:
			fputs(_(dashboard_usage), stderr);
			result = EXIT_USAGE;
		}
	}
	if (!result && optind < argc)
		result = argument_fail(argv[optind]);
	return result;
}

static int dashboard_fail(const char *problem)
{
	fprintf(stderr, "%s: %s\n", DASHBOARD_NAME, problem);
	return EXIT_FAILURE;
}

/* Until the process ends. Two that write one history would count everything twice. */
static int directory_lock(const char *directory, char problem[PROBLEM_SIZE])
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
		return 0;
	if (fd < 0 || errno != EWOULDBLOCK)
		return problem_set(-errno, problem, "%.300s: %s", directory, strerror(errno));
	close(fd);
	return problem_set(-EBUSY, problem,
			   "%.300s: another rdma_dashboard keeps its history there: expected another "
			   "directory by --state, or --no-history",
			   directory);
}

/* The state directory and the paths in it. */
static int places_find(struct dashboard *dashboard, const struct dashboard_options *options,
		       char problem[PROBLEM_SIZE])
{
	char directory[PATH_MAX] = "";
	int result = place_directory(options->state, directory);

	if (!result && !options->token)
		result = file_make_directories(directory, 0755, 0700, false);
	if (!result)
		result = place_file(directory, PLACE_TOKEN, dashboard->token_path);
	if (!result && !options->no_history)
		result = place_file(directory, PLACE_HISTORY, dashboard->history_path);
	if (result < 0)
		return problem_set(result, problem,
				   "%.300s: the state directory cannot be made: %s; see --state",
				   directory, strerror(-result));
	if (options->token)
		return 0;
	if (!options->no_history)
		result = directory_lock(directory, problem);
	return result < 0 ? result : token_make(dashboard->token_path, problem);
}

/* By what `rdma_intercept -j dashboard --token` prints, failures are JSON, too. */
static int token_fail(const struct dashboard_options *options, const char *problem)
{
	if (!options->json)
		return dashboard_fail(problem);
	page_json_error(problem);
	return EXIT_FAILURE;
}

static int token_print(const struct dashboard *dashboard, const struct dashboard_options *options)
{
	char token[TOKEN_TEXT], problem[PROBLEM_SIZE];

	if (token_read(dashboard->token_path, token, problem) < 0)
		return token_fail(options, problem);
	if (options->json)
		page_json_line(memory_need(json_pack("{s:s}", "token", token)));
	else
		puts(token);
	return EXIT_SUCCESS;
}

/* Sockets that listen; -1: none. */
struct listening {
	int address, path;
	char text[ADDRESS_TEXT]; /* of the address, */
	char host[ADDRESS_TEXT]; /* which requests may name */
};

/* Before anything is written: addresses may be wrong. */
static int addresses_open(const struct dashboard_options *options, struct listening *ret_listening,
			  char problem[PROBLEM_SIZE])
{
	ret_listening->address = ret_listening->path = -1;
	if (strcmp(options->listen, "none")) {
		ret_listening->address = address_listen(options->listen, ret_listening->text,
							ret_listening->host, problem);
		if (ret_listening->address < 0)
			return ret_listening->address;
	} else if (!options->path) {
		return problem_set(-EINVAL, problem,
				   "no address: expected --listen ADDRESS:PORT, --unix PATH or both");
	}
	if (options->path)
		ret_listening->path = address_listen_path(options->path, problem);
	return options->path && ret_listening->path < 0 ? ret_listening->path : 0;
}

static int addresses_serve(struct http *http, const struct dashboard_options *options,
			   const struct listening *listening, char problem[PROBLEM_SIZE])
{
	int result = 0;

	if (listening->address >= 0) {
		result = http_listen(http, listening->address, problem);
		if (!result)
			printf("%s: http://%s/\n", DASHBOARD_NAME, listening->text);
	}
	if (!result && listening->path >= 0) {
		result = http_listen(http, listening->path, problem);
		if (!result)
			printf("%s: unix:%s\n", DASHBOARD_NAME, options->path);
	}
	fflush(stdout);
	return result;
}

static void event_tell(const struct feed_event *event, void *closure)
{
	live_publish_event(((struct dashboard *)closure)->live, &event->event);
}

/* One second's work. */
static void dashboard_look(struct dashboard *dashboard, struct archive *archive)
{
	struct sample *before = dashboard_sample(dashboard), *sample;

	sample = sample_hold(sample_take(dashboard->socket, before));
	dashboard_publish(dashboard, sample);
	if (sample->up != before->up) {
		const char *text = sample->up ? "the collector answers" : sample->problem;

		log_write(&dashboard->log, LOG_INFO, "%s", text);
		notify_status(text);
	}
	live_publish(dashboard->live, before, sample);
	recent_add(dashboard->recent, sample);
	archive_write(archive, (int64_t)(sample->time_ns / CLOCK_SECOND_NS));
	sample_release(sample);
	sample_release(before);
}

/* Until a signal ends it. */
static void dashboard_run(struct dashboard *dashboard, struct http *http, struct archive *archive,
			  const sigset_t *signals)
{
	for (;;) {
		uint64_t begun = clock_now_ns(), next = begun + CLOCK_SECOND_NS, now;
		struct timespec left = { 0 };

		dashboard_look(dashboard, archive);
		notify_alive();
		http_sweep(http);
		now = clock_now_ns();
		if (now < next)
			left = (struct timespec){ .tv_nsec = (long)(next - now) % CLOCK_SECOND_NS };
		if (sigtimedwait(signals, NULL, &left) > 0)
			return;
	}
}

int main(int argc, char **argv)
{
	static const char *const loopback[] = { "localhost", "127.0.0.1", "::1" };
	static struct dashboard dashboard = { .log = { .level = LOG_INFO,
						       .to_stderr = true,
						       .prefix = DASHBOARD_NAME ": " } };
	static struct listening listening;
	struct dashboard_options options;
	char problem[PROBLEM_SIZE];
	struct archive *archive;
	struct http *http;
	sigset_t signals;
	int result;

	for (unsigned i = 0; i < sizeof(loopback) / sizeof(loopback[0]); i++)
		name_add(&dashboard, loopback[i]);
	/* The command line is a person's; after it the locale is that of the log. */
	translation_open();
	result = dashboard_options_parse(argc, argv, &dashboard, &options);
	translation_close();
	setlocale(LC_ALL, "C");
	if (result)
		return result < 0 ? EXIT_SUCCESS : result;
	if (proto_socket_path(options.socket, dashboard.socket) < 0)
		return usage_fail("socket", options.socket, N_("a shorter path"));
	result = options.token ? 0 : addresses_open(&options, &listening, problem);
	if (result < 0) {
		dashboard_fail(problem);
		return result == -EINVAL ? EXIT_USAGE : EXIT_FAILURE;
	}
	if (places_find(&dashboard, &options, problem) < 0)
		return options.token ? token_fail(&options, problem) : dashboard_fail(problem);
	if (options.token)
		return token_print(&dashboard, &options);
	if (listening.address >= 0)
		name_add(&dashboard, listening.host);

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	dashboard_prepare(&dashboard);
	dashboard.live = live_make();
	dashboard.recent = recent_make();
	dashboard.feed = feed_make(dashboard.socket, event_tell, &dashboard);
	archive = archive_make(&dashboard, (unsigned)options.days, options.size);
	result = feed_start(dashboard.feed);
	if (result < 0)
		return dashboard_fail(strerror(-result));
	http = http_make(&dashboard, (unsigned)options.timeout);
	if (addresses_serve(http, &options, &listening, problem) < 0)
		return dashboard_fail(problem);
	notify_send("READY=1");
	dashboard_run(&dashboard, http, archive, &signals);
	notify_send("STOPPING=1");
	http_end(http);
	archive_end(archive, (int64_t)(clock_ns(CLOCK_REALTIME) / CLOCK_SECOND_NS));
	if (options.path)
		remove(options.path);
	return EXIT_SUCCESS;
}
