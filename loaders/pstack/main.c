/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-pstack: where threads wait at this moment.
 *
 *   1. sonde-maps is started and reports all mappings.
 *   2. All stacks are walked, again if needed, until every index that they need is there, or
 *      PATIENCE_NS is over. Lines of large files come in a second index: LINES_NS for those.
 *   3. The threads are read again and walked, with their script frames: this is what is shown. If
 *      a thread's process is not known yet, the program waits for sonde-maps up to that time.
 *   4. They are read a last time. A thread with more context switches has run meanwhile: it is
 *      walked again from the new record, up to ROUNDS times; if it never waits that long, it keeps
 *      its kernel stack and loses its user stack.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/pstack/names.h"
#include "loaders/pstack/report.h"
#include "loaders/pstack/save.h"
#include "loaders/pstack/scripts.h"
#include "loaders/pstack/snapshot.h"
#include "loaders/pstack/thread.h"
#include "loaders/pstack/wait_fds.h"
#include "loaders/pstack/walk.h"
#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "loaders/lib/host/budget/weight.h"
#include "schema/image/image.h"
#include "schema/store/write/writer.h"

#define SEED_NS     (10 * NSEC_PER_SEC)
#define PATIENCE_NS (20 * NSEC_PER_SEC)
#define LINES_NS    (5 * NSEC_PER_SEC)
/* in place of both with --keep: the user waits for the end of a recording */
#define KEEP_NS     (3 * NSEC_PER_SEC)
#define CATCH_UP_NS (NSEC_PER_SEC / 2)
#define ROUNDS      3

/* The command line, and which processes it means. */

struct opts {
	const char *store;
	struct option_numbers pid;
	struct option_list container;
	bool json, quiet, kernel_threads, no_lines, keep, check;
	uint64_t number;
	uint64_t recording;
	int64_t at_ns;  /* with --keep: as of then, UTC; 0: now */
	bool gone;      /* with --keep: a process or container that was named is there no more */
	uint32_t *pids; /* processes of either; none: all */
	size_t n_pids, cap_pids;
};

static const struct program PROGRAM = {
	.name = "sonde-pstack",
	.usage = "[options]",
	.about = "Shows where threads wait at this moment, and since when. Stops no thread.",
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"pid", 'p', OPTION_NUMBERS, "PID", "this process (or the one this thread belongs to); may be repeated", OPTION_AT(struct opts, pid), .min = 1,
	 .max = INT_MAX},
	{"container", 0, OPTION_LIST, "NAME", "the processes of this container: a name, or the beginning of an id; may be repeated",
	 OPTION_AT(struct opts, container)},
	{"kernel-threads", 0, OPTION_FLAG, NULL, "kernel threads too", OPTION_AT(struct opts, kernel_threads)},
	{"number", 'n', OPTION_MOST, "N", "how many threads, those of the first processes (default: all)", OPTION_AT(struct opts, number)},
	{"no-lines", 0, OPTION_FLAG, NULL, "functions only, no lines and inlined functions", OPTION_AT(struct opts, no_lines)},
	{"store", 0, OPTION_STRING, "DIR", "where indexes of files are kept (images/ in it; else $SONDE_STORE)", OPTION_AT(struct opts, store)},
	{"keep", 0, OPTION_FLAG, NULL, "store the waits (kind standing) instead of printing them", OPTION_AT(struct opts, keep)},
	{"recording", 0, OPTION_UINT, "N", "with --keep: a number that is the same for all parts of one recording", OPTION_AT(struct opts, recording),
	 .max = INT64_MAX},
	{"at", 0, OPTION_UINT, "NS", "with --keep: as of this time (UTC, past), without waits that began later", OPTION_AT(struct opts, at_ns),
	 .max = INT64_MAX},
	{"check", 0, OPTION_FLAG, NULL, "report what this host supports, and exit", OPTION_AT(struct opts, check)},
	{"json", 0, OPTION_FLAG, NULL, "print JSON", OPTION_AT(struct opts, json)},
	{"quiet", 'q', OPTION_FLAG, NULL, "no notes on standard error", OPTION_AT(struct opts, quiet)},
	{0},
};
/* clang-format on */

