/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-net: connections, their traffic and their quality. This file connects the common loop of
 * loaders/lib/bpf with the family's parts: ends come through a ring (hooks), are joined and wait
 * for their process (conns), and become sums and rows (store_rows); what is open is read from time
 * to time; netns has the kernel's own counts.
 */
#include <netinet/tcp.h>
#include <stdlib.h>

#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/net/store_rows.h"
#include "loaders/net/conns.h"
#include "loaders/net/hooks.h"
#include "loaders/net/netns.h"
#include "loaders/net/others.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define QUICK_NS (NSEC_PER_SEC / 20)
#define QUIET_NS (NSEC_PER_SEC / 4)
/* Between two readings of what is open, where buckets are not shorter: */
/* there is a connection that no reading has seen; twice that with many */
#define READ_NEW_NS   (2 * NSEC_PER_SEC)
#define READ_MANY     2000
#define READ_MOVED_NS (5 * NSEC_PER_SEC) /* something moved at the last one */
#define READ_STILL_NS (10 * NSEC_PER_SEC)
/* so long one waits for its process; then it is the listener's */
#define OWNER_NS        (3 * NSEC_PER_SEC)
#define SWEEP_NS        (1 * NSEC_PER_SEC)  /* between two readings of descriptors, at least */
#define OTHERS_NS       (30 * NSEC_PER_SEC) /* between two looks at Unix and UDP sockets */
#define OTHERS_QUICK_NS (5 * NSEC_PER_SEC)  /* the same where buckets are of a second */
/* their share of the time is 1 in this; but if that is longer than SWEEP_MOST_NS: */
#define SWEEP_PART      1000
#define SWEEP_MOST_NS   (2 * NSEC_PER_SEC)
#define SWEEP_PART_MOST 50

struct net {
	struct hooks hooks;
	struct conns conns;
	struct store_rows rows;
	struct netnses netns;
	struct others others;
	struct talks talks;
	bool still;     /* nothing moved at the last reading */
	bool full;      /* there was no room for a socket */
	uint64_t begun; /* connections and listeners, by the programs' tally, up to the last reading
			 */
	int64_t begun_ns; /* when that was; one that was begun before may count as one begun since,
			     not the other way round */
	uint64_t short_ones; /* of those begun since, ended by now */
	bool unsettled; /* one was left for the next reading, because its process is not known yet
			 */
	struct family_host *h; /* of the reading that goes on */
	uint32_t step;         /* how much less than all it does: 0 all */
	bool over;             /* the last reading: nothing is waited for */
	int64_t known_ns;      /* sonde-maps has reported all events up to then */
	int64_t talk_ns, read_ns, others_ns, sweep_ns, sweep_took_ns, netns_ns;
};

/* ---- records ---- */

/* Counts of the kernel in this namespace, of any process. */
static void counted(struct net *n, const struct conn *c, const struct net_record *r)
{
	struct netnses *ns = &n->netns;
	bool was_open = r->state == TCP_ESTABLISHED || r->state == TCP_CLOSE_WAIT;

	if (r->what != NET_END || c->side == NET_SIDE_LISTENER)
		return;
	netnses_seen(ns, r->netns, NETNS_SEEN_FAILS,
		     r->state == TCP_SYN_SENT || r->state == TCP_SYN_RECV);
	netnses_seen(ns, r->netns, NETNS_SEEN_RESETS, was_open);
}

static void take(void *ctx, const void *record, size_t size)
{
	struct net *n = ctx;
	const struct net_record *r = record;
	struct conn *c;

	(void)size;
	if (r->what == NET_OTHER) {
		others_add(&n->others, record);
		return;
	}
	n->short_ones += r->what == NET_END && (int64_t)r->begin_ns > n->begun_ns &&
			 !(r->flags & NET_F_NO_ENTRY);
	c = conns_take(&n->conns, r);
	if (c && r->what == NET_END)
		counted(n, c, r);
}

/* The part of a connection's counts that is not stored yet, before it is stored: the kernel's
 * counters are compared with that. */
