/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/mcp/shape.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schema/base/clock.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"

#define LIST_MOST  5  /* inside of rows */
#define SIDE_MOST  10 /* of the answer itself */
#define WORDS_MOST 24 /* texts, such as the frames of a path */
#define WORDS_TOP  6  /* of these, from its beginning, where some are left out in the middle */
#define DEPTH_MOST 24
#define KEY_MOST   80
#define EPOCH_NS   100000000000000000ll /* ns since 1970 are more, lengths of time are less */

/* What an answer never has: it says the same twice, or is a command line of this host. */
static const char *const NEVER[] = {"schema", "query", "command", "evidence_sql", "hist", NULL};
/* Of an answer with rows: shape_answer says it by itself. */
static const char *const OWN[] = {"rows", "warnings", "total", "rest", NULL};

/* Of which no number is left that needs it. */
static const char *const SAID_UNITS[] = {"ns",    "bytes",   "bytes/s",    "cores",
					 "share", "seconds", "per second", "seconds per second",
					 NULL};

static json_t *value_of(const json_t *v, const struct shape *s, int depth);
static json_t *list_of(const json_t *v, const struct shape *s, size_t most, int depth);

/* Within what the type can hold: numbers of an answer may be any. */
static int64_t whole(double x)
{
	return x > 9e18 ? INT64_MAX : x < -9e18 ? INT64_MIN : x == x ? (int64_t)x : 0;
}

/* Not below 0. */
static uint64_t amount(double x)
{
	return x > 0 ? (uint64_t)whole(x) : 0;
}

/* Of a time of this century. */
static int64_t ns_of_seconds(double s)
{
	return whole(s * 1e6) * 1000;
}

static bool is_listed(const char *key, const char *const *list)
{
	for (; key && list && *list; list++)
		if (!strcmp(key, *list))
			return true;
	return false;
}

/* The key without this ending; 0: it has another one. */
static size_t stem(const char *key, const char *ending)
{
	const size_t n = strlen(key), k = strlen(ending);

	return n > k && !strcmp(key + n - k, ending) ? n - k : 0;
}

/* At most `most` bytes, whole characters. */
static void add_text(struct strbuf *out, const char *text, size_t len, size_t most)
{
	strbuf_addshown(out, text, len > 4 * most ? 4 * most : len);
	if (out->len > most) {
		size_t n = most - 3;

		while (n && ((unsigned char)out->buf[n] & 0xc0) == 0x80)
			n--;
		out->buf[n] = '\0';
		out->len = n;
		strbuf_addstr(out, "\xe2\x80\xa6");
	}
}

static json_t *text_of(const char *text, size_t len)
{
	struct strbuf out = STRBUF_INIT;
	json_t *v;

	add_text(&out, text, len, SHAPE_TEXT);
	v = json_string(strbuf_str(&out));
	strbuf_release(&out);
	return v ? v : json_string("(not text)");
}

static json_t *time_of(int64_t utc_ns)
{
	const time_t at = (time_t)(utc_ns / NSEC_PER_SEC);
	char text[64], zone[8];
	struct tm tm;

	if (!localtime_r(&at, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) ||
	    !strftime(zone, sizeof(zone), "%z", &tm))
		return json_null();
	if (utc_ns % NSEC_PER_SEC / 1000000)
		return json_sprintf("%s.%03d%.3s:%.2s", text,
				    (int)(utc_ns % NSEC_PER_SEC / 1000000), zone, zone + 3);
	return json_sprintf("%s%.3s:%.2s", text, zone, zone + 3);
}

/* "2026-11-28T23:06:48.412Z" with this host's offset; NULL: it is another text. */
static json_t *local_time(const char *text)
{
	struct tm tm = {0};
	int year, used = 0;
	double seconds;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%lfZ%n", &year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
		   &tm.tm_min, &seconds, &used) != 6 ||
	    !used || text[used] || !(seconds >= 0 && seconds < 61) || year < 1970 || year > 2200)
		return NULL;
	tm.tm_year = year - 1900;
	tm.tm_mon--;
	return time_of((int64_t)timegm(&tm) * NSEC_PER_SEC + (int64_t)(seconds * 1e3) * 1000000);
}

/* "2026-11-28 23:06:48", as columns of the views have it, in UTC; NULL: it is another text. */
static json_t *utc_time(const char *text)
{
	char iso[24];

	if (strlen(text) != 19 || text[10] != ' ')
		return NULL;
	snprintf(iso, sizeof(iso), "%.10sT%.8sZ", text, text + 11);
	return local_time(iso);
}

