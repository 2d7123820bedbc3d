/* SPDX-License-Identifier: Apache-2.0 */
/* threadcount: how many threads there are on this host now: the fourth field of /proc/loadavg,
 * "running/all". */
#ifndef SONDE_OFFCPU_THREADCOUNT_H
#define SONDE_OFFCPU_THREADCOUNT_H

#include <stdint.h>

uint64_t threadcount_now(void); /* 0: it cannot be read */

#endif
