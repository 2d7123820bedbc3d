/* SPDX-License-Identifier: Apache-2.0 */
/* tlsprint: the sites of an index's section TLS for people and tests, one a line. */
#ifndef SONDE_INDEX_TLSPRINT_H
#define SONDE_INDEX_TLSPRINT_H

#include <stddef.h>
#include <stdio.h>

#include "schema/image/format.h"

void tlsprint_sites(FILE *to, const struct image_tls_site *sites, size_t count);

#endif
