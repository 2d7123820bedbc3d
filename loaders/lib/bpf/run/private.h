/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private: a capture in parts. One file writes each part; the others read it or call its functions.
 *
 *   config  capture.c         what to record, and the objects that it passes through
 *   clock   capture.c         the times of the loop, and when it stops
 *   probes  capture_probes.c  the rings of the family's programs
 *   intake  capture_intake.c  records on their way from a ring to the store
 *   books   capture_books.c   what was seen, stored and lost, and what that cost
 *   ends    capture_ends.c    processes that end while the capture runs
 *   tell    capture_tell.c    progress messages to a parent or a person
 *   vigil   capture_vigil.c   counts what is seen while the loop hangs
 *
 * capture_drain.c ends the capture, part by part.
 */
#ifndef SONDE_BPF_RUN_PRIVATE_H
#define SONDE_BPF_RUN_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/bpf/run/capture.h"
#include "loaders/lib/bpf/run/hold.h"
#include "loaders/lib/bpf/run/ledger.h"
#include "loaders/lib/bpf/run/scripts.h"
#include "loaders/lib/host/budget/pace.h"
#include "loaders/lib/host/late/late.h"
#include "loaders/lib/host/late/late_jit.h"
#include "schema/base/clock.h"
#include "schema/base/idmap.h"
#include "schema/store/write/writer.h"

#define MSEC 1000000ll
/* wait no longer than this for the first sample: there may be nothing to sample */
#define CAPTURE_BEGIN_NS (2000 * MSEC)

struct bpf_object;
struct hostmaps;
struct naming;
struct ring_buffer;
struct targetfeed;

/* Set while the capture begins, then constant. */
struct capture_config {
	const struct capture_opts *o;
	const struct family *f;
	void *state; /* the family's */
	struct bpf_object *obj;
	struct hostmaps *maps;
	struct naming *naming;
	struct progsyms *programs;
	struct store_writer *store;
	uint32_t run;
	struct targetfeed *feed; /* NULL: sonded sends no targets */
};

/* Times are those of the boot clock. */
struct capture_clock {
	int64_t offset_ns; /* utc = boot + offset */
	/* what waits from before it was set keeps the time that it had: boot clock, offset then */
	int64_t set_ns, before_offset_ns;
	bool turns; /* some of that still waits */
	int64_t attached_ns;
	int64_t end_ns; /* when to stop, INT64_MAX: endless */
	int64_t second_ns;
	int64_t signal_ns; /* of the last SIGINT, SIGTERM or SIGHUP; 0: none came yet */
	int64_t finish_ns; /* the capture has ended, and waits until then for files; 0: not */
	bool cut;          /* a signal ended that wait */
	struct pace pace;
	bool first_asked; /* sonde-maps was asked to catch up with the first sample */
	bool stop;
};

struct capture_probes {
	struct ring_buffer *ring; /* NULL: the family has none */
	int wake_fd;              /* readable when a ring calls, -1 */
	bool symbols_given;       /* to the family */
	uint32_t step;            /* the last one that sonded sent */
};

struct capture_books {
	const struct capture_config *config;
	const struct capture_clock *clock;
	const struct family_host *host; /* the intake's: counts of a family that reads by itself */
	struct capture_report *r;
	struct ledger ledger;
	uint64_t added;   /* accepted by the store's writer */
	uint64_t refused; /* rejected by it */
	int64_t until_ns; /* the store has everything before this time */
	int64_t booked_ns;
	uint64_t booked_lost[CAPTURE_LOST_N], booked_maps_lost;
	int64_t flushed_bucket;
	int64_t flushed_ns; /* the last early flush */
	int64_t handed_ns;  /* the last flush */
	bool first_flushed, first_named;
};

struct capture_intake {
	const struct capture_config *config;
	struct capture_clock *clock;
	struct capture_books *books;
	struct family_host host; /* passed to a family that reads by itself */
	struct scripts scripts;
	struct hold hold;
	struct late late;
	struct late_jit *late_jit;
	bool late_own;        /* stacks came that can only be explained while their process runs */
	bool late_young;      /* one of these processes began recently */
	int64_t own_asked_ns; /* such stacks came up to this time: wait for the mappings of then */
	int64_t read_ns;      /* the rings hold nothing older */
	struct idmap processes; /* store ids seen in this epoch */
	uint32_t epoch;
};

struct capture_ends {
	const struct capture_config *config;
	const struct capture_clock *clock;
	struct family_host *host; /* the intake's */
	int64_t bad_second;       /* rows given in this second, by exit and by signal */
	uint32_t bad[2];
	uint64_t missed; /* of hostmaps_missed, already stored */
};

