/* SPDX-License-Identifier: MIT */
/* rdma_fleet: the command line, and the loop of the program that follows the fleet. */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/notify.h"
#include "base/translation.h"
#include "fleet/ask.h"
#include "fleet/directory.h"
#include "fleet/host.h"
#include "output/memory.h"

enum { EXIT_USAGE = ASK_USAGE, OPTION_SETTING = 256 };

static const char fleet_usage[] =
	N_("usage: rdma_fleet [--config FILE] [--SETTING VALUE]... [--json] [WORD [ARGUMENT]...]\n"
	   "Follows the policy of a fleet on etcd, and divides its quotas; see rdma_fleet(8).\n"
	   "Words: status, tenants, limit, quota, policy, forget; without one, it follows the fleet.\n");

static const char *const setting_names[] = {
#define FLEET_SETTING(field, name, initial, help) name,
#include "fleet/settings.def"
#undef FLEET_SETTING
};

static const char *const setting_helps[] = {
#define FLEET_SETTING(field, name, initial, help) help,
#include "fleet/settings.def"
#undef FLEET_SETTING
};

enum { SETTINGS = sizeof(setting_names) / sizeof(setting_names[0]) };

struct fleet_options {
	const char *config;
	const char *given[SETTINGS];
	bool json;
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = 1;
}

/* "password_file" is the option --password-file. */
static void options_make(struct option *longs, char names[SETTINGS][32])
{
	unsigned i;

	for (i = 0; i < SETTINGS; i++) {
		snprintf(names[i], 32, "%s", setting_names[i]);
		for (char *at = names[i]; (at = strchr(at, '_'));)
			*at = '-';
		longs[i] = (struct option){ names[i], required_argument, NULL,
					    (int)(OPTION_SETTING + i) };
	}
	longs[i++] = (struct option){ "config", required_argument, NULL, 'c' };
	longs[i++] = (struct option){ "json", no_argument, NULL, 'j' };
	longs[i++] = (struct option){ "help", no_argument, NULL, 'h' };
	longs[i++] = (struct option){ "version", no_argument, NULL, 'V' };
	longs[i] = (struct option){ .name = NULL };
}

static void fleet_help_print(char names[SETTINGS][32])
{
	fputs(_(fleet_usage), stdout);
	for (unsigned i = 0; i < SETTINGS; i++)
		printf("  --%s VALUE\n      %s\n", names[i], _(setting_helps[i]));
}

/* 0, an exit status, or -1 if the program is to end with success. */
static int fleet_options_parse(int argc, char **argv, struct fleet_options *options)
{
	static struct option longs[SETTINGS + 5];
	static char names[SETTINGS][32];
	int option;

	options_make(longs, names);
	while ((option = getopt_long(argc, argv, "+c:jhV", longs, NULL)) != -1) {
		if (option >= OPTION_SETTING)
			options->given[option - OPTION_SETTING] = optarg;
		else if (option == 'c')
			options->config = optarg;
		else if (option == 'j')
			options->json = true;
		else if (option == 'h') {
			fleet_help_print(names);
			return -1;
		} else if (option == 'V') {
			puts(FLEET_NAME " " FLEET_VERSION);
			return -1;
		} else {
			return EXIT_USAGE;
		}
	}
	return 0;
}

static int settings_load(const struct fleet_options *options, struct fleet_settings *settings,
			 char problem[PROBLEM_SIZE])
{
	const char *file = options->config ? options->config : FLEET_FILE;
	int result;

	fleet_settings_init(settings);
	result = fleet_settings_read(settings, file, problem);
	if (result == -ENOENT && options->config)
		return problem_set(-EINVAL, problem, "%.300s: %s", file, strerror(ENOENT));
	if (result < 0 && result != -ENOENT)
		return result;
	for (unsigned i = 0; i < SETTINGS; i++)
		if (options->given[i] &&
		    fleet_setting_set(settings, setting_names[i], options->given[i]) < 0)
			return problem_set(-EINVAL, problem,
					   "%s: value too long: expected at most %d bytes",
					   setting_names[i], FLEET_VALUE - 1);
	if (!settings->policy[0])
		return problem_set(-EINVAL, problem,
				   "policy: missing: expected 'policy = etcd://HOST:PORT/PREFIX' in %.200s",
				   file);
	return fleet_settings_finish(settings, problem);
}

static int follow(struct host *host, char problem[PROBLEM_SIZE])
{
	const struct fleet_settings *settings = host->settings;
	int result = fleet_directory_take(settings->directory, problem);

	if (result == 0 && proto_socket_path(settings->socket, host->socket) < 0)
		result = problem_set(-EINVAL, problem, "socket: %.120s: path too long",
				     settings->socket);
	if (result < 0)
		return result;
	srandom((unsigned)(clock_now_ns() ^ (uint64_t)getpid() << 20));
	etcd_pause_set(host->etcd, host_keep_if_due, host);
	notify_send("READY=1");
	while (!stopped) {
		int wait_ms = host_step(host);

		notify_alive();
		etcd_wait(host->etcd, wait_ms);
	}
	notify_send("STOPPING=1");
	/* The lease stays: the next one goes on with the shares, if it comes before their end. */
	return 0;
}

int main(int argc, char **argv)
{
	static const struct log log = { .level = LOG_INFO, .to_stderr = true, .prefix = FLEET_NAME ": " };
	static struct fleet_settings settings;
	static struct fleet_options options;
	static struct host host;
	char problem[PROBLEM_SIZE];
	struct ask ask = { .settings = &settings };
	int result;

	translation_open();
	result = fleet_options_parse(argc, argv, &options);
	if (result)
		return result < 0 ? EXIT_SUCCESS : result;
	ask.json = options.json;
	if (settings_load(&options, &settings, problem) < 0)
		return ask_fail(&ask, EXIT_USAGE, "%s", problem);
	signal(SIGPIPE, SIG_IGN);
	ask.etcd = etcd_open(&settings, &log);
	if (optind < argc) {
		ask.count = (unsigned)(argc - optind - 1);
		ask.operand = argv + optind + 1;
		result = ask_answer(&ask, argv[optind]);
	} else {
		translation_close();
		setlocale(LC_ALL, "C");
		sigaction(SIGTERM, &(struct sigaction){ .sa_handler = stop }, NULL);
		sigaction(SIGINT, &(struct sigaction){ .sa_handler = stop }, NULL);
		host = (struct host){ .settings = &settings, .log = &log, .etcd = ask.etcd };
		result = follow(&host, problem);
		if (result < 0)
			result = ask_fail(&ask, EXIT_FAILURE, "%s", problem);
	}
	etcd_close(ask.etcd);
	return result;
}
