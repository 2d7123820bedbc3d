/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7_bodies: where a message says in front how long its body is, the body is not copied: HTTP/1
 * (Content-Length, chunks), Redis (strings), memcached (values), PostgreSQL and MySQL (rows, copied
 * data, statements), AMQP (content), messages of MongoDB, Cassandra and Kafka. The parser is behind
 * by some 20 ms and more: in that time a download fills the ring with bytes of no use.
 *
 * 1. A message begins where the direction turns: with the first call after the other side has
 *    spoken. The first record of that call is copied as any other, and looked at where it lies
 *    (w->bytes). What it says is compared with nothing: if it is no message of these protocols but
 *    looks like one, the parser finds bytes missing, and its requests are blind.
 * 2. What follows is frames_run's (l7/frames.bpf.h), by another kind. Calls whose bytes all
 *    lie within the body have no record; the call with its last byte has one.
 * 3. Where the direction turns in the midst of a body (100 Continue, or an answer to HEAD, whose
 *    body does not come), the first record is looked at again; if it begins no message, the body
 *    goes on.
 * 4. A connection that begins so is copied whole before the parser has said what it speaks
 *    (moved): rows and other small parts are not left out but PostgreSQL's, and the parser may be
 *    far behind.
 * 5. MongoDB's and Cassandra's parser looks at the first BODY_LOOK bytes of a message. Kafka's
 *    reads on to the last field; only where that is the records (behind them nothing, or three
 *    empty lists of tags) are these left out: a length in the first record that says so to the
 *    byte.
 * 6. The head of an answer of gRPC-Web marks it as odd: its status lies at its body's end.
 */
#ifndef SONDE_PROBES_L7_BODIES_BPF_H
#define SONDE_PROBES_L7_BODIES_BPF_H

#include "probes/l7/frames.bpf.h"
#include "probes/l7/walk.bpf.h"

#define BODY_LEAST  1024
#define HEAD_STEPS  96
#define HEAD_PART   64 /* bytes a step */
#define ITEM_STEPS  16
#define ROW_STEPS   128
#define ITEM_HEADS  32
#define VALUE_STEPS 16 /* a key has 250 bytes */
#define CHUNK_STEPS 256
#define BODY_LOOK   4096
#define LAST_STEPS                                                                    \
	16 /* parts of the begin of Kafka's messages, to find where the last field is \
	    */
#define LAST_PART 32
#define LAST_TAGS 3

enum head_marks { HEAD_LENGTH = 1, HEAD_CHUNKED = 2, HEAD_ODD = 4 };

/* *at, of which the verifier then knows nothing: what follows a loop is looked at once, and not
 * again for each way out of it, in which its bounds differ. */
static __always_inline __u32 anywhere(__u32 *at)
{
	return *(volatile __u32 *)at;
}

static __always_inline __u8 head_byte(const struct walk *w, __u32 at)
{
	return w->bytes[at & (2 * L7_CHUNK - 1)];
}

/* Is `word`, in small letters, at `at`? */
static __always_inline bool head_word(const struct walk *w, __u32 at, const char *word, __u32 n)
{
	for (__u32 i = 0; i < n; i++)
		if ((head_byte(w, at + i) | 0x20) != (__u8)word[i])
			return false;
	return true;
}

/* A decimal number at `at`, behind blanks; *end: the byte after it. */
static __always_inline __u64 head_number(const struct walk *w, __u32 at, __u32 *end)
{
	__u64 value = 0;
	__u32 i;
	bool begun = false;

	for (i = 0; i < 16; i++) {
		__u8 c = head_byte(w, at + i);

		if (c == ' ' && !begun)
			continue;
		if (c < '0' || c > '9')
			break;
		begun = true;
		value = value * 10 + (c - '0');
	}
	*end = at + i;
	return begun ? value : ~0ull;
}

