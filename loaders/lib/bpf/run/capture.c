/* SPDX-License-Identifier: Apache-2.0 */
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

#include "loaders/lib/bpf/run/private.h"
#include "loaders/lib/bpf/load/cpulist.h"
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/maproom.h"
#include "loaders/lib/bpf/load/progsyms.h"
#include "loaders/lib/bpf/start/targetfeed.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/sandbox/confine.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/log.h"
#include "loaders/lib/host/budget/weight.h"

#define QUICK_NS (100 * MSEC)
#define SLOW_NS  (1000 * MSEC)
#define REST_NS  (2000 * MSEC) /* the same without stacks, where no person waits */
#define PHASE_NS (40 * MSEC)   /* after sonde-maps' tick */
#define FIRST_NS (10 * MSEC)   /* until the first sample is stored with its names and reported */
#define HURRY    (-10)         /* nice */
/* how long the last batch may take, also after Ctrl-C: a disk that stalls for a second loses
 * nothing; sonded waits for five */
#define CLOSE_MS 3000
#define SEED_NS \
	(1000 * MSEC) /* wait this long for the seed of sonde-maps before the first sample */
/* and this long for its maps: the whole capture would miss them */
#define TABLES_NS        (10000 * MSEC)
#define LEDGER_NS        (10 * NSEC_PER_SEC) /* how often its cost is booked */
#define CLOCK_STEP_NS    MSEC /* smaller changes of the wall clock are noise of reading it */
#define COMMAND_GRACE_NS (1000 * MSEC)
#define SIGNAL_ONE_NS    (300 * MSEC)
#define LATE_BYTES       (20u << 10) /* of one stack that comes late, a full one */
#define LATE_FREQ        99          /* for families without a rate */
#define LATE_LEAST       (4u << 20)
#define LATE_EACH        (1u << 20) /* the least for each CPU, of a capture that goes on by itself */
#define LATE_MOST        (64u << 20)
#define FLIGHT_BYTES     (128u << 20)
#define RING_EVENTS      (4u << 20)
#define RING_EACH        (1u << 20) /* for each CPU, up to that */
#define RING_MOST        (16u << 20)

const char *const capture_loss_names[CAPTURE_LOST_N] = {
	"ring", "room", "pairs", "hold", "unknown", "malformed", "store", "throttled", "missed"};

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
	int64_t offset = clock_boot_offset_ns(), stored_ns = c->books.until_ns;

	if (llabs(offset - c->clock.offset_ns) > CLOCK_STEP_NS) {
		log_info("the wall clock was set by %.3f s",
			 (double)(offset - c->clock.offset_ns) / 1e9);
		c->clock.before_offset_ns = c->clock.offset_ns;
		c->clock.set_ns = clock_boot_ns();
		c->clock.turns = true;
		c->clock.offset_ns = offset;
		store_clock_changed(c->config.store, clock_utc_ns(), offset);
		c->books.flushed_bucket = 0; /* bucket numbers may jump forwards or backwards */
	}
	if (c->books.until_ns >= c->clock.set_ns)
		capture_intake_turn(&c->intake);
	/* records after the set may be stored before the last one before it is */
	if (!c->clock.turns && stored_ns < c->clock.set_ns)
		stored_ns = c->clock.set_ns;
	store_runs_at(c->config.store, capture_utc(&c->clock, stored_ns));
}

static void second(struct capture *c)
{
	c->clock.second_ns = clock_boot_ns();
	if (c->config.f->tick)
		c->config.f->tick(c->config.state);
	clock_watch(c);
	capture_intake_tick(&c->intake);
	capture_probes_symbols(&c->probes, &c->config);
	if (target_gone(c->config.o->target)) {
		log_info("the target has ended");
		c->clock.stop = true;
	}
}

static void command_watch(struct capture *c)
{
	if (!command_poll(c->config.o->command))
		return;
	progress_send(
		c->config.o->progress,
		json_pack("{s:s, s:i}", "event", "exit", "status", c->config.o->command->status),
		true);
	c->clock.stop = true;
}

/* A person waits for the first sample: ask sonde-maps to catch up as soon as there is one, and tick
 * fast until it has been reported. */
