/* SPDX-License-Identifier: Apache-2.0 */
/*
 * followed FILE...: follow the code of a file that has call-frame information as if it had none
 * (stackdepth.h, knowing only its dynamic symbols and what its data points to), and hold the rows
 * against those of .eh_frame at each instruction of .text. "SAME DIFFERENT SILENT FILE"; where
 * .eh_frame uses RBP for the CFA, RSP will do.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/rows/rowtable_at.h"
#include "loaders/index/unwind/stackdepth.h"
#include "loaders/index/unwind/unwind.h"
#include "loaders/lib/code/x86insn.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"

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

static void compare(const struct stackdepth_input *in, const struct rowtable *told,
		    const struct rowtable *found, const char *path)
{
	size_t same = 0, different = 0, silent = 0;
	struct x86insn x;

	for (size_t at = 0; at < in->len; at += x.len) {
		/* without RBX: of what is followed it is not known */
		const uint32_t a = (uint32_t)rowtable_at(told, in->vaddr + at);
		const uint32_t b = (uint32_t)rowtable_at(found, in->vaddr + at);

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
	struct rowtable a = {0}, b = {0};
	struct rows r;
	size_t n = 0;

	if (fd < 0 || source_init_fd(&src, fd, &hash, &left) || elf_open(&f, &src, NULL) ||
	    unwind_init(&u, &f))
		return -1;
	text = elf_section_by_name(&f, ".text");
	functions = functions_of(&f, &in.function_count);
	if (!u.on || !text || !functions || elf_section_read(&f, text, &code) ||
	    rows_init(&r, u.rows.base, u.rows.end))
		return -1;
	in.code = code;
	in.len = (size_t)text->sh_size;
	in.vaddr = text->sh_addr;
	in.functions = functions;
	words = words_of(&f, &in.word_count);
	in.words = words;
	if (stackdepth_rows(&in, &r) || rows_finish(&r, &found, &n) ||
	    unwind_finish(&u, &f, &none, &told, &size) || !n || !size)
		return -1;
	if (rowtable_init(&a, told, (size_t)size) || rowtable_init(&b, found, n))
		return -1;
	compare(&in, &a, &b, path);
	rowtable_release(&a);
	rowtable_release(&b);
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
