/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/hooks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/limits.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "loaders/lib/bpf/load/kerneltypes.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/maproom.h"
#include "loaders/lib/bpf/load/percpu.h"
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/bpf/load/scope.h"
#include "loaders/lib/bpf/load/tables.h"
#include "loaders/lib/bpf/run/scripts.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "probes/lib/stack.h"
#include "probes/probe.skel.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"

#define RING_LEAST  (1024 * 1024)
#define RING_MOST   (32 * 1024 * 1024)
#define RING_RECORD 512 /* bytes of most, for half a second */
#define SMALL       (64 * 1024)
#define SUMS_BY     16384 /* sums of an epoch of a probe that has `by` */

/* One for all probes: the first one's. */
static const char *const SHARED[] = {"events",  "late",  "hits",  "pids",
				     "cgroups", "comms", "erlang"};
/* Only of those that take stacks, apart from the rings. */
static const char *const OF_STACKS[] = {"scratch", "late_scratch", "late_more"};

/* ---- open ---- */

static struct probe_bpf *skel_open(const char *store_dir)
{
	char path[PATH_MAX];
	size_t size;
	const void *elf = probe_bpf__elf_bytes(&size);
	LIBBPF_OPTS(bpf_object_open_opts, o,
		    .btf_custom_path = kerneltypes_path(store_dir, elf, size, path));

	return probe_bpf__open_opts(&o);
}

static bool any_stack(const struct hooks *k)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->v[i].asked->plan.stack)
			return true;
	return false;
}

static uint32_t ring_size(const struct hooks *k)
{
	uint64_t want = 0;
	uint32_t size = RING_LEAST;

	for (size_t i = 0; i < k->n; i++)
		want += (uint64_t)k->v[i].asked->plan.rate * RING_RECORD;
	while (size < want && size < RING_MOST)
		size *= 2;
	return size;
}

struct chosen {                   /* which programs a probe needs */
	struct bpf_program *from; /* NULL: it has one hook */
	struct bpf_program *at;
};

static struct bpf_program *program_alone(const struct hook *h, bool code)
{
	const bool stack = h->asked->plan.stack;
	const struct probe_bpf *s = h->skel;

	if (h->asked->n_frames)
		return stack ? s->progs.probe_frame_stack : s->progs.probe_frame;
	if (code)
		return stack ? s->progs.probe_code_stack : s->progs.probe_code;
	return stack ? s->progs.probe_tracepoint_stack : s->progs.probe_tracepoint;
}

static struct bpf_program *program_last(const struct hook *h, bool code)
{
	const bool stack = h->asked->plan.stack;
	const struct probe_bpf *s = h->skel;

	if (code)
		return stack ? s->progs.probe_last_code_stack : s->progs.probe_last_code;
	return stack ? s->progs.probe_last_event_stack : s->progs.probe_last_event;
}

static struct chosen programs_of(const struct hook *h)
{
	const struct asked_probe *p = h->asked;
	const struct probe_bpf *s = h->skel;
	const bool code = *p->at.path != 0;

	if (p->plan.pair == PROBE_PAIR_KEYS)
		return (struct chosen){*p->from.path ? s->progs.probe_first_code :
						       s->progs.probe_first_event,
				       program_last(h, code)};
	if (p->spec.at.kind == PROBESPEC_SYSCALL)
		return (struct chosen){s->progs.probe_call_begin,
				       p->plan.stack ? s->progs.probe_call_end_stack :
						       s->progs.probe_call_end};
	return (struct chosen){NULL, program_alone(h, code)};
}

static void configure_first(const struct hooks *k, struct hook *h, const struct family_config *c)
{
	const bool stacks = any_stack(k);

	bpf_map__set_max_entries(h->skel->maps.events, stacks ? (uint32_t)c->ring_bytes : SMALL);
	bpf_map__set_max_entries(h->skel->maps.late, stacks ? (uint32_t)c->late_bytes : SMALL);
	bpf_map__set_max_entries(h->skel->maps.hits, ring_size(k));
	bpf_program__set_autoload(h->skel->progs.probe_fork, c->target->follow_children);
	bpf_program__set_autoload(h->skel->progs.probe_exit, c->target->follow_children);
}

