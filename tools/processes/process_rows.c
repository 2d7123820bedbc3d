/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/processes/process_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/fold/ranking/hotfunctions.h"

#define HOST "[host]"

static const char *container_of(const struct fold_process *p)
{
	return *p->container ? p->container : *p->container_id ? p->container_id : HOST;
}

static uint64_t hash_text(const char *s)
{
	return hash_bytes(HASH_SEED, s, strlen(s));
}

static size_t container_row(struct process_rows *p, struct idmap *row_of, size_t *cap,
			    const char *name)
{
	bool fresh;
	uint64_t *at = idmap_ref(row_of, hash_text(name), &fresh);

	if (fresh) {
		*at = p->n;
		mem_grow(p->rows, p->n, *cap);
		p->rows[p->n++] = (struct process_rows_row){.container = name};
	}
	return *at;
}

/* Of two that used as much, the one that is older, whatever their places are in the store. */
static bool used_more(const struct fold_process *a, const struct fold_process *b)
{
	if (a->ns != b->ns)
		return a->ns > b->ns;
	return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->pid < b->pid;
}

static void row_add(struct process_rows_row *r, const struct fold *f, uint32_t process)
{
	const struct fold_process *p = &f->processes[process];

	if (!r->n_processes || used_more(p, r->who))
		r->who = p;
	r->n_processes++;
	r->ns += p->ns;
	r->samples += p->samples;
}

/* Which row each process is in; UINT32_MAX: in none, it did not run. */
static uint32_t *gather(struct process_rows *p, const struct fold *f, enum process_rows_by by)
{
	uint32_t *row_of = mem_array(f->n_processes, sizeof(*row_of));
	struct idmap rows = {0};
	size_t cap = 0;

	for (uint32_t i = 0; i < f->n_processes; i++) {
		size_t row = p->n;

		row_of[i] = UINT32_MAX;
		if (!f->processes[i].samples)
			continue;
		if (by == PROCESS_ROWS_BY_CONTAINER) {
			row = container_row(p, &rows, &cap, container_of(&f->processes[i]));
		} else {
			mem_grow(p->rows, p->n, cap);
			p->rows[p->n++] = (struct process_rows_row){0};
		}
		row_add(&p->rows[row], f, i);
		row_of[i] = (uint32_t)row;
	}
	idmap_release(&rows);
	return row_of;
}

/* Of two that took as long, the one whose name comes first. */
static bool is_better(const struct fold *f, const struct process_rows_row *r, uint64_t ns,
		      uint32_t frame)
{
	int c;

	if (ns != r->frame_ns || frame == r->frame)
		return ns > r->frame_ns;
	c = strcmp(f->frames[frame].name, f->frames[r->frame].name);
	return ns && (c ? c : strcmp(f->frames[frame].module, f->frames[r->frame].module)) < 0;
}

struct spending {          /* of the row at hand */
	uint64_t *ns;      /* by function */
	size_t *row;       /* by function: of which row that is, + 1 */
	uint32_t *touched; /* functions that it has */
	size_t n;
};

static void spend(struct spending *x, size_t row, uint32_t function, uint64_t ns)
{
	if (x->row[function] != row + 1) {
		x->row[function] = row + 1;
		x->ns[function] = 0;
		x->touched[x->n++] = function;
	}
	x->ns[function] += ns;
}

/* Processes row after row; *n: how many are in one. */
static uint32_t *by_row(const struct process_rows *p, const struct fold *f, const uint32_t *row_of,
			size_t *n)
{
	cleanup_free size_t *first = mem_array(p->n + 1, sizeof(*first));
	uint32_t *order = mem_array(f->n_processes + 1, sizeof(*order));

	for (size_t i = 0; i < f->n_processes; i++)
		if (row_of[i] != UINT32_MAX)
			first[row_of[i] + 1]++;
	for (size_t i = 0; i < p->n; i++)
		first[i + 1] += first[i];
	*n = first[p->n];
	for (uint32_t i = 0; i < f->n_processes; i++)
		if (row_of[i] != UINT32_MAX)
			order[first[row_of[i]]++] = i;
	return order;
}

static void settle(struct process_rows *p, const struct fold *f, size_t row, struct spending *x,
		   const struct hotfunctions *functions)
{
	for (size_t i = 0; i < x->n; i++) {
		const uint32_t frame = functions->frame[x->touched[i]];

		if (!is_better(f, &p->rows[row], x->ns[x->touched[i]], frame))
			continue;
		p->rows[row].frame_ns = x->ns[x->touched[i]];
		p->rows[row].frame = frame;
	}
	x->n = 0;
}

