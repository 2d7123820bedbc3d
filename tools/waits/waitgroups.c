/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/waits/waitgroups.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/read/waits.h"
#include "tools/select/select.h"

static const char *container_of(const struct store_process_row *p)
{
	return *p->container ? p->container : p->container_id;
}

static bool is_go(const struct store_process_row *p)
{
	return !strcmp(p->lang, "go");
}

static void group_count(struct waitgroup *c, const struct store_process_row *p)
{
	idmap_set(&c->processes, hash_u64(hash_u64(HASH_SEED, p->pid), (uint64_t)p->start_ns),
		  p->pid);
}

struct waitgroup *waitgroups_of(struct waitgroups *g, const struct store_process_row *p,
				const char *thread, const char *class, bool partial)
{
	struct strbuf key cleanup_strbuf = STRBUF_INIT;
	bool one = g->by == WAITSUM_BY_PROCESS || g->by == WAITSUM_BY_THREAD;
	struct waitgroup *c;

	strbuf_addf(&key, "%s\n%s\n%d\n", container_of(p), class, partial);
	if (g->by != WAITSUM_BY_CONTAINER)
		strbuf_addf(&key, "%s\n", p->comm);
	if (one)
		strbuf_addf(&key, "%u %lld %u\n", p->pid, (long long)p->start_ns, p->exec_id);
	if (g->by == WAITSUM_BY_THREAD)
		strbuf_addstr(&key, thread);
	HASH_FIND_STR(g->all, strbuf_str(&key), c);
	if (c) {
		if (!one)
			group_count(c, p);
		c->kernel = c->kernel && select_is_kernel(p);
		c->go = c->go || is_go(p); /* of the same name; the language of a short one may not
					      be known */
		return c;
	}
	c = mem_alloc(sizeof(*c));
	if (!one)
		group_count(c, p);
	c->kernel = select_is_kernel(p);
	c->go = is_go(p);
	c->key = strbuf_take(&key);
	c->container = mem_strdup(container_of(p));
	c->comm = mem_strdup(g->by == WAITSUM_BY_CONTAINER ? "" : p->comm);
	c->thread = g->by == WAITSUM_BY_THREAD ? mem_strdup(thread) : NULL;
	c->class = mem_strdup(class);
	c->pid = one ? p->pid : 0;
	c->partial = partial;
	HASH_ADD_KEYPTR(hh, g->all, c->key, strlen(c->key), c);
	return c;
}

static void groups_free(struct waitgroups *g)
{
	struct waitgroup *c, *tmp;

	HASH_ITER (hh, g->all, c, tmp) {
		HASH_DEL(g->all, c);
		for (size_t i = 0; i < c->n_parts; i++) {
			waitobjects_free(c->parts[i].objects);
			hist_release(&c->parts[i].stacks.hist);
		}
		free(c->parts);
		hist_release(&c->exact.hist);
		idmap_release(&c->processes);
		idmap_release(&c->thread_of);
		free(c->threads);
		free(c->key);
		free(c->container);
		free(c->comm);
		free(c->thread);
		free(c->class);
		free(c);
	}
}

size_t waitgroup_thread_of(struct waitgroup *c, const struct store_process_row *p, uint32_t tid)
{
	uint64_t *at;
	bool fresh;

	at = idmap_ref(&c->thread_of,
		       hash_u64(hash_u64(hash_u64(HASH_SEED, p->pid), (uint64_t)p->start_ns), tid),
		       &fresh);
	if (fresh) {
		mem_grow(c->threads, c->n_threads, c->cap_threads);
		c->threads[c->n_threads] = (struct waitgroup_thread){0};
		*at = ++c->n_threads;
	}
	return *at - 1;
}

/* --- what stacks say --- */

static struct waitpart *part_of(struct waitgroup *c, const char *reason, bool idle)
{
	for (size_t i = 0; i < c->n_parts; i++)
		if (!strcmp(c->parts[i].reason, reason) && c->parts[i].idle == idle)
			return &c->parts[i];
	mem_grow(c->parts, c->n_parts, c->cap_parts);
	c->parts[c->n_parts] = (struct waitpart){.reason = reason, .idle = idle};
	return &c->parts[c->n_parts++];
}

/*
 * A kernel thread that was not woken is idle: if a disk or a lock holds up its work, the wait has
 * that class. A thread of a Go program is at a futex because it has no goroutine to run: waits of
 * goroutines are not waits of threads.
 */
bool waitgroup_idle_by_class(const struct waitgroup *c)
{
	return waitrule_idle_by_class(c->class) ||
	       (c->kernel && !strcmp(c->class, store_wait_reason(STORE_WAIT_OTHER))) ||
	       (c->go && !strcmp(c->class, store_wait_reason(STORE_WAIT_LOCK)));
}

struct waitpart *waitgroup_part(struct waitgroup *c, const struct waitrule *rule)
{
	return part_of(c, rule && rule->reason ? rule->reason : c->class,
		       rule ? rule->idle : waitgroup_idle_by_class(c));
}

/* --- names of functions --- */

static bool name_known(const struct waitgroups *g, const char *name, uint64_t *h, uint64_t *at)
{
	for (*h = hash_str(HASH_SEED, name); idmap_get(&g->names_at, *h, at); *h = hash_u64(*h, 1))
		if (!strcmp(g->names[*at], name))
			return true;
	return false;
}

uint32_t waitgroups_name(struct waitgroups *g, const char *name)
{
	uint64_t h, at;

	if (name_known(g, name, &h, &at))
		return (uint32_t)at;
	idmap_set(&g->names_at, h, g->n_names);
	mem_grow(g->names, g->n_names, g->cap_names);
	g->names[g->n_names] = mem_strdup(name);
	return (uint32_t)g->n_names++;
}

void waitgroups_add_function(struct waitgroups *g, struct waitpart *part, uint32_t name,
			     uint64_t ns)
{
	if (!part->functions)
		part->functions = ++g->n_parts;
	pairsums_add(&g->functions, part->functions - 1, name, ns);
}

void waitamount_add(struct waitamount *a, uint64_t n, uint64_t value, uint64_t max)
{
	a->n += n;
	a->value += value;
	if (max > a->max)
		a->max = max;
}

void waitgroups_release(struct waitgroups *g)
{
	groups_free(g);
	pairsums_release(&g->functions);
	for (size_t i = 0; i < g->n_names; i++)
		free(g->names[i]);
	free(g->names);
	idmap_release(&g->names_at);
	*g = (struct waitgroups){0};
}
