/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7_frames: of a protocol whose bodies come in frames, HTTP/2, the frames are followed here, and
 * their bodies are not copied. The parser is behind by some 20 ms and more: in that time a download
 * fills the ring with bytes of no use.
 *
 *   frame      LEN:24 TYPE:8 FLAGS:8 STREAM:32 PAYLOAD; TYPE 0 is DATA
 *
 * 1. A direction is followed from its first byte on, where it begins as HTTP/2 must: the client's
 *    "PRI * HTTP/2.0 ...", the server's SETTINGS. Also inside TLS.
 * 2. Payloads of DATA from FRAMES_LEAST bytes on are left out; all else is copied. A record has
 *    bytes and then what is left out behind them. The last FRAMES_TAIL bytes of the server's
 *    payloads are copied: the status of a call of gRPC-Web (loaders/lib/protocols/http2.c).
 * 3. Bytes that no call brings (sendfile) may lie within such a payload. If they do not, or a frame
 *    makes no sense, or its memory cannot be read, the direction is followed no longer, and copied
 *    as any other.
 * 4. PostgreSQL's small rows, and the data that it copies, come by the thousand. A run of them
 * becomes one message of their type: its header has the length of the whole run, and the run is
 * left out behind it. The parser reads no row.
 */
#ifndef SONDE_PROBES_L7_FRAMES_BPF_H
#define SONDE_PROBES_L7_FRAMES_BPF_H

#include "probes/l7/request.bpf.h"
#include "probes/l7/walk.bpf.h"
#include "probes/lib/sock.bpf.h"

#define FRAMES_HEAD    9
#define FRAMES_PREFACE 24
#define FRAMES_LEAST   512
#define FRAMES_TAIL    256
#define FRAMES_TYPES   0x20
#define FRAMES_STEPS   512
#define FRAMES_LOOK    4096 /* of a question, the parser looks at no more */
#define FRAMES_ROW     64
#define CHUNK_LINE     8 /* bytes of one at a time */
#define ROW_HEAD       5
#define ROWS_LEAST     512
#define ROWS_MOST      128 /* at a time: the verifier walks through each of them */

/* Does this direction begin here? Then what is first to copy of it. */
static __always_inline bool frames_begin(struct walk *w, __u64 n)
{
	union {
		__u64 words[3];
		__u8 bytes[FRAMES_PREFACE];
	} b = {};
	__u64 at = w->left ? w->ptr : 0;

	if (!at && w->iov_n)
		bpf_probe_read_user(&at, sizeof(at), (const void *)w->iov);
	if (!at || n < FRAMES_HEAD)
		return false;
	w->frames.body = w->frames.copy = w->frames.head = w->frames.n_head = w->frames.kind = 0;
	if (walk_read(w, &b, FRAMES_HEAD, at))
		return false;
	if (b.words[0] == 0x5448202a20495250ull) {
		if (n < FRAMES_PREFACE || walk_read(w, &b, FRAMES_PREFACE, at) ||
		    b.words[1] != 0x0a0d302e322f5054ull || b.words[2] != 0x0a0d0a0d4d530a0dull)
			return false;
		w->frames.copy = FRAMES_PREFACE;
		w->frames.type = 0;
		return true;
	}
	w->frames.type = 1; /* the server's */
	/* SETTINGS of less than 128 bytes, no flags, no stream */
	return !b.bytes[0] && !b.bytes[1] && b.bytes[2] < 128 && b.bytes[2] % 6 == 0 &&
	       b.bytes[3] == 4 && !b.bytes[4] && !b.bytes[5] && !b.bytes[6] && !b.bytes[7] &&
	       !b.bytes[8];
}

/*
 * 1: the walk's bytes are frames, and w->frames says where they go on. These functions, called for
 * framed directions and the first bytes of others, are global ones: the verifier looks at them
 * once, not for each way to them.
 */
__noinline int frames_ready(__u32 slot, __u64 sk, __u32 dir, __u64 pos, __u64 n)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	struct l7_sock *e = bpf_map_lookup_elem(&socks, &sk);
	__u16 flag = (__u16)(S_FRAMES << (dir & 1));
	__u64 missing;

	if (!w || !e)
		return 0;
	w->gap = 0;
	if (!(e->flags & flag)) {
		if (pos || e->protocol == SOCK_UDP || !frames_begin(w, n))
			return 0;
		e->flags |= flag;
		return 1;
	}
	w->frames = e->frames[dir & 1];
	missing = pos - w->frames.pos;
	if (missing && (w->frames.copy || w->frames.n_head || missing > w->frames.body)) {
		e->flags &= (__u16)~flag;
		return 0;
	}
	w->frames.body -= (__u32)missing;
	return 1;
}

