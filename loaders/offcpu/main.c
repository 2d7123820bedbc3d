/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-offcpu: where time goes that is not spent on a CPU. This file is the translation between
 * the family's BPF program and the common loop of loaders/lib/bpf; its sums are read by drain.c,
 * its stacks joined with their lengths by join.c, and what else holds threads back read by quota.c.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/load/kerneltypes.h"
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/maproom.h"
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/bpf/load/scope.h"
#include "loaders/lib/bpf/load/tables.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/lib/bpf/run/scripts.h"
#include "loaders/lib/host/proc/syscalls.h"
#include "loaders/offcpu/drain.h"
#include "loaders/offcpu/hooks.h"
#include "loaders/offcpu/join.h"
#include "loaders/offcpu/pace.h"
#include "loaders/offcpu/quota.h"
#include "loaders/offcpu/record.h"
#include "loaders/offcpu/rest.h"
#include "probes/offcpu.h"
#include "probes/offcpu.skel.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/families/families.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/write/waits.h"

#define STACK_RATE 1000 /* with short buckets: for live use */
/* where they are FAMILY_ALWAYS_S long or longer, and where threads' stacks can only be taken as
 * they leave: about as many as a profile of the CPUs has samples */
#define STACK_RATE_ALWAYS 100
#define STACK_RATE_LEAVE  25
#define LEVEL_ALWAYS      20 /* there: each wait of 2^20 ns, 1.05 ms, if there are not too many */
#define READY_PART        2  /* of the rate: stacks of threads that could have run all the time */
/* of time that threads were ready: how often the CPU's current thread is sampled */
#define CULPRIT_ALWAYS_NS 50000000
#define BLAMES            2000 /* parts of waits a second on each CPU, stored with who ran then */
#define STACK_RATE_MAX    1000000
#define WAKES_PART        4          /* of the rate: stacks of wakers */
#define WINDOW_NS         (1u << 27) /* of the program's limits */
#define READ_S            10 /* seconds between two readings, where buckets are not shorter */
#define THREADS_LEAST     4096
#define THREADS_LIVE      8192 /* the same with short buckets */
#define THREADS_MOST      262144
#define SUMS_EACH         4 /* kinds of stretch of a thread, in the mean */
/* powers of two that a sum has steps of, in the mean of all that there is room for */
#define POWERS_EACH     4
#define SLOTS_AT_ONCE   64 /* that a CPU takes from the queue */
#define FILL_WAKE_LEAST 64 /* a power of two */

_Static_assert(OFFCPU_TALLY_SLOTS == FAMILY_TALLY_SLOTS, "same histogram");

/* Threads of this host: the fourth field of /proc/loadavg, "running/all". 0: unknown. */
static uint64_t thread_count(void)
{
	cleanup_file FILE *f = fopen("/proc/loadavg", "re");
	unsigned long long n;

	return f && fscanf(f, "%*s %*s %*s %*u/%llu", &n) == 1 ? n : 0;
}

/* What maps hold until it is read: threads that got a number, and pairs of threads. */
struct filling {
	uint64_t threads, pairs, neighbours;
};

struct offcpu {
	struct offcpu_bpf *skel;
	bool plain; /* its tracepoints: see hooks.h */
	struct bpf_link *links[HOOKS];
	struct drain drain;
	struct offcpu_sum *sums; /* the map's, mapped */
	struct offcpu_steps *steps;
	struct offcpu_count *wake_sums;
	struct join join;
	struct quota quota;
	struct rest rest;
	struct pace pace;      /* with short buckets */
	int64_t second;        /* of UTC: the last one that was looked at */
	struct filling filled; /* by the last reading */
	uint32_t step;         /* how much less than all it does: 0 all */
};

#define NOT_GIVEN UINT32_MAX
enum tracepoints {
	TRACEPOINTS_AUTO,
	TRACEPOINTS_LEAVE, /* typed ones, of kernels before 6.15 */
	TRACEPOINTS_PLAIN  /* plain ones, even where others are not refused */
};
static struct offcpu_opts {
	uint32_t stack_rate; /* NOT_GIVEN: by the bucket */
	int tracepoints;     /* enum tracepoints */
} opts = {.stack_rate = NOT_GIVEN};

