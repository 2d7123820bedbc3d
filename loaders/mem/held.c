/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/held.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/mem/amount.h"
#include "loaders/mem/pages.h"
#include "loaders/mem/replaced.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer.h"

#define PAGE      4096ull
#define TURN_NS   (NSEC_PER_SEC / 50) /* that reading takes of the loop at once */
#define FIRST_NS  (NSEC_PER_SEC / 2)  /* from a process's first sample to its first reading */
#define CHANGED   16                  /* of its memory, one part in this many */
#define MOVES     32                  /* that are remembered, of one process */
#define PLACED_NS (2 * NSEC_PER_SEC)  /* from a huge page's allocation until it is in place */
#define MOVER_NS  (5 * NSEC_PER_SEC)  /* for so long after a move the next one is expected */

#define BEFORE    "[from before the recording]"
#define INHERITED "[from its parent]"
#define UNSAMPLED "[without a sample]"
#define HUGE      "[huge pages without a sample]"

#define LEAST_UNSEEN (8ull << 20)        /* of a process that has no samples */
#define SWEEP_NS     (10 * NSEC_PER_SEC) /* between looks for such ones, at least */
#define LEAST_ASKED  (16ull << 20)       /* without a sample: then what it is is asked */
#define HUGE_MORE    4.0                 /* times what samples of huge pages represent, at most */
#define ASKS         4                   /* questions of a process without samples of huge pages */
#define ASKED_NTH    16                  /* and then at each so-many-th reading */
#define MOST_ASKED   (4ull << 30)        /* of a process, as the kernel walks through it all */

struct key {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

struct move {                           /* of a piece of memory to another address */
	uint64_t time_ns, from, to, by; /* pages [from, to), plus `by` (modulo 2^64) */
};

struct site { /* a stack of one process; number 0 has no frames: all that found no room */
	uint64_t key;
	struct stack_event *stack; /* and its frames; NULL: number 0 */
	size_t size;
	uint32_t gauge, epoch; /* the store's series, and of which ids */
	uint64_t now;          /* small pages, at this reading */
	uint64_t huge;         /* of them, those of huge pages */
	uint64_t most;         /* of them, what the largest sample represents; 0: all are exact */
	uint64_t huge_most;    /* of `huge`, the same */
};

struct process {
	struct key key;
	struct held_page *pages;
	size_t n_pages, cap_pages;
	struct site *sites;
	size_t n_sites, cap_sites;
	struct idmap by_key;  /* of a stack -> its number */
	struct site before;   /* BEFORE, or INHERITED: what only becomes less */
	struct site rest;     /* UNSAMPLED */
	struct site huge;     /* HUGE */
	uint64_t huge_pages;  /* small pages that samples of huge ones represent, at this reading */
	uint64_t n_huge;      /* those samples */
	uint64_t huge_known;  /* bytes of huge pages that the kernel said at the last question */
	uint32_t huge_asks;   /* readings at which that was of interest */
	bool huge_drawn;      /* samples that are drawn are among these */
	uint64_t most_before; /* bytes; UINT64_MAX: not read yet */
	struct move moves[MOVES]; /* number i at i % MOVES */
	uint32_t n_moves;
	uint64_t read_ns;  /* of the last full reading: what was known of it then */
	struct idmap told; /* gauge -> bytes that the store has, in `segment` */
	bool fresh;        /* samples since the last reading */
	uint64_t seen_ns;  /* boot clock, of its last sample; 0: none */
	bool dying;
	bool inherits;    /* it began within the recording, by a fork without an exec */
	uint64_t bytes;   /* its memory at the last full reading */
	uint64_t segment; /* the store's, at the last reading */
	int64_t next_ns;
	UT_hash_handle hh;
};

struct held {
	struct process *all;
	int64_t interval_ns;
	size_t most_pages; /* of a process */
	size_t stack_bytes;
	uint64_t random;
	int64_t begun_ns; /* boot clock */
	int64_t sweep_ns; /* when processes without samples are looked for */
	bool no_huge;     /* the kernel has made none since the recording began */
};

/* ---- processes and stacks ---- */

struct held *held_new(int64_t interval_ns, size_t most_pages)
{
	struct held *x = mem_alloc(sizeof(*x));

