/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/groupfiles.h"

#include <fcntl.h>

#include "loaders/host/parse.h"
#include "loaders/host/textfile.h"
#include "schema/base/strbuf.h"
#include "schema/facts/host.h"
#include "schema/store/write/writer.h"

#define CHARGE_MAX (256 << 10) /* bytes: the kernel charges 64 pages at once where it can */

bool groupfiles_read(struct cgroups *c, enum cgroups_hierarchy h, const char *path,
		     const char *name)
{
	if (!c->root[h])
		return false;
	strbuf_reset(&c->path);
	strbuf_addstr(&c->path, c->root[h]);
	strbuf_addstr(&c->path, path);
	strbuf_addf(&c->path, "/%s", name);
	return !textfile_read(AT_FDCWD, strbuf_str(&c->path), &c->text);
}

static bool number_read(struct cgroups *c, enum cgroups_hierarchy h, const char *path,
			const char *name, uint64_t *out)
{
	return groupfiles_read(c, h, path, name) &&
	       parse_number(strbuf_str(&c->text), c->text.len, out);
}

void groupfiles_quota(struct cgroups *c, const char *path, uint64_t quota, struct fact_row *row)
{
	uint64_t period;

	if (number_read(c, CGROUPS_CPU, path, "cpu.cfs_period_us", &period) && period &&
	    quota < UINT64_MAX / 1000)
		fact_put(row, CGROUP_CPU_LIMIT, quota * 1000 / period);
}

/* The sum is exact, its parts are counted in ticks. They share it as the kernel has it in v2: in
 * proportion, and neither goes backwards. */
void groupfiles_cpu(struct cgroups *c, const char *path, struct groupfiles_cpu *last,
		    struct fact_row *row)
{
	uint64_t usage, user, system, part;

	if (!number_read(c, CGROUPS_CPUACCT, path, "cpuacct.usage", &usage) ||
	    !number_read(c, CGROUPS_CPUACCT, path, "cpuacct.usage_user", &user) ||
	    !number_read(c, CGROUPS_CPUACCT, path, "cpuacct.usage_sys", &system))
		return;
	part = user + system ? (uint64_t)((double)usage *
					  ((double)user / ((double)user + (double)system))) :
			       usage;
	part = part > last->user ? part : last->user;
	if (usage < part || usage - part < last->system)
		part = usage > last->system ? usage - last->system : 0;
	last->user = part;
	last->system = usage - part;
	fact_put(row, CGROUP_USER, last->user / 1000);
	fact_put(row, CGROUP_SYSTEM, last->system / 1000);
}

/* v1 limits memory and swap together. */
void groupfiles_swap_limit(struct cgroups *c, const char *path, struct fact_row *row)
{
	uint64_t both;

	if (fact_has(row, CGROUP_MEM_LIMIT) &&
	    groupfiles_read(c, CGROUPS_MEMORY, path, "memory.memsw.limit_in_bytes") &&
	    parse_limit(strbuf_str(&c->text), c->text.len, &both) &&
	    both >= (uint64_t)row->v[CGROUP_MEM_LIMIT].number)
		fact_put(row, CGROUP_SWAP_LIMIT, both - (uint64_t)row->v[CGROUP_MEM_LIMIT].number);
}

/* Linux 6.18 counts at the limit of memory alone: the count of the other stays 0, however often it
 * is reached. */
static bool is_uncounted(struct cgroups *c, const char *path, const struct fact_row *row)
{
	uint64_t both, most;

	return number_read(c, CGROUPS_MEMORY, path, "memory.memsw.limit_in_bytes", &both) &&
	       fact_has(row, CGROUP_MEM_LIMIT) &&
	       both <= (uint64_t)row->v[CGROUP_MEM_LIMIT].number &&
	       number_read(c, CGROUPS_MEMORY, path, "memory.memsw.max_usage_in_bytes", &most) &&
	       most + CHARGE_MAX > both;
}

/* The kernel charges memory with swap first, and counts a charge that fails at the one limit that
 * it met: no charge is in both. */
void groupfiles_swap_max(struct cgroups *c, const char *path, struct fact_row *row)
{
	uint64_t n;

	if (!fact_has(row, CGROUP_MEM_MAX) ||
	    !number_read(c, CGROUPS_MEMORY, path, "memory.memsw.failcnt", &n))
		return;
	fact_put(row, CGROUP_MEM_MAX, (uint64_t)row->v[CGROUP_MEM_MAX].number + n);
	if (!n && is_uncounted(c, path, row))
		row->set &= ~(1ull << CGROUP_MEM_MAX);
}
