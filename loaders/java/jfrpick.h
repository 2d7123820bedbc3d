/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfrpick: the events of a recording that are stored, as a block (jfrblock.h). Pure over bytes that
 * anybody may have written; bounded.
 *
 * A growing chunk is read again and again: its header says where the last checkpoint begins, and
 * what lies before that has all its names. So a reading ends there, and the next goes on from
 * there; the chunk's last byte is read once its state says that it is finished (0).
 */
#ifndef SONDE_JAVA_JFRPICK_H
#define SONDE_JAVA_JFRPICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jfrpick_opts {
	bool live;              /* one chunk, that may still grow; else a file of finished chunks */
	uint64_t since;         /* live: where the last reading ended */
	int64_t after_chunk_ns; /* else: chunks that began until then have been read */
};

#define JFRPICK_HEADER 68u
/* Of a chunk's first JFRPICK_HEADER bytes: is it one that can be read now? `finished` may be NULL.
 */
bool jfrpick_header(const unsigned char *header, bool *finished);
/* The block, which the caller frees. 0, -EBADMSG. */
int jfrpick(const void *data, size_t len, const struct jfrpick_opts *o, void **block, size_t *size);

#endif