	x->interval_ns = interval_ns;
	x->most_pages = most_pages;
	x->random = HASH_SEED;
	x->begun_ns = clock_boot_ns();
	return x;
}

void held_huge(struct held *x, bool may_be)
{
	x->no_huge = !may_be;
}

static void site_release(struct held *x, struct site *s)
{
	if (s->stack)
		x->stack_bytes -= s->size;
	free(s->stack);
	s->stack = NULL;
}

static void process_drop(struct held *x, struct process *p)
{
	for (size_t i = 0; i < p->n_sites; i++)
		site_release(x, &p->sites[i]);
	idmap_release(&p->by_key);
	idmap_release(&p->told);
	free(p->sites);
	free(p->pages);
	HASH_DEL(x->all, p);
	free(p);
}

void held_free(struct held *x)
{
	struct process *p, *next;

	if (!x)
		return;
	HASH_ITER (hh, x->all, p, next)
		process_drop(x, p);
	free(x);
}

static struct process *process_find(const struct held *x, const struct stack_event *ev)
{
	struct key key = {.start_ns = ev->start_ns, .tgid = ev->tgid, .exec_id = ev->exec_id};
	struct process *p;

	HASH_FIND(hh, x->all, &key, sizeof(key), p);
	return p;
}

static struct process *process_of(struct held *x, const struct stack_event *ev)
{
	struct key key = {.start_ns = ev->start_ns, .tgid = ev->tgid, .exec_id = ev->exec_id};
	struct process *p = process_find(x, ev);

	if (p)
		return p;
	p = mem_alloc(sizeof(*p));
	p->key = key;
	p->next_ns = clock_boot_ns() + FIRST_NS;
	p->most_before = (int64_t)key.start_ns < x->begun_ns ? UINT64_MAX : 0;
	mem_grow(p->sites, p->n_sites, p->cap_sites);
	p->sites[p->n_sites++] = (struct site){0};
	HASH_ADD(hh, x->all, key, sizeof(p->key), p);
	return p;
}

static uint32_t site_of(struct held *x, struct process *p, const struct stack_event *ev,
			size_t size)
{
	uint64_t key = hash_bytes(hash_u64(HASH_SEED, (uint64_t)ev->n_kernel << 16 | ev->n_user),
				  ev + 1, size - sizeof(*ev)),
		 at;
	struct site *s;

	if (idmap_get(&p->by_key, key, &at))
		return (uint32_t)at;
	if (x->stack_bytes + size > HELD_BYTES)
		return 0;
	mem_grow(p->sites, p->n_sites, p->cap_sites);
	s = &p->sites[p->n_sites];
	*s = (struct site){.key = key, .size = size, .stack = mem_alloc(size)};
	memcpy(s->stack, ev, size);
	x->stack_bytes += size;
	idmap_set(&p->by_key, key, p->n_sites);
	return (uint32_t)p->n_sites++;
}

/* ---- samples ---- */

/* Every second page, by chance: the others represent twice as many. */
static void pages_thin(struct held *x, struct process *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_pages; i++) {
		x->random = hash_u64(HASH_SEED, x->random);
		if (x->random & 1 || p->pages[i].pages > UINT32_MAX / 2)
			continue;
		p->pages[n] = p->pages[i];
		p->pages[n].exact = false;
		p->pages[n++].pages *= 2;
	}
	p->n_pages = n;
}

/* Has it moved memory shortly before this time? Then what is not at its address may be at another.
 */
static bool is_mover(const struct process *p, uint64_t time_ns)
{
	return p && p->n_moves && time_ns < p->moves[(p->n_moves - 1) % MOVES].time_ns + MOVER_NS;
}

/* Where the page is now that was here at this time. */
static uint64_t page_followed(const struct process *p, uint64_t page, uint64_t time_ns)
{
	uint32_t n = p ? p->n_moves : 0;

	for (uint32_t i = n > MOVES ? n - MOVES : 0; i < n; i++) {
		const struct move *m = &p->moves[i % MOVES];

		if (m->time_ns > time_ns && page >= m->from && page < m->to)
			page += m->by;
	}
	return page;
}

