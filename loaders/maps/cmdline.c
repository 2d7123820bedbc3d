// SPDX-License-Identifier: Apache-2.0
#include "loaders/maps/cmdline.h"

#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "loaders/lib/host/cache.h"
#include "loaders/maps/tablemaps.h"

static const char usage[] =
	"usage: sonde-maps [--socket PATH | --print] [--store DIR]\n"
	"\n"
	"Tells which processes run, what is mapped where in each, and makes the image index of each file.\n"
	"The loaders start it for themselves.\n"
	"\n"
	"  sonde-maps --print                   show processes and mappings as they come and go\n"
	"  sonde-maps --socket /run/sonde/maps  serve several loaders\n"
	"\n"
	"  --socket PATH    listen there (mode 0600; root and the same user may connect)\n"
	"  --fd N           serve the client at this inherited socket, end when it goes\n"
	"  --rows-mb N      room for unwind rows (default 21)\n"
	"  --tables-fd N    take over the BPF maps at the inherited descriptors N to N + 7\n"
	"  --store DIR      keep indexes in DIR/images (default: none are kept)\n"
	"  --images-mb N    keep at most so much there (default 256)\n"
	"  --no-lines       indexes without source lines and inlined functions\n"
	"  --args POLICY    arguments of processes: full, masked (default), none\n"
	"  --print          print the stream; --json: as JSON, one object a line\n"
	"  --index PATH     sonde-index, if it is not beside this program\n"
	"  --dump-tables PID  print what the sonde-maps at --socket has published of a process (0: of none), as JSON\n"
	"  --explain PID    say how the stacks of a process can be unwound, as JSON, and end\n"
	"  --check          say what this host allows, and end\n"
	"  --verbose        more talk\n"
	"  --help           this text\n";

int cmdline_parse(int argc, char **argv, struct cmdline *o, struct err *e)
{
	static const struct option longs[] = {
		{"socket", required_argument, NULL, 's'}, {"fd", required_argument, NULL, 'f'},
		{"store", required_argument, NULL, 'd'},  {"args", required_argument, NULL, 'a'},
		{"index", required_argument, NULL, 'i'},  {"print", no_argument, NULL, 'p'},
		{"json", no_argument, NULL, 'j'},         {"check", no_argument, NULL, 'c'},
		{"verbose", no_argument, NULL, 'v'},      {"help", no_argument, NULL, 'h'},
		{"rows-mb", required_argument, NULL, 'r'}, {"tables-fd", required_argument, NULL, 't'},
		{"dump-tables", required_argument, NULL, 'T'}, {"explain", required_argument, NULL, 'E'},
		{"no-lines", no_argument, NULL, 'n'}, {"images-mb", required_argument, NULL, 'm'}, {0}};
	int c;

	*o = (struct cmdline){.fd = -1, .tables_fd = -1, .dump = -1, .explain = -1, .rows_mb = TABLEMAPS_ROWS_MB,
			   .images_mb = CACHE_MAX_BYTES >> 20};
	while ((c = getopt_long(argc, argv, "hv", longs, NULL)) != -1) {
		switch (c) {
		case 's': o->socket = optarg; break;
		case 'f': o->fd = atoi(optarg); break;
		case 'd': o->store = optarg; break;
		case 'a': o->args = optarg; break;
		case 'i': o->index = optarg; break;
		case 'p': o->print = true; break;
		case 'j': o->json = true; break;
		case 'c': o->check = true; break;
		case 'v': o->verbose = true; break;
		case 'r': o->rows_mb = (unsigned int)strtoul(optarg, NULL, 10); break;
		case 't': o->tables_fd = atoi(optarg); break;
		case 'E': o->explain = strtol(optarg, NULL, 10); break;
		case 'n': o->no_lines = true; break;
		case 'm': o->images_mb = (unsigned int)strtoul(optarg, NULL, 10); break;
		case 'T': o->dump = strtol(optarg, NULL, 10); break;
		case 'h': fputs(usage, stdout); return 1;
		default: return err_set(e, -EINVAL, EXIT_USAGE, "the command line is wrong; see sonde-maps --help");
		}
	}
	if (o->explain > INT32_MAX)
		return err_set(e, -ESRCH, EXIT_USAGE, "no process %ld", o->explain);
	if (optind < argc)
		return err_set(e, -EINVAL, EXIT_USAGE, "what is '%s'? see sonde-maps --help", argv[optind]);
	if (!o->rows_mb || o->rows_mb > TABLEMAPS_ROWS_MB_MAX)
		return err_set(e, -EINVAL, EXIT_USAGE, "--rows-mb is 1 to %d", TABLEMAPS_ROWS_MB_MAX);
	if (!o->images_mb || o->images_mb > CACHE_MAX_BYTES >> 20)
		return err_set(e, -EINVAL, EXIT_USAGE, "--images-mb is 1 to %llu", CACHE_MAX_BYTES >> 20);
	if (o->dump >= 0 && !o->socket)
		return err_set(e, -EINVAL, EXIT_USAGE, "--dump-tables needs --socket");
	if (!o->socket && o->fd < 0 && !o->print && !o->check && o->explain < 0) {
		err_set(e, -EINVAL, EXIT_USAGE, "nobody to talk to");
		err_fix(e, "sonde-maps --print, or --socket PATH");
		return -EINVAL;
	}
	return 0;
}
