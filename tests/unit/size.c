/* SPDX-License-Identifier: MIT */
/* Sizes and counts as people write them: with units, with names for no limit, and wrong. */
#include <errno.h>
#include <string.h>

#include "terms/size.h"
#include "harness.h"

struct number {
	const char *text;
	uint64_t unit;
	bool suffixes;
	int result;
	uint64_t value;
};

static void parse_all(const struct number *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = 4711;
		int result = size_parse(numbers[i].text, strlen(numbers[i].text), numbers[i].unit,
					numbers[i].suffixes, &value);

		CHECK(result == numbers[i].result, "'%s': %d", numbers[i].text, result);
		CHECK(value == (result ? 4711 : numbers[i].value), "'%s': %llu", numbers[i].text,
		      (unsigned long long)value);
	}
}

#define PARSE_ALL(numbers) parse_all(numbers, sizeof(numbers) / sizeof((numbers)[0]))

static void valid(void)
{
	static const struct number numbers[] = {
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
		{ "1.5G", 1, true, 0, 3ull << 29 },
		{ "1.5G", 1 << 20, true, 0, 3ull << 29 },
		{ "0.5k", 1, true, 0, 512 },
		{ "2.0MiB", 1, true, 0, 2 << 20 },
		{ "1.50000000000000000000000G", 1, true, 0, 3ull << 29 },
		{ "0.0009765625K", 1, true, 0, 1 },
		{ "17179869183.5G", 1, true, 0, (17179869183ull << 30) + (1 << 29) },
		{ "unlimited", 1, false, 0, UNLIMITED },
		{ "MAX", 1, true, 0, UNLIMITED },
		{ "17179869183G", 1, true, 0, 17179869183ull << 30 },
	};

	PARSE_ALL(numbers);
}

static void invalid(void)
{
	static const struct number numbers[] = {
		{ "", 1, true, -EINVAL, 0 },
		{ "-1", 1, true, -EINVAL, 0 },
		{ "+1", 1, true, -EINVAL, 0 },
		{ " 1", 1, true, -EINVAL, 0 },
		{ "1 ", 1, true, -EINVAL, 0 },
		{ "0x10", 1, true, -EINVAL, 0 },
		{ "1.5", 1, true, -EINVAL, 0 },
		{ "1.5G", 1, false, -EINVAL, 0 },
		{ "1.G", 1, true, -EINVAL, 0 },
		{ ".5G", 1, true, -EINVAL, 0 },
		{ "1.5.5G", 1, true, -EINVAL, 0 },
		{ "1,5G", 1, true, -EINVAL, 0 },
		{ "0.1K", 1, true, -EINVAL, 0 }, /* 102.4 bytes */
		{ "1.00000000000000000000001T", 1, true, -EINVAL, 0 },
		{ "1K", 1, false, -EINVAL, 0 },
		{ "K", 1, true, -EINVAL, 0 },
		{ "1KK", 1, true, -EINVAL, 0 },
		{ "1iB", 1, true, -EINVAL, 0 },
		{ "unlimitedx", 1, true, -EINVAL, 0 },
	};

	PARSE_ALL(numbers);
}

static void too_large(void)
{
	static const struct number numbers[] = {
		{ "18446744073709551615", 1, true, -ERANGE, 0 },
		{ "18446744073709551616", 1, true, -ERANGE, 0 },
		{ "17179869184G", 1, true, -ERANGE, 0 },
	};

	PARSE_ALL(numbers);
}

static void driver(void)
{
	RUN(valid);
	RUN(invalid);
	RUN(too_large);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
