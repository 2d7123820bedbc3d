/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-index: one ELF file in, its image index out (schema/image/format.h).
 *
 *   sonde-index [--all-lines | --no-lines | --lost-lines | --rows-first]
 *                                                  child of sonde-maps (indexproto.h)
 *   sonde-index FILE -o INDEX [--no-lines]         by hand
 *   sonde-index --dump INDEX, --at INDEX           print an index, or what it knows of addresses
 *   sonde-index --dump-rows INDEX, --dump-tls INDEX
 *                                                  print its unwind rows, its probe sites of TLS
 *   sonde-index FILE --places WORD, --place NAME, --place-at OFFSET [--calls]
 *                                                  print where probes can be set in it (places.h)
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/index/child.h"
#include "loaders/index/dump.h"
#include "loaders/index/indexer.h"
#include "loaders/index/places.h"
#include "loaders/lib/host/maps/indexproto.h"
#include "loaders/lib/sandbox/sandbox.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/cli/options.h"
#include "schema/base/err.h"
#include "schema/base/file/fdpass.h"
#include "schema/base/log.h"
#include "schema/base/strbuf.h"
#include "schema/image/image.h"

static int is_child(void)
{
	struct stat st;

	return !fstat(INDEX_FD_SOCKET, &st) && S_ISSOCK(st.st_mode);
}

#define PLACES_BUDGET (448ull << 20) /* bytes of a file that are read for them */
#define LINES_OWN     (-1)           /* nothing was said of them */

struct options {
	const char *out, *dump, *rows, *tls, *at, *places, *place, *place_at;
	int lines; /* enum index_lines */
	bool rows_first, calls;
};

static const struct program PROGRAM = {
	.name = "sonde-index",
	.usage =
		"FILE -o INDEX | FILE --places WORD | --dump INDEX | --dump-rows INDEX | --dump-tls INDEX | --at INDEX",
	.about =
		"Writes the image index of an ELF file, and prints its key; or prints what is in an index.\n"
		"Without any of these: as a child of sonde-maps, with its descriptors.",
	.words = 1,
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"output", 'o', OPTION_STRING, "INDEX", "where the index is written", OPTION_AT(struct options, out)},
	{"dump", 0, OPTION_STRING, "INDEX", "identity and symbols of an index: address, size, name", OPTION_AT(struct options, dump)},
	{"dump-rows", 0, OPTION_STRING, "INDEX", "its unwind rows: address, CFA, caller's RBP, return address", OPTION_AT(struct options, rows)},
	{"dump-tls", 0, OPTION_STRING, "INDEX", "its probe sites of TLS libraries", OPTION_AT(struct options, tls)},
	{"at", 0, OPTION_STRING, "INDEX", "for each address read from standard input (hexadecimal): function, file, line, column, inlined functions first",
	 OPTION_AT(struct options, at)},
	{"places", 0, OPTION_STRING, "WORD", "functions and USDT probes of FILE whose names hold WORD", OPTION_AT(struct options, places)},
	{"place", 0, OPTION_STRING, "NAME", "the same of this name", OPTION_AT(struct options, place)},
	{"place-at", 0, OPTION_STRING, "OFFSET", "the instruction that begins there in FILE (hexadecimal)", OPTION_AT(struct options, place_at)},
	{"calls", 0, OPTION_FLAG, NULL, "with --place or --place-at: where its calls begin and end, too", OPTION_AT(struct options, calls)},
	{"no-lines", 0, OPTION_SET, NULL, "no files, lines and inlined functions", OPTION_AT(struct options, lines), .min = INDEX_LINES_NONE},
	{"all-lines", 0, OPTION_SET, NULL, "(child) read lines of large debug information too; with FILE this is the default", OPTION_AT(struct options, lines),
	 .min = INDEX_LINES_ALL},
	{"rows-first", 0, OPTION_FLAG, NULL, "(child) write the rows first; the rest when the parent asks for it", OPTION_AT(struct options, rows_first)},
	{"lost-lines", 0, OPTION_SET, NULL, "(child) leave lines out, and note in the index that reading them failed", OPTION_AT(struct options, lines),
	 .min = INDEX_LINES_LOST},
	{0},
};
/* clang-format on */

static int print(const struct options *o, struct err *e)
{
	if (o->rows)
		return dump_rows(o->rows, e);
	if (o->tls)
		return dump_tls(o->tls, e);
	return o->dump ? dump_symbols(o->dump, e) : dump_lines(o->at, e);
}

/* ---- by hand: the parent's side of indexproto.h for one file ---- */

#define WAIT_MS (120 * 1000)

/* ---- finding files ---- */

static int open_regular(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

static int find_build_id(const struct index_msg *m)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	if (m->build_id_len < 2 || m->build_id_len > sizeof(m->build_id))
		return -1;
	strbuf_addf(&path, "/usr/lib/debug/.build-id/%02x/", m->build_id[0]);
	for (uint32_t i = 1; i < m->build_id_len; i++)
		strbuf_addf(&path, "%02x", m->build_id[i]);
	strbuf_addstr(&path, ".debug");
	return open_regular(strbuf_str(&path));
}

