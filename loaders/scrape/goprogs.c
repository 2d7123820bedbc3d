/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/scrape/goprogs.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/scrape/goprog.h"
#include "loaders/scrape/sockets.h"
#include "loaders/scrape/tell.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

/* new and ended processes: with each turn of the loop, but no more often */
#define LOOK_NS        (NSEC_PER_SEC * 2 / 5)
#define SOON_NS        (NSEC_PER_SEC / 20) /* an answer is awaited */
#define READ_NS        (NSEC_PER_SEC / 20)
#define SEARCH_NS      (NSEC_PER_SEC / 2) /* first; then twice as long each time */
#define SEARCH_MAX_NS  (60 * NSEC_PER_SEC)
#define TIMEOUT_S      10
#define PAGE_TIMEOUT_S 5
/* questions that are answered at once, all programs together */
#define AT_ONCE     8
#define CPU_AT_ONCE 32
/* before Go 1.19 a program is stopped while they are listed */
#define GOROUTINES_MAX 100000
#define FAILS_MAX      6

/* The search: which of its sockets to ask for a program's page: each once, and only if no other
 * process could answer. */

#define TRIED_MAX 64

static bool was_tried(const struct goprog *p, uint64_t inode)
{
	for (uint32_t i = 0; i < p->n_tried; i++)
		if (p->tried[i] == inode)
			return true;
	return false;
}

/* There was no page at that one: it is not asked again. */
static void search_failed(struct goprog *p)
{
	mem_grow(p->tried, p->n_tried, p->cap_tried);
	p->tried[p->n_tried++] = p->inode;
}

struct sharing {
	const struct goprog *p;
	const char *exe;
	bool found;
};

static void sharing_look(void *ctx, struct hostmaps_process *hp)
{
	struct sharing *s = ctx;

	if (!s->found && hp->tgid != s->p->key.tgid && !strcmp(hp->exe, s->exe))
		s->found = sockets_holds(hp->tgid, s->p->inode);
}

/* Another process of the same program has the socket too, and may be the one that answers. */
static bool is_shared(struct hostmaps *maps, const struct goprog *p)
{
	const struct hostmaps_process *hp =
		hostmaps_process(maps, p->key.tgid, p->key.start_ns, p->key.exec_id);
	struct sharing s = {p, hp ? hp->exe : "", false};

	if (hp && *hp->exe)
		hostmaps_each(maps, sharing_look, &s);
	return s.found;
}

/* Sets the next one in p->at, inode and other_network. false: none now, and p->reason says why. */
static bool search_next(struct goprog *p, struct hostmaps *maps)
{
	struct sockets s;
	bool found = false;

	if (p->n_tried >= TRIED_MAX)
		return false;
	sockets_of(p->key.tgid, &s);
	if (!p->n_tried)
		goprog_refuse(p, "it listens on no TCP port and no Unix socket path");
	for (size_t i = 0; i < s.n && !found; i++) {
		p->listens |= s.own[i];
		if (!s.own[i] || was_tried(p, s.all[i].inode))
			continue;
		p->inode = s.all[i].inode;
		found = sockets_reach(s.all, s.n, i, &p->at) && !is_shared(maps, p);
		if (!found)
			goprog_refuse(
				p,
				"another process listens at the same address: either could answer");
	}
	sockets_release(&s);
	p->other_network = !sockets_same_network(p->key.tgid);
	return found;
}

struct goprogs {
	struct goprogs_opts o;
	struct goprog *all;
	int64_t look_ns;
	struct family_host *host; /* of this turn */
	int64_t now_ns;
	bool last;          /* it ends: nothing new is begun */
	int busy, busy_cpu; /* questions on their way */
};

struct goprogs *goprogs_new(const struct goprogs_opts *o)
{
	struct goprogs *ps = mem_alloc(sizeof(*ps));

	ps->o = *o;
	return ps;
}

static void drop(struct goprogs *ps, struct goprog *p)
{
	HASH_DEL(ps->all, p);
	goprog_release(p);
	free(p);
}

void goprogs_free(struct goprogs *ps)
{
	struct goprog *p, *next;

	if (!ps)
		return;
	HASH_ITER (hh, ps->all, p, next)
		drop(ps, p);
	free(ps);
}

static struct hostmaps_process *process_of(const struct goprogs *ps, const struct goprog *p)
{
	return hostmaps_process(ps->host->maps, p->key.tgid, p->key.start_ns, p->key.exec_id);
}

/* ---- programs ---- */

