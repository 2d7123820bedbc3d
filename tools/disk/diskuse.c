/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/disk/diskuse.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/net/netflows.h"
#include "tools/select/askrows.h"

static const char RECORDED[] =
	"SELECT min(" ASKROWS_COUNTED_FROM "), max(" ASKROWS_COUNTED_TO
	") FROM run WHERE family = 'disk' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2"
	" HAVING count(*)";
static const char DEVICES[] =
	"SELECT disk, under, sum(coalesce(busy_us, 0)), max(ts), coalesce(in_flight, 0) FROM block_devices WHERE ts BETWEEN ?1 AND ?2"
	" GROUP BY disk";
#define USED_COLUMNS 8 /* before the histogram */
#define USED_HEAD                                                                                          \
	"SELECT coalesce(process_id, 0), disk, op, sum(requests), sum(bytes), sum(errors), sum(queue_us)," \
	" sum(device_us)"
#define USED_TAIL " FROM block_stats WHERE ts BETWEEN ?1 AND ?2 GROUP BY process_id, disk, op"

static const char ORDER[] =
	"SELECT coalesce(process_id, 0), disk, sum(sequential) FROM block_order WHERE ts BETWEEN ?1 AND ?2 AND op IN ('read', 'write')"
	" GROUP BY process_id, disk";

bool diskuse_by(const char *word, enum diskuse_by *by)
{
	static const char *const words[] = {"command", "process", "container"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i], word)) {
			*by = (enum diskuse_by)i;
			return true;
		}
	return false;
}

uint64_t diskuse_requests(const struct diskuse_sums *s)
{
	return s->reads + s->writes + s->others;
}

struct reading {
	const struct selection *sel;
	const struct store_dict *dict; /* of the segment */
	enum diskuse_by by;
	struct diskuse *out;
	size_t cap_disks, cap_who;
	struct idmap who_of;
	int64_t from_ns, to_ns;
};

static void take_run(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	int64_t from = sqlite3_column_int64(st, 0), to = sqlite3_column_int64(st, 1);

	r->from_ns = !r->out->known || from < r->from_ns ? from : r->from_ns;
	r->to_ns = !r->out->known || to > r->to_ns ? to : r->to_ns;
	r->out->known = true;
}

/* ---- disks ---- */

static struct diskuse_disk *disk_of(struct reading *r, const char *name)
{
	struct diskuse *u = r->out;

	for (size_t i = 0; i < u->n_disks; i++)
		if (!strcmp(u->disks[i].name, name))
			return &u->disks[i];
	mem_grow(u->disks, u->n_disks, r->cap_disks);
	u->disks[u->n_disks] =
		(struct diskuse_disk){.name = mem_strdup(name), .under = mem_strdup("")};
	return &u->disks[u->n_disks++];
}

static void take_device(void *ctx, sqlite3_stmt *st)
{
	struct diskuse_disk *d = disk_of(ctx, askrows_text(st, 0));
	int64_t at = sqlite3_column_int64(st, 3);

	d->busy_us += (uint64_t)sqlite3_column_int64(st, 2);
	if (at < d->at)
		return;
	d->at = at;
	d->in_flight = sqlite3_column_int64(st, 4);
	free(d->under);
	d->under = mem_strdup(askrows_text(st, 1));
}

/* ---- requests ---- */

static void sums_take(struct diskuse_sums *s, sqlite3_stmt *st)
{
	const char *op = askrows_text(st, 2);
	uint64_t n = (uint64_t)sqlite3_column_int64(st, 3),
		 bytes = (uint64_t)sqlite3_column_int64(st, 4);

	if (!strcmp(op, "read")) {
		s->reads += n;
		s->read_bytes += bytes;
		disktimes_take(&s->read_times, st, USED_COLUMNS);
	} else if (!strcmp(op, "write")) {
		s->writes += n;
		s->write_bytes += bytes;
		disktimes_take(&s->write_times, st, USED_COLUMNS);
	} else {
		s->others += n;
	}
	s->errors += (uint64_t)sqlite3_column_int64(st, 5);
	s->queue_us += (uint64_t)sqlite3_column_int64(st, 6);
	s->device_us += (uint64_t)sqlite3_column_int64(st, 7);
}

static uint64_t who_hash(const struct reading *r, const char *host, const char *container,
			 const char *comm, int64_t pid, const char *disk)
{
	uint64_t h = hash_str(hash_str(hash_str(HASH_SEED, host), container), disk);

	if (r->by != DISKUSE_BY_CONTAINER || !*container)
		h = hash_str(h, comm);
	return r->by == DISKUSE_BY_PROCESS ? hash_u64(h, (uint64_t)pid) : h;
}

