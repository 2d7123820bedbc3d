// SPDX-License-Identifier: Apache-2.0
/* indexer: see the header. */
#include "loaders/maps/indexer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/host/indexproto.h"
#include "loaders/lib/host/openin.h"
#include "loaders/lib/host/proc.h"
#include "loaders/maps/cache.h"
#include "loaders/maps/hub.h"
#include "loaders/maps/opening.h"
#include "loaders/maps/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/image/image.h"

#define ANSWERS_MAX 64
#define MEMORY_MAX (64ull << 20) /* indexes that could not be stored */

extern char **environ;

struct job {
	pid_t pid; /* 0: free */
	int sock, out, elf, root_fd;
	struct mimage *image; /* NULL: it was dropped meanwhile */
	char *path;          /* of the image */
	struct stat st;
	bool have_st;
	uint64_t deadline_ns;
	uint32_t answers;
	char *debug_dir;     /* of the debug file answered last, for relative dwz names */
	bool done;
	int32_t status;
	char text[256];
};

struct indexer {
	struct world *world;
	struct hub *hub;
	struct cache *cache;
	int epoll_fd;
	char *program;
	struct job jobs[INDEXER_CHILDREN];
	struct mimage *queue, **queue_tail;
	struct mimage *ahead, **ahead_tail; /* nobody asked for these yet */
	size_t kept_fds;
	uint64_t memory_bytes;
	struct opening opening;
	uint64_t looked_ns; /* for descriptors kept too long */
};

static void start_next(struct indexer *ix);
static void drop_memory(struct indexer *ix, struct mimage *img);

struct indexer *indexer_new(struct world *w, struct hub *h, struct cache *c, int epoll_fd, const char *program)
{
	struct indexer *ix = mem_alloc(sizeof(*ix));

	ix->world = ix->opening.world = w;
	ix->hub = h;
	ix->cache = c;
	ix->epoll_fd = epoll_fd;
	ix->program = mem_strdup(program);
	ix->queue_tail = &ix->queue;
	ix->ahead_tail = &ix->ahead;
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		ix->jobs[i] = (struct job){.sock = -1, .out = -1, .elf = -1, .root_fd = -1};
	return ix;
}

/* ---- files ---- */

static void drop_fds(struct indexer *ix, struct mimage *img)
{
	if (img->fd >= 0) {
		close(img->fd);
		ix->kept_fds--;
	}
	if (img->root_fd >= 0)
		close(img->root_fd);
	img->fd = img->root_fd = -1;
}

static bool matches_build_id(const struct mimage *img, const char *key)
{
	char hex[64] = "";

	for (uint32_t i = 0; i < img->file.build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", img->file.build_id[i]);
	return !*hex || (!strncmp(key, hex, strlen(hex)) && key[strlen(hex)] == '-');
}

static void set_refused(struct mimage *img, const char *reason)
{
	free(img->reason);
	img->reason = mem_strdup(reason);
	img->state = IMAGE_REFUSED;
}

/* What the cache says of an open file. True: the image's state is settled. */
static bool settle_from_cache(struct indexer *ix, struct mimage *img, const struct stat *st)
{
	char *text = NULL;

	switch (cache_find(ix->cache, st, &text)) {
	case CACHE_KNOWN:
		if (!matches_build_id(img, text)) {
			free(text);
			if (img->path_failed) {
				set_refused(img, openin_reason(-ESTALE));
				return true;
			}
			img->path_failed = true;
			return false; /* its index will not be used: job_open tries the mapping itself */
		}
		free(img->key);
		img->key = text;
		img->state = IMAGE_READY;
		return true;
	case CACHE_REFUSED:
		set_refused(img, text);
		free(text);
		return true;
	default:
		return false;
	}
}

void indexer_see(struct indexer *ix, struct mimage *img, struct proc *p, uint64_t start, uint64_t end)
{
	struct stat st;
	int fd;

	if (img->kind != MP_IMAGE_ELF || ix->kept_fds >= INDEXER_FDS_MAX)
		return;
	fd = opening_through(&ix->opening, img, p, start, end, &st, &img->root_fd);
	if (fd < 0)
		fd = opening_anyhow(&ix->opening, img, &st, &img->root_fd);
	if (fd < 0) {
		ix->world->stats.open_failed++;
		return; /* tried again when it is wanted */
	}
	ix->world->stats.opened++;
	if (settle_from_cache(ix, img, &st) || img->path_failed) {
		close(fd);
		if (img->root_fd >= 0)
			close(img->root_fd);
		img->root_fd = -1;
		return;
	}
	img->fd = fd;
	img->fd_since_ns = (uint64_t)clock_boot_ns();
	ix->kept_fds++;
}

/* ---- telling ---- */

int indexer_open(struct indexer *ix, struct mimage *img)
{
	int fd = img->index_fd >= 0 ? fcntl(img->index_fd, F_DUPFD_CLOEXEC, 3) : cache_get(ix->cache, img->key);

	if (fd < 0)
		img->state = IMAGE_PENDING;
	return fd;
}

void indexer_tell(struct indexer *ix, struct mimage *img)
{
	struct mp_index m = {.id = img->id, .state = img->state};
	cleanup_fd int fd = -1;

	if (img->state == IMAGE_PENDING || !img->wanted)
		return;
	if (img->state == IMAGE_READY) {
		fd = indexer_open(ix, img);
		if (fd < 0) { /* make it again */
			img->wanted = false;
			indexer_want(ix, img, false);
			return;
		}
	}
	hub_emit_index(ix->hub, &m, img->key ? img->key : "", img->reason ? img->reason : "", fd);
}

static void refuse(struct indexer *ix, struct mimage *img, const char *reason)
{
	set_refused(img, reason);
	drop_fds(ix, img);
	indexer_tell(ix, img);
}

static void enqueue(struct mimage ***tail, struct mimage *img)
{
	img->next_wanted = NULL;
	**tail = img;
	*tail = &img->next_wanted;
}

static void dequeue(struct mimage **head, struct mimage ***tail, const struct mimage *img)
{
	struct mimage **p = head;

	while (*p && *p != img)
		p = &(*p)->next_wanted;
	if (!*p)
		return;
	*p = img->next_wanted;
	if (*tail == &img->next_wanted)
		*tail = p;
}

static bool is_running(const struct indexer *ix, const struct mimage *img)
{
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].pid && ix->jobs[i].image == img)
			return true;
	return false;
}

