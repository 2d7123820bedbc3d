/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: serve/mcp_post.c
 *
 * Four lines of a head, then a body: any of them is asked, accepted or refused. What is asked has
 * no line feed, and a refusal has a text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serve/mcp_post.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next line of `rest`, NULL for an empty one. */
static const char *line(char **rest)
{
	char *at = *rest ? strsep(rest, "\n") : NULL;

	return at && *at ? at : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *rest = text, *body;
	struct mcp_head head;
	struct mcp_post p;
	size_t len;

	memcpy(text, data, size);
	text[size] = '\0';
	head.type = line(&rest);
	head.version = line(&rest);
	head.method = line(&rest);
	head.name = line(&rest);
	len = rest ? strlen(rest) : 0;
	body = malloc(len + 1);
	memcpy(body, rest ? rest : "", len);
	mcp_post_read(body, len, &head, &p);
	if (!p.status && memchr(body, '\n', len))
		abort();
	if ((p.status >= 400) != (p.error != NULL))
		abort();
	if (p.cancels && (p.status != 202 || p.id))
		abort();
	if (p.modern && !p.status && (!head.method || !head.version))
		abort();
	mcp_post_status(&p, body, len);
	mcp_post_release(&p);
	free(body);
	free(text);
	return 0;
}