static void first_await(struct capture *c, int64_t now)
{
	bool await = !(c->tell.first_sent && c->books.first_named) &&
		     now - c->clock.attached_ns < CAPTURE_BEGIN_NS;

	c->clock.pace.quick_ns = await ? FIRST_NS : QUICK_NS;
	if (await && !c->clock.first_asked && capture_intake_waits(&c->intake)) {
		hostmaps_hurry(c->config.maps);
		c->clock.first_asked = true;
	}
}

/* Is there something to wait for? A person waits for the first sample however long it takes. A
 * capture that goes on by itself may have none for weeks, such as of Go programs where none runs.
 */
static bool begins(const struct capture *c, int64_t now)
{
	bool awaited = c->config.o->options->apart || now - c->clock.attached_ns < CAPTURE_BEGIN_NS;

	return (awaited && !c->books.first_flushed) || !hostmaps_seeded(c->config.maps);
}

static void tick(struct capture *c)
{
	int64_t now = clock_boot_ns();

	capture_vigil_turned(&c->vigil);
	capture_probes_read(&c->probes, &c->intake);
	hostmaps_read(c->config.maps);
	capture_probes_feed(&c->probes, &c->config);
	capture_intake_store(&c->intake, false);
	capture_ends_missed(&c->ends);
	naming_tick(c->config.naming);
	capture_intake_poll(&c->intake);
	capture_books_flush_due(&c->books);
	command_watch(c);
	if (now - c->clock.second_ns >= NSEC_PER_SEC)
		second(c);
	if (now - c->books.booked_ns >= LEDGER_NS)
		capture_books_ledger(&c->books);
	capture_tell(c);
	if (now >= c->clock.end_ns || c->config.o->progress->gone)
		c->clock.stop = true;
	if (begins(c, now))
		pace_busy(&c->clock.pace, now);
	first_await(c, now);
	pace_ticked(&c->clock.pace, clock_boot_ns());
}

/*
 * The first Ctrl-C stops the capture in good order. If a command runs, it gets the signal first
 * (from a terminal it has it already; `sonde record` queues those) and has a second to end. A
 * second Ctrl-C ends everything at once: the next writer of the store counts what is missing as
 * lost. Signals to the whole process group (timeout(1), a job runner) arrive twice, directly and
 * through `sonde record`, which forwards them: so further signals within SIGNAL_ONE_NS after the
 * first are ignored. While the capture waits at its end for files (--finish), one more signal ends
 * that wait.
 */
void capture_signal_take(struct capture *c)
{
	struct signalfd_siginfo si;

	while (read(c->config.o->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD) {
			command_watch(c);
			continue;
		}
		if (c->clock.signal_ns && clock_boot_ns() - c->clock.signal_ns < SIGNAL_ONE_NS)
			continue;
		if (c->clock.signal_ns && (!c->clock.finish_ns || c->clock.cut))
			_exit(EXIT_INTERRUPTED);
		c->clock.signal_ns = clock_boot_ns();
		c->clock.cut = c->clock.finish_ns != 0;
		c->books.r->interrupted = true;
		if (!c->config.o->command->pid || c->config.o->command->ended) {
			c->clock.stop = true;
			continue;
		}
		if (si.ssi_code != SI_KERNEL && si.ssi_code != SI_QUEUE)
			command_signal(c->config.o->command, (int)si.ssi_signo);
		if (c->clock.end_ns > clock_boot_ns() + COMMAND_GRACE_NS)
			c->clock.end_ns = clock_boot_ns() + COMMAND_GRACE_NS;
	}
}

/* Until the next tick, the time the family asked for, or the end. */
static int wait_ms(const struct capture *c)
{
	int64_t next = c->clock.pace.next_ns, wait;

	if (c->intake.host.next_ns && c->intake.host.next_ns < next)
		next = c->intake.host.next_ns;
	if (c->clock.end_ns < next)
		next = c->clock.end_ns;
	wait = next - clock_boot_ns();
	return wait <= 0 ? 0 : (int)((wait + MSEC - 1) / MSEC);
}

/* Wait for the next tick, a signal, the end of our reader, a ring that fills fast, or sonde-maps
 * (until the seed is complete, and for stacks that can only be explained while their process runs).
 */
