/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/scrape/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define LISTENS       0x0a
#define TEXT_MAX      (SOCKETS_MAX * 200)
#define UNIX_TEXT_MAX (1u << 20) /* all are in one list, those that listen among them */

/* ---- the files ---- */

/* Addresses are words of this machine's order, each in hex: the bytes as they lie in memory are the
 * address. */
static bool address_read(const char *hex, bool v6, uint8_t out[16])
{
	memset(out, 0, 16);
	for (int word = 0; word < (v6 ? 4 : 1); word++) {
		unsigned int v;

		if (sscanf(hex + 8 * word, "%8x", &v) != 1)
			return false;
		memcpy(out + 4 * word, &v, 4);
	}
	return true;
}

static bool line_read(const char *line, bool v6, struct listening *out, unsigned int *state)
{
	char hex[33];
	unsigned int port;
	unsigned long long inode;

	if (sscanf(line,
		   " %*u: %32[0-9A-Fa-f]:%4x %*32[0-9A-Fa-f]:%*4x %2x %*s %*s %*s %*u %*u %llu",
		   hex, &port, state, &inode) != 4)
		return false;
	if (strlen(hex) != (v6 ? 32 : 8))
		return false;
	*out = (struct listening){.inode = inode, .port = (uint16_t)port, .v6 = v6};
	return address_read(hex, v6, out->address);
}

size_t sockets_parse(const char *text, size_t len, bool v6, struct listening *out, size_t max,
		     bool *ended)
{
	const char *at = text, *end = text + len, *nl;
	char line[400];
	size_t n = 0;

	*ended = false;
	for (; n < max && at < end && (nl = memchr(at, '\n', (size_t)(end - at))); at = nl + 1) {
		size_t size =
			(size_t)(nl - at) < sizeof(line) - 1 ? (size_t)(nl - at) : sizeof(line) - 1;
		unsigned int state;

		memcpy(line, at, size);
		line[size] = '\0';
		if (!line_read(line, v6, &out[n], &state))
			continue; /* the title */
		*ended = state != LISTENS;
		if (*ended)
			break;
		n++;
	}
	return n;
}

static size_t file_read(uint32_t pid, bool v6, struct listening *out, size_t max)
{
	cleanup_free char *text = mem_alloc(TEXT_MAX);
	char path[64];
	size_t len = 0, found = 0;
	bool ended = false;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/net/tcp%s", pid, v6 ? "6" : "");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	/* a page at a time */
	while (!ended && found < max && len < TEXT_MAX &&
	       (n = read(fd, text + len, TEXT_MAX - len)) > 0) {
		len += (size_t)n;
		found = sockets_parse(text, len, v6, out, max, &ended);
	}
	close(fd);
	return found;
}

static size_t unix_read(uint32_t pid, struct listening *out, size_t max)
{
	cleanup_free char *text = mem_alloc(UNIX_TEXT_MAX);
	char path[64];
	size_t len = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/net/unix", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (len < UNIX_TEXT_MAX && (n = read(fd, text + len, UNIX_TEXT_MAX - len)) > 0)
		len += (size_t)n;
	close(fd);
	return sockets_parse_unix(text, len, out, max);
}

/* ---- where it leads ---- */

static bool everywhere(const struct listening *l)
{
	static const uint8_t none[16];

	return !memcmp(l->address, none, 16);
}

static bool same_place(const struct listening *a, const struct listening *b)
{
	return a->v6 == b->v6 && a->port == b->port && !memcmp(a->address, b->address, 16) &&
	       !strcmp(a->path, b->path);
}

static bool is_taken(const struct listening *all, size_t n, size_t but, const struct listening *to)
{
	for (size_t i = 0; i < n; i++)
		if (i != but && same_place(&all[i], to))
			return true;
	return false;
}

static bool has_v4(const struct listening *all, size_t n, uint16_t port)
{
	for (size_t i = 0; i < n; i++)
		if (!all[i].v6 && all[i].port == port && !*all[i].path)
			return true;
	return false;
}

bool sockets_reach(const struct listening *all, size_t n, size_t i, struct listening *out)
{
	static const uint8_t v4[4] = {127, 0, 0, 1};

	*out = all[i];
	if (is_taken(all, n, i, out)) /* SO_REUSEPORT: the kernel chooses */
		return false;
	if (*out->path || !everywhere(out))
		return true;
	if (out->v6 && has_v4(all, n, out->port)) {
		out->address[15] = 1;
		return !is_taken(all, n, i, out);
	}
	out->v6 = false; /* one that listens everywhere takes both; ::1 is not in every container */
	memset(out->address, 0, 16);
	memcpy(out->address, v4, 4);
	return !is_taken(all, n, i, out);
}

/* ---- whose they are ---- */

static void each_socket(uint32_t pid, void (*each)(void *ctx, uint64_t inode), void *ctx)
{
	char path[64], to[64];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		unsigned long long inode;
		ssize_t n = *d->d_name == '.' ?
				    -1 :
				    readlinkat(dirfd(dir), d->d_name, to, sizeof(to) - 1);

		to[n > 0 ? n : 0] = '\0';
		if (sscanf(to, "socket:[%llu]", &inode) == 1)
			each(ctx, inode);
	}
	if (dir)
		closedir(dir);
}

static void own_note(void *ctx, uint64_t inode)
{
	struct sockets *s = ctx;

	for (size_t i = 0; i < s->n; i++)
		s->own[i] |= s->all[i].inode == inode;
}

void sockets_of(uint32_t pid, struct sockets *out)
{
	*out = (struct sockets){.all = mem_array(3 * SOCKETS_MAX, sizeof(*out->all))};
	out->n = file_read(pid, false, out->all, SOCKETS_MAX);
	out->n += file_read(pid, true, out->all + out->n, SOCKETS_MAX);
	out->n += unix_read(pid, out->all + out->n, SOCKETS_MAX);
	out->own = mem_array(out->n + 1, sizeof(*out->own));
	each_socket(pid, own_note, out);
}

void sockets_release(struct sockets *s)
{
	free(s->all);
	free(s->own);
	*s = (struct sockets){0};
}

struct holding {
	uint64_t inode;
	bool found;
};

static void holding_note(void *ctx, uint64_t inode)
{
	struct holding *h = ctx;

	h->found |= h->inode == inode;
}

bool sockets_holds(uint32_t pid, uint64_t inode)
{
	struct holding h = {.inode = inode};

	each_socket(pid, holding_note, &h);
	return h.found;
}

bool sockets_same_network(uint32_t pid)
{
	struct stat own, other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	return !stat("/proc/self/ns/net", &own) && !stat(path, &other) &&
	       own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}
