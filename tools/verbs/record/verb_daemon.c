/* SPDX-License-Identifier: Apache-2.0 */
/* up, down, config: commands to sonded, the supervisor that records continuously. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/cli/suggest.h"
#include "schema/families/families.h"
#include "schema/base/mem.h"
#include "schema/base/sibling.h"
#include "schema/base/strbuf.h"
#include "schema/base/typed.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"
#include "tools/record/daemon.h"

#define UP_LOOKS 1200 /* 60 s */

struct family_args {
	const char *families;
};

static const struct option FAMILY_OPTIONS[] = {
	{.name = "families",
	 .type = OPTION_STRING,
	 .arg = "LIST",
	 .help = "any of cpu, offcpu, mem, goheap, host, disk, gpu, scrape, net, l7, probe, logs, java",
	 .offset = offsetof(struct family_args, families)},
	{0},
};

/* Turns families given as words, as comma-separated lists or by --families into single words, which
 * live as long as `text`. */
static void words_split(struct verb_call *call, struct strbuf *text, char ***words)
{
	const struct family_args *a = call->args;
	size_t n = 0, cap = 0;
	char *rest = NULL;

	for (size_t i = 0; i < call->n_words; i++)
		strbuf_addf(text, "%s,", call->words[i]);
	if (a->families)
		strbuf_addf(text, "%s", a->families);
	for (char *w = text->len ? strtok_r(text->buf, ", ", &rest) : NULL; w;
	     w = strtok_r(NULL, ", ", &rest)) {
		mem_grow(*words, n, cap);
		(*words)[n++] = w;
	}
	call->words = *words;
	call->n_words = n;
}

/* Checks that all words are families before any is started; an error suggests the probable one. */
static int words_are_families(const struct verb_call *call, const char *verb, struct err *e)
{
	struct strbuf said cleanup_strbuf = STRBUF_INIT;
	struct suggest n;

	for (size_t i = 0; i < call->n_words; i++) {
		if (family_named(call->words[i]))
			continue;
		suggest_init(&n, call->words[i]);
		for (const struct probe_family *f = FAMILIES; f->name; f++)
			suggest_add(&n, f->name);
		for (const struct probe_family *f = FAMILIES; f->name; f++)
			strbuf_addf(&said, "%s%s", f == FAMILIES ? "" : ", ", f->name);
		suggest_say(&n, &said, "");
		err_set(e, -EINVAL, EXIT_USAGE, "unknown family '%.40s' (known: %.150s)",
			call->words[i], strbuf_str(&said));
		err_fix(e, "sonde %s %s", verb, n.n ? n.best[0] : "cpu");
		return -EINVAL;
	}
	return 0;
}

static int with_families(struct verb_call *call, const char *verb,
			 int (*run)(struct verb_call *call, struct err *e), struct err *e)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char **typed = call->words, **words = NULL;
	size_t n_typed = call->n_words;
	int rc;

	words_split(call, &text, &words);
	rc = words_are_families(call, verb, e);
	if (!rc)
		rc = run(call, e);
	call->words = typed;
	call->n_words = n_typed;
	free(words);
	return rc;
}

/* --- up --- */

static json_t *request(const char *what, const struct verb_call *call)
{
	json_t *o = json_pack("{s:s}", "do", what), *list = json_array();

	for (size_t i = 0; i < call->n_words; i++)
		json_array_append_new(list, json_string(call->words[i]));
	json_object_set_new(o, "families", list);
	return o;
}

/* If systemd runs and knows sonded's unit, it has to start it. */
static bool systemd_knows(void)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	char *argv[] = {(char *)"/usr/bin/systemctl", (char *)"show",
			(char *)"--property=LoadState", (char *)"sonded.service", NULL};
	int status = 0;

	return access("/run/systemd/system", F_OK) == 0 && access(argv[0], X_OK) == 0 &&
	       !helper_output(argv, &out, &status, NULL) &&
	       strstr(strbuf_str(&out), "LoadState=loaded");
}

