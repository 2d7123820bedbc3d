/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * net: what the programs of family net and their loader share. How it works is in net.bpf.c.
 *
 * A socket is identified by its address and by when it was first seen (`begin_ns`, `serial`):
 * addresses are reused.
 */
#ifndef SONDE_PROBES_NET_H
#define SONDE_PROBES_NET_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#include "probes/lib/sock.h"

enum net_side {
	NET_SIDE_UNKNOWN = 0,
	NET_SIDE_CLIENT = 1,
	NET_SIDE_SERVER = 2,
	NET_SIDE_LISTENER = 3
};

/* How its owner is known, from better to worse. */
enum net_owner_how {
	NET_OWNER_NONE = 0,
	NET_OWNER_OPENER = 1,  /* it opened the connection, or listens */
	NET_OWNER_CLOSER = 2,  /* it closed it, or its direction */
	NET_OWNER_HOLDER = 3,  /* it had a descriptor of it when they were read */
	NET_OWNER_LISTENER = 4 /* the loader's: it holds the socket that it was accepted from */
};

struct net_owner {
	__u64 start_ns; /* of the process, as in stack_event; 0: unknown */
	__u32 tgid, exec_id;
};

enum net_flags {
	NET_F_STANDING = 1, /* it was there before the capture */
	NET_F_FIN_SENT = 2,
	NET_F_RESET_IN = 4,
	NET_F_RESET_OUT = 8,
	NET_F_CLOSED = 16,       /* its end was reported; its closer is still to come */
	NET_F_CLOSED_FIRST = 32, /* it closed before the other end did */
	NET_F_FIN_IN = 64,       /* of a record: the other end closed */
	NET_F_NO_ENTRY = 128     /* of a record: there was no room for it, only its end is known */
};

struct net_conn {             /* value of the map `conns`, by the socket's address */
	__u64 begin_ns;       /* first seen */
	__u64 established_ns; /* 0: it is not, or was before */
	struct net_owner owner, holder;
	__u32 repeated; /* retransmissions that the kernel counted before it was established; of a
			   listener: retransmitted responses */
	__u16 lport, dport; /* host's byte order */
	__u16 flags;        /* enum net_flags */
	__u8 side, how;     /* enum net_side, net_owner_how */
	__u32 holders;      /* processes that had it, at the last reading of descriptors */
	__u32 sweep;        /* number of that reading */
};
_Static_assert(sizeof(struct net_conn) == 72, "wire size");

enum net_what {
	NET_END = 1,    /* it is over */
	NET_CLOSER = 2, /* the closer of a socket whose end was reported before: sk, begin_ns and
			   owner are set */
	NET_LIVE = 3,   /* how it is, where `conns` is read */
	NET_OTHER = 4 /* a socket that is not in `conns` (Unix, UDP), where descriptors are read */
};

struct net_record {
	__u64 sk, begin_ns, established_ns, time_ns;
	struct net_owner owner, holder;
	__u64 acked, received; /* bytes, as the kernel counts them (net.c of the loader takes SYN
				  and FIN off) */
	__u32 snd_una, rcv_nxt, write_seq;
	__u32 srtt_us;                 /* times eight */
	__u32 retrans, repeated, lost; /* segments */
	__u32 segs_out, segs_in;
	__u32 netns;                       /* inode of the namespace */
	__u32 backlog, backlog_max, drops; /* of a listener */
	__u32 inode;                       /* of the socket's file, where it is known */
	__u16 family, protocol;
	__u16 lport, dport; /* host's byte order */
	__u16 error;        /* errno */
	__u16 flags;
	__u8 what, side, how, state; /* state: the one that it left, or has */
	__u8 fin_acked, closed_by;   /* 1: as it says; closed_by 1: the end came from a process */
	__u8 type, pad;              /* SOCK_STREAM, ... */
	__u8 local[16], peer[16];    /* IPv4: the first four */
	__u32 pad2;
};
_Static_assert(sizeof(struct net_record) == 192, "wire size");

#define NET_PATH  SOCK_PATH
#define NET_LOOKS 256 /* records that one run of net_look makes */

/* What the reading of descriptors gives: of TCP sockets nothing, they are in `conns`. */
struct net_other {
	struct net_record r;
	__u64 peer_sk; /* of a Unix socket: the other end, 0: none */
	__u32 path_len;
	__u32 peer_inode; /* of the other end's file: addresses are used again at once, also while
			     the descriptors are read */
	__u8 path[NET_PATH]; /* its address; a leading NUL: abstract */
	__u8 pad2[4];
};
_Static_assert(sizeof(struct net_other) == 192 + 128, "wire size");

/* Bytes on Unix and UDP sockets: net_talk.bpf.h. */
#define NET_TALKS 4096
/* ports from here on are ephemeral: if both ends of UDP have one, the server is unknown */
#define NET_EPHEMERAL 32768
struct net_talk_key {
	struct net_owner owner;
	__u64 at[2]; /* of a Unix socket the kernel's address of the server's; else the other end's:
			16 bytes, IPv4 the first four */
	__u32 netns; /* of UDP */
	__u16 family, port, lport; /* of UDP: the other end's, and its own where it is a server's */
	__u8 side, pad;            /* of a Unix socket */
	__u32 pad2;
};
_Static_assert(sizeof(struct net_talk_key) == 48, "wire size");

struct net_talk {
	struct net_owner mate;        /* of a Unix socket, as far as it is known */
	__u64 tx, rx, sent, received; /* bytes; messages */
	__u64 sk, peer_sk;            /* the last one, and of a Unix socket its other end */
	__u32 path_len;
	__u32 inode;         /* of the last one's file */
	__u8 path[NET_PATH]; /* of a Unix socket as in net_other; else its own address: 16 bytes */
	__u8 quic, looks; /* of UDP. quic 1: a message began as QUIC does; looks: number of messages
			     examined */
	__u8 pad2[2];
};
_Static_assert(sizeof(struct net_talk) == 184, "wire size");

struct net_tally {               /* by CPU, in the map `tally` */
	__u64 opens;             /* CLOSE -> SYN_SENT */
	__u64 opened;            /* SYN_SENT -> ESTABLISHED */
	__u64 accepted;          /* SYN_RECV -> ESTABLISHED */
	__u64 listens;           /* -> LISTEN */
	__u64 ends;              /* records of ends that were made */
	__u64 lost;              /* of those, lost: the ring was full */
	__u64 no_room;           /* sockets that found no room in `conns` */
	__u64 resets_out;        /* all that were sent */
	__u64 resets_out_nobody; /* of those, of no socket */
	__u64 resets_in;
	__u64 synacks;    /* retransmitted */
	__u64 talks;      /* sums of Unix and UDP sockets that were begun */
	__u64 talks_lost; /* messages on Unix and UDP sockets that found no room in `talks` */
};

#endif
