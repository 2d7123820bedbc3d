/* SPDX-License-Identifier: Apache-2.0 */
/* tlssite: one probe in a TLS library: its entry in the map of sites, and its attachment. */
#ifndef SONDE_L7_TLSSITE_H
#define SONDE_L7_TLSSITE_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/bpf/load/taps.h"
#include "probes/l7_tls.h"

struct bpf_object;
struct bpf_program;
struct image_tls_site;

struct tlssite {
	struct bpf_program *program;
	int sites, places; /* maps */
	bool cookies;      /* offered by the kernel (5.15) */
	bool used[TLS_SITES];
	uint16_t at_place[TLS_PAGE]; /* without cookies: how many have this place in their page */
};

struct tlssite_link {
	struct tap tap;  /* own */
	uint32_t number; /* of the site */
	uint32_t place;
};

void tlssite_init(struct tlssite *t, struct bpf_object *obj);
/* Registers as places in struct pt_regs. Pure. */
void tlssite_convert(const struct image_tls_site *from, struct tls_site *to);
/* At `offset` of the file at `path`. -errno; -ENOSPC: no room; -EEXIST: without cookies another
 * site has that place in its page. */
int tlssite_attach(struct tlssite *t, const char *path, const struct image_tls_site *site,
		   struct tlssite_link *out);
/* Moves the tap to `to`; the caller ends it before it attaches anything else. */
void tlssite_detach(struct tlssite *t, struct tlssite_link *l, struct taps *to);

#endif