/* A fold that has a tree and leaves says it by leaf. */
static const struct pairsums *spent_of(const struct fold *f, struct pairsums *own)
{
	if (f->spent.n_rows)
		return &f->spent;
	for (size_t i = 0; i < f->n_leaves; i++)
		pairsums_add(own, f->leaves[i].process, f->leaves[i].node, f->leaves[i].ns);
	pairsums_settle(own);
	return own;
}

static void best_functions(struct process_rows *p, const struct fold *f, const uint32_t *row_of)
{
	struct hotfunctions functions;
	struct pairsums own = {0};
	const struct pairsums *all = spent_of(f, &own);
	size_t n;
	cleanup_free uint32_t *order = by_row(p, f, row_of, &n);
	struct spending x;

	hotfunctions_init(&functions, f);
	x = (struct spending){.ns = mem_array(functions.n + 1, sizeof(*x.ns)),
			      .row = mem_array(functions.n + 1, sizeof(*x.row)),
			      .touched = mem_array(functions.n + 1, sizeof(*x.touched))};
	for (size_t i = 0; i < n; i++) {
		const uint32_t row = row_of[order[i]];
		size_t n_spent;
		const struct pairsums_sum *spent = pairsums_row(all, order[i], &n_spent);

		if (strcmp(f->processes[order[i]].comm, p->rows[row].who->comm) != 0)
			n_spent = 0; /* the function is that of the command that the row names */
		for (size_t k = 0; k < n_spent; k++)
			if (spent[k].column)
				spend(&x, row, functions.of[spent[k].column], spent[k].sum);
		if (i + 1 == n || row_of[order[i + 1]] != row)
			settle(p, f, row, &x, &functions);
	}
	pairsums_release(&own);
	free(x.ns);
	free(x.row);
	free(x.touched);
	hotfunctions_release(&functions);
}

static int by_pid_and_start(const void *a, const void *b, void *ctx)
{
	const struct fold *f = ctx;
	const struct fold_process *x = &f->processes[*(const uint32_t *)a],
				  *y = &f->processes[*(const uint32_t *)b];

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static uint32_t *order_by_pid(const struct fold *f)
{
	uint32_t *order = mem_array(f->n_processes + 1, sizeof(*order));

	for (uint32_t i = 0; i < f->n_processes; i++)
		order[i] = i;
	if (f->n_processes)
		qsort_r(order, f->n_processes, sizeof(*order), by_pid_and_start,
			(void *)(uintptr_t)f);
	return order;
}

void process_rows_init(struct process_rows *p, const struct fold *f, enum process_rows_by by)
{
	cleanup_free uint32_t *row_of = NULL;
	struct err e = {0};

	*p = (struct process_rows){
		.f = f, .by_pid = by == PROCESS_ROWS_BY_PROCESS ? order_by_pid(f) : NULL};
	row_of = gather(p, f, by);
	best_functions(p, f, row_of);
	process_rows_sort(p, "cpu", &e);
}

void process_rows_release(struct process_rows *p)
{
	free(p->rows);
	free(p->by_pid);
	*p = (struct process_rows){0};
}

/* Of several hosts a container's name begins with its host's (schema/store/read/reader.h). */
static bool same_host(const struct fold_process *a, const struct fold_process *b)
{
	size_t len = strcspn(a->container, "/");

	return !store_names_hosts() ||
	       (len == strcspn(b->container, "/") && !strncmp(a->container, b->container, len));
}

const struct fold_process *process_rows_parent(const struct process_rows *p,
					       const struct fold_process *child)
{
	size_t low = 0, high = p->f->n_processes;

	/* the first that is of a later pid, or of that pid and began after the child */
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct fold_process *x = &p->f->processes[p->by_pid[middle]];

		if (x->pid < child->ppid ||
		    (x->pid == child->ppid && x->start_ns <= child->start_ns))
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- > 0) {
		const struct fold_process *x = &p->f->processes[p->by_pid[low]];

		if (x->pid != child->ppid)
			break;
		if (x != child && same_host(x, child))
			return x;
	}
	return NULL;
}

/* --- order --- */

static int by_pid(const struct process_rows_row *x, const struct process_rows_row *y)
{
	const uint32_t a = x->who ? x->who->pid : 0, b = y->who ? y->who->pid : 0;

	return (a > b) - (a < b);
}