/* What `sonde status` says about a service. */
static const char *told(const json_t *service, const char *key)
{
	return json_string_value(json_object_get(service, key)) ?: "";
}

static bool is_asked(const struct verb_call *call, const char *name)
{
	for (size_t i = 0; i < call->n_words; i++)
		if (!strcmp(call->words[i], name))
			return true;
	return !call->n_words && strcmp(name, "maps");
}

struct began {
	unsigned int recording, failed, open; /* number of requested families */
	struct err first;                     /* the first failure */
};

static bool is_failing(const json_t *service)
{
	return json_is_true(json_object_get(service, "failing"));
}

/* The store has the beginning of its data. */
static bool is_recording(const json_t *service)
{
	const json_t *in_store = json_object_get(service, "in_store");

	/* a sonded from before an upgrade does not tell the latter */
	return !strcmp(told(service, "state"), "running") && (!in_store || json_is_true(in_store));
}

static void describe(const json_t *service, struct err *e)
{
	json_int_t code = json_integer_value(json_object_get(service, "exit"));
	const char *store_error = told(service, "store_error"), *fix = told(service, "fix");

	if (*told(service, "why"))
		err_set(e, -EIO, code > 0 ? (enum sonde_exit)code : EXIT_RUNTIME,
			"sonde-%s does not record: %s", told(service, "name"),
			told(service, "why"));
	else if (*store_error)
		err_set(e, -EIO, EXIT_STORE,
			"sonde-%s does not record: the store cannot be written (%s)",
			told(service, "name"), store_error);
	else
		err_set(e, -EIO, EXIT_RUNTIME, "sonde-%s does not record: it has not begun yet",
			told(service, "name"));
	err_fix(e, "%s",
		*fix ? fix : "sonde status    and    sonde status --log    tell how it goes on");
}

/* `late`: what has not begun by now has failed. */
static void count_began(const struct verb_call *call, const json_t *services, bool say, bool late,
			struct began *b)
{
	const json_t *maps = json_array_get(services, 0), *s;
	size_t i;

	*b = (struct began){0};
	json_array_foreach (services, i, s) {
		const json_t *why = is_failing(maps) ? maps : s;
		struct err e = {0};

		if (!is_asked(call, told(s, "name")))
			continue;
		if (is_recording(s)) {
			b->recording++;
			continue;
		}
		if (!is_failing(why) && !late) {
			b->open += call->n_words || strcmp(told(s, "state"), "off");
			continue;
		}
		if (!is_failing(why) && !call->n_words && !strcmp(told(s, "state"), "off"))
			continue;
		describe(why, &e);
		if (!b->failed++)
			b->first = e;
		if (say)
			err_report(&e, "sonde");
	}
}

/* Waits until each requested family records or has failed. Reports those that failed; the first of
 * them gives call->status, or the error if none records. */
static int await_began(struct verb_call *call, struct err *e)
{
	struct began b = {.open = 1};
	json_t *status = NULL;
	int rc = 0;

	for (int i = 0; b.open && !rc && i < UP_LOOKS; i++) {
		json_decref(status);
		status = NULL;
		rc = daemon_ask(call->store, json_pack("{s:s}", "do", "status"), &status, e);
		count_began(call, json_object_get(status, "services"), false, i + 1 == UP_LOOKS,
			    &b);
		if (b.open)
			usleep(50000);
	}
	if (!rc && b.failed == 1 && !b.recording) {
		rc = b.first.code;
		if (e)
			*e = b.first;
	} else if (!rc && b.failed) {
		count_began(call, json_object_get(status, "services"), true, true, &b);
		call->status = b.first.exit;
	}
	json_decref(status);
	return rc;
}

/* Of the families that were asked for, those that did not record in `before`: with commas, or
 * empty. */
