/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/read/span_cache.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

struct record {
	struct span_cache_file file;
	struct span_cache_span span;
	uint64_t sum;
};

static struct record *known; /* read once, not freed: as long as the process */
static size_t n_known;
static int cache_fd = -1;

static uint64_t sum_of(const struct record *r)
{
	return hash_bytes(HASH_SEED, r, offsetof(struct record, sum));
}

static bool is_appended(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_APPEND;
}

void span_cache_load(void)
{
	const char *text = getenv("SONDE_SPANS");
	char *end;
	long fd = text ? strtol(text, &end, 10) : -1;
	struct stat st;

	/* appended to: so it is nothing that this process has opened itself under that number */
	if (known || !text || *text < '0' || *text > '9' || *end || fd < 3 || fd > 1023 ||
	    !is_appended((int)fd) || fstat((int)fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size > (off_t)(SPAN_CACHE_MOST * sizeof(struct record)))
		return;
	known = mem_alloc((size_t)st.st_size + 1);
	if (pread((int)fd, known, (size_t)st.st_size, 0) == st.st_size)
		n_known = (size_t)st.st_size / sizeof(*known);
	cache_fd = (int)fd;
}

static bool has_log(const char *path)
{
	static const char *const ends[] = {"-wal", "-journal"};
	char name[PATH_MAX + 16];

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		if (!access(name, F_OK))
			return true;
	}
	return false;
}

bool span_cache_of(const char *path, struct span_cache_file *f)
{
	struct stat st;

	if (cache_fd < 0 || has_log(path) || stat(path, &st) < 0)
		return false;
	*f = (struct span_cache_file){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns = st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec,
		.ctime_ns = st.st_ctim.tv_sec * NSEC_PER_SEC + st.st_ctim.tv_nsec,
	};
	return true;
}

bool span_cache_get(const struct span_cache_file *f, struct span_cache_span *span)
{
	for (size_t i = 0; i < n_known; i++)
		if (!memcmp(&known[i].file, f, sizeof(*f)) && known[i].sum == sum_of(&known[i])) {
			*span = known[i].span;
			return true;
		}
	return false;
}

void span_cache_put(const struct span_cache_file *f, const struct span_cache_span *span)
{
	struct record r = {.file = *f, .span = *span};
	int64_t now_ns = clock_utc_ns();

	if (cache_fd < 0 || n_known >= SPAN_CACHE_MOST / 2 ||
	    f->ctime_ns > now_ns - SPAN_CACHE_SETTLED_S * NSEC_PER_SEC)
		return;
	r.sum = sum_of(&r);
	if (write(cache_fd, &r, sizeof(r)) < 0)
		return; /* read again next time */
}
