/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/ranking/memsite.h"

#include <stddef.h>
#include <string.h>

#include "schema/base/array.h"

/* Files that only serve others: their names begin so. */
static const char *const MODULES[] = {
	"[kernel]",    "[vdso]",      "ld-",         "ld.so",       "libc.so",
	"libc-",       "libc.musl",   "ld-musl",     "libm.so",     "libm-",
	"libpthread",  "libstdc++",   "libc++",      "libgcc_s",    "libjemalloc",
	"libtcmalloc", "libmimalloc", "libsnmalloc", "librpmalloc", "libhoard",
};

/* Functions of a language's library, and of allocators that are linked into a program. */
static const char *const BEGINNINGS[] = {
	"std::",
	"__gnu_cxx::",
	"operator new",
	"void std::",
	"alloc::",
	"core::",
	"hashbrown::",
	"<alloc::",
	"<core::",
	"<std::",
	"<hashbrown::",
	"<T as core::",
	"<T as alloc::",
	"<[T] as ",
	"__rust_",
	"__rdl_",
	"__rg_",
	"runtime.",
	"internal/runtime/",
	"internal/bytealg.",
	"je_",
	"mi_",
	"tc_",
	"_rjem_",
	"arena_",
	"extent_",
	"_int_",
	"__libc_",
	"__memset",
	"__memcpy",
	"__memmove",
	"__bzero",
	"memset_",
	"memcpy_",
	/* allocators within programs: PostgreSQL, Redis, nginx, Apache, GLib,
	 * MariaDB, OpenSSL, SQLite, PHP, CPython, binutils */
	"MemoryContextAlloc",
	"AllocSet",
	"GenerationAlloc",
	"SlabAlloc",
	"palloc",
	"pstrdup",
	"pnstrdup",
	"repalloc",
	"guc_",
	"zmalloc",
	"zcalloc",
	"zrealloc",
	"ztry",
	"ngx_palloc",
	"ngx_pcalloc",
	"ngx_alloc",
	"ngx_calloc",
	"apr_palloc",
	"apr_pcalloc",
	"g_malloc",
	"g_realloc",
	"g_slice_alloc",
	"my_malloc",
	"my_realloc",
	"ut_allocator",
	"CRYPTO_malloc",
	"CRYPTO_realloc",
	"CRYPTO_zalloc",
	"sqlite3Malloc",
	"sqlite3DbMalloc",
	"sqlite3MemMalloc",
	"_emalloc",
	"_erealloc",
	"_safe_emalloc",
	"PyMem_",
	"_PyMem_",
	"PyObject_Malloc",
	"_PyObject_Malloc",
	"_objalloc_alloc",
	"_obstack_",
	"xmalloc",
	"xcalloc",
	"xrealloc",
};
static const char *const NAMES[] = {
	"malloc",
	"calloc",
	"realloc",
	"memalign",
	"posix_memalign",
	"aligned_alloc",
	"valloc",
	"free",
	"sysmalloc",
	"mmap",
	"mmap64",
	"mremap",
	"sbrk",
	"brk",
	"memset",
	"memcpy",
	"memmove",
	"bzero",
	"strdup",
	"strndup",
	"read",
	"pread64",
	"readv",
	"recv",
	"recvfrom",
	"fread",
	"fgets",
	"getline",
	"asm_exc_page_fault",
	"exc_page_fault",
};

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

