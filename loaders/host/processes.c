/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/processes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/host/parse.h"
#include "loaders/host/textfile.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/facts/host.h"

#define FILES_NS (60 * NSEC_PER_SEC)
#define LIMIT_NS (600 * NSEC_PER_SEC) /* limits are read so often */
#define FDS_FEW  32                   /* no real limit is that low */
#define WHOLE_NS (60 * NSEC_PER_SEC)  /* memory may be taken from one that does not run */
#define PARTS_NS (60 * NSEC_PER_SEC)  /* parts of a memory of the same size are read so often */
#define PARTS_OF (8u << 20)           /* less of files and shared memory changes no order */

static const struct parse_key IO[] = {{"read_bytes", PROCESS_READ_BYTES, 0, 0},
				      {"write_bytes", PROCESS_WRITE_BYTES, 0, 0}};
static const struct parse_key STATUS[] = {{"VmSwap", PROCESS_SWAP, 1024, 0}};
/* since Linux 4.5 */
static const struct parse_key PARTS[] = {{"RssFile", PROCESS_MEM_FILE, 1024, 0},
					 {"RssShmem", PROCESS_MEM_SHMEM, 1024, 0}};

void processes_init(struct processes *ps, int64_t idle_ns)
{
	*ps = (struct processes){
		.meter = {.fact = &PROCESS_FACT, .idle_ns = idle_ns},
		.files = {.fact = &FDS_FACT, .idle_ns = FILES_NS, .little_ns = FILES_NS},
		.mem = {.fact = &PROCESS_MEM_FACT, .idle_ns = idle_ns, .little_ns = FILES_NS}};
}

struct processes_known {
	uint64_t start_ns, ran_ns; /* on a CPU, of the main thread */
	uint64_t round;
	int64_t whole_ns;   /* when it was read whole, and its row could be stored; 0: never */
	int64_t limit_ns;   /* when its limit was read; 0: never */
	uint64_t fds_limit; /* 0: not known, or none */
	uint64_t rss;       /* while it had memory, at the last reading */
	int64_t met_ns;     /* when it was met last */
	int64_t parts_ns;   /* when the parts of its memory were read; 0: never */
	uint64_t parts_rss; /* how much that was */
	bool parted;        /* it has files or shared memory in it */
	bool single;        /* it had one thread */
	bool spent;         /* all of its use is stored */
	uint64_t cpu_us;    /* up to the last reading, rather more than less; with `read` */
	bool read;
	uint32_t tgid;
	UT_hash_handle hh;
};

static void forget(struct processes *ps, uint64_t but)
{
	struct processes_known *k, *next;

	HASH_ITER (hh, ps->known, k, next) {
		if (k->round == but)
			continue;
		HASH_DEL(ps->known, k);
		free(k);
	}
}

void processes_release(struct processes *ps)
{
	forget(ps, UINT64_MAX);
	meter_release(&ps->meter);
	meter_release(&ps->files);
	meter_release(&ps->mem);
	strbuf_release(&ps->text);
}

static bool file_read(struct processes *ps, uint32_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return !textfile_read(AT_FDCWD, path, &ps->text);
}

static struct processes_known *known_of(struct processes *ps, const struct hostmaps_process *p)
{
	struct processes_known *k;

	HASH_FIND(hh, ps->known, &p->tgid, sizeof(p->tgid), k);
	if (!k) {
		k = mem_alloc(sizeof(*k));
		k->tgid = p->tgid;
		HASH_ADD(hh, ps->known, tgid, sizeof(k->tgid), k);
	}
	if (k->start_ns != p->start_ns) {
		k->single = false;
		k->whole_ns = 0;
		k->limit_ns = k->parts_ns = 0;
		k->spent = k->read = k->parted = false;
		k->rss = 0;
		k->start_ns = p->start_ns;
	}
	k->round = ps->round;
	k->met_ns = clock_boot_ns();
	return k;
}

