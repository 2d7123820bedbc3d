/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/start/targetfeed.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#include "schema/base/mem.h"

#define LINE_MAX_ 64
#define GIVEN_MAX 65536 /* more are ignored: no host has this many Go programs */

struct key {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

struct given {
	struct key key;
	UT_hash_handle hh;
};

struct targetfeed {
	int fd;
	char line[LINE_MAX_];
	size_t len;
	struct given *all;
	uint32_t step;
};

struct targetfeed *targetfeed_new(int fd)
{
	struct targetfeed *f = mem_alloc(sizeof(*f));

	f->fd = fd;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return f;
}

void targetfeed_free(struct targetfeed *f)
{
	struct given *g, *next;

	if (!f)
		return;
	HASH_ITER (hh, f->all, g, next) {
		HASH_DEL(f->all, g);
		free(g);
	}
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

static struct given *find(const struct targetfeed *f, const struct key *key)
{
	struct given *g;

	HASH_FIND(hh, f->all, key, sizeof(*key), g);
	return g;
}

static void take_line(struct targetfeed *f)
{
	struct key key = {0};
	struct given *g;
	char sign, more;

	f->line[f->len] = '\0';
	if (sscanf(f->line, "=%" SCNu32 "%c", &key.tgid, &more) == 1) {
		f->step = key.tgid;
		return;
	}
	if (sscanf(f->line, "%c%" SCNu32 " %" SCNu64 " %" SCNu32 "%c", &sign, &key.tgid,
		   &key.start_ns, &key.exec_id, &more) != 4)
		return;
	g = find(f, &key);
	if (sign == '+' && !g && HASH_COUNT(f->all) < GIVEN_MAX) {
		g = mem_alloc(sizeof(*g));
		g->key = key;
		HASH_ADD(hh, f->all, key, sizeof(g->key), g);
	} else if (sign == '-' && g) {
		HASH_DEL(f->all, g);
		free(g);
	}
}

void targetfeed_take(struct targetfeed *f, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != '\n') {
			if (f->len < LINE_MAX_)
				f->line[f->len] = bytes[i];
			f->len++;
			continue;
		}
		if (f->len < LINE_MAX_)
			take_line(f);
		f->len = 0;
	}
	if (f->len > LINE_MAX_)
		f->len = LINE_MAX_; /* already too long: the rest does not matter */
}

void targetfeed_read(struct targetfeed *f)
{
	char bytes[4096];
	ssize_t n;

	while (f->fd >= 0 && (n = read(f->fd, bytes, sizeof(bytes))) >= 0) {
		if (!n) {
			close(f->fd);
			f->fd = -1;
			return;
		}
		targetfeed_take(f, bytes, (size_t)n);
	}
}

uint32_t targetfeed_step(const struct targetfeed *f)
{
	return f->step;
}

bool targetfeed_has(const struct targetfeed *f, uint32_t tgid, uint64_t start_ns, uint32_t exec_id)
{
	struct key key = {.start_ns = start_ns, .tgid = tgid, .exec_id = exec_id};

	return find(f, &key);
}
