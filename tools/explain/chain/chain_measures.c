/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/chain/chain_measures.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/read/waits.h"
#include "tools/explain/explain_inner.h"
#include "tools/fold/fold_kind.h"
#include "tools/select/askrows.h"
#include "tools/waits/waitrules.h"

#define LEFT_LEAST (16.0 * 1024 * 1024) /* a file system with less, or a thousandth, is full */

const char *const CHAIN_FAMILY_NAMES[CHAIN_FAMILIES] = {"cpu", "offcpu", "host", "net", "l7"};

static const char FAMILIES_SQL[] =
	"SELECT family, min(" ASKROWS_COUNTED_FROM "), max(" ASKROWS_COUNTED_TO
	"), max(cpus) FROM run"
	" WHERE to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 GROUP BY 1";
static const char CONTAINERS[] =
	"SELECT container, sum(user_us + system_us), sum(throttled_us), sum(periods), sum(throttled), sum(majflt), sum(psi_mem_us),"
	" sum(mem_max), sum(coalesce(read_bytes, 0) + coalesce(write_bytes, 0)), max(working), max(mem_limit) FROM container_stats"
	" WHERE ts BETWEEN ?1 AND ?2 AND container <> '' GROUP BY 1";
static const char PROCESSES[] =
	"SELECT process_id, sum(user_us + system_us), NULL, NULL, NULL, sum(majflt), NULL, NULL,"
	" sum(coalesce(read_bytes, 0) + coalesce(write_bytes, 0)), NULL, NULL FROM process_stats"
	" WHERE ts BETWEEN ?1 AND ?2 AND container = '' GROUP BY 1";
/* The same from sums. Those of containers say memory as it was last, which is asked of the time
 * before alone: there it is not said. */
static const struct askrows_sums
	CONTAINERS_SUMMED =
		{{"cgroup_row"},
		 "SELECT coalesce(iif(c.name = '', substr(c.runtime_id, 1, 12), c.name), ''), sum(user_us + system_us), sum(throttled_us),"
		 " sum(periods), sum(throttled), sum(majflt), sum(psi_mem_us), sum(mem_max),"
		 " sum(coalesce(read_bytes, 0) + coalesce(write_bytes, 0)), NULL, NULL FROM cgroup_sum x JOIN container c ON c.id = x.container"
		 " GROUP BY 1"},
	PROCESSES_SUMMED =
		{{"process_row"},
		 "SELECT x.process, sum(user_us + system_us), NULL, NULL, NULL, sum(majflt), NULL, NULL,"
		 " sum(coalesce(read_bytes, 0) + coalesce(write_bytes, 0)), NULL, NULL FROM process_sum x JOIN process p ON p.id = x.process"
		 " WHERE p.container = 0 GROUP BY 1"},
	FLOWS_SUMMED = {
		{"flow_row"},
		"SELECT x.process, iif(instr(pe.value, ':') > 0, '[' || pe.value || ']', pe.value) || ':' || CAST(coalesce(po.value, '') AS INTEGER),"
		" sum(segs_out), sum(retrans), sum(attempts), sum(coalesce(timed_out, 0) + coalesce(unreachable, 0) + coalesce(failed, 0)),"
		" sum(refused), sum(connect_us), sum(opened), sum(rtt_sum_us), sum(rtt_n) FROM flow_sum x JOIN text pr ON pr.id = x.protocol"
		" LEFT JOIN text pe ON pe.id = x.peer LEFT JOIN text po ON po.id = x.port WHERE pr.value = 'tcp' GROUP BY x.process, x.peer, x.port"};
static const char COLLECTIONS[] =
	"SELECT process_id, sum(coalesce(young_gc_us, 0) + coalesce(full_gc_us, 0)) FROM jvm_stats WHERE ts BETWEEN ?1 AND ?2 GROUP BY 1";
