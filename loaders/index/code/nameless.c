/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's conditions. */
#include "loaders/index/code/nameless.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/code/codeflow.h"
#include "loaders/index/elf/region.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"

#define PIECE     (4u << 20)
#define OVERLAP   1024u
#define CODE_MOST (256ull << 20) /* bytes of all segments that are looked through */
#define DATA_MOST (64ull << 20)
#define NAME_MOST 512u
#define TARGETS   64u
#define REFS      64u
#define NEAR      24 /* bytes around the instruction that loads the text */
#define RECORD    24 /* bytes of a place in a Rust source */

enum what {
	RING_PLACE,
	AEAD_FILE,
	/* 3: names, those of one operation together */
	NAME,
	NAME_EARLY,
	NAME_INTERNAL
};
#define NAMES_OF_ONE 3u
#define CALLERS      16u
#define WRAPPER_MOST 256u /* bytes of a function that passes all on */

enum { R8 = 8 };

/* An address that code loads: of a text, or of a record of one. */
struct target {
	uint64_t at;
	unsigned what;
	uint32_t line; /* RING_PLACE */
};

struct ref {
	struct elf_range function;
	unsigned what;
	uint32_t line;
	unsigned errors;
};

struct work {
	struct elf_file *f;
	const struct rows *rows;
	struct nameless *out;
	uint64_t ring_end; /* where the file's name ends; 0: it is not there */
	struct target targets[TARGETS];
	size_t target_count;
	struct ref refs[REFS];
	size_t ref_count;
	struct { /* 3, by operation: who calls the inner function */
		uint64_t inner;
		struct elf_range at[CALLERS];
		size_t n;
	} calls[2];
	bool too_many;
	unsigned minor; /* of OpenSSL 3 */
	/* of the piece that is looked through */
	const uint8_t *code;
	size_t len;
	uint64_t vaddr;
};

/* ---- texts ---- */

static const uint8_t *text_in(const uint8_t *from, size_t len, const char *text, size_t n)
{
	return memmem(from, len, text, n);
}
#define TEXT(from_, len_, text_) text_in(from_, len_, text_, sizeof(text_) - 1)

static void target_add(struct work *w, uint64_t at, unsigned what, uint32_t line)
{
	for (size_t i = 0; i < w->target_count; i++)
		if (w->targets[i].at == at)
			return;
	if (w->target_count == TARGETS)
		w->too_many = true;
	else
		w->targets[w->target_count++] =
			(struct target){.at = at, .what = what, .line = line};
}

/* 2. A path that ends so, from the NUL before it on. */
static void text_path(struct work *w, const uint8_t *p, size_t n, uint64_t vaddr, const char *end,
		      size_t len)
{
	for (const uint8_t *at = p; (at = text_in(at, n - (size_t)(at - p), end, len)); at++) {
		size_t back = 0;

		while (at - back > p && back < NAME_MOST && at[-(ptrdiff_t)back - 1])
			back++;
		target_add(w, vaddr + (uint64_t)(at - p) - back, AEAD_FILE, 0);
		w->out->boringssl = true;
	}
}

static const struct name {
	const char *text;
	size_t len; /* with the NUL on both sides */
	unsigned what;
} TEXTS[] = {
#define WHOLE(text_, what_)                           \
	{                                             \
		"\0" text_, sizeof("\0" text_), what_ \
	}
	WHOLE("SSL_read", NAME),
	WHOLE("SSL_read_early_data", NAME_EARLY),
	WHOLE("ssl_read_internal", NAME_INTERNAL),
	WHOLE("SSL_write", NAMES_OF_ONE + NAME),
	WHOLE("SSL_write_early_data", NAMES_OF_ONE + NAME_EARLY),
	WHOLE("ssl_write_internal", NAMES_OF_ONE + NAME_INTERNAL),
};

