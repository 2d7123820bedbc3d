/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-symbolize: names and lines for frames that are in the store already. For each segment,
 * oldest first: which files have frames that could gain something; an index of each (files.h); what
 * it says of each frame is written (symbolizer.h).
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/budget/weight.h"
#include "loaders/lib/host/names/source_location.h"
#include "loaders/symbolize/debuginfod.h"
#include "loaders/symbolize/files.h"
#include "loaders/symbolize/report.h"
#include "schema/base/cleanup.h"
#include "schema/base/cli/options.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/read/reader.h"
#include "schema/store/write/symbolizer.h"

struct opts {
	const char *store;
	bool debuginfod, json, quiet;
	uint64_t number;
};

static const struct program PROGRAM = {
	.name = "sonde-symbolize",
	.usage = "[options]",
	.about =
		"Adds names, lines and inlined functions to stored frames, from debug information installed since.",
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"store", 0, OPTION_STRING, "DIR", "store folder, or one .db file of it (default: $SONDE_STORE)", OPTION_AT(struct opts, store)},
	{"debuginfod", 0, OPTION_FLAG, NULL, "also request missing files from the servers in $DEBUGINFOD_URLS", OPTION_AT(struct opts, debuginfod)},
	{"number", 'n', OPTION_MOST, "N", "how many files to print (default: all)", OPTION_AT(struct opts, number)},
	{"json", 0, OPTION_FLAG, NULL, "print JSON", OPTION_AT(struct opts, json)},
	{"quiet", 'q', OPTION_FLAG, NULL, "no notes on standard error", OPTION_AT(struct opts, quiet)},
	{0},
};
/* clang-format on */

struct work {
	const struct opts *o;
	struct files *files;
	struct report report;
	struct wants { /* of the segment at hand */
		struct want {
			uint32_t image;
			char *path, *build_id, *key;
			uint64_t unnamed, lineless;
		} * items;
		size_t n, cap;
	} wants;
};

static char *program_path(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "sonde-index");
	return mem_strdup(path);
}

/* The folder that the store is, or that its file lies in. */
static char *store_folder(const char *store)
{
	const char *slash = strrchr(store, '/');
	struct stat st;

	if (stat(store, &st) || S_ISDIR(st.st_mode))
		return mem_strdup(store);
	return slash ? mem_strndup(store, (size_t)(slash - store)) : mem_strdup(".");
}

/* --- one file in one segment --- */

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static size_t find(void *ctx, const struct symbolizer_frame *f,
		   struct symbolizer_name out[SYMBOLIZER_MAX])
{
	const struct image *index = ctx;
	struct source_location p;

	if (!source_location_find(index, f->offset, f->back, &p))
		return 0;
	_Static_assert(SYMBOLIZER_MAX > SOURCE_LOCATION_MAX, "room for a place");
	if (f->folded) { /* where in the function it was is not known any more */
		p.at[0] = p.at[p.n - 1];
		p.at[0].line = 0;
		p.n = 1;
	}
	for (size_t i = 0; i < p.n; i++)
		out[i] = (struct symbolizer_name){.function = or_empty(p.at[i].function),
						  .file = or_empty(p.at[i].file),
						  .line = p.at[i].line};
	out[p.n - 1].function = p.symbol.name;
	out[p.n - 1].first_line = p.first_line;
	return p.n;
}

static int want_add(void *ctx, const struct symbolizer_want *w)
{
	struct wants *l = ctx;

	mem_grow(l->items, l->n, l->cap);
	l->items[l->n++] =
		(struct want){w->image,           mem_strdup(w->path), mem_strdup(w->build_id),
			      mem_strdup(w->key), w->unnamed,          w->lineless};
	return 0;
}

static void wants_clear(struct wants *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->items[i].path);
		free(l->items[i].build_id);
		free(l->items[i].key);
	}
	l->n = 0;
}

static int want_fill(struct work *w, struct symbolizer *r, const struct want *want, struct err *e)
{
	struct report_row *row = report_row(&w->report, want->path, want->build_id);
	const struct image *index;
	const char *reason;
	int rc = 0;

	if (!w->o->quiet && !row->seen)
		report_progress(want->path);
	row->seen = true;
	index = files_index(w->files, want->path, want->build_id, want->key, &reason);
	row->unnamed += want->unnamed;
	row->lineless += want->lineless;
	row->reason = reason;
	if (index)
		rc = symbolizer_image(r, want->image, find, (void *)index, &row->gain, e);
	return rc;
}

/* --- all segments --- */

static int segment_fill(struct work *w, const char *dir, const char *path, struct err *e)
{
	struct symbolizer *r = NULL;
	int rc = symbolizer_open(dir, path, &r, e);

	if (rc)
		return rc;
	rc = symbolizer_wants(r, want_add, &w->wants, e);
	for (size_t i = 0; i < w->wants.n && !rc; i++)
		rc = want_fill(w, r, &w->wants.items[i], e);
	wants_clear(&w->wants);
	symbolizer_close(r);
	return rc;
}

static int store_fill(struct work *w, const char *dir, struct err *e)
{
	cleanup_free struct store_segment_info *segments = NULL;
	size_t n = 0;
	int rc = store_segments(w->o->store, 0, INT64_MAX, &segments, &n, e);

	for (size_t i = 0; i < n && !rc; i++) {
		rc = segment_fill(w, dir, segments[i].path, e);
		if (rc == -EBADMSG && n > 1) { /* a damaged file costs itself only */
			log_warn("%s is left out: %s", segments[i].path, e->what);
			*e = (struct err){0};
			rc = 0;
		}
	}
	free(w->wants.items);
	return rc;
}

static int fill(const struct opts *o, struct err *e)
{
	cleanup_free char *program = program_path(), *dir = store_folder(o->store);
	struct debuginfod *server = NULL;
	struct work w = {.o = o};
	int rc = o->debuginfod ? debuginfod_open(&server, e) : 0;

	if (rc)
		return rc;
	w.files = files_open(dir, program, server);
	rc = store_fill(&w, dir, e);
	if (!o->quiet)
		report_progress(NULL);
	if (!rc)
		rc = report_print(&w.report, o->number, o->json, o->debuginfod,
				  server ? debuginfod_fetched(server) : 0, e);
	report_release(&w.report);
	files_close(w.files);
	debuginfod_close(server);
	return rc;
}

/* A person waits for it, most of all on a host that is too busy: its turn comes as that of a
 * recording does. Without the right to it, it stays as it is. */
static void hurry(void)
{
	if (getpriority(PRIO_PROCESS, 0) == 0 && setpriority(PRIO_PROCESS, 0, WEIGHT_RECORD))
		log_debug("cannot raise the priority: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct opts o = {.store = store_default_dir()};
	struct err e = {0};
	int rc;

	log_init(PROGRAM.name, LOG_LEVEL_WARN);
	rc = program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, &o}, 1, NULL, &e);
	hurry();
	if (!rc)
		rc = fill(&o, &e);
	return program_end(PROGRAM.name, rc, &e);
}
