// SPDX-License-Identifier: Apache-2.0
/* capture_flow: from the rings to the store, and the books: what was lost, what it cost. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loaders/lib/bpf/run/capture_parts.h"
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/maps/inflight.h"
#include "loaders/lib/host/names/naming.h"
#include "probes/lib/stack.h"

#define STALE_NS (5000 * MSEC) /* sonde-maps is given this long, at the start too */
#define YOUNG_NS (60 * 1000 * MSEC)
#define LATE_NS  (5000 * MSEC) /* rows are waited for this long */
/* A bucket is handed over this long after its end, with what was held back meanwhile. */
#define READY_NS (300 * MSEC)

/* ---- from the ring to the store ---- */

static int record_take(void *ctx, void *record, size_t size)
{
	struct capture *c = ctx;
	uint64_t n;

	if (c->f->record_amount(c->state, record, size, &n))
		c->r->lost[CAPTURE_LOST_MALFORMED]++;
	else if (hold_push(&c->hold, record, size))
		c->r->lost[CAPTURE_LOST_HOLD] += n;
	return 0;
}

/* What had to make room is unwound as far as rows were there. */
static void late_hold(void *ctx, const struct stack_event *ev, size_t size)
{
	record_take(ctx, (void *)(uintptr_t)ev, size);
}

/* Its frames only its process explains. A young one compiles its code anew all the time, and may
 * end soon. */
static void late_own(struct capture *c, const struct stack_event *ev)
{
	bool own = ev->end == STACK_END_UNSUPPORTED;

	c->late_own |= own;
	c->late_young |= own && ev->time_ns - ev->start_ns < YOUNG_NS;
}

static int late_take(void *ctx, void *record, size_t size)
{
	struct capture *c = ctx;
	int err = late_push(&c->late, record, size);

	if (err == -ENOBUFS) {
		late_shed(&c->late, c->maps, late_hold, c);
		err = late_push(&c->late, record, size);
	}
	if (err)
		c->r->lost[CAPTURE_LOST_MALFORMED]++;
	else if (!late_parts_is(record, size))
		late_own(c, &((const struct stack_late *)record)->ev);
	return 0;
}

/* Names of script frames. They come behind the records whose frames have them, and are taken before
 * one of those is named. */
static int names_take(void *ctx, void *record, size_t size)
{
	struct capture *c = ctx;
	struct script_key key;

	if (naming_script_take(c->naming, record, size, &key))
		c->r->lost[CAPTURE_LOST_MALFORMED]++;
	else
		scripts_took(&c->scripts, &key, ((const struct script_names *)record)->id);
	return 0;
}

static void names_drop(void *ctx, uint32_t id)
{
	naming_script_drop(((struct capture *)ctx)->naming, id);
}

void capture_names_tick(struct capture *c)
{
	scripts_tick(&c->scripts, clock_boot_ns(), names_drop, c);
}

static void process_count(struct capture *c, uint32_t process)
{
	uint32_t epoch = store_epoch(c->store);

	if (epoch != c->epoch) {
		c->r->processes =
			c->processes.n > c->r->processes ? c->processes.n : c->r->processes;
		idmap_clear(&c->processes);
		c->epoch = epoch;
	}
	idmap_set(&c->processes, process, 1);
}

/* How the user part ends, for those that have one: who was in the kernel when its memory went has
 * none. Where a complete stack ends says nothing. */
static void unwound_store(struct capture *c, const struct stack_event *ev,
			  const struct naming_result *named, uint64_t n)
{
	bool complete = named->end == STACK_END_ROOT;

	if (named->end == STACK_END_NONE)
		return;
	c->r->user += named->end == STACK_END_GONE && ev->n_kernel ? 0 : n;
	c->r->user_complete += complete ? n : 0;
	store_unwound(c->store, c->run, capture_utc(c, (int64_t)ev->time_ns), named->exe,
		      complete ? 0 : named->image, named->end, n);
}

static void host_renew(struct capture *c);
static void host_book(struct capture *c, uint64_t added, uint64_t refused);

