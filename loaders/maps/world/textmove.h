/* SPDX-License-Identifier: Apache-2.0 */
/*
 * textmove: memory without a file that replaces a file's text. Programs copy their text
 * onto huge pages (node --use-largepages, libraries that do it for any program): the copy has the
 * old place, so the file's names and unwind rows hold for it.
 *
 * The proof is in /proc/PID/maps. The memory is all or a part of a hole in the mappings of one
 * file: the line before the hole and the line behind it are of the same file, and the offset of the
 * second is as far from the end of the first as the hole is long. Nothing else is in the hole.
 */
#ifndef SONDE_MAPS_TEXTMOVE_H
#define SONDE_MAPS_TEXTMOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/proc/proc.h"

#define TEXTMOVE_LOOKS 64 /* of one process, each over all its lines */

/* `maps`: the text of /proc/PID/maps. out->offset is that of `start` in the file, out->path and its
 * identity the file's; its other members are not set. false: it is no such memory. Pure. */
bool textmove_find(const char *maps, size_t len, uint64_t start, struct proc_map *out);

#endif
