/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sockets: where a process listens, by /proc/PID/net/tcp, tcp6 (which list what listens first),
 * unix, and its descriptors. Parsing is pure.
 *
 * An address is one that a connection is made to: of a socket that listens everywhere it is
 * loopback's. It is left out where it would lead to another socket, or perhaps to one: where
 * several listen there, or one that listens there alone.
 */
#ifndef SONDE_SCRAPE_SOCKETS_H
#define SONDE_SCRAPE_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOCKETS_MAX 1024 /* listening ones of a network namespace that are looked at */

struct listening {
	uint64_t inode;
	uint16_t port;
	bool v6;
	uint8_t address[16]; /* of v4 the first four; all 0: everywhere */
	char path[108];      /* of a Unix socket, in the process's own root; "": it is TCP */
};

/* One file's lines up to the first that does not listen; *ended: there is one. Returns how many are
 * in `out`. */
size_t sockets_parse(const char *text, size_t len, bool v6, struct listening *out, size_t max,
		     bool *ended);

/* The same of Unix sockets (unixsockets.c): streams that listen at a path. */
size_t sockets_parse_unix(const char *text, size_t len, struct listening *out, size_t max);
/* Connect to one, without waiting (unixconnect.c): a descriptor, or -errno. */
int sockets_connect(uint32_t pid, const char *path);

/* Where to connect to reach all[i] and no other. false: unknown. */
bool sockets_reach(const struct listening *all, size_t n, size_t i, struct listening *out);

struct sockets {
	struct listening *all; /* of its network namespace */
	size_t n;
	bool *own; /* which of them it holds */
};

/* Nothing if the process has ended, or may not be read. Release it. */
void sockets_of(uint32_t pid, struct sockets *out);
void sockets_release(struct sockets *s);
/* Has the process a descriptor of this socket? */
bool sockets_holds(uint32_t pid, uint64_t inode);
/* Is it in the network namespace of this program? */
bool sockets_same_network(uint32_t pid);

#endif
