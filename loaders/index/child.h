/* SPDX-License-Identifier: Apache-2.0 */
/* child: the sandboxed side of indexproto.h: reads from descriptors 3, 4, 5 and writes an index to
 * 5. */
#ifndef SONDE_INDEX_CHILD_H
#define SONDE_INDEX_CHILD_H

#include "loaders/index/indexer.h"

/* Does the work of one sonde-index child; returns its exit status (0 or 1), which says the same as
 * MSG_DONE. */
int child_main(enum index_lines lines, bool rows_first);

#endif