static void page_keep(struct held *x, const struct stack_event *ev, size_t size,
		      const struct held_page *page)
{
	struct process *p = process_of(x, ev);

	if (p->n_pages >= x->most_pages)
		pages_thin(x, p);
	mem_grow(p->pages, p->n_pages, p->cap_pages);
	p->pages[p->n_pages] = *page;
	p->pages[p->n_pages++].site = site_of(x, p, ev, size);
	p->fresh = true;
	p->seen_ns = ev->time_ns;
}

/* What the kernel says of the page now. */
static uint64_t page_look(const struct stack_event *ev, uint64_t page)
{
	int fd = MEM_MEMORY(ev->tag) == MEM_SHARED ? -1 : pages_open(ev->tgid);
	uint64_t said = fd < 0 ? 0 : pages_ask(fd, page);

	if (fd >= 0)
		close(fd);
	return said;
}

/* The page is gone before it can be asked for: its process is being killed, or moves its memory.
 * It counts until the next reading. */
static bool is_last(const struct process *p, const struct stack_event *ev)
{
	const enum mem_memory of = MEM_MEMORY(ev->tag);

	return p && ((p->dying && of == MEM_ANON) ||
		     (is_mover(p, ev->time_ns) && (of == MEM_ANON || of == MEM_UNKNOWN)));
}

/* How many pages its faults brought, each. Of huge pages that are sampled apart it is known, unless
 * the kernel had to do with a small one after all. */
static uint32_t size_of(const struct stack_event *ev, uint64_t said)
{
	if (MEM_IS_HUGE(ev->tag) && !(pages_state(said) == PAGES_OWN && pages_frame(said)))
		return PAGES_HUGE;
	return pages_size(said);
}

static void sample_store(struct family_host *h, const struct stack_event *ev, uint64_t pages,
			 uint32_t size, bool apart, struct naming_result *named)
{
	const bool huge = MEM_IS_HUGE(ev->tag), twice = apart && !huge && size == PAGES_HUGE;
	const struct store_amount a = {.n = huge ? 0 : MEM_PERIOD(ev->tag),
				       .value = twice ? 0 : pages * PAGE};

	amount_store(h, ev, (const uint64_t *)(ev + 1), NULL, STORE_KIND_PAGEFAULTS, &a, 0, a.n,
		     named);
}

static void sample_take(struct held *x, struct family_host *h, const struct stack_event *ev,
			size_t bytes, bool apart, struct naming_result *named)
{
	const struct process *p = process_find(x, ev);
	const uint64_t at = page_followed(p, MEM_PAGE(ev->tag), ev->time_ns),
		       said = page_look(ev, at);
	const uint32_t size = size_of(ev, said);
	const bool huge = MEM_IS_HUGE(ev->tag), gone = pages_state(said) == PAGES_GONE,
		   last = gone && (huge || is_last(p, ev));
	/* a huge page is reported when it is allocated, and may not be in place yet */
	const uint64_t pages = (uint64_t)MEM_PERIOD(ev->tag) * (gone && huge ? 1 : size);

	sample_store(h, ev, (uint64_t)MEM_PERIOD(ev->tag) * size, size, apart, named);
	if (apart && !huge && size == PAGES_HUGE)
		return;
	if ((pages_state(said) == PAGES_OWN || last) && !named->excluded)
		page_keep(x, ev, bytes,
			  &(const struct held_page){
				  .page = at,
				  .pages = (uint32_t)(pages < UINT32_MAX ? pages : UINT32_MAX),
				  .exact = MEM_PERIOD(ev->tag) == 1,
				  .time_ns = ev->time_ns,
				  .unsized = last,
				  .huge = size == PAGES_HUGE,
				  .frame = pages_frame(said)});
}

/* As a stack of the perf event's has it: without what handles the fault. */
static void huge_take(struct held *x, struct family_host *h, const struct stack_event *ev,
		      struct naming_result *named)
{
	const uint64_t *frames = (const uint64_t *)(ev + 1);
	const uint16_t leading = amount_fault(h, ev, frames);
	const size_t n = (size_t)ev->n_kernel + ev->n_user - leading,
		     bytes = sizeof(*ev) + n * sizeof(*frames);
	struct stack_event *trimmed = mem_alloc(bytes);

