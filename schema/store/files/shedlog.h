/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shedlog: when sonded made a family do less, stopped it, or restarted it after a failure: a file
 * of the store, so that each answer can say what it lacks, also when sonded has ended.
 *
 * STORE/shed, text, one state of one family a line, oldest first:
 *
 *     UTC_NS FAMILY STATE N OF
 *
 *   1. STATE holds from UTC_NS until the next line of this family or of `*`, which is all of them.
 *   2. It is one of
 *        full     it does all that it was asked for
 *        rate     it takes N samples a second on each CPU, not OF
 *        step     it is reduced by N of OF steps (schema/families/families.h)
 *        cpu      it is stopped: sonde was over its limit of CPU time
 *        memory   it is stopped: sonde was over its limit of memory
 *        hung     it records nothing: its loader did not respond and was killed
 *        failed   it records nothing: its loader ended by itself, or something killed it
 *   3. Only the sonded that holds the store's supervisor lock writes. A line is one write. If the
 *      file is larger than SHEDLOG_BYTES, its older half goes first.
 *   4. A reader skips lines that it does not know: the file may be a stranger's.
 */
#ifndef SONDE_STORE_FILES_SHEDLOG_H
#define SONDE_STORE_FILES_SHEDLOG_H

#include <stddef.h>
#include <stdint.h>

#define SHEDLOG_BYTES (64u << 10)

enum shedlog_state {
	SHEDLOG_FULL,
	SHEDLOG_RATE,
	SHEDLOG_STEP,
	SHEDLOG_CPU,
	SHEDLOG_MEMORY,
	SHEDLOG_HUNG,
	SHEDLOG_FAILED,
	SHEDLOG_STATES /* one past the last */
};

struct shedlog_span {
	int64_t from_ns, to_ns; /* UTC; to_ns INT64_MAX: it still holds */
	char family[24];
	enum shedlog_state state; /* not SHEDLOG_FULL */
	uint32_t n, of;
};

/* From `utc_ns` on `family` ("*": all) is in this state. SHEDLOG_FULL makes no file where there is
 * none. 0 or -errno. */
int shedlog_add(const char *dir, int64_t utc_ns, const char *family, enum shedlog_state state,
		uint32_t n, uint32_t of);

/* Pure: the spans of a file that touch [from_ns, to_ns), in the order in which they begin, whole.
 * The array is the caller's (free). */
void shedlog_parse(const char *text, size_t len, int64_t from_ns, int64_t to_ns,
		   struct shedlog_span **out, size_t *n);
/* The same of the store in folder `dir`; none if it has no such file. */
void shedlog_read(const char *dir, int64_t from_ns, int64_t to_ns, struct shedlog_span **out,
		  size_t *n);

#endif
