/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args_fuzz: any bytes are masked without harm, one line comes out, and a value that is surely a
 * secret never does.
 *
 * covers: loaders/lib/host/proc/args.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/proc/args.h"
#include "schema/base/strbuf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const policies[] = {"masked", "full", "none", "x"};
	struct strbuf out = STRBUF_INIT, line = STRBUF_INIT;
	enum args_policy policy = ARGS_MASKED;

	for (size_t i = 0; i < 4; i++) {
		if (args_policy_parse(policies[i], &policy))
			continue;
		strbuf_reset(&out);
		args_format((const char *)data, len, policy, &out);
		if (out.len && (memchr(out.buf, '\n', out.len) || strlen(out.buf) != out.len))
			abort();
		if (policy != ARGS_MASKED && out.len > len)
			abort();
	}
	/* a separate argument with a secret's name is masked, whatever precedes it */
	strbuf_add(&line, data, len);
	strbuf_add(&line, "\0--password=Zq7Zq7Zq7", 22);
	strbuf_reset(&out);
	args_format(line.buf, line.len, ARGS_MASKED, &out);
	if (!memmem(data, len, "Zq7", 3) && strstr(strbuf_str(&out), "Zq7"))
		abort();
	strbuf_release(&out);
	strbuf_release(&line);
	return 0;
}