static bool opts_wants(const struct opts *o, uint32_t pid)
{
	for (size_t i = 0; i < o->n_pids; i++)
		if (o->pids[i] == pid)
			return true;
	return !o->n_pids;
}

static void pid_add(struct opts *o, uint32_t pid)
{
	if (opts_wants(o, pid) && o->n_pids)
		return;
	mem_grow(o->pids, o->n_pids, o->cap_pids);
	o->pids[o->n_pids++] = pid;
}

static int pid_find(struct opts *o, uint32_t pid, struct err *e)
{
	struct proc_status st;

	if (proc_read_status(pid, &st)) {
		if (o->keep) {
			o->gone = true;
			return 0;
		}
		err_set(e, -ESRCH, EXIT_USAGE, "no process has the id %u", pid);
		err_fix(e, "pgrep -a NAME");
		return -ESRCH;
	}
	pid_add(o, st.tgid);
	return 0;
}

static int container_find(struct opts *o, const char *word, struct err *e)
{
	struct container_found found = {0};
	int rc = container_resolve(word, &found, o->keep ? NULL : e);

	if (o->keep && (rc || !found.n_pids)) {
		o->gone = true;
		container_found_release(&found);
		return 0;
	}
	if (rc)
		return rc;
	for (size_t i = 0; i < found.n_pids; i++)
		pid_add(o, found.pids[i]);
	if (!found.n_pids) {
		rc = err_set(e, -ESRCH, EXIT_NOTHING, "no process runs in the container '%.100s'",
			     word);
		err_fix(e, "sonde pstack shows the whole host");
	}
	container_found_release(&found);
	return rc;
}

/* 1: help was requested and printed. A process or container that does not exist: EXIT_USAGE; with
 * --keep: see `gone`. */
static int opts_read(int argc, char **argv, struct opts *o, struct err *e)
{
	int rc =
		program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, o}, 1, NULL, e);

	for (size_t i = 0; !rc && i < o->pid.n; i++)
		rc = pid_find(o, (uint32_t)o->pid.items[i], e);
	for (size_t i = 0; !rc && i < o->container.n; i++)
		rc = container_find(o, o->container.items[i], e);
	if (!o->store)
		o->store = store_default_dir();
	return rc;
}

static void opts_release(struct opts *o)
{
	options_release(&(struct option_set){OPTIONS, o}, 1, NULL);
	free(o->pids);
}

struct work {
	const struct opts *o;
	struct hostmaps *hm;
	struct snapshots *shots;
	struct names *names;
	struct snapshot now;
	struct walk *walks; /* one for each of now.threads */
	bool *moved;
	struct sockets sockets;
	bool scripts; /* their frames are walked too */
};

static bool wanted(const struct work *w, const struct pstack_record *r)
{
	return opts_wants(w->o, r->tgid) && (w->o->kernel_threads || !(r->flags & PSTACK_KTHREAD));
}

static struct hostmaps_process *process_of(const struct work *w, const struct pstack_record *r)
{
	struct hostmaps_process *p = hostmaps_process(w->hm, r->tgid, r->start_ns, r->exec_id);

	return p ? p : hostmaps_running(w->hm, r->tgid);
}

static void listen_for(struct work *w, int ms)
{
	struct pollfd pfd = {.fd = hostmaps_fd(w->hm), .events = POLLIN};

	poll(&pfd, 1, ms);
	hostmaps_read(w->hm);
}

static void seed(struct work *w)
{
	int64_t until = clock_boot_ns() + SEED_NS;

	while (!hostmaps_seeded(w->hm) && clock_boot_ns() < until)
		listen_for(w, 20);
}

/* --- walking --- */

static void walk_one(struct work *w, size_t i, const struct pstack_record *r)
{
	struct hostmaps_process *p = process_of(w, r);
	uint64_t now = (uint64_t)clock_boot_ns();

	walk_thread(w->hm, p, r, now, &w->walks[i]);
	if (w->scripts)
		walk_scripts(w->hm, p, r, now, &w->walks[i]);
}

