/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/world/side_band_feed.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/bpf/load/kerneltypes.h"
#include "loaders/lib/host/maps/perfring.h"
#include "loaders/lib/host/maps/sideband.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/maps/world/procevents.h"
#include "loaders/maps/world/procscan.h"
#include "loaders/maps/world/world.h"
#include "probes/maps.h"
#include "probes/maps.skel.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

/* One record, where it lies in `bytes`. */
struct item {
	uint64_t time_ns;
	uint32_t at, len;
	bool program; /* struct maps_event and arguments; else a side-band record */
};

struct side_band_feed {
	struct world *world;
	struct perfring
		*perf; /* NULL: no side-band; then there is no program either, and `scan` looks */
	struct procscan scan;
	struct maps_bpf *skel; /* NULL: no BPF program */
	struct ring_buffer *ring;
	struct bpf_link *iter;
	int epoll_fd;
	struct strbuf bytes, carried;
	struct item *items;
	size_t n, cap;
	uint64_t done_ns; /* T of the last reading */
	uint64_t lost, late;
	uint64_t program_lost; /* at the last read */
	uint64_t
		missed; /* runs that the kernel left out, at the last call of side_band_feed_cost */
	uint64_t asked_ns,
		missed_since_ns; /* time of that call, if runs were left out since; 0: none were */
	/* reconcile: the iterator's last result, and its time */
	struct maps_event *look;
	size_t n_look;
	uint64_t look_ns;
	uint8_t round;
	bool seeded;
	bool busy; /* the last reading found records, or left some for the next */
};

#define PERF_BYTES (256u << 10)

/* ---- open ---- */

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[512];

	if (level == LIBBPF_WARN)
		leftout_hear(fmt, ap);
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = 0;
	log_debug("libbpf: %s", line);
	return 0;
}

static int on_program(void *ctx, void *data, size_t len);

SKELETON_OPEN(maps)

static void close_program(struct side_band_feed *f)
{
	bpf_link__destroy(f->iter);
	f->iter = NULL;
	ring_buffer__free(f->ring);
	f->ring = NULL;
	maps_bpf__destroy(f->skel);
	f->skel = NULL;
}

static const struct leftout_program OPTIONAL[] = {
	{"on_signal", "which process sent the signal that ended another one is not recorded"},
	{"on_free", "what processes used that have ended is not recorded"},
	{"on_task", NULL}, /* /proc instead */
	{0}};

static int load_program(struct side_band_feed *f, int processes_fd, const char *store_dir)
{
	const struct root_id *own = &f->world->own_root;
	int rc = 0;

	f->skel = skel_open(store_dir);
	if (!f->skel)
		return -errno;
	f->skel->rodata->tables = processes_fd >= 0;
	f->skel->rodata->own_mntns = own->mntns;
	f->skel->rodata->own_root_ino = own->ino;
	f->skel->rodata->own_root_dev = own->dev;
	if (processes_fd >= 0)
		rc = bpf_map__reuse_fd(f->skel->maps.processes, processes_fd);
	bpf_program__set_autoattach(f->skel->progs.on_task, false);
	programs_keep_still(f->skel->obj);
	leftout_disable(f->skel->obj);
	if (!rc)
		rc = maps_bpf__load(f->skel);
	if (!rc)
		rc = maps_bpf__attach(f->skel);
	if (!rc) {
		f->ring = ring_buffer__new(bpf_map__fd(f->skel->maps.events), on_program, f, NULL);
		rc = f->ring ? 0 : -errno;
	}
	return rc;
}

/* If the kernel cannot list processes they are read from /proc. */
static int open_program(struct side_band_feed *f, int processes_fd, const char *store_dir)
{
	int rc;

	libbpf_set_print(quiet);
	while ((rc = load_program(f, processes_fd, store_dir))) {
		close_program(f);
		if (!leftout_next(OPTIONAL, rc))
			return rc;
	}
	if (bpf_program__autoload(f->skel->progs.on_task))
		f->iter = bpf_program__attach_iter(f->skel->progs.on_task, NULL);
	if (!f->iter)
		log_info("the kernel does not list processes: they are read from /proc");
	return 0;
}

int side_band_feed_open(struct world *w, int processes_fd, const char *store_dir,
			struct side_band_feed **out, char *why, size_t why_size, struct err *e)
{
	struct side_band_feed *f = mem_alloc(sizeof(*f));
	struct perfring_opts o = {.bytes = PERF_BYTES};
	int rc;

