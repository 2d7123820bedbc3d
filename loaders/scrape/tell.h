/* SPDX-License-Identifier: Apache-2.0 */
/* tell: what an answer has that was not there before, named and added to the store. */
#ifndef SONDE_SCRAPE_TELL_H
#define SONDE_SCRAPE_TELL_H

#include "loaders/scrape/goprog.h"

/* Takes an answer in: its stacks are kept, a CPU profile is stored. */
void tell_answer(struct goprog *p, struct profile *x, const struct fetch *f, struct family_host *h,
		 struct hostmaps_process *hp);
/* Stores the process's row and the notes about its state. Cheap if nothing has changed. */
void tell_state(struct goprog *p, struct family_host *h, struct hostmaps_process *hp);
/* How a profile is called: "cpu", "heap"; NULL past the last. */
const char *tell_name(enum wire_ask ask);

#endif
