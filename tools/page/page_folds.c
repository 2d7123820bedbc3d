/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/page/page_folds.h"

#include <errno.h>

#include "tools/fold/fold_kind.h"

/* The page's facts are of the first fold's nodes. */
static void view_make(struct page_folds *p, bool leaves)
{
	struct fold *f = p->fold[p->n];

	flame_view_init(&p->views[p->n], f);
	if (p->n || !leaves)
		fold_shed(f, p->n);
	p->n++;
}

int page_folds_make(struct page_folds *p, const struct selection *sel,
		    const struct fold_opts *asked, bool leaves, struct err *e)
{
	uint32_t kinds = 1u << asked->kind;
	int ret;

	*p = (struct page_folds){0};
	ret = asked->kind || asked->wall ? 0 : fold_kinds_there(sel, &kinds, e);
	kinds = asked->wall || !kinds ?
			1u << STORE_KIND_CPU :
			kinds; /* wall is one kind; an empty selection is reported */
	for (int i = 1; !ret && i < STORE_KINDS; i++) {
		struct fold_opts opts = *asked;
		bool gauge = store_kind_info((enum store_kind)i)->class == STORE_GAUGE;
		bool last = !(kinds >> i >> 1), needed = last && !p->n;

		if (!(kinds & 1u << i))
			continue;
		opts.kind = asked->wall ? 0 : (enum store_kind)i;
		opts.group = FOLD_BY_NONE;
		opts.leaves = true;
		opts.most_nodes = FOLD_NODES;
		opts.most_leaves = FOLD_LEAVES;
		opts.reasons = true; /* idle waits are hidden at first */
		opts.slices = gauge ? 0 : FLAME_HTML_MAX_SLOTS;
		ret = fold_make(sel, &opts, &p->fold[p->n], e);
		if (!ret)
			view_make(p, leaves);
		if (ret == -ENODATA && !needed) { /* the filters may leave nothing of one kind */
			*e = (struct err){0};
			ret = 0;
		}
	}
	return ret;
}

void page_folds_release(struct page_folds *p)
{
	for (size_t i = 0; i < p->n; i++) {
		flame_view_release(&p->views[i]);
		fold_free(p->fold[i]);
	}
	p->n = 0;
}