	f->world = w;
	f->epoll_fd = -1;
	rc = open_program(f, processes_fd, store_dir);
	snprintf(why, why_size, "%s", rc ? strerror(-rc) : "");
	w->bpf = !rc;
	w->procevents = rc ? procevents_open() : NULL;
	o.task = rc != 0;
	rc = perfring_open(&o, &f->perf, e);
	if (rc && w->bpf) {
		side_band_feed_close(f);
		return rc;
	}
	if (rc) {
		log_info("%s: processes are found in /proc alone", e->what);
		*e = (struct err){0};
	}
	w->open_ns = f->done_ns = (uint64_t)clock_boot_ns();
	*out = f;
	return 0;
}

void side_band_feed_close(struct side_band_feed *f)
{
	if (!f)
		return;
	close_program(f);
	procevents_close(f->world->procevents);
	f->world->procevents = NULL;
	if (f->perf)
		perfring_close(f->perf);
	strbuf_release(&f->bytes);
	strbuf_release(&f->carried);
	free(f->items);
	free(f->look);
	free(f);
}

bool side_band_feed_has_perf(const struct side_band_feed *f)
{
	return f->perf;
}

static void poll_perf(struct side_band_feed *f)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = f};

	for (size_t i = 0; f->perf && i < perfring_slots(f->perf); i++)
		if (perfring_fd(f->perf, i) >= 0)
			epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, perfring_fd(f->perf, i),
				  &ev); /* EEXIST is fine */
}

void side_band_feed_poll(struct side_band_feed *f, int epoll_fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = f};

	f->epoll_fd = epoll_fd;
	poll_perf(f);
	/* edge-triggered: the ring is readable all the time, only its forced wake-ups count */
	if (f->ring)
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, bpf_map__fd(f->skel->maps.events), &ev);
}

/* ---- read ---- */

static void item_add(struct side_band_feed *f, uint64_t time_ns, bool program, const void *data,
		     size_t len)
{
	mem_grow(f->items, f->n, f->cap);
	f->items[f->n++] = (struct item){time_ns, (uint32_t)f->bytes.len, (uint32_t)len, program};
	strbuf_add(&f->bytes, data, len);
	while (f->bytes.len % 8)
		strbuf_addch(&f->bytes, 0);
	if (time_ns < f->done_ns)
		f->late++;
}

static int on_program(void *ctx, void *data, size_t len)
{
	const struct maps_event *ev = data;
	struct side_band_feed *f = ctx;

	if (len < sizeof(*ev) || ev->args_len > len - sizeof(*ev))
		return 0;
	item_add(f, ev->time_ns, true, data, len);
	return 0;
}

static void on_perf(void *ctx, const void *rec, size_t len)
{
	struct side_band_feed *f = ctx;
	struct sideband_rec r;

	if (sideband_parse(rec, len, &r))
		return;
	if (r.type == SIDEBAND_LOST)
		f->lost += r.lost;
	else
		item_add(f, r.time_ns, false, rec, len);
}

/* By time; at equal times in the order of arrival, which is each source's order. */
static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void apply(struct side_band_feed *f, const struct item *it)
{
	const char *data = f->bytes.buf + it->at;
	struct sideband_rec r;

	if (it->program)
		world_event(f->world, (const void *)data, data + sizeof(struct maps_event));
	else if (!sideband_parse(data, it->len, &r))
		world_record(f->world, &r);
}

/* Records younger than T stay for the next reading; their bytes move to the other buffer. */
static void carry(struct side_band_feed *f, size_t from)
{
	size_t n = f->n - from;
	struct strbuf swap;

	strbuf_reset(&f->carried);
	for (size_t i = 0; i < n; i++) {
		struct item it = f->items[from + i];
		size_t at = f->carried.len;

		strbuf_add(&f->carried, f->bytes.buf + it.at, it.len);
		while (f->carried.len % 8)
			strbuf_addch(&f->carried, 0);
		it.at = (uint32_t)at;
		f->items[i] = it;
	}
	f->n = n;
	swap = f->bytes;
	f->bytes = f->carried;
	f->carried = swap;
}

uint64_t side_band_feed_read(struct side_band_feed *f)
{
	uint64_t t = (uint64_t)clock_boot_ns() - SIDE_BAND_MARGIN_NS;
	size_t i = 0;

	f->world->readings++;
	if (f->ring)
		ring_buffer__consume(f->ring);
	procevents_read(f->world->procevents);
	if (f->perf)
		perfring_read(f->perf, on_perf, f);
	else if (f->seeded)
		procscan_tick(&f->scan, f->world, (uint64_t)clock_boot_ns());
	f->busy = f->n;
	if (f->n) {
		qsort(f->items, f->n, sizeof(*f->items), by_time);
		while (i < f->n && f->items[i].time_ns <= t)
			apply(f, &f->items[i++]);
		carry(f, i);
	}
	if (t > f->done_ns)
		f->done_ns = t;
	return f->done_ns;
}