/* "RAN WAITED SLICES", in ns, of the main thread. False: this kernel has no such file. */
static bool schedstat_read(struct processes *ps, uint32_t pid, uint64_t *ran_ns,
			   uint64_t *waited_ns)
{
	const char *second;

	if (!file_read(ps, pid, "schedstat") ||
	    !parse_number(strbuf_str(&ps->text), ps->text.len, ran_ns))
		return false;
	second = strchr(strbuf_str(&ps->text), ' ');
	return second && parse_number(second, strlen(second), waited_ns);
}

/* Since 6.2 the size of the directory is how many it has. */
static void files_count(uint32_t pid, struct fact_row *row)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	if (!stat(path, &st) && st.st_size > 0)
		fact_put(row, PROCESS_FDS, (uint64_t)st.st_size);
}

bool processes_wants(const struct family_host *h, const struct hostmaps_process *p)
{
	return !target_is_narrow(h->target) || target_covers(h->target, h->maps, p);
}

struct process_names {
	struct meter_round r;
	struct hostmaps_process *p;
};

static bool files_names(void *ctx, struct fact_row *row)
{
	const struct process_names *n = ctx;

	if (naming_excludes(n->r.h->naming, n->p))
		return false;
	fact_put(row, FDS_PROCESS, naming_row(n->r.h->naming, n->p));
	return true;
}

/* "Max open files            1024                 524288               files": the first number. */
static void limit_read(struct processes *ps, struct processes_known *k)
{
	static const char head[] = "Max open files ";
	const char *at =
		file_read(ps, k->tgid, "limits") ? strstr(strbuf_str(&ps->text), head) : NULL;

	k->fds_limit = 0;
	if (!at)
		return;
	at += sizeof(head) - 1;
	at += strspn(at, " ");
	if (!parse_number(at, strcspn(at, " \n"), &k->fds_limit)) /* "unlimited" */
		k->fds_limit = 0;
}

static void files_take(struct processes *ps, const struct meter_round *r, struct processes_known *k,
		       const struct meter_reading *of, struct process_names *names)
{
	struct meter_reading x = {.key = of->key, .identity = of->identity};
	uint64_t fds =
		fact_has(&of->row, PROCESS_FDS) ? (uint64_t)of->row.v[PROCESS_FDS].number : 0;

	if (fds < FDS_FEW)
		return;
	if (!k->limit_ns || r->now_ns - k->limit_ns >= LIMIT_NS) {
		k->limit_ns = r->now_ns;
		limit_read(ps, k);
	}
	if (!k->fds_limit || fds < k->fds_limit / 2)
		return;
	fact_put(&x.row, FDS_OPEN, fds);
	fact_put(&x.row, FDS_LIMIT, k->fds_limit);
	meter_take(&ps->files, r, &x, files_names, names);
}

static bool mem_names(void *ctx, struct fact_row *row)
{
	const struct process_names *n = ctx;

	if (naming_excludes(n->r.h->naming, n->p))
		return false;
	fact_put(row, PROCESS_MEM_ID, naming_row(n->r.h->naming, n->p));
	return true;
}

/* As much as at the last reading, which is not old. */
static bool parts_hold(const struct processes_known *k, const struct meter_round *r)
{
	uint64_t far = k->rss > k->parts_rss ? k->rss - k->parts_rss : k->parts_rss - k->rss;

	return k->parts_ns && r->now_ns - k->parts_ns < PARTS_NS && far <= k->parts_rss / 32;
}

/* Which part of its memory is files', and which is shared. */
static void parts_take(struct processes *ps, const struct meter_round *r, struct processes_known *k,
		       const struct meter_reading *of, struct process_names *names)
{
	struct meter_reading x = {.key = of->key, .identity = of->identity};
	int64_t sum;

	if (!k->parted && k->rss < PARTS_OF)
		return;
	if (parts_hold(k, r)) {
		meter_keep(&ps->mem, of->key);
		return;
	}
	if (!ps->status && !file_read(ps, k->tgid, "status"))
		return;
	parse_keys(strbuf_str(&ps->text), ps->text.len, PARTS, 2, &x.row);
	if (!fact_has(&x.row, PROCESS_MEM_FILE) || !fact_has(&x.row, PROCESS_MEM_SHMEM))
		return; /* an old kernel, or it is ending */
	k->parts_ns = r->h ? r->now_ns : 0;
	k->parts_rss = k->rss;
	sum = x.row.v[PROCESS_MEM_FILE].number + x.row.v[PROCESS_MEM_SHMEM].number;
	if (sum >= PARTS_OF || k->parted)
		meter_take(&ps->mem, r, &x, mem_names, names);
	k->parted = sum >= PARTS_OF;
}

