/* SPDX-License-Identifier: Apache-2.0 */
/* secret: see the header. Read by read(2): no buffer but the caller's has it. */
#include "export/push/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/log.h"

/* O_NONBLOCK: a pipe without a writer would block the program. */
static int secret_open(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;

	if (fd < 0)
		return -errno;
	err = fstat(fd, st) ? errno : S_ISDIR(st->st_mode) ? EISDIR : 0;
	if (!err)
		return fd;
	close(fd);
	return -err;
}

static size_t bytes_read(int fd, char buf[SECRET_MOST])
{
	size_t len = 0;
	ssize_t n;

	while (len < SECRET_MOST && (n = read(fd, buf + len, SECRET_MOST - len)) > 0)
		len += (size_t)n;
	return len;
}

/* Its first line, ended. NULL: fine. */
static const char *line_of(char secret[SECRET_MOST], size_t len)
{
	size_t n = 0;

	while (n < len && secret[n] != '\n' && secret[n] != '\r')
		if ((unsigned char)secret[n] < 0x20 || secret[n++] == 0x7f)
			return "it is not text";
	if (!n)
		return len ? "its first line is empty" : "it is empty";
	if (n == SECRET_MOST)
		return "its first line is too long";
	explicit_bzero(secret + n, len - n);
	return NULL;
}

int secret_read(const char *path, const char *who, char secret[SECRET_MOST], struct err *e)
{
	struct stat st;
	cleanup_fd int fd = secret_open(path, &st);
	const char *why = fd < 0               ? strerror(-fd) :
			  !S_ISREG(st.st_mode) ? "it is not a regular file" :
						 NULL;

	if (!why) {
		memset(secret, 0, SECRET_MOST);
		why = line_of(secret, bytes_read(fd, secret));
	}
	if (!why)
		return 0;
	explicit_bzero(secret, SECRET_MOST);
	return err_set(e, -EACCES, EXIT_PERMISSION, "%s: cannot read the secret in %s: %s", who,
		       path, why);
}

void secret_warn(const char *path, const char *who)
{
	struct stat st;

	if (!stat(path, &st) && st.st_mode & S_IROTH)
		log_warn("%s: the secret in %s is readable by every user of this host", who, path);
}
