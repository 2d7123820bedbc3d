/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/run/ledger.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <stdio.h>

#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/bpf/load/tables.h"
#include "loaders/lib/host/budget/selfmem.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"

void ledger_init(struct ledger *l, const char *family, struct bpf_object *obj)
{
	*l = (struct ledger){.family = family, .obj = obj};
}

/* The kernel's charge for the maps, without those of sonde-maps, whose figures include them. */
static uint64_t map_bytes(struct bpf_object *obj)
{
	struct bpf_map *map;
	uint64_t sum = 0;

	if (!obj)
		return 0;
	bpf_object__for_each_map (map, obj) {
		char path[64], line[128];
		uint64_t bytes;

		if (tables_is_one(map))
			continue;
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(map));
		cleanup_file FILE *f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "memlock: %" SCNu64, &bytes) == 1)
				sum += bytes;
	}
	return sum;
}

static uint64_t tally_runs(const struct family_tally *t)
{
	uint64_t n = 0;

	for (int i = 0; i < FAMILY_TALLY_SLOTS; i++)
		n += t->slot[i];
	return n;
}

void ledger_read(const struct ledger *l, const struct hostmaps *hm, const struct family_tally *t,
		 struct ledger_figures *out)
{
	struct programs_figures programs;
	struct hostmaps_cost maps = {0};

	hostmaps_cost(hm, &maps);
	*out = (struct ledger_figures){.own_cpu_ns = (uint64_t)clock_cpu_ns() + t->helper_cpu_ns,
				       .helper = t->helper,
				       .maps_cpu_ns = maps.cpu_ns,
				       .index_cpu_ns = maps.index_cpu_ns,
				       .maps_bpf_ns = maps.bpf_ns,
				       .maps_bpf_runs = maps.bpf_runs};
	programs_read(l->obj, &programs);
	out->bpf_ns = programs.ns;
	out->bpf_runs = programs.runs;
	if (out->bpf_ns < t->run_ns || out->bpf_runs < tally_runs(t)) {
		out->bpf_ns = t->run_ns;
		out->bpf_runs = tally_runs(t);
	}
}

void ledger_begin(struct ledger *l, const struct ledger_figures *now)
{
	l->begin = *now;
	l->map_bytes = map_bytes(l->obj);
}

void ledger_settle(struct ledger *l, const struct ledger_figures *now)
{
	if (l->begin.maps_cpu_ns || !now->maps_cpu_ns)
		return;
	l->begin.maps_cpu_ns = now->maps_cpu_ns;
	l->begin.maps_bpf_ns = now->maps_bpf_ns;
	l->begin.index_cpu_ns = now->index_cpu_ns;
}

/* Counters of sonde-maps start from 0 when it restarts. */
static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static uint64_t all_grown(const struct ledger_figures *now, const struct ledger_figures *before)
{
	return grown(now->own_cpu_ns, before->own_cpu_ns) +
	       grown(now->maps_cpu_ns, before->maps_cpu_ns) +
	       grown(now->index_cpu_ns, before->index_cpu_ns) + grown(now->bpf_ns, before->bpf_ns) +
	       grown(now->maps_bpf_ns, before->maps_bpf_ns);
}

uint64_t ledger_busy_ns(const struct ledger *l, const struct ledger_figures *now)
{
	return all_grown(now, &l->begin);
}

uint64_t ledger_all_ns(const struct ledger_figures *now)
{
	return now->own_cpu_ns + now->maps_cpu_ns + now->index_cpu_ns + now->bpf_ns +
	       now->maps_bpf_ns;
}

static void book_start(struct ledger *l, const struct ledger_figures *now, struct store_writer *w,
		       uint32_t run, int64_t utc_ns)
{
	struct store_cost start = {.program = STORE_COST_START};

	if (l->begun)
		return;
	ledger_settle(l, now);
	start.cpu_ns = ledger_all_ns(&l->begin);
	store_cost(w, run, utc_ns, &start);
	l->booked = l->begin;
	l->begun = true;
}

void ledger_book_end(struct ledger *l, const struct ledger_figures *now, struct store_writer *w,
		     uint32_t run, int64_t utc_ns)
{
	struct store_cost end = {.program = STORE_COST_END, .cpu_ns = all_grown(now, &l->booked)};

	store_cost(w, run, utc_ns, &end);
	l->booked = *now;
}

static void book_programs(struct ledger *l, const struct hostmaps *hm,
			  const struct ledger_figures *now, struct store_writer *w, uint32_t run,
			  int64_t utc_ns)
{
	struct store_cost own = {.cpu_ns = grown(now->own_cpu_ns, l->booked.own_cpu_ns)};
	struct store_cost bpf = {.cpu_ns = grown(now->bpf_ns, l->booked.bpf_ns),
				 .runs = grown(now->bpf_runs, l->booked.bpf_runs)};
	struct store_cost maps = {.program = "sonde-maps",
				  .cpu_ns = grown(now->maps_cpu_ns, l->booked.maps_cpu_ns)};
	struct store_cost index = {.program = "sonde-index",
				   .cpu_ns = grown(now->index_cpu_ns, l->booked.index_cpu_ns)};
	struct store_cost maps_bpf = {.program = "bpf:maps",
				      .cpu_ns = grown(now->maps_bpf_ns, l->booked.maps_bpf_ns),
				      .runs = grown(now->maps_bpf_runs, l->booked.maps_bpf_runs)};
	struct hostmaps_cost told = {0};
	char own_name[64], bpf_name[64];

	snprintf(own_name, sizeof(own_name), "sonde-%s", l->family);
	snprintf(bpf_name, sizeof(bpf_name), "bpf:%s", l->family);
	l->map_bytes = bpf.map_bytes = map_bytes(l->obj);
	own.program = own_name;
	bpf.program = bpf_name;
	selfmem_read(&own.rss_bytes, &own.private_bytes);
	if (now->helper) {
		uint64_t rss, private_bytes;

		selfmem_read_of(now->helper, &rss, &private_bytes);
		own.rss_bytes += rss;
		own.private_bytes += private_bytes;
	}
	hostmaps_cost(hm, &told);
	maps.rss_bytes = told.rss_bytes;
	maps.private_bytes = told.private_bytes;
	maps_bpf.map_bytes = told.map_bytes;
	store_cost(w, run, utc_ns, &own);
	store_cost(w, run, utc_ns, &bpf);
	store_cost(w, run, utc_ns, &maps);
	store_cost(w, run, utc_ns, &maps_bpf);
	store_cost(w, run, utc_ns, &index);
	l->booked = *now;
}

void ledger_book(struct ledger *l, const struct hostmaps *hm, const struct ledger_figures *now,
		 struct store_writer *w, uint32_t run, int64_t utc_ns)
{
	book_start(l, now, w, run, utc_ns);
	book_programs(l, hm, now, w, run, utc_ns);
}