static int share(const struct hooks *k, struct hook *h)
{
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(SHARED); i++)
		err = bpf_map__reuse_fd(
			bpf_object__find_map_by_name(h->skel->obj, SHARED[i]),
			bpf_object__find_map_fd_by_name(k->v[0].skel->obj, SHARED[i]));
	return err;
}

/* By cookie, from 5.15 on; else by place in the page. */
static void sites_configure(struct hook *h)
{
	const struct asked_probe *p = h->asked;

	h->cookies = libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie,
					     NULL) == 1;
	h->skel->rodata->use_cookie = h->cookies;
	memcpy((void *)h->skel->rodata->sites, p->sites, sizeof(p->sites));
	for (size_t i = 0; i < p->n_frames; i++)
		((__u8 *)h->skel->rodata->site_at)[p->at.offset[i] % PROBE_PAGE] = (__u8)i;
}

/* Without cookies two sites with one place in their pages are one: that cannot be. */
static bool sites_differ(const struct hook *h)
{
	const struct asked_probe *p = h->asked;

	for (size_t i = 0; !h->cookies && i < p->n_frames; i++)
		for (size_t k = 0; k < i; k++)
			if (p->at.offset[i] % PROBE_PAGE == p->at.offset[k] % PROBE_PAGE)
				return false;
	return true;
}

static void configure(const struct hooks *k, struct hook *h, const struct family_config *c)
{
	int64_t depth = sysctl_kernel("perf_event_max_stack", STACK_KERNEL_MAX);
	struct probe_bpf *skel = h->skel;
	struct chosen programs = programs_of(h);
	struct bpf_program *each;

	if (depth > 0 && depth < STACK_KERNEL_MAX)
		skel->rodata->stack_depth = (uint32_t)depth;
	skel->rodata->ring_bytes = any_stack(k) ? (uint32_t)c->ring_bytes : SMALL;
	memcpy((void *)&skel->rodata->plan, &h->asked->plan, sizeof(h->asked->plan));
	scope_configure(skel->obj, c->target, &skel->rodata->scope);
	scripts_configure(skel->obj, 0);
	for (size_t i = 0; i < ARRAY_SIZE(OF_STACKS); i++)
		if (!h->asked->plan.stack)
			bpf_map__set_autocreate(
				bpf_object__find_map_by_name(skel->obj, OF_STACKS[i]), false);
	if (h->asked->spec.n_by)
		bpf_map__set_max_entries(skel->maps.sums, SUMS_BY);
	if (h->asked->spec.at.kind != PROBESPEC_SYSCALL)
		bpf_map__set_autocreate(skel->maps.calls, false);
	if (h->asked->plan.pair == PROBE_ALONE)
		bpf_map__set_max_entries(skel->maps.begins, 1);
	sites_configure(h);
	bpf_object__for_each_program (each, skel->obj)
		bpf_program__set_autoload(each, each == programs.from || each == programs.at);
	if (h == k->v)
		configure_first(k, h, c);
	programs_keep_still(skel->obj);
	maproom_fixed(skel->obj);
}

static int hook_open(struct hooks *k, struct hook *h, const struct family_config *c)
{
	int err;

	h->skel = skel_open(c->store_dir);
	if (!h->skel)
		return -errno;
	configure(k, h, c);
	err = !sites_differ(h) ? -EOPNOTSUPP : h == k->v ? 0 : share(k, h);
	if (!err)
		err = tables_reuse(h->skel->obj, c->tables);
	if (!err)
		err = probe_bpf__load(h->skel);
	if (!err && h == k->v)
		err = scope_fill(h->skel->obj, c->target);
	return err;
}