static const char FLOWS[] =
	"SELECT process_id, iif(instr(peer, ':') > 0, '[' || peer || ']', peer) || ':' || coalesce(port, 0), sum(segs_out), sum(retrans), sum(attempts),"
	" sum(coalesce(timed_out, 0) + coalesce(unreachable, 0) + coalesce(failed, 0)), sum(refused), sum(connect_us), sum(opened),"
	" sum(rtt_sum_us), sum(rtt_n) FROM flows WHERE ts BETWEEN ?1 AND ?2 AND protocol = 'tcp' GROUP BY 1, 2";
static const char DISKS[] =
	"SELECT mount, min(available), max(size), min(coalesce(inodes_free, -1)), max(read_only) FROM filesystem_stats"
	" WHERE ts BETWEEN ?1 AND ?2 AND size > 0 AND available IS NOT NULL GROUP BY 1";
static const char SWAPPED[] =
	"SELECT sum(coalesce(swap_in, 0) + coalesce(swap_out, 0)), sum(coalesce(steal_us, 0)), sum(seconds * cpus * 1e6) FROM host_stats WHERE ts BETWEEN ?1 AND ?2";

/* ---- reading ---- */

struct reading {
	struct chain_measures *m;
	const struct store_dict *dict; /* of the segment */
	int window;
	int64_t from_ns[CHAIN_FAMILIES], to_ns[CHAIN_FAMILIES];
	double cpu_us; /* that the host's CPUs had, in the window */
};

static void take_family(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const int64_t from = sqlite3_column_int64(st, 1), to = sqlite3_column_int64(st, 2);
	const uint32_t cpus = (uint32_t)sqlite3_column_int64(st, 3);

	r->m->cpus = cpus > r->m->cpus ? cpus : r->m->cpus;
	for (int f = 0; f < CHAIN_FAMILIES; f++) {
		if (strcmp(CHAIN_FAMILY_NAMES[f], askrows_text(st, 0)) != 0)
			continue;
		r->from_ns[f] = !r->from_ns[f] || from < r->from_ns[f] ? from : r->from_ns[f];
		r->to_ns[f] = to > r->to_ns[f] ? to : r->to_ns[f];
		r->m->families[r->window][f] = true;
		r->m->seconds[r->window][f] = (double)(r->to_ns[f] - r->from_ns[f]) / NSEC_PER_SEC;
	}
}

static struct chain_use *use_named(struct chain_measures *m, const char *who, bool container)
{
	for (size_t i = 0; i < m->n_uses; i++)
		if (m->uses[i].container == container && !strcmp(m->uses[i].who, who))
			return &m->uses[i];
	mem_grow(m->uses, m->n_uses, m->cap_uses);
	m->uses[m->n_uses] = (struct chain_use){.who = mem_strdup(who), .container = container};
	return &m->uses[m->n_uses++];
}

static const struct store_process_row *process_of(const struct reading *r, sqlite3_stmt *st)
{
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));

	return p && !p->self ? p : NULL;
}

static struct chain_use *use_of_process(const struct reading *r, sqlite3_stmt *st)
{
	const struct store_process_row *p = process_of(r, st);

	if (!p)
		return NULL;
	return use_named(r->m, *p->container ? p->container : p->comm, *p->container);
}

static void take_use(const struct reading *r, struct chain_use *u, sqlite3_stmt *st)
{
	double *const sums[] = {u->cpu_us, u->throttled_us, u->periods,   u->throttled,
				u->majflt, u->reclaim_us,   u->met_limit, u->io_bytes};

	for (size_t i = 0; i < ARRAY_SIZE(sums); i++)
		sums[i][r->window] += sqlite3_column_double(st, (int)i + 1);
	if (r->window != DIFF_AFTER)
		return;
	u->mem = sqlite3_column_int64(st, 9);
	u->mem_limit = sqlite3_column_int64(st, 10);
}

static void take_container(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	take_use(r, use_named(r->m, askrows_text(st, 0), true), st);
}

static void take_process(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct chain_use *u = use_of_process(r, st);

	if (u && !u->container)
		take_use(r, u, st);
}

static void take_collections(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct chain_use *u = use_of_process(r, st);

	if (u)
		u->gc_us[r->window] += sqlite3_column_double(st, 1);
}

