/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/runtimes/hotspotpart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/elf/region.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"

#define ENTRIES_MAX 4096u
#define NAME_MAX_   64u

enum table { STRUCTS, TYPES, CONSTANTS, TABLES };

static const struct shape {
	enum runsym symbol;
	unsigned stride, second,
		number; /* of an entry; where the member's name is, 0: none; where the number is */
} SHAPES[TABLES] = {
	[STRUCTS] = {RUNSYM_JVM_STRUCTS, 48, 8, 32},
	[TYPES] = {RUNSYM_JVM_TYPES, 40, 0, 32},
	[CONSTANTS] = {RUNSYM_JVM_CONSTANTS, 16, 0, 8},
};
#define STRUCT_TYPE    16
#define STRUCT_STATIC  24
#define STRUCT_ADDRESS 40

/* Later names of one number are those of other versions. */
static const struct wanted {
	enum hotspot_number number;
	enum table table;
	const char *type, *member;
} WANTED[] = {
	{HOTSPOT_VERSION, STRUCTS, "Abstract_VM_Version", "_vm_major_version"},
	{HOTSPOT_THREADS, STRUCTS, "ThreadsSMRSupport", "_java_thread_list"},
	{HOTSPOT_FIRST_THREAD, STRUCTS, "Threads", "_thread_list"},
	{HOTSPOT_HEAPS, STRUCTS, "CodeCache", "_heaps"},
	{HOTSPOT_ONE_HEAP, STRUCTS, "CodeCache", "_heap"},
	{HOTSPOT_LOW, STRUCTS, "CodeCache", "_low_bound"},
	{HOTSPOT_HIGH, STRUCTS, "CodeCache", "_high_bound"},
	{HOTSPOT_INTERPRETER, STRUCTS, "AbstractInterpreter", "_code"},
	{HOTSPOT_CALL_RETURN, STRUCTS, "StubRoutines", "_call_stub_return_address"},
	{HOTSPOT_LIST_LENGTH, STRUCTS, "ThreadsList", "_length"},
	{HOTSPOT_LIST_THREADS, STRUCTS, "ThreadsList", "_threads"},
	{HOTSPOT_THREAD_NEXT, STRUCTS, "JavaThread", "_next"},
	{HOTSPOT_THREAD_OS, STRUCTS, "JavaThread", "_osthread"},
	{HOTSPOT_THREAD_OS, STRUCTS, "Thread", "_osthread"},
	{HOTSPOT_THREAD_ANCHOR, STRUCTS, "JavaThread", "_anchor"},
	{HOTSPOT_OS_PTHREAD, STRUCTS, "OSThread", "_pthread_id"},
	{HOTSPOT_ANCHOR_SP, STRUCTS, "JavaFrameAnchor", "_last_Java_sp"},
	{HOTSPOT_ANCHOR_FP, STRUCTS, "JavaFrameAnchor", "_last_Java_fp"},
	{HOTSPOT_ANCHOR_PC, STRUCTS, "JavaFrameAnchor", "_last_Java_pc"},
	{HOTSPOT_WRAPPER_ANCHOR, STRUCTS, "JavaCallWrapper", "_anchor"},
	{HOTSPOT_ARRAY_LENGTH, STRUCTS, "GrowableArrayBase", "_len"},
	{HOTSPOT_ARRAY_LENGTH, STRUCTS, "GenericGrowableArray", "_len"},
	{HOTSPOT_ARRAY_DATA, STRUCTS, "GrowableArray<int>", "_data"},
	{HOTSPOT_HEAP_MEMORY, STRUCTS, "CodeHeap", "_memory"},
	{HOTSPOT_HEAP_MAP, STRUCTS, "CodeHeap", "_segmap"},
	{HOTSPOT_HEAP_SHIFT, STRUCTS, "CodeHeap", "_log2_segment_size"},
	{HOTSPOT_SPACE_LOW, STRUCTS, "VirtualSpace", "_low"},
	{HOTSPOT_SPACE_HIGH, STRUCTS, "VirtualSpace", "_high"},
	{HOTSPOT_BLOCK_USED, STRUCTS, "HeapBlock::Header", "_used"},
	{HOTSPOT_BLOB_NAME, STRUCTS, "CodeBlob", "_name"},
	{HOTSPOT_BLOB_SIZE, STRUCTS, "CodeBlob", "_size"},
	{HOTSPOT_BLOB_FRAME, STRUCTS, "CodeBlob", "_frame_size"},
	{HOTSPOT_BLOB_CODE, STRUCTS, "CodeBlob", "_code_begin"},
	{HOTSPOT_BLOB_CODE_OFFSET, STRUCTS, "CodeBlob", "_code_offset"},
	{HOTSPOT_NM_METHOD, STRUCTS, "nmethod", "_method"},
	{HOTSPOT_NM_METHOD, STRUCTS, "CompiledMethod", "_method"},
	{HOTSPOT_NM_ORIG_PC, STRUCTS, "nmethod", "_orig_pc_offset"},
	{HOTSPOT_NM_DEOPT, STRUCTS, "CompiledMethod", "_deopt_handler_begin"},
	{HOTSPOT_NM_DEOPT_OFFSET, STRUCTS, "nmethod", "_deopt_handler_offset"},
	{HOTSPOT_NM_DEOPT_OFFSET, STRUCTS, "nmethod", "_deopt_handler_entry_offset"},
	{HOTSPOT_NM_PCS, STRUCTS, "nmethod", "_scopes_pcs_offset"},
	{HOTSPOT_NM_IMMUTABLE, STRUCTS, "nmethod", "_immutable_data"},
	{HOTSPOT_NM_IMMUTABLE_SIZE, STRUCTS, "nmethod", "_immutable_data_size"},
	{HOTSPOT_NM_PCS_END, STRUCTS, "nmethod", "_dependencies_offset"},
	{HOTSPOT_NM_SCOPES, STRUCTS, "CompiledMethod", "_scopes_data_begin"},
	{HOTSPOT_NM_SCOPES_OFFSET, STRUCTS, "nmethod", "_scopes_data_offset"},
	{HOTSPOT_NM_METADATA, STRUCTS, "nmethod", "_metadata_offset"},
	{HOTSPOT_NM_MUTABLE, STRUCTS, "CodeBlob", "_mutable_data"},
	{HOTSPOT_NM_RELOCATIONS, STRUCTS, "CodeBlob", "_relocation_size"},
	{HOTSPOT_PC_OFFSET, STRUCTS, "PcDesc", "_pc_offset"},
	{HOTSPOT_PC_SCOPE, STRUCTS, "PcDesc", "_scope_decode_offset"},
	{HOTSPOT_METHOD_CONST, STRUCTS, "Method", "_constMethod"},
	{HOTSPOT_CONST_POOL, STRUCTS, "ConstMethod", "_constants"},
	{HOTSPOT_CONST_CODE_SIZE, STRUCTS, "ConstMethod", "_code_size"},
	{HOTSPOT_CONST_NAME, STRUCTS, "ConstMethod", "_name_index"},
	{HOTSPOT_CONST_FLAGS, STRUCTS, "ConstMethod", "_flags"},
	{HOTSPOT_CONST_FLAGS, STRUCTS, "ConstMethod", "_flags._flags"},
	{HOTSPOT_POOL_HOLDER, STRUCTS, "ConstantPool", "_pool_holder"},
	{HOTSPOT_POOL_TAGS, STRUCTS, "ConstantPool", "_tags"},
	{HOTSPOT_POOL_LENGTH, STRUCTS, "ConstantPool", "_length"},
	{HOTSPOT_POOL_SOURCE, STRUCTS, "ConstantPool", "_source_file_name_index"},
	{HOTSPOT_CLASS_SOURCE, STRUCTS, "InstanceKlass", "_source_file_name_index"},
	{HOTSPOT_CLASS_NAME, STRUCTS, "Klass", "_name"},
	{HOTSPOT_SYMBOL_LENGTH, STRUCTS, "Symbol", "_length"},
	{HOTSPOT_SYMBOL_BODY, STRUCTS, "Symbol", "_body"},
	{HOTSPOT_BUFFER, STRUCTS, "StubQueue", "_stub_buffer"},
	{HOTSPOT_BUFFER_LIMIT, STRUCTS, "StubQueue", "_buffer_limit"},
	{HOTSPOT_BYTES_DATA, STRUCTS, "Array<u1>", "_data"},
	{HOTSPOT_SIZE_CONST, TYPES, "ConstMethod", NULL},
	{HOTSPOT_SIZE_POOL, TYPES, "ConstantPool", NULL},
	{HOTSPOT_SIZE_PC, TYPES, "PcDesc", NULL},
	{HOTSPOT_SIZE_BLOCK, TYPES, "HeapBlock", NULL},
	{HOTSPOT_HAS_LINES, CONSTANTS, "ConstMethod::_has_linenumber_table", NULL},
	{HOTSPOT_HAS_LINES, CONSTANTS, "ConstMethodFlags::_misc_has_linenumber_table", NULL},
	{HOTSPOT_CALL_WRAPPER, CONSTANTS, "frame::entry_frame_call_wrapper_offset", NULL},
};
#define WANTED_COUNT ARRAY_SIZE(WANTED)

