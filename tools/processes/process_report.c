/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/processes/process_report.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/units.h"
#include "tools/fold/fold_build.h"
#include "tools/fold/fold_kind.h"
#include "tools/print/json.h"
#include "tools/print/table.h"
#include "tools/print/term.h"
#include "tools/processes/shortlived.h"
#include "tools/timeline/ended.h"

#define DEFAULT_ROWS 20

/* clang-format off */
const struct option PROCESS_REPORT_OPTIONS[] = {
	{"number", 'n', OPTION_UINT, "N", "how many rows (default 20)", offsetof(struct process_report_args, rows)},
	{"sort", 0, OPTION_STRING, "KEY", "cpu (default), pid, name, start, mem, io, net, gpu, or a kind: offcpu, inuse", offsetof(struct process_report_args, sort)},
	{0},
};
/* clang-format on */
/* clang-format off */
const struct option PROCESS_REPORT_CONTAINER_OPTIONS[] = {
	{"number", 'n', OPTION_UINT, "N", "how many rows (default 20)", offsetof(struct process_report_args, rows)},
	{"sort", 0, OPTION_STRING, "KEY", "cpu (default), name, start, mem, io, net, gpu, restarts, oom, throttled", offsetof(struct process_report_args, sort)},
	{0},
};
/* clang-format on */

struct view {
	const struct verb_call *call;
	const struct fold *f;
	const struct process_rows *procs;
	const struct incidents *incidents; /* of containers */
	const struct shortlived *ended;    /* NULL: not asked */
	const char *sort;                  /* NULL: by CPU time */
	size_t n;
};

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* --- JSON --- */

static void set_end(json_t *o, const struct fold_process *p)
{
	char how[ENDED_MAX];

	ended_say(p->how, p->status, how);
	if (p->end_ns)
		json_set_time(o, "ended", p->end_ns);
	else
		json_object_set_new(o, "ended", json_null());
	json_object_set_new(o, "how", json_text_or_null(how));
	json_object_set_new(o, "status", json_number_or_null(p->status, p->how));
}

/* By the names of this host; in a container there are others: the number, as where there is no
 * name. */
static void set_user(json_t *o, const struct fold_process *p)
{
	const struct passwd *pw = *p->container_id ? NULL : getpwuid(p->uid);
	char number[16];

	snprintf(number, sizeof(number), "%u", p->uid);
	json_object_set_new(o, "user", json_text(pw ? pw->pw_name : number));
}

static void set_process(json_t *o, const struct process_rows *procs, const struct fold_process *p)
{
	const struct fold_process *parent = process_rows_parent(procs, p);

	json_object_set_new(o, "pid", json_integer(p->pid));
	json_object_set_new(o, "ppid", json_integer(p->ppid));
	json_object_set_new(o, "parent_comm", parent ? json_text(parent->comm) : json_null());
	json_object_set_new(o, "uid", json_integer(p->uid));
	set_user(o, p);
	json_object_set_new(o, "comm", json_text(p->comm));
	json_object_set_new(o, "exe", json_text_or_null(p->exe));
	json_object_set_new(o, "args", json_text_or_null(p->args));
	json_object_set_new(o, "container", json_text_or_null(p->container));
	json_object_set_new(o, "container_id", json_text_or_null(p->container_id));
	json_object_set_new(o, "unit", json_text_or_null(p->unit));
	json_object_set_new(o, "lang", json_text_or_null(p->lang));
	json_object_set_new(o, "runtime", json_text_or_null(p->lang_runtime));
	json_set_time(o, "started", p->start_ns);
	set_end(o, p);
}