static struct chain_flow *flow_named(struct chain_measures *m, const struct store_process_row *p,
				     const char *service)
{
	const bool container = *p->container;
	const char *who = container ? p->container : p->comm;

	for (size_t i = 0; i < m->n_flows; i++)
		if (m->flows[i].container == container && !strcmp(m->flows[i].who, who) &&
		    !strcmp(m->flows[i].service, service))
			return &m->flows[i];
	mem_grow(m->flows, m->n_flows, m->cap_flows);
	m->flows[m->n_flows] = (struct chain_flow){
		.who = mem_strdup(who), .container = container, .service = mem_strdup(service)};
	return &m->flows[m->n_flows++];
}

#define FLOW_SUMS(f)                                                                   \
	{                                                                              \
		(f)->segments, (f)->retrans, (f)->attempts, (f)->failed, (f)->refused, \
			(f)->connect_us, (f)->opened, (f)->rtt_us, (f)->rtt_n          \
	}
#define N_FLOW_SUMS 9

static void take_flow(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p = process_of(r, st);

	if (!p)
		return;
	struct chain_flow *f = flow_named(r->m, p, askrows_text(st, 1));
	double *const sums[N_FLOW_SUMS] = FLOW_SUMS(f);

	for (int i = 0; i < N_FLOW_SUMS; i++)
		sums[i][r->window] += sqlite3_column_double(st, i + 2);
}

static struct chain_disk *disk_named(struct chain_measures *m, const char *mount)
{
	for (size_t i = 0; i < m->n_disks; i++)
		if (!strcmp(m->disks[i].mount, mount))
			return &m->disks[i];
	mem_grow(m->disks, m->n_disks, m->cap_disks);
	m->disks[m->n_disks] = (struct chain_disk){
		.mount = mem_strdup(mount), .left = {-1, -1}, .inodes_left = {-1, -1}};
	return &m->disks[m->n_disks++];
}

static void take_disk(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct chain_disk *d = disk_named(r->m, askrows_text(st, 0));
	const double left = sqlite3_column_double(st, 1), inodes = sqlite3_column_double(st, 3);
	const int w = r->window;

	d->left[w] = d->left[w] < 0 || left < d->left[w] ? left : d->left[w];
	d->inodes_left[w] =
		d->inodes_left[w] < 0 || inodes < d->inodes_left[w] ? inodes : d->inodes_left[w];
	d->size = sqlite3_column_double(st, 2);
	d->read_only[w] = d->read_only[w] || sqlite3_column_int(st, 4);
}

static void take_swapped(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	r->m->swapped[r->window] += sqlite3_column_double(st, 0);
	r->m->stolen[r->window] += sqlite3_column_double(st, 1);
	r->cpu_us += sqlite3_column_double(st, 2);
}

/* What was not recorded is left NULL. */
static int waits_read(struct chain_measures *m, int w, struct err *e)
{
	struct err why = {0};
	int rc = waitsum_make(m->wide[w], WAITSUM_BY_COMMAND, &m->waits[w], &why);

	if (rc && rc != -ENOENT && e)
		*e = why;
	return rc == -ENOENT ? 0 : rc;
}

/* What cannot be read is as if it was not recorded: the link is without it. */
static struct waitpairs *const *pairs_of(struct chain_measures *m, enum waitpairs_what what)
{
	struct waitpairs **pairs = what == WAITPAIRS_WAKERS ? m->wakers : m->neighbours;
	bool *has = what == WAITPAIRS_WAKERS ? &m->has_wakers : &m->has_neighbours;
	struct err ignored = {0};

	for (int w = 0; w < 2 && !*has; w++)
		if (m->families[w][CHAIN_OFFCPU] &&
		    waitpairs_make(m->wide[w], what, &pairs[w], &ignored))
			pairs[w] = NULL;
	*has = true;
	return pairs;
}

