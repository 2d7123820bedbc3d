/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7: what the programs of family l7 and their loader share. How it works is in l7.bpf.c.
 *
 * A connection is identified by its socket's address and the inode of its file: an address is
 * reused, an inode number not for long. Each direction has a position of 64 bits that begins at 0
 * when the connection is first seen: bytes between two records were moved by system calls that the
 * programs do not see, or were not wanted.
 */
#ifndef SONDE_PROBES_L7_H
#define SONDE_PROBES_L7_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#include "probes/lib/tables.h" /* TABLES_TAG_*: what a tag says */

enum l7_side { L7_SIDE_UNKNOWN = 0, L7_SIDE_CLIENT = 1, L7_SIDE_SERVER = 2 };
enum l7_dir { L7_OUT = 0, L7_IN = 1 }; /* written by the process, read by it */

enum l7_what {
	L7_CONN = 1, /* struct l7_conn: a connection is first seen, or has another owner; again
			where the loader asks for it */
	L7_DATA = 2, /* struct l7_data */
	L7_EOF = 3,  /* struct l7_end: this direction (dir) is over */
	L7_END = 4   /* struct l7_end: both are, and it is gone */
};

enum l7_flags {
	L7_F_BEGUN = 1,     /* CONN: seen from its first byte */
	L7_F_TLS = 2,       /* DATA: clear text from inside TLS; its positions are counted apart */
	L7_F_DATAGRAM = 4,  /* DATA: its own message, to or from the remote address here */
	L7_F_FAULT = 8,     /* DATA: the program's memory could not be read: bytes are missing */
	L7_F_IS_TLS = 16,   /* CONN: its clear text comes from TLS */
	L7_F_TOGETHER = 64, /* DATA: all of its bytes came to the socket at came_ns */
	L7_F_OPENER = 32, /* DATA: `tag` is of the request for which the connection was opened, and
			     these are the first bytes written on it */
	L7_F_SERVES = 0x400, /* DATA: the thread has read the request `tag` and not answered it, and
				has not waited since (l7/turn.bpf.h) */
	L7_F_NEXT = 0x800,   /* DATA, with OPENER: to open it was the next that the thread did after
				it had read the request */
	L7_F_LOOP = 0x1000   /* DATA: the thread may wait for other things with a request open */
};

struct l7_head {
	__u64 sk, ino;
	__u64 at_ns;     /* boot clock: a write's begin, a read's end */
	__u32 tgid, tid; /* who */
	__u8 what, dir;  /* enum l7_what, l7_dir */
	__u16 flags;     /* enum l7_flags */
	__u32 pad;
};
_Static_assert(sizeof(struct l7_head) == 40, "wire size");

#define L7_PATH 108
struct l7_conn {
	struct l7_head h;
	__u64 start_ns; /* of the process, as in stack_event */
	__u32 exec_id, netns;
	__u16 family, protocol;
	__u16 lport, dport; /* host's byte order */
	__u8 side, pad[3];
	__u32 path_len; /* of a Unix socket: the listening end's address; a leading NUL: abstract */
	__u8 local[16], peer[16]; /* IPv4: the first four */
	__u8 path[L7_PATH];
	__u8 pad2[4];
};
_Static_assert(sizeof(struct l7_conn) == 216, "wire size");

#define L7_CHUNK 4096
struct l7_data { /* and behind it its bytes */
	struct l7_head h;
	__u64 pos;       /* of its first byte */
	__u32 size, len; /* bytes of the stream that it represents, and how many of these follow */
	__u16 family, port; /* of a datagram: the remote end; 0: the one that the socket is
			       connected with */
	__u32 seq;          /* of TCP, not of clear text: the sequence number at pos */
	__u8 remote[16];
	__u64 tag;     /* OUT: of the request that the thread serves, as far as the flags say so; 0:
			  none */
	__u64 came_ns; /* IN: when its first byte came to the socket (l7/came.bpf.h), boot clock; 0:
			  that is not known */
};
_Static_assert(sizeof(struct l7_data) == 96, "wire size");

struct l7_end {
	struct l7_head h;
	__u64 pos[2]; /* where each direction ended, by enum l7_dir; of EOF that of its direction */
	__u64 tls_pos[2]; /* of the clear text inside TLS */
};
_Static_assert(sizeof(struct l7_end) == 72, "wire size");

/*
 * What the loader wants of a connection: an array that it maps, at L7_WANT_SLOT of the socket's
 * address. An entry is valid for the connection whose inode it has; another connection at the same
 * place has no entry, and is copied whole.
 */
#define L7_WANTS (1u << 16)
/* Behind them one whose `ino` counts how often one of the others was written: who has seen one need
 * not look again; and a bit for each port of servers that have spoken a protocol which is parsed.
 */
#define L7_WANT_PORTS     (L7_WANTS + 1)
#define L7_WANT_ENTRIES   (L7_WANT_PORTS + 65536 / 8 / 32)
#define L7_WANT_SLOT(sk_) ((__u32)(((__u64)(sk_)*0x9e3779b97f4a7c15ull) >> 48))
enum l7_want_flags {
	L7_WANT_NOTHING = 1, /* of what system calls move: only how the connection ends */
	L7_WANT_CONN = 2,    /* its CONN record again */
	L7_WANT_TLS = 4,     /* `until` are positions of clear text, and so is NOTHING */
	L7_WANT_SERVER = 8,  /* its side: of one that is older than the programs */
	L7_WANT_CLIENT = 16,
};
struct l7_want {
	__u64 ino;
	__u64 until[2]; /* by enum l7_dir: up to there nothing but the record that reaches it */
	__u16 limit[2]; /* bytes to copy of one call, in L7_LIMIT_UNIT; 0: unknown yet */
	__u32 flags;    /* enum l7_want_flags */
};
_Static_assert(sizeof(struct l7_want) == 32, "wire size");

