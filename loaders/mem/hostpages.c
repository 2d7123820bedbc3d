/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/hostpages.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/kallsyms.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/mem/amount.h"
#include "loaders/mem/framebase.h"
#include "loaders/mem/pageclass.h"
#include "loaders/mem/pages.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer.h"

#define PAGE        4096ull
#define STACK_BYTES (32u << 20) /* all stacks together; those beyond have no frames */
#define LEVEL_MAX   6
#define ASKED_MAX   2  /* times that a page is asked what it is used for */
#define PARTS       16 /* one of them is asked at each reading whether it is free */

#define BEFORE    "[from before the recording]"
#define STACKLESS "[without a stack]"

struct sample { /* of one group: the last record of its watched frame */
	uint64_t time_ns;
	uint32_t site;
	uint8_t class, asked;
};

struct site { /* a stack of a process; number 0 has none: all that found no room */
	uint64_t key;
	struct stack_event *stack; /* and its frames */
	size_t size;
	uint64_t now[PAGECLASS_N]; /* samples, at this reading */
	uint32_t gauge[PAGECLASS_N], process;
	uint32_t epoch[PAGECLASS_N];
	uint16_t leading;
	bool asked; /* its functions were: by_function and leading are known */
	uint8_t by_function;
};

struct hostpages {
	struct hostpages_program program;
	uint64_t *live; /* the map */
	uint32_t groups, shift;
	struct sample *samples; /* by group */
	struct site *sites;
	size_t n_sites, cap_sites, stack_bytes;
	struct idmap by_key;
	struct idmap told; /* gauge -> bytes that the store has, in `segment` */
	uint64_t segment;
	uint64_t most_before; /* bytes; UINT64_MAX: not read yet */
	uint64_t stackless;   /* samples in use whose record is not there, at this reading */
	uint64_t taken;       /* as of the last tick */
	int64_t interval_ns, next_ns, tick_ns;
	uint32_t part;
};

uint32_t hostpages_groups(uint32_t *shift)
{
	uint64_t frames = pages_frames();

	*shift = MEM_GROUP_SHIFT;
	while (frames >> *shift >= HOSTPAGES_GROUPS && *shift < MEM_GROUP_SHIFT_MAX)
		++*shift;
	return frames ? (uint32_t)(frames >> *shift) + 1 : 0;
}

/* ---- begin and end ---- */

static int base_find(const struct hostpages_program *p, struct err *e)
{
	uint64_t base;

	*(volatile uint32_t *)p->tid = (uint32_t)syscall(SYS_gettid);
	base = framebase_find(p->seen);
	*(volatile uint32_t *)p->tid = 0;
	if (!base) {
		err_set(e, -ENODATA, EXIT_PREREQUISITE,
			"pages of the kernel are not recorded: /proc/self/pagemap does not say which page frame a page is in (it takes CAP_SYS_ADMIN)");
		err_fix(e, "sudo sonde record --families mem --pages");
		return -ENODATA;
	}
	__atomic_store_n(p->base, base, __ATOMIC_RELEASE);
	return 0;
}

struct hostpages *hostpages_new(const struct hostpages_program *p, uint32_t groups, uint32_t shift,
				int64_t interval_ns, struct err *e)
{
	void *live = mmap(NULL, groups * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED,
			  p->live_fd, 0);
	struct hostpages *x;

	if (live == MAP_FAILED) {
		err_set(e, -errno, EXIT_PREREQUISITE,
			"pages of the kernel are not recorded: mmap: %s", strerror(errno));
		return NULL;
	}
	if (base_find(p, e)) {
		munmap(live, groups * sizeof(uint64_t));
		return NULL;
	}
	x = mem_alloc(sizeof(*x));
	x->program = *p;
	x->live = live;
	x->groups = groups;
	x->shift = shift;
	x->interval_ns = interval_ns;
	x->most_before = UINT64_MAX;
	x->samples = mem_array(groups, sizeof(*x->samples));
	mem_grow(x->sites, x->n_sites, x->cap_sites);
	x->sites[x->n_sites++] = (struct site){.asked = true};
	return x;
}

void hostpages_free(struct hostpages *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < x->n_sites; i++)
		free(x->sites[i].stack);
	free(x->sites);
	free(x->samples);
	idmap_release(&x->by_key);
	idmap_release(&x->told);
	munmap(x->live, x->groups * sizeof(*x->live));
	free(x);
}

