/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dictionary: a segment's dictionary, read whole into arrays by id. The file may be a stranger's: ids are checked
 * against what a file of its size can hold, references against the arrays, missing rows stay zeroed.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/reading.h"

#define CHUNK (64 * 1024)
#define INLINED_SINCE 3 /* schema version */
#define WHO_SINCE     10
#define INLINED_MAX 64 /* functions at one place; as in the views */
#define UNFOLD_MAX  8  /* frames for one number of a stack, on average */

struct strings {
	struct strings *next;
	size_t used, size;
	char data[];
};

static const char *strings_add(struct strings **list, const char *s, size_t len)
{
	struct strings *c = *list;
	char *copy;

	if (!len)
		return "";
	if (!c || c->size - c->used < len + 1) {
		size_t size = len + 1 > CHUNK ? len + 1 : CHUNK;

		c = mem_alloc(sizeof(*c) + size);
		c->size = size;
		c->next = *list;
		*list = c;
	}
	copy = c->data + c->used;
	memcpy(copy, s, len);
	copy[len] = '\0';
	c->used += len + 1;
	return copy;
}

static const char *text_at(struct store_segment *s, sqlite3_stmt *st, int col)
{
	const char *v = (const char *)sqlite3_column_text(st, col);

	return v ? strings_add(&s->strings, v, strlen(v)) : "";
}

static uint32_t u32_at(sqlite3_stmt *st, int col)
{
	sqlite3_int64 v = sqlite3_column_int64(st, col);

	return v < 0 || v > UINT32_MAX ? 0 : (uint32_t)v;
}

/* An id of a table with `n` slots; 0 if it is not. */
static uint32_t id_at(sqlite3_stmt *st, int col, size_t n)
{
	uint32_t v = u32_at(st, col);

	return v < n ? v : 0;
}

#define PACKED_MOST 16 /* rows to a byte of a packed table */

/* Room for all ids of a table. A row takes more than a byte: an id beyond the file's size is a lie, but for what is packed. */
static int slots_of(struct store_segment *s, const char *sql, size_t *n, struct err *e)
{
	int64_t max = reading_number(s->db, sql, 0);
	int64_t limit = reading_number(s->db, "PRAGMA page_count", 0) * reading_number(s->db, "PRAGMA page_size", 0);

	if (max > limit && max <= reading_number(s->db, "SELECT max(rows) FROM packed_table", 0))
		limit *= PACKED_MOST;
	if (max < 0 || max > limit || max >= UINT32_MAX)
		return err_set(e, -EBADMSG, EXIT_STORE, "the store's segment %s is damaged: ids out of range", s->path);
	*n = (size_t)max + 1;
	return 0;
}

/* One table: `sql` gives id first; row(s, st, id, ctx) for each id in range. */
static int each_row(struct store_segment *s, const char *sql, size_t n,
		    void (*row)(struct store_segment *, sqlite3_stmt *, uint32_t id, void *ctx), void *ctx,
		    struct err *e)
{
	sqlite3_stmt *st = reading_prepare(s, sql, e);
	int rc;

	if (!st)
		return e && e->code ? e->code : -EIO;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		uint32_t id = id_at(st, 0, n);

		if (id)
			row(s, st, id, ctx);
	}
	return reading_finish(s, st, rc, e);
}

/* --- processes --- */

struct process_parts {
	const char **text;
	size_t n_text;
	struct container {
		const char *name, *runtime, *runtime_id, *image, *project, *service;
	} *containers;
	size_t n_containers;
};

static void text_row(struct store_segment *s, sqlite3_stmt *st, uint32_t id, void *ctx)
{
	struct process_parts *p = ctx;

	p->text[id] = text_at(s, st, 1);
}