/* CPU time of all its threads up to now. Ticks cut off up to one each of both; the main thread's
 * own time is exact, and all of it where there never was another thread. */
static uint64_t cpu_at_most(const struct fact_row *row, uint64_t main_us)
{
	uint64_t ticks_us =
		(uint64_t)row->v[PROCESS_USER].number + (uint64_t)row->v[PROCESS_SYSTEM].number;

	return main_us >= ticks_us && main_us ? main_us : ticks_us + 2 * proc_ticks_ns(1) / 1000;
}

static bool process_names(void *ctx, struct fact_row *row)
{
	const struct process_names *n = ctx;

	if (naming_excludes(n->r.h->naming, n->p))
		return false;
	fact_put(row, PROCESS_ID, naming_row(n->r.h->naming, n->p));
	return true;
}

void processes_read(struct processes *ps, const struct meter_round *r, struct hostmaps_process *p,
		    int64_t young_ns)
{
	struct processes_known *k = known_of(ps, p);
	uint64_t ran_ns = 0, waited_ns = 0;
	bool has_schedstat = schedstat_read(ps, p->tgid, &ran_ns, &waited_ns);
	struct process_names names = {*r, p};
	struct meter_reading x = {.identity = p->start_ns,
				  .young = (int64_t)p->start_ns >= young_ns};
	uint64_t tick = proc_ticks_ns(1);
	struct parse_task t;
	char key[16];

	snprintf(key, sizeof(key), "%u", p->tgid);
	if (has_schedstat && k->single && ran_ns == k->ran_ns && k->whole_ns &&
	    r->now_ns - k->whole_ns < WHOLE_NS) {
		meter_keep(&ps->meter, key);
		meter_keep(&ps->mem, key);
		return;
	}
	if (!file_read(ps, p->tgid, "stat") ||
	    !parse_task_stat(strbuf_str(&ps->text), ps->text.len, sysconf(_SC_CLK_TCK),
			     sysconf(_SC_PAGESIZE), &t) ||
	    t.start_ticks != p->start_ns / tick) { /* it has ended, and its pid is reused; its use
						      is not fully stored yet */
		meter_keep(&ps->meter, key);
		return;
	}
	x.key = key;
	x.row = t.row;
	k->single = t.row.v[PROCESS_THREADS].number == 1;
	k->ran_ns = ran_ns;
	k->rss = fact_has(&t.row, PROCESS_RSS) ? (uint64_t)t.row.v[PROCESS_RSS].number : k->rss;
	k->whole_ns = r->h ? r->now_ns : 0;
	k->read = true;
	k->cpu_us = cpu_at_most(&t.row, k->single && has_schedstat ? ran_ns / 1000 : 0);
	if (has_schedstat && k->single)
		fact_put(&x.row, PROCESS_DELAY, waited_ns / 1000);
	if (!t.kernel) {
		if (file_read(ps, p->tgid, "io"))
			parse_keys(strbuf_str(&ps->text), ps->text.len, IO, 2, &x.row);
		ps->status = ps->swapping && file_read(ps, p->tgid, "status");
		if (ps->status)
			parse_keys(strbuf_str(&ps->text), ps->text.len, STATUS, 1, &x.row);
		parts_take(ps, r, k, &x, &names);
		files_count(p->tgid, &x.row);
		files_take(ps, r, k, &x, &names);
	}
	meter_take(&ps->meter, r, &x, process_names, &names);
}

/* ---- ended ---- */

static struct processes_known *known_as(const struct processes *ps, uint32_t tgid,
					uint64_t start_ns)
{
	struct processes_known *k;

	HASH_FIND(hh, ps->known, &tgid, sizeof(tgid), k);
	return k && k->start_ns == start_ns ? k : NULL;
}