bool memsite_library(const char *function, const char *module)
{
	for (size_t i = 0; i < ARRAY_SIZE(MODULES); i++)
		if (begins(module, MODULES[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(BEGINNINGS); i++)
		if (begins(function, BEGINNINGS[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
		if (!strcmp(function, NAMES[i]))
			return true;
	return false;
}

/* Python's and Ruby's own libraries, which are not those that a program installed: lib/python3.11/,
 * lib/ruby/3.1.0/, but lib/python3.11/site-packages/, lib/ruby/gems/. */
static bool is_standard(const char *file)
{
	const char *python = strstr(file, "/lib/python"), *ruby = strstr(file, "/lib/ruby/");
	const char *version = python ? python + strlen("/lib/python") : NULL;

	if (begins(file, "<frozen "))
		return true;
	if (version && *version >= '0' && *version <= '9' && strchr(version, '/'))
		return !strstr(version, "/site-packages/") && !strstr(version, "/dist-packages/");
	return ruby && ruby[strlen("/lib/ruby/")] >= '0' && ruby[strlen("/lib/ruby/")] <= '9';
}

/* What a runtime has of a script's language: a function without a file (PHP, Ruby), a module of
 * Node, a class of the JDK, the standard library of Python and Ruby; and the libraries of Python
 * whose arrays are a program's data. */
static bool is_runtimes(const struct fold_frame *fr)
{
	static const char *const jdk[] = {"java.", "javax.", "jdk.", "sun.", "com.sun."};

	/* of Python: what fills arrays, and functions that it makes itself */
	static const char *const arrays[] = {"/numpy/", "/pandas/", "/scipy/", "/torch/"};

	for (size_t i = 0; i < ARRAY_SIZE(jdk); i++)
		if (begins(fr->name, jdk[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++)
		if (strstr(fr->file, arrays[i]))
			return true;
	if (is_standard(fr->file))
		return true;
	if (begins(fr->file, "<__array_function__"))
		return true;
	return begins(fr->module, "node:") || (fr->module[0] == '[' && !fr->file[0]);
}

bool memsite_script(const struct fold_frame *fr)
{
	return (fr->origin == FOLD_SCRIPT || (fr->origin == FOLD_JIT && fr->named)) &&
	       !is_runtimes(fr);
}

/* Functions of the kernel that hand out memory, by their beginnings: pages, slab, vmalloc, and what
 * a page fault does before it has one. */
static const char *const HAND_OUT[] = {
	"__alloc_",        "alloc_",
	"__folio_alloc",   "folio_alloc",
	"vma_alloc_",      "get_page_from",
	"__get_free_page", "get_free_pages",
	"get_zeroed_page", "__filemap_get_folio",
	"filemap_alloc_",  "allocate_slab",
	"new_slab",        "___slab_alloc",
	"__slab_alloc",    "kmem_cache_alloc",
	"__kmalloc",       "___kmalloc",
	"kmalloc",         "__kmem_cache_alloc",
	"kvmalloc",        "__kvmalloc",
	"vmalloc",         "__vmalloc",
	"vzalloc",         "kzalloc",
	"kmem_alloc",      "pte_alloc",
	"__pte_alloc",     "__pmd_alloc",
	"__pud_alloc",     "slab_alloc",
	"refill_",         "kcalloc",
	"krealloc",
};

bool memsite_hands_out(const char *function)
{
	for (size_t i = 0; i < ARRAY_SIZE(HAND_OUT); i++)
		if (begins(function, HAND_OUT[i]))
			return true;
	return false;
}

/* Where nothing above is a program's own. */
static uint32_t kernel_node(const struct fold *f, uint32_t node)
{
	for (uint32_t at = node; at; at = f->nodes[at].parent)
		if (!memsite_hands_out(f->frames[f->nodes[at].frame].name))
			return at;
	return node;
}

/* A function without a name that an allocator of the same file calls: a part of it, of a program
 * that was stripped (PostgreSQL's AllocSetAlloc, which palloc calls). A template, which
 * calls a program's own functions, is no allocator. */
static bool is_allocators(const struct fold *f, uint32_t node)
{
	const struct fold_frame *fr = &f->frames[f->nodes[node].frame], *above;
	uint32_t at = node;

	while ((at = f->nodes[at].parent)) {
		above = &f->frames[f->nodes[at].frame];
		if (strcmp(above->module, fr->module))
			return false;
		if (above->named)
			return !strstr(above->name, "::") &&
			       memsite_library(above->name, above->module);
	}
	return false;
}

/* A script's own frame in any place; else the innermost one of a file that is the program's, or
 * of the language's standard library, where the interpreter has nothing else. */
static uint32_t own_node(const struct fold *f, uint32_t node)
{
	uint32_t own = 0;

	for (uint32_t at = node; at; at = f->nodes[at].parent) {
		const struct fold_frame *fr = &f->frames[f->nodes[at].frame];

		if (memsite_script(fr))
			return at;
		if (own)
			continue;
		if (fr->origin == FOLD_SCRIPT && is_standard(fr->file))
			own = at;
		else if (fr->origin != FOLD_KERNEL && !memsite_library(fr->name, fr->module) &&
			 (fr->named || !is_allocators(f, at)))
			own = at;
	}
	return own;
}

uint32_t memsite_node(const struct fold *f, uint32_t node)
{
	uint32_t own = own_node(f, node);

	return own ? own : node;
}

uint32_t memsite_page_node(const struct fold *f, uint32_t node)
{
	uint32_t above = f->nodes[node].parent, own = own_node(f, above);

	if (!above)
		return node;
	return own ? own : kernel_node(f, above);
}
