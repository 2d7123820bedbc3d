/* SPDX-License-Identifier: Apache-2.0 */
/* hoursums: see the header. A program's hour at a time: its samples, each up its stack, into cells by place. */
#include "schema/store/hoursums.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>

#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/hourrare.h"
#include "schema/store/reading.h"

#define OUTER_MAX  64    /* as in view stack_place */
#define OF_PROGRAM 200   /* one sample in so many of the program's hour */
#define OF_HOUR    2000  /* and of the hour */
#define HOUR_S     3600
#define ID_MAX     (1 << 28)

/* A place: its kind, the id that stands for it, its line. Functions of one name in one module are one, as are lines of one file. */
enum kind { FUNCTION, LINE, UNNAMED, OTHER, NO_STACK };
#define PLACE(kind, id, line) ((uint64_t)(kind) << 60 | (uint64_t)(id) << 32 | (uint32_t)(line))

struct frame {
	uint32_t image, function, line, outer;
};
struct row {
	int64_t ts;
	uint32_t run, who, node, owner;
	uint64_t n;
};
struct cell {
	uint64_t place, self, total;
	size_t stamp; /* of the row that was added last */
};
struct sums {
	sqlite3 *db;
	struct stacktree tree;
	struct frame *frames;
	uint32_t *function, *in_file, *image;   /* by id: the one that stands for it */
	uint32_t *process_who, *process_owner, *task_run, *task_who, *task_owner, *series_task, *series_node;
	size_t n_frames, n_functions, n_images, n_processes, n_tasks, n_series;
	struct row *rows;
	size_t n_rows, cap_rows;
	struct idmap cells_by_place, places;   /* places: -> 1 + hour_place.id */
	struct cell *cells;
	size_t n_cells, cap_cells;
	struct hourrare rare;
	uint64_t *cut;                          /* by owner: samples of the program's hour that stand in rare stacks */
	sqlite3_stmt *put_row, *put_function, *put_image, *put_word;
};

/* --- reading --- */

static int number_of(sqlite3 *db, const char *sql, size_t *n)
{
	int64_t v = reading_number(db, sql, 0);

	if (v < 0 || v >= ID_MAX)
		return SQLITE_CORRUPT;
	*n = (size_t)v + 1;
	return SQLITE_OK;
}

static uint32_t id_at(sqlite3_stmt *st, int column, size_t n)
{
	sqlite3_int64 v = sqlite3_column_int64(st, column);

	return v > 0 && (uint64_t)v < n ? (uint32_t)v : 0;
}

static void take_frame(struct sums *x, sqlite3_stmt *st)
{
	sqlite3_int64 line = sqlite3_column_int64(st, 3);

	x->frames[id_at(st, 0, x->n_frames)] = (struct frame){
		.image = id_at(st, 1, x->n_images), .function = id_at(st, 2, x->n_functions),
		.line = line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0, .outer = id_at(st, 4, x->n_frames)};
}

static void take_function(struct sums *x, sqlite3_stmt *st)
{
	uint32_t id = id_at(st, 0, x->n_functions);

	x->function[id] = id_at(st, 1, x->n_functions);
	x->in_file[id] = id_at(st, 2, x->n_functions);
}

static void take_image(struct sums *x, sqlite3_stmt *st)
{
	x->image[id_at(st, 0, x->n_images)] = id_at(st, 1, x->n_images);
}

static void take_process(struct sums *x, sqlite3_stmt *st)
{
	uint32_t id = id_at(st, 0, x->n_processes);

	x->process_who[id] = id_at(st, 1, x->n_processes);
	x->process_owner[id] = hourrare_owner(&x->rare, id_at(st, 2, ID_MAX), id_at(st, 3, ID_MAX));
}

static void take_task(struct sums *x, sqlite3_stmt *st)
{
	uint32_t id = id_at(st, 0, x->n_tasks);

	x->task_run[id] = id_at(st, 1, ID_MAX);
	x->task_who[id] = x->process_who[id_at(st, 2, x->n_processes)];
	x->task_owner[id] = x->process_owner[id_at(st, 2, x->n_processes)];
}

static void take_series(struct sums *x, sqlite3_stmt *st)
{
	uint32_t id = id_at(st, 0, x->n_series);

	x->series_task[id] = id_at(st, 1, x->n_tasks);
	x->series_node[id] = x->tree.node[id_at(st, 2, x->tree.n_stacks)];
}

