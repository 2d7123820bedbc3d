/* SPDX-License-Identifier: Apache-2.0 */
/* explain_tls: which TLS library a file holds, and whether family l7 reads clear text there. */
#ifndef SONDE_MAPS_EXPLAIN_TLS_H
#define SONDE_MAPS_EXPLAIN_TLS_H

#include <jansson.h>

struct hostmaps_image;

/* {"library", "read": "emulated" | "stepped" | "no", "probes", "why"}; NULL: none that is known. */
json_t *explain_tls(const struct hostmaps_image *img);

#endif
