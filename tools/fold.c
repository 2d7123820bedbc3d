/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold: samples of the selection, summed over segments into one stack tree.
 *
 * Ids mean something in one segment only, so everything is merged by content: a frame is its place (module, build-id,
 * offset, line, inlined) and its name, so that two calls within one function stay two (docs/decisions/0061); a process is (pid, start, exec count). Each segment keeps
 * three dense tables from its own ids to the merged ones, filled as they are met; a stack is walked to the root once.
 */
#include "tools/fold.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/select.h"
#include "tools/when.h"

struct folding {
	struct fold pub;
	const struct selection *sel;
	struct fold_opts opts;
	size_t cap_frames, cap_nodes, cap_processes, cap_leaves, cap_losses;
	struct idmap frame_of, process_of, node_of, text_of; /* content hash -> index */
	char **texts;                                        /* owned strings */
	size_t n_texts, cap_texts;
	uint64_t found_self_ns;

	/* of the segment at hand */
	const struct store_dict *dict;
	int64_t seg_run;                   /* the only run asked for, or 0 */
	uint32_t *seg_frame, *seg_process; /* + 1, 0: not met yet */
	uint32_t *seg_plain;               /* stack -> node below the root, 0: not met yet */
	struct idmap seg_node;             /* (group's node, stack) -> node, where there are groups */
};

/* --- strings: one copy each --- */

static const char *text(struct folding *f, const char *raw)
{
	struct strbuf s = STRBUF_INIT;
	uint64_t h, i;

	strbuf_addutf8(&s, raw, strlen(raw));
	h = hash_str(HASH_SEED, strbuf_str(&s));
	for (; idmap_get(&f->text_of, h, &i); h = hash_u64(h, 1)) {
		if (!strcmp(f->texts[i], strbuf_str(&s))) {
			strbuf_release(&s);
			return f->texts[i];
		}
	}
	mem_grow(f->texts, f->n_texts, f->cap_texts);
	idmap_set(&f->text_of, h, f->n_texts);
	f->texts[f->n_texts] = strbuf_take(&s);
	return f->texts[f->n_texts++];
}

/* --- frames --- */

static enum fold_origin origin_of(const struct store_image_row *image, bool named)
{
	switch (image->kind) {
	case STORE_IMAGE_KERNEL:
	case STORE_IMAGE_MODULE:
	case STORE_IMAGE_BPF:
		return FOLD_KERNEL;
	case STORE_IMAGE_JIT:
		return FOLD_JIT;
	case STORE_IMAGE_UNKNOWN:
		return named ? FOLD_NATIVE : FOLD_UNKNOWN;
	default:
		return FOLD_NATIVE;
	}
}

/* Strings are interned: equal ones are the same pointer. */
static bool same_frame(const struct fold_frame *a, const struct fold_frame *b)
{
	return a->name == b->name && a->module == b->module && a->module_path == b->module_path &&
	       a->build_id == b->build_id && a->file == b->file && a->line == b->line && a->offset == b->offset &&
	       a->inlined == b->inlined && a->named == b->named && a->origin == b->origin;
}

static uint32_t frame_add(struct folding *f, const struct fold_frame *new)
{
	uint64_t h = hash_u64(hash_u64(hash_u64(HASH_SEED, (uintptr_t)new->name), (uintptr_t)new->module_path),
			      (uintptr_t)new->build_id ^ (uint64_t)new->origin ^ (uint64_t)new->inlined << 32), i;

	h = hash_u64(hash_u64(h, new->offset), new->line);
	for (; idmap_get(&f->frame_of, h, &i); h = hash_u64(h, 1))
		if (same_frame(&f->pub.frames[i], new))
			return (uint32_t)i;
	mem_grow(f->pub.frames, f->pub.n_frames, f->cap_frames);
	idmap_set(&f->frame_of, h, f->pub.n_frames);
	f->pub.frames[f->pub.n_frames] = *new;
	return (uint32_t)f->pub.n_frames++;
}

/* "name", or "name (file.c:12)" */
static const char *frame_name(struct folding *f, const struct store_frame_row *row)
{
	const char *slash = strrchr(row->file, '/');
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	if (!f->opts.lines || !row->line || !*row->file)
		return text(f, row->name);
	strbuf_addf(&s, "%s (%s:%u)", row->name, slash && slash[1] ? slash + 1 : row->file, row->line);
	return text(f, strbuf_str(&s));
}

