/* SPDX-License-Identifier: Apache-2.0 */
/* code: where a function or a USDT probe is in its file, and what a hit of a probe costs. */
#ifndef SONDE_PROBE_CODE_H
#define SONDE_PROBE_CODE_H

#include <stdint.h>

#include "schema/base/err.h"

struct asked_probe;

/* Fills its path, offset, semaphore and plan. EXIT_USAGE; EXIT_PREREQUISITE: it is not there. */
int code_find(struct asked_probe *p, struct err *e);
/* In ns, what a hit takes from who runs into it: an estimate by kind. */
uint64_t code_price(const struct asked_probe *p);

#endif
