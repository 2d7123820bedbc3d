/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/hooks.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "loaders/lib/bpf/load/kerneltypes.h"
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/maproom.h"
#include "loaders/lib/bpf/load/percpu.h"
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/bpf/load/scope.h"
#include "loaders/lib/bpf/load/tables.h"
#include "loaders/lib/bpf/load/tracefs.h"
#include "probes/l7_tls.h"
#include "probes/l7.skel.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/idmap.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define BATCH 2048

#define RING_EACH  (2u << 20) /* for each CPU */
#define RING_LEAST (4u << 20)
#define RING_MOST  (8u << 20)

#define NO_LINKS "which request a thread serves when it makes another one is known less often"
#define NO_BEGIN "connections are seen from their first bytes on, not from their begin"

static const struct leftout_program OPTIONAL[] = {
	{"many_end", "messages of recvmmsg and sendmmsg are not read (some name servers)"},
	{"call_accepts", NO_BEGIN},
	{"call_connects", NO_BEGIN},
	{"thread_idles", NO_LINKS},
	{"thread_polls", NO_LINKS},
	{"l7_exit", NO_LINKS},
	{"l7_state", "the end of TCP connections is found later, when their sockets are gone, and "
		     "the last bytes may be missing"},
	{"l7_ready", "time that requests wait in the socket is not measured"},
	{"l7_uring", "requests by io_uring are not read"},
	{"l7_sent", NULL}, /* the exits of the calls instead */
	{"l7_sweep", HOOKS_NO_SWEEP},
	{"tls_site", "requests inside TLS are not read"},
	{0}};

SKELETON_OPEN(l7)

bool hooks_tells_came(void)
{
	return libbpf_find_vmlinux_btf_id("sk_data_ready", BPF_TRACE_RAW_TP) > 0;
}

static bool tells_uring(void)
{
	return libbpf_find_vmlinux_btf_id("io_uring_complete", BPF_TRACE_RAW_TP) > 0;
}

/*
 * From 6.5 on, where sendfile and splice send like all else. Before 7.0, and not with PREEMPT_RT:
 * there another thread may come in between while such a program runs, and its own send would not be
 * seen.
 */
static bool tells_sent(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct utsname u;
	bool tells = btf && btf__find_by_name(btf, "btf_trace_sock_send_length") > 0 &&
		     btf__find_by_name_kind(btf, "splice_to_socket", BTF_KIND_FUNC) > 0;

	btf__free(btf);
	return tells && !uname(&u) && strtoul(u.release, NULL, 10) < 7 &&
	       !strstr(u.version, "PREEMPT_RT");
}

void hooks_alive(struct hooks *k, uint64_t now_ns)
{
	tables_inflight_alive(k->tables, now_ns);
}

static int load(struct hooks *k, const struct family_config *c)
{
	uint32_t ring = maproom_ring(c->cpus, RING_EACH, RING_LEAST, RING_MOST);
	bool came = hooks_tells_came() && !leftout_is("l7_ready");
	int err;

	*k = (struct hooks){.skel = skel_open(c->store_dir)};
	if (!k->skel)
		return -errno;
	scope_configure(k->skel->obj, c->target, (struct scope_config *)&k->skel->rodata->scope);
	k->skel->rodata->own_tgid = (uint32_t)getpid();
	k->skel->rodata->tells_came = came;
	bpf_program__set_autoload(k->skel->progs.l7_ready, came);
	bpf_program__set_autoload(k->skel->progs.l7_uring, tells_uring());
	bpf_program__set_autoload(k->skel->progs.l7_sent, tells_sent());
	bpf_map__set_max_entries(k->skel->maps.records,
				 c->ring_bytes > ring ? (uint32_t)c->ring_bytes : ring);
	k->skel->rodata->ring_part = bpf_map__max_entries(k->skel->maps.records) / 16;
	maproom_on_demand(k->skel->obj);
	err = tables_reuse(k->skel->obj, c->tables);
	programs_keep_still(k->skel->obj);
	leftout_disable(k->skel->obj);
	if (!err)
		err = l7_bpf__load(k->skel);
	return err ? err : scope_fill(k->skel->obj, c->target);
}

int hooks_open(struct hooks *k, const struct family_config *c, struct err *e)
{
	int err;

	while ((err = load(k, c))) {
		hooks_close(k);
		if (!leftout_next(OPTIONAL, err))
			return load_error(err, "l7", e);
	}
	tables_inflight_open(c->tables, &k->tables);
	return 0;
}

