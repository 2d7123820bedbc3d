/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde: asks the store. stdout is data, stderr is talk. One file a verb; this one finds the verb,
 * parses its command line by the tables, resolves the selection, and prints errors.
 */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cli/options.h"
#include "schema/base/cli/suggest.h"
#include "schema/base/err.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/read/reader.h"
#include "tools/cli/verb.h"
#include "tools/print/json.h"
#include "tools/print/schema/jsonschema.h"
#include "tools/print/pager.h"
#include "tools/print/reading.h"
#include "tools/print/term.h"
#include "tools/select/select.h"
#include "tools/select/filter.h"
#include "tools/select/unstored.h"
#include "tools/verbs/help.h"
#include "tools/verbs/retry.h"

/*
 * What --store names: one store or several. The option may be repeated, and its value may
 * be a pattern (* ? [ ]) if nothing has exactly that name.
 */

struct named {
	struct named_one {
		char *path;
		bool there, is_file;
		struct stat st, folder; /* folder: that a file is in; zeroed: not known */
	} * of;
	size_t n, cap;
};

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Of two that are there: has `a` all of `b`, since it is the same folder or file under any name, or
 * the folder that this file is in? */
static bool has_all(const struct named_one *a, const struct named_one *b)
{
	return is_same(&a->st, &b->st) || (b->is_file && is_same(&a->st, &b->folder));
}

static struct named_one look_at(const char *path)
{
	struct named_one x = {.path = mem_strdup(path)};
	char folder[PATH_MAX];

	x.there = stat(path, &x.st) == 0;
	x.is_file = x.there && S_ISREG(x.st.st_mode);
	snprintf(folder, sizeof(folder), "%s", path);
	if (x.is_file && stat(dirname(folder), &x.folder) < 0)
		x.folder = (struct stat){0};
	return x;
}

static void drop(struct named_one *x)
{
	log_warn("--store %s is named twice, it counts once", x->path);
	free(x->path);
}

/* A file may be named before its folder is, or after. */
static void add(struct named *x, const char *path)
{
	struct named_one one = look_at(path);
	size_t kept = 0;

	for (size_t i = 0; one.there && i < x->n; i++)
		if (x->of[i].there && has_all(&x->of[i], &one)) {
			drop(&one);
			return;
		}
	for (size_t i = 0; i < x->n; i++) {
		if (one.there && x->of[i].there && has_all(&one, &x->of[i]))
			drop(&x->of[i]);
		else
			x->of[kept++] = x->of[i];
	}
	x->n = kept;
	mem_grow(x->of, x->n, x->cap);
	x->of[x->n++] = one;
}

static int add_pattern(struct named *out, const char *pattern, struct err *e)
{
	glob_t g = {0};
	int rc = glob(pattern, 0, NULL, &g);

	for (size_t i = 0; !rc && i < g.gl_pathc; i++)
		add(out, g.gl_pathv[i]);
	globfree(&g);
	return rc ? err_set(e, -ENOENT, EXIT_STORE, "there is no store at %.300s", pattern) : 0;
}

/* Joins them with STORE_LIST (schema/store/read/reader.h) into `out`; "" if none was given.
 * EXIT_STORE if a pattern matches nothing. */
static int stores_join(const struct option_list *given, struct strbuf *out, struct err *e)
{
	struct named x = {0};
	int rc = 0;

	for (size_t i = 0; !rc && i < given->n; i++) {
		const char *path = given->items[i];

		if (strchr(path, STORE_LIST))
			rc = err_set(e, -EINVAL, EXIT_USAGE,
				     "--store: a path cannot contain a line feed");
		else if (strpbrk(path, "*?[") && access(path, F_OK) < 0)
			rc = add_pattern(&x, path, e);
		else
			add(&x, path);
	}
	for (size_t i = 0; i < x.n; i++) {
		if (i)
			strbuf_addch(out, STORE_LIST);
		strbuf_addstr(out, x.of[i].path);
		free(x.of[i].path);
	}
	free(x.of);
	return rc;
}

/* Does it name several stores? */
static bool stores_several(const char *store)
{
	return strchr(store, STORE_LIST) != NULL;
}

/* Words of a verb that takes none, or more bare words than one. */
static int check_words(const struct verb *v, const struct option_words *w, struct err *e)
{
	size_t allowed = v->uses & VERB_OWN_WORD                   ? w->n_before_dashes :
			 v->uses & (VERB_WORDS | VERB_SELECT_WORD) ? w->n :
								     0;

	if (w->n <= allowed)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "sonde %s takes no '%.100s'", v->name, w->items[allowed]);
	if (!strcmp(v->name, "pstack") &&
	    strspn(w->items[allowed], "0123456789") == strlen(w->items[allowed]))
		err_fix(e, "sonde pstack -p %s", w->items[allowed]);
	else
		err_fix(e, "sonde %s --help", v->name);
	return -EINVAL;
}

