/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-debuginfod: fetch one file from debug servers by its build-id, through elfutils' client library, which is loaded
 * only here.
 *
 *	sonde-debuginfod debuginfo BUILDID      the file with its debug information
 *	sonde-debuginfod executable BUILDID     the program or library itself
 *	sonde-debuginfod --check                whether the library is there
 *
 * Prints the path of the file in the library's cache. Servers come from DEBUGINFOD_URLS, cache and time limits from the library's
 * other variables (debuginfod(8), debuginfod_find_debuginfo(3)). Exit: 0 it is there, EXIT_NOTHING no server has it,
 * EXIT_RUNTIME no server answered, EXIT_PREREQUISITE no library, EXIT_USAGE.
 *
 * A program of its own: a library with curl below it stays out of those that write the store, and those may be static.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/err.h"

#define LIBRARY   "libdebuginfod.so.1"
#define SILENT_NS (20 * NSEC_PER_SEC) /* a server that sends nothing for so long is not waited for */

static const char HELP[] =
	"sonde-debuginfod: fetch a file from debug servers, print where it is\n"
	"usage: sonde-debuginfod debuginfo|executable BUILDID | --check\n"
	"  --check          whether elfutils' client library is there\n"
	"  --help           this text\n"
	"The servers are those of DEBUGINFOD_URLS.\n";

/* The library's functions, by its manual: build_id_len 0 says that the id is text. */
typedef struct debuginfod_client client;
typedef client *begin_fn(void);
typedef void end_fn(client *);
typedef int find_fn(client *, const unsigned char *build_id, int build_id_len, char **path);
typedef void progress_fn(client *, int (*)(client *, long a, long b));

static int64_t moved_ns; /* when something came last */
static long moved_to;

static int on_progress(client *c, long a, long b)
{
	int64_t now = clock_boot_ns();

	(void)c;
	(void)b;
	if (a != moved_to) {
		moved_to = a;
		moved_ns = now;
	}
	return now - moved_ns > SILENT_NS; /* not 0: give up */
}

static bool symbol(void *library, const char *name, void *out)
{
	void *p = dlsym(library, name);

	memcpy(out, &p, sizeof(p)); /* ISO C has no cast from object to function pointer */
	return p;
}

static int fetch(const char *function, const char *build_id, struct err *e)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	begin_fn *begin;
	end_fn *end;
	find_fn *find;
	progress_fn *set_progress;
	client *c = NULL;
	char *path = NULL;
	int fd;

	if (library && symbol(library, "debuginfod_begin", &begin) && symbol(library, "debuginfod_end", &end) &&
	    symbol(library, function, &find) && symbol(library, "debuginfod_set_progressfn", &set_progress))
		c = begin();
	if (!c) {
		err_set(e, -ENOENT, EXIT_PREREQUISITE, "%s cannot be used", LIBRARY);
		err_fix(e, "apt-get install libdebuginfod1");
		return -ENOENT;
	}
	if (!build_id)
		return 0;
	set_progress(c, on_progress);
	moved_ns = clock_boot_ns();
	fd = find(c, (const unsigned char *)build_id, 0, &path);
	if (fd == -ENOENT)
		return err_set(e, fd, EXIT_NOTHING, "no server has the %s of %s", function + strlen("debuginfod_find_"), build_id);
	if (fd < 0)
		return err_set(e, fd, EXIT_RUNTIME, "no answer from the debuginfod servers: %s", strerror(-fd));
	close(fd);
	puts(path ? path : "");
	free(path);
	end(c);
	return 0;
}

static bool is_build_id(const char *text)
{
	size_t n = strlen(text);

	return n >= 2 && n <= 128 && n % 2 == 0 && strspn(text, "0123456789abcdef") == n;
}

int main(int argc, char **argv)
{
	struct err e = {0};
	const char *function = "debuginfod_find_debuginfo", *build_id = argc == 3 ? argv[2] : NULL;
	bool known = argc == 2 && !strcmp(argv[1], "--check");

	if (argc == 2 && !strcmp(argv[1], "--help"))
		return fputs(HELP, stdout) < 0 ? EXIT_RUNTIME : EXIT_OK;
	if (build_id && !strcmp(argv[1], "executable"))
		function = "debuginfod_find_executable";
	else if (build_id && strcmp(argv[1], "debuginfo"))
		build_id = NULL;
	if (!known && (!build_id || !is_build_id(build_id))) {
		err_set(&e, -EINVAL, EXIT_USAGE, "the command line is wrong; see sonde-debuginfod --help");
	} else if (!fetch(function, build_id, &e)) {
		return fflush(stdout) ? EXIT_RUNTIME : EXIT_OK;
	}
	return err_report(&e, "sonde-debuginfod");
}