struct bpf_object *hooks_object(const struct hooks *k)
{
	return k->skel->obj;
}

int hooks_ring(const struct hooks *k)
{
	return bpf_map__fd(k->skel->maps.records);
}

int hooks_wants(const struct hooks *k)
{
	return bpf_map__fd(k->skel->maps.wants);
}

int hooks_whos(const struct hooks *k)
{
	return bpf_map__fd(k->skel->maps.whos);
}

void hooks_parser(struct hooks *k, uint32_t tgid)
{
	k->skel->bss->parser_tgid = tgid;
}

uint32_t *hooks_agents(const struct hooks *k)
{
	return &k->skel->bss->tls_javas_n;
}

/* Which programs attach to which system calls: words of the tracepoints' names. `may`: absent on
 * some kernels, which is fine. */
static const struct {
	const char *program, *at, *calls, *may;
	bool untold; /* where l7_sent is not there */
} CALLS[] = {
	{"call_writes", "enter", "write writev sendto sendmsg sendmmsg sendfile64 splice", ""},
	{"call_ends", "exit", "read readv recvfrom recvmsg", ""},
	{"call_ends", "exit", "write writev sendto sendmsg sendfile64 splice", "", .untold = true},
	{"many_end", "exit", "recvmmsg sendmmsg", ""},
	{"call_accepts", "exit", "accept accept4", ""},
	{"call_connects", "exit", "connect", ""},
	{"thread_idles", "enter",
	 "epoll_wait epoll_pwait epoll_pwait2 select pselect6 accept accept4",
	 "epoll_pwait2" /* since 5.11 */},
	{"thread_polls", "enter", "poll ppoll", ""},
};

/* `events`: tracefs_open. */
static int calls_attach(struct hooks *k, int events, size_t i, struct err *e)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(k->skel->obj, CALLS[i].program);
	char words[128], name[64], *rest = NULL;

	if (leftout_is(CALLS[i].program))
		return 0;
	if (CALLS[i].untold &&
	    bpf_program__autoload(programs_used(k->skel->obj, k->skel->progs.l7_sent)))
		return 0;
	snprintf(words, sizeof(words), "%s", CALLS[i].calls);
	for (const char *call = strtok_r(words, " ", &rest); call;
	     call = strtok_r(NULL, " ", &rest)) {
		struct tap tap;
		uint64_t id;
		int err;

		snprintf(name, sizeof(name), "syscalls/sys_%s_%s", CALLS[i].at, call);
		err = tracefs_id(events, name, &id);
		if (!err)
			err = tap_tracepoint(prog, id, &tap);
		if (err && strcmp(call, CALLS[i].may))
			return load_error(err, name, e);
		if (!err)
			taps_add(&k->taps, tap);
	}
	return 0;
}

static int program_attach(struct hooks *k, struct bpf_program *prog)
{
	int err;

	if (k->n == HOOKS_MOST)
		return -E2BIG;
	k->links[k->n] = bpf_program__attach(prog);
	err = k->links[k->n] ? 0 : -errno;
	k->n += !err;
	return err;
}

int hooks_attach(struct hooks *k, struct err *e)
{
	cleanup_fd int events = tracefs_open(e);
	struct bpf_program *prog;
	int err = events < 0 ? events : 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(CALLS); i++)
		err = calls_attach(k, events, i, e);
	if (err)
		return err;
	bpf_object__for_each_program (prog, k->skel->obj) {
		if (prog == k->skel->progs.l7_sweep || prog == k->skel->progs.tls_site ||
		    bpf_program__type(prog) == BPF_PROG_TYPE_TRACEPOINT ||
		    !bpf_program__autoload(prog))
			continue;
		err = program_attach(k, prog);
		if (err)
			return load_error(err, bpf_program__section_name(prog), e);
	}
	if (bpf_program__autoload(k->skel->progs.l7_sweep))
		k->sweep = bpf_program__attach_iter(k->skel->progs.l7_sweep, NULL);
	if (!k->sweep)
		leftout_add(OPTIONAL, "l7_sweep");
	return 0;
}

void hooks_reduce(struct hooks *k, uint32_t step)
{
	__atomic_store_n(&k->skel->bss->conns_shift, 2 * step, __ATOMIC_RELAXED);
}

