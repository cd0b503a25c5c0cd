/* SPDX-License-Identifier: MIT */
/* The tenant of processes that no rule names: guarantees and checks count it, too. */
#ifndef POLICY_GUARANTEES_H
#define POLICY_GUARANTEES_H

#define TENANT_OTHERS "default" /* a policy may name it, too */

#endif
