/* SPDX-License-Identifier: Apache-2.0 */
/* used: A range may lie in several segments: sums add up, of memory the last
 * reading holds. */
#include "tools/processes/process_usage.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/read/days.h"
#include "tools/select/askrows.h"

#define TEXT_OF(n) TEXT_(n)
#define TEXT_(n)   #n

/* The columns that both have, from number 2 on. A row that is partly in the range counts in part,
 * as rows may be whole minutes. A gauge next to max() has the value of the row with the maximum
 * (SQLite's lang_select.html). */
#define PART        "max(0, min(ts + seconds, ?2 + 1) - max(ts, ?1)) / (1.0 * seconds)"
#define SUM(column) "CAST(round(sum((" column ") * " PART ")) AS INTEGER), "
/* the last row of one that is gone has none */
#define SUMS(net, gauge)           \
	SUM("user_us + system_us") \
	SUM("read_bytes") SUM("write_bytes") net "max(iif(" gauge " IS NULL, -1, ts)), "
#define RANGE(before, by) " WHERE ts BETWEEN ?1 - " TEXT_OF(before) " AND ?2 GROUP BY " by

static const char PROCESSES[] = "SELECT process_id, 0, " SUMS(
	"NULL, NULL, NULL, ",
	"rss") "rss, NULL, rss + coalesce(swap, 0) FROM process_stats" RANGE(PROCESS_USAGE_PROCESS_S,
									     "process_id");
/* The same from sums (store_segment_sums), which have the tables' columns. */
#define T0            "(SELECT value FROM meta WHERE key = 't0')"
#define TOTAL(column) "CAST(round(sum(" column ")) AS INTEGER), "
#define SUMMED(gauge) "max(iif(" gauge " IS NULL, -1, x.ts + " T0 ")), "
static const struct askrows_sums
	PROCESSES_SUMMED =
		{{"process_row"},
		 "SELECT process, 0, " TOTAL("user_us + system_us") TOTAL("read_bytes")
			 TOTAL("write_bytes") "NULL, NULL, NULL, " SUMMED(
				 "rss") "rss, NULL, rss + coalesce(swap, 0) FROM process_sum x GROUP BY process"},
	FILES_SUMMED = {{"process_mem_row"},
			"SELECT process, file, max(ts) + " T0
			" FROM process_mem_sum GROUP BY process"},
	CONTAINERS_SUMMED =
		{{"cgroup_row"},
		 "SELECT coalesce(iif(c.name = '', substr(c.runtime_id, 1, 12), c.name), ''), coalesce(c.runtime_id, ''), " TOTAL(
			 "user_us + system_us") TOTAL("read_bytes") TOTAL("write_bytes")
			 TOTAL("rx_bytes") TOTAL("tx_bytes") TOTAL("throttled_us") SUMMED(
				 "working") "working, mem_limit, coalesce(anon + coalesce(kernel, 0), working) + coalesce(swap, 0)"
					    " FROM cgroup_sum x LEFT JOIN container c ON c.id = x.container WHERE x.container > 0 GROUP BY x.cgroup"},
	FLOWS_SUMMED = {
		{"flow_row"},
		"SELECT process, 0, sum(rx_bytes), sum(tx_bytes) FROM flow_sum GROUP BY process"
		" HAVING coalesce(sum(rx_bytes), sum(tx_bytes)) IS NOT NULL"};
static const char ENDED[] =
	"SELECT 1 FROM process WHERE end_ns / 1000000000 BETWEEN ?1 AND ?2 LIMIT 1";
/* Of all that the segment has of a process. */
static const char ENDED_IO_SUMMED[] = "SELECT s.process, " TOTAL("s.read_bytes") TOTAL(
	"s.write_bytes") "0 FROM process_sum s JOIN process p ON p.id = s.process"
			 " WHERE p.end_ns / 1000000000 BETWEEN ?1 AND ?2 GROUP BY 1 HAVING sum(s.read_bytes + s.write_bytes) > 0";

/* Of those with files in their memory. */
static const char FILES[] = "SELECT process_id, file, max(ts) FROM process_mem_stats" RANGE(
	PROCESS_USAGE_PROCESS_S, "process_id");
