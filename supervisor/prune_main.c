/* SPDX-License-Identifier: Apache-2.0 */
/* sonde-prune: one pass of retention over a store, now. sonded does the same by itself (schema/store/retention/retention.h). */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/base/log.h"
#include "schema/store/retention/retention.h"
#include "schema/store/write/writer.h"
#include "supervisor/quantity.h"

static const char HELP[] =
	"usage: sonde-prune [options]\n"
	"Removes the oldest segments of a store until it is within its budget. sonded does so by itself.\n"
	"  --store DIR      the store's folder (else $SONDE_STORE)\n"
	"  --budget SIZE    what all of the store may take: 2G, 500M (default: the smaller of 2G and 5 % of the disk)\n"
	"  --reserve SIZE   what must be free on its disk (default: the smaller of 512M and 5 % of the disk)\n"
	"  --age TIME       nothing older than this stays: 14d, 12h (default 14d)\n"
	"  --keep-days N    the newest N days that there is anything of stay, however old (default 2)\n"
	"  --dry-run        say what would go, remove nothing\n"
	"  --json           the answer as JSON\n"
	"  --quiet          no talk\n"
	"  --help           this text\n";

#define DAYS_MOST 100000

struct prune {
	const char *store;
	struct retention_limits limits;
	struct retention_report report;
	uint32_t keep_days;
	bool days_given, dry_run, json, quiet, help;
	json_t *rows;
};

static int bad_value(const char *option, const char *value, const char *like, struct err *e)
{
	return err_set(e, -EINVAL, EXIT_USAGE, "--%s '%.60s' is not like %s", option, value, like);
}

static int days_take(struct prune *p, const char *value, struct err *e)
{
	char *end;
	unsigned long days = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || days > DAYS_MOST)
		return bad_value("keep-days", value, "2, or 0", e);
	p->keep_days = (uint32_t)days;
	p->days_given = true;
	return 0;
}

static int option_take(struct prune *p, int opt, const char *value, struct err *e)
{
	switch (opt) {
	case 's': p->store = value; return 0;
	case 'b': return quantity_bytes(value, &p->limits.bytes) ? bad_value("budget", value, "2G or 500M", e) : 0;
	case 'r': return quantity_bytes(value, &p->limits.reserve_bytes) ? bad_value("reserve", value, "512M", e) : 0;
	case 'a': return quantity_ns(value, &p->limits.age_ns) ? bad_value("age", value, "14d or 12h", e) : 0;
	case 'k': return days_take(p, value, e);
	case 'n': p->dry_run = true; return 0;
	case 'j': p->json = true; return 0;
	case 'q': p->quiet = true; return 0;
	case 'h': p->help = true; return 0;
	default: return err_set(e, -EINVAL, EXIT_USAGE, "the command line is wrong; see sonde-prune --help");
	}
}

static int options_read(struct prune *p, int argc, char **argv, struct err *e)
{
	static const struct option known[] = {
		{"store", required_argument, NULL, 's'}, {"budget", required_argument, NULL, 'b'},
		{"reserve", required_argument, NULL, 'r'}, {"age", required_argument, NULL, 'a'},
		{"keep-days", required_argument, NULL, 'k'},
		{"dry-run", no_argument, NULL, 'n'}, {"json", no_argument, NULL, 'j'},
		{"quiet", no_argument, NULL, 'q'}, {"help", no_argument, NULL, 'h'}, {0}};
	int opt, rc = 0;

	while (!rc && (opt = getopt_long(argc, argv, "qh", known, NULL)) != -1)
		rc = option_take(p, opt, optarg, e);
	if (!rc && optind < argc)
		rc = err_set(e, -EINVAL, EXIT_USAGE, "'%.100s': sonde-prune takes options only", argv[optind]);
	return rc;
}

/* What was not given: by the disk that the store is on. */
static int settle(struct prune *p, struct err *e)
{
	struct retention_limits given = p->limits;
	struct stat st;

	if (!p->store)
		p->store = store_default_dir();
	if (stat(p->store, &st) == 0 && !S_ISDIR(st.st_mode)) {
		err_set(e, -ENOTDIR, EXIT_USAGE, "%s is one file: retention is of a whole store", p->store);
		err_fix(e, "name the store's folder: --store DIR");
		return -ENOTDIR;
	}
	retention_defaults(p->store, &p->limits);
	p->limits.bytes = given.bytes ? given.bytes : p->limits.bytes;
	p->limits.reserve_bytes = given.reserve_bytes ? given.reserve_bytes : p->limits.reserve_bytes;
	p->limits.age_ns = given.age_ns ? given.age_ns : p->limits.age_ns;
	p->limits.keep_days = p->days_given ? p->keep_days : p->limits.keep_days;
	return 0;
}

