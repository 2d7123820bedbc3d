/* SPDX-License-Identifier: Apache-2.0 */
/* sonde heap: lines of code that hold memory, allocate it or touch it first, or hold more and more;
 * or whose pages of the host are in use, with the kernel's (tools/fold/ranking/heapsites.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/strbuf.h"
#include "schema/base/typed.h"
#include "tools/cli/verb.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/ranking/heapsites.h"
#include "tools/print/json.h"
#include "tools/print/table.h"
#include "tools/print/term.h"
#include "tools/select/filter.h"
#include "tools/select/select.h"

#define DEFAULT_ROWS 10
#define HOUR         3600.0
#define JAVA_NAMED   16

struct heap_args {
	uint64_t rows;
	bool growth, alloc, pages;
};

static const struct option HEAP_OPTIONS[] = {
	{"number", 'n', OPTION_MOST, "N", "how many rows (default 10; 0: all)",
	 offsetof(struct heap_args, rows)},
	{"growth", 0, OPTION_FLAG, NULL, "sort by growth: leak candidates first",
	 offsetof(struct heap_args, growth)},
	{"alloc", 0, OPTION_FLAG, NULL, "sort by allocated bytes",
	 offsetof(struct heap_args, alloc)},
	{"pages", 0, OPTION_FLAG, NULL,
	 "all pages of the host, also those of the kernel, the page cache and shared memory",
	 offsetof(struct heap_args, pages)},
	{0},
};

static const char *const HEAP_EXAMPLES[] = {
	"sonde heap",
	"sonde heap prometheus --growth --last 6h",
	"sonde heap --alloc -n 20 --json",
	NULL,
};

static const char *place_of(const struct heapsite *s, struct strbuf *out)
{
	strbuf_reset(out);
	if (s->file[0] && s->line)
		strbuf_addf(out, "%s:%u", s->file, s->line);
	else if (s->line) /* of Java the file is not known */
		strbuf_addf(out, "line %u", s->line);
	else
		strbuf_addf(out, "%s", s->file[0] ? s->file : s->module);
	return strbuf_str(out);
}

/* Programs, by pid, whose lines that allocate family java would know. */
static json_t *java_json(const struct heapjava *java)
{
	json_t *list = json_array();

	for (size_t i = 0; i < java->n && i < JAVA_NAMED; i++)
		json_array_append_new(list, json_integer((json_int_t)java->list[i].pid));
	return list;
}

static void say_command(const struct verb_call *call, const char *when, const char *command)
{
	struct strbuf line cleanup_strbuf = STRBUF_INIT;

	typed_add(&line, command);
	stores_options(call->hint_store, &line);
	fprintf(stderr, "%s%s\n", when, strbuf_str(&line));
}

/* The largest one that has a row. NULL: none has. */
static const struct heapjava_program *java_shown(const struct heapsites *h, size_t rows)
{
	for (size_t k = 0; k < h->java.n; k++)
		for (size_t i = 0; i < h->n && i < rows; i++)
			if (!strcmp(h->rows[i].who, h->java.list[k].who))
				return &h->java.list[k];
	return NULL;
}

/* What rows of a Java program can say, and how to see more. */
static void say_java(const struct verb_call *call, const struct heapsites *h, size_t rows)
{
	const struct heapjava_program *p = java_shown(h, rows);
	char record[96], heap[64];

	if (call->quiet || !p)
		return;
	fflush(stdout); /* below its rows */
	snprintf(record, sizeof(record), "sudo sonde record --families java -p %u -d 1m", p->pid);
	snprintf(heap, sizeof(heap), "sonde heap -p %u --alloc", p->pid);
	fprintf(stderr,
		"%s (pid %u) is a Java program: its rows have the code that touched memory first, in its heap often the collector's. Its flight recorder has the lines that allocate there:\n",
		p->who, p->pid);
	say_command(call, "next:  ", record);
	say_command(call, "then:  ", heap);
}

static int heap_json(const struct heapsites *h, size_t rows, bool growth)
{
	json_t *j = json_envelope("heap", h->inuse->from_ns, h->inuse->to_ns);

	json_object_set_new(j, "touched", json_boolean(h->touched));
	for (size_t i = 0; i < h->n && i < rows; i++) {
		const struct heapsite *s = &h->rows[i];
		json_t *o = json_pack(
			"{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "who",
			json_text(s->who), "use", json_text_or_null(s->use), "function",
			json_text(s->function), "module", json_text_or_null(s->module), "file",
			json_text_or_null(s->file), "line", (json_int_t)s->line, "inuse_bytes",
			(json_int_t)s->inuse_bytes, "inuse_objects", (json_int_t)s->inuse_objects,
			"alloc_bytes", (json_int_t)s->alloc_bytes, "alloc_objects",
			(json_int_t)s->alloc_objects);

		json_object_set_new(o, "growth_bytes_per_s",
				    growth ? json_real(s->growth) : json_null());
		json_object_set_new(o, "grown_bytes",
				    growth ? json_integer((json_int_t)s->grown) : json_null());
		json_array_append_new(json_rows(j), o);
	}
	json_bound(j, h->n);
	json_object_set_new(j, "java", java_json(&h->java));
	return json_print(j, stdout, 1);
}