/* Of those without samples, by what the kernel charged. */
static int by_cpu(const struct process_rows_row *x, const struct process_rows_row *y)
{
	const uint64_t a = x->used ? x->used->cpu_us : 0, b = y->used ? y->used->cpu_us : 0;

	return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : (a < b) - (a > b);
}

static int by_name(const struct process_rows_row *x, const struct process_rows_row *y)
{
	if (x->container)
		return strcmp(x->container, y->container);
	return strcmp(x->who->comm, y->who->comm);
}

static int by_start(const struct process_rows_row *x, const struct process_rows_row *y)
{
	const int64_t a = x->who ? x->who->start_ns : 0, b = y->who ? y->who->start_ns : 0;

	return (a > b) - (a < b);
}

static uint64_t restarts_of(const struct process_rows_row *r)
{
	return r->incidents ? incident_restarts(r->incidents)->n : 0;
}

static uint64_t oom_of(const struct process_rows_row *r)
{
	return r->incidents ? r->incidents->oom.n : 0;
}

/* Two readers of one counter: that which was stopped meanwhile has less of it. */
uint64_t process_rows_throttled_ns(const struct process_rows_row *r)
{
	uint64_t offcpu = r->incidents ? r->incidents->throttled_ns : 0,
		 host = r->used ? r->used->throttled_us * 1000 : 0;

	return offcpu > host ? offcpu : host;
}

static int by_restarts(const struct process_rows_row *x, const struct process_rows_row *y)
{
	return (restarts_of(x) < restarts_of(y)) - (restarts_of(x) > restarts_of(y));
}

static int by_oom(const struct process_rows_row *x, const struct process_rows_row *y)
{
	return (oom_of(x) < oom_of(y)) - (oom_of(x) > oom_of(y));
}

static int by_throttled(const struct process_rows_row *x, const struct process_rows_row *y)
{
	return (process_rows_throttled_ns(x) < process_rows_throttled_ns(y)) -
	       (process_rows_throttled_ns(x) > process_rows_throttled_ns(y));
}

static uint64_t mem_of(const struct process_rows_row *r)
{
	return r->used ? r->used->held : 0;
}

static uint64_t io_of(const struct process_rows_row *r)
{
	return r->used ? r->used->read_bytes + r->used->write_bytes : 0;
}

static uint64_t net_of(const struct process_rows_row *r)
{
	return r->used ? r->used->rx_bytes + r->used->tx_bytes : 0;
}

static int by_mem(const struct process_rows_row *x, const struct process_rows_row *y)
{
	return (mem_of(x) < mem_of(y)) - (mem_of(x) > mem_of(y));
}

static int by_io(const struct process_rows_row *x, const struct process_rows_row *y)
{
	return (io_of(x) < io_of(y)) - (io_of(x) > io_of(y));
}

static int by_net(const struct process_rows_row *x, const struct process_rows_row *y)
{
	return (net_of(x) < net_of(y)) - (net_of(x) > net_of(y));
}

static uint64_t gpu_of(const struct process_rows_row *r)
{
	return r->used ? r->used->gpu_us : 0;
}

static uint64_t gpu_mem_of(const struct process_rows_row *r)
{
	return r->used ? r->used->gpu_mem : 0;
}

/* Of two that did nothing on it the one that has more of its memory. */
static int by_gpu(const struct process_rows_row *x, const struct process_rows_row *y)
{
	if (gpu_of(x) != gpu_of(y))
		return gpu_of(x) < gpu_of(y) ? 1 : -1;
	return (gpu_mem_of(x) < gpu_mem_of(y)) - (gpu_mem_of(x) > gpu_mem_of(y));
}

static uint64_t disk_of(const struct process_rows_row *r)
{
	return r->used ? r->used->disk_us + r->used->sync_us : 0;
}

static int by_disk(const struct process_rows_row *x, const struct process_rows_row *y)
{
	return (disk_of(x) < disk_of(y)) - (disk_of(x) > disk_of(y));
}

static const struct order {
	const char *key;
	int (*cmp)(const struct process_rows_row *x, const struct process_rows_row *y);
} ORDERS[] = {{"cpu", by_cpu}, {"pid", by_pid}, {"name", by_name}, {"start", by_start}},
  CONTAINER_ORDERS[] = {{"restarts", by_restarts}, {"oom", by_oom}, {"throttled", by_throttled}},
  USED_ORDERS[] = {
	  {"mem", by_mem}, {"io", by_io}, {"net", by_net}, {"gpu", by_gpu}, {"disk", by_disk}};
#define N_USED_ORDERS ARRAY_SIZE(USED_ORDERS)

