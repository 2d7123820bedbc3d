/* SPDX-License-Identifier: Apache-2.0 */
/* mapread: every entry of a BPF hash, a thousand at a time. What comes or goes meanwhile may be
 * seen or not. */
#ifndef SONDE_BPF_MAPREAD_H
#define SONDE_BPF_MAPREAD_H

#include <stddef.h>

typedef void (*mapread_fn)(void *ctx, const void *key, const void *value);
/* Takes `n` keys out, each of key_size; those that are not there any more are passed over. */
void mapread_remove(int fd, size_t key_size, const void *keys, size_t n);
/* 0 or -errno. `fn` may delete entries: each is a copy. */
int mapread_each(int fd, size_t key_size, size_t value_size, mapread_fn fn, void *ctx);

#endif