	*trimmed = *ev;
	trimmed->n_kernel = (uint16_t)(ev->n_kernel - leading);
	memcpy(trimmed + 1, frames + leading, n * sizeof(*frames));
	sample_take(x, h, trimmed, bytes, true, named);
	free(trimmed);
}

void held_sample(struct held *x, struct family_host *h, const struct stack_event *ev, size_t size,
		 bool apart, struct naming_result *named)
{
	if (MEM_IS_HUGE(ev->tag))
		huge_take(x, h, ev, named);
	else
		sample_take(x, h, ev, size, apart, named);
}

/* Before the move; what came later by this address is another one. */
static void pages_move(struct process *p, const struct mem_mapped *m)
{
	const struct move move = {.time_ns = m->ev.time_ns,
				  .from = m->from / PAGE,
				  .to = m->from_end / PAGE,
				  .by = m->start / PAGE - m->from / PAGE};

	for (size_t i = 0; i < p->n_pages; i++) {
		struct held_page *at = &p->pages[i];

		if (at->page < move.from || at->page >= move.to || at->time_ns >= move.time_ns)
			continue;
		at->page += move.by;
		at->moved_ns = move.time_ns;
	}
	p->moves[p->n_moves++ % MOVES] = move;
}

void held_mapped(struct held *x, const struct mem_mapped *m)
{
	struct process *p = m->from_end > m->from ? process_of(x, &m->ev) : process_find(x, &m->ev);
	uint64_t from = m->start / PAGE, to = m->end / PAGE;
	size_t n = 0;

	if (!p)
		return;
	for (size_t i = 0; i < p->n_pages; i++) {
		const struct held_page *at = &p->pages[i];

		if (at->page < from || at->page >= to || at->time_ns >= m->ev.time_ns)
			p->pages[n++] = *at;
	}
	p->fresh |= n != p->n_pages;
	p->n_pages = n;
	if (m->from_end > m->from)
		pages_move(p, m);
}

/* ---- reading ---- */

/* It was touched, or moved, since the last reading: so it may be where the next move says that is
 * not known yet. */
static bool is_moving(const struct process *p, const struct held_page *page, uint64_t now_ns)
{
	return (page->moved_ns > p->read_ns || (page->unsized && page->time_ns > p->read_ns)) &&
	       is_mover(p, now_ns);
}

/* false: it is gone. */
static bool page_stays(const struct process *p, struct held_page *page, uint64_t said,
		       uint64_t now_ns)
{
	uint64_t frame = pages_frame(said), size;
	bool stays = !page->unsized && !page->huge && frame && frame == page->frame;

	if (pages_state(said) == PAGES_GONE && page->unsized && page->huge &&
	    now_ns < page->time_ns + PLACED_NS)
		return true;
	if (pages_state(said) != PAGES_OWN)
		return pages_state(said) == PAGES_GONE && is_moving(p, page, now_ns);
	page->changed = false;
	if (stays) /* a small one becomes a large one's part elsewhere */
		return true;
	size = pages_size(said);
	page->changed = page->frame && frame && frame != page->frame && size == 1;
	page->frame = frame ? frame : page->frame;
	if (page->unsized && page->pages <= UINT32_MAX / size)
		page->pages *= (uint32_t)size;
	page->unsized = false;
	page->huge = size == PAGES_HUGE;
	return true;
}

/* Pages that are gone go. */
static void pages_ask_again(struct process *p, int fd, uint64_t now_ns)
{
	uint64_t *asked = mem_array(p->n_pages + 1, sizeof(*asked));
	uint64_t *said = mem_array(p->n_pages + 1, sizeof(*said));
	size_t n = 0;

	replaced_sort(p->pages, p->n_pages);
	for (size_t i = 0; i < p->n_pages; i++)
		asked[i] = p->pages[i].page;
	pages_ask_all(fd, asked, p->n_pages, said);
	for (size_t i = 0; i < p->n_pages; i++)
		if (page_stays(p, &p->pages[i], said[i], now_ns))
			p->pages[n++] = p->pages[i];
	p->n_pages = n;
	free(asked);
	free(said);
}

