/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming_process: the store's rows of processes. A row is written again whenever hostmaps knows
 * more of the process (its serial grows) or its container gets a name. A process of sonde is a
 * program named sonde, sonded or sonde-*, outside of containers (or in ours), that is in our folder
 * or in that of an installation with us, is our parent, or is a child of one of these. So queries
 * of the store count as sonde's too.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/host/names/private.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define UNKNOWN_MAX 4096

int naming_process_init(struct naming *n)
{
	char exe[PATH_MAX];
	char *slash;

	if (!proc_readlink((uint32_t)getpid(), "exe", exe, sizeof(exe)) &&
	    (slash = strrchr(exe, '/'))) {
		*slash = 0;
		snprintf(n->self_dir, sizeof(n->self_dir), "%.*s", (int)sizeof(n->self_dir) - 1,
			 exe);
	}
	proc_read_cgroup((uint32_t)getpid(), n->self_cgroup, sizeof(n->self_cgroup));
	n->self_tgid = (uint32_t)getpid();
	idmap_set(&n->selves, n->self_tgid, 1);
	return 0;
}

void naming_process_forget(struct naming *n)
{
	idmap_clear(&n->unknown);
}

void naming_process_release(struct naming *n)
{
	naming_containers_drop(n);
	idmap_release(&n->unknown);
	idmap_release(&n->selves);
}

/* ---- processes ---- */

static bool is_sonde_name(const char *name)
{
	return !strcmp(name, "sonde") || !strcmp(name, "sonded") || !strncmp(name, "sonde-", 6);
}

bool naming_in_our_folder(const char *ours, const char *exe, size_t len)
{
	static const char *const loaders[] = {"/libexec/sonde", "/lib/sonde"}, *const programs[] = {
										       "/bin",
										       "/sbin"};
	size_t n = strlen(ours);

	if (n && len == n && !strncmp(exe, ours, n))
		return true;
	for (int i = 0; i < 4; i++) {
		size_t tail = strlen(loaders[i / 2]), more = strlen(programs[i % 2]),
		       prefix = n - tail;

		if (n >= tail && !strcmp(ours + prefix, loaders[i / 2]) && len == prefix + more &&
		    !strncmp(exe, ours, prefix) && !strncmp(exe + prefix, programs[i % 2], more))
			return true;
	}
	return false;
}

static bool is_self(struct naming *n, const struct hostmaps_process *p, const char *cgroup,
		    bool contained)
{
	const char *slash = strrchr(p->exe, '/'), *name = slash     ? slash + 1 :
							  p->exe[0] ? p->exe :
								      p->comm;
	bool ours;

	if (p->tgid == n->self_tgid)
		return true;
	if (!is_sonde_name(name) || (contained && strcmp(cgroup, n->self_cgroup)))
		return false;
	ours = slash && naming_in_our_folder(n->self_dir, p->exe, (size_t)(slash - p->exe));
	ours |= p->tgid == (uint32_t)getppid() || idmap_get(&n->selves, p->ppid, NULL);
	if (ours)
		idmap_set(&n->selves, p->tgid, 1);
	return ours;
}

enum store_end_how naming_end(const struct hostmaps_process *p, uint32_t *status)
{
	bool by_signal = WIFSIGNALED(p->status);

	*status = (uint32_t)(by_signal ? WTERMSIG(p->status) : WEXITSTATUS(p->status));
	switch (p->end) {
	case HOSTMAPS_ENDED:
		return by_signal ? STORE_END_SIGNAL : STORE_END_EXIT;
	case HOSTMAPS_OOM:
		return STORE_END_OOM;
	case HOSTMAPS_EXECED:
		return STORE_END_EXEC;
	default:
		return STORE_END_UNKNOWN;
	}
}

static void set_end(const struct naming *n, const struct hostmaps_process *p,
		    struct store_process *s)
{
	if (!p->end)
		return;
	s->end_ns = (int64_t)p->to_ns + n->boot_offset_ns;
	s->how = naming_end(p, &s->status);
}

