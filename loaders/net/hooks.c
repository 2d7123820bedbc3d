/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/net/hooks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/bpf/load/kerneltypes.h"
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/maproom.h"
#include "loaders/lib/bpf/load/percpu.h"
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/net/record.h"
#include "probes/net.skel.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define ENDS_EACH (1u << 20) /* for each CPU */
#define ENDS_MOST (4u << 20)

/* 10 000 connections with both ends here are 20 000 sockets. A reading walks all of its
 * buckets */
#define CONNS_LEAST 32768
#define CONNS_MOST  262144
#define LOOK_UP     4096 /* keys at a time */

#define NO_TALKS "traffic of Unix and UDP sockets is not recorded"

static const struct leftout_program OPTIONAL[] = {
	{"net_reset_in", "connections that the other end resets count as closed in order"},
	{"net_reset_out", "connections that this host resets count as closed in order, and refused "
			  "attempts are not counted"},
	{"net_synack", "repeated answers to attempts to connect are not counted"},
	{"net_destroy",
	 "which process closes a connection that another one has opened is not known"},
	{"net_sent", NO_TALKS, .with = "net_received"},
	{"net_received", NO_TALKS, .with = "net_sent"},
	{"net_read", NULL}, /* look-ups instead */
	{"net_sweep", HOOKS_NO_SWEEP},
	{0}};

static struct bpf_program *program(const struct hooks *k, enum hook hook)
{
	/* clang-format off */
	struct bpf_program *const all[HOOKS] = {
		[HOOK_STATE] = k->skel->progs.net_state, [HOOK_DESTROY] = k->skel->progs.net_destroy,
		[HOOK_RESET_IN] = k->skel->progs.net_reset_in, [HOOK_RESET_OUT] = k->skel->progs.net_reset_out,
		[HOOK_SYNACK] = k->skel->progs.net_synack, [HOOK_SENT] = k->skel->progs.net_sent, [HOOK_RECEIVED] = k->skel->progs.net_received,
		[HOOK_READ] = k->skel->progs.net_read, [HOOK_SWEEP] = k->skel->progs.net_sweep,
	};
	/* clang-format on */

	return all[hook];
}

/* Four times as many as there are TCP sockets now, by /proc/net/sockstat of this namespace. */
static uint32_t conns_room(void)
{
	FILE *f = fopen("/proc/net/sockstat", "re");
	unsigned long used = 0;
	uint32_t room = CONNS_LEAST;
	char line[256];

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "TCP: inuse %lu", &used) != 1)
		;
	if (f)
		fclose(f);
	while (room < used * 4 && room < CONNS_MOST)
		room *= 2;
	return room;
}

static int taken(void *ctx, void *record, size_t size)
{
	struct hooks *k = ctx;

	if (record_sound(record, size))
		k->take(k->ctx, record, size);
	return 0;
}

SKELETON_OPEN(net)

bool hooks_tells_talks(void)
{
	return libbpf_find_vmlinux_btf_id("sock_send_length", BPF_TRACE_RAW_TP) > 0;
}

static struct bpf_link *map_iterator(const struct hooks *k)
{
	union bpf_iter_link_info info = {.map.map_fd = (uint32_t)bpf_map__fd(k->skel->maps.conns)};
	LIBBPF_OPTS(bpf_iter_attach_opts, o, .link_info = &info, .link_info_len = sizeof(info));

	return bpf_program__attach_iter(k->skel->progs.net_read, &o);
}

/* The map is read once, empty as it is: the kernel may refuse that at any step. */
static int map_try(struct hooks *k)
{
	if (k->looks)
		return hooks_read(k);
	k->links[HOOK_READ] = map_iterator(k);
	return k->links[HOOK_READ] ? hooks_read(k) : -errno;
}

