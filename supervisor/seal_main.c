/* SPDX-License-Identifier: Apache-2.0 */
/* sonde-seal: archives the finished segments of a store, now (schema/store/archive/seal.h), or a
 * window of the ring (keep.h). */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/base/log.h"
#include "schema/store/archive/keep.h"
#include "schema/store/archive/seal.h"
#include "schema/store/files/location.h"
#include "schema/store/write/writer.h"

struct seal_args {
	struct seal_opts opts;
	int64_t keep_ns, fine_ns;
	const char *ring, *why;
	uint64_t from_ns, to_ns, at_ns;
	bool json, quiet;
};

static const struct program PROGRAM = {
	.name = "sonde-seal",
	.usage = "[options]",
	.about =
		"Archives the finished segments of a store: the same rows in a fifth of the bytes.",
};

static const struct option OPTIONS[] = {
	{"store", 0, OPTION_STRING, "DIR", "store folder (default: $SONDE_STORE)",
	 OPTION_AT(struct seal_args, opts.dir)},
	{"plain", 0, OPTION_BYTES, "SIZE",
	 "leave the newest segments as they are, up to this many bytes (default 0)",
	 OPTION_AT(struct seal_args, opts.plain), .zero = true},
	{"keep", 0, OPTION_DURATION, "TIME",
	 "leave segments finished less than this ago, up to twice as many bytes (default 0)",
	 OPTION_AT(struct seal_args, keep_ns), .zero = true},
	{"fine", 0, OPTION_DURATION, "TIME",
	 "reduce use and wait data older than this to one-minute sums (default 0: never)",
	 OPTION_AT(struct seal_args, fine_ns), .zero = true},
	{"room", 0, OPTION_BYTES, "SIZE",
	 "size limit of a file being written (default: none); leave larger ones for later",
	 OPTION_AT(struct seal_args, opts.room)},
	{"ring", 0, OPTION_STRING, "DIR",
	 "for sonded: instead, keep what this flight ring has of a window",
	 OPTION_AT(struct seal_args, ring)},
	{"from", 0, OPTION_UINT, "NS", "with --ring: the window's begin, UTC",
	 OPTION_AT(struct seal_args, from_ns), .max = INT64_MAX},
	{"to", 0, OPTION_UINT, "NS", "with --ring: its end", OPTION_AT(struct seal_args, to_ns),
	 .max = INT64_MAX},
	{"at", 0, OPTION_UINT, "NS", "with --ring: when it happened",
	 OPTION_AT(struct seal_args, at_ns), .max = INT64_MAX},
	{"why", 0, OPTION_STRING, "TEXT", "with --ring: the reason",
	 OPTION_AT(struct seal_args, why)},
	{"idle", 0, OPTION_FLAG, NULL, "archive only when the CPU and the disk are idle",
	 OPTION_AT(struct seal_args, opts.idle)},
	{"json", 0, OPTION_FLAG, NULL, "print JSON", OPTION_AT(struct seal_args, json)},
	{"quiet", 'q', OPTION_FLAG, NULL, "print only errors", OPTION_AT(struct seal_args, quiet)},
	{0},
};

static int options_read(struct seal_args *a, int argc, char **argv, struct err *e)
{
	int rc =
		program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, a}, 1, NULL, e);
	struct stat st;

	a->opts.keep_s = (uint32_t)(a->keep_ns / NSEC_PER_SEC);
	a->opts.fine_s = (uint32_t)(a->fine_ns / NSEC_PER_SEC);
	if (!a->opts.dir)
		a->opts.dir = store_default_dir();
	if (!rc && stat(a->opts.dir, &st) && errno == ENOENT)
		return store_none(a->opts.dir, ENOENT, e);
	if (!rc && stat(a->opts.dir, &st) == 0 && !S_ISDIR(st.st_mode)) {
		rc = err_set(e, -ENOTDIR, EXIT_USAGE,
			     "%s is a single file; sealing works on a store folder", a->opts.dir);
		err_fix(e, "name the store's folder: --store DIR");
	}
	return rc;
}

