/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note: what ELF notes say: the GNU build-id, and whether Go's linker made the file. Pure over
 * (bytes, len). A note is {u32 namesz, u32 descsz, u32 type}, name and description, each padded to
 * `align` (4, or 8 in segments aligned to 8, where gABI and binutils agree only for
 * .note.gnu.property).
 */
#ifndef SONDE_INDEX_NOTE_H
#define SONDE_INDEX_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUILD_ID_MAX 64

struct note_facts {
	uint8_t build_id[BUILD_ID_MAX];
	size_t build_id_len; /* 0: none */
	bool go;             /* holds Go's own build-id note */
};

/* Adds what these notes say to `facts` (the first build-id stays); stops at the first one that does
 * not fit. */
void note_scan(const void *data, size_t len, size_t align, struct note_facts *facts);

#endif