static bool segment_begins(const struct elf_file *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->segment_count; i++)
		if (f->segments[i].p_type == PT_LOAD && f->segments[i].p_vaddr == vaddr)
			return true;
	return false;
}

/* The whole text between two NULs, or from the segment's first byte on. */
static void text_whole(struct work *w, const uint8_t *p, size_t n, uint64_t vaddr,
		       const struct name *t)
{
	if (n >= t->len - 1 && !memcmp(p, t->text + 1, t->len - 1) && segment_begins(w->f, vaddr))
		target_add(w, vaddr, t->what, 0);
	for (const uint8_t *at = p; (at = text_in(at, n - (size_t)(at - p), t->text, t->len)); at++)
		target_add(w, vaddr + (uint64_t)(at - p) + 1, t->what, 0);
}

static void texts_in(struct work *w, const uint8_t *p, size_t n, uint64_t vaddr)
{
	static const char RING[] = "/src/aead/algorithm.rs", VERSION[] = "OpenSSL 3.";
	const uint8_t *at;

	at = TEXT(p, n, RING);
	if (at && !w->ring_end)
		w->ring_end = vaddr + (uint64_t)(at - p) + sizeof(RING) - 1;
	w->out->rustls = w->out->rustls || TEXT(p, n, "/rustls-");
	at = TEXT(p, n, VERSION);
	if (at && (size_t)(p + n - at) > sizeof(VERSION) + 1) {
		w->out->openssl = true;
		w->minor = (unsigned)(at[sizeof(VERSION) - 1] - '0');
	}
	text_path(w, p, n, vaddr, "/cipher/aead.c", sizeof("/cipher/aead.c"));
	text_path(w, p, n, vaddr, "/cipher/aead.cc.inc", sizeof("/cipher/aead.cc.inc"));
	for (unsigned i = 0; i < ARRAY_SIZE(TEXTS); i++)
		text_whole(w, p, n, vaddr, &TEXTS[i]);
}

/* ---- segments ---- */

/* Pieces of each segment that has `with` of its flags set and none of `without`. */
static int pieces_each(struct work *w, uint32_t with, uint32_t without,
		       void (*each)(struct work *w, const uint8_t *p, size_t n, uint64_t vaddr))
{
	uint64_t left = CODE_MOST;

	for (size_t i = 0; i < w->f->segment_count; i++) {
		const Elf64_Phdr *s = &w->f->segments[i];

		if (s->p_type != PT_LOAD || (s->p_flags & with) != with || s->p_flags & without)
			continue;
		for (uint64_t at = 0; at < s->p_filesz && left; at += PIECE) {
			uint64_t n = s->p_filesz - at;
			void *p = NULL;
			int rc;

			n = n < PIECE + OVERLAP ? n : PIECE + OVERLAP;
			rc = elf_read_at(w->f, s->p_vaddr + at, n, &p);
			if (rc == -ERANGE || rc == -EFBIG)
				break;
			if (rc)
				return rc;
			each(w, p, (size_t)n, s->p_vaddr + at);
			free(p);
			left = left < PIECE ? 0 : left - PIECE;
		}
	}
	return 0;
}

/* 1. Records of the file's name: its address, its length, a line. */
static int ring_places(struct work *w)
{
	for (size_t i = 0; i < w->f->segment_count && w->ring_end; i++) {
		const Elf64_Phdr *s = &w->f->segments[i];
		cleanup_region struct region r = {0};
		int rc;

		if (s->p_type != PT_LOAD || s->p_flags & PF_X || s->p_filesz > DATA_MOST ||
		    s->p_filesz < RECORD)
			continue;
		rc = region_read(w->f, s->p_vaddr, s->p_filesz, &r);
		if (rc == -ENOENT)
			continue;
		if (rc)
			return rc;
		for (uint64_t at = -s->p_vaddr & 7; at + RECORD <= r.len; at += 8) {
			uint64_t name = region_word(&r, at, 8);

			if (name < w->ring_end && w->ring_end - name < NAME_MOST &&
			    region_word(&r, at + 8, 8) == w->ring_end - name)
				target_add(w, r.vaddr + at, RING_PLACE,
					   (uint32_t)region_word(&r, at + 16, 4));
		}
	}
	return 0;
}

