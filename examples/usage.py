#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Print how much each tenant uses of one kind of resource, and of how much.

The same as usage.c, by librdma_intercept_client.so and ctypes; <rdma_intercept/client.h> describes
the functions. Usage: usage.py [KIND]
"""
import ctypes
import sys

TENANT = 1  # enum rdma_intercept_owner
USED, LIMIT = 0, 3  # enum rdma_intercept_number
UNLIMITED = 2**64 - 1
PROBLEM = 640

client = ctypes.CDLL("librdma_intercept_client.so.1")

# int (const struct rdma_intercept_row *row, void *closure)
ROW_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

client.rdma_intercept_kind_find.argtypes = [ctypes.c_char_p]
client.rdma_intercept_row_tenant.argtypes = [ctypes.c_void_p]
client.rdma_intercept_row_tenant.restype = ctypes.c_char_p
client.rdma_intercept_row_device.argtypes = [ctypes.c_void_p]
client.rdma_intercept_row_device.restype = ctypes.c_char_p
client.rdma_intercept_row_number.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_int]
client.rdma_intercept_row_number.restype = ctypes.c_uint64
client.rdma_intercept_read.argtypes = [
    ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ROW_FUNCTION, ctypes.c_void_p, ctypes.c_char_p,
]


def tenants_read(kind):
    """Return (tenant, used, limit) of each tenant in total; limit None: there is none."""
    rows = []

    def row_take(row, _closure):
        # A row is valid until this returns: take what is needed.
        if not client.rdma_intercept_row_device(row):
            limit = client.rdma_intercept_row_number(row, kind, LIMIT)
            rows.append((
                client.rdma_intercept_row_tenant(row).decode(),
                client.rdma_intercept_row_number(row, kind, USED),
                None if limit == UNLIMITED else limit,
            ))
        return 0

    problem = ctypes.create_string_buffer(PROBLEM)
    if client.rdma_intercept_read(None, TENANT, None, ROW_FUNCTION(row_take), None, problem) < 0:
        raise OSError(problem.value.decode())
    return rows


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "qp"
    kind = client.rdma_intercept_kind_find(name.encode())

    if kind < 0:
        print(f"usage: {name}: unknown kind: expected one such as qp or mr", file=sys.stderr)
        return 2
    try:
        for tenant, used, limit in tenants_read(kind):
            print(f"{tenant}: {used}" if limit is None else f"{tenant}: {used} of {limit}")
    except OSError as problem:
        print(f"usage: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
