/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfrblock: what the process without rights read of a recording, as one block of bytes. The loader
 * takes it as what a stranger said: jfrblock_open checks each count, place and number before
 * anything of it is used. In the byte order of the machine:
 *
 *   head     struct jfrblock_head
 *   texts    text_bytes bytes: texts, each ended by NUL; a text is its place here
 *   frames   n_frames of struct jfrblock_frame
 *   words    n_words of u32: frames of stacks, leaf first
 *   stacks   n_stacks of struct jfrblock_stack
 *   events   n_events of struct jfrblock_event
 *
 * with each part at the next multiple of 8.
 */
#ifndef SONDE_JAVA_JFRBLOCK_H
#define SONDE_JAVA_JFRBLOCK_H

#include <stddef.h>
#include <stdint.h>

#define JFRBLOCK_EVENTS_MAX (400u << 10) /* of one reading: more are counted and left out */
#define JFRBLOCK_DEPTH      256u
#define JFRBLOCK_BYTES_MAX  (96u << 20)

enum jfrblock_what {
	JFRBLOCK_ALLOC = 1, /* name: class; value: bytes since the thread's last sample */
	JFRBLOCK_TLAB,      /* the same, exact: bytes of a new buffer, or of a large object */
	JFRBLOCK_LOCK,      /* name: class of the monitor; other: thread that had it; value: ns */
	JFRBLOCK_PARK,      /* name: class; value: ns */
	JFRBLOCK_WAIT,      /* name: class of the monitor; value: ns */
	JFRBLOCK_EXCEPTION, /* name: class */
	JFRBLOCK_GC,     /* name: collector; other: cause; value: ns of pauses, longest: of one */
	JFRBLOCK_THREAD, /* a thread began: it, in java_id */
	JFRBLOCK_KINDS
};

struct jfrblock_head {
	uint32_t magic, n_frames, n_words, n_stacks, n_events, text_bytes;
	uint64_t end;      /* of what was read: where the next reading goes on */
	int64_t chunk_ns;  /* when the last chunk began */
	uint64_t left_out; /* events past JFRBLOCK_EVENTS_MAX */
	uint64_t cpu_ns;   /* that the reading took */
};

struct jfrblock_frame {
	uint32_t function; /* text: "package.Class.method" */
	uint32_t line;     /* 0: not known */
};

struct jfrblock_stack {
	uint32_t first, n; /* words */
};

struct jfrblock_event {
	int64_t start_ns; /* since 1970 */
	uint64_t value, longest, java_id;
	uint32_t what, stack, name, other, thread, tid; /* tid: in the process's namespace */
};

struct jfrblock {
	const struct jfrblock_head *head;
	const char *texts;
	const struct jfrblock_frame *frames;
	const uint32_t *words;
	const struct jfrblock_stack *stacks;
	const struct jfrblock_event *events;
};

#define JFRBLOCK_MAGIC 0x4a465231u

/* Where each part begins; the size of the whole. */
struct jfrblock_places {
	size_t texts, frames, words, stacks, events, end;
};
void jfrblock_places(const struct jfrblock_head *h, struct jfrblock_places *out);
/* Borrows the bytes, which are aligned as malloc aligns. 0, -EBADMSG. */
int jfrblock_open(const void *bytes, size_t len, struct jfrblock *out);

#endif
