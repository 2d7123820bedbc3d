/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/v8/v8flow.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/v8/v8flow_graph.h"
#include "schema/base/mem.h"

#define SLOW_STEPS   64u /* instructions from a loop's question to the call that describes it */
#define ANSWER_STEPS 24u /* from the question to where its answer is jumped on */
#define AROUND_MAX   16u /* descriptions on the ways from an instruction */
enum { EQUAL = 4, NOT_EQUAL = 5, ABOVE = 7 }; /* conditions of x86 */

struct v8flow {
	struct v8flow_graph g;
	uint32_t *question; /* own; by instruction: the head of a loop: the description that its
			       question leads to, and 1; 0: none */
	uint32_t *todo;     /* own; instructions of a way that is being followed */
	uint32_t *seen;     /* own; the turn in which an instruction was met */
	uint32_t turn;
};

void v8flow_free(struct v8flow *f)
{
	if (!f)
		return;
	v8flow_graph_release(&f->g);
	free(f->question);
	free(f->todo);
	free(f->seen);
	free(f);
}

/* The description of the call that the slow way from `i` comes to; negative: none is certain. */
static int64_t slow_way(const struct v8flow_graph *g, uint32_t i)
{
	for (unsigned n = 0; n < SLOW_STEPS && i < g->n; n++) {
		const struct v8flow_insn *x = &g->insns[i];

		if (x->calls && x->says >= 0)
			return x->says;
		if (x->target != V8_FLOW_NONE && x->falls)
			return -1;
		i = x->falls ? i + 1 : x->target;
	}
	return -1;
}

/* Where the answer to the question at `i` is jumped on: at the next instruction, or, if it was kept
 * in a register by `keeps`, where that is tested. */
static uint32_t answer_find(const struct v8flow_graph *g, uint32_t i, uint32_t keeps)
{
	if (g->insns[keeps].sets == V8_FLOW_NO_REGISTER)
		return i + 1;
	for (uint32_t at = keeps + 1;
	     at + 1 < g->n && at - i < ANSWER_STEPS && g->insns[at].falls && !g->insns[at].calls;
	     at++) {
		if (g->insns[at].tests == g->insns[keeps].sets)
			return at + 1;
		if (g->insns[at].changes >> g->insns[keeps].sets & 1)
			break;
	}
	return V8_FLOW_NONE;
}

/* The description that the slow way leads to from the question at `i`; negative: none. */
static int64_t question_says(const struct v8flow_graph *g, uint32_t i)
{
	uint8_t asks = g->insns[i].asks, on = asks == V8_FLOW_ASKS_BYTE ? EQUAL : ABOVE;
	uint32_t keeps = i, at;
	const struct v8flow_insn *jump;

	if (g->insns[i].sets == V8_FLOW_NO_REGISTER &&
	    g->insns[i + 1].sets != V8_FLOW_NO_REGISTER && !g->insns[i + 1].asks) {
		keeps = i + 1;
		on = NOT_EQUAL; /* seta or sete: 1 where the loop goes on */
	}
	at = answer_find(g, i, keeps);
	jump = at < g->n ? &g->insns[at] : NULL;
	if (!jump || !jump->falls || jump->target == V8_FLOW_NONE ||
	    jump->condition >> 1 != on >> 1)
		return -1;
	return slow_way(g, jump->condition == on ? at + 1 : jump->target);
}

static void questions_find(struct v8flow *f)
{
	const struct v8flow_graph *g = &f->g;

	for (uint32_t i = 0; i + 1 < g->n; i++) {
		int64_t says =
			g->insns[i].asks && g->loop[i] != V8_FLOW_NONE ? question_says(g, i) : -1;

		if (says >= 0)
			f->question[g->loop[i]] = (uint32_t)says + 1;
	}
}

struct v8flow *v8flow_new(const struct v8flow_code *c)
{
	struct v8flow *f = mem_alloc(sizeof(*f));

	*f = (struct v8flow){0};
	if (!v8flow_graph_make(&f->g, c)) {
		v8flow_free(f);
		return NULL;
	}
	f->question = mem_array(f->g.n, sizeof(*f->question));
	f->seen = mem_array(f->g.n, sizeof(*f->seen));
	f->todo = mem_array(f->g.n, sizeof(*f->todo));
	questions_find(f);
	return f;
}

/* ---- the descriptions around an instruction ---- */

/* Those that are met first, on ways in one direction. */
struct around {
	struct v8flow *f;
	uint32_t says[AROUND_MAX];
	size_t n, todo;
};

static void meet(struct around *a, int64_t description)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->says[i] == description)
			return;
	if (description >= 0 && a->n < AROUND_MAX)
		a->says[a->n++] = (uint32_t)description;
}

