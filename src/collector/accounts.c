/* SPDX-License-Identifier: MIT */
/* Names that are known, and those that a child is asked for; see accounts.h. */
#include "collector/accounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/collector.h"
#include "collector/helper.h"
#include "policy/accounts.h"

enum {
	ACCOUNT_NAME = 256,
	ACCOUNT_NOBODY = UINT32_MAX, /* no process has this number */
	PATIENCE_MS = 5000,	     /* for one name */
};

struct account_question {
	enum policy_account which;
	char name[ACCOUNT_NAME];
};

struct account_answer {
	int32_t result;
	uint32_t id;
};

_Static_assert(sizeof(struct account_question) <= HELPER_QUESTION, "room for a question");

struct account {
	struct account *next;
	struct account_question question;
	bool known;
	struct account_answer answer;
};

struct accounts {
	struct collector *collector;
	struct helper *helper;
	struct account *first;
	bool awaited;	 /* a name that was needed is not known yet */
	bool do_without; /* a group that cannot be looked up */
	bool busy;	 /* the child has questions */
};

/* ---- the child */

static void account_work(const void *question, void *ret_answer)
{
	const struct account_question *asked = question;
	struct account_answer *answer = ret_answer;

	answer->result = policy_account_ask(NULL, asked->which, asked->name, &answer->id);
}

static struct account *account_find(const struct accounts *accounts,
				    const struct account_question *question)
{
	struct account *account = accounts->first;

	while (account && (account->question.which != question->which ||
			   strcmp(account->question.name, question->name)))
		account = account->next;
	return account;
}

static void account_done(void *closure, const void *question, int result, const void *answer)
{
	struct account *account = account_find(closure, question);

	if (!account)
		return;
	account->known = true;
	account->answer.result = result;
	if (result == 0)
		memcpy(&account->answer, answer, sizeof(account->answer));
}

static void accounts_settled(void *closure)
{
	struct accounts *accounts = closure;

	accounts->busy = false;
	collector_names_known(accounts->collector);
}

static const struct helper_job accounts_job = {
	.question = sizeof(struct account_question),
	.answer = sizeof(struct account_answer),
	.patience_ms = PATIENCE_MS,
	.rest_fails = true, /* the policy is not read with one name less */
	.work = account_work,
	.done = account_done,
	.idle = accounts_settled,
};

/* ---- the names of a policy */

static int account_want(struct accounts *accounts, const struct account_question *question)
{
	struct account *account = calloc(1, sizeof(*account));
	int result = account ? helper_ask(accounts->helper, question) : -ENOMEM;

	if (result < 0) {
		free(account);
		return result;
	}
	account->question = *question;
	account->next = accounts->first;
	accounts->first = account;
	return 0;
}

static int account_answer_give(const struct accounts *accounts, const struct account *account,
			       uint32_t *ret_id)
{
	int result = account->answer.result;

	*ret_id = account->answer.id;
	if (result == 0 || !accounts->do_without || account->question.which != POLICY_GROUP)
		return result;
	log_write(&accounts->collector->log, LOG_WARN,
		  "group %s: it cannot be looked up (%s): until the next reload it has no members",
		  account->question.name, strerror(-result));
	*ret_id = ACCOUNT_NOBODY;
	return 0;
}

/* A name that the helper has not answered yet gets a placeholder. The collector discards a policy
 * with placeholders, and reads it again after the answer. */
static int account_number(void *closure, enum policy_account which, const char *name,
			  uint32_t *ret_id)
{
	struct account_question question = { .which = which };
	struct accounts *accounts = closure;
	struct account *account;

	if ((size_t)snprintf(question.name, sizeof(question.name), "%s", name) >=
	    sizeof(question.name))
		return -ENOENT;
	account = account_find(accounts, &question);
	if (account && account->known)
		return account_answer_give(accounts, account, ret_id);
	accounts->awaited = true;
	*ret_id = ACCOUNT_NOBODY;
	return account ? 0 : account_want(accounts, &question);
}

bool accounts_are_awaited(struct collector *collector)
{
	struct accounts *accounts = collector->accounts;
	bool awaited = accounts->awaited;

	accounts->awaited = false;
	if (!awaited)
		return false;
	accounts->busy = true;
	if (collector->server)
		helper_begin(accounts->helper);
	else
		helper_wait(accounts->helper);
	return true;
}

void accounts_forget(struct collector *collector)
{
	struct account **link = &collector->accounts->first, *account;

	if (collector->accounts->busy)
		return;
	while ((account = *link))
		if (account->known) {
			*link = account->next;
			free(account);
		} else {
			link = &account->next;
		}
}

void accounts_do_without(struct collector *collector, bool set)
{
	collector->accounts->do_without = set;
}

/* ---- open and closed */

int accounts_open(struct collector *collector)
{
	struct accounts *accounts = calloc(1, sizeof(*accounts));
	int result = accounts ? helper_new(&accounts->helper, collector->event, &accounts_job,
					   accounts) :
				-ENOMEM;

	if (result < 0) {
		free(accounts);
		return result;
	}
	accounts->collector = collector;
	collector->accounts = accounts;
	policy_accounts_by(account_number, accounts);
	return 0;
}

void accounts_close(struct collector *collector)
{
	struct accounts *accounts = collector->accounts;

	if (!accounts)
		return;
	policy_accounts_by(policy_account_ask, NULL);
	helper_free(accounts->helper);
	while (accounts->first) {
		struct account *account = accounts->first;

		accounts->first = account->next;
		free(account);
	}
	free(accounts);
	collector->accounts = NULL;
}