/* Null: not of a container, or it was not recorded. */
static void set_incidents(json_t *o, const struct view *v, const struct process_rows_row *r)
{
	static const struct incident_container none;
	const struct incident_container *c = r->incidents ? r->incidents : &none;
	const bool is_one = r->incidents || !r->who || *r->who->container_id;
	const bool throttling_known = v->incidents->throttling_known || r->used;

	json_object_set_new(o, "restarts",
			    json_number_or_null((int64_t)incident_restarts(c)->n, is_one));
	json_object_set_new(o, "oom", json_number_or_null((int64_t)c->oom.n, is_one));
	json_object_set_new(o, "throttled_ns",
			    json_number_or_null((int64_t)process_rows_throttled_ns(r),
						is_one && throttling_known));
}

static void set_container(json_t *o, const struct view *v, const struct process_rows_row *r)
{
	const struct fold_process *p = r->who;

	json_object_set_new(o, "container", json_text(r->container));
	json_object_set_new(o, "container_id",
			    json_text_or_null(p            ? p->container_id :
					      r->incidents ? r->incidents->id :
							     r->used->id));
	json_object_set_new(o, "image", json_text_or_null(p ? p->container_image : ""));
	json_object_set_new(o, "processes", json_integer((json_int_t)r->n_processes));
	json_object_set_new(o, "top_comm", p ? json_text(p->comm) : json_null());
	json_object_set_new(o, "top_pid", p ? json_integer(p->pid) : json_null());
	set_incidents(o, v, r);
}

/* offcpu_ns, inuse_bytes, ...: of what was recorded. */
static void set_more(json_t *o, const struct view *v, const struct process_rows_row *r)
{
	for (size_t k = 0; v->procs->more && k < v->procs->more->n; k++) {
		const struct fold *f = v->procs->more->fold[k];
		char key[32];

		snprintf(key, sizeof(key), "%s_%s", f->kind->name, store_unit_name(f->unit));
		json_object_set_new(o, key, json_integer((json_int_t)r->more[k]));
	}
}

/* Of a container: how many of its processes lived between two readings, and how much of its CPU
 * time is attributed to no process. */
static void set_told(json_t *o, const struct view *v, const char *container,
		     const struct process_usage_row *u)
{
	const struct shortlived_told *t = shortlived_of(v->ended, container);

	json_object_set_new(o, "ended_processes", t ? json_integer((json_int_t)t->n) : json_null());
	json_object_set_new(
		o, "cpu_unattributed_ns",
		json_number_or_null(t ? shortlived_rest(u->cpu_us, t->cpu_us) * 1000 : 0,
				    t && u->cpu_us));
}

/* Where family host was recorded. */
static void set_used(json_t *o, const struct view *v, const struct process_rows_row *r)
{
	static const struct process_usage_row none;
	const struct process_usage_row *u = r->used ? r->used : &none;

	if (v->procs->used && v->procs->used->net_known) {
		json_object_set_new(o, "rx_bytes", json_number_or_null(u->rx_bytes, u->has_net));
		json_object_set_new(o, "tx_bytes", json_number_or_null(u->tx_bytes, u->has_net));
	}
	if (v->procs->used && v->procs->used->gpu_known) {
		json_object_set_new(o, "gpu_ns", json_integer((json_int_t)u->gpu_us * 1000));
		json_object_set_new(o, "gpu_mem_bytes",
				    json_number_or_null(u->gpu_mem, u->has_gpu));
	}
	if (!v->procs->used || !v->procs->used->known)
		return;
	json_object_set_new(o, "cpu_used_ns", json_number_or_null(u->cpu_us * 1000, r->used));
	json_object_set_new(o, "mem_bytes", json_number_or_null(u->mem, u->has_mem));
	json_object_set_new(o, "mem_held_bytes", json_number_or_null(u->held, u->has_mem));
	json_object_set_new(o, "read_bytes", json_number_or_null(u->read_bytes, u->has_io));
	json_object_set_new(o, "write_bytes", json_number_or_null(u->write_bytes, u->has_io));
	if (!r->container)
		return;
	set_told(o, v, r->container, u);
	json_object_set_new(o, "io_of_processes", json_boolean(u->io_of_processes));
	json_object_set_new(o, "mem_limit_bytes", json_number_or_null(u->mem_limit, u->mem_limit));
	json_object_set_new(o, "rx_bytes", json_number_or_null(u->rx_bytes, u->has_net));
	json_object_set_new(o, "tx_bytes", json_number_or_null(u->tx_bytes, u->has_net));
}

