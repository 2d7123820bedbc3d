/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealrare: the rare stacks of a day, hour by hour, so that a day of builds is not mostly dictionary. Not for other rooms.
 *
 *   1. An hour is looked at once it has been over for an hour, and again where more of it came meanwhile.
 *   2. A group is the samples of one executable in one container, in one run: all its processes together. A frame of a stack is
 *      kept where at least 1 in RARE_SHARE of the group's samples of that hour are in it or below it.
 *   3. A stack whose leaf is not kept ends in the function "[rare]", behind its last frame that is. Its process, thread and
 *      times stay as they are, and samples do.
 *   4. What its functions had in it is added to rare_row (migration 13): self to the leaf's; total to each that is not in what is
 *      left, once.
 *   5. A group is left as it is where those sums would take more room than the stacks.
 *   6. What nothing points to any more goes: series, stacks, frames. Functions stay.
 */
#ifndef SONDE_STORE_SEALRARE_H
#define SONDE_STORE_SEALRARE_H

#include <stdint.h>

#include "schema/store/sealdict.h"

#define RARE_SHARE 5000

/* After all segments were taken in. `t0`: the day's; `now_ns`: UTC. *samples: how many stand as rare now that did not. A SQLite code. */
int sealrare_fold(struct sealdict *d, int64_t t0, int64_t now_ns, uint64_t *samples);

#endif
