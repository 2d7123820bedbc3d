// SPDX-License-Identifier: Apache-2.0
#include "loaders/lib/bpf/capture.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "loaders/lib/bpf/cpulist.h"
#include "loaders/lib/bpf/hold.h"
#include "loaders/lib/bpf/ledger.h"
#include "loaders/lib/host/hostmaps.h"
#include "loaders/lib/host/naming.h"
#include "probes/stack.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/idmap.h"
#include "schema/base/log.h"
#include "schema/store/writer.h"

#define MSEC 1000000ll
#define TICK_MS 100
#define PROGRESS_TICKS 2             /* a progress line each 200 ms */
#define HOLD_BYTES (16u << 20)
#define STALE_NS (1000 * MSEC)       /* sonde-maps is given this long */
#define SEED_NS (3000 * MSEC)        /* and this long to look over the host at the start */
#define LEDGER_NS (10 * NSEC_PER_SEC)
#define CLOCK_STEP_NS MSEC           /* smaller changes of the wall clock are noise of reading it */
#define COMMAND_GRACE_NS (1000 * MSEC)
/* A bucket is handed over this long after its end, with what was held back meanwhile. */
#define READY_NS (300 * MSEC)

const char *const capture_loss_names[CAPTURE_LOST_N] = {"ring", "hold", "malformed", "store", "throttled"};

struct capture {
	const struct capture_opts *o;
	struct capture_report *r;
	const struct family *f;
	void *state;
	struct bpf_object *obj;
	struct ring_buffer *ring;
	struct hostmaps *maps;
	struct naming *naming;
	struct store_writer *store;
	struct hold hold;
	struct ledger ledger;
	struct idmap processes;      /* store ids seen in this epoch */
	uint32_t epoch;
	uint32_t run;
	int timer_fd;
	uint64_t ticks;

	int64_t attached_ns;         /* boot clock, as all below but the offset */
	int64_t ring_read_ns;        /* everything before it is out of the ring */
	int64_t until_ns;            /* everything before it has been added to the store */
	int64_t end_ns;              /* when to stop, INT64_MAX: endless */
	int64_t second_ns, booked_ns;
	int64_t offset_ns;           /* utc = boot + offset */
	int64_t flushed_bucket;
	uint64_t added;              /* taken by the store's writer */
	uint64_t refused;            /* not taken */
	uint64_t booked_lost[CAPTURE_LOST_N], booked_maps_lost;
	bool ready_sent, first_flushed, first_sent;
	bool stop;
	int signals;                 /* SIGINT, SIGTERM, SIGHUP that have come */
};

uint64_t capture_lost(const struct capture_report *r)
{
	uint64_t sum = 0;

	for (int i = 0; i < CAPTURE_LOST_N; i++)
		sum += r->lost[i];
	return sum;
}

static int64_t utc(const struct capture *c, int64_t boot_ns)
{
	return boot_ns + c->offset_ns;
}

/* ---- from the ring to the store ---- */

static int record_take(void *ctx, void *record, size_t size)
{
	struct capture *c = ctx;
	uint64_t n;

	if (c->f->value(c->state, record, size, &n))
		c->r->lost[CAPTURE_LOST_MALFORMED]++;
	else if (hold_push(&c->hold, record, size))
		c->r->lost[CAPTURE_LOST_HOLD] += n;
	return 0;
}

static void process_count(struct capture *c, uint32_t process)
{
	uint32_t epoch = store_epoch(c->store);

	if (epoch != c->epoch) {
		c->r->processes = c->processes.n > c->r->processes ? c->processes.n : c->r->processes;
		idmap_clear(&c->processes);
		c->epoch = epoch;
	}
	idmap_set(&c->processes, process, 1);
}

