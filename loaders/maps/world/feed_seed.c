// SPDX-License-Identifier: Apache-2.0
/* feed_seed: all processes there are, at the start, after a loss, and every few seconds against
 * what no event said. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "loaders/lib/host/proc/proc.h"
#include "loaders/maps/world/feed_parts.h"
#include "loaders/maps/world/world.h"
#include "probes/maps.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"

/* ---- seed ---- */

/* All processes, by the iterator. -errno where there is none. */
static int read_tasks(const struct feed *f, struct maps_event **out, size_t *n)
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

/* All of /proc that is not known yet: everything where there is no iterator, and where there is one
 * what it hides (here: PID 1, which the kernel lets nobody look into). */
static void seed_from_proc(struct feed *f, uint64_t time_ns)
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

/* Tells of those whose maps were just read. One that went on to exec meanwhile: what was read may
 * be of either; nothing is better, and what comes next is told by its own records, or found by the
 * next reconcile. */
static void tell_stable(struct feed *f, const struct maps_event *before, size_t n)
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

bool feed_is_still(struct feed *f, const struct proc *p)
{
	struct maps_event *tasks = NULL;
	const struct maps_event *now;
	size_t n = 0;
	bool still;

	if (read_tasks(f, &tasks, &n))
		return true; /* nobody can say */
	now = find_task(tasks, n, p->tgid);
	still = now && now->start_ns == p->start_ns && now->exec_id == p->exec_id;
	free(tasks);
	return still;
}

/* Those not seen in this round are no more. */
static void drop_unseen(struct feed *f, uint64_t time_ns)
{
	for (struct proc *p = f->world->procs, *next; p; p = next) {
		next = p->hh.next;
		if (p->seen != f->round && p->changed_ns < time_ns)
			world_forget(f->world, p, time_ns);
	}
}

void feed_seed(struct feed *f)
{
	struct maps_event *tasks = NULL;
	uint64_t now = (uint64_t)clock_boot_ns(), since = f->seeded ? now : f->done_ns;
	size_t n = 0;

	/* The first time all that comes after done_ns is still in the buffers. After a loss it is
	 * not: what is read now holds from now on. */
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

void feed_reconcile_look(struct feed *f)
{
	free(f->look);
	f->look = NULL;
	f->n_look = 0;
	f->look_ns = (uint64_t)clock_boot_ns();
	read_tasks(f, &f->look, &f->n_look);
}

/* Nobody has waited for it yet, and no thread of it is left: it has been told as ended. */
static bool is_zombie(const struct proc_stat *st)
{
	return st->state == 'Z' && st->n_threads <= 1;
}

static bool in_proc(uint32_t tgid)
{
	struct proc_stat st;

	return !proc_read_stat(tgid, &st) && !is_zombie(&st);
}

/* true: its maps were read anew, and are to be told. */
static bool reconcile_one(struct feed *f, const struct maps_event *ev)
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

void feed_reconcile_act(struct feed *f)
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
