/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold: the one stack tree behind every answer. Samples of a window, after filters and the choice
 * of runs, summed over all segments into a tree of frames, root at the top. `flame`, `stacks` and
 * `export` are prints of it.
 */
#ifndef SONDE_TOOLS_FOLD_H
#define SONDE_TOOLS_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "schema/base/err.h"
#include "schema/base/tables/pairsums.h"
#include "schema/store/read/reader.h"
#include "tools/fold/endings.h"

/*
 * What is folded is one kind of value (store/model/kinds.h). Each node, process and leaf has two
 * numbers of it: `samples` is n, how many (samples, events, objects), and `ns` is what it is drawn
 * and ranked by: the kind's value (ns or bytes), or n again where that unit was asked for.
 * fold.kind and fold.unit say what they are.
 */
struct idmap;
struct selection; /* tools/select/select.h: window and filters, parsed from the command line */

/* Written to pages: at most 8. OFF: of wall time, where below nothing ran (fold_wall.h). */
enum fold_origin {
	FOLD_NATIVE = 0,
	FOLD_KERNEL,
	FOLD_GO,
	FOLD_JIT,
	FOLD_GROUP,
	FOLD_UNKNOWN,
	FOLD_OFF,
	FOLD_SCRIPT
};

struct fold_frame {         /* merged by content over segments */
	const char *name;   /* valid UTF-8, never empty; for a group: the container's, process's or
			       thread's name */
	const char *module; /* "libc.so.6", "[kernel]", "" */
	const char *module_path; /* "" if not known */
	const char *build_id;    /* hex, "" */
	const char *file;        /* "" if not known */
	uint32_t line;           /* line of execution; 0: not known */
	uint32_t function_line;  /* the function's first line, 0 if not known */
	uint64_t offset;         /* within the file */
	bool named, inlined; /* inlined: into the frame before it in the stack, at the same place */
	enum fold_origin origin;
	uint8_t runtime; /* of a script: schema/base/runtimes.h; 0 of all else */
};

/* Could a package have symbols of what it lies in? Not of memory: [anon], [vdso], and what a
 * runtime maps by a file without a name for the code that it makes (memfd:). */
static inline bool fold_frame_in_file(const struct fold_frame *fr)
{
	return *fr->module && *fr->module != '[' && strncmp(fr->module, "memfd:", 6) != 0;
}

struct fold_node {
	uint32_t frame;  /* index into frames */
	uint32_t parent; /* node 0 is the root, its own parent */
	uint64_t self_ns, total_ns;
	uint64_t self_samples, total_samples;
	double self_variance, total_variance; /* of self_ns and total_ns, which are estimates; 0:
						 exact */
};

enum fold_group {
	FOLD_BY_NONE = 0,
	FOLD_BY_CONTAINER,
	FOLD_BY_PROCESS,
	FOLD_BY_THREAD,
	FOLD_BY_WHO /* containers, and commands outside of them: the frame's module is
		       FOLD_CONTAINER or FOLD_COMMAND */
};
/*
 * If asked for, each wait is below a frame, under its group, that says what it was for: named by
 * the reason, of module FOLD_WAITS or FOLD_IDLE (tools/waits/waitrules.h); file is the class,
 * build_id the function that decided, or "".
 */
#define FOLD_WAITS     "[waits]"
#define FOLD_IDLE      "[idle]"
#define FOLD_CONTAINER "[container]"
#define FOLD_COMMAND   "[command]"

struct fold_leaf { /* one (stack, process, thread), in each slice if there are slices */
	uint32_t node;
	uint32_t process; /* index into processes */
	const char *thread;
	uint64_t samples, ns; /* n and value, whatever the unit */
	uint64_t max;         /* of the series; 0: not known */
	uint32_t tid;
	uint32_t slice;     /* if there are slices */
	uint32_t label;     /* of its series: bytes of one object, ... */
	const char *labels; /* of what was imported: a JSON object; NULL: none */
	bool base; /* of what is subtracted (fold_join): pprof writes it as -diff_base does */
};

struct fold_with {
	uint64_t samples, ns;
}; /* n and value of fold_opts.with */

struct fold_flat { /* a function: in it, and in it and what it called, each stack once */
	uint64_t self_ns, self_samples, total_ns, total_samples;
};

struct fold_flat_slice { /* the same of one slice, ns alone, by frame: of the first n, the others
			    have nothing */
	struct fold_flat_part {
		uint64_t self, total;
	} * v;
	size_t n;
};

struct fold_calls { /* who calls whom: the outermost call of a function in each stack, but for those
		       of a thread's first function; a table with free places (key 0) */
	struct fold_call {
		uint64_t key;             /* the caller's frame << 32 | the function's */
		uint64_t samples, slices; /* bit by bit: it has some in them */
	} * v;
	size_t n, cap;
};

struct fold_process { /* strings are never NULL */
	uint32_t pid, ppid, uid;
	int64_t start_ns; /* UTC */
	const char *comm, *exe, *args, *container, *container_id, *container_image, *unit;
	uint64_t ns, samples;
	int64_t end_ns; /* UTC, 0: not known to have ended */
	enum store_end_how how;
	uint32_t status;
	const char *lang, *lang_runtime; /* as store_process_row's */
	bool self;
};

struct fold_slice { /* one of equal parts of the range; only if asked for */
	int64_t from_ns, to_ns;
	uint64_t covered_ns; /* of that, while something recorded */
};

struct fold_cell { /* what a node itself has in one slice; of a segment at most one of each */
	uint32_t node, slice;
	uint64_t ns;
};

struct fold_loss {
	const char *reason;
	uint64_t n;
	int64_t from_ns, to_ns; /* UTC: when; both 0: not known */
};

