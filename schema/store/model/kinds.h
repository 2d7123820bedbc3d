/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds: what a stored number can be. The one table that writers, readers and tools share;
 * migrations put the same into the table `kind`, and a test compares the two.
 *
 * Each kind has two numbers a row: `n`, how many, and `value`, their sum. A counter's and a
 * duration's add up over time; a gauge's say how it stands from their bucket on (see store_amount
 * and store_totals).
 */
#ifndef SONDE_STORE_MODEL_KINDS_H
#define SONDE_STORE_MODEL_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum store_kind { /* stored: never renumbered */
		  STORE_KIND_CPU =
			  1, /* samples; value: CPU time, samples x the period of the run */
		  STORE_KIND_OFFCPU = 2,   /* waits until woken: how many, ns */
		  STORE_KIND_RUNQUEUE = 3, /* ready, and not running: how often, ns */
		  STORE_KIND_ALLOC = 4,    /* allocations: objects, bytes */
		  STORE_KIND_INUSE = 5,    /* what stands allocated: objects, bytes */
		  STORE_KIND_MUTEX = 6,    /* contentions of locks: how many, ns of delay */
		  STORE_KIND_BLOCK = 7,    /* waits in channels and locks, as the program's runtime
					      counts them: how many, ns */
		  STORE_KIND_STANDING =
			  8, /* threads that wait at that moment: how many, ns so far */
		  STORE_KIND_GOROUTINE = 9, /* goroutines that exist at that moment; of the kinds
					       that only count, value is n */
		  STORE_KIND_THREADCREATE = 10, /* threads that Go's runtime created */
		  /* what a Go program's own profiles say, beside what sonde measured of the same:
		   */
		  STORE_KIND_GOCPU = 11,   /* samples, ns */
		  STORE_KIND_GOALLOC = 12, /* allocations, scaled: objects, bytes */
		  STORE_KIND_GOINUSE = 13, /* what stands allocated, scaled: objects, bytes */
		  STORE_KIND_GOBLOCK = 14, /* waits in channels and locks: how many, ns */
		  STORE_KIND_GOMUTEX = 15  /* contentions of locks: how many, ns of delay */
};
#define STORE_KINDS 16 /* one past the last */

enum store_class { STORE_COUNTER, STORE_GAUGE, STORE_DURATION };
enum store_unit {
	STORE_SAMPLES,
	STORE_EVENTS,
	STORE_OBJECTS,
	STORE_TIME,
	STORE_BYTES
}; /* TIME: ns */

struct store_kind_info {
	enum store_kind kind;
	const char *name; /* as in --type */
	enum store_class class;
	enum store_unit unit_n, unit_value;
	enum store_unit unit; /* what is shown if not asked otherwise: one of the two */
	const char *pprof_n, *pprof_value; /* names of its sample types in pprof */
	enum store_kind with;              /* goes into one pprof file with this kind; 0: none */
	bool sized;       /* values may be of a sample by size, and are then scaled up for who reads
			     (store_rate) */
	const char *what; /* in words: "time on CPU" */
	const char *family; /* that records it beside cpu; NULL: none does, it comes by `sonde
			       import` or with cpu */
	bool own; /* as the program tells it; a profile that is imported is of the kind of the same
		     name without "go" */
};

/* NULL: there is no such kind. Static. */
const struct store_kind_info *store_kind_info(enum store_kind kind);
const struct store_kind_info *store_kind_named(const char *name);
/* "counter", ...; "samples", "events", "objects", "ns", "bytes". Never NULL. */
const char *store_class_name(enum store_class c);
const char *store_unit_name(enum store_unit u);

#endif
