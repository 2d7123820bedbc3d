/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-push: sends what the store has to other engines, by a configuration. An outage of the other
 * side costs nothing that the store still has: each target has a cursor, and is asked again after a
 * pause that grows, from 1 s to 5 min, and is never quite the same. Targets have turns: one that is
 * far behind, or slow, does not keep what is new from the others.
 */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "export/push/cursor.h"
#include "export/push/ending.h"
#include "export/push/ending.h"
#include "export/push/round.h"
#include "export/push/secret.h"
#include "export/push/secret.h"
#include "export/push/target.h"
#include "export/state.h"
#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/store/read/reader.h"

#define CONFIG_DEFAULT "/etc/sonde/export.conf"
#define PAUSE_MOST_S   300
#define AGAIN_S        3600

enum what { SEND = 0, ONCE, STATUS, SCHEMA };

struct options {
	const char *config, *store, *state;
	enum what what;
};

static const struct program PROGRAM = {
	.name = "sonde-push",
	.usage = "[options]",
	.about =
		"Sends the store's data to ClickHouse or Pyroscope, or by OTLP. It only reads the store.",
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"config", 0, OPTION_STRING, "FILE", "what to send where (default " CONFIG_DEFAULT ")", OPTION_AT(struct options, config)},
	{"store", 0, OPTION_STRING, "DIR", "store folder (default: as for sonde)", OPTION_AT(struct options, store)},
	{"state", 0, OPTION_STRING, "DIR", "folder of the targets' cursors", OPTION_AT(struct options, state)},
	{"once", 0, OPTION_SET, NULL, "one round, then exit; code 1 if some data was not accepted", OPTION_AT(struct options, what), .min = ONCE},
	{"status", 0, OPTION_SET, NULL, "print how far each target is", OPTION_AT(struct options, what), .min = STATUS},
	{"schema", 0, OPTION_SET, NULL, "print the tables for ClickHouse", OPTION_AT(struct options, what), .min = SCHEMA},
	{0},
};
/* clang-format on */

struct due {
	int64_t at_ns;    /* INT64_MAX: not again */
	uint32_t pause_s; /* 0: the last round was well */
	int64_t said_ns;
	char said[256]; /* why it was not, as it was said then */
};

/* --- rounds --- */

/* Twice the last one, a quarter of it up or down by chance, so that many hosts do not come at once.
 */
static void put_off(struct due *d, uint32_t asked_s)
{
	uint64_t chance = 0;
	int64_t ns;

	if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) < 0)
		chance = (uint64_t)clock_boot_ns();
	d->pause_s = !d->pause_s                   ? 1 :
		     d->pause_s * 2 < PAUSE_MOST_S ? d->pause_s * 2 :
						     PAUSE_MOST_S;
	if (asked_s > d->pause_s)
		d->pause_s = asked_s;
	ns = d->pause_s * NSEC_PER_SEC;
	d->at_ns = clock_boot_ns() + ns * 3 / 4 + (int64_t)(chance % (uint64_t)(ns / 2));
}

/* What is the same as before is said once an hour. */
static void say(struct due *d, const char *what)
{
	if (!strncmp(d->said, what, sizeof(d->said) - 1) &&
	    clock_boot_ns() - d->said_ns < AGAIN_S * NSEC_PER_SEC)
		return;
	log_warn("%s", what);
	d->said_ns = clock_boot_ns();
	snprintf(d->said, sizeof(d->said), "%.255s", what);
}

/* Has more to send, and lets the others have their turn. */
static void turn_ended(struct due *d, const struct target *t, bool more)
{
	if (d->pause_s)
		log_warn("%s: it accepts data again", t->name);
	*d = (struct due){.at_ns = clock_boot_ns() + (more ? 0 : t->every_s * NSEC_PER_SEC)};
}

/* `first`, of --once: what is not the receiver's doing is the program's own end. */
static int send_to(const struct round_where *w, const struct target *t, struct http *h,
		   struct due *d, struct err *first)
{
	struct err e = {0};
	uint32_t retry_s = 0;
	bool more = false, once = first;
	int rc = round_send(w, t, h, &retry_s, &more, &e);

	if (rc) {
		if (once && !first->code && rc != -EAGAIN)
			*first = e;
		else
			say(d, e.what);
		put_off(d, retry_s);
	} else {
		turn_ended(d, t, more);
	}
	if (once && (rc || !more))
		d->at_ns = INT64_MAX;
	return rc;
}

static int64_t first_due_ns(const struct due *due, size_t n)
{
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < n; i++)
		if (due[i].at_ns < first)
			first = due[i].at_ns;
	return first;
}

