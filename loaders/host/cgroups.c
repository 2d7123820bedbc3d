// SPDX-License-Identifier: Apache-2.0
#include "loaders/host/cgroups_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/host/events/container_events.h"
#include "loaders/host/parse.h"
#include "loaders/host/textfile.h"
#include "loaders/lib/bpf/run/events.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/facts/host.h"

#define GROUPS_MAX  4096
#define DEPTH_MAX   24
#define DEVICES_MAX 4096

/* ---- where ---- */

static void root_set(struct cgroups *c, enum cgroups_hierarchy h, const struct parse_mount *m)
{
	char *path;

	if (c->root[h])
		return;
	path = mem_alloc(m->point_len + 1);
	proc_unescape(m->point, m->point_len, path);
	c->root[h] = path;
}

static void roots_find(struct cgroups *c)
{
	static const char *const controller[CGROUPS_N] = {NULL,     "cpu",   "cpuacct",
							  "memory", "blkio", "pids"};
	struct parse_mount m;
	size_t pos = 0;

	if (textfile_read(AT_FDCWD, "/proc/self/mountinfo", &c->text))
		return;
	while (parse_next_mount(strbuf_str(&c->text), c->text.len, &pos, &m)) {
		if (m.root_len != 1) /* a part of the tree, bound somewhere */
			continue;
		if (m.type_len == 7 && !memcmp(m.type, "cgroup2", 7))
			root_set(c, CGROUPS_V2, &m);
		if (m.type_len != 6 || memcmp(m.type, "cgroup", 6))
			continue;
		for (int h = CGROUPS_CPU; h < CGROUPS_N; h++)
			if (parse_has_option(m.super, m.super_len, controller[h]))
				root_set(c, (enum cgroups_hierarchy)h, &m);
	}
}