static int print_json(const struct view *v, const char *verb)
{
	json_t *j = json_envelope(verb, v->f->from_ns, v->f->to_ns);
	uint64_t whole = v->f->nodes[0].total_ns;

	json_object_set_new(j, "cpu_ns", json_integer((json_int_t)whole));
	for (size_t i = 0; i < v->n; i++) {
		const struct process_rows_row *r = &v->procs->rows[i];
		json_t *o = json_object();

		if (r->container)
			set_container(o, v, r);
		else
			set_process(o, v->procs, r->who);
		json_object_set_new(o, "cpu_ns", json_integer((json_int_t)r->ns));
		json_object_set_new(o, "cpu_cores", json_real(fold_cores(v->f, r->ns)));
		json_object_set_new(o, "share", json_real(share(r->ns, whole)));
		json_object_set_new(o, "samples", json_integer((json_int_t)r->samples));
		json_object_set_new(o, "top_function",
				    r->frame_ns ? json_text(v->f->frames[r->frame].name) :
						  json_null());
		json_object_set_new(o, "top_share", json_real(share(r->frame_ns, r->ns)));
		set_more(o, v, r);
		set_used(o, v, r);
		json_array_append_new(json_rows(j), o);
	}
	if (v->procs->used && v->procs->used->known)
		shortlived_json(v->ended, j);
	if (v->n < v->procs->n)
		json_warn(j, "%zu more rows: -n %zu shows them", v->procs->n - v->n, v->procs->n);
	return json_print(j, stdout, 1);
}

/* --- for people --- */

static void function_cell(struct table *t, const struct view *v, const struct process_rows_row *r)
{
	if (r->frame_ns)
		table_cell(t, v->f->frames[r->frame].name);
	else
		table_cell(t, r->ns ? "[no stack]" : "-");
}

/* "make 812"; its number alone where nothing else is known of it. */
static void parent_cell(struct table *t, const struct process_rows *procs,
			const struct fold_process *p)
{
	const struct fold_process *parent = process_rows_parent(procs, p);

	if (parent)
		table_cellf(t, "%s %u", parent->comm, p->ppid);
	else
		table_cellf(t, "%u", p->ppid);
}

/* Is there any row with an end to tell? */
static bool any_ended(const struct view *v)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->procs->rows[i].who->how)
			return true;
	return false;
}

static void end_cell(struct table *t, const struct fold_process *p)
{
	char how[ENDED_MAX];

	ended_say(p->how, p->status, how);
	table_cell(t, *how ? how : "-");
}

/* The kinds of which any row has some, into `kinds`; how many. */
static size_t kinds_shown(const struct view *v, size_t kinds[STORE_KINDS])
{
	const size_t n_more = v->procs->more ? v->procs->more->n : 0;
	size_t n = 0;

	for (size_t k = 0; k < n_more; k++)
		for (size_t i = 0; i < v->n; i++)
			if (v->procs->rows[i].more[k]) {
				kinds[n++] = k;
				break;
			}
	return n;
}

/* Which of what rows used is worth a column. */
struct used_shown {
	bool cpu, mem, held, limit, io, net, gpu;
	const char *sort; /* its column is not left out */
};
#define USED_COLUMNS 8

/* By samples; "-" without any. */
static void cores_cells(struct table *t, const struct view *v, const struct process_rows_row *r)
{
	const uint64_t whole = v->f->nodes[0].total_ns;
	char share[UNITS_MAX];

	if (whole) {
		table_cellf(t, "%.2f", fold_cores(v->f, r->ns));
		table_cell(t, units_share((double)r->ns, (double)whole, share, sizeof(share)));
	} else {
		table_cell(t, "-");
		table_cell(t, "-");
	}
}