struct fold {
	struct fold_frame *frames;
	size_t n_frames;
	struct fold_node *nodes;
	size_t n_nodes; /* parents before children; without groups, of a window within one segment:
			   depth first */
	struct fold_process *processes;
	size_t n_processes;
	struct fold_leaf *leaves;
	size_t n_leaves;        /* only if asked for */
	struct fold_with *with; /* by leaf; only if asked for, else NULL */
	struct pairsums spent;  /* only if asked for: leaf_frames; ns by process and node */
	struct fold_flat *flat; /* by frame; only if asked for. [0]: of stacks without a frame */
	struct fold_flat_slice *flat_slices; /* n_slices of them; with slices alone */
	struct fold_calls calls;             /* only if asked for */
	uint32_t smaller; /* the frame that has what was left out (fold_opts.most_nodes); 0: nothing
			     was */
	size_t left_out;  /* nodes that were: of several files in each */
	struct fold_slice *slices;
	size_t n_slices;  /* only if asked for */
	int64_t slice_ns; /* the first one begins with the range, up to a bucket earlier; the last
			     ends with it */
	struct fold_cell *cells;
	size_t n_cells; /* only if asked for */
	struct fold_loss *losses;
	size_t n_losses;
	struct shedlog_span *shed; /* when the families of this kind did less, or nothing */
	size_t n_shed;
	int64_t asked_from_ns, asked_to_ns; /* the window; not of imports */
	struct endings endings;             /* of the window's minutes, all processes */
	int64_t from_ns, to_ns;             /* what the data spans within the window */
	uint64_t covered_ns; /* of that, while its runs recorded: what cores are reckoned over; 0:
				all of it */
	const struct store_kind_info *kind;
	enum store_unit unit; /* of all that is called ns here */
	uint64_t period_ns; /* of the finest run used; kinds sampled by size: bytes from one sample
			       to the next */
	uint32_t too;       /* of an imported file: what else it has, bits 1 << kind */
	uint32_t parts;     /* of imported stacks with fractional counts: parts of a sample that are
			       counted as one; 0: whole samples */
	bool no_count; /* imported values without a number of samples or objects: rows are counted
			*/
	uint32_t cpus;
	bool functions;                /* no two frames are of one function (fold_opts) */
	uint64_t frames_unnamed_ns;    /* in unnamed leaf frames */
	uint64_t self_program_samples; /* of these, how many samples */
	struct store_own_cost own; /* what sonde itself took in the window, by its own account */
	const char *host, *kernel;
};

#define FOLD_NODES  200000 /* most_nodes of what draws half of them, or far fewer */
#define FOLD_LEAVES 500000 /* most_leaves of what tells fewer apart */

struct fold_opts {
	enum store_kind kind; /* 0: cpu, or the only kind that there is */
	bool wall;            /* instead of a kind: on and off CPU (fold_wall.h) */
	bool count;           /* ranked by n, not by value */
	bool with;            /* the numbers of kind.with too, by leaf; needs `leaves` */
	enum fold_group group;
	bool reasons; /* of waits: what each was for, below the group */
	bool leaves;
	bool leaf_frames; /* `spent` by innermost frame, each a node below the root, instead of a
			     tree and leaves: the root alone has sums; without `group`, slices,
			     `leaves` and `with` */
	bool innermost;   /* a stack is its innermost frame alone, below its group and reason */
	bool no_inline;   /* inlined functions count as the function they were inlined into */
	bool interpreter; /* frames of an interpreter, between those of its scripts and beyond, too
			   */
	uint32_t slices;  /* at most this many; 0: none */
	bool cells;       /* what each stack used in each slice; needs `slices` */
	bool functions;   /* a function is one frame, whatever its line: distinguished by name and
			     module */
	const struct idmap *tags; /* only what threads did while they served these requests
				     (store_query.tags); NULL: all */
	const char *event; /* of imported perf script output or JFR: the event to read; NULL: the
			      first, or those of the kind */
	bool no_stacks; /* sums by process, without a tree: a file's names and stacks are not read;
			   without `group`, `reasons`, `leaves`, `with` and `cells` */
	bool flat;  /* functions, told apart by name and module, with their sums instead of a tree:
		       the root alone has all of it; without what needs a tree. Not of a gauge in
		       slices, which gets a tree and cells */
	bool calls; /* of flat, which has at most 64 slices then */
	size_t most_leaves; /* 0: all. Of more than that, slices are joined in pairs, until there
			       is one; then leaves of several segments that are alike. Without
			       `cells` and `with` */
	size_t most_nodes;  /* 0: all. Of a file with millions of nodes, or with many in each of
			       many groups, only this many, the largest; the rest is below the
			       nearest of these, in frames called "(smaller frames)" */
	bool lines; /* names are "name (file.c:12)" where the line is known: told apart by line */
};

/* EXIT_NOTHING with the reason and the next command to try when the window holds none of it;
 * EXIT_USAGE where several kinds are there, no cpu, and none was asked for. */
int fold_make(const struct selection *sel, const struct fold_opts *o, struct fold **out,
	      struct err *e);
void fold_free(struct fold *f);
/* Without its leaves and cells; `nodes`: and without its nodes, but for the root. */
void fold_shed(struct fold *f, bool nodes);
/* Has any frame one? Folded stacks have none: compared with them, only names count. */
bool fold_has_modules(const struct fold *f);
/* Is node for node the same path in both? (tools/fold/fold_pair.h) */
bool fold_same_tree(const struct fold *a, const struct fold *b);
/* Both in one tree, with their leaves; those of `base` are marked and its values are times `scale`.
 * Both were made with leaves and without groups. Times, period and losses are those of `f`. */
struct fold *fold_join(const struct fold *base, double scale, const struct fold *f);

#endif
