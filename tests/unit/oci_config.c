/* SPDX-License-Identifier: MIT */
/* The library in the LD_PRELOAD of a container's configuration, and nothing else changed in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/oci_config.h"
#include "harness.h"

#define LIBRARY "/usr/lib/l.so"
#define MOUNT "\"mounts\":[{\"destination\":\"/dev\",\"options\":[\"a\",\"]\"]},{\"source\":\"/h\",\"destination\":\"" LIBRARY "\"}]"

/* What becomes of it: NULL if it stays. */
static void becomes(const char *config, const char *wanted)
{
	char *text = NULL;
	int result = oci_config_preload(config, LIBRARY, &text);

	CHECK(result == (wanted != NULL), "%s: %d", config, result);
	CHECK(wanted ? text && !strcmp(text, wanted) : !text, "%s: '%s', wanted '%s'", config,
	      text ? text : "", wanted ? wanted : "");
	free(text);
}

static void is_no_configuration(const char *config)
{
	char *text = NULL;

	CHECK(oci_config_preload(config, LIBRARY, &text) == -EINVAL && !text, "%s", config);
}

static void preload(void)
{
	becomes("{\"process\":{\"env\":[\"A=1\",\"B=\\\"\"]}," MOUNT "}",
		"{\"process\":{\"env\":[\"LD_PRELOAD=" LIBRARY "\",\"A=1\",\"B=\\\"\"]}," MOUNT "}");
	becomes("{" MOUNT ", \"process\": { \"args\" : [\"env\", {}], \"env\" : [ ] } }\n",
		"{" MOUNT ", \"process\": { \"args\" : [\"env\", {}], \"env\" : [\"LD_PRELOAD=" LIBRARY "\" ] } }\n");
	becomes("{\"process\":{\"cwd\":\"/\"}," MOUNT "}",
		"{\"process\":{\"env\":[\"LD_PRELOAD=" LIBRARY "\"],\"cwd\":\"/\"}," MOUNT "}");
	becomes("{\"process\":{}," MOUNT "}", "{\"process\":{\"env\":[\"LD_PRELOAD=" LIBRARY "\"]}," MOUNT "}");
	/* The user's stay, behind it. */
	becomes("{\"process\":{\"env\":[\"LD_PRELOAD=/a.so:/b\\u0026.so\",\"B=2\"]}," MOUNT "}",
		"{\"process\":{\"env\":[\"LD_PRELOAD=" LIBRARY ":/a.so:/b\\u0026.so\",\"B=2\"]}," MOUNT "}");
	becomes("{\"process\":{\"env\":[\"LD_PRELOAD=\"]}," MOUNT "}",
		"{\"process\":{\"env\":[\"LD_PRELOAD=" LIBRARY "\"]}," MOUNT "}");
	becomes("{\"process\":{\"env\":[\"LD_PRELOAD=/x" LIBRARY ":" LIBRARY ".2\"]}," MOUNT "}",
		"{\"process\":{\"env\":[\"LD_PRELOAD=" LIBRARY ":/x" LIBRARY ":" LIBRARY ".2\"]}," MOUNT "}");
	becomes("{\"process\":{\"env\":[\"LD_PRELOAD_X=1\",\"XLD_PRELOAD=2\"]}," MOUNT "}",
		"{\"process\":{\"env\":[\"LD_PRELOAD=" LIBRARY "\",\"LD_PRELOAD_X=1\",\"XLD_PRELOAD=2\"]}," MOUNT "}");
	/* A number that a JSON library would change or refuse. */
	becomes("{\"process\":{\"rlimits\":[{\"hard\":18446744073709551615}],\"env\":[\"LD_PRELOAD=/a\"]}," MOUNT "}",
		"{\"process\":{\"rlimits\":[{\"hard\":18446744073709551615}],\"env\":[\"LD_PRELOAD=" LIBRARY ":/a\"]}," MOUNT "}");
	/* "env" of another object is not the process's. */
	becomes("{\"hooks\":{\"prestart\":[{\"env\":[\"X=1\"]}]},\"process\":{\"a\":{\"env\":[]},\"env\":[\"A=1\"]}," MOUNT "}",
		"{\"hooks\":{\"prestart\":[{\"env\":[\"X=1\"]}]},\"process\":{\"a\":{\"env\":[]},\"env\":[\"LD_PRELOAD=" LIBRARY
		"\",\"A=1\"]}," MOUNT "}");
}

static void unchanged(void)
{
	becomes("{\"process\":{\"env\":[\"A=1\"]},\"mounts\":[{\"destination\":\"/dev\"}]}", NULL);
	becomes("{\"process\":{\"env\":[\"A=1\"]},\"mounts\":[]}", NULL);
	becomes("{\"process\":{\"env\":[\"A=1\"]},\"mounts\":null}", NULL);
	becomes("{\"process\":{\"env\":[\"A=1\"]}}", NULL);
	becomes("{\"process\":{\"env\":[\"A=1\"]},\"x\":{" MOUNT "}}", NULL);
	becomes("{\"process\":{\"env\":[\"LD_PRELOAD=/a:" LIBRARY "\"]}," MOUNT "}", NULL);
	becomes("{\"process\":{\"env\":[\"LD_PRELOAD=" LIBRARY " /a\"]}," MOUNT "}", NULL);
	becomes("{\"process\":{\"env\":null}," MOUNT "}", NULL);
	becomes("{\"process\":null," MOUNT "}", NULL);
	becomes("{" MOUNT "}", NULL);
	becomes("{}", NULL);
}

static void not_configurations(void)
{
	static const char *const texts[] = { "", " ", "[]", "null", "{", "{\"a\":\"", "{\"a\":\"\\", "{\"a\":[1,2}",
					     "{}x", "{} {}", "}", "\"a\"" };

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		is_no_configuration(texts[i]);
}

static void driver(void)
{
	RUN(preload);
	RUN(unchanged);
	RUN(not_configurations);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
