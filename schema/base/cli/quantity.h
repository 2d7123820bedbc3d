/* SPDX-License-Identifier: Apache-2.0 */
/* quantity: sizes and times as people write them, on command lines and in sonde.conf. Pure. */
#ifndef SONDE_BASE_QUANTITY_H
#define SONDE_BASE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "2G", "500M", "1.5GiB", "64 MB", "1048576": powers of 1024 throughout. -EINVAL: none of these,
 * negative, or 0. */
int quantity_bytes(const char *s, uint64_t *out);
/* "14d", "1h30m", "1.5s", "500ms", "1w", "15min". -EINVAL: none of these, a number without a unit,
 * 0, or more than 100 years. */
int quantity_ns(const char *s, int64_t *out);
/* A time without a unit, "15", that may mean seconds or minutes: ask which. */
bool quantity_lacks_unit(const char *s);
/* "14d", "2h 5m", "12s": the two largest units */
const char *quantity_say_ns(int64_t ns, char *buf, size_t size);

#endif
