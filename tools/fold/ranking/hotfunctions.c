/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/ranking/hotfunctions.h"

#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/fold/ranking/memsite.h"

/* Rule 3: of each frame its function. The caller's. */
static uint32_t *by_frame(struct hotfunctions *h, const struct fold *f)
{
	uint32_t *of = mem_array(f->n_frames + 1, sizeof(*of));
	struct idmap known = {0};
	bool fresh;

	for (uint32_t i = 0; i < f->n_frames; i++) {
		const uint64_t key =
			hash_str(hash_str(HASH_SEED, f->frames[i].name), f->frames[i].module);
		uint64_t *at = idmap_ref(&known, key, &fresh);

		if (fresh) {
			*at = h->n;
			h->frame[h->n++] = i;
		}
		of[i] = (uint32_t)*at;
	}
	idmap_release(&known);
	return of;
}

/* Parents come before children: what a stack has above a node is known when the node is reached. */
void hotfunctions_init(struct hotfunctions *h, const struct fold *f)
{
	cleanup_free uint32_t *of_frame = NULL;
	cleanup_free uint8_t *scripted = mem_array(f->n_nodes + 1, sizeof(*scripted));

	*h = (struct hotfunctions){.of = mem_array(f->n_nodes + 1, sizeof(*h->of)),
				   .frame = mem_array(f->n_frames + 1, sizeof(*h->frame))};
	of_frame = by_frame(h, f);
	for (uint32_t i = 1; i < f->n_nodes; i++) {
		const struct fold_node *n = &f->nodes[i];
		const bool own = memsite_script(&f->frames[n->frame]);

		scripted[i] = own || scripted[n->parent];
		h->of[i] = !own && scripted[n->parent] ? h->of[n->parent] : of_frame[n->frame];
	}
}

void hotfunctions_release(struct hotfunctions *h)
{
	free(h->of);
	free(h->frame);
	*h = (struct hotfunctions){0};
}
