/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/dotnet/dotnettalk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "loaders/lib/host/talk/asuser.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/maps/dotnet/dotnetipc.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"

#define ENVIRONMENT_MAX (1u << 20)
#define NAMES_MAX       65536 /* of a folder, looked at */
#define SOCKETS_MAX     16
#define CONNECT_S       2
#define ANSWER_NS       (60 * NSEC_PER_SEC) /* it writes all functions that are there first */

static int refuse(struct dotnet_told *t, int rc, const char *form, ...)
	__attribute__((format(printf, 3, 4)));
static int refuse(struct dotnet_told *t, int rc, const char *form, ...)
{
	va_list args;

	va_start(args, form);
	vsnprintf(t->why, sizeof(t->why), form, args);
	va_end(args);
	return rc;
}

static void dump_name(uint32_t nspid, char out[48])
{
	snprintf(out, 48, "jit-%u.dump", nspid);
}

/* ---- what the program was started with ---- */

struct setting {
	const char *name;
	char value[DOTNETTALK_FOLDER];
};

/* The value of NAME, DOTNET_NAME or COMPlus_NAME in its environment. */
static void setting_read(const char *env, size_t len, struct setting *s)
{
	static const char *const before[] = {"DOTNET_", "COMPlus_", ""};
	const size_t n = strlen(s->name);

	for (size_t at = 0; at < len; at += strnlen(env + at, len - at) + 1) {
		const size_t left = strnlen(env + at, len - at);

		for (int i = 0; i < 3; i++) {
			const size_t head = strlen(before[i]);

			if (left > head + n && !strncmp(env + at, before[i], head) &&
			    !strncmp(env + at + head, s->name, n) && env[at + head + n] == '=')
				snprintf(s->value, sizeof(s->value), "%.*s",
					 (int)(left - head - n - 1), env + at + head + n + 1);
		}
	}
}

static bool is_on(const char *value)
{
	return strspn(value, "0xX") != strlen(value);
}

static const char *folder_of(const char *value)
{
	return *value == '/' ? value : "/tmp";
}

/* Does it map its jitdump already? */
static bool writes_already(const struct asuser *u)
{
	cleanup_free char *text = NULL;
	size_t len = 0, pos = 0, n;
	struct proc_map m;
	char name[48];

	dump_name(u->nspid, name);
	n = strlen(name);
	if (proc_read(u->pid, "maps", PROC_FILE_MAX, &text, &len))
		return false;
	while (proc_next_map(text, len, &pos, &m))
		if (m.path_len > n && m.path[m.path_len - n - 1] == '/' &&
		    !memcmp(m.path + m.path_len - n, name, n))
			return true;
	return false;
}

/* The folders of its socket and of its file. */
struct places {
	int sockets, dumps;
};

static int places_find(const struct asuser *u, struct dotnet_told *t, struct places *p)
{
	struct setting temporary = {.name = "TMPDIR"}, enabled = {.name = "PerfMapEnabled"},
		       dumps = {.name = "PerfMapJitDumpPath"};
	cleanup_free char *env = NULL;
	size_t len = 0;

	if (proc_read(u->pid, "environ", ENVIRONMENT_MAX, &env, &len))
		return refuse(t, -EACCES, "its environment cannot be read");
	setting_read(env, len, &temporary);
	setting_read(env, len, &enabled);
	setting_read(env, len, &dumps);
	p->sockets = asuser_folder(u, folder_of(temporary.value));
	if (p->sockets < 0)
		return -ENOENT;
	if (is_on(enabled.value))
		return -EALREADY;
	snprintf(t->its.folder, sizeof(t->its.folder), "%s",
		 *dumps.value == '/' ? dumps.value : folder_of(temporary.value));
	p->dumps = asuser_folder(u, t->its.folder);
	return p->dumps < 0 ? refuse(t, p->dumps, "its folder %.80s cannot be opened: %s",
				     t->its.folder, strerror(-p->dumps)) :
			      0;
}

/* ---- the socket ---- */

/* In the working folder. -errno: nothing listens, or another process. */
static int socket_try(const struct asuser *u, const char *name)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval most = {.tv_sec = CONNECT_S};
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	if (fd < 0 || strlen(name) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	strcpy(at.sun_path, name);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -errno;
	return (uint32_t)peer.pid == u->pid ? take_fd(&fd) : -EPERM;
}

/* -ENOENT: it has none. */
static int socket_find(const struct asuser *u, int folder)
{
	int rc = -ENOENT, tries = 0;
	struct dirent *e;
	DIR *d;

	if (fchdir(folder))
		return -errno;
	d = opendir(".");
	for (int i = 0; d && i < NAMES_MAX && rc < 0 && tries < SOCKETS_MAX && (e = readdir(d));
	     i++) {
		if (!dotnetipc_is_socket(e->d_name, u->nspid))
			continue;
		rc = socket_try(u, e->d_name);
		tries++;
	}
	if (d)
		closedir(d);
	return rc;
}

/* ---- a command ---- */

