/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer: puts profiles into the store, from any number of programs at once.
 *
 * One producer thread calls everything here; a thread inside writes to SQLite, so that no call
 * below ever waits for the disk. The queue is bounded (`max_bytes`); past that the oldest batch is
 * dropped and counted in `loss`, reason "store". Commits are whole batches: a kill leaves a batch
 * in or out, never half.
 *
 * The dictionary (containers, processes, images, functions, frames, stacks, series) is interned in
 * memory: each store_* call returns a small local id, valid until the next store_epoch change
 * (below). Equal contents give equal ids. Strings are borrowed for the call and copied; they may
 * hold any bytes (they are made valid UTF-8 on the way in). Id 0 always means "none".
 *
 * Bounded memory: when the interned dictionary is past its share, or the segment is rotated,
 * store_add refuses with -ESTALE; the caller then forgets its cached ids (store_epoch() has grown)
 * and interns again.
 */
#ifndef SONDE_STORE_WRITE_WRITER_H
#define SONDE_STORE_WRITE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/files/location.h"
#include "schema/store/model/kinds.h"
#include "schema/store/model/stored.h"

struct store_writer;

struct store_writer_opts {
	const char *dir;        /* the store's folder; NULL: store_default_dir() */
	size_t max_bytes;       /* the largest size of the queue in memory; 0: 16 MiB */
	uint64_t segment_bytes; /* start a new segment above this size; 0: 64 MiB */
	uint32_t segment_s;     /* and past this age; 0: 3600 */
	uint64_t budget_bytes;  /* what the whole store may take (budget.h); 0: the writer does not
				   enforce it */
	/* The ring (commit/fine.h), for runs with `fine_s`; NULL: none. */
	const char *fine_dir;
	uint32_t fine_segment_s; /* start a new segment of it past this age; 0: 120 */
	uint32_t fine_keep_s;    /* remove what ended so long ago; 0: 780 */
	uint64_t fine_bytes;     /* and the oldest above this size; 0: any */
};

/* Creates the folder (0750) if it is missing, opens or creates the current segment (0640), migrates
 * it, starts the writer thread. Errors: EXIT_STORE for a newer schema, a full disk, a folder that
 * cannot be made; EXIT_PERMISSION. A damaged segment is set aside under another name (NAME.bad)
 * with a warning, and a new one started. */
int store_writer_open(const struct store_writer_opts *o, struct store_writer **out, struct err *e);
/* Commits the queue, for at most `deadline_ms`; counts the rest as lost if that can still be
 * written. Ends the runs that this writer began. 0, or -ETIMEDOUT / -ENOSPC / -EIO with `e` filled.
 */
int store_writer_close(struct store_writer *w, int deadline_ms, struct err *e);
struct store_writer_stat;
/* The same; *last: its last figures, with what was committed meanwhile. Untouched if it was not
 * done in time. */
int store_writer_end(struct store_writer *w, int deadline_ms, struct store_writer_stat *last,
		     struct err *e);

/* Grows whenever ids given out before are no longer valid. Run ids survive. */
uint32_t store_epoch(const struct store_writer *w);

struct store_run {
	const char *family;  /* "cpu" */
	const char *options; /* the command line as typed, for people */
	enum store_scope scope;
	uint32_t bucket_s;  /* 1 in `record`, 10 always-on */
	uint64_t period_ns; /* ns of CPU time for each sample; 0: values are stored directly */
	uint32_t cpus;
	int64_t from_ns;        /* UTC; data holds from here */
	int64_t boot_offset_ns; /* UTC minus the kernel's clock at its start; as store_clock_changed
				 */
	uint64_t recording; /* the same for runs that were begun together, 0: alone; 63 bits of it
			       are stored */
	uint32_t fine_s;    /* the ring's step, 0: nothing goes there */
	uint32_t share;     /* with it: one sample in `share` goes to the store; 0 is 1 */
};
uint32_t store_run_begin(struct store_writer *w, const struct store_run *r);
void store_run_period(struct store_writer *w, uint32_t run, int64_t from_ns, uint64_t period_ns);
/* The wall clock was set: from `utc_ns` on, kernel time stamps have another offset to UTC. The next
 * batch records it; there may be several changes until then. */
void store_clock_changed(struct store_writer *w, int64_t utc_ns, int64_t boot_offset_ns);
/* What comes from here on is of about `utc_ns`: called after each change of the clock, and once a
 * second after it was set back. A run that had not begun by then gets another row in the store,
 * with the same settings: rows lie within what their run says of itself (stretch.c). The caller's
 * ids of runs stay; all others become stale (store_epoch). */
void store_runs_at(struct store_writer *w, int64_t utc_ns);
/* UTC; data holds up to here. Written with every batch too, so that a killed run ends where its
 * data ended. */