/* Added up by their stacks. */
static void pages_sum(struct process *p)
{
	p->n_pages = replaced_drop(p->pages, p->n_pages);
	for (size_t i = 0; i < p->n_sites; i++)
		p->sites[i].now = p->sites[i].most = p->sites[i].huge = p->sites[i].huge_most = 0;
	p->huge_pages = p->n_huge = 0;
	p->huge_drawn = false;
	for (size_t i = 0; i < p->n_pages; i++) {
		const struct held_page *at = &p->pages[i];
		struct site *s = &p->sites[at->site];
		uint64_t *most = at->huge ? &s->huge_most : &s->most;

		s->now += at->pages;
		s->huge += at->huge ? at->pages : 0;
		if (!at->exact && at->pages > *most)
			*most = at->pages;
		p->huge_pages += at->huge ? at->pages : 0;
		p->n_huge += at->huge;
		p->huge_drawn |= at->huge && !at->exact;
	}
}

/* Stacks of which nothing is there go. Number 0 stays. */
static void sites_tidy(struct held *x, struct process *p)
{
	uint32_t *to = mem_array(p->n_sites, sizeof(*to));
	size_t n = 1;

	for (size_t i = 1; i < p->n_sites; i++) {
		struct site *s = &p->sites[i];

		if (!s->now) {
			idmap_del(&p->by_key, s->key);
			site_release(x, s);
			continue;
		}
		to[i] = (uint32_t)n;
		idmap_set(&p->by_key, s->key, n);
		p->sites[n++] = *s;
	}
	p->n_sites = n;
	for (size_t i = 0; i < p->n_pages; i++)
		p->pages[i].site = to[p->pages[i].site];
	free(to);
}

/* ---- what the store has ---- */

struct telling {
	struct family_host *h;
	bool no_huge; /* as held's */
	struct process *p;
	const char *comm;
	int64_t time_ns; /* boot clock */
	bool stale;
};

static struct stack_event event_of(const struct telling *t)
{
	struct stack_event ev = {.time_ns = (uint64_t)t->time_ns,
				 .start_ns = t->p->key.start_ns,
				 .tgid = t->p->key.tgid,
				 .tid = t->p->key.tgid,
				 .exec_id = t->p->key.exec_id,
				 .end = STACK_END_ROOT};

	strncpy(ev.thread, t->comm, sizeof(ev.thread) - 1);
	return ev;
}

/* The process alone, for what has no stack. */
static uint32_t process_id(const struct telling *t)
{
	struct stack_event ev = event_of(t);
	struct naming_result named;

	naming_stack(t->h->naming, &ev, NULL, &named);
	return named.process;
}

/* A stack of one frame that no program has. */
static uint32_t stack_of(struct store_writer *w, const char *name)
{
	uint32_t id = amount_frame(w, name);

	return store_stack(w, &id, 1);
}

static void series_make(const struct telling *t, struct site *s)
{
	struct store_writer *w = t->h->store;
	struct naming_result named = {0};

	if (s->stack) {
		naming_stack(t->h->naming, s->stack, (const uint64_t *)(s->stack + 1), &named);
	} else {
		named.process = process_id(t);
		named.stack = s == &t->p->rest ? stack_of(w, UNSAMPLED) :
			      s == &t->p->huge ? stack_of(w, HUGE) :
			      s == &t->p->before ?
						 stack_of(w, t->p->inherits ? INHERITED : BEFORE) :
						 store_stack(w, NULL, 0);
	}
	s->gauge = store_series(w, t->h->run, named.process, "", 0, named.stack, STORE_KIND_MEM);
	s->epoch = store_epoch(w);
}

static int gauge_put(struct telling *t, uint32_t gauge, uint64_t bytes, uint64_t most)
{
	const struct store_amount a = {.n = bytes / PAGE, .value = bytes, .max = most};
	uint64_t told;
	int err;

	if (idmap_get(&t->p->told, gauge, &told) ? told == bytes : !bytes)
		return 0;
	err = store_amount(t->h->store, gauge, family_utc(t->h, t->time_ns), &a);
	if (err)
		return err;
	t->h->added++;
	idmap_set(&t->p->told, gauge, bytes);
	return 0;
}

/* What one series has: bytes, and those that the largest sample of them represents. */
struct gauge_sums {
	struct idmap bytes, most;
};

