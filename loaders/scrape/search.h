/* SPDX-License-Identifier: Apache-2.0 */
/* search: at which of its sockets a program is to be asked for its page: each once, and only where
 * no other process may be the one that answers. */
#ifndef SONDE_SCRAPE_SEARCH_H
#define SONDE_SCRAPE_SEARCH_H

#include "loaders/scrape/goprog.h"

/* The next one, in p->at, inode and other_network. false: there is none now, and p->reason says
 * why. */
bool search_next(struct goprog *p, struct hostmaps *maps);
/* There was no page at that one: it is not asked again. */
void search_failed(struct goprog *p);

#endif
