/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's rules. */
#include "schema/store/packed/stack_columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALLER_BITS 18
#define LENGTH_MAX  10
enum part { UP, MORE, FRAMES, PARTS };

/* The stack at hand, by depth from 1 on: its frames, and which stack is the base of what goes on
 * from there. */
struct path {
	uint32_t *frame, *owner;
	size_t depth, cap;
	uint32_t *last; /* by the hash of a caller: 1 + the frame behind it, or 0 */
};

static int path_init(struct path *p)
{
	*p = (struct path){.last = calloc((size_t)1 << CALLER_BITS, sizeof(*p->last))};
	return p->last ? 0 : -ENOMEM;
}

static void path_release(struct path *p)
{
	free(p->frame);
	free(p->owner);
	free(p->last);
}

static int path_room(struct path *p)
{
	size_t cap = p->cap ? 2 * p->cap : 64;
	uint32_t *frame, *owner;

	if (p->depth + 2 < p->cap)
		return 0;
	frame = realloc(p->frame, cap * sizeof(*frame));
	p->frame = frame ? frame : p->frame;
	owner = realloc(p->owner, cap * sizeof(*owner));
	p->owner = owner ? owner : p->owner;
	if (!frame || !owner)
		return -ENOMEM;
	p->cap = cap;
	p->frame[0] = p->owner[0] = 0;
	return 0;
}

/* Rule 2: the base of the next frame's distance, and where that frame is remembered. */
static uint32_t expected(const struct path *p, uint32_t **last)
{
	uint32_t caller = p->frame[p->depth];

	*last = &p->last[caller * 2654435769u >> (32 - CALLER_BITS)];
	return **last ? **last - 1 : caller;
}

static void path_push(struct path *p, uint32_t frame, uint32_t stack)
{
	p->depth++;
	p->frame[p->depth] = frame;
	p->owner[p->depth] = stack;
}

/* --- writing --- */

struct encoding {
	struct path path;
	struct column part[PARTS];
	size_t cap[PARTS];
};

static int put(struct encoding *e, enum part part, int64_t v)
{
	struct column *c = &e->part[part];

	if (c->n == e->cap[part]) {
		size_t cap = e->cap[part] ? 2 * e->cap[part] : 1024;
		int64_t *numbers = realloc(c->numbers, cap * sizeof(*numbers));

		if (!numbers)
			return -ENOMEM;
		c->numbers = numbers;
		e->cap[part] = cap;
	}
	c->numbers[c->n++] = v;
	return 0;
}

static int put_frame(struct encoding *e, uint32_t frame, uint32_t stack)
{
	uint32_t *last, from;
	int rc = path_room(&e->path);

	if (rc)
		return rc;
	from = expected(&e->path, &last);
	*last = frame == UINT32_MAX ? 0 : frame + 1;
	path_push(&e->path, frame, stack);
	return put(e, FRAMES, (int64_t)frame - from);
}

/* Row i, whose number is i + 1. */
static int put_stack(struct encoding *e, const struct stackcolumns *c, size_t i)
{
	const char *tail = c->tail.text + c->tail.at[i];
	int64_t keep = c->keep.numbers[i], leaf = c->leaf.numbers[i];
	struct path *p = &e->path;
	size_t before = e->part[FRAMES].n;
	uint32_t frame;
	int rc = path_room(p);

	if (rc)
		return rc;
	if (keep < 0 || (uint64_t)keep > p->depth ||
	    c->base.numbers[i] != (keep ? p->owner[keep] : 0) || leaf < 0 || leaf > UINT32_MAX)
		return -EINVAL;
	rc = put(e, UP, (int64_t)p->depth - keep);
	p->depth = (size_t)keep;
	while (!rc && *tail)
		rc = column_list_next(&tail, &frame) ? put_frame(e, frame, (uint32_t)i + 1) :
						       -EINVAL;
	if (!rc)
		rc = put_frame(e, (uint32_t)leaf, (uint32_t)i + 1);
	return rc ? rc : put(e, MORE, (int64_t)(e->part[FRAMES].n - before - 1));
}

