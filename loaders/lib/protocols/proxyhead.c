/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/protocols/proxyhead.h"

#include <string.h>

#include "loaders/lib/protocols/bytes.h"

#define LINE_MAX_1 107
#define HEAD_2     16

size_t proxyhead_size(const uint8_t *p, size_t n)
{
	static const uint8_t sign[12] = "\r\n\r\n\0\r\nQUIT\n";
	const uint8_t *lf;
	size_t size;

	if (n >= HEAD_2 && !memcmp(p, sign, sizeof(sign)) && p[12] >> 4 == 2) {
		size = HEAD_2 + ((size_t)p[14] << 8 | p[15]);
		return size <= n ? size : 0;
	}
	if (!bytes_begin(p, n, "PROXY TCP4 ") && !bytes_begin(p, n, "PROXY TCP6 ") &&
	    !bytes_begin(p, n, "PROXY UNKNOWN"))
		return 0;
	lf = memchr(p, '\n', n < LINE_MAX_1 ? n : LINE_MAX_1);
	return lf && lf[-1] == '\r' ? (size_t)(lf - p) + 1 : 0;
}