int chain_measures_read(struct selection *const wide[2], bool all, const struct explain *x,
			struct chain_measures *out, struct err *e)
{
	struct reading r = {.m = out};
	struct askrows_part parts[] = {
		{FAMILIES_SQL, take_family, &r},
		{CONTAINERS, take_container, &r, .table = "cgroup_row"},
		{PROCESSES, take_process, &r, PROCESSES_SUMMED, "process_row"},
		{COLLECTIONS, take_collections, &r},
		{FLOWS, take_flow, &r, FLOWS_SUMMED, "flow_row"},
		{SWAPPED, take_swapped, &r},
		{DISKS, take_disk, &r}};
	int rc = 0;

	*out = (struct chain_measures){.wide = wide, .x = x};
	for (r.window = 0; r.window < 2 && !rc; r.window++) {
		memset(r.from_ns, 0, sizeof(r.from_ns));
		memset(r.to_ns, 0, sizeof(r.to_ns));
		r.cpu_us = 0;
		parts[1].sums =
			r.window == DIFF_BEFORE ? CONTAINERS_SUMMED : (struct askrows_sums){0};
		rc = askrows_each(wide[r.window], &r.dict, parts, all ? ARRAY_SIZE(parts) : 1, e);
		out->stolen[r.window] /= r.cpu_us > 0 ? r.cpu_us : 1;
		if (!rc && all && out->families[r.window][CHAIN_OFFCPU])
			rc = waits_read(out, r.window, e);
	}
	return rc || !all ? rc : chain_files_read(wide, &out->files, e);
}

void chain_measures_release(struct chain_measures *m)
{
	for (size_t i = 0; i < m->n_uses; i++)
		free(m->uses[i].who);
	free(m->uses);
	for (size_t i = 0; i < m->n_flows; i++) {
		free(m->flows[i].who);
		free(m->flows[i].service);
	}
	free(m->flows);
	for (size_t i = 0; i < m->n_disks; i++)
		free(m->disks[i].mount);
	free(m->disks);
	chain_files_release(&m->files);
	for (int w = 0; w < 2; w++) {
		if (m->waits[w])
			waitsum_free(m->waits[w]);
		if (m->neighbours[w])
			waitpairs_free(m->neighbours[w]);
		if (m->wakers[w])
			waitpairs_free(m->wakers[w]);
	}
	*m = (struct chain_measures){0};
}

/* ---- waits ---- */

static bool is_who(const char *container, const char *comm, const char *who, bool is_container)
{
	return is_container ? !strcmp(container, who) : !*container && !strcmp(comm, who);
}

static double a_second(const struct chain_measures *m, int w, enum chain_family family, double ns)
{
	return m->seconds[w][family] > 0 ? ns / NSEC_PER_SEC / m->seconds[w][family] : 0;
}

static void measure_waits(const struct chain_measures *m, const char *who, bool container,
			  const char *reason, struct chain_measure *out)
{
	uint64_t most = 0;

	out->known = m->waits[DIFF_BEFORE] && m->waits[DIFF_AFTER];
	for (int w = 0; w < 2 && out->known; w++)
		for (size_t i = 0; i < m->waits[w]->n; i++) {
			const struct waitsum_row *r = &m->waits[w]->rows[i];
			const bool lock = !strcmp(reason, "lock");
			uint64_t ns = r->total_ns;

			if (strcmp(r->reason, reason) != 0 || r->idle || r->partial ||
			    !is_who(r->container, r->comm, who, container))
				continue;
			ns -= lock && r->timer_ns < ns ? r->timer_ns : 0;
			out->s[w] += a_second(m, w, CHAIN_OFFCPU, (double)ns);
			if (w != DIFF_AFTER || ns <= most)
				continue;
			most = ns;
			out->function = r->function;
			out->object = r->object;
			out->peer = r->peer;
			out->by = r->by;
			out->by_tid = r->by_tid;
		}
}

