// SPDX-License-Identifier: Apache-2.0
/* world_seed: what /proc says of a process: at the start, and where no event said it. */
#include "loaders/maps/world/world_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "loaders/lib/host/proc/proc.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

/* /proc shows paths as we see them; a process in a chroot of our own mount namespace sees less of
 * them. `root` is what its root link says. */
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
	return world_trim_deleted(as_it_sees(path, root));
}

void world_seed_maps(struct world *w, struct proc *p, uint64_t time_ns)
{
	cleanup_free char *text = NULL;
	size_t len = 0, pos = 0;
	struct proc_map m;
	char root[4096];

	if (p->kthread || proc_read(p->tgid, "maps", PROC_FILE_MAX, &text, &len))
		return;
	read_root(p->tgid, root, sizeof(root));
	while (proc_next_map(text, len, &pos, &m)) {
		struct file_id f = {.ino = m.inode, .major = m.major, .minor = m.minor};
		cleanup_free char *path = NULL;

		if (!m.exec)
			continue;
		path = mem_alloc(m.path_len + 1);
		proc_unescape(m.path, m.path_len, path);
		world_map_put(w, p, m.start, m.end - m.start, m.offset, f, as_it_sees(path, root),
			      time_ns, false);
	}
}

/* Without the iterator: identity as far as /proc shows it. */
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

/* known: it is the same program as before; what one that is going shows no longer stays. */
static void seed_names(struct world *w, struct proc *p, bool known)
{
	cleanup_strbuf struct strbuf args = STRBUF_INIT;
	cleanup_free char *text = NULL;
	char *exe = world_exe_link(p->tgid);
	size_t len = 0;

	if (exe || !known)
		world_str_set(&p->exe, exe);
	if (!proc_read(p->tgid, "cmdline", MAPS_ARGS_MAX, &text, &len) && len)
		args_format(text, len, w->args_policy, &args);
	if (args.len || !known)
		world_str_set(&p->args, strbuf_take(&args));
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
		p = world_proc_add(w, tgid);
	p->from_proc = ev == &own;
	if (p->exec_id != ev->exec_id || !p->from_ns)
		p->from_ns = p->exec_id != ev->exec_id && p->from_ns ? time_ns : ev->start_ns;
	world_pending_clear(p);
	mapset_end(&p->maps, time_ns, 0);
	p->sure_ns = time_ns;
	world_set_changed(w, p);
	world_proc_fill(w, p, ev);
	if (!p->kthread)
		seed_names(w, p, known);
	world_seed_maps(w, p, time_ns);
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
