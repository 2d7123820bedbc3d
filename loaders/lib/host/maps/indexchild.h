/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexchild: one run of sonde-index, seen from its parent (indexproto.h): started with an open
 * file, given the debug files it asks for, and listened to until it has written the index, refused
 * the file, or died. The parent's loop waits on `sock`, and ends what takes too long.
 *
 * Debug files are looked for in the root the file was opened in, then in ours: by build-id below
 * /usr/lib/debug, by .gnu_debuglink beside the file, in .debug/ and below /usr/lib/debug; dwz files
 * as their name says. Which is fine: the child checks build-id or CRC. `fetch`, where it is set, is
 * asked for what is in neither.
 */
#ifndef SONDE_HOST_INDEXCHILD_H
#define SONDE_HOST_INDEXCHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct indexchild {
	/* the caller's, before the start; descriptors are taken, -1: none */
	int elf, root_fd;
	char *path;     /* of the file, as in its root; allocated, taken */
	struct stat st; /* of the file, if have_st */
	bool have_st;
	int (*fetch)(void *ctx, const uint8_t *build_id,
		     size_t len); /* a descriptor of the debug file, or -errno; NULL */
	void *fetch_ctx;

	/* since the start */
	pid_t pid; /* 0: not started, or cleared */
	int sock;  /* becomes readable when there is something to hear */
	bool rows; /* started with --rows-first: the rows are written, and it waits (indexchild_go);
		      text is the key */
	bool done; /* it told how it went: */
	int32_t status; /* 0, or -errno */
	uint32_t flags; /* INDEX_DONE_* */
	char text[256]; /* the index's key, or the reason */

	/* inside */
	bool ended, stopped;
	uint64_t cpu_ns;     /* of one that has ended */
	int64_t stopped_ns;  /* since when, boot clock */
	uint64_t counted_ns; /* of its CPU time */
	int out;
	uint32_t answers;
	char *debug_dir; /* of the debug file answered last, for relative dwz names */
};

void indexchild_init(struct indexchild *c);
/* Closes and frees all; the child must have ended. It is as after init. */
void indexchild_clear(struct indexchild *c);
/* `option`: of sonde-index ("--all-lines"), or NULL. `nice` is added to the priority. 0, or -errno:
 * nothing runs. */
int indexchild_start(struct indexchild *c, const char *program, const char *option, int nice);
/* Take in one packet, without waiting. true: it has said its last word, or is gone: call
 * indexchild_end. */
bool indexchild_hear(struct indexchild *c);
/* Is there something to hear? */
bool indexchild_speaks(const struct indexchild *c);

/* Its rows were taken (indexchild_take): all the rest, with lines or without. */
void indexchild_go(struct indexchild *c, bool lines);

/* What it has used of the CPU so far; after indexchild_end all that it used. 0: it never ran. */
uint64_t indexchild_cpu_ns(const struct indexchild *c);
/* The same since the last call. */
uint64_t indexchild_cpu_more(struct indexchild *c);
/* It runs, or stands still until it is let run. Returns how long it has stood still since the last
 * call, ns: that is no time that it took. */
uint64_t indexchild_pause(struct indexchild *c, bool stop);

enum indexchild_end {
	INDEXCHILD_MADE,    /* indexchild_take gives the index, text is its key */
	INDEXCHILD_REFUSED, /* this file never will have one: `reason` */
	INDEXCHILD_FAILED   /* it may work the next time: `reason` */
};
/* End it, whatever it is doing; `late`: because it took too long. */
enum indexchild_end indexchild_end(struct indexchild *c, bool late, char *reason, size_t size);
/* Our own copy of what the child wrote, checked: the child may still hold the other. 0 or -errno.
 */
int indexchild_take(const struct indexchild *c, int *fd);

#endif