static const struct option options[] = {
	{"stack-rate", 0, OPTION_UINT, "N",
	 "take the stacks of about N waits a second on each CPU, first of the longest waits; 0: of none (default 1000; with --bucket 10s 100)",
	 OPTION_AT(struct offcpu_opts, stack_rate), .max = STACK_RATE_MAX},
	{"tracepoints", 0, OPTION_ENUM, "auto|leave|plain",
	 "auto: all that the kernel has (the default); leave: those of kernels before 6.15, where a stack is taken as its thread leaves; plain: plain ones, as where typed ones are refused",
	 OPTION_AT(struct offcpu_opts, tracepoints)},
	{0},
};

static uint32_t stack_rate; /* without doing less; set at load */

/* ---- open ---- */

/* Does sched_switch tell the state in which the thread leaves? It does if its fourth argument is
 * there (5.18). */
static bool switch_tells_state(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *t;
	int id = btf ? btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF) : -1;
	bool tells = false;

	t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	while (t && (btf_is_typedef(t) || btf_is_ptr(t)))
		t = btf__type_by_id(btf, t->type);
	if (t && btf_is_func_proto(t))
		tells = btf_vlen(t) >= 5; /* the first is the tracepoint's own */
	btf__free(btf);
	return tells;
}

/* Is there a tracepoint behind a switch, where the thread that came is the current one (6.15)? */
static bool switch_has_end(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool has =
		btf && btf__find_by_name_kind(btf, "btf_trace_sched_exit_tp", BTF_KIND_TYPEDEF) > 0;

	btf__free(btf);
	return has;
}

static uint32_t map_room(bool always)
{
	uint64_t want = thread_count() * 4;
	uint32_t room = always ? THREADS_LEAST : THREADS_LIVE;

	while (room < want && room < THREADS_MOST)
		room *= 2;
	return room;
}

/* All CPUs together call before the smallest map is an eighth full. */
static uint32_t wake_each(uint32_t room, uint32_t cpus)
{
	uint32_t each = room / 8;

	while (each > FILL_WAKE_LEAST && each > room / 8 / cpus)
		each /= 2;
	return each;
}

static void maps_size(struct offcpu_bpf *skel, const struct family_config *c)
{
	uint32_t room = map_room(c->bucket_s >= FAMILY_ALWAYS_S),
		 ring = maproom_ring(c->cpus, 1u << 20, 1u << 20, 4u << 20);

	bpf_map__set_max_entries(skel->maps.threads, room);
	bpf_map__set_max_entries(skel->maps.who, room * 2);
	bpf_map__set_max_entries(skel->maps.totals, room * SUMS_EACH);
	bpf_map__set_max_entries(skel->maps.sums, room * SUMS_EACH);
	bpf_map__set_max_entries(skel->maps.free_slots, room * SUMS_EACH);
	bpf_map__set_max_entries(skel->maps.steps, room * SUMS_EACH * POWERS_EACH);
	bpf_map__set_max_entries(skel->maps.free_steps, room * SUMS_EACH * POWERS_EACH);
	bpf_map__set_max_entries(skel->maps.wakes, room * 4);
	bpf_map__set_max_entries(skel->maps.wake_sums, room * 4);
	bpf_map__set_max_entries(skel->maps.free_wakes, room * 4);
	bpf_map__set_max_entries(skel->maps.culprits, room * 4);
	skel->rodata->ring_bytes = c->ring_bytes < ring ? ring : (uint32_t)c->ring_bytes;
	bpf_map__set_max_entries(skel->maps.events, skel->rodata->ring_bytes);
	bpf_map__set_max_entries(skel->maps.late, (uint32_t)c->late_bytes);
	skel->rodata->fill_wake = wake_each(room, c->cpus);
	skel->rodata->fill_pairs = wake_each(room * 4, c->cpus);
	maproom_fixed(skel->obj);
	skel->rodata->ring_bytes = bpf_map__max_entries(skel->maps.events);
}

