/* SPDX-License-Identifier: Apache-2.0 */
/* status_print: recordings and the store, for people and as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "tools/fold/shortfall.h"
#include "tools/print/json.h"
#include "tools/print/table.h"
#include "tools/print/term.h"
#include "tools/print/when.h"
#include "tools/print/wrap.h"
#include "tools/record/status.h"

#define REFUSED_SHOWN 3
#define CUT_SHOWN     3 /* programs whose stacks are cut short, of the newest recording */
#define CUT_JSON      20
#define LIST_JSON     20

static uint64_t facts_lost(const struct status_facts *f)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->n_losses; i++)
		n += f->losses[i].n;
	return n;
}

static const char *state_of(const struct status_facts *f)
{
	if (f->live)
		return "going on";
	return f->rec->state == 1 ? "ended" : "killed";
}

static double cores(const struct status_facts *f)
{
	int64_t span = select_recording_took_ns(f->rec);

	return span > 0 ? (double)f->own.cpu_ns / (double)span : 0;
}

static double named_share(const struct status_facts *f)
{
	return f->looked_at ? (double)f->named / (double)f->looked_at : 0;
}

static json_t *refused_json(const struct status_facts *f)
{
	json_t *all = json_array();

	for (size_t i = 0; i < f->n_refused; i++) {
		json_t *one = json_object();

		json_object_set_new(one, "comm", json_text(f->refused[i].comm));
		json_object_set_new(one, "pid", json_integer(f->refused[i].pid));
		json_object_set_new(one, "why", json_text(f->refused[i].why));
		json_object_set_new(one, "what",
				    json_text(f->refused[i].unnamed ? "names" : "profile"));
		json_array_append_new(all, one);
	}
	return all;
}

static json_t *facts_json(const struct status_facts *f)
{
	json_t *row = json_object(), *lost = json_object();

	json_object_set_new(row, "rec", json_integer(f->rec->number));
	json_object_set_new(row, "family", json_text(f->rec->family));
	json_object_set_new(row, "options", json_text(f->rec->options));
	json_object_set_new(row, "state", json_text(state_of(f)));
	json_object_set_new(row, "pid", json_integer(f->rec->pid));
	json_set_time(row, "from", f->rec->from_ns);
	json_set_time(row, "to", f->rec->to_ns);
	json_object_set_new(row, "bucket_seconds", json_integer(f->rec->bucket_s));
	json_object_set_new(row, "period_ns", json_integer((json_int_t)f->rec->period_ns));
	json_object_set_new(row, "samples", json_integer((json_int_t)f->samples));
	json_object_set_new(row, "events", json_integer((json_int_t)f->events));
	json_object_set_new(row, "named_share",
			    f->looked_at ? json_real(named_share(f)) : json_null());
	json_object_set_new(row, "user_samples", json_integer((json_int_t)f->endings.n));
	json_object_set_new(row, "complete_share",
			    f->endings.n ? json_real(endings_share(&f->endings)) : json_null());
	json_object_set_new(row, "cut_short", endings_json(&f->endings, CUT_JSON));
	for (size_t i = 0; i < f->n_losses; i++)
		json_object_set_new(lost, f->losses[i].reason,
				    json_integer((json_int_t)f->losses[i].n));
	json_object_set_new(row, "lost", lost);
	json_cut_list(row, "refused", refused_json(f), LIST_JSON);
	json_object_set_new(row, "self_cpu_ns", json_integer((json_int_t)f->own.cpu_ns));
	json_object_set_new(row, "self_edges_cpu_ns", json_integer((json_int_t)f->own.edges_ns));
	json_object_set_new(row, "self_cores", json_real(cores(f)));
	json_object_set_new(row, "self_private_bytes", json_integer((json_int_t)f->private_bytes));
	json_object_set_new(row, "self_map_bytes", json_integer((json_int_t)f->map_bytes));
	return row;
}

static void shed_print(void *ctx, const char *sentence)
{
	(void)ctx;
	term_printf(stdout, "note: %s\n", sentence);
}

static void shed_json(void *ctx, const char *sentence)
{
	json_array_append_new(ctx, json_text(sentence));
}

/* What sonded made do less since the oldest of these recordings began. */
static void say_shed(const char *store, const struct status_facts *f, size_t n,
		     shortfall_take *take, void *ctx)
{
	cleanup_free struct shedlog_span *v = NULL;
	int64_t from = INT64_MAX;
	size_t n_spans;

	for (size_t i = 0; i < n; i++)
		from = f[i].rec->from_ns < from ? f[i].rec->from_ns : from;
	shedlog_read(store, from, INT64_MAX, &v, &n_spans);
	shortfall_sheds(v, n_spans, from, clock_utc_ns(), take, ctx);
}

