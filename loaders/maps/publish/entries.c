/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/publish/entries.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define BATCH 1024

void entries_init(struct entries *e, int fd, struct slices *slices)
{
	*e = (struct entries){.fd = fd, .slices = slices};
}

void entries_remove(struct entries *e, uint32_t tgid, uint64_t start_ns)
{
	struct tables_process now;

	if (!bpf_map_lookup_elem(e->fd, &tgid, &now) && now.start_ns == start_ns)
		bpf_map_delete_elem(e->fd, &tgid);
}

static void remove_leaving(struct entries *e, size_t n, uint64_t now_ns)
{
	for (size_t i = 0; i < n; i++) {
		entries_remove(e, e->leaving[i].tgid, e->leaving[i].start_ns);
		slices_put(e->slices, e->leaving[i].slice, now_ns);
	}
	e->n_leaving -= n;
	memmove(e->leaving, e->leaving + n, e->n_leaving * sizeof(*e->leaving));
}

void entries_release(struct entries *e, uint64_t now_ns)
{
	for (size_t i = 0; i < e->n_leaving; i++)
		slices_put(e->slices, e->leaving[i].slice, now_ns);
	free(e->leaving);
	*e = (struct entries){.fd = -1};
}

int entries_put(struct entries *e, uint32_t tgid, const struct tables_process *value,
		uint64_t now_ns)
{
	int rc = bpf_map_update_elem(e->fd, &tgid, value, BPF_ANY);

	if (rc == -E2BIG && e->n_leaving) { /* those on their way out make room */
		remove_leaving(e, e->n_leaving, now_ns);
		rc = bpf_map_update_elem(e->fd, &tgid, value, BPF_ANY);
	}
	if (!rc)
		return 0;
	e->refused++;
	if (!e->told)
		log_warn(
			"more than %d processes: the stacks of further ones are found by frame pointers alone",
			TABLES_PROCESSES);
	e->told = true;
	return rc;
}

void entries_leave(struct entries *e, uint32_t tgid, uint64_t start_ns, struct slice *slice,
		   uint64_t exit_ns)
{
	mem_grow(e->leaving, e->n_leaving, e->cap_leaving);
	e->leaving[e->n_leaving++] =
		(struct leaving){tgid, start_ns, exit_ns + ENTRIES_KEEP_NS, slice};
}

void entries_tick(struct entries *e, uint64_t now_ns)
{
	size_t n = 0;

	while (n < e->n_leaving && e->leaving[n].due_ns <= now_ns)
		n++;
	if (n)
		remove_leaving(e, n, now_ns);
}

bool entries_is_leaving(const struct entries *e, uint32_t tgid, uint64_t start_ns)
{
	for (size_t i = 0; i < e->n_leaving; i++)
		if (e->leaving[i].tgid == tgid && e->leaving[i].start_ns == start_ns)
			return true;
	return false;
}

void entries_each(struct entries *e,
		  void (*look)(void *ctx, uint32_t tgid, const struct tables_process *value),
		  void *ctx)
{
	cleanup_free uint32_t *keys = mem_array(BATCH, sizeof(*keys));
	cleanup_free struct tables_process *values = mem_array(BATCH, sizeof(*values));
	uint32_t at = 0, next = 0, n;
	bool first = true;
	int rc = 0;

	while (!rc) {
		n = BATCH;
		rc = bpf_map_lookup_batch(e->fd, first ? NULL : &at, &next, keys, values, &n, NULL);
		if (rc && rc != -ENOENT)
			return;
		for (uint32_t i = 0; i < n; i++)
			look(ctx, keys[i], &values[i]);
		at = next;
		first = false;
	}
}

struct sweep {
	struct entries *e;
	bool (*keep)(void *ctx, uint32_t tgid, const struct tables_process *value);
	void *ctx;
	size_t removed;
};

static void sweep_one(void *ctx, uint32_t tgid, const struct tables_process *value)
{
	struct sweep *s = ctx;

	if (s->keep(s->ctx, tgid, value))
		return;
	entries_remove(s->e, tgid, value->start_ns);
	s->removed++;
}

size_t entries_sweep(struct entries *e,
		     bool (*keep)(void *ctx, uint32_t tgid, const struct tables_process *value),
		     void *ctx)
{
	struct sweep s = {.e = e, .keep = keep, .ctx = ctx};

	entries_each(e, sweep_one, &s);
	return s.removed;
}
