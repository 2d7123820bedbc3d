/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * python_layout: what must be known of one build of CPython to walk its frames (python.h) and to
 * read its code objects. loaders/index makes one for each file that holds an interpreter, the
 * section PYTHON of its index; nothing else knows a version's numbers.
 */
#ifndef SONDE_PROBES_RUNTIMES_PYTHON_LAYOUT_H
#define SONDE_PROBES_RUNTIMES_PYTHON_LAYOUT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define PYTHON_FORMAT 1u /* of struct python_layout */
#define PYTHON_RANGES 8

enum python_shape { PYTHON_OBJECTS = 1, PYTHON_CFRAMES = 2, PYTHON_SHIMS = 3 };

enum python_lines {                       /* how a code object's line table is written */
		    PYTHON_LINES_27 = 1,  /* co_lnotab, lines only grow */
		    PYTHON_LINES_36 = 2,  /* co_lnotab, signed lines */
		    PYTHON_LINES_310 = 3, /* co_linetable, PEP 626 */
		    PYTHON_LINES_311 = 4  /* co_linetable, PEP 657 */
};

/* Offsets of members, in bytes. 0 for a member that a version lacks; addresses are the file's own.
 */
struct python_layout {
	__u32 format;       /* PYTHON_FORMAT */
	__u32 version;      /* PY_VERSION_HEX: 0x030b02f0 */
	__u64 interpreters; /* address of the pointer to the newest interpreter */
	__u64 code_type;    /* PyCode_Type, by which objects are known to be what they should be; so
			       the others */
	__u64 frame_type;   /* PYTHON_OBJECTS */
	__u64 text_type;    /* PyUnicode_Type; 2.7: PyString_Type */
	__u64 bytes_type;
	__u64 gil; /* 3.7 to 3.11: struct _gil_runtime_state; 0: not known */
	__u64 loop_start[PYTHON_RANGES],
		loop_end[PYTHON_RANGES]; /* PYTHON_OBJECTS: the interpreter's loop; end 0: no more
					  */
	__u16 interp_next, interp_threads;
	__u16 interp_gil; /* 3.12 on: address of the pointer to an interpreter; 0: see gil */
	__u16 thread_next, thread_id; /* thread_id: its pthread_self(), which is fs_base */
	__u16 thread_frame;           /* PYTHON_CFRAMES, and PYTHON_SHIMS with cframe_frame !=
					 PYTHON_NO_CFRAME: of the _PyCFrame */
	__u16 cframe_frame, cframe_back;
	__u16 frame_back, frame_code, frame_at;
	__u16 frame_owner; /* a byte: PYTHON_CFRAMES is_entry, PYTHON_SHIMS owner */
	__u16 object_type;
	__u16 code_size;   /* tp_basicsize of PyCode_Type */
	__u16 code_length; /* 3.11 on: instructions, of 2 bytes each */
	__u16 code_start;  /* 3.11 on: the first of them */
	__u16 code_first_line, code_file, code_name, code_qualname, code_lines;
	__u16 text_length, text_state, text_ascii, text_compact; /* 2.7: text_ascii alone */
	__u16 bytes_length, bytes_data;
	__u8 shape;    /* enum python_shape */
	__u8 lines;    /* enum python_lines */
	__u8 at_scale; /* PYTHON_OBJECTS: bytes of code for 1 of f_lasti */
	__u8 pad[7];
};
#define PYTHON_NO_CFRAME 0xffff

/* struct _gil_runtime_state, alike from 3.7 to 3.15 */
#define PYTHON_GIL_HOLDER 8  /* the thread state that has it, or had it last */
#define PYTHON_GIL_LOCKED 16 /* an int: 1 where it is held */
/* from here to its end: conditions and mutexes, on which threads wait for it */
#define PYTHON_GIL_COND 32
#define PYTHON_GIL_SIZE 208

#endif
