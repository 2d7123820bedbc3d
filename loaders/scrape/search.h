/* SPDX-License-Identifier: Apache-2.0 */
/* search: which of its sockets to ask for a program's page: each once, and only if no other process
 * could answer. */
#ifndef SONDE_SCRAPE_SEARCH_H
#define SONDE_SCRAPE_SEARCH_H

#include "loaders/scrape/goprog.h"

/* Sets the next one in p->at, inode and other_network. false: none now, and p->reason says why. */
bool search_next(struct goprog *p, struct hostmaps *maps);
/* There was no page at that one: it is not asked again. */
void search_failed(struct goprog *p);

#endif