static void told(struct net *n, const struct conn *c)
{
	bool client = c->r.side == NET_SIDE_CLIENT, server = c->r.side == NET_SIDE_SERVER,
	     standing = c->r.flags & NET_F_STANDING;
	uint32_t retrans = record_retrans(&c->r);

	if (!standing && !c->told.attempt)
		netnses_seen(&n->netns, c->r.netns,
			     client ? NETNS_SEEN_ATTEMPTS : NETNS_SEEN_ACCEPTED, client || server);
	if (!standing || c->told.at_ns)
		netnses_seen(&n->netns, c->r.netns, NETNS_SEEN_RETRANS, retrans - c->told.retrans);
}

static void ends_store(struct net *n, struct family_host *h, int64_t now_ns, bool all)
{
	struct conn *c;

	while ((c = conns_next(&n->conns, now_ns, (int64_t)hostmaps_watermark(h->maps), all))) {
		if (c->side != NET_SIDE_LISTENER) {
			told(n, c);
			store_rows_conn(&n->rows, h, &n->conns, c, (int64_t)c->r.time_ns);
		} else {
			store_rows_listener(&n->rows, h, c, now_ns);
		}
		conns_forget(&n->conns, c);
	}
}

/* Has sonde-maps reported the processes that began up to then? */
static bool is_told(const struct net *n, const struct net_owner *o)
{
	return (int64_t)o->start_ns <= n->known_ns;
}

/* ---- readings ---- */

/* One that is not in the map any more, and whose end did not come: the ring was full. */
static void vanished(struct net *n, struct family_host *h, struct conn *c)
{
	if (n->conns.reading - c->reading < 2)
		return;
	if (c->side != NET_SIDE_LISTENER) {
		c->r.what = NET_END;
		c->r.state = TCP_LAST_ACK;
		c->r.error = 0;
		told(n, c);
		c->ended = true;
		store_rows_conn(&n->rows, h, &n->conns, c, (int64_t)c->r.time_ns);
		c->ended = false;
	}
	conns_forget(&n->conns, c);
}

/* So is its other end, and sonde-maps has reported both processes. */
static bool is_owned(const struct net *n, const struct conn *c)
{
	return c->r.how != NET_OWNER_NONE && is_told(n, &c->r.owner) &&
	       (!c->mate || (c->mate->r.how != NET_OWNER_NONE && is_told(n, &c->mate->r.owner)));
}

static void open_store(struct net *n, struct family_host *h, int64_t now_ns)
{
	n->unsettled = false;
	CONNS_EACH(&n->conns, c, next)
	{
		if (c->ended)
			continue;
		if (c->reading != n->conns.reading) {
			vanished(n, h, c);
		} else if (c->side == NET_SIDE_LISTENER) {
			netnses_seen(&n->netns, c->r.netns, NETNS_SEEN_RETRANS,
				     c->r.repeated - (c->told.at_ns ? c->told.retrans : 0));
			store_rows_listener(&n->rows, h, c, now_ns);
		} else if (!is_owned(n, c) && now_ns - (int64_t)c->r.begin_ns < OWNER_NS) {
			n->unsettled = true;
		} else {
			told(n, c);
			store_rows_conn(&n->rows, h, &n->conns, c, now_ns);
		}
	}
}

static int64_t sweep_every(const struct net *n)
{
	int64_t every = n->sweep_took_ns * SWEEP_PART;

	if (every > SWEEP_MOST_NS)
		every = n->sweep_took_ns * SWEEP_PART_MOST > SWEEP_MOST_NS ?
				n->sweep_took_ns * SWEEP_PART_MOST :
				SWEEP_MOST_NS;
	return every > SWEEP_NS ? every : SWEEP_NS;
}

/* Descriptors of all processes; false: they were read not long ago. */
static bool sweep(struct net *n, int64_t now_ns)
{
	int64_t begin = clock_cpu_ns();

	if (n->sweep_ns && now_ns - n->sweep_ns < sweep_every(n))
		return false;
	others_clear(&n->others);
	if (hooks_sweep(&n->hooks))
		log_debug("net: descriptors cannot be read");
	n->sweep_ns = now_ns;
	n->sweep_took_ns = clock_cpu_ns() - begin;
	return true;
}

