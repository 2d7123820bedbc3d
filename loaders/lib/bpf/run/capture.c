// SPDX-License-Identifier: Apache-2.0
#include "loaders/lib/bpf/run/capture.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "loaders/lib/bpf/run/capture_parts.h"
#include "loaders/lib/bpf/load/cpulist.h"
#include "loaders/lib/bpf/load/progsyms.h"
#include "loaders/lib/bpf/start/targetfeed.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/sandbox/confine.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/log.h"

#define QUICK_NS   (100 * MSEC)
#define SLOW_NS    (1000 * MSEC)
#define PHASE_NS   (40 * MSEC) /* after sonde-maps' tick */
#define FIRST_NS   (10 * MSEC) /* until the first sample is stored with its names, and told */
#define HOLD_BYTES (16u << 20)
#define HURRY      (-10) /* nice */
/* the last batch has so long, also at Ctrl-C: a disk that stands still for a second loses nothing;
 * sonded waits for five */
#define CLOSE_MS   3000
#define LATE_BYTES (32u << 20)   /* stacks that wait for rows, up to 26 KB each */
#define SEED_NS    (1000 * MSEC) /* sonde-maps is given this long before the first sample */
/* and this long to hand out its maps, without which the whole capture would be */
#define TABLES_NS        (10000 * MSEC)
#define LEDGER_NS        (10 * NSEC_PER_SEC) /* what it cost is booked so often */
#define CLOCK_STEP_NS    MSEC /* smaller changes of the wall clock are noise of reading it */
#define COMMAND_GRACE_NS (1000 * MSEC)
#define SIGNAL_ONE_NS    (300 * MSEC)

const char *const capture_loss_names[CAPTURE_LOST_N] = {"ring",  "hold",      "malformed",
							"store", "throttled", "missed"};

uint64_t capture_lost(const struct capture_report *r)
{
	uint64_t sum = 0;

	for (int i = 0; i < CAPTURE_LOST_N; i++)
		sum += r->lost[i];
	return sum;
}

/* ---- the loop ---- */

static void clock_watch(struct capture *c)
{
	int64_t offset = clock_boot_offset_ns();

	if (llabs(offset - c->offset_ns) > CLOCK_STEP_NS) {
		log_info("the wall clock was set by %.3f s", (double)(offset - c->offset_ns) / 1e9);
		c->offset_ns = offset;
		store_clock_changed(c->store, clock_utc_ns(), offset);
		c->flushed_bucket = 0; /* buckets are counted anew, forwards or backwards */
	}
}

static void symbols_give(struct capture *c)
{
	const struct kallsyms *k = naming_kallsyms(c->naming);

	if (!c->f->symbols || c->symbols_given || !k)
		return;
	c->f->symbols(c->state, k);
	c->symbols_given = true;
}

static void second(struct capture *c)
{
	c->second_ns = clock_boot_ns();
	if (c->f->tick)
		c->f->tick(c->state);
	clock_watch(c);
	capture_names_tick(c);
	symbols_give(c);
	if (target_gone(c->o->target)) {
		log_info("the target has ended");
		c->stop = true;
	}
}

static void command_watch(struct capture *c)
{
	if (!command_poll(c->o->command))
		return;
	progress_send(c->o->progress,
		      json_pack("{s:s, s:i}", "event", "exit", "status", c->o->command->status),
		      true);
	c->stop = true;
}

/* The first sample is waited for: it is asked for as soon as it is there, and looked after until it
 * is told of. */
static void first_await(struct capture *c, int64_t now)
{
	bool await = !(c->first_sent && c->first_named) && now - c->attached_ns < CAPTURE_BEGIN_NS;

	c->pace.quick_ns = await ? FIRST_NS : QUICK_NS;
	if (await && !c->first_asked && capture_waiting(c)) {
		hostmaps_hurry(c->maps);
		c->first_asked = true;
	}
}