static void wait_events(struct capture *c)
{
	bool own = capture_intake_awaits_own(&c->intake);
	struct pollfd fds[] = {
		{.fd = c->config.o->signal_fd, .events = POLLIN},
		{.fd = c->config.o->progress->gone ? -1 : c->config.o->progress->fd},
		{.fd = hostmaps_seeded(c->config.maps) && !own ? -1 : hostmaps_fd(c->config.maps),
		 .events = POLLIN},
		{.fd = c->probes.wake_fd, .events = POLLIN},
	};
	int n = poll(fds, ARRAY_SIZE(fds), wait_ms(c));

	if (n > 0 && fds[0].revents)
		capture_signal_take(c);
	if (n > 0 && fds[1].revents & (POLLERR | POLLHUP | POLLNVAL)) {
		c->config.o->progress->gone = true;
		c->books.r->interrupted = true;
		c->clock.stop = true;
	}
	if (n > 0 && fds[2].revents)
		hostmaps_read(c->config.maps);
	if (n > 0 && fds[2].revents && own)
		capture_intake_store(&c->intake, false);
	if (n > 0 && fds[3].revents)
		capture_probes_called(&c->probes, &c->intake);
	if (!wait_ms(c))
		tick(c);
}

/* ---- begin ---- */

static uint64_t ring_size(const struct options *o, uint32_t cpus)
{
	/* of events without a number: on a busy host more come before the loader has its
	 * turn */
	uint64_t most = o->apart ? RING_MOST :
				   maproom_ring(cpus, RING_EACH, RING_EACH, RING_EVENTS),
		 size = 256u << 10, want = o->freq ? (uint64_t)o->freq * cpus * 600 : most;

	while (size < want && size < RING_MOST)
		size *= 2;
	return size;
}

/*
 * A quarter of a second of stacks that come late, all of the largest size: on a busy host the
 * loader is as late as that. At 99 Hz that is half a MB a CPU.
 */
static uint64_t late_size(const struct options *o, uint32_t cpus)
{
	uint64_t want = (uint64_t)(o->freq ? o->freq : LATE_FREQ) * cpus * LATE_BYTES / 4,
		 size = o->apart ? LATE_LEAST :
				   maproom_ring(cpus, LATE_EACH, LATE_EACH, LATE_LEAST);

	while (size < want && size < LATE_MOST)
		size *= 2;
	return size;
}

static uint32_t cpus_online(void)
{
	static struct cpulist online;

	return cpulist_online(&online) || !online.n ? 1 : online.n;
}

/*
 * Captures matter most on a host that is too busy: sonde must get its turn, or mappings arrive late
 * and rings fill up. It takes half a percent of a core. sonde-maps inherits the priority; the
 * command has been started before.
 */
static void hurry(const struct options *o)
{
	if (o->apart && !weight_session(WEIGHT_RECORD))
		log_debug("cannot begin a session: %s", strerror(errno));
	if (getpriority(PRIO_PROCESS, 0) == 0 && setpriority(PRIO_PROCESS, 0, HURRY))
		log_debug("cannot raise the priority: %s", strerror(errno));
}

/* sonde-maps starts first: it looks over the host while the rest is opened. */
static int open_parts(struct capture *c, struct err *e)
{
	const struct options *o = c->config.o->options;
	struct store_writer_opts so = {.dir = o->store,
				       .segment_bytes = o->segment_bytes,
				       .segment_s = o->segment_s,
				       .budget_bytes = o->budget_bytes,
				       .fine_dir = o->flight,
				       .fine_bytes =
					       o->flight_bytes ? o->flight_bytes : FLIGHT_BYTES};
	struct hostmaps_opts ho = {.store_dir = o->store ? o->store : store_default_dir(),
				   .socket_path = o->maps_socket,
				   .args_policy = o->args,
				   .no_lines = o->no_lines,
				   .no_mappings = c->config.f->no_mappings,
				   .books = true};
	const struct naming_opts no = {.no_lines = o->no_lines,
				       .generated = c->config.f->ring_fd,
				       .include = o->include,
				       .exclude = o->exclude,
				       .store_dir = ho.store_dir,
				       .programs = progsyms_find,
				       .programs_ctx = c->config.programs};
	int err;

	hurry(o);
	err = store_writer_open(&so, &c->config.store, e);
	if (!err)
		err = hostmaps_open(&ho, &c->config.maps, e);
	if (!err)
		err = naming_open(c->config.maps, c->config.store, &no, &c->config.naming, e);
	if (!err) {
		c->intake.late_jit = late_jit_new(c->config.naming);
		c->intake.late.code = (struct late_code){c->intake.late_jit, late_jit_step};
	}
	return err;
}

