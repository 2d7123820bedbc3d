/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotnetask: asks programs of .NET to write the names of their functions, as long as sonde records.
 *
 * A process is forked for it before sonde-maps gives up rights: it keeps those to become another
 * user. It ends by itself when sonde-maps is gone, however that ended: all programs that it asked
 * are made to stop then, and their files removed. A program whose file grows above
 * DOTNETASK_FILE_MAX is made to stop at once, and not asked again; so is one that did not answer,
 * since it may have begun.
 *
 * A program that has ended leaves its file: it is removed if the program's root was ours. In a
 * container it stays, and the next process with that number there overwrites it.
 */
#ifndef SONDE_MAPS_DOTNETASK_H
#define SONDE_MAPS_DOTNETASK_H

#include <stdint.h>

#define DOTNETASK_FILE_MAX (256ull << 20)

struct dotnetask;

/* NULL: it could not be started. */
struct dotnetask *dotnetask_open(void);
/* Waits up to some seconds until the programs have stopped writing. NULL is fine. */
void dotnetask_close(struct dotnetask *d);

/* A client found code without names in this process. Nothing waits for the answer; asking again is
 * fine. */
void dotnetask_want(struct dotnetask *d, uint32_t pid, uint64_t start_ticks);
/* Logs what came of it. */
void dotnetask_tick(struct dotnetask *d);

#endif