/* A line of HTTP's begins at `at`. 1: it is the empty one. */
static __always_inline int head_line(struct walk *w, __u32 at)
{
	__u8 c = head_byte(w, at);
	__u32 end;

	if (c == '\n' || (c == '\r' && head_byte(w, at + 1) == '\n')) {
		w->head.size = at + (c == '\n' ? 1 : 2);
		return 1;
	}
	if ((c | 0x20) == 'c' && head_byte(w, at + 14) == ':' &&
	    head_word(w, at, "content-length", 14)) {
		w->head.length = head_number(w, at + 15, &end);
		w->head.marks |= w->head.length >> 32 ? HEAD_ODD : HEAD_LENGTH;
	} else if ((c | 0x20) == 'c' && head_byte(w, at + 12) == ':' &&
		   head_word(w, at, "content-type", 12) &&
		   head_word(w, at + 14, "application/grpc-web", 20)) {
		w->head.marks |= HEAD_ODD;
	} else if ((c | 0x20) == 't' && head_byte(w, at + 17) == ':' &&
		   head_word(w, at, "transfer-encoding", 17)) {
		end = at + 18 + (head_byte(w, at + 18) == ' ');
		w->head.marks |= head_word(w, end, "chunked", 7) ? HEAD_CHUNKED : HEAD_ODD;
	}
	return 0;
}

/* To the end of a line, and what the next one says. 1: there is nothing more. A global function, as
 * the other steps: the verifier looks at it once. */
__noinline int head_step(__u32 slot)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	bool line = false;
	__u32 at;

	if (!w)
		return 1;
	at = w->head.at;
	for (__u32 i = 0; i < HEAD_PART && !line; i++) {
		if (at >= w->head.n)
			return 1;
		line = head_byte(w, at++) == '\n';
	}
	w->head.at = at;
	if (!line)
		return 0;
	at = anywhere(&w->head.at);
	return at + 2 > w->head.n || head_line(w, at);
}

/* Chunks that lie in `bytes` from head.at on. 1: nothing more. */
__noinline int chunk_step(__u32 slot)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	__u32 most, left;

	if (!w || w->head.at >= w->head.n)
		return 1;
	left = w->head.n - w->head.at;
	most = w->frames.body | w->frames.copy;
	if (most) {
		most = most < left ? most : left;
		w->head.at += most;
		if (w->frames.body)
			w->frames.body -= most;
		else
			w->frames.copy -= most;
		return 0;
	}
	w->framed = chunk_byte(&w->frames, head_byte(w, w->head.at++));
	return w->framed != 1;
}

/* $N CRLF, *N CRLF at head.at: a string that ends behind what is here, is the body. 1: nothing
 * more. */
__noinline int item_step(__u32 slot)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	__u32 at, end;
	__u64 number;
	__u8 c;

	if (!w || w->head.at + 3 > w->head.n)
		return 1;
	at = w->head.at;
	c = head_byte(w, at);
	if (c != '$' && c != '*')
		return 1;
	number = head_number(w, at + 1, &end);
	if (number >> 31 || end + 2 > w->head.n || head_byte(w, end) != '\r' ||
	    head_byte(w, end + 1) != '\n')
		return 1;
	w->head.at = end + 2;
	if (c == '*')
		return 0;
	if (number + 2 > w->head.n - w->head.at) {
		w->head.size = w->head.at;
		w->head.length = number + 2;
		w->head.marks = HEAD_LENGTH;
		return 1;
	}
	w->head.at += (__u32)number + 2;
	return 0;
}

/* Rows of PostgreSQL's that lie in `bytes` from head.at on. 1: there were some. */
__noinline int rows_pass(__u32 slot)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	__u32 at;

	if (!w || !rows_begin(w) || (head_byte(w, w->head.at) | 0x20) != 'd')
		return 0;
	at = rows_walk(w, w->head.at, w->head.n);
	if (at == w->head.at)
		return 0;
	if (at > w->head.n)
		w->frames.body = at - w->head.n;
	w->head.at = at < w->head.n ? at : w->head.n;
	return 1;
}

/* Frames that lie in `bytes` from head.at on. 1: nothing more. */
__noinline int rows_step(__u32 slot)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	__u32 most, left;

	if (!w || w->head.at >= w->head.n)
		return 1;
	left = w->head.n - w->head.at;
	most = w->frames.copy ? w->frames.copy : w->frames.body;
	if (most) {
		most = most < left ? most : left;
		w->head.at += most;
		if (w->frames.copy)
			w->frames.copy -= most;
		else
			w->frames.body -= most;
		return 0;
	}
	most = frames_head_size(&w->frames);
	w->head.size = most < left ? most : left;
	bpf_probe_read_kernel(w->few.b, 8, &w->bytes[w->head.at & (L7_CHUNK - 1)]);
	w->head.at += w->head.size;
	w->head.frames++;
	if (!frames_head(w, w->few.b, w->head.size))
		w->framed = 3;
	return w->framed != 1;
}