void processes_split(const struct mp_used *u, const struct fact_row *last, uint64_t *user_us,
		     uint64_t *system_us)
{
	uint64_t had_user = last ? (uint64_t)last->v[PROCESS_USER].number : 0,
		 had_system = last ? (uint64_t)last->v[PROCESS_SYSTEM].number : 0;
	uint64_t all = u->cpu_ns / 1000, user = all;

	if (all < had_user + had_system)
		all = had_user + had_system;
	if (u->system_ns)
		user = (uint64_t)((double)all * ((double)u->user_ns /
						 ((double)u->user_ns + (double)u->system_ns)));
	if (user > all - had_system)
		user = all - had_system;
	if (user < had_user)
		user = had_user;
	*user_us = user;
	*system_us = all - user;
}

static void row_of(const struct mp_used *u, const struct fact_row *last, struct fact_row *row)
{
	uint64_t user, system;

	*row = (struct fact_row){0};
	processes_split(u, last, &user, &system);
	fact_put(row, PROCESS_USER, user);
	fact_put(row, PROCESS_SYSTEM, system);
	fact_put(row, PROCESS_MINFLT, u->minflt);
	fact_put(row, PROCESS_MAJFLT, u->majflt);
	if (u->flags & MP_USED_RUNQ)
		fact_put(row, PROCESS_DELAY, u->runq_ns / 1000);
	if (u->flags & MP_USED_IO) {
		fact_put(row, PROCESS_READ_BYTES, u->read_bytes);
		fact_put(row, PROCESS_WRITE_BYTES, u->write_bytes);
	}
}

uint64_t processes_since(const struct processes *ps, const struct mp_used *u,
			 const struct hostmaps_process *p, bool *whole)
{
	const struct processes_known *k = known_as(ps, p->tgid, p->start_ns);
	uint64_t all = u->cpu_ns / 1000;

	*whole = !k || !k->read;
	if (k && k->spent)
		return 0;
	return *whole ? all : all > k->cpu_us ? all - k->cpu_us : 0;
}

bool processes_used(struct processes *ps, const struct meter_round *r, const struct mp_used *u,
		    struct hostmaps_process *p)
{
	struct processes_known *k = known_as(ps, p->tgid, p->start_ns);
	struct process_names names = {*r, p};
	const struct fact_row *last;
	struct fact_row now, row;
	char key[16];

	snprintf(key, sizeof(key), "%u", p->tgid);
	last = meter_last(&ps->meter, key, p->start_ns);
	if (!k || !last)
		return false;
	if (k->spent) /* stored once */
		return true;
	k->spent = true;
	row_of(u, last, &now);
	if (!meter_difference(ps->meter.fact, last, true, &now, &row))
		return true;
	if (k->rss) /* the last reading may have met it without: it was ending */
		fact_put(&row, PROCESS_RSS, k->rss);
	meter_put(ps->meter.fact, r, &row, process_names, &names);
	return true;
}

void processes_whole(struct processes *ps, const struct meter_round *r, const struct mp_used *u,
		     struct hostmaps_process *p)
{
	struct process_names names = {*r, p};
	struct fact_row row;

	row_of(u, NULL, &row);
	fact_put(&row, PROCESS_RSS, u->maxrss_bytes);
	meter_put(ps->meter.fact, r, &row, process_names, &names);
}

/* A process's last reading is kept for a while after its end: its sums come later, and if
 * sonde-maps had lost it and finds it again, counting goes on from there. */
static void absent_keep(struct processes *ps)
{
	int64_t now = clock_boot_ns();
	char key[16];

	for (struct processes_known *k = ps->known; k; k = k->hh.next) {
		if (k->round == ps->round || now - k->met_ns >= PROCESSES_KEEP_NS)
			continue;
		snprintf(key, sizeof(key), "%u", k->tgid);
		meter_keep(&ps->meter, key);
		k->round = ps->round;
	}
}

void processes_end(struct processes *ps)
{
	absent_keep(ps);
	meter_end(&ps->meter);
	meter_end(&ps->files);
	meter_end(&ps->mem);
	forget(ps, ps->round++);
}
