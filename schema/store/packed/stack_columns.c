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
	struct column part[PARTS];
	size_t at;       /* the next frame */
	size_t len, cap; /* of the tails' text */
};

/* The next column of that many numbers. */
static int take_part(const uint8_t **p, const uint8_t *end, size_t n, struct column *out)
{
	uint64_t size = 0;
	unsigned int shift = 0;
	int rc;

	do {
		if (*p == end || shift > 7 * (LENGTH_MAX - 1))
			return -EBADMSG;
		size |= (uint64_t)(**p & 0x7f) << shift;
		shift += 7;
	} while (*(*p)++ & 0x80);
	if (size > (uint64_t)(end - *p))
		return -EBADMSG;
	rc = column_decode(*p, (size_t)size, n, out);
	*p += size;
	return rc ? rc : out->numbers ? 0 : -EBADMSG;
}

static int take_parts(struct decoding *d, const uint8_t *p, const uint8_t *end, size_t n)
{
	uint64_t frames = n;
	int rc = take_part(&p, end, n, &d->part[UP]);

	if (!rc)
		rc = take_part(&p, end, n, &d->part[MORE]);
	for (size_t i = 0; !rc && i < n; i++) {
		uint64_t more = (uint64_t)d->part[MORE].numbers[i];

		rc = more > COLUMN_MAX || (frames += more) > COLUMN_MAX ? -EBADMSG : 0;
	}
	if (!rc)
		rc = take_part(&p, end, (size_t)frames, &d->part[FRAMES]);
	return rc ? rc : p == end ? 0 : -EBADMSG;
}

static int rows_room(struct stackcolumns *c, size_t n)
{
	struct column *const numbers[] = {&c->base, &c->keep, &c->leaf};

	for (size_t i = 0; i < 3; i++) {
		*numbers[i] = (struct column){.n = n, .numbers = malloc(n * sizeof(int64_t))};
		if (!numbers[i]->numbers)
			return -ENOMEM;
	}
	c->tail = (struct column){.n = n, .at = malloc((n + 1) * sizeof(*c->tail.at))};
	return c->tail.at ? 0 : -ENOMEM;
}

static int text_room(struct decoding *d, struct column *tail)
{
	size_t cap = 2 * d->cap + 4096;
	char *text;

	if (d->cap - d->len > COLUMN_DIGITS_MAX + 2)
		return 0;
	if (cap > 4ul * COLUMN_MAX)
		return -EBADMSG;
	text = realloc(tail->text, cap);
	if (!text)
		return -ENOMEM;
	tail->text = text;
	d->cap = cap;
	return 0;
}

static int take_frame(struct decoding *d, uint32_t stack, uint32_t *out)
{
	uint64_t v = (uint64_t)d->part[FRAMES].numbers[d->at++];
	uint32_t *last;
	int rc = path_room(&d->path);

	if (rc)
		return rc;
	v += expected(&d->path, &last);
	if (v > UINT32_MAX)
		return -EBADMSG;
	*out = (uint32_t)v;
	*last = *out == UINT32_MAX ? 0 : *out + 1;
	path_push(&d->path, *out, stack);
	return 0;
}

static int take_tail(struct decoding *d, struct column *tail, uint32_t stack, uint64_t n)
{
	uint32_t frame;
	int rc = text_room(d, tail);

	for (uint64_t k = 0; !rc && k < n; k++) {
		rc = take_frame(d, stack, &frame);
		if (rc)
			break;
		if (k)
			tail->text[d->len++] = ',';
		d->len = (size_t)(column_put_number(tail->text + d->len, frame) - tail->text);
		rc = text_room(d, tail);
	}
	if (!rc)
		tail->text[d->len++] = '\0';
	return rc;
}

static int take_stack(struct decoding *d, struct stackcolumns *c, size_t i)
{
	uint64_t up = (uint64_t)d->part[UP].numbers[i], more = (uint64_t)d->part[MORE].numbers[i];
	struct path *p = &d->path;
	uint32_t leaf;
	int rc = path_room(p);

	if (rc || up > p->depth)
		return rc ? rc : -EBADMSG;
	p->depth -= up;
	c->keep.numbers[i] = (int64_t)p->depth;
	c->base.numbers[i] = p->depth ? p->owner[p->depth] : 0;
	c->tail.at[i] = (uint32_t)d->len;
	rc = take_tail(d, &c->tail, (uint32_t)i + 1, more);
	if (!rc)
		rc = take_frame(d, (uint32_t)i + 1, &leaf);
	if (!rc)
		c->leaf.numbers[i] = leaf;
	return rc;
}

int stack_columns_decode(const void *data, size_t len, size_t n, struct stackcolumns *out)
{
	struct stackcolumns c = {0};
	struct decoding d = {0};
	int rc = !n || n > COLUMN_MAX ? -EBADMSG : path_init(&d.path);

	if (!rc)
		rc = take_parts(&d, data, (const uint8_t *)data + len, n);
	if (!rc)
		rc = rows_room(&c, n);
	for (size_t i = 0; !rc && i < n; i++)
		rc = take_stack(&d, &c, i);
	if (!rc)
		c.tail.at[n] = (uint32_t)d.len;
	path_release(&d.path);
	for (enum part k = UP; k < PARTS; k++)
		column_release(&d.part[k]);
	if (rc)
		stack_columns_release(&c);
	else
		*out = c;
	return rc;
}

void stack_columns_release(struct stackcolumns *c)
{
	column_release(&c->base);
	column_release(&c->keep);
	column_release(&c->leaf);
	column_release(&c->tail);
}