static __always_inline __u32 head_be32(const struct walk *w, __u32 at)
{
	return (__u32)head_byte(w, at) << 24 | (__u32)head_byte(w, at + 1) << 16 |
	       (__u32)head_byte(w, at + 2) << 8 | head_byte(w, at + 3);
}

/* The size of a message of MongoDB or Cassandra that begins here; 0: none does. */
static __always_inline __u64 begins_message(const struct walk *w)
{
	const __u8 *b = w->bytes;

	if (w->head.n < 16)
		return 0;
	/* OP_MSG, OP_COMPRESSED */
	if ((b[12] == 0xdd || b[12] == 0xdc) && b[13] == 7 && !b[14] && !b[15] && b[3] < 4)
		return (__u32)b[3] << 24 | (__u32)b[2] << 16 | (__u32)b[1] << 8 | b[0];
	/* a RESULT with its kind; QUERY, EXECUTE, BATCH with a text, an id, or a number of them */
	if (b[1] > 0x1f || b[5] > 15)
		return 0;
	if (((b[0] | 1) == 0x85 || b[0] == 0x83) && b[4] == 8 && !b[1] && !b[9] && !b[10] &&
	    !b[11] && b[12] && b[12] < 6)
		return 9ull + head_be32(w, 5);
	if (((b[0] | 1) == 5 || b[0] == 3) &&
	    (((b[4] == 7 || b[4] == 10) && b[9] <= b[5]) || (b[4] == 13 && b[9] < 3)))
		return 9ull + head_be32(w, 5);
	return 0;
}

/* The length at `at`, whose four bytes are `word`, in its form of 32 bits, and in that of seven
 * bits a byte, of three bytes and four: does what it is the length of end with the message
 * (head.length), or LAST_TAGS before it?
 */
static __always_inline bool is_last(struct walk *w, __u32 at, __u32 word)
{
	__u32 n, size;

	if ((__u64)word + at + 4 == w->head.length) {
		w->head.size = at + 4;
		w->head.frames = 0;
		return true;
	}
	if ((word & 0x80800000) != 0x80800000 || (word & 0x8080) == 0x8080)
		return false;
	size = word & 0x8000 ? 4 : 3;
	n = (word >> 24 & 127) | (word >> 16 & 127) << 7 | (word >> 8 & 127) << 14 |
	    (size == 4 ? (word & 127) << 21 : 0);
	if ((__u64)n - 1 + at + size + LAST_TAGS != w->head.length)
		return false;
	w->head.size = at + size;
	w->head.frames = LAST_TAGS;
	return true;
}

/* Looks for such a length from head.at on. 1: it is found, and head.size is where it ends,
 * head.frames how many bytes are behind what it is the length of; or no length was found. */
__noinline int last_step(__u32 slot)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	__u32 word;

	if (!w)
		return 1;
	word = head_be32(w, w->head.at);
	for (__u32 i = 0; i < LAST_PART; i++) {
		if (w->head.at + 4 > w->head.n || is_last(w, w->head.at, word))
			return 1;
		w->head.at++;
		word = word << 8 | head_byte(w, w->head.at + 3);
	}
	return 0;
}

/* What is behind the first bytes of one large message is left out. `told` as body_read's. */
static __always_inline void message_read(struct walk *w, __u32 slot, __u32 told)
{
	__u64 size = begins_message(w);
	__u32 keep = BODY_LOOK;

	if (!size && told >= L7_CHUNK && w->bytes[0] < 16) { /* Kafka's? */
		w->head.length = 4ull + head_be32(w, 0);
		w->head.at = 8;
		w->head.size = 0;
		for (int i = 0; i < LAST_STEPS; i++)
			if (last_step(slot))
				break;
		if (!w->head.size)
			return;
		size = w->head.length - w->head.frames;
		keep = w->head.size;
	}
	if (size >> 31 || size < (__u64)told + BODY_LEAST)
		return;
	w->frames.kind = L7_FRAMES_ONE;
	w->frames.head = w->frames.n_head = 0;
	w->frames.copy = keep > told ? keep - told : 0;
	if (size < (__u64)told + w->frames.copy + BODY_LEAST)
		return;
	w->frames.body = (__u32)size - told - w->frames.copy;
	w->framed = 1;
}