static struct diskuse_who *who_of(struct reading *r, const struct store_process_row *p,
				  const char *disk)
{
	const char *container = p ? netflows_container(p) : "", *comm = p ? p->comm : "";
	int64_t pid = p ? (int64_t)p->pid : 0;
	struct diskuse *u = r->out;
	struct diskuse_who *w;
	char host[NETFLOWS_HOST] = "";
	uint64_t *at;
	bool fresh;

	if (p)
		netflows_host(p, host);
	at = idmap_ref(&r->who_of, who_hash(r, host, container, comm, pid, disk), &fresh);
	if (fresh) {
		mem_grow(u->who, u->n_who, r->cap_who);
		*at = u->n_who;
		u->who[u->n_who++] = (struct diskuse_who){.host = mem_strdup(host),
							  .container = mem_strdup(container),
							  .comm = mem_strdup(comm),
							  .disk = mem_strdup(disk),
							  .pid = pid};
	}
	w = &u->who[*at];
	if (w->pid != pid)
		w->many = true;
	if (w->many)
		w->pid = 0;
	if (strcmp(w->comm, comm))
		*w->comm = 0;
	return w;
}

static void take_used(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	const char *disk = askrows_text(st, 1);
	bool narrow = select_is_narrow(r->sel), wanted = p && select_wants_process(r->sel, p);

	if (wanted || !narrow)
		sums_take(&disk_of(r, disk)->sums, st);
	if (wanted || (!p && !narrow))
		sums_take(&who_of(r, p, disk)->sums, st);
}

static void take_order(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	const char *disk = askrows_text(st, 1);
	uint64_t n = (uint64_t)sqlite3_column_int64(st, 2);
	bool narrow = select_is_narrow(r->sel), wanted = p && select_wants_process(r->sel, p);

	r->out->ordered = true;
	if (wanted || !narrow)
		disk_of(r, disk)->sums.sequential += n;
	if (wanted || (!p && !narrow))
		who_of(r, p, disk)->sums.sequential += n;
}

/* ---- order ---- */

static uint64_t sums_bytes(const struct diskuse_sums *s)
{
	return s->read_bytes + s->write_bytes;
}

static int disk_order(const void *a, const void *b)
{
	const struct diskuse_disk *x = a, *y = b;
	uint64_t m = sums_bytes(&x->sums), n = sums_bytes(&y->sums);

	if (!*x->under != !*y->under)
		return *x->under ? 1 : -1;
	return m != n ? m < n ? 1 : -1 : strcmp(x->name, y->name);
}

static int who_order(const void *a, const void *b)
{
	const struct diskuse_who *x = a, *y = b;
	uint64_t m = x->sums.queue_us + x->sums.device_us, n = y->sums.queue_us + y->sums.device_us;

	return m != n ? m < n ? 1 : -1 : strcmp(x->comm, y->comm);
}

/* Disks that nothing was asked of, and that others do not lie on, say nothing where a filter
 * selects. */
static void disks_keep(struct diskuse *u, bool narrow)
{
	size_t n = 0;

	for (size_t i = 0; i < u->n_disks; i++) {
		if (diskuse_requests(&u->disks[i].sums) || u->disks[i].sums.errors ||
		    (!narrow && u->disks[i].busy_us)) {
			struct diskuse_disk x = u->disks[n];

			u->disks[n++] = u->disks[i];
			u->disks[i] = x;
		}
	}
	for (size_t i = n; i < u->n_disks; i++) {
		free(u->disks[i].name);
		free(u->disks[i].under);
	}
	u->n_disks = n;
}

int diskuse_read(const struct selection *sel, enum diskuse_by by, struct diskuse *out,
		 struct err *e)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	struct reading r = {.sel = sel, .by = by, .out = out};
	int rc;

	*out = (struct diskuse){0};
	strbuf_addstr(&sql, USED_HEAD);
	disktimes_columns(&sql);
	strbuf_addstr(&sql, USED_TAIL);
	{
		const struct askrows_part parts[] = {
			{RECORDED, take_run, &r, {{NULL}, NULL}},
			{DEVICES, take_device, &r, {{NULL}, NULL}},
			{strbuf_str(&sql), take_used, &r, {{NULL}, NULL}},
			{ORDER, take_order, &r, {{NULL}, NULL}},
		};

		rc = askrows_each(sel, &r.dict, parts, ARRAY_SIZE(parts), e);
	}
	idmap_release(&r.who_of);
	if (rc)
		return rc;
	out->seconds = r.to_ns > r.from_ns ? (double)(r.to_ns - r.from_ns) / 1e9 : 0;
	disks_keep(out, select_is_narrow(sel));
	if (out->n_disks)
		qsort(out->disks, out->n_disks, sizeof(*out->disks), disk_order);
	if (out->n_who)
		qsort(out->who, out->n_who, sizeof(*out->who), who_order);
	return 0;
}

void diskuse_release(struct diskuse *u)
{
	for (size_t i = 0; i < u->n_disks; i++) {
		free(u->disks[i].name);
		free(u->disks[i].under);
	}
	for (size_t i = 0; i < u->n_who; i++) {
		free(u->who[i].host);
		free(u->who[i].container);
		free(u->who[i].comm);
		free(u->who[i].disk);
	}
	free(u->disks);
	free(u->who);
	*u = (struct diskuse){0};
}
