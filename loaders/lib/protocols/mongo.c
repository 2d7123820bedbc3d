/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mongo: MongoDB's wire protocol (mongodb.com/docs/manual/reference/mongodb-wire-protocol; BSON:
 * bsonspec.org).
 *
 *   header     LEN:32 REQUEST:32 RESPONSE_TO:32 OPCODE:32, little endian
 *   OP_MSG     2013: FLAGS:32 (0 checksum, 1 more to come, 16 exhaust allowed) SECTIONS; a section:
 *              0 DOCUMENT | 1 SIZE:32 NAME\0 DOCUMENT*
 *   OP_COMPRESSED 2012: OPCODE:32 SIZE:32 COMPRESSOR:8 (0 none, 1 snappy, 2 zlib, 3 zstd) DATA
 *   OP_QUERY   2004 (hello of old drivers): FLAGS:32 COLLECTION\0 SKIP:32 RETURN:32 DOCUMENT;
 *              OP_REPLY 1: FLAGS:32 CURSOR:64 FROM:32 N:32 DOCUMENT*
 *   document   LEN:32 (TYPE:8 NAME\0 VALUE)* 0
 *
 * Operation: the command, the first field's name, and its collection, that field's value where it
 * is a string; the database is `$db`. An answer is matched by RESPONSE_TO; it is an error where
 * `ok` is not 1 or `code` is there, or one of several writes failed (writeErrors,
 * writeConcernError, nErrors, err). A message with "more to come" from the client has no answer;
 * with it from the server the next one answers the one before: counted once. What is compressed
 * with snappy or zstd is not unpacked: its operation is <compressed>.
 */
#include <stdio.h>
#include <zlib.h>

#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/table.h"

#define HEADER        16
#define LENGTH_MAX    (48u * 1024 * 1024 + 16384)
#define OP_REPLY      1u
#define OP_QUERY      2004u
#define OP_COMPRESSED 2012u
#define OP_MSG        2013u
#define FLAG_MORE     2u
#define UNPACKED      2048
#define LOOK          3000
#define DEPTH         4

struct document {
	char command[40], collection[80], database[64];
	double ok;
	bool has_ok, failed;  /* failed: a part of it failed */
	int32_t code, within; /* within: the code of that part */
};

static bool opcode_known(uint32_t op)
{
	return op == OP_MSG || op == OP_COMPRESSED || op == OP_QUERY || op == OP_REPLY;
}

/* A value's size by its type; SIZE_MAX: not here or none that is known. */
static size_t value_size(uint8_t type, const uint8_t *p, size_t n)
{
	size_t fixed = 0, len;

	switch (type) {
	case 0x01:
	case 0x09:
	case 0x11:
	case 0x12:
		fixed = 8;
		break;
	case 0x06:
	case 0x0a:
	case 0xff:
	case 0x7f:
		return 0;
	case 0x07:
		fixed = 12;
		break;
	case 0x08:
		fixed = 1;
		break;
	case 0x10:
		fixed = 4;
		break;
	case 0x13:
		fixed = 16;
		break;
	case 0x02:
	case 0x0d:
	case 0x0e:
	case 0x05:
		if (n < 4)
			return SIZE_MAX;
		len = le32(p);
		return len > LENGTH_MAX ? SIZE_MAX : 4 + len + (type == 0x05 ? 1 : 0);
	case 0x03:
	case 0x04:
		if (n < 4)
			return SIZE_MAX;
		len = le32(p);
		return len < 5 || len > LENGTH_MAX ? SIZE_MAX : len;
	default:
		return SIZE_MAX;
	}
	return fixed <= n ? fixed : SIZE_MAX;
}

static double real(const uint8_t *p, uint8_t type)
{
	double d = 0;

	if (type == 0x01)
		memcpy(&d, p, 8);
	else if (type == 0x10)
		d = (int32_t)le32(p);
	else if (type == 0x12)
		d = (double)(int64_t)le64(p);
	else if (type == 0x08)
		d = p[0];
	return d;
}

static void text_value(const uint8_t *p, size_t n, char *out, size_t cap)
{
	size_t len = n >= 5 ? le32(p) : 0, i = 0;

	len = len && len - 1 < n - 4 ? len - 1 : 0; /* a truncated name is not used */
	for (; i < len && i < cap - 1 && p[4 + i] > ' ' && p[4 + i] != 0x7f; i++)
		out[i] = (char)p[4 + i];
	out[i] = '\0';
}

/* The first nonzero `code` in a document, in the documents of an array, or in a cursor's first
 * batch, as far as the bytes are here. */
