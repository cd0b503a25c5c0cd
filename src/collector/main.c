/* SPDX-License-Identifier: MIT */
/*
 * collector_server: the command line, and the process. Installed under a second
 * name, collector_server_shm, since both are documented; it is one program.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/notify.h"
#include "base/translation.h"
#include "collector/start.h"
#include "proto/client.h"

#define DEFAULT_LOG "/tmp/rdma_collector.log"
#define STATE_VARIABLE "RDMA_COLLECTOR_STATE"

enum {
	EXIT_USAGE = 2,
	DESCRIPTORS = 65536,
};

struct options {
	struct start_options start;
	const char *log;
	enum log_level level;
	bool daemon;
};

static const char usage[] =
	N_("usage: collector_server [--policy FILE] [--socket PATH] [--state DIRECTORY]\n"
	   "                        [--log FILE] [--log-level LEVEL] [--daemon]\n"
	   "Hands out leases of RDMA resources to the processes of this host; see collector_server(8).\n");

static const char collector_help[] =
	N_("\n"
	   "  -p, --policy FILE      policy (default /etc/rdma_intercept/policy.conf, if it exists)\n"
	   "  -s, --socket PATH      socket to serve (default /tmp/rdma_collector.sock)\n"
	   "  -S, --state DIRECTORY  directory of the books (default /run/rdma_intercept/state)\n"
	   "  -l, --log FILE         log file, or stderr (default; with --daemon /tmp/rdma_collector.log)\n"
	   "  -L, --log-level LEVEL  OFF, ERROR, WARN, INFO (default) or DEBUG\n"
	   "  -d, --daemon           go into the background when the socket is served\n"
	   "  -h, --help             print help and exit\n"
	   "  -V, --version          print the version and exit\n"
	   "\n"
	   "Examples:\n"
	   "  collector_server --policy policy.conf\n"
	   "  collector_server --daemon --log /var/log/rdma_collector.log\n");

static int collector_options_parse(int argc, char **argv, struct options *options)
{
	static const struct option longs[] = {
		{ "policy", required_argument, NULL, 'p' },
		{ "socket", required_argument, NULL, 's' },
		{ "state", required_argument, NULL, 'S' },
		{ "log", required_argument, NULL, 'l' },
		{ "log-level", required_argument, NULL, 'L' },
		{ "daemon", no_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	int option;

	*options = (struct options){
		.start.policy = getenv("RDMA_INTERCEPT_POLICY"),
		.start.socket = getenv(PROTO_SOCKET_VARIABLE),
		.start.state = getenv(STATE_VARIABLE),
		.level = LOG_INFO,
	};
	while ((option = getopt_long(argc, argv, "p:s:S:l:L:dhV", longs, NULL)) != -1)
		switch (option) {
		case 'p':
			options->start.policy = optarg;
			break;
		case 's':
			options->start.socket = optarg;
			break;
		case 'S':
			options->start.state = optarg;
			break;
		case 'l':
			options->log = optarg;
			break;
		case 'L':
			if (log_level_parse(optarg, &options->level) < 0) {
				fprintf(stderr,
					_("collector_server: --log-level: invalid value '%s': expected "
					  "OFF, ERROR, WARN, INFO or DEBUG\n"),
					optarg);
				return EXIT_USAGE;
			}
			break;
		case 'd':
			options->daemon = true;
			break;
		case 'h':
			fputs(_(usage), stdout);
			fputs(_(collector_help), stdout);
			exit(0);
		case 'V':
			puts("collector_server " COLLECTOR_VERSION);
			exit(0);
		default:
			fputs(_(usage), stderr);
			return EXIT_USAGE;
		}
	if (optind < argc) {
		fprintf(stderr, _("collector_server: unknown argument '%s'\n%s"), argv[optind], _(usage));
		return EXIT_USAGE;
	}
	return 0;
}

/* A path stays right when the process leaves its directory. One that would be too long stays as it
 * is: 0 or -errno. */
