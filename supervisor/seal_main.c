/* SPDX-License-Identifier: Apache-2.0 */
/* sonde-seal: archives the finished segments of a store, now (schema/store/archive/seal.h). */
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
#include "schema/store/archive/seal.h"
#include "schema/store/write/writer.h"
#include "supervisor/quantity.h"

static const char HELP[] =
	"usage: sonde-seal [options]\n"
	"Archives the finished segments of a store: the same rows in a fifth of the bytes.\n"
	"  --store DIR      the store's folder (else $SONDE_STORE)\n"
	"  --plain SIZE     the newest segments stay as they are, up to this many bytes (default 0)\n"
	"  --keep TIME      as do those finished less than this ago, up to twice as many bytes (default 0)\n"
	"  --room SIZE      the file being made may take so much (default: any); a larger one is left for later\n"
	"  --idle           archive only when nobody else wants the CPU or the disk\n"
	"  --json           the answer as JSON\n"
	"  --quiet          no talk\n"
	"  --help           this text\n";

struct seal_args {
	struct seal_opts opts;
	bool json, quiet, help;
};

static int option_take(struct seal_args *a, int opt, const char *value, struct err *e)
{
	int64_t ns;

	switch (opt) {
	case 's': a->opts.dir = value; return 0;
	case 'j': a->json = true; return 0;
	case 'q': a->quiet = true; return 0;
	case 'h': a->help = true; return 0;
	case 'i': a->opts.idle = true; return 0;
	case 'r':
		if (quantity_bytes(value, &a->opts.room))
			return err_set(e, -EINVAL, EXIT_USAGE, "--room '%.60s' is not like 64M or 1G", value);
		return 0;
	case 'p':
		if (strcmp(value, "0") && quantity_bytes(value, &a->opts.plain))
			return err_set(e, -EINVAL, EXIT_USAGE, "--plain '%.60s' is not like 64M, 1G or 0", value);
		return 0;
	case 'k':
		ns = 0;
		if (strcmp(value, "0") && (quantity_ns(value, &ns) || ns / NSEC_PER_SEC > INT32_MAX))
			return err_set(e, -EINVAL, EXIT_USAGE, "--keep '%.60s' is not like 60s, 2h or 0", value);
		a->opts.keep_s = (uint32_t)(ns / NSEC_PER_SEC);
		return 0;
	default: return err_set(e, -EINVAL, EXIT_USAGE, "the command line is wrong; see sonde-seal --help");
	}
}

static int options_read(struct seal_args *a, int argc, char **argv, struct err *e)
{
	static const struct option known[] = {
		{"store", required_argument, NULL, 's'}, {"keep", required_argument, NULL, 'k'},
		{"room", required_argument, NULL, 'r'}, {"plain", required_argument, NULL, 'p'}, {"idle", no_argument, NULL, 'i'},
		{"json", no_argument, NULL, 'j'},
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
	json_t *o = json_pack("{s:b, s:i, s:i, s:i, s:I, s:I}", "busy", r->busy, "segments", (int)r->segments, "put_off", (int)r->put_off, "set_aside",
			      (int)r->set_aside, "bytes_before", (json_int_t)r->bytes_before, "bytes_after", (json_int_t)r->bytes_after);

	json_dumpf(o, stdout, 0);
	putchar('\n');
	json_decref(o);
}

static void talk(const struct seal_report *r)
{
	if (r->busy)
		fprintf(stderr, "somebody else is sealing\n");
	else if (!r->segments)
		fprintf(stderr, "nothing to archive\n");
	else
		fprintf(stderr, "archived %u segment%s: %.1f MB are %.1f MB\n", r->segments, r->segments == 1 ? "" : "s", (double)r->bytes_before / 1e6,
			(double)r->bytes_after / 1e6);
	if (r->put_off)
		fprintf(stderr, "%u segment%s left for later: in use, or without room\n", r->put_off, r->put_off == 1 ? " is" : "s are");
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
	struct seal_args a = {0};
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