static int run_selected(struct verb_call *call, const struct select_args *args,
			const struct option_words *words, struct err *e)
{
	const struct verb *v = call->verb;
	size_t own = v->uses & VERB_OWN_WORD && words->n_before_dashes;
	const bool later = v->uses & VERB_SELECT_LATER;
	size_t for_selection =
		v->uses & VERB_SELECT_WORD && !later ? words->n_before_dashes - own : 0;
	int rc;

	call->words = words->items + (own ? 0 : for_selection);
	call->n_words = words->n - for_selection;
	call->n_before_dashes = words->n_before_dashes - for_selection;
	call->dashes = words->dashes;
	call->what = words->items + own;
	call->n_what = for_selection;
	call->select = v->uses & VERB_SELECT ? args : NULL;
	call->sel = NULL;
	call->status = EXIT_OK;
	if (v->uses & VERB_SELECT && !later) {
		rc = select_new(args, call->store, words->items + own, for_selection, call->quiet,
				&call->sel, e);
		if (rc)
			return rc;
	}
	if (v->uses & VERB_PAGES && (!v->pages || v->pages(call)))
		pager_start();
	rc = v->run(call, e);
	select_free(call->sel);
	return rc;
}

/* A damaged file costs itself, not the answer. */
static int run_until_answered(struct verb_call *call, const struct select_args *args,
			      const struct option_words *words, struct err *e)
{
	bool reads = call->verb->uses & (VERB_SELECT | VERB_PAGES | VERB_READS);
	int rc;

	for (int tries = 0;; tries++) {
		rc = run_selected(call, args, words, e);
		if (!rc || !reads || call->begun || !retry_worth(call->store, tries, e))
			break;
	}
	pager_end();
	return rc;
}

/* A hint: the store that was not asked has newer recordings. */
static void say_newer(const char *store)
{
	const char *newer = store_newer(store);

	if (newer)
		fprintf(stderr, "note: this is %s; newer recordings are in %s: --store %s\n", store,
			newer, newer);
}

/* The store that --store names, else the default one. */
static int find_store(struct verb_call *call, const struct option_list *given,
		      struct strbuf *joined, struct err *e)
{
	const struct verb *v = call->verb;
	int rc = stores_join(given, joined, e);

	if (rc)
		return rc;
	call->store = given->n              ? strbuf_str(joined) :
		      v->uses & VERB_WRITES ? store_default_dir() :
					      store_read_dir();
	call->hint_store = strcmp(call->store, store_read_dir()) ? call->store : NULL;
	if (!stores_several(call->store))
		return 0;
	store_name_hosts(true);
	if (v->uses & VERB_HOSTS)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "sonde %s reads one store at a time", v->name);
	err_fix(e,
		"these read several: sonde containers, ps, flame, stacks, lines, heap, map, diff, export or sql");
	return -EINVAL;
}

/* --with names lists of this verb, and they are in its JSON alone. */
static int take_lists(const struct verb *v, const struct common_args *common, struct err *e)
{
	const char *lists = jsonshape_lists(v->name);

	if (!common->with)
		return 0;
	if (!common->json) {
		err_set(e, -EINVAL, EXIT_USAGE, "--with names lists of the JSON: it needs --json");
		err_fix(e, "sonde %s --json --with %.100s", v->name, common->with);
		return -EINVAL;
	}
	for (const char *at = common->with; *at; at += strcspn(at, ","), at += *at == ',') {
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ","), at);
		if (!json_names_has(lists, name)) {
			err_set(e, -EINVAL, EXIT_USAGE, "sonde %s has no list '%s'", v->name, name);
			err_fix(e, "sonde %s --json --with %s", v->name, lists);
			return -EINVAL;
		}
	}
	json_ask(common->with);
	return 0;
}

/* How the answer is printed. */
static int take_form(const struct verb *v, const struct common_args *common, struct verb_call *call,
		     struct err *e)
{
	call->json = common->json || common->ndjson;
	call->ndjson = common->ndjson;
	call->quiet = common->quiet;
	call->wide = common->wide;
	if (common->json && common->ndjson)
		return err_set(e, -EINVAL, EXIT_USAGE, "--json and --ndjson cannot be combined");
	if (common->ndjson && v->uses & VERB_PASSES) {
		err_set(e, -EINVAL, EXIT_USAGE, "sonde %s prints one JSON document: --json",
			v->name);
		err_fix(e, "sonde %s --json | jq -c '.rows[]'", v->name);
		return -EINVAL;
	}
	if (common->ndjson)
		json_as_lines();
	if (common->no_pager)
		pager_forbid();
	if (common->quiet)
		reading_quiet();
	return take_lists(v, common, e);
}