static struct used_shown used_shown_of(const struct view *v)
{
	struct used_shown s = {.sort = v->sort ? v->sort : "cpu"};

	for (size_t i = 0; i < v->n; i++) {
		const struct process_usage_row *u = v->procs->rows[i].used;

		s.cpu |= u && u->cpu_us;
		s.mem |= u && u->has_mem;
		s.held |= u && u->has_mem && u->held != u->mem && !strcmp(s.sort, "mem");
		s.limit |= u && u->mem_limit;
		s.io |= u &&
			(u->read_bytes + u->write_bytes || (u->has_io && !strcmp(s.sort, "io")));
		s.net |= u && u->rx_bytes + u->tx_bytes;
		s.gpu |= u && u->has_gpu;
	}
	return s;
}

static enum table_align spare(const struct used_shown *s, const char *key)
{
	return strcmp(s->sort, key) ? TABLE_SPARE_RIGHT : TABLE_RIGHT;
}

static void used_columns(const struct used_shown *s, struct table_column *columns, size_t *n)
{
	if (s->cpu)
		columns[(*n)++] = (struct table_column){"CPU", TABLE_SPARE_RIGHT};
	if (s->mem)
		columns[(*n)++] = (struct table_column){"MEM", TABLE_RIGHT};
	if (s->held)
		columns[(*n)++] = (struct table_column){"HELD", TABLE_RIGHT};
	if (s->limit)
		columns[(*n)++] = (struct table_column){"LIMIT", TABLE_RIGHT};
	if (s->io)
		columns[(*n)++] = (struct table_column){"IO", spare(s, "io")};
	if (s->net)
		columns[(*n)++] = (struct table_column){"NET", spare(s, "net")};
	if (s->gpu) {
		columns[(*n)++] = (struct table_column){"GPU", TABLE_RIGHT};
		columns[(*n)++] = (struct table_column){"GPU MEM", TABLE_RIGHT};
	}
}

static void bytes_cell(struct table *t, bool known, uint64_t n)
{
	char text[32];

	table_cell(t, known ? units_bytes(n, text, sizeof(text)) : "-");
}

/* As the kernel charged it, whatever samples say. */
static void cpu_cell(struct table *t, uint64_t us)
{
	char text[32];

	table_cell(t, us ? units_ns((int64_t)us * 1000, text, sizeof(text)) : "-");
}

static void used_cells(struct table *t, const struct used_shown *s,
		       const struct process_usage_row *u)
{
	static const struct process_usage_row none;

	u = u ? u : &none;
	if (s->cpu)
		cpu_cell(t, u->cpu_us);
	if (s->mem)
		bytes_cell(t, u->has_mem, u->mem);
	if (s->held)
		bytes_cell(t, u->has_mem, u->held);
	if (s->limit)
		bytes_cell(t, u->mem_limit, u->mem_limit);
	if (s->io)
		bytes_cell(t, u->has_io, u->read_bytes + u->write_bytes);
	if (s->net)
		bytes_cell(t, u->has_net, u->rx_bytes + u->tx_bytes);
	if (s->gpu) {
		char time[32];

		table_cell(t, u->gpu_us ? units_ns((int64_t)u->gpu_us * 1000, time, sizeof(time)) :
					  "-");
		bytes_cell(t, u->has_gpu, u->gpu_mem);
	}
}

#define ENDED_ROWS 5

/* A row that is not one process: COMMAND says what it is. */
static void sum_row(struct table *t, const struct used_shown *used, size_t n_kinds, bool ended,
		    const struct shortlived_row *x, const char *what)
{
	table_cell(t, "-");
	table_cell(t, "-");
	table_cell(t, "-");
	if (used->cpu)
		cpu_cell(t, x->cpu_us);
	if (used->mem)
		table_cell(t, "-");
	if (used->held)
		table_cell(t, "-");
	if (used->limit)
		table_cell(t, "-");
	if (used->io)
		bytes_cell(t, x->n, x->read_bytes + x->write_bytes);
	for (size_t i = 0; i < n_kinds + used->net + 2u * used->gpu; i++)
		table_cell(t, "-");
	table_cell(t, what);
	table_cell(t, "-");
	table_cell(t, x->container && *x->container ? x->container : "-");
	for (size_t i = 0; i < 2u + ended; i++)
		table_cell(t, "-");
}

