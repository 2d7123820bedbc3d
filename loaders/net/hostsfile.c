/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/net/hostsfile.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "loaders/net/record.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line [*at, end), NUL-terminated in `to`; false: none, or it is too long. */
static bool word(const char **at, const char *end, char *to, size_t room)
{
	const char *s = *at;
	size_t n = 0;

	while (s < end && is_blank(*s))
		s++;
	for (; s < end && !is_blank(*s) && *s && n < room; s++)
		to[n++] = *s;
	*at = s;
	if (!n || n >= room)
		return false;
	to[n] = '\0';
	return true;
}

/* false: it is not an address, or useless as one. */
static bool address(const char *text, char out[RECORD_ADDRESS])
{
	static const uint8_t none[16];
	uint16_t family = strchr(text, ':') ? AF_INET6 : AF_INET;
	uint8_t at[16] = {0};

	if (inet_pton(family, text, at) != 1)
		return false;
	record_unmap(&family, at);
	record_address(family, at, out);
	return memcmp(at, none, sizeof(none)) && !record_is_loopback(family, at);
}

static void line(const char *s, const char *end,
		 void (*each)(void *ctx, const char *address, const char *name), void *ctx)
{
	char first[64], name[HOSTSFILE_NAME], shown[RECORD_ADDRESS];
	const char *comment = memchr(s, '#', (size_t)(end - s));

	end = comment ? comment : end;
	if (word(&s, end, first, sizeof(first)) && word(&s, end, name, sizeof(name)) &&
	    address(first, shown))
		each(ctx, shown, name);
}

void hostsfile_parse(const char *text, size_t len,
		     void (*each)(void *ctx, const char *address, const char *name), void *ctx)
{
	const char *s = text, *end = text + len;

	while (s < end) {
		const char *newline = memchr(s, '\n', (size_t)(end - s));

		line(s, newline ? newline : end, each, ctx);
		s = newline ? newline + 1 : end;
	}
}
