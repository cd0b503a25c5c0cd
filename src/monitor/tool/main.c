/* SPDX-License-Identifier: MIT */
/*
 * rdma_monitor: options, and the loop that looks after the accounting while it shows
 * it. One process does the looking after; others that run beside it only show, and
 * take over when it ends.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/notify.h"
#include "base/translation.h"
#include "monitor/polling/polling.h"
#include "monitor/tool/keeper.h"
#include "base/clock.h"
#include "monitor/tool/print.h"
#include "output/form.h"
#include "output/page.h"

enum {
	EXIT_USAGE = 2,
	TEND_MS = 200,
	EVENTS_MS = 100,
	TABLES_LEAST = 64,   /* places */
	EVENTS_WANTED_S = 3, /* a reader of the ring that is gone is forgotten so soon */
};

enum job { JOB_SHOW, JOB_ONCE, JOB_KEEP, JOB_EVENTS, JOB_OBJECTS, JOB_UNLOAD };

struct options {
	enum job job;
	bool json;
	enum view_by by;
	double interval;
	struct monitor_filter filter;
	struct loader_options load;
};

static const char usage[] =
	N_("usage: rdma_monitor [--once | --keep | --events | --objects | --unload]\n"
	   "                    [-j | --json] [--by process|cgroup|device] [--interval SECONDS]\n"
	   "                    [--pid PID] [--device NAME] [--cgroup PATH] [--kind NAME]...\n"
	   "                    [--hooks auto|fentry|kprobe|netlink] [--btf FILE]\n"
	   "Shows the RDMA objects of every process, as the kernel counts them; see rdma_monitor(8).\n");

static const char options_help[] =
	N_("\n"
	   "Without one of the first five options, it shows a table and refreshes it.\n"
	   "  --once              print the table once\n"
	   "  --keep              keep running without a table, as a service\n"
	   "  --events            print objects as they are created and destroyed\n"
	   "  --objects           list every object\n"
	   "  --unload            take monitor and guard out of the kernel\n"
	   "  -j, --json          print a line of JSON for each table, event or object\n"
	   "  --by WHAT           add up by process (default), cgroup or device\n"
	   "  --interval SECONDS  refresh the table every SECONDS seconds (default 1)\n"
	   "  --pid PID           show only objects of this process\n"
	   "  --device NAME       show only objects on this device\n"
	   "  --cgroup PATH       show only objects of this control group\n"
	   "  --kind NAME         show only objects of this kind, such as qp (may be repeated)\n"
	   "  --hooks WAY         watch by auto (default), fentry, kprobe or netlink\n"
	   "  --btf FILE          read the kernel's types from this file, for kprobe\n"
	   "  -h, --help          print help and exit\n"
	   "  -V, --version       print the version and exit\n"
	   "\n"
	   "Examples:\n"
	   "  rdma_monitor --once --by cgroup\n"
	   "  rdma_monitor --events --kind qp\n"
	   "  rdma_monitor --keep\n");

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = 1;
}

static void wait_ms(unsigned ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000l };

	if (!stopped)
		nanosleep(&time, NULL);
}

static double boot_seconds(void)
{
	return (double)clock_boot_ns() / 1e9;
}

/* As rdma_intercept says it. */
static void problem_print(const char *problem, bool json)
{
	char *printable;

	if (json) {
		page_json_error(problem);
		return;
	}
	printable = form_printable(problem, NULL);
	fprintf(stderr, "rdma_monitor: %s\n", printable);
	free(printable);
}

/* ---- options */

