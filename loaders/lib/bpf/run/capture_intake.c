/* SPDX-License-Identifier: Apache-2.0 */
/* capture_intake: records on their way from a ring to the store. */
#include <errno.h>

#include "loaders/lib/bpf/run/private.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/maps/inflight.h"
#include "loaders/lib/host/names/naming.h"
#include "probes/lib/stack.h"

#define STALE_NS   (5000 * MSEC) /* wait this long for sonde-maps, at the start too */
#define YOUNG_NS   (60 * 1000 * MSEC)
#define LATE_NS    (30000 * MSEC) /* wait this long for rows */
#define BOOKED_NS  (5000 * MSEC)  /* all else is complete in the store after this time */
#define HOLD_BYTES (16u << 20)
/* Stacks that wait for rows, mostly 4 to 16 KB each, 26 KB at most: some 10 s of a busy CPU at 99
 * Hz. Their memory is freed when they are unwound. */
#define LATE_CPU_BYTES   (16u << 20)
#define LATE_LEAST_BYTES (48u << 20)
#define LATE_MOST_BYTES  (256u << 20)

void capture_intake_init(struct capture_intake *in, struct capture *c)
{
	*in = (struct capture_intake){
		.config = &c->config,
		.clock = &c->clock,
		.books = &c->books,
		.scripts = {.objects_fd = -1, .names_fd = -1, .walks_fd = -1, .erlang_fd = -1}};
	hold_init(&in->hold, HOLD_BYTES);
	late_init(&in->late, LATE_LEAST_BYTES);
}

void capture_intake_room(struct capture_intake *in, uint32_t cpus)
{
	const uint64_t want = (uint64_t)cpus * LATE_CPU_BYTES;

	in->late.max_bytes = want < LATE_LEAST_BYTES ? LATE_LEAST_BYTES :
			     want > LATE_MOST_BYTES  ? LATE_MOST_BYTES :
						       want;
}

void capture_intake_release(struct capture_intake *in)
{
	hold_release(&in->hold);
	late_release(&in->late);
	late_jit_free(in->late_jit);
	idmap_release(&in->processes);
}

/* ---- from the ring to the store ---- */

int capture_intake_record(void *ctx, void *record, size_t size)
{
	struct capture_intake *in = ctx;
	uint64_t n;

	if (in->config->f->record_amount(in->config->state, record, size, &n))
		in->books->r->lost[CAPTURE_LOST_MALFORMED]++;
	else if (hold_push(&in->hold, record, size))
		in->books->r->lost[CAPTURE_LOST_HOLD] += n;
	return 0;
}

/* Pushed out to make room: unwound as far as its rows were there. */
static void late_hold(void *ctx, const struct stack_event *ev, size_t size)
{
	capture_intake_record(ctx, (void *)(uintptr_t)ev, size);
}

/* Only its process can explain these frames. A young process compiles its code again all the time,
 * and may end soon. */
static void late_own(struct capture_intake *in, const struct stack_event *ev)
{
	bool own = ev->end == STACK_END_UNSUPPORTED;

	in->late_own |= own;
	in->late_young |= own && ev->time_ns - ev->start_ns < YOUNG_NS;
}

int capture_intake_late(void *ctx, void *record, size_t size)
{
	struct capture_intake *in = ctx;
	int err = late_push(&in->late, record, size);

	if (err == -ENOBUFS) {
		late_shed(&in->late, in->config->maps, late_hold, in);
		err = late_push(&in->late, record, size);
	}
	if (err)
		in->books->r->lost[CAPTURE_LOST_MALFORMED]++;
	else if (!late_parts_is(record, size))
		late_own(in, &((const struct stack_late *)record)->ev);
	return 0;
}

/* Names of script frames. They follow the records whose frames they name, and are read before any
 * of these is named. */
int capture_intake_script_name(void *ctx, void *record, size_t size)
{
	struct capture_intake *in = ctx;
	struct script_key key;

	if (naming_script_take(in->config->naming, record, size, &key))
		in->books->r->lost[CAPTURE_LOST_MALFORMED]++;
	else
		scripts_took(&in->scripts, &key, ((const struct script_names *)record)->id);
	return 0;
}

static void names_drop(void *ctx, uint32_t id)
{
	naming_script_drop(((struct capture_intake *)ctx)->config->naming, id);
}

