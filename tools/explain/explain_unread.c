/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/explain_unread.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/model/stored.h"

#define NAMES_MOST 3

/* A container, or a command outside of containers, as fold_group_node names it. */
struct group {
	const char *name;
	bool container;
};

struct unread {
	struct group *groups;
	size_t n, cap;
	uint64_t ns[2], all[2]; /* what they held in the window in which they were read; of all */
};

static struct group group_of(const struct fold_process *p)
{
	const bool container = *p->container || *p->container_id;

	return (struct group){.name = *p->container ? p->container :
				      container     ? p->container_id :
						      p->comm,
			      .container = container};
}

static bool is_same(const struct fold_process *a, const struct fold_process *b)
{
	return a->pid == b->pid && a->start_ns == b->start_ns && !strcmp(a->comm, b->comm) &&
	       !strcmp(a->container_id, b->container_id);
}

static bool is_read(const struct fold *f, const struct fold_process *p)
{
	for (size_t i = 0; i < f->n_processes; i++)
		if (is_same(&f->processes[i], p))
			return true;
	return false;
}

/* Did it live until that window ended? */
static bool lived(const struct fold_process *p, const struct selection *sel)
{
	return p->start_ns < sel->to_ns && (!p->end_ns || p->end_ns > sel->to_ns);
}

static bool is_unread(const struct unread *u, const char *name, bool container)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->groups[i].container == container && !strcmp(u->groups[i].name, name))
			return true;
	return false;
}

static void find(struct unread *u, const struct explain *x, const struct diff *d)
{
	for (int side = 0; side < 2; side++) {
		const struct fold *f = d->side[side].f;

		for (size_t i = 0; i < f->n_processes; i++) {
			const struct fold_process *p = &f->processes[i];
			const struct group g = group_of(p);

			u->all[side] += p->ns;
			if (!p->ns || !lived(p, x->sel[!side]) || is_read(d->side[!side].f, p))
				continue;
			u->ns[side] += p->ns;
			if (is_unread(u, g.name, g.container))
				continue;
			mem_grow(u->groups, u->n, u->cap);
			u->groups[u->n++] = g;
		}
	}
}

/* The total is said if they are too small a part of it to matter. */
static bool total_is_known(const struct unread *u)
{
	for (int side = 0; side < 2; side++)
		if ((double)u->ns[side] > EXPLAIN_LEAST * (double)u->all[side])
			return false;
	return true;
}

static bool is_untrue(const struct unread *u, const struct explain_statement *s)
{
	switch (s->about) {
	case EXPLAIN_ALL:
		return !total_is_known(u);
	case EXPLAIN_CONTAINER:
	case EXPLAIN_COMMAND:
		return is_unread(u, s->name, s->about == EXPLAIN_CONTAINER);
	default:
		return s->in ? is_unread(u, s->in, !strcmp(s->in_module, FOLD_CONTAINER)) :
			       !total_is_known(u);
	}
}

static void name_them(struct explain *x, const struct unread *u, const struct diff *d)
{
	struct strbuf *out = &x->uncompared;

	strbuf_addf(out, "%s%s of ", out->len ? ", " : "", d->side[DIFF_AFTER].f->kind->name);
	for (size_t i = 0; i < u->n && i < NAMES_MOST; i++) {
		strbuf_addstr(out, i ? ", " : "");
		strbuf_addshown(out, u->groups[i].name, strlen(u->groups[i].name));
	}
	if (u->n > NAMES_MOST)
		strbuf_addf(out, " and %zu more", u->n - NAMES_MOST);
	strbuf_addstr(out, " (not read in both windows)");
}

void explain_unread_drop(struct explain *x, size_t first, const struct diff *d)
{
	const enum store_kind kind = d->side[DIFF_AFTER].f->kind->kind;
	struct unread u = {0};
	size_t kept = first;

	if (kind != STORE_KIND_INUSE && kind != STORE_KIND_ALLOC)
		return;
	find(&u, x, d);
	for (size_t i = first; i < x->n; i++)
		if (!is_untrue(&u, &x->rows[i]))
			x->rows[kept++] = x->rows[i];
	if (kept < x->n)
		name_them(x, &u, d);
	x->n = kept;
	free(u.groups);
}
