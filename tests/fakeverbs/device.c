/* SPDX-License-Identifier: MIT */
/*
 * Devices and contexts: the list, opening, importing, closing, and the
 * answers to queries. Two active RoCE ports each, rxe0 and up.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_internal.h"

#undef ibv_query_port

enum { MAX_DEVICES = 64, PORTS = 2, GIDS = 2 };

static struct ibv_device devices[MAX_DEVICES];
static pthread_once_t devices_once = PTHREAD_ONCE_INIT;

static void devices_init(void)
{
	for (int i = 0; i < MAX_DEVICES; i++) {
		struct ibv_device *d = &devices[i];

		d->node_type = IBV_NODE_CA;
		d->transport_type = IBV_TRANSPORT_IB;
		snprintf(d->name, sizeof(d->name), "rxe%d", i);
		snprintf(d->dev_name, sizeof(d->dev_name), "uverbs%d", i);
		snprintf(d->dev_path, sizeof(d->dev_path), "/sys/class/infiniband_verbs/uverbs%d",
			 i);
		snprintf(d->ibdev_path, sizeof(d->ibdev_path), "/sys/class/infiniband/rxe%d", i);
	}
}

static int device_count(void)
{
	const char *text = getenv("FAKEVERBS_DEVICES");
	int n = text ? atoi(text) : 2;

	return n < 0 ? 0 : n > MAX_DEVICES ? MAX_DEVICES : n;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	ENTER_NEW(ibv_get_device_list);
	int n = device_count();
	struct ibv_device **list = calloc(n + 1, sizeof(*list));

	if (!list)
		return NULL;
	pthread_once(&devices_once, devices_init);
	for (int i = 0; i < n; i++)
		list[i] = &devices[i];
	fake_live_add(FAKE_held_device, n);
	if (num_devices)
		*num_devices = n;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	ENTER_VOID(ibv_free_device_list);
	for (int i = 0; list && list[i]; i++) {
		if (list[i] < devices || list[i] >= devices + MAX_DEVICES)
			fake_die("a list with something that is no device", list[i]);
		fake_live_add(FAKE_held_device, -1);
	}
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	ENTER_NEW(ibv_get_device_name);
	return device->name;
}

static uint64_t device_guid(const struct ibv_device *device)
{
	return htobe64(0x0200c0fffe000000ull + (uint64_t)(device - devices));
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	ENTER_ERRNO(ibv_get_device_guid);
	return device_guid(device);
}

int ibv_get_device_index(struct ibv_device *device)
{
	ENTER_CALL(ibv_get_device_index);
	return (int)(device - devices);
}

static struct ibv_context *context_new(struct fake_group *group, int cmd_fd)
{
	struct fake_context *fake = calloc(1, sizeof(*fake));
	struct ibv_context *context;

	if (!fake)
		return NULL;
	fake->magic = FAKE_MAGIC_ALIVE;
	fake->group = group;
	fake_context_fill(&fake->verbs);
	context = &fake->verbs.context;
	context->device = group->device;
	context->cmd_fd = cmd_fd;
	/* Each unit written to it is one IBV_EVENT_PORT_ACTIVE. */
	context->async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	context->num_comp_vectors = 4;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&context->mutex, NULL);
	pthread_mutex_lock(&group->mutex);
	fake->next = group->open;
	group->open = fake;
	pthread_mutex_unlock(&group->mutex);
	return context;
}

struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data)
{
	ENTER_NEW(verbs_open_device);
	struct ibv_context *context;
	struct fake_group *group;
	struct stat st;
	int fd = memfd_create("fake-uverbs", MFD_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || !(group = fake_group_new(device, st.st_dev, st.st_ino)))
		goto close_fd;
	context = context_new(group, fd);
	if (context)
		return context;
	fake_group_put(group);
close_fd:
	close(fd);
	return NULL;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	ENTER_NEW(ibv_open_device);
	return verbs_open_device(device, NULL);
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	ENTER_NEW(ibv_import_device);
	struct ibv_context *context;
	struct fake_group *group;
	struct stat st;

	if (fstat(cmd_fd, &st))
		return NULL;
	group = fake_group_find(st.st_dev, st.st_ino);
	if (!group) {
		errno = EINVAL;
		return NULL;
	}
	context = context_new(group, cmd_fd);
	if (!context)
		fake_group_put(group);
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	ENTER_ERRNO(ibv_close_device);
	struct fake_context *fake = fake_context_of(context);
	struct fake_context **link = &fake->group->open;

	fake->magic = FAKE_MAGIC_DEAD;
	pthread_mutex_lock(&fake->group->mutex);
	while (*link != fake)
		link = &(*link)->next;
	*link = fake->next;
	pthread_mutex_unlock(&fake->group->mutex);
	fake_group_put(fake->group);
	close(context->async_fd);
	close(context->cmd_fd);
	pthread_mutex_destroy(&context->mutex);
	free(fake);
	return 0;
}

