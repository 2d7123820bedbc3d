// SPDX-License-Identifier: Apache-2.0
/*
 * loop: the feed is read and what happened is told, then the watermark; every 100 ms while anything
 * happens, else every 500 ms (loaders/lib/host/budget/pace.h). The first exec after a while, a
 * probe that wants a process's tables, and a client that is in a hurry have it read at once.
 */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "loaders/lib/host/budget/selfmem.h"
#include "loaders/maps/world/side_band_feed.h"
#include "loaders/maps/hub/hub.h"
#include "loaders/maps/indexing/indexer.h"
#include "loaders/maps/main_parts.h"
#include "loaders/maps/publish/publish.h"
#include "loaders/maps/publish/wanted.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"

#define QUICK_NS (NSEC_PER_SEC / 10)
#define SLOW_NS  (NSEC_PER_SEC / 2) /* well below TABLES_STALE_NS: it is the heartbeat too */
/* quick from the start: rows are being published, loaders wait for them */
#define BEGIN_NS (5 * NSEC_PER_SEC)
#define SOON_NS  ((int64_t)SIDE_BAND_MARGIN_NS + 1000000)
/* look; act ACT_NS later, when what the look saw has been told */
#define RECONCILE_NS (5 * NSEC_PER_SEC)
#define ACT_NS       (3 * NSEC_PER_SEC / 10)
#define SWEEP_NS     (15 * NSEC_PER_SEC)
#define CPUS_NS      (SLOW_NS)
#define CPUS_ASK_NS  (5 * NSEC_PER_SEC) /* costs each CPU an interrupt */
#define COST_NS      NSEC_PER_SEC
#define MEMORY_NS    (10 * NSEC_PER_SEC)

/* ---- ticks ---- */