/* What a thread waits for in each system call, as the program's classes. */
static void classes_fill(volatile __u8 *class)
{
	static const __u8 of[] = {
		[SYSCALL_OTHER] = OFFCPU_OTHER,     [SYSCALL_LOCK] = OFFCPU_LOCK,
		[SYSCALL_DISK] = OFFCPU_DISK,       [SYSCALL_NETWORK] = OFFCPU_NETWORK,
		[SYSCALL_PIPE] = OFFCPU_PIPE,       [SYSCALL_POLL] = OFFCPU_POLL,
		[SYSCALL_SLEEP] = OFFCPU_SLEEP,     [SYSCALL_CHILD] = OFFCPU_CHILD,
		[SYSCALL_BY_FILE] = OFFCPU_BY_FILE, [SYSCALL_RESTART] = OFFCPU_RESTART,
	};

	for (int i = 0; i < OFFCPU_SYSCALLS; i++)
		class[i] = of[syscall_wait(i)];
}

/* Per second, within a window; at least one in a window. */
static uint32_t in_window(uint32_t rate)
{
	uint32_t n = (uint32_t)((uint64_t)rate * WINDOW_NS / NSEC_PER_SEC);

	return rate && !n ? 1 : n;
}

static uint32_t part_of(uint32_t rate, uint32_t part)
{
	return in_window(rate < part ? rate : rate / part);
}

/* `slow`: of threads whose last wait was long, whose stacks are few, and say most. */
static void limits_set(struct offcpu_bpf *skel, uint32_t rate, uint32_t slow)
{
	skel->bss->limit_cpu = in_window(rate);
	skel->bss->limit_ready = part_of(rate, READY_PART);
	skel->bss->limit_wake = part_of(rate, WAKES_PART);
	skel->bss->limit_thread = in_window(rate / 2 + (rate & 1));
	skel->bss->limit_slow = in_window(slow);
}

/* Of each step a quarter of the one before, the last none. */
static uint32_t rate_at(uint32_t step)
{
	return step >= family_named("offcpu")->steps ? 0 :
	       stack_rate >> 2 * step                ?:
						       (stack_rate ? 1 : 0);
}

static void offcpu_configure(struct offcpu_bpf *skel, const struct family_config *c)
{
	const struct family_target *t = c->target;
	int64_t depth = sysctl_kernel("perf_event_max_stack", STACK_KERNEL_MAX);
	bool tells = switch_tells_state();

	scope_configure(skel->obj, t, &skel->rodata->scope);
	classes_fill(skel->rodata->syscall_class);
	skel->rodata->limit_blame = in_window(BLAMES);
	skel->rodata->culprit_ns = c->bucket_s < FAMILY_ALWAYS_S ? 0 : CULPRIT_ALWAYS_NS;
	skel->rodata->syscall_yield = SYS_sched_yield;
	skel->rodata->syscall_futex = SYS_futex;
	skel->rodata->syscall_sync = SYS_sync;
	skel->rodata->least_level = c->bucket_s < FAMILY_ALWAYS_S ? 0 : LEVEL_ALWAYS;
	skel->rodata->spread_running = c->bucket_s < FAMILY_ALWAYS_S;
	if (depth > 0 && depth < STACK_KERNEL_MAX)
		skel->rodata->stack_depth = (uint32_t)depth;
	maps_size(skel, c);
	bpf_program__set_autoload(skel->progs.offcpu_switch, tells);
	bpf_program__set_autoload(skel->progs.offcpu_switch_old, !tells);
	bpf_program__set_autoload(skel->progs.offcpu_came,
				  opts.tracepoints == TRACEPOINTS_AUTO && switch_has_end());
	bpf_program__set_autoload(skel->progs.offcpu_fork, t->follow_children);
	bpf_program__set_autoload(skel->progs.offcpu_exit, t->follow_children);
}

static uint32_t thread_of(void *ctx, struct family_host *h, uint64_t id)
{
	return drain_thread(ctx, h, id);
}

static struct offcpu *offcpu_new(struct offcpu_bpf *skel, const char *store_dir)
{
	struct offcpu *o = mem_alloc(sizeof(*o));

