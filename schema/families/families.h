/* SPDX-License-Identifier: Apache-2.0 */
/*
 * families: the one list of probe families. `record --families`, `doctor`, `status` and sonded go
 * by it. Each has a loader, sonde-NAME, with the options and the progress protocol that all loaders
 * share (loaders/lib/bpf/family.h, progress.h). A new family is one line in families.c.
 */
#ifndef SONDE_BASE_FAMILIES_H
#define SONDE_BASE_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"

#define FAMILIES_MAX 16

enum family_rights {                /* what its loader may do under sonded */
		     FAMILY_PROBES, /* load programs, read processes and name the kernel's functions
				     */
		     FAMILY_LOADS,  /* all but the last */
		     FAMILY_READS   /* read processes, files and the kernel's log */
};

struct probe_family {
	const char *name;   /* its loader is sonde-NAME, its runs are of this family */
	const char *word;   /* what it may be called as well; NULL: nothing */
	bool by_default;    /* recorded when nobody says which */
	bool always;        /* and by sonded, which runs for always */
	bool has_freq;      /* its loader takes --freq */
	unsigned int steps; /* how often its loader can be told to do less while it runs, before it
			     * is stopped; one with a rate is started anew at half of it instead */
	bool by_switches;   /* what it takes grows with how often threads switch */
	bool has_mode;      /* its loader takes --mode and --rate */
	enum family_rights rights;
	const char *event;   /* what its loader counts: "sample", "event" */
	const char *nothing; /* what is said where it found nothing; NULL: that nothing happened */
	bool standing;       /* at the end of a recording sonde-pstack keeps how threads stand (kind
				standing) */
};

extern const struct probe_family FAMILIES[]; /* ended by one without a name */

size_t families_count(void);
const char *families_always(
	void); /* the list that sonded records where nothing else is said: "cpu,host" */
const struct probe_family *family_named(const char *name); /* or its other word; NULL: unknown */
/* "cpu,offcpu" (NULL: the default ones) -> out[FAMILIES_MAX], each once, in the order given.
 * EXIT_USAGE. */
int families_of(const char *list, const struct probe_family **out, size_t *n, struct err *e);

#endif
