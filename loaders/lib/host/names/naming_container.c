/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming_container: the store's rows of containers: which container a cgroup's path means
 * (container.h), its name (containernames.h), and which instance of it a process belongs to. The
 * runtime may write its file late, or add the time of the start later: so it is read again.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loaders/lib/host/names/private.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define CONTAINERS_MAX 4096
/* at once, after a second, after two more, after four more: longer than ENGINES_KEEP_NS */
#define NAME_TRIES 4
#define NESTED_MAX 4 /* containers around one whose names are used */
#define ROOT_ID    1 /* a hierarchy's root: says nothing */
/* how often the runtime's file is read for the time of the start: at once, */
#define LOOKS         7
#define RENAMED_READS 16                  /* files at once that were written again */
#define LOOK_NS       (NSEC_PER_SEC / 10) /* after twice this, after twice that, ... */

static void instances_drop(struct naming *n)
{
	struct instances *all, *next;

	HASH_ITER (hh, n->instances, all, next) {
		HASH_DEL(n->instances, all);
		free(all);
	}
}

void naming_containers_drop(struct naming *n)
{
	struct container_entry *c, *tmp;

	instances_drop(n);
	HASH_ITER (hh, n->containers, c, tmp) {
		HASH_DEL(n->containers, c);
		container_names_release(&c->names);
		free(c->cgroup);
		free(c->path);
		free(c);
	}
}

/* From its runtime's file, or, if that is gone, as it was when a program started there. -ENOENT: no
 * name, but the rest of the file. */
static int runtime_names(const struct naming *n, const struct container_ref *ref,
			 struct container_names *out)
{
	const struct container_names *told;

	if (!containernames_find(n->docker_root, "", ref, out) && out->name)
		return 0;
	told = hostmaps_container(n->hm, ref->id);
	if (!told)
		return -ENOENT;
	container_names_release(out);
	container_names_copy(out, told);
	return 0;
}

/* By its path, by its runtime, or, if it is inside a container with a name, "outer/inner". */
static int names_of(const struct naming *n, const char *cgroup, const struct container_ref *ref,
		    int depth, struct container_names *out)
{
	struct container_names around = {0};
	bool by_path = container_named_by_path(ref);
	struct container_ref outer;
	char name[300] = "";

	if (!by_path && !runtime_names(n, ref, out))
		return 0;
	if (depth < NESTED_MAX && container_outer(cgroup, ref, &outer) &&
	    !names_of(n, cgroup, &outer, depth + 1, &around) && around.name)
		snprintf(name, sizeof(name), "%.200s/%.*s", around.name, by_path ? 64 : 12,
			 ref->id);
	else if (by_path)
		snprintf(name, sizeof(name), "%s", ref->id);
	container_names_release(&around);
	if (!*name)
		return -ENOENT;
	out->name = mem_strdup(name);
	return 0;
}

static void find_names(const struct naming *n, struct container_entry *c)
{
	c->tries++;
	c->next_try_ns = clock_boot_ns() + (NSEC_PER_SEC << (c->tries - 1));
	container_names_release(&c->names); /* the file may have had everything but the name */
	names_of(n, c->cgroup, &c->ref, 0, &c->names);
}

/* Its runtime records the start a moment later: read the file again when the container is new, and
 * when its path has another cgroup, which means it was started again. */
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

/* Has its runtime recorded the start by now? (It records a restart before.) */
static bool is_another(struct naming *n, struct container_entry *c)
{
	struct container_names now = {0};
	const char *was = c->names.started ? c->names.started : "";

	c->looks--;
	c->look_ns = clock_boot_ns() + (LOOK_NS << (LOOKS - c->looks));
	if (containernames_find(n->docker_root, "", &c->ref, &now) || !now.name ||
	    container_names_same(&now, &c->names) || (now.started && !strcmp(now.started, was))) {
		container_names_release(&now);
		return false;
	}
	container_names_release(&c->names);
	c->names = now;
	c->looks = 0;
	return true;
}