/* A record that its family stores. What it adds has come through the ring: it is in the program's
 * tally already. */
static void record_give(struct capture *c, const struct stack_event *ev, size_t size)
{
	uint64_t added = c->host.added, refused = c->host.refused;
	struct naming_result named = {0};

	host_renew(c);
	c->f->store_record(c->state, &c->host, ev, size, &named);
	host_book(c, added, refused);
	c->host.added = added;
	c->host.refused = refused;
	if (!named.process)
		return;
	unwound_store(c, ev, &named, 1);
	process_count(c, named.process);
}

/* Name one record and add it. The store may ask, once or twice, for all ids anew. */
static void record_store(struct capture *c, const struct stack_event *ev, size_t size, uint64_t n)
{
	const uint64_t *frames = (const uint64_t *)(ev + 1);
	char thread[STACK_COMM_LEN + 1];
	struct naming_result named;
	uint32_t series, tid;
	int err = -ESTALE;

	if (c->f->store_record) {
		record_give(c, ev, size);
		return;
	}
	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		naming_stack(c->naming, ev, frames, &named);
		tid = ev->tid;
		naming_thread(&named, ev->thread, thread, &tid);
		series = store_series(c->store, c->run, named.process, thread, tid, named.stack,
				      STORE_KIND_CPU);
		err = store_add(c->store, series, capture_utc(c, (int64_t)ev->time_ns), n);
	}
	if (err) {
		c->refused += n;
		store_loss(c->store, c->run, capture_utc(c, (int64_t)ev->time_ns), "store", n);
		return;
	}
	inflight_store(c->store, c->run, capture_utc(c, (int64_t)ev->time_ns), ev->tag, series, n,
		       n * capture_period(c));
	c->added += n;
	unwound_store(c, ev, &named, n);
	process_count(c, named.process);
}

static void late_store(void *ctx, const struct stack_event *ev, size_t size)
{
	struct capture *c = ctx;
	uint64_t n;

	if (c->f->record_amount(c->state, ev, size, &n))
		c->r->lost[CAPTURE_LOST_MALFORMED]++;
	else
		record_store(c, ev, size, n);
}

/* Everything before this has been stored. */
static int64_t stored_until(const struct capture *c, int64_t known)
{
	uint64_t late = late_oldest(&c->late);

	if (!c->hold.n || known > c->ring_read_ns)
		known = c->ring_read_ns;
	return late < (uint64_t)known ? (int64_t)late : known;
}

/* Everything that sonde-maps has caught up with; what has waited too long goes on without it. */
void capture_pass(struct capture *c, bool all)
{
	int64_t known = (int64_t)hostmaps_watermark(c->maps), now = clock_boot_ns();
	const void *record;
	size_t size;
	uint64_t n;

	if (!hostmaps_seeded(c->maps))
		known = 0;
	while ((record = hold_peek(&c->hold, &size))) {
		int64_t time = (int64_t)((const struct stack_event *)record)->time_ns;

		if (time > known) {
			if (!all && now - time < STALE_NS)
				break;
			c->r->stale++;
		}
		c->f->record_amount(c->state, record, size, &n);
		record_store(c, record, size, n);
		hold_pop(&c->hold);
	}
	late_drain(&c->late, c->maps, (uint64_t)now, LATE_NS, all, late_store, c);
	if (all && c->f->store_record)
		record_give(c, NULL, 0);
	known = stored_until(c, known);
	if (known > c->until_ns)
		c->until_ns = known;
}

bool capture_awaits_own(const struct capture *c)
{
	return c->late.n && (int64_t)hostmaps_watermark(c->maps) < c->own_asked_ns;
}

bool capture_waiting(const struct capture *c)
{
	return c->hold.n || c->late.n;
}

/* Edge-triggered: a ring is readable all the time, only its calls count. */
static int ring_watch(const struct capture *c, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(c->wake_fd, EPOLL_CTL_ADD, fd, &ev);
}