static const char CONTAINERS[] = "SELECT container, container_id, " SUMS(
	SUM("rx_bytes") SUM("tx_bytes") SUM("throttled_us"),
	"working") "working, mem_limit, coalesce(anon + coalesce(kernel, 0), working)"
		   " + coalesce(swap, 0) FROM container_stats" RANGE(PROCESS_USAGE_CONTAINER_S,
								     "cgroup");

/* All that processes which ended in the range had read and written. */
static const char ENDED_IO[] =
	"SELECT s.process_id, sum(s.read_bytes), sum(s.write_bytes) FROM process_stats s JOIN process p ON p.id = s.process_id"
	" WHERE p.end_ns / 1000000000 BETWEEN ?1 AND ?2 AND s.ts <= ?2 GROUP BY 1 HAVING sum(s.read_bytes + s.write_bytes) > 0";

static const char RECORDED[] =
	"SELECT 1 FROM run WHERE family = 'host' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 LIMIT 1";

/* What went over a process's connections, as family net recorded it. */
static const char FLOWS[] =
	"SELECT process_id, 0, sum(rx_bytes), sum(tx_bytes) FROM flows WHERE ts BETWEEN ?1 AND ?2 GROUP BY process_id"
	" HAVING coalesce(sum(rx_bytes), sum(tx_bytes)) IS NOT NULL";
/* Of containers the same, but for what stayed on this host: where family host did not read their
 * interfaces. */
static const char CONTAINER_FLOWS[] =
	"SELECT container, '', sum(rx_bytes), sum(tx_bytes) FROM flows WHERE ts BETWEEN ?1 AND ?2 AND container <> '' AND protocol <> 'unix' GROUP BY container";
static const char NET_RECORDED[] =
	"SELECT 1 FROM run WHERE family = 'net' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 LIMIT 1";

/* One that ended has no memory at the last reading. */
#define GPU_LAST                                                                                                           \
	"SELECT process_id, container, sum(iif(ts >= ?1, busy_us, 0)) AS busy, max(ts), mem FROM gpu_process_stats" RANGE( \
		PROCESS_USAGE_GPU_S, "process_id, uuid")
static const char GPU_PROCESSES[] = "SELECT process_id, 0, sum(busy), sum(mem) FROM (" GPU_LAST
				    ") WHERE process_id IS NOT NULL GROUP BY 1";
static const char GPU_CONTAINERS[] =
	"SELECT container, '', sum(busy), sum(mem) FROM (" GPU_LAST ") GROUP BY 1";
static const char GPU_RECORDED[] =
	"SELECT 1 FROM run WHERE family = 'gpu' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 LIMIT 1";

/* A disk's requests come again at those that it lies on. */
#define DISK_TIMES(who)                                                                                           \
	"SELECT " who                                                                                             \
	", sum(d), sum(s) FROM (SELECT process_id, container, queue_us + device_us AS d, 0 AS s FROM block_stats" \
	" WHERE ts BETWEEN ?1 AND ?2 AND disk NOT IN (SELECT disk FROM block_devices WHERE under <> '')"          \
	" UNION ALL SELECT process_id, container, 0, us FROM fsyncs WHERE ts BETWEEN ?1 AND ?2) GROUP BY 1"
static const char DISK_PROCESSES[] = DISK_TIMES("process_id, 0");
static const char DISK_CONTAINERS[] = DISK_TIMES("container, ''");
static const char DISK_RECORDED[] =
	"SELECT 1 FROM run WHERE family = 'disk' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 LIMIT 1";

/* A process that ended, and what it left to its parent. */
struct left {
	uint64_t host;
	uint32_t ppid;
	int64_t start_ns, end_ns;
	uint64_t read_bytes, write_bytes;
};

struct reading {
	const struct selection *sel;
	uint64_t segment;              /* which of them is read, from 1 */
	const struct store_dict *dict; /* of the segment */
	struct process_usage *out;
	size_t cap;
	struct idmap row_of;
	struct left *left;
	size_t n_left, cap_left;
	bool gpu_here, disk_here, ended_here; /* in this segment */
	const struct store_part *part;        /* the file that is read */
};

static uint64_t number(sqlite3_stmt *st, int column)
{
	int64_t n = sqlite3_column_int64(st, column);

	return n > 0 ? (uint64_t)n : 0;
}