static void not_recorded(const struct verb_call *call, const json_t *before, struct strbuf *out)
{
	const json_t *s;
	size_t i;

	for (size_t k = 0; k < call->n_words; k++) {
		bool recorded = false;

		json_array_foreach (json_object_get(before, "services"), i, s)
			recorded |= !strcmp(told(s, "name"), call->words[k]) && is_recording(s);
		if (!recorded)
			strbuf_addf(out, "%s%s", out->len ? ", " : "", call->words[k]);
	}
}

static bool records_any(const char *store)
{
	json_t *status = NULL, *s;
	bool any = false;
	size_t i;

	if (daemon_ask(store, json_pack("{s:s}", "do", "status"), &status, NULL))
		return false;
	json_array_foreach (json_object_get(status, "services"), i, s)
		any |= strcmp(told(s, "name"), "maps") && is_recording(s);
	json_decref(status);
	return any;
}

/* Root's recordings before this one, in a folder that has become a user's, would keep that user's
 * sonded from recording. */
static void mend_owner(const char *store)
{
	char path[PATH_MAX];
	char *argv[] = {path, (char *)"--mend", (char *)"--store", (char *)store, NULL};
	int status;

	if (geteuid() == 0 && !sibling_find("sonded", path, NULL))
		helper_run(argv, &status, NULL);
}

/* If systemd started sonded, queries the outcome; otherwise sonded has already reported it. */
static int start(struct verb_call *call, struct err *e)
{
	struct strbuf families cleanup_strbuf = STRBUF_INIT;
	char path[PATH_MAX];
	char *argv[8] = {path, (char *)"--background", (char *)"--store", (char *)call->store};
	char *systemd[] = {(char *)"/usr/bin/systemctl", (char *)"start", (char *)"sonded", NULL};
	char *stop[] = {(char *)"/usr/bin/systemctl", (char *)"stop", (char *)"sonded", NULL};
	int rc, ended;

	if (!call->n_words && !getenv("SONDE_STORE") && !strcmp(call->store, "/var/lib/sonde") &&
	    systemd_knows()) {
		rc = helper_run(systemd, &call->status, e);
		if (!rc && !call->status)
			rc = await_began(call, e);
		if ((rc || call->status) && !records_any(call->store))
			helper_run(stop, &ended, NULL);
		return rc;
	}
	rc = sibling_find("sonded", path, e);
	for (size_t i = 0; i < call->n_words; i++)
		strbuf_addf(&families, "%s%s", i ? "," : "", call->words[i]);
	if (call->n_words) {
		argv[4] = (char *)"--families";
		argv[5] = (char *)strbuf_str(&families);
	}
	return rc ? rc : helper_run(argv, &call->status, e);
}

static int begin(struct verb_call *call, struct err *e)
{
	const char *by = call->hint_store ? " --store " : "",
		   *store = call->hint_store ? call->hint_store : "";
	struct strbuf added cleanup_strbuf = STRBUF_INIT;
	json_t *answer = NULL, *before = NULL;
	struct err why = {0};
	int rc;

	mend_owner(call->store);
	if (!daemon_ask(call->store, json_pack("{s:s}", "do", "status"), &before, NULL))
		not_recorded(call, before, &added);
	json_decref(before);
	rc = daemon_ask(call->store, request("up", call), &answer, &why);

	if (rc == -ENOENT) {
		rc = start(call, e);
		if (!rc && !call->quiet && (!call->status || records_any(call->store)))
			fprintf(stderr,
				"recording into %s%s\nnext:  %s status%s%s      %s flame --last 5m%s%s      in a browser: %s serve%s%s\n",
				call->store, call->status ? ", but not all of it" : "",
				typed_sonde(false), by, store, typed_sonde(false), by, store,
				typed_sonde(false), by, store);
		return rc;
	}
	json_decref(answer);
	if (rc && e)
		*e = why;
	if (rc)
		return rc;
	rc = await_began(call, e);
	if (!rc && !call->status && !call->quiet)
		fprintf(stderr, "sonded already records into %s%s%s\n", call->store,
			added.len ? "; now also " : "", strbuf_str(&added));
	return rc;
}

