/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_folds: the data of a page: one fold for each kind of value, the requested one or all that
 * the selection has. They have leaves and, for what adds up over time, slices; they are not
 * grouped, because the page groups. Of each the page's view is made at once, so that the fold need
 * not keep its leaves and nodes.
 */
#ifndef SONDE_TOOLS_PAGE_FOLDS_H
#define SONDE_TOOLS_PAGE_FOLDS_H

#include <stddef.h>

#include "schema/base/err.h"
#include "schema/store/model/kinds.h"
#include "tools/fold/fold.h"
#include "tools/page/flame_html.h"

struct page_folds {
	struct fold *fold[STORE_KINDS]; /* in order of the kinds: CPU time first */
	struct flame_view views[STORE_KINDS];
	size_t n;
};

/* EXIT_NOTHING without any. `leaves`: those of the first fold stay. Release in any case. */
int page_folds_make(struct page_folds *p, const struct selection *sel,
		    const struct fold_opts *asked, bool leaves, struct err *e);
void page_folds_release(struct page_folds *p);

#endif