static uint64_t cpu_of(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* Has its time come? Then it comes again `every_ns` from now. */
static bool is_due(int64_t *at_ns, int64_t every_ns)
{
	int64_t now = clock_boot_ns();

	if (now < *at_ns)
		return false;
	*at_ns = now + every_ns;
	return true;
}

static void tell_cost(struct maps *m)
{
	struct side_band_feed_cost c;
	struct mp_cost out;

	if (is_due(&m->due.memory_ns, MEMORY_NS))
		selfmem_read(&m->rss, &m->private);
	side_band_feed_cost(m->feed, &c);
	out = (struct mp_cost){.cpu_ns = cpu_of(RUSAGE_SELF),
			       .index_cpu_ns = cpu_of(RUSAGE_CHILDREN) + indexer_cpu_ns(m->indexer),
			       .bpf_ns = c.bpf_ns,
			       .bpf_runs = c.bpf_runs,
			       .rss_bytes = m->rss,
			       .private_bytes = m->private,
			       .map_bytes = c.map_bytes + m->tables_bytes};
	publish_cost(m->publish, &out);
	hub_emit_cost(m->hub, &out);
}

/* Records were lost since then (0: nobody knows how many): read /proc again for all, tell all anew.
 */
static void recover(struct maps *m, uint64_t since_ns, uint64_t lost)
{
	hub_mute(m->hub, true);
	side_band_feed_seed(m->feed);
	hub_mute(m->hub, false);
	hub_reseed_all(m->hub, since_ns, lost);
}

/* What happened is known here and in the tables; clients hear of it at the next tick. */
static void read_and_publish(struct maps *m)
{
	uint64_t until = side_band_feed_read(m->feed), since = m->good_ns,
		 lost = side_band_feed_lost(m->feed, &since);

	if (lost) {
		log_warn("%llu side-band records were lost: reading /proc again",
			 (unsigned long long)lost);
		recover(m, since, lost);
	}
	m->good_ns = until;
	publish_tick(m->publish, until);
	if (side_band_feed_is_busy(m->feed))
		pace_busy(&m->pace, clock_boot_ns());
}

static void read_and_tell(struct maps *m)
{
	struct mp_watermark w;

	read_and_publish(m);
	w = (struct mp_watermark){.time_ns = m->good_ns, .ends = m->world.ends};
	hub_emit(m->hub, MP_WATERMARK, &w, NULL);
}

/* One that comes had no event until now. */
static void follow_cpus(struct maps *m)
{
	bool ask = is_due(&m->due.ask_ns, CPUS_ASK_NS);

	if (side_band_feed_follow_cpus(m->feed, ask)) {
		log_debug("CPUs came: reading /proc again");
		recover(m, m->cpus_ns, 0);
	}
	if (ask)
		m->cpus_ns = m->good_ns;
}

static void reconcile(struct maps *m)
{
	if (is_due(&m->due.reconcile_ns, RECONCILE_NS)) {
		side_band_feed_reconcile_look(m->feed);
		m->due.act_ns = clock_boot_ns() + ACT_NS;
	} else if (is_due(&m->due.act_ns, RECONCILE_NS)) {
		side_band_feed_reconcile_act(m->feed);
	}
}

static void tick(struct maps *m)
{
	if (pace_is_slow(&m->pace, clock_boot_ns()))
		side_band_feed_sleep(m->feed); /* before it is read: what comes from now on calls */
	if (is_due(&m->due.cpus_ns, CPUS_NS))
		follow_cpus(m);
	read_and_tell(m);
	reconcile(m);
	if (is_due(&m->due.sweep_ns, SWEEP_NS))
		world_sweep(&m->world, (uint64_t)clock_boot_ns());
	if (is_due(&m->due.cost_ns, COST_NS))
		tell_cost(m);
	indexer_tick(m->indexer, (uint64_t)clock_boot_ns());
	if (indexer_busy(m->indexer))
		pace_busy(&m->pace, clock_boot_ns());
	hub_flush(m->hub);
	if (m->o.print)
		fflush(stdout);
	pace_ticked(&m->pace, clock_boot_ns());
}

/* What was asked for SOON_NS ago: what was younger than the margin then. */
static void soon(struct maps *m)
{
	m->soon_ns = 0;
	if (!m->tell_soon) {
		read_and_publish(m);
		return;
	}
	m->tell_soon = false;
	tell_cost(m); /* before the watermark, which says that it has come */
	read_and_tell(m);
	hub_flush(m->hub);
}

/* ---- the loop ---- */

/* A client waits for what has happened up to now. */
void maps_hurry(void *ctx)
{
	struct maps *m = ctx;

	m->tell_soon = true;
	m->soon_ns = clock_boot_ns() + SOON_NS;
}

static void dispatch(struct maps *m, const struct epoll_event *ev)
{
	void *ptr = ev->data.ptr;
	struct signalfd_siginfo si;

	if (ptr == m->feed) {
		read_and_tell(m);
		hub_flush(m->hub);
	} else if (ptr == m->wanted) {
		wanted_take(m->wanted);
		read_and_publish(m);
		if (!m->tell_soon) /* what is younger than the margin: its newest mappings, say */
			m->soon_ns = clock_boot_ns() + SOON_NS;
	} else if (ptr == &m->listen_fd) {
		hub_accept(m->hub);
	} else if (ptr == &m->signal_fd) {
		if (read(m->signal_fd, &si, sizeof(si)) == sizeof(si))
			m->stop = true;
	} else if (indexer_ready(m->indexer, ptr)) {
		publish_tick(m->publish, m->good_ns); /* at once, if rows came */
	} else {
		hub_ready(m->hub, ptr, ev->events);
	}
}

void maps_loop(struct maps *m)
{
	int64_t now = clock_boot_ns();

	m->pace = (struct pace){.quick_ns = QUICK_NS,
				.slow_ns = SLOW_NS,
				.next_ns = now,
				.busy_until_ns = now + BEGIN_NS};
	m->due = (struct due){.reconcile_ns = now + RECONCILE_NS,
			      .act_ns = INT64_MAX,
			      .sweep_ns = now + SWEEP_NS,
			      .cost_ns = now + COST_NS,
			      .memory_ns = now + COST_NS};
	while (!m->stop && !hub_orphaned(m->hub)) {
		struct epoll_event ev[16];
		int64_t next = m->pace.next_ns;
		int n;

		now = clock_boot_ns();
		if (m->soon_ns && now >= m->soon_ns) {
			soon(m);
			continue;
		}
		if (now >= next) {
			tick(m);
			continue;
		}
		if (m->soon_ns && m->soon_ns < next)
			next = m->soon_ns;
		n = epoll_wait(m->epoll_fd, ev, 16, (int)((next - now + 999999) / 1000000));
		for (int i = 0; i < n; i++)
			dispatch(m, &ev[i]);
	}
}
