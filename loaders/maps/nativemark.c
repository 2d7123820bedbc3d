/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/nativemark.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define PIECE (1u << 20)

/* The first letter is kept apart: else this program has the texts, too. */
static const struct mark {
	char first;
	const char *rest, *name;
} MARKS[] = {
	{'c', "om.oracle.svm.core.VM=", "native-image"},
	{'G', "HCRTS", "ghc"},
	{'C', "AMLRUNPARAM", "ocaml"},
};
#define MARK_MAX 32 /* more than any of them has */

static int has(const char *bytes, size_t len, const struct mark *m)
{
	size_t n = strlen(m->rest);
	const char *at = bytes, *end = bytes + len;

	while (at < end && (at = memchr(at, m->first, (size_t)(end - at)))) {
		at++;
		if ((size_t)(end - at) >= n && !memcmp(at, m->rest, n))
			return 1;
	}
	return 0;
}

const char *nativemark_find(const void *bytes, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(MARKS); i++)
		if (has(bytes, len, &MARKS[i]))
			return MARKS[i].name;
	return NULL;
}

const char *nativemark_of(uint32_t pid)
{
	cleanup_free char *piece = mem_alloc(PIECE);
	const char *name = NULL;
	char path[40];
	struct stat st;
	ssize_t n = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		n = 0;
	for (uint64_t at = 0; n > 0 && !name && at < NATIVEMARK_BYTES; at += PIECE - MARK_MAX) {
		n = pread(fd, piece, PIECE, (off_t)at);
		name = n > 0 ? nativemark_find(piece, (size_t)n) : NULL;
	}
	close(fd);
	return name;
}
