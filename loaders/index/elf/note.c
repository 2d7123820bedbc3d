/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/elf/note.h"

#include <elf.h>
#include <string.h>

#include "schema/base/cursor.h"

#define NOTE_GO_BUILD_ID 4

/* Go's linker counts the padding: its owner is "Go\0\0", four bytes. */
static bool name_is(const char *name, uint32_t len, const char *want)
{
	return name && len > strlen(want) && len <= strlen(want) + 2 &&
	       !memcmp(name, want, strlen(want) + 1) && !name[len - 1];
}

static void skip_padding(struct cursor *c, size_t align)
{
	size_t over = c->pos % align;

	/* the last note's padding may be missing */
	if (over)
		cursor_seek(c, cursor_left(c) < align - over ? c->len : c->pos + align - over);
}

void note_scan(const void *data, size_t len, size_t align, struct note_facts *facts)
{
	struct cursor c = cursor_init(data, len);

	align = align == 8 ? 8 : 4;
	while (cursor_left(&c) >= 12) {
		uint32_t name_len = cursor_u32(&c);
		uint32_t desc_len = cursor_u32(&c);
		uint32_t type = cursor_u32(&c);
		const char *name = cursor_bytes(&c, name_len);
		const void *desc;

		skip_padding(&c, align);
		desc = cursor_bytes(&c, desc_len);
		skip_padding(&c, align);
		if (c.bad)
			return;
		if (type == NOTE_GO_BUILD_ID && name_is(name, name_len, "Go"))
			facts->go = true;
		if (type == NT_GNU_BUILD_ID && name_is(name, name_len, "GNU") &&
		    !facts->build_id_len && desc_len && desc_len <= BUILD_ID_MAX) {
			memcpy(facts->build_id, desc, desc_len);
			facts->build_id_len = desc_len;
		}
	}
}