/* Name one record and add it. The store may ask, once or twice, for all ids anew. */
static void record_store(struct capture *c, const struct stack_event *ev, uint64_t n)
{
	const uint64_t *frames = (const uint64_t *)(ev + 1);
	char thread[STACK_COMM_LEN + 1] = {0};
	struct naming_result named;
	uint32_t series;
	int err = -ESTALE;

	memcpy(thread, ev->thread, STACK_COMM_LEN);
	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		naming_stack(c->naming, ev, frames, &named);
		series = store_series(c->store, c->run, named.process, thread, ev->tid, named.stack, STORE_KIND_CPU);
		err = store_add(c->store, series, utc(c, (int64_t)ev->time_ns), n);
	}
	if (err) {
		c->refused += n;
		store_loss(c->store, c->run, utc(c, (int64_t)ev->time_ns), "store", n);
		return;
	}
	c->added += n;
	process_count(c, named.process);
}

/* Everything that sonde-maps has caught up with; what has waited too long goes on without it. */
static void hold_drain(struct capture *c, bool all)
{
	int64_t known = (int64_t)hostmaps_watermark(c->maps), now = clock_boot_ns();
	int64_t patience = hostmaps_seeded(c->maps) ? STALE_NS : SEED_NS;
	const void *record;
	size_t size;
	uint64_t n;

	if (!hostmaps_seeded(c->maps))
		known = 0;
	while ((record = hold_peek(&c->hold, &size))) {
		int64_t time = (int64_t)((const struct stack_event *)record)->time_ns;

		if (time > known) {
			if (!all && now - time < patience)
				break;
			c->r->stale++;
		}
		c->f->value(c->state, record, size, &n);
		record_store(c, record, n);
		hold_pop(&c->hold);
	}
	if (!c->hold.n || known > c->ring_read_ns)
		known = c->ring_read_ns;
	if (known > c->until_ns)
		c->until_ns = known;
}

