/* SPDX-License-Identifier: Apache-2.0 */
/* asset: the files of the page, which are part of the program: each one plain and gzipped. */
#ifndef SONDE_SERVE_ASSET_H
#define SONDE_SERVE_ASSET_H

#include <stddef.h>

struct asset {
	const char *path, *type; /* "/app.js", "text/javascript; charset=utf-8" */
	const char *plain, *packed;
	size_t plain_len, packed_len;
	char tag[24]; /* ETag, with its quotes: a hash of the content */
};

/* NULL: unknown. */
const struct asset *asset_find(const char *path);

#endif
