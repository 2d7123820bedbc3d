/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's rows, lines and inlined calls: a pclntab of as many bytes as the first four say, and behind
 * it the memory that both code (at TEXT) and trees of inlined calls (at the same addresses) are
 * read from. And build information.
 *
 * covers: loaders/index/go/goframe.c loaders/index/go/gocode.c loaders/index/go/gopc.c
 * loaders/index/go/goinline.c loaders/index/go/goline.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/index/go/goframe.h"
#include "loaders/index/go/goline.h"
#include "loaders/index/go/gopart.h"

#define TEXT      0x401000ull
#define FUNCS_MAX 300u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct input {
	struct pclntab tab;
	const uint8_t *memory;
	size_t memory_len;
};

static bool func_get(const struct input *in, uint32_t i, struct goframe_func *out)
{
	struct pclntab_func p;

	if (!pclntab_func(&in->tab, TEXT, i, &p) || !pclntab_record(&in->tab, i, &out->rec))
		return false;
	out->start = p.start;
	out->end = p.end;
	out->name = p.name;
	out->code = in->memory;
	out->code_len = 0;
	if (p.start >= TEXT && p.start - TEXT < in->memory_len) {
		out->code += p.start - TEXT;
		out->code_len = in->memory_len - (size_t)(p.start - TEXT);
		if (out->code_len > p.end - p.start)
			out->code_len = (size_t)(p.end - p.start);
	}
	return true;
}

static void rows(const struct input *in)
{
	struct goframe_runtime rt = {0};
	struct goframe_func f = {0}, last = {0};
	struct rows r;
	void *out = NULL;
	size_t size = 0;

	if (rows_init(&r, TEXT & ~4095ull, TEXT + (1 << 20)))
		abort();
	for (uint32_t i = 0; i < in->tab.func_count && i < FUNCS_MAX; i++, last = f) {
		if (!func_get(in, i, &f))
			continue;
		goframe_runtime_learn(&last, &f, &rt);
		goframe_runtime_learn(&f, &last, &rt);
		goframe_rows(&in->tab, &f, &rt, &r);
	}
	if (!rows_finish(&r, &out, &size) && size && size < sizeof(struct unwind_head))
		abort();
	free(out);
	rows_release(&r);
}

static void lines(const struct input *in, uint32_t pcdata, uint32_t funcdata, uint64_t base)
{
	const struct elf_range code = {TEXT, TEXT + (1 << 20)};
	const struct goinline trees = {.pcdata = pcdata,
				       .funcdata = funcdata,
				       .base = base,
				       .bytes = in->memory,
				       .len = in->memory_len,
				       .vaddr = TEXT};
	struct lineset set;
	struct goline g = {.tab = &in->tab, .trees = &trees, .set = &set};

	lineset_init(&set, &code, 1);
	for (uint32_t i = 0; i < in->tab.func_count && i < FUNCS_MAX; i++)
		goline_function(&g, TEXT, i);
	lineset_end(&set, code.end);
	goline_release(&g);
	lineset_release(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct gopart_build b;
	struct input in;
	uint32_t n;

	if (gopart_build_find(data, len, &b) && !b.version && !b.pointer)
		abort();
	if (len < 4)
		return 0;
	memcpy(&n, data, 4);
	if (n > len - 4 || pclntab_parse(data + 4, n, &in.tab))
		return 0;
	in.memory = data + 4 + n;
	in.memory_len = len - 4 - n;
	rows(&in);
	if (in.tab.relative)
		lines(&in, 2, 3, TEXT);
	else
		lines(&in, 2, 4, 0);
	return 0;
}
