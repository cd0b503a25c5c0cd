/* SPDX-License-Identifier: MIT */
/*
 * A fleet of thousands of simulated hosts on a real etcd, from one process. Each host speaks as rdma_fleet
 * does: a lease, a sign of life under it, three readings, a stream of changes and reports. The stream has a
 * connection of its own; calls use whichever of a pool is free, since a process may not have two for each
 * of ten thousand hosts. The quotas are divided by the divider of rdma_fleet itself, in a thread. A
 * host has no collector: what it reads is in force at once.
 *
 * Prints what each phase took, and checks all the while that what hosts allow themselves is together at
 * most the quota. bench/fleet.sh starts etcd and this.
 *
 * Usage: fleet ADDRESS HOSTS QUOTAS LEASE SECONDS PID-OF-ETCD...
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "fleet/base64.h"
#include "fleet/divider.h"
#include "fleet/records.h"
#include "output/memory.h"

enum {
	QUOTAS_MOST = 32,
	JOINING_MOST = 100, /* hosts that join at the same time */
	CALLS_MOST = 3000,  /* calls under way */
	TICK_MS = 50,
	GUARANTEE = 2,
	QUOTA_PER_HOST = 20,
	LIMITS = 10, /* changes of the policy */
	REPORT_SAME_S = 60,
	TEXT = 16384,
};

#define MS_NS 1000000ull

enum call { CALL_NONE, CALL_GRANT, CALL_LOOK, CALL_SIGN, CALL_READ, CALL_KEEP, CALL_REPORT, CALL_PUT };

struct connection {
	struct sim_host *host; /* that uses it */
	struct connection *next; /* free one of the pool */
	int fd; /* -1: closed */
	bool is_watch, waits_for_room;
	char *in;
	size_t length, room;
	char *out;
	size_t left, sent;
};

struct sim_share {
	struct fleet_record record;
	uint64_t revision, confirmed, demand, told_demand, allowed;
};

struct sim_host {
	unsigned number;
	struct connection *call, watch;
	enum call called;
	unsigned reading; /* which of the three */
	uint64_t asked_ns, asked_boot_ns;
	uint64_t lease, until_ns, keep_at_ns, join_at_ns;
	bool joining, online, has_changed;
	uint64_t report_at_ns, reported_ns;
	uint64_t seen_policy;
	struct sim_share share[QUOTAS_MOST];
};

struct samples {
	uint32_t *us;
	size_t count, room;
};

static struct fleet_settings settings;
static const struct log bench_log = { .level = LOG_WARN, .to_stderr = true, .prefix = "fleet: " };
static struct sim_host *hosts;
static struct connection *pool;
static unsigned pool_size;
static unsigned host_count, quota_count, joining, online;
static uint64_t lease_s, quota_amount;
static int polling;
static struct samples keeps, calls, arrivals;
static uint64_t allowed_sum[QUOTAS_MOST], allowed_most;
static uint64_t violations, leases_lost, failures, events, confirmations;
static uint64_t policy_ns, policy_number;
static char key_policy[ETCD_KEY];

/* ---- figures */

static void sample_add(struct samples *samples, uint64_t ns)
{
	if (samples->count == samples->room) {
		samples->room = samples->room ? 2 * samples->room : 4096;
		samples->us = memory_need(realloc(samples->us, samples->room * sizeof(*samples->us)));
	}
	samples->us[samples->count++] = (uint32_t)(ns / 1000);
}