static void take_row(struct sums *x, sqlite3_stmt *st)
{
	uint32_t series = id_at(st, 1, x->n_series), task = x->series_task[series];

	mem_grow(x->rows, x->n_rows, x->cap_rows);
	x->rows[x->n_rows++] = (struct row){.ts = sqlite3_column_int64(st, 0), .run = x->task_run[task], .who = x->task_who[task],
					    .owner = x->task_owner[task], .node = x->series_node[series], .n = (uint64_t)sqlite3_column_int64(st, 2)};
}

static int for_rows(struct sums *x, const char *sql, void (*take)(struct sums *x, sqlite3_stmt *st))
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(x->db, sql, -1, &st, NULL);

	while (rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
		take(x, st);
	return rc == SQLITE_OK ? sqlite3_finalize(st) : rc;
}

static int make_room(struct sums *x)
{
	const struct {
		const char *sql;
		size_t *n;
	} all[] = {{"SELECT max(id) FROM frame", &x->n_frames}, {"SELECT max(id) FROM function", &x->n_functions},
		   {"SELECT max(id) FROM image", &x->n_images}, {"SELECT max(id) FROM process", &x->n_processes},
		   {"SELECT max(id) FROM task", &x->n_tasks}, {"SELECT max(id) FROM series", &x->n_series}};
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < sizeof(all) / sizeof(all[0]); i++)
		rc = number_of(x->db, all[i].sql, all[i].n);
	if (rc != SQLITE_OK)
		return rc;
	x->frames = mem_array(x->n_frames, sizeof(*x->frames));
	x->function = mem_array(x->n_functions, sizeof(*x->function));
	x->in_file = mem_array(x->n_functions, sizeof(*x->in_file));
	x->image = mem_array(x->n_images, sizeof(*x->image));
	x->process_who = mem_array(x->n_processes, sizeof(*x->process_who));
	x->process_owner = mem_array(x->n_processes, sizeof(*x->process_owner));
	x->task_owner = mem_array(x->n_tasks, sizeof(*x->task_owner));
	x->cut = mem_array(x->rare.owner_of.n + 1, sizeof(*x->cut));
	x->task_run = mem_array(x->n_tasks, sizeof(*x->task_run));
	x->task_who = mem_array(x->n_tasks, sizeof(*x->task_who));
	x->series_task = mem_array(x->n_series, sizeof(*x->series_task));
	x->series_node = mem_array(x->n_series, sizeof(*x->series_node));
	return SQLITE_OK;
}

static int read_all(struct sums *x)
{
	static const struct {
		const char *sql;
		void (*take)(struct sums *x, sqlite3_stmt *st);
	} all[] = {
		{"SELECT id, min(id) OVER (PARTITION BY function, module), min(id) OVER (PARTITION BY function, module, file) FROM functions", take_function},
		{"SELECT id, min(id) OVER (PARTITION BY name) FROM image", take_image},
		{"SELECT id, image, function, line, outer FROM frame", take_frame},
		{"SELECT p.id, min(p.id) OVER (PARTITION BY coalesce(c.name, ''), p.comm, p.self), p.exe, p.container FROM process p"
		 " LEFT JOIN containers c ON c.id = p.container", take_process},
		{"SELECT id, run, process FROM task", take_task},
		{"SELECT id, task, stack FROM series", take_series},
		{"SELECT ts, series, n FROM sample WHERE n > 0", take_row},
	};
	int rc = hourrare_load(&x->rare, x->db);

	if (rc == SQLITE_OK)
		rc = make_room(x);
	if (rc == SQLITE_OK)
		rc = stacktree_load(x->db, &x->tree);
	for (size_t i = 0; rc == SQLITE_OK && i < x->tree.n; i++)
		if (x->tree.frame[i] >= x->n_frames)
			rc = SQLITE_CORRUPT;
	for (size_t i = 0; rc == SQLITE_OK && i < sizeof(all) / sizeof(all[0]); i++)
		rc = for_rows(x, all[i].sql, all[i].take);
	return rc;
}

/* --- adding up --- */

static struct cell *cell_of(struct sums *x, uint64_t place)
{
	bool fresh;
	uint64_t *at = idmap_ref(&x->cells_by_place, place, &fresh);

	if (fresh) {
		*at = x->n_cells;
		mem_grow(x->cells, x->n_cells, x->cap_cells);
		x->cells[x->n_cells++] = (struct cell){.place = place};
	}
	return &x->cells[*at];
}

static void add(struct sums *x, uint64_t place, uint64_t n, size_t stamp, bool self)
{
	struct cell *c = cell_of(x, place);

	c->total += c->stamp == stamp ? 0 : n;
	c->self += self ? n : 0;
	c->stamp = stamp;
}