/* ---- `socks`: by the socket's address ---- */

enum sock_flags_l7 {
	S_IGNORED = 1, /* not in the capture's scope, or sonde's own */
	S_TLS = 2,
	S_SEQ_OUT = 4, /* seq[] holds */
	S_SEQ_IN = 8,
	S_OUT_DONE = 16, /* its last position is known */
	S_IN_DONE = 32,
	S_BEGUN = 64,
	S_OPENED = 128,  /* by us, for the request `tag`, and nothing was written on it yet */
	S_UNTOLD = 256,  /* shed before its CONN record */
	S_SHED = 512,    /* shed_until holds */
	S_FRAMES = 1024, /* and the next bit, by enum l7_dir: frames[] holds */
	S_NEXT = 4096,   /* with OPENED: L7_F_NEXT; without: by us, and it is not known for which
			    request, nor was anything written on it yet */
	S_WAS_IN = 8192, /* what was moved last was read */
	S_SPEAKS = 16384 /* a message in it began as those of a protocol that is parsed */
};

enum came_flags {
	CAME_UNSURE = 1,  /* how old the bytes in the buffer are is not known */
	CAME_TOGETHER = 2 /* what was read last had come at once */
};
enum l7_frames_kind {
	L7_FRAMES_HTTP2 = 0,
	L7_FRAMES_ONE = 1,    /* a body whose length is known: nothing is, behind it */
	L7_FRAMES_CHUNKS = 2, /* HTTP/1's; head: the size of the next one as far as it came, n_head:
				 which part of its line is next */
	L7_FRAMES_POSTGRES = 3,
	L7_FRAMES_MYSQL = 4,
	L7_FRAMES_AMQP = 5,
};
struct l7_frames { /* l7/frames.bpf.h: of a direction, at `pos` */
	__u64 pos;
	__u32 body,
		copy; /* bytes to come of the frame at hand that are left out, that are copied */
	__u32 head; /* the next frame's header: its first four bytes (PostgreSQL's without `type`),
		       and how many came */
	__u16 n_head;
	__u8 kind, type; /* enum l7_frames_kind */
};

struct l7_came {                /* l7/came.bpf.h */
	__u64 came_ns, last_ns; /* 0: there are no bytes, or it is not known */
	__u64 taken_ns;         /* when what was read last had come */
	__u64 whose;            /* before it is accepted: which socket it is */
	__u32 last_seq, end_seq;
	__u32 flags, pad;
};

/* Behind the 56 bytes that the map has before it, so that what each call looks at is one line of
 * the cache. */
struct l7_sock {
	__u64 ino;
	__u64 pos[2];
	__u32 seq[2]; /* of TCP: the sequence number at pos */
	__u32 tgid;
	__u8 protocol; /* 0: a Unix socket */
	__u8 side;
	__u16 flags; /* enum sock_flags_l7 */
	__u64 tag; /* a server's: of the request that is not answered yet; else of the one for which
		      it was written to last, or opened; 0: none */
	__u64 tag_who; /* a server's: who read last of it; else who wrote (inflight.bpf.h) */
	__u32 threads; /* until when its process is taken for one of threads (who_moves) */
	__u32 plain; /* tls_plain_now of when its process had moved no record of TLS; 0: it has, or
			that is not known */
	__u32 wants; /* the count of writings of `wants`, and 1 above it, as it was when all of
			every call was wanted; 0: that is not known */
	__u32 shed_until; /* boot clock, in 2^20 ns */
	struct l7_came came;
	__u64 tls_pos[2];
	struct l7_frames frames[2]; /* by enum l7_dir */
};
_Static_assert(sizeof(struct l7_sock) == 184, "four lines with what is before it");

/* What is copied of one call while the connection's protocol is unknown: all of its first bytes,
 * and a little of bulk that follows, unless a known protocol was seen on its port before
 * (L7_WANT_PORTS). */
#define L7_FIRST      262144
#define L7_LIMIT      4096
#define L7_LIMIT_MOST 262144
#define L7_TAIL       8192 /* of a larger call, its end */
#define L7_LIMIT_UNIT 64

/* ---- `whos`: the processes of the last connections (l7/who.bpf.h) ---- */

#define L7_WHOS 8192
struct l7_who_key {
	__u64 start_ns;
	__u32 tgid, exec_id;
};
struct l7_who {
	__u64 cgroup_id;
	char comm[16]; /* of the thread that made the first one */
};
_Static_assert(sizeof(struct l7_who_key) == 16 && sizeof(struct l7_who) == 24, "wire sizes");

struct l7_tally {         /* by CPU, in the map `tally` */
	__u64 records;    /* that were made */
	__u64 lost;       /* of those, lost: the ring was full */
	__u64 lost_bytes; /* of connections that were shed, and of records lost */
	__u64 shed;       /* how often a connection was shed before the ring was full */
	__u64 no_room;    /* connections that found no room in `socks` */
	__u64 no_room_bytes;
	__u64 unseen; /* TCP connections that ended and no system call that we know moved a byte of:
			 io_uring */
	__u64 unseen_bytes; /* theirs, and of connections that were shed from their first byte on */
	__u64 faults;       /* calls whose memory could not be read */
	__u64 ends_lost;    /* ends that were not told: the ring was full */
	__u64 tls_calls;    /* reads and writes of clear text inside TLS that were reported */
	__u64 tls_unknown;  /* and those whose socket is not known */
	__u64 tls_unknown_bytes;
	__u64 tls_no_room; /* calls and connections that found no room */
	__u64 tls_odd;     /* results that make no sense: a site of another function */
};

#endif
