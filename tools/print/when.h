/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when: times as people write them (durations: schema/base/units.h, schema/base/cli/quantity.h).
 * Times without a zone are local (TZ). Pure but for TZ.
 *
 * T is one of
 *   2026-11-20T03:10:00Z, ...+01:00, ...03:10:00.250Z      RFC 3339
 *   2026-11-20 03:10[:SS[.frac]]   2026-11-20T03:10   2026-11-20 (its midnight)
 *   03:10[:SS]                     today, or yesterday if that is still to come
 *   today 03:10   yesterday 03:10   yesterday (its midnight)
 *   -2h   -1h30m                   before now
 *   now
 *   1795144200   1795144200.25     seconds since 1970
 *   1795144200000                  milliseconds (12 to 14 digits)
 */
#ifndef SONDE_TOOLS_WHEN_H
#define SONDE_TOOLS_WHEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* UTC ns. 0 or -EINVAL. */
int when_parse(const char *s, int64_t now_ns, int64_t *out_ns);

/* "2026-11-20T02:10:00.250Z" (fraction only if there is one); 32 bytes are enough. */
const char *when_utc(int64_t ns, char *buf, size_t size);
/* "2026-11-20T03:10:00+01:00": local, to the second, with its zone, so that it is the same instant
 * on any host; 40 bytes. */
const char *when_zoned(int64_t ns, char *buf, size_t size);
/* "14:10:03", with the date in front unless it is today's; 32 bytes. */
const char *when_local(int64_t ns, int64_t now_ns, char *buf, size_t size);

#endif
