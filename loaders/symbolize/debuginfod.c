/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/symbolize/debuginfod.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/sibling.h"

#define REFUSALS_MAX 3 /* in a row: then no more requests are made */

struct debuginfod {
	char program[PATH_MAX];
	unsigned fetched, refusals;
};

/* All that the other end says, at most size - 1 bytes of it. */
static void read_text(int fd, char *text, size_t size)
{
	char beyond[256];
	size_t n = 0;
	ssize_t got = 1;

	while (got > 0 || (got < 0 && errno == EINTR)) {
		got = n + 1 < size ? read(fd, text + n, size - 1 - n) :
				     read(fd, beyond, sizeof(beyond));
		if (got > 0 && n + 1 < size)
			n += (size_t)got;
	}
	text[n] = '\0';
}

/* Run it; what it printed, and its exit status, or -errno if it does not run here. */
static int run(const struct debuginfod *d, const char *what, const char *build_id, char *text,
	       size_t size)
{
	char *argv[] = {(char *)d->program, (char *)what, (char *)build_id, NULL};
	posix_spawn_file_actions_t fa;
	int ends[2], rc, status;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&fa, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	rc = -posix_spawn(&child, d->program, &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	close(ends[1]);
	if (!rc)
		read_text(ends[0], text, size);
	close(ends[0]);
	if (rc)
		return rc;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

/* It runs, and has its library. */
static int check(const struct debuginfod *d, struct err *e)
{
	char text[64];
	int rc = run(d, "--check", NULL, text, sizeof(text));

	if (rc == EXIT_OK)
		return 0;
	if (rc == EXIT_PREREQUISITE) {
		err_set(e, -ENOENT, EXIT_PREREQUISITE,
			"--debuginfod needs elfutils' client library: libdebuginfod.so.1 cannot be used");
		err_fix(e, "apt-get install libdebuginfod1");
	} else {
		err_set(e, -ENOEXEC, EXIT_PREREQUISITE,
			"--debuginfod: %s does not run here (it needs glibc 2.34 or newer)",
			d->program);
		err_fix(e, "without --debuginfod the debug files of this host are used");
	}
	return -ENOENT;
}

int debuginfod_open(struct debuginfod **out, struct err *e)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct debuginfod *d;
	int rc;

	if (!urls || !*urls) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--debuginfod needs a server: DEBUGINFOD_URLS is not set");
		err_fix(e,
			"DEBUGINFOD_URLS=https://debuginfod.debian.net sonde symbolize --debuginfod");
		return -EINVAL;
	}
	d = mem_alloc(sizeof(*d));
	rc = sibling_find("sonde-debuginfod", d->program, e) ?: check(d, e);
	if (rc) {
		debuginfod_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

void debuginfod_close(struct debuginfod *d)
{
	free(d);
}

static int ask(struct debuginfod *d, const char *what, const char *build_id)
{
	char path[PATH_MAX];
	int rc, fd;

	if (d->refusals >= REFUSALS_MAX)
		return -EHOSTUNREACH;
	rc = run(d, what, build_id, path, sizeof(path));
	if (rc == EXIT_OK || rc == EXIT_NOTHING)
		d->refusals = 0;
	else if (++d->refusals == REFUSALS_MAX)
		log_warn("no answer from the debuginfod servers: no more requests are made");
	if (rc != EXIT_OK)
		return rc == EXIT_NOTHING ? -ENOENT : -EHOSTUNREACH;
	path[strcspn(path, "\n")] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	d->fetched++;
	return fd;
}

int debuginfod_debug(struct debuginfod *d, const uint8_t *build_id, size_t len)
{
	char hex[2 * 64 + 1];

	if (!len || len > 64)
		return -ENOENT;
	for (size_t i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
	return ask(d, "debuginfo", hex);
}

int debuginfod_executable(struct debuginfod *d, const char *build_id_hex)
{
	return ask(d, "executable", build_id_hex);
}

unsigned debuginfod_fetched(const struct debuginfod *d)
{
	return d->fetched;
}
