/* SPDX-License-Identifier: Apache-2.0 */
/* pack: gzip of bytes in memory, at the level that costs least. */
#ifndef SONDE_PUSH_PACK_H
#define SONDE_PUSH_PACK_H

#include "schema/base/err.h"
#include "schema/base/strbuf.h"

int pack(const struct strbuf *in, struct strbuf *out, struct err *e);

#endif
