/* SPDX-License-Identifier: MIT */
/* The ports of the host's RDMA devices, as the kernel tells them. */
#ifndef CLI_PORTS_H
#define CLI_PORTS_H

#include "output/page.h"

/* One line for each port, the devices sorted. */
void ports_show(struct page *page);

#endif
