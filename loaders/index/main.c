/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-index: one ELF file in, its image index out (schema/image/format.h).
 *
 *   sonde-index [--all-lines | --no-lines | --lost-lines | --rows-first]   child of sonde-maps:
 *                                                                          loaders/lib/host/maps/indexproto.h
 *   sonde-index FILE -o INDEX [--no-lines]              by hand
 *   sonde-index --dump INDEX, sonde-index --at INDEX    print an index, or what it knows of
 *                                                       addresses
 *   sonde-index --dump-rows INDEX, --dump-tls INDEX     print its unwind rows, its probe sites of
 *                                                       TLS
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "loaders/index/byhand.h"
#include "loaders/index/child.h"
#include "loaders/index/dump.h"
#include "loaders/lib/host/maps/indexproto.h"
#include "schema/base/cli/options.h"
#include "schema/base/log.h"

static int is_child(void)
{
	struct stat st;

	return !fstat(INDEX_FD_SOCKET, &st) && S_ISSOCK(st.st_mode);
}

#define LINES_OWN (-1) /* nothing was said of them */

struct options {
	const char *out, *dump, *rows, *tls, *at;
	int lines; /* enum index_lines */
	bool rows_first;
};

static const struct program PROGRAM = {
	.name = "sonde-index",
	.usage = "FILE -o INDEX | --dump INDEX | --dump-rows INDEX | --dump-tls INDEX | --at INDEX",
	.about =
		"Writes the image index of an ELF file, and prints its key; or prints what is in an index.\n"
		"Without any of these: as a child of sonde-maps, with its descriptors.",
	.words = 1,
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"output", 'o', OPTION_STRING, "INDEX", "where the index is written", OPTION_AT(struct options, out)},
	{"dump", 0, OPTION_STRING, "INDEX", "identity and symbols of an index: address, size, name", OPTION_AT(struct options, dump)},
	{"dump-rows", 0, OPTION_STRING, "INDEX", "its unwind rows: address, CFA, caller's RBP, return address", OPTION_AT(struct options, rows)},
	{"dump-tls", 0, OPTION_STRING, "INDEX", "its probe sites of TLS libraries", OPTION_AT(struct options, tls)},
	{"at", 0, OPTION_STRING, "INDEX", "for each address read from standard input (hexadecimal): function, file, line, column, inlined functions first",
	 OPTION_AT(struct options, at)},
	{"no-lines", 0, OPTION_SET, NULL, "no files, lines and inlined functions", OPTION_AT(struct options, lines), .min = INDEX_LINES_NONE},
	{"all-lines", 0, OPTION_SET, NULL, "(child) those of large debug information too; FILE does so anyway", OPTION_AT(struct options, lines),
	 .min = INDEX_LINES_ALL},
	{"rows-first", 0, OPTION_FLAG, NULL, "(child) rows as soon as there are some, all else when it is told to go on", OPTION_AT(struct options, rows_first)},
	{"lost-lines", 0, OPTION_SET, NULL, "(child) none, and the index says that reading them failed", OPTION_AT(struct options, lines),
	 .min = INDEX_LINES_LOST},
	{0},
};
/* clang-format on */

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
	struct options o = {.lines = LINES_OWN};
	struct option_words words;
	struct err e = {0};
	int rc, prints;

	log_init(PROGRAM.name, LOG_LEVEL_WARN);
	rc = program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, &o}, 1, &words,
			     &e);
	prints = !!o.dump + !!o.rows + !!o.tls + !!o.at;
	if (rc)
		;
	else if (!words.n && !o.out && !prints && is_child())
		return child_main(o.lines == LINES_OWN ? INDEX_LINES_SOON :
							 (enum index_lines)o.lines,
				  o.rows_first);
	else if (!o.out && !words.n && prints == 1 && o.lines == LINES_OWN && !o.rows_first)
		rc = print(&o, &e);
	else if (o.out && words.n == 1 && !prints && !o.rows_first) /* which is for a child alone */
		rc = byhand_index(
			words.items[0], o.out,
			o.lines == LINES_OWN ? INDEX_LINES_ALL : (enum index_lines)o.lines, &e);
	else {
		rc = err_set(
			&e, -EINVAL, EXIT_USAGE,
			"either FILE and -o INDEX, or one of --dump, --dump-rows, --dump-tls and --at");
		err_fix(&e, "%s --help", PROGRAM.name);
	}
	options_release(NULL, 0, &words);
	return program_end(PROGRAM.name, rc, &e);
}
