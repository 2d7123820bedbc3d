/* SPDX-License-Identifier: Apache-2.0 */
/* All numbers in the file are little-endian; an object begins with its
 * type, its flags and, 8 bytes on, its size. */
#include "loaders/lib/host/journal/journalfile.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "loaders/lib/host/journal/journalhash.h"
#include "schema/base/clock.h"

#define HEADER_BYTES 120 /* as far as it is read at the begin */
#define ENTRIES_AT   176 /* where it says which array of entries is the first */

enum { XZ = 1, LZ4 = 2, KEYED = 4, ZSTD = 8, COMPACT = 16 }; /* header: what a reader must know */
enum { OBJECT_DATA = 1, OBJECT_ENTRY = 3, OBJECT_ARRAY = 6 };
enum { OBJECT_XZ = 1, OBJECT_LZ4 = 2, OBJECT_ZSTD = 4 }; /* flags: how its data is compressed */
enum {
	OBJECT_BYTES = 16,
	DATA_BYTES = 64,
	ENTRY_BYTES = 64,
	ARRAY_BYTES = 24
};                      /* up to what follows */
#define ITEMS_MAX  1024 /* of an entry: more is no entry */
#define ARRAYS_MAX 4096
#define FIELD_MAX  128 /* that is looked for */
/* bytes of compressed data that are read: more than a message's beginning takes */
#define PACKED_MAX (64u << 10)

static uint32_t u32(const uint8_t *p)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v |= (uint32_t)p[i] << (8 * i);
	return v;
}

static uint64_t u64(const uint8_t *p)
{
	return u32(p) | (uint64_t)u32(p + 4) << 32;
}

static bool bytes(struct journalfile *j, void *out, size_t len, uint64_t at)
{
	return at && j->reads++ < JOURNALFILE_READS && j->read(j->ctx, out, len, at);
}

/* The first `len` bytes of an object of this type, which says that it is at least so long. */
static bool object(struct journalfile *j, uint64_t at, int type, uint8_t *out, size_t len)
{
	return !(at & 7) && bytes(j, out, len, at) && out[0] == type && u64(out + 8) >= len &&
	       u64(out + 8) < 1ull << 40;
}

bool journalfile_begin(struct journalfile *j)
{
	uint8_t h[HEADER_BYTES];

	j->reads = 0;
	if (!j->read(j->ctx, h, sizeof(h), 0) || memcmp(h, "LPKSHHRH", 8) != 0)
		return false;
	j->flags = u32(h + 12);
	memcpy(j->id, h + 24, sizeof(j->id));
	j->table = u64(h + 104);
	j->buckets = u64(h + 112) / 16;
	return !(j->flags & ~(uint32_t)(XZ | LZ4 | KEYED | ZSTD | COMPACT)) && j->table &&
	       j->buckets && j->buckets < 1ull << 32;
}

static size_t data_head(const struct journalfile *j)
{
	return j->flags & COMPACT ? DATA_BYTES + 8 : DATA_BYTES;
}

static size_t item_bytes(const struct journalfile *j)
{
	return j->flags & COMPACT ? 4 : 8;
}

/* ---- the field ---- */

/* The data object of the field, its head in `out`. */
static bool field_find(struct journalfile *j, const char *field, uint8_t out[DATA_BYTES])
{
	const size_t len = strlen(field), head = data_head(j);
	uint64_t hash = j->flags & KEYED ? journalhash_sip(field, len, j->id) :
					   journalhash_jenkins(field, len);
	uint8_t bucket[8], text[FIELD_MAX];
	uint64_t at;

	if (len > FIELD_MAX || !bytes(j, bucket, sizeof(bucket), j->table + hash % j->buckets * 16))
		return false;
	for (at = u64(bucket); at && object(j, at, OBJECT_DATA, out, DATA_BYTES);
	     at = u64(out + 24))
		if (u64(out + 16) == hash && u64(out + 8) == head + len && !out[1] &&
		    bytes(j, text, len, at + head) && !memcmp(text, field, len))
			return true;
	return false;
}

struct array {
	uint64_t at, n; /* of its items, those that are used */
};

