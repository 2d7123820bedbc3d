/* SPDX-License-Identifier: Apache-2.0 */
/* runtimes: the runtimes with script frames, by the numbers that the store keeps (never
 * renumbered). */
#ifndef SONDE_BASE_RUNTIMES_H
#define SONDE_BASE_RUNTIMES_H

#include <stdint.h>

#define RUNTIMES_MAX 16 /* 0: no runtime */

/* "python", "java"; "" of one that is not known. */
const char *runtime_name(uint32_t runtime);

#endif