void hooks_detach(struct hooks *k, struct taps *with)
{
	hooks_alive(k, 0);
	for (size_t i = 0; i < k->n; i++)
		bpf_link__destroy(k->links[i]);
	k->n = 0;
	for (size_t i = 0; i < with->n; i++)
		taps_add(&k->taps, with->items[i]);
	taps_release(with);
	taps_end(&k->taps);
}

void hooks_close(struct hooks *k)
{
	hooks_detach(k, &(struct taps){0});
	tables_inflight_close(k->tables);
	bpf_link__destroy(k->sweep);
	l7_bpf__destroy(k->skel);
	*k = (struct hooks){0};
}

void hooks_tally(const struct hooks *k, struct l7_tally *sum)
{
	percpu_sum(bpf_map__fd(k->skel->maps.tally), sum, sizeof(*sum));
	sum->unseen_bytes += k->untold_bytes;
}

/* ---- the reading of descriptors ---- */

struct candidates {
	struct {
		uint64_t sk, ino;
	} * items;
	size_t n, cap;
};

static void entry_take(struct candidates *c, uint64_t sk, const struct l7_sock *x)
{
	if (x->protocol == IPPROTO_TCP && !leftout_is("l7_state"))
		return;
	mem_grow(c->items, c->n, c->cap);
	c->items[c->n].sk = sk;
	c->items[c->n++].ino = x->ino;
}

static void by_keys(int fd, struct candidates *c)
{
	uint64_t key, next;
	struct l7_sock x;

	for (int err = bpf_map_get_next_key(fd, NULL, &next); !err;
	     err = bpf_map_get_next_key(fd, &key, &next)) {
		key = next;
		if (!bpf_map_lookup_elem(fd, &key, &x))
			entry_take(c, key, &x);
	}
}

static void candidates_read(int fd, struct candidates *c)
{
	cleanup_free uint64_t *keys = mem_array(BATCH, sizeof(*keys));
	cleanup_free struct l7_sock *values = mem_array(BATCH, sizeof(*values));
	uint32_t batch, n;
	bool first = true;
	int err = 0;

	while (!err) {
		n = BATCH;
		err = bpf_map_lookup_batch(fd, first ? NULL : &batch, &batch, keys, values, &n,
					   NULL);
		if (err && err != -ENOENT) {
			if (first) /* not offered */
				by_keys(fd, c);
			return;
		}
		first = false;
		for (uint32_t i = 0; i < n; i++)
			entry_take(c, keys[i], &values[i]);
	}
}

static int held_read(struct hooks *k, struct idmap *held)
{
	cleanup_fd int fd = bpf_iter_create(bpf_link__fd(k->sweep));
	uint64_t buf[1024];
	size_t have = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while ((got = read(fd, (char *)buf + have, sizeof(buf) - have)) > 0 ||
	       (got < 0 && (errno == EAGAIN || errno == EINTR))) {
		size_t whole;

		have += got > 0 ? (size_t)got : 0;
		whole = have / 16;
		for (size_t i = 0; i < whole; i++)
			idmap_set(held, buf[2 * i], buf[2 * i + 1]);
		memmove(buf, (char *)buf + whole * 16, have - whole * 16);
		have -= whole * 16;
	}
	return got < 0 ? -errno : 0;
}

/* Entries are read first: what comes after that is not asked about. */
int hooks_sweep(struct hooks *k, void (*gone)(void *ctx, uint64_t sk, uint64_t ino), void *ctx)
{
	int fd = bpf_map__fd(k->skel->maps.socks), err;
	struct candidates c = {0};
	struct idmap held = {0};

	if (!k->sweep)
		return -ENOTSUP;
	candidates_read(fd, &c);
	err = c.n ? held_read(k, &held) : 0;
	for (size_t i = 0; !err && i < c.n; i++) {
		uint64_t ino;
		struct l7_sock now;

		if (idmap_get(&held, c.items[i].sk, &ino) && ino == c.items[i].ino)
			continue;
		if (!bpf_map_lookup_elem(fd, &c.items[i].sk, &now) && now.ino == c.items[i].ino) {
			if (now.flags & S_UNTOLD)
				k->untold_bytes +=
					now.pos[0] + now.pos[1] + now.tls_pos[0] + now.tls_pos[1];
			bpf_map_delete_elem(fd, &c.items[i].sk);
		}
		gone(ctx, c.items[i].sk, c.items[i].ino);
	}
	err = err ? err : (int)c.n;
	free(c.items);
	idmap_release(&held);
	return err;
}
