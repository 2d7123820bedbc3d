/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/net/netns.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/net/counts.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/write/facts.h"

#define NETNS_MOST   1024
#define FILE_MOST    (64u << 10)
#define SEEN_COLUMNS (NETNS_N - NETNS_SEEN_ATTEMPTS)

struct netns {
	uint32_t inum;
	uint32_t round; /* the last one that it was met in */
	uint32_t pid;   /* of one process of it */
	uint64_t start_ns;
	uint32_t exec_id;
	bool begun;
	struct fact_row last;
	uint64_t seen[SEEN_COLUMNS], told[SEEN_COLUMNS];
	int64_t told_ns;
	UT_hash_handle hh;
};

/* ---- which there are ---- */

static struct netns *netns_get(struct netnses *ns, uint32_t inum)
{
	struct netns *n;

	HASH_FIND(hh, ns->all, &inum, sizeof(inum), n);
	if (n || HASH_COUNT(ns->all) >= NETNS_MOST)
		return n;
	n = mem_alloc(sizeof(*n));
	n->inum = inum;
	HASH_ADD(hh, ns->all, inum, sizeof(n->inum), n);
	return n;
}

void netnses_seen(struct netnses *ns, uint32_t netns, int column, uint64_t n)
{
	struct netns *x = n ? netns_get(ns, netns) : NULL;

	if (x)
		x->seen[column - NETNS_SEEN_ATTEMPTS] += n;
}

static void forget(struct netnses *ns, bool all)
{
	struct netns *n, *next;

	HASH_ITER (hh, ns->all, n, next) {
		if (!all && ns->round - n->round < 3)
			continue;
		HASH_DEL(ns->all, n);
		free(n);
	}
}

void netnses_release(struct netnses *ns)
{
	forget(ns, true);
	idmap_release(&ns->known);
	strbuf_release(&ns->text);
}

/* One that enters another namespace is asked again as another program, or never: most do it before
 * they exec. */
static uint32_t inum_of(struct netnses *ns, const struct hostmaps_process *p)
{
	uint64_t key = hash_u64(hash_u64(HASH_SEED, p->start_ns),
				(uint64_t)p->exec_id << 32 | p->tgid),
		 at;
	char path[64];
	struct stat st;

	if (idmap_get(&ns->known, key, &at))
		return (uint32_t)at;
	snprintf(path, sizeof(path), "/proc/%u/ns/net", p->tgid);
	if (stat(path, &st))
		return 0;
	if (ns->known.n > 65536)
		idmap_clear(&ns->known);
	idmap_set(&ns->known, key, st.st_ino);
	return (uint32_t)st.st_ino;
}

static void meet(void *ctx, struct hostmaps_process *p)
{
	struct netnses *ns = ctx;
	uint32_t inum = inum_of(ns, p);
	struct netns *n = inum ? netns_get(ns, inum) : NULL;

	if (!n || n->round == ns->round)
		return;
	n->round = ns->round;
	n->pid = p->tgid;
	n->start_ns = p->start_ns;
	n->exec_id = p->exec_id;
}

/* ---- readings ---- */

static bool file_read(struct netnses *ns, const struct netns *n, const char *name)
{
	char path[64];
	cleanup_fd int fd = -1;
	char part[4096];
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%u/net/%s", n->pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	strbuf_reset(&ns->text);
	while (fd >= 0 && ns->text.len < FILE_MOST && (got = read(fd, part, sizeof(part))) > 0)
		strbuf_add(&ns->text, part, (size_t)got);
	return ns->text.len > 0;
}

static bool differences(const struct netns *n, const struct fact_row *now, struct fact_row *out)
{
	bool moved = false;

	for (int c = NETNS_ACTIVE; c < NETNS_SEEN_ATTEMPTS; c++) {
		uint64_t a = (uint64_t)n->last.v[c].number, b = (uint64_t)now->v[c].number;

		if (!fact_has(now, c))
			continue;
		if (c == NETNS_ESTAB) {
			fact_put(out, c, b);
		} else if (fact_has(&n->last, c) && b >= a) {
			fact_put(out, c, b - a);
			moved = moved || b > a;
		}
	}
	for (int i = 0; i < SEEN_COLUMNS; i++) {
		fact_put(out, NETNS_SEEN_ATTEMPTS + i, n->seen[i] - n->told[i]);
		moved = moved || n->seen[i] > n->told[i];
	}
	return moved;
}

static void netns_put(struct netnses *ns, struct netns *n, struct family_host *h, int64_t now_ns,
		      const struct fact_row *now)
{
	struct hostmaps_process *p = hostmaps_process(h->maps, n->pid, n->start_ns, n->exec_id);
	struct fact_row row = {0};
	char id[16];

	if (!differences(n, now, &row) && now_ns - n->told_ns < 60 * NSEC_PER_SEC)
		return;
	snprintf(id, sizeof(id), "%u", n->inum);
	fact_put_text(&row, NETNS_ID, id);
	fact_put(&row, NETNS_CONTAINER,
		 p && n->inum != ns->own && !naming_excludes(h->naming, p) ?
			 naming_container(h->naming, p) :
			 0);
	if (store_fact(h->store, h->run, now_ns + h->offset_ns, &NETNS_FACT, &row)) {
		h->refused++;
		return;
	}
	h->added++;
	memcpy(n->told, n->seen, sizeof(n->told));
	n->last = *now;
	n->told_ns = now_ns;
}

static void netns_read(struct netnses *ns, struct netns *n, struct family_host *h, int64_t now_ns)
{
	struct fact_row now = {0};

	if (file_read(ns, n, "snmp"))
		counts_parse(ns->text.buf, ns->text.len, &now);
	if (file_read(ns, n, "netstat"))
		counts_parse(ns->text.buf, ns->text.len, &now);
	if (!now.set)
		return;
	if (!n->begun)
		n->last = now;
	n->begun = true;
	netns_put(ns, n, h, now_ns, &now);
}

static void own_find(struct netnses *ns)
{
	struct stat st;

	if (!ns->own && !stat("/proc/1/ns/net", &st))
		ns->own = st.st_ino;
}

void netnses_read(struct netnses *ns, struct family_host *h, int64_t now_ns)
{
	struct netns *n, *next;

	own_find(ns);
	ns->round++;
	hostmaps_each(h->maps, meet, ns);
	HASH_ITER (hh, ns->all, n, next)
		if (n->pid && n->round == ns->round)
			netns_read(ns, n, h, now_ns);
	forget(ns, false);
}