static uint32_t frame_from(struct folding *f, uint32_t id)
{
	static const struct store_image_row none = {"", "", "", STORE_IMAGE_UNKNOWN};
	const struct store_frame_row *row = &f->dict->frames[id];
	const struct store_image_row *image = row->image && row->image < f->dict->n_images ?
		&f->dict->images[row->image] : &none;
	struct fold_frame new = {
		.name = frame_name(f, row),
		.module = text(f, image->name ? image->name : ""),
		.module_path = text(f, image->path ? image->path : ""),
		.build_id = text(f, image->build_id ? image->build_id : ""),
		.file = text(f, row->file ? row->file : ""),
		.line = row->line,
		.function_line = row->function_line,
		.offset = row->offset,
		.named = row->function != 0,
		.inlined = row->inlined,
		.origin = origin_of(image, row->function != 0),
	};

	return frame_add(f, &new);
}

static uint32_t frame_of(struct folding *f, uint32_t id)
{
	if (!f->seg_frame[id])
		f->seg_frame[id] = frame_from(f, id) + 1;
	return f->seg_frame[id] - 1;
}

/* --- nodes --- */

static uint32_t node_child(struct folding *f, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame, i;

	if (idmap_get(&f->node_of, key, &i))
		return (uint32_t)i;
	mem_grow(f->pub.nodes, f->pub.n_nodes, f->cap_nodes);
	idmap_set(&f->node_of, key, f->pub.n_nodes);
	f->pub.nodes[f->pub.n_nodes] = (struct fold_node){.frame = frame, .parent = parent};
	return (uint32_t)f->pub.n_nodes++;
}

static bool known_node(const struct folding *f, uint32_t group, uint32_t stack, uint64_t *node)
{
	if (group)
		return idmap_get(&f->seg_node, (uint64_t)group << 32 | stack, node);
	if (f->seg_plain[stack])
		*node = f->seg_plain[stack];
	return f->seg_plain[stack] != 0;
}

/* The node of a stack below a group's node. Walks up to the nearest ancestor that is known, then down again. */
static uint32_t node_of_stack(struct folding *f, uint32_t group, uint32_t stack)
{
	cleanup_free uint32_t *path = NULL;
	size_t n = 0, cap = 0;
	uint64_t node = group;

	for (uint32_t s = stack; s; s = f->dict->stack_parent[s]) {
		if (known_node(f, group, s, &node))
			break;
		mem_grow(path, n, cap);
		path[n++] = s;
	}
	while (n--) {
		uint32_t frame = f->dict->stack_frame[path[n]];

		if (!f->opts.no_inline || !f->dict->frames[frame].inlined)
			node = node_child(f, (uint32_t)node, frame_of(f, frame));
		if (group)
			idmap_set(&f->seg_node, (uint64_t)group << 32 | path[n], node);
		else
			f->seg_plain[path[n]] = (uint32_t)node;
	}
	return (uint32_t)node;
}

/* --- processes and groups --- */

static uint32_t process_of(struct folding *f, uint32_t id)
{
	const struct store_process_row *row = &f->dict->processes[id];
	uint64_t h, i;

	if (f->seg_process[id])
		return f->seg_process[id] - 1;
	h = hash_u64(hash_u64(hash_u64(HASH_SEED, row->pid), (uint64_t)row->start_ns), row->exec_id);
	if (!idmap_get(&f->process_of, h, &i)) {
		mem_grow(f->pub.processes, f->pub.n_processes, f->cap_processes);
		i = f->pub.n_processes++;
		idmap_set(&f->process_of, h, i);
		f->pub.processes[i] = (struct fold_process){
			.pid = row->pid, .comm = text(f, row->comm), .exe = text(f, row->exe), .args = text(f, row->args),
			.container = text(f, row->container), .container_id = text(f, row->container_id),
			.self = row->self,
		};
	}
	f->seg_process[id] = (uint32_t)i + 1;
	return (uint32_t)i;
}

static uint32_t group_node(struct folding *f, uint32_t process, const struct store_total *t)
{
	const struct fold_process *p = &f->pub.processes[process];
	struct fold_frame group = f->pub.frames[0]; /* all but the name are the root's */
	char name[160];

	switch (f->opts.group) {
	case FOLD_BY_CONTAINER:
		group.name = *p->container ? p->container : *p->container_id ? p->container_id : text(f, "[host]");
		break;
	case FOLD_BY_PROCESS:
		snprintf(name, sizeof(name), "%.64s (%u)", p->comm, p->pid);
		group.name = text(f, name);
		break;
	case FOLD_BY_THREAD:
		snprintf(name, sizeof(name), "%.64s (%u) %.32s (%u)", p->comm, p->pid, t->thread, t->tid);
		group.name = text(f, name);
		break;
	default:
		return 0;
	}
	return node_child(f, 0, frame_add(f, &group));
}

/* --- sums --- */

