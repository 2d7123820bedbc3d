/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-index: one ELF file in, its image index out (schema/image/format.h).
 *
 *   sonde-index [--all-lines | --no-lines | --lost-lines | --rows-first]   child of sonde-maps: loaders/lib/host/indexproto.h
 *   sonde-index FILE -o INDEX [--no-lines]              by hand
 *   sonde-index --dump INDEX, sonde-index --at INDEX    print an index, or what it knows of addresses
 *   sonde-index --dump-rows INDEX, --dump-tls INDEX     print its unwind rows, its probe sites of TLS
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "loaders/index/byhand.h"
#include "loaders/index/child.h"
#include "loaders/index/dump.h"
#include "loaders/lib/host/indexproto.h"
#include "schema/base/log.h"

static const char usage[] =
	"usage: sonde-index FILE -o INDEX   write the image index of an ELF file, print its key\n"
	"       sonde-index --dump INDEX    print identity and symbols of an index: address, size, name\n"
	"       sonde-index --dump-rows INDEX\n"
	"                                   print its unwind rows: address, CFA, caller's RBP, return address\n"
	"       sonde-index --dump-tls INDEX\n"
	"                                   print its probe sites of TLS libraries\n"
	"       sonde-index --at INDEX      for each address read from standard input (hexadecimal): function, file,\n"
	"                                   line, column, inlined functions first\n"
	"       sonde-index                 as a child of sonde-maps, with its descriptors\n"
	"       --no-lines                  no files, lines and inlined functions\n"
	"       --all-lines                 (child) those of large debug information too; FILE does so anyway\n"
	"       --rows-first                (child) rows as soon as there are some, all else when it is told to go on\n"
	"       --lost-lines                (child) none, and the index says that reading them failed\n";

static int is_child(void)
{
	struct stat st;

	return !fstat(INDEX_FD_SOCKET, &st) && S_ISSOCK(st.st_mode);
}

struct options {
	const char *out, *dump, *rows, *tls, *at;
	enum index_lines lines;
	bool lines_given, rows_first;
};

/* 0; 1: help was asked for; -1: no such option. */
static int options_read(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {
		{"output", required_argument, NULL, 'o'}, {"dump", required_argument, NULL, 'd'},
		{"at", required_argument, NULL, 'a'},
		{"dump-rows", required_argument, NULL, 'r'}, {"dump-tls", required_argument, NULL, 't'}, {"no-lines", no_argument, NULL, 'n'},
		{"all-lines", no_argument, NULL, 'l'}, {"lost-lines", no_argument, NULL, 'x'},
		{"rows-first", no_argument, NULL, 'f'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int opt;

	while ((opt = getopt_long(argc, argv, "o:h", known, NULL)) != -1) {
		if (opt == 'o')
			o->out = optarg;
		else if (opt == 'd')
			o->dump = optarg;
		else if (opt == 'r')
			o->rows = optarg;
		else if (opt == 't')
			o->tls = optarg;
		else if (opt == 'a')
			o->at = optarg;
		else if (opt == 'f')
			o->rows_first = true;
		else if (opt == 'n' || opt == 'l' || opt == 'x')
			o->lines = opt == 'n' ? INDEX_LINES_NONE : opt == 'l' ? INDEX_LINES_ALL : INDEX_LINES_LOST;
		else
			return opt == 'h' ? 1 : -1;
		o->lines_given |= opt == 'n' || opt == 'l' || opt == 'x';
	}
	return 0;
}

static int print(const struct options *o, struct err *e)
{
	if (o->rows)
		return dump_rows(o->rows, e);
	if (o->tls)
		return dump_tls(o->tls, e);
	return o->dump ? dump_symbols(o->dump, e) : dump_lines(o->at, e);
}

int main(int argc, char **argv)
{
	struct options o = {.lines = INDEX_LINES_SOON};
	struct err e = {0};
	int rc, prints;

	log_init("sonde-index", LOG_LEVEL_WARN);
	rc = options_read(argc, argv, &o);
	prints = !!o.dump + !!o.rows + !!o.tls + !!o.at;
	if (!rc && optind == argc && !o.out && !prints && is_child())
		return child_main(o.lines, o.rows_first);
	if (!rc && o.rows_first)
		rc = -1; /* for a child alone */
	if (!rc && !o.out && optind == argc && prints == 1 && !o.lines_given)
		rc = print(&o, &e);
	else if (!rc && o.out && optind + 1 == argc && !prints)
		rc = byhand_index(argv[optind], o.out, o.lines_given ? o.lines : INDEX_LINES_ALL, &e);
	else {
		fputs(usage, rc == 1 ? stdout : stderr);
		return rc == 1 ? EXIT_OK : EXIT_USAGE;
	}
	return rc ? err_report(&e, "sonde-index") : EXIT_OK;
}
