/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/world/textmove.h"

static bool has_file(const struct proc_map *m)
{
	return m->inode && m->path_len && m->path[0] == '/';
}

static bool is_same_file(const struct proc_map *a, const struct proc_map *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

bool textmove_find(const char *maps, size_t len, uint64_t start, struct proc_map *out)
{
	struct proc_map before = {0}, m = {0};
	uint64_t end = 0; /* of what lies next to each other from `before` on */
	bool in_hole = false;
	size_t pos = 0;

	while (proc_next_map(maps, len, &pos, &m)) {
		if (m.inode || m.path_len) {
			if (in_hole)
				break;
			before = m;
			end = m.end;
			continue;
		}
		if (m.start != end) /* something is not mapped before it */
			before = (struct proc_map){0};
		in_hole |= m.start == start && has_file(&before);
		end = m.end;
		if (m.start > start && !in_hole)
			return false;
	}
	if (!in_hole || !has_file(&m) || m.start != end || !is_same_file(&before, &m) ||
	    m.offset - before.offset != m.start - before.start)
		return false;
	*out = (struct proc_map){.offset = before.offset + (start - before.start),
				 .inode = before.inode,
				 .major = before.major,
				 .minor = before.minor,
				 .path = before.path,
				 .path_len = before.path_len};
	return true;
}
