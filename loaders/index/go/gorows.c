/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/go/gorows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/go/goframe.h"
#include "schema/base/cleanup.h"

#define WINDOW (1u << 20) /* bytes of code read at a time */
/* bytes of one function that are looked at: all of the special ones, the others' prologue */
#define CODE_MAX 4096u

/* A piece of the file's code. */
struct window {
	struct elf_file *elf;
	uint8_t *bytes; /* own */
	uint64_t start, len;
};

static void window_release(struct window *w)
{
	free(w->bytes);
}
#define cleanup_window __attribute__((cleanup(window_release)))

/* The code from `addr` on, up to `want` bytes; what is not in the file is as if it were not there.
 */
static int window_get(struct window *w, uint64_t addr, uint64_t want, const uint8_t **code,
		      size_t *len)
{
	uint64_t have = elf_bytes_at(w->elf, addr), n;
	void *p;
	int rc;

	want = want < have ? want : have;
	if (addr < w->start || addr - w->start > w->len || want > w->len - (addr - w->start)) {
		n = have < WINDOW ? have : WINDOW;
		free(take_ptr(w->bytes));
		w->len = 0;
		rc = n ? elf_read_at(w->elf, addr, n, &p) : -ERANGE;
		if (rc) {
			*len = 0;
			return rc == -ERANGE || rc == -EFBIG ? 0 : rc;
		}
		w->bytes = p;
		w->start = addr;
		w->len = n;
	}
	*code = w->bytes + (addr - w->start);
	*len = (size_t)want;
	return 0;
}

/* Function i with its code. false (and *rc 0): not sound. */
static bool func_get(const struct go_table *t, uint32_t i, struct window *w,
		     struct goframe_func *out, int *rc)
{
	struct goframe_func f = {0};
	struct pclntab_func p;
	uint64_t size;

	*rc = 0;
	if (!pclntab_func(&t->tab, t->text, i, &p) || !pclntab_record(&t->tab, i, &f.rec))
		return false;
	f.start = p.start;
	f.end = p.end;
	f.name = p.name;
	size = f.end - f.start;
	*rc = window_get(w, f.start, size < CODE_MAX ? size : CODE_MAX, &f.code, &f.code_len);
	*out = f;
	return !*rc;
}

/* Both the assembler function and a wrapper of it may have this name: the assembler function has
 * the answer. */
static int runtime_learn(const struct go_table *t, struct window *w, struct goframe_runtime *out)
{
	uint8_t stack_code[1024], more_code[1024];
	struct goframe_func stack = {.code = stack_code}, more = {.code = more_code};

	for (uint32_t i = 0; i < t->tab.func_count && !out->known; i++) {
		struct goframe_func f, *to;
		struct pclntab_func p;
		int rc;

		if (!pclntab_func(&t->tab, t->text, i, &p))
			continue;
		to = !strcmp(p.name, "runtime.systemstack") ? &stack :
		     !strcmp(p.name, "runtime.morestack")   ? &more :
							      NULL;
		if (!to)
			continue;
		if (!func_get(t, i, w, &f, &rc)) {
			if (rc)
				return rc;
			continue;
		}
		to->code_len = f.code_len < sizeof(stack_code) ? f.code_len : sizeof(stack_code);
		if (to->code_len)
			memcpy(to == &stack ? stack_code : more_code, f.code, to->code_len);
		goframe_runtime_learn(&stack, &more, out);
	}
	return 0;
}

/* What the loader writes into the GOT: a program's own thread-local memory ends at FS base; where
 * it holds one word, that is Go's. Of a library's place nothing is known. */
static void tls_resolve(const struct elf_file *f, struct goframe_runtime *rt)
{
	const Elf64_Phdr *tls = NULL;
	bool program = false;

	if (!rt->known || !rt->tls_by_got)
		return;
	for (size_t i = 0; i < f->segment_count; i++) {
		program |= f->segments[i].p_type == PT_INTERP;
		tls = f->segments[i].p_type == PT_TLS ? &f->segments[i] : tls;
	}
	rt->known = program && tls && tls->p_memsz == 8 && tls->p_align <= 8;
	rt->tls = -8;
}

static void text_reserve(const struct go_table *t, struct rows *rows)
{
	struct pclntab_func p;
	uint64_t lo = UINT64_MAX, hi = 0;

	for (uint32_t i = 0; i < t->tab.func_count; i++)
		if (pclntab_func(&t->tab, t->text, i, &p)) {
			lo = p.start < lo ? p.start : lo;
			hi = p.end > hi ? p.end : hi;
		}
	if (lo < hi)
		rows_reserve(rows, lo, hi);
}

int gorows_add(struct elf_file *f, const struct go_table *t, struct rows *rows)
{
	cleanup_window struct window w = {.elf = f};
	struct goframe_runtime rt = {0};
	uint64_t told =
		0; /* if a table's functions are not in order the table is wrong: add none twice */
	int rc;

	if (f->machine != EM_X86_64 || !f->is64)
		return 0;
	rc = runtime_learn(t, &w, &rt);
	tls_resolve(f, &rt);
	text_reserve(t, rows);
	for (uint32_t i = 0; i < t->tab.func_count && !rc; i++) {
		struct goframe_func func;

		if (!func_get(t, i, &w, &func, &rc) || func.start < told)
			continue;
		goframe_rows(&t->tab, &func, &rt, rows);
		told = func.end;
	}
	rows->flags |= UNWIND_F_GO;
	return rc;
}