static bool is_known(sqlite3_stmt *st, int column)
{
	return sqlite3_column_type(st, column) != SQLITE_NULL;
}

static struct process_usage_row *row_of(struct reading *r, uint64_t key, bool *fresh)
{
	uint64_t *at = idmap_ref(&r->row_of, key, fresh);

	if (*fresh) {
		*at = r->out->n;
		mem_grow(r->out->rows, r->out->n, r->cap);
		r->out->rows[r->out->n++] = (struct process_usage_row){0};
	}
	return &r->out->rows[*at];
}

static void take_numbers(struct process_usage_row *x, sqlite3_stmt *st)
{
	int64_t at = sqlite3_column_int64(st, 8);

	x->cpu_us += number(st, 2);
	x->read_bytes += number(st, 3);
	x->write_bytes += number(st, 4);
	x->rx_bytes += number(st, 5);
	x->tx_bytes += number(st, 6);
	x->throttled_us += number(st, 7);
	x->has_io = x->has_io || is_known(st, 3);
	x->has_net = x->has_net || is_known(st, 5);
	if (at < x->at)
		return;
	x->at = at;
	x->has_mem = is_known(st, 9);
	x->mem = number(st, 9);
	x->mem_limit = number(st, 10);
	x->held = number(st, 11);
}

/* NULL: it is not of the selection. */
static struct process_usage_row *container_row(struct reading *r, sqlite3_stmt *st)
{
	const char *name = askrows_text(st, 0), *id = askrows_text(st, 1);
	const struct store_process_row p = select_process_row("", name, id);
	struct process_usage_row *x;
	bool fresh;

	if (!*name || !select_wants_process(r->sel, &p))
		return NULL;
	x = row_of(r, hash_bytes(HASH_SEED, name, strlen(name)), &fresh);
	if (fresh) {
		x->name = mem_strdup(name);
		x->id = mem_strdup(id);
	}
	return x;
}

static void take_container(void *ctx, sqlite3_stmt *st)
{
	struct process_usage_row *x = container_row(ctx, st);

	if (x)
		take_numbers(x, st);
}

/* Its own strings: the segment may be closed. */
static struct fold_process who_of(const struct store_process_row *p)
{
	return (struct fold_process){.pid = p->pid,
				     .ppid = p->ppid,
				     .uid = p->uid,
				     .start_ns = p->start_ns,
				     .end_ns = p->end_ns,
				     .how = p->how,
				     .status = p->status,
				     .self = p->self,
				     .comm = mem_strdup(p->comm),
				     .exe = mem_strdup(p->exe),
				     .args = mem_strdup(p->args),
				     .container = mem_strdup(p->container),
				     .container_id = mem_strdup(p->container_id),
				     .container_image = mem_strdup(p->container_image),
				     .unit = mem_strdup(p->unit),
				     .lang = mem_strdup(p->lang),
				     .lang_runtime = mem_strdup(p->lang_runtime)};
}

static uint64_t identity(const struct store_process_row *p)
{
	uint64_t h = hash_u64(hash_u64(HASH_SEED, p->pid), (uint64_t)p->start_ns);

	return hash_u64(h, p->exec_id);
}

static void take_run(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	(void)st;
	r->out->known = true;
}

static void take_net_run(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	(void)st;
	r->out->net_known = true;
}

/* NULL: it is not of the selection. */
static struct process_usage_row *process_row(struct reading *r, sqlite3_stmt *st)
{
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	struct process_usage_row *x;
	bool fresh;

	if (!p || (p->end_ns && p->end_ns < r->sel->from_ns) || !select_wants_process(r->sel, p))
		return NULL;
	x = row_of(r, identity(p), &fresh);
	if (fresh)
		x->who = who_of(p);
	else if (p->end_ns)
		x->who.end_ns = p->end_ns;
	return x;
}

static void take_process(void *ctx, sqlite3_stmt *st)
{
	struct process_usage_row *x = process_row(ctx, st);

	if (x)
		take_numbers(x, st);
}

static void take_files(void *ctx, sqlite3_stmt *st)
{
	struct process_usage_row *x = process_row(ctx, st);

	if (!x || sqlite3_column_int64(st, 2) < x->file_at)
		return;
	x->file = number(st, 1);
	x->file_at = sqlite3_column_int64(st, 2);
}

