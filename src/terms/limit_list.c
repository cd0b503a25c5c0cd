/* SPDX-License-Identifier: MIT */
/* Reading a list of limits; see limit_list.h. */
#include "terms/limit_list.h"

#include <errno.h>
#include <string.h>

#include "terms/size.h"

static bool word_take(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*at, word, length))
		return false;
	*at += length;
	return true;
}

/* Takes "device:NAME:" or "port:NAME/PORT:", if that is there; *ret_mistake tells what is wrong. */
static bool device_take(struct limit_list *list, enum limit_mistake *ret_mistake)
{
	const char *name = list->at, *end, *slash, *behind;
	bool of_port = word_take(&name, "port:");
	uint64_t port = 0;

	if (!of_port && !word_take(&name, "device:"))
		return false;
	end = name + strcspn(name, ":;");
	behind = end + 1;
	if (*end != ':')
		return false;
	if (of_port) {
		slash = memchr(name, '/', (size_t)(end - name));
		if (!slash)
			return false;
		if (size_parse(slash + 1, (size_t)(end - slash - 1), 1, false, &port) < 0 ||
		    port < 1 || port > PORTS_COUNTED) {
			*ret_mistake = LIMIT_PORT;
			return false;
		}
		end = slash;
	}
	if (end == name || end - name >= NAME_SIZE)
		return false;
	list->device = name;
	list->device_length = (size_t)(end - name);
	list->port = (unsigned)port;
	list->at = behind;
	return true;
}

static int limit_wrong(struct limit_list *list, enum limit_mistake mistake)
{
	list->mistake = mistake;
	return -EINVAL;
}

/* Whether a word stands before a colon: no kind and no value has one. */
static bool scope_is_meant(const char *text)
{
	return text[strcspn(text, ":,;")] == ':';
}

static int part_begin(struct limit_list *list)
{
	enum limit_mistake mistake = LIMIT_SCOPE;

	list->device = NULL;
	list->device_length = 0;
	list->port = 0;
	if (word_take(&list->at, "process:"))
		list->scope = SCOPE_PROCESS;
	else if (word_take(&list->at, "host:"))
		list->scope = SCOPE_HOST;
	else if (device_take(list, &mistake))
		list->scope = SCOPE_DEVICE;
	else if (list->typed && !scope_is_meant(list->at))
		list->scope = SCOPE_PROCESS;
	else
		return limit_wrong(list, mistake);
	return 0;
}

int limit_list_next(struct limit_list *list, struct limit_item *ret_item)
{
	bool first = !list->inside;
	const char *end, *equals;
	uint64_t amount;
	int kind;

	if (first && !*list->at)
		return 0;
	if (first && part_begin(list) < 0)
		return -EINVAL;
	end = list->at + strcspn(list->at, ",;");
	equals = memchr(list->at, '=', (size_t)(end - list->at));
	if (!equals)
		return limit_wrong(list, LIMIT_FORM);
	kind = kind_find(list->at, (size_t)(equals - list->at));
	if (kind < 0)
		return limit_wrong(list, LIMIT_KIND);
	if (kind_amount_parse((enum kind)kind, equals + 1, (size_t)(end - equals - 1), &amount) < 0)
		return limit_wrong(list, LIMIT_VALUE);
	if (list->port)
		kind = kind_on_port((enum kind)kind, list->port);
	if (kind < 0)
		return limit_wrong(list, LIMIT_ON_PORT);
	*ret_item = (struct limit_item){
		.scope = list->scope,
		.device = list->device,
		.device_length = list->device_length,
		.port = list->port,
		.first = first,
		.kind = (enum kind)kind,
		.amount = amount,
		.text = list->at,
		.length = (size_t)(end - list->at),
	};
	list->inside = *end == ',';
	list->at = *end ? end + 1 : end;
	if (list->typed && !list->inside)
		list->at += strspn(list->at, ";");
	return 1;
}