static uint64_t netns_of(const char *pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

void cgroups_init(struct cgroups *c, int64_t idle_ns)
{
	*c = (struct cgroups){
		.meter = {.fact = &CGROUP_FACT, .idle_ns = idle_ns},
		.disk = {.fact = &CGROUP_DISK_FACT},
		.nic = {.fact = &NIC_FACT, .idle_ns = idle_ns},
		.round = 1,
	};
	roots_find(c);
	c->host_netns = netns_of("1");
	if (!c->host_netns)
		c->host_netns = netns_of("self");
}

bool cgroups_has_memory(struct cgroups *c)
{
	strbuf_reset(&c->path);
	if (c->root[CGROUPS_V2])
		strbuf_addf(&c->path, "%s/cgroup.controllers", c->root[CGROUPS_V2]);
	return c->root[CGROUPS_MEMORY] ||
	       (c->path.len && !textfile_read(AT_FDCWD, strbuf_str(&c->path), &c->text) &&
		strstr(strbuf_str(&c->text), "memory"));
}

static void group_drop(struct cgroups *c, struct cgroups_group *g)
{
	HASH_DEL(c->groups, g);
	free(g);
}

void cgroups_release(struct cgroups *c)
{
	struct cgroups_group *g, *next;
	struct cgroups_device *d, *next_device;

	cgroups_orphans_drop(c);
	HASH_ITER (hh, c->groups, g, next)
		group_drop(c, g);
	HASH_ITER (hh, c->devices, d, next_device) {
		HASH_DEL(c->devices, d);
		free(d);
	}
	meter_release(&c->meter);
	meter_release(&c->disk);
	meter_release(&c->nic);
	for (int h = 0; h < CGROUPS_N; h++)
		free(c->root[h]);
	strbuf_release(&c->path);
	strbuf_release(&c->text);
	strbuf_release(&c->key);
}

/* ---- the tree ---- */

static void group_met(struct cgroups *c, const char *path, enum cgroups_hierarchy in,
		      uint64_t inode)
{
	size_t len = strlen(path);
	struct cgroups_group *g;

	HASH_FIND(hh, c->groups, path, len, g);
	if (g && g->round != c->round && g->in == in && g->inode != inode) { /* made anew */
		cgroups_close(c, g);
		group_drop(c, g);
		g = NULL;
	}
	if (!g && HASH_COUNT(c->groups) < GROUPS_MAX) {
		g = mem_alloc(sizeof(*g) + len + 1);
		memcpy(g->path, path, len + 1);
		g->serial = ++c->serial;
		g->young = g->born = c->meter.begun;
		g->is_container = container_parse(path, len, &g->ref) && g->ref.end == len;
		g->quiet = (*g->ref.runtime && !g->is_container);
		HASH_ADD(hh, c->groups, path, len, g);
	}
	if (!g || g->round == c->round)
		return;
	g->round = c->round;
	g->in = in;
	g->inode = inode;
}

/* Directories below `c->path`, whose first `root` bytes are the mount point. A directory without
 * subdirectories has two links. */
static void tree_walk(struct cgroups *c, enum cgroups_hierarchy in, size_t root, int depth)
{
	cleanup_dir DIR *dir = NULL;
	size_t len = c->path.len;
	struct dirent *de;
	struct stat st;

	if (depth > DEPTH_MAX || stat(strbuf_str(&c->path), &st))
		return;
	if (len > root)
		group_met(c, c->path.buf + root, in, st.st_ino);
	if (st.st_nlink == 2)
		return;
	dir = opendir(strbuf_str(&c->path));
	c->incomplete |= !dir && errno != ENOENT;
	while (dir && (de = readdir(dir))) {
		if (de->d_type != DT_DIR || !strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		strbuf_addf(&c->path, "/%s", de->d_name);
		tree_walk(c, in, root, depth + 1);
		c->path.len = len;
		c->path.buf[len] = '\0';
	}
}

void cgroups_look(struct cgroups *c, struct family_host *h, const struct meter_round *r)
{
	static const enum cgroups_hierarchy walked[] = {CGROUPS_MEMORY, CGROUPS_CPU, CGROUPS_PIDS,
							CGROUPS_V2};
	struct cgroups_group *g, *next;

	c->h = h;
	c->at = r;
	c->round++;
	c->incomplete = false;
	for (size_t i = 0; i < ARRAY_SIZE(walked); i++) {
		if (!c->root[walked[i]])
			continue;
		strbuf_reset(&c->path);
		strbuf_addstr(&c->path, c->root[walked[i]]);
		tree_walk(c, walked[i], c->path.len, 0);
	}
	HASH_ITER (hh, c->groups, g, next) {
		g->p = NULL;
		if (g->round == c->round || c->incomplete)
			continue;
		cgroups_close(c, g);
		group_drop(c, g);
	}
	cgroups_orphans_take(c);
}

void cgroups_meet(struct cgroups *c, struct hostmaps_process *p)
{
	struct container_ref ref;
	struct cgroups_group *g;

	if (!*p->cgroup || !container_parse(p->cgroup, strlen(p->cgroup), &ref) || !ref.end)
		return;
	HASH_FIND(hh, c->groups, p->cgroup, ref.end, g);
	/* the first one: the one that it was made for */
	if (g && (!g->p || p->start_ns < g->p->start_ns))
		g->p = p;
}

/* ---- one of them ---- */

enum form { KEYS, NUMBER, LIMIT, PRESSURE, CPU_MAX, IO_STAT, BLKIO_BYTES, BLKIO_COUNTS, QUOTA };

struct group_file {
	enum cgroups_hierarchy h;
	const char *name;
	enum form form;
	const struct parse_key *keys; /* KEYS: so many */
	int n;
	int column, full; /* all others */
	uint32_t div;     /* NUMBER */
};

static const struct parse_key CPU_STAT[] = {
	{"user_usec", CGROUP_USER, 0, 0},
	{"system_usec", CGROUP_SYSTEM, 0, 0},
	{"nr_periods", CGROUP_PERIODS, 0, 0},
	{"nr_throttled", CGROUP_THROTTLED, 0, 0},
	{"throttled_usec", CGROUP_THROTTLED_US, 0, 0},
};
static const struct parse_key CPU_STAT_V1[] = {
	{"nr_periods", CGROUP_PERIODS, 0, 0},
	{"nr_throttled", CGROUP_THROTTLED, 0, 0},
	{"throttled_time", CGROUP_THROTTLED_US, 0, 1000},
};
/* `working` begins as the files not used lately. */
static const struct parse_key MEMORY_STAT[] = {
	{"anon", CGROUP_ANON, 0, 0},         {"file", CGROUP_FILE, 0, 0},
	{"kernel", CGROUP_KERNEL, 0, 0},     {"inactive_file", CGROUP_WORKING, 0, 0},
	{"pgmajfault", CGROUP_MAJFLT, 0, 0},
};
static const struct parse_key MEMORY_STAT_V1[] = {
	{"total_rss", CGROUP_ANON, 0, 0},          {"total_cache", CGROUP_FILE, 0, 0},
	{"total_swap", CGROUP_SWAP, 0, 0},         {"total_inactive_file", CGROUP_WORKING, 0, 0},
	{"total_pgmajfault", CGROUP_MAJFLT, 0, 0},
};
static const struct parse_key MEMORY_EVENTS[] = {
	{"high", CGROUP_MEM_HIGH, 0, 0},
	{"max", CGROUP_MEM_MAX, 0, 0},
	{"oom_kill", CGROUP_OOM_KILLS, 0, 0},
};
static const struct parse_key OOM_CONTROL[] = {{"oom_kill", CGROUP_OOM_KILLS, 0, 0}};
#define KEYS_OF(list) list, ARRAY_SIZE(list)

/* What v1 says comes behind: where a controller is in v1, v2 has no file of it, but for cpu.stat
 * and the pressures. */
static const struct group_file FILES[] = {
	{CGROUPS_V2, "cpu.stat", KEYS, KEYS_OF(CPU_STAT), 0, 0, 0},
	{CGROUPS_V2, "cpu.max", CPU_MAX, NULL, 0, CGROUP_CPU_LIMIT, 0, 0},
	{CGROUPS_V2, "memory.current", NUMBER, NULL, 0, CGROUP_MEM, 0, 1},
	{CGROUPS_V2, "memory.stat", KEYS, KEYS_OF(MEMORY_STAT), 0, 0, 0},
	{CGROUPS_V2, "memory.max", LIMIT, NULL, 0, CGROUP_MEM_LIMIT, 0, 0},
	{CGROUPS_V2, "memory.swap.current", NUMBER, NULL, 0, CGROUP_SWAP, 0, 1},
	{CGROUPS_V2, "memory.swap.max", LIMIT, NULL, 0, CGROUP_SWAP_LIMIT, 0, 0},
	{CGROUPS_V2, "memory.events", KEYS, KEYS_OF(MEMORY_EVENTS), 0, 0, 0},
	{CGROUPS_V2, "io.stat", IO_STAT, NULL, 0, 0, 0, 0},
	{CGROUPS_V2, "pids.current", NUMBER, NULL, 0, CGROUP_PIDS, 0, 1},
	{CGROUPS_V2, "pids.max", LIMIT, NULL, 0, CGROUP_PIDS_LIMIT, 0, 0},
	{CGROUPS_V2, "cpu.pressure", PRESSURE, NULL, 0, CGROUP_PSI_CPU, -1, 0},
	{CGROUPS_V2, "memory.pressure", PRESSURE, NULL, 0, CGROUP_PSI_MEM, CGROUP_PSI_MEM_FULL, 0},
	{CGROUPS_V2, "io.pressure", PRESSURE, NULL, 0, CGROUP_PSI_IO, CGROUP_PSI_IO_FULL, 0},
	{CGROUPS_CPU, "cpu.stat", KEYS, KEYS_OF(CPU_STAT_V1), 0, 0, 0},
	{CGROUPS_CPU, "cpu.cfs_quota_us", QUOTA, NULL, 0, CGROUP_CPU_LIMIT, 0, 0},
	{CGROUPS_MEMORY, "memory.usage_in_bytes", NUMBER, NULL, 0, CGROUP_MEM, 0, 1},
	{CGROUPS_MEMORY, "memory.stat", KEYS, KEYS_OF(MEMORY_STAT_V1), 0, 0, 0},
	{CGROUPS_MEMORY, "memory.kmem.usage_in_bytes", NUMBER, NULL, 0, CGROUP_KERNEL, 0, 1},
	{CGROUPS_MEMORY, "memory.limit_in_bytes", LIMIT, NULL, 0, CGROUP_MEM_LIMIT, 0, 0},
	{CGROUPS_MEMORY, "memory.failcnt", NUMBER, NULL, 0, CGROUP_MEM_MAX, 0, 1},
	{CGROUPS_MEMORY, "memory.oom_control", KEYS, KEYS_OF(OOM_CONTROL), 0, 0, 0},
	{CGROUPS_BLKIO, "blkio.throttle.io_service_bytes_recursive", BLKIO_BYTES, NULL, 0, 0, 0, 0},
	{CGROUPS_BLKIO, "blkio.throttle.io_serviced_recursive", BLKIO_COUNTS, NULL, 0, 0, 0, 0},
	{CGROUPS_PIDS, "pids.current", NUMBER, NULL, 0, CGROUP_PIDS, 0, 1},
	{CGROUPS_PIDS, "pids.max", LIMIT, NULL, 0, CGROUP_PIDS_LIMIT, 0, 0},
};

struct group_reading {
	struct meter_reading x;
	struct parse_io io[PARSE_IO_MAX];
	size_t n_io;
	bool has_io;
};

static bool file_read(struct cgroups *c, enum cgroups_hierarchy h, const struct cgroups_group *g,
		      const char *name)
{
	strbuf_reset(&c->path);
	strbuf_addstr(&c->path, c->root[h]);
	strbuf_addstr(&c->path, g->path);
	strbuf_addf(&c->path, "/%s", name);
	return !textfile_read(AT_FDCWD, strbuf_str(&c->path), &c->text);
}

static bool number_read(struct cgroups *c, enum cgroups_hierarchy h, const struct cgroups_group *g,
			const char *name, uint64_t *out)
{
	return c->root[h] && file_read(c, h, g, name) &&
	       parse_number(strbuf_str(&c->text), c->text.len, out);
}

/* v1: quota in us of a period in another file; -1: no limit. */
static void quota_take(struct cgroups *c, const struct cgroups_group *g, uint64_t quota,
		       struct fact_row *row)
{
	uint64_t period;

	if (number_read(c, CGROUPS_CPU, g, "cpu.cfs_period_us", &period) && period &&
	    quota < UINT64_MAX / 1000)
		fact_put(row, CGROUP_CPU_LIMIT, quota * 1000 / period);
}

static void file_take(struct cgroups *c, const struct cgroups_group *g, const struct group_file *f,
		      struct group_reading *out)
{
	const char *text = strbuf_str(&c->text);
	size_t len = c->text.len;
	struct fact_row *row = &out->x.row;
	uint64_t n;

	switch (f->form) {
	case KEYS:
		parse_keys(text, len, f->keys, (size_t)f->n, row);
		break;
	case NUMBER:
		if (parse_number(text, len, &n))
			fact_put(row, f->column, n / f->div);
		break;
	case LIMIT:
		if (parse_limit(text, len, &n))
			fact_put(row, f->column, n);
		break;
	case PRESSURE:
		parse_pressure(text, len, f->column, f->full, row);
		break;
	case CPU_MAX:
		if (parse_cpu_max(text, len, &n))
			fact_put(row, f->column, n);
		break;
	case QUOTA:
		if (parse_number(text, len, &n))
			quota_take(c, g, n, row);
		break;
	case IO_STAT:
		parse_io_stat(text, len, out->io, &out->n_io);
		out->has_io = true;
		break;
	case BLKIO_BYTES:
	case BLKIO_COUNTS:
		parse_blkio(text, len, f->form == BLKIO_BYTES, out->io, &out->n_io);
		out->has_io = true;
		break;
	}
}

/* v1: the sum is exact, its parts are counted in ticks. They share it as the kernel has it in v2:
 * in proportion, and neither goes backwards. */
static void cpu_v1(struct cgroups *c, struct cgroups_group *g, struct fact_row *row)
{
	uint64_t usage, user, system, part;

	if (!number_read(c, CGROUPS_CPUACCT, g, "cpuacct.usage", &usage) ||
	    !number_read(c, CGROUPS_CPUACCT, g, "cpuacct.usage_user", &user) ||
	    !number_read(c, CGROUPS_CPUACCT, g, "cpuacct.usage_sys", &system))
		return;
	part = user + system ? (uint64_t)((double)usage *
					  ((double)user / ((double)user + (double)system))) :
			       usage;
	part = part > g->user ? part : g->user;
	if (usage < part || usage - part < g->system)
		part = usage > g->system ? usage - g->system : 0;
	g->user = part;
	g->system = usage - part;
	fact_put(row, CGROUP_USER, g->user / 1000);
	fact_put(row, CGROUP_SYSTEM, g->system / 1000);
}

/* v1 limits memory and swap together. */
static void swap_limit_v1(struct cgroups *c, const struct cgroups_group *g, struct fact_row *row)
{
	uint64_t both;

	if (c->root[CGROUPS_MEMORY] && fact_has(row, CGROUP_MEM_LIMIT) &&
	    file_read(c, CGROUPS_MEMORY, g, "memory.memsw.limit_in_bytes") &&
	    parse_limit(strbuf_str(&c->text), c->text.len, &both) &&
	    both >= (uint64_t)row->v[CGROUP_MEM_LIMIT].number)
		fact_put(row, CGROUP_SWAP_LIMIT, both - (uint64_t)row->v[CGROUP_MEM_LIMIT].number);
}

static void working_make(struct fact_row *row)
{
	int64_t unused = row->v[CGROUP_WORKING].number, mem = row->v[CGROUP_MEM].number;

	if (!fact_has(row, CGROUP_WORKING))
		return;
	if (fact_has(row, CGROUP_MEM))
		fact_put(row, CGROUP_WORKING, mem > unused ? (uint64_t)(mem - unused) : 0);
	else
		row->set &= ~(1ull << CGROUP_WORKING);
}

/* ---- its disks ---- */

static bool has_entries(const char *path)
{
	cleanup_dir DIR *dir = opendir(path);
	struct dirent *de;

	while (dir && (de = readdir(dir)))
		if (de->d_name[0] != '.')
			return true;
	return false;
}

static const struct cgroups_device *device_of(struct cgroups *c, uint32_t major, uint32_t minor)
{
	uint64_t number = (uint64_t)major << 32 | minor;
	char path[128], target[512];
	struct cgroups_device *d;
	const char *slash;
	ssize_t n;

	HASH_FIND(hh, c->devices, &number, sizeof(number), d);
	if (d || HASH_COUNT(c->devices) >= DEVICES_MAX)
		return d;
	d = mem_alloc(sizeof(*d));
	d->number = number;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major, minor);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = 0;
	slash = strrchr(target, '/');
	if (slash)
		snprintf(d->name, sizeof(d->name), "%.63s", slash + 1);
	else
		snprintf(d->name, sizeof(d->name), "%u:%u", major, minor);
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/slaves", major, minor);
	d->stacked = has_entries(path) || !strncmp(d->name, "loop", 4) ||
		     !strncmp(d->name, "zram", 4) || !strncmp(d->name, "ram", 3);
	HASH_ADD(hh, c->devices, number, sizeof(number), d);
	return d;
}

struct disk_names {
	const char *path, *disk;
};

static bool disk_names(void *ctx, struct fact_row *row)
{
	const struct disk_names *n = ctx;

	fact_put_text(row, CGROUP_DISK_PATH, n->path);
	fact_put_text(row, CGROUP_DISK_NAME, n->disk);
	return true;
}

static void disk_take(struct cgroups *c, const struct meter_round *r, const struct cgroups_group *g,
		      const struct parse_io *io, const struct cgroups_device *d)
{
	struct disk_names names = {g->path, d->name};
	struct meter_reading x = {.identity = g->serial,
				  .young =
					  true}; /* a device is named there from its first use on */

	strbuf_reset(&c->key);
	strbuf_addf(&c->key, "%s\n%s", d->name, g->path);
	x.key = strbuf_str(&c->key);
	fact_put(&x.row, CGROUP_DISK_READ_BYTES, io->read_bytes);
	fact_put(&x.row, CGROUP_DISK_WRITE_BYTES, io->write_bytes);
	fact_put(&x.row, CGROUP_DISK_READS, io->reads);
	fact_put(&x.row, CGROUP_DISK_WRITES, io->writes);
	meter_take(&c->disk, r, &x, disk_names, &names);
}

static void io_take(struct cgroups *c, const struct meter_round *r, const struct cgroups_group *g,
		    struct group_reading *in)
{
	struct parse_io sum = {0};

	if (!in->has_io)
		return;
	for (size_t i = 0; i < in->n_io; i++) {
		const struct parse_io *io = &in->io[i];
		const struct cgroups_device *d = device_of(c, io->major, io->minor);

		if (!d)
			continue;
		disk_take(c, r, g, io, d);
		if (d->stacked)
			continue;
		sum.read_bytes += io->read_bytes;
		sum.write_bytes += io->write_bytes;
		sum.reads += io->reads;
		sum.writes += io->writes;
	}
	fact_put(&in->x.row, CGROUP_READ_BYTES, sum.read_bytes);
	fact_put(&in->x.row, CGROUP_WRITE_BYTES, sum.write_bytes);
	fact_put(&in->x.row, CGROUP_READS, sum.reads);
	fact_put(&in->x.row, CGROUP_WRITES, sum.writes);
}

/* ---- its network ---- */

static bool netns_is_free(const struct cgroups *c, const struct cgroups_group *g, uint64_t netns)
{
	for (const struct cgroups_group *o = c->groups; o; o = o->hh.next)
		if (o != g && o->own_net && o->netns == netns)
			return false;
	return true;
}

static void netns_find(struct cgroups *c, struct cgroups_group *g)
{
	char pid[16];
	uint64_t netns;

	snprintf(pid, sizeof(pid), "%u", g->p->tgid);
	netns = netns_of(pid);
	if (!netns || netns == g->netns)
		return;
	g->netns = netns;
	g->own_net = netns != c->host_netns && netns_is_free(c, g, netns);
}

struct group_names {
	struct cgroups *c;
	const struct cgroups_group *g;
	const char *interface;
};

static uint32_t container_of(const struct group_names *n)
{
	return n->g->p ? naming_container(n->c->h->naming, n->g->p) :
			 cgroups_ends_container(n->c, &n->g->ends);
}

static bool nic_names(void *ctx, struct fact_row *row)
{
	const struct group_names *n = ctx;
	uint32_t container = container_of(n);

	fact_put(row, NIC_CONTAINER, container);
	fact_put_text(row, NIC_NAME, n->interface);
	return container != 0;
}

static void nic_add(struct fact_row *row, const struct fact_row *nic)
{
	static const int to[][3] = {{CGROUP_RX_BYTES, NIC_RX_BYTES, -1},
				    {CGROUP_RX_PACKETS, NIC_RX_PACKETS, -1},
				    {CGROUP_RX_DROPS, NIC_RX_ERRORS, NIC_RX_DROPS},
				    {CGROUP_TX_BYTES, NIC_TX_BYTES, -1},
				    {CGROUP_TX_PACKETS, NIC_TX_PACKETS, -1},
				    {CGROUP_TX_DROPS, NIC_TX_ERRORS, NIC_TX_DROPS}};

	for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
		uint64_t sum = fact_has(row, to[i][0]) ? (uint64_t)row->v[to[i][0]].number : 0;

		sum += (uint64_t)nic->v[to[i][1]].number +
		       (to[i][2] < 0 ? 0 : (uint64_t)nic->v[to[i][2]].number);
		fact_put(row, to[i][0], sum);
	}
}