/* Wait for the maps that the program is loaded with; sonde-maps sends them before it looks over the
 * host. */
static void tables_await(struct capture *c)
{
	int64_t until = clock_boot_ns() + TABLES_NS;

	while (!hostmaps_greeted(c->config.maps) && !c->books.r->interrupted &&
	       clock_boot_ns() < until) {
		struct pollfd pfd = {.fd = hostmaps_fd(c->config.maps), .events = POLLIN};

		poll(&pfd, 1, 20);
		hostmaps_read(c->config.maps);
		capture_signal_take(c);
	}
	if (!hostmaps_greeted(c->config.maps) && !c->books.r->interrupted)
		log_warn(
			"sonde-maps handed out no tables in %d s: stacks are read by frame pointers alone",
			(int)(TABLES_NS / NSEC_PER_SEC));
}

static int open_probe(struct capture *c, struct err *e)
{
	uint32_t cpus = cpus_online();
	struct family_config fc = {.target = &c->config.o->target->family,
				   .freq = c->config.o->options->freq,
				   .cpus = cpus,
				   .bucket_s = c->config.o->options->bucket_s,
				   .fine_s = c->config.o->options->flight ? c->config.f->fine_s : 0,
				   .ring_bytes = ring_size(c->config.o->options, cpus),
				   .late_bytes = late_size(c->config.o->options, cpus),
				   .store_dir = c->config.o->options->store ?
							c->config.o->options->store :
							store_default_dir()};
	int tables[MP_TABLES_N], err;

	capture_intake_room(&c->intake, cpus);
	tables_await(c);
	hostmaps_tables(c->config.maps, tables);
	fc.tables = tables[0] >= 0 ? tables : NULL;
	err = c->config.f->open(&fc, &c->config.state, &c->config.obj, e);
	if (err)
		return err;
	return capture_probes_open(&c->probes, &c->intake, e);
}

static void run_begin(struct capture *c)
{
	struct store_run run = {
		.family = c->config.f->name,
		.options = c->config.o->command_line,
		.scope = target_scope(c->config.o->target),
		.bucket_s = c->config.o->options->bucket_s,
		.period_ns = capture_period(&c->config),
		.cpus = cpus_online(),
		.from_ns = capture_utc(&c->clock, c->clock.attached_ns),
		.boot_offset_ns = c->clock.offset_ns,
		.recording = c->config.o->options->recording,
		.fine_s = c->config.f->fine_s,
		.share = c->config.o->options->flight_share,
	};

	c->books.r->from_ns = run.from_ns;
	c->config.run = store_run_begin(c->config.store, &run);
	naming_run(c->config.naming, c->config.run);
	store_flush(c->config.store);
}

/* Sampling starts after the seed: earlier samples would lie in mappings that are not known yet. */
static void seed_await(struct capture *c)
{
	int64_t until = clock_boot_ns() + SEED_NS;

	while (!hostmaps_seeded(c->config.maps) && !c->books.r->interrupted &&
	       clock_boot_ns() < until) {
		struct pollfd pfd = {.fd = hostmaps_fd(c->config.maps), .events = POLLIN};

		poll(&pfd, 1, 20);
		hostmaps_read(c->config.maps);
		capture_signal_take(c);
	}
}

/* If the family needs it, sonded selects the processes to look into; the capture says which kind it
 * wants. */
static void feed_begin(struct capture *c)
{
	int fd = c->config.o->options->targets_fd;

	if (fd < 0)
		return;
	c->config.feed = targetfeed_new(fd);
	capture_probes_feed(&c->probes, &c->config);
	if (!c->config.f->wants)
		return;
	c->config.o->target->family.feed = c->config.feed;
	progress_send(c->config.o->progress,
		      json_pack("{s:s, s:s}", "event", "wants", "targets", c->config.f->wants),
		      true);
}

