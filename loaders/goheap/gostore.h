/* SPDX-License-Identifier: Apache-2.0 */
/* gostore: what a reading of a Go process has changed, named and added to the store. */
#ifndef SONDE_GOHEAP_GOSTORE_H
#define SONDE_GOHEAP_GOSTORE_H

#include "loaders/goheap/goproc.h"

/* In another segment than at the last time gauges, rate and notes are told whole. What finds no
 * place because ids have become void meanwhile is told after the next reading (goproc.unfinished).
 */
void gostore(struct goproc *p, struct family_host *h, struct hostmaps_process *hp);
/* The process has a row, and notes that say how it stands, also where nothing could be read. */
void gostore_state(struct goproc *p, struct family_host *h, struct hostmaps_process *hp);

#endif