static int hit_taken(void *ctx, void *record, size_t size)
{
	struct hooks *k = ctx;
	const struct probe_event *ev = record;

	if (size >= offsetof(struct probe_event, text) &&
	    size >= offsetof(struct probe_event, text) + ev->n_text && ev->index < k->n)
		k->hit(k->ctx, ev, size);
	return 0;
}

int hooks_open(struct hooks *k, const struct family_config *c, const struct asked *asked,
	       hooks_hit hit, void *ctx, struct err *e)
{
	int err = 0;

	*k = (struct hooks){.hit = hit, .ctx = ctx, .n = asked->n};
	for (size_t i = 0; i < k->n; i++)
		k->v[i].asked = &asked->v[i];
	for (size_t i = 0; !err && i < k->n; i++)
		err = hook_open(k, &k->v[i], c);
	if (!err) {
		k->ring =
			ring_buffer__new(bpf_map__fd(k->v[0].skel->maps.hits), hit_taken, k, NULL);
		err = k->ring ? 0 : -errno;
	}
	if (!err)
		return 0;
	hooks_close(k);
	return load_error(err, "probe", e);
}

struct bpf_object *hooks_object(const struct hooks *k)
{
	return k->v[0].skel->obj;
}

/* ---- attach ---- */

static int attach_error(const struct hook *h, const struct asked_hook *k, int err, struct err *e)
{
	const struct asked_probe *p = h->asked;

	if (!*k->path)
		return load_error(err, p->spec.name, e);
	err_set(e, err, err == -EPERM || err == -EACCES ? EXIT_PERMISSION : EXIT_RUNTIME,
		"probe %s cannot be set at %s+0x%llx: %s", p->spec.name, k->path,
		(unsigned long long)k->offset[0],
		err == -EINVAL || err == -ENOTSUP || err == -EIO ?
			"no instruction of the file begins there, or the kernel can set none there" :
		err == -ESTALE ? "the file was replaced or changed since it was read" :
				 strerror(-err));
	return err;
}

/* Calls and pairs that began before it was taken away: their threads may be in others by now, which
 * began while it was away. */
static void begun_forget(const struct hook *h)
{
	const bool call = h->asked->spec.at.kind == PROBESPEC_SYSCALL;
	int fd = bpf_map__fd(call ? h->skel->maps.calls : h->skel->maps.begins);
	uint64_t key[1 + PROBE_BY];

	while (!bpf_map_get_next_key(fd, NULL, key) && !bpf_map_delete_elem(fd, key))
		;
}

/* Is it the file still that its places were found in? */
static bool is_same_file(const struct asked_hook *k)
{
	struct stat st;

	return !k->ino || (!stat(k->path, &st) && st.st_dev == k->dev && st.st_ino == k->ino &&
			   (uint64_t)st.st_size == k->size &&
			   st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec == k->written_ns);
}

static int hook_attach_at(struct hook *h, struct bpf_program *prog, const struct asked_hook *k,
			  struct err *e)
{
	struct tap tap;
	int err = 0;

	if (*k->path && !is_same_file(k))
		return attach_error(h, k, -ESTALE, e);
	/* backwards: ways out before the begin */
	for (size_t i = *k->path ? k->n_sites : 1; !err && i--;) {
		err = *k->path ? tap_uprobe(prog, k->path, k->offset[i], k->semaphore,
					    h->cookies && h->asked->n_frames ? i : 0, &tap) :
				 tap_tracepoint(prog, k->tracepoint, &tap);
		if (!err)
			taps_add(&h->taps, tap);
	}
	return err ? attach_error(h, k, err, e) : 0;
}

int hook_attach(struct hook *h, struct err *e)
{
	const struct asked_probe *p = h->asked;
	const struct chosen programs = programs_of(h);
	int err;

	if (programs.from || p->plan.pair)
		begun_forget(h);
	err = hook_attach_at(h, programs_used(h->skel->obj, programs.at), &p->at, e);
	if (!err && programs.from) /* last: no begin without its end */
		err = hook_attach_at(h, programs_used(h->skel->obj, programs.from), &p->from, e);
	if (err)
		hook_detach(h);
	return err;
}

