/* SPDX-License-Identifier: MIT */
/*
 * The service classes of a tenant: what reaches the real verbs in address vectors, by the lease and
 * over the socket, that the program's own structures stay as they are, and which class queue pairs
 * are shown to carry. Changes count from the next call on; bad values change nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector.h"
#include "fakeverbs.h"
#include "member.h"

#define SETTINGS "QUIET=1\nLOG_LEVEL=DEBUG"

enum { AV = IBV_QP_STATE | IBV_QP_AV };

static struct ibv_ah_attr address_asked(unsigned class, unsigned level, bool is_global)
{
	return (struct ibv_ah_attr){ .grh.traffic_class = (uint8_t)class, .sl = (uint8_t)level,
				     .is_global = is_global, .port_num = 1, .dlid = 7 };
}

/* Whether an address has these, and is otherwise the one that was asked for. */
static bool address_is(const struct ibv_ah_attr *address, struct ibv_ah_attr asked, unsigned class,
		       unsigned level)
{
	asked.grh.traffic_class = (uint8_t)class;
	asked.sl = (uint8_t)level;
	return CHECK(!memcmp(address, &asked, sizeof(asked)), "class 0x%02x level %u",
		     address->grh.traffic_class, address->sl);
}

/* "ASKED ASKED-LEVEL CLASS LEVEL": what is asked for becomes that. */
static void becomes(const char *argument)
{
	struct fixture fixture = member_fixture();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);
	unsigned asked, asked_level, class, level;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR }, before;
	struct ibv_ah_attr address, kept;
	struct ibv_wc wc = { .src_qp = 1 };
	struct ibv_ah *ah;

	CHECK(sscanf(argument, "%x %u %x %u", &asked, &asked_level, &class, &level) == 4);
	wc.sl = (uint8_t)asked_level;
	attr.ah_attr = attr.alt_ah_attr = kept = address =
		address_asked(asked, asked_level, true);
	before = attr;
	errno = 77;
	CHECK(ibv_modify_qp(qp, &attr, AV | IBV_QP_ALT_PATH) == 0 && errno == 77);
	CHECK(!memcmp(&attr, &before, sizeof(attr)), "the program's own structure was changed");
	address_is(fake_address(0), address, class, level);
	address_is(fake_address(1), address, class, level);
	ah = ibv_create_ah(fixture.pd, &address);
	CHECK(ah && !memcmp(&address, &kept, sizeof(address)));
	address_is(fake_address(0), address, class, level);
	ibv_destroy_ah(ah);
	/* Without a global header there is no traffic class. */
	attr.ah_attr = address_asked(asked, asked_level, false);
	CHECK(ibv_modify_qp(qp, &attr, AV) == 0);
	address_is(fake_address(0), attr.ah_attr, asked, level);
	ah = ibv_create_ah_from_wc(fixture.pd, &wc, NULL, 1);
	CHECK(ah && fake_address(0)->sl == level, "level %u", fake_address(0)->sl);
	ibv_destroy_ah(ah);
	/* A call without an address has nothing of it. */
	attr.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	CHECK(ibv_destroy_qp(qp) == 0);
	fixture_close(&fixture);
}

/* A forked child whose first verb it is. */
static void inherits(const char *argument)
{
	struct fixture fixture = member_fixture();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .ah_attr = address_asked(0, 0, true) };
	pid_t child = fork_child();
	int status = -1;

	if (child == 0)
		_exit(ibv_modify_qp(qp, &attr, AV) || fake_address(0)->grh.traffic_class != 0x20);
	waitpid(child, &status, 0);
	CHECK(status == 0, "status %d", status);
	CHECK(ibv_destroy_qp(qp) == 0);
	fixture_close(&fixture);
}

struct carried {
	unsigned rows;
	struct class_gauges classes;
};

static int carried_note(const void *row, void *closure)
{
	const struct proto_details *details = row;
	struct carried *carried = closure;

	if (details->device[0]) {
		carried->rows++;
		carried->classes = details->classes;
	}
	return 0;
}

/* How many QPs of a process carry a class and a level. */
static bool carries(pid_t pid, unsigned class, uint64_t count, unsigned level, uint64_t others)
{
	struct proto_choose choose = { .pid = pid };
	struct carried carried = { 0 };
	char problem[PROBLEM_SIZE];

	CHECK(proto_rows(collector_socket(), MESSAGE_GET_DETAILS, &choose, carried_note, &carried,
			 COLLECTOR_PATIENCE_MS, problem) >= 0, "%s", problem);
	return CHECK(carried.rows == 1 && carried.classes.traffic_class[class / 4] == count &&
			     carried.classes.service_level[level] == others,
		     "%u rows, %lu QPs of class 0x%02x, %lu of level %u", carried.rows,
		     (unsigned long)carried.classes.traffic_class[class / 4], class,
		     (unsigned long)carried.classes.service_level[level], level);
}

