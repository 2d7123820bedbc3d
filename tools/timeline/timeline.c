/* SPDX-License-Identifier: Apache-2.0 */
/* timeline: What happened besides is read in timeline_events.c, while each segment
 * is open. */
#include "tools/timeline/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/fold_slices.h"
#include "tools/print/reading.h"
#include "tools/timeline/timeline_parts.h"

#define HOST      "[host]"
#define FINE_S    10 /* steps of a day; shorter ranges have shorter ones */
#define FEW_STEPS 360

static const enum store_kind KINDS[TIMELINE_OF] = {STORE_KIND_CPU, STORE_KIND_ALLOC,
						   STORE_KIND_INUSE};

/* --- steps --- */

static int64_t round_up(int64_t v, int64_t unit)
{
	return (v + unit - 1) / unit * unit;
}

static int plan_steps(struct timelining *l, struct err *e)
{
	struct timeline *t = &l->pub;
	const int64_t from = t->sel->from_ns > 0 ? t->sel->from_ns : 0,
		      span_s = (t->sel->to_ns - from) / NSEC_PER_SEC + 1;
	int64_t bucket_s = 1, step_s = span_s / FEW_STEPS < FINE_S ? span_s / FEW_STEPS : FINE_S;
	int rc = fold_slices_bucket(t->sel, STORE_KIND_CPU, &bucket_s, e);

	if (rc)
		return rc;
	if (span_s / TIMELINE_STEPS > step_s)
		step_s = span_s / TIMELINE_STEPS + 1;
	l->bucket_ns = bucket_s * NSEC_PER_SEC;
	step_s = round_up(step_s ? step_s : 1, bucket_s);
	t->step_ns = step_s * NSEC_PER_SEC;
	t->from_ns = from - from % t->step_ns;
	t->n_steps = (size_t)((t->sel->to_ns - t->from_ns + t->step_ns - 1) / t->step_ns);
	return 0;
}

int64_t timeline_time(const struct timeline *t, size_t step)
{
	return t->from_ns + (int64_t)step * t->step_ns;
}

/* --- processes and groups --- */

static void group_kind(const struct timelining *l, const struct store_process_row *row,
		       struct timeline_group *g, char *buf, size_t size)
{
	const char *container = *row->container ? row->container : row->container_id;
	bool in_one = *container && (l->by == TIMELINE_BY_BOTH || l->by == TIMELINE_BY_CONTAINER);

	g->kind = in_one                       ? FILTER_CONTAINER :
		  l->by == TIMELINE_BY_PROCESS ? FILTER_PID :
						 FILTER_COMM;
	g->is_host = !in_one && l->by == TIMELINE_BY_CONTAINER;
	if (l->by == TIMELINE_BY_PROCESS)
		snprintf(buf, size, "%.64s (%u)", row->comm, row->pid);
	else
		snprintf(buf, size, "%.200s", in_one ? container : g->is_host ? HOST : row->comm);
}

static uint32_t group_of(struct timelining *l, const struct store_process_row *row)
{
	struct timeline *t = &l->pub;
	struct timeline_group g = {.pid = row->pid};
	char name[256];
	uint64_t key, at;

	group_kind(l, row, &g, name, sizeof(name));
	key = hash_bytes(hash_u64(HASH_SEED, (uint64_t)g.kind), name, strlen(name));
	if (idmap_get(&l->group_of, key, &at))
		return (uint32_t)at;
	g.name = mem_strdup(name);
	mem_grow(t->groups, t->n_groups, l->cap_groups);
	t->groups[t->n_groups] = g;
	idmap_set(&l->group_of, key, t->n_groups);
	return (uint32_t)t->n_groups++;
}

uint32_t timelining_process(struct timelining *l, uint32_t id)
{
	struct timeline *t = &l->pub;
	const struct store_process_row *row = &l->dict->processes[id];
	uint64_t key, at;

	if (l->seg_process[id])
		return l->seg_process[id] - 1;
	key = hash_u64(hash_u64(hash_u64(HASH_SEED, row->pid), (uint64_t)row->start_ns),
		       row->exec_id);
	if (!idmap_get(&l->process_of, key, &at)) {
		at = t->n_processes;
		mem_grow(t->processes, t->n_processes, l->cap_processes);
		t->processes[t->n_processes++] =
			(struct timeline_process){.pid = row->pid,
						  .start_ns = row->start_ns,
						  .comm = mem_strdup(row->comm),
						  .group = group_of(l, row)};
		t->groups[t->processes[at].group].n_processes++;
		idmap_set(&l->process_of, key, at);
	}
	l->seg_process[id] = (uint32_t)at + 1;
	return (uint32_t)at;
}

