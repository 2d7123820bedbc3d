/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dict: the dictionary as one writer has it in memory: everything interned since the epoch began.
 *
 * Two threads meet here. The producer adds entries (dict_intern) and looks them up; an entry's
 * content never changes afterwards, except where dict_lock guards it (what is learnt later of
 * processes and frames). The writer thread reads entries that it received through a queue with a
 * lock, and keeps in `row` the id of each in the current segment; only that thread touches `row`.
 * So neither waits for the other.
 *
 * Memory: an entry, its strings and a slot of its table. A stack is a node of a tree, (parent,
 * frame), 16 bytes and a slot: equal stacks are one node, and a new stack of a known program adds
 * one to three.
 */
#ifndef SONDE_STORE_WRITE_DICT_H
#define SONDE_STORE_WRITE_DICT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/base/strbuf.h"
#include "schema/store/write/pool.h"
#include "schema/store/write/writer.h"

enum dict_kind {
	DICT_TEXT,
	DICT_CONTAINER,
	DICT_IMAGE,
	DICT_PROCESS,
	DICT_SOURCE,
	DICT_FUNCTION,
	DICT_FRAME,
	DICT_NODE,
	DICT_TASK,
	DICT_SERIES,
	DICT_KINDS
};

/* Entries. `row` comes first in each: the id in the segment, 0 if it is not there (yet). */
struct dict_text {
	uint32_t row;
	const char *s;
};
struct dict_container {
	uint32_t row, restarts;
	const char *runtime, *runtime_id, *name, *image, *cgroup, *project, *service, *labels,
		*started;
};
struct dict_image {
	uint32_t row, kind;
	const char *name, *path, *build_id, *key;
	const char *learnt; /* a build-id given later, NULL: none; guarded by dict_lock */
	bool dirty;
};
struct dict_process {
	uint32_t row, pid, ppid, uid, exec_id, container;
	int64_t start_ns;
	uint64_t start_ticks;
	const char *comm, *args;                   /* these and the next are guarded by dict_lock */
	uint32_t exe, cgroup, unit, lang, runtime; /* DICT_TEXT */
	int64_t end_ns;
	uint32_t how, status, linking, libc;
	bool self, dirty;
};
struct dict_source {
	uint32_t row;
	const char *path;
};
struct dict_function {
	uint32_t row, image, line, source;
	const char *name;
}; /* source: DICT_SOURCE, 0 none */
struct dict_frame {
	uint32_t row, image, function, line;
	uint64_t offset;
	uint32_t flags, outer;                            /* outer: DICT_FRAME, 0 none */
	uint32_t named_function, named_line, named_outer; /* given later; guarded by dict_lock */
	bool dirty;
};
/* row: the stack that brought this node into the segment; own: the stack that ends here, 0 if none
 * is there */
struct dict_node {
	uint32_t row, parent, frame, own;
};
struct dict_task {
	uint32_t row, run, process, tid, kind;
	const char *thread, *labels;
};
struct dict_series {
	uint32_t row, task, stack, label;
};

#define DICT_SCRATCH 9

struct dict_slot {
	uint32_t index; /* of the entry, 0: free */
	uint32_t hash;  /* of the entry: most others are skipped without reading the entry */
};
struct dict_table {
	struct dict_slot *slot;
	uint32_t cap;
};

struct dict_arena; /* chunks of strings */

struct dict {
	int refs; /* guarded by the writer's lock */
	struct pool pool[DICT_KINDS];
	struct dict_table table[DICT_KINDS];
	struct dict_arena *arena;
	size_t arena_bytes;
	size_t bytes;                        /* all of it */
	struct strbuf scratch[DICT_SCRATCH]; /* strings made valid UTF-8 */

	pthread_mutex_t lock;
	/* entries that gained values after they were stored */
	struct dict_dirty {
		uint32_t *items;
		uint32_t n, cap;
	} dirty_frames, dirty_processes, dirty_images;

	/* the writer thread's: the highest index with a row, by kind; the segment the rows belong
	 * to */
	uint32_t touched[DICT_KINDS];
	uint32_t touched_own; /* the same for the nodes' `own` */
	uint64_t segment;
	/* ids in the ring's segment (commit/fine.h), by kind, and then the nodes' `own`; and what
	 * was learnt since it was last written to */
	struct pool fine_row[DICT_KINDS + 1];
	uint64_t fine_segment;
	bool fine; /* set by the producer when it is made */
	struct dict_dirty fine_frames, fine_processes, fine_images;
};

struct dict *dict_new(void);
void dict_free(struct dict *d);

/* The index of the entry equal to `key` (an entry of that kind, strings borrowed); adds it if it is
 * new. */
uint32_t dict_intern(struct dict *d, enum dict_kind kind, const void *key);
/* `s` with at most 16 KiB, as valid UTF-8; borrowed until the next call with the same `slot` (below
 * DICT_SCRATCH). NULL is "". */
const char *dict_clean(struct dict *d, int slot, const char *s);
/* Updates a process with newer values; empty ones do not replace others. */
void dict_process_learn(struct dict *d, uint32_t index, const struct dict_process *more);
void dict_image_learn(struct dict *d, uint32_t index, const char *build_id);
void dict_frame_name(struct dict *d, uint32_t index, uint32_t function, uint32_t line,
		     uint32_t outer);

static inline bool dict_has(const struct dict *d, enum dict_kind kind, uint32_t index)
{
	return index <= d->pool[kind].n;
}

#define dict_at(d, kind, type, index) ((struct type *)pool_at(&(d)->pool[kind], (index)))

/* Writer thread: forget all rows (another segment). */
void dict_forget_rows(struct dict *d, uint64_t segment);
void dict_forget_fine(struct dict *d, uint64_t segment);

#endif