void indexer_want(struct indexer *ix, struct mimage *img, bool damaged)
{
	if (damaged && img->state == IMAGE_READY) {
		if (img->redone) {
			cache_remove(ix->cache, img->key);
			refuse(ix, img, "its index cannot be read");
			return;
		}
		img->redone = true;
		cache_remove(ix->cache, img->key);
		img->state = IMAGE_PENDING;
		img->wanted = false;
	}
	if (img->state != IMAGE_PENDING) {
		img->wanted = true;
		indexer_tell(ix, img);
		return;
	}
	if (img->wanted)
		return;
	img->wanted = true;
	if (is_running(ix, img))
		return; /* told at its end */
	dequeue(&ix->ahead, &ix->ahead_tail, img);
	enqueue(&ix->queue_tail, img);
	start_next(ix);
}

void indexer_ahead(struct indexer *ix, struct mimage *img)
{
	if (img->state != IMAGE_PENDING || img->wanted || is_running(ix, img))
		return;
	dequeue(&ix->ahead, &ix->ahead_tail, img);
	enqueue(&ix->ahead_tail, img);
	start_next(ix);
}

void indexer_drop(struct indexer *ix, struct mimage *img)
{
	dequeue(&ix->queue, &ix->queue_tail, img);
	dequeue(&ix->ahead, &ix->ahead_tail, img);
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].image == img)
			ix->jobs[i].image = NULL;
	drop_fds(ix, img);
	drop_memory(ix, img);
}

/* ---- the child ---- */

static int to_high(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 10);

	return high < 0 ? -errno : high;
}

static int spawn(const struct indexer *ix, int sock, int elf, int out, pid_t *pid)
{
	char *argv[] = {"sonde-index", NULL};
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, sock, INDEX_FD_SOCKET);
	posix_spawn_file_actions_adddup2(&fa, elf, INDEX_FD_ELF);
	posix_spawn_file_actions_adddup2(&fa, out, INDEX_FD_OUT);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawn(pid, ix->program, &fa, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&attr);
	if (!rc)
		setpriority(PRIO_PROCESS, (id_t)*pid, 10);
	return -rc;
}

static int job_start(struct indexer *ix, struct job *j)
{
	cleanup_fd int theirs = -1, elf = -1, out = -1;
	int pair[2], rc;
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = j};

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	j->sock = pair[0];
	theirs = to_high(pair[1]);
	close(pair[1]);
	j->out = memfd_create("index", MFD_CLOEXEC);
	out = to_high(j->out);
	elf = to_high(j->elf);
	if (theirs < 0 || out < 0 || elf < 0)
		return -EMFILE;
	rc = spawn(ix, theirs, elf, out, &j->pid);
	if (rc)
		return rc;
	j->deadline_ns = (uint64_t)clock_boot_ns() + INDEXER_DEADLINE_NS;
	epoll_ctl(ix->epoll_fd, EPOLL_CTL_ADD, j->sock, &ev);
	return 0;
}