/* ---- code ---- */

void nameless_loads(const uint8_t *code, size_t len, uint64_t vaddr, const uint64_t *targets,
		    size_t n, void (*each)(void *ctx, size_t at, size_t target), void *ctx)
{
	const uint8_t *p = code, *end = code + len;

	while (n && end - p > 6 && (p = memchr(p, 0x8d, (size_t)(end - p) - 5))) {
		size_t at = (size_t)(p - code);
		int32_t disp;
		uint64_t to;

		p++;
		if (!at || (code[at - 1] & 0xfb) != 0x48 || (code[at + 1] & 0xc7) != 0x05)
			continue;
		memcpy(&disp, code + at + 2, 4);
		to = vaddr + at + 6 + (uint64_t)(int64_t)disp;
		if (to < targets[0] || to > targets[n - 1])
			continue;
		for (size_t i = 0; i < n; i++)
			if (targets[i] == to)
				each(ctx, at - 1, i);
	}
}

static struct elf_range function_of(const struct work *w, uint64_t at)
{
	const struct rows *r = w->rows;

	for (size_t i = 0; i < r->span_count; i++)
		if (r->spans[i].source == ROWS_EH_FRAME && at >= r->base + r->spans[i].lo &&
		    at < r->base + r->spans[i].hi)
			return (struct elf_range){r->base + r->spans[i].lo,
						  r->base + r->spans[i].hi};
	return (struct elf_range){0};
}

static unsigned error_bit(uint32_t number)
{
	switch (number) {
	case 1:
		return NAMELESS_ONE;
	case 2:
		return NAMELESS_TWO;
	case 101:
		return NAMELESS_BAD_DECRYPT;
	case 103:
		return NAMELESS_TOO_SMALL;
	case 104:
		return NAMELESS_NOT_IMPLEMENTED;
	case 112:
		return NAMELESS_INVALID;
	case 115:
		return NAMELESS_ALIASES;
	case 117:
		return NAMELESS_TOO_LARGE;
	default:
		return 0;
	}
}

/* An instruction just before or behind puts this number into %esi. */
static bool number_near(const struct work *w, size_t at, uint32_t number)
{
	for (size_t i = at > NEAR ? at - NEAR : 0; i < at + NEAR && i + 5 <= w->len; i++) {
		uint32_t v;

		memcpy(&v, w->code + i + 1, 4);
		if (w->code[i] == 0xbe && v == number)
			return true;
	}
	return false;
}

/* 2. The known numbers that a function's instructions put into %edx, the third argument. */
static unsigned errors_of(const struct work *w, const struct elf_range *fn)
{
	size_t from = fn->start > w->vaddr ? (size_t)(fn->start - w->vaddr) : 0,
	       to = fn->end > w->vaddr ? (size_t)(fn->end - w->vaddr) : 0;
	unsigned errors = 0;

	for (size_t i = from; i < to && i + 5 <= w->len; i++) {
		uint32_t v;

		memcpy(&v, w->code + i + 1, 4);
		errors |= w->code[i] == 0xba ? error_bit(v) : 0;
	}
	return errors;
}

static void ref_add(struct work *w, size_t at, const struct target *t)
{
	const struct elf_range fn = function_of(w, w->vaddr + at);
	size_t i = 0;

	if (!fn.start ||
	    (t->what == RING_PLACE &&
	     !number_near(w, at, sizeof("internal error: entered unreachable code") - 1)))
		return;
	while (i < w->ref_count &&
	       (w->refs[i].function.start != fn.start || w->refs[i].what != t->what))
		i++;
	if (i == REFS) {
		w->too_many = true;
		return;
	}
	if (i == w->ref_count)
		w->refs[w->ref_count++] =
			(struct ref){.function = fn, .what = t->what, .line = t->line};
	if (t->what == AEAD_FILE)
		w->refs[i].errors |= errors_of(w, &fn);
}