/* Until the first is due. false: a signal ends it, or nothing more is due. */
static bool wait_due(const struct due *due, size_t n, const sigset_t *ends)
{
	int64_t first = first_due_ns(due, n), left = first - clock_boot_ns();
	struct timespec ts;

	if (first == INT64_MAX)
		return false;
	if (left < 0)
		left = 0;
	ts = (struct timespec){.tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC};
	return sigtimedwait(ends, NULL, &ts) < 0;
}

static bool on_this_host(const char *url)
{
	const char *host = strstr(url, "//") + 2;

	return !strncmp(host, "127.", 4) || !strncmp(host, "[::1]", 5) ||
	       (!strncmp(host, "localhost", 9) && strchr(":/", host[9]));
}

static void secrets_warn(const struct targets *targets)
{
	for (size_t i = 0; i < targets->n; i++) {
		const struct target *t = &targets->items[i];
		const char *path = *t->token_file ? t->token_file : t->password_file;

		if (!*path)
			continue;
		secret_warn(path, t->name);
		if (!strncmp(t->url, "http:", 5) && !on_this_host(t->url))
			log_warn(
				"%s: the secret is sent to %s without TLS: anyone on the path can read it",
				t->name, t->url);
	}
}

static int send_all(const struct options *o, const struct round_where *w,
		    const struct targets *targets, struct err *e)
{
	struct due due[TARGETS_MOST] = {0};
	struct http *h = NULL;
	struct err first = {0};
	sigset_t ends;
	int rc = http_new(&h, e), failed = 0;

	if (rc)
		return rc;
	signal(SIGPIPE, SIG_IGN); /* libcurl's TLS may write to what hung up */
	secrets_warn(targets);
	ending_begin(&ends);
	do {
		for (size_t i = 0; i < targets->n && !ending_asked(); i++)
			if (due[i].at_ns <= clock_boot_ns())
				failed |= send_to(w, &targets->items[i], h, &due[i],
						  o->what == ONCE ? &first : NULL);
	} while (wait_due(due, targets->n, &ends));
	http_free(h);
	failed |= first_due_ns(due, targets->n) != INT64_MAX; /* ended before its end */
	if (first.code)
		*e = first;
	return first.code ? first.code :
	       o->what == ONCE && failed ?
			    err_set(e, -EAGAIN, EXIT_RUNTIME,
				    "some data was not accepted; it will be sent again") :
			    0;
}

static int status(const struct round_where *w, const struct targets *targets, struct err *e)
{
	int64_t now_ts = clock_utc_ns() / NSEC_PER_SEC;
	int rc = 0;

	for (size_t i = 0; !rc && i < targets->n; i++) {
		struct cursor_state c;

		rc = push_cursor_read(w->state, w->store, targets->items[i].name, &c, e);
		if (!rc && !c.sent_ts)
			printf("%-12s nothing sent yet\n", targets->items[i].name);
		else if (!rc)
			printf("%-12s %" PRId64 " s behind, %" PRIu64 " rows sent, %" PRIu64
			       " s missed, %" PRIu64 " refused for good\n",
			       targets->items[i].name, now_ts - c.sent_ts, c.rows, c.missed_s,
			       c.refused);
	}
	return rc;
}

static int schema(const char *store, struct err *e)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	int rc = round_schema(store, "sonde", &out, e);

	if (!rc)
		fputs(strbuf_str(&out), stdout);
	return rc;
}

static int run(const struct options *o, struct err *e)
{
	static struct targets targets;
	char dir[PATH_MAX];
	struct round_where w = {.store = o->store, .state = dir};
	int rc;

	if (o->what == SCHEMA)
		return schema(o->store, e);
	rc = targets_read(o->config, &targets, e);
	if (!rc)
		rc = state_folder(o->state, dir, e);
	if (rc)
		return rc;
	return o->what == STATUS ? status(&w, &targets, e) : send_all(o, &w, &targets, e);
}

int main(int argc, char **argv)
{
	struct options o = {.config = CONFIG_DEFAULT, .store = store_read_dir()};
	struct err e = {0};
	int rc;

	mallopt(M_MMAP_THRESHOLD,
		64 * 1024); /* fixed: large arrays by id, of which little is touched, must not come
			       from the heap, which would be cleared */
	mallopt(M_TRIM_THRESHOLD, 128 * 1024);
	log_init(PROGRAM.name, LOG_LEVEL_WARN);
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	rc = program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, &o}, 1, NULL, &e);
	if (!rc)
		rc = run(&o, &e);
	return program_end(PROGRAM.name, rc, &e);
}