static void print_json(const struct seal_report *r)
{
	json_t *o = json_pack("{s:b, s:i, s:i, s:i, s:I, s:I, s:i, s:I, s:I, s:i, s:I}", "busy",
			      r->busy, "segments", (int)r->segments, "put_off", (int)r->put_off,
			      "set_aside", (int)r->set_aside, "bytes_before",
			      (json_int_t)r->bytes_before, "bytes_after",
			      (json_int_t)r->bytes_after, "thinned", (int)r->thinned, "fine_before",
			      (json_int_t)r->fine_before, "fine_after", (json_int_t)r->fine_after,
			      "days", (int)r->days, "days_bytes", (json_int_t)r->days_bytes);

	json_dumpf(o, stdout, 0);
	putchar('\n');
	json_decref(o);
}

static void report(const struct seal_report *r)
{
	if (r->busy)
		fprintf(stderr, "another process is already sealing\n");
	else if (!r->segments && !r->thinned && !r->days)
		fprintf(stderr, "nothing to archive\n");
	else if (r->segments)
		fprintf(stderr, "archived %u segment%s: %.1f MB are %.1f MB\n", r->segments,
			r->segments == 1 ? "" : "s", (double)r->bytes_before / 1e6,
			(double)r->bytes_after / 1e6);
	if (r->thinned)
		fprintf(stderr, "of %u archive%s minutes are kept: %.1f MB are %.1f MB\n",
			r->thinned, r->thinned == 1 ? "" : "s", (double)r->fine_before / 1e6,
			(double)r->fine_after / 1e6);
	if (r->days)
		fprintf(stderr, "stored the sums of %u day%s: %.1f MB\n", r->days,
			r->days == 1 ? "" : "s", (double)r->days_bytes / 1e6);
	if (r->put_off)
		fprintf(stderr, "%u segment%s left for later: in use, or without room\n",
			r->put_off, r->put_off == 1 ? " is" : "s are");
}

/* The guess may be wrong: then the disk is full for us alone, which leaves all as it was. */
static void keep_to(uint64_t room)
{
	struct rlimit most = {room, room};

	signal(SIGXFSZ, SIG_IGN);
	if (room)
		setrlimit(RLIMIT_FSIZE, &most);
}

static int keep(const struct seal_args *a, struct err *e)
{
	const struct keep_opts o = {.dir = a->opts.dir,
				    .ring = a->ring,
				    .from_ns = (int64_t)a->from_ns,
				    .to_ns = (int64_t)a->to_ns,
				    .at_ns = (int64_t)a->at_ns,
				    .why = a->why ? a->why : "",
				    .patience_s = 60};
	struct keep_report r;
	int rc = keep_run(&o, &r, e);
	json_t *out;

	if (rc)
		return rc;
	out = json_pack("{s:i, s:I, s:I, s:I}", "segments", (int)r.segments, "from_ns",
			(json_int_t)r.from_ns, "to_ns", (json_int_t)r.to_ns, "bytes",
			(json_int_t)r.bytes);
	json_dumpf(out, stdout, 0);
	putchar('\n');
	json_decref(out);
	return 0;
}

int main(int argc, char **argv)
{
	struct seal_args a = {0};
	struct seal_report r;
	struct err e = {0};
	int rc = options_read(&a, argc, argv, &e);

	log_init("sonde-seal", LOG_LEVEL_WARN);
	if (rc)
		return program_end(PROGRAM.name, rc, &e);
	if (a.ring) {
		rc = keep(&a, &e);
		return program_end(PROGRAM.name, rc, &e);
	}
	keep_to(a.opts.room);
	rc = seal_run(&a.opts, &r, &e);
	if (!rc && a.json)
		print_json(&r);
	else if (!rc && !a.quiet)
		report(&r);
	return program_end(PROGRAM.name, rc, &e);
}
