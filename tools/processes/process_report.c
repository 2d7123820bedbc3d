/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/processes/process_report.h"

#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cli/options.h"
#include "schema/base/units.h"
#include "tools/fold/fold_build.h"
#include "tools/fold/fold_kind.h"
#include "tools/print/json.h"
#include "tools/print/row.h"
#include "tools/print/term.h"
#include "tools/processes/shortlived.h"
#include "tools/timeline/ended.h"

#define DEFAULT_ROWS 20

/* clang-format off */
const struct option PROCESS_REPORT_OPTIONS[] = {
	{"number", 'n', OPTION_MOST, "N", "how many rows (default 20; 0: all)", offsetof(struct process_report_args, rows)},
	{"sort", 0, OPTION_STRING, "KEY", "cpu (default), pid, name, start, mem, io, disk, net, gpu, or a kind: offcpu, inuse", offsetof(struct process_report_args, sort)},
	{0},
};
/* clang-format on */
/* clang-format off */
const struct option PROCESS_REPORT_CONTAINER_OPTIONS[] = {
	{"number", 'n', OPTION_MOST, "N", "how many rows (default 20; 0: all)", offsetof(struct process_report_args, rows)},
	{"sort", 0, OPTION_STRING, "KEY", "cpu (default), name, start, mem, io, disk, net, gpu, restarts, oom, throttled", offsetof(struct process_report_args, sort)},
	{0},
};
/* clang-format on */

/* Which columns the table has: what no row has some of is left out. */
struct shown {
	bool cpu, mem, held, limit, io, net, gpu, disk, sync;
	bool ended, restarts, oom, throttled, image;
	bool kind[STORE_KINDS]; /* by fold of procs_more */
};

struct view {
	const struct verb_call *call;
	const struct fold *f;
	const struct process_rows *procs;
	const struct incidents *incidents; /* of containers */
	const struct shortlived *ended;    /* NULL: not asked */
	const char *sort;                  /* NULL: by CPU time */
	size_t n, most;                    /* shown, and asked for */
	struct shown shown;
};

static bool sorted_by(const struct view *v, const char *key)
{
	return !strcmp(v->sort ? v->sort : "cpu", key);
}

