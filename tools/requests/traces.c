/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/requests/traces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/select/askrows.h"

#define PREFIX_LEAST 8 /* digits of a trace's id that name it */

static const char SPANS[] =
	"SELECT process_id, side, protocol, service, operation, status, result, why, trace, how, coalesce(tid, 0), at_ns, coalesce(first_us, -1),"
	" coalesce(total_us, -1), span, coalesce(parent, 0), coalesce(caller, 0), partial FROM request_spans WHERE ts BETWEEN ?1 AND ?2";

static const char RECORDED[] =
	"SELECT 1 FROM run WHERE family = 'l7' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2";

/* ---- rows ---- */

struct reading {
	const struct selection *sel;
	const struct store_dict *dict; /* of the segment */
	struct traces *out;
	struct idmap seen; /* (span, side): a row that was kept twice */
	size_t cap;
};

static void take_run(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	(void)st;
	r->out->known = true;
}

static void row_texts(struct trace_row *r, const struct store_process_row *p, sqlite3_stmt *st)
{
	char **const texts[] = {&r->protocol, &r->service, &r->operation, &r->status,
				&r->result,   &r->why,     &r->trace,     &r->how};

	r->container = mem_strdup(p ? p->container : "");
	r->comm = mem_strdup(p ? p->comm : "");
	r->lang = mem_strdup(p ? p->lang : "");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		*texts[i] = mem_strdup(askrows_text(st, 2 + (int)i));
}

static bool has_room(struct traces *t, sqlite3_stmt *st)
{
	if (strcmp("ring", askrows_text(st, 7)) != 0)
		return true;
	if (t->ring == TRACES_RING) {
		t->left++;
		return false;
	}
	t->ring++;
	return true;
}

static void take(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	struct traces *t = r->out;
	struct trace_row *x;
	bool server = !strcmp(askrows_text(st, 1), "server"), fresh;
	uint64_t span = (uint64_t)sqlite3_column_int64(st, 14);

	idmap_ref(&r->seen, hash_u64(hash_u64(HASH_SEED, span), server), &fresh);
	if (!fresh || !span || (p && p->self && !r->sel->self) || !has_room(t, st))
		return;
	mem_grow(t->rows, t->n_rows, r->cap);
	x = &t->rows[t->n_rows++];
	*x = (struct trace_row){.server = server,
				.pid = p ? p->pid : 0,
				.tid = sqlite3_column_int64(st, 10),
				.at_ns = sqlite3_column_int64(st, 11),
				.first_us = sqlite3_column_int64(st, 12),
				.total_us = sqlite3_column_int64(st, 13),
				.span = span,
				.parent = (uint64_t)sqlite3_column_int64(st, 15),
				.caller = (uint64_t)sqlite3_column_int64(st, 16),
				.partial = sqlite3_column_int64(st, 17) != 0,
				.wanted = p ? select_wants_process(r->sel, p) :
					      !select_is_narrow(r->sel)};
	row_texts(x, p, st);
}

/* ---- nodes ---- */

struct building {
	struct traces *t;
	struct idmap exchange; /* a question's span -> node */
	struct idmap answer;   /* an answer's span -> node */
	struct idmap header; /* (trace, caller) -> a node whose other side is not here; TRACE_NONE:
				several */
};

static uint32_t node_new(struct traces *t)
{
	t->nodes[t->n_nodes] = (struct trace_node){.asked = TRACE_NONE,
						   .answered = TRACE_NONE,
						   .parent = TRACE_NONE,
						   .child = TRACE_NONE,
						   .next = TRACE_NONE,
						   .how = "",
						   .lone = "",
						   .size = 1};
	return (uint32_t)t->n_nodes++;
}

/* Both sides of an exchange have its id: the question as its own, the answer as its parent's. */
static void node_put(struct building *b, uint32_t row)
{
	const struct trace_row *r = &b->t->rows[row];
	uint64_t exchange = r->server ? r->parent : r->span, *at;
	bool fresh = true;
	uint32_t node;

	if (exchange) {
		at = idmap_ref(&b->exchange, exchange, &fresh);
		if (fresh)
			*at = node_new(b->t);
		node = (uint32_t)*at;
	} else {
		node = node_new(b->t);
	}
	*(r->server ? &b->t->nodes[node].answered : &b->t->nodes[node].asked) = row;
	if (r->server)
		idmap_set(&b->answer, r->span, node);
}

