/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/scrape/search.h"

#include <string.h>

#include "loaders/scrape/sockets.h"
#include "schema/base/mem.h"

#define TRIED_MAX 64

static bool was_tried(const struct goprog *p, uint64_t inode)
{
	for (uint32_t i = 0; i < p->n_tried; i++)
		if (p->tried[i] == inode)
			return true;
	return false;
}

void search_failed(struct goprog *p)
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

bool search_next(struct goprog *p, struct hostmaps *maps)
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
