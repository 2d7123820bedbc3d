/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_kind: which kind of value a verb answers about, and the message without any.
 *
 *   --type NAME   a kind of store/model/kinds.h: cpu, offcpu, alloc, ...; without it cpu, or the
 *                 only one that there is
 *   --unit UNIT   the number of the two by which rows are ranked: samples, events, objects (how
 *                 many), time, bytes (how much). Without it the kind's usual one. (select.h
 *                 distinguishes it from a systemd unit.)
 */
#ifndef SONDE_TOOLS_FOLD_KIND_H
#define SONDE_TOOLS_FOLD_KIND_H

#include "schema/base/cli/options.h"
#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/fold/fold.h"
#include "tools/select/select.h"

#define FOLD_TITLE_LEN 32

#define FOLD_KIND_OPTION(type, field)                                          \
	{                                                                      \
		"type", 0, OPTION_STRING, "KIND",                              \
			"cpu, offcpu, runqueue, alloc, inuse, mutex or block", \
			offsetof(type, field)                                  \
	}
#define FOLD_KIND_OR_WALL_OPTION(type, field)                                        \
	{                                                                            \
		"type", 0, OPTION_STRING, "KIND",                                    \
			"cpu, offcpu, runqueue, wall, alloc, inuse, mutex or block", \
			offsetof(type, field)                                        \
	}

/* From --type (NULL: not given) and the selection's measure to `o`: kind and count. EXIT_USAGE. */
int fold_kind_of(const char *type, const struct selection *sel, struct fold_opts *o, struct err *e);
/* The same, and "wall" (fold_wall.h), which has one unit: time. */
int fold_kind_or_wall_of(const char *type, const struct selection *sel, struct fold_opts *o,
			 struct err *e);
/* All kinds that the selection's time and recording have: bit 1 << kind. */
int fold_kinds_there(const struct selection *sel, uint32_t *kinds, struct err *e);
/* The most telling kind that the selection has, cpu first; cpu where it has none. Where several
 * others are there, they are named. */
int fold_kind_there(const struct selection *sel, enum store_kind *kind, struct err *e);
/* Of a window where nothing was found: is CPU time of sonde's own there, left out? */
bool fold_only_self(const struct selection *sel);
/* EXIT_NOTHING: why nothing was found, and the next command to try. */
int fold_nothing(const struct selection *sel, enum store_kind kind, struct err *e);

/* An amount in the fold's unit, for people: "1.37 s", "412 KiB", "7 921". A buffer of 32 bytes. */
const char *fold_amount(const struct fold *f, uint64_t amount, char *buf, size_t size);
/* The head of a column of such: CORES (CPU time by wall time), TIME, BYTES, MAJOR FAULTS, ... A
 * buffer of FOLD_TITLE_LEN. */
const char *fold_amount_title(const struct fold *f, char *buf, size_t size);
/* The same, of a column that says how many. */
const char *fold_count_title(const struct fold *f, char *buf, size_t size);
/* Is the amount itself how many? Then it is not shown a second time. */
bool fold_is_count(const struct fold *f);
/* An amount, and how many it is the sum of: "1.37 cores, 814 samples", "12.3 MiB, 5 page faults",
 * "9 major faults". */
void fold_say(struct strbuf *s, const struct fold *f, uint64_t amount, uint64_t n);
/* For how long it was recorded: a gap is no idle time. 0: an import that does not say. */
uint64_t fold_recorded_ns(const struct fold *f);
/* ns each ns of that; 0 where it is not known. */
double fold_cores(const struct fold *f, uint64_t ns);
bool fold_is_cores(const struct fold *f);

#endif