static uint64_t header_key(const struct trace_row *r, bool answered)
{
	return hash_u64(hash_u64(hash_str(HASH_SEED, r->trace), r->caller), answered);
}

static void header_note(struct building *b, uint32_t node)
{
	const struct trace_node *n = &b->t->nodes[node];
	bool answered = n->asked == TRACE_NONE, fresh;
	const struct trace_row *r = &b->t->rows[answered ? n->answered : n->asked];
	uint64_t *at;

	if ((n->asked != TRACE_NONE && n->answered != TRACE_NONE) || !*r->trace || !r->caller)
		return;
	at = idmap_ref(&b->header, header_key(r, answered), &fresh);
	*at = fresh ? node : TRACE_NONE;
}

/* An answer whose question was seen at another connection: behind a proxy that rewrites addresses,
 * inside TLS. */
static void header_join(struct building *b, uint32_t node)
{
	struct trace_node *n = &b->t->nodes[node];
	const struct trace_row *r;
	uint64_t asked, only;

	if (n->asked == TRACE_NONE || n->answered != TRACE_NONE)
		return;
	r = &b->t->rows[n->asked];
	if (!idmap_get(&b->header, header_key(r, false), &only) || only != node ||
	    !idmap_get(&b->header, header_key(r, true), &asked) || asked == TRACE_NONE)
		return;
	n->answered = b->t->nodes[asked].answered;
	n->by_header = true;
	b->t->nodes[asked].answered = TRACE_NONE; /* it is no node any more */
	idmap_set(&b->answer, b->t->rows[n->answered].span, node);
}

static const char *how_word(const char *how)
{
	return !strcmp(how, "thread")    ? "thread" :
	       !strcmp(how, "opener")    ? "opener" :
	       !strcmp(how, "goroutine") ? "goroutine" :
					   "";
}

static bool is_none(const struct trace_node *n)
{
	return n->asked == TRACE_NONE && n->answered == TRACE_NONE;
}

/* Times are kept in microseconds. */
static bool asked_within(const struct trace_row *question, const struct trace_row *parent)
{
	return question->at_ns + 1000 >= parent->at_ns &&
	       (parent->total_us < 0 ||
		question->at_ns <= parent->at_ns + (parent->total_us + 2) * 1000);
}

static void parent_find(struct building *b, uint32_t node)
{
	struct traces *t = b->t;
	struct trace_node *n = &t->nodes[node];
	uint64_t parent;

	if (n->asked == TRACE_NONE)
		return;
	t->asked++;
	if (!t->rows[n->asked].parent) {
		t->unlinked++;
		n->lone = strcmp(t->rows[n->asked].how, "several") ? "" : "several";
		return;
	}
	if (!idmap_get(&b->answer, t->rows[n->asked].parent, &parent) || parent == node) {
		n->lost_parent = true;
		return;
	}
	if (!asked_within(&t->rows[n->asked], &t->rows[t->nodes[parent].answered])) {
		t->unlinked++;
		n->lone = "order";
		return;
	}
	n->parent = (uint32_t)parent;
	n->how = how_word(t->rows[n->asked].how);
}

const struct trace_row *traces_row(const struct traces *t, uint32_t node)
{
	const struct trace_node *n = &t->nodes[node];

	return &t->rows[n->asked != TRACE_NONE ? n->asked : n->answered];
}

int64_t traces_us(const struct traces *t, uint32_t node)
{
	const struct trace_node *n = &t->nodes[node];
	int64_t us = traces_row(t, node)->total_us;

	return us < 0 && n->answered != TRACE_NONE ? t->rows[n->answered].total_us : us;
}

static const struct traces *sorting; /* of qsort */

static int later_first(const void *a, const void *b)
{
	const struct trace_row *x = traces_row(sorting, *(const uint32_t *)a),
			       *y = traces_row(sorting, *(const uint32_t *)b);

	return x->at_ns != y->at_ns ? x->at_ns < y->at_ns ? 1 : -1 :
				      (x->span < y->span) - (x->span > y->span);
}

static int slower_first(const void *a, const void *b)
{
	int64_t x = traces_us(sorting, *(const uint32_t *)a),
		y = traces_us(sorting, *(const uint32_t *)b);

	return x != y ? x < y ? 1 : -1 : -later_first(a, b);
}

