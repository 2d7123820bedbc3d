/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units: durations, sizes, counts and shares as people read them. Every program prints them by
 * these functions, so that one number looks the same everywhere (what people type: cli/quantity.h).
 *
 *   1. Three significant digits, without trailing zeros: "1.24 s", "1.5 s", "38 ms", "412 KiB".
 *   2. A value that rounds up to the next unit is written in it: 999.7 us is "1 ms".
 *   3. Durations: ns, us, ms, s; from two minutes on the two largest of d, h, min and s:
 *      "3 min 20 s", "3 h 4 min", "2 d 1 h".
 *   4. Sizes by powers of 1024, counts whole with spaces between thousands, shares with one
 *      decimal.
 *
 *   5. Times in UTC.
 *
 * Each fills `buf` and returns it. Pure.
 */
#ifndef SONDE_BASE_UNITS_H
#define SONDE_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define UNITS_MAX 32 /* the longest of them, with its end */

const char *units_ns(int64_t ns, char *buf, size_t size); /* negative: as 0 */
const char *units_seconds(double seconds, char *buf, size_t size);
const char *units_bytes(uint64_t n, char *buf, size_t size);                /* "1.75 MiB" */
const char *units_count(uint64_t n, char *buf, size_t size);                /* "7 921" */
const char *units_cores(double cores, char *buf, size_t size);              /* "1.37 cores" */
const char *units_share(double part, double whole, char *buf, size_t size); /* "58.6 %" */
/* RFC 3339 with that many decimals of the second: 3 is "2026-11-28T19:06:29.041Z". */
const char *units_utc(int64_t utc_ns, int digits, char *buf, size_t size);

#endif
