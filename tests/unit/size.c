/* SPDX-License-Identifier: MIT */
/* Numbers as people write them. */
#include <errno.h>
#include <string.h>

#include "base/size.h"
#include "harness.h"

static void driver(void)
{
	static const struct {
		const char *text;
		uint64_t unit;
		bool suffixes;
		int result;
		uint64_t value;
	} cases[] = {
		{ "0", 1, false, 0, 0 },
		{ "42", 1, false, 0, 42 },
		{ "10240", 1 << 20, true, 0, 10240ull << 20 },
		{ "512M", 1, true, 0, 512ull << 20 },
		{ "512M", 1 << 20, true, 0, 512ull << 20 },
		{ "10G", 1, true, 0, 10ull << 30 },
		{ "1k", 1, true, 0, 1024 },
		{ "3KiB", 1, true, 0, 3072 },
		{ "3kb", 1, true, 0, 3072 },
		{ "2T", 1, true, 0, 2ull << 40 },
		{ "unlimited", 1, false, 0, SIZE_UNLIMITED },
		{ "MAX", 1, true, 0, SIZE_UNLIMITED },
		{ "", 1, true, -EINVAL, 0 },
		{ "-1", 1, true, -EINVAL, 0 },
		{ "+1", 1, true, -EINVAL, 0 },
		{ " 1", 1, true, -EINVAL, 0 },
		{ "1 ", 1, true, -EINVAL, 0 },
		{ "0x10", 1, true, -EINVAL, 0 },
		{ "1.5G", 1, true, -EINVAL, 0 },
		{ "1K", 1, false, -EINVAL, 0 },
		{ "K", 1, true, -EINVAL, 0 },
		{ "1KK", 1, true, -EINVAL, 0 },
		{ "1iB", 1, true, -EINVAL, 0 },
		{ "unlimitedx", 1, true, -EINVAL, 0 },
		{ "18446744073709551615", 1, true, -ERANGE, 0 },
		{ "18446744073709551616", 1, true, -ERANGE, 0 },
		{ "17179869184G", 1, true, -ERANGE, 0 },
		{ "17179869183G", 1, true, 0, 17179869183ull << 30 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t value = 4711;
		int result = size_parse(cases[i].text, strlen(cases[i].text), cases[i].unit,
					cases[i].suffixes, &value);

		CHECK(result == cases[i].result, "'%s': %d", cases[i].text, result);
		CHECK(value == (result ? 4711 : cases[i].value), "'%s': %llu", cases[i].text,
		      (unsigned long long)value);
	}
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