/* A name of the file; false: it is longer than any that is wanted, or none. */
static bool name_read(struct elf_file *f, uint64_t addr, char out[NAME_MAX_ + 1], int *rc)
{
	uint64_t left = addr ? elf_bytes_at(f, addr) : 0;
	cleanup_free void *bytes = NULL;
	size_t n = left < NAME_MAX_ ? (size_t)left : NAME_MAX_;
	int got = n ? elf_read_at(f, addr, n, &bytes) : -ENOENT;

	if (got == -ENOMEM || got == -ESTALE)
		*rc = got;
	if (got)
		return false;
	memcpy(out, bytes, n);
	out[n] = 0;
	return strlen(out) < n;
}

/* Bytes of a plain number, by the name of its type; 0: it is something else. */
static uint8_t width_of(const char *type)
{
	static const struct {
		const char *name;
		uint8_t bytes;
	} plain[] = {{"int", 4},
		     {"uint", 4},
		     {"unsigned int", 4},
		     {"u4", 4},
		     {"int32_t", 4},
		     {"uint32_t", 4},
		     {"jint", 4},
		     {"juint", 4},
		     {"u2", 2},
		     {"short", 2},
		     {"jshort", 2},
		     {"jushort", 2},
		     {"unsigned short", 2},
		     {"int16_t", 2},
		     {"uint16_t", 2},
		     {"u1", 1},
		     {"bool", 1},
		     {"char", 1},
		     {"int8_t", 1},
		     {"uint8_t", 1},
		     {"jubyte", 1},
		     {"unsigned char", 1},
		     {"u8", 8},
		     {"size_t", 8},
		     {"long", 8},
		     {"int64_t", 8},
		     {"uint64_t", 8},
		     {"intx", 8},
		     {"uintx", 8},
		     {"intptr_t", 8},
		     {"uintptr_t", 8}};

	if (!strncmp(type, "const ", 6))
		type += 6;
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (!strcmp(plain[i].name, type))
			return plain[i].bytes;
	return 0;
}