/* Three QPs: of the first class, of a later one, and one that goes back to RESET. */
static void shows(const char *argument)
{
	struct fixture fixture = member_fixture();
	struct ibv_qp *qp[3];
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .ah_attr = address_asked(0, 0, true) };

	for (unsigned i = 0; i < 3; i++) {
		qp[i] = qp_make(&fixture, IBV_QPT_RC);
		CHECK(ibv_modify_qp(qp[i], &attr, AV) == 0);
	}
	word_store(WORD_READY, 1);
	word_await(WORD_GO, 1);
	CHECK(ibv_modify_qp(qp[1], &attr, AV) == 0);
	attr.qp_state = IBV_QPS_RESET;
	CHECK(ibv_modify_qp(qp[2], &attr, IBV_QP_STATE) == 0);
	word_store(WORD_READY, 2);
	word_await(WORD_GO, 2);
	for (unsigned i = 0; i < 3; i++)
		CHECK(ibv_destroy_qp(qp[i]) == 0);
	word_store(WORD_READY, 3);
	word_await(WORD_GO, 3);
	fixture_close(&fixture);
}

static void applied_run(const char *settings)
{
	log_clear();
	spawn("becomes:00 0 20 1", settings);
	CHECK(strstr(log_text(), "ibv_modify_qp: traffic class 0x20, and not 0x00 as the program "
				 "asked, by the policy of tenant default"), "%s", log_text());
	CHECK(strstr(log_text(), "ibv_create_ah: service level 1, and not 0 as"), "%s", log_text());
	spawn("inherits", settings);
	log_clear();
	spawn("becomes:20 1 20 1", settings);
	CHECK(!strstr(log_text(), "ibv_modify_qp: "), "%s", log_text());
	CHECK(collector_set("default", "traffic_class = 0x40-0x5f\nservice_level = 2-3") == 0);
	spawn("becomes:48 3 48 3", settings);
	spawn("becomes:5f 2 5f 2", settings);
	spawn("becomes:60 1 40 2", settings);
	spawn("becomes:3f 4 40 2", settings);
	CHECK(collector_set("default", "traffic_class = keep\nservice_level = 0") == 0);
	spawn("becomes:3f 4 3f 0", settings);
	/* Who is only watched sends as it likes. */
	CHECK(collector_set("default", "mode = warn") == 0);
	spawn("becomes:3f 4 3f 4", settings);
	CHECK(collector_set("default", "mode = unset\ntraffic_class = unset\n"
				       "service_level = unset") == 0);
}

static void applied(void)
{
	collector_fresh("[default]\ntraffic_class = 0x20\nservice_level = 1\n", "");
	applied_run(SETTINGS "\nTRANSPORT=lease");
	applied_run(SETTINGS "\nTRANSPORT=socket");
	collector_stop();
	/* Without a collector there is no policy. */
	spawn("becomes:3f 4 3f 4", SETTINGS);
}

static void shown(void)
{
	pid_t pid;

	collector_fresh("[default]\ntraffic_class = 0x20\n", "");
	words_clear();
	pid = spawn_start("shows", SETTINGS "\nTRANSPORT=lease");
	word_await(WORD_READY, 1);
	carries(pid, 0x20, 3, 0, 3);
	CHECK(collector_set("default", "traffic_class = 0x40\nservice_level = 5") == 0);
	word_store(WORD_GO, 1);
	word_await(WORD_READY, 2);
	carries(pid, 0x20, 1, 0, 1);
	carries(pid, 0x40, 1, 5, 1);
	word_store(WORD_GO, 2);
	word_await(WORD_READY, 3);
	carries(pid, 0x20, 0, 0, 0);
	carries(pid, 0x40, 0, 5, 0);
	word_store(WORD_GO, 3);
	CHECK(spawn_wait(pid) == 0);
	collector_stop();
}

static void bad_values(void)
{
	static const char *const lines[] = {
		"traffic_class = 256", "traffic_class = 0x100",	   "traffic_class = -1",
		"traffic_class = 0x", "traffic_class = 0x40-0x20", "traffic_class = 0x20-",
		"traffic_class = high", "service_level = 16",	   "service_level = 1 2",
		"service_level = 3-16", "traffic_class = 20-0x1000", "service_level =  ",
	};

	collector_fresh("[default]\ntraffic_class = 0x20\nservice_level = 1\n", "");
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		CHECK(collector_set("default", lines[i]) < 0, "%s", lines[i]);
	collector_policy("[default]\ntraffic_class = 0x30\n[tenant a]\ntraffic_class = gold\n");
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) < 0);
	CHECK(strstr(collector_log(), "policy.conf:4: traffic_class: invalid value 'gold': expected "
				      "keep, a number from 0 to 0xff, or a range such as 0x20-0x3f"),
	      "%s", collector_log());
	spawn("becomes:00 0 20 1", SETTINGS);
	collector_stop();
}

static void drive(void)
{
	RUN(applied);
	RUN(shown);
	RUN(bad_values);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "becomes", becomes },
		{ "inherits", inherits },
		{ "shows", shows },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
