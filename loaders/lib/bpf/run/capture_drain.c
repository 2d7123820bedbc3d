/* SPDX-License-Identifier: Apache-2.0 */
/* capture_drain: the end of a capture: store and name what is still on its way, each step within a
 * time limit. */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "loaders/lib/bpf/run/private.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"

#define DRAIN_MS        100
#define FINISH_QUIET_NS (500 * MSEC) /* a wait that is this short is not worth a message */

/* How much longer, at the most: what was asked for (--finish), else the usual limit. */
static int64_t time_left(const struct capture *c, int64_t usual_end_ns)
{
	int64_t end = c->clock.finish_ns && !c->clock.cut ? c->clock.finish_ns : usual_end_ns;

	return end - clock_boot_ns();
}

/* Until sonde-maps has caught up with the moment we stopped, and all records are stored. */
static void drain(struct capture *c, int64_t stopped_ns)
{
	int64_t until = stopped_ns + (c->books.r->interrupted ? 800 * MSEC : 2000 * MSEC);

	hostmaps_await_names(c->config.maps);
	hostmaps_hurry(c->config.maps);
	capture_probes_read(&c->probes, &c->intake);
	hostmaps_read(c->config.maps);
	capture_intake_store(&c->intake, false);
	while ((capture_intake_waits(&c->intake) ||
		(int64_t)hostmaps_watermark(c->config.maps) < stopped_ns) &&
	       time_left(c, until) > 0) {
		struct pollfd pfd = {.fd = hostmaps_fd(c->config.maps), .events = POLLIN};

		poll(&pfd, 1, 20);
		hostmaps_read(c->config.maps);
		capture_intake_store(&c->intake, false);
		naming_tick(c->config.naming);
		capture_signal_take(c);
		capture_tell_finish(c);
	}
	capture_intake_store(&c->intake, true);
	capture_ends_missed(&c->ends);
	c->books.until_ns = stopped_ns;
}

/* Are so few frames without a name that it is not worth waiting longer than usual? */
static bool are_named(const struct capture *c)
{
	struct naming_stat s;

	naming_stat(c->config.naming, &s);
	return s.unnamed_pending * 100 <= s.frames;
}

/* Wait for the names of frames whose index is still being made, within a limit. */
static void drain_names(struct capture *c)
{
	int64_t until = clock_boot_ns() + (c->books.r->interrupted ? 500 * MSEC : 5000 * MSEC);

	hostmaps_await_names(c->config.maps);
	while (naming_drain(c->config.naming, DRAIN_MS) && time_left(c, until) > 0) {
		if (clock_boot_ns() > until && are_named(c))
			break;
		capture_signal_take(c);
		if (c->books.r->interrupted && until > clock_boot_ns() + 500 * MSEC)
			until = clock_boot_ns() + 500 * MSEC;
		capture_tell(c);
		capture_tell_finish(c);
	}
	c->clock.finish_ns = 0;
}

/* Wait for the final cost figures of sonde-maps. */
static void drain_cost(struct capture *c)
{
	hostmaps_await(c->config.maps, clock_boot_ns() + 100 * MSEC);
}

/* How well the program walked script frames (-v). */
static void report_scripts(const struct capture *c)
{
	struct script_tally t;

	if (!scripts_tally(&c->intake.scripts, &t) || !t.walks)
		return;
	log_info(
		"script frames: %llu stacks in an interpreter, %llu frames, %llu objects; %llu in threads that run no script, "
		"%llu of memory that made no sense, %llu too deep, %llu without a place, %llu without a name",
		t.walks, t.frames, t.taken, t.missed[SCRIPT_NO_THREAD], t.missed[SCRIPT_FAULT],
		t.missed[SCRIPT_DEEP], t.missed[SCRIPT_NO_PLACE], t.missed[SCRIPT_UNNAMED]);
}

static void report_names(struct capture *c)
{
	struct naming_stat names;
	char why[64];

	naming_stat(c->config.naming, &names);
	c->books.r->frames = names.frames;
	c->books.r->frames_named = names.named;
	capture_intake_count_processes(&c->intake);
	if (names.kernel_hidden) {
		preflight_hidden(why, sizeof(why));
		log_warn("kernel symbols are hidden (%s): kernel frames have no names", why);
	}
}

/* Wait until the store's thread has written everything, then read its figures. */
static void store_settle(struct capture *c, int64_t deadline_ns)
{
	struct store_writer_stat s;
	struct timespec nap = {0, 5 * MSEC};

	for (;;) {
		store_writer_stat(c->config.store, &s);
		if (s.stored + s.dropped >= c->books.added || clock_boot_ns() > deadline_ns)
			break;
		nanosleep(&nap, NULL);
	}
	capture_send_first(c, &s);
	c->books.r->unsure = s.last_error == -EIO || s.last_error == -EROFS ? s.unsynced : 0;
	capture_books_stored(&c->books, s.stored);
	c->books.r->run = store_run_rowid(c->config.store, c->config.run);
	snprintf(c->books.r->segment, sizeof(c->books.r->segment), "%s", s.segment);
}

void capture_end(struct capture *c)
{
	struct ledger_figures figures;
	struct family_tally t;
	int64_t stopped_ns;

	capture_vigil_end(&c->vigil);
	capture_intake_finish(&c->intake);
	if (c->config.f->detach)
		c->config.f->detach(c->config.state);
	stopped_ns = clock_boot_ns();
	if (c->config.o->options->finish_ns)
		c->clock.finish_ns = stopped_ns + c->config.o->options->finish_ns;
	c->tell.finish_told_ns = stopped_ns + FINISH_QUIET_NS;
	capture_books_tally(&c->books, &t);
	c->books.r->self_cores = capture_books_self_cores(&c->books, &t, &figures);
	ledger_book(&c->books.ledger, c->config.maps, &figures, c->config.store, c->config.run,
		    capture_utc(&c->clock, c->books.until_ns));
	report_scripts(c);
	drain(c, stopped_ns);
	c->books.r->to_ns = capture_utc(&c->clock, stopped_ns);
	c->books.r->took_ns = stopped_ns - c->clock.attached_ns;
	capture_books_flush(&c->books);
	drain_names(c);
	drain_cost(c);
	ledger_read(&c->books.ledger, c->config.maps, &t, &figures);
	ledger_book_end(&c->books.ledger, &figures, c->config.store, c->config.run,
			capture_utc(&c->clock, c->books.until_ns));
	c->books.r->edges_cpu_s =
		(double)ledger_all_ns(&figures) / 1e9 -
		c->books.r->self_cores * (double)(stopped_ns - c->clock.attached_ns) / 1e9;
	capture_books_flush(&c->books);
	report_names(c);
	store_settle(c, clock_boot_ns() + (c->books.r->interrupted ? 500 * MSEC : 5000 * MSEC));
}
