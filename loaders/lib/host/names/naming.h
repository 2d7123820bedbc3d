/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming: from a sample's addresses to the store's ids. Every family needs it, and it is the only
 * place where mappings, image indexes, kernel symbols and perf maps meet.
 *
 * The rules, in the order of a stack (leaf first):
 *   1. The leaf is the pc itself. It is folded to its line, or to its function while lines are
 *      unknown: its offset is the function's first byte (store_frame.leaf), because nearly every
 *      sample has another pc in the same function. A leaf without a name keeps its exact offset,
 *      and so does one in a file whose lines are still being read: when they come, earlier frames
 *      get them.
 *   2. Any other frame keeps its exact offset.
 *   3. A frame is looked up at its pc if it was interrupted there: FRAME_EXACT marks such user
 *      frames. All other frames are return addresses, which point behind the call or a system call
 *      instruction, maybe to the first byte of the next function (after a call that does not
 *      return): they are looked up at the byte before. In the kernel part only the leaf is exact.
 *   4. A signal trampoline (__restore_rt) is reached by "returning" to its first byte: it is looked
 *      up at the offset itself if offset - 1 is another function.
 *   5. A frame that was unwound with the rows of a file that was no longer there
 *      (hostmaps_frame_owner: stale) is named by what was there, and is the last: the frames beyond
 *      it are cut off, and the stack ends with STACK_END_STALE.
 *   6. Functions that were inlined at an address are linked frames (location.c): a stack names the
 *      innermost.
 *   7. In a stack with STACK_F_LOGICAL (Go's heap profile) each frame is one function already: only
 *      the innermost one at the byte before it counts; none is folded.
 *   8. Script frames get their names from naming_script.c.
 *
 * A frame without a name is (image, offset) without a function, shown as "libfoo.so+0x1a2b". An
 * index that is still being made names its frames later (store_frame_name). Executable memory
 * without a file: the name from the perf map, image "[jit]", offset from the function's start; else
 * "[anon]", offset within its 2 MiB block, the leaf's cut to its page. An address where nothing
 * executable was mapped: "[unknown]", offset 0, adjacent ones merged; after the last known frame
 * they are left out, and the stack ends with STACK_END_NO_MAPPING. Never a bare address, and
 * nothing else is dropped. Kernel: "[kernel]" with the offset from _text, "[nf_tables]" from the
 * module's first symbol, "[bpf]" from the program's start.
 */
#ifndef SONDE_HOST_NAMING_H
#define SONDE_HOST_NAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/lib/stack.h"
#include "schema/base/err.h"
#include "schema/store/write/writer.h"

struct naming;
struct hostmaps;
struct kallsyms_symbol;

struct naming_opts {
	size_t max_pending;   /* frames that may wait for an index; 0: 65536 */
	size_t max_cached;    /* frames remembered; 0: 98304 */
	bool no_lines;        /* functions only, even if an index has lines and inlined functions */
	bool generated;       /* names of generated code are looked for, by a process without rights
				 that is started at once (jitreader.h) */
	const char *kallsyms; /* NULL: /proc/kallsyms */
	/* Finds the loaded BPF programs at less cost than /proc/kallsyms; asked first. Like
	 * kallsyms_find. May be NULL. */
	bool (*programs)(void *ctx, uint64_t addr, struct kallsyms_symbol *out);
	void *programs_ctx;      /* borrowed */
	const char *store_dir;   /* symbols are kept there for later captures (kallsyms.h); NULL:
				    nowhere. Borrowed */
	const char *docker_root; /* NULL: /var/lib/docker, or what /etc/docker/daemon.json says */
	const char *include, *exclude; /* rules.h: all other processes become one, "[excluded]";
					  NULL: all are shown. Borrowed */
};

/* `hm` and `w` are borrowed and must outlive it. `o` may be NULL. Kernel symbols are read at the
 * first kernel frame. */
int naming_open(struct hostmaps *hm, struct store_writer *w, const struct naming_opts *o,
		struct naming **out, struct err *e);
/* The run whose processes get the note "unnamed": why their generated code has no names, or not
 * all;
 * "": it has them again. Without a run there are no notes. */
void naming_run(struct naming *n, uint32_t run);
/* Frames still pending stay unnamed (call naming_drain before). Call before hostmaps_close. NULL is
 * fine. */
void naming_close(struct naming *n);

struct naming_result {
	uint32_t process, stack; /* store ids, always set: an unknown process gets a separate row
				    with its thread's name */
	uint32_t image;          /* store id of the image of the outermost user frame, 0: none */
	const char *exe; /* path of the process's executable, "" if unknown; borrowed until the next
			    hostmaps_read */
	enum stack_end end; /* why the user part ends: the event's, or STALE, NO_MAPPING, GONE */
	bool excluded;      /* by the rules: process and stack are "[excluded]", its threads have no
			       names */
};
/* Name one sample; call it when hostmaps_watermark has passed its time. `frames` has n_kernel +
 * n_user of them. The ids belong to the present epoch, until store_epoch grows (on -ESTALE of
 * store_add call this again: it notices). */
void naming_stack(struct naming *n, const struct stack_event *ev, const uint64_t *frames,
		  struct naming_result *out);

/* The same, with a frame of the store (store_frame) as the stack's leaf, for what has no address.
 */
void naming_stack_with(struct naming *n, const struct stack_event *ev, const uint64_t *frames,
		       uint32_t leaf, struct naming_result *out);

/* The row of a process that hostmaps does not know: by its thread's name, its cgroup, and /proc if
 * it still runs. */
uint32_t naming_stranger(struct naming *n, const struct stack_event *ev);

/* A record of a program's ring `names` (probes/runtimes/runtime.h): the names of script frames.
 * Pass it before the first frame with its id. *key: that of its object. 0, or -EBADMSG.
 * naming_script_drop: no more frames with this id will come. */
struct script_key;
int naming_script_take(struct naming *n, const void *record, size_t size, struct script_key *key);
void naming_script_drop(struct naming *n, uint32_t id);
/* A frame of a runtime whose names are found in user space, as a word for `naming_stack`; `image`:
 * hostmaps_image's id of the runtime's file. Valid until the next stack has been named. */
uint64_t naming_script_word(struct naming *n, uint32_t kind, uint32_t image, const char *function,
			    const char *file, uint32_t line);

/* Call it after each hostmaps_read, at least once a second: names frames whose index has become
 * ready, and looks for missing names of containers. Cheap when nothing has happened. */
void naming_tick(struct naming *n);

/* Are there frames whose index is pending? */
bool naming_waits(const struct naming *n);

/* Do not wait for a kernel frame: read the kernel's symbols now. */
void naming_kernel_begin(struct naming *n);
/* The kernel's symbols, after they were read; NULL until then. Valid until the next call of
 * naming_stack or _tick. */
struct kallsyms;
struct kallsyms *naming_kallsyms(const struct naming *n);

/* At the end of a capture: reads hostmaps until every pending index is ready or refused, or the
 * deadline is over. 0, or -ETIMEDOUT: the rest stays unnamed and is counted. Flush the store
 * afterwards. */
int naming_drain(struct naming *n, int deadline_ms);

/* A thread's name and id for the store, by the result of naming_stack. */
static inline void naming_thread(const struct naming_result *named, const char comm[STACK_COMM_LEN],
				 char out[STACK_COMM_LEN + 1], uint32_t *tid)
{
	for (int i = 0; i < STACK_COMM_LEN; i++)
		out[i] = named->excluded ? 0 : comm[i];
	out[STACK_COMM_LEN] = 0;
	*tid = named->excluded ? 0 : *tid;
}

/* Do the rules exclude it? NULL: an unknown process. */
struct hostmaps_process;
bool naming_excludes(struct naming *n, struct hostmaps_process *p);
/* Does one of these rules (rules.h) match it? What is not known of it matches none. */
bool naming_fits(struct naming *n, const struct hostmaps_process *p, const char *rules);
/* How often a known process has become excluded: if it changes, ask again for the ids of processes
 * that you keep. */
uint32_t naming_turned(const struct naming *n);
/* Do the rules exclude this cgroup? Its path is as in /proc/PID/cgroup. */
bool naming_excludes_cgroup(struct naming *n, const char *cgroup);
/* Replaces excluded names; and the row of all excluded processes together. */
#define NAMING_EXCLUDED "[excluded]"
uint32_t naming_excluded_process(struct naming *n);

/* The row for processes of one cgroup and command that came and went unnoticed: process id 0, with
 * NAMING_BRIEF as arguments; sonde's own are separate. "[excluded]" by the rules. `ev`: of one of
 * them. */
#define NAMING_BRIEF "[short-lived]"
void naming_brief(struct naming *n, const struct stack_event *ev, struct naming_result *out);

/* How an ended process ended; *status: its exit code or signal. */
enum store_end_how naming_end(const struct hostmaps_process *p, uint32_t *status);
/* Does the store have it as a process with samples? */
bool naming_has(const struct hostmaps_process *p);
/* Its row in the store, with its end if it has ended: for store_end, and for rows of facts. */
uint32_t naming_row(struct naming *n, struct hostmaps_process *p);
/* Is it a process of sonde? */
bool naming_is_self(struct naming *n, const struct hostmaps_process *p);
/* Its container's row, 0: none. */
uint32_t naming_container(struct naming *n, const struct hostmaps_process *p);
/* The same by its cgroup's path, as /proc/PID/cgroup had it while one of its processes ran. */
uint32_t naming_container_at(struct naming *n, const char *cgroup);

struct naming_stat {
	uint64_t stacks;
	uint64_t frames;          /* frames of all stacks named so far, each time they occur */
	uint64_t named;           /* of those, with a function's name (also if they got it later) */
	uint64_t unnamed_pending; /* the index is not ready yet */
	uint64_t unnamed_refused; /* no index could be made (see hostmaps_image.reason), or none is
				     possible */
	uint64_t unnamed_symbol;  /* the index is ready, but no symbol holds the address */
	uint64_t unnamed_anon;    /* executable memory without file and without perf map entry */
	uint64_t unnamed_unmapped;     /* no executable mapping */
	uint64_t unnamed_kernel;       /* no kernel symbol, or hidden */
	uint64_t unknown_process;      /* stacks of processes unknown to hostmaps */
	uint64_t leaves, leaves_named; /* the leaf frames alone */
	uint64_t perfmap_refused;      /* perf maps that were not read: not a regular file, foreign
					  owner, too large... */
	uint64_t reading_cpu_ns;       /* CPU time of the processes that read perf maps */
	bool kernel_hidden;            /* kptr_restrict hides kernel names */
};
void naming_stat(const struct naming *n, struct naming_stat *s);

#endif