static int sample_compare(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static void samples_print(const char *what, struct samples *samples)
{
	size_t count = samples->count;

	if (!count) {
		printf("%s: none\n", what);
		return;
	}
	qsort(samples->us, count, sizeof(*samples->us), sample_compare);
	printf("%s: %zu, median %.1f ms, 99 %% %.1f ms, longest %.1f ms\n", what, count,
	       samples->us[count / 2] / 1e3, samples->us[count * 99 / 100] / 1e3,
	       samples->us[count - 1] / 1e3);
	samples->count = 0;
}

static double processor_of(const char *pid)
{
	unsigned long user = 0, system = 0;
	char path[64], text[1024], *at;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	at = fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
	fclose(file);
	if (at)
		sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static unsigned long memory_of(const char *pid)
{
	unsigned long pages = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/statm", pid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%*u %lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (unsigned long)sysconf(_SC_PAGESIZE) >> 20;
}

static char **etcds;

struct phase {
	const char *name;
	uint64_t began_ns;
	double etcd_s, own_s;
};

static double etcds_processor(void)
{
	double sum = 0;

	for (char **pid = etcds; *pid; pid++)
		sum += processor_of(*pid);
	return sum;
}

static void phase_begin(struct phase *phase, const char *name)
{
	*phase = (struct phase){ name, clock_now_ns(), etcds_processor(), processor_of("self") };
}

static void phase_end(const struct phase *phase)
{
	double seconds = (double)(clock_now_ns() - phase->began_ns) / 1e9;
	unsigned long memory = 0;

	for (char **pid = etcds; *pid; pid++)
		memory += memory_of(*pid);
	printf("%s: %.1f s; processors: etcd %.2f, this program %.2f; memory of etcd: %lu MB; %u of %u online, "
	       "%u connections for calls\n",
	       phase->name, seconds, (etcds_processor() - phase->etcd_s) / seconds,
	       (processor_of("self") - phase->own_s) / seconds, memory, online, host_count, pool_size);
	fflush(stdout);
}

/* ---- what a host allows itself */

static void allowed_update(struct sim_host *host)
{
	bool leased = host->lease && clock_boot_ns() < host->until_ns;

	for (unsigned i = 0; i < quota_count; i++) {
		struct sim_share *share = &host->share[i];
		uint64_t now = leased ? share->record.target : share->record.floor;

		allowed_sum[i] += now - share->allowed;
		share->allowed = now;
		if (allowed_sum[i] > allowed_most)
			allowed_most = allowed_sum[i];
		violations += allowed_sum[i] > quota_amount;
	}
}

/* ---- connections */

static void connection_close(struct connection *connection)
{
	if (connection->fd >= 0)
		close(connection->fd);
	free(connection->in);
	free(connection->out);
	*connection = (struct connection){ .fd = -1, .is_watch = connection->is_watch,
					   .host = connection->host };
}

static void call_begin(struct sim_host *host)
{
	struct connection *call = pool;

	if (call) {
		pool = call->next;
	} else {
		call = memory_need(calloc(1, sizeof(*call)));
		call->fd = -1;
		pool_size++;
	}
	call->host = host;
	host->call = call;
}

static void call_end(struct sim_host *host)
{
	host->call->next = pool;
	pool = host->call;
	host->call = NULL;
}

static bool connection_open(struct connection *connection, struct sim_host *host)
{
	const char *address = settings.endpoint[host->number % settings.endpoints] + strlen("http://");
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct epoll_event event = { .events = EPOLLIN };
	char ip[64];
	int one = 1;

	snprintf(ip, sizeof(ip), "%.*s", (int)strcspn(address, ":"), address);
	to.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
	inet_pton(AF_INET, ip, &to.sin_addr);
	/* On loopback a connection is made at once, or not at all. */
	connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)&to, sizeof(to))) {
		connection_close(connection);
		return false;
	}
	fcntl(connection->fd, F_SETFL, O_NONBLOCK);
	setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	event.data.ptr = connection;
	epoll_ctl(polling, EPOLL_CTL_ADD, connection->fd, &event);
	return true;
}

static void connection_flush(struct connection *connection)
{
	struct epoll_event event = { .events = EPOLLIN };
	ssize_t sent = 1;

	while (connection->sent < connection->left && sent > 0) {
		sent = send(connection->fd, connection->out + connection->sent,
			    connection->left - connection->sent, MSG_NOSIGNAL);
		connection->sent += sent > 0 ? (size_t)sent : 0;
	}
	event.data.ptr = connection;
	if ((connection->sent < connection->left) != connection->waits_for_room) {
		connection->waits_for_room = !connection->waits_for_room;
		event.events |= connection->waits_for_room ? EPOLLOUT : 0;
		epoll_ctl(polling, EPOLL_CTL_MOD, connection->fd, &event);
	}
}

