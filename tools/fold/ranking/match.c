/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/ranking/match.h"

#include <errno.h>
#include <regex.h>
#include <string.h>

#include "schema/base/cli/suggest.h"
#include "schema/base/strbuf.h"

static size_t match_exact(const struct fold_frame *frames, size_t n, const char *text, uint8_t *hit)
{
	size_t hits = 0;

	for (size_t i = 0; i < n; i++)
		if (frames[i].origin != FOLD_GROUP && !strcmp(frames[i].name, text))
			hits += hit[i] = 1;
	return hits;
}

static int match_regex(const struct fold_frame *frames, size_t n, const char *text, uint8_t *hit,
		       size_t *hits, struct err *e)
{
	regex_t re;
	char why[128];
	int rc = regcomp(&re, text, REG_EXTENDED | REG_NOSUB);

	if (rc) {
		regerror(rc, &re, why, sizeof(why));
		return err_set(
			e, -EINVAL, EXIT_USAGE,
			"no function is called '%s', and it is not a valid regular expression: %s",
			text, why);
	}
	for (size_t i = 0; i < n; i++)
		if (frames[i].origin != FOLD_GROUP && !regexec(&re, frames[i].name, 0, NULL, 0))
			*hits += hit[i] = 1;
	regfree(&re);
	return 0;
}

static int none(const struct fold_frame *frames, size_t n, const char *text, struct err *e)
{
	struct strbuf hint cleanup_strbuf = STRBUF_INIT;
	struct suggest near;

	suggest_init(&near, text);
	for (size_t i = 0; i < n; i++)
		if (frames[i].origin != FOLD_GROUP && frames[i].named)
			suggest_add(&near, frames[i].name);
	suggest_say(&near, &hint, "");
	err_set(e, -ENOENT, EXIT_NOTHING,
		"no function here is called '%.200s', and none matches it%s", text,
		strbuf_str(&hint));
	err_fix(e, "sonde stacks -n 30");
	return -ENOENT;
}

int match_functions(const struct fold_frame *frames, size_t n, const char *text, uint8_t *hit,
		    struct err *e)
{
	size_t hits = match_exact(frames, n, text, hit);
	int ret = hits ? 0 : match_regex(frames, n, text, hit, &hits, e);

	return ret || hits ? ret : none(frames, n, text, e);
}
