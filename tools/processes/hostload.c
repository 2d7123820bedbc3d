/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/processes/hostload.h"

#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "tools/select/askrows.h"

static const char HOST[] =
	"SELECT sum(user_us + system_us + coalesce(nice_us, 0) + coalesce(irq_us, 0) + coalesce(softirq_us, 0)) / 1e6 / sum(seconds), max(cpus), max(ts), load1_m / 1000.0,"
	" sum(psi_cpu_us) / 1e6 / sum(seconds), sum(psi_mem_us) / 1e6 / sum(seconds), sum(psi_io_us) / 1e6 / sum(seconds),"
	" mem_total, mem_total - mem_available, sum(coalesce(swap_in, 0) + coalesce(swap_out, 0)) / sum(seconds) FROM host_stats WHERE ts BETWEEN ?1 AND ?2";
static const char DISKS[] =
	"SELECT disk, sum(busy_us) / 1e6 / max(1, ?2 - ?1 + 1) FROM disk_stats WHERE ts BETWEEN ?1 AND ?2 GROUP BY 1";

struct reading {
	struct hostload *out;
	const char *disk;
	int64_t at;
};

static double number(sqlite3_stmt *st, int column)
{
	return sqlite3_column_type(st, column) == SQLITE_NULL ? -1 :
								sqlite3_column_double(st, column);
}

/* Of several segments the newest one that has rows. */
static void take_host(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct hostload *h = r->out;
	const int64_t at = sqlite3_column_int64(st, 2);

	if (sqlite3_column_type(st, 0) == SQLITE_NULL || at < r->at)
		return;
	r->at = at;
	h->cores = number(st, 0);
	h->cpus = number(st, 1);
	h->load = number(st, 3);
	h->waited_cpu = number(st, 4);
	h->waited_mem = number(st, 5);
	h->waited_io = number(st, 6);
	h->mem_total = number(st, 7);
	h->mem_used = number(st, 8);
	h->swapped = number(st, 9);
}

static void take_disk(void *ctx, sqlite3_stmt *st)
{
	const struct reading *r = ctx;
	const char *name = askrows_text(st, 0);
	const double busy = number(st, 1);

	if (r->disk ? strcmp(r->disk, name) != 0 : busy <= r->out->disk_busy)
		return;
	r->out->disk_busy = busy;
	snprintf(r->out->disk, sizeof(r->out->disk), "%s", name);
}

int hostload_read(const struct selection *sel, const char *disk, struct hostload *out,
		  struct err *e)
{
	struct reading r = {.out = out, .disk = disk};
	const struct askrows_part parts[] = {{HOST, take_host, &r}, {DISKS, take_disk, &r}};

	*out = (struct hostload){.cores = -1,
				 .cpus = -1,
				 .load = -1,
				 .waited_cpu = -1,
				 .waited_mem = -1,
				 .waited_io = -1,
				 .mem_used = -1,
				 .mem_total = -1,
				 .swapped = -1,
				 .disk_busy = -1};
	return askrows_each(sel, NULL, parts, ARRAY_SIZE(parts), e);
}
