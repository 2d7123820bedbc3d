/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/host/events/change_detect.h"
#include "loaders/host/events/container_events.h"
#include "loaders/host/groupfiles.h"
#include "loaders/host/parse.h"
#include "loaders/host/textfile.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/run/events.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/facts/host.h"
#include "schema/store/write/writer.h"

/* A process, as it is found again in hostmaps. */
struct cgroups_process {
	uint32_t tgid, exec_id;
	uint64_t start_ns;
};

/* Of processes that ended. */
struct cgroups_ends {
	uint64_t user_us, system_us, oom_kills;
	int64_t last_ns;            /* the newest of them, boot clock; 0: no process ended */
	struct cgroups_process who; /* that one */
	uint32_t container, epoch;  /* its container's row, as it was then, and the store's epoch
				       (writer.h) that it is of */
};

struct cgroups_group {
	enum cgroups_hierarchy in; /* the first one that has it */
	uint64_t inode;            /* of its directory there */
	uint64_t serial;           /* changes if the directory was created again */
	uint64_t round;            /* in which it was listed last */
	struct groupfiles_cpu cpu; /* as stored last; of v1 */
	uint64_t netns;            /* 0: not known, or the host's */
	bool own_net, young;       /* netns is counted here; created since the previous round */
	bool born;  /* it came to be after the first round: its counters began at 0 */
	bool quiet; /* has no rows */
	struct container_ref ref;
	bool is_container;          /* it is the container's own */
	struct hostmaps_process *p; /* that runs in it; NULL: no process was met */
	struct change_throttle throttle;
	struct change_limits limits;
	struct fact_row reading;  /* the last one: counters as the kernel has them; nothing set: not
				     read yet */
	int64_t read_ns;          /* when it began, boot clock */
	uint64_t oom_before;      /* kills in the first reading, of a cgroup that is not born */
	struct cgroups_ends ends; /* CPU time: since that reading; oom_kills: all */
	UT_hash_handle hh;
	char path[];
};

#define ORPHANS_MAX 4096

/* A cgroup that no round has met: one that came and goes between two, or the one before of the same
 * name. */
struct cgroups_orphan {
	uint64_t id, id1; /* as the processes had them; 0: they were below it */
	struct cgroups_ends ends;
	UT_hash_handle hh; /* by path: the newest of a name */
	char path[];
};

/* ---- ends ---- */

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), len = strlen(end);

	return n >= len && !strcmp(text + n - len, end);
}

static bool path_is_unit(const char *path, const struct container_ref *ref, bool is_container)
{
	return *ref->unit && !is_container &&
	       (ends_with(path, ".service") || ends_with(path, ".scope"));
}

static bool is_unit(const struct cgroups_group *g)
{
	return path_is_unit(g->path, &g->ref, g->is_container);
}

static void read_note(struct cgroups_group *g, const struct fact_row *reading, int64_t begin_ns)
{
	if (!g->reading.set && !g->born && fact_has(reading, CGROUP_OOM_KILLS))
		g->oom_before = (uint64_t)reading->v[CGROUP_OOM_KILLS].number;
	g->reading = *reading;
	g->read_ns = begin_ns;
	g->ends.user_us = g->ends.system_us = 0;
}

/* ---- ended processes ---- */

static void ends_add(struct cgroups *c, struct cgroups_ends *x, const struct hostmaps_process *p,
		     const struct cgroups_end *e)
{
	x->user_us += e->user_us;
	x->system_us += e->system_us;
	x->oom_kills += e->oom_kill;
	if ((int64_t)p->to_ns < x->last_ns)
		return;
	x->last_ns = (int64_t)p->to_ns;
	x->who = (struct cgroups_process){p->tgid, p->exec_id, p->start_ns};
	x->container = naming_container(c->h->naming, p);
	x->epoch = store_epoch(c->h->store);
}

/* Was it in this one, and not in the one before of the same path? `below`: in one below it, whose
 * number says nothing. */
static bool is_of(const struct cgroups_group *g, uint64_t id, uint64_t id1, bool below)
{
	uint64_t mine = g->in == CGROUPS_MEMORY ? id1 : g->in == CGROUPS_V2 ? id : 0;

	return below || !mine || mine == g->inode;
}

/* What a process used before the cgroup was read is in that reading. For a process that was never
 * read this amount is unknown, but it cannot be more than the time that it had. */
static void group_ended(struct cgroups *c, struct cgroups_group *g,
			const struct hostmaps_process *p, const struct cgroups_end *e)
{
	struct cgroups_end x = *e;
	uint64_t all = e->user_us + e->system_us, before = 0;

	if (e->whole && (int64_t)p->start_ns < g->read_ns)
		before = (uint64_t)(g->read_ns - (int64_t)p->start_ns) / 1000;
	if ((int64_t)p->to_ns <= g->read_ns || before >= all)
		x.user_us = x.system_us = 0;
	else if (before) {
		x.user_us = (uint64_t)((double)e->user_us * ((double)(all - before) / (double)all));
		x.system_us = all - before - x.user_us;
	}
	ends_add(c, &g->ends, p, &x);
}

