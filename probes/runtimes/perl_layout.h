/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * perl_layout: what must be known of one build of Perl to walk its frames (perl.h) and to name
 * them. loaders/index makes one for each file that holds an interpreter, the section PERL of its
 * index; nothing else knows a version's numbers.
 */
#ifndef SONDE_PROBES_RUNTIMES_PERL_LAYOUT_H
#define SONDE_PROBES_RUNTIMES_PERL_LAYOUT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define PERL_FORMAT 1u /* of struct perl_layout */
#define PERL_RANGES 4

/* struct stackinfo (PERL_SI), of all versions that are known */
#define PERL_SI_CONTEXTS 8
#define PERL_SI_OUTER    16 /* si_prev */
#define PERL_SI_LAST     32 /* si_cxix: i32; -1: none */
#define PERL_SI_ROOM     36 /* si_cxmax: i32 */
#define PERL_SI_TYPE     44 /* i32 */
#define PERL_SI_MAIN     1
#define PERL_SI_TYPES    32

/* struct context (PERL_CONTEXT); its lowest four bits say what it is */
#define PERL_CX_SIZE   104
#define PERL_CX_CALLER 16 /* blku_oldcop */
#define PERL_CX_RETURN 48 /* retop; 0: code of C called it */
#define PERL_CX_CV     72 /* of a sub */
#define PERL_CX_KIND   0xfu
#define PERL_CX_SUB    9u
#define PERL_CX_FORMAT 10u
#define PERL_CX_EVAL   11u
#define PERL_CX_BLOCK  0x40u /* of an eval: `eval {}`, which is part of the function around it */
#define PERL_CX_FAKE   0x80u /* of a sub: none was called */
#define PERL_CONTEXTS  (1u << 20)

/* struct cop: a statement */
#define PERL_COP_FROM 32 /* where the members below begin */
#define PERL_COP_LINE 36 /* u32 */
#define PERL_COP_FILE 48 /* a text; a glob named "_<" and the text in a build without threads */
#define PERL_COP_SEQ  60 /* u32: counts blocks that were compiled: no later sub has the same */
#define PERL_COP_SIZE 64

/* an SV's head; the bodies of a CV, a GV and a stash */
#define PERL_SV_BODY  0
#define PERL_SV_FLAGS 12 /* u32 */
#define PERL_SV_U     16 /* a glob's GP; a stash's table */
#define PERL_SV_SIZE  24
#define PERL_SV_TYPE  0xffu
#define PERL_TYPE_GV  9u
#define PERL_TYPE_HV  12u
#define PERL_TYPE_CV  13u
#define PERL_HV_AUX   0x02000000u /* flag: it has a name, or could */
#define PERL_CV_STASH 32
#define PERL_CV_ROOT  48 /* its code; closures have it in common */
#define PERL_CV_GV    56 /* or, if it is NAMED, its name */
#define PERL_CV_FILE  64
#define PERL_CV_SEQ   88 /* u32: counts what is compiled; u32 flags behind it */
#define PERL_CV_FLAGS 92
#define PERL_CV_SIZE  96
#define PERL_CV_NAMED 0x8000u
#define PERL_CV_APART 0xe0u /* CLONE, CLONED, ANON: another sub may have the same code */
#define PERL_GV_NAME  32
#define PERL_GV_STASH 40
#define PERL_GV_SIZE  48
#define PERL_GP_EGV   56
#define PERL_HV_MAX   24
#define PERL_AUX_NAME 0
#define PERL_AUX_NAMES                                                            \
	28 /* i32: how many there are, if more than one; NAME points to them then \
	    */
#define PERL_AUX_SIZE   32
#define PERL_HEK_LENGTH 4 /* i32 */
#define PERL_HEK_TEXT   8 /* behind it a 0, then flags */
#define PERL_HEK_UTF8   1u

/* glibc and musl: where a thread's values of keys are */
#define PERL_GLIBC_KEYS  0x310 /* of fs_base: pairs, the second is the value */
#define PERL_GLIBC_FIRST 32    /* as many are there */
#define PERL_MUSL_KEYS   0x80  /* a pointer to them */
#define PERL_MUSL_MOST   128

/* In bytes; addresses are the file's own. */
struct perl_layout {
	__u32 format;  /* PERL_FORMAT */
	__u32 version; /* 0x0524: 5.36 */
	__u64 key;     /* PL_thr_key: of the thread's interpreter; 0: a build without threads: */
	__u64 cop, stackinfo;                                 /* PL_curcop, PL_curstackinfo */
	__u64 loop_start[PERL_RANGES], loop_end[PERL_RANGES]; /* runops; end 0: no more */
	__u16 interp_cop, interp_stackinfo;                   /* in an interpreter */
	__u16 aux;     /* of a stash's body: its names; 0: behind its table */
	__u16 program; /* 1: the file is a program, and no library that one loads */
};

enum perl_kind { PERL_NO_FRAME = 0, PERL_SUB, PERL_EVAL, PERL_FORM, PERL_TOP };

#endif