/* --- values --- */

static bool wanted(void *ctx, const struct store_process_row *p, const char *thread, uint32_t tid)
{
	const struct timelining *l = ctx;

	(void)thread;
	return select_wants_process(l->pub.sel, p) && select_wants_thread(l->pub.sel, tid);
}

static bool wanted_labels(void *ctx, const char *labels)
{
	const struct timelining *l = ctx;

	return select_wants_labels(l->pub.sel, labels);
}

static int take(void *ctx, int64_t from_ns, uint32_t process, uint64_t value)
{
	struct timelining *l = ctx;
	struct timeline *t = &l->pub;
	int64_t step = (from_ns - t->from_ns) / t->step_ns;

	if (step < 0 || (uint64_t)step >= t->n_steps)
		return 0;
	mem_grow(t->cells[l->of], t->n_cells[l->of], l->cap_cells[l->of]);
	t->cells[l->of][t->n_cells[l->of]++] =
		(struct timeline_cell){timelining_process(l, process), (uint32_t)step, value};
	return 0;
}

static void note_runs(struct timelining *l, int64_t run)
{
	for (size_t i = 1; i < l->dict->n_runs; i++) {
		const struct store_run_row *r = &l->dict->runs[i];
		uint32_t kinds = store_run_kinds(l->seg, (int64_t)i);
		bool cpu = kinds ? kinds & 1u << STORE_KIND_CPU : !strcmp(r->family, "cpu");

		if (!r->present || (run && (int64_t)i != run) || !cpu)
			continue;
		fold_spans_note(&l->spans, l->pub.sel, l->dict, (int64_t)i);
		if (r->period_ns > l->pub.period_ns)
			l->pub.period_ns = r->period_ns;
		if (r->cpus > l->pub.cpus)
			l->pub.cpus = r->cpus;
	}
}

static int read_run(struct timelining *l, int64_t run, struct err *e)
{
	const struct selection *sel = l->pub.sel;
	uint32_t kinds = store_run_kinds(l->seg, run);
	int rc = 0;

	note_runs(l, run);
	for (int of = 0; of < TIMELINE_OF && !rc; of++) {
		const struct store_query q = {.from_ns = sel->from_ns,
					      .to_ns = sel->to_ns,
					      .kind = KINDS[of],
					      .run = run,
					      .want = wanted,
					      .want_labels = wanted_labels,
					      .ctx = l};

		l->of = (enum timeline_of)of;
		if (kinds & 1u << KINDS[of])
			rc = store_timeline(l->seg, &q, (uint32_t)(l->pub.step_ns / NSEC_PER_SEC),
					    take, l, e);
	}
	return rc;
}

static int read_segment(struct timelining *l, const char *path, struct err *e)
{
	int64_t run = select_run_in(l->pub.sel, path, 0);
	int rc;

	if (run < 0)
		return 0;
	rc = select_segment(l->pub.sel, path, &l->seg, e);
	if (!rc)
		rc = store_segment_tasks(l->seg, &l->dict, e);
	if (!rc)
		l->seg_process = mem_array(l->dict->n_processes + 1, sizeof(*l->seg_process));
	for (size_t i = 1; !rc && run >= 0; i++) {
		rc = read_run(l, run, e);
		run = select_run_in(l->pub.sel, path, i);
	}
	if (!rc)
		rc = timelining_events(l, path, e);
	free(l->seg_process);
	l->seg_process = NULL;
	l->seg = NULL;
	return rc;
}

/* --- order --- */

