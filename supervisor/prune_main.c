/* SPDX-License-Identifier: Apache-2.0 */
/* sonde-prune: one pass of retention over a store, now. sonded does the same by itself
 * (schema/store/retention/retention.h). */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/base/log.h"
#include "schema/base/units.h"
#include "schema/store/archive/seal.h"
#include "schema/store/files/location.h"
#include "schema/store/retention/retention.h"
#include "schema/store/write/writer.h"

#define DAYS_MOST 100000
#define DAYS_OWN  UINT64_MAX /* --keep-days was not given */

struct prune {
	const char *store;
	struct retention_limits limits;
	struct retention_report report;
	struct seal_report minutes;
	struct seal_due due; /* of a dry run */
	uint64_t keep_days;
	int64_t fine_ns;
	bool dry_run, json, quiet;
	json_t *rows;
};

static const struct program PROGRAM = {
	.name = "sonde-prune",
	.usage = "[options]",
	.about =
		"Deletes the oldest segments of a store until it fits its budget. sonded does this by itself.",
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"store", 0, OPTION_STRING, "DIR", "store folder (default: $SONDE_STORE)", OPTION_AT(struct prune, store)},
	{"budget", 0, OPTION_BYTES, "SIZE", "size limit of the whole store: 2G, 500M (default: 2G, or 5 % of the disk if that is less)",
	 OPTION_AT(struct prune, limits.bytes)},
	{"reserve", 0, OPTION_BYTES, "SIZE", "free space to leave on its disk (default: 512M, or 5 % of the disk if that is less)",
	 OPTION_AT(struct prune, limits.reserve_bytes)},
	{"age", 0, OPTION_DURATION, "TIME", "delete segments older than this: 14d, 12h (default 14d)", OPTION_AT(struct prune, limits.age_ns)},
	{"keep-days", 0, OPTION_UINT, "N", "always keep the newest N days that have data, however old (default 2)",
	 OPTION_AT(struct prune, keep_days), .max = DAYS_MOST},
	{"fine", 0, OPTION_DURATION, "TIME", "first reduce archives older than this to one-minute values (default 1d, 0: never)",
	 OPTION_AT(struct prune, fine_ns), .zero = true},
	{"dry-run", 0, OPTION_FLAG, NULL, "print what would be deleted, delete nothing", OPTION_AT(struct prune, dry_run)},
	{"json", 0, OPTION_FLAG, NULL, "print JSON", OPTION_AT(struct prune, json)},
	{"quiet", 'q', OPTION_FLAG, NULL, "print only errors", OPTION_AT(struct prune, quiet)},
	{0},
};
/* clang-format on */

/* What was not given: by the disk that the store is on. */
static int settle(struct prune *p, struct err *e)
{
	struct retention_limits given = p->limits;
	struct stat st;

	if (!p->store)
		p->store = store_default_dir();
	if (stat(p->store, &st) && errno == ENOENT)
		return store_none(p->store, ENOENT, e);
	if (stat(p->store, &st) == 0 && !S_ISDIR(st.st_mode)) {
		err_set(e, -ENOTDIR, EXIT_USAGE,
			"%s is a single file; retention works on a store folder", p->store);
		err_fix(e, "name the store's folder: --store DIR");
		return -ENOTDIR;
	}
	retention_defaults(p->store, &p->limits);
	p->limits.bytes = given.bytes ? given.bytes : p->limits.bytes;
	p->limits.reserve_bytes =
		given.reserve_bytes ? given.reserve_bytes : p->limits.reserve_bytes;
	p->limits.age_ns = given.age_ns ? given.age_ns : p->limits.age_ns;
	p->limits.keep_days =
		p->keep_days != DAYS_OWN ? (uint32_t)p->keep_days : p->limits.keep_days;
	return 0;
}

/* Removes ten-second data before whole segments. An archiver that runs at the same time does so,
 * too. */
static int make_minutes(struct prune *p, struct err *e)
{
	struct seal_opts o = {.dir = p->store,
			      .minutes_alone = true,
			      .fine_s = (uint32_t)(p->fine_ns / NSEC_PER_SEC)};
	struct usage u = {0};

	if (!o.fine_s || usage_measure(p->store, &u))
		return 0;
	o.room = u.free_bytes ? u.free_bytes : 1;
	seal_look(&o, &p->due);
	return p->dry_run || !p->due.segments ? 0 : seal_run(&o, &p->minutes, e);
}

static void say_minutes(const struct prune *p)
{
	char before[32], after[32];

	if (p->dry_run && p->due.segments)
		printf("would keep minutes of %u archive%s\n", p->due.segments,
		       p->due.segments == 1 ? "" : "s");
	if (p->minutes.thinned)
		printf("kept minutes of %u archive%s: %s are %s\n", p->minutes.thinned,
		       p->minutes.thinned == 1 ? "" : "s",
		       units_bytes(p->minutes.fine_before, before, sizeof(before)),
		       units_bytes(p->minutes.fine_after, after, sizeof(after)));
}

static const char *say_time(int64_t ns, char *buf, size_t size)
{
	return ns ? units_utc(ns, 0, buf, size) : "?";
}

