/* SPDX-License-Identifier: Apache-2.0 */
/* dict: interning. One open-addressing table of indexes a kind; one small table has hash and
 * equality of each kind. */
#include "schema/store/write/dict.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer.h"

#define STRING_MAX  (16 * 1024)
#define ARENA_CHUNK (32 * 1024)

struct dict_arena {
	struct dict_arena *next;
	size_t used, size;
	char data[];
};

/* --- strings --- */

static const char *arena_copy(struct dict *d, const char *s)
{
	size_t len = strlen(s) + 1;
	struct dict_arena *a = d->arena;
	char *copy;

	if (len == 1)
		return "";
	if (!a || a->size - a->used < len) {
		size_t size = len > ARENA_CHUNK ? len : ARENA_CHUNK;

		a = mem_alloc(sizeof(*a) + size);
		a->size = size;
		a->next = d->arena;
		d->arena = a;
		d->arena_bytes += sizeof(*a) + size;
		d->bytes += sizeof(*a) + size;
	}
	copy = a->data + a->used;
	memcpy(copy, s, len);
	a->used += len;
	return copy;
}

const char *dict_clean(struct dict *d, int slot, const char *s)
{
	size_t len, plain = 0;

	if (!s)
		return "";
	while (plain < STRING_MAX && s[plain] >= 0x20 && s[plain] < 0x7f)
		plain++;
	if (!s[plain])
		return s;
	len = strnlen(s, STRING_MAX);
	strbuf_reset(&d->scratch[slot]);
	strbuf_addutf8(&d->scratch[slot], s, len);
	return strbuf_str(&d->scratch[slot]);
}

/* --- what the kinds are equal by --- */

static uint64_t hash_2(uint64_t a, uint64_t b)
{
	return hash_u64(hash_u64(HASH_SEED, a), b);
}

static uint64_t text_hash(const void *p)
{
	return hash_str(HASH_SEED, ((const struct dict_text *)p)->s);
}

static bool text_same(const void *a, const void *b)
{
	return !strcmp(((const struct dict_text *)a)->s, ((const struct dict_text *)b)->s);
}

static void text_own(struct dict *d, void *p)
{
	struct dict_text *t = p;

	t->s = arena_copy(d, t->s);
}

static uint64_t container_hash(const void *p)
{
	const struct dict_container *c = p;

	return hash_str(hash_str(hash_str(HASH_SEED, c->runtime_id), c->cgroup), c->name);
}

static bool container_same(const void *a, const void *b)
{
	const struct dict_container *x = a, *y = b;

	return !strcmp(x->runtime_id, y->runtime_id) && !strcmp(x->cgroup, y->cgroup) &&
	       !strcmp(x->name, y->name) && !strcmp(x->runtime, y->runtime) &&
	       !strcmp(x->image, y->image) && !strcmp(x->project, y->project) &&
	       !strcmp(x->service, y->service) && !strcmp(x->labels, y->labels) &&
	       !strcmp(x->started, y->started) && x->restarts == y->restarts;
}

static void container_own(struct dict *d, void *p)
{
	struct dict_container *c = p;

	c->runtime = arena_copy(d, c->runtime);
	c->runtime_id = arena_copy(d, c->runtime_id);
	c->name = arena_copy(d, c->name);
	c->image = arena_copy(d, c->image);
	c->cgroup = arena_copy(d, c->cgroup);
	c->project = arena_copy(d, c->project);
	c->service = arena_copy(d, c->service);
	c->labels = arena_copy(d, c->labels);
	c->started = arena_copy(d, c->started);
}

static uint64_t image_hash(const void *p)
{
	const struct dict_image *i = p;

	return hash_str(hash_str(hash_str(HASH_SEED + i->kind, i->path), i->name), i->build_id);
}

static bool image_same(const void *a, const void *b)
{
	const struct dict_image *x = a, *y = b;

	return x->kind == y->kind && !strcmp(x->path, y->path) && !strcmp(x->name, y->name) &&
	       !strcmp(x->build_id, y->build_id) && !strcmp(x->key, y->key);
}

