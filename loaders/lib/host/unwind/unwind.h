/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind: the unwinder of probes/lib/unwind.h in user space: for stacks taken before their rows
 * were published, and for tests. Pure: it asks `unwind_from` for what it needs.
 */
#ifndef SONDE_HOST_UNWIND_H
#define SONDE_HOST_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>

#include "probes/lib/stack.h"

/* The bytes of an image's UNWIND section (image_unwind), checked. */
struct unwind_section {
	const uint64_t *elements; /* pages, rules, extensions, rows; NULL: no rows */
	uint64_t text_base;       /* virtual address that rows are relative to */
	uint32_t page_count, rule_count, ext_count, row_count;
};

/* Splits the section into its parts. `data` is borrowed and 8-aligned. -EBADMSG: damaged, or of
 * another version. */
int unwind_section_open(struct unwind_section *s, const void *data, size_t size);

enum unwind_rows_state {                          /* as enum tables_image_state */
			 UNWIND_ROWS_NO_FILE = 0, /* executable memory without a file */
			 UNWIND_ROWS_PENDING = 1,
			 UNWIND_ROWS_READY = 2,
			 UNWIND_ROWS_REFUSED = 3
};

struct unwind_where {
	uint64_t start, end; /* the executable mapping */
	uint64_t to_file;    /* address + to_file = offset in the file */
	uint64_t to_vaddr;   /* address + to_vaddr = virtual address in the file */
	uint32_t image;      /* the image id in its frames (FRAME_IMAGE); 0: frames are addresses */
	enum unwind_rows_state state;
	struct unwind_section rows; /* borrowed; where state is READY */
};

/* A frame in code that its process generated, and where the walk leaves it. */
struct unwind_code {
	uint64_t pc, sp, bp;
	bool interrupted; /* true: interrupted there, with these registers; else pc is a return
			     address */
	uint64_t reg[16];
	uint64_t *frames; /* room for `max`; n of them are filled */
	size_t n, max;
	enum stack_end end; /* UNWIND_CODE_ENDS: why; STACK_END_PENDING: the file `pending` is
			       missing, as in `where` */
	uint64_t pending;
};
enum unwind_code_step {
	UNWIND_CODE_UNKNOWN, /* not such code: walk the frame like any other */
	UNWIND_CODE_GOES_ON, /* with the caller's pc, sp, bp */
	UNWIND_CODE_ENDS
};

struct unwind_from {
	void *ctx;
	/* The executable mapping at `addr`; false: none. */
	bool (*where)(void *ctx, uint64_t addr, struct unwind_where *out);
	/* A word of the process's memory; false: not available. */
	bool (*read)(void *ctx, uint64_t addr, uint64_t *value);
	/* Walks code that no file describes; may be NULL. */
	enum unwind_code_step (*code)(void *ctx, struct unwind_code *c);
	/* Counts frames that were left by the frame pointer in code without rows; may be NULL. */
	uint32_t *guessed;
	uint64_t *sp; /* the stack pointer of each frame, in step with `frames`; may be NULL */
};

struct unwind_regs {
	uint64_t reg[16]; /* as DWARF numbers them */
	uint64_t pc, fs_base;
	bool exact; /* pc was interrupted there; else it is behind a system call instruction */
};

/* At most `max` frames as in probes/lib/stack.h, leaf first. Returns how many; *end says why the
 * walk ended (STACK_END_DEPTH: at `max`). */
size_t unwind_stack(const struct unwind_from *from, const struct unwind_regs *regs,
		    uint64_t *frames, size_t max, enum stack_end *end);

/* One late sample: its memory is the copy in the record; beyond that STACK_END_SHORT_COPY. Uses
 * `where` and `ctx` of `from`. -EBADMSG: wrong sizes in the record. */
int unwind_late(const struct stack_late *l, const struct unwind_from *from, uint64_t *frames,
		size_t max, size_t *n, enum stack_end *end);

#endif
