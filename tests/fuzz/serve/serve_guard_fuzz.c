/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: serve/guard.c
 *
 * Any request heads are accepted or refused. None is accepted without the token, nor under a host
 * name that is not an address, localhost or this host's.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serve/guard.h"

#define TOKEN "abcdefghij0123456789"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next line of `rest`, NULL for an empty one. */
static const char *line(char **rest)
{
	char *at = *rest ? strsep(rest, "\n") : NULL;

	return at && *at ? at : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const hosts[] = {"x.org"};
	const struct guard g = {.hosts = hosts,
				.n_hosts = 1,
				.own = "nas",
				.token = size && data[0] & 1 ? TOKEN : NULL};
	char *text = malloc(size + 1), *rest = text;
	struct guard_head head;
	enum guard_answer a;

	memcpy(text, data, size);
	text[size] = '\0';
	head.host = line(&rest);
	head.origin = line(&rest);
	head.site = line(&rest);
	head.mode = line(&rest);
	head.cookie = line(&rest);
	head.authorization = line(&rest);
	a = guard_ask(&g, &head, size & 1, true);
	if (a == GUARD_WELCOME &&
	    (!head.host || (g.token && !memmem(data, size, TOKEN, strlen(TOKEN)))))
		abort();
	if (a == GUARD_WELCOME && head.host[strspn(head.host, "0123456789abcdefABCDEF.:[]")] &&
	    !strcasestr(head.host, "localhost") && !strcasestr(head.host, "nas") &&
	    !strcasestr(head.host, "x.org"))
		abort();
	guard_token_fits(text);
	free(text);
	return 0;
}
