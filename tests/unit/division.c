/* SPDX-License-Identifier: MIT */
/* The division of a fleet's quota: examples, and a fleet of hosts that come, go, lie idle and confirm. */
#include "fleet/division.h"
#include "fleet/edit.h"
#include "fleet/records.h"

#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum { HOSTS = 24, ROUNDS = 20000 };

static void rounds(struct division *division, struct division_host *hosts, size_t count)
{
	for (unsigned i = 0; i < 8; i++) {
		division_round(division, hosts, count);
		for (size_t j = 0; j < count; j++)
			hosts[j].confirmed = hosts[j].alive;
	}
}

static void evenly(void)
{
	struct division division = { .quota = 31, .guarantee = 2, .free = 31 };
	struct division_host hosts[3] = { { .alive = true }, { .alive = true }, { .alive = true } };

	rounds(&division, hosts, 3);
	CHECK(hosts[0].record.target + hosts[1].record.target + hosts[2].record.target == 31);
	CHECK(hosts[0].record.target >= 10 && hosts[0].record.target <= 11);
	CHECK(hosts[2].record.floor == 2 && hosts[2].record.kept == 2);
	CHECK(division.free == 0);
}

static void by_demand(void)
{
	struct division division = { .quota = 100, .guarantee = 5, .free = 100 };
	struct division_host hosts[3] = { { .alive = true }, { .alive = true }, { .alive = true } };
	struct fleet_record before;

	rounds(&division, hosts, 3);
	hosts[0].demand = 200;
	rounds(&division, hosts, 3);
	CHECK(hosts[0].record.target >= 85);
	CHECK(hosts[1].record.target >= 5 && hosts[2].record.target >= 5);
	hosts[1].demand = 200;
	rounds(&division, hosts, 3);
	/* Small differences are left as they are. */
	CHECK(hosts[0].record.target >= 44 && hosts[0].record.target <= 50);
	CHECK(hosts[1].record.target >= 44 && hosts[1].record.target <= 50);
	/* Nothing moves while all have what they want. */
	before = hosts[1].record;
	hosts[0].demand = hosts[1].demand = 10;
	rounds(&division, hosts, 3);
	CHECK(!memcmp(&before, &hosts[1].record, sizeof(before)));
}

/* Nothing is given to others before the host has confirmed, and what it holds stays on its account. */
static void confirmed_first(void)
{
	struct division division = { .quota = 100, .free = 100 };
	struct division_host hosts[2] = { { .alive = true, .demand = 90 }, { .alive = false } };

	rounds(&division, hosts, 1);
	CHECK(hosts[0].record.share == 100);
	hosts[1].alive = true;
	hosts[1].demand = 90;
	hosts[0].confirmed = false;
	division_round(&division, hosts, 2);
	CHECK(hosts[0].record.target == 50 && hosts[0].record.share == 100);
	CHECK(hosts[1].record.share == 0);
	division_round(&division, hosts, 2);
	CHECK(hosts[1].record.share == 0);
	hosts[0].confirmed = true;
	hosts[0].held = 70;
	division_round(&division, hosts, 2);
	CHECK(hosts[0].record.share == 70 && hosts[1].record.share == 30);
	hosts[0].held = 20;
	division_round(&division, hosts, 2);
	CHECK(hosts[0].record.share == 50 && hosts[1].record.share == 50);
}

static void cut_off(void)
{
	struct division division = { .quota = 100, .guarantee = 4, .free = 100 };
	struct division_host hosts[2] = { { .alive = true }, { .alive = true } };

	rounds(&division, hosts, 2);
	hosts[0] = (struct division_host){ .record = hosts[0].record, .held = 9 };
	division.keeps_lost = true;
	division_round(&division, hosts, 2);
	CHECK(hosts[0].record.share == 50);
	division.keeps_lost = false;
	division_round(&division, hosts, 2);
	CHECK(hosts[0].record.share == 9 && hosts[0].record.target == 4 && hosts[0].record.kept == 4);
	CHECK(hosts[0].record.share + hosts[1].record.share + (uint64_t)division.free == 100);
}

