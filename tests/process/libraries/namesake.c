/* SPDX-License-Identifier: MIT */
/* A library with a function of its own that happens to be called as a verb. */
#define PUBLIC __attribute__((visibility("default")))

PUBLIC int ibv_reg_mr(void);
PUBLIC int ibv_reg_mr(void)
{
	return 4711;
}