static void shown_settle(struct view *v)
{
	struct shown *s = &v->shown;

	for (size_t i = 0; i < v->n; i++) {
		const struct process_rows_row *x = &v->procs->rows[i];
		const struct process_usage_row *u = x->used;
		const struct incident_container *c = x->incidents;

		s->cpu |= u && u->cpu_us;
		s->mem |= u && u->has_mem;
		s->held |= u && u->has_mem && u->held != u->mem && sorted_by(v, "mem");
		s->limit |= u && u->mem_limit;
		s->io |= u && (u->read_bytes + u->write_bytes || (u->has_io && sorted_by(v, "io")));
		s->net |= u && u->rx_bytes + u->tx_bytes;
		s->gpu |= u && u->has_gpu;
		s->disk |= u && u->disk_us;
		s->sync |= u && u->sync_us;
		s->ended |= x->who && x->who->how;
		s->restarts |= c && incident_restarts(c)->n;
		s->oom |= c && c->oom.n;
		s->throttled |= process_rows_throttled_ns(x) != 0;
		s->image |= x->who && *x->who->container_image;
		for (size_t k = 0; v->procs->more && k < v->procs->more->n; k++)
			s->kind[k] |= x->more[k] != 0;
	}
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* ---- one value: title, align and key as in row.h ---- */

static const char *if_so(bool so, const char *name)
{
	return so ? name : NULL;
}

/* 0 is "0 B". */
static void put_bytes(struct row *r, const char *title, enum table_align align, const char *key,
		      uint64_t n, bool known)
{
	char text[UNITS_MAX];

	row_cell(r, title, align, known ? units_bytes(n, text, sizeof(text)) : NULL);
	row_json(r, key, json_number_or_null((json_int_t)n, known));
}

/* 0 is "-" in the table. */
static void put_ns(struct row *r, const char *title, enum table_align align, const char *key,
		   uint64_t ns, bool known)
{
	row_ns(r, title, align, NULL, (int64_t)ns, ns);
	row_json(r, key, json_number_or_null((json_int_t)ns, known));
}

static void put_number(struct row *r, const char *title, const char *key, uint64_t n, bool known)
{
	row_number(r, title, TABLE_RIGHT, NULL, (int64_t)n, n);
	row_json(r, key, json_number_or_null((json_int_t)n, known));
}

/* ---- what processes and containers have in common ---- */

static void put_samples(struct row *r, const struct view *v, const struct process_rows_row *x,
			bool known)
{
	const uint64_t whole = v->f->nodes[0].total_ns;
	const double cores = fold_cores(v->f, x->ns);
	char text[UNITS_MAX];

	known = known && whole;
	snprintf(text, sizeof(text), "%.2f", cores);
	row_cell(r, "CORES", TABLE_RIGHT, known ? text : NULL);
	units_share((double)x->ns, (double)whole, text, sizeof(text));
	row_cell(r, "SHARE", TABLE_RIGHT, known ? text : NULL);
	row_json(r, "cpu_ns", json_integer((json_int_t)x->ns));
	row_json(r, "cpu_cores", json_real(cores));
	row_json(r, "share", json_real(share(x->ns, whole)));
	row_json(r, "samples", json_integer((json_int_t)x->samples));
}

static void put_function(struct row *r, const struct view *v, const struct process_rows_row *x)
{
	const char *name = x->frame_ns ? v->f->frames[x->frame].name : NULL;

	row_cell(r, "MOST IN", TABLE_MIDDLE, name ? name : if_so(x->ns, "[no stack]"));
	row_json(r, "top_function", json_text(name));
	row_json(r, "top_share", json_real(share(x->frame_ns, x->ns)));
}

/* Of a container: how many of its processes lived between two readings, and how much of its CPU
 * time is attributed to no process. */
static void put_shortlived(struct row *r, const struct view *v, const char *container,
			   const struct process_usage_row *u)
{
	const struct shortlived_told *t = shortlived_of(v->ended, container);

	row_json(r, "ended_processes", json_number_or_null(t ? (json_int_t)t->n : 0, t));
	row_json(r, "cpu_unattributed_ns",
		 json_number_or_null(t ? shortlived_rest(u->cpu_us, t->cpu_us) * 1000 : 0,
				     t && u->cpu_us));
}

/* As families host, disk, net and gpu recorded it; without them there are no keys. */
static void put_used(struct row *r, const struct view *v, const struct process_rows_row *x)
{
	static const struct process_usage used_none;
	static const struct process_usage_row row_none;
	const struct process_usage *all = v->procs->used ? v->procs->used : &used_none;
	const struct process_usage_row *u = x->used ? x->used : &row_none;
	const struct shown *s = &v->shown;
	const bool host = all->known, net = all->net_known || (host && x->container);
	const enum table_align io = sorted_by(v, "io") ? TABLE_RIGHT : TABLE_SPARE_RIGHT,
			       of_net = sorted_by(v, "net") ? TABLE_RIGHT : TABLE_SPARE_RIGHT,
			       of_disk = sorted_by(v, "disk") ? TABLE_RIGHT : TABLE_SPARE_RIGHT;

	put_ns(r, if_so(s->cpu, "CPU"), TABLE_SPARE_RIGHT, if_so(host, "cpu_used_ns"),
	       u->cpu_us * 1000, x->used);
	put_bytes(r, if_so(s->mem, "MEM"), TABLE_RIGHT, if_so(host, "mem_bytes"), u->mem,
		  u->has_mem);
	put_bytes(r, if_so(s->held, "HELD"), TABLE_RIGHT, if_so(host, "mem_held_bytes"), u->held,
		  u->has_mem);
	put_bytes(r, if_so(s->limit, "LIMIT"), TABLE_RIGHT,
		  if_so(host && x->container, "mem_limit_bytes"), u->mem_limit, u->mem_limit);
	put_bytes(r, if_so(s->io, "IO"), io, NULL, u->read_bytes + u->write_bytes, u->has_io);
	put_bytes(r, NULL, io, if_so(host, "read_bytes"), u->read_bytes, u->has_io);
	put_bytes(r, NULL, io, if_so(host, "write_bytes"), u->write_bytes, u->has_io);
	put_ns(r, if_so(s->disk, "DISK"), of_disk, if_so(all->disk_known, "disk_ns"),
	       u->disk_us * 1000, true);
	put_ns(r, if_so(s->sync, "FSYNC"), of_disk, if_so(all->disk_known, "fsync_ns"),
	       u->sync_us * 1000, true);
	put_bytes(r, if_so(s->net, "NET"), of_net, NULL, u->rx_bytes + u->tx_bytes, u->has_net);
	put_bytes(r, NULL, of_net, if_so(net, "rx_bytes"), u->rx_bytes, u->has_net);
	put_bytes(r, NULL, of_net, if_so(net, "tx_bytes"), u->tx_bytes, u->has_net);
	put_ns(r, if_so(s->gpu, "GPU"), TABLE_RIGHT, if_so(all->gpu_known, "gpu_ns"),
	       u->gpu_us * 1000, true);
	put_bytes(r, if_so(s->gpu, "GPU MEM"), TABLE_RIGHT, if_so(all->gpu_known, "gpu_mem_bytes"),
		  u->gpu_mem, u->has_gpu);
	if (host && x->container) {
		put_shortlived(r, v, x->container, u);
		row_json(r, "io_of_processes", json_boolean(u->io_of_processes));
	}
}

/* ---- a process ---- */

/* offcpu_ns, inuse_bytes, ...: of what was recorded. */
static void put_kinds(struct row *r, const struct view *v, const struct process_rows_row *x)
{
	const struct procs_more *more = v->procs->more;

	for (size_t k = 0; more && k < more->n; k++) {
		const struct fold *f = more->fold[k];
		char key[32], text[32];

		snprintf(key, sizeof(key), "%s_%s", f->kind->name, store_unit_name(f->unit));
		row_cell(r, if_so(v->shown.kind[k], more->title[k]), TABLE_SPARE_RIGHT,
			 procs_more_say(f, x->more[k], text, sizeof(text)));
		row_json(r, key, json_integer((json_int_t)x->more[k]));
	}
}

/* "make 812"; its number alone where nothing else is known of it. */
static void put_parent(struct row *r, const struct view *v, const struct fold_process *p)
{
	const struct fold_process *parent = process_rows_parent(v->procs, p);
	char text[64];

	snprintf(text, sizeof(text), "%.40s%s%u", parent ? parent->comm : "", parent ? " " : "",
		 p->ppid);
	row_cell(r, "PARENT", TABLE_SPARE, p->pid ? text : NULL);
	row_json(r, "ppid", json_integer(p->ppid));
	row_json(r, "parent_comm", json_text(parent ? parent->comm : NULL));
}

static void put_end(struct row *r, const struct view *v, const struct fold_process *p)
{
	char how[ENDED_MAX];

	ended_say(p->how, p->status, how);
	row_text(r, if_so(v->shown.ended, "ENDED"), TABLE_LEFT, "how", how);
	row_time(r, "ended", p->end_ns);
	row_json(r, "status", json_number_or_null(p->status, p->how));
}

/* By the names of this host; in a container there are others: the number, as where there is no
 * name. */
static json_t *user_json(const struct fold_process *p)
{
	const struct passwd *pw = *p->container_id ? NULL : getpwuid(p->uid);
	char number[16];

	snprintf(number, sizeof(number), "%u", p->uid);
	return json_text(pw ? pw->pw_name : number);
}

static void put_identity(struct row *r, const struct fold_process *p)
{
	row_json(r, "uid", json_integer(p->uid));
	row_json(r, "user", user_json(p));
	row_json(r, "exe", json_text_or_null(p->exe));
	row_json(r, "args", json_text_or_null(p->args));
	row_json(r, "container", json_text_or_null(p->container));
	row_json(r, "container_id", json_text_or_null(p->container_id));
	row_json(r, "unit", json_text_or_null(p->unit));
	row_json(r, "lang", json_text_or_null(p->lang));
	row_json(r, "runtime", json_text_or_null(p->lang_runtime));
	row_time(r, "started", p->start_ns);
}

/* A process; pid 0: many at once, and the command says which. */
static void put_process(struct row *r, const struct view *v, const struct process_rows_row *x)
{
	const struct fold_process *p = x->who;

	row_number(r, "PID", TABLE_RIGHT, "pid", p->pid, p->pid);
	put_samples(r, v, x, p->pid);
	put_used(r, v, x);
	put_kinds(r, v, x);
	row_word(r, "COMMAND", TABLE_LEFT, "comm", p->comm);
	put_parent(r, v, p);
	row_cell(r, "CONTAINER", TABLE_LEFT,
		 *p->container ? p->container : if_so(*p->unit, p->unit));
	put_end(r, v, p);
	put_function(r, v, x);
	row_cell(r, "COMMAND LINE", TABLE_SPARE, *p->args ? p->args : p->exe);
	if (r->json)
		put_identity(r, p);
	row_end(r);
}

#define ENDED_ROWS 5

/* A row that is not one process. */
static void put_sum(struct row *r, const struct view *v, const struct shortlived_row *x,
		    const char *what)
{
	const struct process_usage_row used = {.cpu_us = x->cpu_us,
					       .read_bytes = x->read_bytes,
					       .write_bytes = x->write_bytes,
					       .has_io = x->n};
	const struct fold_process who = {.comm = what,
					 .container = x->container ? x->container : "",
					 .unit = "",
					 .args = "",
					 .exe = "-"};

	put_process(r, v, &(struct process_rows_row){.who = &who, .used = &used});
}

static void put_ended(struct row *r, const struct view *v, const struct shortlived_row *x,
		      const char *comm)
{
	char what[96];

	snprintf(what, sizeof(what), "%.40s (%llu short-lived)", comm, (unsigned long long)x->n);
	put_sum(r, v, x, what);
}

/* Processes that lived between two readings, and the unattributed CPU time: below the others,
 * whatever -n is. */
static void put_sums(struct row *r, const struct view *v)
{
	const struct shortlived *s = v->ended;
	struct shortlived_row rest = {0};

	if (!s || !v->shown.cpu)
		return;
	for (size_t i = 0; i < s->n && i < ENDED_ROWS; i++)
		put_ended(r, v, &s->rows[i], *s->rows[i].comm ? s->rows[i].comm : "others");
	for (size_t i = ENDED_ROWS; i < s->n; i++) {
		rest.n += s->rows[i].n;
		rest.cpu_us += s->rows[i].cpu_us;
		rest.read_bytes += s->rows[i].read_bytes;
		rest.write_bytes += s->rows[i].write_bytes;
	}
	if (rest.n)
		put_ended(r, v, &rest, "others");
	rest = (struct shortlived_row){.cpu_us = shortlived_rest(s->charged_us, s->told_us)};
	if (s->charged_known && rest.cpu_us)
		put_sum(r, v, &rest, "[unattributed]");
}

/* ---- a container ---- */

static void put_incidents(struct row *r, const struct view *v, const struct process_rows_row *x)
{
	static const struct incident_container none;
	const struct incident_container *c = x->incidents ? x->incidents : &none;
	const bool is_one = x->incidents || !x->who || *x->who->container_id;

	put_ns(r, if_so(v->shown.throttled, "THROTTLED"), TABLE_RIGHT, "throttled_ns",
	       process_rows_throttled_ns(x), is_one && (v->incidents->throttling_known || x->used));
	put_number(r, if_so(v->shown.restarts, "RESTARTS"), "restarts", incident_restarts(c)->n,
		   is_one);
	put_number(r, if_so(v->shown.oom, "OOM"), "oom", c->oom.n, is_one);
}

static void put_container(struct row *r, const struct view *v, const struct process_rows_row *x)
{
	const struct fold_process *p = x->who;

	row_word(r, "CONTAINER", TABLE_LEFT, "container", x->container);
	row_json(r, "container_id",
		 json_text_or_null(p            ? p->container_id :
				   x->incidents ? x->incidents->id :
						  x->used->id));
	put_samples(r, v, x, true);
	put_used(r, v, x);
	put_incidents(r, v, x);
	put_number(r, "PROCESSES", "processes", x->n_processes, true);
	row_word(r, "MOST OF IT", TABLE_LEFT, "top_comm", p ? p->comm : NULL);
	row_json(r, "top_pid", json_number_or_null(p ? p->pid : 0, p));
	put_function(r, v, x);
	row_text(r, if_so(v->shown.image, "IMAGE"), TABLE_SPARE, "image",
		 p ? p->container_image : NULL);
	row_end(r);
}

/* ---- all ---- */

static void put_row(struct row *r, const struct view *v, const struct process_rows_row *x)
{
	if (x->container)
		put_container(r, v, x);
	else
		put_process(r, v, x);
}

struct table *process_report_table(const struct fold *f, const struct process_rows *p, size_t n)
{
	struct view v = {.f = f, .procs = p, .n = n};
	struct row r = row_of_table();

	shown_settle(&v);
	for (size_t i = 0; i < n; i++)
		put_row(&r, &v, &p->rows[i]);
	return r.table;
}

static int print_json(const struct view *v)
{
	const struct process_report_args *a = v->call->args;
	json_t *j = json_envelope(v->call->verb->name, v->f->from_ns, v->f->to_ns);

	json_object_set_new(j, "cpu_ns", json_integer((json_int_t)v->f->nodes[0].total_ns));
	for (size_t i = 0; i < v->n; i++) {
		struct row r = row_of_json();

		put_row(&r, v, &v->procs->rows[i]);
		json_array_append_new(json_rows(j), r.json);
	}
	if (v->procs->used && v->procs->used->known)
		shortlived_json(v->ended, j, v->most);
	if (a->running)
		json_side_list(j, "running", json_incref(a->running), a->running_total);
	json_bound(j, v->procs->n);
	return json_print(j, stdout, 1);
}

/* Of containers, what they are sorted by and none has any of: NULL: some has, or it is another key.
 */
static const char *nothing_sorted(const struct view *v)
{
	static const struct {
		const char *key, *note;
		size_t shown; /* in struct shown */
	} KEYS[] = {
		{"mem", "no container holds memory: sonde ps --sort mem has the processes",
		 offsetof(struct shown, mem)},
		{"io", "no container read or wrote: sonde ps --sort io has the processes",
		 offsetof(struct shown, io)},
		{"net", "no container received or sent: sonde ps --sort net has the processes",
		 offsetof(struct shown, net)},
		{"gpu", "no container used a GPU: sonde ps --sort gpu has the processes",
		 offsetof(struct shown, gpu)},
		{"disk", "no container asked a disk: sonde ps --sort disk has the processes",
		 offsetof(struct shown, disk)},
		{"restarts", "no container was restarted", offsetof(struct shown, restarts)},
		{"oom", "no container was killed for memory", offsetof(struct shown, oom)},
		{"throttled", "no container was throttled", offsetof(struct shown, throttled)},
	};

	for (size_t i = 0; v->sort && i < ARRAY_SIZE(KEYS); i++)
		if (!strcmp(v->sort, KEYS[i].key))
			return *(const bool *)((const char *)&v->shown + KEYS[i].shown) ?
				       NULL :
				       KEYS[i].note;
	return NULL;
}

#define ERROR_LEAST  0.15 /* two standard deviations of a row's samples */
#define STOLEN_LEAST 0.02

/* Why two neighbouring columns of CPU time may differ: chance, and a hypervisor. */
static void note_cpu(const struct view *v)
{
	const struct process_rows_row *x = v->n ? &v->procs->rows[0] : NULL;
	const double error = x && x->samples ? 2 / sqrt((double)x->samples) : 0;
	const double stolen = share(v->ended->stolen_us, v->ended->whole_us);

	if (v->shown.cpu && error >= ERROR_LEAST)
		fprintf(stderr,
			"note: CORES and SHARE are estimates from samples: those of the first row from %llu, ±%.0f %%; CPU is the kernel's own count, read every 10 s\n",
			(unsigned long long)x->samples, 100 * error);
	if (stolen >= STOLEN_LEAST)
		fprintf(stderr,
			"note: the hypervisor took %.1f %% of the CPU time: CORES has what it took from a running program%s\n",
			100 * stolen, v->shown.cpu ? ", CPU does not" : "");
}

static void print_table(const struct view *v, enum process_rows_by by)
{
	const char *none = by == PROCESS_ROWS_BY_CONTAINER ? nothing_sorted(v) : NULL;
	struct row r = row_of_table();

	for (size_t i = 0; i < v->n; i++)
		put_row(&r, v, &v->procs->rows[i]);
	if (by == PROCESS_ROWS_BY_PROCESS)
		put_sums(&r, v);
	table_print(r.table, stdout, v->call->wide ? 0 : term_width(stdout));
	table_free(r.table);
	if (v->n < v->procs->n && !v->call->quiet)
		fprintf(stderr, "%zu more: -n %zu shows them\n", v->procs->n - v->n, v->procs->n);
	if (none && !v->call->quiet)
		fprintf(stderr, "note: %s\n", none);
	if (!v->call->quiet)
		note_cpu(v);
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
	int ret = fold_make(call->sel,
			    &(struct fold_opts){
				    .kind = STORE_KIND_CPU, .leaf_frames = true, .functions = true},
			    f, e),
	    rc;

	if (ret && ret != -ENODATA)
		return ret;
	rc = by == PROCESS_ROWS_BY_CONTAINER ?
		     process_usage_containers(call->sel, used, ret ? &none : e) :
		     process_usage_processes(call->sel, used, ret ? &none : e);
	if (ret && rc && rc != -ENODATA) { /* what is wrong with a file must be said */
		*e = none;
		return rc;
	}
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
		sort = used.known     ? "mem" :
		       used.net_known ? "net" :
		       used.gpu_known ? "gpu" :
					"disk";
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
	v.most = a->rows ? (size_t)a->rows : DEFAULT_ROWS;
	v.n = v.most < procs.n ? v.most : procs.n;
	if (!ret)
		shown_settle(&v);
	if (!ret && call->json)
		ret = print_json(&v);
	else if (!ret)
		print_table(&v, by);
	process_rows_release(&procs);
	procs_more_release(&more);
	incidents_release(&incidents);
	process_usage_release(&used);
	shortlived_release(&ended);
	fold_free(f);
	return ret ? ret : program_flush(false, e);
}
