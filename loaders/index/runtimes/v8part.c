/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/runtimes/v8part.h"

#include <errno.h>
#include <string.h>

#include "loaders/index/elf/region.h"
#include "schema/base/array.h"

#define PREFIX      "v8dbg_"
#define CODE_BYTES  96u /* of a small function */
#define TEXT_BYTES  48u
#define CALLS       4u
#define LONGEST_MOV 7u
#define SCALES      3u /* widths of bytecode's operands */

static const struct {
	const char *name;
	enum v8_symbol which;
} FUNCTIONS[] = {
	{"_ZN2v82V810GetVersionEv", V8_SYMBOL_VERSION},
	{"_ZN2v88internal7Version6major_E", V8_SYMBOL_MAJOR},
	{"_ZN2v88internal7Version6minor_E", V8_SYMBOL_MINOR},
	{"_ZN2v88internal7Isolate23CurrentEmbeddedBlobCodeEv", V8_SYMBOL_BLOB},
	{"_ZN2v88internal7Isolate27CurrentEmbeddedBlobCodeSizeEv", V8_SYMBOL_BLOB_SIZE},
	{"_ZN2v87Isolate20GetEmbeddedCodeRangeEPPKvPm", V8_SYMBOL_BLOB_RANGE},
	{"_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE", V8_SYMBOL_BYTECODES},
	{"napi_get_node_version", V8_SYMBOL_NODE},
	{PREFIX "TaggedSize", V8_SYMBOL_TAGGED_SIZE},
	{PREFIX "SmiShiftSize", V8_SYMBOL_SMI_SHIFT},
};

/* Later names of one number are those of other versions. */
static const struct {
	const char *name;
	enum v8_number number;
} NUMBERS[] = {
	{"off_fp_context", V8_FP_CONTEXT},
	{"off_fp_function", V8_FP_FUNCTION},
	{"off_fp_bytecode_array", V8_FP_BYTECODES},
	{"off_fp_bytecode_offset", V8_FP_OFFSET},
	{"class_Map__instance_type__uint16_t", V8_MAP_TYPE},
	{"class_JSFunction__shared__SharedFunctionInfo", V8_FUNCTION_SHARED},
	{"class_SharedFunctionInfo__function_data__Object", V8_SHARED_DATA},
	{"class_SharedFunctionInfo__name_or_scope_info__Object", V8_SHARED_NAME},
	{"class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_", V8_SHARED_NAME},
	{"class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_", V8_SHARED_NAME},
	{"class_SharedFunctionInfo__script_or_debug_info__HeapObject", V8_SHARED_SCRIPT},
	{"class_SharedFunctionInfo__script__Tagged_HeapObject_", V8_SHARED_SCRIPT},
	{"class_Script__name__Object", V8_SCRIPT_NAME},
	{"class_FixedArrayBase__length__SMI", V8_ARRAY_LENGTH},
	{"class_FixedArray__data__uintptr_t", V8_ARRAY_DATA},
	{"class_String__length__int32_t", V8_STRING_LENGTH},
	{"class_SeqOneByteString__chars__char", V8_STRING_CHARS},
	{"class_ConsString__first__String", V8_CONS_FIRST},
	{"class_ConsString__second__String", V8_CONS_SECOND},
	{"class_ThinString__actual__String", V8_THIN_ACTUAL},
	{"class_SlicedString__parent__String", V8_SLICED_PARENT},
	{"class_SlicedString__offset__SMI", V8_SLICED_OFFSET},
	{"class_BytecodeArray__data__uintptr_t", V8_BYTECODES_DATA},
	{"class_Code__instruction_size__int", V8_CODE_SIZE},
	{"class_Code__flags__uint32_t", V8_CODE_FLAGS},
	{"CodeKindInterpretedFunction", V8_KIND_INTERPRETED},
	{"CodeKindBaseline", V8_KIND_BASELINE},
	{"DeoptimizationDataLiteralArrayIndex", V8_DEOPT_LITERALS},
	{"DeoptimizationDataSharedFunctionInfoIndex", V8_DEOPT_SHARED},
	{"DeoptimizationDataWrappedSharedFunctionInfoIndex", V8_DEOPT_SHARED},
	{"class_SharedFunctionInfoWrapper__shared_info__Tagged_SharedFunctionInfo_",
	 V8_WRAPPED_SHARED},
	{"type_Map__MAP_TYPE", V8_TYPE_MAP},
	{"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", V8_TYPE_SHARED},
	{"type_Script__SCRIPT_TYPE", V8_TYPE_SCRIPT},
	{"type_ScopeInfo__SCOPE_INFO_TYPE", V8_TYPE_SCOPE},
	{"type_BytecodeArray__BYTECODE_ARRAY_TYPE", V8_TYPE_BYTECODES},
	{"type_InterpreterData__INTERPRETER_DATA_TYPE", V8_TYPE_INTERPRETER},
	{"type_BaselineData__BASELINE_DATA_TYPE", V8_TYPE_BASELINE},
	{"type_Code__CODE_TYPE", V8_TYPE_CODE},
	{"type_InstructionStream__INSTRUCTION_STREAM_TYPE", V8_TYPE_STREAM},
	{"type_FixedArray__FIXED_ARRAY_TYPE", V8_TYPE_ARRAY},
	{"type_ByteArray__BYTE_ARRAY_TYPE", V8_TYPE_BYTES},
	{"type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE", V8_TYPE_TRUSTED_BYTES},
	{"FirstContextType", V8_TYPE_FIRST_CONTEXT},
	{"LastContextType", V8_TYPE_LAST_CONTEXT},
	{"FirstJSFunctionType", V8_TYPE_FIRST_FUNCTION},
	{"type_JSFunction__JS_FUNCTION_TYPE", V8_TYPE_FIRST_FUNCTION},
	{"LastJSFunctionType", V8_TYPE_LAST_FUNCTION},
	{"FirstNonstringType", V8_TYPE_FIRST_NONSTRING},
	{"frametype_JavaScriptBuiltinContinuationFrame", V8_FRAME_CONTINUATION},
	{"frametype_JavaScriptBuiltinContinuationWithCatchFrame", V8_FRAME_CONTINUATION_CATCH},
};

