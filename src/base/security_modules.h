/* SPDX-License-Identifier: MIT */
/* The kernel's list of security modules in force, "a,b,c", as the file lsm of securityfs has it. */
#ifndef BASE_SECURITY_MODULES_H
#define BASE_SECURITY_MODULES_H

#include <stdbool.h>
#include <stddef.h>

#define SECURITY_MODULES_MOUNT "/sys/kernel/security"
#define SECURITY_MODULES_NAME "lsm"

enum { SECURITY_MODULES_BOOT = 160 }; /* bytes of a boot parameter */

/* Whether bpf is among the modules of the list. If not, ret_boot is the boot parameter that adds
 * it: "lsm=a,b,c,bpf". */
bool security_modules_have_bpf(const char *list, char ret_boot[SECURITY_MODULES_BOOT]);

#endif
