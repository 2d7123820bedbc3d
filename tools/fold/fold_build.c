/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/fold_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

struct fold_build *fold_begin(void)
{
	struct fold_build *b = mem_alloc(sizeof(*b));
	const char *none = fold_text(b, "");

	b->pub.kind = store_kind_info(STORE_KIND_CPU); /* until told otherwise */
	b->pub.unit = STORE_TIME;
	b->pub.host = b->pub.kernel = none;
	b->pub.kind = store_kind_info(STORE_KIND_CPU);
	b->pub.unit = STORE_TIME;
	fold_add_frame(b, &(struct fold_frame){.name = fold_text(b, "all"),
					       .module = none,
					       .module_path = none,
					       .build_id = none,
					       .file = none,
					       .named = true,
					       .origin = FOLD_GROUP});
	mem_grow(b->pub.nodes, b->pub.n_nodes, b->cap_nodes);
	b->pub.nodes[b->pub.n_nodes++] = (struct fold_node){0};
	return b;
}

static bool text_known(const struct fold_build *b, const char *str, uint64_t *h, uint64_t *i)
{
	for (*h = hash_str(HASH_SEED, str); idmap_get(&b->text_of, *h, i); *h = hash_u64(*h, 1))
		if (!strcmp(b->texts[*i], str))
			return true;
	return false;
}

/* What is there is valid, so what equals it is found without being made so; `h` stays right for
 * what is valid itself. */
const char *fold_text(struct fold_build *b, const char *raw)
{
	struct strbuf s = STRBUF_INIT;
	size_t len;
	uint64_t h, i;

	if (text_known(b, raw, &h, &i))
		return b->texts[i];
	strbuf_addutf8(&s, raw, strlen(raw));
	if (strcmp(strbuf_str(&s), raw) && text_known(b, strbuf_str(&s), &h, &i)) {
		strbuf_release(&s);
		return b->texts[i];
	}
	mem_grow(b->texts, b->n_texts, b->cap_texts);
	idmap_set(&b->text_of, h, b->n_texts);
	len = s.len;
	b->texts[b->n_texts] = mem_realloc(strbuf_take(&s), len + 1); /* they are many, and short */
	return b->texts[b->n_texts++];
}

/* Strings are interned: equal ones are the same pointer. */
static bool same_frame(const struct fold_frame *a, const struct fold_frame *b)
{
	return a->name == b->name && a->module == b->module && a->module_path == b->module_path &&
	       a->build_id == b->build_id && a->file == b->file && a->line == b->line &&
	       a->offset == b->offset && a->inlined == b->inlined && a->named == b->named &&
	       a->origin == b->origin && a->runtime == b->runtime;
}

static uint32_t frame_put(struct fold_build *b, uint64_t h, const struct fold_frame *new)
{
	mem_grow(b->pub.frames, b->pub.n_frames, b->cap_frames);
	idmap_set(&b->frame_of, h, b->pub.n_frames);
	b->pub.frames[b->pub.n_frames] = *new;
	return (uint32_t)b->pub.n_frames++;
}

uint32_t fold_add_frame(struct fold_build *b, const struct fold_frame *new)
{
	uint64_t h = hash_u64(hash_u64(hash_u64(HASH_SEED, (uintptr_t) new->name),
				       (uintptr_t) new->module_path),
			      (uintptr_t) new->build_id ^ (uint64_t) new->origin ^
				      (uint64_t) new->inlined << 32),
		 i;

	h = hash_u64(hash_u64(h, new->offset), new->line);
	for (; idmap_get(&b->frame_of, h, &i); h = hash_u64(h, 1))
		if (same_frame(&b->pub.frames[i], new))
			return (uint32_t)i;
	return frame_put(b, h, new);
}

/* `paths`: of scripts the path tells them apart, too. */
static uint32_t add_function(struct fold_build *b, const struct fold_frame *new, bool paths)
{
	uint64_t h = hash_u64(hash_u64(HASH_SEED, (uintptr_t) new->name), (uintptr_t) new->module),
		 i;

	for (; idmap_get(&b->frame_of, h, &i); h = hash_u64(h, 1)) {
		struct fold_frame *known = &b->pub.frames[i];

		if (i && known->name == new->name && known->module == new->module &&
		    (!paths || new->origin != FOLD_SCRIPT ||
		     known->module_path == new->module_path)) {
			known->inlined &= new->inlined;
			known->file = *known->file ? known->file : new->file;
			return (uint32_t)i;
		}
	}
	return frame_put(b, h, new);
}

