/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/logs/logrise.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/tables/alike.h"
#include "schema/base/units.h"

static uint64_t count_in(const struct logread *l, const struct logread_pattern *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < l->n_patterns; i++) {
		const struct logread_pattern *x = &l->patterns[i];

		if (x->level == p->level && !strcmp(x->source, p->source) &&
		    (!strcmp(x->pattern, p->pattern) || alike(x->pattern, p->pattern, 0, NULL, 0)))
			n += x->messages;
	}
	return n;
}

static bool rose(const struct logrise *r)
{
	return r->after >= LOGRISE_LEAST && r->before_s > 0 && r->after_s > 0 &&
	       (double)r->after / r->after_s >= LOGRISE_TIMES * (double)r->before / r->before_s;
}

/* Is x more of a reason than y? */
static bool before_it(const struct logrise *x, const struct logrise *y)
{
	if (!x->before != !y->before)
		return !x->before;
	if (x->pattern->level != y->pattern->level)
		return x->pattern->level > y->pattern->level;
	return x->after > y->after;
}

static size_t insert(struct logrise out[LOGRISE_MOST], size_t n, const struct logrise *r)
{
	size_t at = n;

	while (at && before_it(r, &out[at - 1]))
		at--;
	if (at >= LOGRISE_MOST)
		return n;
	n = n < LOGRISE_MOST ? n + 1 : n;
	memmove(out + at + 1, out + at, (n - at - 1) * sizeof(*out));
	out[at] = *r;
	return n;
}

size_t logrise_find(const struct logread *before, const struct logread *after,
		    struct logrise out[LOGRISE_MOST])
{
	size_t n = 0;

	if (!before->known || !after->known)
		return 0;
	for (size_t i = 0; i < after->n_patterns; i++) {
		const struct logread_pattern *p = &after->patterns[i];
		struct logrise r = {.pattern = p,
				    .after = p->messages,
				    .before_s = before->seconds,
				    .after_s = after->seconds};

		if (p->level < LOGREAD_WARNING || !strcmp(p->pattern, "~other"))
			continue;
		r.before = count_in(before, p);
		if (rose(&r))
			n = insert(out, n, &r);
	}
	return n;
}

void logrise_say(const struct logrise *r, struct strbuf *out)
{
	const char *level = r->pattern->level == LOGREAD_WARNING ? "a warning" : "an error";
	char span[32];

	units_ns((int64_t)(r->after_s * NSEC_PER_SEC), span, sizeof(span));
	if (!r->before)
		strbuf_addf(out, "%.80s logs %s it did not log before, %llu times in %s: %.200s",
			    r->pattern->source, level, (unsigned long long)r->after, span,
			    r->pattern->pattern);
	else
		strbuf_addf(out,
			    "%.80s logs %s %.1f times as often as before, %llu times in %s: %.200s",
			    r->pattern->source, level,
			    (double)r->after / r->after_s / ((double)r->before / r->before_s),
			    (unsigned long long)r->after, span, r->pattern->pattern);
}