/* In gdb's order: next to the file, in .debug/ there, below /usr/lib/debug with the file's folder.
 */
static int find_debuglink(const struct index_msg *m, const char *dir)
{
	static const char *const places[] = {"%s/%s", "%s/.debug/%s", "/usr/lib/debug%s/%s"};
	const size_t count = ARRAY_SIZE(places);

	if (!memchr(m->name, 0, sizeof(m->name)) || strchr(m->name, '/'))
		return -1;
	for (size_t i = 0, n = 0; i < count; i++) {
		cleanup_strbuf struct strbuf path = STRBUF_INIT;
		cleanup_fd int fd = -1;

		strbuf_addf(&path, places[i], dir, m->name);
		fd = open_regular(strbuf_str(&path));
		if (fd >= 0 && n++ == m->n)
			return take_fd(&fd);
	}
	return -1;
}

/* What dwz put aside: by build-id, by its name (relative to the file), by its name in
 * /usr/lib/debug/.dwz. */
static int find_altlink(const struct index_msg *m, const char *dir)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	const char *slash = strrchr(m->name, '/');
	int fd = find_build_id(m);

	if (fd >= 0)
		return fd;
	strbuf_addf(&path, "%s%s%s", *m->name == '/' ? "" : dir, *m->name == '/' ? "" : "/",
		    m->name);
	fd = open_regular(strbuf_str(&path));
	if (fd >= 0)
		return fd;
	strbuf_reset(&path);
	strbuf_addf(&path, "/usr/lib/debug/.dwz/%s", slash ? slash + 1 : m->name);
	return open_regular(strbuf_str(&path));
}

/* ---- the talk ---- */

static int answer(int sock, int fd)
{
	const struct index_msg m = {.type = INDEX_MSG_FILE, .status = fd >= 0};

	return fdpass_send(sock, &m, sizeof(m), &fd, fd >= 0, 0);
}

/* Answers until the child says that it is done, dies, or takes too long. */
static int serve(int sock, const char *dir, struct index_msg *done)
{
	for (;;) {
		struct pollfd p = {.fd = sock, .events = POLLIN};
		cleanup_fd int fd = -1;
		struct index_msg m = {0};
		int ready = poll(&p, 1, WAIT_MS);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return ready ? -errno : -ETIMEDOUT;
		if (recv(sock, &m, sizeof(m), 0) != (ssize_t)sizeof(m))
			return -EPIPE;
		m.name[sizeof(m.name) - 1] = 0;
		if (m.type == INDEX_MSG_DONE) {
			*done = m;
			return 0;
		}
		if (m.type == INDEX_MSG_WANT_BUILD_ID)
			fd = find_build_id(&m);
		else if (m.type == INDEX_MSG_WANT_DEBUGLINK)
			fd = find_debuglink(&m, dir);
		else if (m.type == INDEX_MSG_WANT_ALT)
			fd = find_altlink(&m, dir);
		if (answer(sock, fd))
			return -EPIPE;
	}
}

/* In the child: exactly the descriptors of the protocol. */
static void child_run(int sock, int elf, int out, enum index_lines lines)
{
	int fds[3] = {fcntl(sock, F_DUPFD, 16), fcntl(elf, F_DUPFD, 16), fcntl(out, F_DUPFD, 16)};

	if (fds[0] < 0 || fds[1] < 0 || fds[2] < 0 || dup2(fds[0], INDEX_FD_SOCKET) < 0 ||
	    dup2(fds[1], INDEX_FD_ELF) < 0 || dup2(fds[2], INDEX_FD_OUT) < 0)
		_exit(1);
	close_range(INDEX_FD_OUT + 1, ~0u, 0);
	_exit(child_main(lines, false));
}

static int say_death(pid_t pid, const char *path, struct err *e)
{
	int status = 0;

	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		return err_set(e, -EIO, EXIT_RUNTIME,
			       "cannot index %s: the sandboxed reader was killed by signal %d (%s)",
			       path, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return err_set(e, -EIO, EXIT_RUNTIME,
		       "cannot index %s: the sandboxed reader ended with status %d", path,
		       WEXITSTATUS(status));
}

static int index_into(const char *path, int elf, int out, enum index_lines lines,
		      struct index_msg *done, struct err *e)
{
	cleanup_free char *dir = realpath(path, NULL);
	cleanup_fd int mine = -1;
	int pair[2], rc;
	pid_t pid;

	if (!dir)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot resolve %s: %s", path,
			       strerror(errno));
	*strrchr(dir, '/') = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a socket: %s",
			       strerror(errno));
	mine = pair[0];
	pid = fork();
	if (pid == 0)
		child_run(pair[1], elf, out, lines);
	close(pair[1]);
	if (pid < 0)
		return err_set(e, -EAGAIN, EXIT_RUNTIME, "cannot start the sandboxed reader");
	rc = serve(mine, dir, done);
	if (rc) {
		if (rc == -ETIMEDOUT)
			kill(pid, SIGKILL);
		return say_death(pid, path, e);
	}
	waitpid(pid, NULL, 0);
	if (done->status)
		return err_set(e, done->status, EXIT_RUNTIME, "cannot index %s: %s", path,
			       done->name);
	return 0;
}

