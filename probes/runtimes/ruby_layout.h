/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ruby_layout: what must be known of one build of Ruby (CRuby, MRI) to walk its frames (ruby.h) and
 * to read what they say. loaders/index makes one for each file that holds an interpreter, the
 * section RUBY of its index; nothing else knows a version's numbers.
 */
#ifndef SONDE_PROBES_RUNTIMES_RUBY_LAYOUT_H
#define SONDE_PROBES_RUNTIMES_RUBY_LAYOUT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define RUBY_FORMAT 1u /* of struct ruby_layout */
#define RUBY_RANGES 8

/* struct rb_control_frame_struct and rb_execution_context_struct, of all versions that are known */
#define RUBY_EC_STACK      0
#define RUBY_EC_STACK_SIZE 8 /* words */
#define RUBY_EC_FRAME      16
#define RUBY_FRAME_AT      0 /* pc */
#define RUBY_FRAME_ISEQ    16
#define RUBY_FRAME_ENV     32 /* ep; its word 0 are the frame's flags */
#define RUBY_ENV_METHOD    (-2 * 8)
#define RUBY_ENV_PARENT    (-1 * 8)

/* an object's flags, its first word */
#define RUBY_TYPE_MASK    0x1fu
#define RUBY_TYPE_CLASS   0x02u
#define RUBY_TYPE_MODULE  0x03u
#define RUBY_TYPE_STRING  0x05u
#define RUBY_TYPE_ARRAY   0x07u
#define RUBY_TYPE_SYMBOL  0x14u
#define RUBY_TYPE_MEMO    0x1au
#define RUBY_USER(n)      (1u << (12 + (n)))
#define RUBY_TEXT_LONG    RUBY_USER(1)
#define RUBY_ARRAY_SHORT  RUBY_USER(1)
#define RUBY_MEMO_KIND(f) ((f) >> 12 & 0xf)
#define RUBY_MEMO_SVAR    2
#define RUBY_MEMO_METHOD  6
#define RUBY_MEMO_ISEQ    7

/* members of objects, of all versions that are known */
#define RUBY_ISEQ_BODY    16
#define RUBY_BODY_SIZE    4 /* u32: instructions */
#define RUBY_BODY_CODE    8
#define RUBY_BODY_PATH    64
#define RUBY_BODY_LABEL   80
#define RUBY_BODY_FIRST   96  /* u32: the first line of its source, where lines_checked */
#define RUBY_BODY_LAST    104 /* u32: the last one */
#define RUBY_METHOD_DEF   16
#define RUBY_METHOD_OWNER 32
#define RUBY_DEF_NAME     32
#define RUBY_SVAR_METHOD  8
#define RUBY_ATTACHED     128 /* of a singleton class, where class_path is known: 3.3, 3.4 */
#define RUBY_TEXT_LENGTH  16  /* of a long text, and of a short one where text_length says so */
#define RUBY_TEXT_AT      24
#define RUBY_ARRAY_DATA   16 /* of a short one */
#define RUBY_ARRAY_AT     32 /* of a long one */
#define RUBY_SYMBOL_ID    32
#define RUBY_SYMBOLS_IDS  16
#define RUBY_ID_SHIFT     4
#define RUBY_IDS_UNIT     512
#define RUBY_ENV_LOCAL    2u /* flag of an environment that has none around it */

/* a frame's flags */
#define RUBY_FLAG_FINISH 0x20u
#define RUBY_FLAG_C      0x80u /* no instructions */
#define RUBY_MAGIC_MASK  0x7fff0001u
#define RUBY_MAGIC_C     0x55550001u
#define RUBY_MAGIC_DUMMY 0x79990001u
#define RUBY_DTV         8 /* of fs_base: the table of thread-local blocks */

/* In bytes; addresses are the file's own. */
struct ruby_layout {
	__u32 format;   /* RUBY_FORMAT */
	__u32 version;  /* 0x0301 */
	__u64 vm;       /* 2.7: address of the pointer to the VM; 0: see tls_slot and tls_offset */
	__u64 tls_slot; /* 3.0 on: two words, the module's number and the offset in its thread-local
			   block of the thread's context; 0: see tls_offset */
	__s64 tls_offset; /* of a program: from fs_base */
	__u64 symbols;    /* ruby_global_symbols; 0: not known */
	__u64 loop_start[RUBY_RANGES], loop_end[RUBY_RANGES]; /* vm_exec_core; end 0: no more */
	__u16 vm_threads, thread_node,
		thread_id; /* 2.7: the list of threads, and a thread's pthread_self() */
	__u16 thread_ec, ec_thread;
	__u16 frame_size;
	__u16 lines, lines_count, lines_index; /* in an iseq's body: insns_info */
	__u16 line_size;                       /* of one of them; the line is its first word */
	__u16 text_length;                     /* of a short string; 0: in its flags */
	__u16 text_short;    /* a short string's bytes; the address of a long one's is in its fourth
				word */
	__u16 last_op;       /* tLAST_OP_ID: ids up to it are their own serial numbers */
	__u16 class_path;    /* of a class: its name; 0: elsewhere */
	__u16 lines_checked; /* 1: where lines are is not certain, so that a line counts only if it
				is one of those that its code says it has */
	__u16 singleton; /* which of a class's user flags says that it is of one object; from 3.4
			    on 1 */
};

#endif
