/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/relief.h"

#include <string.h>

static unsigned int halvings(const struct relief *r, unsigned int family)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < r->n; i++)
		sum += r->step[i].family == family && !r->step[i].stop;
	return sum;
}

bool relief_stopped(const struct relief *r, unsigned int family)
{
	for (unsigned int i = 0; i < r->n; i++)
		if (r->step[i].family == family && r->step[i].stop)
			return true;
	return false;
}

uint32_t relief_freq(const struct relief *r, unsigned int family, uint32_t asked)
{
	uint32_t freq = asked >> halvings(r, family);

	return freq ? freq : 1;
}

unsigned int relief_count(const struct relief *r, enum relief_limit limit)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < r->n; i++)
		sum += r->step[i].limit == limit;
	return sum;
}

static bool runs(const struct relief *r, const struct relief_family *f, unsigned int i)
{
	return f[i].wanted && !relief_stopped(r, i);
}

/* -1: none. Of two that take as much, the last. */
static int dearest_to_slow(const struct relief *r, const struct relief_family *f, unsigned int n)
{
	int found = -1;

	for (unsigned int i = 0; i < n; i++)
		if (runs(r, f, i) && f[i].slows && halvings(r, i) < RELIEF_SLOWEST &&
		    (found < 0 || f[i].cores >= f[found].cores))
			found = (int)i;
	return found;
}

static int last_to_stop(const struct relief *r, const struct relief_family *f, unsigned int n, bool first_too)
{
	int last = -1, running = 0;

	for (unsigned int i = 0; i < n; i++)
		if (runs(r, f, i)) {
			last = (int)i;
			running++;
		}
	return running > 1 || first_too ? last : -1;
}

bool relief_more(struct relief *r, enum relief_limit limit, const struct relief_family *f, unsigned int n,
		 struct relief_step *out)
{
	int i = limit == RELIEF_CPU ? dearest_to_slow(r, f, n) : -1;
	bool stop = i < 0;

	if (stop)
		i = last_to_stop(r, f, n, limit == RELIEF_CPU);
	if (i < 0 || r->n == RELIEF_STEPS)
		return false;
	*out = (struct relief_step){.family = (unsigned int)i, .stop = stop, .limit = limit};
	r->step[r->n++] = *out;
	return true;
}

static void take_out(struct relief *r, unsigned int i)
{
	r->n--;
	memmove(r->step + i, r->step + i + 1, (r->n - i) * sizeof(*r->step));
}

bool relief_less(struct relief *r, enum relief_limit limit, const struct relief_family *f, unsigned int n,
		 struct relief_step *out)
{
	for (unsigned int i = r->n; i-- > 0;) {
		struct relief_step s = r->step[i];

		if (s.limit != limit)
			continue;
		take_out(r, i);
		if (s.family < n && f[s.family].wanted) {
			*out = s;
			return true;
		}
	}
	return false;
}