	o->skel = skel;
	join_init(&o->join, store_dir);
	o->join.thread = thread_of;
	o->join.ctx = &o->drain;
	quota_init(&o->quota);
	return o;
}

static void offcpu_detach(void *state)
{
	struct offcpu *o = state;

	hooks_detach(o->links);
}

static void offcpu_close(void *state)
{
	struct offcpu *o = state;

	offcpu_detach(o);
	join_release(&o->join);
	drain_release(&o->drain);
	quota_release(&o->quota);
	if (o->sums)
		munmap(o->sums, bpf_map__max_entries(o->skel->maps.sums) * sizeof(*o->sums));
	if (o->steps)
		munmap(o->steps, bpf_map__max_entries(o->skel->maps.steps) * sizeof(*o->steps));
	if (o->wake_sums)
		munmap(o->wake_sums,
		       bpf_map__max_entries(o->skel->maps.wake_sums) * sizeof(*o->wake_sums));
	offcpu_bpf__destroy(o->skel);
	free(o);
}

/* Maps an array of which all slots are free at the start. Sets `what` on success. */
static int array_map(const struct bpf_map *map, const struct bpf_map *queue, void **what,
		     struct err *e)
{
	uint32_t n = bpf_map__max_entries(map);
	int err = 0;
	void *at = mmap(NULL, (size_t)n * bpf_map__value_size(map), PROT_READ | PROT_WRITE,
			MAP_SHARED, bpf_map__fd(map), 0);

	if (at == MAP_FAILED)
		return load_error(-errno, "offcpu: sums", e);
	*what = at;
	for (uint32_t i = 0; i < n && !err; i += SLOTS_AT_ONCE) {
		const struct offcpu_slots some = {.first = i, .n = SLOTS_AT_ONCE};

		err = bpf_map_update_elem(bpf_map__fd(queue), NULL, &some, BPF_ANY) ? -errno : 0;
	}
	return err ? load_error(err, "offcpu: free_slots", e) : 0;
}

static int sums_map(struct offcpu *o, struct err *e)
{
	int err = array_map(o->skel->maps.sums, o->skel->maps.free_slots, (void **)&o->sums, e);

	if (!err)
		err = array_map(o->skel->maps.steps, o->skel->maps.free_steps, (void **)&o->steps,
				e);
	return err ? err :
		     array_map(o->skel->maps.wake_sums, o->skel->maps.free_wakes,
			       (void **)&o->wake_sums, e);
}

SKELETON_OPEN(offcpu)

/* For the programs that are loaded: where they take stacks. */
static void rates_set(struct offcpu_bpf *skel, const struct family_config *c)
{
	uint32_t rate = opts.stack_rate;

	if (rate == NOT_GIVEN)
		rate = c->bucket_s < FAMILY_ALWAYS_S ? STACK_RATE :
		       skel->rodata->at_end          ? STACK_RATE_ALWAYS :
						       STACK_RATE_LEAVE;
	limits_set(skel, rate, rate);
	stack_rate = rate;
}

static int skel_load_with(const struct family_config *c, bool plain, uint32_t kinds,
			  struct offcpu_bpf **out)
{
	int err = plain ? hooks_plain() : 0;
	struct offcpu_bpf *skel = err ? NULL : skel_open(c->store_dir);

	if (!skel)
		return err ? err : -errno;
	offcpu_configure(skel, c);
	skel->rodata->plain = plain;
	skel->rodata->runtimes_on = kinds != 0;
	skel->rodata->runtime_kinds = kinds;
	scripts_configure(skel->obj, kinds);
	bpf_program__set_autoload(skel->progs.offcpu_seed, !plain);
	if (!plain)
		programs_keep_still(skel->obj);
	if (plain)
		bpf_program__set_autoload(skel->progs.offcpu_came, false);
	leftout_disable(skel->obj);
	skel->rodata->at_end = bpf_program__autoload(skel->progs.offcpu_came);
	rates_set(skel, c);
	err = tables_reuse(skel->obj, c->tables);
	if (!err)
		err = offcpu_bpf__load(skel);
	if (!err)
		err = scope_fill(skel->obj, c->target);
	if (err)
		offcpu_bpf__destroy(skel);
	else
		*out = skel;
	return err;
}

