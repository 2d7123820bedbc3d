/* SPDX-License-Identifier: Apache-2.0 */
/* fold_join: two folds in one tree. */
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/fold/fold_build.h"

static uint32_t join_process(struct fold_build *b, const struct fold_process *p)
{
	uint64_t identity = hash_str(
		hash_str(hash_str(hash_u64(HASH_SEED, p->pid), p->comm), p->exe), p->container_id);
	uint32_t process;

	if (fold_known_process(b, identity, &process))
		return process;
	return fold_add_process(
		b, identity,
		&(struct fold_process){.pid = p->pid,
				       .comm = fold_text(b, p->comm),
				       .exe = fold_text(b, p->exe),
				       .args = fold_text(b, p->args),
				       .container = fold_text(b, p->container),
				       .container_id = fold_text(b, p->container_id),
				       .self = p->self});
}

static uint32_t join_frame(struct fold_build *b, const struct fold_frame *from)
{
	struct fold_frame fr = fold_frame_from(b, from);

	return fold_add_frame(b, &fr);
}

static uint64_t scaled(uint64_t v, double scale)
{
	return scale == 1 ? v : (uint64_t)((double)v * scale + 0.5);
}

static void join(struct fold_build *b, const struct fold *f, double scale, bool base)
{
	cleanup_free uint32_t *node = mem_array(f->n_nodes + 1, sizeof(*node));

	for (size_t i = 1; i < f->n_nodes; i++)
		node[i] = fold_child(b, node[f->nodes[i].parent],
				     join_frame(b, &f->frames[f->nodes[i].frame]));
	for (size_t i = 0; i < f->n_leaves; i++) {
		const struct fold_leaf *l = &f->leaves[i];
		uint32_t process = join_process(b, &f->processes[l->process]);
		struct fold_leaf new = {.node = node[l->node],
					.process = process,
					.thread = fold_text(b, l->thread),
					.labels = l->labels ? fold_text(b, l->labels) : NULL,
					.tid = l->tid,
					.samples = scaled(l->samples, scale),
					.ns = scaled(l->ns, scale),
					.slice = l->slice,
					.label = l->label,
					.base = base};

		b->pub.nodes[new.node].self_ns += new.ns;
		b->pub.nodes[new.node].self_samples += new.samples;
		b->pub.processes[process].ns += new.ns;
		b->pub.processes[process].samples += new.samples;
		if (f->with)
			fold_add_leaf_with(b, &new,
					   &(struct fold_with){scaled(f->with[i].samples, scale),
							       scaled(f->with[i].ns, scale)});
		else
			fold_add_leaf(b, &new);
	}
}

struct fold *fold_join(const struct fold *base, double scale, const struct fold *f)
{
	struct fold_build *b = fold_begin();

	join(b, base, scale, true);
	join(b, f, 1, false);
	b->pub.kind = f->kind;
	b->pub.unit = f->unit;
	b->pub.from_ns = f->from_ns;
	b->pub.to_ns = f->to_ns;
	b->pub.asked_from_ns = f->asked_from_ns;
	b->pub.asked_to_ns = f->asked_to_ns;
	b->pub.covered_ns = f->covered_ns;
	b->pub.period_ns = f->period_ns;
	b->pub.cpus = f->cpus;
	b->pub.own = f->own;
	b->pub.kind = f->kind;
	b->pub.unit = f->unit;
	b->pub.host = fold_text(b, f->host);
	b->pub.kernel = fold_text(b, f->kernel);
	for (size_t i = 0; i < f->n_losses; i++)
		fold_add_loss(b, &f->losses[i]);
	for (size_t i = 0; i < f->n_shed; i++)
		fold_add_shed(b, &f->shed[i]);
	return fold_end(b);
}