static bool unowned(const struct net *n)
{
	CONNS_EACH(&n->conns, c, next)
	if (!c->ended && c->r.how == NET_OWNER_NONE && c->side != NET_SIDE_LISTENER)
		return true;
	return false;
}

static void other_put(void *ctx, const struct others_edge *x)
{
	struct net *n = ctx;

	/* else the next time */
	if (is_told(n, &x->own->r.owner) && (!x->mate || is_told(n, &x->mate->r.owner)))
		store_rows_other(&n->rows, n->h, x, talks_quic(hooks_talks(&n->hooks), x->own),
				 n->read_ns);
}

static void waiting_put(void *ctx, const struct others_edge *x)
{
	struct net *n = ctx;

	if (is_told(n, &x->own->r.owner))
		store_rows_waiting(&n->rows, n->h, x, n->read_ns);
}

/* Unix and UDP sockets, from the descriptors of not long ago. */
static void others_store(struct net *n, struct family_host *h, int64_t now_ns)
{
	int64_t every = h->bucket_s > 1 ? OTHERS_NS : OTHERS_QUICK_NS;

	if (n->others_ns && now_ns - n->others_ns < every)
		return;
	if (now_ns - n->sweep_ns > every / 2)
		sweep(n, now_ns);
	n->others_ns = n->read_ns = now_ns;
	n->h = h;
	others_each(&n->others, false, other_put, n);
	others_each(&n->others, true, waiting_put, n);
}

static uint64_t begun(const struct net *n)
{
	struct net_tally t;

	hooks_tally(&n->hooks, &t);
	return t.opens + t.accepted + t.listens + t.talks;
}

static void talk_put(void *ctx, const struct talks_sum *x)
{
	struct net *n = ctx;

	store_rows_talk(&n->rows, n->h, x, &n->others, n->talk_ns);
}

static void talks_store(struct net *n, struct family_host *h, int64_t now_ns)
{
	n->h = h;
	n->talk_ns = now_ns;
	talks_read(&n->talks, hooks_talks(&n->hooks), n->known_ns, talk_put, n);
}

/* Logged once: connections without an entry are only recorded when they close. */
static void room_watch(struct net *n)
{
	struct net_tally t;

	if (n->full)
		return;
	hooks_tally(&n->hooks, &t);
	n->full = t.no_room + t.talks_lost > 0;
	if (t.talks_lost)
		log_warn("net: too many Unix and UDP sockets; bytes of some are not counted");
	if (t.no_room)
		log_warn("net: too many open sockets; some are recorded only when they close");
}

static void reading(struct net *n, struct family_host *h, int64_t now_ns)
{
	n->known_ns = n->over ? INT64_MAX : (int64_t)hostmaps_watermark(h->maps);
	n->begun = begun(n);
	n->begun_ns = clock_boot_ns();
	n->short_ones = 0;
	n->conns.reading++;
	hooks_read(&n->hooks);
	if (unowned(n) && sweep(n, now_ns))
		hooks_read(&n->hooks);
	hooks_ends(&n->hooks);
	ends_store(n, h, now_ns, false);
	store_rows_reading(&n->rows, h, now_ns);
	others_store(n, h, now_ns);
	talks_store(n, h, now_ns);
	open_store(n, h, now_ns);
	if (now_ns - n->netns_ns >= (int64_t)h->bucket_s * NSEC_PER_SEC - QUIET_NS) {
		netnses_read(&n->netns, h, now_ns);
		n->netns_ns = now_ns;
	}
	n->still = !store_rows_flush(&n->rows, h);
	room_watch(n);
	h->processes = n->conns.n > h->processes ? n->conns.n : h->processes;
	n->read_ns = now_ns;
}

static bool reading_due(const struct net *n, const struct family_host *h, int64_t now_ns)
{
	int64_t every = n->still ? READ_STILL_NS : READ_MOVED_NS;

	if (n->unsettled || begun(n) > n->begun + n->short_ones)
		every = n->conns.n > READ_MANY ? 2 * READ_NEW_NS : READ_NEW_NS;
	every <<= n->step;
	if ((int64_t)h->bucket_s * NSEC_PER_SEC < every)
		every = (int64_t)h->bucket_s * NSEC_PER_SEC;

	return !n->read_ns || now_ns - n->read_ns >= every - QUIET_NS;
}

