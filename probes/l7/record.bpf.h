/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7_record: clear text inside TLS at the functions that cipher one record (condition 7 of
 * tls.bpf.h): those of ring, of AWS-LC (aws-lc-rs) and BoringSSL, which rustls calls by pointers,
 * so that no compiler can inline them. And the program of all sites.
 *
 * 1. Each such function is given the record's header, as additional data that is authenticated: in
 *    TLS 1.3 the five bytes that are on the wire; in 1.2 the record's number, type, version and
 *    length. A call counts only if its data is such a header and the length in it is that of the
 *    text with what the cipher adds. So each hit proves by itself that the arguments are where they
 *    were looked for, and that this is TLS.
 * 2. Arguments of C are where the ABI has them. Those of ring are Rust's, whose ABI depends on the
 *    compiler: the result may need a register, the nonce one or two. The header decides (1) which.
 * 3. The connection, one direction of it, is the key's address with the first four bytes of the
 *    nonce, which stay the same for a key's life, and differ in the next key at that address.
 * 4. In TLS 1.3 the last byte of the clear text is its type; padding (zeros) follows it.
 * 5. Its socket: a record that is opened was read before, by the same thread: a record of exactly
 *    that length is in its last read of a socket. One that is sealed is written next by the same
 *    thread: a record of exactly that length is in its next write of TLS, or in one of the next
 *    TLS_OTHERS to the same socket, if the first ones brought what was sealed before (a handshake's
 *    last record) and that socket is not known as another connection's. Until then the clear text
 *    is kept (TLS_FIRST bytes). If the thread seals for another connection before that, it is
 *    dropped, as unknown. Once known, a connection keeps its socket. Learned from application data
 *    and from tickets, which servers send first, but not from handshakes, whose keys come and go.
 */
#ifndef SONDE_PROBES_L7_RECORD_BPF_H
#define SONDE_PROBES_L7_RECORD_BPF_H

#include "probes/l7/tls.bpf.h"

#define TLS_TAG        16u
#define TLS_HEADER     5u
#define TLS_NUMBERED   13u /* bytes of TLS 1.2's additional data */
#define TLS_HANDSHAKE  22
#define TLS_DATA       23
#define TLS_TICKET     4
#define TLS_KEY_UPDATE 24
#define TLS_PADDING    8 /* bytes of it that are looked through */

/* 1. `n` bytes are ciphered, `more` are a type that is given apart. */
static __noinline int tls_record_is(struct tls_call *c, __u64 ad, __u64 ad_len, __u64 n)
{
	__u8 h[16] = {};
	__u32 more = c->type ? 1 : 0;

	if (n > TLS_PLAIN_MOST + 256 || (ad_len != TLS_HEADER && ad_len != TLS_NUMBERED))
		return 0;
	if (ad_len == TLS_HEADER) {
		if (bpf_probe_read_user(h, TLS_HEADER, (const void *)ad) || h[0] != TLS_DATA ||
		    h[1] != 3 || h[2] > 4)
			return 0;
		c->record = (__u16)(h[3] << 8 | h[4]);
		c->v13 = 1;
		c->size = n;
		return c->record == n + more + TLS_TAG;
	}
	if (bpf_probe_read_user(h, TLS_NUMBERED, (const void *)ad) || h[8] < 20 || h[8] > 23 ||
	    h[9] != 3 || h[10] > 4)
		return 0;
	c->record = (__u16)(h[11] << 8 | h[12]);
	c->v13 = 0;
	c->type = h[8];
	c->size = n;
	return c->record == n;
}

/* 3 */
static __always_inline int tls_record_conn(struct tls_call *c, __u64 key, __u64 nonce)
{
	__u32 first = 0;

	if (bpf_probe_read_user(&first, sizeof(first), (const void *)nonce))
		return 0;
	c->conn = key ^ (__u64)first << 32;
	return 1;
}

/* 2. The words before the additional data are the nonce: a pointer to it, or its twelve bytes; and
 * before that the key. */
static __always_inline int tls_record_ring_conn(struct tls_call *c, __u64 key_or_first,
						__u64 key_before, __u64 nonce_or_last)
{
	if (nonce_or_last >> 32)
		return tls_record_conn(c, key_or_first, nonce_or_last);
	c->conn = key_before ^ key_or_first << 32;
	return 1;
}

#define TLS_RING_AT(k_)                                                                            \
	do {                                                                                       \
		if (w[(k_) + 1] != TLS_HEADER && w[(k_) + 1] != TLS_NUMBERED)                      \
			break;                                                                     \
		c->buf = w[(k_) + 2];                                                              \
		if (!tls_record_is(c, w[k_], w[(k_) + 1], w[(k_) + 3])) {                          \
			/* ring 0.16: the length of a prefix of the buffer, 0 */                   \
			if (w[(k_) + 2] || !tls_record_is(c, w[k_], w[(k_) + 1], w[(k_) + 4]))     \
				break;                                                             \
			c->buf = w[(k_) + 3];                                                      \
		}                                                                                  \
		return tls_record_ring_conn(c, w[(k_)-2], (k_) > 2 ? w[(k_) > 2 ? (k_)-3 : 0] : 0, \
					    w[(k_)-1]);                                            \
	} while (0)

