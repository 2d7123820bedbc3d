/* SPDX-License-Identifier: Apache-2.0 */
/* sonde-seal: packs the finished segments of a store into one file a day, now (schema/store/seal.h). */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/base/log.h"
#include "schema/store/seal.h"
#include "schema/store/writer.h"
#include "supervisor/quantity.h"

static const char HELP[] =
	"usage: sonde-seal [options]\n"
	"Packs the finished segments of days that are over into one file a day. What they were made of goes a minute later,\n"
	"with the next run.\n"
	"  --store DIR      the store's folder (else $SONDE_STORE)\n"
	"  --today          the day that is not over, too\n"
	"  --grace TIME     how long packed segments stay for those who read them just now (default 60s)\n"
	"  --min N          of a day that is not over, only where so many segments are finished (default 1)\n"
	"  --room SIZE      the file being made may take so much (default: any); the rest is left for later\n"
	"  --plain SIZE     of segments that are packed by themselves (they hold waits or heaps), the newest stay rows up to this (default 0)\n"
	"  --idle           pack only when nobody else wants the CPU or the disk\n"
	"  --json           the answer as JSON\n"
	"  --quiet          no talk\n"
	"  --help           this text\n";

struct seal_args {
	struct seal_opts opts;
	bool json, quiet, help;
};

static int option_take(struct seal_args *a, int opt, const char *value, struct err *e)
{
	unsigned long n;
	int64_t ns;
	char *end;

	switch (opt) {
	case 's': a->opts.dir = value; return 0;
	case 't': a->opts.today = true; return 0;
	case 'j': a->json = true; return 0;
	case 'q': a->quiet = true; return 0;
	case 'h': a->help = true; return 0;
	case 'i': a->opts.idle = true; return 0;
	case 'm':
		n = strtoul(value, &end, 10);
		if (*value < '1' || *value > '9' || *end || n > INT32_MAX)
			return err_set(e, -EINVAL, EXIT_USAGE, "--min '%.60s' is no number from 1 on", value);
		a->opts.min = (uint32_t)n;
		return 0;
	case 'r':
		if (quantity_bytes(value, &a->opts.room))
			return err_set(e, -EINVAL, EXIT_USAGE, "--room '%.60s' is not like 64M or 1G", value);
		return 0;
	case 'p':
		if (strcmp(value, "0") && quantity_bytes(value, &a->opts.plain))
			return err_set(e, -EINVAL, EXIT_USAGE, "--plain '%.60s' is not like 64M, 1G or 0", value);
		return 0;
	case 'g':
		ns = 0;
		if (strcmp(value, "0") && (quantity_ns(value, &ns) || ns / NSEC_PER_SEC > INT32_MAX))
			return err_set(e, -EINVAL, EXIT_USAGE, "--grace '%.60s' is not like 60s, 5m or 0", value);
		a->opts.grace_s = (uint32_t)(ns / NSEC_PER_SEC);
		return 0;
	default: return err_set(e, -EINVAL, EXIT_USAGE, "the command line is wrong; see sonde-seal --help");
	}
}

static int options_read(struct seal_args *a, int argc, char **argv, struct err *e)
{
	static const struct option known[] = {
		{"store", required_argument, NULL, 's'}, {"today", no_argument, NULL, 't'},
		{"min", required_argument, NULL, 'm'}, {"room", required_argument, NULL, 'r'}, {"plain", required_argument, NULL, 'p'}, {"idle", no_argument, NULL, 'i'},
		{"grace", required_argument, NULL, 'g'}, {"json", no_argument, NULL, 'j'},
		{"quiet", no_argument, NULL, 'q'}, {"help", no_argument, NULL, 'h'}, {0}};
	int opt, rc = 0;
	struct stat st;

	while (!rc && (opt = getopt_long(argc, argv, "qh", known, NULL)) != -1)
		rc = option_take(a, opt, optarg, e);
	if (!rc && optind < argc)
		rc = err_set(e, -EINVAL, EXIT_USAGE, "'%.100s': sonde-seal takes options only", argv[optind]);
	if (!a->opts.dir)
		a->opts.dir = store_default_dir();
	if (!rc && !a->help && stat(a->opts.dir, &st) == 0 && !S_ISDIR(st.st_mode)) {
		rc = err_set(e, -ENOTDIR, EXIT_USAGE, "%s is one file: sealing is of a whole store", a->opts.dir);
		err_fix(e, "name the store's folder: --store DIR");
	}
	return rc;
}

static void print_json(const struct seal_report *r)
{
	json_t *o = json_pack("{s:b, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I}", "busy", r->busy, "days", (int)r->days, "segments",
			      (int)r->segments, "removed", (int)r->removed, "archived", (int)r->archived, "put_off", (int)r->put_off, "set_aside",
			      (int)r->set_aside, "rows",
			      (json_int_t)r->rows, "samples", (json_int_t)r->samples, "bytes_before",
			      (json_int_t)r->bytes_before, "bytes_after", (json_int_t)r->bytes_after);

	json_dumpf(o, stdout, 0);
	putchar('\n');
	json_decref(o);
}

static void talk(const struct seal_report *r)
{
	if (r->busy)
		fprintf(stderr, "somebody else is sealing\n");
	else if (!r->days && !r->archived)
		fprintf(stderr, "nothing to seal\n");
	else if (!r->days)
		fprintf(stderr, "packed %u segment%s: %.1f MB are %.1f MB\n", r->archived, r->archived == 1 ? "" : "s", (double)r->bytes_before / 1e6,
			(double)r->bytes_after / 1e6);
	else
		fprintf(stderr, "sealed %u segments into %u day%s, packed %u by themselves: %.1f MB are %.1f MB\n", r->segments, r->days,
			r->days == 1 ? "" : "s", r->archived, (double)r->bytes_before / 1e6, (double)r->bytes_after / 1e6);
	if (r->removed)
		fprintf(stderr, "removed %u files that were sealed before\n", r->removed);
}

/* The guess may be wrong: then the disk is full for us alone, which leaves all as it was. */
static void keep_to(uint64_t room)
{
	struct rlimit most = {room, room};

	signal(SIGXFSZ, SIG_IGN);
	if (room)
		setrlimit(RLIMIT_FSIZE, &most);
}

int main(int argc, char **argv)
{
	struct seal_args a = {.opts = {.grace_s = SEAL_GRACE_S}};
	struct seal_report r;
	struct err e = {0};
	int rc = options_read(&a, argc, argv, &e);

	log_init("sonde-seal", LOG_LEVEL_WARN);
	if (rc)
		return err_report(&e, "sonde-seal");
	if (a.help) {
		fputs(HELP, stdout);
		return 0;
	}
	keep_to(a.opts.room);
	rc = seal_run(&a.opts, &r, &e);
	if (rc)
		return err_report(&e, "sonde-seal");
	if (a.json)
		print_json(&r);
	if (!a.quiet && !a.json)
		talk(&r);
	return 0;
}
