/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args_fuzz: any bytes are masked without harm, one line comes out, what is masked stays as it is
 * if it is masked again, the output is at most three times as long as the input, and a value that
 * is surely a secret never comes out.
 *
 * covers: loaders/lib/host/proc/args.c loaders/lib/host/secrets/secrets.c
 *         loaders/lib/host/secrets/text.c loaders/lib/host/secrets/command.c
 *         loaders/lib/host/secrets/shell.c loaders/lib/host/secrets/names.c
 *         loaders/lib/host/secrets/programs.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/proc/args.h"
#include "loaders/lib/host/secrets/secrets.h"
#include "schema/base/strbuf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void once_is_enough(void (*mask)(const char *, size_t, struct strbuf *), const char *data,
			   size_t len)
{
	struct strbuf one = STRBUF_INIT, two = STRBUF_INIT;

	mask(data, len, &one);
	mask(strbuf_str(&one), one.len, &two);
	if (one.len > 3 * len || one.len != two.len ||
	    memcmp(strbuf_str(&one), strbuf_str(&two), one.len) != 0)
		abort();
	strbuf_release(&one);
	strbuf_release(&two);
}

static void every_policy(const char *data, size_t len)
{
	static const char *const policies[] = {"masked", "full", "none", "x"};
	struct strbuf out = STRBUF_INIT;
	enum args_policy policy = ARGS_MASKED;

	for (size_t i = 0; i < 4; i++) {
		if (args_policy_parse(policies[i], &policy))
			continue;
		strbuf_reset(&out);
		args_format(data, len, policy, &out);
		if (out.len && (memchr(out.buf, '\n', out.len) || strlen(out.buf) != out.len))
			abort();
		if (policy == ARGS_FULL && out.len > len)
			abort();
	}
	strbuf_release(&out);
}

/* The argument that ends `line` holds the secret Zq7Zq7Zq7: it is masked, whatever precedes it. */
static void never_comes_out(const uint8_t *data, size_t len, const char *last, size_t last_len)
{
	struct strbuf out = STRBUF_INIT, line = STRBUF_INIT;

	strbuf_add(&line, data, len);
	strbuf_addch(&line, 0);
	strbuf_add(&line, last, last_len);
	args_format(line.buf, line.len, ARGS_MASKED, &out);
	if (!memmem(data, len, "Zq7", 3) && strstr(strbuf_str(&out), "Zq7"))
		abort();
	strbuf_release(&out);
	strbuf_release(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char option[] = "--password=Zq7Zq7Zq7", url[] = "http://u:Zq7Zq7Zq7@h/",
			  code[] = "sh -c 'mysql -pZq7Zq7Zq7'",
			  json[] = "{\\\"token\\\":\\\"Zq7Zq7\\\"}";
	const char *text = len ? (const char *)data : "";

	once_is_enough(secrets_mask_args, text, len);
	once_is_enough(secrets_mask_text, text, len);
	every_policy(text, len);
	never_comes_out(data, len, option, sizeof(option) - 1);
	never_comes_out(data, len, url, sizeof(url) - 1);
	never_comes_out(data, len, code, sizeof(code) - 1);
	never_comes_out(data, len, json, sizeof(json) - 1);
	return 0;
}
