/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/names/jitdump.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/names/perfmap.h"
#include "schema/base/mem.h"

#define MAGIC      0x4A695444u
#define HEAD_BYTES 40u
#define MOVE_BYTES 64u        /* with the record's head */
#define CODES_MAX  (1u << 17) /* functions that may still be moved */

enum kind { CODE_LOAD, CODE_MOVE, DEBUG_INFO };

struct head {
	uint32_t magic, version, size, machine, pad, pid;
	uint64_t time, flags;
};
struct record {
	uint32_t kind, size;
	uint64_t time;
};
struct load {
	uint32_t pid, tid;
	uint64_t vma, addr, size, number;
};
struct move {
	uint32_t pid, tid;
	uint64_t vma, from, to, size, number;
};
struct debug {
	uint64_t addr, n;
};
struct entry {
	uint64_t addr;
	uint32_t line, discriminator;
};
_Static_assert(sizeof(struct head) == HEAD_BYTES && sizeof(struct record) == 16 &&
		       sizeof(struct load) == 40 && sizeof(struct move) == 48 &&
		       sizeof(struct debug) == 16 && sizeof(struct entry) == 16,
	       "as in the file");

/* A loaded function: its record, and the record of its lines, in the bytes. */
struct code {
	uint64_t number, size, base;
	const char *name;
	size_t name_len;
	const uint8_t *debug; /* NULL: no lines */
	size_t debug_len;
};

struct parse {
	uint32_t pid;
	struct perfmap *map;
	struct perfmap_place *places;
	size_t n_places, cap_places;
	struct code *codes; /* by number, as long as numbers come in order */
	size_t n_codes, cap_codes;
	const uint8_t *debug; /* the lines of the next function */
	size_t debug_len;
};

/* The entries of DEBUG_INFO, up to the first incomplete one. */
static void places_read(struct parse *p, const uint8_t *data, size_t len)
{
	const char *file = NULL;
	struct debug d;
	size_t at = sizeof(d);

	p->n_places = 0;
	if (!data || len < sizeof(d))
		return;
	memcpy(&d, data, sizeof(d));
	for (uint64_t i = 0; i < d.n && i < JITDUMP_PLACES_MAX && len - at > sizeof(struct entry);
	     i++) {
		struct entry e;
		const char *name = (const char *)data + at + sizeof(e),
			   *end = memchr(name, 0, len - at - sizeof(e));

		if (!end)
			return;
		memcpy(&e, data + at, sizeof(e));
		at += sizeof(e) + (size_t)(end - name) + 1;
		if (strcmp(name, "\xff"))
			file = end - name > PERFMAP_NAME_MAX ? NULL : name;
		if (!file || e.line > INT32_MAX)
			continue;
		mem_grow(p->places, p->n_places, p->cap_places);
		p->places[p->n_places++] = (struct perfmap_place){e.addr, file, e.line};
	}
}

static void code_add(struct parse *p, const struct code *c, uint64_t addr)
{
	places_read(p, c->debug, c->debug_len);
	perfmap_add(p->map, addr, c->size, c->name, c->name_len, p->places, p->n_places, c->base);
}

static void load(struct parse *p, const uint8_t *data, size_t len)
{
	struct load l;
	struct code c;
	const char *name = (const char *)data + sizeof(l), *end;

	if (len <= sizeof(l))
		return;
	memcpy(&l, data, sizeof(l));
	end = memchr(name, 0, len - sizeof(l));
	if (l.pid != p->pid || !end || end == name)
		return;
	c = (struct code){.number = l.number,
			  .size = l.size,
			  .base = l.addr,
			  .name = name,
			  .name_len = (size_t)(end - name)};
	if (p->debug && p->debug_len >= sizeof(struct debug)) {
		struct debug d;

		memcpy(&d, p->debug, sizeof(d));
		if (d.addr == l.addr) {
			c.debug = p->debug;
			c.debug_len = p->debug_len;
		}
	}
	code_add(p, &c, l.addr);
	if (p->n_codes >= CODES_MAX || (p->n_codes && p->codes[p->n_codes - 1].number >= c.number))
		return;
	mem_grow(p->codes, p->n_codes, p->cap_codes);
	p->codes[p->n_codes++] = c;
}

static int by_number(const void *key, const void *element)
{
	uint64_t a = *(const uint64_t *)key, b = ((const struct code *)element)->number;

	return a < b ? -1 : a > b;
}

static void move(struct parse *p, const uint8_t *data, size_t len)
{
	const struct code *c;
	struct move m;

	if (len < sizeof(m))
		return;
	memcpy(&m, data, sizeof(m));
	if (m.pid != p->pid)
		return;
	c = p->n_codes ? bsearch(&m.number, p->codes, p->n_codes, sizeof(*p->codes), by_number) :
			 NULL;
	perfmap_add(p->map, m.from, m.size, NULL, 0, NULL, 0, 0);
	if (c && c->size == m.size)
		code_add(p, c, m.to);
	else
		perfmap_add(p->map, m.to, m.size, NULL, 0, NULL, 0, 0);
}

static void record_read(struct parse *p, uint32_t kind, const uint8_t *data, size_t len)
{
	if (kind == CODE_LOAD)
		load(p, data, len);
	if (kind == CODE_MOVE)
		move(p, data, len);
	if (kind == CODE_LOAD || kind == DEBUG_INFO) {
		p->debug = kind == DEBUG_INFO ? data : NULL;
		p->debug_len = kind == DEBUG_INFO ? len : 0;
	}
}