uint32_t fold_add_function(struct fold_build *b, const struct fold_frame *new)
{
	return add_function(b, new, true);
}

uint32_t fold_add_named(struct fold_build *b, const struct fold_frame *new)
{
	return add_function(b, new, false);
}

struct fold_frame fold_frame_from(struct fold_build *b, const struct fold_frame *other)
{
	struct fold_frame fr = *other;

	fr.name = fold_text(b, fr.name);
	fr.module = fold_text(b, fr.module);
	fr.module_path = fold_text(b, fr.module_path);
	fr.build_id = fold_text(b, fr.build_id);
	fr.file = fold_text(b, fr.file);
	return fr;
}

/* Nodes that fold_add_child made can be found, too. */
static void tell_children(struct fold_build *b)
{
	childmap_expect(&b->children, b->cap_nodes);
	for (; b->n_told < b->pub.n_nodes; b->n_told++)
		if (b->n_told)
			childmap_add(&b->children, b->pub.nodes[b->n_told].parent,
				     b->pub.nodes[b->n_told].frame, (uint32_t)b->n_told);
}

bool fold_known_child(struct fold_build *b, uint32_t parent, uint32_t frame, uint32_t *node)
{
	uint32_t child;

	tell_children(b);
	child = childmap_find(&b->children, parent, frame);

	if (child)
		*node = child;
	return child != 0;
}

void fold_expect_nodes(struct fold_build *b, size_t n)
{
	size_t need = b->pub.n_nodes + n;

	if (need <= 2 * b->cap_nodes)
		return; /* doubled once at most, if they come */
	b->pub.nodes = mem_realloc(b->pub.nodes, need * sizeof(*b->pub.nodes));
	b->cap_nodes = need;
}

void fold_expect_frames(struct fold_build *b, size_t n)
{
	idmap_reserve(&b->frame_of, b->pub.n_frames + n);
	idmap_reserve(&b->text_of, b->n_texts + n);
}

uint32_t fold_add_child(struct fold_build *b, uint32_t parent, uint32_t frame)
{
	mem_grow(b->pub.nodes, b->pub.n_nodes, b->cap_nodes);
	b->pub.nodes[b->pub.n_nodes] = (struct fold_node){.frame = frame, .parent = parent};
	return (uint32_t)b->pub.n_nodes++;
}

uint32_t fold_child(struct fold_build *b, uint32_t parent, uint32_t frame)
{
	uint32_t node;

	if (b->n_told < b->pub.n_nodes)
		tell_children(b);
	node = childmap_find(&b->children, parent, frame);
	if (node)
		return node;
	node = fold_add_child(b, parent, frame);
	childmap_add(&b->children, parent, frame, node);
	b->n_told = b->pub.n_nodes;
	return node;
}

void fold_take_tree(struct fold_build *b, const struct fold_build *of)
{
	free(b->pub.frames);
	b->pub.frames = of->pub.frames;
	b->pub.n_frames = of->pub.n_frames;
	b->borrows = true;
	fold_expect_nodes(b, of->pub.n_nodes);
	/* whose sums another thread may be adding to */
	for (size_t i = b->pub.n_nodes; i < of->pub.n_nodes; i++)
		fold_add_child(b, of->pub.nodes[i].parent, of->pub.nodes[i].frame);
}

bool fold_known_process(const struct fold_build *b, uint64_t identity, uint32_t *process)
{
	uint64_t i;

	if (!idmap_get(&b->process_of, identity, &i))
		return false;
	*process = (uint32_t)i;
	return true;
}

uint32_t fold_add_process(struct fold_build *b, uint64_t identity, const struct fold_process *p)
{
	mem_grow(b->pub.processes, b->pub.n_processes, b->cap_processes);
	idmap_set(&b->process_of, identity, b->pub.n_processes);
	b->pub.processes[b->pub.n_processes] = *p;
	return (uint32_t)b->pub.n_processes++;
}

uint64_t fold_store_identity(const struct store_process_row *row)
{
	return hash_u64(hash_u64(hash_u64(HASH_SEED, row->pid), (uint64_t)row->start_ns),
			row->exec_id);
}

