/* SPDX-License-Identifier: Apache-2.0 */
/* v8flow_graph: dominators by Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm". */
#include "loaders/lib/runtimes/v8/v8flow_graph.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "loaders/lib/code/x86insn.h"

enum { RSP = 4, CMP = 7, R13 = 13 };
#define INTERRUPT_BYTE (-0x4f) /* from r13: asks a loop to stop */
#define TABLE_ENTRIES  64u
/* instructions from the comparison with its length to the jump through a table */
#define TABLE_STEPS 6u
#define BEGIN_BYTES 64u /* of a function's code, before its frame is set up */
#define ROUNDS_MAX  64u /* of a graph whose circles are loops few are needed */

void v8flow_graph_release(struct v8flow_graph *g)
{
	free(g->insns);
	free(g->after);
	free(g->next);
	free(g->before);
	free(g->edges);
	free(g->order);
	free(g->by_order);
	free(g->above);
	free(g->root);
	free(g->loop);
	free(g->outer);
	*g = (struct v8flow_graph){0};
}

uint32_t v8flow_insn_at(const struct v8flow_graph *g, uint32_t offset)
{
	uint32_t from = 0, to = g->n;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;

		if (g->insns[mid].at < offset)
			from = mid + 1;
		else
			to = mid;
	}
	return from < g->n && g->insns[from].at == offset ? from : V8_FLOW_NONE;
}

/* ---- instructions ---- */

/* Where a jump leads: an offset, of which the block is found once all are known; into an exit: what
 * that describes. Out of the code (a builtin that takes over): it leaves. */
static bool jump_to(const struct v8flow_code *c, uint32_t next, int64_t distance,
		    struct v8flow_insn *out)
{
	int64_t to = (int64_t)next + distance;
	uint64_t past = (uint64_t)to - c->len;

	if (to >= 0 && (uint64_t)to < c->len) {
		out->target = (uint32_t)to;
	} else if (to >= 0 && past < (uint64_t)c->exits * c->exit_bytes) {
		if (past % c->exit_bytes)
			return false;
		out->says = (int32_t)(past / c->exit_bytes);
	} else {
		out->returns = true;
	}
	return true;
}

/* Those of SSE and AVX that name no general register as what they change. */
static bool is_of_vectors(const struct x86insn *x)
{
	switch (x->map == 1 ? x->opcode : 0) {
	case 0x10:
	case 0x11:
	case 0x28:
	case 0x29:
	case 0x2a:
	case 0x2e:
	case 0x2f:
	case 0x51:
	case 0x54:
	case 0x57:
	case 0x58:
	case 0x59:
	case 0x5c:
	case 0x5e:
		return true;
	default:
		return false;
	}
}

static bool is_interrupt_byte(const struct x86insn *x)
{
	return x->mod != 3 && x->rm == R13 && x->disp == INTERRUPT_BYTE;
}

/* What matters of registers, roughly: all that an instruction names may change. */
static void registers_note(const struct x86insn *x, struct v8flow_insn *out)
{
	bool tests = !x->map && x->mod == 3 &&
		     (((x->opcode | 1) == 0x85 && x->reg == x->rm) ||
		      (x->opcode == 0x83 && x->reg == CMP && !x->imm));

	out->sets = x->map == 1 && (x->opcode == 0x97 || x->opcode == 0x94) && x->mod == 3 ?
			    x->rm :
			    V8_FLOW_NO_REGISTER;
	if (x->map == 1 && x->opcode == 0xb6 && is_interrupt_byte(x)) {
		out->asks = V8_FLOW_ASKS_BYTE;
		out->sets = x->reg;
	}
	out->tests = tests ? x->rm : V8_FLOW_NO_REGISTER;
	if (!x->has_modrm) /* a register in the opcode, and those of mul, movs, ... */
		out->changes = (!x->map && (x->opcode & 0xf0) == 0x70) ||
					       (x->map == 1 && (x->opcode & 0xf0) == 0x80) ?
				       0 :
				       UINT16_MAX;
	else if (!is_of_vectors(x))
		out->changes = (uint16_t)(1u << x->reg | (x->mod == 3 ? 1u << x->rm : 0u));
	if (!x->map && (x->opcode == 0xf7 || x->opcode == 0xf6))
		out->changes |= 1u << 0 | 1u << 2; /* rax, rdx */
}

