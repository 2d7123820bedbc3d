/* SPDX-License-Identifier: Apache-2.0 */
/* load: libbpf's log, and its errors as messages. */
#ifndef SONDE_BPF_LOAD_H
#define SONDE_BPF_LOAD_H

#include <stdbool.h>

#include "schema/base/err.h"

/* Once, before any skeleton: libbpf's log is hidden unless `verbose`. */
void load_init(bool verbose);
/* Why the programs of `what` could not be loaded or attached; returns `err`. */
int load_error(int err, const char *what, struct err *e);

#endif
