/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/print/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

static int say(struct err *e, int error, const char *path)
{
	err_set(e, -error, error == EACCES || error == EPERM ? EXIT_PERMISSION : EXIT_RUNTIME,
		"cannot write %s: %s", path ? path : "standard output", strerror(error));
	if (error == ENOSPC || error == EDQUOT)
		err_fix(e, "free some space, or write elsewhere: -o /path/on/another/disk");
	else if (error == ENOENT)
		err_fix(e, "make the folder first, or write elsewhere with -o FILE");
	else if (error == EACCES || error == EPERM || error == EROFS)
		err_fix(e, "choose a place that you may write, with -o FILE");
	return -error;
}

char *outfile_temp_name(const char *path)
{
	struct strbuf s = STRBUF_INIT;
	const char *slash = strrchr(path, '/');
	size_t dir = slash ? (size_t)(slash - path) + 1 : 0;

	strbuf_add(&s, path, dir);
	strbuf_addf(&s, ".%.200s.%d.tmp", path + dir, (int)getpid());
	return strbuf_take(&s);
}

static int in_place(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && !S_ISREG(st.st_mode);
}

int outfile_open(struct outfile *o, const char *path, struct err *e)
{
	int fd;

	*o = (struct outfile)OUTFILE_INIT;
	if (!path || !strcmp(path, "-")) {
		o->f = stdout;
		return 0;
	}
	o->path = mem_strdup(path);
	if (!in_place(path))
		o->temp = outfile_temp_name(path);
	fd = open(o->temp ? o->temp : path,
		  O_WRONLY | O_CREAT | O_CLOEXEC | (o->temp ? O_EXCL : O_TRUNC), 0666);
	o->f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!o->f) {
		int error = errno;

		if (fd >= 0)
			close(fd);
		else
			free(take_ptr(o->temp));
		outfile_release(o);
		return say(e, error, path);
	}
	return 0;
}

int outfile_commit(struct outfile *o, uint64_t *bytes, struct err *e)
{
	struct stat st = {0};
	int error = 0;

	errno = 0;
	if (fflush(o->f) || ferror(o->f))
		error = errno ? errno : EIO;
	if (!error && bytes && !fstat(fileno(o->f), &st))
		*bytes = (uint64_t)st.st_size;
	if (o->path && fclose(take_ptr(o->f)) && !error)
		error = errno;
	if (!error && o->temp && rename(o->temp, o->path))
		error = errno;
	if (error)
		return say(e, error, o->path);
	free(take_ptr(o->temp));
	return 0;
}

void outfile_release(struct outfile *o)
{
	if (o->path && o->f)
		fclose(o->f);
	if (o->temp)
		unlink(o->temp);
	free(o->temp);
	free(o->path);
	*o = (struct outfile)OUTFILE_INIT;
}

bool outfile_ends_with(const char *path, const char *end)
{
	const size_t n = strlen(path), m = strlen(end);

	return n > m && !strcasecmp(path + n - m, end);
}
