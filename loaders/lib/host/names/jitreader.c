/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/names/jitreader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/host/names/jitdump.h"
#include "loaders/lib/host/names/perfmap.h"
#include "loaders/lib/sandbox/confine.h"
#include "loaders/lib/sandbox/sandbox.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define JOB_NS (10 * NSEC_PER_SEC)

struct jitreader {
	int sock;
	pid_t pid;
	unsigned int running; /* jobs */
};

/* A job: these words, and the descriptors said, out, and those of the files, dump first. */
struct job_message {
	uint32_t nspid;
	int32_t why;
	uint32_t has_dump, has_map;
	uint64_t dump_size, map_size;
};
#define FDS_MAX 4

/* ---- the child: reads ---- */

static int dump_parse(const struct jitnames_files *f, struct perfmap **out)
{
	cleanup_free char *buf = NULL;
	size_t len = 0;
	int rc = jitdump_slim(f->dump, f->stamp.dump.size, &buf, &len);

	return rc ? rc : jitdump_parse(buf, len, f->nspid, out);
}

int jitreader_parse(const struct jitnames_files *f, struct perfmap **out,
		    struct jitnames_told *told)
{
	int rc = f->dump < 0 ? -ENOENT : dump_parse(f, out), other;

	told->dump = !rc;
	if (rc) {
		other = f->map < 0 ? f->why : perfmap_stream(f->map, f->stamp.map.size, out);
		told->cut = !other && f->stamp.map.size > PERFMAP_FILE_MAX;
		rc = other == -ENOENT ? rc : other;
	}
	told->names = rc ? 0 : perfmap_count(*out);
	return told->status = rc;
}

static int write_out(int fd, const struct perfmap *m)
{
	size_t len = perfmap_packed_size(m), at = 0;
	char *bytes = mem_alloc(len);

	perfmap_pack(m, bytes);
	while (at < len) {
		ssize_t n = pwrite(fd, bytes + at, len - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		at += (size_t)n;
	}
	return 0;
}

static void work(const struct jitnames_files *f, int said, int out)
{
	struct jitnames_told told = {0};
	struct perfmap *m = NULL;

	if (sandbox_enter(SANDBOX_NAMES, NULL))
		_exit(1);
	if (!jitreader_parse(f, &m, &told))
		told.status = write_out(out, m);
	told.cpu_ns = (uint64_t)clock_cpu_ns();
	_exit(write(said, &told, sizeof(told)) == sizeof(told) ? 0 : 1);
}

/* ---- the process that starts children ---- */

/* The descriptors of a packet, at most FDS_MAX. */
static size_t descriptors_of(struct msghdr *h, int fds[FDS_MAX])
{
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	size_t n;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	n = n < FDS_MAX ? n : FDS_MAX;
	memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	return n;
}

/* false: the loader is gone. */
static bool job_receive(int sock, struct job_message *j, int fds[FDS_MAX], size_t *n_fds)
{
	union {
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec v = {.iov_base = j, .iov_len = sizeof(*j)};
	struct msghdr h = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control.buf,
			   .msg_controllen = sizeof(control.buf)};
	ssize_t n;

	do
		n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	*n_fds = n == sizeof(*j) ? descriptors_of(&h, fds) : 0;
	return n == sizeof(*j);
}

static void child(const struct job_message *j, const int fds[FDS_MAX])
{
	int next = 2;
	struct jitnames_files f = {.why = j->why, .nspid = j->nspid};

	f.dump = j->has_dump ? fds[next++] : -1;
	f.map = j->has_map ? fds[next] : -1;
	f.stamp.dump.size = j->dump_size;
	f.stamp.map.size = j->map_size;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work(&f, fds[0], fds[1]);
}

static _Noreturn void serve(int sock)
{
	struct job_message j;
	int fds[FDS_MAX];
	size_t n;

	while (job_receive(sock, &j, fds, &n)) {
		if (n == 2u + j.has_dump + j.has_map && !fork()) {
			close(sock);
			child(&j, fds);
		}
		for (size_t i = 0; i < n; i++)
			close(fds[i]);
	}
	_exit(0);
}

/* It keeps nothing of the loader's but its end of the socket, and standard error. */
static _Noreturn void become(int sock)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "sonde-names");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_IGN); /* no child is waited for */
	signal(SIGINT, SIG_IGN);  /* it ends with its loader, who may read until its own end */
	signal(SIGTERM, SIG_IGN);
	if (dup2(sock, 3) != 3)
		_exit(1);
	close_range(4, ~0u, 0);
	if (sandbox_powers_drop() || confine(0, NULL))
		_exit(1);
	serve(3);
}

