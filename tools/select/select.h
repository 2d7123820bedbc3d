/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select: which part of the store a verb answers about: a range of time, perhaps one recording, and
 * filters. One grammar for all verbs.
 *
 * Range (at most one of these; times by tools/print/when.h):
 *   --last 15m | --from T [--to T] | --to T (the 15 min before it) | --at T (30 s before and after)
 *   --rec ID | --rec last | --rec last~1
 * Without any: the newest recording by `sonde record` (at most its last 15 min) or import (all of
 * it); if sonded's recording is newer, the last 15 min of that, all its families.
 *
 * A recording's ID is its number among all runs of the store, from 1 in order of their start; a run
 * over several segments is one, and so are the runs of several families that `sonde record` started
 * together. When retention removes old segments, counting starts at the oldest that remains.
 *
 * Filters: --container --image --pid --tid --comm --exe --user --unit --cgroup --lang --label
 * --host, each repeatable.
 *   1. Values of one kind are OR, kinds are AND.
 *   2. A leading `!` is NOT: what it matches is excluded. A kind with only `!` values includes the
 *      rest.
 *   3. `~re` (`!~re`) is a POSIX extended regular expression, found anywhere; else the whole value
 *      must be equal. Also equal: container: an id, or 6 or more first digits of it, the service or
 *      project of compose, or a name that it had in the range; exe: its last component; user: name
 * or number; unit: without `.service`; cgroup: a path inside that one; lang: in any case of
 * letters, by what else it is called (jvm), or by the runtime with its version (go1.22.1).
 *   4. comm matches the process's command name. tid is the thread's id.
 *   5. samples, events, objects, time and bytes are not systemd units: `--unit bytes` selects the
 *      number by which a kind of value is ranked (tools/fold/fold_kind.h). A systemd unit of such a
 *      name is given as bytes.service.
 *   6. label: of imported samples, KEY or KEY=VALUE as another profiler wrote it; flame, stacks,
 *      export and timeline have it. What has no labels is not selected by it.
 *   7. host: of several stores (store_name_hosts) those of that host. There a container is called
 *      HOST/NAME, and by --container also NAME alone.
 * A bare word is searched over containers, units, commands, pids: the whole name first, then a part
 * of it (case does not matter). Several different matches: a list and EXIT_USAGE; none:
 * did-you-mean and EXIT_USAGE.
 *
 * sonde's own processes are left out unless --self (or named by --pid / --comm themselves).
 */
#ifndef SONDE_TOOLS_SELECT_H
#define SONDE_TOOLS_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/cli/options.h"
#include "schema/base/err.h"
#include "schema/store/read/reader.h"

/* The filters: X(name, short option or 0, what its value is called). Each is a list in select_args
 * and an option. */
#define SELECT_FILTERS(X)        \
	X(container, 0, "NAME")  \
	X(image, 0, "NAME")      \
	X(pid, 'p', "PID")       \
	X(tid, 0, "TID")         \
	X(comm, 0, "NAME")       \
	X(exe, 0, "PATH")        \
	X(user, 0, "NAME")       \
	X(unit, 0, "NAME")       \
	X(cgroup, 0, "PATH")     \
	X(lang, 0, "NAME")       \
	X(label, 0, "KEY=VALUE") \
	X(host, 0, "NAME")
#define SELECT_FILTER_FIELD(name, letter, value) struct option_list name;

/* What the command line said. The two tables fill it; both may be used alone. */
struct select_args {
	int64_t last_ns;
	const char *from, *to, *at, *rec;
	SELECT_FILTERS(SELECT_FILTER_FIELD)
	bool self;
};
extern const struct option SELECT_RANGE_OPTIONS[];
extern const struct option SELECT_FILTER_OPTIONS[];
/* Does it name a range or a recording; has it a filter (--self does not count)? */
bool select_has_range(const struct select_args *a);
bool select_has_filters(const struct select_args *a);
/* Each filter that `from` has replaces the one in `to`. Borrowed. */
void select_filters_replace(struct select_args *to, const struct select_args *from);

#define SELECT_OPEN 384 /* segments of a store that stay open while its recordings are listed */

/* One run in one segment. */
struct select_run {
	char segment[512]; /* path */
	int64_t run;       /* its id there */
	int64_t from_ns, to_ns;
};

struct filters;

struct selection {
	const char *store;              /* folder or file, borrowed */
	const char *measure;            /* rule 5: "bytes", ...; NULL: not given; borrowed */
	int64_t from_ns, to_ns;         /* UTC, half-open */
	int64_t gap_from_ns, gap_to_ns; /* of that recording (select_recording); or both 0 */
	int64_t rec;                    /* number of the recording, 0: whatever covers the range */
	char families[64];              /* that recording's: "cpu,offcpu" */
	struct select_run *runs;        /* that recording's rows by segment */
	size_t n_runs;
	struct store_segment_info *segments; /* those that touch the range, oldest first */
	size_t n_segments;
	struct filters *filters; /* tools/select/filter.h */
	bool self;               /* sonde's own processes too */
	bool range_given;        /* the person named a range or a recording */
	char range[128];         /* for people, local time: "rec 17, 14:10:03 to 14:10:13" */
	char what[128];    /* for people and file names: "immich-ml", "pid 812", "" when nothing
			      narrows */
	char *filter_text; /* "--container 'immich-ml' --pid 812", "" */
	struct select_open *open; /* of select_segment */
	struct select_days *days; /* of select_parts */
};