/* A family that reads by itself may have a ring of its own: only its calls are heard here. */
static int wake_open(struct capture *c, struct err *e)
{
	int fd = c->f->wake_fd ? c->f->wake_fd(c->state) : -1, err;

	if (fd < 0)
		return 0;
	c->wake_fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->wake_fd >= 0 && !ring_watch(c, fd))
		return 0;
	err = -errno;
	return err_set(e, err, EXIT_RUNTIME, "cannot watch a ring buffer: %s", strerror(-err));
}

int capture_rings_open(struct capture *c, struct err *e)
{
	int late = c->f->late_fd ? c->f->late_fd(c->state) : -1, names, err;

	if (!c->f->ring_fd)
		return wake_open(c, e);
	scripts_open(&c->scripts, c->obj);
	names = c->scripts.names_fd;
	c->wake_fd = epoll_create1(EPOLL_CLOEXEC);
	c->ring = ring_buffer__new(c->f->ring_fd(c->state), record_take, c, NULL);
	if (c->ring && (late < 0 || !ring_buffer__add(c->ring, late, late_take, c)) &&
	    (names < 0 || !ring_buffer__add(c->ring, names, names_take, c)) &&
	    !ring_watch(c, c->f->ring_fd(c->state)) && (late < 0 || !ring_watch(c, late)) &&
	    (names < 0 || !ring_watch(c, names)))
		return 0;
	err = -errno;
	return err_set(e, err, EXIT_RUNTIME, "cannot map the ring buffer: %s", strerror(-err));
}

void capture_rings_close(struct capture *c)
{
	if (c->ring)
		ring_buffer__free(c->ring);
	scripts_release(&c->scripts);
	if (c->wake_fd >= 0)
		close(c->wake_fd);
}

void capture_rings_called(struct capture *c)
{
	struct epoll_event ev[3];

	epoll_wait(c->wake_fd, ev, 3, 0); /* heard */
	capture_rings_read(c);
	if (c->f->wake_fd)
		c->host.next_ns = c->ring_read_ns; /* a tick, now */
}

void capture_rings_read(struct capture *c)
{
	c->ring_read_ns = clock_boot_ns();
	if (c->ring)
		ring_buffer__consume(c->ring);
	if (!c->late_own)
		return;
	c->late_own = false;
	c->own_asked_ns = c->ring_read_ns;
	hostmaps_hurry(c->maps);
	if (c->late_young)
		pace_busy(&c->pace, c->ring_read_ns);
	c->late_young = false;
}

/* ---- families that read by themselves ---- */

static void host_renew(struct capture *c)
{
	c->host.target = &c->o->target->family;
	c->host.store_dir = c->o->options->store ? c->o->options->store : store_default_dir();
	c->host.maps = c->maps;
	c->host.naming = c->naming;
	c->host.store = c->store;
	c->host.run = c->run;
	c->host.bucket_s = c->o->options->bucket_s;
	c->host.offset_ns = c->offset_ns;
}

static void host_book(struct capture *c, uint64_t added, uint64_t refused)
{
	c->added += c->host.added - added;
	c->refused += c->host.refused - refused;
	if (c->host.refused > refused)
		store_loss(c->store, c->run, capture_utc(c, c->until_ns), "store",
			   c->host.refused - refused);
	if (c->host.processes > c->r->processes)
		c->r->processes = c->host.processes;
}

void capture_poll(struct capture *c)
{
	uint64_t added = c->host.added, refused = c->host.refused;

	if (!c->f->poll)
		return;
	host_renew(c);
	c->host.next_ns = 0;
	c->f->poll(c->state, &c->host, clock_boot_ns());
	host_book(c, added, refused);
}

void capture_finish(struct capture *c)
{
	uint64_t added = c->host.added, refused = c->host.refused;

	if (!c->f->last_read)
		return;
	host_renew(c);
	c->f->last_read(c->state, &c->host, c->r->interrupted ? 500 * MSEC : 2000 * MSEC);
	host_book(c, added, refused);
}

/* ---- the books ---- */

