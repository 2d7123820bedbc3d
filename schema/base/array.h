/* SPDX-License-Identifier: Apache-2.0 */
/* array: how many elements an array has. Not for pointers: the compiler warns there
 * (-Wsizeof-pointer-div). */
#ifndef SONDE_BASE_ARRAY_H
#define SONDE_BASE_ARRAY_H

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
