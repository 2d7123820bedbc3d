/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address: where sonde-serve listens: 127.0.0.1:7766, [::1]:7766, 0.0.0.0:80, localhost:7766, :7766
 * (127.0.0.1), or unix:/run/x.sock. The only name it accepts is `localhost`.
 */
#ifndef SONDE_SERVE_ADDRESS_H
#define SONDE_SERVE_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "schema/base/err.h"

#define ADDRESS_DEFAULT "127.0.0.1:7766"

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_storage storage;
		struct sockaddr_un unix_;
	};
	socklen_t len;
	bool loopback;   /* only this host can reach it: 127/8, ::1, a socket in the file system */
	char shown[160]; /* "http://127.0.0.1:7766/", "unix:/run/x.sock" */
};

/* Pure. EXIT_USAGE with the accepted forms. */
int address_parse(const char *text, struct address *a, struct err *e);
/* A listening socket, or -errno. Port 0 takes a free port, which a->shown then contains. A socket
 * file without a listener is replaced. */
int address_listen(struct address *a, struct err *e);
/* Removes the socket file. */
void address_leave(const struct address *a);

#endif