/* Processes that lived between two readings, and the unattributed CPU time: below the others,
 * whatever -n is. */
static void sum_rows(struct table *t, const struct view *v, const struct used_shown *used,
		     size_t n_kinds, bool ended)
{
	const struct shortlived *s = v->ended;
	struct shortlived_row rest = {0};
	char what[96];

	if (!s || !used->cpu)
		return;
	for (size_t i = 0; i < s->n && i < ENDED_ROWS; i++) {
		snprintf(what, sizeof(what), "%.40s (%llu short-lived)",
			 *s->rows[i].comm ? s->rows[i].comm : "others",
			 (unsigned long long)s->rows[i].n);
		sum_row(t, used, n_kinds, ended, &s->rows[i], what);
	}
	for (size_t i = ENDED_ROWS; i < s->n; i++) {
		rest.n += s->rows[i].n;
		rest.cpu_us += s->rows[i].cpu_us;
		rest.read_bytes += s->rows[i].read_bytes;
		rest.write_bytes += s->rows[i].write_bytes;
	}
	if (rest.n) {
		snprintf(what, sizeof(what), "others (%llu short-lived)",
			 (unsigned long long)rest.n);
		sum_row(t, used, n_kinds, ended, &rest, what);
	}
	rest = (struct shortlived_row){.cpu_us = shortlived_rest(s->charged_us, s->told_us)};
	if (s->charged_known && rest.cpu_us)
		sum_row(t, used, n_kinds, ended, &rest, "[unattributed]");
}

static struct table *process_table(const struct view *v)
{
	static const struct table_column all[] = {
		{"PID", TABLE_RIGHT},        {"CORES", TABLE_RIGHT},
		{"SHARE", TABLE_RIGHT},      {"COMMAND", TABLE_LEFT},
		{"PARENT", TABLE_SPARE},     {"CONTAINER", TABLE_LEFT},
		{"MOSTLY IN", TABLE_MIDDLE}, {"COMMAND LINE", TABLE_SPARE},
	};
	enum { N_ALL = ARRAY_SIZE(all), N_NUMBERS = 3, N_LAST = 2 };
	const struct used_shown used = used_shown_of(v);
	bool ended = any_ended(v);
	struct table_column columns[N_ALL + STORE_KINDS + 1 + USED_COLUMNS];
	size_t kinds[STORE_KINDS], n_kinds = kinds_shown(v, kinds), n = N_NUMBERS;
	struct table *t;

	memcpy(columns, all, N_ALL * sizeof(*all));
	used_columns(&used, columns, &n);
	for (size_t k = 0; k < n_kinds; k++)
		columns[n++] =
			(struct table_column){v->procs->more->title[kinds[k]], TABLE_SPARE_RIGHT};
	memcpy(columns + n, all + N_NUMBERS, (N_ALL - N_NUMBERS - N_LAST) * sizeof(*all));
	n += N_ALL - N_NUMBERS - N_LAST;
	if (ended)
		columns[n++] = (struct table_column){"ENDED", TABLE_LEFT};
	memcpy(columns + n, all + N_ALL - N_LAST, N_LAST * sizeof(*all));
	t = table_new(columns, n + N_LAST);