/* true: an index is awaited that a stack needs. */
static bool walk_all(struct work *w)
{
	bool pending = false;

	for (size_t i = 0; i < w->now.n; i++) {
		const struct pstack_record *r = &w->now.threads[i];

		walk_clear(&w->walks[i]);
		if (!wanted(w, r) || !thread_is_blocked(r))
			continue;
		walk_one(w, i, r);
		pending |= w->walks[i].pending;
	}
	return pending;
}

static void walks_free(struct work *w)
{
	for (size_t i = 0; i < w->now.n; i++)
		walk_clear(&w->walks[i]);
	free(w->walks);
	free(w->moved);
	snapshot_release(&w->now);
	scripts_forget();
}

static int look(struct work *w, struct err *e)
{
	struct snapshot shot;
	int rc = snapshot_take(w->shots, &shot, e);

	if (rc)
		return rc;
	walks_free(w);
	w->now = shot;
	w->walks = mem_array(shot.n + 1, sizeof(*w->walks));
	w->moved = mem_array(shot.n + 1, sizeof(*w->moved));
	return 0;
}

/* Files that were met whose lines are still being read. */
static bool lines_awaited(struct work *w)
{
	uint64_t now = (uint64_t)clock_boot_ns();

	for (size_t i = 0; i < w->now.n && !w->o->no_lines; i++) {
		struct hostmaps_process *p =
			w->walks[i].n ? process_of(w, &w->now.threads[i]) : NULL;

		for (size_t k = 0; p && k < w->walks[i].n; k++) {
			struct hostmaps_frame at;

			hostmaps_frame(w->hm, p, FRAME_ADDRESS(w->walks[i].frames[k]) - 1, now,
				       &at);
			if (at.image && at.image->index &&
			    image_ident(at.image->index)->lines_later)
				return true;
		}
	}
	return false;
}

static void await_lines(struct work *w)
{
	int64_t until = clock_boot_ns() + (w->o->keep ? KEEP_NS : LINES_NS);

	while (lines_awaited(w) && clock_boot_ns() < until)
		listen_for(w, 50);
}

/* Until nothing is awaited. Names request indexes, too: of frames that need no unwind rows. */
static int get_ready(struct work *w, struct err *e)
{
	int64_t until = clock_boot_ns() + (w->o->keep ? KEEP_NS : PATIENCE_NS);
	int rc = look(w, e);

	while (!rc && (walk_all(w) || hostmaps_pending(w->hm)) && clock_boot_ns() < until) {
		uint32_t pending = hostmaps_pending(w->hm);

		hostmaps_await_names(w->hm);
		while (pending && hostmaps_pending(w->hm) >= pending && clock_boot_ns() < until)
			listen_for(w, 50);
		rc = look(w, e);
	}
	if (!rc)
		await_lines(w);
	return rc;
}

/* Threads that have run since they were read are walked again. Returns how many did, or -errno. */
static int settle(struct work *w, struct err *e)
{
	struct snapshot after;
	int moved = 0, rc = snapshot_take(w->shots, &after, e);

	scripts_forget();
	for (size_t i = 0; i < w->now.n && !rc; i++) {
		struct pstack_record *r = &w->now.threads[i];
		const struct pstack_record *then = snapshot_find(&after, r);

		w->moved[i] = false;
		if (!wanted(w, r) || !thread_is_blocked(r) ||
		    (then && then->switches == r->switches && then->state == r->state))
			continue;
		w->moved[i] = true;
		moved++;
		if (then)
			*r = *then;
		walk_clear(&w->walks[i]);
		if (then && thread_is_blocked(r))
			walk_one(w, i, r);
	}
	if (!rc)
		snapshot_release(&after);
	return rc ? rc : moved;
}