static int answer_read(int fd, struct dotnet_told *t)
{
	const int64_t until = clock_boot_ns() + ANSWER_NS;
	uint8_t bytes[DOTNETIPC_ANSWER_MAX];
	uint32_t why = 0;
	size_t len = 0;
	int rc = 0;

	while (!rc && len < sizeof(bytes)) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		const int64_t left = until - clock_boot_ns();
		ssize_t n;

		if (left <= 0 || poll(&p, 1, (int)(left / 1000000) + 1) <= 0)
			return refuse(t, -ETIMEDOUT, "it did not answer within a minute");
		n = read(fd, bytes + len, sizeof(bytes) - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return refuse(t, -EPIPE,
				      "it closed its diagnostic socket without an answer");
		len += (size_t)n;
		rc = dotnetipc_answer(bytes, len, &why);
	}
	if (rc == 1)
		return 0;
	if (rc == -EREMOTEIO && why == DOTNETIPC_UNKNOWN_COMMAND)
		return refuse(t, rc,
			      "its .NET does not know the command: that takes .NET 8 or later");
	if (rc == -EREMOTEIO)
		return refuse(t, rc, "its runtime refused, with %08x", why);
	return refuse(t, -EPROTO, "what listens there does not speak .NET's diagnostic protocol");
}

static int command_send(int fd, bool begin, struct dotnet_told *t)
{
	uint8_t request[DOTNETIPC_REQUEST_MAX];
	const size_t len = dotnetipc_request(begin, request);

	if (send(fd, request, len, MSG_NOSIGNAL) != (ssize_t)len)
		return refuse(t, -EIO, "its diagnostic socket takes no command");
	return answer_read(fd, t);
}

/* ---- its file ---- */

static bool is_its(const struct stat *st, const struct dotnet_writes *its)
{
	return S_ISREG(st->st_mode) && st->st_uid == its->uid && its->ino &&
	       st->st_dev == its->dev && st->st_ino == its->ino;
}

static void dump_note(int folder, struct dotnet_writes *its)
{
	char name[48];
	struct stat st;

	dump_name(its->nspid, name);
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
	    st.st_uid != its->uid)
		return;
	its->dev = st.st_dev;
	its->ino = st.st_ino;
}

static void dump_remove(int folder, const struct dotnet_writes *its)
{
	char name[48];
	struct stat st;

	dump_name(its->nspid, name);
	if (folder >= 0 && !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && is_its(&st, its))
		(void)unlinkat(folder, name, 0);
}

uint64_t dotnettalk_size(uint32_t pid, const struct dotnet_writes *its)
{
	const struct asuser u = {.pid = pid, .pidfd = -1};
	cleanup_fd int folder = asuser_folder(&u, its->folder);
	char name[48];
	struct stat st;

	dump_name(its->nspid, name);
	return folder >= 0 && !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && is_its(&st, its) ?
		       (uint64_t)st.st_size :
		       0;
}

/* ---- the conversation ---- */

static int become(const struct asuser *u, struct dotnet_told *t)
{
	const int rc = asuser_become(u);

	return rc ? refuse(t, rc, "cannot become its user %u: that takes CAP_SETUID and CAP_SETGID",
			   u->uid) :
		    0;
}

static int begin(const struct asuser *u, struct dotnet_told *t)
{
	struct places p = {-1, -1};
	cleanup_fd int fd = -1;
	int rc = places_find(u, t, &p);

	t->its.nspid = u->nspid;
	t->its.uid = u->uid;
	t->its.gid = u->gid;
	if (!rc && writes_already(u))
		rc = -EALREADY;
	if (!rc && asuser_is_gone(u))
		rc = -ESRCH;
	if (!rc)
		rc = become(u, t);
	if (rc)
		return rc;
	fd = socket_find(u, p.sockets);
	if (fd == -ENOENT || fd == -ECONNREFUSED)
		return -ENOENT;
	if (fd < 0)
		return refuse(t, fd, "its diagnostic socket cannot be used: %s",
			      fd == -EPERM ? "another process listens there" : strerror(-fd));
	rc = command_send(fd, true, t);
	if (!rc)
		dump_note(p.dumps, &t->its);
	return rc;
}

static int end(const struct asuser *u, const struct dotnet_writes *its, struct dotnet_told *t)
{
	struct places p = {-1, -1};
	cleanup_fd int fd = -1;
	int rc = places_find(u, t, &p);

	if (!rc)
		rc = become(u, t);
	if (rc)
		return rc;
	fd = socket_find(u, p.sockets);
	rc = fd < 0 ? refuse(t, fd, "its diagnostic socket is gone") : command_send(fd, false, t);
	dump_remove(p.dumps, its);
	return rc;
}

/* Its root is gone with it: only where that was ours (dotnetask.c). */
static int remove_left(const struct dotnet_writes *its, struct dotnet_told *t)
{
	const struct asuser u = {.uid = its->uid, .gid = its->gid};
	cleanup_fd int folder = open(its->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc = become(&u, t);

	if (!rc)
		dump_remove(folder, its);
	return rc;
}

void dotnettalk_run(const struct dotnet_job *job, struct dotnet_told *out)
{
	struct asuser u;

	*out = (struct dotnet_told){.its = job->its};
	if (job->op == DOTNET_REMOVE) {
		out->rc = remove_left(&job->its, out);
		return;
	}
	out->rc = asuser_open(&u, job->pid, job->start_ticks);
	if (out->rc)
		(void)refuse(out, out->rc, "it has ended");
	else if (job->op == DOTNET_BEGIN)
		out->rc = begin(&u, out);
	else
		out->rc = end(&u, &job->its, out);
}
