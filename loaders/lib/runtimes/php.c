/* SPDX-License-Identifier: Apache-2.0 */
/* php: see the header. */
#include "loaders/lib/runtimes/php.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/chunks.h"
#include "probes/runtimes/php.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define STEPS_MAX      4096
#define GENERATORS_MAX 64 /* that wait for one another */

/* zend_function, zend_string, zend_class_entry, zend_op: alike from 7.4 to 8.4 */
#define FUNCTION_NAME  8
#define FUNCTION_CLASS 16
#define STRING_GC      4 /* u32: its type in the low four bits */
#define STRING_LENGTH  16
#define STRING_BYTES   24
#define STRING_TYPE    6
#define STRING_MAX     (1u << 20)
#define CLASS_NAME     8
#define OP_SIZE        32
#define OP_LINE        24
#define ZVAL_OBJECT    8 /* the type in a zval */
#define FRAME_THIS     32

struct php {
	struct runtime_budget memory;
	struct php_layout layout;
	uint64_t bias;
};

static int php_read(struct php_walk *w, __u64 addr, __u64 *value)
{
	uint64_t word = 0;

	if (!runtime_word(w->ctx, addr, &word))
		return -1;
	*value = word;
	return 0;
}

static bool word(const struct php *p, uint64_t addr, uint64_t *value)
{
	return runtime_word(&p->memory.counted, addr, value);
}

static bool half(const struct php *p, uint64_t addr, uint32_t *value)
{
	return p->memory.counted.read(p->memory.counted.ctx, addr, value, sizeof(*value));
}

struct php *php_open(const struct runtime_memory *m, const void *section, size_t size, uint64_t bias)
{
	struct php_layout l;
	struct php *p;

	if (size != sizeof(l))
		return NULL;
	memcpy(&l, section, sizeof(l));
	if (l.format != PHP_FORMAT)
		return NULL;
	p = mem_alloc(sizeof(*p));
	*p = (struct php){.layout = l, .bias = bias};
	runtime_budget_begin(&p->memory, m);
	return p;
}

void php_close(struct php *p)
{
	free(p);
}

/* ---- walking ---- */

/* A frame as it was walked. */
struct raw {
	uint64_t func, at;
	uint32_t type;
	bool outermost;
};

struct raws {
	struct raw frames[SCRIPT_STACK_MAX];
	uint32_t chunk[SCRIPT_STACK_MAX]; /* the how many-th call of the loop it belongs to */
	size_t n;
	uint32_t chunks;
	bool cut;
};

static bool raw_add(struct raws *r, const struct raw *f)
{
	if (r->n == SCRIPT_STACK_MAX)
		return false;
	r->chunk[r->n] = r->chunks;
	r->frames[r->n++] = *f;
	return true;
}

/* The generator that a frame without a function stands for, and those that wait for it, which waits for the one that runs. */
static bool generators_add(struct php *p, uint64_t frame, struct raws *r)
{
	struct raw found[GENERATORS_MAX];
	uint64_t generator = 0, parent = 0, grand = 0, info = 0, its = 0;
	size_t n = 0;

	if (!p->layout.generator_parent || !word(p, frame + PHP_FRAME_INFO, &info) || (info & 0xff) != ZVAL_OBJECT ||
	    !word(p, frame + FRAME_THIS, &generator) || !word(p, generator + p->layout.generator_parent, &parent))
		return false;
	for (; n < GENERATORS_MAX && parent; n++) {
		struct php_walk w = {.ctx = &p->memory.counted};

		if (!word(p, parent + p->layout.generator_parent, &grand) || !word(p, generator + p->layout.generator_frame, &its))
			return false;
		w.next = its;
		if (php_next(&w) == PHP_FAULT || w.type != PHP_SCRIPT)
			return false;
		found[n] = (struct raw){.func = w.func, .at = w.at, .type = w.type};
		generator = parent;
		parent = grand;
	}
	if (parent)
		return false;
	while (n)
		if (!raw_add(r, &found[--n]))
			return false;
	return true;
}

static void walk(struct php *p, struct raws *r)
{
	struct php_walk w = {.ctx = &p->memory.counted};
	enum php_step step = PHP_FAULT;
	size_t whole = 0; /* frames of chunks that are closed */

	for (int i = php_begin(&w, &p->layout, p->layout.globals + p->bias) ? STEPS_MAX : 0; i < STEPS_MAX; i++) {
		bool room = true;

		step = php_next(&w);
		if (step == PHP_END || step == PHP_FAULT)
			break;
		if (w.type)
			room = raw_add(r, &(struct raw){w.func, w.at, w.type, !w.next});
		else
			r->cut |= !generators_add(p, w.frame, r);
		if (!room)
			break;
		if (step == PHP_CLOSES) {
			r->chunks++;
			whole = r->n;
		}
	}
	r->cut |= step != PHP_END;
	if (r->n < SCRIPT_STACK_MAX && step != PHP_END) /* what does not close has no place; functions of C that no script called come last */
		r->n = whole;
}

