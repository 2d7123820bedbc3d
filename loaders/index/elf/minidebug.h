/* SPDX-License-Identifier: Apache-2.0 */
/*
 * minidebug: .gnu_debugdata, an xz stream that holds a small ELF file with the symbols that were
 * stripped (Fedora's MiniDebugInfo). Pure over (bytes, len). It refuses content larger than
 * MINIDEBUG_MAX, and dictionaries larger than 128 MiB.
 */
#ifndef SONDE_INDEX_MINIDEBUG_H
#define SONDE_INDEX_MINIDEBUG_H

#include <stddef.h>

#define MINIDEBUG_MAX (64u << 20)

/* A fresh buffer (free it). -EBADMSG: not a sound stream, -EFBIG, -ENOMEM. */
int minidebug_unpack(const void *data, size_t len, void **out, size_t *out_len);

#endif
