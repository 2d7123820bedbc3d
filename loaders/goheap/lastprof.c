/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/goheap/lastprof.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "loaders/goheap/goproc.h"
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/maproom.h"
#include "loaders/lib/bpf/load/percpu.h"
#include "loaders/lib/bpf/load/programs.h"
#include "probes/goheap.h"
#include "probes/goheap.skel.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define SLICE_MIN 256 /* addresses */

struct slice {
	uint32_t first, size;
	struct goproc *p;
};

struct lastprof {
	struct goheap_bpf *skel;
	struct ring_buffer *ring; /* NULL: no process was armed yet */
	uint64_t *addresses;      /* the array map, mapped */
	struct slice *slices;     /* in order of `first` */
	size_t n_slices, cap_slices;
	bool refused;                   /* once, and the log has it */
	const struct lastprof_ops *ops; /* while reading */
};

static size_t addresses_bytes(void)
{
	return GOHEAP_ADDRESSES * sizeof(uint64_t);
}

static int take(void *ctx, void *data, size_t size);

/* With the first process: a host without Go programs has neither the program at its signals nor the
 * ring in its memory. */
static int parts_open(struct lastprof *l)
{
	void *at;

	if (l->addresses)
		return 0;
	if (!l->ring)
		l->ring = ring_buffer__new(bpf_map__fd(l->skel->maps.events), take, l, NULL);
	if (!l->ring)
		return -errno;
	at = mmap(NULL, addresses_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
		  bpf_map__fd(l->skel->maps.addresses), 0);
	if (at == MAP_FAILED)
		return -errno;
	l->addresses = at;
	return goheap_bpf__attach(l->skel);
}

static const struct leftout_program OPTIONAL[] = {
	{"goheap_last", "the last profile of a program that a signal ends is not read"}, {0}};

/* -EPERM: without its one program. */
static int load(struct lastprof *l)
{
	int err;

	goheap_bpf__destroy(l->skel);
	l->skel = goheap_bpf__open();
	if (!l->skel)
		return -errno;
	maproom_on_demand(l->skel->obj);
	programs_keep_still(l->skel->obj);
	leftout_disable(l->skel->obj);
	err = goheap_bpf__load(l->skel);
	return !err && leftout_is(OPTIONAL[0].name) ? -EPERM : err;
}

int lastprof_open(struct lastprof **out, struct bpf_object **obj, struct err *e)
{
	struct lastprof *l = mem_alloc(sizeof(*l));
	int err;

	while ((err = load(l)) && leftout_next(OPTIONAL, err))
		;
	if (err) {
		lastprof_close(l);
		return load_error(err, "goheap", e);
	}
	*obj = l->skel->obj;
	*out = l;
	return 0;
}

void lastprof_close(struct lastprof *l)
{
	if (!l)
		return;
	if (l->addresses)
		munmap(l->addresses, addresses_bytes());
	ring_buffer__free(l->ring);
	goheap_bpf__destroy(l->skel);
	free(l->slices);
	free(l);
}

uint64_t lastprof_lost(const struct lastprof *l)
{
	struct goheap_tally t = {0};

	if (l && l->addresses) /* before that its program is not attached */
		percpu_sum(bpf_map__fd(l->skel->maps.tally), &t, sizeof(t));
	return t.ring_full;
}

/* ---- room for addresses ---- */

static size_t slice_of(const struct lastprof *l, const struct goproc *p)
{
	size_t i = 0;

	while (i < l->n_slices && l->slices[i].p != p)
		i++;
	return i;
}

static void slice_drop(struct lastprof *l, size_t i)
{
	memmove(&l->slices[i], &l->slices[i + 1], (--l->n_slices - i) * sizeof(*l->slices));
}

/* The first gap that is large enough. false: none is. */
static bool slice_take(struct lastprof *l, struct goproc *p, uint32_t size, struct slice *out)
{
	uint32_t from = 0;
	size_t i = 0;

	for (; i < l->n_slices && l->slices[i].first - from < size; i++)
		from = l->slices[i].first + l->slices[i].size;
	if (size > GOHEAP_ADDRESSES - from)
		return false;
	mem_grow(l->slices, l->n_slices, l->cap_slices);
	memmove(&l->slices[i + 1], &l->slices[i], (l->n_slices++ - i) * sizeof(*l->slices));
	*out = l->slices[i] = (struct slice){.first = from, .size = size, .p = p};
	return true;
}

