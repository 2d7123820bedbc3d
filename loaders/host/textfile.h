/* SPDX-License-Identifier: Apache-2.0 */
/* textfile: a file of /proc, /sys or a cgroup, read whole into a buffer that is kept for the next
 * one. */
#ifndef SONDE_HOST_FAMILY_TEXTFILE_H
#define SONDE_HOST_FAMILY_TEXTFILE_H

#include "schema/base/strbuf.h"

#define TEXTFILE_MAX (4u << 20) /* what is beyond is cut off */

/* Below `dirfd` (AT_FDCWD: here). 0: `out` is what it holds; or -errno, and it is "". */
int textfile_read(int dirfd, const char *path, struct strbuf *out);

#endif