static void container_row(struct store_segment *s, sqlite3_stmt *st, uint32_t id, void *ctx)
{
	struct process_parts *p = ctx;

	p->containers[id] = (struct container){text_at(s, st, 1), text_at(s, st, 2), text_at(s, st, 3),
					       text_at(s, st, 4), text_at(s, st, 5), text_at(s, st, 6)};
}

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static void process_row(struct store_segment *s, sqlite3_stmt *st, uint32_t id, void *ctx)
{
	const struct process_parts *p = ctx;
	const struct container *c = &p->containers[id_at(st, 11, p->n_containers)];

	s->processes[id] = (struct store_process_row){
		.pid = u32_at(st, 1), .ppid = u32_at(st, 2), .uid = u32_at(st, 3), .exec_id = u32_at(st, 4),
		.start_ns = sqlite3_column_int64(st, 5),
		.comm = text_at(s, st, 6),
		.exe = or_empty(p->text[id_at(st, 7, p->n_text)]),
		.args = text_at(s, st, 8),
		.cgroup = or_empty(p->text[id_at(st, 9, p->n_text)]),
		.unit = or_empty(p->text[id_at(st, 10, p->n_text)]),
		.container = or_empty(c->name), .container_id = or_empty(c->runtime_id),
		.container_image = or_empty(c->image), .runtime = or_empty(c->runtime),
		.project = or_empty(c->project), .service = or_empty(c->service),
		.self = sqlite3_column_int(st, 12) != 0, .present = true,
		.end_ns = sqlite3_column_int64(st, 13), .how = (enum store_end_how)sqlite3_column_int(st, 14),
		.status = u32_at(st, 15), .lang = or_empty(p->text[id_at(st, 16, p->n_text)]),
		.lang_runtime = or_empty(p->text[id_at(st, 17, p->n_text)]),
	};
}

#define CONTAINERS_OLD "SELECT id, name, runtime, runtime_id, image, '', '' FROM containers"
#define CONTAINERS     "SELECT id, name, runtime, runtime_id, image, project, service FROM containers"
#define PROCESSES_(more) "SELECT p.id, p.pid, p.ppid, p.uid, p.exec_id, p.start_ns, p.comm, p.exe, v.args, p.cgroup," \
			 " p.unit, p.container, p.self, " more " FROM process p JOIN processes v ON v.id = p.id"
#define PROCESSES_OLD PROCESSES_("0, 0, 0, 0, 0")
#define PROCESSES     PROCESSES_("p.end_ns, p.how, p.status, p.lang, p.runtime")

static int load_processes(struct store_segment *s, struct err *e)
{
	bool old = reading_number(s->db, "SELECT value FROM meta WHERE key = 'schema_version'", 0) < WHO_SINCE;
	struct process_parts p = {0};
	size_t n = 0;
	int rc = slots_of(s, "SELECT max(id) FROM text", &p.n_text, e);

	if (!rc)
		rc = slots_of(s, "SELECT max(id) FROM container", &p.n_containers, e);
	if (!rc)
		rc = slots_of(s, "SELECT max(id) FROM process", &n, e);
	if (rc)
		return rc;
	p.text = mem_array(p.n_text, sizeof(*p.text));
	p.containers = mem_array(p.n_containers, sizeof(*p.containers));
	s->processes = mem_array(n, sizeof(*s->processes));
	for (size_t i = 0; i < n; i++)
		s->processes[i] = (struct store_process_row){.comm = "", .exe = "", .args = "", .cgroup = "",
							     .unit = "", .container = "", .container_id = "",
							     .container_image = "", .runtime = "", .project = "", .service = "",
							     .lang = "", .lang_runtime = ""};
	rc = each_row(s, "SELECT id, value FROM text", p.n_text, text_row, &p, e);
	if (!rc)
		rc = each_row(s, old ? CONTAINERS_OLD : CONTAINERS, p.n_containers, container_row, &p, e);
	if (!rc)
		rc = each_row(s, old ? PROCESSES_OLD : PROCESSES, n, process_row, &p, e);
	free(p.text);
	free(p.containers);
	s->dict.n_processes = n;
	return rc;
}

/* --- images, functions, frames --- */

struct function {
	const char *name, *file;
	uint32_t line;
};

struct functions {
	struct function *items;
	size_t n;
};

static void image_row(struct store_segment *s, sqlite3_stmt *st, uint32_t id, void *ctx)
{
	(void)ctx;
	s->images[id] = (struct store_image_row){
		.kind = (enum store_image_kind)id_at(st, 1, STORE_IMAGE_UNKNOWN + 1),
		.name = text_at(s, st, 2), .path = text_at(s, st, 3), .build_id = text_at(s, st, 4),
	};
}

static void function_row(struct store_segment *s, sqlite3_stmt *st, uint32_t id, void *ctx)
{
	struct functions *f = ctx;

	f->items[id] = (struct function){text_at(s, st, 1), text_at(s, st, 2), u32_at(st, 3)};
}

