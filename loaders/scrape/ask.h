/* SPDX-License-Identifier: Apache-2.0 */
/* ask: one request, made and read by its own process, which ends with it. */
#ifndef SONDE_SCRAPE_ASK_H
#define SONDE_SCRAPE_ASK_H

#include "loaders/scrape/wire.h"

/* In a child: descriptors `to` (where the answer goes) and `network` (-1: our own) are its own.
 * Connects, sends the request, gives up every right (sandbox.h), reads and tells. Never returns. */
void ask_child(const struct wire_question *q, int to, int network) __attribute__((noreturn));

#endif
