/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/logs/podmanlog.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define KNOWN_MAX 4096
#define READ_MAX  (4u << 20) /* of a look: its newest */

struct podmanlog_known {
	struct podmanlog_state state;
	UT_hash_handle hh;
	char id[65];
};

struct look {
	struct podmanlog *p;
	void (*told)(void *ctx, const struct container_happened *x, const char *was);
	void *ctx;
	int64_t last_ns;
};

static void forget(struct podmanlog *p, bool removed_alone)
{
	struct podmanlog_known *k, *next;

	HASH_ITER (hh, p->all, k, next) {
		if (removed_alone && !k->state.removed)
			continue;
		HASH_DEL(p->all, k);
		free(k);
	}
}

void podmanlog_release(struct podmanlog *p)
{
	forget(p, false);
}

static struct podmanlog_known *known_of(struct podmanlog *p, const char *id)
{
	struct podmanlog_known *k;

	HASH_FIND_STR(p->all, id, k);
	if (!k && HASH_COUNT(p->all) >= KNOWN_MAX)
		forget(p, true);
	if (k || HASH_COUNT(p->all) >= KNOWN_MAX)
		return k;
	k = mem_alloc(sizeof(*k));
	memcpy(k->id, id, sizeof(k->id));
	HASH_ADD_STR(p->all, id, k);
	return k;
}

static bool is(const struct container_happened *x, const char *status)
{
	return !strcmp(x->status, status);
}

static void learn(struct podmanlog_known *k, const struct container_happened *x)
{
	if (x->name[0])
		memcpy(k->state.name, x->name, sizeof(k->state.name));
	if (is(x, "died")) {
		k->state.has_ended = true;
		k->state.exit_code = x->exit_code;
	} else if (is(x, "start")) {
		k->state.has_ended = false;
	} else if (is(x, "restart")) {
		k->state.restarts++;
	} else if (is(x, "health_status")) {
		memcpy(k->state.health, x->health, sizeof(k->state.health));
	} else if (is(x, "remove")) {
		k->state.removed = true;
	}
}

static void line_take(struct look *l, const char *line, size_t len)
{
	struct container_happened x;
	struct podmanlog_known *k;
	char was[24] = "";

	if (containerfile_podman_event(line, len, &x) || x.at_ns <= l->p->last_ns)
		return;
	l->last_ns = x.at_ns > l->last_ns ? x.at_ns : l->last_ns;
	k = known_of(l->p, x.id);
	if (k)
		memcpy(was, k->state.health, sizeof(was));
	if (l->p->begun)
		l->told(l->ctx, &x, was);
	if (k)
		learn(k, &x);
}

/* Up to its last whole line; how much that is. */
static size_t lines_take(struct look *l, const char *text, size_t len)
{
	size_t at = 0;

	while (at < len) {
		const char *newline = memchr(text + at, '\n', len - at);

		if (!newline)
			break;
		line_take(l, text + at, (size_t)(newline - text) - at);
		at = (size_t)(newline - text) + 1;
	}
	return at;
}

void podmanlog_look(struct podmanlog *p, const char *path,
		    void (*told)(void *ctx, const struct container_happened *x, const char *was),
		    void *ctx)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct look l = {.p = p, .told = told, .ctx = ctx, .last_ns = p->last_ns};
	cleanup_free char *text = NULL;
	struct stat st;
	uint64_t size;
	ssize_t n;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
		size = (uint64_t)st.st_size;
		if (st.st_ino != p->ino || size < p->at)
			p->at = 0;
		p->ino = st.st_ino;
		p->at = size - p->at > READ_MAX ? size - READ_MAX : p->at;
		text = size > p->at ? mem_alloc((size_t)(size - p->at)) : NULL;
		n = text ? pread(fd, text, (size_t)(size - p->at), (off_t)p->at) : 0;
		if (n > 0)
			p->at += lines_take(&l, text, (size_t)n);
		p->last_ns = l.last_ns;
	}
	p->begun = true;
}

const struct podmanlog_state *podmanlog_state(const struct podmanlog *p, const char *id)
{
	struct podmanlog_known *k;

	HASH_FIND_STR(p->all, id, k);
	return k ? &k->state : NULL;
}