/* Three significant digits; what is whole stays whole. */
static json_t *number_of(double x)
{
	char text[32];

	if (x == floor(x) && fabs(x) < 1e15)
		return json_integer((json_int_t)x);
	snprintf(text, sizeof(text), "%.3g", x);
	return json_real(strtod(text, NULL));
}

static json_t *plain(const json_t *v)
{
	return json_is_integer(v) ? json_integer(json_integer_value(v)) :
				    number_of(json_real_value(v));
}

static bool put(json_t *out, const char *key, size_t len, json_t *v)
{
	char name[128];

	snprintf(name, sizeof(name), "%.*s", (int)(len < 120 ? len : 120), key);
	return !json_object_set_new(out, name, v);
}

/* Units that an object names for its own numbers, or an answer for all of its. */
static const char *in_unit(const char *unit, double x, char *buf, size_t size)
{
	char text[48];

	if (!strcmp(unit, "cores"))
		return units_cores(x, buf, size);
	if (!strcmp(unit, "share"))
		return units_share(x, 1, buf, size);
	if (!strcmp(unit, "seconds"))
		return units_seconds(x, buf, size);
	if (!strncmp(unit, "bytes", 5)) {
		snprintf(buf, size, "%s%s", units_bytes(amount(x), text, sizeof(text)), unit + 5);
		return buf;
	}
	if (strcmp(unit, "per second") && strcmp(unit, "seconds per second"))
		return NULL;
	snprintf(buf, size, "%.3g %s", x, unit);
	return buf;
}

/* "before": 0.55 with "unit": "seconds" as "550 ms". */
static bool put_in_unit(json_t *out, const json_t *in, const char *key, double x,
			const struct shape *s)
{
	static const char *const keys[] = {"before", "after",      "last", "most",
					   "change", "difference", NULL};
	const char *own = json_string_value(json_object_get(in, "unit")), *said;
	const char *unit = own ? own : s->unit_text;
	char text[64];

	if (!unit || !is_listed(key, keys) || x < 0)
		return false;
	said = in_unit(unit, x, text, sizeof(text));
	return said && put(out, key, strlen(key), json_string(said));
}

/* A number whose key says its unit; false: it does not. */
static bool put_measure(json_t *out, const json_t *in, const char *key, const json_t *v,
			const struct shape *s)
{
	const double x = json_number_value(v);
	char text[64];
	size_t n;

	if ((n = stem(key, "_ns"))) {
		char twin[128];

		snprintf(twin, sizeof(twin), "%.*s", (int)(n < 120 ? n : 120), key);
		if (json_is_string(json_object_get(in, twin)))
			return true; /* the same time is there as text */
		if (x > (double)EPOCH_NS)
			return put(out, key, n, time_of(json_integer_value(v)));
		return put(out, key, n, json_string(units_ns(whole(x), text, sizeof(text))));
	}
	if (!strcmp(key, "memory_total"))
		return put(out, key, strlen(key),
			   json_string(units_bytes(amount(x), text, sizeof(text))));
	if ((n = stem(key, "_us")))
		return put(out, key, n, json_string(units_ns(whole(x * 1e3), text, sizeof(text))));
	if ((n = stem(key, "_bytes_per_s"))) {
		char rate[72];

		snprintf(rate, sizeof(rate), "%s%s/s", x < 0 ? "-" : "",
			 units_bytes(amount(fabs(x)), text, sizeof(text)));
		return put(out, key, n, json_string(rate));
	}
	if ((n = stem(key, "_seconds")) || (n = stem(key, "_s")))
		return put(out, key, n, json_string(units_seconds(x, text, sizeof(text))));
	if ((n = stem(key, "_bytes")) || (!strcmp(key, "bytes") && (n = 5)))
		return put(out, key, n, json_string(units_bytes(amount(x), text, sizeof(text))));
	if ((n = stem(key, "_cores")) || (!strcmp(key, "cores") && (n = 5)))
		return put(out, key, strcmp(key, "cores") ? n + 6 : n,
			   json_string(units_cores(x, text, sizeof(text))));
	if (stem(key, "_share") || !strcmp(key, "share"))
		return put(out, key, strlen(key),
			   json_string(units_share(x, 1, text, sizeof(text))));
	if ((!strcmp(key, "value") || stem(key, "_value")) && s->unit)
		return put(out, key, strlen(key),
			   json_string(s->unit == 'b' ? units_bytes(amount(x), text, sizeof(text)) :
							units_ns(whole(x), text, sizeof(text))));
	if (!strcmp(key, "time") && x > 1e9 && x < 4.2e9)
		return put(out, key, 4, time_of(ns_of_seconds(x)));
	return false;
}