struct sorting {
	const struct order *order; /* NULL: by the amount */
	size_t amount;             /* which of `more` */
};

static int compare(const void *a, const void *b, void *ctx)
{
	const struct process_rows_row *x = a, *y = b;
	const struct sorting *s = ctx;
	int c = s->order ? s->order->cmp(x, y) :
			   (x->more[s->amount] < y->more[s->amount]) -
				   (x->more[s->amount] > y->more[s->amount]);

	if (!c)
		c = by_cpu(x, y);
	return c ? c : by_pid(x, y);
}

/* --- other than CPU time --- */

static uint64_t process_key(const struct fold_process *p)
{
	uint64_t h = hash_u64(hash_u64(HASH_SEED, p->pid), (uint64_t)p->start_ns);

	h = hash_bytes(h, p->comm, strlen(p->comm) + 1);
	h = hash_bytes(h, p->exe, strlen(p->exe) + 1);
	return hash_bytes(h, p->container_id, strlen(p->container_id));
}

/* Which row each process has. */
static void index_rows(const struct process_rows *p, struct idmap *row_of)
{
	idmap_reserve(row_of, p->n);
	for (size_t i = 0; i < p->n; i++)
		idmap_set(row_of, process_key(p->rows[i].who), i);
}

void process_rows_add(struct process_rows *p, const struct procs_more *more)
{
	struct idmap row_of = {0};
	uint64_t at;

	p->more = more;
	index_rows(p, &row_of);
	for (size_t k = 0; k < more->n; k++)
		for (size_t i = 0; i < more->fold[k]->n_processes; i++) {
			const struct fold_process *who = &more->fold[k]->processes[i];

			if (who->ns && idmap_get(&row_of, process_key(who), &at))
				p->rows[at].more[k] += who->ns;
		}
	idmap_release(&row_of);
}

/* Rows of those who have some of it, and used no CPU. */
static void bring(struct process_rows *p, size_t k)
{
	const struct fold *f = p->more->fold[k];
	struct idmap row_of = {0};
	size_t cap = p->n;
	uint64_t at;

	index_rows(p, &row_of);
	for (size_t i = 0; i < f->n_processes; i++) {
		if (!f->processes[i].ns || idmap_get(&row_of, process_key(&f->processes[i]), &at))
			continue;
		mem_grow(p->rows, p->n, cap);
		idmap_set(&row_of, process_key(&f->processes[i]), p->n);
		p->rows[p->n++] =
			(struct process_rows_row){.who = &f->processes[i], .n_processes = 1};
	}
	idmap_release(&row_of);
	for (size_t other = 0; other < p->more->n; other++)
		for (size_t i = 0; i < p->n; i++)
			p->rows[i].more[other] = 0;
	process_rows_add(p, p->more);
}

/* --- what happened to containers --- */

void process_rows_add_incidents(struct process_rows *p, const struct incidents *x)
{
	struct idmap row_of = {0};
	size_t cap = p->n;
	uint64_t at;

	for (size_t i = 0; i < p->n; i++)
		idmap_set(&row_of, hash_text(p->rows[i].container), i);
	for (size_t i = 0; i < x->n; i++) {
		const struct incident_container *c = &x->rows[i];

		if (idmap_get(&row_of, hash_text(c->name), &at)) {
			p->rows[at].incidents = c;
		} else if (incident_restarts(c)->n || c->oom.n || c->made_anew.n) {
			mem_grow(p->rows, p->n, cap);
			p->rows[p->n++] =
				(struct process_rows_row){.container = c->name, .incidents = c};
		}
	}
	idmap_release(&row_of);
}

/* --- what they used --- */

static void add_used_containers(struct process_rows *p, const struct process_usage *used)
{
	struct idmap row_of = {0};
	size_t cap = p->n;
	uint64_t at;

	for (size_t i = 0; i < p->n; i++)
		idmap_set(&row_of, hash_text(p->rows[i].container), i);
	for (size_t i = 0; i < used->n; i++) {
		const struct process_usage_row *u = &used->rows[i];

		if (!idmap_get(&row_of, hash_text(u->name), &at) &&
		    !idmap_get(&row_of, hash_text(u->id), &at)) {
			at = p->n;
			mem_grow(p->rows, p->n, cap);
			p->rows[p->n++] = (struct process_rows_row){.container = u->name};
		}
		p->rows[at].used = u;
	}
	idmap_release(&row_of);
}

