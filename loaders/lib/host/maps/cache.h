/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache: the image indexes on disk, <store>/images/, shared by every sonde-maps of that store,
 * across restarts.
 *
 *   KEY                     an index, 0640; written under a temporary name, checked, then linked or
 *                           renamed
 *   KEY~XXXXXXXX            another index of the same key (made with a debug file, or by a file
 *                           that borrowed the key)
 *   by-stat/DEV-INO-SIZE-MTIME-CTIME   a symbolic link whose target is "../KEY", or, for a file
 *                                      that sonde-index
 *                           refused, "!VERSION:REASON". Times in ns; so a warm start hashes
 *                             nothing, and a file that
 *                           crashed sonde-index is not tried again until it or sonde changes.
 *   .tmp-PID-N              being written
 *
 * Bound: CACHE_MAX_BYTES, and a CACHE_DISK_SHARE-th of what the disk has for them (what they hold
 * and what is free), so that samples always find room; the least recently used goes (a use sets the
 * file's mtime), and one that would take more than half of it is not kept. Nothing here is trusted
 * when read: sonde-maps finds the checksum of each right once, and again when anybody else has
 * touched the file, before it hands it out. Without a usable folder all still works, from memory.
 */
#ifndef SONDE_HOST_CACHE_H
#define SONDE_HOST_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define CACHE_MAX_BYTES  (256ull << 20)
#define CACHE_DISK_SHARE 4
/* raised when what sonde-index accepts, or what is said of a file, changes */
#define CACHE_VERSION "2"

struct cache;

/* store_dir NULL, or a folder that cannot be made: a cache that holds nothing. */
struct cache *cache_open(const char *store_dir, uint64_t max_bytes);
void cache_close(struct cache *c);

enum cache_answer { CACHE_UNKNOWN = 0, CACHE_KNOWN, CACHE_REFUSED };
/* What is known of the file: *text is its key or why it was refused (caller's, free). */
enum cache_answer cache_find(struct cache *c, const struct stat *st, char **text);
/* What it is asked by, as a number: device, inode, size, times. Never 0. */
uint64_t cache_file_id(const struct stat *st);
/* Where a debug file for the file of this key would lie, below the root; false: the key has no
 * build-id. */
bool cache_debug_path(const char *key, char *path, size_t size);
/* Did `debug` come to its place after the file's index was made? Then that index has yet to see it.
 */
bool cache_is_older(struct cache *c, const struct stat *st, const struct stat *debug);
/* The index, read-only; -errno. Counts as a use. */
int cache_get(struct cache *c, const char *key);
/* Was the index that cache_get gave found sound (cache_set_sound), and is it the same file, written
 * by nobody since? Times of the file tell: a write changes them, and so does another program's use;
 * this one's uses do not count. */
bool cache_is_sound(const struct cache *c, int fd);
void cache_set_sound(struct cache *c, int fd);
/* Keep the index in `fd` (read from the start) under `key`, and that `st` (may be NULL) has it.
 * *stored is the name it got (caller's). 0, or -errno: then it is not on disk. */
int cache_put(struct cache *c, const char *key, int fd, const struct stat *st, char **stored);
void cache_refuse(struct cache *c, const struct stat *st, const char *reason);
/* It cannot be read: remove it. */
void cache_remove(struct cache *c, const char *key);
/* Hex digits, '-', '~' and "nobuildid" alone make a key; no path. */
bool cache_key_ok(const char *key);

#endif