static void add_frame(struct sums *x, const struct frame *f, uint64_t n, size_t stamp, bool self)
{
	add(x, f->function ? PLACE(FUNCTION, x->function[f->function], 0) : PLACE(UNNAMED, x->image[f->image], 0), n, stamp, self);
	if (f->function && f->line)
		add(x, PLACE(LINE, x->in_file[f->function], f->line), n, stamp, self);
}

/* The innermost frame of the leaf has the samples itself; those of a rare stack are its functions'. */
static void add_row(struct sums *x, const struct row *r, size_t stamp)
{
	bool cut = r->owner && x->rare.mark && x->tree.frame[r->node] == x->rare.mark;

	if (!r->node)
		add(x, PLACE(NO_STACK, 0, 0), r->n, stamp, true);
	if (cut)
		x->cut[r->owner] += r->n;
	for (uint32_t node = cut ? x->tree.parent[r->node] : r->node; node; node = x->tree.parent[node]) {
		uint32_t frame = x->tree.frame[node];

		for (int i = 0; (frame || !i) && i < OUTER_MAX; i++, frame = x->frames[frame].outer)
			add_frame(x, &x->frames[frame], r->n, stamp, node == r->node && !i);
	}
}

/* What the functions had in the rare stacks of one owner, as far as these are of this program and count; what is left stays [rare]. */
static void add_cut(struct sums *x, const struct row *whose, uint32_t owner)
{
	size_t n;
	const struct hourrare_row *r = hourrare_find(&x->rare, whose->ts, whose->run, owner, &n);
	uint64_t all = 0, left = x->cut[owner], mine;
	struct cell *c;

	for (size_t i = 0; i < n; i++)
		all += r[i].self;
	mine = left < all ? left : all;
	for (size_t i = 0; i < n; i++) {
		uint32_t frame = r[i].frame < x->n_frames ? r[i].frame : 0, function = r[i].function < x->n_functions ? r[i].function : 0;

		c = cell_of(x, function ? PLACE(FUNCTION, x->function[function], 0) : PLACE(UNNAMED, x->image[x->frames[frame].image], 0));
		c->self += all ? r[i].self * mine / all : 0;
		c->total += all ? r[i].total * mine / all : 0;
		left -= all ? r[i].self * mine / all : 0;
	}
	if (left) {
		c = cell_of(x, PLACE(FUNCTION, x->function[x->frames[x->rare.mark].function], 0));
		c->self += left;
		c->total += left;
	}
	x->cut[owner] = 0;
}

static void add_all_cut(struct sums *x, const struct row *whose)
{
	for (uint32_t owner = 1; owner <= x->rare.owner_of.n; owner++)
		if (x->cut[owner])
			add_cut(x, whose, owner);
}

/* --- writing --- */

static int put_place(struct sums *x, uint64_t place, uint64_t id)
{
	enum kind kind = place >> 60;
	sqlite3_stmt *st = kind == FUNCTION || kind == LINE ? x->put_function : kind == UNNAMED ? x->put_image : x->put_word;

	sqlite3_bind_int64(st, 1, (sqlite3_int64)id);
	if (st == x->put_word) {
		sqlite3_bind_int(st, 2, kind == OTHER ? 0 : 2);
		sqlite3_bind_text(st, 3, kind == OTHER ? "[other]" : "[no stack]", -1, SQLITE_STATIC);
	} else {
		sqlite3_bind_int64(st, 2, place >> 32 & (ID_MAX - 1));
	}
	if (st == x->put_function)
		sqlite3_bind_int64(st, 3, (uint32_t)place);
	sqlite3_step(st);
	return sqlite3_reset(st);
}

static int put_cell(struct sums *x, const struct row *whose, const struct cell *c)
{
	bool fresh;
	uint64_t *id = idmap_ref(&x->places, c->place, &fresh);
	int rc = SQLITE_OK;

	if (fresh) {
		*id = x->places.n;
		rc = put_place(x, c->place, *id);
	}
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(x->put_row, 1, whose->ts);
	sqlite3_bind_int64(x->put_row, 2, whose->run);
	sqlite3_bind_int64(x->put_row, 3, whose->who);
	sqlite3_bind_int64(x->put_row, 4, (sqlite3_int64)*id);
	sqlite3_bind_int64(x->put_row, 5, (sqlite3_int64)c->self);
	sqlite3_bind_int64(x->put_row, 6, (sqlite3_int64)c->total);
	sqlite3_step(x->put_row);
	return sqlite3_reset(x->put_row);
}