static uint64_t item_at(struct journalfile *j, const struct array *a, uint64_t i)
{
	uint8_t b[8] = {0};

	return bytes(j, b, item_bytes(j), a->at + ARRAY_BYTES + i * item_bytes(j)) ? u64(b) : 0;
}

static int64_t entry_time(struct journalfile *j, uint64_t at)
{
	uint8_t e[32];
	uint64_t us = object(j, at, OBJECT_ENTRY, e, sizeof(e)) ? u64(e + 24) : 0;

	return us && us < (uint64_t)INT64_MAX / 1000 ? (int64_t)us * 1000 : -1;
}

/* The field's arrays of entries. Each is longer than the one before. */
static size_t arrays_of(struct journalfile *j, const uint8_t data[DATA_BYTES], struct array *out)
{
	uint64_t at = u64(data + 48), left = u64(data + 56);
	uint8_t head[ARRAY_BYTES];
	size_t n = 0;

	left -= left ? 1 : 0; /* the first one is in the data object */
	while (left && n < ARRAYS_MAX && object(j, at, OBJECT_ARRAY, head, sizeof(head))) {
		uint64_t room = (u64(head + 8) - ARRAY_BYTES) / item_bytes(j);

		out[n++] = (struct array){at, room < left ? room : left};
		left -= out[n - 1].n;
		at = u64(head + 16);
	}
	return n;
}

struct found {
	struct journalfile *j;
	int64_t until_ns;
	uint64_t *at;
	size_t n, most;
};

/* False: there is no room for one more. */
static bool found_add(struct found *f, uint64_t at)
{
	int64_t utc_ns = at ? entry_time(f->j, at) : -1;

	if (utc_ns >= 0 && utc_ns < f->until_ns && f->n < f->most)
		f->at[f->n++] = at;
	return f->n < f->most && f->j->reads < JOURNALFILE_READS;
}

size_t journalfile_find(struct journalfile *j, const char *field, int64_t until_ns, uint64_t *at,
			size_t most)
{
	struct found f = {.j = j, .until_ns = until_ns, .at = at, .most = most};
	uint8_t data[DATA_BYTES];
	struct array *arrays;
	bool more = most > 0;
	size_t n;

	if (!field_find(j, field, data))
		return 0;
	arrays = calloc(ARRAYS_MAX, sizeof(*arrays));
	if (!arrays)
		return 0;
	for (n = arrays_of(j, data, arrays); more && n; n--)
		for (uint64_t i = arrays[n - 1].n; more && i; i--)
			more = found_add(&f, item_at(j, &arrays[n - 1], i - 1));
	free(arrays);
	if (more)
		found_add(&f, u64(data + 40));
	for (size_t i = 0; i < f.n / 2; i++) {
		uint64_t last = at[f.n - 1 - i];

		at[f.n - 1 - i] = at[i];
		at[i] = last;
	}
	return f.n;
}

/* ---- an entry ---- */

/* The beginning of what was compressed; how much of it. */
static size_t unpacked(const uint8_t *packed, size_t len, char *out, size_t size)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	ZSTD_inBuffer in = {packed, len, 0};
	ZSTD_outBuffer to = {out, size, 0};
	size_t left = 1;

	while (z && left && !ZSTD_isError(left) && to.pos < to.size) {
		size_t before = to.pos, taken = in.pos;

		left = ZSTD_decompressStream(z, &to, &in);
		if (to.pos == before && in.pos == taken)
			break;
	}
	ZSTD_freeDStream(z);
	return to.pos;
}

/* The beginning of a field, at most `size` of it; 0: it cannot be read. */
static size_t payload(struct journalfile *j, uint64_t at, char *out, size_t size, bool *unread)
{
	const size_t head = data_head(j);
	uint8_t data[DATA_BYTES + 8], *packed;
	size_t len, n = 0;

	if (!object(j, at, OBJECT_DATA, data, head))
		return 0;
	len = (size_t)(u64(data + 8) - head);
	if (!(data[1] & (OBJECT_XZ | OBJECT_LZ4 | OBJECT_ZSTD))) {
		len = len < size ? len : size;
		return bytes(j, out, len, at + head) ? len : 0;
	}
	if (!(data[1] & OBJECT_ZSTD)) {
		*unread = true;
		return 0;
	}
	len = len < PACKED_MAX ? len : PACKED_MAX;
	packed = malloc(len);
	if (packed && bytes(j, packed, len, at + head))
		n = unpacked(packed, len, out, size);
	free(packed);
	return n;
}

