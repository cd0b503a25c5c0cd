/* SPDX-License-Identifier: MIT */
/*
 * Connections that a client does not use as intended: it is silent or slow, hands over descriptors,
 * or subscribes and does not read. One user has only a share of the collector's descriptors and
 * memory, and the time for a request is the same for all.
 */
#include "attack.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void silence(unsigned number)
{
	enum { SILENT = 512 };

	for (unsigned i = 0; i < SILENT; i++)
		dial();
	ready();
	rest();
}

static bool has_ended(int fd)
{
	char byte;

	return recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}


/*
 * Neither a request that comes byte by byte nor a newcomer moves the deadline of a connection. The
 * reference came later and sends nothing, so the collector must have dropped the slow requests
 * when it drops the reference. This compares the order of events, not times.
 */
static void trickle(unsigned number)
{
	enum { TRICKLES = 64, PAUSE_US = 200000, NEWCOMERS_MOST = 200 };
	struct letter whole = letter(MESSAGE_EXPLAIN, &(struct proto_ask){ .pid = 1 });
	double begun = seconds_now();
	int fd[TRICKLES], reference, newcomer = -1;
	unsigned newcomers = 0, left = 0;
	size_t sent = 0;

	for (int i = 0; i < TRICKLES; i++)
		fd[i] = dial();
	reference = dial();
	ready();
	while (!has_ended(reference) && newcomers++ < NEWCOMERS_MOST) {
		close(newcomer);
		newcomer = dial();
		for (int i = 0; i < TRICKLES && sent + 1 < whole.header.length; i++)
			put(fd[i], (char *)&whole + sent, 1);
		sent++;
		usleep(PAUSE_US);
	}
	CHECK(has_ended(reference), "newcomers move the deadline of a silent connection");
	for (int i = 0; i < TRICKLES; i++)
		left += !has_ended(fd[i]);
	CHECK(left == 0, "%u slow requests outlive a silent connection", left);
	if (number == 0)
		printf("slow requests were dropped after %.1f s (2 to 4 s expected)\n",
		       seconds_now() - begun);
	rest();
}

/* Sends descriptors with whole requests and with parts of requests. */
static void gifts(unsigned number)
{
	enum { GIFTS = 64 };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(GIFTS * sizeof(int))];
	} control = { 0 };
	struct letter whole = letter(MESSAGE_STATUS, NULL);
	int gift = memfd_create("gift", MFD_CLOEXEC);

	ready();
	for (unsigned i = 0; going(); i++) {
		struct iovec part = { &whole, i % 3 == 0 ? sizeof(whole.header) : 1 + i % 24 };
		struct msghdr message = { .msg_iov = &part,
					  .msg_iovlen = 1,
					  .msg_control = &control,
					  .msg_controllen = sizeof(control) };
		int fd = dial();

		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(GIFTS * sizeof(int));
		for (int j = 0; j < GIFTS; j++)
			memcpy(CMSG_DATA(&control.header) + (size_t)j * sizeof(gift), &gift,
			       sizeof(gift));
		sendmsg(fd, &message, MSG_NOSIGNAL);
		if (i % 3 == 0)
			CHECK(hear(fd) == 0);
		close(fd);
	}
}

/* Half of the subscribers read and half do not, while there are many events. */
static void subscribers(unsigned number)
{
	enum { SUBSCRIBED = 256 };
	/* The past events of all processes are more than the collector keeps for one subscriber. */
	struct proto_choose choose = { .flags = CHOOSE_FOLLOW, .pid = getpid() };
	struct member member;
	struct proto_grow_request need;
	struct pollfd fd[SUBSCRIBED];
	char text[65536];

	if (!CHECK(join(&member)))
		return;
	for (int i = 0; i < SUBSCRIBED; i++) {
		fd[i] = (struct pollfd){ .fd = dial(), .events = i % 2 ? POLLIN : 0 };
		tell(fd[i].fd, MESSAGE_EVENTS, &choose);
	}
	ready();
	need = want(&member, KIND_qp, QUOTA + 1);
	while (going()) {
		if (number % 2)
			ask(&need);
		poll(fd, SUBSCRIBED, 0);
		for (int i = 1; i < SUBSCRIBED; i += 2)
			if (fd[i].revents && recv(fd[i].fd, text, sizeof(text), MSG_DONTWAIT) == 0)
				fd[i].fd = -1;
	}
}

/* Name, promise, processes, rounds, turns, slowdown, and what runs. */
static const struct attack attacks[] = {
	{ "silence", "8,192 connections cost no more than the share of one user", 16,
	  100, 1, 50, silence, stage_is_bounded_now, NULL },
	{ "trickle", "the time for a request is the same for all", 2,
	  100, 1, 50, trickle, NULL, NULL },
	{ "gifts", "the collector does not keep descriptors that it is sent", 4,
	  200, 200, 50, gifts, stage_is_bounded, NULL },
	{ "subscribers", "4,096 subscribers cost no more than the share of one user", 16,
	  100, 20, 50, subscribers, stage_is_bounded, NULL },
};

static void driver(void)
{
	attacks_run(attacks, COUNT_OF(attacks));
	stage_close();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
