/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/names/jitnames.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/jitdump.h"
#include "loaders/lib/host/names/jitreader.h"
#include "loaders/lib/host/proc/openin.h"
#include "schema/base/cleanup.h"

#define PATHS_MAX 512
#define READ_MS   10000

static int open_one(int root, const char *path, uid_t uid, struct jitnames_file *stamp)
{
	struct stat st = {0};
	cleanup_fd int fd = openin_no_link(root, path, JITNAMES_FILE_MAX, &st);

	if (fd < 0)
		return fd;
	if (st.st_uid != uid && st.st_uid)
		return -EPERM;
	*stamp = (struct jitnames_file){
		.dev = st.st_dev, .ino = st.st_ino, .size = (uint64_t)st.st_size};
	return take_fd(&fd);
}

static bool same(const struct jitnames_file *a, const struct jitnames_file *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size;
}

int jitnames_open_of(uint32_t pid, uint32_t nspid, uid_t uid, const char *dump_path,
		     const struct jitnames_stamp *last, struct jitnames_files *out)
{
	cleanup_fd int root = openin_root(pid), dump = -1, map = -1;
	struct jitnames_files f = {.dump = -1, .map = -1, .nspid = nspid};
	char path[64];

	if (root < 0)
		return root;
	if (dump_path)
		dump = open_one(root, dump_path, uid, &f.stamp.dump);
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", nspid);
	map = open_one(root, path, uid, &f.stamp.map);
	f.why = map < 0 ? map : 0;
	if (dump < 0 && map < 0)
		return f.why == -ENOENT && dump_path ? dump : f.why;
	if (same(&f.stamp.dump, &last->dump) && same(&f.stamp.map, &last->map))
		return -EALREADY;
	f.dump = dump < 0 ? -1 : take_fd(&dump);
	f.map = map < 0 ? -1 : take_fd(&map);
	*out = f;
	return 0;
}

int jitnames_open(const struct hostmaps_process *p, const struct jitnames_stamp *last,
		  struct jitnames_files *out)
{
	const struct hostmaps_image *exe;
	const char *paths[PATHS_MAX];
	size_t n = hostmaps_files(p, paths, PATHS_MAX, &exe);
	uint32_t nspid = p->nspid ? p->nspid : p->tgid;

	return jitnames_open_of(p->tgid, nspid, p->uid, jitdump_path(paths, n, nspid), last, out);
}

void jitnames_close(struct jitnames_files *f)
{
	if (f->dump >= 0)
		close(f->dump);
	if (f->map >= 0)
		close(f->map);
	f->dump = f->map = -1;
}

int jitnames_read(struct jitreader *r, const struct hostmaps_process *p, struct perfmap **out,
		  struct jitnames_told *told)
{
	const struct jitnames_stamp none = {0};
	struct jitjob job = JITJOB_NONE;
	struct jitnames_files f;

	*told = (struct jitnames_told){0};
	told->status = jitnames_open(p, &none, &f);
	if (told->status)
		return told->status;
	told->status = jitreader_ask(r, &f, &job);
	jitnames_close(&f);
	if (!told->status)
		told->status = jitjob_take(&job, READ_MS, out, told);
	jitjob_drop(&job);
	return told->status;
}

/* ---- for people ---- */

#define AGAIN "start the program again: its runtime then begins a new file"

static const struct words {
	int status;
	const char *reason, *fix;
} WORDS[] = {
	{-EPERM, "another user's file", "remove the file: the program's own user must write it"},
	{-ENOTSUP, "not a regular file", "remove what is there in place of the file"},
	{-ELOOP, "not a regular file", "remove what is there in place of the file"},
	{-EFBIG, "larger than 1 GiB", AGAIN},
	{-E2BIG, "more names than one process may have", AGAIN},
	{-EBADMSG, "no jitdump of this process", AGAIN},
	{-ECHILD, "the process that read it met its limits of time and memory, or broke", AGAIN},
	{-ETIME, "reading it took too long", AGAIN},
	{-EINPROGRESS, "reading it took too long", AGAIN},
	{-ENOSYS, "the process without rights that reads such files could not be started",
	 "sonde-cpu --check shows what this host lacks"},
};

const char *jitnames_reason(int status)
{
	for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++)
		if (WORDS[i].status == status)
			return WORDS[i].reason;
	return openin_reason(status);
}

const char *jitnames_fix(int status)
{
	for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++)
		if (WORDS[i].status == status)
			return WORDS[i].fix;
	return "start it with the option that makes its runtime write /tmp/perf-PID.map";
}