static void job_clear(struct job *j)
{
	if (j->sock >= 0)
		close(j->sock);
	if (j->out >= 0)
		close(j->out);
	if (j->elf >= 0)
		close(j->elf);
	if (j->root_fd >= 0)
		close(j->root_fd);
	free(j->path);
	free(j->debug_dir);
	*j = (struct job){.sock = -1, .out = -1, .elf = -1, .root_fd = -1};
}

/* The image's file, ready to be given to a child; or the image is settled at once, and false comes back. */
static bool job_open(struct indexer *ix, struct job *j, struct mimage *img)
{
	int fd = img->fd >= 0 ? take_fd(&img->fd) : -1;

	job_clear(j);
	j->root_fd = take_fd(&img->root_fd);
	if (fd >= 0) {
		ix->kept_fds--;
		j->have_st = !fstat(fd, &j->st);
	} else if (img->kind == MP_IMAGE_VDSO) {
		fd = opening_vdso(ix->world);
	} else {
		fd = opening_anyhow(&ix->opening, img, &j->st, &j->root_fd);
		j->have_st = fd >= 0;
		ix->world->stats.opened += fd >= 0;
		ix->world->stats.open_failed += fd < 0;
	}
	if (fd < 0) {
		refuse(ix, img, openin_reason(fd));
		return false;
	}
	j->elf = fd;
	if (j->have_st) {
		bool failed = img->path_failed;
		bool settled = settle_from_cache(ix, img, &j->st);

		if (!settled && img->path_failed != failed) /* the path leads to another file */
			return job_open(ix, j, img);
		if (settled) {
			indexer_tell(ix, img);
			return false;
		}
	}
	j->image = img;
	j->path = mem_strdup(img->path);
	return true;
}

/* One is kept for what somebody asks for. */
static struct job *job_free_slot(struct indexer *ix, bool wanted)
{
	struct job *free_one = NULL;
	int n = 0;

	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (!ix->jobs[i].pid) {
			free_one = &ix->jobs[i];
			n++;
		}
	return n > !wanted ? free_one : NULL;
}

static void start_next(struct indexer *ix)
{
	struct job *j;

	while ((ix->queue || ix->ahead) && (j = job_free_slot(ix, ix->queue))) {
		struct mimage *img = ix->queue ? ix->queue : ix->ahead;
		int rc;

		if (ix->queue)
			dequeue(&ix->queue, &ix->queue_tail, img);
		else
			dequeue(&ix->ahead, &ix->ahead_tail, img);
		if (!job_open(ix, j, img)) {
			job_clear(j);
			continue;
		}
		rc = job_start(ix, j);
		if (rc) {
			char reason[128];

			snprintf(reason, sizeof(reason), "cannot start sonde-index: %s", strerror(-rc));
			refuse(ix, img, reason);
			job_clear(j);
		}
	}
}

/* ---- debug files ---- */

static int try_debug(struct job *j, int root_fd, const char *path)
{
	struct stat st;
	int fd = root_fd < 0 ? -ENOENT : openin(root_fd, path, OPENIN_MAX_BYTES, &st);
	const char *slash;

	if (fd == -ETIMEDOUT)
		j->answers = ANSWERS_MAX; /* no more of this */

	if (fd >= 0 && j->have_st && st.st_ino == j->st.st_ino && st.st_dev == j->st.st_dev) {
		close(fd); /* the file itself */
		return -ENOENT;
	}
	if (fd >= 0 && (slash = strrchr(path, '/'))) {
		free(j->debug_dir);
		j->debug_dir = mem_strndup(path, (size_t)(slash - path));
	}
	return fd;
}

/* In the process's root, then in ours. Which is fine: the child checks build-id or CRC. */
static int try_both(struct job *j, int own, const char *path)
{
	int fd = try_debug(j, j->root_fd, path);

	return fd >= 0 ? fd : try_debug(j, own, path);
}

static int find_by_build_id(struct job *j, int own, const struct index_msg *m)
{
	struct strbuf path = STRBUF_INIT;
	int fd;

	if (m->build_id_len < 2 || m->build_id_len > sizeof(m->build_id))
		return -EINVAL;
	strbuf_addf(&path, "/usr/lib/debug/.build-id/%02x/", m->build_id[0]);
	for (uint32_t i = 1; i < m->build_id_len; i++)
		strbuf_addf(&path, "%02x", m->build_id[i]);
	strbuf_addstr(&path, ".debug");
	fd = try_both(j, own, path.buf);
	strbuf_release(&path);
	return fd;
}

