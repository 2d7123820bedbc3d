/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/events/change_detect.h"

#include <stdio.h>

#include "schema/base/array.h"
#include "schema/facts/host.h"

enum change_change change_throttle(struct change_throttle *w, uint64_t periods, uint64_t throttled)
{
	bool fresh = !w->known || periods < w->periods || throttled < w->throttled;
	uint64_t ran = fresh ? 0 : periods - w->periods,
		 stopped = fresh ? 0 : throttled - w->throttled;

	w->known = true;
	w->periods = periods;
	w->throttled = throttled;
	if (!w->on && stopped >= CHANGE_THROTTLED_LEAST && stopped >= ran / 10) {
		w->on = true;
		w->quiet = 0;
		return CHANGE_BEGAN;
	}
	if (!w->on)
		return CHANGE_SAME;
	w->quiet = stopped && stopped >= ran / 50 ? 0 : w->quiet + 1;
	if (w->quiet < CHANGE_QUIET)
		return CHANGE_SAME;
	w->on = false;
	return CHANGE_ENDED;
}

enum change_change change_level(struct change_level *w, bool on)
{
	bool changed = w->known && w->on != on;

	w->known = true;
	w->on = on;
	return !changed ? CHANGE_SAME : on ? CHANGE_BEGAN : CHANGE_ENDED;
}

bool change_full(uint64_t size, uint64_t available, bool was)
{
	return size && available < size / (was ? 50 : 100);
}

enum limit_form { LIMIT_BYTES, LIMIT_CPU, LIMIT_COUNT };

static void limit_say(const struct fact_row *row, int column, enum limit_form form,
		      struct strbuf *out)
{
	int64_t n = row->v[column].number;

	if (!fact_has(row, column))
		strbuf_addstr(out, "none");
	else if (form == LIMIT_CPU)
		strbuf_addf(out, "%.2f", 1e-3 * (double)n);
	else if (form == LIMIT_COUNT)
		strbuf_addf(out, "%lld", (long long)n);
	else if (n >= 1 << 20)
		strbuf_addf(out, "%.4g MiB", (double)n / (1 << 20));
	else
		strbuf_addf(out, "%lld bytes", (long long)n);
}

bool change_limits(struct change_limits *w, const struct fact_row *row, struct strbuf *out)
{
	static const struct {
		int column;
		const char *name;
		enum limit_form form;
	} limits[] = {{CGROUP_CPU_LIMIT, "CPU", LIMIT_CPU},
		      {CGROUP_MEM_LIMIT, "memory", LIMIT_BYTES},
		      {CGROUP_SWAP_LIMIT, "swap", LIMIT_BYTES},
		      {CGROUP_PIDS_LIMIT, "processes", LIMIT_COUNT}};
	bool any = false;

	for (size_t i = 0; w->readings >= CHANGE_SETTLE && i < ARRAY_SIZE(limits); i++) {
		int c = limits[i].column;

		if (fact_has(&w->last, c) == fact_has(row, c) &&
		    (!fact_has(row, c) || w->last.v[c].number == row->v[c].number))
			continue;
		strbuf_addf(out, "%s%s ", any ? "; " : "", limits[i].name);
		limit_say(row, c, limits[i].form, out);
		strbuf_addstr(out, ", was ");
		limit_say(&w->last, c, limits[i].form, out);
		any = true;
	}
	w->last = *row;
	w->readings += w->readings < CHANGE_SETTLE;
	return any;
}
