/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oomgrew: whose lines made memory grow in the ten minutes before a process was killed because it
 * ran out, and what they held then, by families mem and goheap (tools/fold/ranking/heapsites.h). Of
 * a container where the kill was one's, of all processes where the host's memory ran out, else of
 * processes with the victim's command.
 */
#ifndef SONDE_TOOLS_OOMGREW_H
#define SONDE_TOOLS_OOMGREW_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"

#define OOMGREW_BEFORE_NS (600 * 1000000000ll)
#define OOMGREW_LINES     3

struct oomgrew_line {
	char *who; /* container or command; never NULL, nor are these: */
	char *function, *file;
	uint32_t line;        /* 0: not known */
	uint64_t grown, held; /* bytes: in the ten minutes, and in use at their end */
};

struct oomgrew {
	struct oomgrew_line rows[OOMGREW_LINES];
	size_t n; /* the most first; 0: nothing grew by 1 MiB, or no such family recorded */
};

enum oomgrew_of { OOMGREW_CONTAINER, OOMGREW_COMM, OOMGREW_HOST };

/* Before `at_ns` (UTC). `name`: of the container or the command. */
void oomgrew_read(const char *store, enum oomgrew_of of, const char *name, int64_t at_ns,
		  struct oomgrew *out);
/* Lines that kept growing in the hour before `at_ns`, of a container, a unit, or the `host`. */
void oomgrew_read_steady(const char *store, const char *name, int64_t at_ns, struct oomgrew *out);
void oomgrew_release(struct oomgrew *x);
/* "leaky (leak.c:24) of web by 93 MiB to 95 MiB, ..."; nothing where n is 0. */
void oomgrew_say(const struct oomgrew *x, struct strbuf *out);
json_t *oomgrew_json(const struct oomgrew *x);

#endif
