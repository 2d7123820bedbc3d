/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/utf8.h"

void utf8_add(struct strbuf *to, uint32_t c)
{
	if (!c || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
		c = 0xfffd;
	if (c < 0x80) {
		strbuf_addch(to, (char)c);
		return;
	}
	if (c < 0x800) {
		strbuf_addch(to, (char)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			strbuf_addch(to, (char)(0xe0 | c >> 12));
		} else {
			strbuf_addch(to, (char)(0xf0 | c >> 18));
			strbuf_addch(to, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		strbuf_addch(to, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	strbuf_addch(to, (char)(0x80 | (c & 0x3f)));
}