bool side_band_feed_is_busy(const struct side_band_feed *f)
{
	return f->busy;
}

void side_band_feed_sleep(struct side_band_feed *f)
{
	if (f->skel)
		__atomic_store_n(&f->skel->bss->asleep, 1, __ATOMIC_RELAXED);
}

int side_band_feed_urgent_fd(const struct side_band_feed *f)
{
	return f->skel ? bpf_map__fd(f->skel->maps.urgent) : -1;
}

uint64_t side_band_feed_lost(struct side_band_feed *f, uint64_t *since_ns)
{
	uint64_t lost = f->lost, now;

	f->lost = 0;
	if (f->missed_since_ns && f->missed_since_ns < *since_ns)
		*since_ns = f->missed_since_ns;
	f->missed_since_ns = 0;
	now = f->skel ? __atomic_load_n(&f->skel->bss->lost_events, __ATOMIC_RELAXED) : 0;
	lost += now - f->program_lost;
	f->program_lost = now;
	return lost;
}

uint64_t side_band_feed_late(const struct side_band_feed *f)
{
	return f->late;
}

bool side_band_feed_follow_cpus(struct side_band_feed *f, bool ask)
{
	int came = f->perf ? perfring_follow_cpus(f->perf, ask, on_perf, f) : 0;

	if (came && f->epoll_fd >= 0)
		poll_perf(f);
	return came > 0;
}

void side_band_feed_cost(struct side_band_feed *f, struct side_band_feed_cost *c)
{
	struct programs_figures programs;
	struct bpf_map *map;

	*c = (struct side_band_feed_cost){.map_bytes = f->perf ? perfring_bytes(f->perf) : 0};
	if (!f->skel)
		return;
	programs_read(f->skel->obj, &programs);
	c->bpf_ns = programs.ns;
	c->bpf_runs = programs.runs;
	if (programs.missed != f->missed && !f->missed_since_ns)
		f->missed_since_ns = f->asked_ns;
	f->lost += programs.missed - f->missed;
	f->missed = programs.missed;
	f->asked_ns = (uint64_t)clock_boot_ns();
	bpf_object__for_each_map (map, f->skel->obj) {
		uint64_t values =
			bpf_map__type(map) == BPF_MAP_TYPE_RINGBUF ? 1 : bpf_map__value_size(map);

		if (map == f->skel->maps.processes) /* with the other tables */
			continue;
		if (bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_ARRAY)
			values *= (uint64_t)libbpf_num_possible_cpus();
		c->map_bytes += values * bpf_map__max_entries(map);
	}
}

/* ---- seed ---- */

/* All processes, by the iterator. -errno without an iterator. */
static int read_tasks(const struct side_band_feed *f, struct maps_event **out, size_t *n)
{
	cleanup_fd int fd = f->iter ? bpf_iter_create(bpf_link__fd(f->iter)) : -ENOTSUP;
	struct strbuf all = STRBUF_INIT;
	char buf[16384];
	ssize_t got;

	if (fd < 0)
		return f->iter ? -errno : fd;
	while ((got = read(fd, buf, sizeof(buf))) > 0 || (got < 0 && errno == EAGAIN))
		if (got > 0)
			strbuf_add(&all, buf, (size_t)got);
	*n = all.len / sizeof(**out);
	*out = (void *)strbuf_take(&all);
	return 0;
}

/* Takes in what /proc shows and the iterator did not: everything without an iterator, else what the
 * iterator hides (for example PID 1, which the kernel lets no one inspect). */
static void seed_from_proc(struct side_band_feed *f, uint64_t time_ns)
{
	cleanup_dir DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char *end;
		unsigned long pid = strtoul(e->d_name, &end, 10);

		struct proc *p;

		if (*end || !pid)
			continue;
		p = world_proc(f->world, (uint32_t)pid);
		if (p && p->seen == f->round)
			continue;
		world_seed_proc(f->world, (uint32_t)pid, NULL, time_ns);
		p = world_proc(f->world, (uint32_t)pid);
		if (p)
			p->seen = f->round;
	}
}

static const struct maps_event *find_task(const struct maps_event *tasks, size_t n, uint32_t tgid)
{
	for (size_t i = 0; i < n; i++)
		if (tasks[i].tgid == tgid)
			return &tasks[i];
	return NULL;
}

