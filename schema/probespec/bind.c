/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of a probe name, found among its arguments. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/probespec/spec.h"

static int bind(const struct probespec *s, struct probespec_ref *r, struct err *e)
{
	char known[160] = "";
	size_t len = 0;

	if (!*r->name)
		return 0;
	for (uint32_t i = 0; i < s->n_args; i++) {
		if (!strcmp(s->args[i].name, r->name)) {
			r->arg = i;
			return 0;
		}
		if (len < sizeof(known))
			len += (size_t)snprintf(known + len, sizeof(known) - len, " %s",
						s->args[i].name);
	}
	if (probespec_has_ret(s) && !strcmp(r->name, "ret")) {
		r->arg = PROBESPEC_RET;
		return 0;
	}
	if (probespec_has_ns(s) && !strcmp(r->name, "ns")) {
		r->arg = PROBESPEC_NS;
		return 0;
	}
	err_set(e, -EINVAL, EXIT_USAGE, "probe %s: it has no argument %s; it has:%s%s%s", s->name,
		r->name, *known || probespec_has_ns(s) ? known : " none",
		probespec_has_ret(s) ? " ret" : "", probespec_has_ns(s) ? " ns" : "");
	err_fix(e, "sonde probes %s", s->at.target[0] == '*' ? "syscall" : s->at.target);
	return -EINVAL;
}

static bool is_text(const struct probespec *s, uint32_t arg)
{
	return arg < s->n_args && s->args[arg].type == PROBESPEC_STR;
}

static int kinds_fit(const struct probespec *s, struct err *e)
{
	const struct probespec_ref *numbers[] = {&s->sum, &s->hist};
	uint32_t texts = 0;

	for (uint32_t i = 0; i < s->n_conds; i++)
		if (s->conds[i].is_text != is_text(s, s->conds[i].of.arg))
			return err_set(e, -EINVAL, EXIT_USAGE, "probe %s: %s is %s", s->name,
				       s->conds[i].of.name,
				       s->conds[i].is_text ?
					       "a number, which no text compares with" :
					       "a text: compare it with a text within ''");
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (*numbers[i]->name && is_text(s, numbers[i]->arg))
			return err_set(e, -EINVAL, EXIT_USAGE,
				       "probe %s: %s is a text: sum and hist want a number",
				       s->name, numbers[i]->name);
	for (uint32_t i = 0; i < s->n_by; i++)
		texts += is_text(s, s->by[i].arg);
	return texts < 2 ? 0 :
			   err_set(e, -EINVAL, EXIT_USAGE, "probe %s: sums are by one text at most",
				   s->name);
}

int probespec_bind(struct probespec *s, struct err *e)
{
	int rc = bind(s, &s->sum, e);

	if (!rc)
		rc = bind(s, &s->hist, e);
	for (uint32_t i = 0; !rc && i < s->n_by; i++)
		rc = bind(s, &s->by[i], e);
	for (uint32_t i = 0; !rc && i < s->n_conds; i++)
		rc = bind(s, &s->conds[i].of, e);
	return rc ? rc : kinds_fit(s, e);
}
