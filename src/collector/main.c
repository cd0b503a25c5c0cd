/* SPDX-License-Identifier: MIT */
/*
 * collector_server: options, the order of the start, and the end. Installed under a second
 * name, collector_server_shm, since both are documented; it is one program.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/answers.h"
#include "collector/control.h"
#include "collector/grants.h"
#include "proto/client.h"

#define DEFAULT_LOG "/tmp/rdma_collector.log"
#define ROOT_STATE "/run/rdma_intercept/state"
#define STATE_VARIABLE "RDMA_COLLECTOR_STATE"

enum {
	EXIT_USAGE = 2,
	DESCRIPTORS = 65536,
};

struct options {
	const char *policy, *socket, *state, *log;
	enum log_level level;
	bool daemon;
};

static const char usage[] =
	"usage: collector_server [--policy FILE] [--socket PATH] [--state DIRECTORY]\n"
	"                        [--log FILE] [--log-level LEVEL] [--daemon]\n"
	"Hands out leases of RDMA resources to the processes of this host; see collector_server(8).\n";

static int options_parse(int argc, char **argv, struct options *options)
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
		.policy = getenv("RDMA_INTERCEPT_POLICY"),
		.socket = getenv(PROTO_SOCKET_VARIABLE),
		.state = getenv(STATE_VARIABLE),
		.level = LOG_INFO,
	};
	while ((option = getopt_long(argc, argv, "p:s:S:l:L:dhV", longs, NULL)) != -1)
		switch (option) {
		case 'p':
			options->policy = optarg;
			break;
		case 's':
			options->socket = optarg;
			break;
		case 'S':
			options->state = optarg;
			break;
		case 'l':
			options->log = optarg;
			break;
		case 'L':
			if (log_level_parse(optarg, &options->level) < 0) {
				fprintf(stderr, "collector_server: '%s' is no log level\n", optarg);
				return EXIT_USAGE;
			}
			break;
		case 'd':
			options->daemon = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'V':
			puts("collector_server " COLLECTOR_VERSION);
			exit(0);
		default:
			fputs(usage, stderr);
			return EXIT_USAGE;
		}
	if (optind < argc) {
		fprintf(stderr, "collector_server: unknown argument '%s'\n%s", argv[optind], usage);
		return EXIT_USAGE;
	}
	return 0;
}

/* ---- start */

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

/* Below a directory of the user's own that ends with the machine's run, as the processes do. */
static void state_directory_default(char *ret, size_t size)
{
	if (geteuid() == 0)
		snprintf(ret, size, ROOT_STATE);
	else
		snprintf(ret, size, "/dev/shm/rdma_intercept.%u", (unsigned)geteuid());
}

static int path_make_absolute(const char *path, char ret[POLICY_PATH])
{
	char here[POLICY_PATH];

	if (path[0] == '/')
		return snprintf(ret, POLICY_PATH, "%s", path) < POLICY_PATH ? 0 : -ENAMETOOLONG;
	if (!getcwd(here, sizeof(here)))
		return -errno;
	return snprintf(ret, POLICY_PATH, "%s/%s", here, path) < POLICY_PATH ? 0 : -ENAMETOOLONG;
}

static const char *first_of(const char *a, const char *b, const char *c)
{
	return a && a[0] ? a : b && b[0] ? b : c;
}

/* Where the last good policy is kept: a place that outlives a boot if the service manager gives
 * one, and one that is known without a policy in any case. */
static void good_directory_of(const struct options *options, char *ret, size_t size)
{
	const char *given = getenv("STATE_DIRECTORY"); /* of systemd: names, separated by colons */

	if (given && given[0] == '/')
		snprintf(ret, size, "%.*s", (int)strcspn(given, ":"), given);
	else if (options->state && options->state[0])
		snprintf(ret, size, "%s", options->state);
	else
		state_directory_default(ret, size);
}

/* The files, or if these are not in order what they said in an earlier life: a host without a
 * collector would have no limits at all. */
static int start_policy(struct collector *collector, const struct options *options,
			char problem[POLICY_PROBLEM])
{
	char good[POLICY_PATH];
	const char *path = first_of(options->policy, NULL, POLICY_DEFAULT_FILE);
	int result;

	collector->policy_must_exist = options->policy && options->policy[0];
	snprintf(problem, POLICY_PROBLEM, "%.300s: the path is too long", path);
	result = path_make_absolute(path, collector->policy_path);
	if (result == 0)
		result = control_environment(collector, problem);
	collector->runtime = policy_new();
	if (result < 0 || !collector->runtime)
		return result < 0 ? result : -ENOMEM;
	good_directory_of(options, good, sizeof(good));
	control_recall(collector, good);
	result = control_reload(collector, RELOAD_WHOLE);
	if (result < 0 && collector->files) {
		collector->effective = policy_merge(collector->environment, collector->files);
		result = collector->effective ? 0 : -errno;
	}
	if (result < 0)
		snprintf(problem, POLICY_PROBLEM, "%s", collector->problem);
	return result;
}