void store_run_until(struct store_writer *w, uint32_t run, int64_t to_ns);
/* All events that the run's programs have seen by now, those that they lost too: if this process is
 * killed, those on record nowhere count as lost. store_loss with "ring", "room", "pairs", "hold",
 * "unknown", "malformed" and "store" is about such events, with other reasons about others. */
void store_run_offered(struct store_writer *w, uint32_t run, uint64_t events);
/* The run's id in the current segment, for people (`rec 17`); 0 before the first commit. */
int64_t store_run_rowid(struct store_writer *w, uint32_t run);

struct store_container {
	const char *runtime;    /* "docker", "containerd", "podman", "lxc", "nspawn", ... */
	const char *runtime_id; /* full id, "" if none */
	const char *name;       /* "" if not known */
	const char *image;      /* "" if not known */
	const char *cgroup;     /* path */
	const char *project, *service, *labels,
		*started; /* as in table container; NULL: not known */
	uint32_t restarts;
};
uint32_t store_container(struct store_writer *w, const struct store_container *c);

struct store_process {
	uint32_t pid; /* tgid, host namespace */
	uint32_t ppid;
	uint32_t uid;
	uint32_t exec_id;
	int64_t start_ns;     /* UTC */
	uint64_t start_ticks; /* start_boottime in ns: with pid and exec_id the identity */
	const char *comm, *exe, *args, *cgroup, *unit;
	uint32_t container; /* 0: none */
	bool self;          /* one of sonde's own: left out of rankings unless asked */
	int64_t end_ns;     /* UTC; 0: it runs, or is not known to have ended */
	enum store_end_how how;
	uint32_t status;            /* exit code, or number of the signal */
	const char *lang, *runtime; /* "go", "go1.22.1"; NULL: not known */
	enum store_linking linking;
	enum store_libc libc;
};
/* comm of a process that ended before it could be named; it never replaces another name */
#define STORE_PROCESS_UNKNOWN "[unknown]"
/* Identity is (pid, start_ticks, exec_id). A later call may add comm, exe, args and container. */
uint32_t store_process(struct store_writer *w, const struct store_process *p);

struct store_image {
	enum store_image_kind kind;
	const char *name;     /* what people see: "libc.so.6", "[kernel]", "[jit]" */
	const char *path;     /* as the process saw it */
	const char *build_id; /* hex, "" if none */
	const char *key;      /* image index key, "" if none */
};
uint32_t store_image(struct store_writer *w, const struct store_image *i);
/* Adds the build-id to an image that was stored before its file was read; readers merge images of
 * one file by it. */
void store_image_build_id(struct store_writer *w, uint32_t image, const char *build_id);

struct store_function {
	const char *name;
	uint32_t image;   /* its module */
	const char *file; /* "" if not known */
	uint32_t line;    /* first line, 0 if not known */
};
uint32_t store_function(struct store_writer *w, const struct store_function *f);

/* A frame is a place: (image, offset), and what is there: function, line, and, if that function was
 * inlined, `outer`: the frame of the function it was inlined into, at the same place, with the line
 * of the call; and so on to the physical function. A stack names only the innermost; readers get
 * the others as separate frames. For a leaf folded to its function or line, offset is that of the
 * physical function's first byte and `leaf` is true. `exact`: not a return address but the
 * interrupted instruction itself. function 0: not named (yet); people then see "module+0x1a2b". */
struct store_frame {
	uint32_t image;
	uint64_t offset;
	uint32_t function;
	uint32_t line;
	uint32_t outer; /* 0: not inlined */
	bool leaf;
	bool exact;
};
uint32_t store_frame(struct store_writer *w, const struct store_frame *f);
/* A frame stored without a name gains one, perhaps with a line, and the frame it was inlined into;
 * one with a name but no line gains that (`function` is then the row of the same function with its
 * file). */
void store_frame_name(struct store_writer *w, uint32_t frame, uint32_t function, uint32_t line,
		      uint32_t outer);

/* Root first. Depth 0 is the empty stack. */
uint32_t store_stack(struct store_writer *w, const uint32_t *frames, size_t n);

uint32_t store_series(struct store_writer *w, uint32_t run, uint32_t process, const char *thread,
		      uint32_t tid, uint32_t stack, enum store_kind kind);
/* The same with a further key: series.label in the store; its meaning depends on the kind.
 * alloc, inuse: bytes of one object (samples by size are scaled by it); 0: none. */
uint32_t store_series_labelled(struct store_writer *w, uint32_t run, uint32_t process,
			       const char *thread, uint32_t tid, uint32_t stack,
			       enum store_kind kind, uint32_t label);
/* The same with what another profiler said of the sample: a JSON object (table task_label), or "".
 */
uint32_t store_series_told(struct store_writer *w, uint32_t run, uint32_t process,
			   const char *thread, uint32_t tid, uint32_t stack, enum store_kind kind,
			   uint32_t label, const char *labels);