/* They go on at `pos`. */
__noinline int frames_keep(__u32 slot, __u64 sk, __u32 dir, __u64 pos)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	struct l7_sock *e = bpf_map_lookup_elem(&socks, &sk);

	if (!w || !e)
		return 0;
	if (w->framed != 1) { /* 3 */
		e->flags &= (__u16) ~(S_FRAMES << (dir & 1));
		return 0;
	}
	w->frames.pos = pos;
	e->flags |= (__u16)(S_FRAMES << (dir & 1));
	e->frames[dir & 1] = w->frames;
	return 0;
}

static __always_inline void frames_flush(struct walk *w)
{
	walk_flush(w, w->fill, w->fill + w->gap);
	w->gap = 0;
}

/* `n` bytes into the record at hand; false: they cannot be read. */
static __always_inline bool frames_copy(struct walk *w, __u32 n)
{
	__u64 size = n; /* 64 bits: what 5.10 compares is what the helper gets */
	__u32 fill;

	if (w->gap || w->fill + n > L7_CHUNK)
		frames_flush(w);
	fill = w->fill & (L7_CHUNK - 1);
	FORGET_BOUNDS(size);
	if (size > L7_CHUNK)
		return false;
	if (walk_read(w, &w->bytes[fill], (__u32)size, w->ptr))
		return false;
	w->fill = fill + n;
	return true;
}

static __always_inline __u32 frames_head_size(const struct l7_frames *f)
{
	return f->kind == L7_FRAMES_POSTGRES ? 5 :
	       f->kind == L7_FRAMES_MYSQL    ? 4 :
	       f->kind == L7_FRAMES_AMQP     ? 7 :
					       FRAMES_HEAD;
}

/* Of a payload, what is copied and what is left out. */
static __always_inline void frames_payload(struct l7_frames *f, __u32 size, __u32 copied)
{
	bool large = size >= copied + FRAMES_LEAST;

	f->copy = large ? copied : size;
	f->body = large ? size - copied : 0;
}

/* Letters and 1, 2, 3; a row, or what is copied, is left out. */
static __always_inline bool frames_postgres(struct l7_frames *f)
{
	__u8 t = f->type, low = t | 0x20;

	if (!((low >= 'a' && low <= 'z') || (t >= '1' && t <= '3')) || f->head < 4 || f->head >> 28)
		return false;
	frames_payload(f, f->head - 4, low == 'd' ? 0 : FRAMES_LOOK);
	return true;
}

/* Rows, and files, are numbered on from the question's 0. */
static __always_inline bool frames_mysql(struct l7_frames *f)
{
	__u32 size = f->head >> 24 | (f->head >> 8 & 0xff00) | (f->head << 8 & 0xff0000);

	frames_payload(f, size, f->head & 0xff ? FRAMES_ROW : FRAMES_LOOK);
	return true;
}

/* Methods, headers and heartbeats; of content (3) nothing is copied. Each ends with one byte more.
 */
static __always_inline bool frames_amqp(struct l7_frames *f)
{
	if (!f->type || (f->type > 3 && f->type != 8) || f->head >> 24)
		return false;
	frames_payload(f, f->head + 1, f->type == 3 ? 0 : FRAMES_LOOK);
	return true;
}

/* Bytes of a header before its first four that count, of which the first is the type. */
static __always_inline __u32 frames_lead(const struct l7_frames *f)
{
	return f->kind == L7_FRAMES_POSTGRES ? 1 : f->kind == L7_FRAMES_AMQP ? 3 : 0;
}