static void ring_drain(struct capture *c)
{
	c->ring_read_ns = clock_boot_ns();
	ring_buffer__consume(c->ring);
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

static void tally_read(struct capture *c, struct family_tally *t)
{
	uint64_t runs = 0;

	c->f->tally(c->state, t);
	for (int i = 0; i < FAMILY_TALLY_SLOTS; i++)
		runs += t->slot[i];
	c->r->lost[CAPTURE_LOST_RING] = t->lost;
	c->r->lost[CAPTURE_LOST_THROTTLED] = t->throttled;
	c->r->seen = t->seen + t->throttled;
	c->r->unfollowed = t->unfollowed;
	c->r->run_ns = runs ? t->run_ns / runs : 0;
	c->r->run_p99_ns = slots_p99(t->slot);
}

/* Losses since the last time go to the store, under the present bucket. */
static void losses_book(struct capture *c)
{
	int64_t now = utc(c, c->until_ns);

	for (int i = 0; i < CAPTURE_LOST_N; i++) {
		if (i == CAPTURE_LOST_STORE || c->r->lost[i] == c->booked_lost[i])
			continue;
		store_loss(c->store, c->run, now, capture_loss_names[i], c->r->lost[i] - c->booked_lost[i]);
		c->booked_lost[i] = c->r->lost[i];
	}
	c->r->maps_lost = hostmaps_lost(c->maps);
	if (c->r->maps_lost > c->booked_maps_lost) {
		store_loss(c->store, c->run, now, "maps", c->r->maps_lost - c->booked_maps_lost);
		c->booked_maps_lost = c->r->maps_lost;
	}
}

static void ledger_write(struct capture *c)
{
	struct family_tally t;
	struct ledger_figures now;

	tally_read(c, &t);
	ledger_read(&c->ledger, c->maps, &t, &now);
	ledger_book(&c->ledger, c->maps, &now, c->store, c->run, utc(c, c->until_ns));
	c->booked_ns = clock_boot_ns();
}

static void flush(struct capture *c)
{
	store_run_until(c->store, c->run, utc(c, c->until_ns));
	losses_book(c);
	store_flush(c->store);
}

/* A bucket that has ended is handed over whole; the very first samples at once. */
static void flush_due(struct capture *c)
{
	int64_t bucket = utc(c, c->until_ns - READY_NS) / ((int64_t)c->o->options->bucket_s * NSEC_PER_SEC);
	struct family_tally t;

	if (c->added && !c->first_flushed) {
		c->first_flushed = true;
		c->flushed_bucket = bucket;
		flush(c);
	} else if (bucket > c->flushed_bucket) {
		c->flushed_bucket = bucket;
		tally_read(c, &t);
		flush(c);
	}
}

/* ---- what is told ---- */

static double self_cores(struct capture *c, const struct family_tally *t)
{
	struct ledger_figures now;
	int64_t wall = clock_boot_ns() - c->attached_ns;

	ledger_read(&c->ledger, c->maps, t, &now);
	ledger_settle(&c->ledger, &now);
	return wall > 0 ? (double)ledger_busy_ns(&c->ledger, &now) / (double)wall : 0;
}

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static void send_ready(struct capture *c, const struct store_writer_stat *s)
{
	int64_t row = store_run_rowid(c->store, c->run);
	uint64_t period = c->f->period_ns(c->state);

	if (c->ready_sent || (!row && clock_boot_ns() - c->attached_ns < 1000 * MSEC))
		return;
	c->ready_sent = true;
	progress_send(c->o->progress, json_pack("{s:s, s:I, s:s, s:s, s:I}", "event", "ready", "run", (json_int_t)row,
						"segment", s->segment, "clock", c->f->clock(c->state), "hz",
						(json_int_t)(period ? (NSEC_PER_SEC + (int64_t)period / 2) / (int64_t)period : 0)),
		      true);
}

static void send_first(struct capture *c, const struct store_writer_stat *s)
{
	if (c->first_sent || !s->stored)
		return;
	c->first_sent = true;
	c->r->first_s = seconds(clock_boot_ns() - c->o->begin_ns);
	progress_send(c->o->progress, json_pack("{s:s, s:f}", "event", "first", "after_s", c->r->first_s), true);
}

static void send_progress(struct capture *c, const struct store_writer_stat *s)
{
	int64_t now = clock_boot_ns();
	json_t *left = c->end_ns == INT64_MAX ? json_null() : json_real(now < c->end_ns ? seconds(c->end_ns - now) : 0);
	struct family_tally t;

	tally_read(c, &t);
	c->r->lost[CAPTURE_LOST_STORE] = s->dropped + c->refused;
	progress_send(c->o->progress,
		      json_pack("{s:s, s:f, s:o, s:I, s:I, s:f, s:I}", "event", "progress", "elapsed_s",
				seconds(now - c->attached_ns), "left_s", left, "samples", (json_int_t)c->added, "lost",
				(json_int_t)capture_lost(c->r), "self_cores", self_cores(c, &t), "store_bytes",
				(json_int_t)s->segment_bytes),
		      false);
}

static void tell(struct capture *c)
{
	struct store_writer_stat s;

	store_writer_stat(c->store, &s);
	send_ready(c, &s);
	send_first(c, &s);
	if (c->o->progress->fd >= 0 && c->ticks % PROGRESS_TICKS == 0)
		send_progress(c, &s);
}

/* ---- the loop ---- */

static void clock_watch(struct capture *c)
{
	int64_t offset = clock_boot_offset_ns();

	if (llabs(offset - c->offset_ns) > CLOCK_STEP_NS) {
		log_info("the wall clock was set by %.3f s", seconds(offset - c->offset_ns));
		c->offset_ns = offset;
		c->flushed_bucket = 0; /* buckets are counted anew, forwards or backwards */
	}
}

static void second(struct capture *c)
{
	c->second_ns = clock_boot_ns();
	if (c->f->tick)
		c->f->tick(c->state);
	clock_watch(c);
	if (target_gone(c->o->target)) {
		log_info("the target has ended");
		c->stop = true;
	}
}

static void command_watch(struct capture *c)
{
	if (!command_poll(c->o->command))
		return;
	progress_send(c->o->progress, json_pack("{s:s, s:i}", "event", "exit", "status", c->o->command->status), true);
	c->stop = true;
}

static void tick(struct capture *c)
{
	int64_t now = clock_boot_ns();

	c->ticks++;
	ring_drain(c);
	hostmaps_read(c->maps);
	hold_drain(c, false);
	naming_tick(c->naming);
	flush_due(c);
	command_watch(c);
	if (now - c->second_ns >= NSEC_PER_SEC)
		second(c);
	if (now - c->booked_ns >= LEDGER_NS)
		ledger_write(c);
	tell(c);
	if (now >= c->end_ns || c->o->progress->gone)
		c->stop = true;
}

/*
 * The first Ctrl-C stops the capture, in good order. If a command runs, it gets the signal first (from a terminal it
 * has it already) and a second to end by itself. A second Ctrl-C ends everything at once: what is not in the store then
 * is counted as lost by whoever opens it next.
 */
static void signal_take(struct capture *c)
{
	struct signalfd_siginfo si;

	while (read(c->o->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD) {
			command_watch(c);
			continue;
		}
		if (++c->signals > 1)
			_exit(EXIT_INTERRUPTED);
		c->r->interrupted = true;
		if (!c->o->command->pid || c->o->command->ended) {
			c->stop = true;
			continue;
		}
		if (si.ssi_code != SI_KERNEL)
			command_signal(c->o->command, (int)si.ssi_signo);
		if (c->end_ns > clock_boot_ns() + COMMAND_GRACE_NS)
			c->end_ns = clock_boot_ns() + COMMAND_GRACE_NS;
	}
}

/* Wait for the timer, a signal, the end of our reader, or (before the seed is in) sonde-maps. */
static void wait_events(struct capture *c, int timeout_ms)
{
	struct pollfd fds[] = {
		{.fd = c->timer_fd, .events = POLLIN},
		{.fd = c->o->signal_fd, .events = POLLIN},
		{.fd = c->o->progress->gone ? -1 : c->o->progress->fd},
		{.fd = hostmaps_seeded(c->maps) ? -1 : hostmaps_fd(c->maps), .events = POLLIN},
	};
	uint64_t times;

	if (poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms) <= 0)
		return;
	if (fds[1].revents)
		signal_take(c);
	if (fds[2].revents & (POLLERR | POLLHUP | POLLNVAL)) {
		c->o->progress->gone = true;
		c->r->interrupted = true;
		c->stop = true;
	}
	if (fds[3].revents)
		hostmaps_read(c->maps);
	if (fds[0].revents && read(c->timer_fd, &times, sizeof(times)) == sizeof(times))
		tick(c);
}

