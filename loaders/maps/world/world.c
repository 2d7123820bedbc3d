/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an exec arrives (probes/maps.bpf.c explains the order of the events):
 * 1. The COMM record opens the exec.
 * 2. The MMAP2 records of the new image are held back.
 * 3. The program's exec event closes it: clients get the new identity and its mappings, with the
 *    time of that event.
 * Without the BPF program the COMM record does both. An exec that fails after its point of no
 * return ends the process.
 */
#include "loaders/maps/world/world.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <utlist.h>

#include "loaders/lib/host/proc/proc.h"
#include "loaders/maps/hub/hub.h"
#include "loaders/maps/publish/publish.h"
#include "loaders/maps/world/cgroups.h"
#include "loaders/maps/world/containers.h"
#include "loaders/maps/world/procevents.h"
#include "loaders/maps/world/textmove.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

static void seed_maps(struct world *w, struct proc *p, uint64_t time_ns);

#define IMAGE_KEEP_NS (60 * NSEC_PER_SEC)

static bool has_prefix(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* Names that belong to no file: image 0, except for the vDSO. */
static bool is_anonymous(const char *path)
{
	return !*path || (path[0] == '[' && strcmp(path, "[vdso]")) || has_prefix(path, "//") ||
	       has_prefix(path, "/dev/zero") || has_prefix(path, "/anon_hugepage") ||
	       has_prefix(path, "/SYSV") || has_prefix(path, "anon_inode:");
}

/* The caller frees it. */
static char *trim_deleted(const char *path)
{
	static const char suffix[] = " (deleted)";
	size_t len = strlen(path), n = sizeof(suffix) - 1;

	if (len > n && !strcmp(path + len - n, suffix))
		len -= n;
	return mem_strndup(path, len);
}

static void tell_image(struct world *w, const struct mimage *img)
{
	struct mp_image m = {.id = img->id,
			     .kind = img->kind,
			     .major = img->file.major,
			     .minor = img->file.minor,
			     .ino = img->file.ino,
			     .generation = img->file.generation,
			     .file = img->file_id};
	const char *str[] = {img->path};

	hub_emit(w->hub, MP_IMAGE, &m, str);
}

static struct mimage *image_add(struct world *w, char *key, size_t key_len, const struct file_id *f,
				char *path)
{
	struct mimage *img = mem_alloc(sizeof(*img));

	img->id = ++w->last_image;
	img->kind = strcmp(path, "[vdso]") ? MP_IMAGE_ELF : MP_IMAGE_VDSO;
	img->file = *f;
	img->path = path;
	img->fd = img->root_fd = img->index_fd = -1;
	img->key_bytes = key;
	img->key_len = key_len;
	HASH_ADD_KEYPTR(hh, w->by_file, img->key_bytes, img->key_len, img);
	HASH_ADD(hh_id, w->by_id, id, sizeof(img->id), img);
	w->stats.images++;
	publish_image_new(w->publish, img);
	return img;
}

/* `is_new`: the first time. `name` may end in " (deleted)". NULL: anonymous. */
static struct mimage *image_intern(struct world *w, const struct file_id *f, const char *name,
				   uint64_t len, bool *is_new)
{
	struct file_id vdso = {0};
	struct strbuf key = STRBUF_INIT;
	struct mimage *img = NULL;
	char *path;

	*is_new = false;
	if (is_anonymous(name))
		return NULL;
	path = trim_deleted(name);
	if (!strcmp(path, "[vdso]")) {
		if (len != w->vdso_len) { /* that of 32-bit programs: not ours to read */
			free(path);
			return NULL;
		}
		f = &vdso;
	}
	strbuf_add(&key, f, sizeof(*f));
	strbuf_addstr(&key, path);
	HASH_FIND(hh, w->by_file, key.buf, key.len, img);
	if (img) {
		free(path);
		strbuf_release(&key);
		return img;
	}
	*is_new = true;
	{
		size_t n = key.len;

		return image_add(w, strbuf_take(&key), n, f, path);
	}
}

static void image_free(struct world *w, struct mimage *img)
{
	if (w->image_gone)
		w->image_gone(w->ctx, img);
	publish_image_gone(w->publish, img);
	HASH_DELETE(hh, w->by_file, img);
	HASH_DELETE(hh_id, w->by_id, img);
	w->stats.images--;
	if (img->fd >= 0)
		close(img->fd);
	if (img->root_fd >= 0)
		close(img->root_fd);
	if (img->index_fd >= 0)
		close(img->index_fd);
	free(img->path);
	free(img->key);
	free(img->reason);
	free(img->key_bytes);
	free(img);
}

struct mimage *world_image(struct world *w, uint32_t id)
{
	struct mimage *img;

	HASH_FIND(hh_id, w->by_id, &id, sizeof(id), img);
	return img;
}

void world_sweep(struct world *w, uint64_t now_ns)
{
	struct mimage *img, *next_img;

	for (struct proc *p = w->procs; p; p = p->hh.next) {
		for (size_t i = 0; i < p->maps.n_now; i++)
			if (p->maps.now[i].image)
				((struct mimage *)p->maps.now[i].image)->marked = true;
	}
	HASH_ITER (hh, w->by_file, img, next_img) {
		if (img->marked || !img->unused_since_ns)
			img->unused_since_ns = img->marked ? 0 : now_ns;
		else if (now_ns - img->unused_since_ns > IMAGE_KEEP_NS)
			image_free(w, img);
		if (img->marked)
			img->marked = false;
	}
}

#define PENDING_MAX 4096

static char *bytes_dup(const char *data, size_t len)
{
	char *copy = mem_alloc(len + 1);

	memcpy(copy, data, len);
	return copy;
}

static const char empty_[] = "";
#define EMPTY ((char *)(uintptr_t)empty_)

/* Takes `value` (NULL: none) and frees the previous one. */
static void str_set(char **s, char *value)
{
	if (*s != EMPTY)
		free(*s);
	*s = value && *value ? value : EMPTY;
	if (value && !*value)
		free(value);
}

/* ---- processes ---- */

struct proc *world_proc(struct world *w, uint32_t tgid)
{
	struct proc *p;

	HASH_FIND(hh, w->procs, &tgid, sizeof(tgid), p);
	return p;
}

static void pending_clear(struct proc *p)
{
	for (size_t i = 0; i < p->n_pending; i++)
		free(p->pending[i].name);
	free(p->pending);
	p->pending = NULL;
	p->n_pending = p->cap_pending = 0;
	p->execing = false;
}

void world_set_changed(struct world *w, struct proc *p)
{
	if (p->changed)
		return;
	p->changed = true;
	DL_APPEND(w->changed, p);
}

static struct lateargs_key args_key(const struct proc *p)
{
	return (struct lateargs_key){
		.start_ns = p->start_ns, .tgid = p->tgid, .exec_id = p->exec_id};
}

/* The program that it ran is over: a client may still ask for its arguments. */
static void args_end(struct world *w, struct proc *p)
{
	struct lateargs_key key = args_key(p);

	if (p->raw)
		lateargs_keep(&w->lateargs, &key, p->raw, p->raw_len, (uint64_t)clock_boot_ns());
	p->raw = NULL;
}

static void args_make(struct world *w, struct proc *p)
{
	struct strbuf out = STRBUF_INIT;

	if (!p->raw)
		return;
	args_format(p->raw, p->raw_len, w->args_policy, &out);
	str_set(&p->args, strbuf_take(&out));
	free(p->raw);
	p->raw = NULL;
}

static void proc_free(struct world *w, struct proc *p, uint64_t time_ns)
{
	publish_proc_gone(w->publish, p, time_ns);
	if (p->changed)
		DL_DELETE(w->changed, p);
	HASH_DEL(w->procs, p);
	w->stats.procs--;
	pending_clear(p);
	args_end(w, p);
	mapset_release(&p->maps);
	str_set(&p->exe, NULL);
	str_set(&p->args, NULL);
	str_set(&p->cgroup, NULL);
	free(p);
}

static struct proc *proc_add(struct world *w, uint32_t tgid)
{
	struct proc *p = mem_alloc(sizeof(*p));

	p->tgid = tgid;
	p->exe = p->args = p->cgroup = EMPTY;
	HASH_ADD(hh, w->procs, tgid, sizeof(p->tgid), p);
	w->stats.procs++;
	return p;
}

/* `from`: whose mappings it has inherited, NULL: they are sent one by one. */
static void tell_proc(struct world *w, const struct proc *p, const struct proc *from)
{
	struct mp_process m = {.time_ns = p->from_ns,
			       .start_ns = p->start_ns,
			       .cgroup_id = p->cgroup_id,
			       .cgroup1_id = p->cgroup1_id,
			       .tgid = p->tgid,
			       .exec_id = p->exec_id,
			       .ppid = p->ppid,
			       .uid = p->uid,
			       .nspid = p->nspid,
			       .flags = p->raw ? MP_PROCESS_ARGS_LATER : 0};
	char comm[MAPS_COMM_LEN + 1] = {0};
	const char *str[] = {comm, p->exe, p->args, p->cgroup};

	if (from) {
		m.from_tgid = from->tgid;
		m.from_start_ns = from->start_ns;
		m.from_exec_id = from->exec_id;
	}
	memcpy(comm, p->comm, MAPS_COMM_LEN);
	hub_emit(w->hub, MP_PROCESS, &m, str);
}

void world_tell_proc(struct world *w, const struct proc *p)
{
	tell_proc(w, p, NULL);
}

static void tell_map(struct world *w, const struct proc *p, const struct mapping *m)
{
	const struct mimage *img = m->image;
	struct mp_map out = {.time_ns = m->from_ns,
			     .start_ns = p->start_ns,
			     .start = m->start,
			     .end = m->end,
			     .offset = m->offset,
			     .tgid = p->tgid,
			     .exec_id = p->exec_id,
			     .image = img ? img->id : 0};

	hub_emit(w->hub, MP_MAP, &out, NULL);
}

void world_tell_maps(struct world *w, const struct proc *p)
{
	for (size_t i = 0; i < p->maps.n_now; i++)
		tell_map(w, p, &p->maps.now[i]);
}

void world_tell_all(struct world *w)
{
	for (struct mimage *img = w->by_file; img; img = img->hh.next)
		tell_image(w, img);
	for (struct proc *p = w->procs; p; p = p->hh.next) {
		args_make(w, p); /* who runs for so long is asked for sooner or later */
		world_tell_proc(w, p);
		world_tell_maps(w, p);
	}
}

static void tell_args(struct world *w, const struct mp_want_args *want, const char *text)
{
	struct mp_args m = {
		.start_ns = want->start_ns, .tgid = want->tgid, .exec_id = want->exec_id};
	const char *str[] = {text};

	hub_emit(w->hub, MP_ARGS, &m, str);
}

void world_tell_args(struct world *w, const struct mp_want_args *want)
{
	const struct lateargs_key key = {
		.start_ns = want->start_ns, .tgid = want->tgid, .exec_id = want->exec_id};
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	struct proc *p = world_proc(w, want->tgid);
	const char *raw;
	size_t len = 0;

	if (p && p->start_ns == want->start_ns && p->exec_id == want->exec_id) {
		args_make(w, p);
		tell_args(w, want, p->args);
		return;
	}
	raw = lateargs_find(&w->lateargs, &key, &len);
	if (!raw)
		return;
	args_format(raw, len, w->args_policy, &out);
	tell_args(w, want, strbuf_str(&out));
}

static void tell_exit(struct world *w, const struct proc *p, uint64_t time_ns, uint32_t code,
		      uint32_t flags, const struct maps_sender *by)
{
	struct mp_exit m = {.time_ns = time_ns,
			    .start_ns = p->start_ns,
			    .tgid = p->tgid,
			    .exit_code = code,
			    .flags = flags};

	if (by) {
		m.signal = by->signal;
		m.signal_ns = by->time_ns;
		m.from_tgid = by->tgid;
		memcpy(m.from_comm, by->comm, sizeof(m.from_comm));
	}
	w->ends++;
	hub_emit(w->hub, MP_EXIT, &m, NULL);
}

void world_forget(struct world *w, struct proc *p, uint64_t time_ns)
{
	tell_exit(w, p, time_ns, 0, MP_EXIT_UNKNOWN, NULL);
	proc_free(w, p, time_ns);
}

/* The image whose text was there, and is there still, as a copy (textmove.h). NULL: none. */
static struct mimage *copied_text(const struct proc *p, uint64_t start, uint64_t end,
				  uint64_t *offset)
{
	const struct mapping *was = mapset_find(&p->maps, start, MAPSET_NEVER - 1);
	cleanup_free char *text = NULL;
	struct proc_map file;
	size_t len = 0;

	if (!was || !was->image || was->end < end ||
	    proc_read(p->tgid, "maps", PROC_FILE_MAX, &text, &len) ||
	    !textmove_find(text, len, start, &file) ||
	    file.offset != was->offset + (start - was->start) ||
	    file.inode != ((struct mimage *)was->image)->file.ino)
		return NULL;
	*offset = file.offset;
	return was->image;
}

/* [start, start + len) maps that file, which has the process's root. */
static struct mimage *map_put(struct world *w, struct proc *p, uint64_t start, uint64_t len,
			      uint64_t pgoff, struct file_id f, const char *name, uint64_t time_ns,
			      bool tell)
{
	struct mapping m = {
		.start = start, .end = start + len, .offset = pgoff, .from_ns = time_ns};
	struct mimage *img;
	bool is_new;

	f.root = p->root;
	if (tell && !f.generation && f.ino && w->born && name[0] == '/' && !is_anonymous(name))
		f.generation = w->born(w->ctx, p, name, &f, time_ns);
	img = image_intern(w, &f, name, len, &is_new);
	if (img && img->kind == MP_IMAGE_VDSO)
		m.offset = 0;
	if (!img && tell && is_anonymous(name))
		img = copied_text(p, m.start, m.end, &m.offset);
	if (is_new)
		img->since_ns = time_ns;
	if (is_new && w->image_new)
		w->image_new(w->ctx, img, p, m.start, m.end);
	if (is_new)
		tell_image(w, img);
	m.image = img;
	mapset_put(&p->maps, m.start, m.end, m.offset, img, time_ns, 0);
	world_set_changed(w, p);
	if (tell)
		tell_map(w, p, &m);
	return img;
}

static void proc_fill(struct world *w, struct proc *p, const struct maps_event *ev)
{
	p->start_ns = ev->start_ns;
	p->exec_id = ev->exec_id;
	p->ppid = ev->ppid;
	p->uid = ev->uid;
	p->nspid = ev->nspid;
	p->root = (struct root_id){.ino = ev->root_ino, .dev = ev->root_dev, .mntns = ev->mntns};
	p->kthread = ev->flags & MAPS_F_KTHREAD;
	memcpy(p->comm, ev->comm, sizeof(p->comm));
	if (ev->cgroup_id != p->cgroup_id || ev->cgroup1_id != p->cgroup1_id || !*p->cgroup) {
		p->cgroup_id = ev->cgroup_id;
		p->cgroup1_id = ev->cgroup1_id;
		str_set(&p->cgroup,
			mem_strdup(cgroups_path(w->cgroups, p->cgroup_id, p->cgroup1_id, p->tgid)));
	}
}

static bool update_cgroup(struct world *w, struct proc *p, const struct maps_event *ev)
{
	if (ev->cgroup_id == p->cgroup_id && ev->cgroup1_id == p->cgroup1_id)
		return false;
	p->cgroup_id = ev->cgroup_id;
	p->cgroup1_id = ev->cgroup1_id;
	str_set(&p->cgroup,
		mem_strdup(cgroups_path(w->cgroups, p->cgroup_id, p->cgroup1_id, p->tgid)));
	return true;
}

static bool update_user(struct proc *p, const struct maps_event *ev)
{
	bool other = p->uid != ev->uid;

	p->uid = ev->uid;
	return other;
}

void world_update(struct world *w, struct proc *p, const struct maps_event *ev)
{
	bool moved = update_cgroup(w, p, ev);

	if (update_user(p, ev) || moved)
		world_tell_proc(w, p);
}

static void on_fork(struct world *w, const struct maps_event *ev)
{
	struct proc *p = world_proc(w, ev->tgid), *from;

	if (p && p->start_ns == ev->start_ns)
		return; /* the seed has read it already */
	if (p)
		world_forget(w, p, ev->time_ns);
	p = proc_add(w, ev->tgid);
	from = world_proc(w, ev->from_tgid);
	if (from && from->cgroup_id == ev->cgroup_id && from->cgroup1_id == ev->cgroup1_id) {
		p->cgroup_id = from->cgroup_id;
		p->cgroup1_id = from->cgroup1_id;
		str_set(&p->cgroup, mem_strdup(from->cgroup));
	}
	proc_fill(w, p, ev);
	p->from_ns = p->changed_ns = ev->time_ns;
	if (from && !p->kthread) {
		str_set(&p->exe, mem_strdup(from->exe));
		str_set(&p->args, mem_strdup(from->args));
		if (from->raw) {
			p->raw = bytes_dup(from->raw, from->raw_len);
			p->raw_len = from->raw_len;
		}
		mapset_copy(&p->maps, &from->maps, ev->time_ns);
	}
	world_set_changed(w, p);
	tell_proc(w, p, p->maps.n_now ? from : NULL);
}

/* The arguments; from /proc if the program could not read them. */
static void args_take(struct world *w, struct proc *p, const struct maps_event *ev,
		      const char *args)
{
	char *text = NULL;
	size_t len = 0;

	if (ev->args_len) {
		text = bytes_dup(args, ev->args_len);
		len = ev->args_len;
	} else if (proc_read(ev->tgid, "cmdline", MAPS_ARGS_MAX, &text, &len) || !len) {
		free(text);
		text = NULL;
	}
	str_set(&p->args, NULL);
	p->raw = text;
	p->raw_len = len;
	if (w->args_at_once)
		args_make(w, p);
}

/* The first file that is mapped; if no record came, what /proc says. */
static char *exe_of(const struct proc *p)
{
	for (size_t i = 0; i < p->n_pending; i++)
		if (!is_anonymous(p->pending[i].name) && strcmp(p->pending[i].name, "[vdso]"))
			return trim_deleted(p->pending[i].name);
	return world_exe_link(p->tgid);
}

static void on_exec(struct world *w, const struct maps_event *ev, const char *args)
{
	struct proc *p = world_proc(w, ev->tgid);

	if (p && p->start_ns != ev->start_ns) {
		world_forget(w, p, ev->time_ns);
		p = NULL;
	}
	if (!p) { /* its fork was lost, or it was cloned before we watched */
		p = proc_add(w, ev->tgid);
		p->start_ns = ev->start_ns;
	}
	args_end(w, p);
	proc_fill(w, p, ev);
	p->from_ns = p->changed_ns = ev->time_ns;
	args_take(w, p, ev, args);
	str_set(&p->exe, exe_of(p));
	mapset_end(&p->maps, ev->time_ns, 0);
	world_set_changed(w, p);
	containers_read(w->containers, p->cgroup);
	containers_tell(w->containers, w->hub, false);
	world_tell_proc(w, p);
	for (size_t i = 0; i < p->n_pending; i++) {
		const struct pending_map *m = &p->pending[i];

		map_put(w, p, m->addr, m->len, m->pgoff, m->file, m->name, ev->time_ns, true);
	}
	/* the records were lost, or went with their CPU: an exec always maps something */
	if (!p->n_pending) {
		seed_maps(w, p, ev->time_ns);
		if (w->is_still && !w->is_still(w->ctx, p))
			world_drop_maps(w, p, ev->time_ns); /* this may be the next program's */
		world_tell_maps(w, p);
	}
	pending_clear(p);
}

static void on_gone(struct world *w, uint32_t tgid, uint64_t start_ns, uint64_t time_ns,
		    uint32_t code, uint32_t flags, const struct maps_sender *by)
{
	struct proc *p = world_proc(w, tgid);

	if (!p || (start_ns && p->start_ns != start_ns))
		return;
	tell_exit(w, p, time_ns, code, flags, by);
	proc_free(w, p, time_ns);
}

/* The user at the end decides whether it may be shown. */
static void on_last_look(struct world *w, const struct maps_event *ev)
{
	struct proc *p = world_proc(w, ev->tgid);

	if (p && p->start_ns == ev->start_ns && update_user(p, ev))
		world_tell_proc(w, p);
}

static void on_exit_event(struct world *w, const struct maps_event *ev, const char *more)
{
	struct maps_sender by;
	bool sent = ev->args_len == sizeof(by);

	if (sent)
		memcpy(&by, more, sizeof(by));
	on_last_look(w, ev);
	on_gone(w, ev->tgid, ev->start_ns, ev->time_ns, ev->exit_code,
		ev->flags & MAPS_F_OOM ? MP_EXIT_OOM : 0, sent ? &by : NULL);
}

static void on_used(struct world *w, const struct maps_event *ev, const char *more)
{
	struct mp_used m = {.time_ns = ev->time_ns, .start_ns = ev->start_ns, .tgid = ev->tgid};
	struct maps_used u;

	if (ev->args_len != sizeof(u))
		return;
	memcpy(&u, more, sizeof(u));
	m.cpu_ns = u.cpu_ns;
	m.user_ns = u.user_ns;
	m.system_ns = u.system_ns;
	m.runq_ns = u.runq_ns;
	m.read_bytes = u.read_bytes;
	m.write_bytes = u.write_bytes;
	m.minflt = u.minflt;
	m.majflt = u.majflt;
	m.maxrss_bytes = u.maxrss_pages * (uint64_t)sysconf(_SC_PAGESIZE);
	if ((u.flags & (MAPS_USED_SINGLE | MAPS_USED_RUNQ)) == (MAPS_USED_SINGLE | MAPS_USED_RUNQ))
		m.flags |= MP_USED_RUNQ;
	if (u.flags & MAPS_USED_IO)
		m.flags |= MP_USED_IO;
	hub_emit(w->hub, MP_USED, &m, NULL);
}

void world_event(struct world *w, const struct maps_event *ev, const char *args)
{
	switch (ev->type) {
	case MAPS_EV_FORK:
		on_fork(w, ev);
		break;
	case MAPS_EV_EXEC:
		on_exec(w, ev, args);
		break;
	case MAPS_EV_EXIT:
		on_exit_event(w, ev, args);
		break;
	case MAPS_EV_USED:
		on_used(w, ev, args);
		break;
	default:
		break;
	}
}

static void on_mmap(struct world *w, const struct sideband_rec *r)
{
	struct proc *p = world_proc(w, r->pid);
	struct file_id f = {0};

	if (!p || !(r->prot & PROT_EXEC))
		return;
	f.major = r->major;
	f.minor = r->minor;
	f.ino = r->ino;
	f.generation = r->ino_generation;
	p->changed_ns = r->time_ns;
	if (!p->execing || p->n_pending >= PENDING_MAX) {
		map_put(w, p, r->addr, r->len, r->pgoff, f, r->name, r->time_ns, true);
		return;
	}
	mem_grow(p->pending, p->n_pending, p->cap_pending);
	p->pending[p->n_pending++] =
		(struct pending_map){r->addr, r->len, r->pgoff, f, mem_strdup(r->name)};
}

static void on_comm(struct world *w, const struct sideband_rec *r)
{
	struct proc *p = world_proc(w, r->pid);

	if (!p)
		return;
	if (r->exec) {
		pending_clear(p);
		p->execing = true;
		p->execing_ns = r->time_ns;
		if (!w->bpf) {
			struct maps_event ev = {.time_ns = r->time_ns,
						.start_ns = p->start_ns,
						.tgid = p->tgid,
						.ppid = p->ppid,
						.uid = p->uid,
						.nspid = p->nspid,
						.cgroup_id = p->cgroup_id,
						.root_ino = p->root.ino,
						.root_dev = p->root.dev,
						.mntns = p->root.mntns};

			memcpy(ev.comm, r->name, strnlen(r->name, sizeof(ev.comm)));
			on_exec(w, &ev, NULL);
		}
	} else if (r->pid == r->tid) {
		memset(p->comm, 0, sizeof(p->comm));
		memcpy(p->comm, r->name, strnlen(r->name, sizeof(p->comm) - 1));
		world_tell_proc(w, p);
	}
}

/* The record lacks the exit code; the process connector may have it. */
static void on_exit_record(struct world *w, const struct sideband_rec *r)
{
	uint32_t code = 0;
	bool known = procevents_take(w->procevents, r->pid, &code);

	on_gone(w, r->pid, 0, r->time_ns, code, known ? 0 : MP_EXIT_UNKNOWN, NULL);
}

void world_record(struct world *w, const struct sideband_rec *r)
{
	switch (r->type) {
	case SIDEBAND_MMAP:
		on_mmap(w, r);
		break;
	case SIDEBAND_COMM:
		on_comm(w, r);
		break;
	case SIDEBAND_CGROUP:
		cgroups_learn(w->cgroups, r->cgroup_id, r->name);
		break;
	case SIDEBAND_FORK:
		if (!w->bpf && r->pid == r->tid && !world_proc(w, r->pid))
			world_seed_proc(w, r->pid, NULL, r->time_ns);
		break;
	case SIDEBAND_EXIT:
		if (!w->bpf && r->pid == r->tid)
			on_exit_record(w, r);
		break;
	default:
		break;
	}
}

void world_release(struct world *w)
{
	struct proc *p, *next;
	struct mimage *img, *next_img;

	HASH_ITER (hh, w->procs, p, next)
		proc_free(w, p, 0);
	lateargs_release(&w->lateargs);
	HASH_ITER (hh, w->by_file, img, next_img)
		image_free(w, img);
}

/* /proc shows paths as we see them; a process in a chroot of our mount namespace sees shorter ones.
 * `root` is its root link. */
static const char *as_it_sees(const char *path, const char *root)
{
	size_t n = strlen(root);

	return n > 1 && !strncmp(path, root, n) && path[n] == '/' ? path + n : path;
}

static void read_root(uint32_t tgid, char *root, size_t size)
{
	if (proc_readlink(tgid, "root", root, size))
		snprintf(root, size, "/");
}

char *world_exe_link(uint32_t tgid)
{
	char path[4096], root[4096];

	if (proc_readlink(tgid, "exe", path, sizeof(path)))
		return NULL;
	read_root(tgid, root, sizeof(root));
	return trim_deleted(as_it_sees(path, root));
}

static void seed_maps(struct world *w, struct proc *p, uint64_t time_ns)
{
	cleanup_free char *text = NULL;
	size_t len = 0, pos = 0, looks = 0;
	struct proc_map m, file;
	uint64_t end = 0;
	char root[4096];

	if (p->kthread || proc_read(p->tgid, "maps", PROC_FILE_MAX, &text, &len))
		return;
	read_root(p->tgid, root, sizeof(root));
	for (; proc_next_map(text, len, &pos, &m); end = m.end) {
		struct file_id f;
		cleanup_free char *path = NULL;

		if (!m.exec)
			continue;
		if (!m.path_len && m.start == end && looks++ < TEXTMOVE_LOOKS &&
		    textmove_find(text, len, m.start, &file)) {
			file.start = m.start;
			file.end = m.end;
			m = file;
		}
		f = (struct file_id){.ino = m.inode, .major = m.major, .minor = m.minor};
		path = mem_alloc(m.path_len + 1);
		proc_unescape(m.path, m.path_len, path);
		map_put(w, p, m.start, m.end - m.start, m.offset, f, as_it_sees(path, root),
			time_ns, false);
	}
}

/* Without the iterator: the identity from /proc. */
static int identity_from_proc(uint32_t tgid, struct maps_event *ev)
{
	struct proc_status status;
	struct proc_stat st;
	struct stat root;
	char path[64];
	int rc = proc_read_stat(tgid, &st);

	if (rc)
		return rc;
	*ev = (struct maps_event){.tgid = tgid,
				  .start_ns = proc_ticks_ns(st.start_ticks),
				  .ppid = st.ppid,
				  .flags = st.flags & PROC_PF_KTHREAD ? MAPS_F_KTHREAD : 0,
				  .nspid = tgid};
	memcpy(ev->comm, st.comm, strnlen(st.comm, sizeof(ev->comm)));
	if (!proc_read_status(tgid, &status)) {
		ev->uid = status.euid;
		ev->nspid = status.nspid;
	}
	snprintf(path, sizeof(path), "/proc/%u/root/.", tgid);
	if (!stat(path, &root)) {
		ev->root_ino = root.st_ino;
		ev->root_dev = major(root.st_dev) << 20 | minor(root.st_dev);
	}
	snprintf(path, sizeof(path), "/proc/%u/ns/mnt", tgid);
	if (!stat(path, &root))
		ev->mntns = (uint32_t)root.st_ino;
	return 0;
}

/* `known`: it is the same program as before; if it is exiting and /proc shows nothing any more,
 * keep what we have. */
static void seed_names(struct world *w, struct proc *p, bool known)
{
	cleanup_strbuf struct strbuf args = STRBUF_INIT;
	cleanup_free char *text = NULL;
	char *exe = world_exe_link(p->tgid);
	size_t len = 0;

	if (exe || !known)
		str_set(&p->exe, exe);
	if (!proc_read(p->tgid, "cmdline", MAPS_ARGS_MAX, &text, &len) && len)
		args_format(text, len, w->args_policy, &args);
	if (!args.len && known)
		return;
	free(p->raw);
	p->raw = NULL;
	str_set(&p->args, strbuf_take(&args));
}

struct proc *world_read_proc(struct world *w, uint32_t tgid, const struct maps_event *ev,
			     uint64_t time_ns)
{
	struct proc *p = world_proc(w, tgid);
	struct maps_event own;
	bool known;

	if (!ev) {
		if (identity_from_proc(tgid, &own))
			return NULL;
		ev = &own;
	}
	if (p && p->start_ns != ev->start_ns) {
		world_forget(w, p, time_ns);
		p = NULL;
	}
	known = p && p->exec_id == ev->exec_id;
	if (!p)
		p = proc_add(w, tgid);
	p->from_proc = ev == &own;
	if (p->exec_id != ev->exec_id || !p->from_ns)
		p->from_ns = p->exec_id != ev->exec_id && p->from_ns ? time_ns : ev->start_ns;
	pending_clear(p);
	mapset_end(&p->maps, time_ns, 0);
	p->sure_ns = time_ns;
	world_set_changed(w, p);
	proc_fill(w, p, ev);
	if (!p->kthread)
		seed_names(w, p, known);
	seed_maps(w, p, time_ns);
	return p;
}

void world_drop_maps(struct world *w, struct proc *p, uint64_t time_ns)
{
	mapset_end(&p->maps, time_ns, 0);
	world_set_changed(w, p);
}

void world_seed_proc(struct world *w, uint32_t tgid, const struct maps_event *ev, uint64_t time_ns)
{
	struct proc *p = world_read_proc(w, tgid, ev, time_ns);

	if (!p)
		return;
	world_tell_proc(w, p);
	world_tell_maps(w, p);
}

void world_init(struct world *w)
{
	struct maps_event own;
	cleanup_free char *text = NULL;
	size_t len = 0, pos = 0;
	struct proc_map m;

	if (!identity_from_proc((uint32_t)getpid(), &own))
		w->own_root = (struct root_id){
			.ino = own.root_ino, .dev = own.root_dev, .mntns = own.mntns};
	if (proc_read((uint32_t)getpid(), "maps", PROC_FILE_MAX, &text, &len))
		return;
	while (proc_next_map(text, len, &pos, &m))
		if (m.path_len == 6 && !memcmp(m.path, "[vdso]", 6))
			w->vdso_len = m.end - m.start;
}
