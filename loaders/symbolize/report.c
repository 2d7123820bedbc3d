/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/symbolize/report.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/cli/escapes.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define REASONS_MAX 10

struct report_row *report_row(struct report *r, const char *path, const char *build_id)
{
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->rows[i].path, path) && !strcmp(r->rows[i].build_id, build_id))
			return &r->rows[i];
	mem_grow(r->rows, r->n, r->cap);
	r->rows[r->n] = (struct report_row){
		.path = mem_strdup(path), .build_id = mem_strdup(build_id), .reason = ""};
	return &r->rows[r->n++];
}

void report_release(struct report *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->rows[i].path);
		free(r->rows[i].build_id);
	}
	free(r->rows);
	*r = (struct report){0};
}

void report_progress(const char *path)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	if (!escapes_on(STDERR_FILENO))
		return;
	if (path)
		strbuf_addshown(&s, path, strlen(path));
	fprintf(stderr, "\r\x1b[K%.70s", strbuf_str(&s));
}

static bool gained(const struct report_row *row)
{
	return row->gain.names || row->gain.lines || row->gain.inlined;
}

static int most_first(const void *a, const void *b)
{
	const struct report_row *x = a, *y = b;
	uint64_t gx = x->gain.names + x->gain.lines, gy = y->gain.names + y->gain.lines;
	uint64_t px = x->unnamed + x->lineless, py = y->unnamed + y->lineless;

	if (gx != gy)
		return gx < gy ? 1 : -1;
	if (px != py)
		return px < py ? 1 : -1;
	return strcmp(x->path, y->path);
}

static struct symbolizer_gain sum(const struct report *r, size_t *files)
{
	struct symbolizer_gain g = {0};

	*files = 0;
	for (size_t i = 0; i < r->n; i++) {
		g.names += r->rows[i].gain.names;
		g.lines += r->rows[i].gain.lines;
		g.inlined += r->rows[i].gain.inlined;
		*files += gained(&r->rows[i]);
	}
	return g;
}

/* --- JSON --- */

static json_t *row_json(const struct report_row *row)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	strbuf_addutf8(&path, row->path, strlen(row->path));
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s?}", "path", strbuf_str(&path),
			 "build_id", row->build_id, "unnamed", (json_int_t)row->unnamed,
			 "without_line", (json_int_t)row->lineless, "names",
			 (json_int_t)row->gain.names, "lines", (json_int_t)row->gain.lines,
			 "inlined", (json_int_t)row->gain.inlined, "reason",
			 *row->reason ? row->reason : NULL);
}

static int print_json(const struct report *r, size_t most, unsigned fetched)
{
	json_t *rows = json_array(), *warnings = json_array();
	json_t *j = json_pack("{s:s, s:n, s:n, s:n, s:n, s:i, s:o, s:I, s:I, s:o}", "schema",
			      "sonde.symbolize/1", "from", "to", "from_ns", "to_ns", "fetched",
			      (int)fetched, "rows", rows, "total", (json_int_t)r->n, "rest",
			      (json_int_t)(r->n - most), "warnings", warnings);

	for (size_t i = 0; i < most; i++)
		json_array_append_new(rows, row_json(&r->rows[i]));
	if (most < r->n)
		json_array_append_new(warnings, json_sprintf("%zu more rows: -n %zu shows them",
							     r->n - most, r->n));
	json_dumpf(j, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(j);
	return 0;
}

/* --- text --- */

static void print_row(uint64_t a, uint64_t b, uint64_t c, const char *path, const char *more)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	strbuf_addshown(&s, path, strlen(path));
	printf("%9llu  %9llu  %9llu  %s%s\n", (unsigned long long)a, (unsigned long long)b,
	       (unsigned long long)c, strbuf_str(&s), more);
}

static void print_gains(const struct report *r, size_t most)
{
	size_t n = 0;

	printf("%9s  %9s  %9s  %s\n", "NAMES", "LINES", "INLINED", "FILE");
	for (; n < most && gained(&r->rows[n]); n++)
		print_row(r->rows[n].gain.names, r->rows[n].gain.lines, r->rows[n].gain.inlined,
			  r->rows[n].path, "");
	for (most = n; n < r->n && gained(&r->rows[n]);)
		n++;
	if (n > most)
		printf("%zu more files: -n 0 shows all\n", n - most);
}

static void print_reasons(const struct report *r)
{
	size_t said = 0, more = 0;

	for (size_t i = 0; i < r->n; i++) {
		cleanup_strbuf struct strbuf s = STRBUF_INIT;

		if (!*r->rows[i].reason)
			continue;
		if (said++ >= REASONS_MAX) {
			more++;
			continue;
		}
		strbuf_addshown(&s, r->rows[i].path, strlen(r->rows[i].path));
		fprintf(stderr, "no lines for %s: %s\n", strbuf_str(&s), r->rows[i].reason);
	}
	if (more)
		fprintf(stderr, "and for %zu more files (--json lists all)\n", more);
}

int report_print(const struct report *r, uint64_t number, bool json, bool asked_servers,
		 unsigned fetched, struct err *e)
{
	const size_t most = number && number < r->n ? (size_t)number : r->n;
	struct symbolizer_gain g;
	size_t files;

	if (r->n)
		qsort(r->rows, r->n, sizeof(*r->rows), most_first);
	g = sum(r, &files);
	if (json)
		return print_json(r, most, fetched);
	if (!r->n) {
		printf("nothing is missing: all frames of files have names and lines\n");
		return 0;
	}
	print_reasons(r);
	if (!files) {
		err_set(e, -ENODATA, EXIT_NOTHING,
			"nothing gained: %zu file%s, and no more is known of %s than when they were recorded",
			r->n, r->n == 1 ? " lacks names or lines" : "s lack names or lines",
			r->n == 1 ? "it" : "them");
		err_fix(e, "install debug symbols (on Debian packages NAME-dbgsym or NAME-dbg)%s",
			asked_servers ? "" : ", or: sonde symbolize --debuginfod");
		return -ENODATA;
	}
	print_gains(r, most);
	printf("%llu names, %llu lines, %llu places with inlined functions in %zu file%s%s\n",
	       (unsigned long long)g.names, (unsigned long long)g.lines,
	       (unsigned long long)g.inlined, files, files == 1 ? "" : "s",
	       fetched ? "; debug files came from a server" : "");
	return 0;
}