void capture_intake_tick(struct capture_intake *in)
{
	scripts_tick(&in->scripts, clock_boot_ns(), names_drop, in);
}

void capture_intake_count_processes(struct capture_intake *in)
{
	if (in->processes.n > in->books->r->processes)
		in->books->r->processes = in->processes.n;
}

static void process_count(struct capture_intake *in, uint32_t process)
{
	uint32_t epoch = store_epoch(in->config->store);

	if (epoch != in->epoch) {
		capture_intake_count_processes(in);
		idmap_clear(&in->processes);
		in->epoch = epoch;
	}
	idmap_set(&in->processes, process, 1);
}

/* How the user part ends, for stacks that have one: a thread in the kernel whose memory is gone has
 * none. Where a complete stack ends does not matter. */
static void unwound_store(struct capture_intake *in, const struct stack_event *ev,
			  const struct naming_result *named, uint64_t n)
{
	bool complete = named->end == STACK_END_ROOT;

	if (named->end == STACK_END_NONE)
		return;
	in->books->r->user += named->end == STACK_END_GONE && ev->n_kernel ? 0 : n;
	in->books->r->user_complete += complete ? n : 0;
	store_unwound(in->config->store, in->config->run,
		      capture_utc(in->clock, (int64_t)ev->time_ns), named->exe,
		      complete ? 0 : named->image, named->end, n);
}

static void host_renew(struct capture_intake *in);
static void host_book(struct capture_intake *in, uint64_t added, uint64_t refused);

/* A record that its family stores. Its amounts came through the ring, so the program's tally has
 * them already. */
static void record_give(struct capture_intake *in, const struct stack_event *ev, size_t size)
{
	uint64_t added = in->host.added, refused = in->host.refused;
	struct naming_result named = {0};

	host_renew(in);
	in->config->f->store_record(in->config->state, &in->host, ev, size, &named);
	host_book(in, added, refused);
	in->host.added = added;
	in->host.refused = refused;
	if (!named.process)
		return;
	unwound_store(in, ev, &named, 1);
	process_count(in, named.process);
}

/* Name one record and add it. The store may ask for new ids once or twice. */
static void record_store(struct capture_intake *in, const struct stack_event *ev, size_t size,
			 uint64_t n)
{
	const uint64_t *frames = (const uint64_t *)(ev + 1);
	char thread[STACK_COMM_LEN + 1];
	struct naming_result named;
	uint32_t series, tid;
	int err = -ESTALE;

	if (in->config->f->store_record) {
		record_give(in, ev, size);
		return;
	}
	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		naming_stack(in->config->naming, ev, frames, &named);
		tid = ev->tid;
		naming_thread(&named, ev->thread, thread, &tid);
		series = store_series(in->config->store, in->config->run, named.process, thread,
				      tid, named.stack, STORE_KIND_CPU);
		err = store_add(in->config->store, series,
				capture_utc(in->clock, (int64_t)ev->time_ns), n);
	}
	if (err) {
		in->books->refused += n;
		store_loss(in->config->store, in->config->run,
			   capture_utc(in->clock, (int64_t)ev->time_ns), "store", n);
		return;
	}
	inflight_store(in->config->store, in->config->run,
		       capture_utc(in->clock, (int64_t)ev->time_ns), ev->tag, series, n,
		       n * capture_period(in->config));
	in->books->added += n;
	unwound_store(in, ev, &named, n);
	process_count(in, named.process);
}

static void late_store(void *ctx, const struct stack_event *ev, size_t size)
{
	struct capture_intake *in = ctx;
	uint64_t n;

	if (in->config->f->record_amount(in->config->state, ev, size, &n))
		in->books->r->lost[CAPTURE_LOST_MALFORMED]++;
	else
		record_store(in, ev, size, n);
}

/* The store has everything before this time. */
static int64_t stored_until(const struct capture_intake *in, int64_t known)
{
	uint64_t late = late_oldest(&in->late);

	if (!in->hold.n || known > in->read_ns)
		known = in->read_ns;
	if (known > BOOKED_NS && late < (uint64_t)(known - BOOKED_NS))
		return known - BOOKED_NS;
	return late < (uint64_t)known ? (int64_t)late : known;
}