/* ---- begin ---- */

static uint64_t ring_size(const struct options *o, uint32_t cpus)
{
	uint64_t want = o->freq ? (uint64_t)o->freq * cpus * 600 : 4u << 20, size = 256u << 10;

	while (size < want && size < 16u << 20)
		size *= 2;
	return size;
}

static uint32_t cpus_online(void)
{
	static struct cpulist online;

	return cpulist_online(&online) || !online.n ? 1 : online.n;
}

static int timer_open(int *out, struct err *e)
{
	struct itimerspec every = {{0, TICK_MS * MSEC}, {0, TICK_MS * MSEC}};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &every, NULL)) {
		int err = -errno;

		if (fd >= 0)
			close(fd);
		return err_set(e, err, EXIT_RUNTIME, "cannot make a timer: %s", strerror(-err));
	}
	*out = fd;
	return 0;
}

/* sonde-maps is started first: it looks over the host while the rest is made. */
static int open_parts(struct capture *c, struct err *e)
{
	const struct options *o = c->o->options;
	struct store_writer_opts so = {.dir = o->store};
	struct hostmaps_opts ho = {.store_dir = o->store ? o->store : store_default_dir(), .socket_path = o->maps_socket,
				   .args_policy = o->args};
	int err;

	err = store_writer_open(&so, &c->store, e);
	if (!err)
		err = hostmaps_open(&ho, &c->maps, e);
	if (!err)
		err = naming_open(c->maps, c->store, NULL, &c->naming, e);
	return err;
}