/* The number of a name in a list; -1. */
static int option_choose(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

/* A sentence, and how it is used. */
static int __attribute__((format(printf, 1, 2))) command_line_fail(const char *format, ...)
{
	char problem[PROBLEM_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem, sizeof(problem), _(format), arguments);
	va_end(arguments);
	problem_print(problem, false);
	fputs(_(usage), stderr);
	return EXIT_USAGE;
}

static int option_wrong(const char *option, const char *value)
{
	return command_line_fail("--%s: invalid value '%s'", option, value);
}

static int monitor_options_parse(int argc, char **argv, struct options *options)
{
	static const struct option longs[] = {
		{ "once", no_argument, NULL, '1' },
		{ "keep", no_argument, NULL, 'k' },
		{ "events", no_argument, NULL, 'e' },
		{ "objects", no_argument, NULL, 'o' },
		{ "unload", no_argument, NULL, 'u' },
		{ "json", no_argument, NULL, 'j' },
		{ "by", required_argument, NULL, 'b' },
		{ "interval", required_argument, NULL, 'i' },
		{ "pid", required_argument, NULL, 'P' },
		{ "device", required_argument, NULL, 'D' },
		{ "cgroup", required_argument, NULL, 'C' },
		{ "kind", required_argument, NULL, 'K' },
		{ "hooks", required_argument, NULL, 'H' },
		{ "btf", required_argument, NULL, 'B' },
		{ "tables", required_argument, NULL, 'T' }, /* for tests: small ones */
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	/* In the order of enum monitor_mode; the first is the best there is. */
	static const char *const modes[] = { "auto", "fentry", "kprobe", "netlink" };
	static const struct {
		int option;
		enum job job;
	} jobs[] = {
		{ '1', JOB_ONCE },    { 'k', JOB_KEEP },   { 'e', JOB_EVENTS },
		{ 'o', JOB_OBJECTS }, { 'u', JOB_UNLOAD },
	};
	static const struct {
		int option;
		int (*set)(struct monitor_filter *filter, const char *value,
			   char problem[PROBLEM_SIZE]);
	} filters[] = {
		{ 'P', filter_set_pid },
		{ 'D', filter_set_device },
		{ 'C', filter_set_cgroup },
		{ 'K', filter_set_kind },
	};
	char problem[PROBLEM_SIZE], *end;
	int option, value;

	*options = (struct options){ .interval = 1 };
	while ((option = getopt_long(argc, argv, "jhV", longs, NULL)) != -1)
		switch (option) {
		case 'j':
			options->json = true;
			break;
		case 'b':
			value = option_choose(view_by_names, VIEW_BYS, optarg);
			if (value < 0)
				return option_wrong("by", optarg);
			options->by = (enum view_by)value;
			break;
		case 'i':
			options->interval = strtod(optarg, &end);
			if (*end || end == optarg || !(options->interval >= 0.1) ||
			    !(options->interval <= 86400))
				return option_wrong("interval", optarg);
			break;
		case 'P':
		case 'D':
		case 'C':
		case 'K':
			for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
				if (filters[i].option == option &&
				    filters[i].set(&options->filter, optarg, problem) < 0)
					return command_line_fail("%s", problem);
			break;
		case 'H':
			value = option_choose(modes, sizeof(modes) / sizeof(modes[0]), optarg);
			if (value < 0)
				return option_wrong("hooks", optarg);
			options->load.probe.mode = (enum monitor_mode)value;
			break;
		case 'B':
			options->load.probe.btf = optarg;
			break;
		case 'T':
			value = atoi(optarg);
			if (value < TABLES_LEAST)
				return option_wrong("tables", optarg);
			options->load.tables = (unsigned)value;
			break;
		case 'h':
			fputs(_(usage), stdout);
			fputs(_(options_help), stdout);
			exit(0);
		case 'V':
			puts("rdma_monitor " MONITOR_RELEASE);
			exit(0);
		case '?':
			fputs(_(usage), stderr);
			return EXIT_USAGE;
		default:
			if (options->job != JOB_SHOW) {
				return command_line_fail("expected one of --once, --keep, --events, "
						  "--objects and --unload");
			}
			for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
				if (jobs[i].option == option)
					options->job = jobs[i].job;
		}
	if (optind < argc) {
		return command_line_fail("unknown argument '%s'", argv[optind]);
	}
	return 0;
}

/* ---- looking after the accounting, if nobody else does */

struct watch {
	const struct options *options;
	struct keeper *keeper;	 /* NULL: another process is it */
	struct polling *polling; /* in the last of the modes */
	double asked;		 /* when it was polled, or when the other was looked for */
};

static void watch_stop(struct watch *watch)
{
	if (watch->polling)
		polling_close(watch->polling, true);
	if (watch->keeper)
		keeper_stop(watch->keeper);
	watch->polling = NULL;
	watch->keeper = NULL;
}

/* To the service manager. */
static void watch_report(const struct watch *watch)
{
	char text[PROBLEM_SIZE + 80];
	const char *guard;

	if (watch->options->job != JOB_KEEP)
		return;
	if (!watch->keeper) {
		notify_status("another rdma_monitor watches; this one waits until that ends");
		return;
	}
	guard = keeper_guard_problem(watch->keeper);
	snprintf(text, sizeof(text), "watching by %s%s%s",
		 monitor_mode_names[keeper_probe(watch->keeper)->mode],
		 guard[0] ? "; the guard is not loaded: " : "", guard);
	notify_status(text);
}

static int watch_start(struct watch *watch, char problem[PROBLEM_SIZE])
{
	int result = keeper_start(&watch->keeper, &watch->options->load, problem);
	const struct probe *probe;

	watch->asked = boot_seconds();
	if (result >= 0)
		watch_report(watch);
	if (result == KEEPER_OTHER)
		return 0;
	if (result < 0)
		return result;
	if (keeper_guard_problem(watch->keeper)[0])
		fprintf(stderr, "rdma_monitor: the guard is not loaded: %s\n",
			keeper_guard_problem(watch->keeper));
	probe = keeper_probe(watch->keeper); /* not surveyed when all was there already */
	if (probe->shortfall[0])
		fprintf(stderr, "rdma_monitor: watching by %s, because %s\n",
			monitor_mode_names[probe->mode], probe->shortfall);
	if (probe->mode != MONITOR_NETLINK)
		return 0;
	result = polling_open(&watch->polling, getenv(MONITOR_VARIABLE), problem);
	return result < 0 ? result : polling_step(watch->polling, problem);
}

/* A few times a second. */
static int watch_tend(struct watch *watch, char problem[PROBLEM_SIZE])
{
	if (watch->polling || !watch->keeper) {
		if (boot_seconds() - watch->asked < 1)
			return 0;
		watch->asked = boot_seconds();
		if (watch->polling)
			return polling_step(watch->polling, problem);
		/* A viewer: unless what it shows was taken away, see whether it has to care. */
		if (access(watch->options->load.directory, F_OK))
			return -ENOENT;
		return watch_start(watch, problem);
	}
	return keeper_tend(watch->keeper, problem);
}

/* ---- jobs */

static int job_show(const struct options *options, struct watch *watch,
		    const struct monitor_reader *reader, char problem[PROBLEM_SIZE])
{
	bool screen = options->job == JOB_SHOW && isatty(STDOUT_FILENO) && !options->json;
	struct view *view = view_new(options->by, &options->filter);
	double next = boot_seconds();
	int result = view ? 0 : -ENOMEM;

	if (options->job == JOB_KEEP)
		notify_send("READY=1");
	while (!stopped && result == 0) {
		if (options->job == JOB_KEEP)
			notify_alive();
		if (options->job != JOB_KEEP && boot_seconds() >= next) {
			next += options->interval;
			result = view_refresh(view, reader);
			if (screen)
				fputs("\033[H\033[2J", stdout);
			print_view(view, reader, options->json);
			if (ferror(stdout))
				result = -EPIPE;
			if (!screen && !options->json && options->job == JOB_SHOW)
				fputc('\n', stdout);
		}
		if (options->job == JOB_ONCE)
			break;
		wait_ms(TEND_MS);
		if (result == 0)
			result = watch_tend(watch, problem);
	}
	if (options->job == JOB_KEEP)
		notify_send("STOPPING=1");
	view_free(view);
	return result;
}

static int pinned_open(const char *directory, const char *name, char problem[PROBLEM_SIZE])
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = bpf_obj_get(path);
	return fd < 0 ? problem_set(fd, problem, "%s: %s", path, strerror(-fd)) : fd;
}

static int job_objects(const struct options *options, const struct monitor_reader *reader,
		       char problem[PROBLEM_SIZE])
{
	int fd = pinned_open(options->load.directory, "objects", problem);
	struct monitor_object object;
	__u64 address, *before = NULL, last;

	if (fd < 0)
		return fd;
	while (!stopped && !bpf_map_get_next_key(fd, before, &address)) {
		/* It may be gone by now, or not be made yet. */
		if (!bpf_map_lookup_elem(fd, &address, &object) && object.row < MONITOR_ROWS &&
		    object.counter < MONITOR_COUNTERS &&
		    filter_takes_counter(&options->filter, object.counter) &&
		    filter_takes_owner(&options->filter, &reader->rows[object.row]))
			print_object(&object, &reader->rows[object.row], options->json);
		last = address;
		before = &last;
	}
	close(fd);
	return 0;
}

static int event_print(void *closure, void *data, size_t size)
{
	const struct options *options = closure;

	if (size >= sizeof(struct monitor_event))
		print_event(data, options->json);
	return stopped ? -EINTR : 0;
}

static int event_skip(void *closure, void *data, size_t size)
{
	return 0;
}

static int job_events(const struct options *options, struct watch *watch,
		      char problem[PROBLEM_SIZE])
{
	int head_fd = pinned_open(options->load.directory, "head", problem);
	int ring_fd = head_fd < 0 ? head_fd :
				    pinned_open(options->load.directory, "events", problem);
	struct ring_buffer *old = NULL, *ring = NULL;
	struct monitor_head *head = MAP_FAILED;
	int result = ring_fd < 0 ? ring_fd : 0;
	__u64 dropped = 0;

	if (result == 0) {
		head = mmap(NULL, sizeof(*head), PROT_READ | PROT_WRITE, MAP_SHARED, head_fd, 0);
		old = ring_buffer__new(ring_fd, event_skip, NULL, NULL);
		ring = ring_buffer__new(ring_fd, event_print, (void *)options, NULL);
		if (head == MAP_FAILED || !old || !ring) {
			result = problem_set(-errno, problem, "the ring of events: %s",
					     strerror(errno));
			goto out;
		}
		/* The kernel leaves out what is not wanted. There is one ring: of several readers the
		 * last one decides. */
		head->events_wanted = options->filter;
		ring_buffer__consume(old); /* what somebody else did not read */
		dropped = head->dropped;
	}
	while (!stopped && result >= 0) {
		head->events_until = (__u64)((boot_seconds() + EVENTS_WANTED_S) * 1e9);
		result = ring_buffer__consume(ring);
		fflush(stdout);
		if (ferror(stdout))
			result = -EPIPE;
		if (head->dropped != dropped)
			fprintf(stderr,
				"rdma_monitor: %llu events were dropped: the ring was full\n",
				(unsigned long long)(head->dropped - dropped));
		dropped = head->dropped;
		wait_ms(EVENTS_MS);
		if (result >= 0)
			result = watch_tend(watch, problem);
	}
	if (head != MAP_FAILED)
		head->events_until = 0;
	if (stopped)
		result = 0;
out:
	ring_buffer__free(ring);
	ring_buffer__free(old);
	if (head != MAP_FAILED)
		munmap(head, sizeof(*head));
	if (ring_fd >= 0)
		close(ring_fd);
	if (head_fd >= 0)
		close(head_fd);
	return result;
}

static int job_run(const struct options *options, struct watch *watch, char problem[PROBLEM_SIZE])
{
	struct monitor_reader reader;
	int result = watch_start(watch, problem);

	if (result < 0)
		return result;
	if (watch->polling && (options->job == JOB_EVENTS || options->job == JOB_OBJECTS))
		return problem_set(-ENOTSUP, problem,
				   "--events, --objects: not available with netlink: expected fentry or kprobe");
	result = monitor_reader_open(&reader, monitor_directory(), problem);
	if (result < 0)
		return result;
	if (options->job == JOB_EVENTS)
		result = job_events(options, watch, problem);
	else if (options->job == JOB_OBJECTS)
		result = job_objects(options, &reader, problem);
	else
		result = job_show(options, watch, &reader, problem);
	monitor_reader_close(&reader);
	return result;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct options options;
	struct watch watch = { .options = &options };
	char problem[PROBLEM_SIZE] = "";
	const char *named = getenv(MONITOR_VARIABLE);
	int result;

	translation_open();
	result = monitor_options_parse(argc, argv, &options);
	translation_close(); /* the rest may go to the log of a service */
	if (result)
		return result;
	options.load.directory = named && named[0] ? named : MONITOR_DIRECTORY;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (options.job == JOB_UNLOAD) {
		result = keeper_unload(options.load.directory, problem);
	} else {
		result = job_run(&options, &watch, problem);
		watch_stop(&watch);
	}
	if (result < 0 && result != -EPIPE)
		problem_print(problem[0] ? problem : strerror(-result), options.json);
	return result < 0;
}
