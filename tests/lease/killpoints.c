/* SPDX-License-Identifier: MIT */
/*
 * SIGKILL after every instruction of a collector and its clients at work on leases. A victim is
 * stopped after N instructions, and there it is killed, or the other side is; what is left must
 * be exact. Tried are all instructions that change shared memory, those after system calls (of a
 * call in a loop, the first few), and a sample of the rest, where a kill leaves the same behind
 * as at the one before.
 */
#include "harness.h"
#include "sides.h"

static void driver(void)
{
	points_run(&daemon_side);
	points_run(&client_side);
	points_run(&outage_side);
	points_print();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