static int skel_load(const struct family_config *c, bool plain, struct offcpu_bpf **out)
{
	int err;

	do {
		err = -EINVAL;
		for (size_t i = 0; i < SCRIPTS_TRIES && scripts_refused(err); i++)
			err = skel_load_with(c, plain, SCRIPTS_KINDS[i], out);
	} while (err && leftout_next(HOOKS_OPTIONAL, err));
	return err;
}

static int offcpu_open(const struct family_config *c, void **state, struct bpf_object **obj,
		       struct err *e)
{
	struct offcpu_bpf *skel = NULL;
	bool plain = opts.tracepoints == TRACEPOINTS_PLAIN;
	struct offcpu *o;
	int err = skel_load(c, plain, &skel);

	if (err && !plain && !skel_load(c, true, &skel)) {
		log_warn(
			"offcpu: typed tracepoints are refused (%s): plain ones cost up to twice as much, and threads that sleep all the time are not seen",
			strerror(-err));
		plain = true;
		err = 0;
	}
	if (err)
		return load_error(err, "offcpu", e);
	o = offcpu_new(skel, c->store_dir);
	o->plain = plain;
	err = sums_map(o, e);
	if (err) {
		offcpu_close(o);
		return err;
	}
	*state = o;
	*obj = skel->obj;
	return 0;
}

/* ---- attach ---- */

static int offcpu_attach(void *state, struct err *e)
{
	struct offcpu *o = state;
	const struct drain_maps maps = {
		.threads = bpf_map__fd(o->skel->maps.threads),
		.who = bpf_map__fd(o->skel->maps.who),
		.totals = bpf_map__fd(o->skel->maps.totals),
		.wakes = bpf_map__fd(o->skel->maps.wakes),
		.culprits = bpf_map__fd(o->skel->maps.culprits),
		.free_slots = bpf_map__fd(o->skel->maps.free_slots),
		.free_steps = bpf_map__fd(o->skel->maps.free_steps),
		.sums = o->sums,
		.n_sums = bpf_map__max_entries(o->skel->maps.sums),
		.steps = o->steps,
		.n_steps = bpf_map__max_entries(o->skel->maps.steps),
		.free_wakes = bpf_map__fd(o->skel->maps.free_wakes),
		.wake_sums = o->wake_sums,
		.n_wake_sums = bpf_map__max_entries(o->skel->maps.wake_sums),
		.wake_turn = &o->skel->bss->wake_turn,
		.rest = &o->rest,
	};
	int64_t begin_ns;
	int err;

	o->rest.fd = bpf_map__fd(o->skel->maps.rests);
	o->rest.made = &o->skel->bss->rests_made;
	o->rest.at_end = o->skel->rodata->at_end;
	quota_read(&o->quota, NULL, clock_boot_ns());
	err = hooks_attach(o->skel, o->plain, o->links, e);
	begin_ns = clock_boot_ns();
	__atomic_store_n(&o->skel->bss->begin_ns, (uint64_t)begin_ns, __ATOMIC_RELEASE);
	drain_init(&o->drain, &maps, begin_ns);
	if (!err)
		hooks_seed(o->skel, o->plain);
	return err;
}

/* Attaching again loses nothing: the programs check the limits at each switch. */
static void offcpu_reduce(void *state, uint32_t step)
{
	struct offcpu *o = state;

	o->step = step;
	limits_set(o->skel, rate_at(step), rate_at(step) ? stack_rate : 0);
}

/* ---- reading ---- */

static void offcpu_tally(void *state, struct family_tally *out);

/* The program's tally, by CPU; NULL: it cannot be read. The caller frees it. */
static struct offcpu_tally *tally_read(const struct offcpu *o, int *n)
{
	struct offcpu_tally *per_cpu;
	uint32_t zero = 0;