/* Small pages that the largest sample of it represents. */
static uint64_t most_of(const struct site *s)
{
	return s->most > s->huge_most ? s->most : s->huge_most;
}

static void sum_add(struct telling *t, struct gauge_sums *sums, struct site *s, double scale)
{
	uint64_t *most;
	bool fresh;

	if (!s->now || scale <= 0)
		return;
	if (s->epoch != store_epoch(t->h->store))
		series_make(t, s);
	*idmap_ref(&sums->bytes, s->gauge, &fresh) += (uint64_t)((double)s->now * scale * PAGE);
	most = idmap_ref(&sums->most, s->gauge, &fresh);
	if (*most < (uint64_t)((double)most_of(s) * scale * PAGE))
		*most = (uint64_t)((double)most_of(s) * scale * PAGE);
}

/* A row without a stack, which is the kernel's count. */
static void row_add(struct telling *t, struct gauge_sums *sums, struct site *s, uint64_t bytes)
{
	s->now = bytes / PAGE;
	sum_add(t, sums, s, 1);
}

/* Stacks whose frames have the same names are one series, and a gauge's amount replaces the one
 * before: their sum is stored. What the store has and is not there any more is stored as nothing.
 */
static void sums_put(struct telling *t, const struct gauge_sums *sums)
{
	const struct idmap *told = &t->p->told;
	const struct idmap *now = &sums->bytes;
	int err = 0;

	for (size_t i = 0; i < told->cap && !err; i++) {
		uint64_t bytes;

		if (told->slots[i].used && !idmap_get(now, told->slots[i].key, &bytes))
			err = gauge_put(t, (uint32_t)told->slots[i].key, 0, 0);
	}
	for (size_t i = 0; i < now->cap && !err; i++) {
		uint64_t most = 0;

		if (!now->slots[i].used)
			continue;
		idmap_get(&sums->most, now->slots[i].key, &most);
		err = gauge_put(t, (uint32_t)now->slots[i].key, now->slots[i].value, most);
	}
	t->stale |= err != 0;
}

static uint64_t pages_all(const struct process *p)
{
	uint64_t all = 0;

	for (size_t i = 0; i < p->n_sites; i++)
		all += p->sites[i].now;
	return all;
}

/* A gauge holds as long as its process reports something: each reading stores what has no stack,
 * nothing most often. */
static void alive_tell(struct telling *t)
{
	struct store_writer *w = t->h->store;
	uint32_t gauge = store_series(w, t->h->run, process_id(t), "", 0, store_stack(w, NULL, 0),
				      STORE_KIND_MEM);
	struct store_amount a = {0};

	idmap_get(&t->p->told, gauge, &a.value);
	a.n = a.value / PAGE;
	if (!store_amount(w, gauge, family_utc(t->h, t->time_ns), &a))
		t->h->added++;
}

/* Of these bytes that no sample explains: how many are huge pages? A fault brings 2 MiB of them, so
 * that there are few faults. (Of a process from before the recording it is not known which are
 * new.)
 */
static uint64_t huge_of(struct process *p, uint64_t rest, uint64_t all)
{
	uint64_t huge, sampled = p->huge_pages * PAGE;

	if (p->dying || p->most_before || rest < LEAST_ASKED || rest < all / CHANGED ||
	    all > MOST_ASKED)
		return 0;
	if (p->huge_pages || p->huge_asks < ASKS || p->huge_asks % ASKED_NTH == 0)
		p->huge_known = pages_huge(p->key.tgid);
	p->huge_asks++;
	huge = p->huge_known > sampled ? p->huge_known - sampled : 0;
	return huge < rest ? huge : rest;
}

/* Where samples of huge pages are drawn, there are few of them as a rule, and the kernel
 * knows how much they are together: that is shared out. So a stack is off by its share alone: where
 * n samples are all of one stack, it is off by what a part of 1/n would be. Of a process from
 * before the recording only too much is known. */