/* The verb that text which begins with "sonde VERB" names, if it reads or writes a store; *len: how
 * long both words are. */
static bool names_store_verb(const char *at, size_t *len)
{
	const char *word = at + strlen("sonde ");
	const size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz");

	*len = (size_t)(word - at) + n;
	for (const struct verb *const *v = VERBS; *v; v++)
		if (strlen((*v)->name) == n && !strncmp((*v)->name, word, n))
			return (*v)->uses & (VERB_STORE | VERB_SELECT) &&
			       !isalnum((unsigned char)word[n]) && strncmp(word + n, " ...", 4);
	return false;
}

/* The commands of a fix are about the store that was asked. */
static void fix_store(struct err *e, const char *store)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	size_t len;

	if (strstr(e->fix, "--store"))
		return;
	for (const char *at = e->fix; *at; at += len) {
		const bool begins = (at == e->fix || strchr(" \n('\"`", at[-1])) &&
				    !strncmp(at, "sonde ", strlen("sonde "));
		const bool named = begins && names_store_verb(at, &len);

		len = named ? len : 1;
		strbuf_add(&out, at, len);
		if (!named)
			continue;
		strbuf_addstr(&out, " --store ");
		filter_word(store, &out);
	}
	if (out.len < sizeof(e->fix))
		memcpy(e->fix, strbuf_str(&out), out.len + 1);
}

static int run_verb(const struct verb *v, int argc, char **argv, struct err *e, int *status)
{
	struct common_args common = {0};
	struct select_args select = {0};
	struct strbuf stores cleanup_strbuf = STRBUF_INIT;
	struct option_words words;
	void *args = mem_alloc(v->args_size ? v->args_size : 1);
	void *const values[VERB_TABLES] = {args, &common, &common, &select, &select, &common};
	const struct option *tables[VERB_TABLES];
	struct option_set sets[VERB_TABLES];
	const size_t n_sets = VERB_TABLES;
	struct verb_call call = {.verb = v, .args = args};
	int rc;

	verb_tables(v, tables);
	for (size_t i = 0; i < n_sets; i++)
		sets[i] = (struct option_set){tables[i], values[i]};
	rc = options_parse(argc, argv, sets, n_sets, &words, e);
	if (rc) {
		err_fix(e, "sonde %s --help", v->name);
	} else if (common.help) {
		help_verb(v, stdout);
	} else if (common.schema) {
		rc = jsonschema_print(v->name, stdout);
	} else if (term_set_color(common.color)) {
		rc = err_set(e, -EINVAL, EXIT_USAGE,
			     "--color takes auto, always or never, not '%.100s'", common.color);
	} else {
		rc = find_store(&call, &common.store, &stores, e);
		if (!rc && !common.store.n && !common.quiet && !(v->uses & VERB_WRITES) &&
		    v->uses & (VERB_STORE | VERB_SELECT))
			say_newer(call.store);
		if (!rc)
			rc = take_form(v, &common, &call, e);
		if (!rc && v->now && !call.quiet && !call.json)
			fprintf(stderr, "note: sonde %s is now: sonde %s\n", v->name, v->now);
		if (!rc)
			rc = check_words(v, &words, e);
		if (!rc)
			rc = run_until_answered(&call, &select, &words, e);
	}
	*status = call.status;
	if (rc && e->exit == EXIT_NOTHING && v->uses & VERB_SELECT)
		unstored_say(&select, call.store, e);
	if (rc && e->exit == EXIT_USAGE && !e->fix[0])
		err_fix(e, "sonde %s --help", v->name);
	if (rc && call.hint_store && e->exit != EXIT_USAGE)
		fix_store(e, call.hint_store);
	options_release(sets, n_sets, &words);
	free(args);
	return rc;
}

/* What people call something that a verb does. */
static const struct {
	const char *word, *typed;
} MEANT[] = {
	{"cpu", "top"},          {"memory", "heap"},       {"mem", "heap"},
	{"io", "disk"},          {"disks", "disk"},        {"files", "disk --files"},
	{"processes", "ps"},     {"network", "net"},       {"connections", "net"},
	{"services", "map"},     {"docker", "containers"}, {"locks", "waits"},
	{"offcpu", "waits"},     {"latency", "requests"},  {"http", "requests"},
	{"slow", "explain"},     {"why", "explain"},       {"profile", "flame"},
	{"flamegraph", "flame"}, {"query", "sql"},         {"recordings", "status"},
	{"list", "status"},      {"start", "up"},          {"stop", "down"},
	{"web", "serve"},
};

