/* SPDX-License-Identifier: Apache-2.0 */
/*
 * followed FILE...: follow the code of a file that has call-frame information as if it had none (stackdepth.h, knowing only
 * its dynamic symbols and what its data points to), and hold the rows against those of .eh_frame at each instruction of .text.
 * "SAME DIFFERENT SILENT FILE"; where .eh_frame uses RBP for the CFA, RSP will do.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "loaders/index/stackdepth.h"
#include "loaders/index/unwind.h"
#include "loaders/index/x86insn.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"

struct table {
	const struct unwind_head *h;
	const uint64_t *rows;
};

static struct table table_of(const void *section)
{
	const struct unwind_head *h = section;
	const uint64_t *pages = (const uint64_t *)(h + 1);

	return (struct table){h, pages + h->page_count + 2 * (size_t)h->ext_count};
}

static uint32_t rule_at(const struct table *t, uint64_t addr)
{
	size_t lo = 0, hi = t->h->row_count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->h->text_base + (t->rows[mid] >> 32) <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? (uint32_t)t->rows[lo - 1] : 0;
}

/* Addresses of the functions that .dynsym names. */
static uint64_t *functions_of(struct elf_file *f, size_t *n)
{
	const Elf64_Shdr *s = elf_section_by_type(f, SHT_DYNSYM);
	cleanup_free void *raw = NULL;
	const Elf64_Sym *y;
	uint64_t *v;

	*n = 0;
	if (!s || elf_section_read(f, s, &raw))
		return calloc(1, sizeof(*v));
	y = raw;
	v = calloc(s->sh_size / sizeof(*y) + 1, sizeof(*v));
	for (size_t i = 0; v && i < s->sh_size / sizeof(*y); i++)
		if (ELF64_ST_TYPE(y[i].st_info) == STT_FUNC && y[i].st_value)
			v[(*n)++] = y[i].st_value;
	return v;
}

/* The words of the last writable segment. */
static uint64_t *words_of(struct elf_file *f, size_t *n)
{
	const Elf64_Phdr *p = NULL;
	void *data = NULL;

	for (size_t i = 0; i < f->segment_count; i++)
		if (f->segments[i].p_type == PT_LOAD && (f->segments[i].p_flags & PF_W))
			p = &f->segments[i];
	if (!p || p->p_vaddr % 8 || elf_read_at(f, p->p_vaddr, p->p_filesz, &data) ||
	    elf_relocate(f, data, p->p_vaddr, p->p_filesz))
		return data;
	*n = p->p_filesz / 8;
	return data;
}

static void compare(const struct stackdepth_input *in, const struct table *told, const struct table *found,
		    const char *path)
{
	size_t same = 0, different = 0, silent = 0;
	struct x86insn x;

	for (size_t at = 0; at < in->len; at += x.len) {
		const uint32_t a = rule_at(told, in->vaddr + at), b = rule_at(found, in->vaddr + at);

		if (!x86insn_read(in->code + at, in->len - at, &x))
			x.len = 1;
		if (ROW_RULE_KIND(a) != ROW_RSP && ROW_RULE_KIND(a) != ROW_RBP)
			continue;
		if (!b)
			silent++;
		else if (a == b || (ROW_RULE_KIND(a) == ROW_RBP && ROW_RULE_KIND(b) == ROW_RSP))
			same++;
		else
			different++;
	}
	printf("%zu %zu %zu %s\n", same, different, silent, path);
}

static int file_compare(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	cleanup_free void *code = NULL;
	cleanup_free void *told = NULL;
	cleanup_free void *found = NULL;
	cleanup_free uint64_t *functions = NULL;
	cleanup_free uint64_t *words = NULL;
	uint64_t hash = HASH_SEED, left = SOURCE_BUDGET, size = 0;
	struct stackdepth_input in = {0};
	struct symset none = {0};
	const Elf64_Shdr *text;
	struct elf_file f;
	struct source src;
	struct unwind u;
	struct table a, b;
	struct rows r;
	size_t n = 0;

	if (fd < 0 || source_init_fd(&src, fd, &hash, &left) || elf_open(&f, &src, NULL) || unwind_init(&u, &f))
		return -1;
	text = elf_section_by_name(&f, ".text");
	functions = functions_of(&f, &in.function_count);
	if (!u.on || !text || !functions || elf_section_read(&f, text, &code) || rows_init(&r, u.rows.base, u.rows.end))
		return -1;
	in.code = code;
	in.len = (size_t)text->sh_size;
	in.vaddr = text->sh_addr;
	in.functions = functions;
	words = words_of(&f, &in.word_count);
	in.words = words;
	if (stackdepth_rows(&in, &r) || rows_finish(&r, &found, &n) || unwind_finish(&u, &f, &none, &told, &size) || !n || !size)
		return -1;
	a = table_of(told);
	b = table_of(found);
	compare(&in, &a, &b, path);
	rows_release(&r);
	unwind_release(&u);
	elf_release(&f);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (file_compare(argv[i])) {
			fprintf(stderr, "followed: cannot compare %s\n", argv[i]);
			return 1;
		}
	return 0;
}