struct given {
	enum v8_number number;
	int32_t value;
};

/* What all known versions share and V8 does not export; and the numbers that are read from V8. */
/* clang-format off */
static const struct given ALIKE[] = {
	{V8_SHARED_DATA, 8}, {V8_SCRIPT_SOURCE, 8}, {V8_SCRIPT_LINE_OFFSET, 24}, {V8_EXTERNAL_DATA, 24}, {V8_BYTECODES_LENGTH, 8},
	{V8_INTERPRETER_BYTECODES, 8}, {V8_FP_BYTECODES, -32}, {V8_FP_OFFSET, -40}, {V8_SCOPE_LOCALS, 24}, {V8_SCOPE_FIRST, 32},
	{V8_DEOPT_TRANSLATIONS, 0}, {V8_DEOPT_LITERALS, 2}, {V8_DEOPT_SHARED, 6}, {V8_DEOPT_FIRST, 11},
};
/* clang-format on */

/* clang-format off */
static const struct given V9_4[] = {
	{V8_SHAPE, V8_SHAPE_9}, {V8_BYTECODES_DATA, 54}, {V8_BYTECODES_POSITIONS, 32}, {V8_STREAM_HEAD, 96}, {V8_CODE_SIZE, 40}, {V8_CODE_FLAGS, 48},
	{V8_CODE_DEOPT, 16}, {V8_CODE_POSITIONS, 24}, {V8_KIND_INTERPRETED, 10}, {V8_KIND_BASELINE, 11}, {V8_KIND_TURBOFAN, 13}, {V8_BASELINE_BYTECODES, 16},
	{V8_TYPE_LAST_FUNCTION, 1075},
};
/* clang-format on */

static const struct given V10_2[] = {
	{V8_SHAPE, V8_SHAPE_10}, {V8_BYTECODES_POSITIONS, 32},  {V8_STREAM_HEAD, 128},
	{V8_CODE_DEOPT, 16},     {V8_CODE_POSITIONS, 24},       {V8_KIND_MAGLEV, 12},
	{V8_KIND_TURBOFAN, 13},  {V8_TYPE_LAST_FUNCTION, 2081},
};

static const struct given V11_3[] = {
	{V8_SHAPE, V8_SHAPE_11}, {V8_BYTECODES_POSITIONS, 32}, {V8_STREAM_HEAD, 16},
	{V8_STREAM_CODE, 8},     {V8_CODE_START, 40},          {V8_CODE_FLAGS, 48},
	{V8_CODE_SIZE, 56},      {V8_CODE_DEOPT, 16},          {V8_CODE_POSITIONS, 24},
	{V8_KIND_MAGLEV, 12},    {V8_KIND_TURBOFAN, 13},       {V8_TYPE_LAST_FUNCTION, 2082},
};

