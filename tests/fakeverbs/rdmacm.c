/* SPDX-License-Identifier: MIT */
/*
 * Stand-in librdmacm: ids, channels and their events. Nothing is sent
 * anywhere: connecting and resolving succeed at once and in silence, events
 * appear only when a test queues them with fake_cm_event().
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_internal.h"

struct cm_event {
	struct rdma_cm_event event;
	struct fake_cm_id *counted; /* whose rdma_destroy_id waits for the ack */
};

/* Guards the list and the event counts of all ids; acked: one of them changed. */
static pthread_mutex_t ids_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;
static struct fake_cm_id *ids;

/* ---- channels ---- */

static struct rdma_event_channel *channel_new(void)
{
	struct fake_cm_channel *fake = calloc(1, sizeof(*fake));
	int fds[2];

	if (!fake)
		return NULL;
	if (pipe2(fds, O_CLOEXEC)) {
		free(fake);
		return NULL;
	}
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	fake->channel.fd = fds[0];
	fake->write_fd = fds[1];
	return &fake->channel;
}

static void channel_free(struct rdma_event_channel *channel)
{
	struct fake_cm_channel *fake = (struct fake_cm_channel *)channel;

	close(channel->fd);
	close(fake->write_fd);
	free(fake);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	ENTER_NEW(rdma_create_event_channel);
	return channel_new();
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	ENTER_VOID(rdma_destroy_event_channel);
	channel_free(channel);
}

/* ---- ids ---- */

struct fake_cm_id *fake_cm_id_of(struct rdma_cm_id *id)
{
	struct fake_cm_id *fake = (struct fake_cm_id *)id;

	if (fake->magic != FAKE_MAGIC_ALIVE)
		fake_die("not a living rdma_cm_id", id);
	return fake;
}

struct fake_cm_id *fake_cm_id_new(struct rdma_event_channel *channel, void *context,
				  enum rdma_port_space ps)
{
	struct fake_cm_id *fake = calloc(1, sizeof(*fake));

	if (!fake)
		return NULL;
	fake->owns_channel = !channel;
	fake->id.channel = channel ? channel : channel_new();
	if (!fake->id.channel) {
		free(fake);
		return NULL;
	}
	fake->id.context = context;
	fake->id.ps = ps;
	fake->id.qp_type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
	fake->serial = fake_serial();
	fake->magic = FAKE_MAGIC_ALIVE;
	pthread_mutex_lock(&ids_mutex);
	fake->next = ids;
	if (ids)
		ids->prev = fake;
	ids = fake;
	pthread_mutex_unlock(&ids_mutex);
	fake_live_add(FAKE_cm_id, 1);
	return fake;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	ENTER_CALL(rdma_create_id);
	struct fake_cm_id *fake = fake_cm_id_new(channel, context, ps);

	if (!fake)
		return -1;
	*id = &fake->id;
	return 0;
}

/* Off the list no event can be got for it; then wait for the acks. */
int rdma_destroy_id(struct rdma_cm_id *id)
{
	ENTER_CALL(rdma_destroy_id);
	struct fake_cm_id *fake = fake_cm_id_of(id);

	if (id->event)
		rdma_ack_cm_event(id->event);
	pthread_mutex_lock(&ids_mutex);
	if (fake->prev)
		fake->prev->next = fake->next;
	else
		ids = fake->next;
	if (fake->next)
		fake->next->prev = fake->prev;
	while (fake->events_acked != fake->events_got)
		pthread_cond_wait(&acked, &ids_mutex);
	pthread_mutex_unlock(&ids_mutex);
	if (fake->owns_channel)
		channel_free(id->channel);
	fake->magic = FAKE_MAGIC_DEAD;
	free(fake);
	fake_live_add(FAKE_cm_id, -1);
	return 0;
}

/* Events that wait on the old channel stay there. */
int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	ENTER_CALL(rdma_migrate_id);
	struct fake_cm_id *fake = fake_cm_id_of(id);
	struct rdma_event_channel *own = fake->owns_channel ? id->channel : NULL;
	struct rdma_event_channel *next = channel ? channel : channel_new();

	if (!next)
		return -1;
	fake->owns_channel = !channel;
	id->channel = next;
	if (own)
		channel_free(own);
	return 0;
}

