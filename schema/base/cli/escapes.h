/* SPDX-License-Identifier: Apache-2.0 */
/* escapes: whether a terminal understands escape sequences (TERM says so). */
#ifndef SONDE_BASE_CLI_ESCAPES_H
#define SONDE_BASE_CLI_ESCAPES_H

#include <stdbool.h>

/* TERM is set, and is not "dumb". */
bool escapes_known(void);
/* fd is a terminal, and escapes_known(). */
bool escapes_on(int fd);

#endif
