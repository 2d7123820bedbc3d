/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc/PID/maps says of a text that was copied to its old place, and what only looks like it.
 */
#include "loaders/maps/world/textmove.h"

#include <string.h>

#include "tests/unit/test.h"

#define BEFORE "00b72000-00c00000 r-xp 00772000 fe:00 247580     /usr/bin/node\n"
#define COPY   "00c00000-02400000 r-xp 00000000 00:00 0 \n"
#define BEHIND "02400000-025fe000 r-xp 02000000 fe:00 247580     /usr/bin/node\n"

static bool find(const char *maps, uint64_t start, struct proc_map *out)
{
	return textmove_find(maps, strlen(maps), start, out);
}

TEST(a_hole_in_the_mappings_of_a_file_is_its_text)
{
	struct proc_map m;

	assert_true(find(
		"00400000-00b72000 r--p 00000000 fe:00 247580 /usr/bin/node\n" BEFORE COPY BEHIND,
		0xc00000, &m));
	assert_int_equal(m.offset, 0x800000);
	assert_int_equal(m.inode, 247580);
	assert_int_equal(m.path_len, strlen("/usr/bin/node"));
	assert_memory_equal(m.path, "/usr/bin/node", m.path_len);
}

TEST(a_part_of_a_hole_has_its_own_offset)
{
	struct proc_map m;

	assert_true(find(BEFORE "00c00000-00e00000 r-xp 00000000 00:00 0 \n"
				"00e00000-02400000 rw-p 00000000 00:00 0 \n" BEHIND,
			 0xe00000, &m));
	assert_int_equal(m.offset, 0xa00000);
}

TEST(what_does_not_fit_exactly_is_none)
{
	struct proc_map m;

	assert_false(find(COPY, 0xc00000, &m));
	assert_false(find(BEFORE COPY, 0xc00000, &m));
	assert_false(find(COPY BEHIND, 0xc00000, &m));
	assert_false(find(BEFORE COPY BEHIND, 0xb72000, &m));
	assert_false(find(BEFORE COPY BEHIND, 0xd00000, &m));
	assert_false(find(BEFORE COPY
			  "02400000-025fe000 r-xp 01fff000 fe:00 247580 /usr/bin/node\n",
			  0xc00000, &m)); /* another offset */
	assert_false(find(BEFORE COPY
			  "02400000-025fe000 r-xp 02000000 fe:00 247581 /usr/bin/node\n",
			  0xc00000, &m)); /* another file */
	assert_false(find(BEFORE "00c00000-02300000 r-xp 00000000 00:00 0 \n" BEHIND, 0xc00000,
			  &m)); /* a part of it is not mapped */
	assert_false(
		find(BEFORE "00c01000-02400000 r-xp 00000000 00:00 0 \n" BEHIND, 0xc01000, &m));
	assert_false(find(BEFORE "00c00000-02400000 r-xp 00000000 00:00 0 [heap]\n" BEHIND,
			  0xc00000, &m));
	assert_false(find("", 0xc00000, &m));
}