/* The maps that the program is loaded with; sonde-maps hands them out before it looks over the host. */
static void tables_await(struct capture *c)
{
	int64_t until = clock_boot_ns() + STALE_NS;

	while (!hostmaps_greeted(c->maps) && clock_boot_ns() < until) {
		struct pollfd pfd = {.fd = hostmaps_fd(c->maps), .events = POLLIN};

		poll(&pfd, 1, 20);
		hostmaps_read(c->maps);
	}
}

static int open_probe(struct capture *c, struct err *e)
{
	uint32_t cpus = cpus_online();
	struct family_config fc = {.target = &c->o->target->family, .freq = c->o->options->freq, .cpus = cpus,
				   .ring_bytes = ring_size(c->o->options, cpus)};
	int tables[MP_TABLES_N], err;

	tables_await(c);
	hostmaps_tables(c->maps, tables);
	fc.tables = tables[0] >= 0 ? tables : NULL;
	err = c->f->open(&fc, &c->state, &c->obj, e);
	if (err)
		return err;
	c->ring = ring_buffer__new(c->f->ring_fd(c->state), record_take, c, NULL);
	if (!c->ring) {
		err = -errno;
		return err_set(e, err, EXIT_RUNTIME, "cannot map the ring buffer: %s", strerror(-err));
	}
	return 0;
}

static void run_begin(struct capture *c)
{
	struct store_run run = {
		.family = c->f->name,
		.options = c->o->command_line,
		.scope = target_scope(c->o->target),
		.bucket_s = c->o->options->bucket_s,
		.period_ns = c->f->period_ns(c->state),
		.cpus = cpus_online(),
		.from_ns = utc(c, c->attached_ns),
		.boot_offset_ns = c->offset_ns,
	};

	c->r->from_ns = run.from_ns;
	c->run = store_run_begin(c->store, &run);
	store_flush(c->store);
}

/* Side-band, seed, then sampling: what is sampled before the seed is told would lie in mappings that nobody knows. */
static void seed_await(struct capture *c)
{
	int64_t until = clock_boot_ns() + STALE_NS;

	while (!hostmaps_seeded(c->maps) && !c->r->interrupted && clock_boot_ns() < until) {
		struct pollfd pfd = {.fd = hostmaps_fd(c->maps), .events = POLLIN};

		poll(&pfd, 1, 20);
		hostmaps_read(c->maps);
		signal_take(c);
	}
}

/* Sampling begins with the attach; the command, if there is one, right after it. */
static int begin(struct capture *c, struct err *e)
{
	const struct options *o = c->o->options;
	struct ledger_figures figures;
	struct family_tally t;
	int err;

	seed_await(c);
	c->offset_ns = clock_boot_offset_ns();
	err = c->f->attach(c->state, e);
	if (err)
		return err;
	c->attached_ns = c->second_ns = c->booked_ns = c->ring_read_ns = c->until_ns = clock_boot_ns();
	c->end_ns = o->duration_ns ? c->attached_ns + (int64_t)o->duration_ns : INT64_MAX;
	run_begin(c);
	ledger_init(&c->ledger, c->f->name, c->obj);
	tally_read(c, &t);
	ledger_read(&c->ledger, c->maps, &t, &figures);
	ledger_begin(&c->ledger, &figures);
	if (o->command)
		err = command_release(c->o->command, o->command[0], e);
	return err;
}

/* ---- end ---- */