static const struct given V12_4[] = {
	{V8_SHAPE, V8_SHAPE_12}, {V8_BYTECODES_POSITIONS, 24}, {V8_STREAM_HEAD, 32},
	{V8_STREAM_CODE, 8},     {V8_CODE_START, 40},          {V8_CODE_DEOPT, 8},
	{V8_CODE_POSITIONS, 16}, {V8_KIND_MAGLEV, 11},         {V8_KIND_TURBOFAN, 12},
};

static const struct given V13_6[] = {
	{V8_SHAPE, V8_SHAPE_13}, {V8_BYTECODES_POSITIONS, 24}, {V8_STREAM_HEAD, 32},
	{V8_STREAM_CODE, 8},     {V8_CODE_START, 40},          {V8_CODE_DEOPT, 8},
	{V8_CODE_POSITIONS, 16}, {V8_KIND_MAGLEV, 11},         {V8_KIND_TURBOFAN, 12},
	{V8_SCOPE_FIRST, 48},    {V8_SCOPE_START, 32},         {V8_DEOPT_FIRST, 12},
};

static const struct given V14_6[] = {
	{V8_SHAPE, V8_SHAPE_14}, {V8_BYTECODES_POSITIONS, 24}, {V8_STREAM_HEAD, 32},
	{V8_STREAM_CODE, 8},     {V8_CODE_START, 40},          {V8_CODE_DEOPT, 8},
	{V8_CODE_POSITIONS, 16}, {V8_KIND_MAGLEV, 12},         {V8_KIND_TURBOFAN, 13},
	{V8_SCOPE_FIRST, 48},    {V8_SCOPE_START, 32},         {V8_DEOPT_FIRST, 12},
};

#define ROW(version, given)                       \
	{                                         \
		version, given, ARRAY_SIZE(given) \
	}
static const struct {
	uint32_t version;
	const struct given *given;
	size_t n;
} VERSIONS[] = {ROW(0x0904, V9_4),  ROW(0x0a02, V10_2), ROW(0x0b03, V11_3),
		ROW(0x0c04, V12_4), ROW(0x0d06, V13_6), ROW(0x0e06, V14_6)};

void v8_symbols_note(struct v8_symbols *s, const char *name, uint64_t addr, uint64_t size)
{
	const size_t prefix = strlen(PREFIX);
	bool about = !strncmp(name, PREFIX, prefix);

	if (!about && strncmp(name, "_ZN2v8", 6) && strncmp(name, "napi_get_n", 10))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(FUNCTIONS); i++)
		if (!strcmp(name, FUNCTIONS[i].name))
			s->code[FUNCTIONS[i].which] = addr;
	if (s->code[V8_SYMBOL_BYTECODES] == addr && size)
		s->bytecodes_size = size;
	for (size_t i = 0; about && i < ARRAY_SIZE(NUMBERS); i++)
		if (!strcmp(name + prefix, NUMBERS[i].name))
			s->at[NUMBERS[i].number] = addr;
}

uint32_t v8part_version(const char *text, size_t len)
{
	uint32_t part[2] = {0};
	size_t at = 0;

	for (int i = 0; i < 2; i++) {
		size_t from = at;

		for (; at < len && text[at] >= '0' && text[at] <= '9' && part[i] <= 0xff; at++)
			part[i] = part[i] * 10 + (uint32_t)(text[at] - '0');
		if (at == from || at >= len || text[at++] != '.' || part[i] > 0xff)
			return 0;
	}
	return part[0] << 8 | part[1];
}

/* The variable that a function returns: mov variable(%rip),%rax or %eax; ret; with a frame around
 * it, or without. 0: it does something else. */
static uint64_t returned_variable(struct elf_file *f, uint64_t function, int *rc)
{
	static const uint8_t enters[] = {0x55, 0x48, 0x89, 0xe5}; /* push %rbp; mov %rsp,%rbp */
	cleanup_region struct region r = {0};
	int got =
		function ? region_read(f, function, sizeof(enters) + LONGEST_MOV + 2, &r) : -ENOENT;
	unsigned at, framed, rex;

	if (got) {
		*rc = got == -ENOENT ? *rc : got;
		return 0;
	}
	framed = !memcmp(r.bytes, enters, sizeof(enters));
	at = framed ? sizeof(enters) : 0;
	rex = r.bytes[at] == 0x48;
	at += rex;
	if (r.bytes[at] != 0x8b || r.bytes[at + 1] != 0x05 || (framed && r.bytes[at + 6] != 0x5d) ||
	    r.bytes[at + 6 + framed] != 0xc3)
		return 0;
	return function + at + 6 + (uint64_t)(int64_t)(int32_t)region_word(&r, at + 2, 4);
}