	*n = libbpf_num_possible_cpus();
	per_cpu = *n > 0 ? mem_array((size_t)*n, sizeof(*per_cpu)) : NULL;
	if (!per_cpu || !bpf_map_lookup_elem(bpf_map__fd(o->skel->maps.tally), &zero, per_cpu))
		return per_cpu;
	free(per_cpu);
	return NULL;
}

/* What the maps took in since the capture began. */
static struct filling filling_now(const struct offcpu *o)
{
	int n;
	cleanup_free struct offcpu_tally *per_cpu = tally_read(o, &n);
	struct filling f = {0};

	for (int i = 0; per_cpu && i < n; i++) {
		f.threads += per_cpu[i].named;
		f.pairs += per_cpu[i].pairs;
		f.neighbours += per_cpu[i].neighbours;
	}
	return f;
}

static void sums_read(struct offcpu *o, struct family_host *h, int64_t now_ns)
{
	uint32_t reading = o->skel->bss->reading;

	__atomic_store_n(&o->skel->bss->reading, reading + 1, __ATOMIC_RELEASE);
	drain_read(&o->drain, h, reading, now_ns);
	quota_read(&o->quota, h, now_ns);
	o->filled = filling_now(o);
}

/* The maps must have room for threads that end, and pairs that meet, until the next reading: what
 * is read is removed. The programs call while they fill (fill_tell). */
static bool is_filling(const struct offcpu *o, const struct filling *now)
{
	return now->threads - o->filled.threads > bpf_map__max_entries(o->skel->maps.threads) / 4 ||
	       now->pairs - o->filled.pairs > bpf_map__max_entries(o->skel->maps.wakes) / 4;
}

/* Of these alone much comes on a busy host, and all of it can be taken out. */
static void neighbours_read(struct offcpu *o, struct family_host *h, const struct filling *now,
			    int64_t now_ns)
{
	if (now->neighbours - o->filled.neighbours <=
	    bpf_map__max_entries(o->skel->maps.culprits) / 4)
		return;
	drain_culprits(&o->drain, h, now_ns);
	o->filled.neighbours = filling_now(o).neighbours;
}

/* With long buckets, and no ring that has seconds, readings are usually as rare. */
static bool is_time(const struct family_host *h, int64_t second)
{
	return h->bucket_s < READ_S || h->fine_s || !(second % READ_S);
}

/* Where no rate was asked for, and no sonded holds the cost. */
static void rate_follow(struct offcpu *o, const struct family_host *h, int64_t now_ns)
{
	struct family_tally sum;
	uint32_t before = o->pace.rate, rate;

	if (h->bucket_s >= FAMILY_ALWAYS_S || opts.stack_rate != NOT_GIVEN || o->step)
		return;
	if (!o->pace.asked)
		pace_init(&o->pace, stack_rate);
	offcpu_tally(o, &sum);
	rate = pace_next(&o->pace, sum.run_ns + (uint64_t)clock_cpu_ns(), now_ns);
	if (before && rate != before)
		limits_set(o->skel, rate, rate);
}

/* As soon as a second of UTC is over, so that a reading lies in one bucket; one more within it if
 * the maps fill. */
static void offcpu_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct offcpu *o = state;
	int64_t second = (now_ns + h->offset_ns) / NSEC_PER_SEC;
	bool over = o->second && second != o->second;
	const struct filling now = filling_now(o);

	if (o->second && ((over && is_time(h, second)) || is_filling(o, &now)))
		sums_read(o, h, now_ns);
	else if (o->second)
		neighbours_read(o, h, &now, now_ns);
	if (over) {
		if (o->step)
			store_slowed(h->store, h->run, now_ns + h->offset_ns - NSEC_PER_SEC / 2,
				     o->step, rate_at(o->step));
		join_settle(&o->join, h, now_ns);
		rate_follow(o, h, now_ns);
	}
	o->second = second;
	second++;
	while (!o->step && !is_time(h, second))
		second++;
	h->next_ns = second * NSEC_PER_SEC - h->offset_ns;
}