static void image_own(struct dict *d, void *p)
{
	struct dict_image *i = p;

	i->name = arena_copy(d, i->name);
	i->path = arena_copy(d, i->path);
	i->build_id = arena_copy(d, i->build_id);
	i->key = arena_copy(d, i->key);
}

static uint64_t process_hash(const void *p)
{
	const struct dict_process *x = p;

	return hash_u64(hash_2(x->pid, x->start_ticks), x->exec_id);
}

static bool process_same(const void *a, const void *b)
{
	const struct dict_process *x = a, *y = b;

	return x->pid == y->pid && x->start_ticks == y->start_ticks && x->exec_id == y->exec_id;
}

static void process_own(struct dict *d, void *p)
{
	struct dict_process *x = p;

	x->comm = arena_copy(d, x->comm);
	x->args = arena_copy(d, x->args);
}

static uint64_t source_hash(const void *p)
{
	return hash_str(HASH_SEED, ((const struct dict_source *)p)->path);
}

static bool source_same(const void *a, const void *b)
{
	return !strcmp(((const struct dict_source *)a)->path,
		       ((const struct dict_source *)b)->path);
}

static void source_own(struct dict *d, void *p)
{
	struct dict_source *s = p;

	s->path = arena_copy(d, s->path);
}

static uint64_t function_hash(const void *p)
{
	const struct dict_function *f = p;

	return hash_str(hash_2((uint64_t)f->source << 32 | f->image, f->line), f->name);
}

static bool function_same(const void *a, const void *b)
{
	const struct dict_function *x = a, *y = b;

	return x->image == y->image && x->line == y->line && x->source == y->source &&
	       !strcmp(x->name, y->name);
}

static void function_own(struct dict *d, void *p)
{
	struct dict_function *f = p;

	f->name = arena_copy(d, f->name);
}

static uint64_t frame_hash(const void *p)
{
	const struct dict_frame *f = p;

	return hash_2(hash_2(f->offset, (uint64_t)f->outer << 32 | f->image),
		      ((uint64_t)f->function << 32 | f->line) + f->flags);
}

static bool frame_same(const void *a, const void *b)
{
	const struct dict_frame *x = a, *y = b;

	return x->offset == y->offset && x->image == y->image && x->function == y->function &&
	       x->line == y->line && x->flags == y->flags && x->outer == y->outer;
}

static uint64_t node_hash(const void *p)
{
	const struct dict_node *n = p;

	return hash_u64(HASH_SEED, (uint64_t)n->parent << 32 | n->frame);
}

static bool node_same(const void *a, const void *b)
{
	const struct dict_node *x = a, *y = b;

	return x->parent == y->parent && x->frame == y->frame;
}

static uint64_t task_hash(const void *p)
{
	const struct dict_task *t = p;

	return hash_str(hash_str(hash_2((uint64_t)t->run << 32 | t->process,
					(uint64_t)t->tid << 32 | t->kind),
				 t->thread),
			t->labels);
}

static bool task_same(const void *a, const void *b)
{
	const struct dict_task *x = a, *y = b;

	return x->run == y->run && x->process == y->process && x->tid == y->tid &&
	       x->kind == y->kind && !strcmp(x->thread, y->thread) && !strcmp(x->labels, y->labels);
}

static void task_own(struct dict *d, void *p)
{
	struct dict_task *t = p;

	t->thread = arena_copy(d, t->thread);
	t->labels = *t->labels ? arena_copy(d, t->labels) : "";
}

static uint64_t series_hash(const void *p)
{
	const struct dict_series *s = p;

	return hash_u64(hash_u64(HASH_SEED, s->label), (uint64_t)s->task << 32 | s->stack);
}

static bool series_same(const void *a, const void *b)
{
	const struct dict_series *x = a, *y = b;

	return x->task == y->task && x->stack == y->stack && x->label == y->label;
}

