/* SPDX-License-Identifier: MIT */
/* The state that requests share; see dashboard.h. */
#include "dashboard/dashboard.h"

void dashboard_prepare(struct dashboard *dashboard)
{
	pthread_mutex_init(&dashboard->lock, NULL);
	pthread_mutex_init(&dashboard->processes_lock, NULL);
	pthread_mutex_init(&dashboard->advice_lock, NULL);
	dashboard->sample = sample_make(dashboard->socket);
}

struct sample *dashboard_sample(struct dashboard *dashboard)
{
	struct sample *sample;

	pthread_mutex_lock(&dashboard->lock);
	sample = sample_hold(dashboard->sample);
	pthread_mutex_unlock(&dashboard->lock);
	return sample;
}

void dashboard_publish(struct dashboard *dashboard, struct sample *sample)
{
	struct sample *before;

	pthread_mutex_lock(&dashboard->lock);
	before = dashboard->sample;
	dashboard->sample = sample;
	pthread_mutex_unlock(&dashboard->lock);
	sample_release(before);
}
