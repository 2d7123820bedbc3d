/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/python.h"

#include <stdlib.h>
#include <string.h>

#include "probes/runtimes/python.h"
#include "schema/base/mem.h"

/* from PyVarObject.ob_size, which texts of bytes have too, to PyTypeObject.tp_basicsize */
#define BEHIND_SIZE 16
#define AT_NONE     SIZE_MAX
#define STEPS_MAX   4096 /* of one state */
#define STATES_MAX  16   /* of one thread */

struct thread_state {
	uint64_t id, addr;
	uint64_t gil; /* 0: not known */
};

struct python {
	struct runtime_budget memory;
	struct python_layout layout;
	uint64_t bias;
	bool listed;
	struct thread_state *threads; /* by id */
	size_t n_threads, cap_threads;
};

static int python_read(struct python_walk *w, __u64 addr, __u64 *value)
{
	const struct runtime_memory *m = w->ctx;
	uint64_t word;

	if (!m->read(m->ctx, addr, &word, sizeof(word)))
		return -1;
	*value = word;
	return 0;
}

static bool word_read(const struct python *p, uint64_t addr, uint64_t *value)
{
	return runtime_word(&p->memory.counted, addr, value);
}

/* ---- the interpreter ---- */

struct python *python_open(const struct runtime_memory *m, const void *section, size_t size,
			   uint64_t bias)
{
	struct python_layout l;
	uint64_t basic = 0;
	struct python *p;

	if (!runtime_layout_take(&l, sizeof(l), PYTHON_FORMAT, section, size) ||
	    !m->read(m->ctx, l.code_type + bias + l.bytes_length + BEHIND_SIZE, &basic,
		     sizeof(basic)) ||
	    basic != l.code_size)
		return NULL;
	p = mem_alloc(sizeof(*p));
	*p = (struct python){.layout = l, .bias = bias};
	runtime_budget_begin(&p->memory, m);
	return p;
}

void python_close(struct python *p)
{
	if (!p)
		return;
	free(p->threads);
	free(p);
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct thread_state *)a)->id, y = ((const struct thread_state *)b)->id;

	return x < y ? -1 : x > y;
}

static uint64_t gil_of(const struct python *p, uint64_t interp)
{
	uint64_t gil = p->layout.gil ? p->layout.gil + p->bias : 0;

	if (p->layout.interp_gil)
		word_read(p, interp + p->layout.interp_gil, &gil);
	return gil;
}

/* Other threads run, begin and end while this is read: a list that is changed may lose some. */
static void threads_list(struct python *p)
{
	const struct python_layout *l = &p->layout;
	uint64_t interp = 0;

	p->listed = true;
	word_read(p, l->interpreters + p->bias, &interp);
	for (int i = 0; interp && i < PYTHON_INTERPS_MAX; i++) {
		struct thread_state t = {.gil = gil_of(p, interp)};

		word_read(p, interp + l->interp_threads, &t.addr);
		while (t.addr && p->n_threads < PYTHON_THREADS_MAX) {
			if (!word_read(p, t.addr + l->thread_id, &t.id))
				break;
			mem_grow(p->threads, p->n_threads, p->cap_threads);
			p->threads[p->n_threads++] = t;
			if (!word_read(p, t.addr + l->thread_next, &t.addr))
				break;
		}
		if (!word_read(p, interp + l->interp_next, &interp))
			break;
	}
	if (p->n_threads)
		qsort(p->threads, p->n_threads, sizeof(*p->threads), by_id);
}

enum runtime_gil python_gil(struct python *p, uint64_t fs_base, uint64_t futex)
{
	runtime_budget_fresh(&p->memory);
	if (!p->listed)
		threads_list(p);
	for (size_t i = 0; i < p->n_threads; i++) {
		const struct thread_state *t = &p->threads[i];
		uint64_t holder = 0;
		int32_t locked = 0;

		if (t->id != fs_base || !t->gil)
			continue;
		if (futex >= t->gil + PYTHON_GIL_COND && futex < t->gil + PYTHON_GIL_SIZE)
			return RUNTIME_GIL_WAITS;
		if (word_read(p, t->gil + PYTHON_GIL_HOLDER, &holder) && holder == t->addr &&
		    p->memory.counted.read(&p->memory, t->gil + PYTHON_GIL_LOCKED, &locked,
					   sizeof(locked)) &&
		    locked == 1)
			return RUNTIME_GIL_HOLDS;
	}
	return RUNTIME_GIL_NEITHER;
}

/* ---- walking ---- */

/* A frame as it was walked; of a chunk they have one mark. */
struct raw {
	uint64_t code, at, mark;
};

struct raws {
	struct raw frames[PYTHON_STACK_MAX];
	size_t n;
	size_t states; /* that had frames */
	bool cut;
};