/* ---- samples ---- */

static uint32_t site_of(struct hostpages *x, const struct stack_event *ev, size_t size)
{
	uint64_t key = hash_u64(hash_u64(HASH_SEED, (uint64_t)ev->tgid << 32 | ev->exec_id),
				ev->start_ns),
		 at;
	struct site *s;

	key = hash_bytes(hash_u64(key, (uint64_t)ev->n_kernel << 16 | ev->n_user), ev + 1,
			 size - sizeof(*ev));
	if (idmap_get(&x->by_key, key, &at))
		return (uint32_t)at;
	if (x->stack_bytes + size > STACK_BYTES)
		return 0;
	mem_grow(x->sites, x->n_sites, x->cap_sites);
	s = &x->sites[x->n_sites];
	*s = (struct site){.key = key, .size = size, .stack = mem_alloc(size)};
	memcpy(s->stack, ev, size);
	x->stack_bytes += size;
	idmap_set(&x->by_key, key, x->n_sites);
	return (uint32_t)x->n_sites++;
}

/* A block is a sample of each group that it covers. An older record than the group has (of a stack
 * that came late) says nothing any more. */
void hostpages_sample(struct hostpages *x, const struct stack_event *ev, size_t size)
{
	uint64_t first = MEM_FRAME(ev->tag), last = first + (1ull << MEM_FRAME_ORDER(ev->tag)) - 1;
	uint32_t site = 0;
	bool found = false;

	for (uint64_t g = first >> x->shift; g <= last >> x->shift && g < x->groups; g++) {
		struct sample *s = &x->samples[g];

		if (x->live[g] != ev->time_ns || s->time_ns > ev->time_ns)
			continue;
		site = found ? site : site_of(x, ev, size);
		found = true;
		*s = (struct sample){.time_ns = ev->time_ns, .site = site};
	}
}

/* ---- a reading ---- */

static enum pageclass class_by_function(struct hostpages *x, struct family_host *h, struct site *s)
{
	const uint64_t *frames = s->stack ? (const uint64_t *)(s->stack + 1) : NULL;
	struct kallsyms *k;
	struct kallsyms_symbol sym;

	(void)x;
	if (s->asked)
		return s->by_function;
	s->asked = true;
	s->leading = amount_leading(h, s->stack, frames);
	k = naming_kallsyms(h->naming);
	for (uint16_t i = s->leading; k && i < s->stack->n_kernel && !s->by_function; i++)
		if (kallsyms_find(k, frames[i] - 1, &sym))
			s->by_function = (uint8_t)pageclass_by_function(sym.name);
	return s->by_function;
}

/* The kernel is asked once, or twice if it could not say. */
static void sample_ask(struct hostpages *x, struct family_host *h, struct sample *s, uint64_t frame)
{
	enum pageclass class = pageclass_of(pages_flags(frame));

	if (class == PAGECLASS_FREE) /* it is being freed */
		return;
	s->asked = class == PAGECLASS_KERNEL ? (uint8_t)(s->asked + 1) : ASKED_MAX;
	s->class =
		(uint8_t)(class == PAGECLASS_KERNEL ? class_by_function(x, h, &x->sites[s->site]) :
						      class);
}

/* That it was freed may have been missed: the program does not run within itself. */
static bool is_free_unseen(const struct hostpages *x, uint32_t group, uint64_t frame)
{
	return group % PARTS == x->part && pageclass_of(pages_flags(frame)) == PAGECLASS_FREE;
}