/* Of the header, whose first bytes may have come with another call. false: it makes no sense. */
static __always_inline bool frames_head(struct walk *w, const __u8 b[16], __u32 n)
{
	__u32 lead = frames_lead(&w->frames);
	__u32 had = w->frames.n_head, head = had ? w->frames.head : 0;

#pragma unroll
	for (__u32 i = 0; i < 7; i++) { /* unrolled: a place in `b` is a constant */
		if (i < n && lead && had + i == 0)
			w->frames.type = b[i];
		else if (i < n && had + i >= lead && had + i < 4u + lead)
			head = head << 8 | b[i];
	}
	w->frames.head = head;
	w->frames.n_head = (__u16)(had + n);
	if (w->frames.n_head < frames_head_size(&w->frames))
		return true;
	w->frames.n_head = 0;
	if (w->frames.kind == L7_FRAMES_POSTGRES)
		return frames_postgres(&w->frames);
	if (w->frames.kind == L7_FRAMES_AMQP)
		return frames_amqp(&w->frames);
	if (w->frames.kind == L7_FRAMES_MYSQL)
		return frames_mysql(&w->frames);
	if ((head & 0xff) > FRAMES_TYPES)
		return false;
	if (!(head & 0xff) && head >> 8 >= FRAMES_LEAST)
		w->frames.body = head >> 8;
	else
		w->frames.copy = head >> 8;
	return true;
}

/* Goes on in the line of a chunk's size with `c`; what it returns is w->framed. */
static __always_inline __u32 chunk_byte(struct l7_frames *f, __u8 c)
{
	__u8 low = c | 0x20;

	if (c == '\n' && f->n_head) {
		f->n_head = 0;
		if (!f->head)
			return 3;
		if (f->head >= FRAMES_LEAST)
			f->body = f->head + 2;
		else
			f->copy = f->head + 2;
		f->head = 0;
		return 1;
	}
	if (f->n_head == 2 || c == '\r')
		return 1;
	if (c == ';' || c == ' ') {
		f->n_head = 2;
		return f->head || c == ';' ? 1 : 3;
	}
	if (f->head >> 27 || !((c >= '0' && c <= '9') || (low >= 'a' && low <= 'f')))
		return 3;
	f->head = f->head << 4 | (__u32)(c <= '9' ? c - '0' : low - 'a' + 10);
	f->n_head = 1;
	return 1;
}

/* A part of a chunk's line, of `n` bytes at most: how many are copied. */
static __always_inline __u32 frames_chunk(struct walk *w, __u64 n)
{
	__u32 k = 0, framed = 1;

	n = n < CHUNK_LINE ? n : CHUNK_LINE;
	FORGET_BOUNDS(n);
	if (n > CHUNK_LINE || walk_read(w, w->few.b, (__u32)n, w->ptr)) {
		w->framed = 2;
		return 0;
	}
	for (__u32 i = 0; i < CHUNK_LINE; i++) {
		if (i >= n || framed != 1 || w->frames.body || w->frames.copy)
			break;
		framed = chunk_byte(&w->frames, w->few.b[i]);
		k++;
	}
	if (!frames_copy(w, k))
		framed = 2;
	w->framed = framed;
	return k;
}

/* How many bytes at the end of the body at hand are copied. */
static __always_inline __u32 frames_kept(const struct l7_frames *f)
{
	return f->kind == L7_FRAMES_HTTP2 && f->type ? FRAMES_TAIL : 0;
}

/* Are they next? */
static __always_inline bool frames_tail(const struct l7_frames *f)
{
	return f->body && f->body <= frames_kept(f);
}

static __always_inline __u64 frames_least(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/*
 * Messages of PostgreSQL's of the same type, one behind the other in w->bytes from `from` on, up to
 * `to` (a header that is cut there is not one): where the last one ends, which may be beyond.
 * w->head.frames counts them.
 */
static __always_inline __u32 rows_walk(struct walk *w, __u32 from, __u32 to)
{
	__u32 at = from, size;
	__u8 type = w->bytes[from & (2 * L7_CHUNK - 1)];

	for (int i = 0; i < ROWS_MOST; i++) {
		if (at + ROW_HEAD > to || w->bytes[at & (2 * L7_CHUNK - 1)] != type)
			break;
		size = (__u32)w->bytes[(at + 1) & (2 * L7_CHUNK - 1)] << 24 |
		       (__u32)w->bytes[(at + 2) & (2 * L7_CHUNK - 1)] << 16 |
		       (__u32)w->bytes[(at + 3) & (2 * L7_CHUNK - 1)] << 8 |
		       w->bytes[(at + 4) & (2 * L7_CHUNK - 1)];
		if (size < 4 || size >> 28)
			break;
		at += 1 + size;
		w->head.frames++;
	}
	return at;
}

/* A run of rows at the place at hand, which is where a message begins (4). 1: it is one message
 * now. */
__noinline int rows_run(__u32 slot)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	__u32 size, fill;
	__u64 n;

	if (!w || w->total <= (__u64)w->fill + w->gap)
		return 0;
	n = frames_least(frames_least(w->left, w->total - w->fill - w->gap), L7_CHUNK);
	FORGET_BOUNDS(n);
	if (n < ROWS_LEAST || n > L7_CHUNK || walk_read(w, w->few.b, 1, w->ptr) ||
	    (w->few.b[0] | 0x20) != 'd' || walk_read(w, &w->bytes[L7_CHUNK], (__u32)n, w->ptr))
		return 0;
	w->head.frames = 0;
	size = rows_walk(w, L7_CHUNK, L7_CHUNK + (__u32)n) - L7_CHUNK;
	if (w->head.frames < 2 || size < ROWS_LEAST)
		return 0;
	if (w->gap || w->fill + ROW_HEAD > L7_CHUNK)
		frames_flush(w);
	fill = w->fill & (L7_CHUNK - 1);
	w->bytes[fill] = w->few.b[0];
	for (int i = 0; i < 4; i++)
		w->bytes[fill + 1 + i] = (__u8)((size - 1) >> (24 - 8 * i));
	w->fill = fill + ROW_HEAD;
	n = frames_least(n, size);
	w->gap = (__u32)n - ROW_HEAD;
	w->frames.body = size - (__u32)n;
	w->ptr += n;
	w->left -= n;
	return 1;
}