static __always_inline int tls_record_ring(struct tls_call *c, const __u64 *w)
{
	TLS_RING_AT(2);
	TLS_RING_AT(3);
	TLS_RING_AT(4);
	return 0;
}

/* The call's arguments; 0: they are not those of a record of TLS. */
static __noinline int tls_record_read(void *ctx, struct tls_site *s, struct tls_call *c)
{
	__u64 w[14] = {TLS_REG(ctx, di), TLS_REG(ctx, si), TLS_REG(ctx, dx),
		       TLS_REG(ctx, cx), TLS_REG(ctx, r8), TLS_REG(ctx, r9)};

	c->type = 0;
	if (bpf_probe_read_user(&w[6], 8 * sizeof(w[0]),
				(const void *)(TLS_REG(ctx, sp) + (__u64)(__s64)s->value[0].at)))
		return 0;
	switch (s->check_value[0]) {
	case TLS_SEAL_SCATTER:
		c->buf = w[7];
		if (w[10] == 1 &&
		    bpf_probe_read_user(&c->type, sizeof(c->type), (const void *)w[9]))
			return 0;
		return w[10] <= 1 && tls_record_is(c, w[11], w[12], w[8]) &&
		       tls_record_conn(c, w[0], w[5]);
	case TLS_SEAL:
		c->buf = w[6];
		return tls_record_is(c, w[8], w[9], w[7]) && tls_record_conn(c, w[0], w[4]);
	case TLS_OPEN:
		c->buf = w[1];
		return w[7] >= TLS_TAG && tls_record_is(c, w[8], w[9], w[7] - TLS_TAG) &&
		       tls_record_conn(c, w[0], w[4]);
	case TLS_OPEN_GATHER:
		c->buf = w[1];
		return tls_record_is(c, w[8], w[9], w[5]) && tls_record_conn(c, w[0], w[2]);
	case TLS_RING:
		return tls_record_ring(c, w);
	default:
		return 0;
	}
}

/* 4. c->size and c->type become those of the clear text. false: no type is found. */
static __always_inline bool tls_record_type(struct tls_call *c)
{
	if (!c->v13 || c->type)
		return true;
	for (int i = 0; i < TLS_PADDING && !c->type && c->size; i++) {
		c->size--;
		if (bpf_probe_read_user(&c->type, sizeof(c->type),
					(const void *)(c->buf + c->size)))
			return false;
	}
	return c->type;
}

/* 5. The first byte of a message of a handshake. */
static __always_inline __u8 tls_record_message(const struct tls_call *c)
{
	__u8 first = 0;

	if (c->type == TLS_HANDSHAKE)
		bpf_probe_read_user(&first, sizeof(first), (const void *)c->buf);
	return first;
}

static __always_inline void tls_record_unknown(__u64 n)
{
	COUNT(tls_unknown, 1);
	COUNT(tls_unknown_bytes, n);
}

/* What waits for the thread's next write gets more of the same stream. */
static __noinline int tls_record_more(struct tls_call_key *key, struct tls_call *c)
{
	struct tls_first *f = bpf_map_lookup_elem(&tls_firsts, key);
	__u64 n = c->size, at, room;

	if (!f || f->conn != c->conn)
		return 0;
	at = f->have;
	if (at == f->n && at < TLS_FIRST) {
		room = TLS_FIRST - at;
		room = n < room ? n : room;
		FORGET_BOUNDS(at);
		FORGET_BOUNDS(room);
		at &= TLS_FIRST;
		room &= TLS_FIRST;
		if (!bpf_probe_read_user(f->bytes + at, (__u32)room, (const void *)c->buf))
			f->have += (__u32)room;
	}
	f->n += (__u32)n;
	return 0;
}

/* Another connection's clear text waited for this thread's next write. */
static __always_inline void tls_record_drop(struct tls_last *l, struct tls_call_key *key)
{
	struct tls_first *f = bpf_map_lookup_elem(&tls_firsts, key);

	if (f && f->conn == l->conn) {
		if (f->n)
			tls_record_unknown(f->n);
		f->conn = 0;
	}
	l->outs_sk = l->conn = 0;
	l->writes = l->ciphers = l->others = 0;
}

static __noinline int tls_record_wait(struct tls_call_key *key, struct tls_call *c, __u64 record)
{
	struct tls_last *l = bpf_map_lookup_elem(&tls_lasts, key);

	if (!l) {
		tls_record_unknown(c->size);
		return 0;
	}
	if (l->ciphers && l->conn == c->conn)
		return tls_record_more(key, c);
	if (l->ciphers)
		tls_record_drop(l, key);
	l->conn = c->conn;
	l->n = record;
	l->writes = l->ciphers = 1;
	l->others = 0;
	l->outs_sk = 0;
	return tls_first_keep(key, c->conn, c->buf, c->size, c->at_ns);
}