/* By process; within one they are in order of time already, but for segments that overlap. */
static void order_cells(struct timeline *t, enum timeline_of of)
{
	struct timeline_cell *from = t->cells[of], *to = mem_array(t->n_cells[of] + 1, sizeof(*to));
	size_t *first = mem_array(t->n_processes + 2, sizeof(*first));
	cleanup_free size_t *next = mem_array(t->n_processes + 1, sizeof(*next));

	for (size_t i = 0; i < t->n_cells[of]; i++)
		first[from[i].process + 1]++;
	for (size_t i = 0; i < t->n_processes; i++) {
		first[i + 1] += first[i];
		next[i] = first[i];
	}
	for (size_t i = 0; i < t->n_cells[of]; i++)
		to[next[from[i].process]++] = from[i];
	free(from);
	t->cells[of] = to;
	t->first_cell[of] = first;
}

static void cover(struct timelining *l)
{
	struct timeline *t = &l->pub;
	cleanup_free struct fold_slice *slices = mem_array(t->n_steps + 1, sizeof(*slices));

	for (size_t i = 0; i < t->n_steps; i++)
		slices[i] = (struct fold_slice){.from_ns = timeline_time(t, i),
						.to_ns = timeline_time(t, i + 1)};
	fold_spans_cover(&l->spans, slices, t->n_steps);
	t->covered_ns = mem_array(t->n_steps + 1, sizeof(*t->covered_ns));
	for (size_t i = 0; i < t->n_steps; i++)
		t->covered_ns[i] = slices[i].covered_ns;
}

static void order_processes(struct timeline *t)
{
	uint32_t at = 0;

	t->by_group = mem_array(t->n_processes + 1, sizeof(*t->by_group));
	for (size_t i = 0; i < t->n_groups; i++) {
		t->groups[i].first_process = at;
		at += t->groups[i].n_processes;
		t->groups[i].n_processes = 0;
	}
	for (uint32_t i = 0; i < t->n_processes; i++) {
		struct timeline_group *g = &t->groups[t->processes[i].group];

		t->by_group[g->first_process + g->n_processes++] = i;
	}
}

static void sum_groups(struct timeline *t)
{
	order_processes(t);
	for (size_t i = 0; i < t->n_cells[TIMELINE_CPU]; i++) {
		const struct timeline_cell *c = &t->cells[TIMELINE_CPU][i];

		t->groups[t->processes[c->process].group].cpu_ns += c->value;
	}
}

int timeline_make(const struct selection *sel, enum timeline_by by, struct timeline **out,
		  struct err *e)
{
	struct timelining *l = mem_alloc(sizeof(*l));
	int rc;

	l->pub.sel = sel;
	l->by = by;
	rc = plan_steps(l, e);
	if (!rc)
		rc = incidents_read(sel, &l->incidents, e);
	if (!rc)
		rc = event_list_read(sel, false, &l->happenings, e);
	reading_begin(sel->n_segments);
	for (size_t i = 0; i < sel->n_segments && !rc; i++) {
		reading_file(i);
		rc = read_segment(l, sel->segments[i].path, e);
	}
	reading_end();
	for (int of = 0; of < TIMELINE_OF; of++)
		order_cells(&l->pub, (enum timeline_of)of);
	cover(l);
	timelining_events_end(l);
	sum_groups(&l->pub);
	incidents_release(&l->incidents);
	event_list_release(&l->happenings);
	idmap_release(&l->group_of);
	idmap_release(&l->process_of);
	if (!rc && !l->pub.n_cells[TIMELINE_CPU] && !l->pub.n_cells[TIMELINE_ALLOC] &&
	    !l->pub.n_cells[TIMELINE_INUSE])
		rc = fold_nothing(sel, STORE_KIND_CPU, e);
	if (rc) {
		timeline_free(&l->pub);
		return rc;
	}
	*out = &l->pub;
	return 0;
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_processes; i++) {
		free(t->processes[i].comm);
		free(t->processes[i].ended);
	}
	for (size_t i = 0; i < t->n_groups; i++)
		free(t->groups[i].name);
	for (size_t i = 0; i < t->n_events; i++) {
		free(t->events[i].text);
		free(t->events[i].many);
		free(t->events[i].who);
	}
	for (int of = 0; of < TIMELINE_OF; of++) {
		free(t->cells[of]);
		free(t->first_cell[of]);
	}
	free(t->covered_ns);
	free(t->processes);
	free(t->groups);
	free(t->by_group);
	free(t->events);
	free((struct timelining *)t);
}
