/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/slow.h"

static uint64_t took(const struct disk_slow *r)
{
	return r->queue_ns + r->device_ns;
}

/* In place of the shortest, if there is no room. */
static void list_add(struct slow *s, const struct disk_slow *r)
{
	size_t least = 0;

	if (s->n < SLOW_MOST) {
		s->list[s->n++] = *r;
		return;
	}
	s->dropped++;
	for (size_t i = 1; i < SLOW_MOST; i++)
		if (took(&s->list[i]) < took(&s->list[least]))
			least = i;
	if (took(r) > took(&s->list[least]))
		s->list[least] = *r;
}

void slow_add(struct slow *s, const struct disk_slow *r)
{
	struct slow_device *d = NULL;

	if (took(r) >= SLOW_NS)
		list_add(s, r);
	for (size_t i = 0; !d && i < s->n_devices; i++)
		if (s->devices[i].longest.major == r->major &&
		    s->devices[i].longest.minor == r->minor)
			d = &s->devices[i];
	if (!d && s->n_devices < SLOW_DEVICES) {
		d = &s->devices[s->n_devices++];
		*d = (struct slow_device){0};
	}
	if (d && took(r) >= took(&d->longest))
		d->longest = *r;
}

size_t slow_take(struct slow *s, struct disk_slow out[SLOW_MOST])
{
	size_t n = s->n;

	for (size_t i = 0; i < n; i++)
		out[i] = s->list[i];
	s->n = 0;
	return n;
}

size_t slow_minute(struct slow *s, struct disk_slow out[SLOW_DEVICES])
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_devices; i++)
		if (took(&s->devices[i].longest) < SLOW_NS)
			out[n++] = s->devices[i].longest;
	s->n_devices = 0;
	return n;
}