static bool meant_say(const char *name, struct strbuf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(MEANT); i++)
		if (!strcmp(name, MEANT[i].word)) {
			strbuf_addf(out, "; did you mean '%s'?", MEANT[i].typed);
			return true;
		}
	return false;
}

static int no_such_verb(const char *name, struct err *e)
{
	struct strbuf hint cleanup_strbuf = STRBUF_INIT;
	struct suggest near;

	suggest_init(&near, name);
	for (const struct verb *const *v = VERBS; *v; v++)
		suggest_add(&near, (*v)->name);
	if (!meant_say(name, &hint))
		suggest_say(&near, &hint, "");
	err_set(e, -EINVAL, EXIT_USAGE, "there is no verb '%.100s'%s", name, strbuf_str(&hint));
	err_fix(e, "sonde help");
	return -EINVAL;
}

/* Is there a file of a store? One that may not be read counts: the error says why. */
static bool store_has_any(const char *store)
{
	struct store_segment_info *segments = NULL;
	size_t n = 0;
	int rc = store_segments(store, 0, INT64_MAX, &segments, &n, NULL);

	free(segments);
	return rc ? rc != -ENOENT : n > 0;
}

/* `sonde`: the overview; where nothing is recorded yet, what to type first. */
static int run_overview(int argc, char **argv, const struct common_args *common, struct err *e,
			int *status)
{
	const char *store = common->store.n ? common->store.items[0] : store_read_dir();
	int rc;

	if (!store_has_any(store)) {
		help_summary(store, stdout);
		return 0;
	}
	rc = run_verb(&verb_overview, argc, argv, e, status);
	if (rc && e->exit == EXIT_NOTHING && argc == 1) {
		*e = (struct err){0};
		help_summary(store, stdout);
		return 0;
	}
	return rc;
}

/* What comes before any verb: `sonde`, `sonde --help`, `sonde --version`, `sonde --last 1h`. */
static int run_bare(int argc, char **argv, struct err *e, int *status)
{
	struct {
		struct common_args common;
		struct select_args select;
		bool version;
	} args = {0};
	static const struct option version_option[] = {
		{.name = "version", .letter = 'V', .type = OPTION_FLAG}, {0}};
	const struct option_set sets[] = {{version_option, &args.version},
					  {COMMON_OPTIONS, &args.common},
					  {STORE_OPTIONS, &args.common},
					  {JSON_OPTIONS, &args.common},
					  {SELECT_RANGE_OPTIONS, &args.select}};
	const size_t n_sets = sizeof(sets) / sizeof(*sets);
	struct option_words words;
	char *version_argv[] = {argv[0], NULL};
	int rc = options_parse(argc, argv, sets, n_sets, &words, e);

	if (rc)
		err_fix(e, "sonde help");
	else if (words.n)
		rc = err_set(e, -EINVAL, EXIT_USAGE, "the verb comes first: sonde %.100s ...",
			     words.items[0]);
	else if (args.version)
		rc = run_verb(&verb_version, 1, version_argv, e, status);
	else if (args.common.help)
		help_all(stdout);
	else
		rc = run_overview(argc, argv, &args.common, e, status);
	options_release(sets, n_sets, &words);
	return rc;
}

static int run(int argc, char **argv, struct err *e, int *status)
{
	const struct verb *v;

	if (argc < 2 || argv[1][0] == '-')
		return run_bare(argc, argv, e, status);
	v = verb_find(argv[1]);
	return v ? run_verb(v, argc - 1, argv + 1, e, status) : no_such_verb(argv[1], e);
}

/* `sonde ps | head`: a write to standard output failed because the reader has all it wanted and is
 * gone. */
static bool reader_left(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

	return ferror(stdout) && poll(&out, 1, 0) == 1 && out.revents & POLLERR;
}

int main(int argc, char **argv)
{
	struct err e = {0};
	int status = EXIT_OK, rc;

	setlocale(LC_CTYPE, "");
	if (MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
	mem_use_huge_pages();
	sqlite3_config(
		SQLITE_CONFIG_MEMSTATUS,
		0); /* it is not used, and threads would wait for each other at each allocation */
	log_init("sonde", LOG_LEVEL_WARN);
	signal(SIGPIPE, SIG_IGN); /* `sonde stacks | head`: the write fails, see reader_left */
	rc = run(argc, argv, &e, &status);
	if (rc && (!e.exit || e.exit == EXIT_RUNTIME) && reader_left())
		return status;
	if (rc)
		return err_report(&e, "sonde");
	if ((fflush(stdout) || ferror(stdout)) && errno != EPIPE) {
		fprintf(stderr, "sonde: cannot write the answer: %s\n", strerror(errno));
		return EXIT_RUNTIME;
	}
	return status;
}