/* Those that were not known: sonde-maps is asked to tell what has happened up to now. */
static void catch_up(struct work *w)
{
	int64_t until = clock_boot_ns() + CATCH_UP_NS;
	bool unknown = false;

	for (size_t i = 0; i < w->now.n; i++)
		unknown |= w->walks[i].end == STACK_END_NO_PROCESS && wanted(w, &w->now.threads[i]);
	if (unknown)
		hostmaps_hurry(w->hm);
	while (unknown && hostmaps_watermark(w->hm) < w->now.time_ns && clock_boot_ns() < until)
		listen_for(w, 20);
	for (size_t i = 0; i < w->now.n && unknown; i++)
		if (w->walks[i].end == STACK_END_NO_PROCESS)
			walk_one(w, i, &w->now.threads[i]);
}

static int stand_still(struct work *w, struct err *e)
{
	int rc = look(w, e);

	w->scripts = !w->o->keep; /* the store has no room for them yet */
	if (!rc) {
		walk_all(w);
		catch_up(w);
	}
	for (int i = 0; i < ROUNDS && !rc; i++) {
		rc = settle(w, e);
		if (rc <= 0)
			break;
		rc = 0;
	}
	return rc;
}

/* --- telling --- */

static const char *end_name(enum stack_end end)
{
	/* clang-format off */
	static const char *const names[STACK_END_N] = {
		[STACK_END_NO_PROCESS] = "its mappings are unknown", [STACK_END_NO_MAPPING] = "no code is mapped there",
		[STACK_END_PENDING] = "unwind rows of its file are not ready",
		[STACK_END_UNSUPPORTED] = "a rule that cannot be expressed", [STACK_END_STACK_READ] = "its stack cannot be read",
		[STACK_END_CFA] = "a rule led nowhere", [STACK_END_FRAME_POINTER] = "the chain of frame pointers ended",
		[STACK_END_DEPTH] = "too deep", [STACK_END_STALE] = "a mapping changed", [STACK_END_32BIT] = "32-bit code",
		[STACK_END_NO_REGISTERS] = "no registers of it are known",
	};
	/* clang-format on */

	return (unsigned)end < STACK_END_N ? names[end] : NULL;
}

/* Sockets of threads that wait for many. Without them the rest is still shown. */
static void sockets_look(struct work *w)
{
	struct err e = {0};

	for (size_t i = 0; i < w->now.n; i++) {
		const struct pstack_record *r = &w->now.threads[i];

		if (!wanted(w, r) || !thread_is_blocked(r) || !wait_fds_is_one(r))
			continue;
		if (sockets_read(w->shots, &w->sockets, &e))
			log_warn(
				"cannot read which sockets threads in epoll_wait, poll and select wait for: %s",
				e.what);
		return;
	}
}

static void tell(struct work *w, size_t i, struct report *out)
{
	const struct pstack_record *r = &w->now.threads[i];
	const struct walk *walk = &w->walks[i];
	struct hostmaps_process *p = process_of(w, r);
	struct thread *t;

	mem_grow(out->threads, out->n, out->cap);
	t = &out->threads[out->n++];
	*t = (struct thread){0};
	thread_fill(t, r, p, w->now.time_ns);
	names_kernel(w->names, r->kernel, r->n_kernel, &t->stack);
	t->moved = w->moved[i];
	if (t->moved)
		return;
	thread_watches(t, r, &w->sockets);
	if (p)
		names_user(w->names, w->hm, p, walk, w->now.time_ns, &t->stack);
	t->gil = walk->gil == RUNTIME_GIL_HOLDS ? "holds" :
		 walk->gil == RUNTIME_GIL_WAITS ? "waits" :
						  NULL;
	t->end = end_name(walk->end);
	if (!t->end && walk->scripts.cut)
		t->end = "its script has more frames, or some that cannot be read";
}

static void tell_all(struct work *w, struct report *out)
{
	sockets_look(w);
	for (size_t i = 0; i < w->now.n; i++) {
		const struct pstack_record *r = &w->now.threads[i];

		if (!wanted(w, r))
			continue;
		if (thread_is_blocked(r))
			tell(w, i, out);
		else
			out->running++;
	}
	if (hostmaps_pending(w->hm))
		snprintf(out->warning, sizeof(out->warning),
			 "indexes of %u files were not ready: their frames have no names",
			 hostmaps_pending(w->hm));
}

