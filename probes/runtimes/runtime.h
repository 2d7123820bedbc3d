/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * runtime: frames of scripts, as BPF programs emit them and loaders name them. Nothing here knows a
 * language; a runtime's walker (python.h) does.
 *
 * 1. The layout of an interpreter's file is an element of the map `runtimes` (tables.h), which the
 *    file's slot leads to. The process has it loaded `bias` above its own addresses, by its
 *    mapping. So a process is walked as soon as its mappings are published, without reading its
 *    memory before.
 *
 * 2. A frame is one word: FRAME_SCRIPT | kind << 56 | id << 24 | position. The id identifies one
 *    object (a function's code) of one process: each capture's program assigns it when it first
 *    meets the object, and does not reuse it. It is kept in the map `objects` by struct script_key:
 *    process, address, and a cookie over what the object is made of. An object that was freed, with
 *    another at its place, has another cookie, so another id. Id 0: the object could not get one,
 *    its frame has no name. The position says where in the object it was; its meaning depends on
 *    the runtime:
 *      python  0: not known; else bytes of code before the instruction + 3 (so that -2, "not
 *              begun", is 1)
 *      php     the line; 0: not known
 *      perl    the line; 0: not known
 *      ruby    0: not known; else how many instructions there are before where it says it is, + 1
 *
 * 3. With the id goes what names it: pieces of the process's memory, as they were at that moment,
 *    in the ring `names`. The loader reads them as it would read the process
 *    (loaders/lib/runtimes/scriptobject.h). A name is there before the frame that has it.
 *
 * An object is what frames of one function have in common: python its code object, php its
 * instructions (of a function of C itself), ruby its iseq (of a function of C its method), perl a
 * sub's code (of what is no sub its file).
 *
 * The BPF side includes probes/lib/kern.h before it, user space <linux/types.h>.
 */
#ifndef SONDE_PROBES_RUNTIMES_RUNTIME_H
#define SONDE_PROBES_RUNTIMES_RUNTIME_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#include "probes/runtimes/perl_layout.h"
#include "probes/runtimes/php_layout.h"
#include "probes/runtimes/python_layout.h"
#include "probes/runtimes/ruby_layout.h"
#include "probes/runtimes/v8_layout.h"

enum runtime_kind { /* stored (schema/store/write/writer.h): never renumbered */
		    RUNTIME_NONE = 0,
		    RUNTIME_PYTHON = 1,
		    RUNTIME_RUBY = 2,
		    RUNTIME_PHP = 3,
		    RUNTIME_V8 = 4,
		    RUNTIME_HOTSPOT = 5,
		    RUNTIME_PERL = 6,
		    RUNTIME_BEAM = 7, /* found by user space, in late stacks */
		    RUNTIME_N
};

/* ---- the frame word; FRAME_SCRIPT and FRAME_IS_SCRIPT: probes/lib/stack.h ---- */

#define SCRIPT_POSITION_BITS 24
#define SCRIPT_POSITION_MAX  ((1ull << SCRIPT_POSITION_BITS) - 1)
#define SCRIPT_KIND_SHIFT    56
#define SCRIPT_KIND(f)       ((__u32)((f) >> SCRIPT_KIND_SHIFT) & 0xfu)
#define SCRIPT_ID(f)         ((__u32)((f) >> SCRIPT_POSITION_BITS))
#define SCRIPT_POSITION(f)   ((__u32)((f)&SCRIPT_POSITION_MAX))
#define SCRIPT_PYTHON_NONE   3u /* what is added to bytes of code */

/* ---- element of `runtimes` ---- */

struct tables_runtime {
	__u32 kind; /* enum runtime_kind; written last. 0: free */
	__u32 pad;
	__u64 text_base; /* what rows of that file are relative to */
	union {
		struct python_layout python;
		struct php_layout php;
		struct ruby_layout ruby;
		struct perl_layout perl;
		__u64 words[62];
	};
};
_Static_assert(sizeof(struct tables_runtime) == 512, "wire size");

/* ---- objects, and their names ---- */

#define SCRIPT_OBJECTS 16384 /* of one capture; the loader takes away what is old */

struct script_key {
	__u64 start_ns, object, cookie;
	__u32 tgid, exec_id;
};
_Static_assert(sizeof(struct script_key) == 32, "wire size");

/* A piece of the process's memory, as it was: `size` bytes from `at` on, which are at `from` in
 * `data`. */
struct script_piece {
	__u64 at;
	__u32 from, size;
};
#define SCRIPT_PIECES      16
#define SCRIPT_DATA_BYTES  12288u
#define SCRIPT_TEXT_BYTES  512u  /* of a text; what is longer is cut */
#define SCRIPT_LINES_BYTES 8192u /* of a line table; what is longer is cut */

/* A record of the ring `names`; it ends behind the last byte that is filled. */
struct script_names {
	struct script_key key;
	__u32 id;
	__u32 image; /* mp_image.id of the interpreter's file */
	__u64 bias;
	__u64 time_ns;
	__u64 of;   /* php: the function; ruby: the method that it lies in, 0: not known; perl: the
		       CV, or the text of its file */
	__u32 what; /* php: enum php_function, and SCRIPT_OUTERMOST; ruby: SCRIPT_NATIVE or 0; perl:
		       enum perl_kind */
	__u32 pad;
	struct script_piece piece[SCRIPT_PIECES];
	struct tables_runtime layout;
	__u8 data[SCRIPT_DATA_BYTES];
};
#define SCRIPT_OUTERMOST 0x100u
#define SCRIPT_NATIVE    1u
_Static_assert(sizeof(struct script_names) ==
		       32 + 8 + 16 + 16 + 16 * SCRIPT_PIECES + 512 + SCRIPT_DATA_BYTES,
	       "wire size");

/* Why the walk of a script's frames ended before its end; counted by the program. */
enum script_miss {
	SCRIPT_WHOLE = 0,
	SCRIPT_NO_THREAD, /* the interpreter does not know the thread: it runs no script */
	SCRIPT_FAULT,     /* memory could not be read, or is not what it should be */
	SCRIPT_DEEP,      /* more frames than fit */
	SCRIPT_NO_PLACE,  /* frames that no native frame holds */
	SCRIPT_UNNAMED,   /* a frame whose object has no id */
	SCRIPT_MISS_N
};
_Static_assert(SCRIPT_MISS_N <= 8, "the program masks it");

struct script_tally {
	__u64 walks; /* user stacks that met an interpreter */
	__u64 frames;
	__u64 taken; /* objects whose names went into the ring */
	__u64 missed[SCRIPT_MISS_N];
};

#endif