static void net_take(struct cgroups *c, const struct meter_round *r, struct cgroups_group *g,
		     struct fact_row *row)
{
	struct parse_nic n;
	char path[64];
	size_t pos = 0;

	if (!g->is_container || !g->p)
		return;
	netns_find(c, g);
	snprintf(path, sizeof(path), "/proc/%u/net/dev", g->p->tgid);
	if (!g->own_net || textfile_read(AT_FDCWD, path, &c->text))
		return;
	while (parse_next_nic(strbuf_str(&c->text), c->text.len, &pos, &n)) {
		char name[64];
		struct group_names names = {c, g, name};
		struct meter_reading x = {.identity = g->netns, .young = g->young, .row = n.row};

		snprintf(name, sizeof(name), "%.*s", (int)n.name_len, n.name);
		if (!strcmp(name, "lo"))
			continue;
		nic_add(row, &n.row);
		strbuf_reset(&c->key);
		strbuf_addf(&c->key, "%s\n%s", name, g->path);
		x.key = strbuf_str(&c->key);
		meter_take(&c->nic, r, &x, nic_names, &names);
	}
}

/* ---- all of it ---- */

static bool group_names(void *ctx, struct fact_row *row)
{
	const struct group_names *n = ctx;

	uint32_t container = n->g->is_container ? container_of(n) : 0;

	/* nobody was met in it yet, or nobody is left: what it used goes to the next round that
	 * knows whose it is */
	if (n->g->is_container && !container && !n->c->last)
		return false;
	fact_put_text(row, CGROUP_PATH, n->g->path);
	fact_put(row, CGROUP_CONTAINER, container);
	fact_put_text(row, CGROUP_UNIT, cgroups_is_unit(n->g) ? n->g->ref.unit : "");
	return true;
}