/* The n-th that exists of: beside the file, in .debug/, below /usr/lib/debug; each in the process's root, then in ours. */
static int find_by_link(struct job *j, int own, const char *name, uint32_t n)
{
	const char *slash = strrchr(j->path, '/');
	int dir_len = slash ? (int)(slash - j->path) : 0;
	char paths[3][4608];
	int roots[2] = {j->root_fd, own};

	if (!*name || strchr(name, '/') || !slash)
		return -EINVAL;
	snprintf(paths[0], sizeof(paths[0]), "%.*s/%s", dir_len, j->path, name);
	snprintf(paths[1], sizeof(paths[1]), "%.*s/.debug/%s", dir_len, j->path, name);
	snprintf(paths[2], sizeof(paths[2]), "/usr/lib/debug%.*s/%s", dir_len, j->path, name);
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < 3; i++) {
			int fd = try_debug(j, roots[r], paths[i]);

			if (fd < 0)
				continue;
			if (!n--)
				return fd;
			close(fd);
		}
	return -ENOENT;
}

static int find_alt(struct job *j, int own, const struct index_msg *m)
{
	char path[8192];
	const char *slash = strrchr(m->name, '/');
	int fd = find_by_build_id(j, own, m);

	if (fd >= 0 || !*m->name)
		return fd;
	if (m->name[0] == '/')
		fd = try_both(j, own, m->name);
	else if (j->debug_dir && snprintf(path, sizeof(path), "%s/%s", j->debug_dir, m->name) < (int)sizeof(path))
		fd = try_both(j, own, path);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/usr/lib/debug/.dwz/%s", slash ? slash + 1 : m->name);
	return try_both(j, own, path);
}