static int32_t code_within(const uint8_t *p, size_t n, int depth)
{
	size_t at = 4;

	if (n < 5 || le32(p) < 5 || depth > DEPTH)
		return 0;
	if (le32(p) < n)
		n = le32(p);
	while (at < n && p[at]) {
		const uint8_t type = p[at], *end = memchr(p + at + 1, 0, n - at - 1);
		const char *name = (const char *)p + at + 1;
		int32_t code = 0;
		size_t size;

		if (!end)
			return 0;
		at = (size_t)(end - p) + 1;
		size = value_size(type, p + at, n - at);
		if (type == 0x10 && size == 4 && !strcmp(name, "code"))
			code = (int32_t)le32(p + at);
		else if (type == 0x04 && !strcmp(name, "firstBatch"))
			code = code_within(p + at, n - at, depth + 1);
		else if (type == 0x03 && byte_is_digit((uint8_t)*name)) /* an array's element */
			code = code_within(p + at, n - at, depth + 1);
		if (code || size == SIZE_MAX || size > n - at)
			return code;
		at += size;
	}
	return 0;
}

/* What is of use in the first level of a document, as far as it is here. False: it is no document.
 */
static bool document_read(const uint8_t *p, size_t n, struct document *d)
{
	size_t at = 4;
	bool first = true;

	if (n < 5 || le32(p) < 5 || le32(p) > LENGTH_MAX)
		return false;
	if (le32(p) < n)
		n = le32(p);
	while (at < n && p[at]) {
		uint8_t type = p[at];
		const char *name = (const char *)p + at + 1;
		const uint8_t *end = memchr(name, 0, n - at - 1);
		size_t size;

		if (!end)
			return !first;
		at = (size_t)(end - p) + 1;
		size = value_size(type, p + at, n - at);
		if (first)
			snprintf(d->command, sizeof(d->command), "%s", name);
		if (first && type == 0x02)
			text_value(p + at, n - at, d->collection, sizeof(d->collection));
		if (!strcmp(name, "$db") && type == 0x02)
			text_value(p + at, n - at, d->database, sizeof(d->database));
		if (!strcmp(name, "collection") && type == 0x02 && !strcmp(d->command, "getMore"))
			text_value(p + at, n - at, d->collection, sizeof(d->collection));
		if (size == SIZE_MAX)
			return !first;
		if (!strcmp(name, "ok") && size) {
			d->ok = real(p + at, type);
			d->has_ok = true;
		}
		if (!strcmp(name, "code") && type == 0x10)
			d->code = (int32_t)le32(p + at);
		if (!strcmp(name, "err") &&
		    type == 0x02) /* getLastError's `ok` says only that it ran itself */
			d->failed = true;
		if (!strcmp(name, "nErrors") && size) /* bulkWrite */
			d->failed |= real(p + at, type) > 0;
		if ((!strcmp(name, "writeErrors") && type == 0x04) ||
		    (!strcmp(name, "writeConcernError") && type == 0x03) ||
		    (!strcmp(name, "cursor") && type == 0x03)) {
			int32_t code = code_within(p + at, n - at, 0);

			d->within = d->within ? d->within : code;
			d->failed |= *name == 'w';
		}
		first = false;
		at += size;
	}
	return true;
}

/* Sections of OP_MSG: the one of kind 0, which may come after others. */
static bool message_read(const uint8_t *p, size_t n, struct document *d)
{
	size_t at = 4;

	while (at + 5 < n && p[at] == 1) {
		uint32_t size = le32(p + at + 1);

		if (size < 5 || size > LENGTH_MAX || size > n - at - 1)
			return false;
		at += 1 + size;
	}
	return at < n && p[at] == 0 && document_read(p + at + 1, n - at - 1, d);
}

static bool content_read(uint32_t op, const uint8_t *p, size_t n, struct document *d)
{
	const uint8_t *end;

	if (op == OP_MSG)
		return n >= 4 && message_read(p, n, d);
	if (op == OP_REPLY)
		return n > 20 && document_read(p + 20, n - 20, d);
	end = n > 4 ? memchr(p + 4, 0, n - 4) : NULL;
	return op == OP_QUERY && end && (size_t)(p + n - end) > 9 &&
	       document_read(end + 9, (size_t)(p + n - end) - 9, d);
}

static bool inflate_some(const uint8_t *p, size_t n, uint8_t *out, size_t *len)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)p,
		      .avail_in = (uInt)n,
		      .next_out = out,
		      .avail_out = (uInt)*len};
	int rc;

	if (inflateInit(&z) != Z_OK)
		return false;
	rc = inflate(&z, Z_SYNC_FLUSH);
	*len -= z.avail_out;
	inflateEnd(&z);
	return rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR;
}

