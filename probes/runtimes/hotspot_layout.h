/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hotspot_layout: what must be known of one libjvm to walk Java's frames
 * (loaders/lib/runtimes/hotspot.h). HotSpot describes itself in tables for its own debugger
 * (gHotSpotVMStructs and others); from JDK 12 on their numbers are only there while it runs. So
 * loaders/index records the address of each number, in the section HOTSPOT of the file's index, and
 * the walker reads it in the process.
 */
#ifndef SONDE_PROBES_RUNTIMES_HOTSPOT_LAYOUT_H
#define SONDE_PROBES_RUNTIMES_HOTSPOT_LAYOUT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define HOTSPOT_FORMAT 2u /* of struct hotspot_layout */

/* Part of indexes: only appended to, with HOTSPOT_FORMAT. The tables' own names are in
 * loaders/index/runtimes/hotspotpart.c. */
enum hotspot_number {
	/* variables: `at` is the variable itself */
	HOTSPOT_VERSION,      /* an int: the JDK's */
	HOTSPOT_THREADS,      /* ThreadsSMRSupport::_java_thread_list; or: */
	HOTSPOT_FIRST_THREAD, /* Threads::_thread_list */
	HOTSPOT_HEAPS,        /* CodeCache::_heaps */
	HOTSPOT_LOW,
	HOTSPOT_HIGH,        /* CodeCache::_low_bound, _high_bound */
	HOTSPOT_INTERPRETER, /* AbstractInterpreter::_code */
	HOTSPOT_CALL_RETURN, /* StubRoutines::_call_stub_return_address */
	/* offsets of members */
	HOTSPOT_LIST_LENGTH,
	HOTSPOT_LIST_THREADS,
	HOTSPOT_THREAD_NEXT,
	HOTSPOT_THREAD_OS,
	HOTSPOT_THREAD_ANCHOR,
	HOTSPOT_OS_PTHREAD,
	HOTSPOT_ANCHOR_SP,
	HOTSPOT_ANCHOR_FP,
	HOTSPOT_ANCHOR_PC,
	HOTSPOT_WRAPPER_ANCHOR,
	HOTSPOT_ARRAY_LENGTH,
	HOTSPOT_ARRAY_DATA, /* GrowableArray */
	HOTSPOT_HEAP_MEMORY,
	HOTSPOT_HEAP_MAP,
	HOTSPOT_HEAP_SHIFT,
	HOTSPOT_SPACE_LOW,
	HOTSPOT_SPACE_HIGH,
	HOTSPOT_BLOCK_USED,
	HOTSPOT_BLOB_NAME,
	HOTSPOT_BLOB_SIZE,
	HOTSPOT_BLOB_FRAME,
	HOTSPOT_BLOB_CODE, /* an address; or: */
	HOTSPOT_BLOB_CODE_OFFSET,
	HOTSPOT_NM_METHOD,
	HOTSPOT_NM_ORIG_PC,
	HOTSPOT_NM_DEOPT, /* an address; or: */
	HOTSPOT_NM_DEOPT_OFFSET,
	HOTSPOT_NM_PCS, /* an offset, from the blob or from: */
	HOTSPOT_NM_IMMUTABLE,
	HOTSPOT_NM_IMMUTABLE_SIZE,
	HOTSPOT_NM_PCS_END, /* of the blob alone */
	HOTSPOT_NM_SCOPES,  /* an address; or an offset from IMMUTABLE: */
	HOTSPOT_NM_SCOPES_OFFSET,
	HOTSPOT_NM_METADATA, /* an offset from the blob; else behind the relocations of: */
	HOTSPOT_NM_MUTABLE,
	HOTSPOT_NM_RELOCATIONS,
	HOTSPOT_PC_OFFSET,
	HOTSPOT_PC_SCOPE,
	HOTSPOT_METHOD_CONST,
	HOTSPOT_CONST_POOL,
	HOTSPOT_CONST_CODE_SIZE,
	HOTSPOT_CONST_NAME,
	HOTSPOT_CONST_FLAGS,
	HOTSPOT_POOL_HOLDER,
	HOTSPOT_POOL_TAGS,
	HOTSPOT_POOL_LENGTH,
	HOTSPOT_POOL_SOURCE, /* or: */
	HOTSPOT_CLASS_SOURCE,
	HOTSPOT_CLASS_NAME,
	HOTSPOT_SYMBOL_LENGTH,
	HOTSPOT_SYMBOL_BODY,
	HOTSPOT_BUFFER,
	HOTSPOT_BUFFER_LIMIT, /* StubQueue */
	HOTSPOT_BYTES_DATA,   /* Array<u1> */
	/* sizes */
	HOTSPOT_SIZE_CONST,
	HOTSPOT_SIZE_POOL,
	HOTSPOT_SIZE_PC,
	HOTSPOT_SIZE_BLOCK,
	/* constants */
	HOTSPOT_HAS_LINES,
	HOTSPOT_CALL_WRAPPER, /* the second: words from a frame's base, negative */
	/* since format 2 */
	HOTSPOT_ONE_HEAP, /* a variable: CodeCache::_heap of JDK 8, in place of HEAPS */
	HOTSPOT_N
};

struct hotspot_layout {
	__u32 format; /* HOTSPOT_FORMAT */
	__u32 pad;
	__u64 at[HOTSPOT_N];   /* the address of each number in the file; 0: it has no such name */
	__u8 width[HOTSPOT_N]; /* bytes of that member, by the name of its type; 0: not a plain
				  number */
};

#endif