static void orphan_ended(struct cgroups *c, const char *path, size_t len,
			 const struct hostmaps_process *p, const struct cgroups_end *e, bool below)
{
	struct cgroups_orphan *o;

	HASH_FIND(hh, c->orphans, path, len, o);
	if (!o && HASH_COUNT(c->orphans) >= ORPHANS_MAX)
		return;
	if (!o) {
		o = mem_alloc(sizeof(*o) + len + 1);
		memcpy(o->path, path, len);
		HASH_ADD(hh, c->orphans, path, len, o);
	}
	if (!below) {
		o->id = p->cgroup_id;
		o->id1 = p->cgroup1_id;
	}
	ends_add(c, &o->ends, p, e);
}

void cgroups_ended(struct cgroups *c, const struct hostmaps_process *p, const struct cgroups_end *e)
{
	struct container_ref ref;
	struct cgroups_group *g;
	size_t len = strlen(p->cgroup);
	bool below = container_parse(p->cgroup, len, &ref) && ref.end && ref.end < len;

	if (below)
		len = ref.end;
	if (len < 2 || !c->h) /* the root is the host; before the first round nothing has begun */
		return;
	HASH_FIND(hh, c->groups, p->cgroup, len, g);
	if (g && is_of(g, p->cgroup_id, p->cgroup1_id, below))
		group_ended(c, g, p, e);
	else
		orphan_ended(c, p->cgroup, len, p, e, below);
}

/* ---- its row ---- */

struct closing {
	struct cgroups *c;
	const char *path;
	const struct container_ref *ref;
	bool is_container;
	const struct cgroups_ends *ends;
};

static uint32_t ends_container(const struct cgroups *c, const struct cgroups_ends *x)
{
	struct hostmaps_process *p =
		x->last_ns ?
			hostmaps_process(c->h->maps, x->who.tgid, x->who.start_ns, x->who.exec_id) :
			NULL;

	if (p)
		return naming_container(c->h->naming, p);
	return x->epoch == store_epoch(c->h->store) ? x->container : 0;
}

static bool closing_names(void *ctx, struct fact_row *row)
{
	struct closing *x = ctx;

	fact_put_text(row, CGROUP_PATH, x->path);
	fact_put(row, CGROUP_CONTAINER, x->is_container ? ends_container(x->c, x->ends) : 0);
	fact_put_text(row, CGROUP_UNIT,
		      path_is_unit(x->path, x->ref, x->is_container) ? x->ref->unit : "");
	return true;
}

static void add(struct fact_row *row, int column, uint64_t n)
{
	if (n)
		fact_put(row, column,
			 (fact_has(row, column) ? (uint64_t)row->v[column].number : 0) + n);
}

/* `row` holds differences since what is stored; gauges of a removed cgroup are not stored. */
static void closing_put(struct closing *x, struct fact_row *row, uint64_t oom_kills)
{
	struct meter_round at = *x->c->at;
	uint64_t any = 0;

	add(row, CGROUP_USER, x->ends->user_us);
	add(row, CGROUP_SYSTEM, x->ends->system_us);
	add(row, CGROUP_OOM_KILLS, oom_kills);
	for (uint32_t i = 0; i < CGROUP_FACT.n; i++) {
		if (CGROUP_FACT.columns[i].role == FACT_GAUGE)
			row->set &= ~(1ull << i);
		any |= row->set >> i & 1 ? (uint64_t)row->v[i].number : 0;
	}
	if (!any || !at.h || naming_excludes_cgroup(x->c->h->naming, x->path))
		return;
	if (x->ends->last_ns)
		at.utc_ns = x->ends->last_ns + x->c->h->offset_ns;
	meter_put(&CGROUP_FACT, &at, row, closing_names, x);
}

/* Kills that its own counter did not contain when it was read last. */
static uint64_t oom_untold(const struct cgroups_group *g)
{
	uint64_t told = fact_has(&g->reading, CGROUP_OOM_KILLS) ?
				(uint64_t)g->reading.v[CGROUP_OOM_KILLS].number - g->oom_before :
				0;

	return g->ends.oom_kills > told ? g->ends.oom_kills - told : 0;
}

static void group_close(struct cgroups *c, struct cgroups_group *g)
{
	struct closing x = {.c = c,
			    .path = g->path,
			    .ref = &g->ref,
			    .is_container = g->is_container,
			    .ends = &g->ends};
	const struct fact_row *last = meter_last(&c->meter, g->path, g->serial);
	struct fact_row row;

	if (g->quiet)
		return;
	meter_difference(&CGROUP_FACT, last, g->born, &g->reading,
			 &row); /* what was read and had not moved enough to be stored */
	closing_put(&x, &row, oom_untold(g));
}