static void loaded(void *ctx, size_t at, size_t target)
{
	struct work *w = ctx;

	ref_add(w, at, &w->targets[target]);
}

static void code_in(struct work *w, const uint8_t *p, size_t n, uint64_t vaddr)
{
	uint64_t addresses[TARGETS];

	for (size_t i = 0; i < w->target_count; i++)
		addresses[i] = w->targets[i].at;
	w->code = p;
	w->len = n;
	w->vaddr = vaddr;
	nameless_loads(p, n, vaddr, addresses, w->target_count, loaded, w);
}

static void targets_sort(struct work *w)
{
	for (size_t i = 1; i < w->target_count; i++) {
		const struct target t = w->targets[i];
		size_t k = i;

		for (; k && w->targets[k - 1].at > t.at; k--)
			w->targets[k] = w->targets[k - 1];
		w->targets[k] = t;
	}
}

/* ---- what they are ---- */

static void found_add(struct work *w, enum nameless_kind kind, const struct elf_range *at)
{
	if (w->out->count < NAMELESS_FUNCTIONS) {
		w->out->found[w->out->count].kind = kind;
		w->out->found[w->out->count++].at = *at;
	}
}

/* 1 */
static void ring_take(struct work *w)
{
	const struct ref *order[4];
	size_t n = 0;

	for (size_t i = 0; i < w->ref_count; i++) {
		size_t k;

		if (w->refs[i].what != RING_PLACE)
			continue;
		if (n == ARRAY_SIZE(order))
			return;
		for (k = n++; k && order[k - 1]->line > w->refs[i].line; k--)
			order[k] = order[k - 1];
		order[k] = &w->refs[i];
	}
	for (size_t i = 0; i < n && n == ARRAY_SIZE(order); i++)
		found_add(w, i & 1 ? NAMELESS_RING_OPEN : NAMELESS_RING_SEAL, &order[i]->function);
}

static int with_vectors(unsigned errors)
{
	switch (errors) {
	case NAMELESS_TOO_SMALL | NAMELESS_ONE:
		return NAMELESS_SEAL;
	case NAMELESS_TOO_SMALL | NAMELESS_TWO:
		return NAMELESS_SEAL_SCATTER;
	default:
		return (errors & ~(unsigned)(NAMELESS_ONE | NAMELESS_TWO)) ==
				       (NAMELESS_TOO_SMALL | NAMELESS_BAD_DECRYPT) ?
			       NAMELESS_OPEN :
			       -1;
	}
}

int nameless_by_errors(unsigned errors, bool vectors)
{
	if (vectors)
		return with_vectors(errors);
	errors &= ~(unsigned)(NAMELESS_ONE | NAMELESS_TWO);
	if (!(errors & NAMELESS_ALIASES))
		return -1;
	if (errors & NAMELESS_INVALID)
		return errors & ~(unsigned)(NAMELESS_INVALID | NAMELESS_ALIASES) ?
			       -1 :
			       NAMELESS_SEAL_SCATTER;
	if (errors & NAMELESS_TOO_LARGE)
		return errors & NAMELESS_BAD_DECRYPT ? -1 : NAMELESS_SEAL;
	if (errors & NAMELESS_BAD_DECRYPT)
		return NAMELESS_OPEN;
	return errors & NAMELESS_NOT_IMPLEMENTED ? NAMELESS_OPEN_GATHER : -1;
}