int jitdump_parse(const void *data, size_t len, uint32_t pid, struct perfmap **out)
{
	struct parse p = {.pid = pid};
	struct head h;

	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, data, sizeof(h));
	if (h.magic != MAGIC || h.version != 1 || h.size < sizeof(h) || h.size > len ||
	    h.pid != pid)
		return -EBADMSG;
	p.map = perfmap_begin();
	for (size_t at = h.size; len - at >= sizeof(struct record) && !perfmap_full(p.map);) {
		const uint8_t *from = (const uint8_t *)data + at;
		struct record r;

		memcpy(&r, from, sizeof(r));
		if (r.size < sizeof(r) || r.size > len - at)
			break;
		record_read(&p, r.kind, from + sizeof(r), r.size - sizeof(r));
		at += r.size;
	}
	free(p.places);
	free(p.codes);
	if (perfmap_full(p.map)) {
		perfmap_free(p.map);
		return -E2BIG;
	}
	perfmap_end(p.map);
	*out = p.map;
	return 0;
}

/* ---- the file ---- */

static int read_at(int fd, void *to, size_t size, uint64_t at)
{
	ssize_t n;

	do
		n = pread(fd, to, size, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : (size_t)n < size ? -ENODATA : 0;
}

struct kept {
	char *buf;
	size_t len, cap;
};

/* Room for `more` bytes at its end; NULL: that would be too many. */
static char *kept_room(struct kept *k, size_t more)
{
	size_t cap = k->cap ? k->cap : 64u << 10;

	if (k->len + more > JITDUMP_BYTES)
		return NULL;
	while (k->len + more > cap)
		cap *= 2;
	if (cap != k->cap) {
		k->buf = mem_realloc(k->buf, cap);
		k->cap = cap;
	}
	return k->buf + k->len;
}

/* How much of a record is kept, its head included; 0: nothing of it. */
static size_t wanted(const struct record *r, size_t lines_left)
{
	size_t names = sizeof(*r) + sizeof(struct load) + PERFMAP_NAME_MAX + 1;

	switch (r->kind) {
	case CODE_LOAD:
		return r->size < names ? r->size : names;
	case CODE_MOVE:
		return r->size < MOVE_BYTES ? r->size : MOVE_BYTES;
	case DEBUG_INFO:
		return r->size <= lines_left ? r->size : 0;
	default:
		return 0;
	}
}

/* A name that is longer than what is kept is cut there, as perfmap.h does. */
static size_t ends_at(char *record, size_t size)
{
	size_t name = sizeof(struct record) + sizeof(struct load);
	char *end = size > name ? memchr(record + name, 0, size - name) : NULL;

	if (!end && size == name + PERFMAP_NAME_MAX + 1)
		end = record + size - 1;
	if (!end)
		return size;
	*end = '\0';
	return (size_t)(end + 1 - record);
}

static int record_keep(int fd, uint64_t at, const struct record *r, size_t *lines_left,
		       struct kept *kept)
{
	size_t take = wanted(r, *lines_left), begin = kept->len;
	char *room = take ? kept_room(kept, take) : NULL;
	uint32_t size;
	int rc;

	if (!room)
		return take ? -E2BIG : 0;
	rc = read_at(fd, room, take, at);
	if (rc)
		return rc;
	if (r->kind == DEBUG_INFO)
		*lines_left -= take;
	kept->len += r->kind == CODE_LOAD ? ends_at(kept->buf + begin, take) : take;
	size = (uint32_t)(kept->len - begin);
	memcpy(kept->buf + begin + offsetof(struct record, size), &size, sizeof(size));
	return 0;
}

static int records_keep(int fd, uint64_t at, uint64_t size, struct kept *kept)
{
	size_t lines_left = JITDUMP_LINES;
	struct record r;
	int rc = 0;

	for (size_t n = 0; !rc && at + sizeof(r) <= size; n++, at += r.size) {
		rc = n < JITDUMP_RECORDS ? read_at(fd, &r, sizeof(r), at) : -E2BIG;
		if (!rc && (r.size < sizeof(r) || r.size > size - at))
			break;
		if (!rc)
			rc = record_keep(fd, at, &r, &lines_left, kept);
	}
	return rc == -ENODATA ? 0 : rc; /* it has shrunk */
}

int jitdump_slim(int fd, uint64_t size, char **out, size_t *len)
{
	struct kept kept = {0};
	struct head h = {0};
	uint64_t at;
	int rc = read_at(fd, &h, sizeof(h), 0);

	at = h.size;
	if (rc == -ENODATA || (!rc && (at < sizeof(h) || at > size)))
		return -EBADMSG;
	if (rc)
		return rc;
	h.size = sizeof(h);
	memcpy(kept_room(&kept, sizeof(h)), &h, sizeof(h));
	kept.len = sizeof(h);
	rc = records_keep(fd, at, size, &kept);
	if (rc) {
		free(kept.buf);
		return rc;
	}
	*out = kept.buf;
	*len = kept.len;
	return 0;
}

/* jit-PID.dump, or jit-TID-PID.dump. */
static bool is_name(const char *name, uint32_t pid)
{
	char end[24];
	size_t digits;

	snprintf(end, sizeof(end), "%u.dump", pid);
	if (strncmp(name, "jit-", 4))
		return false;
	name += 4;
	if (!strcmp(name, end))
		return true;
	digits = strspn(name, "0123456789");
	return digits && name[digits] == '-' && !strcmp(name + digits + 1, end);
}

const char *jitdump_path(const char *const *paths, size_t n, uint32_t pid)
{
	for (size_t i = 0; i < n; i++) {
		const char *slash = paths[i] ? strrchr(paths[i], '/') : NULL;

		if (slash && is_name(slash + 1, pid))
			return paths[i];
	}
	return NULL;
}