static void net_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct net *n = state;
	int ends;

	if (!hostmaps_seeded(h->maps)) {
		h->next_ns = now_ns + QUICK_NS;
		return;
	}
	ends = hooks_ends(&n->hooks);
	ends_store(n, h, now_ns, false);
	if (reading_due(n, h, now_ns))
		reading(n, h, now_ns);
	if (ends || n->conns.n_waiting) /* else once a second, with the loop */
		h->next_ns = now_ns + (ends > 1000 ? QUICK_NS : QUIET_NS);
}

static void net_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	struct net *n = state;

	hostmaps_await(
		h->maps,
		clock_boot_ns() +
			patience_ns /
				2); /* before the detach: what ends after that is not recorded */
	hooks_sweep(&n->hooks);
	hooks_detach(&n->hooks);
	n->over = true;
	n->netns_ns = n->others_ns = 0;
	n->conns.reading++;
	hooks_read(&n->hooks);
	hooks_ends(&n->hooks);
	ends_store(n, h, clock_boot_ns(), true);
	reading(n, h, clock_boot_ns());
}

/* ---- the family ---- */

static int net_open(const struct family_config *c, void **state, struct bpf_object **obj,
		    struct err *e)
{
	struct net *n = mem_alloc(sizeof(*n));
	int err = hooks_open(&n->hooks, c, take, n, e);

	if (err) {
		free(n);
		return err;
	}
	*state = n;
	*obj = hooks_object(&n->hooks);
	return 0;
}

static int net_wake_fd(void *state)
{
	struct net *n = state;

	return hooks_wake_fd(&n->hooks);
}

static void net_tally(void *state, struct family_tally *out)
{
	struct net *n = state;
	struct net_tally t;

	hooks_tally(&n->hooks, &t);
	*out = (struct family_tally){.seen = t.lost + t.no_room + t.talks_lost,
				     .lost = t.lost,
				     .no_room = t.no_room + t.talks_lost};
}

static int net_attach(void *state, struct err *e)
{
	struct net *n = state;
	int err = hooks_attach(&n->hooks, e);

	if (!err)
		sweep(n, clock_boot_ns());
	return err;
}

static const char *net_clock(void *state)
{
	(void)state;
	return "the states of sockets";
}

static void net_detach(void *state)
{
	struct net *n = state;

	hooks_detach(&n->hooks);
}

static void net_reduce(void *state, uint32_t step)
{
	struct net *n = state;

	n->step = step;
	hooks_reduce(&n->hooks, step);
}

static void net_close(void *state)
{
	struct net *n = state;

	hooks_close(&n->hooks);
	conns_release(&n->conns);
	store_rows_release(&n->rows);
	netnses_release(&n->netns);
	others_release(&n->others);
	talks_release(&n->talks);
	free(n);
}

static void net_check(struct check *c, uint32_t freq)
{
	(void)freq;
	if (hooks_tells_talks())
		check_add(c, "messages", CHECK_OK, NULL,
			  "bytes on Unix and UDP sockets are counted as they are sent");
	else
		check_add(
			c, "messages", CHECK_WARN, "kernel 6.3 or later (sock_send_length)",
			"bytes on Unix and UDP sockets are not counted; only those that are open at a reading are recorded");
}

static const struct family net_family = {
	.name = "net",
	.summary = "record connections: their ends, traffic, quality and failures",
	.open = net_open,
	.attach = net_attach,
	.no_mappings = true,
	.poll = net_poll,
	.wake_fd = net_wake_fd,
	.last_read = net_last_read,
	.clock = net_clock,
	.tally = net_tally,
	.reduce = net_reduce,
	.detach = net_detach,
	.close = net_close,
	.check = net_check,
};

int main(int argc, char **argv)
{
	return family_main(&net_family, argc, argv);
}
