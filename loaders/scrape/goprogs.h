/* SPDX-License-Identifier: Apache-2.0 */
/* goprogs: which Go programs there are, where each is looked for, and when it is asked for what. */
#ifndef SONDE_SCRAPE_GOPROGS_H
#define SONDE_SCRAPE_GOPROGS_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/scrape/fetch.h"

struct goprogs_opts {
	int64_t interval_ns;  /* between two questions for a profile */
	uint32_t cpu_s;       /* how long a CPU profile is taken */
	bool asks[WIRE_ASKS]; /* which profiles */
	int64_t begun_ns;     /* boot clock; what began later has no base */
	const struct asker *asker;
};

struct goprogs *goprogs_new(const struct goprogs_opts *o);
void goprogs_free(struct goprogs *ps); /* NULL is fine */
/* As `poll` and `last_read` of family.h; the latter asks a last time for cumulative profiles, and
 * ends CPU profiles. */
void goprogs_poll(struct goprogs *ps, struct family_host *h, int64_t now_ns);
void goprogs_finish(struct goprogs *ps, struct family_host *h, int64_t until_ns);

#endif
