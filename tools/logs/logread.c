/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/logs/logread.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/tables/alike.h"
#include "tools/select/askrows.h"

const char *const LOGREAD_NAMES[LOGREAD_LEVELS] = {"unknown", "debug", "info",
						   "warning", "error", "fatal"};

static const char RECORDED[] =
	"SELECT min(from_ns) FROM run WHERE family = 'logs' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 HAVING count(*)";
static const char SOURCES[] =
	"SELECT source, container, kind, level, sum(lines), sum(messages), sum(bytes), sum(cuts), sum(iif(burst, lines, 0))"
	" FROM logs WHERE ts BETWEEN ?1 AND ?2 GROUP BY 1, 2, 3, 4";
static const char PATTERNS[] =
	"SELECT source, container, level, pattern, max(sample), sum(messages), min(first_us), max(last_us), max(comm),"
	" iif(count(DISTINCT pid) = 1, max(pid), 0) FROM log_patterns WHERE ts BETWEEN ?1 AND ?2 GROUP BY 1, 2, 3, 4";

struct reading {
	const struct selection *sel;
	const struct logread_ask *ask;
	struct logread *out;
};

static enum log_badness level_of(const char *name)
{
	for (int i = 0; i < LOGREAD_LEVELS; i++)
		if (!strcmp(name, LOGREAD_NAMES[i]))
			return (enum log_badness)i;
	return LOGREAD_UNKNOWN;
}

static bool wants(const struct reading *r, const char *source, const char *container)
{
	struct store_process_row p = select_process_row("", *container ? container : source, "");

	if (r->ask->source && !strstr(source, r->ask->source))
		return false;
	if (!select_is_narrow(r->sel))
		return true;
	p.unit = *container ? "" : source;
	return select_wants_process(r->sel, &p);
}

static void take_run(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const int64_t from_ns = sqlite3_column_int64(st, 0);

	if (!r->out->known || from_ns < r->out->from_ns)
		r->out->from_ns = from_ns;
	r->out->known = true;
}

static void take_run_before(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;

	(void)st;
	r->out->known_before = true;
}

/* ---- sources ---- */

static struct logread_source *source_of(struct logread *l, const char *source,
					const char *container, const char *kind)
{
	struct logread_source *s;

	for (size_t i = 0; i < l->n_sources; i++)
		if (!strcmp(l->sources[i].source, source) &&
		    (!strcmp(l->sources[i].container, container) || !*container ||
		     !*l->sources[i].container))
			return &l->sources[i];
	mem_grow(l->sources, l->n_sources, l->cap_sources);
	s = &l->sources[l->n_sources++];
	*s = (struct logread_source){.source = mem_strdup(source),
				     .container = mem_strdup(container),
				     .kind = mem_strdup(kind)};
	return s;
}

static void take_source(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const char *source = askrows_text(st, 0), *container = askrows_text(st, 1);
	struct logread_source *s;

	if (!wants(r, source, container))
		return;
	s = source_of(r->out, source, container, askrows_text(st, 2));
	s->lines += (uint64_t)sqlite3_column_int64(st, 4);
	s->messages[level_of(askrows_text(st, 3))] += (uint64_t)sqlite3_column_int64(st, 5);
	s->bytes += (uint64_t)sqlite3_column_int64(st, 6);
	s->cuts += (uint64_t)sqlite3_column_int64(st, 7);
	s->burst += (uint64_t)sqlite3_column_int64(st, 8);
}

uint64_t logread_errors(const struct logread_source *s)
{
	return s->messages[LOGREAD_ERROR] + s->messages[LOGREAD_FATAL];
}

static int by_errors(const void *a, const void *b)
{
	const struct logread_source *x = a, *y = b;

	if (logread_errors(x) != logread_errors(y))
		return logread_errors(x) < logread_errors(y) ? 1 : -1;
	if (x->lines != y->lines)
		return x->lines < y->lines ? 1 : -1;
	return strcmp(x->source, y->source);
}

/* ---- patterns ---- */

static bool is_same(const struct logread_pattern *p, const char *source, enum log_badness level,
		    const char *pattern, char general[1024])
{
	if (p->level != level || strcmp(p->source, source) != 0)
		return false;
	*general = 0;
	return !strcmp(p->pattern, pattern) || alike(p->pattern, pattern, 0, general, 1024);
}

static struct logread_pattern *pattern_of(struct logread *l, sqlite3_stmt *st,
					  enum log_badness level)
{
	const char *source = askrows_text(st, 0), *pattern = askrows_text(st, 3);
	struct logread_pattern *p;
	char general[1024];