/* ---- events ---- */

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	ENTER_CALL(rdma_get_cm_event);
	struct fake_cm_message message;
	struct fake_cm_id *fake, *child;
	struct cm_event *got;

	do {
		if (read(channel->fd, &message, sizeof(message)) != sizeof(message))
			return -1;
		pthread_mutex_lock(&ids_mutex);
		for (fake = ids; fake; fake = fake->next)
			if (fake->serial == message.serial)
				break;
		if (fake)
			fake->events_got++;
		pthread_mutex_unlock(&ids_mutex);
	} while (!fake);

	got = calloc(1, sizeof(*got));
	if (!got)
		goto give_back;
	got->counted = fake;
	got->event.event = (enum rdma_cm_event_type)message.event;
	got->event.id = &fake->id;
	if (message.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		child = fake_cm_id_new(fake->owns_channel ? NULL : fake->id.channel,
				       fake->id.context, fake->id.ps);
		if (!child)
			goto give_back;
		got->event.listen_id = &fake->id;
		got->event.id = &child->id;
	}
	*event = &got->event;
	return 0;

give_back:
	free(got);
	pthread_mutex_lock(&ids_mutex);
	fake->events_got--;
	pthread_mutex_unlock(&ids_mutex);
	errno = ENOMEM;
	return -1;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	ENTER_CALL(rdma_ack_cm_event);
	struct cm_event *got = (struct cm_event *)event;

	pthread_mutex_lock(&ids_mutex);
	got->counted->events_acked++;
	pthread_cond_broadcast(&acked);
	pthread_mutex_unlock(&ids_mutex);
	free(got);
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
#define NAME(event) [RDMA_CM_EVENT_##event] = "RDMA_CM_EVENT_" #event
		NAME(ADDR_RESOLVED),	NAME(ADDR_ERROR),      NAME(ROUTE_RESOLVED),
		NAME(ROUTE_ERROR),	NAME(CONNECT_REQUEST), NAME(CONNECT_RESPONSE),
		NAME(CONNECT_ERROR),	NAME(UNREACHABLE),     NAME(REJECTED),
		NAME(ESTABLISHED),	NAME(DISCONNECTED),    NAME(DEVICE_REMOVAL),
		NAME(MULTICAST_JOIN),	NAME(MULTICAST_ERROR), NAME(ADDR_CHANGE),
		NAME(TIMEWAIT_EXIT),
#undef NAME
	};

	return (size_t)event < sizeof(names) / sizeof(names[0]) ? names[event] : "UNKNOWN EVENT";
}

/* ---- what always succeeds ---- */

#define SUCCEEDS(verb, ...)             \
	int verb(__VA_ARGS__)           \
	{                               \
		ENTER_CALL(verb);       \
		return 0;               \
	}

SUCCEEDS(rdma_bind_addr, struct rdma_cm_id *id, struct sockaddr *addr)
SUCCEEDS(rdma_listen, struct rdma_cm_id *id, int backlog)
SUCCEEDS(rdma_resolve_addr, struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
	 int timeout_ms)
SUCCEEDS(rdma_resolve_route, struct rdma_cm_id *id, int timeout_ms)
SUCCEEDS(rdma_connect, struct rdma_cm_id *id, struct rdma_conn_param *param)
SUCCEEDS(rdma_establish, struct rdma_cm_id *id)
SUCCEEDS(rdma_accept, struct rdma_cm_id *id, struct rdma_conn_param *param)
SUCCEEDS(rdma_reject, struct rdma_cm_id *id, const void *data, uint8_t len)
SUCCEEDS(rdma_reject_ece, struct rdma_cm_id *id, const void *data, uint8_t len)
SUCCEEDS(rdma_disconnect, struct rdma_cm_id *id)
SUCCEEDS(rdma_notify, struct rdma_cm_id *id, enum ibv_event_type event)
SUCCEEDS(rdma_set_option, struct rdma_cm_id *id, int level, int name, void *value, size_t len)
SUCCEEDS(rdma_join_multicast, struct rdma_cm_id *id, struct sockaddr *addr, void *context)
SUCCEEDS(rdma_leave_multicast, struct rdma_cm_id *id, struct sockaddr *addr)

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	ENTER_CALL(rdma_getaddrinfo);
	struct rdma_addrinfo *info = calloc(1, sizeof(*info));

	if (!info)
		return -1;
	info->ai_flags = hints ? hints->ai_flags : 0;
	info->ai_port_space = hints && hints->ai_port_space ? hints->ai_port_space : RDMA_PS_TCP;
	info->ai_qp_type = hints && hints->ai_qp_type ? hints->ai_qp_type : IBV_QPT_RC;
	*res = info;
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	ENTER_VOID(rdma_freeaddrinfo);
	free(res);
}