/* Rule 1 */
static int put_parts(const struct encoding *e, uint8_t **out, size_t *len)
{
	uint8_t *bytes = NULL;
	size_t n = 0;
	int rc = 0;

	for (enum part k = UP; !rc && k < PARTS; k++) {
		uint8_t *data = NULL, *grown;
		size_t size = 0;

		rc = column_encode(&e->part[k], &data, &size);
		grown = rc ? NULL : realloc(bytes, n + LENGTH_MAX + size);
		rc = rc ? rc : grown ? 0 : -ENOMEM;
		if (!rc) {
			bytes = grown;
			for (size_t v = size;
			     (bytes[n++] = (uint8_t)(v & 0x7f) | (v > 0x7f ? 0x80 : 0)) & 0x80;)
				v >>= 7;
			memcpy(bytes + n, data, size);
			n += size;
		}
		free(data);
	}
	if (rc)
		free(bytes);
	*out = rc ? NULL : bytes;
	*len = n;
	return rc;
}

int stack_columns_encode(const struct stackcolumns *c, uint8_t **out, size_t *len)
{
	struct encoding e = {0};
	size_t n = c->base.n;
	int rc = path_init(&e.path);

	if (!rc && (!n || n >= UINT32_MAX || c->keep.n != n || c->leaf.n != n || c->tail.n != n ||
		    !c->base.numbers || !c->keep.numbers || !c->leaf.numbers || !c->tail.text))
		rc = -EINVAL;
	for (size_t i = 0; !rc && i < n; i++)
		rc = put_stack(&e, c, i);
	if (!rc)
		rc = put_parts(&e, out, len);
	path_release(&e.path);
	for (enum part k = UP; k < PARTS; k++)
		column_release(&e.part[k]);
	return rc;
}

/* --- reading --- */

struct decoding {
	struct path path;
	struct column up, more;
	struct column_cursor frames;
};

/* The bytes of the next column. */
static int take_part(const uint8_t **p, const uint8_t *end, const uint8_t **out, size_t *len)
{
	uint64_t size = 0;
	unsigned int shift = 0;

	do {
		if (*p == end || shift > 7 * (LENGTH_MAX - 1))
			return -EBADMSG;
		size |= (uint64_t)(**p & 0x7f) << shift;
		shift += 7;
	} while (*(*p)++ & 0x80);
	if (size > (uint64_t)(end - *p))
		return -EBADMSG;
	*out = *p;
	*len = (size_t)size;
	*p += size;
	return 0;
}

static int take_numbers(const uint8_t **p, const uint8_t *end, size_t n, struct column *out)
{
	const uint8_t *data;
	size_t len;
	int rc = take_part(p, end, &data, &len);

	if (!rc)
		rc = column_decode(data, len, n, out);
	return rc ? rc : out->numbers ? 0 : -EBADMSG;
}

/* *n_frames: of all stacks. */
static int take_parts(struct decoding *d, const uint8_t *p, const uint8_t *end, size_t n,
		      size_t *n_frames)
{
	const uint8_t *data;
	uint64_t frames = n;
	size_t len;
	int rc = take_numbers(&p, end, n, &d->up);

	if (!rc)
		rc = take_numbers(&p, end, n, &d->more);
	for (size_t i = 0; !rc && i < n; i++) {
		uint64_t more = (uint64_t)d->more.numbers[i];

		rc = more > COLUMN_MAX || (frames += more) > COLUMN_MAX ? -EBADMSG : 0;
	}
	if (!rc)
		rc = take_part(&p, end, &data, &len);
	if (!rc)
		rc = p == end ? column_cursor_open(data, len, (size_t)frames, &d->frames) :
				-EBADMSG;
	*n_frames = (size_t)frames;
	return rc;
}

static int take_frame(struct decoding *d, uint32_t stack)
{
	uint32_t *last;
	int64_t distance;
	uint64_t v;
	int rc = path_room(&d->path);

	if (rc)
		return rc;
	if (!column_cursor_next(&d->frames, &distance))
		return -EBADMSG;
	v = (uint64_t)distance + expected(&d->path, &last);
	if (v > UINT32_MAX)
		return -EBADMSG;
	*last = v == UINT32_MAX ? 0 : (uint32_t)v + 1;
	path_push(&d->path, (uint32_t)v, stack);
	return 0;
}