	for (size_t i = 0; i < l->n_patterns; i++) {
		p = &l->patterns[i];
		if (!is_same(p, source, level, pattern, general))
			continue;
		if (*general) {
			free(p->pattern);
			p->pattern = mem_strdup(general);
		}
		return p;
	}
	mem_grow(l->patterns, l->n_patterns, l->cap_patterns);
	p = &l->patterns[l->n_patterns++];
	*p = (struct logread_pattern){.source = mem_strdup(source),
				      .container = mem_strdup(askrows_text(st, 1)),
				      .level = level,
				      .pattern = mem_strdup(pattern),
				      .sample = mem_strdup(askrows_text(st, 4)),
				      .comm = mem_strdup(askrows_text(st, 8)),
				      .pid = sqlite3_column_int64(st, 9),
				      .first_us = INT64_MAX};
	return p;
}

static void take_pattern(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	enum log_badness level = level_of(askrows_text(st, 2));
	struct logread_pattern *p;
	int64_t first = sqlite3_column_int64(st, 6), last = sqlite3_column_int64(st, 7);

	if (level < r->ask->least || !wants(r, askrows_text(st, 0), askrows_text(st, 1)))
		return;
	p = pattern_of(r->out, st, level);
	p->messages += (uint64_t)sqlite3_column_int64(st, 5);
	p->first_us = first && first < p->first_us ? first : p->first_us;
	p->last_us = last > p->last_us ? last : p->last_us;
	p->pid = p->pid == sqlite3_column_int64(st, 9) ? p->pid : 0;
}

static int by_level(const void *a, const void *b)
{
	const struct logread_pattern *x = a, *y = b;

	if (x->level != y->level)
		return x->level < y->level ? 1 : -1;
	if (x->messages != y->messages)
		return x->messages < y->messages ? 1 : -1;
	return strcmp(x->pattern, y->pattern);
}

/* Of sources that wrote in a burst. */
static void bursts_keep(struct logread *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n_sources; i++)
		if (l->sources[i].burst) {
			struct logread_source keep = l->sources[i];

			l->sources[i] = l->sources[l->n_bursts];
			l->sources[l->n_bursts++] = keep;
		}
	if (l->n_bursts)
		qsort(l->sources, l->n_bursts, sizeof(*l->sources), by_errors);
	for (size_t i = 0; i < l->n_patterns; i++) {
		bool bursts = false;

		for (size_t k = 0; k < l->n_bursts; k++)
			bursts = bursts || !strcmp(l->sources[k].source, l->patterns[i].source);
		if (bursts) {
			struct logread_pattern keep = l->patterns[i];

			l->patterns[i] = l->patterns[n];
			l->patterns[n++] = keep;
		}
	}
	for (size_t i = n; i < l->n_patterns; i++)
		l->patterns[i].messages = 0; /* not shown */
	if (n)
		qsort(l->patterns, n, sizeof(*l->patterns), by_level);
}

/* ---- all ---- */

int logread(const struct selection *sel, const struct logread_ask *ask, struct logread *out,
	    struct err *e)
{
	struct reading r = {.sel = sel, .ask = ask, .out = out};
	const struct askrows_part parts[] = {
		{RECORDED, take_run, &r, {{NULL}, NULL}},
		{SOURCES, take_source, &r, {{NULL}, NULL}},
		{PATTERNS, take_pattern, &r, {{NULL}, NULL}},
	};
	int rc;

	*out = (struct logread){.seconds = (double)(sel->to_ns - sel->from_ns) / NSEC_PER_SEC};
	rc = askrows_each(sel, NULL, parts, ARRAY_SIZE(parts), e);
	if (out->n_sources)
		qsort(out->sources, out->n_sources, sizeof(*out->sources), by_errors);
	if (out->n_patterns)
		qsort(out->patterns, out->n_patterns, sizeof(*out->patterns), by_level);
	if (!rc && ask->burst)
		bursts_keep(out);
	return rc;
}

static void take_before(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	enum log_badness level = level_of(askrows_text(st, 2));
	char general[1024];

	for (size_t i = 0; i < r->out->n_patterns; i++)
		if (is_same(&r->out->patterns[i], askrows_text(st, 0), level, askrows_text(st, 3),
			    general))
			r->out->patterns[i].before += (uint64_t)sqlite3_column_int64(st, 5);
}

int logread_before(const struct selection *sel, struct logread *l, struct err *e)
{
	struct reading r = {.sel = sel, .out = l};
	const struct askrows_part parts[] = {{RECORDED, take_run_before, &r, {{NULL}, NULL}},
					     {PATTERNS, take_before, &r, {{NULL}, NULL}}};

	return askrows_each(sel, NULL, parts, ARRAY_SIZE(parts), e);
}

void logread_release(struct logread *l)
{
	for (size_t i = 0; i < l->n_sources; i++) {
		free(l->sources[i].source);
		free(l->sources[i].container);
		free(l->sources[i].kind);
	}
	for (size_t i = 0; i < l->n_patterns; i++) {
		free(l->patterns[i].source);
		free(l->patterns[i].container);
		free(l->patterns[i].pattern);
		free(l->patterns[i].sample);
		free(l->patterns[i].comm);
	}
	free(l->sources);
	free(l->patterns);
	*l = (struct logread){0};
}
