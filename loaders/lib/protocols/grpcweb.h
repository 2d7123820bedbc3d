/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpcweb: gRPC-Web (grpc's doc/PROTOCOL-WEB.md). A browser cannot read trailers, so that a call's
 * status comes as the last frame of the body:
 *
 *   frame      FLAGS:8 LEN:32 (big endian) DATA; FLAGS 80: the trailers, as lines of HTTP/1
 *   text       (application/grpc-web-text) the same in base64, in parts that may be padded each
 *
 * Read from the body's last bytes: a frame of trailers that ends where the body ends. What lies
 * before it is not followed. Pure; the memory is the caller's.
 */
#ifndef SONDE_PROTOCOLS_GRPCWEB_H
#define SONDE_PROTOCOLS_GRPCWEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRPCWEB_TAIL      4096
#define GRPCWEB_NONE      (-1) /* there is no status */
#define GRPC_CODE_UNKNOWN 2

enum grpcweb_form { GRPCWEB_NOT, GRPCWEB_BINARY, GRPCWEB_TEXT };

struct grpcweb_tail {
	uint8_t bytes[2 * GRPCWEB_TAIL];
	size_t n;
	bool cut; /* bytes before these are not kept */
};

/* By the value of content-type. */
enum grpcweb_form grpcweb_form(const uint8_t *type, size_t n);
/* The body goes on with these. At least the last GRPCWEB_TAIL bytes are kept. */
void grpcweb_keep(struct grpcweb_tail *t, const uint8_t *p, size_t n);
/* The status in a body that ends with these bytes, or GRPCWEB_NONE. */
int grpcweb_status(enum grpcweb_form form, const uint8_t *p, size_t n);
/* "OK", "NOT_FOUND", ...; "UNKNOWN" for a code that gRPC does not have. */
const char *grpc_code_name(int code);

#endif