static void orphan_take(struct cgroups *c, struct cgroups_orphan *o)
{
	struct cgroups_group *g;
	struct container_ref ref;
	struct closing x = {.c = c, .path = o->path, .ref = &ref, .ends = &o->ends};
	struct fact_row row = {0};
	size_t len = strlen(o->path);

	HASH_FIND(hh, c->groups, o->path, len, g);
	/* it is young: its first reading tells all */
	if (g && is_of(g, o->id, o->id1, !o->id && !o->id1)) {
		g->ends.oom_kills += o->ends.oom_kills;
		return;
	}
	x.is_container = container_parse(o->path, len, &ref) && ref.end == len;
	closing_put(&x, &row, o->ends.oom_kills);
}

static void orphans_drop(struct cgroups *c)
{
	struct cgroups_orphan *o, *next;

	HASH_ITER (hh, c->orphans, o, next) {
		HASH_DEL(c->orphans, o);
		free(o);
	}
}

static void orphans_take(struct cgroups *c)
{
	struct cgroups_orphan *o, *next;

	if (c->incomplete)
		return;
	HASH_ITER (hh, c->orphans, o, next)
		orphan_take(c, o);
	orphans_drop(c);
}

#define GROUPS_MAX 4096
#define DEPTH_MAX  24

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

	orphans_drop(c);
	HASH_ITER (hh, c->groups, g, next)
		group_drop(c, g);
	blockdevs_release(&c->devices);
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
	if (g && g->round != c->round && g->in == in && g->inode != inode) { /* created again */
		group_close(c, g);
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
		group_close(c, g);
		group_drop(c, g);
	}
	orphans_take(c);
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
	const struct parse_key *keys; /* KEYS: number of keys */
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
/* `working` begins as the files not used lately. Shared memory and tmpfs count as files for the
 * kernel, but it cannot reclaim them: they are in `anon`, too. */
static const struct parse_key MEMORY_STAT[] = {
	{"anon", CGROUP_ANON, 0, 0},         {"file", CGROUP_FILE, 0, 0},
	{"kernel", CGROUP_KERNEL, 0, 0},     {"inactive_file", CGROUP_WORKING, 0, 0},
	{"pgmajfault", CGROUP_MAJFLT, 0, 0}, {"shmem", CGROUP_ANON, 0, 0, true},
};
static const struct parse_key MEMORY_STAT_V1[] = {
	{"total_rss", CGROUP_ANON, 0, 0},          {"total_cache", CGROUP_FILE, 0, 0},
	{"total_swap", CGROUP_SWAP, 0, 0},         {"total_inactive_file", CGROUP_WORKING, 0, 0},
	{"total_pgmajfault", CGROUP_MAJFLT, 0, 0}, {"total_shmem", CGROUP_ANON, 0, 0, true},
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
			groupfiles_quota(c, g->path, n, row);
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
		      const struct parse_io *io, const struct blockdev *d)
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
		const struct blockdev *d = blockdev_of(&c->devices, io->major, io->minor);

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
			 ends_container(n->c, &n->g->ends);
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

	/* no process was met in it yet, or none is left: its use goes to the next round that knows
	 * the container */
	if (n->g->is_container && !container && !n->c->last)
		return false;
	fact_put_text(row, CGROUP_PATH, n->g->path);
	fact_put(row, CGROUP_CONTAINER, container);
	fact_put_text(row, CGROUP_UNIT, is_unit(n->g) ? n->g->ref.unit : "");
	return true;
}

/* ---- what happens to it ---- */

static void group_tell(struct cgroups *c, const struct meter_round *r,
		       const struct cgroups_group *g, const char *kind, const char *detail)
{
	char name[300];
	struct event e = {.kind = kind,
			  .subject = g->is_container ? "container" :
				     is_unit(g)      ? "unit" :
						       "cgroup",
			  .detail = detail,
			  .name = is_unit(g) ? g->ref.unit : g->path,
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
	if (change_limits(&g->limits, row, &text) &&
	    groupfiles_read(c, g->in, g->path, "cgroup.procs"))
		group_tell(c, r, g, "limit changed", strbuf_str(&text));
}

static void group_read(struct cgroups *c, const struct meter_round *r, struct cgroups_group *g)
{
	struct group_names names = {c, g, NULL};
	struct group_reading in = {.x = {.key = g->path, .identity = g->serial, .young = g->young}};
	int64_t begin_ns = clock_boot_ns();

	for (size_t i = 0; i < ARRAY_SIZE(FILES); i++)
		if (groupfiles_read(c, FILES[i].h, g->path, FILES[i].name))
			file_take(c, g, &FILES[i], &in);
	groupfiles_cpu(c, g->path, &g->cpu, &in.x.row);
	groupfiles_swap_limit(c, g->path, &in.x.row);
	groupfiles_swap_max(c, g->path, &in.x.row);
	working_make(&in.x.row);
	io_take(c, r, g, &in);
	net_take(c, r, g, &in.x.row);
	if (!in.x.row.set) /* it was removed meanwhile */
		return;
	group_watch(c, r, g, &in.x.row);
	meter_take(&c->meter, r, &in.x, group_names, &names);
	read_note(g, &in.x.row, begin_ns);
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