	for (size_t i = 0; i < v->n; i++) {
		const struct process_rows_row *r = &v->procs->rows[i];
		const struct fold_process *p = r->who;
		char amount[32];

		table_cellf(t, "%u", p->pid);
		cores_cells(t, v, r);
		used_cells(t, &used, r->used);
		for (size_t k = 0; k < n_kinds; k++)
			table_cell(t, procs_more_say(v->procs->more->fold[kinds[k]],
						     r->more[kinds[k]], amount, sizeof(amount)));
		table_cell(t, p->comm);
		parent_cell(t, v->procs, p);
		table_cell(t, *p->container ? p->container : *p->unit ? p->unit : "-");
		if (ended)
			end_cell(t, p);
		function_cell(t, v, r);
		table_cell(t, *p->args ? p->args : p->exe);
	}
	sum_rows(t, v, &used, n_kinds, ended);
	return t;
}

struct table *process_report_table(const struct fold *f, const struct process_rows *p, size_t n)
{
	return process_table(&(struct view){.f = f, .procs = p, .n = n});
}

struct shown {
	bool restarts, oom, throttled, image;
};

/* Columns that would be empty are left out. */
static struct shown shown_of(const struct view *v)
{
	struct shown s = {0};

	for (size_t i = 0; i < v->n; i++) {
		const struct incident_container *c = v->procs->rows[i].incidents;

		s.restarts |= c && incident_restarts(c)->n;
		s.oom |= c && c->oom.n;
		s.throttled |= process_rows_throttled_ns(&v->procs->rows[i]) != 0;
		s.image |= v->procs->rows[i].who && *v->procs->rows[i].who->container_image;
	}
	return s;
}

static void count_cell(struct table *t, const struct incident_count *c)
{
	if (c && c->n)
		table_cellf(t, "%llu", (unsigned long long)c->n);
	else
		table_cell(t, "-");
}

static void throttled_cell(struct table *t, uint64_t ns)
{
	char time[32];

	table_cell(t, ns ? units_ns((int64_t)ns, time, sizeof(time)) : "-");
}

static struct table *container_table(const struct view *v)
{
	const struct shown shown = shown_of(v);
	const struct used_shown used = used_shown_of(v);
	struct table_column columns[10 + USED_COLUMNS];
	size_t n = 0;
	struct table *t;

	columns[n++] = (struct table_column){"CONTAINER", TABLE_LEFT};
	columns[n++] = (struct table_column){"CORES", TABLE_RIGHT};
	columns[n++] = (struct table_column){"SHARE", TABLE_RIGHT};
	used_columns(&used, columns, &n);
	if (shown.throttled)
		columns[n++] = (struct table_column){"THROTTLED", TABLE_RIGHT};
	if (shown.restarts)
		columns[n++] = (struct table_column){"RESTARTS", TABLE_RIGHT};
	if (shown.oom)
		columns[n++] = (struct table_column){"OOM", TABLE_RIGHT};
	columns[n++] = (struct table_column){"PROCESSES", TABLE_RIGHT};
	columns[n++] = (struct table_column){"MOST OF IT", TABLE_LEFT};
	columns[n++] = (struct table_column){"MOSTLY IN", TABLE_MIDDLE};
	if (shown.image)
		columns[n++] = (struct table_column){"IMAGE", TABLE_SPARE};
	t = table_new(columns, n);
	for (size_t i = 0; i < v->n; i++) {
		const struct process_rows_row *r = &v->procs->rows[i];
		const struct incident_container *c = r->incidents;

		table_cell(t, r->container);
		cores_cells(t, v, r);
		used_cells(t, &used, r->used);
		if (shown.throttled)
			throttled_cell(t, process_rows_throttled_ns(r));
		if (shown.restarts)
			count_cell(t, c ? incident_restarts(c) : NULL);
		if (shown.oom)
			count_cell(t, c ? &c->oom : NULL);
		if (r->n_processes)
			table_cellf(t, "%zu", r->n_processes);
		else
			table_cell(t, "-");
		table_cell(t, r->who ? r->who->comm : "-");
		function_cell(t, v, r);
		if (shown.image)
			table_cell(t, r->who && *r->who->container_image ? r->who->container_image :
									   "-");
	}
	return t;
}