static struct goprog *add(struct goprogs *ps, const struct hostmaps_process *hp,
			  const struct goprog_key *key)
{
	struct goprog *p = mem_alloc(sizeof(*p));

	p->key = *key;
	p->from_begin = (int64_t)hp->from_ns >= ps->o.begun_ns;
	HASH_ADD(hh, ps->all, key, sizeof(p->key), p);
	return p;
}

static void look_at(void *ctx, struct hostmaps_process *hp)
{
	struct goprogs *ps = ctx;
	struct goprog_key key = {
		.start_ns = hp->start_ns, .tgid = hp->tgid, .exec_id = hp->exec_id};
	struct goprog *p;
	bool is_new;

	HASH_FIND(hh, ps->all, &key, sizeof(key), p);
	is_new = !p;
	if (is_new)
		p = add(ps, hp, &key);
	p->seen_ns = ps->now_ns;
	if (is_new || ps->host->target->feed) /* what is given may be taken back */
		p->covered = target_covers(ps->host->target, ps->host->maps, hp);
	p->in_scope = p->covered && !naming_excludes(ps->host->naming, hp);
	/* without exec ids another executable is the sign of an exec */
	if (p->in_scope && (p->found != GOPROG_NO_GO || hp->exec_id == 0))
		goprog_find(p, ps->host->maps, hp, ps->now_ns);
	if (p->in_scope && p->found == GOPROG_NO_PPROF && !p->reason[0])
		snprintf(p->reason, sizeof(p->reason), "it does not link net/http/pprof");
}

static void look(struct goprogs *ps)
{
	struct goprog *p, *next;

	if (ps->now_ns < ps->look_ns)
		return;
	ps->look_ns = ps->now_ns + LOOK_NS;
	hostmaps_each(ps->host->maps, look_at, ps);
	HASH_ITER (hh, ps->all, p, next)
		if (p->seen_ns != ps->now_ns)
			drop(ps, p);
}

/* ---- questions ---- */

static bool ask(struct goprogs *ps, struct goprog *p, enum wire_ask what)
{
	struct wire_question q = {.ask = what,
				  .seconds = ps->o.cpu_s,
				  .port = p->at.port,
				  .v6 = p->at.v6,
				  .timeout_s = what == WIRE_ASK_CPU   ? ps->o.cpu_s + TIMEOUT_S :
					       what == WIRE_ASK_INDEX ? PAGE_TIMEOUT_S :
									TIMEOUT_S};
	struct profile *x = &p->profiles[what];
	int connection = *p->at.path ? sockets_connect(p->key.tgid, p->at.path) : -1;
	struct err e = {0};

	q.connected = connection >= 0;
	if (*p->at.path && connection < 0) {
		snprintf(x->reason, sizeof(x->reason), "%.40s: no connection: %.30s", p->at.path,
			 strerror(-connection));
		return false;
	}

	memcpy(q.address, p->at.address, sizeof(q.address));
	x->fetch = mem_alloc(sizeof(*x->fetch));
	if (!fetch_begin(x->fetch, ps->o.asker, &q, p->other_network ? p->key.tgid : 0, connection,
			 ps->now_ns, &e)) {
		x->fetch->exe = p->exe;
		*(what == WIRE_ASK_CPU ? &ps->busy_cpu : &ps->busy) += 1;
		return true;
	}
	free(x->fetch);
	x->fetch = NULL;
	snprintf(x->reason, sizeof(x->reason), "%.90s", e.what);
	return false;
}

static void search(struct goprogs *ps, struct goprog *p)
{
	if (ps->now_ns < p->search_ns || ps->busy >= AT_ONCE)
		return;
	p->pause_ns = p->pause_ns ?
			      p->pause_ns * 2 < SEARCH_MAX_NS ? p->pause_ns * 2 : SEARCH_MAX_NS :
			      SEARCH_NS;
	p->search_ns = ps->now_ns + p->pause_ns;
	if (!search_next(p, ps->host->maps) || ask(ps, p, WIRE_ASK_INDEX))
		return;
	goprog_refuse(p, p->profiles[WIRE_ASK_INDEX].reason);
	if (*p->at.path)
		search_failed(p);
}

/* ---- what came ---- */

