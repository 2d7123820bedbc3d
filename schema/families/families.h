/* SPDX-License-Identifier: Apache-2.0 */
/*
 * families: the one list of probe families. `record --families`, `doctor`, `status` and sonded read
 * it, and so does the Makefile, which builds a family's loader, sonde-NAME. All loaders share their
 * common options and the progress protocol (loaders/lib/bpf/family.h, run/progress.h). A new family
 * is one line in families.c.
 */
#ifndef SONDE_BASE_FAMILIES_H
#define SONDE_BASE_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"
#include "schema/families/setting.h"

#define FAMILIES_MAX        16
#define FAMILY_SETTINGS_MAX 16 /* of all families together */

/* clang-format off */
enum family_rights { /* what its loader may do under sonded */
	FAMILY_PROBES, /* load programs, read processes, resolve the kernel's functions */
	FAMILY_LOADS,  /* the same without the kernel's functions */
	FAMILY_READS,  /* read processes, files and the kernel's log */
	FAMILY_ATTACHES /* read processes, and become the user of one */
};
/* clang-format on */

struct family_setting { /* a key of section [record] in sonde.conf */
	struct setting setting;
	bool enables; /* any value but "off" adds the family to those that sonded records */
	const char *auto_file; /* with enables: "auto" adds the family where this file exists and
				  `families` is not set */
	const char *option; /* the loader's option that gets the value, unless that is the default
			       or, of one that enables, "on"; NULL: none */
};

struct family_less {        /* what a family does at a step (probe_family.steps), in words */
	const char *status; /* "fewer stacks, exact sums" */
	const char *did;    /* "took fewer stacks" */
	const char *answer; /* what that costs an answer: "sums are exact" */
};

struct probe_family {
	const char *name; /* its loader is sonde-NAME; runs in the store carry this name */
	const char *word; /* a second name; NULL: none */
	bool by_default;  /* `sonde record` records it where --families is not given */
	bool always;      /* sonded does where `families` is not set */
	bool has_freq;    /* its loader takes --freq */
	bool has_ring;    /* its loader also writes the flight ring */
	unsigned int
		steps; /* how many steps its loader can be reduced by while it runs, before sonded
			  stops it; a loader with a rate is restarted at half of it instead */
	const struct family_less *less; /* at each of the steps; NULL: its rate says it */
	bool by_switches;               /* its cost grows with the rate of context switches */
	bool has_mode;                  /* its loader takes --mode and --rate */
	bool has_pages;                 /* its loader takes --pages */
	bool has_tls; /* its loader takes --tls, and family l7 reads what it shows */
	enum family_rights rights;
	const char *event; /* what its loader counts: "sample", "event" */
	const char
		*shown_by; /* the verb that shows it, for one without stacks; NULL: flame, stacks */
	const char *nothing; /* the message where it recorded nothing; NULL: a general one */
	bool standing;       /* at the end of a recording sonde-pstack stores where threads wait */
	const struct family_setting *settings; /* ended by one without a name; NULL: none */
};

extern const struct probe_family FAMILIES[]; /* ended by one without a name */

size_t families_count(void);
/* The list that sonded records by default: "cpu,host". */
const char *families_always(void);
/* By name or second name; NULL: unknown. */
const struct probe_family *family_named(const char *name);
/* "cpu,offcpu" (NULL: the default ones) -> out[FAMILIES_MAX], each once, in the order given.
 * EXIT_USAGE. */
int families_of(const char *list, const struct probe_family **out, size_t *n, struct err *e);
/* What this family does at `step`, 1 to its number of steps; NULL: there are no words for it. */
const struct family_less *family_less(const struct probe_family *f, unsigned int step);
/* The n-th setting of all families, and its family (`of` may be NULL). NULL past the last. */
const struct family_setting *family_setting(size_t n, const struct probe_family **of);

#endif
