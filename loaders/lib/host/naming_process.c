/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming_process: the store's rows of processes and containers. A process is written again whenever hostmaps knows more
 * of it (its serial grows) or its container gains a name. One of sonde's own is a program of the name sonde, sonded or
 * sonde-*, outside of containers (or in ours), that stands in our own folder, is our parent, or is the child of one of ours.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/host/containernames.h"
#include "loaders/lib/host/naming_parts.h"
#include "loaders/lib/host/proc.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define CONTAINERS_MAX 4096
#define UNKNOWN_MAX    4096
#define NAME_TRIES     3
#define LOOKS          7                   /* so often its runtime's file is read for when it was started: at once, */
#define LOOK_NS        (NSEC_PER_SEC / 10) /* after twice this, after twice that, ... */

int naming_process_init(struct naming *n)
{
	char exe[PATH_MAX];
	char *slash;

	if (!proc_readlink((uint32_t)getpid(), "exe", exe, sizeof(exe)) && (slash = strrchr(exe, '/'))) {
		*slash = 0;
		snprintf(n->self_dir, sizeof(n->self_dir), "%.*s", (int)sizeof(n->self_dir) - 1, exe);
	}
	proc_read_cgroup((uint32_t)getpid(), n->self_cgroup, sizeof(n->self_cgroup));
	idmap_set(&n->selves, (uint64_t)getpid(), 1);
	return 0;
}

static void containers_drop(struct naming *n)
{
	struct container_entry *c, *tmp;

	HASH_ITER(hh, n->containers, c, tmp) {
		HASH_DEL(n->containers, c);
		container_names_release(&c->names);
		free(c->cgroup);
		free(c->path);
		free(c);
	}
}

void naming_process_forget(struct naming *n)
{
	idmap_clear(&n->unknown);
}

void naming_process_release(struct naming *n)
{
	containers_drop(n);
	idmap_release(&n->unknown);
	idmap_release(&n->selves);
}

/* ---- containers ---- */

/* From its runtime's file, or as it was when something was executed there, if the file is gone. */
static int runtime_names(const struct naming *n, const struct container_ref *ref, struct container_names *out)
{
	const struct container_names *told;

	if (!containernames_find(n->docker_root, "", ref, out))
		return 0;
	told = hostmaps_container(n->hm, ref->id);
	if (!told)
		return -ENOENT;
	container_names_copy(out, told);
	return 0;
}

/* The runtime's name of this container, or, for one inside a container that has a name, "outer/inner". */
static void find_names(struct naming *n, struct container_entry *c)
{
	struct container_names outer_names = {0};
	struct container_ref outer;
	char name[300];

	c->tries++;
	c->next_try_ns = clock_boot_ns() + NSEC_PER_SEC;
	if (c->names.name || !strcmp(c->ref.runtime, "lxc") || !strcmp(c->ref.runtime, "nspawn")) {
		c->tries = NAME_TRIES;
		if (!c->names.name)
			c->names.name = mem_strdup(c->ref.id);
		return;
	}
	if (!runtime_names(n, &c->ref, &c->names))
		return;
	if (!container_outer(c->cgroup, &c->ref, &outer) || runtime_names(n, &outer, &outer_names) || !outer_names.name)
		return;
	snprintf(name, sizeof(name), "%.200s/%.12s", outer_names.name, c->ref.id);
	c->names.name = mem_strdup(name);
	container_names_release(&outer_names);
}

/* Its runtime writes when it was started a moment after that: when it is new, and when its cgroup is another one of the
 * same path, that is, when it was started again. */
static void look_for_instance(struct naming *n, struct container_entry *c, uint64_t cgroup_id)
{
	bool is_new = c->names.name && !c->names.started && !strcmp(c->ref.runtime, "docker");

	if (!c->path || !cgroup_id || c->cgroup_id == cgroup_id)
		return;
	if (c->cgroup_id || is_new) {
		c->looks = LOOKS;
		c->look_ns = n->containers_next_ns = clock_boot_ns();
	}
	c->cgroup_id = cgroup_id;
}