/* MySQL: the number of columns, in a packet of `n` bytes, and the first column's packet. */
static __always_inline bool begins_columns(const __u8 *b, __u32 n)
{
	return b[0] == n && !b[1] && !b[2] && b[3] == 1 && !b[6 + n] && b[7 + n] == 2 &&
	       b[8 + n] == 3 && b[9 + n] == 'd' && b[10 + n] == 'e' && b[11 + n] == 'f';
}

/* Which frames may begin so. -1: none. */
static __always_inline int begins_frames(const struct walk *w)
{
	const __u8 *b = w->bytes;

	if (b[0] == 1 && !b[3] && !b[4] && !b[7] && b[8] == 60 && !b[9] &&
	    (b[10] == 40 || b[10] == 50 || b[10] == 60 || b[10] == 71)) /* what has content */
		return L7_FRAMES_AMQP;
	/* MariaDB says behind the number of columns that they follow */
	if (begins_columns(b, 1) || (b[5] == 1 && begins_columns(b, 2)))
		return L7_FRAMES_MYSQL;
	if (!b[3] && b[4] == 3 && b[5] >= ' ' && b[5] < 0x7f && (b[1] >> 5 || b[2]))
		return L7_FRAMES_MYSQL; /* a statement of 8 KB or more */
	return b[0] >= '1' && b[0] <= 'z' && !(b[1] >> 4) ? L7_FRAMES_POSTGRES : -1;
}

/* A large call begins with frames, and a large one of them ends behind it. */
static __always_inline int rows_read(struct walk *w, __u32 slot, __u32 told)
{
	int kind = begins_frames(w);
	bool alone;

	if (kind < 0 || told < L7_CHUNK)
		return 0;
	w->frames.body = w->frames.copy = w->frames.head = w->frames.n_head = 0;
	w->frames.kind = (__u8)kind;
	w->head.at = w->head.frames = 0;
	w->framed = 1;
	for (int i = 0; i < ROW_STEPS; i++, LOOP_BACK(i))
		if (!rows_pass(slot) && rows_step(slot))
			break;
	/* one frame says little: a statement's has a text */
	alone = kind == L7_FRAMES_POSTGRES && w->head.frames < 2 &&
		!(w->bytes[0] == 'Q' && w->bytes[5] >= ' ' && w->bytes[5] < 0x7f);
	w->speaks = w->framed == 1 && !alone;
	/* small ones may follow; PostgreSQL's become one message (l7/frames.bpf.h, 4) */
	if (kind == L7_FRAMES_POSTGRES && w->speaks && w->head.at >= w->head.n && told == w->head.n)
		return 0;
	if (w->framed != 1 || alone || w->head.at < w->head.n || w->frames.n_head ||
	    w->frames.body < told - w->head.n + BODY_LEAST ||
	    (told > w->head.n && w->frames.copy)) {
		w->framed = 0;
		return 0;
	}
	w->frames.body -= told - w->head.n;
	return 0;
}

/* A word of VALUE KEY FLAGS BYTES ..., set KEY FLAGS EXPIRES BYTES ...; head.frames: how many come
 * before the number. 1: the line ends. */
__noinline int value_step(__u32 slot)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	bool word = false;
	__u32 at, end;
	__u8 c;

	if (!w)
		return 1;
	at = w->head.at;
	for (__u32 i = 0; i < HEAD_PART && !word; i++) {
		if (at >= w->head.n)
			return 1;
		c = head_byte(w, at++);
		if (c == '\n') {
			w->head.size = at;
			return 1;
		}
		word = c == ' ';
	}
	w->head.at = at;
	if (!word || !w->head.frames || --w->head.frames)
		return 0;
	w->head.length = head_number(w, anywhere(&w->head.at), &end) + 2;
	w->head.marks = w->head.length >> 31 ? HEAD_ODD : HEAD_LENGTH;
	return 0;
}

