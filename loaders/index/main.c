/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-index: one ELF file in, its image index out (schema/image/format.h).
 *
 *   sonde-index                      child of sonde-maps: descriptors 3, 4, 5 as in loaders/lib/host/indexproto.h
 *   sonde-index FILE -o INDEX        by hand
 *   sonde-index --dump INDEX         print an index
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "loaders/index/byhand.h"
#include "loaders/index/child.h"
#include "loaders/lib/host/indexproto.h"
#include "schema/base/log.h"

static const char usage[] =
	"usage: sonde-index FILE -o INDEX   write the image index of an ELF file, print its key\n"
	"       sonde-index --dump INDEX    print identity and symbols of an index: address, size, name\n"
	"       sonde-index                 as a child of sonde-maps, with its descriptors\n";

static int is_child(void)
{
	struct stat st;

	return !fstat(INDEX_FD_SOCKET, &st) && S_ISSOCK(st.st_mode);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'}, {"dump", required_argument, NULL, 'd'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	const char *out = NULL, *dump = NULL;
	struct err e = {0};
	int opt, rc;

	log_init("sonde-index", LOG_LEVEL_WARN);
	if (argc == 1 && is_child())
		return child_main();
	while ((opt = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		if (opt == 'o')
			out = optarg;
		else if (opt == 'd')
			dump = optarg;
		else {
			fputs(usage, opt == 'h' ? stdout : stderr);
			return opt == 'h' ? EXIT_OK : EXIT_USAGE;
		}
	}
	if (dump ? out || optind != argc : !out || optind + 1 != argc) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	rc = dump ? byhand_dump(dump, &e) : byhand_index(argv[optind], out, &e);
	return rc ? err_report(&e, "sonde-index") : EXIT_OK;
}
