/* SPDX-License-Identifier: Apache-2.0 */
/* gostore: what a reading of a Go process has changed, named and added to the store. */
#ifndef SONDE_GOHEAP_GOSTORE_H
#define SONDE_GOHEAP_GOSTORE_H

#include "loaders/goheap/goproc.h"

/* In a new segment of the store, all gauges, the rate and the notes are stored again. What fails
 * because the store invalidated its ids is stored after the next reading (goproc.unfinished). */
void gostore(struct goproc *p, struct family_host *h, struct hostmaps_process *hp);
/* Stores the process's row and the notes about its state, even if nothing could be read. */
void gostore_state(struct goproc *p, struct family_host *h, struct hostmaps_process *hp);

#endif
