/* SPDX-License-Identifier: MIT */
/*
 * Completion channels, completion queues and the events between them. A
 * channel is a pipe of CQ serial numbers, so that poll(2), O_NONBLOCK and
 * blocking readers behave as with the kernel's file; a serial whose CQ is
 * gone is skipped. Also hands connection-manager events to rdmacm.c's pipes.
 */
#include <fcntl.h>
#include <unistd.h>

#include "fake_internal.h"

_Static_assert(offsetof(struct ibv_cq, comp_events_completed) ==
		       offsetof(struct ibv_cq_ex, comp_events_completed),
	       "struct ibv_cq must be the head of struct ibv_cq_ex");

static _Atomic uint64_t last_serial;

uint64_t fake_serial(void)
{
	return atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	ENTER_NEW(ibv_create_comp_channel);
	struct fake_channel *fake;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return NULL;
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	fake = fake_object_new(context, FAKE_comp_channel, sizeof(*fake), USES(NULL));
	if (!fake) {
		close(fds[0]);
		close(fds[1]);
		return NULL;
	}
	fake->channel.context = context;
	fake->channel.fd = fds[0];
	fake->write_fd = fds[1];
	return &fake->channel;
}

void fake_channel_close(struct fake_channel *channel)
{
	close(channel->channel.fd);
	close(channel->write_fd);
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	ENTER_ERRNO(ibv_destroy_comp_channel);
	struct fake_channel copy = *(struct fake_channel *)channel;
	int err = fake_object_destroy(channel, FAKE_comp_channel);

	if (!err)
		fake_channel_close(&copy);
	return err;
}

static int wc_none(struct ibv_cq_ex *cq)
{
	return ENOENT;
}

static int wc_start(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	return ENOENT;
}

static void wc_end(struct ibv_cq_ex *cq)
{
}

struct fake_cq *fake_cq_new(struct fake_verdict verdict, struct ibv_context *context,
			    const struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_pd *domain =
		attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? attr->parent_domain : NULL;
	struct fake_cq *fake;

	if ((int)attr->cqe < 1 || (int)attr->comp_vector < 0 ||
	    (int)attr->comp_vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	fake = fake_object_new(context, FAKE_cq, sizeof(*fake), USES(attr->channel, domain));
	if (!fake)
		return NULL;
	fake->cq.context = context;
	fake->cq.channel = attr->channel;
	fake->cq.cq_context = attr->cq_context;
	fake->cq.handle = fake_header(fake)->handle;
	fake->cq.cqe = (int)fake_depth(verdict, attr->cqe);
	fake->ex.start_poll = wc_start;
	fake->ex.next_poll = wc_none;
	fake->ex.end_poll = wc_end;
	pthread_mutex_init(&fake->cq.mutex, NULL);
	pthread_cond_init(&fake->cq.cond, NULL);
	if (attr->channel) {
		struct fake_channel *channel = (struct fake_channel *)attr->channel;
		struct fake_group *group = fake_header(fake)->group;

		fake->serial = fake_serial();
		pthread_mutex_lock(&group->mutex);
		fake->next_on_channel = channel->cqs;
		channel->cqs = fake;
		pthread_mutex_unlock(&group->mutex);
	}
	return fake;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	ENTER_NEW(ibv_create_cq);
	struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
	};
	struct fake_cq *fake = fake_cq_new(verdict, context, &attr);

	return fake ? &fake->cq : NULL;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	ENTER_ERRNO(ibv_resize_cq);
	fake_object_of(cq, FAKE_cq);
	if (cqe < 1)
		return EINVAL;
	cq->cqe = (int)fake_depth(verdict, (uint32_t)cqe);
	return 0;
}

static void leave_channel(struct fake_cq *fake)
{
	struct fake_channel *channel = (struct fake_channel *)fake->cq.channel;
	struct fake_cq **link;

	if (!channel)
		return;
	for (link = &channel->cqs; *link != fake; link = &(*link)->next_on_channel)
		;
	*link = fake->next_on_channel;
}

/* First the kernel's part, after which no event can be got; then wait for the acks. */
int ibv_destroy_cq(struct ibv_cq *cq)
{
	ENTER_ERRNO(ibv_destroy_cq);
	struct fake_object *header = fake_object_of(cq, FAKE_cq);
	struct fake_group *group = header->group;
	struct fake_cq *fake = (struct fake_cq *)cq;
	int err;

	pthread_mutex_lock(&group->mutex);
	err = fake_object_kill(header);
	if (!err)
		leave_channel(fake);
	pthread_mutex_unlock(&group->mutex);
	if (err)
		return err;

	pthread_mutex_lock(&cq->mutex);
	while (cq->comp_events_completed != fake->events_got)
		pthread_cond_wait(&cq->cond, &cq->mutex);
	pthread_mutex_unlock(&cq->mutex);
	pthread_cond_destroy(&cq->cond);
	pthread_mutex_destroy(&cq->mutex);

	pthread_mutex_lock(&group->mutex);
	fake_object_release(header);
	pthread_mutex_unlock(&group->mutex);
	return 0;
}

int fake_cq_event(struct ibv_cq *cq)
{
	struct fake_cq *fake = (struct fake_cq *)cq;

	fake_object_of(cq, FAKE_cq);
	if (!cq->channel) {
		errno = EINVAL;
		return -1;
	}
	if (write(((struct fake_channel *)cq->channel)->write_fd, &fake->serial,
		  sizeof(fake->serial)) != sizeof(fake->serial))
		return -1;
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	ENTER_CALL(ibv_get_cq_event);
	struct fake_channel *fake = (struct fake_channel *)channel;
	struct fake_group *group = fake_object_of(channel, FAKE_comp_channel)->group;
	struct fake_cq *found;
	uint64_t serial;

	do {
		if (read(channel->fd, &serial, sizeof(serial)) != sizeof(serial))
			return -1;
		pthread_mutex_lock(&group->mutex);
		for (found = fake->cqs; found; found = found->next_on_channel)
			if (found->serial == serial)
				break;
		if (found)
			found->events_got++;
		pthread_mutex_unlock(&group->mutex);
	} while (!found);
	*cq = &found->cq;
	*cq_context = found->cq.cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	ENTER_VOID(ibv_ack_cq_events);
	if (!nevents)
		return;
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	ENTER_CALL(ibv_get_async_event);
	uint64_t one;

	if (read(context->async_fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	event->event_type = IBV_EVENT_PORT_ACTIVE;
	event->element.port_num = 1;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	ENTER_VOID(ibv_ack_async_event);
}

int fake_cm_event(struct rdma_cm_id *id, int event)
{
	struct fake_cm_id *fake = (struct fake_cm_id *)id;
	struct fake_cm_message message = { .serial = fake->serial, .event = event };
	struct fake_cm_channel *channel = (struct fake_cm_channel *)id->channel;

	if (fake->magic != FAKE_MAGIC_ALIVE)
		fake_die("not a living rdma_cm_id", id);
	if (write(channel->write_fd, &message, sizeof(message)) != sizeof(message))
		return -1;
	return 0;
}