static int path_settle(const char **path, size_t size)
{
	char *here, *whole = NULL;

	if (!*path || !**path || **path == '/')
		return 0;
	here = getcwd(NULL, 0);
	if (!here || asprintf(&whole, "%s/%s", here, *path) < 0) {
		free(here);
		return -errno;
	}
	free(here);
	if (strlen(whole) < size)
		*path = whole;
	else
		free(whole);
	return 0;
}

static int paths_settle(struct options *options)
{
	int result = path_settle(&options->start.policy, PATH_MAX);

	if (!result)
		result = path_settle(&options->start.socket, PROTO_PATH);
	if (!result)
		result = path_settle(&options->start.state, PATH_MAX);
	if (!result && options->log && strcmp(options->log, "stderr"))
		result = path_settle(&options->log, PATH_MAX);
	return result;
}

/* Two descriptors per member. */
static void descriptors_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	if (geteuid() == 0 && limit.rlim_max < DESCRIPTORS)
		limit.rlim_max = DESCRIPTORS;
	limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- in the background: the one who called waits until the socket is there */

static int daemon_start(int *ret_ready)
{
	int ends[2], status = 1;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child < 0)
		return -errno;
	if (child > 0) {
		close(ends[1]);
		_exit(read(ends[0], &status, sizeof(status)) == sizeof(status) ? status : 1);
	}
	close(ends[0]);
	setsid();
	*ret_ready = ends[1];
	return 0;
}

static void daemon_ready(int ready)
{
	int status = 0, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		dup2(null, fd);
	if (chdir("/") || write(ready, &status, sizeof(status)) != sizeof(status))
		return;
	close(ready);
}

int main(int argc, char **argv)
{
	static struct collector collector;
	char problem[PROBLEM_SIZE] = "";
	struct options options;
	sigset_t signals;
	int ready = -1, result;

	/* The command line is a person's; after it the locale is that of the log. */
	translation_open();
	result = collector_options_parse(argc, argv, &options);
	translation_close();
	setlocale(LC_ALL, "C");
	if (result)
		return result;
	result = paths_settle(&options);
	if (result < 0) {
		fprintf(stderr, "collector_server: the current directory: %s\n", strerror(-result));
		return 1;
	}
	if (options.daemon && (result = daemon_start(&ready)) < 0) {
		fprintf(stderr, "collector_server: --daemon: %s\n", strerror(-result));
		return 1;
	}
	result = log_open(&collector.log, options.level,
			  options.log || options.daemon ? options.log : "stderr", DEFAULT_LOG);
	if (result < 0) {
		fprintf(stderr, "collector_server: %s: %s%s\n",
			options.log ? options.log : DEFAULT_LOG, strerror(-result),
			options.log ? "" : "; nothing is logged");
		/* Everybody can make files in /tmp, and must not keep us from our work by that. */
		if (options.log)
			return 1;
	}
	collector.log.prefix = "collector_server: ";
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN); /* the log may go to somebody who has left */
	descriptors_raise();
	/* Everybody's growth waits for us, and on a busy host not for long. Refused to users. */
	setpriority(PRIO_PROCESS, 0, -10);
	collector.started = clock_now_seconds();
	result = sd_event_new(&collector.event);
	if (result >= 0)
		result = collector_start(&collector, &options.start, problem);
	if (result >= 0) {
		if (ready >= 0)
			daemon_ready(ready);
		notify_send("READY=1");
		result = sd_event_loop(collector.event);
		notify_send("STOPPING=1");
		log_write(&collector.log, LOG_INFO, "stopping; leases stay as they are");
	} else {
		if (!problem[0])
			snprintf(problem, sizeof(problem), "%s", strerror(-result));
		fprintf(stderr, "collector_server: %s\n", problem);
		if (options.log ? strcmp(options.log, "stderr") : options.daemon)
			log_write(&collector.log, LOG_ERROR, "not started: %s", problem);
	}
	collector_stop(&collector);
	return result < 0 ? 1 : 0;
}