/* 1. of the header */
static bool is_its_thread(const struct php *p, const struct chunks_loop *loop, const struct runtime_native *n)
{
	return chunks_in_loop(loop, n) || (p->layout.program && !n->complete && n->tid && n->tid == n->tgid);
}

/* ---- names ---- */

/* A string's text, as far as its first 0. NULL: it is none. */
static char *text_read(const struct php *p, uint64_t string)
{
	char bytes[SCRIPT_TEXT_MAX + 4];
	uint64_t length = 0;
	uint32_t gc = 0;
	char end = 1;
	size_t n;

	if (!string || (string & 7) || !half(p, string + STRING_GC, &gc) || (gc & 0xf) != STRING_TYPE ||
	    !word(p, string + STRING_LENGTH, &length) || !length || length > STRING_MAX ||
	    !p->memory.counted.read(p->memory.counted.ctx, string + STRING_BYTES + length, &end, 1) || end)
		return NULL;
	n = length < SCRIPT_TEXT_MAX ? (size_t)length : SCRIPT_TEXT_MAX;
	if (!p->memory.counted.read(p->memory.counted.ctx, string + STRING_BYTES, bytes, n))
		return NULL;
	memcpy(bytes + n, n < length ? "..." : "", n < length ? 4 : 1);
	return mem_strdup(bytes);
}

static char *text_at(const struct php *p, uint64_t addr)
{
	uint64_t string = 0;

	return word(p, addr, &string) ? text_read(p, string) : NULL;
}

static char *function_name(const struct php *p, const struct raw *f)
{
	struct strbuf name = STRBUF_INIT;
	cleanup_free char *own = NULL;
	cleanup_free char *of = NULL;
	uint64_t text = 0, class = 0;

	if (!word(p, f->func + FUNCTION_NAME, &text) || !word(p, f->func + FUNCTION_CLASS, &class))
		return NULL;
	if (!text)
		return f->type == PHP_INTERNAL ? NULL : mem_strdup(f->type == PHP_EVAL ? "{eval}" : f->outermost ? "{main}" : "{include}");
	own = text_read(p, text);
	if (!own)
		return NULL;
	if (class) {
		of = class & 7 ? NULL : text_at(p, class + CLASS_NAME);
		if (!of)
			return NULL;
		strbuf_addf(&name, "%s::", of);
	}
	strbuf_addstr(&name, own);
	return strbuf_take(&name);
}

/* 0: the instruction is none of this function's. */
static uint32_t line_read(const struct php *p, const struct raw *f)
{
	uint64_t code = 0;
	uint32_t count = 0, line = 0;

	if (!word(p, f->func + p->layout.code, &code) || !half(p, f->func + p->layout.code_count, &count) || f->at < code ||
	    (f->at - code) % OP_SIZE || (f->at - code) / OP_SIZE >= count || !half(p, f->at + OP_LINE, &line))
		return 0;
	return line;
}

/* false: it is no function. */
static bool place_read(const struct php *p, const struct raw *f, struct script_place *out)
{
	struct script_place got = {0};

	if (f->type != PHP_INTERNAL) {
		got.file = text_at(p, f->func + p->layout.file);
		if (!got.file)
			return false;
		got.line = line_read(p, f);
	}
	got.function = function_name(p, f);
	if (!got.function && f->type == PHP_INTERNAL)
		return false;
	*out = got;
	return true;
}

void php_stack(struct php *p, const struct runtime_native *native, struct script_stack *out)
{
	static struct raws r; /* too large for a stack; one thread walks */
	const struct chunks_loop loop = {p->layout.loop_start, p->layout.loop_end, PHP_RANGES, p->bias};
	size_t at[SCRIPT_STACK_MAX];

	runtime_budget_fresh(&p->memory);
	r.n = r.chunks = 0;
	r.cut = false;
	if (!is_its_thread(p, &loop, native))
		return;
	walk(p, &r);
	chunks_place(&loop, native, r.chunk, r.n, r.chunks, r.n == SCRIPT_STACK_MAX, at);
	out->cut |= r.cut;
	for (size_t i = 0; i < r.n; i++) {
		struct script_place place_of = {0};

		if (!place_read(p, &r.frames[i], &place_of)) {
			if (r.frames[i].type == PHP_INTERNAL)
				continue; /* a fiber's own has no name */
			out->cut = true;
			break;
		}
		script_stack_add(out, at[i])->place = place_of;
	}
}
