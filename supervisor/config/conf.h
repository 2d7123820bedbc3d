/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf: what sonded is told. For each key, the strongest that says something holds:
 *
 *   a flag (--budget 2G)  >  the environment (SONDE_BUDGET)  >  conf.d/NAME.conf, by name, the last
 * >  sonde.conf  >  default
 *
 * (of the store: $STATE_DIRECTORY, which systemd sets, then store_default_dir).
 *
 * Files are INI (libinih): [section], key = value, # and ; begin a comment. They are
 * /etc/sonde/sonde.conf and /etc/sonde/conf.d/ (NAME.conf), or those of --config DIR or
 * $SONDE_CONFIG; none is needed. A key is said once in a file; a list of rules goes on in lines
 * that begin with a blank. What a file may hold is the table in conf.c; a key that is not in it is
 * an error that names the line and the key that was meant.
 */
#ifndef SONDE_SUPERVISOR_CONF_H
#define SONDE_SUPERVISOR_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/base/err.h"

#define CONF_DIR        "/etc/sonde"
#define CONF_ORIGIN_MAX 160
#define CONF_TEXT_MAX   512

enum conf_key { /* those of a section together */
		CONF_STORE,
		CONF_BUDGET,
		CONF_RESERVE,
		CONF_AGE,
		CONF_SEGMENT_AGE,
		CONF_SEAL,
		CONF_FINE_AGE,
		CONF_FAMILIES,
		CONF_REQUESTS,
		CONF_GPU,
		CONF_SCRAPE,
		CONF_LOG_LINES,
		CONF_FREQ,
		CONF_ARGS,
		CONF_INCLUDE,
		CONF_EXCLUDE,
		CONF_CPU,
		CONF_MEMORY,
		CONF_KEYS
};

struct conf_value {
	char text[CONF_TEXT_MAX]; /* as written; of a default, as one would write it; "": decided by
				     the disk */
	char origin[CONF_ORIGIN_MAX]; /* "default", "--budget", "SONDE_BUDGET",
					 "/etc/sonde/sonde.conf:3" */
};

struct conf {
	struct conf_value value[CONF_KEYS];
	uint64_t budget_bytes, reserve_bytes; /* 0: decided by the disk */
	int64_t age_ns, segment_age_ns;
	bool seal;
	int64_t fine_age_ns; /* 0: for always */
	bool requests; /* family l7 is one of those that value[CONF_FAMILIES] names, once conf_load
			  is done */
	bool gpu, gpu_auto; /* the same of family gpu; auto: where the host has a driver for one and
			       nobody chose families */
	bool scrape; /* the same of family scrape; which profiles: value[CONF_SCRAPE], if neither
			"on" nor "off" */
	bool log_lines;
	uint32_t freq;
	double cpu; /* most that all of sonde may take, in percent of one core; 0: no limit */
	uint64_t memory_bytes; /* the same of memory; 0: no limit */
};

/* Is there where NVIDIA's driver is: what `gpu = auto` goes by. Of tests: another file. */
extern const char *conf_gpu_driver;

/* "store", "budget", ...: flag without dashes, and the key in the files. NULL past the last. */
const char *conf_name(enum conf_key key);
const char *conf_help(enum conf_key key);
const char *conf_section(enum conf_key key);

/* Flags, by enum conf_key; NULL where none was given. `dir` NULL: $SONDE_CONFIG, else CONF_DIR; one
 * that is named has to be there. EXIT_USAGE with the file, the line and, for a key that is not
 * known, the one that was probably meant. */
int conf_load(const char *dir, const char *const flags[CONF_KEYS], struct conf *out, struct err *e);
/* One file's bytes, as if it were called `name`. For tests and the fuzzer. */
int conf_parse(struct conf *c, const char *name, const char *text, size_t len, struct err *e);
void conf_print(const struct conf *c, bool origin, FILE *out);

#endif
