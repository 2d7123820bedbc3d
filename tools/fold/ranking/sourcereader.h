/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sourcereader: with which user's rights the text of a source file is read. Its path comes from
 * debug information, or from a script's own code object, so the author of the program has named it:
 * were it read with root's rights, a stranger's program could show any file. Users other than root
 * read with their own rights. Root reads
 *   1. a path below a folder that the person gave (--source-dir) with root's rights, but follows no
 *      link that leads out of the folder;
 *   2. any other path as the user whose processes ran the function in this recording; if these are
 * of several users, or in a container (whose paths, and whose root, are not the host's), or the
 *      recording was imported, as a user without rights (65534);
 *   3. if that user is root, as the owner of the file that the code is in; if that is gone, as the
 *      user without rights;
 *   4. of a store whose files belong to another user than root or `sonde`, as that user.
 */
#ifndef SONDE_TOOLS_SOURCEREADER_H
#define SONDE_TOOLS_SOURCEREADER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "tools/fold/fold.h"
#include "tools/select/select.h"

struct sourcereader {
	bool limited; /* false: with the rights of who asks */
	uint32_t uid, gid;
	char who[160]; /* whose rights these are, in words: "the owner of /usr/bin/app" */
};

/* For the text of a function: one of its frames. The fold must have leaves. */
void sourcereader_of(const struct fold *f, const struct selection *sel,
		     const struct fold_frame *function, struct sourcereader *out);
/* Opens a regular file of at most `most` bytes, with these rights. `below`: a folder that the path
 * begins with and must lie in, or NULL. The descriptor, or -errno: -EFBIG, -ENODEV (not a regular
 * file), -EPERM (these rights cannot be taken), ... */
int sourcereader_open(const struct sourcereader *r, const char *path, const char *below,
		      uint64_t most, struct stat *st);

#endif