static void huge_share(struct process *p, uint64_t all)
{
	uint64_t all_pages;
	double scale, huge;

	if (!p->huge_drawn || p->dying || all > MOST_ASKED || !p->huge_pages)
		return;
	huge = (double)pages_huge(p->key.tgid) / PAGE;
	scale = huge / (double)p->huge_pages;
	if (huge <= 0 || (scale > 1 && p->most_before))
		return;
	scale = scale > HUGE_MORE ? HUGE_MORE : scale;
	all_pages = p->huge_pages;
	p->huge_pages = 0;
	for (size_t i = 0; i < p->n_sites; i++) {
		struct site *s = &p->sites[i];
		uint64_t now = (uint64_t)((double)s->huge * scale);
		double others = 1 - (double)s->huge / (double)all_pages + 1 / (double)p->n_huge;

		s->huge_most = (uint64_t)((double)s->huge_most * scale * (others < 1 ? others : 1));
		s->now += now - s->huge;
		s->huge = now;
		p->huge_pages += now;
	}
}

static uint64_t most_of_all(const struct process *p)
{
	uint64_t most = 0;

	for (size_t i = 0; i < p->n_sites; i++)
		most = most_of(&p->sites[i]) > most ? most_of(&p->sites[i]) : most;
	return most;
}

static void process_tell(struct telling *t, const struct pages_usage *u)
{
	uint64_t all = u->own + u->swap, sampled, rest, huge;
	struct process *p = t->p;
	struct gauge_sums sums = {0};
	double scale;

	if (!t->no_huge)
		huge_share(p, all);
	sampled = pages_all(p) * PAGE;
	rest = sampled < all ? all - sampled : 0;
	scale = sampled > all ? (double)all / (double)sampled : 1;
	if (rest < p->most_before)
		p->most_before = rest;
	for (size_t i = 0; i < p->n_sites; i++)
		sum_add(t, &sums, &p->sites[i], scale);
	row_add(t, &sums, &p->before, p->most_before);
	rest -= p->most_before;
	huge = t->no_huge ? 0 : huge_of(p, rest, all);
	row_add(t, &sums, &p->huge, huge);
	p->rest.most = most_of_all(p); /* what the others are off by */
	row_add(t, &sums, &p->rest, rest - huge);
	sums_put(t, &sums);
	if (!t->stale) /* else it would void what could not be stored again */
		alive_tell(t);
	p->bytes = all;
	idmap_release(&sums.bytes);
	idmap_release(&sums.most);
}

static bool changed(const struct process *p, const struct pages_usage *u)
{
	uint64_t now = u->own + u->swap, diff = now > p->bytes ? now - p->bytes : p->bytes - now;

	return p->fresh || diff > p->bytes / CHANGED;
}

static uint64_t segment_of(const struct family_host *h)
{
	return store_gauge_epoch(h->store) + 1;
}

static void process_tell_in(struct telling *t, const struct pages_usage *u, uint64_t segment)
{
	if (t->p->segment != segment)
		idmap_clear(&t->p->told);
	process_tell(t, u);
}

/* What a child has of its parent's memory since fork(2), at most: what the parent has now. 0: its
 * parent is gone, or it has called exec since, which would have raised exec_id. */
static uint64_t inherited_most(const struct family_host *h, const struct hostmaps_process *child)
{
	const struct hostmaps_process *parent = hostmaps_running(h->maps, child->ppid);
	struct pages_usage u;

	if (!parent || parent->exec_id != child->exec_id || parent->start_ns >= child->start_ns)
		return 0;
	return pages_usage(parent->tgid, &u) ? 0 : u.own + u.swap;
}

static void inherited_ask(const struct family_host *h, const struct hostmaps_process *hp,
			  struct process *p)
{
	if (p->read_ns || p->most_before)
		return;
	p->most_before = inherited_most(h, hp);
	p->inherits = p->most_before;
}

/* By what sonde-maps has said so far, which may be less than this process's samples. */
static bool is_running(const struct process *p, const struct hostmaps_process *hp)
{
	return hp && hp->start_ns == p->key.start_ns && hp->exec_id == p->key.exec_id;
}