/* If a process has outgrown its room, all is laid out again. */
static bool slice_get(struct lastprof *l, struct goproc *p, uint32_t need, struct slice *out)
{
	size_t i = slice_of(l, p);
	uint32_t size = SLICE_MIN;

	if (i < l->n_slices && l->slices[i].size >= need) {
		*out = l->slices[i];
		return true;
	}
	if (i < l->n_slices)
		lastprof_disarm(l, p);
	while (size < need)
		size *= 2;
	return slice_take(l, p, size, out);
}

/* ---- what is left for the program ---- */

void lastprof_disarm(struct lastprof *l, struct goproc *p)
{
	size_t i;

	if (!l)
		return;
	i = slice_of(l, p);
	if (i == l->n_slices)
		return;
	bpf_map_delete_elem(bpf_map__fd(l->skel->maps.processes), &p->key.tgid);
	slice_drop(l, i);
	p->n_armed = p->armed_upto = 0;
}

static bool is_open(struct lastprof *l)
{
	int err = parts_open(l);

	if (err && !l->refused)
		log_warn("goheap: last profiles of programs that a signal ends are not read: %s",
			 strerror(-err));
	l->refused |= err != 0;
	return !err;
}

void lastprof_arm(struct lastprof *l, struct goproc *p)
{
	struct goheap_process value = {
		.start_ns = p->key.start_ns, .exec_id = p->key.exec_id, .cycle = p->layout.cycle};
	struct slice s;

	if (!l || p->n_sites > GOHEAP_PER_PROCESS || !is_open(l) ||
	    !slice_get(l, p, p->n_sites, &s))
		return;
	for (; p->armed_upto < p->n_sites; p->armed_upto++) {
		if (p->sites[p->armed_upto].kind != BUCKETS_MEMORY)
			continue;
		mem_grow(p->armed, p->n_armed, p->cap_armed);
		l->addresses[s.first + p->n_armed] = p->sites[p->armed_upto].record;
		p->armed[p->n_armed++] = p->armed_upto;
	}
	value.first = s.first;
	value.count = p->n_armed;
	bpf_map_update_elem(bpf_map__fd(l->skel->maps.processes), &p->key.tgid, &value, BPF_ANY);
}

/* ---- what it sends ---- */

void lastprof_cause(uint32_t cause, uint32_t code, char *out, size_t size)
{
	if (cause == GOHEAP_OOM)
		snprintf(out, size, "out of memory");
	else
		snprintf(out, size, "%s %u", cause == GOHEAP_SIGNAL ? "signal" : "exit", code);
}

static void record_take(struct goproc *p, const struct goheap_last *m, uint32_t i)
{
	struct site *s = &p->sites[p->armed[m->first + i]];
	struct bucket b = {.kind = BUCKETS_MEMORY,
			   .size = s->size,
			   .record = s->record,
			   .cycle = m->cycle >> 1,
			   .cycle_known = m->cycle_known};

	if (m->missing[i / 32] >> (i % 32) & 1)
		return;
	if (!bucket_record_parse(m->records[i], s->record_len, s->size, &b))
		return; /* caught half written: what was read before stays */
	b.record_len = s->record_len;
	site_read(s, &b, 0);
}

_Static_assert(sizeof(struct bucket_amounts) * 4 == GOHEAP_RECORD, "a record is four of them");

static int take(void *ctx, void *data, size_t size)
{
	struct lastprof *l = ctx;
	const struct goheap_last *m = data;
	struct goproc *p;
	char cause[32];

	if (size < sizeof(*m) || m->count > GOHEAP_PIECE)
		return 0;
	p = l->ops->find(l->ops->ctx, m->tgid, m->start_ns, m->exec_id);
	if (!p || m->total > p->n_armed || m->first + m->count > p->n_armed)
		return 0;
	for (uint32_t i = 0; i < m->count; i++)
		record_take(p, m, i);
	if (m->first + m->count < m->total)
		return 0;
	lastprof_cause(m->cause, m->code, cause, sizeof(cause));
	l->ops->done(l->ops->ctx, p, cause);
	return 0;
}

void lastprof_read(struct lastprof *l, const struct lastprof_ops *ops)
{
	if (!l || !l->ring)
		return;
	l->ops = ops;
	ring_buffer__consume(l->ring);
	l->ops = NULL;
}
