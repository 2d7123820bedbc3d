/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/elf/debuglink.h"

#include <string.h>

#include "schema/base/cursor.h"

bool debuglink_parse(const void *data, size_t len, struct debuglink *out)
{
	struct cursor c = cursor_init(data, len);
	struct debuglink link = {0};
	size_t n = 0;
	const char *name = cursor_str(&c, &n);

	if (!name || !n || n >= sizeof(link.name) || memchr(name, '/', n) || !strcmp(name, ".") ||
	    !strcmp(name, ".."))
		return false;
	memcpy(link.name, name, n);
	cursor_seek(&c, (c.pos + 3) & ~(size_t)3);
	link.crc = cursor_u32(&c);
	if (c.bad)
		return false;
	*out = link;
	return true;
}

bool debugaltlink_parse(const void *data, size_t len, struct debugaltlink *out)
{
	struct cursor c = cursor_init(data, len);
	struct debugaltlink link = {0};
	size_t n = 0;
	const char *name = cursor_str(&c, &n);

	if (!name || !n || n >= sizeof(link.name) || len - c.pos < 2 ||
	    len - c.pos > sizeof(link.build_id))
		return false;
	memcpy(link.name, name, n);
	link.build_id_len = len - c.pos;
	memcpy(link.build_id, (const uint8_t *)data + c.pos, link.build_id_len);
	*out = link;
	return true;
}
