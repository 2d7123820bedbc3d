/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/unwind/codesearch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/unwind/knowncode.h"
#include "loaders/index/unwind/stackdepth.h"
#include "schema/base/cleanup.h"

#define SCAN_MAX (8u << 20) /* bytes of code that are searched for known pieces */
#define DATA_MAX (1u << 20) /* bytes of data that are looked through for addresses of functions */

/* What the file itself got wrong is no error: it has no rows there. */
static int soften(int rc)
{
	return rc == -ERANGE || rc == -EFBIG || rc == -EBADMSG || rc == -EOPNOTSUPP ? -ENOENT : rc;
}

static int ignore_missing(int rc)
{
	return rc == -ENOENT ? 0 : rc;
}

static bool is_static_program(const struct elf_file *f)
{
	uint64_t flags = 0;

	for (size_t i = 0; i < f->segment_count; i++)
		if (f->segments[i].p_type == PT_INTERP)
			return false;
	return f->type == ET_EXEC ||
	       (elf_dynamic_value(f, DT_FLAGS_1, &flags) && (flags & DF_1_PIE));
}

static bool defines(const struct symset *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->symbols[i].kind != SYMSET_STUB && !strcmp(set->symbols[i].name, name))
			return true;
	return false;
}

/* The words of a writable segment, relocated, behind those that are there. */
static int words_add(struct elf_file *f, const Elf64_Phdr *p, uint64_t **words, size_t *count)
{
	cleanup_free void *data = NULL;
	uint64_t *more;
	int rc = soften(elf_read_at(f, p->p_vaddr, p->p_filesz, &data));

	if (rc)
		return ignore_missing(rc);
	rc = elf_relocate(f, data, p->p_vaddr, p->p_filesz);
	if (rc)
		return rc;
	more = realloc(*words, (*count + p->p_filesz / 8 + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memcpy(more + *count, data, p->p_filesz / 8 * 8);
	*words = more;
	*count += p->p_filesz / 8;
	return 0;
}

static int words_collect(struct elf_file *f, uint64_t **words, size_t *count)
{
	for (size_t i = 0; i < f->segment_count; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		int rc;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W) || p->p_filesz > DATA_MAX ||
		    p->p_vaddr % 8)
			continue;
		rc = words_add(f, p, words, count);
		if (rc)
			return rc;
	}
	return 0;
}

/* A part that the compiler put aside is entered in the middle of its function: no function. */
static bool is_function(const struct symset_symbol *s)
{
	return (s->kind == SYMSET_FUNC || s->kind == SYMSET_FUNC_ANY) && !strstr(s->name, ".cold");
}

static uint64_t *functions_collect(const struct symset *set, size_t *count)
{
	uint64_t *v = malloc((set->count + 1) * sizeof(*v));

	*count = 0;
	for (size_t i = 0; v && i < set->count; i++)
		if (is_function(&set->symbols[i]))
			v[(*count)++] = set->symbols[i].addr;
	return v;
}

/* What of an executable segment is code: from its first executable section to the end of its last,
 * and none of the file's headers. A linker that makes one segment of code and data puts symbols and
 * constants around it; a word of data that is 0 would be the address of the ELF header. */
static struct elf_range code_part(const Elf64_Phdr *p, const struct elf_range *code, size_t n)
{
	const uint64_t heads = p->p_offset ? 0 : sizeof(Elf64_Ehdr);
	struct elf_range part = {0};

	if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
		return part;
	for (size_t i = 0; i < n; i++) {
		if (code[i].start < p->p_vaddr || code[i].end - p->p_vaddr > p->p_memsz)
			continue;
		if (part.start == part.end)
			part.start = code[i].start;
		part.end = code[i].end;
	}
	if (part.start < p->p_vaddr + heads)
		part.start = p->p_vaddr + heads;
	return part;
}

/* How to treat the code of a C library, or of a static program. */
struct search {
	bool contexts; /* knowncode.h, 5 */
	bool follow;   /* knowncode.h, 1 and 2, then all that is left */
	struct stackdepth_input in;
};

static int range_search(struct elf_file *f, const struct elf_range *range, struct search *s,
			struct rows *rows)
{
	cleanup_free void *code = NULL;
	const uint64_t len = elf_bytes_at(f, range->start);
	int rc;

	if (!len || len > SCAN_MAX)
		return 0;
	rc = soften(elf_read_at(f, range->start, len, &code));
	if (rc)
		return ignore_missing(rc);
	if (s->contexts)
		knowncode_contexts(code, (size_t)len, range->start, rows);
	if (!s->follow)
		return 0;
	knowncode_scan(code, (size_t)len, range->start, rows);
	s->in.code = code;
	s->in.len = (size_t)len;
	s->in.vaddr = range->start;
	rc = stackdepth_rows(&s->in, rows);
	return rc == -EFBIG ? 0 : rc;
}

int codesearch(struct elf_file *f, const struct symset *set, struct rows *rows)
{
	struct search s = {.contexts = defines(set, "makecontext"),
			   .follow = !rows->signals &&
				     (is_static_program(f) || defines(set, "sigaction"))};
	cleanup_free uint64_t *functions = NULL;
	cleanup_free uint64_t *words = NULL;
	cleanup_free struct elf_range *code = NULL;
	size_t n = 0;
	int rc;

	if (!s.contexts && !s.follow)
		return 0;
	functions = functions_collect(set, &s.in.function_count);
	if (!functions)
		return -ENOMEM;
	rc = elf_code_ranges(f, &code, &n);
	if (!rc && s.follow)
		rc = words_collect(f, &words, &s.in.word_count);
	s.in.functions = functions;
	s.in.words = words;
	for (size_t i = 0; i < f->segment_count && !rc; i++) {
		const struct elf_range part = code_part(&f->segments[i], code, n);

		if (part.start < part.end)
			rc = range_search(f, &part, &s, rows);
	}
	return rc;
}
