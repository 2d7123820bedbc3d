/* SPDX-License-Identifier: Apache-2.0 */
/* Tell.c brings what was read to the store. */
#include "loaders/scrape/goprog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/proc/proc.h"
#include "schema/base/clock.h"
#include "schema/image/image.h"

#define LINES_NS (10 * NSEC_PER_SEC) /* an index without lines is taken after so long */

static void profile_release(struct profile *x)
{
	struct kept *k, *next;

	HASH_ITER (hh, x->kept, k, next) {
		HASH_DEL(x->kept, k);
		free(k);
	}
	if (x->fetch)
		fetch_release(x->fetch);
	free(x->fetch);
	free(x->gauges);
	idmap_release(&x->gauge_of);
	*x = (struct profile){0};
}

void goprog_release(struct goprog *p)
{
	for (int i = 0; i < WIRE_ASKS; i++)
		profile_release(&p->profiles[i]);
	free(p->tried);
	p->tried = NULL;
	p->n_tried = p->cap_tried = 0;
}

void goprog_refuse(struct goprog *p, const char *why)
{
	snprintf(p->reason, sizeof(p->reason), "%s", why);
}

/* Another program than the one that was asked: all that was known of it is void. */
static void forget(struct goprog *p)
{
	goprog_release(p);
	p->found = GOPROG_UNKNOWN;
	p->from_begin = true; /* what it has it has since its exec */
	p->answers = p->listens = false;
	p->reason[0] = '\0';
	p->epoch = 0;
	p->told = p->told_segment = 0;
	p->image = 0;
	p->lines_until_ns = p->search_ns = 0;
}

/* net/http/pprof, or fasthttp's of the same pages. One that links neither has no page, and is not
 * bothered. */
static bool links_pages(const struct image *index)
{
	struct image_symbol s;

	for (size_t i = 0; image_symbol_get(index, i, &s); i++)
		if (!strncmp(s.name, "net/http/pprof.", 15) || strstr(s.name, "/pprofhandler."))
			return true;
	return false;
}

static void found_go(struct goprog *p, const struct hostmaps_image *img, int64_t now_ns)
{
	p->found = links_pages(img->index) ? GOPROG_OFFERS : GOPROG_NO_PPROF;
	p->lines_until_ns = image_ident(img->index)->lines_later ? now_ns + LINES_NS : 0;
}

void goprog_find(struct goprog *p, struct hostmaps *hm, struct hostmaps_process *hp, int64_t now_ns)
{
	uint64_t start, end, offset;
	struct hostmaps_image *img = hostmaps_exe(hm, hp, &start, &end, &offset);

	if (!img)
		return;
	if (p->image && (p->image != img->id || p->image_generation != img->generation))
		forget(p);
	p->image = img->id;
	p->image_generation = img->generation;
	p->exe = (struct wire_mapping){start, end, offset};
	if (p->found == GOPROG_OFFERS && p->lines_until_ns && img->index &&
	    !image_ident(img->index)->lines_later)
		p->lines_until_ns = 0;
	if (p->found != GOPROG_UNKNOWN || !img->state)
		return;
	if (!img->index || !image_go(img->index, &p->go))
		p->found = GOPROG_NO_GO;
	else
		found_go(p, img, now_ns);
}

bool goprog_named(const struct goprog *p, int64_t now_ns)
{
	return !p->lines_until_ns || now_ns >= p->lines_until_ns;
}

bool goprog_holds(const struct goprog *p)
{
	uint64_t tick = proc_ticks_ns(1);
	struct proc_stat st;

	return !proc_read_stat(p->key.tgid, &st) &&
	       proc_ticks_ns(st.start_ticks) / tick == p->key.start_ns / tick &&
	       sockets_holds(p->key.tgid, p->inode);
}
