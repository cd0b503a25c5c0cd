/* SPDX-License-Identifier: MIT */
/* Names of users and groups; see accounts.h. */
#include "policy/accounts.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>

static struct {
	policy_account_find *find;
	void *closure;
} accounts_by = { policy_account_ask, NULL };

int policy_account_ask(void *closure, enum policy_account which, const char *name, uint32_t *ret_id)
{
	const struct passwd *user = NULL;
	const struct group *group = NULL;

	errno = 0;
	if (which == POLICY_USER)
		user = getpwnam(name);
	else
		group = getgrnam(name);
	if (!user && !group)
		return !errno || errno == ESRCH ? -ENOENT : -errno;
	*ret_id = user ? user->pw_uid : group->gr_gid;
	return 0;
}

void policy_accounts_by(policy_account_find *find, void *closure)
{
	accounts_by.find = find;
	accounts_by.closure = closure;
}

int policy_account_number(enum policy_account which, const char *name, uint32_t *ret_id)
{
	return accounts_by.find(accounts_by.closure, which, name, ret_id);
}