/* Kind cpu: add `n` to the bucket that holds `utc_ns`. Sums up in memory. 0, -ESTALE (see above),
 * -EINVAL: a series of another kind. */
int store_add(struct store_writer *w, uint32_t series, int64_t utc_ns, uint64_t n);

struct store_amount {
	uint64_t n;     /* how many: events, objects; of weighted events the rounded estimate */
	uint64_t value; /* their sum: ns, bytes */
	uint64_t max;   /* the largest, 0: not known */
	const uint32_t *hist; /* counts of slots from first_slot on (model/hist.h); NULL: unknown */
	size_t n_hist;
	unsigned first_slot;
	/* Where events represent others: of n, and of value in square microseconds (0022 and 0046
	 * of schema/sql). Both 0: exact. */
	uint64_t n_variance, value_variance;
};
/* All other kinds. A counter's and a duration's amounts are added to the bucket that holds
 * `utc_ns`. A gauge's replace what the bucket has: they are the series' value from then on, until
 * its next amount; {0}: nothing is left of it. Only changes need to be stored again, except after
 * store_gauge_epoch() has changed: then store all values of a process once, because each segment is
 * complete in itself. Returns as store_add does. Events, for loss and accounting: n for counters
 * and durations, 1 for each amount of a gauge. */
int store_amount(struct store_writer *w, uint32_t series, int64_t utc_ns,
		 const struct store_amount *a);
/* Changes when all gauges must be stored again: the writer has started another segment or another
 * dictionary (of a process, the first value by the new one voids all by the old one), or dropped a
 * batch. */
uint64_t store_gauge_epoch(struct store_writer *w);
/* From `utc_ns` on, the amounts of this process come from sampling by size, once every `bytes` on
 * average; 0: not known. */
void store_rate(struct store_writer *w, uint32_t run, uint32_t process, int64_t utc_ns,
		uint64_t bytes);

/* What a family knows about a process besides its amounts, under a key of at most 31 characters:
 * the program's version, why it cannot be read. The last one wins, in each segment separately. ""
 * is kept too. */
void store_process_note(struct store_writer *w, uint32_t run, uint32_t process, const char *key,
			const char *value);

/* A process ended at `utc_ns`: counted by (run, ten seconds, comm, container, how, status), of at
 * most 256 names a batch; with `process`, its row is written too, even if it has no samples. Ends
 * are not events of the run. 0, -ESTALE. */
struct store_end {
	uint32_t process; /* 0: only counted */
	const char *comm;
	uint32_t container; /* 0: none */
	enum store_end_how how;
	uint32_t status;
	uint64_t n; /* 0 is 1 */
};
int store_end(struct store_writer *w, uint32_t run, int64_t utc_ns, const struct store_end *e);

/* Events that were lost, by reason ("ring", "maps", "store", "killed", ...); summed by (run,
 * bucket, reason). */
void store_loss(struct store_writer *w, uint32_t run, int64_t utc_ns, const char *reason,
		uint64_t n);

/* `n` user stacks of a process with this executable ("" if not known) ended for `reason` (enum
 * stack_end of probes/lib/stack.h; unwound_row.reason) in `image` (0: none); summed by (run,
 * minute, executable, image, reason). Only for samples that store_add accepted: a dropped batch
 * drops these too. `image` is an id of the current epoch. */
void store_unwound(struct store_writer *w, uint32_t run, int64_t utc_ns, const char *exe,
		   uint32_t image, uint32_t reason, uint64_t n);

struct store_cost {          /* since the last one; counters are differences, sizes are absolute */
	const char *program; /* "sonde-cpu", "sonde-maps", "bpf:NAME", or one of those above */
	uint64_t cpu_ns, runs;
	uint64_t rss_bytes, private_bytes, map_bytes;
};
void store_cost(struct store_writer *w, uint32_t run, int64_t utc_ns, const struct store_cost *c);

/* Hands everything added so far to the writer thread as one batch, except stack endings of the
 * minute that is not over: they go with a later batch, or when the writer is closed. Never blocks.
 */
void store_flush(struct store_writer *w);

struct store_writer_stat {
	uint64_t batches, rows,
		dropped;       /* dropped: events lost in the writer, already booked as loss */
	uint64_t stored;       /* sum of n committed */
	uint64_t unsynced;     /* of those, not on the disk yet: lost if it fails now */
	uint64_t queued_bytes; /* handed over, and not committed yet */
	uint64_t waiting_bytes, segment_bytes;
	int last_error; /* 0, or the errno of the last failed commit (ENOSPC...), cleared by success
			 */
	char segment[256]; /* path of the current one */
};
void store_writer_stat(struct store_writer *w, struct store_writer_stat *s);

#endif
