/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * v8_layout: what must be known of one file that holds V8 to walk JavaScript's frames
 * (loaders/lib/runtimes/v8/v8.h). V8 keeps constants about itself for debuggers (v8dbg_*);
 * loaders/index takes them from the file, and what V8 does not say from its version. It is the
 * section V8 of the file's index.
 */
#ifndef SONDE_PROBES_RUNTIMES_V8_LAYOUT_H
#define SONDE_PROBES_RUNTIMES_V8_LAYOUT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define V8_FORMAT 1u       /* of struct v8_layout */
#define V8_ABSENT (-32768) /* a number that this version does not have */

/* Part of indexes: only appended to, with V8_FORMAT. Offsets in objects are from the object itself,
 * not from a tagged pointer to it. */
enum v8_number {
	/* from a frame's base */
	V8_FP_CONTEXT,
	V8_FP_FUNCTION,
	V8_FP_BYTECODES,
	V8_FP_OFFSET,
	/* offsets of members */
	V8_MAP_TYPE,
	V8_FUNCTION_SHARED,
	V8_SHARED_DATA,
	V8_SHARED_NAME,
	V8_SHARED_SCRIPT,
	V8_SCRIPT_SOURCE,
	V8_SCRIPT_NAME,
	V8_SCRIPT_LINE_OFFSET,
	V8_ARRAY_LENGTH,
	V8_ARRAY_DATA, /* FixedArray; ByteArray too */
	V8_STRING_LENGTH,
	V8_STRING_CHARS,
	V8_CONS_FIRST,
	V8_CONS_SECOND,
	V8_THIN_ACTUAL,
	V8_SLICED_PARENT,
	V8_SLICED_OFFSET,
	V8_EXTERNAL_DATA,
	V8_BYTECODES_LENGTH,
	V8_BYTECODES_DATA,
	V8_BYTECODES_POSITIONS,   /* its table of source positions */
	V8_INTERPRETER_BYTECODES, /* InterpreterData */
	V8_BASELINE_BYTECODES,    /* BaselineData; ABSENT: its Code has it where others have what is
				     needed for deoptimising */
	V8_SCOPE_LOCALS,
	V8_SCOPE_FIRST, /* ScopeInfo: how many context locals; the first of what follows */
	V8_SCOPE_START, /* where the function begins; ABSENT: behind its names */
	/* code: what pc lies in, and what says of it */
	V8_STREAM_HEAD, /* from the object to its first instruction */
	V8_STREAM_CODE, /* the Code of an InstructionStream; ABSENT: it is its own */
	V8_CODE_START,  /* ABSENT: behind its head */
	V8_CODE_SIZE,
	V8_CODE_FLAGS,
	V8_CODE_DEOPT,
	V8_CODE_POSITIONS,
	/* kinds of code, the lowest four bits of its flags */
	V8_KIND_INTERPRETED,
	V8_KIND_BASELINE,
	V8_KIND_MAGLEV,
	V8_KIND_TURBOFAN,
	/* indexes into DeoptimizationData */
	V8_DEOPT_TRANSLATIONS,
	V8_DEOPT_LITERALS,
	V8_DEOPT_SHARED,
	V8_DEOPT_FIRST,
	V8_WRAPPED_SHARED, /* offset in the wrapper of DEOPT_SHARED; ABSENT: it is not wrapped */
	/* types of objects */
	V8_TYPE_MAP,
	V8_TYPE_SHARED,
	V8_TYPE_SCRIPT,
	V8_TYPE_SCOPE,
	V8_TYPE_BYTECODES,
	V8_TYPE_INTERPRETER,
	V8_TYPE_BASELINE,
	V8_TYPE_CODE,
	V8_TYPE_STREAM,
	V8_TYPE_ARRAY,
	V8_TYPE_BYTES,
	V8_TYPE_TRUSTED_BYTES,
	V8_TYPE_FIRST_CONTEXT,
	V8_TYPE_LAST_CONTEXT,
	V8_TYPE_FIRST_FUNCTION,
	V8_TYPE_LAST_FUNCTION,
	V8_TYPE_FIRST_NONSTRING,
	/* kinds of frames, as twice that number in the place of the context */
	V8_FRAME_CONTINUATION,
	V8_FRAME_CONTINUATION_CATCH, /* a builtin goes on in it, after optimised code was given up
				      */
	V8_SHAPE,                    /* enum v8_shape */
	V8_N
};

/* How what a version writes itself is coded (loaders/lib/runtimes/v8/v8tables.h). */
enum v8_shape { V8_SHAPE_9 = 1, V8_SHAPE_10, V8_SHAPE_11, V8_SHAPE_12, V8_SHAPE_13, V8_SHAPE_14 };

struct v8_layout {
	__u32 format;          /* V8_FORMAT */
	__u32 version;         /* V8's: 0x0b03 is 11.3 */
	__u32 node;            /* Node's: 0x141402 is 20.20.2; 0: it is not Node */
	__u32 known;           /* 0: this version's frames are not read; nothing else holds then */
	__u64 blob, blob_size; /* the file's addresses of two variables: where the code of its
				  builtins is, and how many bytes (u32) */
	__u64 bytecode_sizes;  /* the file's address of the lengths of bytecode's instructions: as
				  many bytes for each of three widths of operands */
	__u32 bytecodes;       /* how many there are; 0: not known */
	__s32 n[V8_N];         /* by enum v8_number */
};

#endif