static void why_text(const struct fetch *f, char out[96])
{
	static const char *const WHY[] = {
		[WIRE_NO_HTTP] = "the listener there does not speak HTTP",
		[WIRE_TLS] =
			"it requires TLS there: serve the page on loopback or a Unix socket without it",
		[WIRE_NO_INDEX] = "there is another page at /debug/pprof/",
		[WIRE_TOO_LARGE] = "its answer is too large",
		[WIRE_CUT] = "its answer was cut off",
		[WIRE_SILENT] = "it did not answer in time",
		[WIRE_NO_PROFILE] = "it sent another kind of data than this profile",
		[WIRE_BROKEN] = "its profile could not be parsed",
	};
	uint32_t why = f->failed.why, detail = f->failed.detail;

	if (why == WIRE_NO_CONNECTION)
		snprintf(out, 96, "no connection: %s", strerror((int)(detail & 0xffff)));
	else if (why == WIRE_NO_NETWORK)
		snprintf(out, 96, "it is in another network namespace, which cannot be entered: %s",
			 strerror((int)(detail & 0xffff)));
	else if (why == WIRE_STATUS && f->ask == WIRE_ASK_CPU && detail == 500)
		snprintf(out, 96, "another client is taking its CPU profile");
	else if (why == WIRE_STATUS && (detail == 401 || detail == 403))
		snprintf(
			out, 96,
			"it requires authentication (status %u): serve the page on loopback or a Unix socket without it",
			detail);
	else if (why == WIRE_STATUS)
		snprintf(out, 96, "it answered with status %u%s", detail % 1000,
			 detail / 100 == 3 ? ", a redirect, which is not followed" : "");
	else
		snprintf(out, 96, "%s",
			 why < ARRAY_SIZE(WHY) && WHY[why] ? WHY[why] : WHY[WIRE_BROKEN]);
}

/* A program of an old Go is stopped while they are listed. */
static void goroutines_limit(struct goprog *p, uint64_t n)
{
	struct profile *x = &p->profiles[WIRE_ASK_GOROUTINE];

	if (n <= GOROUTINES_MAX)
		return;
	snprintf(x->reason, sizeof(x->reason), "it has more than %d", GOROUTINES_MAX);
	x->next_ns = INT64_MAX;
}

static uint64_t sum_of(const struct fetch *f)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < f->n; i++)
		n += f->stacks[i].values[0];
	return n;
}

static void page_came(struct goprogs *ps, struct goprog *p, const struct fetch *f)
{
	char why[96];

	if (f->state == FETCH_DONE) {
		p->answers = true;
		p->reason[0] = '\0';
		p->pause_ns = 0;
		ps->host->processes++;
		for (int i = WIRE_ASK_CPU; i < WIRE_ASKS; i++)
			p->profiles[i].next_ns = ps->now_ns;
		goroutines_limit(p, f->goroutines);
		return;
	}
	search_failed(p);
	why_text(f, why);
	if (*p->at.path)
		snprintf(p->reason, sizeof(p->reason), "%.60s: %.60s", p->at.path, why);
	else
		snprintf(p->reason, sizeof(p->reason), "port %u: %s", p->at.port, why);
	p->search_ns = ps->now_ns; /* at its next socket */
	p->pause_ns = 0;
}

static void lost(struct goprog *p)
{
	p->answers = false;
	goprog_refuse(p, "it no longer listens at that address");
	p->search_ns = 0;
}

static void profile_came(struct goprogs *ps, struct goprog *p, struct profile *x,
			 const struct fetch *f)
{
	struct hostmaps_process *hp = process_of(ps, p);
	int64_t pause = ps->o.interval_ns;

	if (f->state == FETCH_FAILED) {
		why_text(f, x->reason);
		x->fails += x->fails < FAILS_MAX;
		pause <<= x->fails;
		if (f->failed.why == WIRE_NO_CONNECTION && !goprog_holds(p))
			lost(p);
	} else if (!f->has_mapping) {
		snprintf(x->reason, sizeof(x->reason), "another program answers there");
		x->fails += x->fails < FAILS_MAX;
		pause <<= x->fails;
	} else if (hp && goprog_holds(p)) {
		x->reason[0] = '\0';
		x->fails = 0;
		tell_answer(p, x, f, ps->host, hp);
	} else {
		lost(p);
	}
	x->next_ns = f->asked_ns + pause;
	if (f->ask == WIRE_ASK_GOROUTINE && f->state == FETCH_DONE)
		goroutines_limit(p, sum_of(f));
}

static void came(struct goprogs *ps, struct goprog *p, struct profile *x)
{
	struct fetch *f = x->fetch;

	x->fetch = NULL;
	*(f->ask == WIRE_ASK_CPU ? &ps->busy_cpu : &ps->busy) -= 1;
	if (f->ask == WIRE_ASK_INDEX)
		page_came(ps, p, f);
	else
		profile_came(ps, p, x, f);
	fetch_release(f);
	free(f);
}

static void read_answers(struct goprogs *ps, struct goprog *p)
{
	for (int i = 0; i < WIRE_ASKS; i++) {
		struct profile *x = &p->profiles[i];

		if (!x->fetch)
			continue;
		fetch_read(x->fetch, ps->now_ns);
		if (x->fetch->state != FETCH_ON)
			came(ps, p, x);
	}
}