/* Before the first record of the new time is stored: with the run of the old time it would be
 * outside of what that run says of itself (schema/store/write/stretch.c). */
void capture_intake_turn(struct capture_intake *in)
{
	const struct capture_clock *clock = in->clock;

	if (!clock->turns)
		return;
	store_run_until(in->config->store, in->config->run,
			clock->set_ns + clock->before_offset_ns);
	in->clock->turns = false;
	store_runs_at(in->config->store, clock->set_ns + clock->offset_ns);
}

/* Store everything that sonde-maps has caught up with; what has waited too long goes on without it.
 */
void capture_intake_store(struct capture_intake *in, bool all)
{
	int64_t known = (int64_t)hostmaps_watermark(in->config->maps), now = clock_boot_ns();
	const void *record;
	size_t size;
	uint64_t n;

	if (!hostmaps_seeded(in->config->maps))
		known = 0;
	while ((record = hold_peek(&in->hold, &size))) {
		int64_t time = (int64_t)((const struct stack_event *)record)->time_ns;

		if (time > known) {
			if (!all && now - time < STALE_NS)
				break;
			in->books->r->stale++;
		}
		if (time >= in->clock->set_ns)
			capture_intake_turn(in);
		in->config->f->record_amount(in->config->state, record, size, &n);
		record_store(in, record, size, n);
		hold_pop(&in->hold);
	}
	late_drain(&in->late, in->config->maps, (uint64_t)now, LATE_NS, all, late_store, in);
	if (all && in->config->f->store_record)
		record_give(in, NULL, 0);
	known = stored_until(in, known);
	if (known > in->books->until_ns)
		in->books->until_ns = known;
}

bool capture_intake_awaits_own(const struct capture_intake *in)
{
	return in->late.n && (int64_t)hostmaps_watermark(in->config->maps) < in->own_asked_ns;
}

bool capture_intake_waits(const struct capture_intake *in)
{
	return in->hold.n || in->late.n;
}

void capture_intake_read(struct capture_intake *in, int64_t now_ns)
{
	in->read_ns = now_ns;
	if (!in->late_own)
		return;
	in->late_own = false;
	in->own_asked_ns = now_ns;
	hostmaps_hurry(in->config->maps);
	if (in->late_young)
		pace_busy(&in->clock->pace, now_ns);
	in->late_young = false;
}

/* ---- families that read by themselves ---- */

static void host_renew(struct capture_intake *in)
{
	in->host.target = &in->config->o->target->family;
	in->host.store_dir =
		in->config->o->options->store ? in->config->o->options->store : store_default_dir();
	in->host.maps = in->config->maps;
	in->host.naming = in->config->naming;
	in->host.store = in->config->store;
	in->host.run = in->config->run;
	in->host.bucket_s = in->config->o->options->bucket_s;
	in->host.progress = in->config->o->progress;
	in->host.fine_s = in->config->o->options->flight ? in->config->f->fine_s : 0;
	in->host.offset_ns = in->clock->offset_ns;
	in->host.set_ns = in->clock->set_ns;
	in->host.before_offset_ns = in->clock->before_offset_ns;
}

static void host_book(struct capture_intake *in, uint64_t added, uint64_t refused)
{
	in->books->added += in->host.added - added;
	in->books->refused += in->host.refused - refused;
	if (in->host.refused > refused)
		store_loss(in->config->store, in->config->run,
			   capture_utc(in->clock, in->books->until_ns), "store",
			   in->host.refused - refused);
	if (in->host.processes > in->books->r->processes)
		in->books->r->processes = in->host.processes;
}

void capture_intake_poll(struct capture_intake *in)
{
	uint64_t added = in->host.added, refused = in->host.refused;

	if (!in->config->f->poll)
		return;
	host_renew(in);
	in->host.next_ns = 0;
	in->config->f->poll(in->config->state, &in->host, clock_boot_ns());
	host_book(in, added, refused);
}

void capture_intake_finish(struct capture_intake *in)
{
	uint64_t added = in->host.added, refused = in->host.refused;

	if (!in->config->f->last_read)
		return;
	host_renew(in);
	in->config->f->last_read(in->config->state, &in->host,
				 in->books->r->interrupted ? 500 * MSEC : 2000 * MSEC);
	host_book(in, added, refused);
}