static const struct dict_ops {
	size_t size;
	uint64_t (*hash)(const void *entry);
	bool (*same)(const void *a, const void *b);
	void (*own)(struct dict *d, void *entry); /* copy its strings; NULL: it has none */
} dict_ops[DICT_KINDS] = {
	[DICT_TEXT] = {sizeof(struct dict_text), text_hash, text_same, text_own},
	[DICT_CONTAINER] = {sizeof(struct dict_container), container_hash, container_same,
			    container_own},
	[DICT_IMAGE] = {sizeof(struct dict_image), image_hash, image_same, image_own},
	[DICT_PROCESS] = {sizeof(struct dict_process), process_hash, process_same, process_own},
	[DICT_SOURCE] = {sizeof(struct dict_source), source_hash, source_same, source_own},
	[DICT_FUNCTION] = {sizeof(struct dict_function), function_hash, function_same,
			   function_own},
	[DICT_FRAME] = {sizeof(struct dict_frame), frame_hash, frame_same, NULL},
	[DICT_NODE] = {sizeof(struct dict_node), node_hash, node_same, NULL},
	[DICT_TASK] = {sizeof(struct dict_task), task_hash, task_same, task_own},
	[DICT_SERIES] = {sizeof(struct dict_series), series_hash, series_same, NULL},
};

/* --- the tables --- */

struct dict *dict_new(void)
{
	struct dict *d = mem_alloc(sizeof(*d));

	d->refs = 1;
	pthread_mutex_init(&d->lock, NULL);
	for (int k = 0; k < DICT_KINDS; k++)
		pool_init(&d->pool[k], dict_ops[k].size);
	for (int k = 0; k <= DICT_KINDS; k++)
		pool_init(&d->fine_row[k], sizeof(uint32_t));
	d->bytes = sizeof(*d);
	return d;
}