static void smaller_quota(void)
{
	struct division division = { .quota = 100, .free = 100 };
	struct division_host hosts[2] = { { .alive = true }, { .alive = true } };

	rounds(&division, hosts, 2);
	division.quota = 10;
	division.free -= 90;
	hosts[0].confirmed = hosts[1].confirmed = false;
	division_round(&division, hosts, 2);
	CHECK(division.free == -90 && hosts[0].record.target == 5 && hosts[1].record.target == 5);
	rounds(&division, hosts, 2);
	CHECK(division.free == 0 && hosts[0].record.share + hosts[1].record.share == 10);
}

/* Small changes are left out, but not those that the quota needs. */
static void slightly_smaller_quota(void)
{
	struct division division = { .quota = 100, .free = 100 };
	struct division_host hosts[2] = { { .alive = true }, { .alive = true } };

	rounds(&division, hosts, 2);
	CHECK(hosts[0].record.target == 50);
	division.quota = 98;
	division.free -= 2;
	hosts[0].confirmed = hosts[1].confirmed = false;
	rounds(&division, hosts, 2);
	CHECK(hosts[0].record.target + hosts[1].record.target == 98);
	CHECK(division.free == 0 && hosts[0].record.share + hosts[1].record.share == 98);
}

/* What is in etcd becomes lines of a policy and limits: only what is in order is taken. */
static void records_read(void)
{
	static const char *const wrong_names[] = {
		"", "/qp", "ml", "ml/", "ml/nothing", "ml/qp/more", "a b/qp", "%j/qp", "x]\n[host/qp", "\033[m/qp",
		"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl/qp",
	};
	static const char *const wrong_records[] = {
		"", "[]", "{}", "null",
		"{\"share\":5,\"kept\":0,\"target\":6,\"floor\":0}",
		"{\"share\":5,\"kept\":6,\"target\":5,\"floor\":0}",
		"{\"share\":5,\"kept\":1,\"target\":5,\"floor\":2}",
		"{\"share\":5,\"kept\":-1,\"target\":5,\"floor\":-1}",
		"{\"share\":5.5,\"kept\":0,\"target\":5,\"floor\":0}",
		"{\"share\":99999999999999999999,\"kept\":0,\"target\":5,\"floor\":0}",
	};
	struct fleet_record record;
	struct fleet_quota quota;
	uint64_t amount;
	int64_t left;

	CHECK(fleet_quota_name_read("ml/qp", &quota) && !strcmp(quota.tenant, "ml"));
	for (size_t i = 0; i < sizeof(wrong_names) / sizeof(wrong_names[0]); i++)
		CHECK(!fleet_quota_name_read(wrong_names[i], &quota));
	CHECK(!fleet_quota_read("ml/qp", "{\"amount\":-1,\"guarantee\":0}", &quota));
	CHECK(fleet_record_read("{\"share\":5,\"kept\":2,\"target\":5,\"floor\":2}", &record) &&
	      record.target == 5);
	for (size_t i = 0; i < sizeof(wrong_records) / sizeof(wrong_records[0]); i++)
		CHECK(!fleet_record_read(wrong_records[i], &record));
	CHECK(!fleet_ledger_read("{\"quota\":-1,\"free\":0}", &amount, &left));
	CHECK(fleet_host_is_valid("host-1.example", 14) && !fleet_host_is_valid("a/b", 3));
	CHECK(!fleet_host_is_valid("", 0));
}

/* What a host enforces: of the last record that it has read. */
struct stand_in {
	struct fleet_record seen;
	uint64_t held;
};

static uint64_t allowed(const struct division_host *host, const struct stand_in *real)
{
	return host->alive ? real->seen.target : real->seen.floor;
}

/* Hosts read records late, confirm late, die and come back: the sum of what they allow themselves is never
 * above the quota. */