/* Children in order of time: put in front, the latest first. */
static void children_link(struct traces *t)
{
	uint32_t *all = mem_array(t->n_nodes + 1, sizeof(*all));
	size_t n = 0;

	for (uint32_t i = 0; i < t->n_nodes; i++)
		if (!is_none(&t->nodes[i]))
			all[n++] = i;
	sorting = t;
	qsort(all, n, sizeof(*all), later_first);
	for (size_t i = 0; i < n; i++) {
		struct trace_node *x = &t->nodes[all[i]];

		if (x->parent == TRACE_NONE)
			continue;
		x->next = t->nodes[x->parent].child;
		t->nodes[x->parent].child = all[i];
	}
	free(all);
}

/* ---- trees ---- */

uint32_t traces_next(const struct traces *t, uint32_t root, uint32_t node, unsigned *depth)
{
	if (t->nodes[node].child != TRACE_NONE) {
		++*depth;
		return t->nodes[node].child;
	}
	while (node != root && t->nodes[node].next == TRACE_NONE) {
		node = t->nodes[node].parent;
		--*depth;
	}
	return node == root ? TRACE_NONE : t->nodes[node].next;
}

static bool tree_wanted(const struct traces *t, uint32_t root, uint32_t *size)
{
	bool wanted = false;
	unsigned depth = 0;

	*size = 0;
	for (uint32_t i = root; i != TRACE_NONE; i = traces_next(t, root, i, &depth)) {
		const struct trace_node *n = &t->nodes[i];

		wanted = wanted || (n->asked != TRACE_NONE && t->rows[n->asked].wanted) ||
			 (n->answered != TRACE_NONE && t->rows[n->answered].wanted);
		++*size;
	}
	return wanted;
}

static void roots_find(struct traces *t)
{
	t->roots = mem_array(t->n_nodes + 1, sizeof(*t->roots));
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		struct trace_node *n = &t->nodes[i];

		if (!is_none(n) && n->parent == TRACE_NONE && tree_wanted(t, i, &n->size))
			t->roots[t->n_roots++] = i;
	}
	sorting = t;
	qsort(t->roots, t->n_roots, sizeof(*t->roots), slower_first);
}

void traces_link(struct traces *t)
{
	struct building b = {.t = t};

	t->nodes = mem_array(t->n_rows + 1, sizeof(*t->nodes));
	for (uint32_t i = 0; i < t->n_rows; i++)
		node_put(&b, i);
	for (uint32_t i = 0; i < t->n_nodes; i++)
		header_note(&b, i);
	for (uint32_t i = 0; i < t->n_nodes; i++)
		header_join(&b, i);
	for (uint32_t i = 0; i < t->n_nodes; i++)
		parent_find(&b, i);
	children_link(t);
	roots_find(t);
	idmap_release(&b.exchange);
	idmap_release(&b.answer);
	idmap_release(&b.header);
}

static bool same_id(const char *id, uint64_t span)
{
	char text[20];

	snprintf(text, sizeof(text), "%llx", (unsigned long long)span);
	return span && !strcmp(id, text);
}

static bool row_named(const struct trace_row *r, const char *id)
{
	size_t n = strlen(id);

	return same_id(id, r->span) || (n >= PREFIX_LEAST && !strncmp(r->trace, id, n));
}

bool traces_named(const struct traces *t, uint32_t node, const char *id)
{
	const struct trace_node *n = &t->nodes[node];

	return (n->asked != TRACE_NONE && row_named(&t->rows[n->asked], id)) ||
	       (n->answered != TRACE_NONE && row_named(&t->rows[n->answered], id));
}

/* ---- whole ---- */

int traces_read(const struct selection *sel, struct traces *out, struct err *e)
{
	struct reading r = {.sel = sel, .out = out};
	const struct askrows_part parts[] = {{RECORDED, take_run, &r}, {SPANS, take, &r}};
	int rc;

	*out = (struct traces){0};
	rc = askrows_each(sel, &r.dict, parts, 2, e);
	idmap_release(&r.seen);
	if (!rc)
		traces_link(out);
	return rc;
}

void traces_release(struct traces *t)
{
	for (size_t i = 0; i < t->n_rows; i++) {
		struct trace_row *r = &t->rows[i];
		char *const texts[] = {r->container, r->comm,      r->lang,   r->protocol,
				       r->service,   r->operation, r->status, r->result,
				       r->why,       r->trace,     r->how};

		for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
			free(texts[k]);
	}
	free(t->rows);
	free(t->nodes);
	free(t->roots);
	*t = (struct traces){0};
}