static int start_runtime(struct collector *collector, const char *state,
			 char problem[POLICY_PROBLEM])
{
	struct policy *merged;
	int result;

	snprintf(collector->runtime_path, sizeof(collector->runtime_path), "%.*s/runtime.conf",
		 (int)sizeof(collector->runtime_path) - 16, state);
	result = policy_read_file(collector->runtime, collector->runtime_path, true, problem);
	if (result < 0 && result != -ENOENT)
		return result;
	merged = policy_merge(collector->effective, collector->runtime);
	if (!merged) {
		result = -errno;
		snprintf(problem, POLICY_PROBLEM, "%.400s: %s", collector->runtime_path,
			 strerror(-result));
		return result;
	}
	policy_free(collector->effective);
	collector->effective = merged;
	return 0;
}

/* Books, members and loop; what fails without words of its own failed for want of something. */
static int start_parts(struct collector *collector, const char *state, const char *socket_path,
		       char problem[POLICY_PROBLEM])
{
	int result = books_open(&collector->books, state, &collector->log, problem);

	if (result < 0)
		return result;
	result = start_runtime(collector, state, problem);
	if (result < 0)
		return result;
	control_keep(collector);
	/* Better a collector without some of the tenants than none. */
	result = control_prepare(collector, collector->effective, collector->problem);
	if (result < 0)
		log_write(&collector->log, LOG_ERROR, "%s", collector->problem);
	control_apply(collector);
	snprintf(problem, POLICY_PROBLEM, "the event loop cannot be set up");
	result = members_init(&collector->members, &collector->books);
	if (result < 0)
		return result;
	collector->members.ended = collector_member_ended;
	collector->members.remains = reconcile_remains;
	collector->members.closure = collector;
	members_attach(&collector->members);
	grants_enforce(&collector->books);
	result = collector_loop_prepare(collector);
	if (result < 0)
		return result;
	return server_new(&collector->server, collector->event, socket_path, &collector->log,
			  answer, collector, problem);
}

static int collector_start(struct collector *collector, const struct options *options,
			   char problem[POLICY_PROBLEM])
{
	char state_default[64];
	const char *state, *socket_path;
	int result = start_policy(collector, options, problem);

	if (result < 0)
		return result;
	state_directory_default(state_default, sizeof(state_default));
	state = first_of(options->state, collector->effective->state, state_default);
	socket_path = first_of(options->socket, collector->effective->socket, PROTO_DEFAULT_SOCKET);
	result = start_parts(collector, state, socket_path, problem);
	if (result == 0)
		log_write(&collector->log, LOG_INFO,
			  "serving %s, books in %s, %u processes registered", socket_path, state,
			  collector->books.members_count);
	return result;
}

static void collector_stop(struct collector *collector)
{
	if (collector->server)
		server_free(collector->server);
	collector->server = NULL;
	if (collector->books.file) {
		members_close(&collector->members);
		books_close(&collector->books);
	}
	kernel_close(&collector->kernel);
	drift_close(&collector->drift);
	reconcile_close(&collector->reconcile);
	guards_close(&collector->guards);
	policy_free(collector->environment);
	policy_free(collector->files);
	policy_free(collector->runtime);
	policy_free(collector->effective);
	collector_loop_close(collector);
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
	char problem[POLICY_PROBLEM] = "";
	struct options options;
	sigset_t signals;
	int ready = -1, result = options_parse(argc, argv, &options);

	if (result)
		return result;
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
		result = collector_start(&collector, &options, problem);
	if (result >= 0) {
		if (ready >= 0)
			daemon_ready(ready);
		sd_notify(0, "READY=1");
		result = sd_event_loop(collector.event);
		sd_notify(0, "STOPPING=1");
		log_write(&collector.log, LOG_INFO, "stopping; leases stay as they are");
	} else {
		fprintf(stderr, "collector_server: %s\n", problem[0] ? problem : strerror(-result));
	}
	collector_stop(&collector);
	return result < 0 ? 1 : 0;
}
