/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb: the description of `sonde VERB`. main parses the command line with the verb's table and the
 * shared tables that `uses` selects, resolves the selection, prints help, and reports errors; the
 * verb only answers.
 *
 * To add a verb: a file verb_NAME.c that defines `const struct verb verb_NAME`, and a line in
 * verbs.c.
 */
#ifndef SONDE_TOOLS_VERB_H
#define SONDE_TOOLS_VERB_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/cli/options.h"
#include "schema/base/err.h"

struct select_args;
struct selection;

enum verb_uses {
	VERB_STORE = 1,  /* --store; verb_call.store is set */
	VERB_JSON = 2,   /* --json, --ndjson, --schema */
	VERB_SELECT = 4, /* range and filters (implies VERB_STORE); verb_call.sel is set and
			    resolved before run */
	VERB_SELECT_WORD =
		8,       /* words before `--` are bare words of the selection, not of the verb */
	VERB_WORDS = 16, /* the verb takes words; without this, words are an error */
	VERB_RANGE_ONLY = 32,    /* with VERB_SELECT: only the range, no filters */
	VERB_OWN_WORD = 64,      /* with VERB_SELECT_WORD: but the first word is the verb's */
	VERB_SELECT_LATER = 128, /* with VERB_SELECT: the verb resolves verb_call.select itself, and
				    gets all words */
	VERB_PAGES = 256,        /* long output goes through a pager (tools/print/pager.h) */
	VERB_WRITES = 1024, /* writes the store: without --store it is the user's own, where other
			       verbs use the system's */
	VERB_PASSES = 4096, /* another program prints its JSON: there is no --ndjson */
	VERB_HOSTS = 2048,  /* works with several stores at once (tools/main.c) */
	VERB_READS = 512    /* only reads the store, so it may run again after a damaged file;
			       VERB_SELECT and VERB_PAGES imply it */
};

struct verb_call {
	const struct verb *verb;
	void *args; /* the verb's own struct, filled by its options */
	const char *
		store; /* folder or .db file, or several (STORE_LIST); never NULL with VERB_STORE */
	const char *hint_store; /* the same if commands in hints must name it, NULL if they find it
				   by default */
	struct selection *sel;  /* NULL without VERB_SELECT, and with VERB_SELECT_LATER */
	const struct select_args *select; /* range and filters as typed; NULL without VERB_SELECT */
	bool json, quiet, wide;
	bool ndjson;  /* json too: rows alone, one a line (tools/print/json.h does it) */
	char **words; /* the verb's own words */
	size_t n_words, n_before_dashes;
	bool dashes; /* `--` was given */
	char **what; /* words that the selection took */
	size_t n_what;
	bool begun; /* set by a verb that prints while it reads: part of the output is printed
		       already */
	int status; /* exit code when run returns 0; EXIT_OK at first */
};

struct verb {
	const char *name;
	const char *now; /* of a word that is still understood, what replaced it: "waits --wakers";
			    else NULL */
	const char
		*summary; /* imperative, lowercase: "draw CPU time as a flame graph, in one file" */
	const char *usage; /* after the name: "[WHAT] [-o FILE]", or "" */
	const char *const
		*examples; /* at least two complete lines without a prompt, NULL-terminated */
	const char *more;  /* last line of the help, or NULL */
	const struct option *options; /* NULL: no options of this verb */
	size_t args_size;
	unsigned uses; /* enum verb_uses */
	/* With VERB_PAGES: whether this call uses the pager; NULL: always. */
	bool (*pages)(const struct verb_call *call);
	/* 0 (exit with call->status), or -errno with `e` filled: main prints it and exits with
	 * e->exit. */
	int (*run)(struct verb_call *call, struct err *e);
};

/* Flush standard output at the end of a verb. `rc` is what the verb would return: an error that has
 * a message in `e` stays; a failed print without one, and a failed flush, become "cannot write
 * standard output". */
int verb_flush(int rc, struct err *e);

/* All verbs, NULL-terminated. */
extern const struct verb *const VERBS[];
/* The same in the order of the help, without those that another one replaced. Each list is
 * NULL-terminated, the last title is NULL. */
struct verb_group {
	const char *title;
	const struct verb *const *verbs;
};
extern const struct verb_group VERB_GROUPS[];
/* NULL: there is no such verb. */
const struct verb *verb_find(const char *name);
/* The tables for its command line: its own, JSON, store, range, filters, common. NULL: not used. */
#define VERB_TABLES 6
void verb_tables(const struct verb *v, const struct option *out[VERB_TABLES]);

extern const struct verb verb_overview, verb_doctor, verb_record, verb_timeline, verb_explain,
	verb_top, verb_ps, verb_containers, verb_completion, verb_flame, verb_stacks, verb_lines,
	verb_heap, verb_report, verb_diff, verb_serve, verb_export, verb_import, verb_sql,
	verb_symbolize, verb_prune, verb_seal, verb_rotate, verb_keep, verb_status, verb_up,
	verb_down, verb_logs, verb_config, verb_pstack, verb_probes, verb_replay, verb_waits,
	verb_events, verb_oom, verb_check, verb_neighbours, verb_wakers, verb_net, verb_disk,
	verb_map, verb_requests, verb_trace, verb_mcp, verb_version, verb_help;

#endif
