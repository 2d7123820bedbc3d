/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexchild: one run of sonde-index, seen from its parent (indexproto.h): started with an open file, given the debug files
 * it asks for, and listened to until it has written the index, refused the file, or died. The parent's loop waits on
 * `sock`, and ends what takes too long.
 *
 * Debug files are looked for in the root the file was opened in, then in ours: by build-id below /usr/lib/debug, by
 * .gnu_debuglink beside the file, in .debug/ and below /usr/lib/debug; dwz files as their name says. Which is fine: the child
 * checks build-id or CRC. `fetch`, where it is set, is asked for what is in neither.
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
	char *path;            /* of the file, as in its root; allocated, taken */
	struct stat st;        /* of the file, if have_st */
	bool have_st;
	int (*fetch)(void *ctx, const uint8_t *build_id, size_t len); /* a descriptor of the debug file, or -errno; NULL */
	void *fetch_ctx;

	/* since the start */
	pid_t pid;             /* 0: not started, or cleared */
	int sock;              /* becomes readable when there is something to hear */
	bool done;             /* it told how it went: */
	int32_t status;        /* 0, or -errno */
	uint32_t flags;        /* INDEX_DONE_* */
	char text[256];        /* the index's key, or the reason */

	/* inside */
	int out;
	uint32_t answers;
	char *debug_dir;       /* of the debug file answered last, for relative dwz names */
};

void indexchild_init(struct indexchild *c);
/* Closes and frees all; the child must have ended. It is as after init. */
void indexchild_clear(struct indexchild *c);
/* `option`: of sonde-index ("--all-lines"), or NULL. `nice` is added to the priority. 0, or -errno: nothing runs. */
int indexchild_start(struct indexchild *c, const char *program, const char *option, int nice);
/* Take in one packet, without waiting. true: it has said its last word, or is gone: call indexchild_end. */
bool indexchild_hear(struct indexchild *c);

/* What it has used of the CPU so far; 0: nothing runs. */
uint64_t indexchild_cpu_ns(const struct indexchild *c);

enum indexchild_end {
	INDEXCHILD_MADE,       /* indexchild_take gives the index, text is its key */
	INDEXCHILD_REFUSED,    /* this file never will have one: `reason` */
	INDEXCHILD_FAILED      /* it may work the next time: `reason` */
};
/* End it, whatever it is doing; `late`: because it took too long. */
enum indexchild_end indexchild_end(struct indexchild *c, bool late, char *reason, size_t size);
/* Our own copy of what the child wrote, checked: the child may still hold the other. 0 or -errno. */
int indexchild_take(const struct indexchild *c, int *fd);

#endif