/* `bring`: those that have no row get one. */
static void add_used_processes(struct process_rows *p, const struct process_usage *used,
			       bool bring_them)
{
	struct idmap row_of = {0};
	size_t cap = p->n;
	uint64_t at;

	index_rows(p, &row_of);
	for (size_t i = 0; i < used->n; i++) {
		const struct process_usage_row *u = &used->rows[i];

		if (!idmap_get(&row_of, process_key(&u->who), &at)) {
			if (!bring_them)
				continue;
			at = p->n;
			mem_grow(p->rows, p->n, cap);
			p->rows[p->n++] =
				(struct process_rows_row){.who = &u->who, .n_processes = 1};
		}
		p->rows[at].used = u;
	}
	idmap_release(&row_of);
}

void process_rows_add_used(struct process_rows *p, const struct process_usage *used)
{
	p->used = used;
	if (used->of_containers)
		add_used_containers(p, used);
	else
		add_used_processes(p, used, false);
}

static int sort_by_kind(struct process_rows *p, const char *key, struct err *e)
{
	const struct store_kind_info *kind = store_kind_named(key);
	size_t k = p->more ? procs_more_named(p->more, key) : 0;

	if (!kind || !procs_more_takes(kind)) {
		struct strbuf names cleanup_strbuf = STRBUF_INIT;

		procs_more_names(&names);
		return err_set(
			e, -EINVAL, EXIT_USAGE,
			"--sort %.40s: there is cpu, pid, name, start, mem, io, net and gpu, and of what was recorded %s",
			key, strbuf_str(&names));
	}
	if (!p->more || k == p->more->n) {
		err_set(e, -ENODATA, EXIT_NOTHING, "--sort %s: no %s was recorded in that range",
			kind->name, kind->what);
		err_fix(e, "sonde status    says what was recorded, and when");
		return -ENODATA;
	}
	bring(p, k);
	if (p->n)
		qsort_r(p->rows, p->n, sizeof(*p->rows), compare, &(struct sorting){.amount = k});
	return 0;
}

static bool sort_by(struct process_rows *p, const struct order *orders, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(orders[i].key, key)) {
			if (p->n)
				qsort_r(p->rows, p->n, sizeof(*p->rows), compare,
					&(struct sorting){.order = &orders[i]});
			return true;
		}
	return false;
}

/* Which family records it. Of processes net does what they received and sent; of containers where
 * host did not. */
static const char *family_of_used(const struct process_rows *p, const char *key, bool containers)
{
	if (!strcmp(key, "gpu") || !strcmp(key, "disk"))
		return key;
	return !strcmp(key, "net") && !(containers && p->used && p->used->known) ? "net" : "host";
}

static bool family_is_known(const struct process_usage *u, const char *family)
{
	const struct {
		const char *family;
		bool known;
	} all[] = {{"net", u->net_known}, {"gpu", u->gpu_known}, {"disk", u->disk_known}};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(family, all[i].family))
			return all[i].known;
	return u->known;
}

static int sort_by_used(struct process_rows *p, const char *key, bool containers, struct err *e)
{
	const char *family = family_of_used(p, key, containers);

	if (!p->used || !family_is_known(p->used, family)) {
		err_set(e, -ENODATA, EXIT_NOTHING,
			"--sort %s: what %s used was not recorded in that range", key,
			containers ? "containers" : "processes");
		err_fix(e, "sudo sonde record --families cpu,%s -d 30s", family);
		return -ENODATA;
	}
	if (!containers)
		add_used_processes(p, p->used, true);
	sort_by(p, USED_ORDERS, N_USED_ORDERS, key);
	return 0;
}

static bool is_used_key(const char *key)
{
	for (size_t i = 0; i < N_USED_ORDERS; i++)
		if (!strcmp(key, USED_ORDERS[i].key))
			return true;
	return false;
}

int process_rows_sort(struct process_rows *p, const char *key, struct err *e)
{
	const bool containers = p->n && p->rows[0].container;

	if (is_used_key(key))
		return sort_by_used(p, key, containers, e);
	/* no samples: who used is all there is */
	if (p->used && p->used->known && !p->used->of_containers && !p->f->n_processes)
		add_used_processes(p, p->used, true);
	if (sort_by(p, ORDERS, ARRAY_SIZE(ORDERS), key) ||
	    (containers && sort_by(p, CONTAINER_ORDERS, ARRAY_SIZE(CONTAINER_ORDERS), key)))
		return 0;
	if (containers)
		return err_set(
			e, -EINVAL, EXIT_USAGE,
			"--sort %.40s: there is cpu, pid, name, start, mem, io, net, gpu, restarts, oom and throttled",
			key);
	return sort_by_kind(p, key, e);
}
