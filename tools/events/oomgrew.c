/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/events/oomgrew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "tools/fold/ranking/heapsites.h"
#include "tools/print/json.h"
#include "tools/select/select.h"

#define STEADY_NS (3600 * NSEC_PER_SEC)
#define UNKNOWN   "[unknown]"
#define UNSAMPLED "[without a sample]" /* as loaders/mem names it */
#define LEAST     20 /* a line is named if it has a twentieth of what the first one has */

/* `a`: whose. */
static struct selection *window(const char *store, struct select_args *a, char *const *words,
				size_t n_words, int64_t from_ns, int64_t to_ns)
{
	struct selection *sel = NULL;
	struct err none = {0};
	char from[32], to[32];

	snprintf(from, sizeof(from), "%.3f", 1e-9 * (double)from_ns);
	snprintf(to, sizeof(to), "%.3f", 1e-9 * (double)to_ns);
	a->from = from;
	a->to = to;
	if (select_new(a, store, words, n_words, true, &sel, &none)) {
		select_free(sel);
		return NULL;
	}
	return sel;
}

static void take(struct oomgrew *out, const struct heapsite *s)
{
	if (out->n && s->grown < out->rows[0].grown / LEAST)
		return;
	if (!strncmp(s->function, UNKNOWN, sizeof(UNKNOWN) - 1)) /* that names no line */
		return;
	out->rows[out->n++] = (struct oomgrew_line){
		.who = mem_strdup(s->who),
		.function = mem_strdup(s->function),
		.file = mem_strdup(*s->file ? s->file : s->module),
		.line = *s->file ? s->line : 0,
		.grown = s->grown,
		.held = s->at[HEAPSITES_STEPS],
	};
}

/* Takes the selection; NULL: there is nothing. */
static void rows_read(struct selection *sel, enum heapsites_order order, struct oomgrew *out)
{
	struct err none = {0};
	struct heapsites h;

	*out = (struct oomgrew){0};
	if (sel && !heapsites_make(sel, HEAPSITES_PROCESSES, order, &h, &none)) {
		for (size_t i = 0; i < h.n && out->n < OOMGREW_LINES; i++)
			take(out, &h.rows[i]);
		heapsites_release(&h);
	}
	select_free(sel);
}

void oomgrew_read(const char *store, enum oomgrew_of of, const char *name, int64_t at_ns,
		  struct oomgrew *out)
{
	struct option_list one = {&name, 1, 1};
	struct select_args a = {.self = of == OOMGREW_HOST};

	if (of == OOMGREW_CONTAINER)
		a.container = one;
	else if (of == OOMGREW_COMM)
		a.comm = one;
	rows_read(window(store, &a, NULL, 0, at_ns - OOMGREW_BEFORE_NS, at_ns + NSEC_PER_SEC),
		  HEAPSITES_BY_DIFFERENCE, out);
}

void oomgrew_read_steady(const char *store, const char *name, int64_t at_ns, struct oomgrew *out)
{
	char *word = (char *)(uintptr_t)name;
	struct select_args a = {.self = !strcmp(name, "host")};

	rows_read(window(store, &a, &word, a.self ? 0 : 1, at_ns - STEADY_NS, at_ns),
		  HEAPSITES_BY_GROWTH, out);
}

void oomgrew_release(struct oomgrew *x)
{
	for (size_t i = 0; i < x->n; i++) {
		free(x->rows[i].who);
		free(x->rows[i].function);
		free(x->rows[i].file);
	}
	*x = (struct oomgrew){0};
}

void oomgrew_say(const struct oomgrew *x, struct strbuf *out)
{
	char grown[32], held[32];

	for (size_t i = 0; i < x->n; i++) {
		const struct oomgrew_line *l = &x->rows[i];
		const char *base = strrchr(l->file, '/');

		strbuf_addstr(out, i ? ", " : "");
		if (!strcmp(l->function, UNSAMPLED)) {
			strbuf_addf(out, "%.64s, in lines that are not known, by %s to %s", l->who,
				    units_bytes(l->grown, grown, sizeof(grown)),
				    units_bytes(l->held, held, sizeof(held)));
			continue;
		}
		strbuf_addf(out, "%.80s", l->function);
		if (*l->file)
			strbuf_addf(out, " (%.60s", base ? base + 1 : l->file);
		if (*l->file && l->line)
			strbuf_addf(out, ":%u", l->line);
		if (*l->file)
			strbuf_addstr(out, ")");
		strbuf_addf(out, " of %.64s by %s to %s", l->who,
			    units_bytes(l->grown, grown, sizeof(grown)),
			    units_bytes(l->held, held, sizeof(held)));
	}
}

json_t *oomgrew_json(const struct oomgrew *x)
{
	json_t *list = json_array();

	for (size_t i = 0; i < x->n; i++) {
		const struct oomgrew_line *l = &x->rows[i];
		json_t *o = json_object();

		json_object_set_new(o, "who", json_text(l->who));
		json_object_set_new(o, "function", json_text(l->function));
		json_object_set_new(o, "file", json_text_or_null(l->file));
		json_object_set_new(o, "line", json_integer(l->line));
		json_object_set_new(o, "grown_bytes", json_integer((json_int_t)l->grown));
		json_object_set_new(o, "inuse_bytes", json_integer((json_int_t)l->held));
		json_array_append_new(list, o);
	}
	return list;
}