/* What sonded says: which processes, and how much is to be done. */
static void feed_read(struct capture *c)
{
	if (!c->feed)
		return;
	targetfeed_read(c->feed);
	if (c->f->reduce && c->step != targetfeed_step(c->feed)) {
		c->step = targetfeed_step(c->feed);
		c->f->reduce(c->state, c->step);
	}
}

static void tick(struct capture *c)
{
	int64_t now = clock_boot_ns();

	capture_rings_read(c);
	hostmaps_read(c->maps);
	feed_read(c);
	capture_pass(c, false);
	capture_ends_missed(c);
	naming_tick(c->naming);
	capture_poll(c);
	capture_flush_due(c);
	command_watch(c);
	if (now - c->second_ns >= NSEC_PER_SEC)
		second(c);
	if (now - c->booked_ns >= LEDGER_NS)
		capture_ledger_write(c);
	capture_tell(c);
	if (now >= c->end_ns || c->o->progress->gone)
		c->stop = true;
	if (!c->first_flushed || !hostmaps_seeded(c->maps))
		pace_busy(&c->pace, now);
	first_await(c, now);
	pace_ticked(&c->pace, clock_boot_ns());
}

/*
 * The first Ctrl-C stops the capture, in good order. If a command runs, it gets the signal first
 * (from a terminal it has it already) and a second to end by itself. A second Ctrl-C ends
 * everything at once: what is not in the store then is counted as lost by whoever opens it next.
 * Whoever signals the whole process group (timeout(1), a runner of jobs) reaches this program
 * twice, by itself and by `sonde record`, which passes on what it gets: that is one signal, as is
 * all that comes SIGNAL_ONE_NS after the first.
 */