static void say_time(int64_t ns, char *buf, size_t size)
{
	time_t s = ns / NSEC_PER_SEC;
	struct tm tm;

	if (!ns || !gmtime_r(&s, &tm) || !strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(buf, size, "?");
}

static json_t *removed_json(const struct removed_one *o)
{
	char from[32], to[32];
	json_t *row = json_pack("{s:s, s:s, s:I, s:b}", "segment", o->segment, "why", removed_why_name(o->why), "bytes",
				(json_int_t)o->bytes, "counted", o->counted);

	say_time(o->from_ns, from, sizeof(from));
	say_time(o->to_ns, to, sizeof(to));
	json_object_set_new(row, "from", o->from_ns ? json_string(from) : json_null());
	json_object_set_new(row, "to", o->to_ns ? json_string(to) : json_null());
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
	quantity_say_bytes(o->bytes, size, sizeof(size));
	say_time(o->from_ns, from, sizeof(from));
	say_time(o->to_ns, to, sizeof(to));
	printf("%s  %s  %10s  %s to %s  %llu events%s  (%s)\n", p->dry_run ? "would remove" : "removed", o->segment, size,
	       from, to, (unsigned long long)o->events, o->counted ? "" : " not counted", removed_why_name(o->why));
}

static json_t *usage_json(const struct usage *u)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:i}", "bytes", (json_int_t)u->bytes, "images_bytes",
			 (json_int_t)u->images_bytes, "free_bytes", (json_int_t)u->free_bytes, "disk_bytes",
			 (json_int_t)u->disk_bytes, "segments", (int)u->segments);
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
	char begins[32];
	json_t *root = json_pack("{s:s, s:b, s:O, s:o, s:o, s:o}", "verb", "prune", "dry_run", p->dry_run, "rows", p->rows,
				 "before", usage_json(&p->report.before), "after", usage_json(&p->report.after), "unmet",
				 unmet_json(p->report.unmet));

	json_object_set_new(root, "budget_bytes", json_integer((json_int_t)p->limits.bytes));
	json_object_set_new(root, "reserve_bytes", json_integer((json_int_t)p->limits.reserve_bytes));
	json_object_set_new(root, "age_seconds", json_integer(p->limits.age_ns / NSEC_PER_SEC));
	json_object_set_new(root, "keep_days", json_integer(p->limits.keep_days));
	removed_read(p->store, &page);
	say_time(page.history_ns, begins, sizeof(begins));
	json_object_set_new(root, "history_begins", page.history_ns ? json_string(begins) : json_null());
	json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
}

static void print_text(const struct prune *p)
{
	char own[32], budget[32], left[32], reserve[32];

	printf("store      %s: %s of %s, %u segments; free on its disk %s, to be kept %s\n", p->store,
	       quantity_say_bytes(p->report.after.bytes, own, sizeof(own)),
	       quantity_say_bytes(p->limits.bytes, budget, sizeof(budget)), p->report.after.segments,
	       quantity_say_bytes(p->report.after.free_bytes, left, sizeof(left)),
	       quantity_say_bytes(p->limits.reserve_bytes, reserve, sizeof(reserve)));
	for (uint32_t why = REMOVED_BUDGET; why <= REMOVED_AGE; why++)
		if (p->report.unmet & 1u << why)
			printf("still over %s: what is left is being written, or needed by a writer\n",
			       removed_why_name(why));
}

int main(int argc, char **argv)
{
	struct prune p = {0};
	struct err e = {0};
	int rc;

	log_init("sonde-prune", LOG_LEVEL_WARN);
	rc = options_read(&p, argc, argv, &e);
	if (!rc && p.help) {
		fputs(HELP, stdout);
		return EXIT_OK;
	}
	p.rows = json_array();
	if (!rc)
		rc = settle(&p, &e);
	if (!rc)
		rc = retention_run(p.store, &p.limits, p.dry_run, on_removed, &p, &p.report, &e);
	if (!rc && p.json)
		print_json(&p);
	else if (!rc && !p.quiet)
		print_text(&p);
	json_decref(p.rows);
	if (!rc && (fflush(stdout) || ferror(stdout)))
		rc = err_set(&e, -EIO, EXIT_RUNTIME, "cannot write standard output: %s", strerror(errno));
	return rc ? err_report(&e, "sonde-prune") : EXIT_OK;
}
