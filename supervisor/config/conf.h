/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf: sonded's settings. For each key the strongest source that sets it wins:
 *
 *   an option (--budget 2G)
 *   the environment (SONDE_BUDGET)
 *   conf.d/NAME.conf, the last one by name
 *   sonde.conf
 *   $STATE_DIRECTORY, which systemd sets: of the store alone
 *   the default
 *
 * Files are INI (libinih): [section], key = value, # and ; begin a comment. They are
 * /etc/sonde/sonde.conf and /etc/sonde/conf.d/NAME.conf, or those of --config DIR or
 * $SONDE_CONFIG; none is needed. A file sets a key once; a list of rules continues in lines that
 * begin with a blank. An unknown key is an error that names the line and the key that was meant.
 *
 * The keys are those of sonded (confparse.c) and those of the families
 * (schema/families/families.c).
 */
#ifndef SONDE_SUPERVISOR_CONF_H
#define SONDE_SUPERVISOR_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/base/err.h"
#include "schema/families/families.h"

#define CONF_DIR        "/etc/sonde"
#define CONF_ORIGIN_MAX 160
#define CONF_TEXT_MAX   512

/* clang-format off */
enum conf_key { /* keys of one section are adjacent */
	CONF_STORE,
	CONF_BUDGET,
	CONF_RESERVE,
	CONF_AGE,
	CONF_SEGMENT_AGE,
	CONF_SEAL,
	CONF_FINE_AGE,
	CONF_FAMILIES,
	CONF_FREQ,
	CONF_ARGS,
	CONF_INCLUDE,
	CONF_EXCLUDE,
	CONF_DOTNET,
	CONF_CPU,
	CONF_MEMORY,
	CONF_FLIGHT,
	CONF_FLIGHT_SIZE,
	CONF_FAMILY /* from here on: family_setting(key - CONF_FAMILY) */
};
/* clang-format on */
#define CONF_KEYS (CONF_FAMILY + FAMILY_SETTINGS_MAX) /* at most */

struct conf_value {
	char text[CONF_TEXT_MAX];     /* as written, or the default; "": the disk decides */
	char origin[CONF_ORIGIN_MAX]; /* "default", "--budget", "SONDE_BUDGET",
					 "/etc/sonde/sonde.conf:3" */
};

struct conf {
	struct conf_value value[CONF_KEYS];
	uint64_t budget_bytes, reserve_bytes; /* 0: the disk decides */
	int64_t age_ns, segment_age_ns;
	bool seal;
	int64_t fine_age_ns; /* 0: no limit */
	uint32_t freq;
	bool no_dotnet;        /* programs of .NET are left alone */
	double cpu;            /* limit of all of sonde, in percent of one core; 0: none */
	uint64_t memory_bytes; /* the same of memory; 0: none */
	bool flight;           /* with a flight ring (keeper.h) */
	uint64_t flight_bytes; /* of this size */
};

/* Goes before the paths that "auto" looks for. For tests; "" otherwise. */
extern const char *conf_host_root;

/* NULL past the last. */
const struct setting *conf_setting(enum conf_key key);
const char *conf_section(enum conf_key key);
const char *conf_fallback(enum conf_key key);
size_t conf_count(void);
/* The n-th key in the order of lists: the families' settings follow `families`. */
enum conf_key conf_shown(size_t n);

/* `flags`: values of options, by enum conf_key; NULL where none was given. `dir` NULL:
 * $SONDE_CONFIG, else CONF_DIR; a directory that is named must exist. Afterwards
 * value[CONF_FAMILIES] has those that settings enable, too. EXIT_USAGE with the file, the line and,
 * of an unknown key, the one that was probably meant. */
int conf_load(const char *dir, const char *const flags[CONF_KEYS], struct conf *out, struct err *e);
/* One file's bytes, called `name` in messages. Pure. */
int conf_parse(struct conf *c, const char *name, const char *text, size_t len, struct err *e);
/* One value; `origin` as in conf_value. EXIT_USAGE. */
int conf_set(struct conf *c, enum conf_key key, const char *text, const char *origin,
	     struct err *e);
void conf_print(const struct conf *c, bool origin, FILE *out);

/* The options that the settings of a family give its loader, added to argv; how many words:
 * 2 * FAMILY_SETTINGS_MAX at most. Borrowed from `c`. */
size_t conf_family_options(const struct conf *c, const struct probe_family *f, char **argv);
/* Do the two set any setting of the family differently? */
bool conf_family_differs(const struct conf *a, const struct conf *b, const struct probe_family *f);

#endif
