/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script: common to the readers of all runtimes: a process's memory, a thread's native stack, and
 * the script frames found for it.
 */
#ifndef SONDE_RUNTIMES_SCRIPT_H
#define SONDE_RUNTIMES_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCRIPT_STACK_MAX 1024u /* frames of one thread */
/* of one process's memory until it is closed; a long one counts as several */
#define SCRIPT_READS_MAX (1u << 20)
/* one read, which is cached: another word of the same line costs a SCRIPT_READ_SHARE-th of it */
#define SCRIPT_READ_BYTES 512u
#define SCRIPT_READ_SHARE 16u
#define SCRIPT_KEPT       128u  /* of these, until the next thread */
#define SCRIPT_TEXT_MAX   1023u /* bytes of a name or a file; longer ones end in "..." */

/* A process, or what plays one. */
struct runtime_memory {
	void *ctx;
	/* All of it or nothing. */
	bool (*read)(void *ctx, uint64_t addr, void *to, size_t len);
	/* Pieces of `len` bytes each, at once; clears addr[i] of those that it has not read. NULL:
	 * it cannot. */
	void (*read_many)(void *ctx, uint64_t *addr, void *const *to, size_t n, size_t len);
};

/*
 * Memory with a limit of SCRIPT_READS_MAX reads, so that a process with misleading content costs
 * bounded time, and only its own names. Lines are cached while one stopped thread is examined.
 */
struct runtime_budget {
	const struct runtime_memory *m; /* borrowed */
	struct runtime_memory counted;  /* `m`, as long as reads are left */
	uint32_t left;                  /* shares of a read */
	uint64_t line[SCRIPT_KEPT];     /* its address | 1; 0: none */
	bool used[SCRIPT_KEPT];         /* since it was read */
	uint8_t bytes[SCRIPT_KEPT][SCRIPT_READ_BYTES];
};
/* `b` must stay where it is. */
void runtime_budget_begin(struct runtime_budget *b, const struct runtime_memory *m);
/* Before each thread: forgets what is kept. */
void runtime_budget_fresh(struct runtime_budget *b);
/* The same, but reads the recently used lines again at once, if the memory has read_many: stacks
 * are much alike. */
void runtime_budget_again(struct runtime_budget *b);

static inline bool runtime_word(const struct runtime_memory *m, uint64_t addr, uint64_t *value)
{
	return m->read(m->ctx, addr, value, sizeof(*value));
}

#define RUNTIME_OTHER_FILE 0u
#define RUNTIME_NO_FILE    (~0ull) /* memory of the process's own */

/* A thread's native stack. */
struct runtime_native {
	const uint64_t *pc;    /* innermost first; of a return address the byte before it */
	const uint64_t *sp;    /* of each frame */
	const uint64_t *vaddr; /* of each frame its pc in the runtime's file, relative to its
				  mapping; RUNTIME_OTHER_FILE; RUNTIME_NO_FILE */
	size_t n;
	bool complete; /* the last is its root */
	uint64_t fs_base;
	uint32_t tgid, tid; /* of the kernel; 0: not known */
};

/* If a text is not complete (a copy has its beginning: probes/runtimes/runtime.h), this many bytes
 * are enough. */
#define SCRIPT_TEXT_FIRST 400u
/* A text of `length` bytes; ends in "..." if that is not all of it. Returns how many of its bytes
 * there are; 0: it cannot be read. */
size_t script_text(const struct runtime_memory *m, uint64_t addr, uint64_t length,
		   char out[SCRIPT_TEXT_MAX + 4]);

/* Copies a section of an image index into `layout`. false: another size or format; `format` is the
 * first number of each layout (probes/runtimes). */
bool runtime_layout_take(void *layout, size_t layout_size, uint32_t format, const void *section,
			 size_t size);

struct runtime_walker;

struct script_place {
	char *function; /* own; qualified where the runtime knows it. NULL: not known; so `file` */
	char *file;     /* as the program was compiled with: may be relative, or "<string>" */
	uint32_t line;  /* 0: not known */
};
void script_place_release(struct script_place *p);

struct script_frame {
	struct script_place place;
	size_t at; /* it belongs to this native frame, with its neighbours of the same number; n:
		      after all of them */
	/* set by who asks several runtimes */
	const struct runtime_walker *runtime;
	uint32_t order; /* among all of them */
};

struct script_stack {
	struct script_frame *frames; /* own; innermost first, `at` never falls */
	size_t n, cap;
	bool cut; /* there are more than SCRIPT_STACK_MAX, or its outer part could not be read, or
		     no more may be */
};
/* Appends one, which is zeroed but for `at`. */
struct script_frame *script_stack_add(struct script_stack *s, size_t at);
void script_stack_release(struct script_stack *s);

/* Where a native stack goes on behind frames of code that has no unwind rows. */
struct runtime_follow {
	size_t from;     /* in: the first native frame to look at */
	uint64_t cursor; /* the runtime's own; 0 at first */
	size_t at;    /* out: the native frame that the script frames belong to; those behind it are
			 invalid */
	bool unnamed; /* out: the first frame is code without a name */
	bool goes_on; /* out: there, with these registers */
	uint64_t pc, sp, bp;
};

/* The lock that lets one thread of an interpreter run at a time. */
enum runtime_gil { RUNTIME_GIL_NEITHER, RUNTIME_GIL_HOLDS, RUNTIME_GIL_WAITS };

#endif