/* false: a jump into the middle of something. */
static bool classify(const struct v8flow_code *c, const struct x86insn *x, uint32_t next,
		     struct v8flow_insn *out)
{
	bool near = x->map == 1 && (x->opcode & 0xf0) == 0x80;

	out->falls = true;
	registers_note(x, out);
	if (near || (!x->map && (x->opcode & 0xf0) == 0x70)) {
		out->condition = x->opcode & 15;
		return jump_to(c, next, x->imm, out);
	}
	if (x->map) {
		out->falls = x->map != 1 || x->opcode != 0x0b; /* ud2 */
		return true;
	}
	switch (x->opcode) {
	case 0xe0:
	case 0xe1:
	case 0xe2:
	case 0xe3:
		return jump_to(c, next, x->imm, out);
	case 0xe9:
	case 0xeb:
		out->falls = false;
		return jump_to(c, next, x->imm, out);
	case 0xc2:
	case 0xc3:
		out->falls = false;
		out->returns = true;
		return true;
	case 0xcc:
		out->falls = false;
		out->stops = true;
		return true;
	case 0xe8:
		out->calls = true;
		break;
	case 0xff:
		out->calls = (x->reg & 7) == 2;
		out->falls = (x->reg & 7) != 4; /* through a table, or to other code */
		break;
	case 0x3b:
		out->asks = x->mod != 3 && x->reg == RSP && x->rm == R13 ? V8_FLOW_ASKS_STACK : 0;
		break;
	case 0x80:
		out->asks =
			x->reg == CMP && is_interrupt_byte(x) && !x->imm ? V8_FLOW_ASKS_BYTE : 0;
		break;
	default:
		break;
	}
	if (out->calls)
		out->says = (int32_t)c->of_call(c->ctx, next);
	return true;
}

/* What was seen before a jump through a table: its length, and where it is. */
struct table {
	uint32_t steps;
	int64_t length;
	uint32_t at;
	uint8_t base;
};

/* cmp r,N; jae; lea base,[rip+table]; jmp [base+r*8]. */
static void table_find(struct table *t, const struct v8flow_code *c, const struct x86insn *x,
		       struct v8flow_insn *out)
{
	int64_t at = (int64_t)out->at + x->len + x->disp;

	if (!x->map && (x->opcode == 0x83 || x->opcode == 0x81) && x->mod == 3 && x->reg == CMP)
		*t = (struct table){.length = x->imm};
	else
		t->steps++;
	if (!x->map && x->opcode == 0x8d && !x->mod && (x->rm & 7) == 5 && at >= (int64_t)c->len &&
	    at < (int64_t)c->all) {
		t->at = (uint32_t)at;
		t->base = x->reg;
	}
	if (!x->map && x->opcode == 0xff && (x->reg & 7) == 4 && x->mod != 3 &&
	    x->sib_base == t->base && t->at && t->steps < TABLE_STEPS && t->length > 0 &&
	    t->length <= TABLE_ENTRIES && t->at + (uint64_t)t->length * 8 <= c->all) {
		out->table = t->at;
		out->entries = (uint8_t)t->length;
	}
}

static bool insns_read(struct v8flow_graph *g, const struct v8flow_code *c)
{
	struct table t = {0};

	g->insns = mem_array(c->len, sizeof(*g->insns));
	for (size_t at = 0; at < c->len;) {
		struct v8flow_insn *i = &g->insns[g->n];
		struct x86insn x;

		if (!x86insn_read(c->bytes + at, c->len - at, &x))
			return false;
		*i = (struct v8flow_insn){.at = (uint32_t)at,
					  .target = V8_FLOW_NONE,
					  .table = V8_FLOW_NONE,
					  .says = -1};
		at += x.len;
		if (at > c->len || !classify(c, &x, (uint32_t)at, i))
			return false;
		table_find(&t, c, &x, i);
		g->n++;
	}
	for (uint32_t i = 0; i < g->n; i++) {
		if (g->insns[i].target == V8_FLOW_NONE)
			continue;
		g->insns[i].target = v8flow_insn_at(g, g->insns[i].target);
		if (g->insns[i].target == V8_FLOW_NONE)
			return false;
	}
	return g->n > 0;
}

/* A call that throws does not come back, and nothing in the code says so: where a jump leads over
 * it, the next instruction is not taken to follow. */
static void throws_cut(struct v8flow_graph *g)
{
	for (uint32_t i = 0; i < g->n; i++) {
		uint32_t to = g->insns[i].target;

		if (to != V8_FLOW_NONE && to > i + 1 && g->insns[to - 1].calls)
			g->insns[to - 1].falls = false;
	}
}