struct capture_tell {
	bool ready_sent, first_sent;
	int64_t told_ns, finish_told_ns;
};

struct capture_vigil {
	const struct capture_config *config;
	const struct family_host *host; /* the intake's */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int64_t turned_ns; /* when the loop turned last */
	bool runs, stop;
};

struct capture {
	struct capture_config config;
	struct capture_clock clock;
	struct capture_probes probes;
	struct capture_intake intake;
	struct capture_books books;
	struct capture_ends ends;
	struct capture_tell tell;
	struct capture_vigil vigil;
};

static inline int64_t capture_utc(const struct capture_clock *clock, int64_t boot_ns)
{
	return boot_ns + (boot_ns < clock->set_ns ? clock->before_offset_ns : clock->offset_ns);
}

static inline uint64_t capture_period(const struct capture_config *config)
{
	return config->f->period_ns ? config->f->period_ns(config->state) : 0;
}

/* ---- capture.c ---- */

void capture_signal_take(struct capture *c); /* the first signal stops, a second one exits */

/* ---- capture_probes.c ---- */

int capture_probes_open(struct capture_probes *p, struct capture_intake *in, struct err *e);
void capture_probes_close(struct capture_probes *p);
void capture_probes_read(struct capture_probes *p, struct capture_intake *in);
void capture_probes_called(struct capture_probes *p, struct capture_intake *in); /* by wake_fd */
/* Follow sonded's targets and its step of doing less. */
void capture_probes_feed(struct capture_probes *p, const struct capture_config *config);
/* Pass the kernel's symbols to the family once they are known. */
void capture_probes_symbols(struct capture_probes *p, const struct capture_config *config);

/* ---- capture_intake.c ---- */

void capture_intake_init(struct capture_intake *in, struct capture *c);
void capture_intake_room(struct capture_intake *in, uint32_t cpus); /* for stacks that wait */
void capture_intake_release(struct capture_intake *in);
/* Callbacks of ring_buffer, by kind of ring; ctx: struct capture_intake. */
int capture_intake_record(void *ctx, void *record, size_t size);
int capture_intake_late(void *ctx, void *record, size_t size);
int capture_intake_script_name(void *ctx, void *record, size_t size);
/* The rings have been read up to now_ns. */
void capture_intake_read(struct capture_intake *in, int64_t now_ns);
/* Store what sonde-maps has caught up with, and what has waited too long; `all`: everything. */
void capture_intake_store(struct capture_intake *in, bool all);
/* The clock was set, and what is stored from here on is of after that. */
void capture_intake_turn(struct capture_intake *in);
bool capture_intake_waits(const struct capture_intake *in);
/* Stacks wait that can only be explained while their process runs: any message of sonde-maps may be
 * the one they wait for. */
bool capture_intake_awaits_own(const struct capture_intake *in);
void capture_intake_tick(struct capture_intake *in); /* about once a second */
/* Families that read by themselves: their turn, and their last one. */
void capture_intake_poll(struct capture_intake *in);
void capture_intake_finish(struct capture_intake *in);
void capture_intake_count_processes(struct capture_intake *in); /* into the report */

/* ---- capture_books.c ---- */

void capture_books_begin(struct capture_books *b);
void capture_books_tally(struct capture_books *b, struct family_tally *t);
/* What the store has of what it accepted: the rest is lost. */
void capture_books_stored(struct capture_books *b, uint64_t stored);
void capture_books_ledger(struct capture_books *b);
void capture_books_flush(struct capture_books *b);
void capture_books_flush_due(struct capture_books *b);
/* CPU that sonde used since the capture was ready; *now: the figures it is made from. */
double capture_books_self_cores(struct capture_books *b, const struct family_tally *t,
				struct ledger_figures *now);

/* ---- capture_drain.c ---- */

void capture_end(struct capture *c);

/* ---- capture_ends.c ---- */

void capture_ends_watch(struct capture_ends *ends);  /* once there is a run */
void capture_ends_missed(struct capture_ends *ends); /* each tick: ends without an event */

/* ---- capture_vigil.c ---- */

/* Once the programs are attached; it borrows both. The end goes before the programs are detached.
 */
void capture_vigil_begin(struct capture_vigil *v, const struct capture_config *config,
			 const struct family_host *host);
void capture_vigil_turned(struct capture_vigil *v); /* at each turn of the loop */
void capture_vigil_end(struct capture_vigil *v);

/* ---- capture_tell.c ---- */

void capture_tell(struct capture *c);
void capture_send_first(struct capture *c, const struct store_writer_stat *s);
void capture_tell_finish(struct capture *c); /* while it waits at its end */

#endif
