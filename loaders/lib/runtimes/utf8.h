/* SPDX-License-Identifier: Apache-2.0 */
/* utf8: one character at the end of a text. */
#ifndef SONDE_RUNTIMES_UTF8_H
#define SONDE_RUNTIMES_UTF8_H

#include <stdint.h>

#include "schema/base/strbuf.h"

/* What is no character, and 0, becomes U+FFFD. */
void utf8_add(struct strbuf *to, uint32_t c);

#endif
