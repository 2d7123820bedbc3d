/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds: what a stored number can be: the one table that writers, readers and tools share.
 * Migrations put names, classes and units into the table `kind`; a test compares the two.
 *
 * Each kind has two numbers a row: `n`, how many, and `value`, their sum. Those of a counter and of
 * a duration add up over time; those of a gauge hold from their bucket on (see store_amount and
 * store_totals).
 */
#ifndef SONDE_STORE_MODEL_KINDS_H
#define SONDE_STORE_MODEL_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
enum store_kind { /* stored: never renumbered */
	STORE_KIND_CPU = 1,           /* samples; value: CPU time, samples x the period of the run */
	STORE_KIND_OFFCPU = 2,        /* waits until woken: how many, ns */
	STORE_KIND_RUNQUEUE = 3,      /* ready, but not running: how often, ns */
	STORE_KIND_ALLOC = 4,         /* allocations: objects, bytes */
	STORE_KIND_INUSE = 5,         /* allocated and not freed: objects, bytes */
	STORE_KIND_MUTEX = 6,         /* lock contentions: how many, ns of delay */
	STORE_KIND_BLOCK = 7,         /* waits in channels and locks, as the program's runtime counts them: how many, ns */
	STORE_KIND_STANDING = 8,      /* threads that wait at that moment: how many, ns so far */
	STORE_KIND_GOROUTINE = 9,     /* goroutines that exist at that moment; a kind that only counts has value = n */
	STORE_KIND_THREADCREATE = 10, /* threads that Go's runtime created */
	/* from a Go program's own profiles, next to what sonde measured of the same: */
	STORE_KIND_GOCPU = 11,        /* samples, ns */
	STORE_KIND_GOALLOC = 12,      /* allocations, scaled: objects, bytes */
	STORE_KIND_GOINUSE = 13,      /* allocated and not freed, scaled: objects, bytes */
	STORE_KIND_GOBLOCK = 14,      /* waits in channels and locks: how many, ns */
	STORE_KIND_GOMUTEX = 15,      /* lock contentions: how many, ns of delay */
	/* that only imported profiles have: */
	STORE_KIND_WALLCLOCK = 16,    /* samples by time, whether the thread ran or waited: samples, ns */
	STORE_KIND_EXCEPTION = 17,    /* exceptions thrown */
	/* by page faults, of any program: */
	STORE_KIND_PAGEFAULTS = 18,   /* page faults: how many, bytes that they brought */
	STORE_KIND_MEM = 19,          /* private memory by the stack that touched it first: pages of 4096, bytes */
	STORE_KIND_MEMWAIT = 20,      /* threads that had to free memory before they got some: how many, ns */
	/* of probes that were asked for: */
	STORE_KIND_PROBE = 21,        /* hits; value = n */
	STORE_KIND_PROBETIME = 22,    /* system calls: how many, ns */
	/* of the host's pages: */
	STORE_KIND_PAGES = 23,        /* pages in use, the kernel's too, by the stack that took them: pages of 4096, bytes */
	/* from Java's flight recorder: */
	STORE_KIND_JAVAALLOC = 24,    /* samples of allocations, and the bytes they represent */
	STORE_KIND_JAVALOCK = 25,     /* waits for monitors that another thread had: how many, ns */
	STORE_KIND_JAVAPARK = 26,     /* threads that were parked, or waited for a notify: how many, ns */
	STORE_KIND_JAVAEXCEPTION = 27, /* exceptions made; value = n */
	/* family mem, again */
	STORE_KIND_MAJORFAULTS = 28, /* page faults that had to read, from a file or from swap; value = n */
	STORE_KINDS                   /* one past the last */
};
/* clang-format on */

enum store_class { STORE_COUNTER, STORE_GAUGE, STORE_DURATION };
enum store_unit {
	STORE_SAMPLES,
	STORE_EVENTS,
	STORE_OBJECTS,
	STORE_TIME,
	STORE_BYTES
}; /* TIME: ns */

struct store_kind_words {  /* how `sonde explain` puts a change */
	const char *verb;  /* "used" 0.30 cores more */
	const char *began; /* "began to use" 0.30 cores */
	const char *gone;  /* "used before" 0.30 cores, and no more */
};

struct store_kind_info {
	enum store_kind kind;
	const char *name; /* as in --type */
	enum store_class class;
	enum store_unit unit_n, unit_value;
	enum store_unit unit;              /* the default unit of output: one of the two */
	const char *pprof_n, *pprof_value; /* names of its sample types in pprof */
	enum store_kind with;              /* shares one pprof file with this kind; 0: none */
	bool sized; /* values may come from sampling by size; readers scale them (store_rate) */
	const char *what; /* in words: "time on CPU" */
	struct store_kind_words words;
	/* what follows may be left out */
	const char *counted; /* what the first number counts, in the plural: "page faults"; NULL:
				the name of unit_n says it */
	const char *family;  /* the family that records it; NULL: cpu does, or `sonde import` brings
				it */
	const char
		*option; /* the option of `sonde record` that the family needs for it; NULL: none */
	bool own;        /* from the program's own profile; an imported profile gets the kind of the
			    same name without "go" */
	const char
		*push; /* the name of its profile in sonde-push's `profiles`; where there is nothing
			  of this kind, that of `with` is sent. NULL: not pushed on its own */
	const char *series; /* the pushed profile's __name__; NULL: the same as push */
};

/* NULL: there is no such kind. Static. */
const struct store_kind_info *store_kind_info(enum store_kind kind);
const struct store_kind_info *store_kind_named(const char *name);
/* What `n` counts, in the plural, as people read it: "waits", "page faults". Never NULL. */
const char *store_kind_counted(const struct store_kind_info *kind);
/* "samples", "events", "objects", "ns", "bytes", as machines read it. Never NULL. */
const char *store_unit_name(enum store_unit u);

#endif