struct container_entry *naming_container_entry(struct naming *n, const char *cgroup,
					       const struct hostmaps_process *p)
{
	uint64_t cgroup_id = p ? p->cgroup1_id > ROOT_ID ? p->cgroup1_id : p->cgroup_id : 0;
	struct container_entry *c;

	HASH_FIND_STR(n->containers, cgroup, c);
	if (c) {
		look_for_instance(n, c, cgroup_id);
		return c;
	}
	if (HASH_COUNT(n->containers) >= CONTAINERS_MAX)
		naming_containers_drop(n);
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

/* ---- instances ---- */

struct lives {
	const struct container_entry *c;
	struct instance_life *life;
	size_t n, cap;
};

/* Is it in the container itself? Its runtime's helpers may be next to it in the same unit. */
static bool is_inside(const struct container_entry *c, const char *cgroup)
{
	size_t n = strlen(c->path);

	return !strncmp(cgroup, c->path, n) && (!cgroup[n] || cgroup[n] == '/') &&
	       strcmp(cgroup + n, "/supervisor");
}

static struct instance_life life_of(const struct hostmaps_process *p)
{
	return (struct instance_life){.from_ns = p->start_ns,
				      .to_ns = p->to_ns,
				      .pid = p->tgid,
				      .ppid = p->ppid,
				      .first = p->nspid == 1};
}

static void add_life(void *ctx, struct hostmaps_process *p)
{
	struct lives *l = ctx;

	if (!is_inside(l->c, p->cgroup))
		return;
	mem_grow(l->life, l->n, l->cap);
	l->life[l->n++] = life_of(p);
}

/* It is known to have lived until then: what begins later may be another instance. */
static void lived_until(const struct naming *n, struct instance *i, uint64_t at_least_ns)
{
	uint64_t told_ns = hostmaps_watermark(n->hm);

	told_ns = told_ns > at_least_ns ? told_ns : at_least_ns;
	i->to_ns = told_ns > i->to_ns ? told_ns : i->to_ns;
}

/* As long as the same process leads it, the others need not be checked. */
static bool is_led(const struct naming *n, const struct instance *i)
{
	const struct hostmaps_process *leader =
		i->leader ? hostmaps_running(n->hm, i->leader) : NULL;

	return leader && leader->start_ns == i->from_ns;
}

static struct instances *instances_of(struct naming *n, const char *path)
{
	struct instances *all;

	HASH_FIND_STR(n->instances, path, all);
	if (all)
		return all;
	if (HASH_COUNT(n->instances) >= CONTAINERS_MAX)
		instances_drop(n);
	all = mem_alloc(sizeof(*all) + strlen(path) + 1);
	memcpy(all->path, path, strlen(path) + 1);
	HASH_ADD_STR(n->instances, path, all);
	return all;
}

/* When this process's instance began, boot clock. */
static uint64_t instance_began(struct naming *n, const struct container_entry *c,
			       const struct hostmaps_process *p)
{
	struct instances *all = instances_of(n, c->path);
	struct instance_life of = life_of(p);
	struct lives l = {.c = c};
	struct instance found;

	if (is_led(n, &all->now) && p->start_ns >= all->now.from_ns) {
		lived_until(n, &all->now, p->start_ns);
		return all->now.from_ns;
	}
	hostmaps_each_known(n->hm, add_life, &l);
	instance_find(l.life, l.n, &of, &found);
	free(l.life);
	if (found.to_ns == UINT64_MAX) {
		found.to_ns = 0;
		lived_until(n, &found, p->start_ns);
	}
	return instance_settle(&all->now, &all->before, &found);
}

/* Docker records the start; for all others, and if its file cannot be read, the first process
 * counts. */
static bool tells_start(const struct container_entry *c)
{
	return c->names.started ||
	       (c->names.name && !strcmp(c->ref.runtime, "docker") && !strchr(c->names.name, '/'));
}

uint32_t naming_container_row(struct naming *n, struct container_entry *c,
			      const struct hostmaps_process *p)
{
	struct store_container s = {.runtime = c->ref.runtime,
				    .runtime_id = c->ref.id,
				    .cgroup = c->path,
				    .name = c->names.name ? c->names.name : "",
				    .image = c->names.image ? c->names.image : "",
				    .project = c->names.project,
				    .service = c->names.service,
				    .labels = c->names.labels,
				    .started = c->names.started,
				    .restarts = c->names.restarts};
	uint64_t began_ns = 0;
	char started[INSTANCE_TEXT];

	if (!c->path)
		return 0;
	if (!tells_start(c))
		began_ns = p ? instance_began(n, c, p) : instances_of(n, c->path)->now.from_ns;
	if (!c->id || c->epoch != n->epoch || c->began_ns != began_ns) {
		if (began_ns)
			s.started = instance_text(proc_btime(), began_ns, started);
		c->id = store_container(n->w, &s);
		c->epoch = n->epoch;
		c->began_ns = began_ns;
	}
	return c->id;
}

/* For a process that was gone before its /proc could be read: the kernel noted its cgroup's id,
 * which still leads to the path. */
const char *naming_cgroup(const struct hostmaps_process *p, uint64_t cgroup_id, char buf[PATH_MAX])
{
	uint64_t id = p->cgroup_id ? p->cgroup_id : cgroup_id;

	if (*p->cgroup)
		return p->cgroup;
	return (id || p->cgroup1_id) && !container_cgroup_path(id, p->cgroup1_id, buf, PATH_MAX) ?
		       buf :
		       "";
}

uint32_t naming_container(struct naming *n, const struct hostmaps_process *p)
{
	char by_id[PATH_MAX];
	const char *cgroup = naming_cgroup(p, 0, by_id);

	naming_epoch(n);
	return *cgroup ? naming_container_row(n, naming_container_entry(n, cgroup, NULL), p) : 0;
}

uint32_t naming_container_at(struct naming *n, const char *cgroup)
{
	naming_epoch(n);
	return naming_container_row(n, naming_container_entry(n, cgroup, NULL), NULL);
}

static void instances_look(struct naming *n)
{
	struct instances *all, *next;

	HASH_ITER (hh, n->instances, all, next)
		if (is_led(n, &all->now))
			lived_until(n, &all->now, 0);
}

/* ---- renaming ---- */

static int64_t written_ns(const char *file)
{
	struct stat st;

	return stat(file, &st) ? 0 : st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
}

/* Its runtime has written its file again, and that has another name. What the file says of its
 * start is left to is_another. */
static bool is_renamed(struct naming *n, struct container_entry *c, int *reads)
{
	struct container_names now = {0};
	int64_t at_ns = c->names.file ? written_ns(c->names.file) : 0;
	bool renamed;

	if (!at_ns || at_ns == c->file_ns || !*reads)
		return false;
	c->file_ns = at_ns;
	--*reads;
	renamed = !containernames_find(n->docker_root, "", &c->ref, &now) && now.name &&
		  strcmp(now.name, c->names.name) != 0;
	if (renamed) {
		free(c->names.name);
		c->names.name = now.name;
		now.name = NULL;
	}
	container_names_release(&now);
	return renamed;
}

/* Look again for names of containers that had none, and for new names. */
void naming_containers_tick(struct naming *n)
{
	int64_t now = clock_boot_ns();
	struct container_entry *c, *tmp;
	int reads = RENAMED_READS;

	if (now < n->containers_next_ns)
		return;
	n->containers_next_ns = now + NSEC_PER_SEC;
	instances_look(n);
	HASH_ITER (hh, n->containers, c, tmp) {
		if (c->looks && now >= c->look_ns && is_another(n, c)) {
			c->id = 0;
			n->containers_serial++;
		}
		if (c->looks && c->look_ns < n->containers_next_ns)
			n->containers_next_ns = c->look_ns;
		if (c->path && c->names.name && is_renamed(n, c, &reads)) {
			c->id = 0;
			n->containers_serial++;
		}
		if (!c->path || c->names.name || c->tries >= NAME_TRIES || now < c->next_try_ns)
			continue;
		find_names(n, c);
		if (c->names.name) {
			c->id = 0;
			n->containers_serial++;
		}
	}
}