/* *known: the content could be read; *flags of OP_MSG. */
static void body_read(uint32_t op, const uint8_t *p, size_t n, struct document *d, uint32_t *flags,
		      bool *known)
{
	uint8_t plain[UNPACKED];
	size_t len = sizeof(plain);

	*known = false;
	*flags = 0;
	if (op == OP_COMPRESSED) {
		if (n < 9)
			return;
		op = le32(p);
		if (p[8] == 2) {
			if (!inflate_some(p + 9, n - 9, plain, &len))
				return;
			p = plain;
			n = len;
		} else if (p[8] == 0) {
			p += 9;
			n -= 9;
		} else {
			return;
		}
	}
	if (op == OP_MSG && n >= 4)
		*flags = le32(p);
	*known = content_read(op, p, n, d);
}

static uint32_t operation(struct proto_conn *c, const struct document *d, bool known)
{
	if (!known)
		return proto_name(c, "<compressed>", 12);
	for (const char *s = d->command; *s; s++)
		if (!byte_is_letter((uint8_t)*s) && !byte_is_digit((uint8_t)*s) && *s != '_' &&
		    *s != '.')
			return 0;
	if (proto_payload(c) == PROTO_NONE || !*d->collection)
		return proto_name(c, d->command, sizeof(d->command));
	return proto_namef(c, "%s %s%s%s", d->command, d->database, *d->database ? "." : "",
			   d->collection);
}

struct mongo {
	bool more; /* the answer before says that others follow it, which are for none but it */
	uint32_t more_id;
};

static void request(struct proto_conn *c, const uint8_t *p, const struct document *d,
		    uint32_t flags, bool known)
{
	if (flags & FLAG_MORE)
		proto_one_way(c, operation(c, d, known));
	else
		proto_ask(c, operation(c, d, known), le32(p + 4));
}

static void response(struct proto_conn *c, const uint8_t *p, const struct document *d,
		     uint32_t flags, bool known)
{
	struct mongo *s = proto_state(c);
	struct proto_pending *q = proto_find(c, le32(p + 8));
	bool follows = s->more && s->more_id == le32(p + 8);
	char status[16] = "";
	bool bad = known && ((d->has_ok && d->ok != 1) || (d->code && !d->has_ok) || d->failed);

	s->more = flags & FLAG_MORE;
	s->more_id = le32(p + 4);
	if (!q && !follows)
		proto_unowned(c);
	if (!q)
		return;
	if (bad)
		snprintf(status, sizeof(status), "%d", d->code ? d->code : d->within);
	proto_answer(c, q, bad ? PROTO_ERROR : PROTO_OK, status);
}

static bool is_header(const uint8_t *p, size_t n)
{
	return n >= HEADER && le32(p) >= HEADER + 5 && le32(p) <= LENGTH_MAX &&
	       opcode_known(le32(p + 12));
}

static int64_t mongo_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			  bool last)
{
	struct document d = {0};
	uint32_t len, flags;
	size_t see;
	bool known;

	if (n < HEADER)
		return PROTO_MORE;
	if (!is_header(p, n))
		return PROTO_LOST;
	len = le32(p);
	see = len < LOOK ? len : LOOK;
	if (n < see && !last)
		return PROTO_MORE;
	see = see < n ? see : n;
	body_read(le32(p + 12), p + HEADER, see - HEADER, &d, &flags, &known);
	if (from == PROTO_CLIENT && !le32(p + 8))
		request(c, p, &d, flags, known || le32(p + 12) != OP_COMPRESSED);
	else if (from == PROTO_SERVER)
		response(c, p, &d, flags, known);
	return len;
}

static enum proto_guess mongo_recognise(const struct proto_first *f)
{
	if (f->n_server && f->n_server >= HEADER &&
	    (!is_header(f->server, f->n_server) || !le32(f->server + 8)))
		return PROTO_NO;
	if (!f->n_client)
		return f->begun || f->n_server ? PROTO_NO : PROTO_MAYBE;
	if (f->n_client < HEADER)
		return f->n_client < 4 ||
				       (le32(f->client) <= LENGTH_MAX && le32(f->client) > HEADER) ?
			       PROTO_MAYBE :
			       PROTO_NO;
	if (!is_header(f->client, f->n_client) || le32(f->client + 8) ||
	    le32(f->client + 12) == OP_REPLY)
		return PROTO_NO;
	return PROTO_YES;
}

static bool mongo_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	(void)c;
	return is_header(p, n) && !le32(p + 8) == (from == PROTO_CLIENT);
}

const struct protocol protocol_mongo = {
	.name = "mongodb",
	.state_size = sizeof(struct mongo),
	.recognise = mongo_recognise,
	.step = mongo_step,
	.starts = mongo_starts,
};
