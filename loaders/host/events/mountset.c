/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/events/mountset.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

void mountset_begin(struct mountset *s)
{
	for (size_t i = 0; i < s->n; i++)
		s->v[i].here = false;
}

void mountset_see(struct mountset *s, const char *point, const char *source, const char *type,
		  mountset_fn fn, void *ctx)
{
	struct mountset_one *x;

	for (size_t i = 0; i < s->n; i++) {
		x = &s->v[i];
		if (!strcmp(x->point, point) && !strcmp(x->source, source) &&
		    !strcmp(x->type, type)) {
			x->here = true;
			return;
		}
	}
	if (s->n == MOUNTSET_MAX) {
		s->crowded = true;
		return;
	}
	mem_grow(s->v, s->n, s->cap);
	x = &s->v[s->n++];
	*x = (struct mountset_one){.point = mem_strdup(point),
				   .source = mem_strdup(source),
				   .type = mem_strdup(type),
				   .here = true};
	if (s->known && !s->crowded)
		fn(ctx, x, true);
}

static void forget(struct mountset_one *x)
{
	free(x->point);
	free(x->source);
	free(x->type);
}

void mountset_end(struct mountset *s, mountset_fn fn, void *ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].here) {
			s->v[kept++] = s->v[i];
			continue;
		}
		fn(ctx, &s->v[i], false);
		forget(&s->v[i]);
	}
	s->n = kept;
	s->known = true;
}

void mountset_release(struct mountset *s)
{
	for (size_t i = 0; i < s->n; i++)
		forget(&s->v[i]);
	free(s->v);
	*s = (struct mountset){0};
}