static void edge(struct v8flow_graph *g, uint32_t *n, uint32_t from, uint32_t to)
{
	for (uint32_t k = g->after[from]; k < *n; k++)
		if (g->next[k] == to)
			return;
	g->next[(*n)++] = to;
}

/* An entry that leads out of this code does not count. */
static void table_edges(struct v8flow_graph *g, const struct v8flow_code *c, uint32_t i,
			uint32_t *n)
{
	for (uint32_t k = 0; k < g->insns[i].entries; k++) {
		uint64_t entry;
		uint32_t to;

		memcpy(&entry, c->bytes + g->insns[i].table + (size_t)k * sizeof(entry),
		       sizeof(entry));
		to = entry - c->start < c->len ? v8flow_insn_at(g, (uint32_t)(entry - c->start)) :
						 V8_FLOW_NONE;
		if (to != V8_FLOW_NONE)
			edge(g, n, i, to);
	}
}

static void after_find(struct v8flow_graph *g, const struct v8flow_code *c)
{
	size_t most = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->n; i++)
		most += 2u + g->insns[i].entries;
	g->after = mem_array(g->n + 1, sizeof(*g->after));
	g->next = mem_array(most, sizeof(*g->next));
	for (uint32_t i = 0; i < g->n; i++) {
		g->after[i] = n;
		if (g->insns[i].falls && i + 1 < g->n)
			edge(g, &n, i, i + 1);
		if (g->insns[i].target != V8_FLOW_NONE)
			edge(g, &n, i, g->insns[i].target);
		if (g->insns[i].table != V8_FLOW_NONE)
			table_edges(g, c, i, &n);
	}
	g->after[g->n] = n;
}

static void before_find(struct v8flow_graph *g)
{
	uint32_t n = g->after[g->n];

	g->before = mem_array(g->n + 2, sizeof(*g->before));
	g->edges = mem_array(n + 1, sizeof(*g->edges));
	for (uint32_t k = 0; k < n; k++)
		g->before[g->next[k] + 2]++;
	for (uint32_t i = 2; i < g->n + 2; i++)
		g->before[i] += g->before[i - 1];
	for (uint32_t i = 0; i < g->n; i++)
		for (uint32_t k = g->after[i]; k < g->after[i + 1]; k++)
			g->edges[g->before[g->next[k] + 1]++] = i;
}

/* ---- order ---- */

/* Appends what is reached from `root` and was not, in postorder. */
static void reach(struct v8flow_graph *g, uint32_t root, uint32_t *stack, uint8_t *step)
{
	uint32_t depth = 0;

	g->root[root] = true;
	stack[depth++] = root;
	step[root] = 1;
	while (depth) {
		uint32_t i = stack[depth - 1];

		if (step[i] > g->after[i + 1] - g->after[i]) {
			g->by_order[g->reached++] = i;
			depth--;
		} else {
			uint32_t next = g->next[g->after[i] + step[i]++ - 1];

			if (!step[next]) {
				step[next] = 1;
				stack[depth++] = next;
			}
		}
	}
}

static void order_find(struct v8flow_graph *g)
{
	uint32_t *stack = mem_array(g->n, sizeof(*stack));
	uint8_t *step = mem_array(g->n, 1);

	g->root = mem_array(g->n, sizeof(*g->root));
	g->by_order = mem_array(g->n, sizeof(*g->by_order));
	g->order = mem_array(g->n, sizeof(*g->order));
	reach(g, 0, stack, step);
	for (uint32_t i = 0; i + 1 < g->n && g->insns[i].at < BEGIN_BYTES; i++)
		if (g->insns[i].stops && !step[i + 1]) {
			reach(g, i + 1, stack,
			      step); /* code that a loop goes on in begins behind an int3 */
			break;
		}
	memset(g->order, 0xff, g->n * sizeof(*g->order));
	for (uint32_t i = 0; i < g->reached / 2; i++) {
		uint32_t other = g->by_order[i];

		g->by_order[i] = g->by_order[g->reached - 1 - i];
		g->by_order[g->reached - 1 - i] = other;
	}
	for (uint32_t i = 0; i < g->reached; i++)
		g->order[g->by_order[i]] = i;
	free(stack);
	free(step);
}

/* ---- who is on every way to whom ---- */