/* A connection gets another key: its socket is that one's then. */
static __always_inline void tls_record_rekey(const struct tls_call *c)
{
	__u64 key = c->sk | c->dir;

	if (c->sk)
		bpf_map_delete_elem(&tls_ciphers, &key);
}

/* The clear text is in the buffer, and begins what its type says. false: it tells nothing. */
static __always_inline bool tls_record_tells(struct tls_call *c)
{
	__u8 message;

	if (!tls_record_type(c))
		return false;
	if (c->type == TLS_DATA)
		return true;
	message = tls_record_message(c);
	if (message == TLS_KEY_UPDATE && c->v13)
		tls_record_rekey(c);
	if (message != TLS_TICKET || !c->v13)
		return false;
	c->size = 0; /* of application data */
	return true;
}

static __noinline int tls_record_sealed(struct tls_call_key *key, struct tls_call *c)
{
	__u64 record = c->v13 ? TLS_EXACT | c->record : c->record;
	struct tls_last *l;

	if (!tls_record_tells(c))
		return 0;
	if (!c->sk)
		return tls_record_wait(key, c, record);
	l = bpf_map_lookup_elem(&tls_lasts, key);
	if (l && l->ciphers && l->conn != c->conn)
		tls_record_drop(l, key);
	if (!c->size)
		return 0;
	COUNT(tls_calls, 1);
	l7_bytes((struct sock *)c->sk, c->ino, L7_OUT, (const void *)c->buf, c->size, c->at_ns,
		 L7_F_TLS);
	return 0;
}

/* 5: which socket was that record read from? */
static __noinline int tls_record_from(struct tls_call_key *key, struct tls_call *c)
{
	struct tls_last *l = bpf_map_lookup_elem(&tls_lasts, key);
	__u32 record = c->record;

	if (!l || !tls_open(l->sk, l->ino))
		return 0;
	for (__u32 i = 0; i < TLS_RECORDS; i++) {
		if (i >= l->count ||
		    (c->v13 ? l->lens[i] != record :
			      l->lens[i] != record + 24 && l->lens[i] != record + 16))
			continue;
		if (!tls_cipher_is(c->conn, l->sk, l->ino, L7_IN))
			return 0;
		tls_learn(c->conn, (struct sock *)l->sk, l->ino, 1);
		c->sk = l->sk;
		c->ino = l->ino;
		return 0;
	}
	return 0;
}

static __noinline int tls_record_opened(struct tls_call_key *key, struct tls_call *c)
{
	if (!tls_record_tells(c))
		return 0;
	if (!c->sk)
		tls_record_from(key, c);
	if (!c->size)
		return 0;
	if (!c->sk) {
		tls_record_unknown(c->size);
		return 0;
	}
	COUNT(tls_calls, 1);
	l7_bytes((struct sock *)c->sk, c->ino, L7_IN, (const void *)c->buf, c->size,
		 bpf_ktime_get_boot_ns(), L7_F_TLS);
	return 0;
}

static __noinline int tls_record_entry(void *ctx, struct tls_site *s)
{
	struct tls_call_key key = tls_key(ctx, false);
	struct tls_call *c = tls_call_place(&key, false);
	__u64 ino = 0;
	__u8 memory;

	if (!c)
		return 0;
	c->active = 0;
	if (!tls_record_read(ctx, s, c))
		return 0;
	c->dir = s->dir;
	c->on_stack = c->nested = c->inside = 0;
	c->sk = tls_known(c->conn, &ino, &memory);
	c->ino = ino;
	c->memory = 1;
	if (!c->sk)
		tls_watch();
	if (s->dir == L7_IN) {
		c->active = TLS_CIPHERS;
		return 0;
	}
	c->at_ns = bpf_ktime_get_boot_ns();
	return tls_record_sealed(&key, c);
}

static __noinline int tls_record_result(void *ctx, struct tls_site *s)
{
	struct tls_call_key key = tls_key(ctx, false);
	struct tls_call *c = bpf_map_lookup_elem(&tls_calls, &key);

	if (!c || c->active != TLS_CIPHERS || c->dir != s->dir)
		return 0;
	c->active = 0;
	if (s->value[0].place != TLS_NOWHERE && tls_value_read(ctx, &s->value[0]) != 1)
		return 0;
	return tls_record_opened(&key, c);
}

SEC("uprobe")
int tls_site(void *ctx)
{
	struct tls_site *s = tls_site_of(ctx);

	if (!s || !s->role)
		return 0;
	if (s->when != TLS_ALWAYS &&
	    arch_condition(TLS_REG(ctx, flags), s->condition) != (s->when == TLS_TAKEN))
		return 0;
	if (s->result == TLS_RECORD)
		return s->role == TLS_ENTRY ? tls_record_entry(ctx, s) : tls_record_result(ctx, s);
	if (s->role == TLS_FORGET)
		return tls_forget(ctx, s);
	return s->role == TLS_ENTRY ? tls_entry(ctx, s) : tls_result(ctx, s);
}

#endif