static bool request_send(struct connection *connection, struct sim_host *host, const char *path,
			 const char *body)
{
	if (connection->fd < 0 && !connection_open(connection, host))
		return false;
	free(connection->out);
	connection->sent = 0;
	connection->left = (size_t)asprintf(&connection->out,
					    "POST /v3/%s HTTP/1.1\r\nHost: etcd\r\nContent-Type: application/json\r\n"
					    "Content-Length: %zu\r\n\r\n%s",
					    path, strlen(body), body);
	connection_flush(connection);
	return true;
}

static void host_offline(struct sim_host *host)
{
	if (host->joining)
		joining--;
	if (host->online)
		online--;
	host->joining = host->online = false;
	host->lease = 0;
	host->called = CALL_NONE;
	if (host->call) {
		connection_close(host->call);
		call_end(host);
	}
	connection_close(&host->watch);
	host->join_at_ns = clock_now_ns() + (uint64_t)(random() % 1000) * MS_NS;
	allowed_update(host);
}

static void host_call(struct sim_host *host, enum call call, const char *path, const char *body)
{
	host->called = call;
	host->asked_ns = clock_now_ns();
	call_begin(host);
	if (!request_send(host->call, host, path, body)) {
		failures++;
		host_offline(host);
	}
}

/* ---- what a host says */

