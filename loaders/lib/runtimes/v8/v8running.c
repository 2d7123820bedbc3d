/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/v8/v8running.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/v8/v8flow.h"
#include "schema/base/mem.h"

#define WORD      8u
#define ENTRIES   (1u << 16) /* words of DeoptimizationData */
#define TABLE_MAX (1u << 20)
#define EXIT_MAX  7u
/* numbers of DeoptimizationData, from that of its function on */
enum { OPTIMIZATION_ID = -1, EXITS_AT = 2, EXITS = 3, WORDS_A_DEOPT = 3 };

struct v8_followed {
	uint64_t start, end, number;
	uint32_t exits_at, exits, exit_bytes;
	bool maglev;
	struct v8flow *flow; /* own; NULL: it cannot be followed */
	/* own, as they were read: V8 does not change them */
	uint64_t *data; /* the elements of DeoptimizationData; those that are objects move */
	size_t n_data;
	uint8_t *translations, *safepoints;
	size_t translations_len, safepoints_len;
	const struct v8heap *h; /* of the call that is going on */
};

static void followed_free(struct v8_followed *f)
{
	if (!f)
		return;
	v8flow_free(f->flow);
	free(f->data);
	free(f->translations);
	free(f->safepoints);
	free(f);
}

void v8running_release(struct v8running *r)
{
	for (size_t i = 0; i < V8_RUNNING_KEPT; i++)
		followed_free(r->kept[i]);
	*r = (struct v8running){0};
}

/* ---- what is read of the code ---- */

