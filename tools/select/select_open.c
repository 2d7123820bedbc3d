/* SPDX-License-Identifier: Apache-2.0 */
/* select_open: see the header. Two are held: a window of minutes lies in one segment, or across
 * two. */
#include "tools/select/select_open.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tools/select/select.h"

struct select_open {
	struct held {
		char *path; /* NULL: free */
		struct store_segment *segment;
	} held[SELECT_HELD]; /* the one asked for last stands first */
};

struct select_open *select_open_new(void)
{
	return mem_alloc(sizeof(struct select_open));
}

static void held_release(struct held *h)
{
	free(h->path);
	store_segment_close(h->segment);
	*h = (struct held){0};
}

static void release_all(struct select_open *o)
{
	for (int i = 0; o && i < SELECT_HELD; i++)
		held_release(&o->held[i]);
}

void select_open_free(struct select_open *o)
{
	release_all(o);
	free(o);
}

void select_segments_close(const struct selection *s)
{
	release_all(s->open);
}

static void move_to_front(struct select_open *o, int i)
{
	struct held h = o->held[i];

	memmove(&o->held[1], &o->held[0], (size_t)i * sizeof(h));
	o->held[0] = h;
}

void select_open_take(struct select_open *o, const char *path, struct store_segment *segment)
{
	held_release(&o->held[SELECT_HELD - 1]);
	o->held[SELECT_HELD - 1] = (struct held){mem_strdup(path), segment};
	move_to_front(o, SELECT_HELD - 1);
}

int select_segment(const struct selection *s, const char *path, struct store_segment **out,
		   struct err *e)
{
	struct select_open *o = s->open;
	struct store_segment *new;
	int rc;

	for (int i = 0; i < SELECT_HELD; i++) {
		if (!o->held[i].path || strcmp(o->held[i].path, path))
			continue;
		move_to_front(o, i);
		*out = o->held[0].segment;
		return 0;
	}
	rc = store_segment_open(path, &new, e);
	if (rc)
		return rc;
	select_open_take(o, path, new);
	*out = new;
	return 0;
}
