/* SPDX-License-Identifier: MIT */
/* Base64 with padding (RFC 4648, section 4). */
#include "fleet/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "output/memory.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *data, size_t length)
{
	const unsigned char *from = data;
	char *text = memory_need(malloc((length + 2) / 3 * 4 + 1)), *at = text;

	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		uint32_t bits = (uint32_t)from[i] << 16 |
				(left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
				(left > 2 ? from[i + 2] : 0u);

		*at++ = alphabet[bits >> 18];
		*at++ = alphabet[bits >> 12 & 63];
		*at++ = left > 1 ? alphabet[bits >> 6 & 63] : '=';
		*at++ = left > 2 ? alphabet[bits & 63] : '=';
	}
	*at = '\0';
	return text;
}

char *base64_decode(const char *text, size_t *ret_length)
{
	size_t length = strlen(text), padding = 0;
	char *data, *at;

	while (padding < 2 && padding < length && text[length - 1 - padding] == '=')
		padding++;
	if (length % 4)
		return NULL;
	at = data = memory_need(malloc(length / 4 * 3 + 1));
	for (size_t i = 0; i < length; i += 4) {
		uint32_t bits = 0;

		for (size_t j = i; j < i + 4; j++) {
			const char *digit = j < length - padding ? strchr(alphabet, text[j]) : alphabet;

			if (!digit) {
				free(data);
				return NULL;
			}
			bits = bits << 6 | (uint32_t)(digit - alphabet);
		}
		*at++ = (char)(bits >> 16);
		*at++ = (char)(bits >> 8);
		*at++ = (char)bits;
	}
	*ret_length = length / 4 * 3 - padding;
	data[*ret_length] = '\0';
	return data;
}