/* The description of the nearest loop that has one, from that of this head outwards. */
static int64_t loop_says(const struct v8flow *f, uint32_t head)
{
	for (; head != V8_FLOW_NONE; head = f->g.outer[head])
		if (f->question[head])
			return (int64_t)f->question[head] - 1;
	return -1;
}

static void go(struct around *a, uint32_t to)
{
	if (a->f->seen[to] == a->f->turn)
		return;
	a->f->seen[to] = a->f->turn;
	a->f->todo[a->todo++] = to;
}

static void begin(struct around *a, struct v8flow *f, uint32_t i)
{
	*a = (struct around){.f = f};
	f->turn++;
	go(a, i);
}

static void next_find(struct around *a, struct v8flow *f, uint32_t i)
{
	const struct v8flow_graph *g = &f->g;

	for (begin(a, f, i); a->todo;) {
		uint32_t at = f->todo[--a->todo];

		if (g->insns[at].says >= 0) {
			meet(a, g->insns[at].says);
			continue;
		}
		for (uint32_t k = g->after[at]; k < g->after[at + 1]; k++)
			if (g->loop[g->next[k]] == g->next[k])
				meet(a, loop_says(f, g->next[k]));
			else
				go(a, g->next[k]);
	}
}

static void last_find(struct around *a, struct v8flow *f, uint32_t i)
{
	const struct v8flow_graph *g = &f->g;

	for (begin(a, f, i); a->todo;) {
		uint32_t at = f->todo[--a->todo];

		if (g->loop[at] == at) {
			meet(a, loop_says(f, at));
			continue;
		}
		for (uint32_t e = g->before[at]; e != g->before[at + 1]; e++) {
			uint32_t from = g->edges[e];

			if (g->order[from] != V8_FLOW_NONE && g->insns[from].says >= 0)
				meet(a, g->insns[from].says);
			else if (g->order[from] != V8_FLOW_NONE)
				go(a, from);
		}
	}
}

/* ---- what they have in common ---- */

static bool is_same_frame(const struct v8_inlined *a, const struct v8_inlined *b)
{
	return a->literal == b->literal && a->builtin == b->builtin;
}

/* How many frames two chains begin with alike: behind a caller that is at another place nothing is.
 */
static size_t common(const struct v8flow_chain *a, const struct v8flow_chain *b)
{
	size_t n = 0;

	while (n < a->n && n < b->n && is_same_frame(&a->frames[n], &b->frames[n])) {
		n++;
		if (a->frames[n - 1].bytecode != b->frames[n - 1].bytecode)
			break;
	}
	return n;
}

/* Of one that was last before and one that comes next. Where a loop's body may have been copied,
 * the next copy's call says the same: only further on in the function is it surely the same call.
 */
static size_t between(const struct v8flow_code *c, const struct v8flow_chain *last,
		      const struct v8flow_chain *next)
{
	size_t n = common(last, next);

	if (n < 2 || last->frames[n - 1].bytecode < next->frames[n - 1].bytecode)
		return n;
	return c->copies || last->frames[n - 1].bytecode > next->frames[n - 1].bytecode ? 1 : n;
}

static void ways_say(struct v8flow *f, const struct v8flow_code *c, uint32_t i,
		     struct v8flow_chain *out)
{
	struct around last, next;
	struct v8flow_chain before, after;

	out->n = 0;
	last_find(&last, f, i);
	next_find(&next, f, i);
	for (size_t k = 0; k < last.n; k++) {
		c->read(c->ctx, last.says[k], &before);
		for (size_t j = 0; j < next.n; j++) {
			size_t n;

			c->read(c->ctx, next.says[j], &after);
			n = between(c, &before, &after);
			if (n > out->n) {
				*out = before;
				out->n = n;
			}
		}
	}
}

/* What its loop says is certain, and more than that if the ways say more. */
static void loop_holds(const struct v8flow *f, const struct v8flow_code *c, uint32_t i,
		       struct v8flow_chain *out)
{
	struct v8flow_chain of_loop = {.n = 0};
	int64_t says = loop_says(f, f->g.loop[i]);

	if (says < 0)
		return;
	c->read(c->ctx, (uint32_t)says, &of_loop);
	if (common(out, &of_loop) < (out->n < of_loop.n ? out->n : of_loop.n))
		out->n = 0; /* one of them says what is not so */
	else if (out->n < of_loop.n)
		*out = of_loop;
}

void v8flow_at(struct v8flow *f, const struct v8flow_code *c, uint32_t offset,
	       struct v8flow_chain *out)
{
	uint32_t i = v8flow_insn_at(&f->g, offset);

	out->n = 0;
	if (i == V8_FLOW_NONE || f->g.order[i] == V8_FLOW_NONE)
		return;
	ways_say(f, c, i, out);
	loop_holds(f, c, i, out);
	if (out->n)
		out->frames[out->n - 1].bytecode = V8_NOWHERE;
}