static char *key64(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *key64(const char *format, ...)
{
	char name[ETCD_KEY / 2], key[ETCD_KEY];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(name, sizeof(name), format, arguments);
	va_end(arguments);
	fleet_key_print(&settings, key, "%s", name);
	return base64_encode(key, strlen(key));
}

static void host_name_print(const struct sim_host *host, char ret_name[32])
{
	snprintf(ret_name, 32, "host-%05u", host->number);
}

static void call_grant(struct sim_host *host)
{
	char body[64];

	if (!host->joining) {
		host->joining = true;
		joining++;
	}
	host->asked_boot_ns = clock_boot_ns();
	snprintf(body, sizeof(body), "{\"TTL\":\"%llu\"}", (unsigned long long)lease_s);
	host_call(host, CALL_GRANT, "lease/grant", body);
}

static void call_look(struct sim_host *host)
{
	char name[32], body[TEXT], *key;

	host_name_print(host, name);
	key = key64("alive/%s", name);
	snprintf(body, sizeof(body), "{\"key\":\"%s\",\"limit\":\"500\"}", key);
	free(key);
	host_call(host, CALL_LOOK, "kv/range", body);
}

static void call_sign(struct sim_host *host)
{
	char name[32], body[TEXT], *key;

	host_name_print(host, name);
	key = key64("alive/%s", name);
	snprintf(body, sizeof(body),
		 "{\"compare\":[],\"success\":[{\"request_put\":{\"key\":\"%s\",\"value\":\"e30=\",\"lease\":\"%llu\"}}]}",
		 key, (unsigned long long)host->lease);
	free(key);
	host_call(host, CALL_SIGN, "kv/txn", body);
}

static char *range_key(const struct sim_host *host, unsigned part, bool end)
{
	char name[32];

	host_name_print(host, name);
	switch (part) {
	case 0:
		return key64(end ? "all0" : "all/");
	case 1:
		return key64(end ? "share/%s0" : "share/%s/", name);
	default:
		return key64(end ? "dividers" : "divider");
	}
}

static void call_read(struct sim_host *host)
{
	char body[TEXT], *key = range_key(host, host->reading, false),
			 *end = range_key(host, host->reading, true);

	snprintf(body, sizeof(body), "{\"key\":\"%s\",\"range_end\":\"%s\",\"limit\":\"500\"}", key, end);
	free(key);
	free(end);
	host_call(host, CALL_READ, "kv/range", body);
}

static bool watch_begin(struct sim_host *host, uint64_t revision)
{
	char body[TEXT];
	size_t length = 0;

	for (unsigned part = 0; part < 3; part++) {
		char *key = range_key(host, part, false), *end = range_key(host, part, true);

		length += (size_t)snprintf(
			body + length, sizeof(body) - length,
			"{\"create_request\":{\"key\":\"%s\",\"range_end\":\"%s\",\"start_revision\":\"%llu\",\"watch_id\":\"%u\"}}",
			key, end, (unsigned long long)revision, part + 1);
		free(key);
		free(end);
	}
	connection_close(&host->watch);
	return request_send(&host->watch, host, "watch", body);
}

static void call_keep(struct sim_host *host)
{
	char body[64];

	host->asked_boot_ns = clock_boot_ns();
	snprintf(body, sizeof(body), "{\"ID\":\"%llu\"}", (unsigned long long)host->lease);
	host_call(host, CALL_KEEP, "lease/keepalive", body);
}

/* About as long as that of a host with a few tenants. */
static void call_report(struct sim_host *host)
{
	char name[32], text[TEXT], body[2 * TEXT], *key, *value;
	size_t length;

	host_name_print(host, name);
	key = key64("report/%s", name);
	length = (size_t)snprintf(
		text, sizeof(text),
		"{\"policy\":{\"revision\":%llu,\"in_force\":%llu,\"problem\":\"\"},\"collector\":{\"answers\":true,"
		"\"version\":\"1.0.0\",\"problem\":\"\",\"processes\":12,\"uncovered\":0},\"tenants\":{\"t0\":{\"processes\":4,"
		"\"used\":{\"ctx\":4,\"pd\":4,\"cq\":8,\"qp\":64,\"mr\":32,\"mr_bytes\":1073741824,\"cqe\":4096}},"
		"\"default\":{\"processes\":8,\"used\":{\"ctx\":8,\"pd\":8,\"qp\":16,\"mr\":16,\"mr_bytes\":1048576}}},"
		"\"time\":1700000000,\"shares\":{",
		(unsigned long long)host->seen_policy, (unsigned long long)host->seen_policy);
	for (unsigned i = 0; i < quota_count; i++) {
		struct sim_share *share = &host->share[i];
		uint64_t held = share->demand < share->record.target ? share->demand : share->record.target;

		confirmations += share->confirmed != share->revision;
		share->confirmed = share->revision;
		share->told_demand = share->demand;
		length += (size_t)snprintf(
			text + length, sizeof(text) - length,
			"%s\"t%u/qp\":{\"revision\":%llu,\"held\":%llu,\"demand\":%llu,\"overridden\":false}",
			i ? "," : "", i, (unsigned long long)share->confirmed, (unsigned long long)held,
			(unsigned long long)share->demand);
	}
	length += (size_t)snprintf(text + length, sizeof(text) - length, "}}");
	value = base64_encode(text, length);
	snprintf(body, sizeof(body),
		 "{\"compare\":[],\"success\":[{\"request_put\":{\"key\":\"%s\",\"value\":\"%s\"}}]}", key, value);
	free(key);
	free(value);
	host->has_changed = false;
	host->reported_ns = clock_now_ns();
	host_call(host, CALL_REPORT, "kv/txn", body);
}

/* The control connection is one of a host that never joins. */
static void policy_put(struct sim_host *control)
{
	char text[512], body[TEXT], *value;

	snprintf(text, sizeof(text), "# change %llu\n[tenant t0]\nqp = 100\nmr = 1000\nprocess.qp = 50\n",
		 (unsigned long long)++policy_number);
	value = base64_encode(text, strlen(text));
	snprintf(body, sizeof(body), "{\"key\":\"%s\",\"value\":\"%s\"}", key_policy, value);
	free(value);
	policy_ns = clock_now_ns();
	host_call(control, CALL_PUT, "kv/put", body);
}

/* ---- what a host hears */

static void pair_take(struct sim_host *host, const json_t *kv, bool deleted)
{
	const char *key = json_string_value(json_object_get(kv, "key"));
	const char *value = json_string_value(json_object_get(kv, "value"));
	char *name = NULL, *text = NULL;
	uint64_t revision = etcd_number(kv, "mod_revision");
	size_t length;
	unsigned i;

	events++;
	if (!key)
		return;
	if (!strcmp(key, key_policy)) {
		if (policy_ns && revision > host->seen_policy)
			sample_add(&arrivals, clock_now_ns() - policy_ns);
		host->seen_policy = revision;
		return;
	}
	name = base64_decode(key, &length);
	if (name && sscanf(name, "/bench/share/%*[^/]/t%u/qp", &i) == 1 && i < quota_count &&
	    revision > host->share[i].revision) {
		struct sim_share *share = &host->share[i];

		text = deleted || !value ? NULL : base64_decode(value, &length);
		if (!text || !fleet_record_read(text, &share->record))
			share->record = (struct fleet_record){ .share = 0 };
		share->revision = revision;
		host->has_changed = true;
		allowed_update(host);
	}
	free(name);
	free(text);
}

static void watch_line_take(struct sim_host *host, const char *line)
{
	json_error_t error;
	json_t *message = json_loads(line, 0, &error);
	const json_t *result = json_object_get(message, "result"), *event;
	size_t index;

	json_array_foreach(json_object_get(result, "events"), index, event) {
		const char *type = json_string_value(json_object_get(event, "type"));

		pair_take(host, json_object_get(event, "kv"), type && !strcmp(type, "DELETE"));
	}
	json_decref(message);
}

/* Lines that begin with '{' are messages, the others are those of the chunks. */
static void watch_take(struct sim_host *host)
{
	struct connection *watch = &host->watch;
	char *line = watch->in, *end;

	while ((end = memchr(line, '\n', watch->length - (size_t)(line - watch->in)))) {
		*end = '\0';
		if (*line == '{')
			watch_line_take(host, line);
		line = end + 1;
	}
	watch->length -= (size_t)(line - watch->in);
	memmove(watch->in, line, watch->length);
}

static void lease_kept(struct sim_host *host, uint64_t seconds)
{
	host->until_ns = host->asked_boot_ns + seconds * CLOCK_SECOND_NS * 9 / 10 - CLOCK_SECOND_NS / 2;
	host->keep_at_ns = clock_now_ns() +
			   (seconds * 1000 / 6 + (uint64_t)random() % (seconds * 1000 / 6 + 1)) * MS_NS;
}

static void answer_take(struct sim_host *host, const char *text)
{
	json_error_t error;
	json_t *answer = json_loads(text, JSON_DISABLE_EOF_CHECK, &error), *kv;
	enum call called = host->called;
	uint64_t revision = etcd_number(json_object_get(answer, "header"), "revision"), seconds;
	size_t index;

	sample_add(called == CALL_KEEP ? &keeps : &calls, clock_now_ns() - host->asked_ns);
	host->called = CALL_NONE;
	switch (called) {
	case CALL_GRANT:
		host->lease = etcd_number(answer, "ID");
		lease_kept(host, etcd_number(answer, "TTL"));
		if (host->lease)
			call_look(host);
		break;
	case CALL_LOOK:
		call_sign(host);
		break;
	case CALL_SIGN:
		host->reading = 0;
		call_read(host);
		break;
	case CALL_READ:
		json_array_foreach(json_object_get(answer, "kvs"), index, kv)
			pair_take(host, kv, false);
		if (++host->reading < 3) {
			call_read(host);
		} else if (watch_begin(host, revision + 1)) {
			host->joining = false;
			joining--;
			host->online = true;
			online++;
			call_report(host);
		}
		break;
	case CALL_KEEP:
		seconds = etcd_number(json_object_get(answer, "result"), "TTL");
		if (seconds) {
			lease_kept(host, seconds);
		} else {
			leases_lost++;
			host_offline(host);
		}
		allowed_update(host);
		break;
	default:
		break;
	}
	if (called == CALL_GRANT && !host->lease) {
		failures++;
		host_offline(host);
	}
	json_decref(answer);
}

/* One whole answer, or nothing yet. The document of a chunked one begins behind its first line. */
static void call_take(struct sim_host *host)
{
	struct connection *call = host->call;
	char *body, *length, *text;

	call->in[call->length] = '\0';
	body = strstr(call->in, "\r\n\r\n");
	if (!body)
		return;
	length = strcasestr(call->in, "\r\nContent-Length:");
	if (length && length < body) {
		if (call->length < (size_t)(body + 4 - call->in) + strtoul(length + 17, NULL, 10))
			return;
	} else if (call->length < 7 || memcmp(call->in + call->length - 7, "\r\n0\r\n\r\n", 7)) {
		return;
	}
	body = strchr(body, '{');
	text = memory_need(strdup(body ? body : ""));
	call->length = 0;
	call_end(host);
	answer_take(host, text);
	free(text);
}

static void connection_take(struct connection *connection)
{
	struct sim_host *host = connection->host;
	ssize_t got = 1;

	while (got > 0) {
		if (connection->room < connection->length + TEXT) {
			connection->room = connection->length + 2 * TEXT;
			connection->in = memory_need(realloc(connection->in, connection->room));
		}
		got = recv(connection->fd, connection->in + connection->length,
			   connection->room - connection->length - 1, 0);
		connection->length += got > 0 ? (size_t)got : 0;
	}
	if (!connection->is_watch && host->call != connection) {
		connection_close(connection); /* a free one, which the server has closed */
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		failures++;
		host_offline(host);
	} else if (connection->is_watch) {
		watch_take(host);
	} else {
		call_take(host);
	}
}

/* ---- time */

static bool demand_moved(const struct sim_host *host)
{
	for (unsigned i = 0; i < quota_count; i++)
		if (host->share[i].demand != host->share[i].told_demand)
			return true;
	return false;
}

static void host_tick(struct sim_host *host, uint64_t now_ns)
{
	if (host->lease && clock_boot_ns() >= host->until_ns) {
		allowed_update(host);
		if (host->online && host->called != CALL_KEEP) {
			leases_lost++;
			host_offline(host);
		}
	}
	if (!host->online && !host->joining) {
		if (now_ns >= host->join_at_ns && joining < JOINING_MOST)
			call_grant(host);
		return;
	}
	if (!host->online || host->called != CALL_NONE || (!pool && pool_size >= CALLS_MOST))
		return;
	if (now_ns >= host->keep_at_ns)
		call_keep(host);
	else if (host->has_changed ||
		 (demand_moved(host) && now_ns - host->reported_ns > CLOCK_SECOND_NS) ||
		 now_ns - host->reported_ns > REPORT_SAME_S * (uint64_t)CLOCK_SECOND_NS)
		call_report(host);
}

/* Runs for so long. */
static void sim_run(uint64_t ns)
{
	uint64_t until_ns = clock_now_ns() + ns, tick_ns = 0;
	struct epoll_event ready[256];

	do {
		uint64_t now_ns;
		int count = epoll_wait(polling, ready, 256, TICK_MS / 2);

		for (int i = 0; i < count; i++) {
			struct connection *connection = ready[i].data.ptr;

			if (connection->fd < 0)
				continue;
			if (ready[i].events & EPOLLOUT)
				connection_flush(connection);
			if (ready[i].events & ~(uint32_t)EPOLLOUT)
				connection_take(connection);
		}
		now_ns = clock_now_ns();
		if (now_ns >= tick_ns) {
			for (unsigned i = 0; i < host_count; i++)
				host_tick(&hosts[i], now_ns);
			tick_ns = now_ns + TICK_MS * MS_NS;
		}
	} while (clock_now_ns() < until_ns);
}

/* ---- the divider, in a thread */

static struct {
	struct etcd *etcd;
	uint64_t lease, keep_at_ns;
	atomic_bool ends, divides;
	atomic_uint rounds;
	_Atomic uint64_t round_ns, longest_ns, all_ns;
} divider;

static void divider_keep(void *closure)
{
	char problem[PROBLEM_SIZE];
	uint64_t seconds;

	if (clock_now_ns() < divider.keep_at_ns)
		return;
	if (etcd_lease_keep(divider.etcd, divider.lease, &seconds, problem) < 0)
		fprintf(stderr, "fleet: the divider's lease: %s\n", problem);
	divider.keep_at_ns = clock_now_ns() + lease_s * CLOCK_SECOND_NS / 4;
}

static void *divider_live(void *closure)
{
	char problem[PROBLEM_SIZE];
	uint64_t granted;

	if (etcd_lease_grant(divider.etcd, lease_s, &divider.lease, &granted, problem) < 0)
		fprintf(stderr, "fleet: %s\n", problem);
	etcd_pause_set(divider.etcd, divider_keep, NULL);
	while (!divider.ends) {
		uint64_t began_ns = clock_now_ns(), lasted_ns, wait_ns;

		divider_keep(NULL);
		if (divider.divides &&
		    divider_round(divider.etcd, &settings, &bench_log, divider.lease, problem) < 0)
			fprintf(stderr, "fleet: %s\n", problem);
		lasted_ns = clock_now_ns() - began_ns;
		if (divider.divides) {
			divider.rounds++;
			divider.all_ns += lasted_ns;
			divider.round_ns = lasted_ns;
			if (lasted_ns > divider.longest_ns)
				divider.longest_ns = lasted_ns;
		}
		wait_ns = divider_rest_ns(lasted_ns) * 3 / 4;
		for (uint64_t until_ns = clock_now_ns() + wait_ns; clock_now_ns() < until_ns && !divider.ends;) {
			usleep(50000);
			divider_keep(NULL);
		}
	}
	return NULL;
}

static void rounds_print(void)
{
	unsigned rounds = divider.rounds;

	printf("rounds of the divider: %u, mean %.2f s, longest %.2f s; %llu shares confirmed\n", rounds,
	       rounds ? (double)divider.all_ns / rounds / 1e9 : 0, (double)divider.longest_ns / 1e9,
	       (unsigned long long)confirmations);
	divider.rounds = 0;
	divider.all_ns = divider.longest_ns = 0;
	confirmations = 0;
}

/* ---- phases */

static void quotas_put(uint64_t amount)
{
	char problem[PROBLEM_SIZE], key[ETCD_KEY], *text;
	struct etcd_change change;
	struct etcd *etcd = etcd_open(&settings, &bench_log);

	for (unsigned i = 0; i < quota_count; i++) {
		struct fleet_quota quota = { .kind = KIND_qp, .amount = amount, .guarantee = GUARANTEE };

		snprintf(quota.tenant, sizeof(quota.tenant), "t%u", i);
		text = fleet_quota_write(&quota, "bench");
		fleet_key_print(&settings, key, "all/quota/t%u/qp", i);
		etcd_change_begin(&change);
		etcd_change_put(&change, key, text, 0);
		if (etcd_change_commit(etcd, &change, NULL, problem) < 0)
			fprintf(stderr, "fleet: %s\n", problem);
		free(text);
	}
	etcd_close(etcd);
}

/* Hosts that have a share of each quota, and keep to the last record. */
static unsigned hosts_divided(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < host_count; i++) {
		bool all = hosts[i].online;

		for (unsigned j = 0; j < quota_count && all; j++)
			all = hosts[i].share[j].record.target && hosts[i].share[j].record.target == hosts[i].share[j].record.share;
		count += all;
	}
	return count;
}