/* The kernel can reclaim files' pages. Their reading may be older than that of all its memory. */
static void files_take_off(struct process_usage *u)
{
	for (size_t i = 0; i < u->n; i++) {
		struct process_usage_row *x = &u->rows[i];
		const uint64_t file = x->file < x->mem ? x->file : x->mem;

		if (x->has_mem && x->file_at)
			x->held -= file < x->held ? file : x->held;
	}
}

/* Of several hosts a container's name begins with its host's. */
static uint64_t host_of(const char *container)
{
	return store_names_hosts() ? hash_bytes(HASH_SEED, container, strcspn(container, "/")) : 0;
}

static void take_left(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));

	if (!p)
		return;
	mem_grow(r->left, r->n_left, r->cap_left);
	r->left[r->n_left++] = (struct left){.host = host_of(p->container),
					     .ppid = p->ppid,
					     .start_ns = p->start_ns,
					     .end_ns = p->end_ns,
					     .read_bytes = number(st, 1),
					     .write_bytes = number(st, 2)};
}

static int by_pid(const void *a, const void *b)
{
	const struct process_usage_row *const *x = a, *const *y = b;

	return ((*x)->who.pid > (*y)->who.pid) - ((*x)->who.pid < (*y)->who.pid);
}

/* Of rows by pid the one that was `l`'s parent at its end, and has at least as much; NULL. */
static struct process_usage_row *heir_of(struct process_usage_row **rows, size_t n,
					 const struct left *l)
{
	struct process_usage_row *best = NULL;
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (rows[middle]->who.pid < l->ppid)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < n && rows[low]->who.pid == l->ppid; low++) {
		struct process_usage_row *x = rows[low];

		if (x->who.start_ns <= l->start_ns &&
		    (!x->who.end_ns || x->who.end_ns >= l->end_ns) &&
		    host_of(x->who.container) == l->host && x->read_bytes >= l->read_bytes &&
		    x->write_bytes >= l->write_bytes && (!best || x->at > best->at))
			best = x;
	}
	return best;
}

/* What a process left has what its own children left to it: each is taken off at its parent only.
 */
static void left_take_off(struct reading *r)
{
	struct process_usage *out = r->out;
	struct process_usage_row **rows = mem_array(out->n + 1, sizeof(struct process_usage_row *));

	for (size_t i = 0; i < out->n; i++)
		rows[i] = &out->rows[i];
	if (out->n)
		qsort(rows, out->n, sizeof(struct process_usage_row *), by_pid);
	for (size_t i = 0; i < r->n_left; i++) {
		struct process_usage_row *heir = heir_of(rows, out->n, &r->left[i]);

		if (!heir)
			continue;
		heir->read_bytes -= r->left[i].read_bytes;
		heir->write_bytes -= r->left[i].write_bytes;
	}
	free(rows);
}

static void take_flow(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct process_usage_row *x =
		r->out->of_containers ? container_row(r, st) : process_row(r, st);

	if (!x)
		return;
	x->rx_bytes += number(st, 2);
	x->tx_bytes += number(st, 3);
	x->has_net = true;
}

static void take_gpu_run(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	(void)st;
	r->out->gpu_known = true;
	r->gpu_here = true;
}

/* Memory is that of the last segment that has some of it. */
static void take_gpu(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct process_usage_row *x =
		r->out->of_containers ? container_row(r, st) : process_row(r, st);

	if (!x)
		return;
	x->gpu_us += number(st, 2);
	x->gpu_mem = (x->gpu_segment == r->segment ? x->gpu_mem : 0) + number(st, 3);
	x->gpu_segment = r->segment;
	x->has_gpu = true;
}

static void take_disk_run(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	(void)st;
	r->out->disk_known = true;
	r->disk_here = true;
}

static void take_disk(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct process_usage_row *x =
		r->out->of_containers ? container_row(r, st) : process_row(r, st);

	if (!x)
		return;
	x->disk_us += number(st, 2);
	x->sync_us += number(st, 3);
	x->has_disk = true;
}

static void take_ended(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	(void)st;
	r->ended_here = true;
}

