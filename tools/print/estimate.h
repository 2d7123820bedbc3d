/* SPDX-License-Identifier: Apache-2.0 */
/* estimate: how far a number may lie from what happened, from the variance that the store has of it
 * (schema/sql/0046-estimates.sql). */
#ifndef SONDE_TOOLS_ESTIMATE_H
#define SONDE_TOOLS_ESTIMATE_H

#include <stddef.h>
#include <stdint.h>

/* The standard error: 19 of 20 estimates lie within two of it. 0: the number is exact. */
uint64_t estimate_error(double variance);
/* The same as a part of the number: "±3 %", "±0.2 %"; "" if the number is exact. A buffer of
 * ESTIMATE_MAX bytes. */
#define ESTIMATE_MAX 32
const char *estimate_text(uint64_t number, double variance, char *buf, size_t size);

#endif