static uint8_t width_read(struct elf_file *f, const struct region *r, uint64_t entry, int *rc)
{
	char type[NAME_MAX_ + 1];

	return name_read(f, region_word(r, entry + STRUCT_TYPE, 8), type, rc) ? width_of(type) : 0;
}

/* NULL: this entry is not wanted. */
static const struct wanted *entry_take(const struct region *r, const struct shape *shape,
				       uint64_t entry, enum table table, const char *type,
				       const char *member, struct hotspot_layout *l)
{
	for (size_t i = 0; i < WANTED_COUNT; i++) {
		const struct wanted *w = &WANTED[i];

		if (w->table != table || strcmp(w->type, type) ||
		    (w->member && strcmp(w->member, member)))
			continue;
		if (table == STRUCTS && region_word(r, entry + STRUCT_STATIC, 4))
			l->at[w->number] = region_word(r, entry + STRUCT_ADDRESS, 8);
		else
			l->at[w->number] = r->vaddr + entry + shape->number;
		return w;
	}
	return NULL;
}

static int table_read(struct elf_file *f, const struct runsyms *syms, enum table table,
		      struct hotspot_layout *l)
{
	const struct shape *s = &SHAPES[table];
	cleanup_region struct region head = {0};
	cleanup_region struct region r = {0};
	uint64_t at, left;
	int rc = runsyms_addr(syms, s->symbol) ?
			 region_read(f, runsyms_addr(syms, s->symbol), 8, &head) :
			 -ENOENT;