static const char *growth_text(const struct fold *f, double per_s, char *buf, size_t size)
{
	char amount[32];
	double per_hour = per_s * HOUR;

	snprintf(buf, size, "%s%s/h", per_hour < 0 ? "-" : "+",
		 fold_amount(f, (uint64_t)(per_hour < 0 ? -per_hour : per_hour), amount,
			     sizeof(amount)));
	return buf;
}

/* Columns that only some tables have. */
enum heap_column { COLUMN_ALWAYS, COLUMN_GROWTH, COLUMN_ALLOC, COLUMN_USE };

static bool has_column(const struct heap_args *a, enum heap_column c)
{
	return c == COLUMN_ALWAYS || (c == COLUMN_GROWTH && a->growth) ||
	       (c == COLUMN_ALLOC && !a->growth && !a->pages) || (c == COLUMN_USE && a->pages);
}

static void heap_row(struct table *t, const struct heap_args *a, const struct fold *f,
		     const struct heapsite *s, struct strbuf *place)
{
	char text[48];

	if (a->growth) {
		table_cell(t, fold_amount(f, s->grown, text, sizeof(text)));
		table_cell(t, growth_text(f, s->growth, text, sizeof(text)));
	}
	if (has_column(a, COLUMN_ALLOC))
		table_cell(t, fold_amount(f, s->alloc_bytes, text, sizeof(text)));
	table_cell(t, fold_amount(f, s->inuse_bytes, text, sizeof(text)));
	table_cellf(t, "%llu", (unsigned long long)s->inuse_objects);
	if (a->pages)
		table_cell(t, s->use);
	table_cell(t, s->who);
	table_cell(t, s->function);
	table_cell(t, place_of(s, place));
}

static void heap_table(const struct verb_call *call, const struct heapsites *h, size_t rows)
{
	const struct heap_args *a = call->args;
	const bool pages = h->touched || a->pages;
	const struct {
		struct table_column column;
		enum heap_column when;
	} all[] = {
		{{"GROWN", TABLE_RIGHT}, COLUMN_GROWTH},
		{{"GROWTH", TABLE_RIGHT}, COLUMN_GROWTH},
		{{h->touched ? "TOUCHED" : "ALLOCATED", TABLE_RIGHT}, COLUMN_ALLOC},
		{{"IN USE", TABLE_RIGHT}, COLUMN_ALWAYS},
		{{pages ? "PAGES" : "OBJECTS", TABLE_RIGHT}, COLUMN_ALWAYS},
		{{"FOR", TABLE_LEFT}, COLUMN_USE},
		{{"WHO", TABLE_MIDDLE}, COLUMN_ALWAYS},
		{{"FUNCTION", TABLE_MIDDLE}, COLUMN_ALWAYS},
		{{"LINE", TABLE_MIDDLE}, COLUMN_ALWAYS},
	};
	struct table_column columns[ARRAY_SIZE(all)];
	struct strbuf place = STRBUF_INIT;
	struct table *t;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (has_column(a, all[i].when))
			columns[n++] = all[i].column;
	t = table_new(columns, n);
	for (size_t i = 0; i < h->n && i < rows; i++)
		heap_row(t, a, h->inuse, &h->rows[i], &place);
	table_print(t, stdout, call->wide ? 0 : term_width(stdout));
	table_free(t);
	strbuf_release(&place);
}

static int heap_run(struct verb_call *call, struct err *e)
{
	const struct heap_args *a = call->args;
	enum heapsites_order order = a->growth ? HEAPSITES_BY_GROWTH :
				     a->alloc  ? HEAPSITES_BY_ALLOC :
						 HEAPSITES_BY_INUSE;
	size_t rows = a->rows ? (size_t)a->rows : DEFAULT_ROWS;
	struct heapsites h;
	int ret;

	if (a->growth && a->alloc)
		return err_set(e, -EINVAL, EXIT_USAGE, "--growth and --alloc cannot be combined");
	if (a->pages && a->alloc)
		return err_set(e, -EINVAL, EXIT_USAGE, "--pages and --alloc cannot be combined");
	ret = heapsites_make(call->sel, a->pages ? HEAPSITES_PAGES : HEAPSITES_PROCESSES, order, &h,
			     e);
	if (ret)
		return ret;
	if (a->growth && !h.n && !call->quiet)
		fprintf(stderr, "nothing holds more memory than before%s\n",
			h.touched ? " (memory that processes share is not in it)" : "");
	if (call->json)
		ret = heap_json(&h, rows, a->growth);
	else if (h.n || !a->growth)
		heap_table(call, &h, rows);
	if (!call->json && !a->pages && h.n)
		say_java(call, &h, rows);
	heapsites_release(&h);
	return verb_flush(ret, e);
}

const struct verb verb_heap = {
	.name = "heap",
	.summary = "show code that holds memory, and where it grows",
	.usage = "[WHAT] [--growth | --alloc] [--pages] [-n N]",
	.examples = HEAP_EXAMPLES,
	.options = HEAP_OPTIONS,
	.args_size = sizeof(struct heap_args),
	.uses = VERB_SELECT | VERB_HOSTS | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = heap_run,
};