/* May one begin here? */
static __always_inline bool rows_begin(const struct walk *w)
{
	return w->frames.kind == L7_FRAMES_POSTGRES && !w->frames.n_head && !w->frames.copy &&
	       !w->frames.body;
}

/* A part of the piece at hand. 1: nothing more can be done; w->framed is 2 where memory cannot be
 * read, 3 where what is there is no frame. */
__noinline int frames_step(__u32 slot)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	__u64 n;

	if (!w || w->total <= (__u64)w->fill + w->gap)
		return 1;
	if (!w->left) {
		if (!w->iov_n ||
		    bpf_probe_read_user(&w->few.v, sizeof(w->few.v), (const void *)w->iov))
			return 1;
		w->iov_n--;
		w->iov += sizeof(w->few.v);
		w->ptr = w->few.v.base;
		w->left = w->few.v.len;
		if (!w->left)
			return 0;
	}
	n = frames_least(w->left, w->total - w->fill - w->gap);
	if (w->frames.copy || frames_tail(&w->frames)) {
		__u32 *left = w->frames.copy ? &w->frames.copy : &w->frames.body;

		n = frames_least(frames_least(n, *left), L7_CHUNK);
		if (!frames_copy(w, (__u32)n))
			w->framed = 2;
		*left -= (__u32)n;
	} else if (w->frames.body) {
		n = frames_least(n, w->frames.body - frames_kept(&w->frames));
		w->gap += (__u32)n;
		w->frames.body -= (__u32)n;
	} else if (w->frames.kind == L7_FRAMES_ONE) {
		w->framed = 3;
		return 1;
	} else if (w->frames.kind == L7_FRAMES_CHUNKS) {
		n = frames_chunk(w, n);
	} else {
		n = frames_least(n, frames_head_size(&w->frames) - (w->frames.n_head & 15));
		FORGET_BOUNDS(n);
		if (n > FRAMES_HEAD || walk_read(w, w->few.b, (__u32)n, w->ptr) ||
		    !frames_copy(w, (__u32)n))
			w->framed = 2;
		else if (!frames_head(w, w->few.b, (__u32)n))
			w->framed = 3;
	}
	w->ptr += n;
	w->left -= n;
	return w->framed != 1;
}

__noinline int frames_run(__u32 slot)
{
	struct walk *w;
	int i;

	w = bpf_map_lookup_elem(&walks, &slot);
	if (!w)
		return 0;
	for (i = 0; i < FRAMES_STEPS; i++)
		if (!(rows_begin(w) && rows_run(slot)) && frames_step(slot))
			break;
	if (i == FRAMES_STEPS)
		w->framed = 3; /* small ones: the rest is copied */
	if (w->fill || w->gap)
		frames_flush(w);
	if (w->framed == 3 || !w->total)
		return 0;
	/* what no memory has */
	if (w->framed == 2 || w->frames.copy || w->frames.n_head || w->total > w->frames.body)
		w->framed = 2;
	else
		w->frames.body -= (__u32)w->total;
	walk_flush(w, 0, (__u32)w->total);
	return 0;
}

#endif
