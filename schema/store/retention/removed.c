/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/retention/removed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"

#define PAGE (REMOVED_FILE_BYTES / 2)

static const char magic[8] = {'s', 'o', 'n', 'd', 'e', 'r', 'e', 'm'};

const char *removed_why_name(uint32_t why)
{
	static const char *const names[] = {"", "budget", "disk", "age"};

	return why < ARRAY_SIZE(names) ? names[why] : "";
}

static uint64_t page_check(const struct removed_page *p)
{
	return hash_bytes(HASH_SEED, p, offsetof(struct removed_page, check));
}

static bool page_valid(const struct removed_page *p)
{
	return !memcmp(p->magic, magic, sizeof(magic)) && p->version == 1 &&
	       p->check == page_check(p) && p->n_families <= SEGCOUNT_FAMILIES &&
	       p->pending_families <= SEGCOUNT_FAMILIES;
}

static int page_load(int fd, struct removed_page *out)
{
	struct removed_page p;
	bool any = false;

	*out = (struct removed_page){.version = 1};
	memcpy(out->magic, magic, sizeof(magic));
	for (int i = 0; i < 2; i++) {
		ssize_t n = pread(fd, &p, sizeof(p), (off_t)i * PAGE);

		if (n < 0)
			return -errno;
		if (n != sizeof(p) || !page_valid(&p) || (any && p.sequence < out->sequence))
			continue;
		*out = p;
		any = true;
	}
	return 0;
}

static int page_store(int fd, struct removed_page *p)
{
	p->sequence++;
	p->check = page_check(p);
	if (pwrite(fd, p, sizeof(*p), (off_t)(p->sequence % 2) * PAGE) != sizeof(*p))
		return errno ? -errno : -EIO;
	return fdatasync(fd) < 0 ? -errno : 0;
}

static int refuse(const char *dir, int code, struct err *e)
{
	if (code == -ENOSPC || code == -EDQUOT)
		return folder_full(dir, e);
	err_set(e, code,
		code == -EACCES || code == -EPERM || code == -EROFS ? EXIT_PERMISSION : EXIT_STORE,
		"cannot write %s/removed: %s", dir, strerror(-code));
	err_fix(e, "run it with sudo");
	return code;
}

int removed_read(const char *dir, struct removed_page *out)
{
	char path[PATH_MAX];
	cleanup_fd int fd = -1;

	*out = (struct removed_page){0};
	snprintf(path, sizeof(path), "%s/removed", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	return page_load(fd, out);
}

/* The pending one is gone: into the sums. */
static void page_settle(struct removed_page *p)
{
	const struct removed_one *o = &p->pending;

	for (uint32_t i = 0; i < p->pending_families; i++)
		segcount_add(p->family, &p->n_families, &p->pending_family[i]);
	p->last[p->segments % REMOVED_LAST] = *o;
	p->segments++;
	p->uncounted += !o->counted;
	p->bytes += o->bytes;
	p->history_ns = o->to_ns > p->history_ns ? o->to_ns : p->history_ns;
}

static void page_clear(struct removed_page *p)
{
	p->pending = (struct removed_one){0};
	memset(p->pending_family, 0, sizeof(p->pending_family));
	p->pending_families = 0;
}

/* Rule 2, after a crash. */
static int recover(const char *dir, int fd, struct removed_page *p)
{
	char path[PATH_MAX];

	if (!p->pending.segment[0])
		return 0;
	p->pending.segment[sizeof(p->pending.segment) - 1] = '\0';
	snprintf(path, sizeof(path), "%s/%s", dir, p->pending.segment);
	if (access(path, F_OK) < 0 && errno == ENOENT)
		page_settle(p);
	page_clear(p);
	return page_store(fd, p);
}

int removed_open(const char *dir, int *fd, struct removed_page *page, struct err *e)
{
	cleanup_fd int at = folder_open(dir), f = -1;
	int rc;

	if (at < 0)
		return refuse(dir, at, e);
	f = openat(at, "removed", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
	if (f < 0)
		return refuse(dir, -errno, e);
	folder_own_at(at, f, "removed", 0640);
	rc = -posix_fallocate(f, 0, REMOVED_FILE_BYTES);
	if (!rc)
		rc = page_load(f, page);
	if (!rc)
		rc = recover(dir, f, page);
	if (rc)
		return refuse(dir, rc, e);
	*fd = take_fd(&f);
	return 0;
}

static int unlink_segment(const char *dir, const char *name)
{
	static const char *const suffix[] = {"-wal", "-shm"};
	cleanup_fd int at = folder_open(dir);
	char also[NAME_MAX + 8];

	if (at < 0)
		return at;
	if (unlinkat(at, name, 0) < 0 && errno != ENOENT)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(suffix); i++) {
		snprintf(also, sizeof(also), "%s%s", name, suffix[i]);
		(void)unlinkat(at, also, 0); /* there may be none */
	}
	return 0;
}

int removed_remove(const char *dir, int fd, struct removed_page *page, const struct removed_one *o,
		   const struct segcount *counts, struct err *e)
{
	int rc;

	page->pending = *o;
	page->pending_families = counts ? counts->n : 0;
	if (counts)
		memcpy(page->pending_family, counts->family, sizeof(page->pending_family));
	rc = page_store(fd, page);
	if (rc)
		return refuse(dir, rc, e);
	rc = unlink_segment(dir, o->segment);
	if (rc) {
		page_clear(page);
		(void)page_store(fd,
				 page); /* it is still there, and the next program will see that */
		err_set(e, rc,
			rc == -EACCES || rc == -EPERM || rc == -EROFS ? EXIT_PERMISSION :
									EXIT_STORE,
			"cannot remove %s/%s: %s", dir, o->segment, strerror(-rc));
		return rc;
	}
	page_settle(page);
	page_clear(page);
	rc = page_store(fd, page);
	return rc ? refuse(dir, rc, e) : 0;
}