static const char *unnamed(struct store_segment *s, uint32_t image, uint64_t offset)
{
	const char *module = image ? s->images[image].name : "";
	char hex[24];
	char *name;
	const char *kept;
	size_t len;

	len = (size_t)snprintf(hex, sizeof(hex), "+0x%llx", (unsigned long long)offset);
	if (!*module)
		module = "[unknown]";
	name = mem_alloc(strlen(module) + len + 1);
	memcpy(name, module, strlen(module));
	memcpy(name + strlen(module), hex, len + 1);
	kept = strings_add(&s->strings, name, strlen(name));
	free(name);
	return kept;
}

static void frame_row(struct store_segment *s, sqlite3_stmt *st, uint32_t id, void *ctx)
{
	const struct functions *fs = ctx;
	uint32_t function = id_at(st, 3, fs->n);
	const struct function *f = &fs->items[function];
	struct store_frame_row r = {
		.image = id_at(st, 1, s->dict.n_images),
		.offset = (uint64_t)sqlite3_column_int64(st, 2),
		.line = u32_at(st, 4),
		.outer = id_at(st, 6, s->dict.n_frames),
		.inlined = sqlite3_column_int(st, 5) & 1,
		.folded = sqlite3_column_int(st, 5) & 2,
	};
	bool named = f->name && *f->name;

	r.function = named ? function : 0;
	r.name = named ? f->name : unnamed(s, r.image, r.offset);
	r.file = named ? f->file : "";
	r.function_line = named ? f->line : 0;
	s->frames[id] = r;
}

static int load_frames(struct store_segment *s, struct err *e)
{
	bool old = reading_number(s->db, "SELECT value FROM meta WHERE key = 'schema_version'", 0) < INLINED_SINCE;
	struct functions f = {0};
	size_t n_images = 0, n = 0;
	int rc = slots_of(s, "SELECT max(id) FROM image", &n_images, e);

	if (!rc)
		rc = slots_of(s, "SELECT max(id) FROM function", &f.n, e);
	if (!rc)
		rc = slots_of(s, "SELECT max(id) FROM frame", &n, e);
	if (rc)
		return rc;
	s->images = mem_array(n_images, sizeof(*s->images));
	for (size_t i = 0; i < n_images; i++)
		s->images[i] = (struct store_image_row){.name = "", .path = "", .build_id = ""};
	s->frames = mem_array(n, sizeof(*s->frames));
	for (size_t i = 0; i < n; i++)
		s->frames[i] = (struct store_frame_row){.name = "[unknown]", .file = ""};
	f.items = mem_array(f.n, sizeof(*f.items));
	s->dict.n_images = n_images;
	s->dict.n_frames = n;
	rc = each_row(s, "SELECT id, kind, name, path, build_id FROM image", n_images, image_row, NULL, e);
	if (!rc)
		rc = each_row(s, "SELECT id, function, file, line FROM functions", f.n, function_row, &f, e);
	if (!rc)
		rc = each_row(s, old ? "SELECT id, image, offset, function, line, flags, 0 FROM frame" :
				       "SELECT id, image, offset, function, line, flags, outer FROM frame", n, frame_row,
			      &f, e);
	free(f.items);
	return rc;
}

/* --- stacks and series --- */

static void task_row(struct store_segment *s, sqlite3_stmt *st, uint32_t id, void *ctx)
{
	(void)ctx;
	s->tasks[id] = (struct reading_task){
		.run = id_at(st, 1, s->dict.n_runs), .process = id_at(st, 2, s->dict.n_processes),
		.tid = u32_at(st, 3), .kind = u32_at(st, 4), .thread = text_at(s, st, 5),
	};
}

static void series_row(struct store_segment *s, sqlite3_stmt *st, uint32_t id, void *ctx)
{
	(void)ctx;
	s->series_task[id] = id_at(st, 1, s->n_tasks);
	s->series_stack[id] = s->tree.node[id_at(st, 2, s->tree.n_stacks)];
	s->series_label[id] = u32_at(st, 3);
}

/* The physical function first, then what was inlined into it; as many as the damaged file's bound allows. */
static size_t frames_at(const struct store_segment *s, uint32_t frame, uint32_t out[INLINED_MAX])
{
	size_t n = 0;

	for (; frame && n < INLINED_MAX; frame = s->frames[frame].outer)
		out[n++] = frame;
	for (size_t i = 0; i < n / 2; i++) {
		uint32_t swap = out[i];

		out[i] = out[n - 1 - i];
		out[n - 1 - i] = swap;
	}
	return n;
}

static bool has_inlined(const struct store_segment *s)
{
	for (size_t i = 0; i < s->dict.n_frames; i++)
		if (s->frames[i].outer)
			return true;
	return false;
}