void chain_ready_of_others(const struct chain_measures *m, const char *who, bool container,
			   double s[2])
{
	for (int w = 0; w < 2; w++) {
		s[w] = 0;
		for (size_t i = 0; m->waits[w] && i < m->waits[w]->n; i++) {
			const struct waitsum_row *r = &m->waits[w]->rows[i];

			if (!strcmp(r->reason, "run queue") &&
			    !is_who(r->container, r->comm, who, container))
				s[w] += a_second(m, w, CHAIN_OFFCPU, (double)r->total_ns);
		}
	}
}

/* ---- CPU time ---- */

static const struct diff *diff_of(const struct chain_measures *m, enum store_kind kind)
{
	for (size_t i = 0; m->x && i < m->x->n_diffs; i++)
		if (m->x->diff[i]->side[DIFF_AFTER].f->kind->kind == kind)
			return m->x->diff[i];
	return NULL;
}

static const struct diff_function *group_of(const struct diff *d, const char *who, bool container)
{
	for (size_t i = 1; d && i < d->n_functions; i++) {
		const struct fold_frame *f = d->functions[i].frame;

		if (f->origin == FOLD_GROUP &&
		    !strcmp(f->module, container ? FOLD_CONTAINER : FOLD_COMMAND) &&
		    !strcmp(f->name, who))
			return &d->functions[i];
	}
	return NULL;
}

/* Is it a function of a runtime's garbage collector? */
static bool collects(const char *name)
{
	static const char *const parts[] = {
		"gcBgMarkWorker", "gcDrain",     "scanobject",     "greyobject", "gc_collect",
		"Scavenger",      "MarkCompact", "ConcurrentMark", "G1ParScan",  "PSPromotion",
		"gc_mark",        "gc_sweep",    "gcAssistAlloc",  "rb_gc",      "zend_gc"};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (strstr(name, parts[i]))
			return true;
	return false;
}

/* The function whose own time grew most, and all of the collectors. */
static void measure_functions(const struct diff *d, const struct diff_function *group,
			      struct chain_measure *out, double collected[2])
{
	uint64_t *sums = explain_inner_sums(d, (uint32_t)(group - d->functions), true, false);
	double best = 0;

	for (size_t i = 1; i < d->n_functions; i++) {
		const struct fold_frame *f = d->functions[i].frame;
		double v[2] = {(double)sums[2 * i] / d->side[0].whole,
			       (double)sums[2 * i + 1] / d->side[1].whole};

		if (collects(f->name)) {
			collected[0] += v[0];
			collected[1] += v[1];
		}
		if (v[1] - v[0] <= best)
			continue;
		best = v[1] - v[0];
		out->function = f->name;
		out->module = f->module;
		memcpy(out->of_function, v, sizeof(v));
	}
	free(sums);
}

static void measure_cpu(const struct chain_measures *m, const char *who, bool container,
			struct chain_measure *out, double collected[2])
{
	const struct diff *d = diff_of(m, STORE_KIND_CPU);
	const struct diff_function *group = group_of(d, who, container);
	const struct chain_use *u = chain_use_of(m, who, container);

	if (group) {
		out->known = true;
		out->s[0] = group->total.v[0];
		out->s[1] = group->total.v[1];
		measure_functions(d, group, out, collected);
	} else if (u) {
		out->known =
			m->families[DIFF_BEFORE][CHAIN_HOST] && m->families[DIFF_AFTER][CHAIN_HOST];
		for (int w = 0; w < 2 && out->known; w++)
			out->s[w] = a_second(m, w, CHAIN_HOST, u->cpu_us[w] * 1000);
	}
}

/* ---- all of them ---- */

static void measure_use(const struct chain_measures *m, const struct chain_use *u,
			const double us[2], struct chain_measure *out)
{
	out->known =
		u && m->families[DIFF_BEFORE][CHAIN_HOST] && m->families[DIFF_AFTER][CHAIN_HOST];
	for (int w = 0; w < 2 && out->known; w++)
		out->s[w] = a_second(m, w, CHAIN_HOST, us[w] * 1000);
}

