/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-debuginfod: fetch one file from debug servers by its build-id, through elfutils' client
 * library, which is loaded only here.
 *
 * 	sonde-debuginfod debuginfo BUILDID      the file with its debug information
 * 	sonde-debuginfod executable BUILDID     the program or library itself
 * 	sonde-debuginfod --check                whether the library is there
 *
 * Prints the path of the file in the library's cache. Servers come from DEBUGINFOD_URLS, cache and
 * time limits from the library's other variables (debuginfod(8), debuginfod_find_debuginfo(3)).
 * Exit: 0 it is there, EXIT_NOTHING no server has it, EXIT_RUNTIME no server answered,
 * EXIT_PREREQUISITE no library, EXIT_USAGE.
 *
 * A separate program, so that a library which needs curl is not loaded into programs that write the
 * store, and so that those can be linked statically.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/err.h"

#define LIBRARY "libdebuginfod.so.1"
/* a server that sends nothing for so long is not waited for */
#define SILENT_NS (20 * NSEC_PER_SEC)

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

	if (library && symbol(library, "debuginfod_begin", &begin) &&
	    symbol(library, "debuginfod_end", &end) && symbol(library, function, &find) &&
	    symbol(library, "debuginfod_set_progressfn", &set_progress))
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
		return err_set(e, fd, EXIT_NOTHING, "no server has the %s of %s",
			       function + strlen("debuginfod_find_"), build_id);
	if (fd < 0)
		return err_set(e, fd, EXIT_RUNTIME, "no answer from the debuginfod servers: %s",
			       strerror(-fd));
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

static const struct program PROGRAM = {
	.name = "sonde-debuginfod",
	.usage = "debuginfo|executable BUILDID | --check",
	.about = "Fetches a file from the debug servers in DEBUGINFOD_URLS, and prints its path.",
	.words = 2,
};

static const struct option OPTIONS[] = {
	{.name = "check",
	 .type = OPTION_FLAG,
	 .help = "check whether elfutils' client library is installed"},
	{0},
};

static int run(bool check, const struct option_words *w, struct err *e)
{
	bool program = w->n && !strcmp(w->items[0], "executable");

	if (check && !w->n)
		return fetch("debuginfod_find_debuginfo", NULL, e);
	if (!check && w->n == 2 && (program || !strcmp(w->items[0], "debuginfo")) &&
	    is_build_id(w->items[1]))
		return fetch(program ? "debuginfod_find_executable" : "debuginfod_find_debuginfo",
			     w->items[1], e);
	err_set(e, -EINVAL, EXIT_USAGE, "usage: debuginfo or executable, then a build-id");
	err_fix(e, "%s --help", PROGRAM.name);
	return -EINVAL;
}

int main(int argc, char **argv)
{
	struct option_words words;
	struct err e = {0};
	bool check = false;
	int rc = program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, &check}, 1,
				 &words, &e);

	if (!rc)
		rc = run(check, &words, &e);
	options_release(NULL, 0, &words);
	return program_end(PROGRAM.name, rc, &e);
}