/* Measures of the overview, whose keys do not say their unit. */
static const struct {
	const char *key;
	char unit;
} PAIRS[] = {
	{"memory", 'b'},          {"memory_used", 'b'}, {"disk_bytes_per_s", 'r'},
	{"net_bytes_per_s", 'r'}, {"waited_cpu", 's'},  {"waited_memory", 's'},
	{"waited_io", 's'},       {"disk_busy", 's'},   {"cores", 'c'},
};

static const char *pair_text(const char *key, double x, char *buf, size_t size)
{
	char unit = 0;

	if (stem(key, "_us"))
		return units_ns(whole(x * 1e3), buf, size);
	for (size_t i = 0; i < sizeof(PAIRS) / sizeof(PAIRS[0]); i++)
		unit = strcmp(PAIRS[i].key, key) ? unit : PAIRS[i].unit;
	if (unit == 's')
		return units_share(x, 1, buf, size);
	if (unit == 'c')
		return units_cores(x, buf, size);
	if (unit == 'b' || unit == 'r')
		return units_bytes(amount(x), buf, size);
	snprintf(buf, size, x == floor(x) && fabs(x) < 1e15 ? "%.0f" : "%.3g", x);
	return buf;
}

/* {"now": 3, "before": 1} as "3 (before: 1)"; false: it is something else. One that is 0 and was 0
 * says nothing. */
static bool put_pair(json_t *out, const char *key, const json_t *v)
{
	const json_t *now = json_object_get(v, "now"), *before = json_object_get(v, "before");
	const char *rate = stem(key, "_bytes_per_s") ? "/s" : "";
	const size_t n = stem(key, "_us");
	char a[64], b[64];
	json_t *said;

	if (json_object_size(v) != 2 || !now || !before || json_is_object(now) ||
	    json_is_object(before))
		return false;
	if (!json_is_number(now) || (json_number_value(now) == 0 && json_number_value(before) == 0))
		return true;
	pair_text(key, json_number_value(now), a, sizeof(a));
	if (json_is_number(before))
		said = json_sprintf("%s%s (before: %s%s)", a, rate,
				    pair_text(key, json_number_value(before), b, sizeof(b)), rate);
	else
		said = json_sprintf("%s%s", a, rate);
	put(out, key, n ? n : strlen(key), said);
	return true;
}

/* Of lines of a log the last ones say most. */
static const char *const TAILS[] = {"log", NULL};

static json_t *tail_of(const json_t *list, const struct shape *s, int depth)
{
	const size_t n = json_array_size(list);
	json_t *some = json_array(), *out;

	for (size_t i = n > SIDE_MOST ? n - SIDE_MOST : 0; i < n; i++)
		json_array_append(some, json_array_get(list, i));
	out = list_of(some, s, SIDE_MOST, depth);
	json_decref(some);
	return out;
}

static size_t most_of(const char *key, const json_t *list, int depth)
{
	if (is_listed(key, TAILS))
		return SIDE_MOST;
	return json_is_string(json_array_get(list, 0)) ? WORDS_MOST : depth ? LIST_MOST : SIDE_MOST;
}

/* {"seen": 1987226365, "blind_requests": 0}: amounts of bytes, but for counts. */
static json_t *bytes_of(const json_t *v)
{
	json_t *out = json_object(), *x;
	const char *key;
	char text[64];

	json_object_foreach ((json_t *)(uintptr_t)v, key, x)
		if (stem(key, "_requests"))
			json_object_set(out, key, x);
		else if (json_is_number(x))
			json_object_set_new(out, key,
					    json_string(units_bytes(amount(json_number_value(x)),
								    text, sizeof(text))));
	return out;
}