static json_t *time_json(int64_t ns)
{
	char text[UNITS_MAX];

	return ns ? json_string(units_utc(ns, 0, text, sizeof(text))) : json_null();
}

static json_t *removed_json(const struct removed_one *o)
{
	json_t *row = json_pack("{s:s, s:s, s:I, s:b}", "segment", o->segment, "why",
				removed_why_name(o->why), "bytes", (json_int_t)o->bytes, "counted",
				o->counted);

	json_object_set_new(row, "from", time_json(o->from_ns));
	json_object_set_new(row, "to", time_json(o->to_ns));
	json_object_set_new(row, "rows", json_integer((json_int_t)o->rows));
	json_object_set_new(row, "events", json_integer((json_int_t)o->events));
	json_object_set_new(row, "lost", json_integer((json_int_t)o->lost));
	return row;
}

static void on_removed(void *ctx, const struct removed_one *o)
{
	struct prune *p = ctx;
	char size[32], from[32], to[32];

	json_array_append_new(p->rows, removed_json(o));
	if (p->json || p->quiet)
		return;
	units_bytes(o->bytes, size, sizeof(size));
	printf("%s  %s  %10s  %s to %s  %llu events%s  (%s)\n",
	       p->dry_run ? "would remove" : "removed", o->segment, size,
	       say_time(o->from_ns, from, sizeof(from)), say_time(o->to_ns, to, sizeof(to)),
	       (unsigned long long)o->events, o->counted ? "" : " not counted",
	       removed_why_name(o->why));
}

static json_t *usage_json(const struct usage *u)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:i}", "bytes", (json_int_t)u->bytes, "images_bytes",
			 (json_int_t)u->images_bytes, "free_bytes", (json_int_t)u->free_bytes,
			 "disk_bytes", (json_int_t)u->disk_bytes, "segments", (int)u->segments);
}

static json_t *unmet_json(uint32_t unmet)
{
	json_t *list = json_array();

	for (uint32_t why = REMOVED_BUDGET; why <= REMOVED_AGE; why++)
		if (unmet & 1u << why)
			json_array_append_new(list, json_string(removed_why_name(why)));
	return list;
}

static void print_json(const struct prune *p)
{
	struct removed_page page;
	json_t *root =
		json_pack("{s:s, s:b, s:O, s:o, s:o, s:o}", "verb", "prune", "dry_run", p->dry_run,
			  "rows", p->rows, "before", usage_json(&p->report.before), "after",
			  usage_json(&p->report.after), "unmet", unmet_json(p->report.unmet));

	json_object_set_new(root, "budget_bytes", json_integer((json_int_t)p->limits.bytes));
	json_object_set_new(root, "reserve_bytes",
			    json_integer((json_int_t)p->limits.reserve_bytes));
	json_object_set_new(root, "age_seconds", json_integer(p->limits.age_ns / NSEC_PER_SEC));
	json_object_set_new(root, "keep_days", json_integer(p->limits.keep_days));
	json_object_set_new(root, "thinned",
			    json_integer(p->dry_run ? p->due.segments : p->minutes.thinned));
	json_object_set_new(root, "fine_before", json_integer((json_int_t)p->minutes.fine_before));
	json_object_set_new(root, "fine_after", json_integer((json_int_t)p->minutes.fine_after));
	json_object_set_new(root, "fine_seconds", json_integer(p->fine_ns / NSEC_PER_SEC));
	removed_read(p->store, &page);
	json_object_set_new(root, "history_begins", time_json(page.history_ns));
	json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
}

static void print_text(const struct prune *p)
{
	char own[32], budget[32], left[32], reserve[32];

	printf("store      %s: %s of %s, %u segment%s; free on its disk %s, to be kept %s\n",
	       p->store, units_bytes(p->report.after.bytes, own, sizeof(own)),
	       units_bytes(p->limits.bytes, budget, sizeof(budget)), p->report.after.segments,
	       p->report.after.segments == 1 ? "" : "s",
	       units_bytes(p->report.after.free_bytes, left, sizeof(left)),
	       units_bytes(p->limits.reserve_bytes, reserve, sizeof(reserve)));
	for (uint32_t why = REMOVED_BUDGET; why <= REMOVED_AGE; why++)
		if (p->report.unmet & 1u << why)
			printf("still over %s: what is left is being written, or needed by a writer\n",
			       removed_why_name(why));
}

int main(int argc, char **argv)
{
	struct prune p = {.keep_days = DAYS_OWN, .fine_ns = 86400 * NSEC_PER_SEC};
	struct err e = {0};
	int rc;

	log_init("sonde-prune", LOG_LEVEL_WARN);
	rc = program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, &p}, 1, NULL, &e);
	if (rc)
		return program_end(PROGRAM.name, rc, &e);
	p.rows = json_array();
	rc = settle(&p, &e);
	if (!rc)
		rc = make_minutes(&p, &e);
	if (!rc && !p.json && !p.quiet)
		say_minutes(&p);
	if (!rc)
		rc = retention_run(p.store, &p.limits, p.dry_run, on_removed, &p, &p.report, &e);
	if (!rc && p.json)
		print_json(&p);
	else if (!rc && !p.quiet)
		print_text(&p);
	json_decref(p.rows);
	return program_end(PROGRAM.name, rc, &e);
}
