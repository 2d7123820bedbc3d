/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture_parts: what the files of capture share, and nobody else includes. capture.c begins, waits
 * and ends; capture_flow.c takes records from the rings to the store and keeps the books;
 * capture_tell.c says how it goes.
 */
#ifndef SONDE_BPF_CAPTURE_PARTS_H
#define SONDE_BPF_CAPTURE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/bpf/run/capture.h"
#include "loaders/lib/bpf/run/hold.h"
#include "loaders/lib/bpf/run/ledger.h"
#include "loaders/lib/bpf/run/scripts.h"
#include "loaders/lib/host/late/late.h"
#include "loaders/lib/host/late/late_jit.h"
#include "loaders/lib/host/budget/pace.h"
#include "schema/base/clock.h"
#include "schema/base/idmap.h"
#include "schema/store/write/writer.h"

#define MSEC 1000000ll
/* the first sample is waited for no longer: there may be nothing to sample */
#define CAPTURE_BEGIN_NS (2000 * MSEC)

struct bpf_object;
struct hostmaps;
struct naming;
struct ring_buffer;
struct targetfeed;

struct capture {
	const struct capture_opts *o;
	struct capture_report *r;
	const struct family *f;
	void *state;
	struct bpf_object *obj;
	struct ring_buffer *ring; /* NULL: the family has none */
	struct hostmaps *maps;
	struct naming *naming;
	struct progsyms *programs;
	struct store_writer *store;
	struct family_host host; /* what a family that reads by itself is given */
	struct scripts scripts;
	struct hold hold;
	struct late late;
	struct late_jit *latecode;
	bool late_own;   /* some have come whose frames only their process can explain: while it is
			    there */
	bool late_young; /* of a process that has begun lately */
	int64_t own_asked_ns; /* until when such have come: what is mapped then is asked for, and
				 awaited */
	struct ledger ledger;
	struct idmap processes; /* store ids seen in this epoch */
	uint32_t epoch;
	uint32_t run;
	int wake_fd; /* readable when a ring called, -1 */
	struct pace pace;

	int64_t attached_ns;  /* boot clock, as all below but the offset */
	int64_t ring_read_ns; /* everything before it is out of the ring */
	int64_t until_ns;     /* everything before it has been added to the store */
	int64_t end_ns;       /* when to stop, INT64_MAX: endless */
	int64_t second_ns, booked_ns, told_ns;
	int64_t offset_ns; /* utc = boot + offset */
	int64_t flushed_bucket;
	int64_t flushed_ns; /* in the beginning: when last */
	uint64_t added;     /* taken by the store's writer */
	uint64_t refused;   /* not taken */
	uint64_t booked_lost[CAPTURE_LOST_N], booked_maps_lost;
	bool symbols_given; /* to the family */
	bool ready_sent, first_asked, first_flushed, first_named, first_sent;
	bool stop;
	int64_t bad_second; /* of capture_ends: how many of this second have got a row, by exit and
			       by signal */
	uint32_t bad[2];
	struct targetfeed *feed; /* NULL: there is none */
	uint32_t step;           /* that it last said */
	uint64_t missed;         /* of hostmaps_missed, stored */
	int64_t signal_ns; /* when the first SIGINT, SIGTERM or SIGHUP came, by the boot clock; 0:
			      none has */
};

static inline int64_t capture_utc(const struct capture *c, int64_t boot_ns)
{
	return boot_ns + c->offset_ns;
}

static inline uint64_t capture_period(const struct capture *c)
{
	return c->f->period_ns ? c->f->period_ns(c->state) : 0;
}

/* capture_flow.c */
int capture_rings_open(struct capture *c, struct err *e);
void capture_rings_close(struct capture *c);
void capture_rings_read(struct capture *c);
void capture_names_tick(struct capture *c); /* about once a second */
/* wake_fd is readable. */
void capture_rings_called(struct capture *c);
/* Families that read by themselves: their turn, and their figures. */
void capture_poll(struct capture *c);
void capture_finish(struct capture *c);
/* Store what sonde-maps has caught up with, and what has waited too long; `all`: everything. */
void capture_pass(struct capture *c, bool all);
bool capture_waiting(const struct capture *c);
/* Stacks wait that only their process explains, while it is there: each word of sonde-maps may be
 * what they wait for. */
bool capture_awaits_own(const struct capture *c);
void capture_tally(struct capture *c, struct family_tally *t);
void capture_ledger_write(struct capture *c);
void capture_flush(struct capture *c);
void capture_flush_due(struct capture *c);

/* capture.c */
void capture_signal_take(struct capture *c); /* the first one stops, the second one ends */

/* capture_drain.c */
void capture_end(struct capture *c);

/* capture_ends.c: follow ends of processes, once there is a run. */
void capture_ends_watch(struct capture *c);
void capture_ends_missed(struct capture *c); /* each tick: those that nobody told of */

/* capture_tell.c */
void capture_tell(struct capture *c);
/* Since the capture was ready; *now: the figures that say so. */
double capture_self_cores(struct capture *c, const struct family_tally *t,
			  struct ledger_figures *now);
void capture_send_first(struct capture *c, const struct store_writer_stat *s);

#endif