static void add_run(struct folding *f, const struct store_run_row *run)
{
	int64_t from = run->from_ns > f->sel->from_ns ? run->from_ns : f->sel->from_ns;
	int64_t to = run->to_ns < f->sel->to_ns ? run->to_ns : f->sel->to_ns;

	if (!f->pub.from_ns || from < f->pub.from_ns)
		f->pub.from_ns = from;
	if (to > f->pub.to_ns)
		f->pub.to_ns = to;
	if (!f->pub.period_ns || (run->period_ns && run->period_ns < f->pub.period_ns))
		f->pub.period_ns = run->period_ns;
	if (run->cpus > f->pub.cpus)
		f->pub.cpus = run->cpus;
}

static void add_leaf(struct folding *f, uint32_t node, uint32_t process, const struct store_total *t)
{
	mem_grow(f->pub.leaves, f->pub.n_leaves, f->cap_leaves);
	f->pub.leaves[f->pub.n_leaves++] = (struct fold_leaf){
		.node = node, .process = process, .thread = text(f, t->thread), .tid = t->tid,
		.samples = t->samples, .ns = t->cpu_ns,
	};
}

static int add_total(void *ctx, const struct store_total *t)
{
	struct folding *f = ctx;
	const struct store_process_row *row = &f->dict->processes[t->process];
	uint32_t process, node;

	if (row->self)
		f->found_self_ns += t->cpu_ns;
	if (row->self && !select_wants(f->sel, row, t->tid))
		return 0;
	process = process_of(f, t->process);
	node = node_of_stack(f, group_node(f, process, t), t->stack);
	f->pub.nodes[node].self_ns += t->cpu_ns;
	f->pub.nodes[node].self_samples += t->samples;
	f->pub.processes[process].ns += t->cpu_ns;
	f->pub.processes[process].samples += t->samples;
	if (node && !f->pub.frames[f->pub.nodes[node].frame].named)
		f->pub.frames_unnamed_ns += t->cpu_ns;
	if (t->run < f->dict->n_runs)
		add_run(f, &f->dict->runs[t->run]);
	if (f->opts.leaves)
		add_leaf(f, node, process, t);
	return 0;
}

static bool wanted(void *ctx, const struct store_process_row *p, const char *thread, uint32_t tid)
{
	const struct folding *f = ctx;

	(void)thread;
	return p->self || select_wants(f->sel, p, tid);
}

static int add_loss(void *ctx, const struct store_loss_row *l)
{
	struct folding *f = ctx;
	const char *reason = text(f, l->reason);

	if (f->seg_run && l->run != f->seg_run)
		return 0;
	for (size_t i = 0; i < f->pub.n_losses; i++) {
		if (f->pub.losses[i].reason == reason) {
			f->pub.losses[i].n += l->n;
			return 0;
		}
	}
	mem_grow(f->pub.losses, f->pub.n_losses, f->cap_losses);
	f->pub.losses[f->pub.n_losses++] = (struct fold_loss){.reason = reason, .n = l->n};
	return 0;
}

/* --- segments --- */

static void read_meta(struct folding *f, sqlite3 *db)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(db, "SELECT key, value FROM meta WHERE key IN ('host', 'kernel')", -1, &st, NULL) != SQLITE_OK)
		return;
	while (sqlite3_step(st) == SQLITE_ROW) {
		const char *key = (const char *)sqlite3_column_text(st, 0);
		const char *value = (const char *)sqlite3_column_text(st, 1);

		if (key && value && !strcmp(key, "host"))
			f->pub.host = text(f, value);
		else if (key && value)
			f->pub.kernel = text(f, value);
	}
	sqlite3_finalize(st);
}

static int fold_segment(struct folding *f, const char *path, struct err *e)
{
	struct store_query q = {.from_ns = f->sel->from_ns, .to_ns = f->sel->to_ns, .kind = STORE_KIND_CPU,
				.want = wanted, .ctx = f};
	int64_t run = select_run_in(f->sel, path);
	struct store_segment *s = NULL;
	int rc;

	if (run < 0)
		return 0;
	q.run = f->seg_run = run;
	rc = store_segment_open(path, &s, e);
	if (rc == 0)
		rc = store_segment_dict(s, &f->dict, e);
	if (rc == 0) {
		f->seg_frame = mem_array(f->dict->n_frames + 1, sizeof(*f->seg_frame));
		f->seg_process = mem_array(f->dict->n_processes + 1, sizeof(*f->seg_process));
		f->seg_plain = mem_array(f->dict->n_stacks + 1, sizeof(*f->seg_plain));
		read_meta(f, store_segment_db(s));
		rc = store_totals(s, &q, add_total, f, e);
	}
	if (rc == 0)
		rc = store_losses(s, f->sel->from_ns, f->sel->to_ns, add_loss, f, e);
	if (rc == 0)
		rc = store_endings(s, f->sel->from_ns, f->sel->to_ns, run, endings_add, &f->pub.endings, e);
	free(f->seg_frame);
	free(f->seg_process);
	free(f->seg_plain);
	f->seg_frame = f->seg_process = f->seg_plain = NULL;
	idmap_release(&f->seg_node);
	store_segment_close(s);
	return rc;
}

