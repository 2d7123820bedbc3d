/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/requests/requnread.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "tools/print/json.h"
#include "tools/print/when.h"
#include "tools/select/askrows.h"

#define SHOWN 3

static const char UNREAD[] =
	"SELECT process_id, sum(blind), max(ts) FROM request_bytes WHERE protocol = 'tls' AND blind > 0 AND ts BETWEEN ?1 AND ?2 GROUP BY 1";

struct reading {
	const struct selection *sel;
	const struct store_dict *dict; /* of the segment */
	struct requnread *out;
};

static void take(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct requnread *u = r->out;
	int64_t until = sqlite3_column_int64(st, 2);
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	size_t i = 0;

	if (p ? !select_wants_process(r->sel, p) : select_is_narrow(r->sel))
		return;
	while (i < u->n &&
	       (u->rows[i].pid != (p ? p->pid : 0) || strcmp(u->rows[i].comm, p ? p->comm : "")))
		i++;
	if (i == u->n) {
		mem_grow(u->rows, u->n, u->cap);
		u->rows[u->n++] = (struct requnread_row){.comm = mem_strdup(p ? p->comm : ""),
							 .pid = p ? p->pid : 0};
	}
	u->rows[i].bytes += (uint64_t)sqlite3_column_int64(st, 1);
	u->rows[i].until_s = until > u->rows[i].until_s ? until : u->rows[i].until_s;
}

static int by_bytes(const void *a, const void *b)
{
	const struct requnread_row *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

int requnread_read(const struct selection *sel, struct requnread *out, struct err *e)
{
	struct reading r = {.sel = sel, .out = out};
	const struct askrows_part part = {UNREAD, take, &r};
	int rc;

	*out = (struct requnread){0};
	rc = askrows_each(sel, &r.dict, &part, 1, e);
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), by_bytes);
	return rc;
}

void requnread_release(struct requnread *u)
{
	for (size_t i = 0; i < u->n; i++)
		free(u->rows[i].comm);
	free(u->rows);
	*u = (struct requnread){0};
}

void requnread_print(const struct requnread *u, FILE *out)
{
	if (!u->n)
		return;
	fprintf(out, "inside TLS, not read:");
	for (size_t i = 0; i < u->n && i < SHOWN; i++) {
		const struct requnread_row *r = &u->rows[i];
		char bytes[32], when[40];

		fprintf(out, "%s %s of %s", i ? "," : "",
			units_bytes(r->bytes, bytes, sizeof(bytes)),
			*r->comm ? r->comm : "unknown process");
		if (r->pid)
			fprintf(out, " (%lld)", (long long)r->pid);
		fprintf(out, " until %s", when_zoned(r->until_s * 1000000000, when, sizeof(when)));
	}
	if (u->n > SHOWN)
		fprintf(out, ", and of %zu more", u->n - SHOWN);
	fprintf(out,
		"; a file gets its probes once it is indexed: sonde doctor --pid shows how it is read\n");
}

static json_t *one_json(const struct requnread_row *r)
{
	json_t *o = json_pack("{s:o, s:o, s:I}", "comm", json_text(r->comm), "pid",
			      json_number_or_null(r->pid, r->pid), "bytes", (json_int_t)r->bytes);

	json_set_time(o, "until", r->until_s * 1000000000);
	return o;
}

json_t *requnread_json(const struct requnread *u, size_t most)
{
	json_t *all = json_array();

	for (size_t i = 0; i < u->n && i < most; i++)
		json_array_append_new(all, one_json(&u->rows[i]));
	return all;
}