void chain_measure(const struct chain_measures *m, const char *who, bool container,
		   enum chain_what what, struct chain_measure *out)
{
	static const char *const reasons[CHAIN_WHATS] = {
		[CHAIN_LOCK] = "lock",   [CHAIN_DISK] = "disk",        [CHAIN_NETWORK] = "network",
		[CHAIN_PIPE] = "pipe",   [CHAIN_FAULT] = "page fault", [CHAIN_SLEEP] = "sleep",
		[CHAIN_CHILD] = "child", [CHAIN_READY] = "run queue"};
	const struct chain_use *u = chain_use_of(m, who, container);
	const double none[2] = {0, 0};
	struct chain_measure cpu = {0}, used = {0};
	double collected[2] = {0, 0};

	*out = (struct chain_measure){0};
	switch (what) {
	case CHAIN_CPU:
		measure_cpu(m, who, container, out, collected);
		break;
	case CHAIN_GC:
		measure_cpu(m, who, container, &cpu, collected);
		measure_use(m, u, u ? u->gc_us : none, out);
		out->known = out->known || cpu.known;
		for (int w = 0; w < 2; w++)
			out->s[w] = out->s[w] > collected[w] ? out->s[w] : collected[w];
		break;
	case CHAIN_QUOTA:
		measure_use(m, u, u ? u->throttled_us : none, out);
		break;
	case CHAIN_RECLAIM: /* two accounts of the same: threads that sleep, and what PSI counts */
		measure_waits(m, who, container, "memory", out);
		measure_use(m, u, u ? u->reclaim_us : none, &used);
		out->known = out->known || used.known;
		for (int w = 0; w < 2; w++)
			out->s[w] = out->s[w] > used.s[w] ? out->s[w] : used.s[w];
		break;
	default:
		measure_waits(m, who, container, reasons[what], out);
	}
}

const struct chain_use *chain_use_of(const struct chain_measures *m, const char *who,
				     bool container)
{
	for (size_t i = 0; i < m->n_uses; i++)
		if (m->uses[i].container == container && !strcmp(m->uses[i].who, who))
			return &m->uses[i];
	return NULL;
}

bool chain_disk_stops(const struct chain_disk *d)
{
	const double least = d->size / 1000 < LEFT_LEAST ? d->size / 1000 : LEFT_LEAST;

	if (d->left[0] < 0 || d->left[1] < 0)
		return false;
	return (d->left[1] < least && d->left[0] >= least) ||
	       (d->inodes_left[1] == 0 && d->inodes_left[0] > 0) ||
	       (d->read_only[1] && !d->read_only[0]);
}

bool chain_flow_of(const struct chain_measures *m, const char *who, bool container,
		   const char *service, struct chain_flow *sum)
{
	bool any = false;

	*sum = (struct chain_flow){0};
	for (size_t i = 0; i < m->n_flows; i++) {
		struct chain_flow *f = &m->flows[i];
		double *const from[N_FLOW_SUMS] = FLOW_SUMS(f), *const to[N_FLOW_SUMS] =
									FLOW_SUMS(sum);

		if (f->container != container || strcmp(f->who, who) != 0 ||
		    (service && strcmp(f->service, service) != 0))
			continue;
		any = true;
		for (int k = 0; k < N_FLOW_SUMS; k++)
			for (int w = 0; w < 2; w++)
				to[k][w] += from[k][w];
	}
	return any;
}

/* ---- others ---- */

struct others {
	struct chain_other *rows;
	size_t n, cap;
};

static struct chain_other *other_named(struct others *o, const char *name, bool container)
{
	for (size_t i = 0; i < o->n; i++)
		if (o->rows[i].container == container && !strcmp(o->rows[i].name, name))
			return &o->rows[i];
	mem_grow(o->rows, o->n, o->cap);
	o->rows[o->n] = (struct chain_other){.name = name, .container = container};
	return &o->rows[o->n++];
}

static void others_take(struct others *o, struct chain_other *out)
{
	*out = (struct chain_other){0};
	for (size_t i = 0; i < o->n; i++)
		if (o->rows[i].v[1] - o->rows[i].v[0] > out->v[1] - out->v[0])
			*out = o->rows[i];
	free(o->rows);
}

