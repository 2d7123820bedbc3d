/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/logs/logprint.h"

#include <string.h>

#include "schema/base/clock.h"
#include "tools/print/json.h"
#include "tools/print/row.h"
#include "tools/print/when.h"

static void source_row(struct row *o, const struct logread_source *s)
{
	json_t *levels = o->json ? json_object() : NULL;

	row_text(o, "WHO", TABLE_MIDDLE, "source", s->source);
	row_word(o, "READ FROM", TABLE_SPARE, "kind", s->kind);
	row_text(o, NULL, TABLE_LEFT, "container", s->container);
	row_count(o, "LINES", TABLE_RIGHT, "lines", s->lines, true);
	row_bytes(o, "SIZE", TABLE_RIGHT, "bytes", s->bytes, true);
	row_count(o, "ERRORS", TABLE_RIGHT, "errors", logread_errors(s), true);
	row_count(o, "WARNINGS", TABLE_RIGHT, "warnings", s->messages[LOGREAD_WARNING], true);
	row_count(o, "IN A BURST", TABLE_SPARE_RIGHT, "burst_lines", s->burst, true);
	row_count(o, "CUTS", TABLE_SPARE_RIGHT, "cuts", s->cuts, true);
	for (int i = 0; levels && i < LOGREAD_LEVELS; i++)
		json_object_set_new(levels, LOGREAD_NAMES[i],
				    json_integer((json_int_t)s->messages[i]));
	if (levels)
		row_json(o, "messages", levels);
	if (logread_errors(s))
		row_color(o, TERM_RED);
	row_end(o);
}

struct table *logprint_sources(const struct logread *l, size_t n)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < n; i++)
		source_row(&o, &l->sources[i]);
	table_omit_empty(o.table);
	return o.table;
}

json_t *logprint_source_json(const struct logread_source *s)
{
	struct row o = row_of_json();

	source_row(&o, s);
	return o.json;
}

static void pattern_row(struct row *o, const struct logread_pattern *p, bool fresh)
{
	char first[32], last[32];
	int64_t now = clock_utc_ns();

	row_word(o, "LEVEL", TABLE_LEFT, "level", LOGREAD_NAMES[p->level]);
	row_count(o, "TIMES", TABLE_RIGHT, "messages", p->messages, true);
	row_cell(o, "FIRST", TABLE_SPARE,
		 p->first_us < INT64_MAX ?
			 when_local(p->first_us * 1000, now, first, sizeof(first)) :
			 NULL);
	row_cell(o, "LAST", TABLE_SPARE,
		 p->last_us ? when_local(p->last_us * 1000, now, last, sizeof(last)) : NULL);
	row_text(o, "WHO", TABLE_MIDDLE, "source", p->source);
	row_text(o, NULL, TABLE_LEFT, "container", p->container);
	row_text(o, NULL, TABLE_LEFT, "comm", p->comm);
	row_number(o, NULL, TABLE_RIGHT, "pid", p->pid, p->pid);
	row_word(o, "WHAT", TABLE_TEXT, "pattern", p->pattern);
	row_text(o, NULL, TABLE_LEFT, "sample", p->sample);
	row_time(o, "first", p->first_us < INT64_MAX ? p->first_us * 1000 : 0);
	row_time(o, "last", p->last_us * 1000);
	if (o->json) {
		row_json(o, "before", json_number_or_null((int64_t)p->before, fresh));
		row_json(o, "new", fresh ? json_boolean(!p->before) : json_null());
	}
	if (p->level >= LOGREAD_ERROR)
		row_color(o, TERM_RED);
	row_end(o);
}

struct table *logprint_patterns(const struct logread *l, const size_t *which, size_t n)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < n; i++)
		pattern_row(&o, &l->patterns[which[i]], false);
	table_omit_empty(o.table);
	return o.table;
}

json_t *logprint_pattern_json(const struct logread_pattern *p, bool fresh)
{
	struct row o = row_of_json();

	pattern_row(&o, p, fresh);
	return o.json;
}
