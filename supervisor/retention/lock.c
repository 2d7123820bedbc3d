/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/retention/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/store/files/folder.h"
#include "supervisor/control/log_lines.h"

/* its loaders have two seconds, then they are killed; sonde-prune may be at work */
#define REPLACE_MS 15000
#define LOOK_MS    20

static bool try_lock(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* Over its control socket, which asks for our rights. */
static int tell_to_end(const char *store, struct err *e)
{
	static const char stop[] = "{\"do\":\"stop\"}\n";
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval wait = {.tv_sec = 5};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char answer[256] = "";
	int rc = 0;

	if ((size_t)snprintf(a.sun_path, sizeof(a.sun_path), "%s/control.sock", store) >=
	    sizeof(a.sun_path))
		return err_set(e, -ENAMETOOLONG, EXIT_STORE, "the path %s is too long for a socket",
			       store);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    send(fd, stop, sizeof(stop) - 1, MSG_NOSIGNAL) < 0 ||
	    recv(fd, answer, sizeof(answer) - 1, 0) < 0)
		rc = -errno;
	if (rc)
		return err_set(e, rc, rc == -EACCES ? EXIT_PERMISSION : EXIT_STORE,
			       "cannot ask the sonded of %s to stop: %s", store, strerror(-rc));
	if (!strstr(answer, "\"ok\":true"))
		return err_set(e, -EPERM, EXIT_PERMISSION,
			       "the sonded of %s refused to stop: %.200s", store, answer);
	return 0;
}

static int replace_other(const char *store, int fd, const char *pid, struct err *e)
{
	int rc = tell_to_end(store, e);

	for (int ms = 0; !rc && ms < REPLACE_MS; ms += LOOK_MS) {
		if (try_lock(fd)) {
			log_line(LOG_LEVEL_INFO, "sonded", "took the store over from pid %s", pid);
			return 0;
		}
		poll(NULL, 0, LOOK_MS);
	}
	return rc ? rc :
		    err_set(e, -ETIMEDOUT, EXIT_STORE, "sonded, pid %s, did not stop within %d s",
			    pid, REPLACE_MS / 1000);
}

static int refuse(const char *store, const char *pid, struct err *e)
{
	err_set(e, -EBUSY, EXIT_STORE, "another sonded%s%s is using the store %s",
		*pid ? ", pid " : "", pid, store);
	err_fix(e,
		"ask it: sonde status    stop it: sudo sonde down    use another store: --store DIR");
	return -EBUSY;
}

/* Root's sonded would take more rights from its children than root in another user's folder needs.
 */
static int check_owner(const char *store, struct err *e)
{
	const struct passwd *pw;
	struct stat st;

	if (geteuid() != 0 || stat(store, &st) < 0 || st.st_uid == 0)
		return 0;
	pw = getpwuid(st.st_uid);
	err_set(e, -EPERM, EXIT_PERMISSION,
		"the store %s belongs to another user (%s): what root's sonded starts may not write there",
		store, pw ? pw->pw_name : "unknown");
	err_fix(e,
		"systemctl start sonded, which runs as that user; or use another store: --store DIR");
	return -EPERM;
}

int lock_take(const char *store, bool replace, int *out, struct err *e)
{
	char path[PATH_MAX + 16], pid[16] = "";
	cleanup_fd int fd = -1;
	int rc = check_owner(store, e);

	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/sonded.lock", store);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0) {
		err_set(e, -errno, errno == EACCES || errno == EROFS ? EXIT_PERMISSION : EXIT_STORE,
			"cannot open %s: %s", path, strerror(errno));
		err_fix(e, errno == EROFS ? "use a store that can be written: --store DIR" :
					    "run it with sudo, or as the store's owner");
		return -errno;
	}
	if (!try_lock(fd)) {
		if (pread(fd, pid, sizeof(pid) - 1, 0) < 0)
			pid[0] = '\0';
		rc = replace ? replace_other(store, fd, pid, e) : refuse(store, pid, e);
		if (rc)
			return rc;
	}
	folder_own(fd, path, 0640);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, strlen(pid), 0) < 0)
		log_line(LOG_LEVEL_WARN, "sonded", "cannot write %s: %s", path,
			 strerror(errno)); /* a full disk: the lock holds */
	*out = take_fd(&fd);
	return 0;
}