static void answer(struct job *j, const struct index_msg *m)
{
	cleanup_fd int own = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct index_msg reply = {.type = INDEX_MSG_FILE};
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {.iov_base = &reply, .iov_len = sizeof(reply)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	cleanup_fd int fd = -1;

	if (j->answers++ < ANSWERS_MAX)
		fd = m->type == INDEX_MSG_WANT_BUILD_ID ? find_by_build_id(j, own, m) :
		     m->type == INDEX_MSG_WANT_DEBUGLINK ? find_by_link(j, own, m->name, m->n) : find_alt(j, own, m);
	if (fd >= 0) {
		struct cmsghdr *c;

		reply.status = 1;
		mh.msg_control = control;
		mh.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	(void)!sendmsg(j->sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- the end of a child ---- */

/* Our own copy of what the child wrote, checked: the child may still hold the other. */
static int take_output(const struct job *j, int *copy)
{
	cleanup_fd int fd = memfd_create("image-index", MFD_CLOEXEC);
	struct image *check = NULL;
	char buf[65536];
	off_t at = 0;
	ssize_t n;
	int rc;

	if (fd < 0)
		return -errno;
	while ((n = pread(j->out, buf, sizeof(buf), at)) > 0) {
		if (write(fd, buf, (size_t)n) != n)
			return -ENOSPC;
		at += n;
	}
	rc = image_open_fd(fd, &check, NULL);
	if (rc)
		return rc;
	image_close(check);
	*copy = take_fd(&fd);
	return 0;
}

/* The file at the path is a newer one: once more, through the mapping itself. */
static void not_it(struct indexer *ix, struct mimage *img)
{
	bool wanted = img->wanted;

	if (img->path_failed) {
		refuse(ix, img, openin_reason(-ESTALE));
		return;
	}
	img->path_failed = true;
	drop_fds(ix, img);
	img->wanted = false;
	if (wanted)
		indexer_want(ix, img, false);
	else
		indexer_ahead(ix, img);
}

static void drop_memory(struct indexer *ix, struct mimage *img)
{
	if (img->index_fd < 0)
		return;
	ix->memory_bytes -= img->index_bytes;
	close(img->index_fd);
	img->index_fd = -1;
}

/* `fd` is taken. */
static bool keep_in_memory(struct indexer *ix, struct mimage *img, int fd)
{
	off_t bytes = lseek(fd, 0, SEEK_END);

	drop_memory(ix, img);
	if (bytes < 0 || ix->memory_bytes + (uint64_t)bytes > MEMORY_MAX) {
		close(fd);
		return false;
	}
	img->index_bytes = (uint64_t)bytes;
	ix->memory_bytes += img->index_bytes;
	img->index_fd = fd;
	return true;
}

static void job_success(struct indexer *ix, struct job *j)
{
	struct mimage *img = j->image;
	cleanup_fd int copy = -1;
	char *stored = NULL;

	j->image = NULL; /* it may be queued again */
	if (!cache_key_ok(j->text) || take_output(j, &copy)) {
		refuse(ix, img, "sonde-index wrote an index that cannot be read");
		return;
	}
	if (cache_put(ix->cache, j->text, copy, j->have_st ? &j->st : NULL, &stored)) {
		/* no folder, or a full disk: kept in memory, as much as there may be */
		if (!keep_in_memory(ix, img, take_fd(&copy))) {
			refuse(ix, img, "its index cannot be stored, and too many are kept in memory");
			return;
		}
		stored = mem_strdup(j->text);
	}
	if (!matches_build_id(img, j->text)) {
		free(stored);
		not_it(ix, img);
		return;
	}
	free(img->key);
	img->key = stored;
	img->state = IMAGE_READY;
	drop_fds(ix, img);
	indexer_tell(ix, img);
}

static void job_refused(struct indexer *ix, struct job *j, const char *reason)
{
	if (j->have_st)
		cache_refuse(ix->cache, &j->st, reason);
	if (j->image)
		refuse(ix, j->image, reason);
}

static void job_end(struct indexer *ix, struct job *j, bool late)
{
	char reason[320];
	int status = 0;

	kill(j->pid, SIGKILL); /* it has said all that it may */
	waitpid(j->pid, &status, 0);
	epoll_ctl(ix->epoll_fd, EPOLL_CTL_DEL, j->sock, NULL);
	if (late)
		job_refused(ix, j, "reading it took too long");
	else if (j->done && !j->status && j->image)
		job_success(ix, j);
	else if (j->done && j->status) {
		snprintf(reason, sizeof(reason), "%s", *j->text ? j->text : strerror(-j->status));
		if (j->status == -ENOSPC || j->status == -ENOMEM || j->status == -EIO) {
			if (j->image)
				refuse(ix, j->image, reason); /* it may work the next time */
		} else {
			job_refused(ix, j, reason);
		}
	} else if (!j->done) {
		snprintf(reason, sizeof(reason), WIFSIGNALED(status) ? "sonde-index was ended by signal %d while reading it" :
			 "sonde-index ended with code %d while reading it", WIFSIGNALED(status) ? WTERMSIG(status) :
			 WEXITSTATUS(status));
		job_refused(ix, j, reason);
	}
	job_clear(j);
	start_next(ix);
}

bool indexer_ready(struct indexer *ix, void *ptr)
{
	struct index_msg m;
	struct job *j = NULL;
	ssize_t n;

	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ptr == &ix->jobs[i])
			j = &ix->jobs[i];
	if (!j)
		return false;
	if (!j->pid)
		return true;
	n = recv(j->sock, &m, sizeof(m), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n != sizeof(m)) {
		job_end(ix, j, false);
		return true;
	}
	m.name[sizeof(m.name) - 1] = 0;
	if (m.type == INDEX_MSG_DONE) {
		j->done = true;
		j->status = m.status;
		snprintf(j->text, sizeof(j->text), "%s", m.name);
		job_end(ix, j, false);
	} else if (m.type >= INDEX_MSG_WANT_BUILD_ID && m.type <= INDEX_MSG_WANT_ALT) {
		answer(j, &m);
	}
	return true;
}

void indexer_tick(struct indexer *ix, uint64_t now_ns)
{
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].pid && now_ns > ix->jobs[i].deadline_ns)
			job_end(ix, &ix->jobs[i], true);
	if (!ix->kept_fds || now_ns < ix->looked_ns + NSEC_PER_SEC)
		return;
	ix->looked_ns = now_ns;
	for (struct mimage *img = ix->world->by_id; img; img = img->hh_id.next)
		if (img->fd >= 0 && !img->wanted && now_ns - img->fd_since_ns > INDEXER_KEEP_NS)
			drop_fds(ix, img);
}

bool indexer_busy(const struct indexer *ix)
{
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].pid)
			return true;
	return ix->queue || ix->ahead;
}

void indexer_free(struct indexer *ix)
{
	if (!ix)
		return;
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].pid) {
			kill(ix->jobs[i].pid, SIGKILL);
			waitpid(ix->jobs[i].pid, NULL, 0);
			job_clear(&ix->jobs[i]);
		}
	free(ix->program);
	free(ix);
}