static void many_rounds(void)
{
	static struct division_host hosts[HOSTS];
	static struct stand_in real[HOSTS];
	struct division division = { .quota = 1000, .guarantee = 7, .free = 1000 };
	uint64_t shares, sum, most = 0;
	unsigned wrong = 0;

	srandom(1);
	for (unsigned i = 0; i < HOSTS; i++)
		hosts[i].alive = true;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned i = (unsigned)random() % HOSTS;

		switch (random() % 6) {
		case 0:
			hosts[i].alive = !hosts[i].alive;
			hosts[i].confirmed = false;
			/* Who comes back reads its record first. */
			if (hosts[i].alive)
				real[i].seen = hosts[i].record;
			break;
		case 1:
			hosts[i].demand = (uint64_t)random() % 300;
			break;
		case 2:
			real[i].held = (uint64_t)random() % (allowed(&hosts[i], &real[i]) + 1);
			break;
		case 3:
			if (hosts[i].alive)
				real[i].seen = hosts[i].record;
			break;
		default:
			hosts[i].confirmed = hosts[i].alive &&
					     !memcmp(&real[i].seen, &hosts[i].record,
						     sizeof(real[i].seen));
			hosts[i].held = real[i].held;
			break;
		}
		for (unsigned j = 0; j < HOSTS; j++)
			hosts[j].confirmed &= !memcmp(&real[j].seen, &hosts[j].record,
						      sizeof(real[j].seen));
		division_round(&division, hosts, HOSTS);
		shares = sum = 0;
		for (unsigned j = 0; j < HOSTS; j++) {
			const struct fleet_record *record = &hosts[j].record;

			shares += record->share;
			sum += allowed(&hosts[j], &real[j]);
			wrong += record->target > record->share || record->kept > record->share ||
				 record->floor > record->kept || record->floor > record->target;
		}
		most = sum > most ? sum : most;
		wrong += shares + (uint64_t)division.free != division.quota || division.free < 0 ||
			 sum > division.quota;
	}
	CHECK(wrong == 0);
	/* It is worth something: most of it is in use at times. */
	CHECK(most > 700);
}

static void text_edited(void)
{
	static const char text[] = "# ours\n[host]\nqp = 9\n\n[tenant  ml]\n# few\nqp = 1\nmr=2\n";
	char *edited = fleet_text_set(text, "tenant ml", "qp", "3");
	char signature[256];

	CHECK(!strcmp(edited, "# ours\n[host]\nqp = 9\n\n[tenant  ml]\n# few\nqp = 3\nmr=2\n"));
	free(edited);
	edited = fleet_text_set(text, "tenant ml", "mr", NULL);
	CHECK(!strcmp(edited, "# ours\n[host]\nqp = 9\n\n[tenant  ml]\n# few\nqp = 1\n"));
	free(edited);
	edited = fleet_text_set(text, "host", "cq", "4");
	CHECK(!strcmp(edited, "# ours\n[host]\ncq = 4\nqp = 9\n\n[tenant  ml]\n# few\nqp = 1\nmr=2\n"));
	free(edited);
	edited = fleet_text_set("", "tenant x", "qp", "1");
	CHECK(!strcmp(edited, "\n[tenant x]\nqp = 1\n"));
	free(edited);
	edited = fleet_text_sign(text, "me@here", "a thing");
	fleet_text_signature(edited, signature);
	CHECK(!strncmp(signature, "me@here at 2", 12) && strstr(signature, "Z: a thing"));
	CHECK(!strcmp(strchr(edited, '\n') + 1, text));
	free(edited);
	fleet_text_signature(text, signature);
	CHECK(!signature[0]);
}

static void driver(void)
{
	RUN(evenly);
	RUN(by_demand);
	RUN(confirmed_first);
	RUN(cut_off);
	RUN(smaller_quota);
	RUN(slightly_smaller_quota);
	RUN(records_read);
	RUN(many_rounds);
	RUN(text_edited);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
