/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/model/fact_sql.h"

void fact_columns_sql(const struct fact *f, struct strbuf *out)
{
	strbuf_addstr(out, "ts,run");
	for (uint32_t i = 0; i < f->n; i++)
		strbuf_addf(out, ",%s", f->columns[i].name);
}

static void add_merge(const struct fact_column *c, struct strbuf *out)
{
	const char *n = c->name;

	if (c->type != FACT_NUMBER)
		strbuf_addf(out, "%s = coalesce(nullif(excluded.%s, 0), %s)", n, n, n);
	else if (c->role != FACT_GAUGE)
		strbuf_addf(out, "%s = coalesce(%s + excluded.%s, excluded.%s, %s)", n, n, n, n, n);
	else
		strbuf_addf(out, "%s = coalesce(excluded.%s, %s)", n, n, n);
}

void fact_merge_sql(const struct fact *f, struct strbuf *out)
{
	const char *before = "";

	strbuf_addstr(out, " ON CONFLICT DO UPDATE SET ");
	for (uint32_t i = 0; i < f->n; i++) {
		if (f->columns[i].role == FACT_KEY)
			continue;
		strbuf_addstr(out, before);
		add_merge(&f->columns[i], out);
		before = ", ";
	}
}

void fact_insert_sql(const struct fact *f, struct strbuf *out)
{
	strbuf_addf(out, "INSERT INTO %s(", f->table);
	fact_columns_sql(f, out);
	strbuf_addstr(out, ") VALUES(?1, ?2");
	for (uint32_t i = 0; i < f->n; i++)
		strbuf_addf(out, ", ?%u", i + 3);
	strbuf_addstr(out, ")");
	fact_merge_sql(f, out);
}