/* A stack names the innermost function of a place: here the ones it was inlined into come before it. A file that says more
 * than any compiler made keeps the innermost alone past UNFOLD_MAX. */
static void unfold_inlined(struct store_segment *s)
{
	struct stacktree old = s->tree, t = {.n_stacks = old.n_stacks, .node = old.node};
	size_t left = old.n * UNFOLD_MAX;
	uint32_t *moved;

	if (!has_inlined(s))
		return;
	moved = mem_array(old.n + 1, sizeof(*moved));
	for (size_t i = 0; i < old.n; i++) {
		uint32_t at[INLINED_MAX] = {old.frame[i]}, parent = i ? moved[old.parent[i]] : 0;
		size_t n = i && left ? frames_at(s, old.frame[i], at) : 1;

		n = n ? n : 1;
		left -= n < left ? n : left;
		for (size_t k = 0; k < n; k++) {
			stacktree_grow(&t);
			t.parent[t.n] = parent;
			t.frame[t.n] = at[k];
			parent = (uint32_t)t.n++;
		}
		moved[i] = parent;
	}
	for (size_t i = 0; i < t.n_stacks; i++)
		t.node[i] = moved[t.node[i]];
	free(moved);
	free(old.parent);
	free(old.frame);
	s->tree = t;
}

static void rate_row(struct store_segment *s, sqlite3_stmt *st, uint32_t run, void *ctx)
{
	(void)ctx;
	s->rates[s->n_rates++] = (struct reading_rate){
		.run = run, .process = id_at(st, 1, s->dict.n_processes), .ts = sqlite3_column_int64(st, 2) + s->t0,
		.bytes = (uint64_t)sqlite3_column_int64(st, 3),
	};
}

static int load_rates(struct store_segment *s, struct err *e)
{
	int64_t n = reading_number(s->db, "SELECT count(*) FROM rate_row", 0);

	s->rates = mem_array((size_t)n, sizeof(*s->rates));
	return each_row(s, "SELECT run, process, ts, rate FROM rate_row ORDER BY run, process, ts", s->dict.n_runs,
			rate_row, NULL, e);
}

static int load_series(struct store_segment *s, struct err *e)
{
	int rc = stacktree_load(s->db, &s->tree);

	if (rc != SQLITE_OK)
		return err_set(e, -EBADMSG, EXIT_STORE, "the store's segment %s is damaged: stacks out of order", s->path);
	for (size_t i = 0; i < s->tree.n; i++)
		if (s->tree.frame[i] >= s->dict.n_frames)
			s->tree.frame[i] = 0;
	unfold_inlined(s);
	s->dict.n_stacks = s->tree.n;
	rc = slots_of(s, "SELECT max(id) FROM task", &s->n_tasks, e);
	if (!rc)
		rc = slots_of(s, "SELECT max(id) FROM series", &s->n_series, e);
	if (rc)
		return rc;
	s->tasks = mem_array(s->n_tasks, sizeof(*s->tasks));
	for (size_t i = 0; i < s->n_tasks; i++)
		s->tasks[i].thread = "";
	s->series_task = mem_array(s->n_series, sizeof(*s->series_task));
	s->series_stack = mem_array(s->n_series, sizeof(*s->series_stack));
	s->series_label = mem_array(s->n_series, sizeof(*s->series_label));
	s->has_amounts = reading_number(s->db, "SELECT count(*) FROM sqlite_master WHERE name = 'amount'", 0) != 0;
	rc = each_row(s, "SELECT id, run, process, tid, kind, thread FROM task", s->n_tasks, task_row, NULL, e);
	if (!rc)
		rc = each_row(s, s->has_amounts ? "SELECT id, task, stack, label FROM series" :
			      "SELECT id, task, stack, 0 FROM series", s->n_series, series_row, NULL, e);
	if (!rc && s->has_amounts)
		rc = load_rates(s, e);
	return rc;
}

/* --- runs --- */

static void run_row(struct store_segment *s, sqlite3_stmt *st, uint32_t id, void *ctx)
{
	uint32_t bucket_s = u32_at(st, 4);

	(void)ctx;
	s->runs[id] = (struct store_run_row){
		.family = text_at(s, st, 1), .options = text_at(s, st, 2),
		.scope = (enum store_scope)id_at(st, 3, STORE_SCOPE_PARTIAL + 1),
		.bucket_s = bucket_s ? bucket_s : 1, .cpus = u32_at(st, 5),
		.from_ns = sqlite3_column_int64(st, 6), .to_ns = sqlite3_column_int64(st, 7), .present = true,
	};
}