/* The nearest that is above both; V8_FLOW_NONE: they have different roots. */
static uint32_t both_above(const struct v8flow_graph *g, uint32_t a, uint32_t b)
{
	while (a != b) {
		uint32_t *deeper = g->order[a] > g->order[b] ? &a : &b;

		if (g->above[*deeper] == *deeper || g->above[*deeper] == V8_FLOW_NONE)
			return V8_FLOW_NONE;
		*deeper = g->above[*deeper];
	}
	return a;
}

/* One that ways from two roots lead to is a root itself: nothing is above it. */
static bool above_round(struct v8flow_graph *g)
{
	bool changed = false;

	for (uint32_t k = 0; k < g->reached; k++) {
		uint32_t i = g->by_order[k], above = V8_FLOW_NONE;
		bool split = false;

		if (g->root[i])
			continue;
		for (uint32_t e = g->before[i]; e != g->before[i + 1]; e++) {
			uint32_t from = g->edges[e];

			if (g->order[from] == V8_FLOW_NONE || g->above[from] == V8_FLOW_NONE)
				continue;
			if (above != V8_FLOW_NONE)
				from = both_above(g, above, from);
			split |= from == V8_FLOW_NONE;
			above = split ? i : from;
			if (split)
				break;
		}
		g->root[i] |= split;
		changed |= g->above[i] != above;
		g->above[i] = above;
	}
	return changed;
}

static bool above_find(struct v8flow_graph *g)
{
	unsigned rounds = 0;

	g->above = mem_array(g->n, sizeof(*g->above));
	for (uint32_t i = 0; i < g->n; i++)
		g->above[i] = g->root[i] ? i : V8_FLOW_NONE;
	while (above_round(g))
		if (++rounds > ROUNDS_MAX)
			return false;
	return true;
}

static bool is_above(const struct v8flow_graph *g, uint32_t a, uint32_t i)
{
	while (g->order[i] > g->order[a] && g->above[i] != i)
		i = g->above[i];
	return i == a;
}

/* ---- loops ---- */

/* All that lead to the jumps back to `head` without passing it; `todo` has those jumps. Inner loops
 * were taken before. */
static void loop_take(struct v8flow_graph *g, uint32_t head, uint32_t *todo, uint32_t n,
		      uint32_t *seen)
{
	seen[head] = head + 1;
	g->loop[head] = head;
	while (n) {
		uint32_t i = todo[--n];

		if (seen[i] == head + 1 || g->order[i] == V8_FLOW_NONE)
			continue;
		seen[i] = head + 1;
		if (g->loop[i] == V8_FLOW_NONE)
			g->loop[i] = head;
		else if (g->loop[i] == i && g->outer[i] == V8_FLOW_NONE)
			g->outer[i] = head;
		for (uint32_t e = g->before[i]; e != g->before[i + 1]; e++)
			if (seen[g->edges[e]] != head + 1)
				todo[n++] = g->edges[e];
	}
}

/* From the last head on: a loop within another one has its head behind that one's. false: a circle
 * that is no loop. */
static bool loops_find(struct v8flow_graph *g)
{
	uint32_t *todo = mem_array(g->before[g->n] + 1, sizeof(*todo)),
		 *seen = mem_array(g->n, sizeof(*seen));
	bool all = true;

	g->loop = mem_array(g->n, sizeof(*g->loop));
	g->outer = mem_array(g->n, sizeof(*g->outer));
	memset(g->loop, 0xff, g->n * sizeof(*g->loop));
	memset(g->outer, 0xff, g->n * sizeof(*g->outer));
	for (uint32_t k = g->reached; k-- > 0 && all;) {
		uint32_t head = g->by_order[k], n = 0;

		for (uint32_t e = g->before[head]; e != g->before[head + 1]; e++) {
			uint32_t from = g->edges[e];

			if (g->order[from] == V8_FLOW_NONE || g->order[from] < k)
				continue;
			all &= is_above(g, head, from);
			todo[n++] = from;
		}
		if (n && all)
			loop_take(g, head, todo, n, seen);
	}
	free(todo);
	free(seen);
	return all;
}

bool v8flow_graph_make(struct v8flow_graph *g, const struct v8flow_code *c)
{
	if (!c->len || c->len > V8_FLOW_BYTES_MAX || !c->exit_bytes || !insns_read(g, c))
		return false;
	throws_cut(g);
	after_find(g, c);
	before_find(g);
	order_find(g);
	return above_find(g) && loops_find(g);
}