/* The first bytes of a small function. */
static int code_read(struct elf_file *f, uint64_t function, struct region *r)
{
	uint64_t left = function ? elf_bytes_at(f, function) : 0;

	return left ? region_read(f, function, left < CODE_BYTES ? left : CODE_BYTES, r) : -ENOENT;
}

/* What a function calls first, second...; 0 each where it does not. */
static int calls_find(struct elf_file *f, uint64_t function, uint64_t out[CALLS])
{
	cleanup_region struct region r = {0};
	int rc = code_read(f, function, &r);
	unsigned n = 0;

	for (uint64_t at = 0; !rc && at + 5 <= r.len && n < CALLS; at++) {
		if (r.bytes[at] != 0xe8)
			continue;
		out[n++] =
			function + at + 5 + (uint64_t)(int64_t)(int32_t)region_word(&r, at + 1, 4);
		at += 4;
	}
	return rc == -ENOENT ? 0 : rc;
}

static int blob_find(struct elf_file *f, const struct v8_symbols *s, struct v8_layout *l)
{
	uint64_t called[CALLS] = {0};
	int rc = 0;

	l->blob = returned_variable(f, s->code[V8_SYMBOL_BLOB], &rc);
	l->blob_size = returned_variable(f, s->code[V8_SYMBOL_BLOB_SIZE], &rc);
	if (rc || (l->blob && l->blob_size))
		return rc;
	rc = calls_find(f, s->code[V8_SYMBOL_BLOB_RANGE], called);
	if (!rc) {
		l->blob_size = returned_variable(f, called[2], &rc);
		l->blob = returned_variable(f, called[3], &rc);
	}
	return rc;
}

/* The address that an instruction has: mov $address,(%rsi), or lea address(%rip),register. 0: it is
 * neither. */
static uint64_t address_in(const struct region *r, uint64_t at)
{
	uint64_t end = r->vaddr + at + LONGEST_MOV;

	if (region_word(r, at, 4) << 40 == 0x06c748ull << 40)
		return region_word(r, at + 3, 4);
	if ((r->bytes[at] & 0xfb) == 0x48 && r->bytes[at + 1] == 0x8d &&
	    (r->bytes[at + 2] & 0xc7) == 0x05)
		return end + (uint64_t)(int64_t)(int32_t)region_word(r, at + 3, 4);
	return 0;
}

static int node_find(struct elf_file *f, const struct v8_symbols *s, uint32_t *version)
{
	cleanup_region struct region r = {0};
	int rc = code_read(f, s->code[V8_SYMBOL_NODE], &r);

	for (uint64_t at = 0; !rc && !*version && at + LONGEST_MOV <= r.len; at++) {
		cleanup_region struct region numbers = {0};
		uint64_t address = address_in(&r, at), major, minor, patch;

		if (!address || region_read(f, address, 12, &numbers))
			continue;
		major = region_word(&numbers, 0, 4);
		minor = region_word(&numbers, 4, 4);
		patch = region_word(&numbers, 8, 4);
		if (major && major <= UINT8_MAX && minor <= UINT8_MAX && patch <= UINT8_MAX)
			*version = (uint32_t)(major << 16 | minor << 8 | patch);
	}
	return rc == -ENOENT ? 0 : rc;
}

/* An int of the file; where its bytes are not in it, it is 0. */
static int number_read(struct elf_file *f, uint64_t at, int32_t *value)
{
	cleanup_region struct region r = {0};
	int rc = region_read(f, at, 4, &r);

	*value = rc ? 0 : (int32_t)region_word(&r, 0, 4);
	return rc == -ENOENT ? 0 : rc;
}

static int version_text(struct elf_file *f, const struct v8_symbols *s, uint32_t *version)
{
	cleanup_region struct region pointer = {0};
	cleanup_region struct region text = {0};
	int rc = 0;
	uint64_t at = returned_variable(f, s->code[V8_SYMBOL_VERSION], &rc);

	if (!rc && at)
		rc = region_read(f, at, 8, &pointer);
	at = pointer.bytes ? region_word(&pointer, 0, 8) : 0;
	if (!rc && at)
		rc = region_read(
			f, at, elf_bytes_at(f, at) < TEXT_BYTES ? elf_bytes_at(f, at) : TEXT_BYTES,
			&text);
	if (!rc && text.bytes)
		*version = v8part_version((const char *)text.bytes, (size_t)text.len);
	return rc == -ENOENT ? 0 : rc;
}

