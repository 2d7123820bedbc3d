/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/reports/unresolved.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char OTHERS[] = "other names";

static bool same(const struct unresolved_one *a, const struct unresolved_one *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->why, b->why) && !strcmp(a->comm, b->comm);
}

static void report_one(struct unresolved *u, uint32_t i, int64_t now_ns, unresolved_report report,
		       void *ctx)
{
	if (!u->all[i].one.n)
		return;
	report(ctx, &u->all[i].one);
	u->all[i].one.n = 0;
	u->all[i].reported_ns = now_ns;
}

static void forget(struct unresolved *u, int64_t now_ns)
{
	for (uint32_t i = 0; i < u->n;)
		if (!u->all[i].one.n && now_ns - u->all[i].reported_ns >= UNRESOLVED_FORGET_NS)
			u->all[i] = u->all[--u->n];
		else
			i++;
}

static void more(struct unresolved_one *to, const struct unresolved_one *x)
{
	to->n += x->n;
	to->process = x->process;
	to->utc_ns = x->utc_ns > to->utc_ns ? x->utc_ns : to->utc_ns;
}

void unresolved_add(struct unresolved *u, const struct unresolved_one *x, int64_t now_ns,
		    unresolved_report report, void *ctx)
{
	uint32_t i = 0;

	while (i < u->n && !same(&u->all[i].one, x))
		i++;
	if (i == u->n && u->n < UNRESOLVED_MOST) {
		u->all[u->n].one = *x;
		report_one(u, u->n++, now_ns, report, ctx);
		return;
	}
	if (i == u->n) { /* other names */
		i = UNRESOLVED_MOST;
		if (!*u->all[i].one.name)
			u->all[i].reported_ns = now_ns;
		snprintf(u->all[i].one.name, sizeof(u->all[i].one.name), "%s", OTHERS);
	}
	more(&u->all[i].one, x);
}

void unresolved_due(struct unresolved *u, int64_t now_ns, unresolved_report report, void *ctx)
{
	for (uint32_t i = 0; i <= UNRESOLVED_MOST; i++)
		if ((i < u->n || i == UNRESOLVED_MOST) &&
		    (now_ns == INT64_MAX || now_ns - u->all[i].reported_ns >= UNRESOLVED_EVERY_NS))
			report_one(u, i, now_ns, report, ctx);
	if (now_ns != INT64_MAX)
		forget(u, now_ns);
}