static void phase_limits(struct sim_host *control)
{
	struct samples last = { .us = NULL };
	struct phase phase;
	struct samples all = { .us = NULL };

	phase_begin(&phase, "limits");
	for (unsigned i = 0; i < LIMITS; i++) {
		policy_put(control);
		for (unsigned tries = 0; tries < 300 && arrivals.count < online; tries++)
			sim_run(100 * MS_NS);
		for (size_t j = 0; j < arrivals.count; j++)
			sample_add(&all, arrivals.us[j] * 1000ull);
		if (arrivals.count) {
			qsort(arrivals.us, arrivals.count, sizeof(*arrivals.us), sample_compare);
			sample_add(&last, arrivals.us[arrivals.count - 1] * 1000ull);
		}
		arrivals.count = 0;
		sim_run(500 * MS_NS);
	}
	phase_end(&phase);
	samples_print("a limit reaches a host", &all);
	samples_print("a limit reaches the last host", &last);
	policy_ns = 0;
}

static void churn(uint64_t seconds)
{
	for (uint64_t second = 0; second < seconds; second++) {
		for (unsigned i = 0; i < host_count / 100 + 1; i++) {
			struct sim_host *host = &hosts[(unsigned)random() % host_count];

			for (unsigned j = 0; j < quota_count; j++)
				host->share[j].demand = (uint64_t)random() % (3 * QUOTA_PER_HOST);
		}
		/* Cut off: it says nothing more, and comes back later. */
		for (unsigned i = 0; i < host_count / 500 + 1; i++) {
			struct sim_host *host = &hosts[(unsigned)random() % host_count];
			uint64_t lease = host->lease;

			if (!host->online)
				continue;
			host_offline(host);
			host->lease = lease; /* it does not know */
			allowed_update(host);
			host->join_at_ns = clock_now_ns() + lease_s * CLOCK_SECOND_NS * 3 / 2;
		}
		sim_run(CLOCK_SECOND_NS);
	}
}

