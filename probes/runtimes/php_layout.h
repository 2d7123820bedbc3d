/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * php_layout: what must be known of one build of PHP to walk its frames (php.h) and to read its
 * functions. loaders/index makes one for each file that holds an engine, the section PHP of its
 * index; nothing else knows a version's numbers.
 */
#ifndef SONDE_PROBES_RUNTIMES_PHP_LAYOUT_H
#define SONDE_PROBES_RUNTIMES_PHP_LAYOUT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define PHP_FORMAT 1u /* of struct php_layout */
#define PHP_RANGES 8

/* struct _zend_execute_data, of all versions */
#define PHP_FRAME_AT    0 /* opline: the instruction, a pointer */
#define PHP_FRAME_FUNC  24
#define PHP_FRAME_THIS  32
#define PHP_FRAME_INFO  40 /* This.u1.type_info: u32; its lowest byte says what This is */
#define PHP_FRAME_BACK  48
#define PHP_FRAME_SIZE  80
#define PHP_CALL_TOP    (1u << 17)
#define PHP_THIS_OBJECT 8u

/* zend_function, zend_string, zend_class_entry, zend_op, of all versions */
#define PHP_FUNC_NAME     8
#define PHP_FUNC_CLASS    16
#define PHP_FUNC_LINE     8   /* behind the file's name: u32, its first line */
#define PHP_FUNC_SIZE     184 /* what is read of a script's */
#define PHP_STRING_GC     4   /* u32: its type in the low four bits */
#define PHP_STRING_HASH   8
#define PHP_STRING_LENGTH 16
#define PHP_STRING_BYTES  24
#define PHP_STRING_TYPE   6
#define PHP_CLASS_NAME    8
#define PHP_OP_SIZE       32
#define PHP_OP_LINE       24 /* u32 */

enum php_function {
	PHP_INTERNAL = 1,
	PHP_SCRIPT = 2,
	PHP_EVAL = 4
}; /* ZEND_INTERNAL_FUNCTION, ... */

/* In bytes; addresses are the file's own. */
struct php_layout {
	__u32 format;  /* PHP_FORMAT */
	__u32 version; /* 0x0802 */
	__u64 globals; /* executor_globals */
	__u64 loop_start[PHP_RANGES],
		loop_end[PHP_RANGES]; /* execute_ex and its cold parts; end 0: no more */
	__u16 current;                /* of the innermost frame's address in executor_globals */
	__u16 code, code_count;       /* of a script's function: its instructions, how many */
	__u16 file;
	__u16 generator_parent; /* of a generator: the one that it waits for (yield from) */
	__u16 generator_frame;
	__u16 program; /* 1: the file is a program, php or php-fpm, and no library that one loads */
	__u16 pad;
};

#endif