static void put_member(json_t *out, const json_t *in, const char *key, const json_t *v,
		       const struct shape *s, int depth)
{
	json_t *made;

	if (is_listed(key, NEVER) || is_listed(key, s->drop))
		return;
	if (json_is_number(v) &&
	    (put_measure(out, in, key, v, s) || put_in_unit(out, in, key, json_number_value(v), s)))
		return;
	if (!strcmp(key, "line") && json_is_integer(v) && !json_integer_value(v))
		return; /* it is not known */
	if (!strcmp(key, "unit") && is_listed(json_string_value(v), SAID_UNITS))
		return; /* the numbers have it */
	if (!strcmp(key, "bytes") && json_is_object(v)) {
		json_object_set_new(out, key, bytes_of(v));
		return;
	}
	if (json_is_object(v) && put_pair(out, key, v))
		return;
	made = is_listed(key, TAILS) && json_array_size(v) ? tail_of(v, s, depth) :
							     value_of(v, s, depth);
	if (json_is_array(v) && json_array_size(v) > most_of(key, v, depth)) {
		char total[136];

		snprintf(total, sizeof(total), "%.120s_total", key);
		json_object_set_new(out, total, json_integer((json_int_t)json_array_size(v)));
	}
	if (made)
		json_object_set_new(out, key, made);
}

/* Some keys are recorded text, too: a status, a label. Borrowed, or `buf`. */
static const char *key_of(const char *key, struct strbuf *buf)
{
	size_t n = 0;

	while (key[n] >= ' ' && key[n] < 0x7f)
		n++;
	if (!key[n] && n < KEY_MOST)
		return key;
	strbuf_reset(buf);
	add_text(buf, key, strlen(key), KEY_MOST);
	return strbuf_str(buf);
}

static json_t *object_of(const json_t *v, const struct shape *s, int depth)
{
	struct strbuf name = STRBUF_INIT;
	json_t *out = json_object(), *member;
	const char *key;

	json_object_foreach ((json_t *)(uintptr_t)v, key, member)
		put_member(out, v, key_of(key, &name), member, s, depth + 1);
	strbuf_release(&name);
	return out;
}

static json_t *list_of(const json_t *v, const struct shape *s, size_t most, int depth)
{
	const size_t n = json_array_size(v);
	json_t *out = json_array();

	for (size_t i = 0; i < n && i < most; i++) {
		/* Of a long path both ends matter. */
		const bool words = most == WORDS_MOST && n > most && i >= WORDS_TOP;
		json_t *made =
			words && i == WORDS_TOP ?
				json_sprintf("(%zu left out)", n - most + 1) :
				value_of(json_array_get(v, words ? n - most + i : i), s, depth + 1);

		json_array_append_new(out, made ? made : json_null());
	}
	return out;
}

/* NULL: nothing that is worth a place. */
static json_t *value_of(const json_t *v, const struct shape *s, int depth)
{
	json_t *time;

	if (depth > DEPTH_MOST || json_is_null(v) || json_is_false(v))
		return NULL;
	if (json_is_object(v))
		return json_object_size(v) ? object_of(v, s, depth) : NULL;
	if (json_is_array(v))
		return json_array_size(v) ? list_of(v, s, most_of(NULL, v, depth), depth) : NULL;
	if (json_is_string(v)) {
		time = s->raw ? NULL : local_time(json_string_value(v));
		return time ? time :
		       json_string_length(v) || s->raw ?
			      text_of(json_string_value(v), json_string_length(v)) :
			      NULL;
	}
	return json_is_number(v) ? plain(v) : json_true();
}

/* A column of the views that has seconds since 1970, by its name and a value of this century. */
static bool is_seconds(const char *key, const json_t *v)
{
	const double x = json_number_value(v);

	return (!strcmp(key, "ts") || stem(key, "_ts") || !strcmp(key, "at")) && x > 1e9 &&
	       x < 4.2e9;
}

/* A row of SQL: its columns as they were asked for, but for times. */
static json_t *raw_row(const json_t *row, const struct shape *s)
{
	struct strbuf shown = STRBUF_INIT;
	json_t *out = json_object(), *v, *time;
	const char *name;

	json_object_foreach ((json_t *)(uintptr_t)row, name, v) {
		const char *key = key_of(name, &shown);

		if (json_is_integer(v) && json_integer_value(v) > EPOCH_NS)
			json_object_set_new(out, key, time_of(json_integer_value(v)));
		else if (is_seconds(key, v))
			json_object_set_new(out, key, time_of(ns_of_seconds(json_number_value(v))));
		else if (json_is_number(v))
			json_object_set(out, key, v);
		else if (json_is_string(v) && (time = utc_time(json_string_value(v))))
			json_object_set_new(out, key, time);
		else
			json_object_set_new(out, key,
					    json_is_null(v) ? json_null() : value_of(v, s, 0));
	}
	strbuf_release(&shown);
	return out;
}