int main(int argc, char **argv)
{
	struct rlimit files = { .rlim_cur = 0 };
	char problem[PROBLEM_SIZE], policy[FLEET_VALUE], *text;
	struct sim_host *control;
	struct phase phase;
	pthread_t thread;
	uint64_t seconds;

	if (argc < 7) {
		fprintf(stderr, "usage: fleet ADDRESS HOSTS QUOTAS LEASE SECONDS PID-OF-ETCD...\n");
		return 2;
	}
	host_count = (unsigned)atoi(argv[2]);
	quota_count = (unsigned)atoi(argv[3]);
	lease_s = (uint64_t)atoi(argv[4]);
	seconds = (uint64_t)atoi(argv[5]);
	etcds = argv + 6;
	quota_amount = (uint64_t)QUOTA_PER_HOST * host_count;
	fleet_settings_init(&settings);
	snprintf(policy, sizeof(policy), "%s/bench", argv[1]);
	fleet_setting_set(&settings, "policy", policy);
	fleet_setting_set(&settings, "host", "bench");
	if (host_count < 1 || quota_count > QUOTAS_MOST || fleet_settings_finish(&settings, problem) < 0) {
		fprintf(stderr, "fleet: invalid argument\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	srandom(1);
	text = key64("all/policy");
	snprintf(key_policy, sizeof(key_policy), "%s", text);
	free(text);
	polling = epoll_create1(EPOLL_CLOEXEC);
	hosts = memory_need(calloc(host_count + 1, sizeof(*hosts)));
	for (unsigned i = 0; i <= host_count; i++) {
		hosts[i].number = i;
		hosts[i].watch.fd = -1;
		hosts[i].watch.host = &hosts[i];
		hosts[i].watch.is_watch = true;
		for (unsigned j = 0; j < quota_count; j++)
			hosts[i].share[j].demand = (uint64_t)random() % (2 * QUOTA_PER_HOST);
	}
	control = &hosts[host_count];
	printf("%u hosts, %u quotas, a lease of %llu s\n", host_count, quota_count, (unsigned long long)lease_s);

	phase_begin(&phase, "join");
	policy_put(control);
	while (online < host_count && clock_now_ns() - phase.began_ns < 600 * (uint64_t)CLOCK_SECOND_NS)
		sim_run(100 * MS_NS);
	phase_end(&phase);
	samples_print("calls", &calls);
	arrivals.count = 0;

	keeps.count = 0;
	leases_lost = 0;
	phase_begin(&phase, "quiet");
	sim_run(seconds * CLOCK_SECOND_NS / 2);
	phase_end(&phase);
	printf("heartbeats: %.0f a second, %llu leases lost, %llu failures\n",
	       (double)keeps.count / ((double)seconds / 2), (unsigned long long)leases_lost,
	       (unsigned long long)failures);
	samples_print("heartbeats", &keeps);

	phase_limits(control);

	if (quota_count) {
		divider.etcd = etcd_open(&settings, &bench_log);
		quotas_put(quota_amount);
		divider.divides = true;
		leases_lost = 0;
		pthread_create(&thread, NULL, divider_live, NULL);
		phase_begin(&phase, "division");
		while ((hosts_divided() < host_count * 99 / 100 || !divider.rounds) &&
		       clock_now_ns() - phase.began_ns < 300 * (uint64_t)CLOCK_SECOND_NS)
			sim_run(100 * MS_NS);
		phase_end(&phase);
		printf("hosts with what they shall have: %u\n", hosts_divided());
		rounds_print();

		phase_begin(&phase, "churn");
		calls.count = keeps.count = 0;
		churn(seconds);
		phase_end(&phase);
		rounds_print();
		samples_print("calls", &calls);
		samples_print("heartbeats", &keeps);
		printf("leases lost without being cut off: %llu\n", (unsigned long long)leases_lost);
		divider.ends = true;
		pthread_join(thread, NULL);
		printf("in force at most %llu of %llu, %llu times too much\n", (unsigned long long)allowed_most,
		       (unsigned long long)quota_amount, (unsigned long long)violations);
	}
	return violations > 0;
}
