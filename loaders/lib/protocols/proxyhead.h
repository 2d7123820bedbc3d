/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxyhead: what a balancer says before all else on a connection that it passes on: the PROXY
 * protocol (haproxy's doc/proxy-protocol.txt).
 *
 *   1   "PROXY " FAMILY and, unless that is UNKNOWN, two addresses and two ports, CRLF; at most 107
 *       bytes
 *   2   0d 0a 0d 0a 00 0d 0a 51 55 49 54 0a, VERSION:4 (2) COMMAND:4 FAMILY:8 LEN:16 (big endian)
 *       and LEN bytes
 *
 * Pure. Only where all of it comes at once.
 */
#ifndef SONDE_PROTOCOLS_PROXYHEAD_H
#define SONDE_PROTOCOLS_PROXYHEAD_H

#include <stddef.h>
#include <stdint.h>

/* The length of the head at the begin of these bytes; 0: they begin with something else. */
size_t proxyhead_size(const uint8_t *p, size_t n);

#endif