bool naming_is_self(struct naming *n, const struct hostmaps_process *p)
{
	char by_id[PATH_MAX];
	const char *cgroup = naming_cgroup(p, 0, by_id);

	return is_self(n, p, cgroup,
		       naming_container_entry(n, cgroup, p->end ? NULL : p)->path != NULL);
}

bool naming_has(const struct hostmaps_process *p)
{
	const struct process_note *note = p->user;

	return note && note->store_process;
}

void naming_process_learnt(void *ctx, struct hostmaps_process *p)
{
	struct naming *n = ctx;
	const struct process_note *note = p->user;

	naming_epoch(n);
	if (naming_has(p) && note->epoch == n->epoch)
		naming_process(n, p, NULL);
}

uint32_t naming_row(struct naming *n, struct hostmaps_process *p)
{
	naming_epoch(n);
	return naming_process(n, p, NULL);
}

static uint32_t process_known(struct naming *n, struct hostmaps_process *p, const struct runtime *r,
			      uint64_t cgroup_id)
{
	char by_id[PATH_MAX];
	struct container_entry *c;
	struct store_process s = {.pid = p->tgid,
				  .ppid = p->ppid,
				  .uid = p->uid,
				  .exec_id = p->exec_id,
				  .start_ns = (int64_t)p->start_ns + n->boot_offset_ns,
				  .start_ticks = p->start_ns,
				  .comm = p->comm,
				  .exe = p->exe,
				  .args = p->args,
				  .cgroup = naming_cgroup(p, cgroup_id, by_id),
				  .lang = r->lang,
				  .runtime = r->version,
				  .linking = r->linking,
				  .libc = r->libc};

	hostmaps_want_args(n->hm, p);
	set_end(n, p, &s);
	c = naming_container_entry(n, s.cgroup, p->end ? NULL : p);
	s.unit = c->ref.unit;
	s.container = naming_container_row(n, c, p);
	s.self = is_self(n, p, s.cgroup, c->path != NULL);
	return store_process(n->w, &s);
}

/* An unknown process: use what the sample says, and /proc if it is still the same process. */
static uint32_t process_unknown(struct naming *n, const struct stack_event *ev)
{
	uint64_t key = hash_u64(hash_u64(hash_u64(HASH_SEED, ev->tgid), ev->start_ns), ev->exec_id),
		 id;
	uint64_t tick = proc_ticks_ns(1);
	char comm[64] = "", cgroup[PATH_MAX] = "";
	struct store_process s = {.pid = ev->tgid,
				  .exec_id = ev->exec_id,
				  .start_ticks = ev->start_ns,
				  .comm = comm,
				  .start_ns = (int64_t)ev->start_ns + n->boot_offset_ns,
				  .exe = "",
				  .args = "",
				  .cgroup = cgroup};
	struct container_entry *c;
	struct proc_status status;
	struct proc_stat st;

	if (idmap_get(&n->unknown, key, &id))
		return (uint32_t)id;
	snprintf(comm, sizeof(comm), "%.*s", STACK_COMM_LEN, ev->thread);
	if (!proc_read_stat(ev->tgid, &st) &&
	    proc_ticks_ns(st.start_ticks) / tick == ev->start_ns / tick) {
		snprintf(comm, sizeof(comm), "%s", st.comm);
		s.ppid = st.ppid;
		if (!proc_read_status(ev->tgid, &status))
			s.uid = status.uid;
		proc_read_cgroup(ev->tgid, cgroup, sizeof(cgroup));
	} else if (ev->cgroup_id) {
		container_cgroup_path(ev->cgroup_id, 0, cgroup, sizeof(cgroup));
	}
	c = naming_container_entry(n, cgroup, NULL);
	s.unit = c->ref.unit;
	s.container = naming_container_row(n, c, NULL);
	id = store_process(n->w, &s);
	if (n->unknown.n >= UNKNOWN_MAX)
		idmap_clear(&n->unknown);
	idmap_set(&n->unknown, key, id);
	return (uint32_t)id;
}