static void groups_read(struct hostpages *x, struct family_host *h)
{
	x->stackless = 0;
	x->part = (x->part + 1) % PARTS;
	for (uint32_t g = 0; g < x->groups; g++) {
		struct sample *s = &x->samples[g];
		uint64_t time_ns = __atomic_load_n(&x->live[g], __ATOMIC_RELAXED), frame;

		if (!time_ns || !MEM_GROUP_IS_WATCHED(mem_group_hash(g), *x->program.level)) {
			s->time_ns = 0;
			continue;
		}
		frame = ((uint64_t)g << x->shift) + MEM_GROUP_WATCHED(mem_group_hash(g), x->shift);
		if (is_free_unseen(x, g, frame)) {
			__atomic_compare_exchange_n(&x->live[g], &time_ns, 0, false,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
			continue;
		}
		if (s->time_ns != time_ns) { /* its record is lost, or comes late */
			s->time_ns = 0;
			x->stackless++;
			continue;
		}
		if (s->asked < ASKED_MAX)
			sample_ask(x, h, s, frame);
		x->sites[s->site].now[s->class]++;
	}
}

struct telling {
	struct hostpages *x;
	struct family_host *h;
	int64_t time_ns;
	struct idmap sums;  /* gauge -> bytes */
	struct idmap alive; /* the store's processes that have something */
	bool stale;
};

/* Who has what belongs to no process. */
static uint32_t kernel_process(struct family_host *h)
{
	const struct stack_event ev = {.thread = "kernel", .end = STACK_END_NONE};
	struct naming_result named;

	naming_stack(h->naming, &ev, NULL, &named);
	return named.process;
}

static void series_make(struct telling *t, struct site *s, int class)
{
	struct store_writer *w = t->h->store;
	uint32_t leaf = amount_frame(w, pageclass_name((enum pageclass) class));
	struct naming_result named = {0};

	if (s->stack) {
		struct stack_event trimmed = *s->stack;

		class_by_function(t->x, t->h, s); /* knows the leading frames */
		trimmed.n_kernel = (uint16_t)(trimmed.n_kernel - s->leading);
		naming_stack_with(t->h->naming, &trimmed,
				  (const uint64_t *)(s->stack + 1) + s->leading, leaf, &named);
	} else {
		named.process = kernel_process(t->h);
		leaf = amount_frame(w, pageclass_name((enum pageclass) class));
		named.stack = store_stack(w, &leaf, 1);
	}
	s->gauge[class] =
		store_series(w, t->h->run, named.process, "", 0, named.stack, STORE_KIND_PAGES);
	s->process = named.process;
	s->epoch[class] = store_epoch(w);
}

static void sum_add(struct telling *t, uint32_t gauge, uint32_t process, uint64_t bytes)
{
	bool fresh;

	*idmap_ref(&t->sums, gauge, &fresh) += bytes;
	idmap_set(&t->alive, process, 1);
}

static void sites_sum(struct telling *t)
{
	const uint64_t weight = PAGE << t->x->shift << *t->x->program.level;

	for (size_t i = 0; i < t->x->n_sites; i++) {
		struct site *s = &t->x->sites[i];

		for (int c = 0; c < PAGECLASS_N; c++) {
			if (!s->now[c])
				continue;
			if (s->epoch[c] != store_epoch(t->h->store))
				series_make(t, s, c);
			sum_add(t, s->gauge[c], s->process, s->now[c] * weight);
		}
	}
}

static void nameless_add(struct telling *t, const char *name, uint64_t bytes)
{
	struct store_writer *w = t->h->store;
	uint32_t process = kernel_process(t->h), frame = amount_frame(w, name);
	uint32_t gauge = store_series(w, t->h->run, process, "", 0, store_stack(w, &frame, 1),
				      STORE_KIND_PAGES);

	if (bytes)
		sum_add(t, gauge, process, bytes);
}

static bool is_all(const struct family_target *t)
{
	return !t->n_pids && !t->n_cgroups && !t->n_comms && !t->feed;
}

/* What no stack has. */
static void rest_add(struct telling *t, uint64_t used)
{
	struct hostpages *x = t->x;
	const struct idmap *sums = &t->sums;
	uint64_t sum = 0, rest;

	if (!is_all(t->h->target)) {
		nameless_add(t, STACKLESS, x->stackless * (PAGE << x->shift << *x->program.level));
		return;
	}
	for (size_t i = 0; i < sums->cap; i++)
		sum += sums->slots[i].used ? sums->slots[i].value : 0;
	rest = used > sum ? used - sum : 0;
	if (rest < x->most_before)
		x->most_before = rest;
	nameless_add(t, BEFORE, x->most_before);
	nameless_add(t, STACKLESS, rest - x->most_before);
}

static void gauge_put(struct telling *t, uint32_t gauge, uint64_t bytes)
{
	const struct store_amount a = {.n = bytes / PAGE, .value = bytes};
	uint64_t told;

	if (t->stale || (idmap_get(&t->x->told, gauge, &told) ? told == bytes : !bytes))
		return;
	if (store_amount(t->h->store, gauge, family_utc(t->h, t->time_ns), &a)) {
		t->stale = true;
		return;
	}
	t->h->added++;
	idmap_set(&t->x->told, gauge, bytes);
}

/* A gauge holds as long as its process reports something. */
static void alive_put(struct telling *t)
{
	const struct idmap *alive = &t->alive;
	struct store_writer *w = t->h->store;
	const struct store_amount none = {0};

	for (size_t i = 0; i < alive->cap && !t->stale; i++) {
		uint32_t gauge;

		if (!alive->slots[i].used)
			continue;
		gauge = store_series(w, t->h->run, (uint32_t)alive->slots[i].key, "", 0,
				     store_stack(w, NULL, 0), STORE_KIND_PAGES);
		if (store_amount(w, gauge, family_utc(t->h, t->time_ns), &none))
			t->stale = true;
		else
			t->h->added++;
	}
}

static void sums_put(struct telling *t)
{
	struct idmap *told = &t->x->told;
	uint64_t now;

	for (size_t i = 0; i < told->cap; i++)
		if (told->slots[i].used && told->slots[i].value &&
		    !idmap_get(&t->sums, told->slots[i].key, &now))
			gauge_put(t, (uint32_t)told->slots[i].key, 0);
	for (size_t i = 0; i < t->sums.cap; i++)
		if (t->sums.slots[i].used)
			gauge_put(t, (uint32_t)t->sums.slots[i].key, t->sums.slots[i].value);
	alive_put(t);
}

/* Stacks of which nothing is in use go. Number 0 stays. */
static void sites_tidy(struct hostpages *x)
{
	uint32_t *to = mem_array(x->n_sites, sizeof(*to));
	size_t n = 1;

	for (size_t i = 1; i < x->n_sites; i++) {
		struct site *s = &x->sites[i];
		uint64_t now = 0;

		for (int c = 0; c < PAGECLASS_N; c++)
			now += s->now[c];
		if (!now) {
			idmap_del(&x->by_key, s->key);
			x->stack_bytes -= s->size;
			free(s->stack);
			continue;
		}
		to[i] = (uint32_t)n;
		idmap_set(&x->by_key, s->key, n);
		x->sites[n++] = *s;
	}
	x->n_sites = n;
	for (uint32_t g = 0; g < x->groups; g++)
		x->samples[g].site = to[x->samples[g].site];
	free(to);
}

static void reading(struct hostpages *x, struct family_host *h)
{
	struct telling t = {.x = x, .h = h, .time_ns = (int64_t)hostmaps_watermark(h->maps)};
	uint64_t segment = store_gauge_epoch(h->store) + 1, used = pages_used();

	for (size_t i = 0; i < x->n_sites; i++)
		memset(x->sites[i].now, 0, sizeof(x->sites[i].now));
	groups_read(x, h);
	if (x->segment != segment)
		idmap_clear(&x->told);
	sites_sum(&t);
	rest_add(&t, used);
	sums_put(&t);
	x->segment = t.stale ? 0 : segment;
	sites_tidy(x);
	idmap_release(&t.sums);
	idmap_release(&t.alive);
}

void hostpages_poll(struct hostpages *x, struct family_host *h, int64_t now_ns)
{
	if (now_ns < x->next_ns)
		return;
	reading(x, h);
	x->next_ns = x->segment ? now_ns + x->interval_ns : now_ns; /* not stored: at once again */
}

void hostpages_finish(struct hostpages *x, struct family_host *h)
{
	reading(x, h);
}

/* ---- half of them go ---- */

static void level_raise(struct hostpages *x)
{
	uint32_t level = *x->program.level + 1;

	__atomic_store_n(x->program.level, level, __ATOMIC_RELEASE);
	for (uint32_t g = 0; g < x->groups; g++)
		if (!MEM_GROUP_IS_WATCHED(mem_group_hash(g), level))
			__atomic_store_n(&x->live[g], 0, __ATOMIC_RELAXED);
}

void hostpages_tick(struct hostpages *x, int64_t now_ns)
{
	uint64_t taken = __atomic_load_n(x->program.taken, __ATOMIC_RELAXED);
	int64_t seconds = (now_ns - x->tick_ns) / NSEC_PER_SEC;

	if (x->tick_ns && seconds < 1)
		return;
	if (x->tick_ns && (taken - x->taken) / (uint64_t)seconds > HOSTPAGES_RATE &&
	    *x->program.level < LEVEL_MAX)
		level_raise(x);
	x->taken = taken;
	x->tick_ns = now_ns;
}
