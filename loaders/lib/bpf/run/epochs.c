/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/run/epochs.h"

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "schema/base/clock.h"

#define SETTLE_NS (NSEC_PER_SEC / 50) /* a program that was running has ended by then */
#define WAIT_NS                                                                             \
	(6 * NSEC_PER_SEC) /* so long sonde-maps is waited for: a process that ended in the \
			     epoch is not forgotten by then */

static int64_t due(const struct epochs *p, const struct family_host *h)
{
	int64_t end = family_bucket_end(h, p->begun_ns);

	return end < p->begun_ns + EPOCHS_NS ? end : p->begun_ns + EPOCHS_NS;
}

static bool ripe(const struct epochs *p, const struct family_host *h, int64_t now_ns)
{
	return now_ns >= p->ended_ns + SETTLE_NS &&
	       ((int64_t)hostmaps_watermark(h->maps) >= p->ended_ns ||
		now_ns >= p->ended_ns + WAIT_NS);
}

enum epochs_step epochs_step(struct epochs *p, const struct family_host *h, int64_t now_ns)
{
	if (!p->begun_ns)
		p->begun_ns = now_ns;
	if (p->ended_ns)
		return ripe(p, h, now_ns) ? EPOCHS_STORE : EPOCHS_WAIT;
	return now_ns >= due(p, h) && hostmaps_seeded(h->maps) ? EPOCHS_END : EPOCHS_WAIT;
}

void epochs_over(struct epochs *p, const struct family_host *h, int64_t now_ns, uint32_t number)
{
	p->number = number;
	p->ended_ns = now_ns;
	hostmaps_hurry(h->maps);
}

void epochs_stored(struct epochs *p)
{
	p->begun_ns = p->ended_ns;
	p->ended_ns = 0;
}

int64_t epochs_utc(const struct epochs *p, const struct family_host *h)
{
	return family_utc(h, p->begun_ns / 2 + p->ended_ns / 2);
}

int64_t epochs_next(const struct epochs *p, const struct family_host *h, int64_t now_ns)
{
	return p->ended_ns ? now_ns + SETTLE_NS : due(p, h);
}