static void offcpu_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	struct offcpu *o = state;
	int64_t now;

	(void)patience_ns;
	offcpu_detach(o);
	now = clock_boot_ns();
	sums_read(o, h, now);
	join_settle(&o->join, h, now);
	drain_unfinished(&o->drain, h, now);
}

static int offcpu_record_amount(void *state, const void *record, size_t size, uint64_t *n)
{
	(void)state;
	return record_value(record, size, n);
}

static void offcpu_store_record(void *state, struct family_host *h, const struct stack_event *ev,
				size_t size, struct naming_result *named)
{
	struct offcpu *o = state;

	if (!ev)
		join_finish(&o->join, h);
	else if (record_is_end(ev, size))
		join_end(&o->join, h, (const struct offcpu_end *)ev);
	else if (record_is_wake(ev, size))
		join_wake(&o->join, h, (const struct offcpu_wake *)ev);
	else
		join_stack(&o->join, h, ev, size, named);
}

/* ---- messages ---- */

static int offcpu_ring_fd(void *state)
{
	return bpf_map__fd(((struct offcpu *)state)->skel->maps.events);
}

static int offcpu_late_fd(void *state)
{
	return bpf_map__fd(((struct offcpu *)state)->skel->maps.late);
}

static uint64_t offcpu_period_ns(void *state)
{
	(void)state;
	return 0;
}

static const char *offcpu_clock(void *state)
{
	(void)state;
	return "scheduler";
}

static void tally_add(struct family_tally *out, const struct offcpu_tally *t)
{
	/* of switches without a stack, one in some is timed: their mean represents all */
	uint64_t plain = t->switches > t->stack_runs ? t->switches - t->stack_runs : 0;

	out->seen += t->stack_seen + t->lost + t->pairs_lost;
	out->lost += t->stack_lost;
	out->no_room += t->lost;
	out->pairs += t->pairs_lost;
	out->unfollowed += t->unfollowed;
	out->run_ns += t->wake_ns + t->stack_ns +
		       (t->plain_runs ? t->plain_ns / t->plain_runs * plain : 0);
	for (int k = 0; k < OFFCPU_TALLY_SLOTS; k++)
		out->slot[k] += t->slot[k];
}

static void offcpu_tally(void *state, struct family_tally *out)
{
	const struct offcpu *o = state;
	int n;
	cleanup_free struct offcpu_tally *per_cpu = tally_read(o, &n);

	*out = (struct family_tally){.seen = o->drain.pairs_lost, .pairs = o->drain.pairs_lost};
	for (int i = 0; per_cpu && i < n; i++)
		tally_add(out, &per_cpu[i]);
}

static uint64_t offcpu_seen(void *state)
{
	struct family_tally sum;

	offcpu_tally(state, &sum);
	return sum.seen;
}

static void offcpu_check(struct check *c, uint32_t freq)
{
	(void)freq;
	check_add(
		c, "switches", CHECK_OK, NULL,
		switch_tells_state() ?
			"sched_switch reports the state in which a thread leaves the CPU" :
			"sched_switch does not report the state in which a thread leaves the CPU: it is read from the thread");
	check_add(c, "threads", CHECK_OK, NULL, "%llu here now, room for %u",
		  (unsigned long long)thread_count(), map_room(true));
}

static const struct family offcpu_family = {
	.name = "offcpu",
	.summary =
		"record where threads wait and for what, and which threads have the CPU meanwhile",
	.options = {options, &opts},
	.open = offcpu_open,
	.attach = offcpu_attach,
	.poll = offcpu_poll,
	.last_read = offcpu_last_read,
	.ring_fd = offcpu_ring_fd,
	.late_fd = offcpu_late_fd,
	.record_amount = offcpu_record_amount,
	.store_record = offcpu_store_record,
	.fine_s = 1,
	.period_ns = offcpu_period_ns,
	.clock = offcpu_clock,
	.tally = offcpu_tally,
	.seen = offcpu_seen,
	.reduce = offcpu_reduce,
	.detach = offcpu_detach,
	.close = offcpu_close,
	.check = offcpu_check,
};

int main(int argc, char **argv)
{
	return family_main(&offcpu_family, argc, argv);
}