/* ---- what happens to it ---- */

static void group_tell(struct cgroups *c, const struct meter_round *r,
		       const struct cgroups_group *g, const char *kind, const char *detail)
{
	char name[300];
	struct event e = {.kind = kind,
			  .subject = g->is_container    ? "container" :
				     cgroups_is_unit(g) ? "unit" :
							  "cgroup",
			  .detail = detail,
			  .name = cgroups_is_unit(g) ? g->ref.unit : g->path,
			  .which = g->is_container && *g->ref.id ? g->ref.id : g->path,
			  .utc_ns = r->utc_ns};

	if (!r->h)
		return;
	if (g->is_container) {
		container_events_container_name(r->h, c->docker, &g->ref, name, sizeof(name));
		e.name = name;
	}
	event_put(r->h, &e);
}

static void group_watch(struct cgroups *c, const struct meter_round *r, struct cgroups_group *g,
			const struct fact_row *row)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	enum change_change change = CHANGE_SAME;

	if (fact_has(row, CGROUP_PERIODS) && fact_has(row, CGROUP_THROTTLED))
		change = change_throttle(&g->throttle, (uint64_t)row->v[CGROUP_PERIODS].number,
					 (uint64_t)row->v[CGROUP_THROTTLED].number);
	if (change)
		group_tell(c, r, g, change == CHANGE_BEGAN ? "throttled" : "not throttled", "");
	/* one that is removed while it is read has lost its limits last */
	if (change_limits(&g->limits, row, &text) && file_read(c, g->in, g, "cgroup.procs"))
		group_tell(c, r, g, "limit changed", strbuf_str(&text));
}