/* Index `path` into `out` (replaced only by a complete index), with debug files from /usr/lib/debug
 * and the file's folder; prints the key. A sandboxed child does the work. */
static int byhand_index(const char *path, const char *out, enum index_lines lines, struct err *e)
{
	cleanup_strbuf struct strbuf tmp = STRBUF_INIT;
	cleanup_fd int elf = open_regular(path);
	cleanup_fd int to = -1;
	struct index_msg done = {0};
	int rc;

	if (elf < 0)
		return err_set(e, -errno, errno == EACCES ? EXIT_PERMISSION : EXIT_USAGE,
			       "cannot open %s: %s", path,
			       errno == EINVAL ? "not a regular file" : strerror(errno));
	strbuf_addf(&tmp, "%s.XXXXXX", out);
	to = mkostemp(tmp.buf, O_CLOEXEC);
	if (to < 0)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot write %s: %s", out,
			       strerror(errno));
	rc = index_into(path, elf, to, lines, &done, e);
	if (!rc && (fchmod(to, 0644) || rename(tmp.buf, out)))
		rc = err_set(e, -errno, EXIT_RUNTIME, "cannot write %s: %s", out, strerror(errno));
	if (rc) {
		unlink(tmp.buf);
		return rc;
	}
	printf("%s\n", done.name);
	return 0;
}

/* Not by stdio, which asks first what the output is: the sandbox does not allow it. */
static int write_out(const char *text, size_t len, struct err *e)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, text, len);

		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, EXIT_RUNTIME, "cannot write: %s",
				       strerror(errno));
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* This process reads the file itself, in the sandbox. */
static int print_places(const char *path, const struct options *o, struct err *e)
{
	const struct places_asked asked = {.word = o->place  ? o->place :
						   o->places ? o->places :
							       "",
					   .whole = o->place != NULL,
					   .at = o->place_at ? strtoull(o->place_at, NULL, 16) : 0,
					   .calls = o->calls && !o->places};
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	uint64_t hash = 0, left = PLACES_BUDGET;
	cleanup_fd int elf = open_regular(path);
	struct source src;
	int rc;

	if (elf < 0)
		return err_set(e, -errno, errno == EACCES ? EXIT_PERMISSION : EXIT_USAGE,
			       "cannot open %s: %s", path,
			       errno == EINVAL ? "not a regular file" : strerror(errno));
	rc = source_init_fd(&src, elf, &hash, &left);
	if (rc)
		return err_set(e, rc, EXIT_RUNTIME, "cannot read %s: %s", path, strerror(-rc));
	rc = sandbox_enter(SANDBOX_SMALL, e);
	if (!rc)
		rc = places_read(&src, &asked, &out, e);
	return rc ? rc : write_out(strbuf_str(&out), out.len, e);
}

int main(int argc, char **argv)
{
	struct options o = {.lines = LINES_OWN};
	struct option_words words;
	struct err e = {0};
	int rc, prints;

	log_init(PROGRAM.name, LOG_LEVEL_WARN);
	rc = program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, &o}, 1, &words,
			     &e);
	if (!rc && words.n == 1 && (o.places || o.place || o.place_at) && !o.out && !o.dump &&
	    !o.rows && !o.tls && !o.at) {
		rc = print_places(words.items[0], &o, &e);
		options_release(NULL, 0, &words);
		return program_end(PROGRAM.name, rc, &e);
	}
	prints = !!o.places + !!o.place + !!o.place_at + !!o.dump + !!o.rows + !!o.tls + !!o.at;
	if (rc)
		;
	else if (!words.n && !o.out && !prints && is_child())
		return child_main(o.lines == LINES_OWN ? INDEX_LINES_SOON :
							 (enum index_lines)o.lines,
				  o.rows_first);
	else if (!o.out && !words.n && prints == 1 && o.lines == LINES_OWN && !o.rows_first)
		rc = print(&o, &e);
	else if (o.out && words.n == 1 && !prints && !o.rows_first) /* which is for a child alone */
		rc = byhand_index(
			words.items[0], o.out,
			o.lines == LINES_OWN ? INDEX_LINES_ALL : (enum index_lines)o.lines, &e);
	else {
		rc = err_set(
			&e, -EINVAL, EXIT_USAGE,
			"either FILE and -o INDEX, or one of --dump, --dump-rows, --dump-tls and --at");
		err_fix(&e, "%s --help", PROGRAM.name);
	}
	options_release(NULL, 0, &words);
	return program_end(PROGRAM.name, rc, &e);
}