struct period_fill {
	size_t n;
};

static void period_row(struct store_segment *s, sqlite3_stmt *st, uint32_t id, void *ctx)
{
	struct period_fill *f = ctx;
	struct choice_run *r = &s->choice_runs[id];

	if (!r->n_periods)
		r->periods = &s->periods[f->n];
	s->periods[f->n++] = (struct choice_period){sqlite3_column_int64(st, 1),
						    (uint64_t)sqlite3_column_int64(st, 2)};
	r->n_periods++;
	s->runs[id].period_ns = (uint64_t)sqlite3_column_int64(st, 2);
}

static uint32_t family_number(const struct store_segment *s, size_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (s->runs[k].present && !strcmp(s->runs[k].family, s->runs[i].family))
			return k;
	return (uint32_t)i;
}

static int load_runs(struct store_segment *s, struct err *e)
{
	struct period_fill fill = {0};
	int64_t n_periods = reading_number(s->db, "SELECT count(*) FROM run_period", 0);
	size_t n = 0;
	int rc = slots_of(s, "SELECT max(id) FROM run", &n, e);

	if (rc)
		return rc;
	s->runs = mem_array(n, sizeof(*s->runs));
	s->choice_runs = mem_array(n, sizeof(*s->choice_runs));
	s->periods = mem_array((size_t)n_periods, sizeof(*s->periods));
	for (size_t i = 0; i < n; i++)
		s->runs[i] = (struct store_run_row){.family = "", .options = "", .bucket_s = 1};
	s->dict.n_runs = n;
	rc = each_row(s, "SELECT id, family, options, scope, bucket_s, cpus, from_ns, to_ns FROM run", n, run_row, NULL, e);
	if (!rc)
		rc = each_row(s, "SELECT run, from_ns, period_ns FROM run_period ORDER BY run, from_ns", n, period_row,
			      &fill, e);
	for (size_t i = 0; i < n; i++) {
		struct choice_run *c = &s->choice_runs[i];

		c->present = s->runs[i].present;
		c->scope = s->runs[i].scope;
		c->bucket_s = s->runs[i].bucket_s;
		c->from_ns = s->runs[i].from_ns;
		c->to_ns = s->runs[i].to_ns;
		c->family = family_number(s, i);
	}
	return rc;
}

/* --- all of it --- */

static void dict_point(struct store_segment *s)
{
	s->dict.processes = s->processes;
	s->dict.images = s->images;
	s->dict.frames = s->frames;
	s->dict.n_series = s->n_series;
	s->dict.n_tasks = s->n_tasks;
	s->dict.runs = s->runs;
	s->dict.stack_parent = s->tree.parent;
	s->dict.stack_frame = s->tree.frame;
}

int reading_load(struct store_segment *s, struct err *e)
{
	int rc = 0;

	/* what is read from here on is of one instant; a reader is short-lived, so the log can be folded in again soon */
	if (!s->snapshot && sqlite3_get_autocommit(s->db))
		s->snapshot = sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK;
	rc = load_processes(s, e);
	if (!rc)
		rc = load_frames(s, e);
	if (!rc)
		rc = load_runs(s, e);
	if (!rc)
		rc = load_series(s, e);
	if (rc) {
		reading_unload(s);
		return rc;
	}
	dict_point(s);
	s->loaded = true;
	return 0;
}

void reading_unload(struct store_segment *s)
{
	struct strings *c;

	if (s->snapshot)
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	s->snapshot = s->loaded = false;
	free(s->processes);
	free(s->images);
	free(s->frames);
	free(s->runs);
	free(s->choice_runs);
	free(s->periods);
	free(s->tree.parent);
	free(s->tree.frame);
	free(s->tree.node);
	free(s->tasks);
	free(s->series_task);
	free(s->series_stack);
	free(s->series_label);
	free(s->rates);
	while ((c = s->strings)) {
		s->strings = c->next;
		free(c);
	}
	s->processes = NULL;
	s->images = NULL;
	s->frames = NULL;
	s->runs = NULL;
	s->choice_runs = NULL;
	s->periods = NULL;
	s->series_task = s->series_stack = s->series_label = NULL;
	s->rates = NULL;
	s->n_rates = 0;
	s->tree = (struct stacktree){0};
	s->tasks = NULL;
	s->dict = (struct store_dict){0};
}
