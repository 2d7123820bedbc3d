/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* l7_tls: what the program of l7/tls.bpf.h and its loader share: sites, as the image index has them
 * (schema/image/format.h, condition 16), with registers as places in struct pt_regs. */
#ifndef SONDE_PROBES_L7_TLS_H
#define SONDE_PROBES_L7_TLS_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define TLS_SITES 1024u
/* where no cookie is offered a site is known by its place in its page */
#define TLS_PAGE   4096u
#define TLS_NO_REG 0xffffu

enum tls_role { TLS_ENTRY = 1, TLS_RESULT = 2, TLS_FORGET = 3 };
enum tls_result_kind { TLS_LENGTH = 1, TLS_POINTER = 2, TLS_PAIR = 3, TLS_RECORD = 4 };
/* RECORD: how the function takes its arguments */
enum tls_shape {
	TLS_SEAL_SCATTER = 1,
	TLS_SEAL = 2,
	TLS_OPEN = 3,
	TLS_OPEN_GATHER = 4,
	TLS_RING = 5
};
enum tls_place_kind { TLS_NOWHERE, TLS_REGISTER, TLS_STACK, TLS_NUMBER };
enum tls_when { TLS_ALWAYS, TLS_TAKEN, TLS_NOT_TAKEN };

struct tls_value {
	__u8 place, bytes; /* enum tls_place_kind; 4: a signed number of 32 bits */
	__u16 reg;
	__s32 at;
};

struct tls_site {
	__u8 role, dir;  /* enum tls_role, l7_dir */
	__u8 result, go; /* enum tls_result_kind; its calls are a goroutine's, not a thread's */
	__u8 when, condition;
	__u8 check_value[2]; /* RECORD: enum tls_shape */
	__u16 check_reg[2];
	__u16 args[4]; /* connection, buffer, size, where the number of bytes is written;
			  TLS_NO_REG: none */
	__u32 pad;
	struct tls_value value[2]; /* RECORD, entry: where the arguments in memory begin */
};
_Static_assert(sizeof(struct tls_site) == 40, "wire size");

enum tls_process_flags {
	TLS_PROCESS_GO = 1,
	TLS_PROCESS_C = 2,
	TLS_PROCESS_SEEN = 4, /* TLS was seen, not only its library */
	TLS_PROCESS_JAVA = 8  /* an agent of sonde-java's is in it */
};

struct tls_conn_key {
	__u64 tgid;
	__u64 conn; /* SSL *, gnutls_session_t, *tls.Conn */
};
struct tls_conn {
	__u64 sk, ino;
	__u64 memory; /* known by its records' lengths: no system call is inside */
};
struct tls_call_key {
	__u64 who; /* thread: its id; goroutine: the process's, in the upper half */
	__u64 g;   /* goroutine; 0 */
};

enum tls_active {
	TLS_CALLED = 1,
	TLS_CIPHERS = 2 /* one record: no system call inside is its connection's */
};

struct tls_call {
	__u64 conn, buf, size, out, at_ns, g;
	__u64 sk, ino;
	__u8 dir, on_stack, active;
	__u8 inside, memory; /* a system call inside told the socket; tls_conn.memory */
	__u8 nested;         /* calls of the same function inside, for what is no clear text */
	/* RECORD: of TLS 1.3; its type, 0: the last byte of the clear text; its length by its
	 * header */
	__u8 v13, type;
	__u16 record, pad[3];
};

#define TLS_RECORDS 8 /* of one read that are looked at */
struct tls_last {     /* of a thread: condition 3; of a goroutine, condition 4, the socket alone */
	__u64 sk, ino;
	__u64 conn, n; /* written into TLS, and no socket since */
	__u32 writes, count;
	__u32 lens[TLS_RECORDS]; /* of records of data that were read from the socket */
	/* of the record that goes on in the next read: bytes that are missing, its length (0: it is
	 * not of data); the connection above ciphers record by record */
	__u32 left, part, ciphers;
	__u32 others;  /* writes of records that were sealed before what waits */
	__u64 outs_sk; /* where they went */
};

struct tls_cipher { /* whose socket it is, in one direction */
	__u64 conn, ino;
};

/* What an agent in a Java program writes to /dev/null (loaders/java/agent), and behind it the clear
 * text. */
struct tls_java_head {
	__u64 secret; /* that it was given */
	__u64 conn;   /* the connection's number, where fd is -1 */
	__u64 record; /* mark of the record with this text (l7/java.bpf.h); 0: none */
	__s32 fd;
	__u32 size; /* of the text; 0: of a handshake */
	__u32 dir;  /* enum l7_dir */
	__u32 pad;
};
_Static_assert(sizeof(struct tls_java_head) == 40, "wire size");

/* What a thread wrote into TLS on a connection whose socket is not known yet. */
#define TLS_FIRST 4095
struct tls_first {
	__u64 conn, at_ns;
	__u32 n, have; /* of how many bytes these are the first */
	__u8 bytes[2 * (TLS_FIRST + 1)];
};

#endif