/* Modules that hold Go's runtime are Go. */
static void mark_go(struct fold *f)
{
	static const char *const roots[] = {"runtime.goexit", "runtime.goexit.abi0", "runtime.mcall", "runtime.main",
					    "runtime.mstart", "runtime.mstart.abi0"};

	for (size_t i = 0; i < f->n_frames; i++) {
		const struct fold_frame *root = &f->frames[i];
		bool go = false;

		for (size_t k = 0; k < sizeof(roots) / sizeof(roots[0]) && root->origin == FOLD_NATIVE; k++)
			go = go || !strcmp(root->name, roots[k]);
		for (size_t k = 0; go && k < f->n_frames; k++)
			if (f->frames[k].origin == FOLD_NATIVE && f->frames[k].module_path == root->module_path &&
			    f->frames[k].build_id == root->build_id)
				f->frames[k].origin = FOLD_GO;
	}
}

/* Parents stand before their children. */
static void sum_up(struct fold *f)
{
	for (size_t i = f->n_nodes; i-- > 0;) {
		f->nodes[i].total_ns += f->nodes[i].self_ns;
		f->nodes[i].total_samples += f->nodes[i].self_samples;
		if (i) {
			f->nodes[f->nodes[i].parent].total_ns += f->nodes[i].total_ns;
			f->nodes[f->nodes[i].parent].total_samples += f->nodes[i].total_samples;
		}
	}
}

static int nothing(const struct selection *sel, struct err *e)
{
	cleanup_free struct store_segment_info *all = NULL;
	int64_t from = 0, to = 0, now = clock_utc_ns();
	char a[32], b[32], there[96] = "";
	size_t n = 0;

	if (store_segments(sel->store, 0, INT64_MAX, &all, &n, NULL) == 0) {
		for (size_t i = 0; i < n; i++) {
			if (all[i].from_ns && (!from || all[i].from_ns < from))
				from = all[i].from_ns;
			if (all[i].to_ns > to)
				to = all[i].to_ns;
		}
	}
	if (from)
		snprintf(there, sizeof(there), "; the store holds samples from %s to %s", when_local(from, now, a, sizeof(a)),
			 when_local(to, now, b, sizeof(b)));
	err_set(e, -ENODATA, EXIT_NOTHING, "no CPU samples%s%s in %s: %s%s", *sel->what ? " of " : "", sel->what, sel->range,
		select_is_narrow(sel) ? "what the filters name did not run on a CPU then, or does not exist" :
		"nothing was recorded then, or the host was idle", there);
	if (select_is_narrow(sel))
		err_fix(e, "sonde stacks (without the filter)    sonde status    sudo sonde record -d 10s");
	else
		err_fix(e, "sonde status (what is there)    sudo sonde record -d 10s");
	return -ENODATA;
}

int fold_make(const struct selection *sel, const struct fold_opts *o, struct fold **out, struct err *e)
{
	struct folding *f = mem_alloc(sizeof(*f));
	int rc = 0;

	f->sel = sel;
	f->opts = *o;
	f->pub.host = f->pub.kernel = text(f, "");
	frame_add(f, &(struct fold_frame){.name = text(f, "all"), .module = text(f, ""), .module_path = text(f, ""),
					  .build_id = text(f, ""), .file = text(f, ""), .named = true,
					  .origin = FOLD_GROUP});
	mem_grow(f->pub.nodes, f->pub.n_nodes, f->cap_nodes);
	f->pub.nodes[f->pub.n_nodes++] = (struct fold_node){0};
	for (size_t i = 0; rc == 0 && i < sel->n_segments; i++)
		rc = fold_segment(f, sel->segments[i].path, e);
	if (rc == 0) {
		f->pub.self_program_ns = f->found_self_ns;
		mark_go(&f->pub);
		sum_up(&f->pub);
		endings_sort(&f->pub.endings);
		if (!f->pub.nodes[0].total_samples)
			rc = nothing(sel, e);
	}
	idmap_release(&f->frame_of);
	idmap_release(&f->process_of);
	idmap_release(&f->node_of);
	idmap_release(&f->text_of);
	if (rc < 0) {
		fold_free(&f->pub);
		return rc;
	}
	*out = &f->pub;
	return 0;
}

void fold_free(struct fold *pub)
{
	struct folding *f = (struct folding *)pub; /* its first member */

	if (!f)
		return;
	for (size_t i = 0; i < f->n_texts; i++)
		free(f->texts[i]);
	free(f->texts);
	free(pub->frames);
	free(pub->nodes);
	free(pub->processes);
	free(pub->leaves);
	free(pub->losses);
	endings_release(&pub->endings);
	free(f);
}
