/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming_excluded: processes that the rules exclude (rules.h). Each is judged once, and again when
 * more is known of it. All of them are one process in the store, "[excluded]", without names,
 * stacks, threads or ids: the host's sums stay true, and nothing reveals who it was. With rules, an
 * unknown process counts as excluded. A cgroup is excluded by its path, and if all processes in it
 * are excluded; with rules of users or commands also if no process runs in it now.
 */
#include <limits.h>
#include <string.h>

#include "loaders/lib/host/names/private.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/lib/host/names/rules.h"
#include "schema/base/mem.h"

#define KTHREADD 2

static bool has_rules(const struct naming *n)
{
	return n->o.include || n->o.exclude;
}

static bool allows(const struct naming *n, const struct rule_process *r)
{
	return rules_allow(n->o.include ? n->o.include : "", n->o.exclude ? n->o.exclude : "", r);
}

static void place(struct naming *n, struct rule_process *r, const char *cgroup)
{
	static const struct container_names none;
	const struct container_entry *c = *cgroup ? naming_container_entry(n, cgroup, NULL) : NULL;

	rules_place(r, c ? &c->ref : NULL, c ? &c->names : &none);
}

static bool asks_user(const char *rules)
{
	return rules && strstr(rules, "user:");
}

/* Its present user: daemons change it after the start, which sonde-maps reports within seconds. */
static uint32_t user_of(const struct hostmaps_process *p, bool asked)
{
	struct proc_status status;

	return asked && !p->end && !proc_read_status(p->tgid, &status) ? status.euid : p->uid;
}

/* `path` is kept: `r` refers to it. */
static void describe(struct naming *n, const struct hostmaps_process *p, bool user,
		     char path[PATH_MAX], struct rule_process *r)
{
	bool kernel =
		p->tgid == KTHREADD || p->ppid == KTHREADD; /* kernel threads have no executable */

	*r = (struct rule_process){
		.comm = p->comm, .exe = *p->exe || kernel ? p->exe : NULL, .uid = user_of(p, user)};
	place(n, r, naming_cgroup(p, 0, path));
}

static bool judge(struct naming *n, const struct hostmaps_process *p)
{
	struct rule_process r;
	char path[PATH_MAX];

	describe(n, p, asks_user(n->o.include) || asks_user(n->o.exclude), path, &r);
	return !allows(n, &r);
}

bool naming_fits(struct naming *n, const struct hostmaps_process *p, const char *rules)
{
	struct rule_process r;
	char path[PATH_MAX];

	describe(n, p, asks_user(rules), path, &r);
	return rules_fit(rules, &r, false);
}

static bool judge_anew(struct naming *n, struct hostmaps_process *p, struct process_note *note)
{
	bool was = note->judged && !note->excluded;

	note->judged = true;
	note->judged_serial = p->serial;
	note->excluded = (p->end && note->excluded) ||
			 judge(n, p); /* nothing new is known of an ended process */
	note->judged_containers = n->containers_serial;
	n->turned += was && note->excluded;
	return note->excluded;
}

bool naming_excludes(struct naming *n, struct hostmaps_process *p)
{
	struct process_note *note;

	if (!has_rules(n))
		return false;
	if (!p) /* an unknown process cannot be judged */
		return true;
	note = p->user;
	if (!note)
		note = p->user = mem_alloc(sizeof(*note));
	if (!note->judged || note->judged_serial != p->serial ||
	    note->judged_containers != n->containers_serial)
		return judge_anew(n, p, note);
	return note->excluded;
}

uint32_t naming_turned(const struct naming *n)
{
	return n->turned;
}

struct group {
	struct naming *n;
	const char *path;
	size_t len;
	bool allowed, excluded; /* whether such a process lives in it */
};

static void look_in_group(void *ctx, struct hostmaps_process *p)
{
	struct group *g = ctx;

	if (g->allowed || strncmp(p->cgroup, g->path, g->len) ||
	    (p->cgroup[g->len] && p->cgroup[g->len] != '/'))
		return;
	if (naming_excludes(g->n, p))
		g->excluded = true;
	else
		g->allowed = true;
}

bool naming_excludes_cgroup(struct naming *n, const char *cgroup)
{
	struct group g = {.n = n, .path = cgroup, .len = strlen(cgroup)};
	struct rule_process r = {.no_uid = true};

	if (!has_rules(n))
		return false;
	place(n, &r, cgroup);
	hostmaps_each(n->hm, look_in_group, &g);
	if (g.allowed) /* already shown, unless it is excluded itself */
		return n->o.exclude && rules_fit(n->o.exclude, &r, false);
	return g.excluded || !allows(n, &r);
}

uint32_t naming_excluded_process(struct naming *n)
{
	const struct store_process s = {
		.comm = NAMING_EXCLUDED, .exe = "", .args = "", .cgroup = ""};

	naming_epoch(n);
	return store_process(n->w, &s);
}

void naming_excluded_stack(struct naming *n, struct naming_result *out)
{
	const struct store_image image = {.kind = STORE_IMAGE_UNKNOWN,
					  .name = NAMING_EXCLUDED,
					  .path = "",
					  .build_id = "",
					  .key = ""};
	const struct store_frame f = {.image = store_image(n->w, &image)};
	const uint32_t frame = store_frame(n->w, &f);

	*out = (struct naming_result){.exe = "",
				      .process = naming_excluded_process(n),
				      .end = STACK_END_NONE,
				      .excluded = true,
				      .stack = store_stack(n->w, &frame, 1)};
}