/* Has its runtime written by now when it was started? (That it was started again is written before.) */
static bool is_another(struct naming *n, struct container_entry *c)
{
	struct container_names now = {0};
	const char *was = c->names.started ? c->names.started : "";

	c->looks--;
	c->look_ns = clock_boot_ns() + (LOOK_NS << (LOOKS - c->looks));
	if (containernames_find(n->docker_root, "", &c->ref, &now) || !now.name || container_names_same(&now, &c->names) ||
	    (now.started && !strcmp(now.started, was))) {
		container_names_release(&now);
		return false;
	}
	container_names_release(&c->names);
	c->names = now;
	c->looks = 0;
	return true;
}

static struct container_entry *container_get(struct naming *n, const char *cgroup, uint64_t cgroup_id)
{
	struct container_entry *c;

	HASH_FIND_STR(n->containers, cgroup, c);
	if (c) {
		look_for_instance(n, c, cgroup_id);
		return c;
	}
	if (HASH_COUNT(n->containers) >= CONTAINERS_MAX)
		containers_drop(n);
	c = mem_alloc(sizeof(*c));
	c->cgroup = mem_strdup(cgroup);
	if (container_parse(cgroup, strlen(cgroup), &c->ref)) {
		c->path = mem_strndup(cgroup, c->ref.end);
		find_names(n, c);
	}
	look_for_instance(n, c, cgroup_id);
	HASH_ADD_KEYPTR(hh, n->containers, c->cgroup, strlen(c->cgroup), c);
	return c;
}

const struct container_entry *naming_container_entry(struct naming *n, const char *cgroup)
{
	return container_get(n, cgroup, 0);
}

static uint32_t container_id(struct naming *n, struct container_entry *c)
{
	struct store_container s = {.runtime = c->ref.runtime, .runtime_id = c->ref.id, .cgroup = c->path,
				    .name = c->names.name ? c->names.name : "",
				    .image = c->names.image ? c->names.image : "",
				    .project = c->names.project, .service = c->names.service, .labels = c->names.labels,
				    .started = c->names.started, .restarts = c->names.restarts};

	if (!c->path)
		return 0;
	if (!c->id || c->epoch != n->epoch) {
		c->id = store_container(n->w, &s);
		c->epoch = n->epoch;
	}
	return c->id;
}

/* A container that had no name yet may have one now. */
void naming_process_tick(struct naming *n)
{
	int64_t now = clock_boot_ns();
	struct container_entry *c, *tmp;

	naming_runtime_tick(n);
	if (now < n->containers_next_ns)
		return;
	n->containers_next_ns = now + NSEC_PER_SEC;
	HASH_ITER(hh, n->containers, c, tmp) {
		if (c->looks && now >= c->look_ns && is_another(n, c)) {
			c->id = 0;
			n->containers_serial++;
		}
		if (c->looks && c->look_ns < n->containers_next_ns)
			n->containers_next_ns = c->look_ns;
		if (!c->path || c->names.name || c->tries >= NAME_TRIES || now < c->next_try_ns)
			continue;
		find_names(n, c);
		if (c->names.name) {
			c->id = 0;
			n->containers_serial++;
		}
	}
}

/* ---- processes ---- */

static bool is_sonde_name(const char *name)
{
	return !strcmp(name, "sonde") || !strcmp(name, "sonded") || !strncmp(name, "sonde-", 6);
}