void dict_free(struct dict *d)
{
	if (!d)
		return;
	for (int k = 0; k < DICT_KINDS; k++) {
		pool_release(&d->pool[k]);
		free(d->table[k].slot);
	}
	while (d->arena) {
		struct dict_arena *next = d->arena->next;

		free(d->arena);
		d->arena = next;
	}
	for (size_t i = 0; i < ARRAY_SIZE(d->scratch); i++)
		strbuf_release(&d->scratch[i]);
	free(d->dirty_frames.items);
	free(d->dirty_processes.items);
	free(d->dirty_images.items);
	dict_forget_fine(d, 0);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* The slot of the entry equal to `key`, or the free one where it would go. */
static struct dict_slot *slot_find(const struct dict *d, enum dict_kind kind, const void *key,
				   uint32_t hash)
{
	const struct dict_table *t = &d->table[kind];
	const struct dict_ops *ops = &dict_ops[kind];
	uint32_t i = hash & (t->cap - 1);

	while (t->slot[i].index && (t->slot[i].hash != hash ||
				    !ops->same(pool_at(&d->pool[kind], t->slot[i].index), key)))
		i = (i + 1) & (t->cap - 1);
	return &t->slot[i];
}

static void dict_grow(struct dict *d, enum dict_kind kind)
{
	struct dict_table *t = &d->table[kind];
	const struct dict_table old = *t;

	t->cap = old.cap ? old.cap * 2 : 64;
	t->slot = mem_array(t->cap, sizeof(*t->slot));
	d->bytes += (size_t)(t->cap - old.cap) * sizeof(*t->slot);
	for (uint32_t k = 0; k < old.cap; k++) {
		uint32_t i = old.slot[k].hash & (t->cap - 1);

		if (!old.slot[k].index)
			continue;
		while (t->slot[i].index)
			i = (i + 1) & (t->cap - 1);
		t->slot[i] = old.slot[k];
	}
	free(old.slot);
}

uint32_t dict_intern(struct dict *d, enum dict_kind kind, const void *key)
{
	struct pool *p = &d->pool[kind];
	const uint32_t hash = (uint32_t)dict_ops[kind].hash(key);
	size_t before = p->bytes;
	struct dict_slot *slot;
	uint32_t i;

	if (!d->table[kind].cap || (uint64_t)(p->n + 1) * 3 > (uint64_t)d->table[kind].cap * 2)
		dict_grow(d, kind);
	slot = slot_find(d, kind, key, hash);
	if (slot->index)
		return slot->index;
	i = pool_add(p);
	d->bytes += p->bytes - before;
	memcpy(pool_at(p, i), key, p->elem);
	*(uint32_t *)pool_at(p, i) = 0; /* row */
	if (dict_ops[kind].own)
		dict_ops[kind].own(d, pool_at(p, i));
	*slot = (struct dict_slot){.index = i, .hash = hash};
	return i;
}

/* --- what is learnt later --- */

static void dirty_add(struct dict_dirty *list, uint32_t index)
{
	mem_grow(list->items, list->n, list->cap);
	list->items[list->n++] = index;
}

static bool learn_string(struct dict *d, const char **old, const char *new)
{
	if (!*new || !strcmp(*old, new))
		return false;
	*old = arena_copy(d, new);
	return true;
}

static bool learn_id(uint32_t *old, uint32_t new)
{
	if (!new || *old == new)
		return false;
	*old = new;
	return true;
}

void dict_process_learn(struct dict *d, uint32_t index, const struct dict_process *more)
{
	struct dict_process *p = dict_at(d, DICT_PROCESS, dict_process, index);
	bool changed;

	pthread_mutex_lock(&d->lock);
	changed = (!*p->comm || strcmp(more->comm, STORE_PROCESS_UNKNOWN) != 0) &&
		  learn_string(d, &p->comm, more->comm);
	changed |= learn_string(d, &p->args, more->args);
	changed |= learn_id(&p->exe, more->exe);
	changed |= learn_id(&p->cgroup, more->cgroup);
	changed |= learn_id(&p->unit, more->unit);
	changed |= learn_id(&p->lang, more->lang);
	changed |= learn_id(&p->runtime, more->runtime);
	changed |= learn_id(&p->linking, more->linking);
	changed |= learn_id(&p->libc, more->libc);
	changed |= learn_id(&p->container, more->container);
	changed |= learn_id(&p->ppid, more->ppid);
	if (more->self && !p->self)
		p->self = changed = true;
	if (more->how && (more->how != p->how || more->end_ns != p->end_ns)) {
		p->how = more->how;
		p->end_ns = more->end_ns;
		p->status = more->status;
		changed = true;
	}
	if (changed && !p->dirty) {
		p->dirty = true;
		dirty_add(&d->dirty_processes, index);
	}
	pthread_mutex_unlock(&d->lock);
}

void dict_image_learn(struct dict *d, uint32_t index, const char *build_id)
{
	struct dict_image *i = dict_at(d, DICT_IMAGE, dict_image, index);

	pthread_mutex_lock(&d->lock);
	if (!*i->build_id && !i->learnt && *build_id) {
		i->learnt = arena_copy(d, build_id);
		if (!i->dirty) {
			i->dirty = true;
			dirty_add(&d->dirty_images, index);
		}
	}
	pthread_mutex_unlock(&d->lock);
}

void dict_frame_name(struct dict *d, uint32_t index, uint32_t function, uint32_t line,
		     uint32_t outer)
{
	struct dict_frame *f = dict_at(d, DICT_FRAME, dict_frame, index);
	bool nameless, lineless;

	pthread_mutex_lock(&d->lock);
	nameless = !f->function && !f->named_function;
	lineless = !f->line && !f->outer && !f->named_line && !f->named_outer;
	if (function && (nameless || (lineless && line))) { /* gained, never lost or changed */
		f->named_function = function;
		f->named_line = line;
		f->named_outer = outer;
		if (!f->dirty) {
			f->dirty = true;
			dirty_add(&d->dirty_frames, index);
		}
	}
	pthread_mutex_unlock(&d->lock);
}

void dict_forget_rows(struct dict *d, uint64_t segment)
{
	for (int k = 0; k < DICT_KINDS; k++) {
		for (uint32_t i = 1; i <= d->touched[k]; i++)
			*(uint32_t *)pool_at(&d->pool[k], i) = 0;
		d->touched[k] = 0;
	}
	for (uint32_t i = 1; i <= d->touched_own; i++)
		dict_at(d, DICT_NODE, dict_node, i)->own = 0;
	d->touched_own = 0;
	d->segment = segment;
}

void dict_forget_fine(struct dict *d, uint64_t segment)
{
	struct dict_dirty *const lists[] = {&d->fine_frames, &d->fine_processes, &d->fine_images};

	for (int k = 0; k <= DICT_KINDS; k++)
		pool_release(&d->fine_row[k]);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		free(lists[i]->items);
		*lists[i] = (struct dict_dirty){0};
	}
	d->fine_segment = segment;
}
