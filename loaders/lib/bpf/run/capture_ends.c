/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture_ends: processes that end while a capture runs. It counts each end within the capture's
 * scope, and notes it in the row of a process that has one. A process that ended badly (a signal,
 * out of memory, an exit code other than 0) gets a row even without a sample, up to BAD_MAX a
 * second: a build tests a thousand times whether a file exists. The sender of a signal that ended
 * the process, or preceded its end, is a note in its row ("signal_by").
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "loaders/lib/bpf/run/private.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"

#define BAD_MAX 4 /* a second; as many again for signals */

static bool is_bad(struct capture_ends *ends, enum store_end_how how, uint32_t status,
		   int64_t at_ns)
{
	bool killed = how == STORE_END_SIGNAL || how == STORE_END_OOM;

	if (!killed && (how != STORE_END_EXIT || !status))
		return false;
	if (at_ns / NSEC_PER_SEC != ends->bad_second) {
		ends->bad_second = at_ns / NSEC_PER_SEC;
		ends->bad[0] = ends->bad[1] = 0;
	}
	return ends->bad[killed]++ < BAD_MAX;
}

/* an exit this long after a request to end is due to that request */
#define ASKED_NS (30 * NSEC_PER_SEC)

/* "SIGTERM from runc (812)". False: no sender is known. */
static bool sender_say(struct capture_ends *ends, const struct hostmaps_process *p,
		       enum store_end_how how, uint32_t status, char *out, size_t size)
{
	const char *name = p->sent.signal ? sigabbrev_np((int)p->sent.signal) : NULL;
	struct hostmaps_process *by =
		name ? hostmaps_running(ends->config->maps, p->sent.tgid) : NULL;

	if (!name || how == STORE_END_OOM || how == STORE_END_UNKNOWN ||
	    (how == STORE_END_SIGNAL && status != p->sent.signal) ||
	    p->to_ns > p->sent.time_ns + ASKED_NS)
		return false;
	if (by && by->start_ns > p->sent.time_ns) /* the pid has been reused */
		by = NULL;
	if (naming_excludes(ends->config->naming, by))
		snprintf(out, size, "SIG%s from %s", name, NAMING_EXCLUDED);
	else
		snprintf(out, size, "SIG%s from %s (%u)", name, p->sent.comm, p->sent.tgid);
	return true;
}

/* Counted, without a process. */
static void end_excluded(struct capture_ends *ends, const struct store_end *how, int64_t at_ns)
{
	struct store_end e = {.comm = NAMING_EXCLUDED, .how = how->how, .status = how->status};

	if (store_end(ends->config->store, ends->config->run, at_ns, &e) == -ESTALE)
		store_end(ends->config->store, ends->config->run, at_ns,
			  &e); /* nothing in it belongs to an epoch */
}

static void on_end(void *ctx, struct hostmaps_process *p)
{
	struct capture_ends *ends = ctx;
	struct store_end e = {.comm = p->comm};
	int64_t at_ns = capture_utc(ends->clock, (int64_t)p->to_ns);
	struct family_target scope = ends->config->o->target->family;
	int rc = -ESTALE;
	char by[80];
	bool row;

	if (ends->config->f->process_ended)
		ends->config->f->process_ended(ends->config->state, ends->host, p);
	scope.feed = NULL; /* the processes that sonded selects are a different set */
	if (!target_covers(&scope, ends->config->maps, p))
		return;
	e.how = naming_end(p, &e.status);
	if (e.how == STORE_END_EXEC) { /* the program ended, but the process goes on */
		if (naming_has(p))
			naming_row(ends->config->naming, p);
		return;
	}
	if (naming_excludes(ends->config->naming, p)) {
		end_excluded(ends, &e, at_ns);
		return;
	}
	/* sonde-maps ends its own children all the time: they must not use up this limit */
	row = naming_has(p) ||
	      (strcmp(p->comm, "sonde-index") != 0 && is_bad(ends, e.how, e.status, at_ns));
	for (int i = 0; i < 2 && rc == -ESTALE; i++) {
		e.container = naming_container(ends->config->naming, p);
		e.process = row ? naming_row(ends->config->naming, p) : 0;
		rc = store_end(ends->config->store, ends->config->run, at_ns, &e);
		if (!rc && row && sender_say(ends, p, e.how, e.status, by, sizeof(by)))
			store_process_note(ends->config->store, ends->config->run, e.process,
					   "signal_by", by);
	}
}

void capture_ends_missed(struct capture_ends *ends)
{
	uint64_t n = hostmaps_missed(ends->config->maps) - ends->missed;
	struct store_end e = {.how = STORE_END_UNKNOWN, .n = n};

	if (n && target_scope(ends->config->o->target) == STORE_SCOPE_HOST &&
	    store_end(ends->config->store, ends->config->run,
		      capture_utc(ends->clock, clock_boot_ns()), &e) == -ESTALE)
		store_end(ends->config->store, ends->config->run,
			  capture_utc(ends->clock, clock_boot_ns()),
			  &e); /* nothing in it belongs to an epoch */
	ends->missed += n;
}

static void on_used(void *ctx, const struct mp_used *u, struct hostmaps_process *p)
{
	struct capture_ends *ends = ctx;

	ends->config->f->process_usage(ends->config->state, ends->host, u, p);
}

void capture_ends_watch(struct capture_ends *ends)
{
	if (ends->config->f->process_usage)
		hostmaps_on_used(ends->config->maps, on_used, ends);
	ends->missed = hostmaps_missed(ends->config->maps);
	hostmaps_on_end(ends->config->maps, on_end, ends);
}