/* false: it is gone. */
static bool process_read(struct held *x, struct family_host *h, struct process *p, int64_t now_ns)
{
	const struct hostmaps_process *hp = hostmaps_running(h->maps, p->key.tgid);
	struct telling t = {.h = h,
			    .no_huge = x->no_huge,
			    .p = p,
			    .time_ns = (int64_t)hostmaps_watermark(h->maps)};
	uint64_t segment = segment_of(h);
	struct pages_usage u;
	int fd;

	if (pages_usage(p->key.tgid, &u))
		return false;
	if (!is_running(p, hp)) {
		p->next_ns = now_ns + FIRST_NS;
		return t.time_ns < (int64_t)p->seen_ns;
	}
	t.comm = hp->comm;
	p->next_ns = now_ns + x->interval_ns;
	if (p->dying)
		return true;
	if (p->segment == segment && !changed(p, &u)) {
		alive_tell(&t);
		return true;
	}
	fd = pages_open(p->key.tgid);
	if (fd < 0)
		return fd != -ENOENT && fd != -ESRCH;
	inherited_ask(h, hp, p);
	pages_ask_again(p, fd, (uint64_t)t.time_ns);
	p->read_ns = (uint64_t)t.time_ns;
	close(fd);
	pages_sum(p);
	process_tell_in(&t, &u, segment);
	if (!t.stale)
		sites_tidy(x, p);
	p->fresh = t.stale;
	p->segment = t.stale ? 0 : segment;
	if (t.stale)
		p->next_ns = now_ns;
	return true;
}

/* ---- out of memory ---- */

static struct process *victim_find(const struct held *x, const struct mem_victim *v)
{
	struct process *p, *next;

	if (v->ev.start_ns)
		return process_find(x, &v->ev);
	HASH_ITER (hh, x->all, p, next)
		if (p->key.tgid == v->ev.tgid)
			return p;
	return NULL;
}

void held_dying(struct held *x, const struct mem_victim *v)
{
	struct process *p = victim_find(x, v);

	if (p)
		p->dying = true;
}

void held_victim(struct held *x, struct family_host *h, const struct mem_victim *v)
{
	struct process *p = victim_find(x, v);
	struct pages_usage u = {v->anon_pages * PAGE, v->swap_pages * PAGE};
	struct telling t = {
		.h = h, .p = p, .comm = v->ev.thread, .time_ns = (int64_t)v->ev.time_ns};

	if (!p)
		return;
	p->dying = true;
	pages_sum(p);
	if (!v->ev.start_ns)
		u = (struct pages_usage){
			p->bytes > pages_all(p) * PAGE ? p->bytes : pages_all(p) * PAGE, 0};
	process_tell_in(&t, &u, segment_of(h));
}

static void read_due(struct held *x, struct family_host *h, int64_t now_ns, int64_t until_ns,
		     bool all)
{
	struct process *p, *next;

	HASH_ITER (hh, x->all, p, next) {
		if (clock_boot_ns() > until_ns)
			return;
		if ((all || p->next_ns <= now_ns) && !process_read(x, h, p, now_ns))
			process_drop(x, p);
	}
}

/* ---- processes without samples ---- */

struct sweep {
	struct held *x;
	struct family_host *h;
};

/* Its memory came before the recording, or without a fault. */
static void unseen_take(void *ctx, struct hostmaps_process *hp)
{
	const struct sweep *s = ctx;
	const struct stack_event ev = {
		.start_ns = hp->start_ns, .tgid = hp->tgid, .exec_id = hp->exec_id};

	if (process_find(s->x, &ev) || !target_covers(s->h->target, s->h->maps, hp) ||
	    naming_excludes(s->h->naming, hp) || pages_own(hp->tgid) < LEAST_UNSEEN)
		return;
	process_of(s->x, &ev);
}

static void unseen_sweep(struct held *x, struct family_host *h, int64_t now_ns)
{
	struct sweep s = {x, h};

	if (now_ns < x->sweep_ns)
		return;
	x->sweep_ns = now_ns + (x->interval_ns > SWEEP_NS ? x->interval_ns : SWEEP_NS);
	hostmaps_each(h->maps, unseen_take, &s);
}

void held_poll(struct held *x, struct family_host *h, int64_t now_ns)
{
	unseen_sweep(x, h, now_ns);
	read_due(x, h, now_ns, clock_boot_ns() + TURN_NS, false);
}

void held_finish(struct held *x, struct family_host *h, int64_t until_ns)
{
	x->sweep_ns = 0;
	unseen_sweep(x, h, clock_boot_ns());
	read_due(x, h, clock_boot_ns(), until_ns, true);
}