static void marks_set(struct raws *r, size_t from, uint64_t mark)
{
	for (size_t i = from; i < r->n; i++)
		r->frames[i].mark = mark;
}

/* A chunk that does not close has no place: it goes. What is beyond the limit is walked to where
 * its chunk closes. */
static void state_walk(struct python *p, uint64_t state, struct raws *r)
{
	struct python_walk w = {.ctx = &p->memory.counted};
	size_t first = r->n, chunk = r->n;
	enum python_step step = PYTHON_FAULT;
	bool full = false;

	for (int i = python_begin(&w, &p->layout, state) ? STEPS_MAX : 0; i < STEPS_MAX; i++) {
		step = python_next(&w, &p->layout);
		if (step == PYTHON_END || step == PYTHON_FAULT)
			break;
		if (step != PYTHON_SHIM && r->n < PYTHON_STACK_MAX)
			r->frames[r->n++] = (struct raw){.code = w.code, .at = w.at};
		else if (step != PYTHON_SHIM)
			full = true;
		if (step == PYTHON_FRAME)
			continue;
		marks_set(r, chunk, w.mark);
		chunk = r->n;
		if (full)
			break;
	}
	r->cut |= step != PYTHON_END || chunk < r->n;
	r->n = chunk;
	r->states += r->n > first;
}

static void states_walk(struct python *p, uint64_t id, struct raws *r)
{
	if (!p->listed)
		threads_list(p);
	for (size_t i = 0, walked = 0; i < p->n_threads && walked < STATES_MAX; i++) {
		uint64_t now = 0;

		if (p->threads[i].id != id ||
		    !word_read(p, p->threads[i].addr + p->layout.thread_id, &now) || now != id)
			continue;
		walked++;
		state_walk(p, p->threads[i].addr, r);
	}
}

/* ---- places ---- */

static bool in_loop(const struct python *p, uint64_t pc)
{
	uint64_t at = pc - p->bias;

	for (int i = 0; i < PYTHON_RANGES && p->layout.loop_end[i]; i++)
		if (at >= p->layout.loop_start[i] && at < p->layout.loop_end[i])
			return true;
	return false;
}

/* 2. of the header */
static void place_by_marks(const struct runtime_native *n, const struct raws *r, size_t *at)
{
	for (size_t i = 0; i < r->n; i++) {
		const uint64_t mark = r->frames[i].mark;

		at[i] = AT_NONE;
		for (size_t k = 0; k + 1 < n->n; k++)
			if (mark >= n->sp[k] && mark < n->sp[k + 1])
				at[i] = k;
		if (at[i] == AT_NONE && n->n && !n->complete && mark >= n->sp[n->n - 1])
			at[i] = n->n;
	}
}

/* 3. of the header */
static void place_by_order(const struct python *p, const struct runtime_native *n,
			   const struct raws *r, size_t *at)
{
	size_t loops[PYTHON_STACK_MAX + 1], count = 0, skip, last;

	for (size_t k = 0; k < n->n && count <= PYTHON_STACK_MAX; k++)
		if (in_loop(p, n->pc[k]))
			loops[count++] = k;
	skip = n->complete && count == r->n + 1 && !loops[0];
	last = n->complete && count ? loops[count - 1] : n->n;
	for (size_t i = 0; i < r->n; i++)
		at[i] = i + skip < count ? loops[i + skip] : count ? last : AT_NONE;
}

struct order {
	size_t at, i;
};

static int by_place(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->i < y->i ? -1 : x->i > y->i;
}

static void tell(struct python *p, const struct raws *r, const size_t *at, struct script_stack *out)
{
	struct order order[PYTHON_STACK_MAX];
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (at[i] != AT_NONE)
			order[n++] = (struct order){at[i], i};
	qsort(order, n, sizeof(order[0]), by_place);
	for (size_t i = 0; i < n; i++) {
		const struct raw *f = &r->frames[order[i].i];
		struct script_frame frame = {.at = order[i].at};

		if (!pycode_read(&p->memory.counted, &p->layout, p->bias, f->code, f->at,
				 &frame.place)) {
			out->cut = true;
			break;
		}
		script_stack_add(out, frame.at)->place = frame.place;
	}
}

void python_stack(struct python *p, const struct runtime_native *native, struct script_stack *out)
{
	static struct raws r; /* too large for a stack; one thread walks */
	size_t at[PYTHON_STACK_MAX];

	runtime_budget_fresh(&p->memory);
	r.n = r.states = 0;
	r.cut = false;
	if (!native->fs_base || !native->n)
		return;
	states_walk(p, native->fs_base, &r);
	if (p->layout.shape != PYTHON_OBJECTS)
		place_by_marks(native, &r, at);
	else if (r.states < 2)
		place_by_order(p, native, &r, at);
	else
		r.n = 0;
	out->cut |= r.cut;
	tell(p, &r, at, out);
}
