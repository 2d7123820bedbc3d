/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/cmdline.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/maps/cache.h"
#include "loaders/maps/publish/tablemaps.h"
#include "schema/base/cli/options.h"

static const struct program PROGRAM = {
	.name = "sonde-maps",
	.usage = "[--socket PATH | --print] [options]",
	.about =
		"Reports which processes run and what is mapped where in each, and makes the image index of each file.\n"
		"Loaders start it automatically.\n\n"
		"  sonde-maps --print                   show processes and mappings as they come and go\n"
		"  sonde-maps --socket /run/sonde/maps  serve several loaders",
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"socket", 0, OPTION_STRING, "PATH", "listen there (mode 0600; root and the same user may connect)", OPTION_AT(struct cmdline, socket)},
	{"fd", 0, OPTION_UINT, "N", "serve the client at this inherited socket, end when it goes", OPTION_AT(struct cmdline, fd), .max = INT_MAX},
	{"rows-mb", 0, OPTION_UINT, "N", "MB of memory for unwind rows (default 21)", OPTION_AT(struct cmdline, rows_mb), .min = 1, .max = TABLEMAPS_ROWS_MB_MAX},
	{"tables-fd", 0, OPTION_UINT, "N", "take over the BPF maps at the inherited descriptors N to N + 7", OPTION_AT(struct cmdline, tables_fd),
	 .max = INT_MAX},
	{"store", 0, OPTION_STRING, "DIR", "keep indexes in DIR/images (default: none are kept)", OPTION_AT(struct cmdline, store)},
	{"images-mb", 0, OPTION_UINT, "N", "keep at most N MB of them (default 256)", OPTION_AT(struct cmdline, images_mb), .min = 1,
	 .max = CACHE_MAX_BYTES >> 20},
	{"no-lines", 0, OPTION_FLAG, NULL, "indexes without source lines and inlined functions", OPTION_AT(struct cmdline, no_lines)},
	{"dotnet", 0, OPTION_FLAG, NULL, "ask programs of .NET to write the names of their functions while they are recorded (also: SONDE_DOTNET=on)", OPTION_AT(struct cmdline, dotnet)},
	{"args", 0, OPTION_WORD, "full|masked|none", "arguments of processes (default masked)", OPTION_AT(struct cmdline, args)},
	{"print", 0, OPTION_FLAG, NULL, "print the stream", OPTION_AT(struct cmdline, print)},
	{"json", 0, OPTION_FLAG, NULL, "with --print: as JSON, one object a line; with --check: as JSON", OPTION_AT(struct cmdline, json)},
	{"index", 0, OPTION_STRING, "PATH", "path of sonde-index (default: in this program's folder)", OPTION_AT(struct cmdline, index)},
	{"dump-tables", 0, OPTION_UINT, "PID", "print as JSON what the sonde-maps at --socket has published for a process (0: for none)",
	 OPTION_AT(struct cmdline, dump), .max = INT_MAX},
	{"explain", 0, OPTION_UINT, "PID", "print as JSON how the stacks of a process can be unwound, and exit", OPTION_AT(struct cmdline, explain),
	 .max = INT64_MAX},
	{"check", 0, OPTION_FLAG, NULL, "report what this host supports, and exit", OPTION_AT(struct cmdline, check)},
	{"verbose", 'v', OPTION_FLAG, NULL, "log more", OPTION_AT(struct cmdline, verbose)},
	{0},
};
/* clang-format on */

int cmdline_parse(int argc, char **argv, struct cmdline *o, struct err *e)
{
	int rc;

	*o = (struct cmdline){.fd = -1,
			      .tables_fd = -1,
			      .dump = -1,
			      .explain = -1,
			      .rows_mb = TABLEMAPS_ROWS_MB,
			      .images_mb = CACHE_MAX_BYTES >> 20};
	rc = program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, o}, 1, NULL, e);
	if (rc)
		return rc;
	o->dotnet |= getenv("SONDE_DOTNET") && !strcmp(getenv("SONDE_DOTNET"), "on");
	if (o->explain > INT32_MAX)
		return err_set(e, -ESRCH, EXIT_USAGE, "no process %lld", (long long)o->explain);
	if (o->dump >= 0 && !o->socket)
		return err_set(e, -EINVAL, EXIT_USAGE, "--dump-tables needs --socket");
	if (!o->socket && o->fd < 0 && !o->print && !o->check && o->explain < 0) {
		err_set(e, -EINVAL, EXIT_USAGE, "neither --print nor --socket is given");
		err_fix(e, "sonde-maps --print, or --socket PATH");
		return -EINVAL;
	}
	return 0;
}
