/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache: the image indexes on disk, <store>/images/, shared by every sonde-maps of that store,
 * across restarts.
 *
 *   KEY                     an index, 0640; written under a temporary name, checked, then linked or
 *                           renamed
 *   KEY~XXXXXXXX            another index of the same key (made with a debug file, or by a file
 *                           that borrowed the key)
 *   by-stat/DEV-INO-SIZE-MTIME-CTIME
 *                           a symbolic link to "../KEY", or, for a file that sonde-index refused,
 *                           "!VERSION:REASON". Times in ns. So a warm start hashes nothing, and a
 *                           file that crashed sonde-index is not tried again until it or sonde
 *                           changes.
 *   .tmp-PID-N              being written
 *
 * Limit: CACHE_MAX_BYTES, and a CACHE_DISK_SHARE-th of the disk (of what they use and what is
 * free), so that samples always have room. The least recently used index is dropped first (a use
 * sets the file's mtime); an index that would take more than half of the limit is not kept. Nothing
 * here is trusted when read: sonde-maps checks the checksum of each index once, and again if anyone
 * else has changed the file, before it sends it to clients. Without a usable folder everything
 * still works, from memory.
 */
#ifndef SONDE_HOST_CACHE_H
#define SONDE_HOST_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define CACHE_MAX_BYTES  (256ull << 20)
#define CACHE_DISK_SHARE 4
/* increase it when sonde-index accepts other files, or the links' format changes */
#define CACHE_VERSION "2"

struct cache;

/* store_dir NULL, or a folder that cannot be created: a cache that keeps nothing. */
struct cache *cache_open(const char *store_dir, uint64_t max_bytes);
/* Is its folder where it was? If the store was renamed, indexes are kept where it is now; if the
 * store, or images/ in it, was removed, in a new one, once there is a store again at its path.
 * Cheap; call it every few seconds. */
void cache_look(struct cache *c);
void cache_close(struct cache *c);

enum cache_answer { CACHE_UNKNOWN = 0, CACHE_KNOWN, CACHE_REFUSED };
/* Look up the file: *text is its key or the reason of its refusal (the caller frees it). */
enum cache_answer cache_find(struct cache *c, const struct stat *st, char **text);
/* The link's name as a number: device, inode, size, times. Never 0. */
uint64_t cache_file_id(const struct stat *st);
/* The path of a debug file for the file of this key, below a root; false: the key has no build-id.
 */
bool cache_debug_path(const char *key, char *path, size_t size);
/* Did `debug` appear after the file's index was made? Then that index does not use it yet. */
bool cache_is_older(struct cache *c, const struct stat *st, const struct stat *debug);
/* The index, read-only; -errno. Counts as a use. */
int cache_get(struct cache *c, const char *key);
/* Was the index that cache_get returned found sound (cache_set_sound), and unchanged since? By the
 * file's times: a write changes them, and so does another program's use; our own uses do not count.
 */
bool cache_is_sound(const struct cache *c, int fd);
void cache_set_sound(struct cache *c, int fd);
/* Keep the index in `fd` (read from the start) under `key`, and remember that it belongs to `st`
 * (may be NULL). *stored: its name (the caller frees it). 0, or -errno: it is not on disk. */
int cache_put(struct cache *c, const char *key, int fd, const struct stat *st, char **stored);
void cache_refuse(struct cache *c, const struct stat *st, const char *reason);
/* It cannot be read: remove it. */
void cache_remove(struct cache *c, const char *key);
/* A key has only hex digits, '-', '~' and "nobuildid"; never a path. */
bool cache_key_ok(const char *key);

#endif
