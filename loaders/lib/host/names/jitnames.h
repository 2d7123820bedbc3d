/* SPDX-License-Identifier: Apache-2.0 */
/* jitnames: the names that a process's runtime writes for the code it generates, in whichever file
 * (perfmap.h, jitdump.h). */
#ifndef SONDE_HOST_JITNAMES_H
#define SONDE_HOST_JITNAMES_H

#include <stdbool.h>

struct hostmaps_process;
struct perfmap;
struct perfmap_stamp;

/* As perfmap_read_any. */
int jitnames_read(const struct hostmaps_process *p, struct perfmap_stamp *stamp,
		  struct perfmap **out, bool *dump);
/* The reason for people: "another user's file". */
const char *jitnames_reason(int code);

#endif