static uint64_t slots_p99(const uint64_t slot[FAMILY_TALLY_SLOTS])
{
	uint64_t all = 0, sum = 0;

	for (int i = 0; i < FAMILY_TALLY_SLOTS; i++)
		all += slot[i];
	for (int i = 0; i < FAMILY_TALLY_SLOTS && all; i++) {
		sum += slot[i];
		if (sum * 100 >= all * 99)
			return 2ull << i;
	}
	return 0;
}

void capture_tally(struct capture *c, struct family_tally *t)
{
	struct programs_figures programs;
	uint64_t runs = 0;

	*t = (struct family_tally){0};
	programs_read(c->ledger.obj, &programs);
	if (c->f->tally)
		c->f->tally(c->state, t);
	for (int i = 0; i < FAMILY_TALLY_SLOTS; i++)
		runs += t->slot[i];
	c->r->lost[CAPTURE_LOST_RING] = t->lost;
	c->r->lost[CAPTURE_LOST_THROTTLED] = t->throttled;
	c->r->lost[CAPTURE_LOST_MISSED] = programs.missed;
	c->r->seen = t->seen + t->throttled + programs.missed + c->host.added + c->host.refused;
	c->r->unfollowed = t->unfollowed;
	c->r->run_ns = runs ? t->run_ns / runs : 0;
	c->r->run_p99_ns = slots_p99(t->slot);
}

/* Losses since the last time go to the store, under the present bucket. */
static void losses_book(struct capture *c)
{
	int64_t now = capture_utc(c, c->until_ns);

	for (int i = 0; i < CAPTURE_LOST_N; i++) {
		if (i == CAPTURE_LOST_STORE || c->r->lost[i] == c->booked_lost[i])
			continue;
		store_loss(c->store, c->run, now, capture_loss_names[i],
			   c->r->lost[i] - c->booked_lost[i]);
		c->booked_lost[i] = c->r->lost[i];
	}
	c->r->maps_lost = hostmaps_lost(c->maps);
	if (c->r->maps_lost > c->booked_maps_lost) {
		store_loss(c->store, c->run, now, "maps", c->r->maps_lost - c->booked_maps_lost);
		c->booked_maps_lost = c->r->maps_lost;
	}
}

void capture_ledger_write(struct capture *c)
{
	struct family_tally t;
	struct ledger_figures now;

	capture_tally(c, &t);
	ledger_read(&c->ledger, c->maps, &t, &now);
	ledger_book(&c->ledger, c->maps, &now, c->store, c->run, capture_utc(c, c->until_ns));
	c->booked_ns = clock_boot_ns();
}

void capture_flush(struct capture *c)
{
	store_run_until(c->store, c->run, capture_utc(c, c->until_ns));
	losses_book(c);
	store_flush(c->store);
}

/*
 * Who looks at a capture that has just begun need not wait for a bucket's end: the very first
 * samples are handed over at once, once more when their names have come, and then whenever twice
 * the time has passed.
 */
static bool begins_due(struct capture *c, int64_t now)
{
	bool first = !c->first_flushed, named = !c->first_named && !naming_waits(c->naming);

	if (!c->added || (!first && now - c->attached_ns > CAPTURE_BEGIN_NS))
		return false;
	c->first_flushed = true;
	c->first_named |= named;
	if (!first && !named && now - c->attached_ns < 2 * (c->flushed_ns - c->attached_ns))
		return false;
	c->flushed_ns = now;
	return true;
}

/* Else a bucket that has ended is handed over whole. */
void capture_flush_due(struct capture *c)
{
	int64_t bucket = capture_utc(c, c->until_ns - READY_NS) /
			 ((int64_t)c->o->options->bucket_s * NSEC_PER_SEC);
	struct family_tally t;

	if (begins_due(c, clock_boot_ns())) {
		c->flushed_bucket = bucket > c->flushed_bucket ? bucket : c->flushed_bucket;
		capture_flush(c);
	} else if (bucket > c->flushed_bucket) {
		c->flushed_bucket = bucket;
		capture_tally(c, &t);
		capture_flush(c);
	}
}
