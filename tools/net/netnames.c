/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/net/netnames.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/select/askrows.h"

static const char NAMES[] =
	"SELECT process_id, address, name, how, min(ts), max(ts) FROM peer_names WHERE ts <= ?2 AND ?1 = ?1 GROUP BY process_id, address, name, how";

enum kind { KIND_PROCESS, KIND_CONTAINER, KIND_FILE, KINDS };

struct reading {
	const struct store_dict *dict;
	struct netnames *out;
};

static uint64_t key_of(enum kind kind, const struct store_process_row *p, const char *address)
{
	uint64_t h = hash_str(hash_u64(HASH_SEED, kind), address);

	if (kind == KIND_CONTAINER)
		return hash_str(h, p->container);
	return hash_u64(hash_u64(h, p->pid), (uint64_t)p->start_ns);
}

static void put(struct netnames *n, uint64_t key, const char *name, int64_t first, int64_t last)
{
	bool fresh;
	uint64_t *at = idmap_ref(&n->by_key, key, &fresh);

	for (size_t i = fresh ? 0 : *at; i; i = n->entries[i - 1].next) {
		struct netnames_entry *x = &n->entries[i - 1];

		if (strcmp(x->name, name))
			continue;
		x->first = first < x->first ? first : x->first;
		x->last = last > x->last ? last : x->last;
		return;
	}
	mem_grow(n->entries, n->n, n->cap);
	n->entries[n->n++] = (struct netnames_entry){
		.name = mem_strdup(name), .first = first, .last = last, .next = *at};
	*at = n->n;
}

static void take(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	int64_t first = sqlite3_column_int64(st, 4), last = sqlite3_column_int64(st, 5);
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	const char *address = askrows_text(st, 1), *name = askrows_text(st, 2);

	if (!p || !*name)
		return;
	if (!strcmp(askrows_text(st, 3), "hosts")) {
		put(r->out, key_of(KIND_FILE, p, address), name, first, last);
		return;
	}
	put(r->out, key_of(KIND_PROCESS, p, address), name, first, last);
	put(r->out, key_of(KIND_CONTAINER, p, address), name, first, last);
}

int netnames_read(const struct selection *sel, struct netnames *out, struct err *e)
{
	struct reading r = {.out = out};
	const struct askrows_part parts[] = {{NAMES, take, &r, .table = "peer_name_row"}};

	*out = (struct netnames){0};
	return askrows_each(sel, &r.dict, parts, 1, e);
}

void netnames_release(struct netnames *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->entries[i].name);
	free(n->entries);
	idmap_release(&n->by_key);
	*n = (struct netnames){0};
}

/* Was `x` there then, and later than `best`? If none was there: which came first. */
static bool better(const struct netnames_entry *x, const struct netnames_entry *best, int64_t at)
{
	int64_t mine = x->last < at ? x->last : at, its = best && best->last < at ? best->last : at;

	if (!best || (x->first <= at) != (best->first <= at))
		return !best || x->first <= at;
	if (x->first > at)
		return x->first < best->first;
	return mine != its ? mine > its : x->first > best->first;
}

const char *netnames_find(const struct netnames *n, const struct store_process_row *p,
			  const char *address, int64_t at)
{
	uint64_t place;

	for (int kind = 0; kind < KINDS; kind++) {
		const struct netnames_entry *best = NULL;

		if (!idmap_get(&n->by_key, key_of(kind, p, address), &place))
			continue;
		for (size_t i = (size_t)place; i; i = n->entries[i - 1].next)
			if (better(&n->entries[i - 1], best, at))
				best = &n->entries[i - 1];
		if (best)
			return best->name;
	}
	return NULL;
}
