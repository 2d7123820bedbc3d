// SPDX-License-Identifier: Apache-2.0
/*
 * capture_ends: processes that end while a capture runs. Each end within its scope is counted; in
 * the row of a process that has one, it stands too. One that ended badly (a signal, out of memory,
 * a code that is not 0) gets a row even if it had no sample, up to BAD_MAX of them a second: a
 * build asks a thousand times whether a file is there. Who sent it the signal that ended it, or
 * that it ended after, is a note of its row ("signal_by").
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "loaders/lib/bpf/run/capture_parts.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"

#define BAD_MAX 4 /* a second; those of a signal have as many again */

static bool is_bad(struct capture *c, enum store_end_how how, uint32_t status, int64_t at_ns)
{
	bool killed = how == STORE_END_SIGNAL || how == STORE_END_OOM;

	if (!killed && (how != STORE_END_EXIT || !status))
		return false;
	if (at_ns / NSEC_PER_SEC != c->bad_second) {
		c->bad_second = at_ns / NSEC_PER_SEC;
		c->bad[0] = c->bad[1] = 0;
	}
	return c->bad[killed]++ < BAD_MAX;
}

/* one that was asked to end has ended for it, so long after it */
#define ASKED_NS (30 * NSEC_PER_SEC)

/* "SIGTERM from runc (812)". False: nobody did. */
static bool sender_say(struct capture *c, const struct hostmaps_process *p, enum store_end_how how,
		       uint32_t status, char *out, size_t size)
{
	const char *name = p->sent.signal ? sigabbrev_np((int)p->sent.signal) : NULL;
	struct hostmaps_process *by = name ? hostmaps_running(c->maps, p->sent.tgid) : NULL;

	if (!name || how == STORE_END_OOM || how == STORE_END_UNKNOWN ||
	    (how == STORE_END_SIGNAL && status != p->sent.signal) ||
	    p->to_ns > p->sent.time_ns + ASKED_NS)
		return false;
	if (by && by->start_ns > p->sent.time_ns) /* the pid was given away again */
		by = NULL;
	if (naming_excludes(c->naming, by))
		snprintf(out, size, "SIG%s from %s", name, NAMING_EXCLUDED);
	else
		snprintf(out, size, "SIG%s from %s (%u)", name, p->sent.comm, p->sent.tgid);
	return true;
}

/* Counted, and nobody's. */
static void end_excluded(struct capture *c, const struct store_end *how, int64_t at_ns)
{
	struct store_end e = {.comm = NAMING_EXCLUDED, .how = how->how, .status = how->status};

	if (store_end(c->store, c->run, at_ns, &e) == -ESTALE)
		store_end(c->store, c->run, at_ns, &e); /* nothing in it is of an epoch */
}

static void on_end(void *ctx, struct hostmaps_process *p)
{
	struct capture *c = ctx;
	struct store_end e = {.comm = p->comm};
	int64_t at_ns = capture_utc(c, (int64_t)p->to_ns);
	struct family_target scope = c->o->target->family;
	int rc = -ESTALE;
	char by[80];
	bool row;

	if (c->f->process_ended)
		c->f->process_ended(c->state, &c->host, p);
	scope.feed = NULL; /* what is gone into is one thing, what is watched another */
	if (!target_covers(&scope, c->maps, p))
		return;
	e.how = naming_end(p, &e.status);
	if (e.how == STORE_END_EXEC) { /* no end of the process, but of this program in it */
		if (naming_has(p))
			naming_row(c->naming, p);
		return;
	}
	if (naming_excludes(c->naming, p)) {
		end_excluded(c, &e, at_ns);
		return;
	}
	/* sonde-maps ends its own children as it goes on: they are not to take the room of others
	 */
	row = naming_has(p) ||
	      (strcmp(p->comm, "sonde-index") != 0 && is_bad(c, e.how, e.status, at_ns));
	for (int i = 0; i < 2 && rc == -ESTALE; i++) {
		e.container = naming_container(c->naming, p);
		e.process = row ? naming_row(c->naming, p) : 0;
		rc = store_end(c->store, c->run, at_ns, &e);
		if (!rc && row && sender_say(c, p, e.how, e.status, by, sizeof(by)))
			store_process_note(c->store, c->run, e.process, "signal_by", by);
	}
}

void capture_ends_missed(struct capture *c)
{
	uint64_t n = hostmaps_missed(c->maps) - c->missed;
	struct store_end e = {.how = STORE_END_UNKNOWN, .n = n};

	if (n && target_scope(c->o->target) == STORE_SCOPE_HOST &&
	    store_end(c->store, c->run, capture_utc(c, clock_boot_ns()), &e) == -ESTALE)
		store_end(c->store, c->run, capture_utc(c, clock_boot_ns()),
			  &e); /* nothing in it is of an epoch */
	c->missed += n;
}

static void on_used(void *ctx, const struct mp_used *u, struct hostmaps_process *p)
{
	struct capture *c = ctx;

	c->f->process_usage(c->state, &c->host, u, p);
}

void capture_ends_watch(struct capture *c)
{
	if (c->f->process_usage)
		hostmaps_on_used(c->maps, on_used, c);
	c->missed = hostmaps_missed(c->maps);
	hostmaps_on_end(c->maps, on_end, c);
}