/* Those that are large enough; what the other functions had themselves together. */
static int put_group(struct sums *x, const struct row *whose, uint64_t samples, uint64_t of_hour)
{
	struct cell other = {.place = PLACE(OTHER, 0, 0)};
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < x->n_cells; i++) {
		struct cell *c = &x->cells[i];

		if (c->total > samples) /* of what has no name, places are summed that called each other */
			c->total = samples;
		if (c->total >= samples / OF_PROGRAM && c->total >= of_hour / OF_HOUR)
			rc = put_cell(x, whose, c);
		else if (c->place >> 60 != LINE)
			other.self += c->self;
	}
	other.total = other.self;
	if (rc == SQLITE_OK && other.self)
		rc = put_cell(x, whose, &other);
	idmap_clear(&x->cells_by_place);
	x->n_cells = 0;
	return rc;
}

static int by_group(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x->run != y->run)
		return x->run < y->run ? -1 : 1;
	return x->who < y->who ? -1 : x->who > y->who;
}

/* From row i on, which is the first of its hour. */
static uint64_t hour_samples(const struct sums *x, size_t i)
{
	int64_t hour = x->rows[i].ts / HOUR_S;
	uint64_t n = 0;

	for (; i < x->n_rows && x->rows[i].ts / HOUR_S == hour; i++)
		n += x->rows[i].n;
	return n;
}

static int put_all(struct sums *x)
{
	uint64_t samples = 0, of_hour = 0;
	int rc = SQLITE_OK;

	if (x->n_rows)
		qsort(x->rows, x->n_rows, sizeof(*x->rows), by_group);
	for (size_t i = 0; rc == SQLITE_OK && i < x->n_rows; i++) {
		if (!i || x->rows[i].ts / HOUR_S != x->rows[i - 1].ts / HOUR_S)
			of_hour = hour_samples(x, i);
		add_row(x, &x->rows[i], i + 1);
		samples += x->rows[i].n;
		if (i + 1 < x->n_rows && !by_group(&x->rows[i], &x->rows[i + 1]))
			continue;
		add_all_cut(x, &x->rows[i]);
		rc = put_group(x, &x->rows[i], samples, of_hour);
		samples = 0;
	}
	return rc;
}

static int prepare(struct sums *x)
{
	const struct {
		sqlite3_stmt **st;
		const char *sql;
	} all[] = {
		{&x->put_row, "INSERT INTO hour_row(ts, run, who, place, self, total) VALUES(?1, ?2, ?3, ?4, ?5, ?6)"},
		{&x->put_function, "INSERT INTO hour_place(id, kind, function, module, file, line)"
				   " SELECT ?1, ?3 <> 0, function, module, file, ?3 FROM functions WHERE id = ?2"},
		{&x->put_image, "INSERT INTO hour_place(id, kind, function, module, file, line)"
				" SELECT ?1, 0, printf('%s+?', coalesce(i.name, '[unknown]')), coalesce(i.name, ''), '', 0"
				" FROM (SELECT ?2 AS id) x LEFT JOIN image i ON i.id = x.id"},
		{&x->put_word, "INSERT INTO hour_place(id, kind, function, module, file, line) VALUES(?1, ?2, ?3, '', '', 0)"},
	};
	int rc = sqlite3_exec(x->db, "DELETE FROM hour_row; DELETE FROM hour_place; DELETE FROM hour_who", NULL, NULL, NULL);

	for (size_t i = 0; rc == SQLITE_OK && i < sizeof(all) / sizeof(all[0]); i++)
		rc = sqlite3_prepare_v2(x->db, all[i].sql, -1, all[i].st, NULL);
	return rc;
}

static void release(struct sums *x)
{
	stacktree_free(&x->tree);
	idmap_release(&x->cells_by_place);
	idmap_release(&x->places);
	hourrare_release(&x->rare);
	void *const arrays[] = {x->process_owner, x->task_owner, x->cut, x->frames, x->function, x->in_file, x->image, x->process_who, x->task_run, x->task_who, x->series_task,
				x->series_node, x->rows, x->cells};
	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		free(arrays[i]);
	sqlite3_finalize(x->put_row);
	sqlite3_finalize(x->put_function);
	sqlite3_finalize(x->put_image);
	sqlite3_finalize(x->put_word);
}

int hoursums_fill(sqlite3 *db)
{
	struct sums x = {.db = db};
	int rc = read_all(&x);

	if (rc == SQLITE_OK)
		rc = prepare(&x);
	if (rc == SQLITE_OK)
		rc = put_all(&x);
	release(&x);
	return rc == SQLITE_OK ? sqlite3_exec(db, "INSERT INTO hour_who(id, container, comm, own) SELECT p.id, coalesce(c.name, ''), p.comm, p.self"
						  " FROM process p LEFT JOIN containers c ON c.id = p.container"
						  " WHERE p.id IN (SELECT who FROM hour_row)", NULL, NULL, NULL) : rc;
}