void fake_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){
		.fw_ver = "fake",
		.node_guid = device_guid(context->device),
		.sys_image_guid = device_guid(context->device),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = ~0xfffull,
		.vendor_id = 0xfa4e,
		.max_qp = 1 << 18,
		.max_qp_wr = 1 << 15,
		.device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_XRC | IBV_DEVICE_SRQ_RESIZE,
		.max_sge = 32,
		.max_sge_rd = 32,
		.max_cq = 1 << 18,
		.max_cqe = 1 << 22,
		.max_mr = 1 << 24,
		.max_pd = 1 << 20,
		.max_qp_rd_atom = 128,
		.max_res_rd_atom = 1 << 18,
		.max_qp_init_rd_atom = 128,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_mw = 1 << 24,
		.max_mcast_grp = 8192,
		.max_mcast_qp_attach = 56,
		.max_total_mcast_qp_attach = 8192 * 56,
		.max_ah = 1 << 20,
		.max_srq = 1 << 18,
		.max_srq_wr = 1 << 15,
		.max_srq_sge = 31,
		.max_pkeys = 1,
		.local_ca_ack_delay = 15,
		.phys_port_cnt = PORTS,
	};
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	ENTER_ERRNO(ibv_query_device);
	fake_query_device(context, attr);
	return 0;
}

int fake_query_port(uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	static const struct ibv_port_attr active = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_1024,
		.gid_tbl_len = GIDS,
		.port_cap_flags = IBV_PORT_CM_SUP,
		.max_msg_sz = 1u << 30,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = 2,
		.active_speed = 16,
		.phys_state = 5,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};

	if (port < 1 || port > PORTS)
		return EINVAL;
	memcpy(attr, &active, size < sizeof(active) ? size : sizeof(active));
	return 0;
}

/* The exported symbol takes the struct as it was before port_cap_flags2. */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	ENTER_ERRNO(ibv_query_port);
	return fake_query_port(port, (struct ibv_port_attr *)attr,
			       offsetof(struct ibv_port_attr, port_cap_flags2));
}

static int gid_entry(struct ibv_context *context, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *entry)
{
	if (port < 1 || port > PORTS || index >= GIDS)
		return EINVAL;
	*entry = (struct ibv_gid_entry){
		.gid_index = index,
		.port_num = port,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = 1,
	};
	if (index == 0) {
		entry->gid.global.subnet_prefix = htobe64(0xfe80ull << 48);
		entry->gid.global.interface_id = device_guid(context->device) ^ htobe64(port << 16);
	} else {
		uint32_t device = (uint32_t)(context->device - devices);

		entry->gid.global.interface_id =
			htobe64(0xffffull << 32 | (10u << 24 | device << 8 | port));
	}
	return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	ENTER_CALL(ibv_query_gid);
	struct ibv_gid_entry entry;
	int err = gid_entry(context, port, (uint32_t)index, &entry);

	if (err) {
		errno = err;
		return -1;
	}
	*gid = entry.gid;
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	ENTER_ERRNO(ibv_query_gid_ex);
	return gid_entry(context, port, index, entry);
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	ENTER_AS(ibv_query_gid_table, -verdict.value);
	size_t n = 0;

	for (uint32_t port = 1; port <= PORTS; port++)
		for (uint32_t index = 0; index < GIDS && n < max_entries; index++)
			gid_entry(context, port, index, &entries[n++]);
	return (ssize_t)n;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	ENTER_CALL(ibv_query_pkey);
	if (port < 1 || port > PORTS || index) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(0xffff);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	ENTER_CALL(ibv_get_pkey_index);
	return pkey == htobe16(0xffff) ? 0 : -1;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	ENTER_ERRNO(ibv_resolve_eth_l2_from_gid);
	memset(eth_mac, 2, ETHERNET_LL_SIZE);
	if (vid)
		*vid = 0xffff;
	return 0;
}