uint32_t fold_store_process(struct fold_build *b, const struct store_process_row *row)
{
	uint64_t identity = fold_store_identity(row);
	uint32_t i;

	/* it went on in another segment, and may have ended there */
	if (fold_known_process(b, identity, &i)) {
		struct fold_process *known = &b->pub.processes[i];

		if (row->how && !known->how) {
			known->how = row->how;
			known->end_ns = row->end_ns;
			known->status = row->status;
		}
		if (*row->lang && !*known->lang) {
			known->lang = fold_text(b, row->lang);
			known->lang_runtime = fold_text(b, row->lang_runtime);
		}
		return i;
	}
	return fold_add_process(b, identity,
				&(struct fold_process){
					.pid = row->pid,
					.ppid = row->ppid,
					.uid = row->uid,
					.start_ns = row->start_ns,
					.comm = fold_text(b, row->comm),
					.exe = fold_text(b, row->exe),
					.unit = fold_text(b, row->unit),
					.container_image = fold_text(b, row->container_image),
					.args = fold_text(b, row->args),
					.container = fold_text(b, row->container),
					.container_id = fold_text(b, row->container_id),
					.self = row->self,
					.end_ns = row->end_ns,
					.how = row->how,
					.status = row->status,
					.lang = fold_text(b, row->lang),
					.lang_runtime = fold_text(b, row->lang_runtime),
				});
}

uint32_t fold_group_node(struct fold_build *b, enum fold_group by, uint32_t process,
			 const char *thread, uint32_t tid)
{
	const struct fold_process *p = &b->pub.processes[process];
	struct fold_frame group = b->pub.frames[0]; /* all but the name are the root's */
	char name[160];

	switch (by) {
	case FOLD_BY_CONTAINER:
		group.name = *p->container    ? p->container :
			     *p->container_id ? p->container_id :
						fold_text(b, "[host]");
		break;
	case FOLD_BY_WHO:
		group.name = *p->container    ? p->container :
			     *p->container_id ? p->container_id :
						p->comm;
		group.module = fold_text(b, *p->container || *p->container_id ? FOLD_CONTAINER :
										FOLD_COMMAND);
		break;
	case FOLD_BY_PROCESS:
		snprintf(name, sizeof(name), "%.64s (%u)", p->comm, p->pid);
		group.name = fold_text(b, name);
		break;
	case FOLD_BY_THREAD:
		snprintf(name, sizeof(name), "%.64s (%u) %.32s (%u)", p->comm, p->pid, thread, tid);
		group.name = fold_text(b, name);
		break;
	default:
		return 0;
	}
	return fold_child(b, 0, fold_add_frame(b, &group));
}

/* Room for all leaves: those that were not set are 0. */
static void grow_with(struct fold_build *b)
{
	if (b->cap_with >= b->cap_leaves)
		return;
	b->pub.with = mem_realloc(b->pub.with, b->cap_leaves * sizeof(*b->pub.with));
	memset(b->pub.with + b->cap_with, 0, (b->cap_leaves - b->cap_with) * sizeof(*b->pub.with));
	b->cap_with = b->cap_leaves;
}

void fold_add_leaf(struct fold_build *b, const struct fold_leaf *leaf)
{
	mem_grow(b->pub.leaves, b->pub.n_leaves, b->cap_leaves);
	b->pub.leaves[b->pub.n_leaves++] = *leaf;
	if (b->pub.with)
		grow_with(b);
}

void fold_add_leaf_with(struct fold_build *b, const struct fold_leaf *leaf,
			const struct fold_with *with)
{
	fold_add_leaf(b, leaf);
	grow_with(b);
	b->pub.with[b->pub.n_leaves - 1] = *with;
}

void fold_merge_leaf(struct fold_build *b, const struct fold_leaf *x, const struct fold_with *with)
{
	uint64_t h = hash_u64(hash_u64(hash_u64(HASH_SEED, (uint64_t)x->node << 32 | x->process),
				       (uintptr_t)x->thread ^ (uintptr_t)x->labels << 1),
			      (uint64_t)x->tid << 32 | x->label),
		 i;

	for (; idmap_get(&b->leaf_of, h, &i); h = hash_u64(h, 1)) {
		struct fold_leaf *l = &b->pub.leaves[i];

		if (l->node != x->node || l->process != x->process || l->thread != x->thread ||
		    l->tid != x->tid || l->label != x->label || l->labels != x->labels)
			continue;
		l->samples += x->samples;
		l->ns += x->ns;
		b->pub.with[i].samples += with->samples;
		b->pub.with[i].ns += with->ns;
		return;
	}
	idmap_set(&b->leaf_of, h, b->pub.n_leaves);
	fold_add_leaf_with(b, x, with);
}

