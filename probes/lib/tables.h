/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tables: what sonde-maps publishes for unwinding, in BPF maps that all families share: which files
 * a process has mapped where, and for each file the rules to find a caller's frame. Read by BPF
 * programs, by the same unwinder built for user space (unwind.h), and by its writers (sonde-index
 * makes rows, sonde-maps publishes them). The BPF side includes probes/lib/kern.h before it, user
 * space <linux/types.h>.
 *
 * 1. Rules
 *
 * A rule says how to find the caller's frame. Tracked are the CFA (the stack pointer before the
 * call), the caller's RBP and RBX, and the return address, which is at CFA - 8 unless the rule says
 * otherwise. (RBX is what the dynamic linker's trampolines keep their CFA in while they call on.) A
 * rule is 64 bits; an image has each once, by number, and rule 0 is ROW_NONE.
 *
 *   bits 0-1  kind:  ROW_RSP   CFA = RSP + 8 * offset      ROW_RBP  CFA = RBP + 8 * offset
 *                    ROW_EXT   bits 2-31 are the number of a struct row_ext of this image
 *                    ROW_SPECIAL   bits 2-9 are an enum row_special, bits 10-17 its argument
 *   ROW_RSP, ROW_RBP:
 *   bits 2-3  caller's RBP: enum row_bp;  bits 4-15  for ROW_BP_SAVED: it is at CFA - 8 * saved
 *   bits 16-31  offset
 *   all but ROW_SPECIAL:
 *   bits 32-33  caller's RBX: enum row_bx;  bits 36-47  for ROW_BX_SAVED: it is at CFA - 8 * saved
 *   All other bits are 0. ROW_PLT leaves RBX as it is; behind the other special ones it is lost.
 *
 * What these do not express (negative or odd offsets, expressions, registers other than RSP and
 * RBP) is a row_ext.
 *
 * 2. Rows and pages
 *
 * A row is 32 bits: the number of a rule in the lower 16, in the upper 16 from where on in its page
 * it holds, to the next row. A page is 2^TABLES_PAGE_SHIFT bytes of text, from text_base on; one
 * 64-bit element for each: the rule that holds at its first byte in bits 48-63, how many rows begin
 * behind that byte in bits 32-47, the index (from the image's first row) of the first of them in
 * bits 0-31. The rows of a page are sorted, no two begin at the same byte, none at its first. What
 * is not described (hand-written code, a gap) has ROW_NONE: frame pointers are followed there. A
 * caller's frame is looked up at its return address - 1.
 *
 * 3. The image index (schema/image/format.h, kind UNWIND) holds all this as it is published: one
 *    array of 64-bit elements, pages first, then rules, then extensions (2 each), then rows (two an
 *    element, the lower half first; an odd number leaves a half that is 0); struct unwind_head
 *    comes before it.
 *
 * 4. Maps
 *
 *   rows          array of 64-bit elements, mmap-able: for each image its pages, rules, extensions
 *                 and rows
 *   mappings      array of 64-bit elements, mmap-able: for each set of mappings a slice (below)
 *   images        array of struct tables_image by slot, mmap-able
 *   processes     hash, tgid -> struct tables_process
 *   tables_state  array of one struct tables_state, mmap-able
 *   runtimes      array of struct tables_runtime: the interpreters of script languages that are
 *                 known, each once (runtimes/runtime.h); an element never moves
 *   inflight      array of struct tables_inflight: which request a thread, or a goroutine, serves.
 *                 sonde-l7 writes it (inflight.bpf.h)
 *   wanted        ring of __u64, which wakes sonde-maps: the tgid of a young process that a probe
 *                 met and that is not published, or has no mapping or no rows where it runs; or of
 *                 any that has no mapping there
 *
 * A slice of n mappings: n start addresses, sorted; then n times MAPPING_WORDS: end; address ->
 * offset in the file (what to add to the address); address -> row address (what to add); image
 * slot. Several processes may share a slice. Unused space is overwritten TABLES_GRACE_NS after the
 * last pointer to it was removed, not before. An element of `processes` is different: the kernel
 * may reuse it for another process while it is read. The reader looks it up again afterwards: if
 * the address is the same, it was this process all along.
 *
 * 5. A file of very many rows is published in parts of 2^TABLES_PART_SHIFT pages: behind its
 *    extensions, from element use_first on, there is a byte for each part, which the unwinder sets
 *    when it asks for a row there. The rows of a part lie anywhere in `rows`: the indexes in its
 *    pages count from the array's first element. The pages of an unpublished part have
 *    ROW_PAGE_ABSENT as their number of rows: the stack is PENDING, and the part comes because its
 *    byte is set.
 *
 * A file whose rows arrive gets another slot, and the processes that map it another slice: READY is
 * never seen with the row address of a mapping that was written before the rows were known.
 */
#ifndef SONDE_PROBES_TABLES_H
#define SONDE_PROBES_TABLES_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define TABLES_VERSION    2 /* of rows */
#define TABLES_PAGE_SHIFT 9
#define TABLES_PART_SHIFT 7 /* pages */
#define TABLES_RULES_MAX  65536
#define TABLES_GRACE_NS   1000000000ull
/* sonde-maps' heartbeat older than this: tables are not used */
#define TABLES_STALE_NS 3000000000ull

#define TABLES_WANTED_BYTES 4096
/* not more often: sonde-maps reads what is older than that */
#define TABLES_WANTED_NS      15000000ull
#define TABLES_WANTED_ROWS_NS 50000000ull /* for rows, which may have to be made first */
/* of a process that is not young, for what it has just mapped */
#define TABLES_WANTED_OLD_NS 1000000000ull
/* since its start: what has no tables by then will not have any soon */
#define TABLES_YOUNG_NS 2000000000ull

#define TABLES_IMAGES    16384 /* slots; 0 is never an image */
#define TABLES_PROCESSES 32768
#define TABLES_RUNTIMES  128  /* element 0 is never one */
#define TABLES_SLICE_MAX 4096 /* mappings of one process; what is above is not published */

/* ---- rows ---- */

enum row_kind { ROW_SPECIAL = 0, ROW_RSP = 1, ROW_RBP = 2, ROW_EXT = 3 };
enum row_bp {
	ROW_BP_SAME = 0,
	ROW_BP_SAVED = 1,
	ROW_BP_LOST = 2 /* undefined, or not to be expressed */
};

enum row_bx { ROW_BX_LOST = 0, ROW_BX_SAME = 1, ROW_BX_SAVED = 2 };

enum row_special {
	ROW_NONE = 0,   /* nothing is known here: frame pointers */
	ROW_ROOT = 1,   /* the outermost frame: its return address is marked undefined, or it is a
			   named entry */
	ROW_SIGNAL = 2, /* RSP points to a struct ucontext: a signal handler returned to here */
	ROW_PLT = 3,    /* CFA = RSP + 8 + (pc % 16 >= argument ? 8 : 0); RBP same */
	ROW_FP = 4,     /* the frame pointer is right here: {caller's RBP, return address} at RBP */
	ROW_UNSUPPORTED = 5 /* argument: enum row_unsupported */
};

enum row_unsupported {                                     /* stored: never renumbered */
		       ROW_UNSUPPORTED_CFA_EXPRESSION = 1, /* an expression of a form not known */
		       ROW_UNSUPPORTED_CFA_REGISTER =
			       2, /* CFA from a register that is not tracked, not in a leaf */
		       ROW_UNSUPPORTED_RA = 3,    /* return address at another place than CFA - 8 */
		       ROW_UNSUPPORTED_RANGE = 4, /* offsets too large */
		       ROW_UNSUPPORTED_BROKEN = 5 /* the file's own description is damaged */
};

#define ROW_MAKE_SPECIAL(special, arg) \
	((__u32)ROW_SPECIAL | (__u32)(special) << 2 | (__u32)(arg) << 10)
#define ROW_MAKE_CFA(kind, bp, saved, offset) \
	((__u32)(kind) | (__u32)(bp) << 2 | (__u32)(saved) << 4 | (__u32)(offset) << 16)
#define ROW_MAKE_BX(bx, saved) ((__u64)(bx) << 32 | (__u64)(saved) << 36) /* to be or-ed */
#define ROW_MAKE_EXT(number)   ((__u32)ROW_EXT | (__u32)(number) << 2)
#define ROW_SAVED_MAX          4095u  /* words */
#define ROW_OFFSET_MAX         65535u /* words */

#define ROW_RULE_KIND(rule)     ((__u32)(rule)&3u)
#define ROW_RULE_BP(rule)       ((__u32)(rule) >> 2 & 3u)
#define ROW_RULE_SAVED(rule)    ((__u32)(rule) >> 4 & 0xfffu)
#define ROW_RULE_OFFSET(rule)   ((__u32)(rule) >> 16)
#define ROW_RULE_EXT(rule)      ((__u32)(rule) >> 2)
#define ROW_RULE_BX(rule)       ((__u32)((rule) >> 32) & 3u)
#define ROW_RULE_BX_SAVED(rule) ((__u32)((rule) >> 36) & 0xfffu)
#define ROW_RULE_SPECIAL(rule)  ((__u32)(rule) >> 2 & 0xffu)
#define ROW_RULE_ARG(rule)      ((__u32)(rule) >> 10 & 0xffu)

#define ROW_MAKE(in_page, number) ((__u32)(in_page) << 16 | (__u32)(number))
#define ROW_IN_PAGE(row)          ((__u32)(row) >> 16)
#define ROW_NUMBER(row)           ((__u32)(row)&0xffffu)

#define ROW_PAGE(number, count, first) \
	((__u64)(number) << 48 | (__u64)(count) << 32 | (__u32)(first))
#define ROW_PAGE_NUMBER(page) ((__u32)((page) >> 48))
#define ROW_PAGE_COUNT(page)  ((__u32)((page) >> 32) & 0xffffu)
#define ROW_PAGE_FIRST(page)  ((__u32)(page))
#define ROW_PAGE_ABSENT       0xffffu /* in maps alone: more rows than a page can have */

/* DWARF register numbers of x86-64 (System V psABI, figure 3.36); 16 is the return address. */
enum { ROW_REG_RBX = 3, ROW_REG_RBP = 6, ROW_REG_RSP = 7, ROW_REG_N = 16 };

enum row_ext_kind {
	ROW_EXT_CFA = 1,    /* CFA = reg + a. A register other than RSP, RBP, RBX counts in an
			       interrupted frame only */
	ROW_EXT_DEREF = 2,  /* CFA = *(reg + a) + b; register as above */
	ROW_EXT_INDEX = 3,  /* CFA = *(reg + 8 * reg2 + a) + b; registers as above */
	ROW_EXT_RA_REG = 4, /* CFA = reg + a, the return address is in register reg2; interrupted
			       frame only */
	/* Go, on the system stack of a thread: the caller is on the goroutine's stack. g = *(FS
	 * base + a); curg = *(*(g + 48) + b); its saved state is curg.sched at curg + 56: sp, pc,
	 * ..., bp at curg + 56 + bp_offset. curg = 0: this frame is the outermost one. */
	ROW_EXT_GO_STACK =
		5, /* systemstack before Go 1.21: return address at *sp, CFA = sp + 8, RBP = bp */
	ROW_EXT_GO_SCHED = 6, /* morestack: the caller is sched.pc (a return address) with sched.sp,
				 sched.bp */
	ROW_EXT_SWITCH = 7,   /* CFA = reg + a, on another stack: it may be below RSP */
	ROW_EXT_GO_DEPTH = 8, /* asmcgocall: CFA = *(*(reg + a) + 8) - *(reg + b) + 8 * reg2, on
				 another stack */
	ROW_EXT_INJECTED = 9 /* CFA = reg + a; at CFA - 8 is the interrupted pc of the caller, not a
				return address */
};

enum row_ext_bp {
	ROW_EXT_BP_SAME = 0,
	ROW_EXT_BP_CFA = 1, /* at CFA + bp_offset */
	ROW_EXT_BP_RBP = 2, /* at RBP + bp_offset */
	ROW_EXT_BP_RSP = 3, /* at RSP + bp_offset */
	ROW_EXT_BP_LOST = 4
};

struct row_ext {
	__u8 kind; /* enum row_ext_kind */
	__u8 reg;  /* DWARF number */
	__u8 bp;   /* enum row_ext_bp */
	__u8 reg2;
	__s32 a;
	__s32 b;
	__s32 bp_offset;
};
_Static_assert(sizeof(struct row_ext) == 16, "wire size");

/* ---- in the image index ---- */

struct unwind_head {
	__u64 text_base; /* virtual address that rows are relative to; a multiple of the page size
			  */
	__u32 version;   /* TABLES_VERSION */
	__u32 page_count;
	__u32 rule_count;
	__u32 ext_count;
	__u32 row_count;
	__u32 unsupported; /* rules in force that are ROW_UNSUPPORTED */
	__u32 flags;       /* enum unwind_flags */
	__u32 pad;
};
_Static_assert(sizeof(struct unwind_head) == 40, "wire size");
/* then page_count __u64, rule_count __u64, ext_count struct row_ext, row_count __u32, filled up to
 * 8 bytes */

enum unwind_flags {
	UNWIND_F_GO = 1,         /* rows of Go's own tables are in it */
	UNWIND_F_DEBUG_FRAME = 2 /* rows come from .debug_frame */
};

/* ---- in BPF maps ---- */

/* end, offset delta, row delta, image slot (0: executable, but no file: JIT code) */
#define MAPPING_WORDS 4

enum tables_image_state {
	TABLES_IMAGE_FREE = 0,
	TABLES_IMAGE_PENDING = 1, /* its rows are not there yet */
	TABLES_IMAGE_READY = 2,
	TABLES_IMAGE_REFUSED = 3 /* it will have none: frame pointers */
};

struct tables_image {
	__u32 state;      /* enum tables_image_state; written last */
	__u32 id;         /* mp_image.id: what frames say */
	__u32 page_first; /* element of `rows`; its rules lie between its pages and its extensions
			   */
	__u32 page_count;
	__u32 ext_first; /* element of `rows`, two an extension */
	__u32 ext_count;
	__u32 row_first; /* element of `rows`; 0 for a file in parts */
	__u32 row_count;
	__u32 used; /* set by the unwinder, cleared by sonde-maps: for giving back what is not used
		     */
	__u32 use_first; /* element of `rows`; 0: all its rows are there, in one piece. Else (5) */
	__u32 runtime;   /* element of `runtimes`: it holds an interpreter; 0: none that is known */
	__u32 pad;
};
_Static_assert(sizeof(struct tables_image) == 48, "wire size");

/* it runs machine code that only user space can unwind: HotSpot's */
#define TABLES_PROCESS_OWN_CODE 1u
/* its threads run goroutines. The other bits of `flags` tell how to find one */
#define TABLES_PROCESS_GO 4u
/* its own code, and what no row describes, is followed by the frame pointer and named by user
 * space: V8's */
#define TABLES_PROCESS_OBJECTS 2u
/* One of its files holds an interpreter that may make machine code, which leads to no caller: PHP's
 * or Ruby's. Not together with GO. The file's mapping is the one of this number in the slice. */
#define TABLES_PROCESS_SCRIPTS         8u
#define TABLES_SCRIPTS_MAPPING(flags_) ((flags_) >> 16)
#define TABLES_SCRIPTS_MAKE(mapping_)  (TABLES_PROCESS_SCRIPTS | (__u32)(mapping_) << 16)

/*
 * Of a process that is GO, in words of 8 bytes: g = *(FS base - TLS); its number (runtime.g.goid)
 * is *(g + GOID), 0 where g is the stack of a thread itself or of its signals: then the goroutine
 * that this works for is *(*(g + 6) + CURG), 0: none. TLS 0: all of this is not known.
 */
#define TABLES_GO_M            6u
#define TABLES_GO_GOID(flags_) ((flags_) >> 4 & 0x3f)
#define TABLES_GO_CURG(flags_) ((flags_) >> 10 & 0x3f)
#define TABLES_GO_TLS(flags_)  ((flags_) >> 16)
#define TABLES_GO_HOW          0xfffffff0u
#define TABLES_GO_MAKE(tls_, goid_, curg_) \
	(TABLES_PROCESS_GO | (__u32)(tls_) << 16 | (__u32)(curg_) << 10 | (__u32)(goid_) << 4)

struct tables_process {
	__u64 start_ns; /* identity as in stack.h */
	__u64 as_of_ns; /* side-band up to this time (boot clock) is in it */
	__u32 exec_id;
	__u32 first; /* element of `mappings` */
	__u32 count; /* mappings in the slice */
	__u32 flags; /* TABLES_PROCESS_* */
};
_Static_assert(sizeof(struct tables_process) == 32, "wire size");

struct tables_state {
	__u64 heartbeat_ns; /* boot clock; 0: no publisher */
	__u32 generation;   /* of sonde-maps */
	__u32 last_image;   /* highest image id given out: a successor goes on above it */
	__u64 wanted_ns;    /* when a probe last wrote to `wanted`; probes write this */
	__u64 inflight_ns;  /* last sign of life of the writer of `inflight`; written by sonde-l7 */
};

#define TABLES_INFLIGHT    (1u << 16)
#define TABLES_INFLIGHT_NS 2000000000ull /* who has said nothing for so long writes no more */

/* Whose request it is: a thread's number, or that of a goroutine (tgid, goid; goid's last 41 bits).
 */
#define TABLES_WHO_GOROUTINE(tgid_, goid_) \
	(1ull << 63 | (__u64)(tgid_) << 41 | ((goid_) & ((1ull << 41) - 1)))
#define TABLES_WHO_PLACE(who_) \
	(((__u32)(who_) + (__u32)((who_) >> 41) * 40503u) & (TABLES_INFLIGHT - 1))
/* In a tag: it was set for a goroutine, and of Go such tags alone count. Where one is made the last
 * bit of its time says so, too. */
#define TABLES_TAG_GOROUTINE  (1ull << 59) /* of an uptime of 18 years */
#define TABLES_TAG_OF(at_ns_) ((__u64)(at_ns_) | ((__u64)(at_ns_)&1) << 59)

struct tables_inflight {
	__u64 tag; /* the request's: when its first bytes were read (boot clock), and
		      TABLES_TAG_GOROUTINE; 0: none */
	__u64 who; /* whose it is: others have the same place */
};
_Static_assert(sizeof(struct tables_inflight) == 16, "wire size");

#endif