static void add_pairs(const struct chain_measures *m, struct waitpairs *const pairs[2],
		      uint32_t kind, const char *who, bool container, const char *reason,
		      struct others *o)
{
	for (int w = 0; w < 2; w++)
		for (size_t i = 0; pairs[w] && i < pairs[w]->n; i++) {
			const struct waitpairs_row *r = &pairs[w]->rows[i];
			struct chain_other *x;

			if (r->kind != kind || !*r->by.comm ||
			    (reason && !waitrule_may(r->reason, reason)) ||
			    !is_who(r->who.container, r->who.comm, who, container))
				continue;
			x = other_named(o, *r->by.container ? r->by.container : r->by.comm,
					*r->by.container);
			x->v[w] += a_second(m, w, CHAIN_OFFCPU, (double)r->total_ns);
			if (w == DIFF_AFTER && r->n_stacks && *r->stacks[0].function)
				x->function = r->stacks[0].function;
		}
}

void chain_neighbour(struct chain_measures *m, const char *who, bool container,
		     struct chain_other *out, bool *guessed)
{
	const struct diff *d = diff_of(m, STORE_KIND_CPU);
	struct others o = {0};

	add_pairs(m, pairs_of(m, WAITPAIRS_NEIGHBOURS), STORE_CULPRIT_THREAD, who, container, NULL,
		  &o);
	*guessed = !o.n;
	for (size_t i = 1; *guessed && d && i < d->n_functions; i++) {
		const struct fold_frame *f = d->functions[i].frame;
		const bool is_container = !strcmp(f->module, FOLD_CONTAINER);

		if (f->origin != FOLD_GROUP || (is_container == container && !strcmp(f->name, who)))
			continue;
		memcpy(other_named(&o, f->name, is_container)->v, d->functions[i].total.v,
		       sizeof(out->v));
	}
	others_take(&o, out);
}

void chain_waker(struct chain_measures *m, const char *who, bool container, const char *reason,
		 struct chain_other *out)
{
	struct others o = {0};

	add_pairs(m, pairs_of(m, WAITPAIRS_WAKERS), STORE_WAKE_THREAD, who, container, reason, &o);
	others_take(&o, out);
}

uint32_t chain_waker_pid(struct chain_measures *m, const char *who, bool container,
			 const char *reason)
{
	struct waitpairs *const p = pairs_of(m, WAITPAIRS_WAKERS)[DIFF_AFTER];
	struct idmap by_pid = {0};
	uint64_t all = 0, most = 0;
	uint32_t best = 0;
	bool fresh;

	for (size_t i = 0; p && i < p->n; i++) {
		const struct waitpairs_row *r = &p->rows[i];
		uint64_t *ns;

		if (r->kind != STORE_WAKE_THREAD || !waitrule_may(r->reason, reason) ||
		    !is_who(r->who.container, r->who.comm, who, container))
			continue;
		all += r->total_ns;
		if (!r->by.pid || r->by.pid == r->who.pid ||
		    !is_who(r->by.container, r->by.comm, who, container))
			continue;
		ns = idmap_ref(&by_pid, r->by.pid, &fresh);
		*ns += r->total_ns;
		if (*ns > most) {
			most = *ns;
			best = r->by.pid;
		}
	}
	idmap_release(&by_pid);
	return 2 * most >= all ? best : 0;
}

void chain_reader(const struct chain_measures *m, const char *who, bool container,
		  struct chain_other *out)
{
	struct others o = {0};

	*out = (struct chain_other){0};
	if (!m->families[DIFF_BEFORE][CHAIN_HOST])
		return;
	for (size_t i = 0; i < m->n_uses; i++) {
		const struct chain_use *u = &m->uses[i];

		if (u->container == container && !strcmp(u->who, who))
			continue;
		for (int w = 0; w < 2; w++)
			other_named(&o, u->who, u->container)->v[w] =
				m->seconds[w][CHAIN_HOST] > 0 ?
					u->io_bytes[w] / m->seconds[w][CHAIN_HOST] :
					0;
	}
	others_take(&o, out);
}