static bool is_self(struct naming *n, const struct hostmaps_process *p, const char *cgroup, bool contained)
{
	const char *slash = strrchr(p->exe, '/'), *name = slash ? slash + 1 : p->exe[0] ? p->exe : p->comm;
	bool ours;

	if (p->tgid == (uint32_t)getpid())
		return true;
	if (!is_sonde_name(name) || (contained && strcmp(cgroup, n->self_cgroup)))
		return false;
	ours = slash && n->self_dir[0] && (size_t)(slash - p->exe) == strlen(n->self_dir) &&
	       !strncmp(p->exe, n->self_dir, strlen(n->self_dir));
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

static void set_end(const struct naming *n, const struct hostmaps_process *p, struct store_process *s)
{
	if (!p->end)
		return;
	s->end_ns = (int64_t)p->to_ns + n->boot_offset_ns;
	s->how = naming_end(p, &s->status);
}

/* Of one that was gone before its /proc could be read the cgroup's id, taken by the kernel, still leads to the path. */
const char *naming_cgroup(const struct hostmaps_process *p, uint64_t cgroup_id, char buf[PATH_MAX])
{
	uint64_t id = p->cgroup_id ? p->cgroup_id : cgroup_id;

	if (*p->cgroup)
		return p->cgroup;
	return (id || p->cgroup1_id) && !container_cgroup_path(id, p->cgroup1_id, buf, PATH_MAX) ? buf : "";
}

uint32_t naming_container(struct naming *n, const struct hostmaps_process *p)
{
	char by_id[PATH_MAX];
	const char *cgroup = naming_cgroup(p, 0, by_id);

	naming_epoch(n);
	return *cgroup ? container_id(n, container_get(n, cgroup, 0)) : 0;
}

bool naming_has(const struct hostmaps_process *p)
{
	const struct process_note *note = p->user;

	return note && note->store_process;
}

uint32_t naming_ended(struct naming *n, struct hostmaps_process *p)
{
	naming_epoch(n);
	return naming_process(n, p, NULL);
}

static uint32_t process_known(struct naming *n, const struct hostmaps_process *p, const struct runtime *r, uint64_t cgroup_id)
{
	char by_id[PATH_MAX];
	struct container_entry *c;
	struct store_process s = {
		.pid = p->tgid, .ppid = p->ppid, .uid = p->uid, .exec_id = p->exec_id,
		.start_ns = (int64_t)p->start_ns + n->boot_offset_ns, .start_ticks = p->start_ns,
		.comm = p->comm, .exe = p->exe, .args = p->args, .cgroup = naming_cgroup(p, cgroup_id, by_id),
		.lang = r->lang, .runtime = r->version, .linking = r->linking, .libc = r->libc};

	set_end(n, p, &s);
	c = container_get(n, s.cgroup, p->end ? 0 : p->cgroup1_id ? p->cgroup1_id : p->cgroup_id);
	s.unit = c->ref.unit;
	s.container = container_id(n, c);
	s.self = is_self(n, p, s.cgroup, c->path != NULL);
	return store_process(n->w, &s);
}

/* Nobody told of it: what the sample itself says, and /proc if it is still the same process. */
static uint32_t process_unknown(struct naming *n, const struct stack_event *ev)
{
	uint64_t key = hash_u64(hash_u64(hash_u64(HASH_SEED, ev->tgid), ev->start_ns), ev->exec_id), id;
	uint64_t tick = proc_ticks_ns(1);
	char comm[64] = "", cgroup[PATH_MAX] = "";
	struct store_process s = {.pid = ev->tgid, .exec_id = ev->exec_id, .start_ticks = ev->start_ns, .comm = comm,
				  .start_ns = (int64_t)ev->start_ns + n->boot_offset_ns, .exe = "", .args = "",
				  .cgroup = cgroup};
	struct container_entry *c;
	struct proc_status status;
	struct proc_stat st;

	if (idmap_get(&n->unknown, key, &id))
		return (uint32_t)id;
	snprintf(comm, sizeof(comm), "%.*s", STACK_COMM_LEN, ev->thread);
	if (!proc_read_stat(ev->tgid, &st) && proc_ticks_ns(st.start_ticks) / tick == ev->start_ns / tick) {
		snprintf(comm, sizeof(comm), "%s", st.comm);
		s.ppid = st.ppid;
		if (!proc_read_status(ev->tgid, &status))
			s.uid = status.uid;
		proc_read_cgroup(ev->tgid, cgroup, sizeof(cgroup));
	} else if (ev->cgroup_id) {
		container_cgroup_path(ev->cgroup_id, 0, cgroup, sizeof(cgroup));
	}
	c = container_get(n, cgroup, 0);
	s.unit = c->ref.unit;
	s.container = container_id(n, c);
	id = store_process(n->w, &s);
	if (n->unknown.n >= UNKNOWN_MAX)
		idmap_clear(&n->unknown);
	idmap_set(&n->unknown, key, id);
	return (uint32_t)id;
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
		naming_runtime(note, p);
		note->store_process = process_known(n, p, &note->runtime, ev ? ev->cgroup_id : 0);
		note->epoch = n->epoch;
		note->serial = p->serial;
		note->containers = n->containers_serial;
	}
	return note->store_process;
}
