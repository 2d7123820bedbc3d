/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/proc/args.h"

#include <errno.h>
#include <string.h>

#include "loaders/lib/host/secrets/secrets.h"
#include "schema/base/array.h"
#include "schema/base/strbuf.h"

int args_policy_parse(const char *s, enum args_policy *out)
{
	static const char *const names[] = {"masked", "full", "none"};

	if (!s)
		s = names[ARGS_MASKED];
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(s, names[i])) {
			*out = (enum args_policy)i;
			return 0;
		}
	}
	return -EINVAL;
}

static void add_plain(struct strbuf *out, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		strbuf_addch(out, p[i] == '\n' || p[i] == '\r' || !p[i] ? ' ' : p[i]);
}

void args_mask_line(const char *line, size_t len, struct strbuf *out)
{
	struct strbuf masked cleanup_strbuf = STRBUF_INIT;

	secrets_mask_text(line, len, &masked);
	add_plain(out, strbuf_str(&masked), masked.len);
}

void args_format(const char *data, size_t len, enum args_policy policy, struct strbuf *out)
{
	struct strbuf masked cleanup_strbuf = STRBUF_INIT;

	if (len && !data[len - 1])
		len--;
	if (policy == ARGS_NONE) {
		len = strnlen(data, len);
		policy = ARGS_MASKED;
	}
	if (policy == ARGS_FULL) {
		add_plain(out, data, len);
		return;
	}
	secrets_mask_args(data, len, &masked);
	add_plain(out, strbuf_str(&masked), masked.len);
}