int status_print_json(const char *store, const struct status_store *s, const struct status_facts *f,
		      size_t n, size_t of, json_t *daemon)
{
	json_t *envelope = json_envelope("status", s->from_ns, s->to_ns);
	json_t *about = json_object(), *aside = json_array();

	json_object_set_new(about, "path", json_text(store));
	json_object_set_new(about, "bytes", json_integer((json_int_t)s->bytes));
	json_object_set_new(about, "segments", json_integer((json_int_t)s->n_segments));
	for (size_t i = 0; i < s->n_aside; i++)
		json_array_append_new(aside, json_text(s->aside[i]));
	json_cut_list(about, "damaged", aside, LIST_JSON);
	json_object_set_new(envelope, "store", about);
	json_object_set_new(envelope, "sonded", daemon ? json_incref(daemon) : json_null());
	for (size_t i = 0; i < n; i++)
		json_array_append_new(json_rows(envelope), facts_json(&f[i]));
	json_bound(envelope, of);
	say_shed(store, f, n, shed_json, json_object_get(envelope, "warnings"));
	return json_print(envelope, stdout, 0);
}

static void print_live(const struct status_facts *f, size_t n)
{
	char took[32], memory[32];
	size_t live = 0;

	for (size_t i = 0; i < n; i++) {
		if (!f[i].live)
			continue;
		live++;
		printf("recording  %s, pid %lld, since %s: rec %lld, ", f[i].rec->family,
		       (long long)f[i].rec->pid,
		       units_ns(clock_utc_ns() - f[i].rec->from_ns, took, sizeof(took)),
		       (long long)f[i].rec->number);
		if (!f[i].private_bytes)
			printf("its cost is not stored yet\n");
		else
			printf("%.2f %% of one core, %s private\n", 100 * cores(&f[i]),
			       units_bytes(f[i].private_bytes, memory, sizeof(memory)));
	}
	if (!live)
		printf("recording  nothing at the moment\n");
}

/* As typed, without what is of no interest: the program's folder, and the options that `sonde
 * record` adds itself (as one block, see verb_record.c). */
static void add_options(struct strbuf *out, const char *options)
{
	const char *added = strstr(options, " --store "),
		   *last = added ? strstr(added, " --progress-fd ") : NULL;
	size_t word = strcspn(options, " ");

	while (word && options[word - 1] != '/')
		word--;
	if (!last) {
		strbuf_addstr(out, options + word);
		return;
	}
	last += strlen(" --progress-fd ");
	strbuf_add(out, options + word, (size_t)(added - options) - word);
	strbuf_addstr(out, last + strspn(last, "0123456789"));
}

static void print_losses(const struct status_facts *f)
{
	int64_t now = clock_utc_ns();

	for (size_t k = 0; k < f->n_losses; k++) {
		const struct status_loss *l = &f->losses[k];
		const char *words = shortfall_reason(l->reason);
		struct strbuf text = STRBUF_INIT, line = STRBUF_INIT;
		char from[32], to[32], n[UNITS_MAX];

		if (!l->n)
			continue;
		strbuf_addf(&text, "lost in rec %lld: %s, reason %s%s%s", (long long)f->rec->number,
			    units_count(l->n, n, sizeof(n)), l->reason, *words ? ": " : "", words);
		if (l->from_ns)
			strbuf_addf(&text, ", %s to %s",
				    when_local(l->from_ns, now, from, sizeof(from)),
				    when_local(l->to_ns, now, to, sizeof(to)));
		strbuf_addshown(&line, strbuf_str(&text), text.len);
		wrap_print(stdout, strbuf_str(&line), 2);
		strbuf_release(&text);
		strbuf_release(&line);
	}
}