static int load(struct hooks *k, const struct family_config *c)
{
	int err;

	k->skel = skel_open(c->store_dir);
	if (!k->skel)
		return -errno;
	bpf_map__set_max_entries(k->skel->maps.conns, conns_room());
	k->skel->rodata->ends_bytes = maproom_ring(c->cpus, ENDS_EACH, ENDS_EACH, ENDS_MOST);
	bpf_map__set_max_entries(k->skel->maps.ends, k->skel->rodata->ends_bytes);
	k->talks = hooks_tells_talks() && !leftout_is("net_sent");
	bpf_program__set_autoload(k->skel->progs.net_sent, k->talks);
	bpf_program__set_autoload(k->skel->progs.net_received, k->talks);
	if (!k->talks)
		bpf_map__set_max_entries(k->skel->maps.talks, 1);
	k->looks = leftout_is("net_read");
	k->skel->rodata->tells_destroyed = !leftout_is("net_destroy");
	bpf_program__set_autoload(k->skel->progs.net_look, k->looks);
	maproom_on_demand(k->skel->obj);
	programs_keep_still(k->skel->obj);
	leftout_disable(k->skel->obj);
	err = net_bpf__load(k->skel);
	if (!err) {
		k->ring = ring_buffer__new(bpf_map__fd(k->skel->maps.ends), taken, k, NULL);
		err = k->ring ? 0 : -errno;
	}
	return err ? err : map_try(k);
}

int hooks_open(struct hooks *k, const struct family_config *c, hooks_take take, void *ctx,
	       struct err *e)
{
	const struct hooks none = {.take = take, .ctx = ctx};
	int err;

	*k = none;
	while ((err = load(k, c))) {
		bool loaded = k->ring; /* then it is the map's iterator that is refused */

		hooks_close(k);
		*k = none;
		if (loaded && !leftout_is("net_read"))
			leftout_add(OPTIONAL, "net_read");
		else if (loaded || !leftout_next(OPTIONAL, err))
			return load_error(err, "net", e);
	}
	if (k->looks)
		log_info("net: the kernel refuses an iterator: the map is read by look-ups");
	return 0;
}

struct bpf_object *hooks_object(const struct hooks *k)
{
	return k->skel->obj;
}

static struct bpf_link *attach(const struct hooks *k, enum hook hook)
{
	if (hook == HOOK_SWEEP)
		return bpf_program__attach_iter(program(k, hook), NULL);
	return bpf_program__attach(programs_used(k->skel->obj, program(k, hook)));
}

int hooks_attach(struct hooks *k, struct err *e)
{
	for (int i = 0; i < HOOKS; i++) {
		struct bpf_program *prog = programs_used(k->skel->obj, program(k, (enum hook)i));

		if (i == HOOK_READ || !bpf_program__autoload(prog))
			continue;
		k->links[i] = attach(k, (enum hook)i);
		if (k->links[i])
			continue;
		if (i != HOOK_SWEEP)
			return load_error(-errno, bpf_program__name(prog), e);
		leftout_add(OPTIONAL, "net_sweep");
	}
	return 0;
}

/*
 * Each takes a grace period of the kernel. A socket that is destroyed after its last state was
 * missed would be reported as it is, its FIN counted as a byte: so the programs for destruction are
 * detached first. One that is reset after that must not be reported as something else: so those for
 * resets are last.
 */
void hooks_reduce(struct hooks *k, uint32_t step)
{
	__atomic_store_n(&k->skel->bss->talks_shift, 2 * step, __ATOMIC_RELAXED);
}

void hooks_detach(struct hooks *k)
{
	static const enum hook order[] = {HOOK_SENT,   HOOK_RECEIVED,  HOOK_DESTROY, HOOK_STATE,
					  HOOK_SYNACK, HOOK_RESET_OUT, HOOK_RESET_IN};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		bpf_link__destroy(k->links[order[i]]);
		k->links[order[i]] = NULL;
	}
}

void hooks_close(struct hooks *k)
{
	for (int i = 0; i < HOOKS; i++)
		bpf_link__destroy(k->links[i]);
	ring_buffer__free(k->ring);
	net_bpf__destroy(k->skel);
	*k = (struct hooks){0};
}

int hooks_talks(const struct hooks *k)
{
	return k->talks ? bpf_map__fd(k->skel->maps.talks) : -1;
}