void capture_signal_take(struct capture *c)
{
	struct signalfd_siginfo si;

	while (read(c->o->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD) {
			command_watch(c);
			continue;
		}
		if (c->signal_ns && clock_boot_ns() - c->signal_ns < SIGNAL_ONE_NS)
			continue;
		if (c->signal_ns)
			_exit(EXIT_INTERRUPTED);
		c->signal_ns = clock_boot_ns();
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

/* Until the next tick, the family's wish, or the end. */
static int wait_ms(const struct capture *c)
{
	int64_t next = c->pace.next_ns, wait;

	if (c->host.next_ns && c->host.next_ns < next)
		next = c->host.next_ns;
	if (c->end_ns < next)
		next = c->end_ns;
	wait = next - clock_boot_ns();
	return wait <= 0 ? 0 : (int)((wait + MSEC - 1) / MSEC);
}

/* Wait for the time, a signal, the end of our reader, a ring that fills fast, or sonde-maps (before
 * the seed is in, and for stacks that only their process explains while it is there). */
static void wait_events(struct capture *c)
{
	bool own = capture_awaits_own(c);
	struct pollfd fds[] = {
		{.fd = c->o->signal_fd, .events = POLLIN},
		{.fd = c->o->progress->gone ? -1 : c->o->progress->fd},
		{.fd = hostmaps_seeded(c->maps) && !own ? -1 : hostmaps_fd(c->maps),
		 .events = POLLIN},
		{.fd = c->wake_fd, .events = POLLIN},
	};
	int n = poll(fds, ARRAY_SIZE(fds), wait_ms(c));

	if (n > 0 && fds[0].revents)
		capture_signal_take(c);
	if (n > 0 && fds[1].revents & (POLLERR | POLLHUP | POLLNVAL)) {
		c->o->progress->gone = true;
		c->r->interrupted = true;
		c->stop = true;
	}
	if (n > 0 && fds[2].revents)
		hostmaps_read(c->maps);
	if (n > 0 && fds[2].revents && own)
		capture_pass(c, false);
	if (n > 0 && fds[3].revents)
		capture_rings_called(c);
	if (!wait_ms(c))
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

/*
 * A host that is too busy is what people look at: whoever watches it must get its turn, or mappings
 * are told late and rings run full. It takes half a percent of a core. sonde-maps inherits this;
 * the command to run has been started before.
 */
static void hurry(void)
{
	if (getpriority(PRIO_PROCESS, 0) == 0 && setpriority(PRIO_PROCESS, 0, HURRY))
		log_debug("cannot raise the priority: %s", strerror(errno));
}

/* sonde-maps is started first: it looks over the host while the rest is made. */
static int open_parts(struct capture *c, struct err *e)
{
	const struct options *o = c->o->options;
	struct store_writer_opts so = {.dir = o->store,
				       .segment_bytes = o->segment_bytes,
				       .segment_s = o->segment_s,
				       .budget_bytes = o->budget_bytes};
	struct hostmaps_opts ho = {.store_dir = o->store ? o->store : store_default_dir(),
				   .socket_path = o->maps_socket,
				   .args_policy = o->args,
				   .no_lines = o->no_lines,
				   .no_mappings = c->f->no_mappings,
				   .books = true};
	const struct naming_opts no = {.no_lines = o->no_lines,
				       .include = o->include,
				       .exclude = o->exclude,
				       .store_dir = ho.store_dir,
				       .programs = progsyms_find,
				       .programs_ctx = c->programs};
	int err;

	hurry();
	err = store_writer_open(&so, &c->store, e);
	if (!err)
		err = hostmaps_open(&ho, &c->maps, e);
	if (!err)
		err = naming_open(c->maps, c->store, &no, &c->naming, e);
	if (!err) {
		c->latecode = late_jit_new(c->naming);
		c->late.code = (struct late_code){c->latecode, late_jit_step};
	}
	return err;
}

/* The maps that the program is loaded with; sonde-maps hands them out before it looks over the
 * host. */
static void tables_await(struct capture *c)
{
	int64_t until = clock_boot_ns() + TABLES_NS;

	while (!hostmaps_greeted(c->maps) && !c->r->interrupted && clock_boot_ns() < until) {
		struct pollfd pfd = {.fd = hostmaps_fd(c->maps), .events = POLLIN};

		poll(&pfd, 1, 20);
		hostmaps_read(c->maps);
		capture_signal_take(c);
	}
	if (!hostmaps_greeted(c->maps) && !c->r->interrupted)
		log_warn(
			"sonde-maps handed out no tables in %d s: stacks are read by frame pointers alone",
			(int)(TABLES_NS / NSEC_PER_SEC));
}

static int open_probe(struct capture *c, struct err *e)
{
	uint32_t cpus = cpus_online();
	struct family_config fc = {.target = &c->o->target->family,
				   .freq = c->o->options->freq,
				   .cpus = cpus,
				   .bucket_s = c->o->options->bucket_s,
				   .ring_bytes = ring_size(c->o->options, cpus),
				   .store_dir = c->o->options->store ? c->o->options->store :
								       store_default_dir()};
	int tables[MP_TABLES_N], err;

	tables_await(c);
	hostmaps_tables(c->maps, tables);
	fc.tables = tables[0] >= 0 ? tables : NULL;
	err = c->f->open(&fc, &c->state, &c->obj, e);
	if (err)
		return err;
	return capture_rings_open(c, e);
}

static void run_begin(struct capture *c)
{
	struct store_run run = {
		.family = c->f->name,
		.options = c->o->command_line,
		.scope = target_scope(c->o->target),
		.bucket_s = c->o->options->bucket_s,
		.period_ns = capture_period(c),
		.cpus = cpus_online(),
		.from_ns = capture_utc(c, c->attached_ns),
		.boot_offset_ns = c->offset_ns,
		.recording = c->o->options->recording,
	};

	c->r->from_ns = run.from_ns;
	c->run = store_run_begin(c->store, &run);
	store_flush(c->store);
}

/* Side-band, seed, then sampling: what is sampled before the seed is told would lie in mappings
 * that nobody knows. */
static void seed_await(struct capture *c)
{
	int64_t until = clock_boot_ns() + SEED_NS;

	while (!hostmaps_seeded(c->maps) && !c->r->interrupted && clock_boot_ns() < until) {
		struct pollfd pfd = {.fd = hostmaps_fd(c->maps), .events = POLLIN};

		poll(&pfd, 1, 20);
		hostmaps_read(c->maps);
		capture_signal_take(c);
	}
}

/* sonded gives a family that wants it the processes to go into; it is told what is wanted. */
static void feed_begin(struct capture *c)
{
	int fd = c->o->options->targets_fd;

	if (fd < 0)
		return;
	c->feed = targetfeed_new(fd);
	feed_read(c);
	if (!c->f->wants)
		return;
	c->o->target->family.feed = c->feed;
	progress_send(c->o->progress,
		      json_pack("{s:s, s:s}", "event", "wants", "targets", c->f->wants), true);
}

/* Where it cannot be, it goes on: what is recorded counts for more. */
static void confine_self(const struct capture *c)
{
	const unsigned int keeps = c->f->keeps | (c->o->options->maps_socket ? 0 : CONFINE_MAPS);
	struct err e = {0};

	if (confine(keeps, &e))
		log_warn("%s", e.what);
}

/* Sampling begins with the attach; the command, if there is one, right after it. */
static int begin(struct capture *c, struct err *e)
{
	const struct options *o = c->o->options;
	struct ledger_figures figures;
	struct family_tally t;
	int err;

	feed_begin(c);
	if (c->f->symbols) {
		naming_kernel_begin(c->naming); /* while sonde-maps looks over the host */
		symbols_give(c);
	}
	seed_await(c);
	c->offset_ns = clock_boot_offset_ns();
	err = c->f->attach ? c->f->attach(c->state, e) : 0;
	if (err)
		return err;
	c->attached_ns = c->second_ns = c->booked_ns = c->ring_read_ns = c->until_ns =
		clock_boot_ns();
	c->pace = (struct pace){.quick_ns = FIRST_NS,
				.slow_ns = SLOW_NS,
				.phase_ns = PHASE_NS,
				.next_ns = c->attached_ns,
				.busy_until_ns = c->attached_ns + CAPTURE_BEGIN_NS};
	c->end_ns = o->duration_ns ? c->attached_ns + (int64_t)o->duration_ns : INT64_MAX;
	run_begin(c);
	capture_ends_watch(c);
	ledger_init(&c->ledger, c->f->name, c->obj);
	capture_tally(c, &t);
	ledger_read(&c->ledger, c->maps, &t, &figures);
	ledger_begin(&c->ledger, &figures);
	if (o->command)
		err = command_release(c->o->command, o->command[0], e);
	if (!err)
		confine_self(c);
	malloc_trim(0); /* what reading the kernel's types took */
	return err;
}

/* ---- all of it ---- */

static int close_parts(struct capture *c, struct err *e)
{
	int err = 0;

	capture_rings_close(c);
	if (c->state)
		c->f->close(c->state);
	naming_close(c->naming);
	progsyms_free(c->programs);
	if (c->maps)
		hostmaps_close(c->maps);
	if (c->store)
		err = store_writer_close(c->store, CLOSE_MS, e);
	targetfeed_free(c->feed);
	hold_release(&c->hold);
	late_release(&c->late);
	late_jit_free(c->latecode);
	idmap_release(&c->processes);
	return err;
}

int capture_run(const struct capture_opts *o, struct capture_report *r, struct err *e)
{
	struct capture c = {.o = o,
			    .r = r,
			    .f = o->family,
			    .wake_fd = -1,
			    .scripts = {.objects_fd = -1, .names_fd = -1, .walks_fd = -1},
			    .programs = progsyms_new()};
	int err, closed;

	*r = (struct capture_report){.first_s = -1};
	hold_init(&c.hold, HOLD_BYTES);
	late_init(&c.late, LATE_BYTES);
	err = open_parts(&c, e);
	if (!err)
		err = open_probe(&c, e);
	if (!err)
		err = begin(&c, e);
	while (!err && !c.stop)
		wait_events(&c);
	if (!err)
		capture_end(&c);
	closed = close_parts(&c, err ? NULL : e);
	return err ? err : closed;
}