/* Sends the processes whose maps were just read. If one has exec'ed meanwhile, its maps may be of
 * either program: send none; its own records or the next reconcile will bring them. */
static void tell_stable(struct side_band_feed *f, const struct maps_event *before, size_t n)
{
	struct maps_event *after = NULL;
	size_t n_after = 0;
	int rc = n ? read_tasks(f, &after, &n_after) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct maps_event *now =
			rc ? &before[i] : find_task(after, n_after, before[i].tgid);
		struct proc *p = world_proc(f->world, before[i].tgid);

		if (!p)
			continue;
		if (!now || now->exec_id != before[i].exec_id)
			world_drop_maps(f->world, p, f->done_ns);
		world_tell_proc(f->world, p);
		world_tell_maps(f->world, p);
	}
	free(after);
}

bool side_band_feed_is_still(struct side_band_feed *f, const struct proc *p)
{
	struct maps_event *tasks = NULL;
	const struct maps_event *now;
	size_t n = 0;
	bool still;

	if (read_tasks(f, &tasks, &n))
		return true; /* cannot be determined */
	now = find_task(tasks, n, p->tgid);
	still = now && now->start_ns == p->start_ns && now->exec_id == p->exec_id;
	free(tasks);
	return still;
}

/* Forget the processes that this round did not see. */
static void drop_unseen(struct side_band_feed *f, uint64_t time_ns)
{
	for (struct proc *p = f->world->procs, *next; p; p = next) {
		next = p->hh.next;
		if (p->seen != f->round && p->changed_ns < time_ns)
			world_forget(f->world, p, time_ns);
	}
}

void side_band_feed_seed(struct side_band_feed *f)
{
	struct maps_event *tasks = NULL;
	uint64_t now = (uint64_t)clock_boot_ns(), since = f->seeded ? now : f->done_ns;
	size_t n = 0;

	/* The first time the buffers still hold everything after done_ns. After a loss they do not:
	 * what is read now is valid from now on. */
	f->seeded = true;
	f->round++;
	read_tasks(f, &tasks, &n);
	for (size_t i = 0; i < n; i++) {
		struct proc *p = world_read_proc(f->world, tasks[i].tgid, &tasks[i], since);

		if (p)
			p->seen = f->round;
	}
	tell_stable(f, tasks, n);
	seed_from_proc(f, since);
	drop_unseen(f, now);
	free(tasks);
}

/* ---- reconcile ---- */

void side_band_feed_reconcile_look(struct side_band_feed *f)
{
	free(f->look);
	f->look = NULL;
	f->n_look = 0;
	f->look_ns = (uint64_t)clock_boot_ns();
	read_tasks(f, &f->look, &f->n_look);
}

/* Its exit has been sent; only its parent has not collected it, and no thread is left. */
static bool is_zombie(const struct proc_stat *st)
{
	return st->state == 'Z' && st->n_threads <= 1;
}

static bool in_proc(uint32_t tgid)
{
	struct proc_stat st;

	return !proc_read_stat(tgid, &st) && !is_zombie(&st);
}

/* true: it read the process's maps again, which must be sent. */
static bool reconcile_one(struct side_band_feed *f, const struct maps_event *ev)
{
	struct proc *p = world_proc(f->world, ev->tgid);
	bool read = false;

	if (p && p->changed_ns > f->look_ns) {
		p->seen = f->round;
		return false;
	}
	if (!p || p->start_ns != ev->start_ns || p->exec_id != ev->exec_id) {
		if (!in_proc(ev->tgid))
			return false;
		p = world_read_proc(f->world, ev->tgid, ev, (uint64_t)clock_boot_ns());
		read = p;
	} else {
		world_update(f->world, p, ev);
	}
	if (p)
		p->seen = f->round;
	return read;
}

void side_band_feed_reconcile_act(struct side_band_feed *f)
{
	size_t n_read = 0;

	if (!f->look)
		return;
	f->round++;
	for (size_t i = 0; i < f->n_look; i++)
		if (reconcile_one(f, &f->look[i]))
			f->look[n_read++] = f->look[i];
	tell_stable(f, f->look, n_read);
	for (struct proc *p = f->world->procs, *next; p; p = next) {
		next = p->hh.next;
		if (p->seen != f->round && p->from_ns < f->look_ns && p->changed_ns < f->look_ns &&
		    !(p->from_proc && in_proc(p->tgid)))
			world_forget(f->world, p, f->done_ns);
	}
	free(f->look);
	f->look = NULL;
}
