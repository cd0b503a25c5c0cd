/* SPDX-License-Identifier: MIT */
/* What containers find of us, and which file of the host says so. */
#ifndef CLI_CONTAINER_H
#define CLI_CONTAINER_H

#define CONTAINER_KIND "rdma_intercept/tenant"

/* In the container: the same for every host, so that images can be made ready for it. */
#define CONTAINER_LIBRARY "/usr/lib/librdma_intercept.so"
#define CONTAINER_SOCKETS "/run/rdma_intercept"

/* The device without a tenant of its own: the policy's match lines decide. */
#define CONTAINER_DEVICE "default"

#endif