/* All, or none: a direction that is not read would make requests without answers. */
static bool aead_take_as(struct work *w, bool vectors)
{
	const unsigned all = 1u << NAMELESS_SEAL_SCATTER | 1u << NAMELESS_SEAL |
			     1u << NAMELESS_OPEN | (vectors ? 0 : 1u << NAMELESS_OPEN_GATHER);
	const size_t before = w->out->count;
	unsigned kinds = 0;

	for (size_t i = 0; i < w->ref_count; i++) {
		int kind = w->refs[i].what == AEAD_FILE ?
				   nameless_by_errors(w->refs[i].errors, vectors) :
				   -1;

		if (kind < 0)
			continue;
		found_add(w, (enum nameless_kind)kind, &w->refs[i].function);
		kinds |= 1u << kind;
	}
	if (kinds != all)
		w->out->count = before;
	return kinds == all;
}

static void aead_take(struct work *w)
{
	w->out->aead = aead_take_as(w, false) || aead_take_as(w, true);
}

/* 3. The only function that loads this name. NULL: none, or several. */
static const struct elf_range *only_ref(const struct work *w, unsigned what)
{
	const struct elf_range *found = NULL;

	for (size_t i = 0; i < w->ref_count; i++) {
		if (w->refs[i].what != what)
			continue;
		if (found)
			return NULL;
		found = &w->refs[i].function;
	}
	return found;
}

static void caller_add(struct work *w, unsigned operation, uint64_t at)
{
	const struct elf_range fn = function_of(w, at);
	size_t i = 0;

	while (i < w->calls[operation].n && w->calls[operation].at[i].start != fn.start)
		i++;
	if (!fn.start || i < w->calls[operation].n)
		return;
	if (i == CALLERS)
		w->too_many = true;
	else
		w->calls[operation].at[w->calls[operation].n++] = fn;
}

static void calls_in(struct work *w, const uint8_t *p, size_t n, uint64_t vaddr)
{
	for (size_t at = 0; at + 5 <= n; at++) {
		int32_t distance;
		uint64_t to;

		if (p[at] != 0xe8 && p[at] != 0xe9)
			continue;
		memcpy(&distance, p + at + 1, 4);
		to = vaddr + at + 5 + (uint64_t)(int64_t)distance;
		for (unsigned o = 0; o < 2; o++)
			if (to == w->calls[o].inner)
				caller_add(w, o, vaddr + at);
	}
}

static bool has_text(const struct work *w, unsigned what)
{
	for (size_t i = 0; i < w->target_count; i++)
		if (w->targets[i].what == what)
			return true;
	return false;
}

static size_t insn_read(void *ctx, uint64_t vaddr, uint8_t *out)
{
	struct elf_file *f = ctx;
	uint64_t n = elf_bytes_at(f, vaddr);
	cleanup_free void *bytes = NULL;

	n = n < X86INSN_MAX ? n : X86INSN_MAX;
	if (!n || elf_read_at(f, vaddr, n, &bytes))
		return 0;
	memcpy(out, bytes, (size_t)n);
	return (size_t)n;
}

static bool holds_arg(const struct codeflow_insn *i, unsigned reg, unsigned arg)
{
	return i->regs[reg].holds == CODEFLOW_ARG && i->regs[reg].arg == arg;
}

/* What a function is that calls the inner one, by what it gives to it: its own connection, buffer
 * and length, and which of its arguments as the place for the result. -1: none of those. */
static int kind_by_call(const struct work *w, unsigned operation, const struct elf_range *fn)
{
	const struct codeflow_reader reader = {.ctx = w->f, .read = insn_read};
	const bool flags = operation && w->minor >= 3; /* they come before the place */
	const unsigned place = flags ? R8 : X86_RCX;
	cleanup_codeflow struct codeflow flow = {0};

	if (fn->end - fn->start > WRAPPER_MOST ||
	    !codeflow_make(&flow, &reader, fn->start, fn->end))
		return -1;
	for (size_t i = 0; i < flow.insn_count; i++) {
		const struct codeflow_insn *x = &flow.insns[i];

		if (x->target != w->calls[operation].inner ||
		    (x->effect.flow != X86_CALL && x->effect.flow != X86_JMP))
			continue;
		if (!holds_arg(x, X86_RDI, X86_RDI) || !holds_arg(x, X86_RSI, X86_RSI) ||
		    !holds_arg(x, X86_RDX, X86_RDX))
			return -1;
		if (holds_arg(x, place, X86_RCX))
			return operation ? NAMELESS_WRITE_EX : NAMELESS_READ_EX;
		return flags && holds_arg(x, place, R8) ? NAMELESS_WRITE_EX2 : -1;
	}
	return -1;
}