static bool begins(const char *s, size_t len, const char *name)
{
	return len >= strlen(name) && !memcmp(s, name, strlen(name));
}

static uint32_t number_of(const char *s, size_t len)
{
	char digits[12] = "";

	memcpy(digits, s, len < sizeof(digits) - 1 ? len : sizeof(digits) - 1);
	return (uint32_t)strtoul(digits, NULL, 10);
}

static void message_take(struct journalfile_entry *e, const char *s, size_t len)
{
	e->len = len - 8 < sizeof(e->message) ? len - 8 : sizeof(e->message);
	memcpy(e->message, s + 8, e->len);
}

static void field_take(struct journalfile_entry *e, const char *s, size_t len)
{
	if (begins(s, len, "MESSAGE=") && !e->len) {
		message_take(e, s, len);
	} else if (begins(s, len, "PRIORITY=") && len == 10) {
		e->priority = s[9] - '0';
	} else if (begins(s, len, "_UID=") && len > 5 && len < 17) {
		e->uid = number_of(s + 5, len - 5);
	} else if (begins(s, len, "CONTAINER_PARTIAL_MESSAGE=true") && len == 30) {
		e->partial = true;
	}
}

/* The head of the entry at this place, and how many items it has. */
static bool entry_begin(struct journalfile *j, uint64_t at, struct journalfile_entry *out,
			uint64_t *n)
{
	uint8_t head[ENTRY_BYTES];

	*out = (struct journalfile_entry){.uid = UINT32_MAX, .priority = -1};
	if (!object(j, at, OBJECT_ENTRY, head, sizeof(head)))
		return false;
	out->utc_ns = (int64_t)(u64(head + 24) % (uint64_t)(INT64_MAX / 1000)) * 1000;
	*n = (u64(head + 8) - ENTRY_BYTES) / (j->flags & COMPACT ? 4 : 16);
	*n = *n < ITEMS_MAX ? *n : ITEMS_MAX;
	return true;
}

/* 0: it cannot be read. */
static uint64_t entry_item(struct journalfile *j, uint64_t at, uint64_t i)
{
	uint8_t item[8] = {0};

	return bytes(j, item, item_bytes(j), at + ENTRY_BYTES + i * (j->flags & COMPACT ? 4 : 16)) ?
		       u64(item) :
		       0;
}

bool journalfile_entry(struct journalfile *j, uint64_t at, struct journalfile_entry *out)
{
	char field[JOURNALFILE_MESSAGE + 8];
	uint64_t n, item;

	if (!entry_begin(j, at, out, &n))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		item = entry_item(j, at, i);
		if (!item)
			return false;
		field_take(out, field, payload(j, item, field, sizeof(field), &out->unread));
	}
	out->unread = out->unread && !out->len;
	return j->reads < JOURNALFILE_READS;
}

/* ---- all entries ---- */

bool journalfile_next(struct journalfile *j, struct journalfile_place *p, uint64_t *at)
{
	uint8_t head[ARRAY_BYTES], first[8];
	uint64_t room, next;

	j->reads = 0;
	if (!p->array) {
		if (!j->read(j->ctx, first, sizeof(first), ENTRIES_AT) || !u64(first))
			return false;
		*p = (struct journalfile_place){.array = u64(first)};
	}
	while (object(j, p->array, OBJECT_ARRAY, head, sizeof(head))) {
		room = (u64(head + 8) - ARRAY_BYTES) / item_bytes(j);
		next = u64(head + 16);
		if (p->index < room) {
			*at = item_at(j, &(struct array){.at = p->array}, p->index);
			p->index += *at != 0;
			return *at != 0;
		}
		if (!next)
			return false;
		*p = (struct journalfile_place){.array = next};
	}
	return false;
}