	if (rc)
		return rc;
	at = region_word(&head, 0, 8);
	left = at ? elf_bytes_at(f, at) : 0;
	left = left < ENTRIES_MAX * s->stride ? left : ENTRIES_MAX * s->stride;
	rc = left ? region_read(f, at, left, &r) : -ENOENT;
	for (uint64_t e = 0; !rc && e + s->stride <= r.len && region_word(&r, e, 8);
	     e += s->stride) {
		char type[NAME_MAX_ + 1], member[NAME_MAX_ + 1] = "";
		const struct wanted *w = NULL;

		if (name_read(f, region_word(&r, e, 8), type, &rc) &&
		    (!s->second || name_read(f, region_word(&r, e + s->second, 8), member, &rc)))
			w = entry_take(&r, s, e, table, type, member, l);
		if (w && table == STRUCTS)
			l->width[w->number] = width_read(f, &r, e, &rc);
	}
	return rc;
}

/* What no name can be read without. A name that is missing otherwise costs what it is for:
 * lines, what was inlined, interpreted frames, or frames of threads that are not sampled. */
static bool is_enough(const struct hotspot_layout *l)
{
	/* clang-format off */
	static const enum hotspot_number all[] = {
		HOTSPOT_HEAP_MEMORY, HOTSPOT_HEAP_MAP, HOTSPOT_HEAP_SHIFT, HOTSPOT_SPACE_LOW, HOTSPOT_SPACE_HIGH, HOTSPOT_BLOCK_USED,
		HOTSPOT_BLOB_NAME, HOTSPOT_BLOB_SIZE, HOTSPOT_BLOB_FRAME, HOTSPOT_NM_METHOD, HOTSPOT_METHOD_CONST, HOTSPOT_CONST_POOL,
		HOTSPOT_CONST_CODE_SIZE, HOTSPOT_CONST_NAME, HOTSPOT_POOL_HOLDER, HOTSPOT_POOL_TAGS, HOTSPOT_POOL_LENGTH, HOTSPOT_CLASS_NAME,
		HOTSPOT_SYMBOL_LENGTH, HOTSPOT_SYMBOL_BODY, HOTSPOT_BYTES_DATA, HOTSPOT_SIZE_CONST, HOTSPOT_SIZE_POOL, HOTSPOT_SIZE_BLOCK,
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!l->at[all[i]])
			return false;
	return l->at[HOTSPOT_HEAPS] || l->at[HOTSPOT_ONE_HEAP];
}

int hotspotpart_make(struct elf_file *f, const struct runsyms *syms, struct hotspot_layout *out)
{
	struct hotspot_layout l = {.format = HOTSPOT_FORMAT};
	int rc = f->is64 && f->machine == EM_X86_64 ? 0 : -ENOENT;

	for (int t = 0; t < TABLES && !rc; t++)
		rc = table_read(f, syms, (enum table)t, &l);
	if (!rc && !is_enough(&l))
		rc = -ENOENT;
	if (!rc)
		*out = l;
	return rc;
}
