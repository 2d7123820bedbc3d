/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostsfile: /etc/hosts as text. Pure.
 *
 * A line is ADDRESS NAME [ALIAS...], with blanks between, up to a '#'. The first name of an address
 * counts. Addresses that lead nowhere (0.0.0.0, ::) or to the host itself (loopback) are left out:
 * they name no peer.
 */
#ifndef SONDE_NET_HOSTSFILE_H
#define SONDE_NET_HOSTSFILE_H

#include <stddef.h>

#define HOSTSFILE_NAME 256

/* `address` as inet_ntop writes it; an IPv6 one that holds an IPv4 one is that. Both are borrowed
 * for the call. */
void hostsfile_parse(const char *text, size_t len,
		     void (*each)(void *ctx, const char *address, const char *name), void *ctx);

#endif