void hook_detach(struct hook *h)
{
	if (h->taps.n)
		taps_end(&h->taps);
	taps_release(&h->taps);
}

static int follow(struct hooks *k, struct err *e)
{
	struct probe_bpf *skel = k->v[0].skel;
	struct bpf_program *progs[] = {skel->progs.probe_fork, skel->progs.probe_exit};

	for (size_t i = 0; i < ARRAY_SIZE(progs); i++) {
		struct bpf_program *prog = programs_used(skel->obj, progs[i]);

		if (bpf_program__fd(prog) < 0)
			continue;
		k->follow[i] = bpf_program__attach(prog);
		if (!k->follow[i])
			return load_error(-errno, bpf_program__name(prog), e);
	}
	return 0;
}

int hooks_attach(struct hooks *k, struct err *e)
{
	int err = follow(k, e);

	for (size_t i = 0; !err && i < k->n; i++)
		err = hook_attach(&k->v[i], e);
	return err;
}

void hooks_detach(struct hooks *k)
{
	for (size_t i = 0; i < k->n; i++)
		hook_detach(&k->v[i]);
	for (size_t i = 0; i < ARRAY_SIZE(k->follow); i++) {
		bpf_link__destroy(k->follow[i]);
		k->follow[i] = NULL;
	}
}

void hooks_close(struct hooks *k)
{
	hooks_detach(k);
	ring_buffer__free(k->ring);
	k->ring = NULL;
	for (size_t i = 0; i < k->n; i++) {
		probe_bpf__destroy(k->v[i].skel);
		k->v[i].skel = NULL;
	}
}

/* ---- while they run ---- */

int hooks_stack_fd(const struct hooks *k)
{
	return bpf_map__fd(k->v[0].skel->maps.events);
}

int hooks_late_fd(const struct hooks *k)
{
	return bpf_map__fd(k->v[0].skel->maps.late);
}

void hooks_read(struct hooks *k)
{
	ring_buffer__consume(k->ring);
}

uint32_t hooks_epoch_end(struct hooks *k)
{
	uint32_t epoch = 0;

	for (size_t i = 0; i < k->n; i++)
		epoch = __atomic_fetch_add(&k->v[i].skel->bss->probe_epoch, 1, __ATOMIC_SEQ_CST);
	return epoch;
}

int hook_sums_fd(const struct hook *h)
{
	return bpf_map__fd(h->skel->maps.sums);
}

void hook_rest(const struct hook *h, uint32_t epoch, struct probe_sum *out)
{
	static const struct probe_sum nothing;
	const int fd = bpf_map__fd(h->skel->maps.rest);
	uint32_t slot = epoch & 1;

	*out = nothing;
	if (!bpf_map_lookup_elem(fd, &slot, out) && out->hits)
		bpf_map_update_elem(fd, &slot, &nothing, BPF_ANY);
}

void hook_counts(const struct hook *h, struct probe_counts *out)
{
	*out = (struct probe_counts){0};
	percpu_sum(bpf_map__fd(h->skel->maps.counts), out, sizeof(*out));
}

uint64_t hook_missed(const struct hook *h)
{
	struct programs_figures f;

	programs_read(h->skel->obj, &f);
	return f.missed;
}

void hook_every(struct hook *h, uint32_t every)
{
	__atomic_store_n(&h->skel->bss->probe_every, every, __ATOMIC_RELAXED);
}

void hooks_tally(const struct hooks *k, struct sample_tally *out)
{
	*out = (struct sample_tally){0};
	for (size_t i = 0; i < k->n; i++) {
		struct sample_tally one;

		percpu_sum(bpf_map__fd(k->v[i].skel->maps.tally), &one, sizeof(one));
		out->seen += one.seen;
		out->ring_full += one.ring_full;
		out->no_room += one.no_room;
		out->unfollowed += one.unfollowed;
	}
}