static int take_stack(struct decoding *d, size_t i, const struct stackcolumns_walk *w)
{
	uint64_t up = (uint64_t)d->up.numbers[i], more = (uint64_t)d->more.numbers[i];
	struct path *p = &d->path;
	struct stackcolumns_stack s = {.id = (uint32_t)i + 1};
	int rc = path_room(p);

	if (rc || up > p->depth)
		return rc ? rc : -EBADMSG;
	p->depth -= up;
	s.keep = p->depth;
	s.base = s.keep ? p->owner[s.keep] : 0;
	for (uint64_t k = 0; !rc && k <= more; k++)
		rc = take_frame(d, s.id);
	s.frames = p->frame + s.keep + 1;
	s.n = (size_t)more + 1;
	return rc ? rc : w->each(w->ctx, &s);
}

int stack_columns_walk(const void *data, size_t len, size_t n, const struct stackcolumns_walk *w)
{
	struct decoding d = {0};
	size_t frames = 0;
	int rc = !n || n > COLUMN_MAX ? -EBADMSG : path_init(&d.path), end;

	if (!rc)
		rc = take_parts(&d, data, (const uint8_t *)data + len, n, &frames);
	if (!rc) {
		rc = w->begin(w->ctx, frames);
		for (size_t i = 0; !rc && i < n; i++)
			rc = take_stack(&d, i, w);
		end = column_cursor_close(&d.frames);
		rc = rc ? rc : end;
	}
	path_release(&d.path);
	column_release(&d.up);
	column_release(&d.more);
	return rc;
}

/* --- as columns --- */

struct rows {
	struct stackcolumns c;
	size_t n;
	size_t len, cap; /* of the tails' text */
};

static int rows_begin(void *ctx, size_t frames)
{
	struct rows *r = ctx;
	struct column *const numbers[] = {&r->c.base, &r->c.keep, &r->c.leaf};

	(void)frames;
	for (size_t i = 0; i < 3; i++) {
		*numbers[i] = (struct column){.n = r->n, .numbers = malloc(r->n * sizeof(int64_t))};
		if (!numbers[i]->numbers)
			return -ENOMEM;
	}
	r->c.tail = (struct column){.n = r->n, .at = malloc((r->n + 1) * sizeof(*r->c.tail.at))};
	return r->c.tail.at ? 0 : -ENOMEM;
}

static int text_room(struct rows *r, size_t need)
{
	size_t cap = 2 * r->cap + need;
	char *text;

	if (r->cap - r->len > need)
		return 0;
	if (cap > 4ul * COLUMN_MAX)
		return -EBADMSG;
	text = realloc(r->c.tail.text, cap);
	if (!text)
		return -ENOMEM;
	r->c.tail.text = text;
	r->cap = cap;
	return 0;
}

static int rows_each(void *ctx, const struct stackcolumns_stack *s)
{
	struct rows *r = ctx;
	struct column *tail = &r->c.tail;
	const size_t i = s->id - 1;
	int rc = text_room(r, s->n * (COLUMN_DIGITS_MAX + 1) + 1);

	if (rc)
		return rc;
	r->c.keep.numbers[i] = (int64_t)s->keep;
	r->c.base.numbers[i] = s->base;
	r->c.leaf.numbers[i] = s->frames[s->n - 1];
	tail->at[i] = (uint32_t)r->len;
	for (size_t k = 0; k + 1 < s->n; k++) {
		if (k)
			tail->text[r->len++] = ',';
		r->len =
			(size_t)(column_put_number(tail->text + r->len, s->frames[k]) - tail->text);
	}
	tail->text[r->len++] = '\0';
	tail->at[i + 1] = (uint32_t)r->len;
	return 0;
}

int stack_columns_decode(const void *data, size_t len, size_t n, struct stackcolumns *out)
{
	struct rows r = {.n = n};
	const struct stackcolumns_walk w = {rows_begin, rows_each, &r};
	int rc = stack_columns_walk(data, len, n, &w);

	if (rc)
		stack_columns_release(&r.c);
	else
		*out = r.c;
	return rc;
}

void stack_columns_release(struct stackcolumns *c)
{
	column_release(&c->base);
	column_release(&c->keep);
	column_release(&c->leaf);
	column_release(&c->tail);
}