static int read_processes(struct reading *r, struct store_segment *seg, const char *path,
			  struct err *e)
{
	const int64_t last_s = (r->sel->to_ns - 1) / NSEC_PER_SEC;
	int rc;

	r->ended_here = false;
	rc = askrows(r->sel, seg, path, ENDED, take_ended, r, e);
	if (!rc && r->ended_here)
		rc = store_segment_sums(seg, "process_row", 0, last_s) ?
			     askrows(r->sel, seg, path, ENDED_IO_SUMMED, take_left, r, e) :
			     askrows(r->sel, seg, path, ENDED_IO, take_left, r, e);
	if (!rc)
		rc = askrows_summed(r->sel, seg, path, &PROCESSES_SUMMED, PROCESSES, take_process,
				    r, e);
	return rc ? rc : askrows_summed(r->sel, seg, path, &FILES_SUMMED, FILES, take_files, r, e);
}

/* Rows that have no sums: of a day its segments are asked. */
struct row_question {
	struct reading *r;
	const char *sql;
	void (*take)(void *ctx, sqlite3_stmt *st);
};

static int ask_segment(void *ctx, struct store_segment *seg, const char *path, struct err *e)
{
	const struct row_question *q = ctx;
	int rc = store_segment_processes(seg, &q->r->dict, e);

	q->r->segment++;
	return rc ? rc : askrows(q->r->sel, seg, path, q->sql, q->take, q->r, e);
}

static int ask_rows(struct reading *r, struct store_segment *seg, const char *sql,
		    void (*take)(void *ctx, sqlite3_stmt *st), struct err *e)
{
	struct row_question q = {r, sql, take};
	int rc;

	if (!r->part->day)
		return askrows(r->sel, seg, r->part->path, sql, take, r, e);
	rc = askrows_segments(r->sel, r->part, ask_segment, &q, e);
	if (!rc)
		rc = select_segment(r->sel, r->part->path, &seg, e);
	return rc ? rc : store_segment_processes(seg, &r->dict, e);
}

static int read_flows(struct reading *r, struct store_segment *seg, const char *path, struct err *e)
{
	int rc = askrows(r->sel, seg, path, NET_RECORDED, take_net_run, r, e);

	if (rc)
		return rc;
	return r->out->of_containers ?
		       ask_rows(r, seg, CONTAINER_FLOWS, take_flow, e) :
		       askrows_summed(r->sel, seg, path, &FLOWS_SUMMED, FLOWS, take_flow, r, e);
}

static int read_gpus(struct reading *r, struct store_segment *seg, const char *path, struct err *e)
{
	int rc;

	r->gpu_here = false;
	rc = askrows(r->sel, seg, path, GPU_RECORDED, take_gpu_run, r, e);
	return rc || !r->gpu_here ?
		       rc :
		       ask_rows(r, seg, r->out->of_containers ? GPU_CONTAINERS : GPU_PROCESSES,
				take_gpu, e);
}

static int read_disks(struct reading *r, struct store_segment *seg, const char *path, struct err *e)
{
	int rc;

	r->disk_here = false;
	rc = askrows(r->sel, seg, path, DISK_RECORDED, take_disk_run, r, e);
	return rc || !r->disk_here ?
		       rc :
		       ask_rows(r, seg, r->out->of_containers ? DISK_CONTAINERS : DISK_PROCESSES,
				take_disk, e);
}

static int read_part(struct reading *r, const struct store_part *part, struct err *e)
{
	const char *path = part->path;
	struct store_segment *seg;
	int rc = select_segment(r->sel, path, &seg, e);

	r->segment++;
	r->part = part;
	if (!rc)
		rc = store_segment_processes(seg, &r->dict, e);
	if (!rc)
		rc = askrows(r->sel, seg, path, RECORDED, take_run, r, e);
	if (rc)
		return rc;
	rc = r->out->of_containers ? askrows_summed(r->sel, seg, path, &CONTAINERS_SUMMED,
						    CONTAINERS, take_container, r, e) :
				     read_processes(r, seg, path, e);
	if (!rc && !(r->out->of_containers && r->out->known))
		rc = read_flows(r, seg, path, e);
	if (!rc) /* others may have been opened meanwhile */
		rc = select_segment(r->sel, path, &seg, e);
	if (!rc)
		rc = read_disks(r, seg, path, e);
	if (!rc)
		rc = select_segment(r->sel, path, &seg, e);
	return rc ? rc : read_gpus(r, seg, path, e);
}