/* Until sonde-maps has told all that happened while we sampled, and all is named. */
static void drain(struct capture *c, int64_t stopped_ns)
{
	int64_t patience = c->r->interrupted ? 800 * MSEC : 1500 * MSEC;

	ring_drain(c);
	hostmaps_read(c->maps);
	hold_drain(c, false);
	while (c->hold.n && clock_boot_ns() - stopped_ns < patience) {
		struct pollfd pfd = {.fd = hostmaps_fd(c->maps), .events = POLLIN};

		poll(&pfd, 1, 20);
		hostmaps_read(c->maps);
		hold_drain(c, false);
		signal_take(c);
	}
	hold_drain(c, true);
	c->until_ns = stopped_ns;
}

/* Frames whose index is still being made get their names, within reason. */
static void drain_names(struct capture *c)
{
	int64_t until = clock_boot_ns() + (c->r->interrupted ? 500 * MSEC : 5000 * MSEC);

	while (naming_drain(c->naming, TICK_MS) && clock_boot_ns() < until) {
		signal_take(c);
		if (c->r->interrupted && until > clock_boot_ns() + 500 * MSEC)
			until = clock_boot_ns() + 500 * MSEC;
		c->ticks++;
		tell(c);
	}
}

static void report_names(struct capture *c)
{
	struct naming_stat names;

	naming_stat(c->naming, &names);
	c->r->frames = names.frames;
	c->r->frames_named = names.named;
	if (c->processes.n > c->r->processes)
		c->r->processes = c->processes.n;
	if (names.kernel_hidden)
		log_warn("kernel symbols are hidden (kernel.kptr_restrict): kernel frames have no names");
}

/* Wait until the store's thread has written everything, then read what it says. */
static void store_settle(struct capture *c, int64_t deadline_ns)
{
	struct store_writer_stat s;
	struct timespec nap = {0, 5 * MSEC};

	for (;;) {
		store_writer_stat(c->store, &s);
		if (s.stored + s.dropped >= c->added || clock_boot_ns() > deadline_ns)
			break;
		nanosleep(&nap, NULL);
	}
	send_first(c, &s);
	c->r->stored = s.stored;
	c->r->lost[CAPTURE_LOST_STORE] = c->added - s.stored + c->refused;
	c->r->run = store_run_rowid(c->store, c->run);
	snprintf(c->r->segment, sizeof(c->r->segment), "%s", s.segment);
}

static void end(struct capture *c)
{
	struct family_tally t;
	int64_t stopped_ns;

	c->f->detach(c->state);
	stopped_ns = clock_boot_ns();
	tally_read(c, &t);
	c->r->self_cores = self_cores(c, &t);
	drain(c, stopped_ns);
	c->r->to_ns = utc(c, stopped_ns);
	flush(c);
	drain_names(c);
	ledger_write(c);
	flush(c);
	report_names(c);
	store_settle(c, clock_boot_ns() + (c->r->interrupted ? 500 * MSEC : 5000 * MSEC));
}

static int close_parts(struct capture *c, struct err *e)
{
	int err = 0;

	if (c->ring)
		ring_buffer__free(c->ring);
	if (c->state)
		c->f->close(c->state);
	naming_close(c->naming);
	if (c->maps)
		hostmaps_close(c->maps);
	if (c->store)
		err = store_writer_close(c->store, c->r->interrupted ? 1200 : 5000, e);
	if (c->timer_fd >= 0)
		close(c->timer_fd);
	hold_release(&c->hold);
	idmap_release(&c->processes);
	return err;
}

int capture_run(const struct capture_opts *o, struct capture_report *r, struct err *e)
{
	struct capture c = {.o = o, .r = r, .f = o->family, .timer_fd = -1};
	int err, closed;

	*r = (struct capture_report){.first_s = -1};
	hold_init(&c.hold, HOLD_BYTES);
	err = open_parts(&c, e);
	if (!err)
		err = open_probe(&c, e);
	if (!err)
		err = timer_open(&c.timer_fd, e);
	if (!err)
		err = begin(&c, e);
	while (!err && !c.stop)
		wait_events(&c, -1);
	if (!err)
		end(&c);
	closed = close_parts(&c, err ? NULL : e);
	return err ? err : closed;
}