static bool number_at(const struct v8_followed *f, const struct v8heap *h, int i, uint32_t max,
		      uint32_t *out)
{
	size_t at = (size_t)(v8_n(h, V8_DEOPT_SHARED) + i);
	int64_t value = 0;

	if (at >= f->n_data || !v8_small(f->data[at], &value) || value < 0 || value > max)
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool data_read(struct v8_followed *f, struct v8heap *h, uint64_t data)
{
	uint64_t tagged = 0;
	int64_t n = 0;

	if (!v8_is_object(data) || !v8_word(h, data, v8_n(h, V8_ARRAY_LENGTH), &tagged) ||
	    !v8_small(tagged, &n) || n <= 0 || n > ENTRIES)
		return false;
	f->n_data = (size_t)n;
	f->data = mem_array(f->n_data, sizeof(*f->data));
	return h->m->read(h->m->ctx, data - 1 + (uint64_t)v8_n(h, V8_ARRAY_DATA), f->data,
			  f->n_data * sizeof(*f->data));
}

static bool translations_take(struct v8_followed *f, struct v8heap *h)
{
	size_t at = (size_t)v8_n(h, V8_DEOPT_TRANSLATIONS);

	f->translations =
		at < f->n_data ? v8_bytes(h, f->data[at], TABLE_MAX, &f->translations_len) : NULL;
	return f->translations;
}

static bool safepoints_read(struct v8_followed *f, struct v8heap *h)
{
	uint8_t head[16];

	if (!h->m->read(h->m->ctx, f->end, head, sizeof(head)))
		return false;
	f->safepoints_len = v8_safepoint_size((enum v8_shape)v8_n(h, V8_SHAPE), f->maglev, head);
	if (f->safepoints_len < sizeof(head) || f->safepoints_len > TABLE_MAX)
		return false;
	f->safepoints = mem_array(f->safepoints_len, 1);
	return h->m->read(h->m->ctx, f->end, f->safepoints, f->safepoints_len);
}

/* An exit is a call of a place that V8 keeps near r13: with a distance of one byte or of four. */
static uint32_t exit_size(const uint8_t *at, size_t len)
{
	if (len < EXIT_MAX || at[0] != 0x41 || at[1] != 0xff)
		return 0;
	return at[2] == 0x55 ? 4 : at[2] == 0x95 ? EXIT_MAX : 0;
}

static bool exits_are_right(const struct v8_followed *f, const uint8_t *bytes, size_t len)
{
	for (uint32_t i = 0; i < f->exits; i++) {
		size_t at = f->exits_at + (size_t)i * f->exit_bytes;

		if (at + f->exit_bytes > len || bytes[at] != 0x41 || bytes[at + 1] != 0xff ||
		    bytes[at + 2] != (f->exit_bytes == 4 ? 0x55 : 0x95))
			return false;
	}
	return true;
}

/* ---- what v8flow asks ---- */

static int64_t of_call(void *ctx, uint32_t offset)
{
	const struct v8_followed *f = ctx;

	return v8_safepoint_find((enum v8_shape)v8_n(f->h, V8_SHAPE), f->maglev, f->safepoints,
				 f->safepoints_len, offset);
}

static void chain_read(void *ctx, uint32_t description, struct v8flow_chain *out)
{
	const struct v8_followed *f = ctx;
	size_t at = (size_t)v8_n(f->h, V8_DEOPT_FIRST) + (size_t)description * WORDS_A_DEOPT + 1;
	int64_t translation = 0;

	out->n = 0;
	if (at < f->n_data && v8_small(f->data[at], &translation) && translation >= 0)
		out->n = v8_translation_read((enum v8_shape)v8_n(f->h, V8_SHAPE), f->translations,
					     f->translations_len, (size_t)translation, out->frames);
}

static struct v8flow_code asked(struct v8_followed *f, const struct v8heap *h)
{
	f->h = h;
	return (struct v8flow_code){.len = f->exits_at,
				    .all = (size_t)(f->end - f->start),
				    .start = f->start,
				    .exits = f->exits,
				    .exit_bytes = f->exit_bytes,
				    .copies = v8_n(h, V8_SHAPE) >= V8_SHAPE_12,
				    .ctx = f,
				    .of_call = of_call,
				    .read = chain_read};
}

/* ---- one piece of code ---- */

static void follow(struct v8_followed *f, struct v8heap *h)
{
	size_t len = (size_t)(f->end - f->start);
	uint8_t *bytes;
	struct v8flow_code c;

	if (!translations_take(f, h) || !safepoints_read(f, h) ||
	    !number_at(f, h, EXITS_AT, V8_FLOW_BYTES_MAX, &f->exits_at) ||
	    !number_at(f, h, EXITS, V8_FLOW_BYTES_MAX, &f->exits) || f->exits_at > len)
		return;
	bytes = mem_array(len + 1, 1);
	if (h->m->read(h->m->ctx, f->start, bytes, len)) {
		f->exit_bytes = exit_size(bytes + f->exits_at, len - f->exits_at);
		c = asked(f, h);
		c.bytes = bytes;
		if (f->exit_bytes && exits_are_right(f, bytes, len))
			f->flow = v8flow_new(&c);
	}
	free(bytes);
}

static uint64_t data_of(struct v8heap *h, const struct v8_code *code)
{
	uint64_t data = 0;

	return v8_word(h, code->code, v8_n(h, V8_CODE_DEOPT), &data) ? data : 0;
}

/* The number that V8 has given this piece of code; 0: none. */
static uint64_t number_of(struct v8heap *h, uint64_t data)
{
	uint64_t tagged = 0;
	int64_t value = 0;

	if (!v8_is_object(data) ||
	    !v8_word(h, data,
		     v8_n(h, V8_ARRAY_DATA) +
			     (v8_n(h, V8_DEOPT_SHARED) + OPTIMIZATION_ID) * (int32_t)WORD,
		     &tagged) ||
	    !v8_small(tagged, &value) || value < 0)
		return 0;
	return (uint64_t)value + 1;
}

static struct v8_followed *followed_of(struct v8running *r, struct v8heap *h,
				       const struct v8_code *code, uint64_t data)
{
	struct v8_followed **slot = &r->kept[code->start / 32 * 0x9e3779b97f4a7c15ull >> 56],
			   *f = *slot;
	uint64_t number = number_of(h, data);

	_Static_assert(V8_RUNNING_KEPT == 256, "eight bits");
	if (!number)
		return NULL;
	if (f && f->start == code->start && f->end == code->end && f->number == number)
		return f;
	followed_free(f);
	f = *slot = mem_alloc(sizeof(*f));
	*f = (struct v8_followed){.start = code->start,
				  .end = code->end,
				  .number = number,
				  .maglev = code->tier == V8_TIER_MAGLEV};
	if (f->end - f->start <= V8_FLOW_BYTES_MAX && data_read(f, h, data))
		follow(f, h);
	return f;
}

size_t v8running_at(struct v8running *r, struct v8heap *h, const struct v8_code *code,
		    uint64_t shared, uint64_t pc, struct v8_function out[V8_INLINED_MAX])
{
	uint64_t data = data_of(h, code);
	struct v8_followed *f = followed_of(r, h, code, data);
	struct v8flow_chain chain;
	struct v8flow_code c;
	size_t n;

	if (!f || !f->flow || pc < code->start)
		return 0;
	c = asked(f, h);
	v8flow_at(f->flow, &c, (uint32_t)(pc - code->start), &chain);
	n = v8code_functions(h, data, chain.frames, chain.n, out);
	if (!n || out[0].shared != shared)
		return 0;
	out[n - 1].bytecode = V8_NOWHERE;
	return n;
}
