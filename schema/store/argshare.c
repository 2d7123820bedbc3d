/* SPDX-License-Identifier: Apache-2.0 */
/* argshare: the longest prefix, then the longest suffix, cut at characters. */
#include "schema/store/argshare.h"

#include <stdbool.h>
#include <string.h>

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t characters(const char *s, size_t bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += !continues(s[i]);
	return n;
}

struct argshare argshare_of(const char *base, const char *args)
{
	size_t base_len = strlen(base), len = strlen(args), prefix = 0, suffix = 0;
	size_t most = base_len < len ? base_len : len;

	while (prefix < most && base[prefix] == args[prefix])
		prefix++;
	while (prefix && (continues(args[prefix]) || continues(base[prefix])))
		prefix--;
	while (suffix < most - prefix && base[base_len - suffix - 1] == args[len - suffix - 1])
		suffix++;
	while (suffix && continues(args[len - suffix]))
		suffix--;
	return (struct argshare){
		.keep = characters(args, prefix),
		.end = characters(args + len - suffix, suffix),
		.middle = args + prefix,
		.middle_bytes = len - prefix - suffix,
	};
}