/* ---- the loader's side ---- */

struct jitreader *jitreader_open(void)
{
	struct jitreader *r;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return NULL;
	pid = fork();
	if (!pid)
		become(pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return NULL;
	}
	r = mem_alloc(sizeof(*r));
	*r = (struct jitreader){.sock = pair[0], .pid = pid};
	return r;
}

void jitreader_close(struct jitreader *r)
{
	if (!r)
		return;
	close(r->sock);
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(r);
}

static int job_send(const struct jitreader *r, const struct jitnames_files *f, int said, int out)
{
	struct job_message j = {.nspid = f->nspid,
				.why = f->why,
				.has_dump = f->dump >= 0,
				.has_map = f->map >= 0,
				.dump_size = f->stamp.dump.size,
				.map_size = f->stamp.map.size};
	union {
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec v = {.iov_base = &j, .iov_len = sizeof(j)};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control.buf};
	int fds[FDS_MAX] = {said, out};
	size_t n = 2;

	if (f->dump >= 0)
		fds[n++] = f->dump;
	if (f->map >= 0)
		fds[n++] = f->map;
	h.msg_controllen = CMSG_SPACE(n * sizeof(int));
	CMSG_FIRSTHDR(&h)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&h)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&h)->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), fds, n * sizeof(int));
	return sendmsg(r->sock, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ?
		       errno == EAGAIN ? -EBUSY : -ENOSYS :
		       0;
}

int jitreader_ask(struct jitreader *r, const struct jitnames_files *f, struct jitjob *job)
{
	cleanup_fd int out = -1, mine = -1, theirs = -1;
	int pair[2], rc;

	if (!r)
		return -ENOSYS;
	if (r->running >= JITREADER_JOBS_MAX)
		return -EBUSY;
	out = memfd_create("names", MFD_CLOEXEC);
	if (out < 0 || pipe2(pair, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	mine = pair[0];
	theirs = pair[1];
	rc = job_send(r, f, theirs, out);
	if (rc)
		return rc;
	r->running++;
	*job = (struct jitjob){.said = take_fd(&mine),
			       .out = take_fd(&out),
			       .until_ns = clock_boot_ns() + JOB_NS,
			       .of = r};
	return 0;
}

void jitjob_drop(struct jitjob *job)
{
	if (job->said < 0)
		return;
	close(job->said);
	close(job->out);
	job->of->running--;
	*job = JITJOB_NONE;
}

static int map_take(int fd, struct perfmap **out)
{
	struct stat st;
	char *block;
	size_t at = 0, len;
	int rc;

	if (fstat(fd, &st))
		return -errno;
	len = (size_t)st.st_size;
	if (len > 2 * PERFMAP_BYTES)
		return -ECHILD;
	block = mem_alloc(len + 1);
	while (at < len) {
		ssize_t n = pread(fd, block + at, len - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	rc = at == len ? perfmap_unpack(block, len, out) : -ECHILD;
	if (rc)
		free(block);
	return rc ? -ECHILD : 0;
}

int jitjob_take(struct jitjob *job, int wait_ms, struct perfmap **out, struct jitnames_told *told)
{
	struct pollfd p = {.fd = job->said, .events = POLLIN};
	int rc, ready = poll(&p, 1, wait_ms);

	*told = (struct jitnames_told){0};
	if (ready <= 0 && clock_boot_ns() < job->until_ns)
		return told->status = -EINPROGRESS;
	if (ready <= 0)
		rc = -ETIME;
	else if (read(job->said, told, sizeof(*told)) != sizeof(*told))
		rc = -ECHILD;
	else
		rc = told->status > 0 ? -ECHILD : told->status;
	if (!rc)
		rc = map_take(job->out, out);
	if (!rc)
		told->names = perfmap_count(*out);
	jitjob_drop(job);
	return told->status = rc;
}
