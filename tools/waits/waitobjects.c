/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/waits/waitobjects.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

struct by {
	char *name;
	uint32_t tid;
	uint64_t ns;
};

struct waitobject {
	char *key; /* object and peer, a line each */
	char *object;
	char *peer; /* NULL: not known */
	uint64_t ns;
	struct by *by;
	size_t n_by, cap_by;
	UT_hash_handle hh;
};

static struct by *by_of(struct waitobject *o, const char *name, uint32_t tid)
{
	for (size_t i = 0; i < o->n_by; i++)
		if (o->by[i].tid == tid && !strcmp(o->by[i].name, name))
			return &o->by[i];
	mem_grow(o->by, o->n_by, o->cap_by);
	o->by[o->n_by] = (struct by){.name = mem_strdup(name), .tid = tid};
	return &o->by[o->n_by++];
}

void waitobjects_add(struct waitobject **all, const char *object, const char *peer, const char *by,
		     uint32_t tid, uint64_t ns)
{
	struct strbuf key cleanup_strbuf = STRBUF_INIT;
	struct waitobject *o;

	strbuf_addf(&key, "%s\n%s", object, peer ? peer : "");
	HASH_FIND_STR(*all, strbuf_str(&key), o);
	if (!o) {
		o = mem_alloc(sizeof(*o));
		o->key = strbuf_take(&key);
		o->object = mem_strdup(object);
		o->peer = peer ? mem_strdup(peer) : NULL;
		HASH_ADD_KEYPTR(hh, *all, o->key, strlen(o->key), o);
	}
	o->ns += ns;
	if (tid)
		by_of(o, by, tid)->ns += ns;
}

struct waitobject_top waitobjects_top(const struct waitobject *all)
{
	const struct waitobject *top = NULL;
	const struct by *by = NULL;

	for (const struct waitobject *o = all; o; o = o->hh.next)
		if (!top || o->ns > top->ns || (o->ns == top->ns && strcmp(o->key, top->key) < 0))
			top = o;
	for (size_t i = 0; top && i < top->n_by; i++)
		if (!by || top->by[i].ns > by->ns ||
		    (top->by[i].ns == by->ns && top->by[i].tid < by->tid))
			by = &top->by[i];
	return (struct waitobject_top){.object = top ? top->object : NULL,
				       .peer = top ? top->peer : NULL,
				       .by = by ? by->name : NULL,
				       .by_tid = by ? by->tid : 0};
}

void waitobjects_free(struct waitobject *all)
{
	struct waitobject *o, *tmp;

	HASH_ITER (hh, all, o, tmp) {
		HASH_DEL(all, o);
		for (size_t i = 0; i < o->n_by; i++)
			free(o->by[i].name);
		free(o->by);
		free(o->key);
		free(o->object);
		free(o->peer);
		free(o);
	}
}