static void print_table(const struct view *v, enum process_rows_by by)
{
	struct table *t = by == PROCESS_ROWS_BY_CONTAINER ? container_table(v) : process_table(v);

	table_print(t, stdout, v->call->wide ? 0 : term_width(stdout));
	table_free(t);
	if (v->n < v->procs->n && !v->call->quiet)
		fprintf(stderr, "%zu more: -n %zu shows them\n", v->procs->n - v->n, v->procs->n);
}

/* Of a window in which no CPU time was sampled. */
static struct fold *fold_of_nothing(const struct selection *sel)
{
	struct fold_build *b = fold_begin();

	b->pub.from_ns = sel->from_ns;
	b->pub.to_ns = sel->to_ns;
	b->pub.kind = store_kind_info(STORE_KIND_CPU);
	b->pub.unit = STORE_TIME;
	b->pub.host = b->pub.kernel = "";
	return fold_end(b);
}

/* CPU time and other use: either may have been recorded without the other. */
static int read_both(const struct verb_call *call, enum process_rows_by by, struct fold **f,
		     struct process_usage *used, struct err *e)
{
	struct err none = {0};
	int ret = fold_make(call->sel, &(struct fold_opts){.kind = STORE_KIND_CPU, .leaves = true},
			    f, e),
	    rc;

	if (ret && ret != -ENODATA)
		return ret;
	rc = by == PROCESS_ROWS_BY_CONTAINER ?
		     process_usage_containers(call->sel, used, ret ? &none : e) :
		     process_usage_processes(call->sel, used, ret ? &none : e);
	if (!ret || rc || !used->n)
		return ret ? ret : rc;
	*e = none;
	*f = fold_of_nothing(call->sel);
	return 0;
}

int process_report_run(struct verb_call *call, enum process_rows_by by, struct err *e)
{
	const struct process_report_args *a = call->args;
	const char *sort = a->sort;
	struct incidents incidents = {0};
	struct view v = {.call = call, .incidents = &incidents};
	struct procs_more more = {0};
	struct process_rows procs = {0};
	struct process_usage used = {0};
	struct shortlived ended = {0};
	struct fold *f = NULL;
	int ret = read_both(call, by, &f, &used, e);

	if (ret) {
		fold_free(f);
		process_usage_release(&used);
		return ret;
	}
	if (!sort && !f->n_processes) /* without CPU time */
		sort = used.known ? "mem" : used.net_known ? "net" : "gpu";
	process_rows_init(&procs, f, by);
	if (by == PROCESS_ROWS_BY_PROCESS)
		ret = procs_more_make(&more, call->sel, e);
	else
		ret = incidents_read(call->sel, &incidents, e);
	if (more.n)
		process_rows_add(&procs, &more);
	if (by == PROCESS_ROWS_BY_CONTAINER)
		process_rows_add_incidents(&procs, &incidents);
	if (!ret)
		process_rows_add_used(&procs, &used);
	if (!ret && used.known)
		ret = shortlived_read(call->sel, &ended, e);
	v.ended = &ended;
	v.sort = sort;
	if (!ret && sort)
		ret = process_rows_sort(&procs, sort, e);
	v.f = f;
	v.procs = &procs;
	v.n = a->rows ? (size_t)a->rows : DEFAULT_ROWS;
	v.n = v.n < procs.n ? v.n : procs.n;
	if (!ret && call->json)
		ret = print_json(&v, call->verb->name);
	else if (!ret)
		print_table(&v, by);
	process_rows_release(&procs);
	procs_more_release(&more);
	incidents_release(&incidents);
	process_usage_release(&used);
	shortlived_release(&ended);
	fold_free(f);
	if (!ret && (fflush(stdout) || ferror(stdout)))
		ret = err_set(e, -EIO, EXIT_RUNTIME, "cannot write standard output: %s",
			      strerror(errno));
	return ret;
}
