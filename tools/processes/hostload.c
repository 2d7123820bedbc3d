/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/processes/hostload.h"

#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "tools/select/askrows.h"

/* Columns that are not summed are those of the newest row: there is one max(). */
static const char HOST[] =
	"SELECT sum(seconds), sum(user_us + system_us + coalesce(nice_us, 0) + coalesce(irq_us, 0) + coalesce(softirq_us, 0)) / 1e6,"
	" sum(psi_cpu_us) / 1e6, sum(psi_mem_us) / 1e6, sum(psi_io_us) / 1e6, sum(coalesce(swap_in, 0) + coalesce(swap_out, 0)),"
	" max(ts), cpus, load1_m / 1000.0, mem_total, mem_total - mem_available FROM host_stats WHERE ts BETWEEN ?1 AND ?2";
static const char DISKS[] =
	"SELECT disk, sum(busy_us) / 1e6 FROM disk_stats WHERE ts BETWEEN ?1 AND ?2 GROUP BY 1";

#define DISKS_MOST 64

struct reading {
	struct hostload *out;
	double seconds; /* that were recorded, of all segments */
	int64_t newest; /* second */
	struct {
		char name[sizeof(((struct hostload *)NULL)->disk)];
		double busy_s;
	} disks[DISKS_MOST];
	size_t n_disks;
};

/* NULL adds nothing, and a sum of nothing stays -1. */
static void add(double *sum, sqlite3_stmt *st, int column)
{
	if (sqlite3_column_type(st, column) != SQLITE_NULL)
		*sum = (*sum < 0 ? 0 : *sum) + sqlite3_column_double(st, column);
}

static double number(sqlite3_stmt *st, int column)
{
	return sqlite3_column_type(st, column) == SQLITE_NULL ? -1 :
								sqlite3_column_double(st, column);
}

static void take_host(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	struct hostload *h = r->out;

	if (sqlite3_column_type(st, 0) == SQLITE_NULL)
		return;
	r->seconds += sqlite3_column_double(st, 0);
	add(&h->cores, st, 1);
	add(&h->waited_cpu, st, 2);
	add(&h->waited_mem, st, 3);
	add(&h->waited_io, st, 4);
	add(&h->swapped, st, 5);
	if (sqlite3_column_int64(st, 6) < r->newest)
		return;
	r->newest = sqlite3_column_int64(st, 6);
	h->cpus = number(st, 7);
	h->load = number(st, 8);
	h->mem_total = number(st, 9);
	h->mem_used = number(st, 10);
}

static void take_disk(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const char *name = askrows_text(st, 0);
	size_t i = 0;

	while (i < r->n_disks && strcmp(r->disks[i].name, name) != 0)
		i++;
	if (i == DISKS_MOST)
		return;
	if (i == r->n_disks)
		snprintf(r->disks[r->n_disks++].name, sizeof(r->disks[i].name), "%s", name);
	r->disks[i].busy_s += sqlite3_column_double(st, 1);
}

static void disk_choose(const struct reading *r, const char *disk, struct hostload *out)
{
	for (size_t i = 0; i < r->n_disks; i++) {
		if (disk ? strcmp(disk, r->disks[i].name) != 0 :
			   r->disks[i].busy_s <= out->disk_busy)
			continue;
		out->disk_busy = r->disks[i].busy_s;
		snprintf(out->disk, sizeof(out->disk), "%s", r->disks[i].name);
	}
}

int hostload_read(const struct selection *sel, const char *disk, struct hostload *out,
		  struct err *e)
{
	struct reading r = {.out = out};
	const struct askrows_part parts[] = {{HOST, take_host, &r}, {DISKS, take_disk, &r}};
	double *const shares[] = {&out->cores,     &out->waited_cpu, &out->waited_mem,
				  &out->waited_io, &out->swapped,    &out->disk_busy};
	/* the kernel adds a wait to its account some time later, of a short range so perhaps more
	 * than the range; cores, cpus and bytes swapped are no shares of it */
	double *const at_most_all[] = {&out->waited_cpu, &out->waited_mem, &out->waited_io,
				       &out->disk_busy};
	int rc;

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
	rc = askrows_each(sel, NULL, parts, ARRAY_SIZE(parts), e);
	if (rc || r.seconds <= 0)
		return rc;
	disk_choose(&r, disk, out);
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
		if (*shares[i] > 0)
			*shares[i] /= r.seconds;
	for (size_t i = 0; i < ARRAY_SIZE(at_most_all); i++)
		if (*at_most_all[i] > 1)
			*at_most_all[i] = 1;
	return 0;
}
