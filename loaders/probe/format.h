/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format: what tracefs says of a tracepoint's record (events/GROUP/NAME/format): its fields, where
 * each is and what. Pure.
 *
 *   1. Fields that all tracepoints have (common_...) are left out: a program does not get them.
 *   2. A line is "field:TYPE NAME; offset:N; size:N; signed:N;". NAME may end with [N]: an array.
 *      TYPE may begin with __data_loc or __rel_loc: the field says where the value is.
 *   3. A line that is not so ends nothing: it is passed over.
 */
#ifndef SONDE_PROBE_FORMAT_H
#define SONDE_PROBE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FORMAT_FIELDS 64
#define FORMAT_NAME   32
#define FORMAT_TYPE   48

enum format_what {
	FORMAT_NUMBER,   /* of 1, 2, 4 or 8 bytes */
	FORMAT_CHARS,    /* a text within the record */
	FORMAT_DATA_LOC, /* a text elsewhere in it */
	FORMAT_REL_LOC,
	FORMAT_POINTER_TEXT, /* const char *: of a system call, the address of a text */
	FORMAT_OTHER         /* arrays of numbers, structs */
};

struct format_field {
	char name[FORMAT_NAME]; /* cut if it is longer */
	char type[FORMAT_TYPE];
	uint16_t offset, size;
	bool is_signed;
	enum format_what what;
};

/* How many fields; more than FORMAT_FIELDS are left out. */
size_t format_read(const char *text, size_t len, struct format_field out[FORMAT_FIELDS]);

#endif