/* Its used items come first. */
static uint64_t array_used(struct journalfile *j, const struct array *a)
{
	uint64_t from = 0, to = a->n;

	while (from < to) {
		uint64_t middle = from + (to - from) / 2;

		if (item_at(j, a, middle))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

void journalfile_end(struct journalfile *j, struct journalfile_place *p)
{
	uint8_t head[ARRAY_BYTES], first[8];
	struct array a = {0};

	*p = (struct journalfile_place){0};
	j->reads = 0;
	if (!j->read(j->ctx, first, sizeof(first), ENTRIES_AT))
		return;
	a.at = u64(first);
	while (a.at && object(j, a.at, OBJECT_ARRAY, head, sizeof(head))) {
		a.n = (u64(head + 8) - ARRAY_BYTES) / item_bytes(j);
		*p = (struct journalfile_place){.array = a.at, .index = array_used(j, &a)};
		a.at = u64(head + 16);
	}
}

/* ---- who wrote an entry ---- */

/* Most fields of an entry are the same object as in the one before: an object is not read twice. */
#define SEEN 1024
struct journalfile_seen {
	struct {
		uint64_t at;
		uint16_t len; /* of text */
		char text[112];
	} field[SEEN];
};

static void text_take(char *out, size_t size, const char *s, size_t len)
{
	if (*out || len >= size)
		return;
	memcpy(out, s, len);
	out[len] = 0;
}

/* True: nothing of the message itself. */
static bool who_take(struct journalfile_entry *e, const char *s, size_t len)
{
	if (begins(s, len, "_SYSTEMD_UNIT="))
		text_take(e->unit, sizeof(e->unit), s + 14, len - 14);
	else if (begins(s, len, "_SYSTEMD_USER_UNIT=")) /* its _SYSTEMD_UNIT is user@N.service */
		e->unit[0] = 0, text_take(e->unit, sizeof(e->unit), s + 19, len - 19);
	else if (begins(s, len, "SYSLOG_IDENTIFIER="))
		text_take(e->identifier, sizeof(e->identifier), s + 18, len - 18);
	else if (begins(s, len, "CONTAINER_ID_FULL="))
		text_take(e->container, sizeof(e->container), s + 18, len - 18);
	else if (begins(s, len, "_PID=") && len > 5 && len < 16)
		e->pid = number_of(s + 5, len - 5);
	else if (begins(s, len, "_TRANSPORT=kernel"))
		e->kernel = true;
	else if (begins(s, len, "MESSAGE=") || begins(s, len, "PRIORITY=") ||
		 begins(s, len, "_UID=") || begins(s, len, "CONTAINER_PARTIAL_MESSAGE="))
		return false;
	return true;
}

static void item_take(struct journalfile *j, struct journalfile_entry *e, uint64_t item)
{
	size_t slot = (size_t)(item * 0x9e3779b97f4a7c15ull >> 54) % SEEN, len;
	char field[JOURNALFILE_MESSAGE + 8];

	if (j->seen->field[slot].at == item) {
		len = j->seen->field[slot].len;
		if (!who_take(e, j->seen->field[slot].text, len))
			field_take(e, j->seen->field[slot].text, len);
		return;
	}
	len = payload(j, item, field, sizeof(field), &e->unread);
	if (!who_take(e, field, len))
		field_take(e, field, len);
	if (!len || len > sizeof(j->seen->field[slot].text) || begins(field, len, "MESSAGE="))
		return;
	j->seen->field[slot].at = item;
	j->seen->field[slot].len = (uint16_t)len;
	memcpy(j->seen->field[slot].text, field, len);
}

bool journalfile_entry_from(struct journalfile *j, uint64_t at, struct journalfile_entry *out)
{
	uint64_t n, item;

	j->reads = 0;
	if (!j->seen)
		j->seen = calloc(1, sizeof(*j->seen));
	if (!j->seen || !entry_begin(j, at, out, &n))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		item = entry_item(j, at, i);
		if (!item)
			return false;
		item_take(j, out, item);
	}
	out->unread = out->unread && !out->len;
	return j->reads < JOURNALFILE_READS;
}

void journalfile_release(struct journalfile *j)
{
	free(j->seen);
	j->seen = NULL;
}