/* If it fails the capture goes on: the recording matters more. */
static void confine_self(const struct capture *c)
{
	const unsigned int keeps =
		c->config.f->keeps | (c->config.o->options->maps_socket ? 0 : CONFINE_MAPS);
	struct err e = {0};

	if (confine(keeps, &e))
		log_warn("%s", e.what);
}

/* A family that has stacks looks once a second, but for one that rests: what names them may be gone
 * soon. Others say when they must be called (family_host.next_ns). */
static int64_t slow_ns(const struct capture *c)
{
	return (c->config.f->rests || !c->config.f->ring_fd) &&
			       c->config.o->options->bucket_s >= FAMILY_ALWAYS_S ?
		       REST_NS :
		       SLOW_NS;
}

/* Sampling begins with the attach; a command is released right after it. */
static int begin(struct capture *c, struct err *e)
{
	const struct options *o = c->config.o->options;
	int err;

	feed_begin(c);
	if (c->config.f->symbols) {
		naming_kernel_begin(c->config.naming); /* while sonde-maps looks over the host */
		capture_probes_symbols(&c->probes, &c->config);
	}
	seed_await(c);
	c->clock.offset_ns = clock_boot_offset_ns();
	err = c->config.f->attach ? c->config.f->attach(c->config.state, e) : 0;
	if (err)
		return err;
	leftout_tell(c->config.f->name);
	c->clock.attached_ns = c->clock.second_ns = c->books.booked_ns = c->intake.read_ns =
		c->books.until_ns = clock_boot_ns();
	c->clock.pace = (struct pace){.quick_ns = FIRST_NS,
				      .slow_ns = slow_ns(c),
				      .phase_ns = PHASE_NS,
				      .next_ns = c->clock.attached_ns,
				      .busy_until_ns = c->clock.attached_ns + CAPTURE_BEGIN_NS};
	c->clock.end_ns =
		o->duration_ns ? c->clock.attached_ns + (int64_t)o->duration_ns : INT64_MAX;
	run_begin(c);
	capture_ends_watch(&c->ends);
	capture_books_begin(&c->books);
	capture_vigil_begin(&c->vigil, &c->config, &c->intake.host);
	if (o->command)
		err = command_release(c->config.o->command, o->command[0], e);
	if (!err)
		confine_self(c);
	malloc_trim(0); /* memory from reading the kernel's types */
	return err;
}

/* ---- all of it ---- */

/* What was committed in the last moment is stored, too. */
static int writer_end(struct capture *c, struct err *e)
{
	struct store_writer_stat last = {0};
	int err = store_writer_end(c->config.store, CLOSE_MS, &last, e);

	if (last.batches && c->clock.attached_ns)
		capture_books_stored(&c->books, last.stored);
	return err;
}

static int close_parts(struct capture *c, struct err *e)
{
	int err = 0;

	capture_vigil_end(&c->vigil);
	capture_probes_close(&c->probes);
	scripts_release(&c->intake.scripts);
	if (c->config.state)
		c->config.f->close(c->config.state);
	naming_close(c->config.naming);
	progsyms_free(c->config.programs);
	if (c->config.maps)
		hostmaps_close(c->config.maps);
	if (c->config.store)
		err = writer_end(c, e);
	targetfeed_free(c->config.feed);
	capture_intake_release(&c->intake);
	return err;
}

int capture_run(const struct capture_opts *o, struct capture_report *r, struct err *e)
{
	struct capture c = {.config = {.o = o, .f = o->family, .programs = progsyms_new()},
			    .probes = {.wake_fd = -1}};
	int err, closed;

	*r = (struct capture_report){.first_s = -1};
	capture_intake_init(&c.intake, &c);
	c.books = (struct capture_books){
		.config = &c.config, .clock = &c.clock, .host = &c.intake.host, .r = r};
	c.ends = (struct capture_ends){
		.config = &c.config, .clock = &c.clock, .host = &c.intake.host};
	err = open_parts(&c, e);
	if (!err)
		err = open_probe(&c, e);
	if (!err)
		err = begin(&c, e);
	while (!err && !c.clock.stop)
		wait_events(&c);
	if (!err)
		capture_end(&c);
	closed = close_parts(&c, err ? NULL : e);
	return err ? err : closed;
}