static int version_find(struct elf_file *f, const struct v8_symbols *s, uint32_t *version)
{
	int32_t major = 0, minor = 0;
	int rc;

	if (!s->code[V8_SYMBOL_MAJOR] || !s->code[V8_SYMBOL_MINOR])
		return version_text(f, s, version);
	rc = number_read(f, s->code[V8_SYMBOL_MAJOR], &major);
	if (!rc)
		rc = number_read(f, s->code[V8_SYMBOL_MINOR], &minor);
	if (!rc && major > 0 && major <= UINT8_MAX && minor >= 0 && minor <= UINT8_MAX)
		*version = (uint32_t)(major << 8 | minor);
	return rc;
}

static int numbers_read(struct elf_file *f, const struct v8_symbols *s, struct v8_layout *l)
{
	int rc = 0;

	for (unsigned i = 0; i < V8_N && !rc; i++)
		if (s->at[i])
			rc = number_read(f, s->at[i], &l->n[i]);
	return rc;
}

static void given_take(struct v8_layout *l, const struct given *given, size_t n, bool over)
{
	for (size_t i = 0; i < n; i++)
		if (over || l->n[given[i].number] == V8_ABSENT)
			l->n[given[i].number] = given[i].value;
}

/* What no version does without. */
static bool is_whole(const struct v8_layout *l)
{
	static const enum v8_number may_lack[] = {
		V8_SCOPE_START,        V8_STREAM_CODE,    V8_CODE_START,
		V8_KIND_MAGLEV,        V8_WRAPPED_SHARED, V8_TYPE_STREAM,
		V8_TYPE_TRUSTED_BYTES, V8_TYPE_BASELINE,  V8_BASELINE_BYTECODES};

	for (unsigned i = 0; i < V8_N; i++) {
		bool may = false;

		for (size_t k = 0; k < ARRAY_SIZE(may_lack); k++)
			may |= may_lack[k] == i;
		if (!may && (l->n[i] == V8_ABSENT || l->n[i] < -4096 || l->n[i] > UINT16_MAX))
			return false;
	}
	return l->blob && l->blob_size;
}

static bool version_take(struct v8_layout *l)
{
	given_take(l, ALIKE, ARRAY_SIZE(ALIKE), false);
	for (size_t i = 0; i < ARRAY_SIZE(VERSIONS); i++) {
		if (VERSIONS[i].version != l->version)
			continue;
		given_take(l, VERSIONS[i].given, VERSIONS[i].n, true);
		return true;
	}
	return false;
}

int v8part_make(struct elf_file *f, const struct v8_symbols *syms, struct v8_layout *out)
{
	struct v8_layout l = {.format = V8_FORMAT};
	int32_t tagged = 0, shift = 0;
	int rc;

	if (!f->is64 || f->machine != EM_X86_64 ||
	    !(syms->code[V8_SYMBOL_VERSION] || syms->code[V8_SYMBOL_MAJOR]))
		return -ENOENT;
	for (unsigned i = 0; i < V8_N; i++)
		l.n[i] = V8_ABSENT;
	l.bytecode_sizes = syms->code[V8_SYMBOL_BYTECODES];
	l.bytecodes = syms->bytecodes_size / SCALES <= UINT8_MAX + 1 ?
			      (uint32_t)(syms->bytecodes_size / SCALES) :
			      0;
	rc = version_find(f, syms, &l.version);
	if (!rc && syms->code[V8_SYMBOL_TAGGED_SIZE])
		rc = number_read(f, syms->code[V8_SYMBOL_TAGGED_SIZE], &tagged);
	if (!rc && syms->code[V8_SYMBOL_SMI_SHIFT])
		rc = number_read(f, syms->code[V8_SYMBOL_SMI_SHIFT], &shift);
	if (!rc)
		rc = node_find(f, syms, &l.node);
	if (!rc)
		rc = blob_find(f, syms, &l);
	if (!rc)
		rc = numbers_read(f, syms, &l);
	if (rc)
		return rc;
	l.known = version_take(&l) && tagged == 8 && shift == 31 && is_whole(&l);
	*out = l;
	return 0;
}