/* The caller owns it. */
static json_t *failing_of(const json_t *rows)
{
	json_t *out = json_array(), *row;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)rows, i, row) {
		const char *state = json_string_value(json_object_get(row, "state"));

		if (state && strcmp(state, "fine") != 0 && strcmp(state, "not measured") != 0)
			json_array_append(out, row);
	}
	return out;
}

static json_t *rows_of(const json_t *rows, const struct shape *s)
{
	json_t *out;

	if (s->failing) {
		json_t *some = failing_of(rows);

		out = list_of(some, s, s->most, 0);
		json_decref(some);
		return out;
	}
	if (!s->raw)
		return list_of(rows, s, s->most, 0);
	out = json_array();
	for (size_t i = 0; i < json_array_size(rows) && i < s->most; i++)
		json_array_append_new(out, json_is_object(json_array_get(rows, i)) ?
						   raw_row(json_array_get(rows, i), s) :
						   value_of(json_array_get(rows, i), s, 0));
	return out;
}

/* The same number as the member "rest". */
static bool tells_rows(const json_t *w)
{
	long more;

	return json_is_string(w) && sscanf(json_string_value(w), "%ld more rows", &more) == 1;
}

static void put_notes(json_t *out, const json_t *warnings, const struct shape *s)
{
	json_t *notes = json_array(), *w;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)warnings, i, w)
		if (!tells_rows(w) && json_array_size(notes) < LIST_MOST) {
			json_t *made = value_of(w, s, 0);

			if (made)
				json_array_append_new(notes, made);
		}
	if (json_array_size(notes))
		json_object_set(out, "notes", notes);
	json_decref(notes);
}

/* Of what its values are: 'n' ns, 'b' bytes, 0: something else. */
static char unit_of(const json_t *answer)
{
	const char *unit = json_string_value(json_object_get(answer, "unit"));

	return !unit ? 0 : !strcmp(unit, "ns") ? 'n' : !strcmp(unit, "bytes") ? 'b' : 0;
}

json_t *shape_answer(const json_t *answer, const struct shape *how)
{
	struct shape with = *how;
	const struct shape *s = &with;
	json_t *out, *v;
	const json_t *rows = json_object_get(answer, "rows");
	const char *key;

	with.unit = unit_of(answer);
	with.unit_text = json_string_value(json_object_get(answer, "unit"));
	if (!json_is_array(rows)) {
		out = value_of(answer, s, 0);
		return out ? out : json_object();
	}
	out = json_object();
	json_object_foreach ((json_t *)(uintptr_t)answer, key, v)
		if (!is_listed(key, OWN))
			put_member(out, answer, key, v, s, 0);
	v = rows_of(rows, s);
	json_object_set_new(out, "rows", v);
	json_object_set_new(out, "returned", json_integer((json_int_t)json_array_size(v)));
	if (!s->failing) /* of checks "bad" says how many */
		json_object_set_new(
			out, "total",
			json_integer((json_int_t)json_array_size(rows) +
				     json_integer_value(json_object_get(answer, "rest"))));
	put_notes(out, json_object_get(answer, "warnings"), s);
	return out;
}

/* The list that takes the most bytes, and whose it is. */
struct longest {
	json_t *list, *owner;
	size_t bytes;
};

static void seek(json_t *v, struct longest *l, int depth)
{
	json_t *member;
	const char *key;
	size_t i;

	if (depth > DEPTH_MOST)
		return;
	json_array_foreach (v, i, member)
		seek(member, l, depth + 1);
	json_object_foreach (v, key, member) {
		const size_t n = json_is_array(member) && json_array_size(member) > 1 ?
					 json_dumpb(member, NULL, 0, SHAPE_DUMP) :
					 0;

		if (n > l->bytes)
			*l = (struct longest){member, v, n};
		seek(member, l, depth + 1);
	}
}

bool shape_fit(json_t *top, size_t limit)
{
	for (;;) {
		struct longest l = {0};
		size_t keep;

		if (json_dumpb(top, NULL, 0, SHAPE_DUMP) <= limit)
			return true;
		seek(top, &l, 0);
		if (!l.list)
			return false;
		keep = json_array_size(l.list) / 2;
		while (json_array_size(l.list) > keep)
			json_array_remove(l.list, json_array_size(l.list) - 1);
		json_object_set_new(l.owner, "truncated", json_true());
		if (json_object_get(l.owner, "returned"))
			json_object_set_new(l.owner, "returned",
					    json_integer((json_int_t)json_array_size(
						    json_object_get(l.owner, "rows"))));
	}
}
