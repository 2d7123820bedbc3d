/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming_excluded: processes that the rules leave out (rules.h). Each is judged once, and again when more is known of it. All of
 * them together are one process in the store, "[excluded]", without names, stacks, threads or ids: what the host did stays
 * true in sum, and nothing is told of whom.
 */
#include <string.h>

#include "loaders/lib/host/naming_parts.h"
#include "loaders/lib/host/rules.h"
#include "schema/base/mem.h"

#define EXCLUDED "[excluded]"

static bool has_rules(const struct naming *n)
{
	return n->o.include || n->o.exclude;
}

static bool judge(struct naming *n, const struct hostmaps_process *p)
{
	struct rule_process r = {.comm = p->comm, .exe = p->exe, .uid = p->uid};
	const struct container_entry *c = naming_container_entry(n, p->cgroup);

	r.unit = c->ref.unit;
	r.container_id = c->ref.id;
	r.container = c->names.name ? c->names.name : c->ref.id;
	r.image = c->names.image ? c->names.image : "";
	return !rules_allow(n->o.include ? n->o.include : "", n->o.exclude ? n->o.exclude : "", &r);
}

bool naming_excludes(struct naming *n, struct hostmaps_process *p)
{
	struct process_note *note;

	if (!has_rules(n))
		return false;
	if (!p) /* nobody told of it: nobody can say that it is one of those that are asked for */
		return n->o.include;
	note = p->user;
	if (!note)
		note = p->user = mem_alloc(sizeof(*note));
	if (!note->judged || note->judged_serial != p->serial || note->judged_containers != n->containers_serial) {
		note->judged = true;
		note->judged_serial = p->serial;
		note->judged_containers = n->containers_serial;
		note->excluded = judge(n, p);
	}
	return note->excluded;
}

uint32_t naming_excluded_process(struct naming *n)
{
	const struct store_process s = {.comm = EXCLUDED, .exe = "", .args = "", .cgroup = ""};

	naming_epoch(n);
	return store_process(n->w, &s);
}

void naming_excluded_stack(struct naming *n, struct naming_result *out)
{
	const struct store_image image = {.kind = STORE_IMAGE_UNKNOWN, .name = EXCLUDED, .path = "", .build_id = "",
					  .key = ""};
	const struct store_frame f = {.image = store_image(n->w, &image)};
	const uint32_t frame = store_frame(n->w, &f);

	*out = (struct naming_result){.exe = "", .process = naming_excluded_process(n), .end = STACK_END_NONE, .excluded = true,
				      .stack = store_stack(n->w, &frame, 1)};
}