int hooks_wake_fd(const struct hooks *k)
{
	return bpf_map__fd(k->skel->maps.ends);
}

int hooks_ends(struct hooks *k)
{
	return ring_buffer__consume(k->ring);
}

/* Records are whole in what the kernel gives, but may be cut where our buffer ends. */
static int iterate(struct hooks *k, enum hook hook)
{
	cleanup_fd int fd = bpf_iter_create(bpf_link__fd(k->links[hook]));
	cleanup_free char *buf = NULL;
	size_t each = hook == HOOK_SWEEP ? sizeof(struct net_other) : sizeof(struct net_record),
	       size = each * 200, have = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	buf = mem_alloc(size);
	while ((got = read(fd, buf + have, size - have)) > 0 ||
	       (got < 0 && (errno == EAGAIN || errno == EINTR))) {
		size_t at = 0;

		have += got > 0 ? (size_t)got : 0;
		for (; have - at >= each; at += each)
			if (record_sound(buf + at, each))
				k->take(k->ctx, buf + at, each);
		memmove(buf, buf + at, have - at);
		have -= at;
	}
	return got < 0 ? -errno : 0;
}

/* Records of these. */
static int looks_make(struct hooks *k, const uint64_t *keys, uint32_t n)
{
	struct net_record *looks = k->skel->bss->looks;
	LIBBPF_OPTS(bpf_test_run_opts, o);
	int err;

	for (uint32_t i = 0; i < n; i++)
		looks[i] = (struct net_record){.sk = keys[i]};
	k->skel->bss->n_looks = n;
	err = bpf_prog_test_run_opts(bpf_program__fd(k->skel->progs.net_look), &o);
	if (err)
		return err;
	for (uint32_t i = 0; i < n; i++)
		if (record_sound(&looks[i], sizeof(looks[i])))
			k->take(k->ctx, &looks[i], sizeof(looks[i]));
	return o.retval == n ? 0 : -EAGAIN;
}

/*
 * By batches of keys. The kernel copies a bucket of the hash under its lock, goes on with the next
 * one, and returns the bucket's number as its position. So the walk ends whatever is added or
 * deleted meanwhile, and returns a key that stays exactly once. Asking for the key after a key
 * would not do: if that key is deleted, the kernel starts from the beginning. A bucket that is
 * longer than the buffer gives -ENOSPC, and is read again with more room.
 */
static int look_up(struct hooks *k)
{
	int fd = bpf_map__fd(k->skel->maps.conns), err = 0, failed = 0;
	uint32_t room = LOOK_UP, at = 0, next = 0;
	cleanup_free uint64_t *keys = mem_array(room, sizeof(*keys));
	cleanup_free struct net_conn *values = mem_array(room, sizeof(*values));

	for (bool first = true; !err;) {
		uint32_t n = room;

		err = bpf_map_lookup_batch(fd, first ? NULL : &at, &next, keys, values, &n, NULL);
		if (err == -ENOSPC && room < bpf_map__max_entries(k->skel->maps.conns)) {
			room *= 2;
			keys = mem_realloc(keys, room * sizeof(*keys));
			values = mem_realloc(values, room * sizeof(*values));
			err = 0;
			continue;
		}
		if (err && err != -ENOENT)
			return err;
		for (uint32_t i = 0; i < n && !failed; i += NET_LOOKS)
			failed = looks_make(k, keys + i, n - i < NET_LOOKS ? n - i : NET_LOOKS);
		if (failed)
			return failed;
		first = false;
		at = next;
	}
	return 0;
}

int hooks_read(struct hooks *k)
{
	return k->looks ? look_up(k) : iterate(k, HOOK_READ);
}

int hooks_sweep(struct hooks *k)
{
	if (!k->links[HOOK_SWEEP])
		return -ENOTSUP;
	k->skel->bss->sweep++;
	return iterate(k, HOOK_SWEEP);
}

void hooks_tally(const struct hooks *k, struct net_tally *sum)
{
	percpu_sum(bpf_map__fd(k->skel->maps.tally), sum, sizeof(*sum));
}