struct caller {
	enum nameless_kind kind;
	struct elf_range at;
};

/* How many functions, into `out`, at most two; 0: it is not clear. */
static size_t callers_clear(const struct work *w, unsigned operation, struct caller *out)
{
	const unsigned base = operation * NAMES_OF_ONE;
	const struct elf_range *main = only_ref(w, base + NAME),
			       *early = only_ref(w, base + NAME_EARLY);
	bool calls = !main;
	size_t n = 0;

	if (!main && has_text(w, base + NAME))
		return 0;
	if (main)
		out[n++] = (struct caller){operation ? NAMELESS_WRITE : NAMELESS_READ, *main};
	for (size_t i = 0; i < w->calls[operation].n; i++) {
		const struct elf_range *at = &w->calls[operation].at[i];
		int kind;

		calls |= main && at->start == main->start;
		if ((main && at->start == main->start) || (early && at->start == early->start))
			continue;
		kind = kind_by_call(w, operation, at);
		if (kind < 0 || n == (main ? 2 : 1))
			return 0;
		out[n++] = (struct caller){(enum nameless_kind)kind, *at};
	}
	return calls ? n : 0;
}

static void openssl_take(struct work *w)
{
	struct caller callers[2][2];
	const size_t reads = callers_clear(w, 0, callers[0]),
		     writes = callers_clear(w, 1, callers[1]);

	for (size_t i = 0; i < reads && writes; i++)
		found_add(w, callers[0][i].kind, &callers[0][i].at);
	for (size_t i = 0; i < writes && reads; i++)
		found_add(w, callers[1][i].kind, &callers[1][i].at);
}

static int openssl_find(struct work *w)
{
	int rc = 0;

	for (unsigned o = 0; o < 2; o++) {
		const struct elf_range *inner = only_ref(w, o * NAMES_OF_ONE + NAME_INTERNAL);

		if (!inner)
			return 0;
		w->calls[o].inner = inner->start;
	}
	rc = pieces_each(w, PF_X, PF_W, calls_in);
	if (!rc && !w->too_many)
		openssl_take(w);
	return rc;
}

/* Which flags a segment with texts must not have. If the file has a segment that is read-only, its
 * texts are there, and segments with code need not be searched. */
static uint32_t flags_of_no_text(const struct elf_file *f)
{
	for (size_t i = 0; i < f->segment_count; i++)
		if (f->segments[i].p_type == PT_LOAD &&
		    (f->segments[i].p_flags & (PF_R | PF_W | PF_X)) == PF_R)
			return PF_W | PF_X;
	return PF_W;
}

int nameless_find(struct elf_file *f, const struct rows *rows, struct nameless *out)
{
	struct work w = {.f = f, .rows = rows, .out = out};
	int rc;

	*out = (struct nameless){0};
	if (!f->is64 || f->machine != EM_X86_64)
		return -ENOENT;
	rc = pieces_each(&w, PF_R, flags_of_no_text(f), texts_in);
	if (!rc)
		rc = ring_places(&w);
	if (rc)
		return rc;
	if (rows && w.target_count && !w.too_many) {
		targets_sort(&w);
		rc = pieces_each(&w, PF_X, PF_W, code_in);
	}
	if (!rc && !w.too_many) {
		ring_take(&w);
		aead_take(&w);
		rc = openssl_find(&w);
	}
	return rc ? rc : out->count || out->rustls || out->openssl || out->boringssl ? 0 : -ENOENT;
}
