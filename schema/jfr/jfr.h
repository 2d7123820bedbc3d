/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfr: a recording of Java's flight recorder, event by event. Pure over bytes that anybody may have
 * written; bounded.
 *
 *  1. A file is chunks, one after another. A chunk begins with 68 bytes, big-endian: "FLR\0", major
 *     and minor version (2.0 of JDK 9 to 11, 2.1 since), size, offset of the last checkpoint,
 * offset of the metadata, start (ns since 1970), duration (ns), start in ticks, ticks a second, a
 * state byte, a zero byte, flags (bit 0: integers are compressed, which is required).
 *  2. Integers are little-endian groups of 7 bits, at most 9 bytes, the ninth with 8 bits. They
 * need not be as short as possible. float and double are big-endian.
 *  3. An event is its size (of all of it), the number of its type, and its fields. Type 0 is the
 *     metadata: a table of strings, then a tree of elements, which declares each type by number and
 *     name with its fields by name. Numbers of types differ by version: here only names count.
 *  4. Type 1 is a checkpoint: values that events refer to, by type and key. Each names the one
 * before it; of a key that comes twice the newest counts. What is referred to and is not there is
 *     "unknown": a stack without frames, a name "".
 *  5. A string is a byte that says how (null, empty, a key, UTF-8, UTF-16 units, Latin-1) and its
 *     length and characters.
 *  6. A file that ends within a chunk (its program was killed, or is still running) is read as far
 * as its metadata and checkpoints allow. A chunk without metadata is counted as unreadable.
 */
#ifndef SONDE_JFR_JFR_H
#define SONDE_JFR_JFR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JFR_FRAMES_MAX 4096 /* of a stack */

enum jfr_code { JFR_UNKNOWN, JFR_INTERPRETED, JFR_COMPILED, JFR_INLINED, JFR_NATIVE, JFR_KERNEL };

struct jfr_frame {              /* strings are never NULL */
	const char *class_name; /* "java.util.HashMap"; of native code perhaps "" or a library */
	const char *method;     /* "get"; "" if it is not known */
	uint32_t line;          /* 0: not known */
	enum jfr_code code;     /* INLINED: into the next frame */
};

struct jfr_thread {       /* strings are never NULL */
	const char *name; /* as Java calls it, else as the system does */
	uint32_t tid;     /* of the system; 0: not known */
	uint64_t java_id;
};

struct jfr_event; /* at hand: good for the call, as all that is borrowed from it */

const char *jfr_type(const struct jfr_event *ev); /* "jdk.ExecutionSample" */
uint64_t jfr_type_id(const struct jfr_event *ev); /* its number in this chunk */
/* The name of the type of that number, in this chunk; "": not known. */
const char *jfr_type_named(const struct jfr_event *ev, uint64_t id);
int64_t jfr_start_ns(const struct jfr_event *ev); /* of its field startTime, since 1970 */
/* Where it begins in its chunk, and when that began: what a reader of a growing file goes on from.
 */
size_t jfr_place(const struct jfr_event *ev);
int64_t jfr_chunk_ns(const struct jfr_event *ev);
/* A field of a number; false: there is no such field. */
bool jfr_number(const struct jfr_event *ev, const char *field, int64_t *out);
/* A field that is a span of time, in ns, by the unit that it declares (ticks if none). */
bool jfr_span_ns(const struct jfr_event *ev, const char *field, int64_t *out);
/* A field's text, or the name of the class or symbol that it refers to; "" if it has no text. */
const char *jfr_text(const struct jfr_event *ev, const char *field);
/* false: there is no such field, or it refers to nothing. */
bool jfr_thread_of(const struct jfr_event *ev, const char *field, struct jfr_thread *out);
/* Of its field stackTrace, leaf first. */
size_t jfr_stack(const struct jfr_event *ev, const struct jfr_frame **frames, bool *truncated);

struct jfr_totals {
	uint64_t events;             /* that `each` got */
	uint64_t chunks, unreadable; /* unreadable: chunks without metadata */
	int64_t from_ns, to_ns;      /* of the chunks, since 1970; 0: no chunk */
	size_t end;                  /* of the last whole event, in the last chunk */
};

/* Does it begin as one? */
bool jfr_looks(const void *data, size_t len);
/* Tells each event in the order of the file; a result of `each` that is not 0 ends it, and comes
 * back. -EBADMSG: `why` says what is wrong (a static text). */
int jfr_read(const void *data, size_t len, int (*each)(void *ctx, const struct jfr_event *ev),
	     void *ctx, struct jfr_totals *totals, const char **why);

#endif