static int up_run(struct verb_call *call, struct err *e)
{
	return with_families(call, "up", begin, e);
}

static const char *const UP_EXAMPLES[] = {"sudo sonde up", "sudo sonde up cpu offcpu", NULL};

const struct verb verb_up = {
	.name = "up",
	.summary = "record continuously in the background (sonded)",
	.usage = "[FAMILY...]",
	.examples = UP_EXAMPLES,
	.options = FAMILY_OPTIONS,
	.args_size = sizeof(struct family_args),
	.uses = VERB_STORE | VERB_WORDS | VERB_WRITES,
	.run = up_run,
};

/* --- down --- */

static int end(struct verb_call *call, struct err *e)
{
	json_t *answer = NULL, *status = NULL;
	int rc;

	if (call->n_words) {
		rc = daemon_ask(call->store, request("down", call), &answer, e);
		json_decref(answer);
		for (size_t i = 0; !rc && !call->quiet && i < call->n_words; i++)
			fprintf(stderr, "%s%s%s", i ? ", " : "", call->words[i],
				i + 1 < call->n_words ? "" : ": not recorded any more\n");
		return rc;
	}
	rc = daemon_ask(call->store, request("stop", call), &answer, e);
	json_decref(answer);
	if (rc == -ENOENT)
		err_fix(e,
			"sonde status shows what is still running; for another store: --store DIR");
	/* sonded answers until its children have ended; it removes its socket last */
	for (int i = 0; !rc && i < 100 &&
			!daemon_ask(call->store, json_pack("{s:s}", "do", "status"), &status, NULL);
	     i++) {
		json_decref(status);
		usleep(50000);
	}
	if (!rc && !call->quiet)
		fprintf(stderr, "stopped; what was recorded stays in %s\n", call->store);
	return rc;
}

static int down_run(struct verb_call *call, struct err *e)
{
	return with_families(call, "down", end, e);
}

static const char *const DOWN_EXAMPLES[] = {"sudo sonde down", "sudo sonde down offcpu", NULL};

const struct verb verb_down = {
	.name = "down",
	.summary = "stop the background recorder, or some of its families",
	.usage = "[FAMILY...]",
	.examples = DOWN_EXAMPLES,
	.options = FAMILY_OPTIONS,
	.args_size = sizeof(struct family_args),
	.uses = VERB_STORE | VERB_WORDS,
	.run = down_run,
};

/* --- config --- */

struct config_args {
	bool origin;
};

static int config_run(struct verb_call *call, struct err *e)
{
	const struct config_args *a = call->args;
	const char *what = call->n_words == 1 ? call->words[0] : "";
	char path[PATH_MAX];
	char *argv[4] = {path, (char *)"--show-config", a->origin ? (char *)"--origin" : NULL,
			 NULL};
	int rc;

	if (strcmp(what, "show") && strcmp(what, "check")) {
		err_set(e, -EINVAL, EXIT_USAGE, "config needs one word: show or check");
		err_fix(e, "sonde config show --origin");
		return -EINVAL;
	}
	if (*what == 'c')
		argv[1] = (char *)"--check-config";
	rc = sibling_find("sonded", path, e);
	return rc ? rc : helper_run(argv, &call->status, e);
}

static const struct option CONFIG_OPTIONS[] = {
	{.name = "origin",
	 .type = OPTION_FLAG,
	 .help = "also show where each value comes from",
	 .offset = offsetof(struct config_args, origin)},
	{0},
};
static const char *const CONFIG_EXAMPLES[] = {"sonde config show --origin", "sonde config check",
					      NULL};

const struct verb verb_config = {
	.name = "config",
	.summary = "show sonded's settings, and where each comes from",
	.usage = "show|check [--origin]",
	.examples = CONFIG_EXAMPLES,
	.options = CONFIG_OPTIONS,
	.args_size = sizeof(struct config_args),
	.uses = VERB_WORDS,
	.run = config_run,
};