/* ---- when ---- */

/* One request at a time to a program, apart from its CPU profile: a program that does not answer
 * delays only itself. */
static bool has_room(const struct goprogs *ps, const struct goprog *p, enum wire_ask what)
{
	if (what == WIRE_ASK_CPU)
		return ps->busy_cpu < CPU_AT_ONCE;
	for (int i = 0; i < WIRE_ASKS; i++)
		if (i != WIRE_ASK_CPU && p->profiles[i].fetch)
			return false;
	return ps->busy < AT_ONCE;
}

static void ask_due(struct goprogs *ps, struct goprog *p)
{
	for (int i = WIRE_ASK_CPU; i < WIRE_ASKS; i++) {
		struct profile *x = &p->profiles[i];

		if (!ps->o.asks[i] || x->fetch || x->next_ns > ps->now_ns ||
		    !has_room(ps, p, (enum wire_ask)i))
			continue;
		if (i == WIRE_ASK_CPU && (ps->last || !goprog_named(p, ps->now_ns)))
			continue;
		if (ask(ps, p, (enum wire_ask)i))
			continue;
		x->next_ns = ps->now_ns + ps->o.interval_ns;
		if (*p->at.path && !goprog_holds(p))
			lost(p);
	}
}

static void turn(struct goprogs *ps, struct goprog *p)
{
	struct hostmaps_process *hp;

	read_answers(ps, p);
	if (!p->in_scope || p->found < GOPROG_NO_PPROF)
		return;
	if (p->found == GOPROG_OFFERS && !p->answers && !p->profiles[WIRE_ASK_INDEX].fetch &&
	    !ps->last)
		search(ps, p);
	if (p->answers)
		ask_due(ps, p);
	hp = process_of(ps, p);
	if (hp)
		tell_state(p, ps->host, hp);
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* When something of it is due. */
static int64_t next_of(const struct goprogs *ps, const struct goprog *p)
{
	int64_t next = INT64_MAX;

	for (int i = 0; i < WIRE_ASKS; i++) {
		const struct profile *x = &p->profiles[i];
		int64_t end = x->fetch && i == WIRE_ASK_CPU ?
				      x->fetch->asked_ns + ps->o.cpu_s * NSEC_PER_SEC :
				      0;

		if (x->fetch)
			next = sooner(next, end > ps->now_ns ? end : ps->now_ns + SOON_NS);
		else if (p->answers && ps->o.asks[i])
			next = sooner(next, x->next_ns);
	}
	return p->in_scope && p->found == GOPROG_OFFERS && !p->answers ?
		       sooner(next, p->search_ns) :
		       next;
}

static int64_t next_turn(const struct goprogs *ps)
{
	int64_t next = INT64_MAX;

	for (const struct goprog *p = ps->all; p; p = p->hh.next)
		next = sooner(next, next_of(ps, p));
	if (next == INT64_MAX)
		return 0;
	return next < ps->now_ns + SOON_NS ? ps->now_ns + SOON_NS : next;
}

void goprogs_poll(struct goprogs *ps, struct family_host *h, int64_t now_ns)
{
	ps->host = h;
	ps->now_ns = now_ns;
	look(ps);
	for (struct goprog *p = ps->all; p && clock_boot_ns() - now_ns < READ_NS; p = p->hh.next)
		turn(ps, p);
	h->next_ns = next_turn(ps);
}

/* ---- the end ---- */

static void last_questions(struct goprog *p)
{
	struct profile *cpu = &p->profiles[WIRE_ASK_CPU];

	if (cpu->fetch)
		fetch_hurry(cpu->fetch);
	for (int i = WIRE_ASK_HEAP; p->answers && i < WIRE_ASKS; i++)
		p->profiles[i].next_ns = p->profiles[i].reason[0] ? INT64_MAX : 0;
	p->lines_until_ns = 0;
}

void goprogs_finish(struct goprogs *ps, struct family_host *h, int64_t until_ns)
{
	struct goprog *p;

	ps->host = h;
	ps->last = true;
	for (p = ps->all; p; p = p->hh.next)
		last_questions(p);
	while ((ps->now_ns = clock_boot_ns()) < until_ns) {
		bool waits = false;

		for (p = ps->all; p; p = p->hh.next) {
			turn(ps, p);
			for (int i = 0; i < WIRE_ASKS; i++)
				waits |= p->profiles[i].fetch ||
					 (p->answers && ps->o.asks[i] && i > WIRE_ASK_CPU &&
					  p->profiles[i].next_ns <= ps->now_ns);
		}
		if (!waits)
			return;
		poll(NULL, 0, 5);
	}
}