static void group_read(struct cgroups *c, const struct meter_round *r, struct cgroups_group *g)
{
	struct group_names names = {c, g, NULL};
	struct group_reading in = {.x = {.key = g->path, .identity = g->serial, .young = g->young}};
	int64_t begin_ns = clock_boot_ns();

	for (size_t i = 0; i < ARRAY_SIZE(FILES); i++)
		if (c->root[FILES[i].h] && file_read(c, FILES[i].h, g, FILES[i].name))
			file_take(c, g, &FILES[i], &in);
	cpu_v1(c, g, &in.x.row);
	swap_limit_v1(c, g, &in.x.row);
	working_make(&in.x.row);
	io_take(c, r, g, &in);
	net_take(c, r, g, &in.x.row);
	if (!in.x.row.set) /* it was removed meanwhile */
		return;
	group_watch(c, r, g, &in.x.row);
	meter_take(&c->meter, r, &in.x, group_names, &names);
	cgroups_read_note(g, &in.x.row, begin_ns);
}

void cgroups_read(struct cgroups *c, const struct meter_round *r)
{
	for (struct cgroups_group *g = c->groups; g; g = g->hh.next) {
		if (g->quiet || naming_excludes_cgroup(c->h->naming, g->path))
			continue;
		group_read(c, r, g);
		g->young = false;
	}
	if (c->incomplete)
		return;
	meter_end(&c->meter);
	meter_end(&c->disk);
	meter_end(&c->nic);
}
