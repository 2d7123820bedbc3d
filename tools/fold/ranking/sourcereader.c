/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/ranking/sourcereader.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/store/model/sql.h"

#define NO_RIGHTS 65534
#define GROUPS    1024

/* --- whose rights --- */

static void reader_set(struct sourcereader *r, uint32_t uid, uint32_t gid, const char *who)
{
	r->limited = uid != 0;
	r->uid = uid;
	r->gid = gid;
	snprintf(r->who, sizeof(r->who), "%s", who);
}

static void reader_without(struct sourcereader *r, const char *why)
{
	reader_set(r, NO_RIGHTS, NO_RIGHTS, why);
}

static bool same_function(const struct fold_frame *a, const struct fold_frame *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->module, b->module);
}

static bool leaf_has(const struct fold *f, uint32_t node, const struct fold_frame *function)
{
	for (; node; node = f->nodes[node].parent)
		if (same_function(&f->frames[f->nodes[node].frame], function))
			return true;
	return false;
}

/* Rule 2: the user of all processes that ran it; false: they are not of one. */
static bool user_of(const struct fold *f, const struct fold_frame *function, uint32_t *uid)
{
	bool any = false;

	for (size_t i = 0; i < f->n_leaves; i++) {
		const struct fold_process *p = &f->processes[f->leaves[i].process];

		if (any && p->uid == *uid && !*p->container && !*p->container_id)
			continue;
		if (!leaf_has(f, f->leaves[i].node, function))
			continue;
		if (any || *p->container || *p->container_id)
			return false;
		*uid = p->uid;
		any = true;
	}
	return any;
}

static void by_process(const struct fold *f, const struct fold_frame *function,
		       struct sourcereader *r)
{
	const struct passwd *pw;
	char who[128];
	uint32_t uid = 0;

	if (!user_of(f, function, &uid)) {
		reader_without(r, "all users (it ran in a container, or as several users)");
		return;
	}
	pw = uid ? getpwuid(uid) : NULL;
	snprintf(who, sizeof(who), "user %.100s, whose process ran it", pw ? pw->pw_name : "?");
	if (uid && !pw)
		snprintf(who, sizeof(who), "user %u, whose process ran it", uid);
	reader_set(r, uid, pw ? pw->pw_gid : NO_RIGHTS, who);
}

/* Rule 3. A script names its file itself, and its process is root's. */
static void by_image(const struct fold_frame *function, struct sourcereader *r)
{
	const char *path = function->module_path;
	char who[160];
	struct stat st;

	if (function->origin != FOLD_NATIVE && function->origin != FOLD_GO)
		return;
	if (*path != '/' || stat(path, &st)) {
		reader_without(r, "all users (the file of the program is not here)");
		return;
	}
	snprintf(who, sizeof(who), "the owner of %.140s", path);
	if (st.st_uid)
		reader_set(r, st.st_uid, st.st_gid, who);
}

static bool is_trusted(uint32_t uid)
{
	const struct passwd *pw = uid ? getpwnam("sonde") : NULL;

	return !uid || (pw && pw->pw_uid == uid);
}

/* Rule 4, and what was imported. */
static void by_store(const struct selection *sel, struct sourcereader *r)
{
	struct stat st;

	for (size_t i = 0; i < sel->n_segments; i++) {
		struct store_segment *s = NULL;

		if (stat(sel->segments[i].path, &st) || !is_trusted(st.st_uid)) {
			reader_set(r, st.st_uid ? st.st_uid : NO_RIGHTS, st.st_gid,
				   "the owner of the store");
			return;
		}
		if (select_segment(sel, sel->segments[i].path, &s, NULL) ||
		    sql_number(store_segment_tables(s),
			       "SELECT count(*) FROM run WHERE family = 'import'", 1)) {
			reader_without(r, "all users (a profile of another tool may name it)");
			return;
		}
	}
}

void sourcereader_of(const struct fold *f, const struct selection *sel,
		     const struct fold_frame *function, struct sourcereader *out)
{
	*out = (struct sourcereader){0};
	if (geteuid())
		return;
	by_process(f, function, out);
	if (!out->limited)
		by_image(function, out);
	if (!out->limited)
		by_store(sel, out);
}

/* --- opening --- */

static int open_below(const char *path, const char *below)
{
	cleanup_fd int dir = open(below, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	int fd;

	if (dir < 0)
		return -errno;
	path += strlen(below);
	path += strspn(path, "/");
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* As it is, first: opening a device may do something. */
static int open_regular(const char *path, const char *below, uint64_t most, struct stat *st)
{
	cleanup_fd int place = below ? open_below(path, below) : open(path, O_PATH | O_CLOEXEC);
	char again[32];
	int fd;

	if (place < 0)
		return below ? place : -errno;
	if (fstat(place, st))
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -ENODEV;
	if ((uint64_t)st->st_size > most)
		return -EFBIG;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
	fd = open(again, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Of the file system's rights alone. Without uid 0 the kernel takes CAP_DAC_OVERRIDE and
 * CAP_DAC_READ_SEARCH from the thread, too. */
static bool rights_take(uint32_t uid, uint32_t gid)
{
	const gid_t group = gid;

	if (setgroups(1, &group))
		return false;
	setfsgid(gid);
	setfsuid(uid);
	return (uint32_t)setfsgid((gid_t)-1) == gid && (uint32_t)setfsuid((uid_t)-1) == uid;
}

static void rights_return(const gid_t *groups, int n)
{
	setfsuid(geteuid());
	setfsgid(getegid());
	(void)setgroups(n > 0 ? (size_t)n : 0, groups);
}

int sourcereader_open(const struct sourcereader *r, const char *path, const char *below,
		      uint64_t most, struct stat *st)
{
	gid_t groups[GROUPS];
	int n, fd;

	if (!r->limited || below)
		return open_regular(path, geteuid() ? NULL : below, most, st);
	n = getgroups(GROUPS, groups);
	if (n < 0)
		return -EPERM;
	fd = rights_take(r->uid, r->gid) ? open_regular(path, NULL, most, st) : -EPERM;
	rights_return(groups, n);
	return fd;
}
