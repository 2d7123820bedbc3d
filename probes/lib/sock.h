/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sock: what the end of a socket is that a descriptor leads to. Filled by sock.bpf.h, read by
 * loaders. The BPF side includes probes/lib/kern.h before it, user space <linux/types.h>.
 */
#ifndef SONDE_PROBES_SOCK_H
#define SONDE_PROBES_SOCK_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define SOCK_PATH     108
#define SOCK_ID_INODE (1ull << 63)

struct sock_end {
	__u64 id;     /* the kernel's cookie where it has made one, else SOCK_ID_INODE | the inode
			 number of its file; 0: none */
	__u16 family; /* 0: not a socket of a kind that is recorded */
	__u16 port;   /* the other end's, 0: none; host byte order */
	__u16 lport;
	__u8 listens, pad;
	__u32 mate; /* of a Unix socket: the process that has the other end, of a server who began
		       to listen; 0: not known */
	__u32 path_len; /* of a Unix socket: its server's address; a leading NUL: abstract */
	__u8 peer[16];  /* IPv4: the first four */
	__u8 path[SOCK_PATH];
	__u32 pad2;
};
_Static_assert(sizeof(struct sock_end) == 152, "wire size");

#endif