/* It begins with the first of them: that determines its container's instance. */
static uint32_t brief_store(struct naming *n, const char *cgroup, const char *comm,
			    const struct hostmaps_process *p, const struct stack_event *ev)
{
	struct container_entry *c = naming_container_entry(n, cgroup, NULL);
	struct store_process s = {.comm = comm,
				  .exe = "",
				  .args = NAMING_BRIEF,
				  .cgroup = cgroup,
				  .unit = c->ref.unit,
				  .start_ns = (int64_t)ev->start_ns + n->boot_offset_ns,
				  .container = naming_container_row(n, c, p),
				  .self = p && naming_is_self(n, p)};
	uint64_t hash = hash_bytes(hash_u64(HASH_SEED, s.self), cgroup, strlen(cgroup) + 1);

	s.start_ticks = hash_u64(hash_bytes(hash, comm, strlen(comm)), c->began_ns) >>
			1; /* SQLite's numbers are signed */
	return store_process(n->w, &s);
}

static const char *brief_cgroup(const struct hostmaps_process *p, const struct stack_event *ev,
				char buf[PATH_MAX])
{
	if (p)
		return naming_cgroup(p, ev->cgroup_id, buf);
	return ev->cgroup_id && !container_cgroup_path(ev->cgroup_id, 0, buf, PATH_MAX) ? buf : "";
}

static uint32_t brief_row(struct naming *n, struct hostmaps_process *p,
			  const struct stack_event *ev)
{
	char by_id[PATH_MAX], comm[64];
	const char *cgroup = brief_cgroup(p, ev, by_id);
	uint64_t key = hash_bytes(hash_u64(hash_u64(HASH_SEED, n->containers_serial),
					   p && naming_is_self(n, p)),
				  cgroup, strlen(cgroup) + 1),
		 id;

	snprintf(comm, sizeof(comm), "%.*s", p ? (int)sizeof(comm) - 1 : STACK_COMM_LEN,
		 p ? p->comm : ev->thread);
	key = hash_bytes(key, comm, strlen(comm));
	if (idmap_get(&n->unknown, key, &id))
		return (uint32_t)id;
	id = brief_store(n, cgroup, comm, p, ev);
	if (n->unknown.n >= UNKNOWN_MAX)
		idmap_clear(&n->unknown);
	idmap_set(&n->unknown, key, id);
	return (uint32_t)id;
}

uint32_t naming_stranger(struct naming *n, const struct stack_event *ev)
{
	naming_epoch(n);
	return naming_excludes(n, NULL) ? naming_excluded_process(n) : naming_process(n, NULL, ev);
}

void naming_brief(struct naming *n, const struct stack_event *ev, struct naming_result *out)
{
	struct hostmaps_process *p = hostmaps_process(n->hm, ev->tgid, ev->start_ns, ev->exec_id);

	naming_epoch(n);
	if (naming_excludes(n, p))
		naming_excluded_stack(n, out);
	else
		*out = (struct naming_result){.exe = "", .process = brief_row(n, p, ev)};
}

uint32_t naming_process(struct naming *n, struct hostmaps_process *p, const struct stack_event *ev)
{
	struct process_note *note;

	if (!p) {
		n->stat.unknown_process++;
		return process_unknown(n, ev);
	}
	if (naming_excludes(n, p))
		return naming_excluded_process(n);
	note = p->user;
	if (!note)
		note = p->user = mem_alloc(sizeof(*note));
	if (!note->store_process || note->epoch != n->epoch || note->serial != p->serial ||
	    note->containers != n->containers_serial) {
		if (hostmaps_has_mappings(n->hm))
			naming_runtime(note, p);
		note->store_process = process_known(n, p, &note->runtime, ev ? ev->cgroup_id : 0);
		note->epoch = n->epoch;
		note->serial = p->serial;
		note->containers = n->containers_serial;
		naming_runtime_due(n, note);
	}
	return note->store_process;
}