/* Resolve against the store: recordings, default range, words. Prints the resolved range on stderr
 * unless `quiet`. EXIT_USAGE for grammar and names, EXIT_STORE when there is no store, EXIT_NOTHING
 * when it has no recording. */
int select_new(const struct select_args *a, const char *store, char *const *words, size_t n_words,
	       bool quiet, struct selection **out, struct err *e);
void select_free(struct selection *s);
/* From here on it reads the segments that `of` holds open, with what was read of them. Then only
 * one thread uses the two. */
void select_share(struct selection *s, const struct selection *of);

/* A segment of it, open for reading: the selection's own, good until two others were asked for.
 * What asks for one segment several times (each kind of value on a page) so opens it and loads its
 * dictionary once. */
int select_segment(const struct selection *s, const char *path, struct store_segment **out,
		   struct err *e);
/* The files that a question about sums may read in place of the segments
 * (schema/store/read/days.h): how many, and an array that is the selection's. A day is read like a
 * segment, and its own segments in place of it where it has no answer. */
struct store_part;
size_t select_parts(const struct selection *s, const struct store_part **out);
/* Frees memory: for a caller that keeps the selection but has read all of its data. */
void select_segments_close(const struct selection *s);

/* A process of which only this is known, and set what else is: all other texts are "". Borrows
 * them.
 */
struct store_process_row select_process_row(const char *comm, const char *container,
					    const char *container_id);
/* Does the selection have this process, this thread? Both must be in. A caller with many series
 * caches the first by process. */
bool select_wants_process(const struct selection *s, const struct store_process_row *p);
bool select_wants_thread(const struct selection *s, uint32_t tid);
bool select_wants(const struct selection *s, const struct store_process_row *p, uint32_t tid);
/* Of imported samples, a JSON object; "": they have none. select_wants is for what has none. */
bool select_wants_labels(const struct selection *s, const char *labels);
/* One of the kernel's own threads: a child of kthreadd, or that. */
bool select_is_kernel(const struct store_process_row *p);
/* Which runs to ask of this segment, `nth` from 0: 0 for no restriction, -1: there is no (other)
 * one. */
int64_t select_run_in(const struct selection *s, const char *segment_path, size_t nth);
/* Does a filter narrow anything? */
bool select_is_narrow(const struct selection *s);

/* What one family of a recording was like in the end. */
struct select_part {
	char family[16];
	int state; /* as in the store: 0 going on, 1 ended, 2 was killed */
	int64_t pid;
	uint64_t period_ns; /* 0: it does not sample by time */
};

/* One recording of the store, over all its segments. */
struct select_recording {
	int64_t number;
	uint64_t token;
	char family[64]; /* "cpu", or "cpu,offcpu" where several were begun together */
	char *options;
	enum store_scope scope;
	uint32_t bucket_s;
	uint64_t period_ns;     /* of the part that samples by time */
	int64_t from_ns, to_ns; /* of its rows, even if the wall clock was set back meanwhile */
	int64_t offset_ns;      /* the most that UTC was ahead of the boot clock meanwhile */
	int64_t gap_from_ns,
		gap_to_ns; /* a time that no clock showed meanwhile, since one was set; or both 0 */
	bool always;       /* not made by `sonde record`: one of the runs of what records always */
	bool kept;         /* a window of the flight ring that was kept */
	int state;         /* 0 while one part goes on, 2 where one was killed */
	int64_t pid;       /* of the first part */
	struct select_part *parts; /* by family, in the order they began */
	size_t n_parts;
	struct select_run *runs;
	size_t n_runs;
};
/* All of them, oldest first. */
int select_recordings(const char *store, struct select_recording **out, size_t *n, struct err *e);
/* Of these segments, which are all of the store. */
int select_recordings_of(const struct store_segment_info *segments, size_t n_segments,
			 struct select_recording **out, size_t *n, struct err *e);
void select_recordings_free(struct select_recording *r, size_t n);
/* How long it took: its range without the gap. */
int64_t select_recording_took_ns(const struct select_recording *r);

/* There is nothing to show. `family`: because that one was not recorded, which knows of `things`
 * ("connections"); NULL: `what` says so, of the range and what was selected, and `next` is a
 * command to try. -ENOENT with EXIT_NOTHING. */
int select_nothing(const struct selection *sel, const char *family, const char *things,
		   const char *what, const char *next, struct err *e);

#endif
