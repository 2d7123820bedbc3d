/* SPDX-License-Identifier: Apache-2.0 */
/* filecalls: reads and writes of files, and waits for locks of files: rows of call_row and lock_row
 * from the sums of an epoch that is over, and where containers see these files (place_row). */
#ifndef SONDE_DISK_FILECALLS_H
#define SONDE_DISK_FILECALLS_H

#include <stdint.h>

#include "loaders/disk/files.h"
#include "loaders/disk/hooks.h"
#include "loaders/lib/bpf/family.h"

#define FILECALLS_LASTING_NS 1000000000ll /* a wait that is not over has a row from then on */

/* `epoch` and earlier ones; `utc_ns`: into which bucket their rows go. */
void filecalls_drain(struct hooks *k, struct files *f, struct family_host *h, uint32_t epoch,
		     int64_t utc_ns);

#endif