static int keep_all(struct work *w, struct err *e)
{
	const struct save_opts ko = {.dir = w->o->store,
				     .recording = w->o->recording,
				     .time_ns = w->now.time_ns,
				     .at_ns = w->o->at_ns};
	int64_t until = clock_boot_ns() + KEEP_NS;
	struct keep *k = NULL;
	int rc = save_open(&ko, w->hm, &k, e);

	while (hostmaps_watermark(w->hm) < w->now.time_ns && clock_boot_ns() < until)
		listen_for(w, 20); /* what is mapped where is certain up to there */
	for (size_t i = 0; i < w->now.n && !rc; i++) {
		const struct pstack_record *r = &w->now.threads[i];
		struct thread t = {0};

		if (!wanted(w, r) || !thread_is_blocked(r))
			continue;
		thread_fill(&t, r, process_of(w, r), w->now.time_ns);
		save_thread(k, r, &t, w->moved[i] ? NULL : &w->walks[i]);
		thread_release(&t);
	}
	return rc ? rc : save_close(k, e);
}

static int nothing(const struct opts *o, const struct report *r, struct err *e)
{
	if (r->n)
		return 0;
	err_set(e, -ENOENT, EXIT_NOTHING, "no thread waits there: %zu are running or ready",
		r->running);
	err_fix(e, o->n_pids ? "sudo sonde record -d 10s shows what runs" : "sudo sonde doctor");
	return -ENOENT;
}

static int pstack(const struct opts *o, struct report *report, struct err *e)
{
	const struct hostmaps_opts ho = {.store_dir = o->store, .no_lines = o->no_lines};
	struct work w = {.o = o};
	int rc = snapshots_open(o->n_pids == 1 ? o->pids[0] : 0, &w.shots, e);

	if (!rc)
		rc = hostmaps_open(&ho, &w.hm, e);
	if (!rc) {
		seed(&w);
		w.names = names_open(o->store, o->no_lines);
		rc = get_ready(&w, e);
	}
	if (!rc)
		rc = stand_still(&w, e);
	report->utc_ns = (int64_t)w.now.time_ns + clock_boot_offset_ns();
	if (!rc && o->keep)
		rc = keep_all(&w, e);
	else if (!rc)
		tell_all(&w, report);
	walks_free(&w);
	sockets_release(&w.sockets);
	names_close(w.names);
	if (w.hm)
		hostmaps_close(w.hm);
	snapshots_close(w.shots);
	return rc || o->keep ? rc : nothing(o, report, e);
}

static void answer(const struct opts *o, struct report *r)
{
	if (r->warning[0] && !o->quiet)
		fprintf(stderr, "sonde-pstack: %s\n", r->warning);
	if (o->json)
		report_json(r, o->number, stdout);
	else
		report_text(r, o->number, stdout);
}

static int check(const struct opts *o)
{
	struct check c = {0};
	int code;

	preflight_check(&c, PROGRAM.name, o->store, true);
	if (preflight(PROGRAM.name, NULL))
		check_add(&c, "programs", CHECK_OFF, NULL, "not tried");
	else
		snapshots_check(&c);
	if (o->json)
		check_print_json(&c, "pstack", stdout);
	else
		check_print(&c, stdout);
	code = c.exit;
	check_release(&c);
	return code;
}

int main(int argc, char **argv)
{
	struct report report = {0};
	struct opts o = {0};
	struct err e = {0};
	int rc;

	log_init("sonde-pstack", LOG_LEVEL_WARN);
	weight_raise(WEIGHT_RECORD); /* if sonde record began a session for it */
	rc = opts_read(argc, argv, &o, &e);
	if (!rc && o.check) {
		rc = check(&o);
		opts_release(&o);
		return rc;
	}
	if (!rc && o.gone && !o.n_pids)
		; /* no threads are left */
	else if (!rc && !(rc = preflight("sonde-pstack", &e)) && !(rc = pstack(&o, &report, &e)) &&
		 !o.keep)
		answer(&o, &report);
	report_release(&report);
	opts_release(&o);
	return program_end("sonde-pstack", rc, &e);
}