void fold_add_cell(struct fold_build *b, const struct fold_cell *cell)
{
	mem_grow(b->pub.cells, b->pub.n_cells, b->cap_cells);
	b->pub.cells[b->pub.n_cells++] = *cell;
}

static void loss_merge(struct fold_loss *into, const struct fold_loss *l)
{
	into->n += l->n;
	if (l->from_ns && (!into->from_ns || l->from_ns < into->from_ns))
		into->from_ns = l->from_ns;
	if (l->to_ns > into->to_ns)
		into->to_ns = l->to_ns;
}

void fold_add_loss(struct fold_build *b, const struct fold_loss *l)
{
	const char *reason = fold_text(b, l->reason);

	for (size_t i = 0; i < b->pub.n_losses; i++) {
		if (b->pub.losses[i].reason == reason) {
			loss_merge(&b->pub.losses[i], l);
			return;
		}
	}
	mem_grow(b->pub.losses, b->pub.n_losses, b->cap_losses);
	b->pub.losses[b->pub.n_losses] = *l;
	b->pub.losses[b->pub.n_losses++].reason = reason;
}

void fold_add_shed(struct fold_build *b, const struct shedlog_span *s)
{
	mem_grow(b->pub.shed, b->pub.n_shed, b->cap_shed);
	b->pub.shed[b->pub.n_shed++] = *s;
}

/* Modules that hold Go's runtime are Go. */
static void mark_go(struct fold *f)
{
	static const char *const roots[] = {"runtime.goexit", "runtime.goexit.abi0",
					    "runtime.mcall",  "runtime.main",
					    "runtime.mstart", "runtime.mstart.abi0"};

	for (size_t i = 0; i < f->n_frames; i++) {
		const struct fold_frame *root = &f->frames[i];
		bool go = false;

		for (size_t k = 0; k < ARRAY_SIZE(roots) && root->origin == FOLD_NATIVE; k++)
			go = go || !strcmp(root->name, roots[k]);
		for (size_t k = 0; go && k < f->n_frames; k++)
			if (f->frames[k].origin == FOLD_NATIVE &&
			    f->frames[k].module_path == root->module_path &&
			    f->frames[k].build_id == root->build_id)
				f->frames[k].origin = FOLD_GO;
	}
}

/* Parents are before their children. */
static void sum_up(struct fold *f)
{
	for (size_t i = f->n_nodes; i-- > 0;) {
		f->nodes[i].total_ns += f->nodes[i].self_ns;
		f->nodes[i].total_samples += f->nodes[i].self_samples;
		f->nodes[i].total_variance += f->nodes[i].self_variance;
		if (i) {
			f->nodes[f->nodes[i].parent].total_variance += f->nodes[i].total_variance;
			f->nodes[f->nodes[i].parent].total_ns += f->nodes[i].total_ns;
			f->nodes[f->nodes[i].parent].total_samples += f->nodes[i].total_samples;
		}
	}
}

struct fold *fold_end(struct fold_build *b)
{
	if (!b->borrows)
		mark_go(&b->pub);
	sum_up(&b->pub);
	endings_sort(&b->pub.endings);
	idmap_release(&b->frame_of);
	idmap_release(&b->process_of);
	childmap_release(&b->children);
	idmap_release(&b->text_of);
	idmap_release(&b->leaf_of);
	return &b->pub;
}

bool fold_has_modules(const struct fold *f)
{
	for (size_t i = 1; i < f->n_frames; i++)
		if (*f->frames[i].module)
			return true;
	return false;
}

bool fold_same_tree(const struct fold *a, const struct fold *b)
{
	return a->frames == b->frames && a->n_nodes == b->n_nodes;
}

void fold_shed(struct fold *pub, bool nodes)
{
	struct fold_build *b = (struct fold_build *)pub;

	free(pub->leaves);
	free(pub->with);
	pub->leaves = NULL;
	pub->with = NULL;
	pub->n_leaves = b->cap_leaves = b->cap_with = 0;
	free(pub->cells);
	pub->cells = NULL;
	pub->n_cells = b->cap_cells = 0;
	if (!nodes)
		return;
	pub->nodes = mem_realloc(pub->nodes, sizeof(*pub->nodes));
	pub->n_nodes = b->cap_nodes = 1;
}

