/* SPDX-License-Identifier: Apache-2.0 */
/* json: the envelope. */
#include "tools/print/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/strbuf.h"
#include "schema/store/read/unreadable.h"
#include "tools/print/when.h"

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

json_t *json_envelope(const char *verb, int64_t from_ns, int64_t to_ns)
{
	json_t *o = json_object();

	json_object_set_new(o, "schema", json_sprintf("sonde.%s/1", verb));
	json_set_time(o, "from", from_ns);
	json_set_time(o, "to", to_ns);
	json_object_set_new(o, "rows", json_array());
	json_object_set_new(o, "warnings", json_array());
	for (size_t i = 0; unreadable_path(i); i++)
		json_warn(o, "%s is damaged or cannot be read, and was left out",
			  unreadable_path(i));
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

int json_print_rows(json_t *envelope, FILE *out, size_t n, json_t *(*row)(void *ctx, size_t i),
		    void *ctx)
{
	static const char empty[] = "\"rows\":[]";
	char *text = json_dumps(envelope, JSON_COMPACT), *rows = text ? strstr(text, empty) : NULL;
	const char *rest = rows ? rows + sizeof(empty) - 2 : NULL; /* from the bracket on */

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
	int rc = json_dumpf(envelope, out, compact ? JSON_COMPACT : JSON_INDENT(1));

	json_decref(envelope);
	if (rc || fputc('\n', out) == EOF || fflush(out))
		return -EIO;
	return 0;
}