static void print_recordings(const struct status_facts *f, size_t n)
{
	/* clang-format off */
	static const struct table_column columns[] = {
		{"REC", TABLE_RIGHT}, {"BEGAN", TABLE_LEFT}, {"LENGTH", TABLE_RIGHT}, {"STATE", TABLE_LEFT},
		{"HZ", TABLE_RIGHT}, {"FAMILY", TABLE_MIDDLE}, {"SAMPLES", TABLE_RIGHT}, {"LOST", TABLE_RIGHT}, {"NAMED", TABLE_RIGHT},
		{"COMPLETE", TABLE_SPARE_RIGHT}, {"OWN CPU", TABLE_SPARE_RIGHT}, {"OPTIONS", TABLE_SPARE},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_SIZE(columns));
	struct strbuf options cleanup_strbuf = STRBUF_INIT;
	char buf[32];

	for (size_t i = 0; i < n; i++) {
		const struct select_recording *r = f[i].rec;

		table_cellf(t, "%lld", (long long)r->number);
		table_cell(t, when_local(r->from_ns, clock_utc_ns(), buf, sizeof(buf)));
		table_cell(t, units_ns(select_recording_took_ns(r), buf, sizeof(buf)));
		table_cell(t, state_of(&f[i]));
		if (r->period_ns)
			table_cellf(t, "%.0f", 1e9 / (double)r->period_ns);
		else
			table_cell(t, "-");
		table_cell(t, r->family);
		table_cell(t, units_count(f[i].samples + f[i].events, buf, sizeof(buf)));
		table_cell(t, units_count(facts_lost(&f[i]), buf, sizeof(buf)));
		if (f[i].looked_at)
			table_cell(t, units_share(named_share(&f[i]), 1, buf, sizeof(buf)));
		else
			table_cell(t, "-");
		if (f[i].endings.n)
			table_cell(t,
				   units_share(endings_share(&f[i].endings), 1, buf, sizeof(buf)));
		else
			table_cell(t, "-");
		table_cellf(t, "%.2f %%", 100 * cores(&f[i]));
		strbuf_reset(&options);
		add_options(&options, r->options);
		table_cell(t, strbuf_str(&options));
	}
	table_print(t, stdout, term_width(stdout));
	table_free(t);
	for (size_t i = 0; i < n; i++)
		print_losses(&f[i]);
}

/* The newest of its family, of those that recorded while the newest of all did. */
static bool costs_now(const struct status_facts *f, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(f[k].rec->family, f[i].rec->family))
			return false;
	return f[i].rec->to_ns > f[0].rec->from_ns;
}

static int by_cores(const void *a, const void *b)
{
	const double x = cores(*(const struct status_facts *const *)a),
		     y = cores(*(const struct status_facts *const *)b);

	return (x < y) - (x > y);
}

/* "cost       6.85 % of one core: offcpu 2.92, l7 1.33" */
static void print_cost(const struct status_facts *f, size_t n)
{
	cleanup_free const struct status_facts **all = mem_array(n + 1, sizeof(*all));
	struct strbuf line cleanup_strbuf = STRBUF_INIT;
	double sum = 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (costs_now(f, i)) {
			sum += cores(&f[i]);
			all[k++] = &f[i];
		}
	if (!k)
		return;
	qsort(all, k, sizeof(*all), by_cores);
	strbuf_addf(&line, "cost       %.2f %% of one core", 100 * sum);
	for (size_t i = 0; i < k && k > 1; i++)
		strbuf_addf(&line, "%s%s %.2f", i ? ", " : ": ", all[i]->rec->family,
			    100 * cores(all[i]));
	wrap_print(stdout, strbuf_str(&line), 11);
}

/* Of the newest: which programs' stacks end before their root. */
static void print_cut_short(const struct status_facts *f)
{
	const struct endings *x = &f->endings;

	for (size_t i = 0; i < x->n_programs && i < CUT_SHOWN && x->programs[i].cut; i++) {
		cleanup_strbuf struct strbuf s = STRBUF_INIT;

		endings_say(x, i, &s);
		term_printf(stdout, "%s %s\n", i ? "          " : "cut short:", strbuf_str(&s));
	}
}

/* Of the newest of each family that refuses any. */
static void print_refused(const struct status_facts *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool newer = false;

		for (size_t k = 0; k < i; k++)
			newer |= !strcmp(f[k].rec->family, f[i].rec->family);
		for (size_t k = 0; !newer && k < f[i].n_refused && k < REFUSED_SHOWN; k++)
			term_printf(stdout, "%s, family %s: %s, pid %lld: %s\n",
				    f[i].refused[k].unnamed ? "generated code without names" :
							      "not asked",
				    f[i].rec->family, f[i].refused[k].comm,
				    (long long)f[i].refused[k].pid, f[i].refused[k].why);
		if (!newer && f[i].n_refused > REFUSED_SHOWN)
			printf("and %zu more\n", f[i].n_refused - REFUSED_SHOWN);
	}
}

void status_print(const char *store, const struct status_store *s, const struct status_facts *f,
		  size_t n)
{
	char size[32], from[32];

	print_live(f, n);
	printf("store      %s, %s in %zu segment%s, oldest data %s\n", store,
	       units_bytes(s->bytes, size, sizeof(size)), s->n_segments,
	       s->n_segments == 1 ? "" : "s",
	       s->from_ns ? when_local(s->from_ns, clock_utc_ns(), from, sizeof(from)) : "none");
	for (size_t i = 0; i < s->n_aside; i++)
		printf("damaged    %s was set aside; sqlite3 %s/%s .recover may save a part\n",
		       s->aside[i], store, s->aside[i]);
	print_cost(f, n);
	putchar('\n');
	print_recordings(f, n);
	say_shed(store, f, n, shed_print, NULL);
	print_refused(f, n);
	if (n)
		print_cut_short(&f[0]);
}