static int read_all(const struct selection *sel, struct process_usage *out, bool containers,
		    struct err *e)
{
	struct reading r = {.sel = sel, .out = out};
	const struct store_part *parts;
	const size_t n = select_parts(sel, &parts);
	int rc = 0;

	*out = (struct process_usage){.of_containers = containers};
	for (size_t i = 0; !rc && i < n; i++)
		rc = read_part(&r, &parts[i], e);
	if (!rc && !containers)
		left_take_off(&r);
	if (!containers)
		files_take_off(out);
	free(r.left);
	idmap_release(&r.row_of);
	return rc;
}

int process_usage_processes(const struct selection *sel, struct process_usage *out, struct err *e)
{
	return read_all(sel, out, false, e);
}

/* cgroup v1 counts no write that goes through the page cache, and some kernels count nothing: where
 * a cgroup has none, the sum of its processes. */
static int io_of_processes(const struct selection *sel, struct process_usage *out, struct err *e)
{
	struct process_usage all;
	struct idmap row_of = {0};
	uint64_t at, *reads = mem_array(out->n, sizeof(*reads)),
		     *writes = mem_array(out->n, sizeof(*writes));
	int rc = process_usage_processes(sel, &all, e);

	for (size_t i = 0; i < out->n; i++)
		idmap_set(&row_of,
			  hash_bytes(HASH_SEED, out->rows[i].name, strlen(out->rows[i].name)), i);
	for (size_t i = 0; !rc && i < all.n; i++) {
		const struct process_usage_row *x = &all.rows[i];

		if (!*x->who.container ||
		    !idmap_get(&row_of,
			       hash_bytes(HASH_SEED, x->who.container, strlen(x->who.container)),
			       &at))
			continue;
		reads[at] += x->read_bytes;
		writes[at] += x->write_bytes;
	}
	for (size_t i = 0; i < out->n; i++) {
		struct process_usage_row *x = &out->rows[i];

		x->io_of_processes = (!x->read_bytes && reads[i]) || (!x->write_bytes && writes[i]);
		x->has_io = x->has_io || x->io_of_processes;
		x->read_bytes = x->read_bytes ? x->read_bytes : reads[i];
		x->write_bytes = x->write_bytes ? x->write_bytes : writes[i];
	}
	free(reads);
	free(writes);
	idmap_release(&row_of);
	process_usage_release(&all);
	return rc;
}

/* Each that exists has a reading that often: where others have one since, it has ended, and holds
 * nothing. */
static void memory_of_ended(struct process_usage *out)
{
	int64_t newest = 0;

	for (size_t i = 0; i < out->n; i++)
		newest = out->rows[i].at > newest ? out->rows[i].at : newest;
	for (size_t i = 0; i < out->n; i++)
		if (out->rows[i].at + PROCESS_USAGE_CONTAINER_S < newest) {
			out->rows[i].has_mem = false;
			out->rows[i].mem = out->rows[i].held = 0;
		}
}

int process_usage_containers(const struct selection *sel, struct process_usage *out, struct err *e)
{
	int rc = read_all(sel, out, true, e);

	if (!store_names_hosts()) /* each host's recording ends when it does */
		memory_of_ended(out);

	for (size_t i = 0; !rc && i < out->n; i++)
		if (out->known && (!out->rows[i].read_bytes || !out->rows[i].write_bytes))
			return io_of_processes(sel, out, e);
	return rc;
}

void process_usage_release(struct process_usage *u)
{
	for (size_t i = 0; i < u->n; i++) {
		const struct fold_process *p = &u->rows[i].who;
		const char *texts[] = {
			u->rows[i].name, u->rows[i].id, p->comm,         p->exe,
			p->args,         p->container,  p->container_id, p->container_image,
			p->unit,         p->lang,       p->lang_runtime};

		for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
			free((void *)(uintptr_t)texts[k]);
	}
	free(u->rows);
	*u = (struct process_usage){0};
}
