/* SPDX-License-Identifier: Apache-2.0 */
/*
 * argshare: command lines of one program are mostly alike (a build's compilers above all), so a process keeps what
 * differs: the first `keep` characters of a base, then `middle`, then the base's last `end` characters. Pure.
 */
#ifndef SONDE_STORE_ARGSHARE_H
#define SONDE_STORE_ARGSHARE_H

#include <stddef.h>

struct argshare {
	size_t keep, end;    /* characters of the base (valid UTF-8, as SQL counts) */
	const char *middle;  /* within the args; not NUL-terminated */
	size_t middle_bytes;
};

/* Both valid UTF-8. Prefix and suffix overlap neither in the base nor in the args. */
struct argshare argshare_of(const char *base, const char *args);

#endif
