/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/proc/instance.h"

#include <stdio.h>
#include <time.h>

#define CS_NS 10000000ull

static bool is_child(const struct instance_life *all, size_t n, const struct instance_life *p)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].pid == p->ppid && all[i].from_ns <= p->from_ns &&
		    all[i].to_ns >= p->from_ns)
			return true;
	return false;
}

/* The earliest first process that began within [from, to]; NULL: none. */
static const struct instance_life *first_within(const struct instance_life *all, size_t n,
						uint64_t from, uint64_t to)
{
	const struct instance_life *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (all[i].first && all[i].from_ns >= from && all[i].from_ns <= to &&
		    (!best || all[i].from_ns < best->from_ns) && !is_child(all, n, &all[i]))
			best = &all[i];
	return best;
}

/* The first process that was alive when `p` began; NULL: none. */
static const struct instance_life *first_around(const struct instance_life *all, size_t n,
						const struct instance_life *p)
{
	const struct instance_life *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (all[i].first && all[i].from_ns <= p->from_ns &&
		    all[i].to_ns >= p->from_ns && /* execs of one process have the same start */
		    (!best || all[i].from_ns < best->from_ns) && !is_child(all, n, &all[i]))
			best = &all[i];
	return best;
}

static void stretch(const struct instance_life *all, size_t n, const struct instance_life *p,
		    struct instance *out)
{
	bool grew = true;

	*out = (struct instance){.from_ns = p->from_ns, .to_ns = p->to_ns, .leader = p->pid};
	while (grew) {
		grew = false;
		for (size_t i = 0; i < n; i++) {
			if (all[i].from_ns > out->to_ns || all[i].to_ns < out->from_ns)
				continue;
			grew |= all[i].from_ns < out->from_ns || all[i].to_ns > out->to_ns;
			if (all[i].from_ns < out->from_ns) {
				out->from_ns = all[i].from_ns;
				out->leader = all[i].pid;
			}
			if (all[i].to_ns > out->to_ns)
				out->to_ns = all[i].to_ns;
		}
	}
}

void instance_find(const struct instance_life *all, size_t n, const struct instance_life *p,
		   struct instance *out)
{
	const struct instance_life *first =
		p->first && !is_child(all, n, p) ? p : first_around(all, n, p);

	if (!first) {
		stretch(all, n, p, out);
		first = first_within(all, n, p->from_ns, out->to_ns);
	}
	if (first)
		*out = (struct instance){.from_ns = first->from_ns,
					 .to_ns = first->to_ns,
					 .leader = first->pid,
					 .sure = true};
}

static bool overlap(const struct instance *a, const struct instance *b)
{
	return a->from_ns && a->from_ns <= b->to_ns && b->from_ns <= a->to_ns;
}

static void take_in(struct instance *known, const struct instance *found)
{
	if (found->to_ns > known->to_ns)
		known->to_ns = found->to_ns;
	if (found->sure && !known->sure) {
		known->from_ns = found->from_ns;
		known->leader = found->leader;
		known->sure = true;
	}
}

uint64_t instance_settle(struct instance *now, struct instance *before,
			 const struct instance *found)
{
	if (overlap(now, found)) {
		take_in(now, found);
		return now->from_ns;
	}
	if (now->from_ns > found->to_ns) /* of a process that is gone by now */
		return overlap(before, found) ? before->from_ns : found->from_ns;
	*before = *now;
	*now = *found;
	return now->from_ns;
}

const char *instance_text(uint64_t btime_s, uint64_t began_ns, char out[INSTANCE_TEXT])
{
	time_t s = (time_t)(btime_s + began_ns / (100 * CS_NS));
	struct tm tm = {0};
	char date[24] = "";

	gmtime_r(&s, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, INSTANCE_TEXT, "%s.%02uZ", date, (unsigned int)(began_ns / CS_NS % 100));
	return out;
}