static __always_inline bool begins_value(const struct walk *w)
{
	const __u8 *b = w->bytes;

	return (b[0] == 'V' && b[1] == 'A' && b[2] == 'L' && b[3] == 'U' && b[4] == 'E' &&
		b[5] == ' ') ||
	       (b[0] == 's' && b[1] == 'e' && b[2] == 't' && b[3] == ' ');
}

static __always_inline bool begins_http(const struct walk *w)
{
	const __u8 *b = w->bytes;

	if (b[0] == 'H')
		return b[1] == 'T' && b[2] == 'T' && b[3] == 'P' && b[4] == '/' && b[5] == '1' &&
		       b[6] == '.';
	return b[0] == 'P' && ((b[1] == 'O' && b[2] == 'S' && b[3] == 'T' && b[4] == ' ') ||
			       (b[1] == 'U' && b[2] == 'T' && b[3] == ' ') ||
			       (b[1] == 'A' && b[2] == 'T' && b[3] == 'C' && b[4] == 'H'));
}

/* What the first record of a call, which has head.n bytes here, says of the body behind it. */
static __always_inline int head_read(struct walk *w, __u32 slot)
{
	w->head.at = w->head.size = w->head.marks = 0;
	w->head.length = 0;
	if (w->head.n < 8)
		return 0;
	if (w->bytes[0] == '$' || w->bytes[0] == '*') {
		if (w->head.n >= ITEM_HEADS && w->head.n < BODY_LEAST) /* small ones are many */
			return 0;
		for (int i = 0; i < ITEM_STEPS; i++)
			if (item_step(slot))
				break;
		w->speaks = w->head.at > 0;
	} else if (begins_value(w)) {
		w->head.frames = w->bytes[0] == 'V' ? 3 : 4;
		for (int i = 0; i < VALUE_STEPS; i++)
			if (value_step(slot))
				break;
		w->speaks = w->head.size > 0;
	} else if (begins_http(w)) {
		for (int i = 0; i < HEAD_STEPS; i++)
			if (head_step(slot))
				break;
		w->speaks = 1;
	}
	return w->head.size && w->head.marks && !(w->head.marks & HEAD_ODD);
}

/* `told`: bytes of the call that have records; those of the first lie in w->bytes. */
static __always_inline int body_read(struct walk *w, __u32 slot, __u32 told)
{
	w->framed = 0;
	w->frames.body = w->frames.copy = w->frames.head = w->frames.n_head = 0;
	if (w->head.marks & HEAD_CHUNKED) {
		w->frames.kind = L7_FRAMES_CHUNKS;
		if (told != w->head.n)
			return 0;
		w->head.at = w->head.size;
		w->framed = 1;
		for (int i = 0; i < CHUNK_STEPS; i++)
			if (chunk_step(slot))
				break;
		if (w->head.at < w->head.n)
			w->framed = 0;
		return 0;
	}
	w->frames.kind = L7_FRAMES_ONE;
	if (w->head.size + w->head.length < told + BODY_LEAST)
		return 0;
	w->frames.body = (__u32)(w->head.size + w->head.length - told);
	w->framed = 1;
	return 0;
}

/* 1: what comes behind these bytes is followed, as w->frames says. */
__noinline int bodies_begin(__u32 slot)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	__u32 told;

	if (!w)
		return 0;
	told = (__u32)(w->n - w->total); /* of the call, by records */
	w->gap = 0;
	w->head.n = w->r.len;
	if (w->r.h.flags & L7_F_FAULT || w->head.n > L7_CHUNK)
		return 0;
	if (head_read(w, slot)) {
		body_read(w, slot, told);
	} else if (w->head.wanted == 2 && !w->frames.n_head && !w->frames.copy &&
		   w->frames.body > told) {
		w->frames.body -= told;
		w->framed = 1;
	} else {
		rows_read(w, slot, told);
		if (!w->framed)
			message_read(w, slot, told);
	}
	return 0;
}

#endif
