/* SPDX-License-Identifier: Apache-2.0 */
/* json: the envelope. */
#include "tools/print/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/strbuf.h"
#include "schema/store/read/unreadable.h"
#include "tools/print/when.h"

#define UNREADABLE_SAID 10

/* As strbuf_addutf8, but control bytes stay: JSON has escapes for them, and the reader gets the
 * very name. */
static void add_valid(struct strbuf *out, const char *s)
{
	const char *from = s, *p;

	for (p = s; *p; p++) {
		if ((unsigned char)*p >= 0x20 && *p != 0x7f)
			continue;
		strbuf_addutf8(out, from, (size_t)(p - from));
		strbuf_addch(out, *p);
		from = p + 1;
	}
	strbuf_addutf8(out, from, (size_t)(p - from));
}

json_t *json_text(const char *s)
{
	struct strbuf clean cleanup_strbuf = STRBUF_INIT;

	if (!s)
		return json_null();
	add_valid(&clean, s);
	return json_stringn(strbuf_str(&clean), clean.len);
}

json_t *json_text_or_null(const char *s)
{
	return s && *s ? json_text(s) : json_null();
}

json_t *json_number_or_null(int64_t n, bool known)
{
	return known ? json_integer(n) : json_null();
}

void json_set_time(json_t *obj, const char *key, int64_t ns)
{
	char text[32], name[64];

	snprintf(name, sizeof(name), "%s_ns", key);
	if (!ns) {
		json_object_set_new(obj, key, json_null());
		json_object_set_new(obj, name, json_null());
		return;
	}
	json_object_set_new(obj, key, json_string(when_utc(ns, text, sizeof(text))));
	json_object_set_new(obj, name, json_integer(ns));
}

static void say_unreadable(json_t *envelope)
{
	size_t n = 0;

	for (; unreadable_path(n); n++)
		if (n < UNREADABLE_SAID)
			json_warn(envelope, "%s is damaged or cannot be read, and was left out",
				  unreadable_path(n));
	if (n > UNREADABLE_SAID)
		json_warn(envelope,
			  "%zu more files are damaged or cannot be read, and were left out",
			  n - UNREADABLE_SAID);
}

json_t *json_envelope(const char *verb, int64_t from_ns, int64_t to_ns)
{
	json_t *o = json_object();

	json_object_set_new(o, "schema", json_sprintf("sonde.%s/1", verb));
	json_set_time(o, "from", from_ns);
	json_set_time(o, "to", to_ns);
	json_object_set_new(o, "rows", json_array());
	json_object_set_new(o, "warnings", json_array());
	say_unreadable(o);
	return o;
}

json_t *json_rows(json_t *envelope)
{
	return json_object_get(envelope, "rows");
}

void json_warn(json_t *envelope, const char *fmt, ...)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&s, fmt, ap);
	va_end(ap);
	json_array_append_new(json_object_get(envelope, "warnings"), json_text(strbuf_str(&s)));
}

void json_bound(json_t *envelope, size_t total)
{
	json_bound_n(envelope, total, total);
}

void json_bound_n(json_t *envelope, size_t total, size_t n)
{
	const size_t shown = json_array_size(json_rows(envelope)),
		     rest = total > shown ? total - shown : 0;

	json_object_set_new(envelope, "total", json_integer((json_int_t)total));
	json_object_set_new(envelope, "rest", json_integer((json_int_t)rest));
	if (rest)
		json_warn(envelope, "%zu more rows: -n %zu shows them", rest, n);
}

void json_bound_list(json_t *envelope, const char *key, json_t *list, size_t total)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_total", key);
	json_object_set_new(envelope, key, list);
	json_object_set_new(envelope, name, json_integer((json_int_t)total));
}

void json_cut_list(json_t *obj, const char *key, json_t *list, size_t most)
{
	const size_t total = json_array_size(list);

	for (size_t n = total; n > most; n--)
		json_array_remove(list, n - 1);
	json_bound_list(obj, key, list, total);
}

bool json_names_has(const char *names, const char *name)
{
	const size_t len = strlen(name);

	for (const char *at = names;; at++) {
		const size_t n = strcspn(at, ",");

		if (n == len && !memcmp(at, name, n))
			return true;
		at += n;
		if (!*at)
			return false;
	}
}

static const char *asked_lists = "";

void json_ask(const char *names)
{
	asked_lists = names;
}

void json_side_list(json_t *envelope, const char *key, json_t *list, size_t total)
{
	json_bound_list(envelope, key, list, total);
	if (!json_names_has(asked_lists, key))
		json_object_del(envelope, key);
}

/* ---- printing ---- */

static bool as_lines;

void json_as_lines(void)
{
	as_lines = true;
}

static void print_line(const json_t *o, FILE *out)
{
	json_dumpf(o, out, JSON_COMPACT);
	fputc('\n', out);
}

static void print_warnings(const json_t *envelope)
{
	const json_t *w;
	size_t i;

	json_array_foreach (json_object_get(envelope, "warnings"), i, w)
		fprintf(stderr, "note: %s\n", json_string_value(w));
}

/* Without rows it is one itself. */
static int print_lines(json_t *envelope, FILE *out)
{
	const json_t *rows = json_rows(envelope), *row;
	size_t i;

	if (!json_is_array(rows))
		print_line(envelope, out);
	json_array_foreach (rows, i, row)
		print_line(row, out);
	print_warnings(envelope);
	json_decref(envelope);
	return fflush(out) || ferror(out) ? -EIO : 0;
}

static int print_each(json_t *envelope, FILE *out, size_t n, json_t *(*row)(void *ctx, size_t i),
		      void *ctx)
{
	for (size_t i = 0; i < n; i++) {
		json_t *o = row(ctx, i);

		print_line(o, out);
		json_decref(o);
	}
	print_warnings(envelope);
	json_decref(envelope);
	return fflush(out) || ferror(out) ? -EIO : 0;
}

int json_print_rows(json_t *envelope, FILE *out, size_t n, json_t *(*row)(void *ctx, size_t i),
		    void *ctx)
{
	static const char empty[] = "\"rows\":[]";
	char *text, *rows;
	const char *rest;

	if (as_lines)
		return print_each(envelope, out, n, row, ctx);
	text = json_dumps(envelope, JSON_COMPACT);
	rows = text ? strstr(text, empty) : NULL;
	rest = rows ? rows + sizeof(empty) - 2 : NULL; /* from the bracket on */

	json_decref(envelope);
	if (rows)
		fwrite(text, 1, (size_t)(rest - text), out);
	for (size_t i = 0; rows && i < n; i++) {
		json_t *o = row(ctx, i);
		char *line = json_dumps(o, JSON_COMPACT);

		json_decref(o);
		if (!line)
			rows = NULL;
		else if (i)
			fputc(',', out);
		fputs(line ? line : "", out);
		free(line);
	}
	if (rows)
		fprintf(out, "%s\n", rest);
	free(text);
	return !rows || fflush(out) || ferror(out) ? -EIO : 0;
}

int json_print(json_t *envelope, FILE *out, int compact)
{
	int rc;

	if (as_lines)
		return print_lines(envelope, out);
	rc = json_dumpf(envelope, out, compact ? JSON_COMPACT : JSON_INDENT(1));

	json_decref(envelope);
	if (rc || fputc('\n', out) == EOF || fflush(out))
		return -EIO;
	return 0;
}
