/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexchild: one run of sonde-index, seen from its parent (indexproto.h): starts it with an open
 * file, gives it the debug files it asks for, and reads its messages until it has written the
 * index, refused the file, or died. The parent's loop waits on `sock`, and ends a child that takes
 * too long.
 *
 * Debug files are searched in the root in which the file was opened, then in ours: by build-id
 * below /usr/lib/debug; by .gnu_debuglink next to the file, in .debug/ and below /usr/lib/debug;
 * dwz files by their name. A wrong candidate does no harm: the child checks build-id or CRC.
 * `fetch`, if set, is asked for what is in neither root.
 */
#ifndef SONDE_HOST_INDEXCHILD_H
#define SONDE_HOST_INDEXCHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct indexchild {
	/* set by the caller before the start; takes the descriptors, -1: none */
	int elf, root_fd;
	char *path;     /* of the file, as in its root; allocated, taken */
	struct stat st; /* of the file, if have_st */
	bool have_st;
	int (*fetch)(
		void *ctx, const uint8_t *build_id,
		size_t len); /* returns a descriptor of the debug file, or -errno; may be NULL */
	void *fetch_ctx;

	/* since the start */
	pid_t pid; /* 0: not started, or cleared */
	int sock;  /* readable when a message arrived */
	bool rows; /* started with --rows-first: the rows are written, and it waits (indexchild_go);
		      text is the key */
	bool done; /* it reported its result: */
	int32_t status; /* 0, or -errno */
	uint32_t flags; /* INDEX_DONE_* */
	char text[256]; /* the index's key, or the reason */

	/* inside */
	bool ended, stopped;
	uint64_t cpu_ns;     /* of a child that has ended */
	int64_t stopped_ns;  /* since when it is stopped, boot clock */
	uint64_t counted_ns; /* CPU time counted so far */
	int out;
	uint32_t answers;
	char *debug_dir; /* folder of the last debug file, for relative dwz names */
};

void indexchild_init(struct indexchild *c);
/* Closes and frees everything; the child must have ended. Afterwards as after init. */
void indexchild_clear(struct indexchild *c);
/* `option`: for sonde-index ("--all-lines"), or NULL. `nice` is added to the priority. 0, or
 * -errno: nothing runs. */
int indexchild_start(struct indexchild *c, const char *program, const char *option, int nice);
/* Take in one packet, without waiting. true: that was its last message, or it is gone: call
 * indexchild_end. */
bool indexchild_hear(struct indexchild *c);
/* Has a message arrived? */
bool indexchild_speaks(const struct indexchild *c);

/* After indexchild_take of the rows: let it make the rest, with lines or without. */
void indexchild_go(struct indexchild *c, bool lines);

/* Its CPU time so far; after indexchild_end all of it. 0: it never ran. */
uint64_t indexchild_cpu_ns(const struct indexchild *c);
/* The same since the last call. */
uint64_t indexchild_cpu_more(struct indexchild *c);
/* Stop it (SIGSTOP) or let it run. Returns how long it has been stopped since the last call, ns, to
 * extend its deadline. */
uint64_t indexchild_pause(struct indexchild *c, bool stop);

enum indexchild_end {
	INDEXCHILD_MADE,    /* indexchild_take returns the index, text is its key */
	INDEXCHILD_REFUSED, /* this file will never have one: `reason` */
	INDEXCHILD_FAILED   /* it may work next time: `reason` */
};
/* End it, whatever it is doing; `late`: because it took too long. */
enum indexchild_end indexchild_end(struct indexchild *c, bool late, char *reason, size_t size);
/* What the child wrote, checked; until indexchild_end a copy, because the child may still have the
 * original open. 0 or -errno. */
int indexchild_take(const struct indexchild *c, int *fd);

#endif
