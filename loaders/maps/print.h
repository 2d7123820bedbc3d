/* SPDX-License-Identifier: Apache-2.0 */
/* print: the event stream as lines, for people ("process tgid=812 ...") or as JSON objects. */
#ifndef SONDE_MAPS_PRINT_H
#define SONDE_MAPS_PRINT_H

#include <stdbool.h>

struct mapspack_msg;

void print_message(const struct mapspack_msg *msg, bool json);

#endif
