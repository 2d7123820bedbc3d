/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/events/eventlogs.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/print/json.h"
#include "tools/select/askrows.h"

static const char LINES[] =
	"SELECT l.which, l.at_ns, l.line, l.cut, coalesce((SELECT name FROM containers WHERE runtime_id = l.which LIMIT 1), '')"
	" FROM event_logs l WHERE l.ts BETWEEN ?1 AND ?2 ORDER BY l.which, l.at_ns, l.nth";

void eventlogs_release(struct eventlogs *x)
{
	for (size_t i = 0; i < x->n; i++) {
		for (size_t k = 0; k < x->rows[i].n; k++)
			free(x->rows[i].lines[k]);
		free(x->rows[i].lines);
		free(x->rows[i].cut);
		free(x->rows[i].which);
		free(x->rows[i].name);
	}
	free(x->rows);
	*x = (struct eventlogs){0};
}

static void take_line(void *ctx, sqlite3_stmt *st)
{
	struct eventlogs *all = ctx;
	const char *which = askrows_text(st, 0);
	int64_t at_ns = sqlite3_column_int64(st, 1);
	struct eventlog *x = all->n ? &all->rows[all->n - 1] : NULL;

	if (!x || x->at_ns != at_ns || strcmp(x->which, which) != 0) {
		mem_grow(all->rows, all->n, all->cap);
		x = &all->rows[all->n++];
		*x = (struct eventlog){.which = mem_strdup(which),
				       .name = mem_strdup(askrows_text(st, 4)),
				       .at_ns = at_ns};
	}
	mem_grow(x->cut, x->n, x->cap_cut);
	x->cut[x->n] = sqlite3_column_int(st, 3) != 0;
	mem_grow(x->lines, x->n, x->cap);
	x->lines[x->n++] = mem_strdup(askrows_text(st, 2));
}

int eventlogs_read(const struct selection *sel, struct eventlogs *out, struct err *e)
{
	*out = (struct eventlogs){0};
	return askrows_each(sel, NULL, &(struct askrows_part){LINES, take_line, out}, 1, e);
}

const struct eventlog *eventlogs_find(const struct eventlogs *x, const char *who, int64_t from_ns,
				      int64_t to_ns)
{
	const struct eventlog *found = NULL;

	for (size_t i = 0; i < x->n; i++) {
		const struct eventlog *r = &x->rows[i];

		if ((!strcmp(r->which, who) || !strcmp(r->name, who)) && r->at_ns >= from_ns &&
		    r->at_ns <= to_ns && (!found || r->at_ns > found->at_ns))
			found = r;
	}
	return found;
}

json_t *eventlog_json(const struct eventlog *x)
{
	json_t *list = x ? json_array() : json_null();

	for (size_t i = 0; x && i < x->n; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "line", json_text(x->lines[i]));
		json_object_set_new(o, "cut", json_boolean(x->cut[i]));
		json_array_append_new(list, o);
	}
	return list;
}

void eventlog_print(const struct eventlog *x, FILE *out)
{
	struct strbuf shown cleanup_strbuf = STRBUF_INIT;

	for (size_t i = 0, next; i < x->n; i = next) {
		for (next = i + 1; next < x->n && !strcmp(x->lines[next], x->lines[i]);)
			next++; /* it wrote the same again */
		strbuf_reset(&shown);
		strbuf_addshown(&shown, x->lines[i], strlen(x->lines[i]));
		strbuf_addstr(&shown, x->cut[i] ? " ..." : "");
		if (next - i > 1)
			strbuf_addf(&shown, "  (%zu times)", next - i);
		fprintf(out, "    | %s\n", strbuf_str(&shown));
	}
}