void fold_free(struct fold *pub)
{
	struct fold_build *b = (struct fold_build *)pub; /* its first member */

	if (!b)
		return;
	idmap_release(&b->frame_of);
	idmap_release(&b->process_of);
	childmap_release(&b->children);
	idmap_release(&b->text_of);
	idmap_release(&b->leaf_of);
	for (size_t i = 0; i < b->n_texts; i++)
		free(b->texts[i]);
	free(b->texts);
	if (!b->borrows)
		free(pub->frames);
	free(pub->nodes);
	free(pub->processes);
	free(pub->leaves);
	free(pub->with);
	free(pub->flat);
	for (size_t i = 0; pub->flat_slices && i < pub->n_slices; i++)
		free(pub->flat_slices[i].v);
	free(pub->flat_slices);
	free(pub->calls.v);
	pairsums_release(&pub->spent);
	free(pub->slices);
	free(pub->cells);
	free(pub->losses);
	free(pub->shed);
	endings_release(&pub->endings);
	free(b);
}

/* --- two folds in one tree --- */

static uint32_t join_process(struct fold_build *b, const struct fold_process *p)
{
	uint64_t identity = hash_str(
		hash_str(hash_str(hash_u64(HASH_SEED, p->pid), p->comm), p->exe), p->container_id);
	uint32_t process;

	if (fold_known_process(b, identity, &process))
		return process;
	return fold_add_process(
		b, identity,
		&(struct fold_process){.pid = p->pid,
				       .comm = fold_text(b, p->comm),
				       .exe = fold_text(b, p->exe),
				       .args = fold_text(b, p->args),
				       .container = fold_text(b, p->container),
				       .container_id = fold_text(b, p->container_id),
				       .self = p->self});
}

static uint32_t join_frame(struct fold_build *b, const struct fold_frame *from)
{
	struct fold_frame fr = fold_frame_from(b, from);

	return fold_add_frame(b, &fr);
}

static uint64_t scaled(uint64_t v, double scale)
{
	return scale == 1 ? v : (uint64_t)((double)v * scale + 0.5);
}

static void join(struct fold_build *b, const struct fold *f, double scale, bool base)
{
	cleanup_free uint32_t *node = mem_array(f->n_nodes + 1, sizeof(*node));

	for (size_t i = 1; i < f->n_nodes; i++)
		node[i] = fold_child(b, node[f->nodes[i].parent],
				     join_frame(b, &f->frames[f->nodes[i].frame]));
	for (size_t i = 0; i < f->n_leaves; i++) {
		const struct fold_leaf *l = &f->leaves[i];
		uint32_t process = join_process(b, &f->processes[l->process]);
		struct fold_leaf new = {.node = node[l->node],
					.process = process,
					.thread = fold_text(b, l->thread),
					.labels = l->labels ? fold_text(b, l->labels) : NULL,
					.tid = l->tid,
					.samples = scaled(l->samples, scale),
					.ns = scaled(l->ns, scale),
					.slice = l->slice,
					.label = l->label,
					.base = base};

		b->pub.nodes[new.node].self_ns += new.ns;
		b->pub.nodes[new.node].self_samples += new.samples;
		b->pub.processes[process].ns += new.ns;
		b->pub.processes[process].samples += new.samples;
		if (f->with)
			fold_add_leaf_with(b, &new,
					   &(struct fold_with){scaled(f->with[i].samples, scale),
							       scaled(f->with[i].ns, scale)});
		else
			fold_add_leaf(b, &new);
	}
}

struct fold *fold_join(const struct fold *base, double scale, const struct fold *f)
{
	struct fold_build *b = fold_begin();

	join(b, base, scale, true);
	join(b, f, 1, false);
	b->pub.kind = f->kind;
	b->pub.unit = f->unit;
	b->pub.from_ns = f->from_ns;
	b->pub.to_ns = f->to_ns;
	b->pub.asked_from_ns = f->asked_from_ns;
	b->pub.asked_to_ns = f->asked_to_ns;
	b->pub.covered_ns = f->covered_ns;
	b->pub.period_ns = f->period_ns;
	b->pub.cpus = f->cpus;
	b->pub.own = f->own;
	b->pub.kind = f->kind;
	b->pub.unit = f->unit;
	b->pub.host = fold_text(b, f->host);
	b->pub.kernel = fold_text(b, f->kernel);
	for (size_t i = 0; i < f->n_losses; i++)
		fold_add_loss(b, &f->losses[i]);
	for (size_t i = 0; i < f->n_shed; i++)
		fold_add_shed(b, &f->shed[i]);
	return fold_end(b);
}
