/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire: the messages between sonde-logs and its reader, a process without rights that reads and
 * parses the files. Both are the same program: the layout has no version.
 *
 *   The loader asks: OPEN (with a descriptor), CLOSE (the file is final: what is left without a
 * line end is a line), READ. The reader answers READ alone, with any number of packets, each a
 * sequence of `struct wire_said` and their texts; the last one ends with WIRE_DONE.
 *
 *   Sums are sent when READ says `flush`; with them WIRE_PLACE: up to where each file is in a sum.
 * A reader that ended is started again from there, so that no line counts twice or is left out.
 *
 * The loader trusts nothing that is said: wire_next returns only messages whose sizes fit.
 */
#ifndef SONDE_LOGS_WIRE_H
#define SONDE_LOGS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_PACKET 32768
#define WIRE_TEXT   4096 /* of a message's texts together */

enum wire_asks { WIRE_OPEN = 1, WIRE_CLOSE, WIRE_READ };
struct wire_ask {
	uint32_t what;
	uint32_t file, source; /* numbers of the loader; source: below WIRE_OWN */
	uint32_t form;         /* enum log_form */
	uint64_t offset;       /* OPEN: from where on */
	uint64_t index;        /* the same of a journal: its place there (journalfile_place) */
	int64_t now_ns;        /* READ: UTC */
	uint32_t flush, last;  /* READ: send the sums; there will be no more (1, WIRE_ENOUGH) */
	uint32_t to_end;       /* OPEN: from the present end on */
	uint32_t packed;       /* OPEN: it is compressed (packed/packed.h) */
};

#define WIRE_ENOUGH 2 /* the sums now, though there may be more to read */

/* Sources from here on are of the reader: those that it finds in a journal. */
#define WIRE_OWN      0x100000u
#define WIRE_OWN_MOST 8192u

enum wire_kinds {
	WIRE_SUM = 1,
	WIRE_PATTERN, /* text: pattern, sample. Comes before its first HIT, and when it changes */
	WIRE_HIT,
	WIRE_PLACE,
	WIRE_SOURCE, /* text: unit or name, container's id */
	WIRE_CUT,    /* a file became shorter, n times: what was written just before is missing */
	WIRE_DONE,
	WIRE_KINDS
};
struct wire_said {
	uint32_t size; /* with its texts; a multiple of 8 */
	uint16_t kind, level;
	uint32_t source, file, pattern, pid;
	int64_t bucket; /* UTC, seconds */
	uint64_t lines, messages, bytes;
	int64_t first_ns, last_ns;
	uint64_t offset, index; /* PLACE */
	uint16_t text[2];       /* sizes with NUL; 0: none */
	uint8_t burst, at_end, more, journal;
	uint64_t cpu_ns; /* DONE */
};

struct wire_packet {
	uint64_t bytes[WIRE_PACKET / 8];
	size_t len;
};

/* Adds a message. False: it has no room, send the packet first. */
bool wire_add(struct wire_packet *p, struct wire_said *x, const char *first, const char *second);
/* The next message of a packet, its texts valid UTF-8 and shown. False: the packet has no more. */
bool wire_next(const struct wire_packet *p, size_t *at, struct wire_said *x, const char *text[2]);

#endif
