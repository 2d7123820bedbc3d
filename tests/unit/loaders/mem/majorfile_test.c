/* SPDX-License-Identifier: Apache-2.0 */
/* majorfile: a fault that read is a file's, or swap's. */
#include "loaders/mem/majorfile.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/test.h"

static const char MAPS[] =
	"55d520a47000-55d520b00000 r-xp 00000000 fe:01 1234                       /usr/bin/app\n"
	"55d521000000-55d521100000 rw-p 00000000 00:00 0                          [heap]\n"
	"7f0000000000-7f0000100000 r--s 00000000 fe:01 99                         /tmp/a\\012b (deleted)\n"
	"this is no line\n"
	"7f0000200000-7f0000300000 rw-p 00000000 00:00 0 \n";

static const char *named(uint64_t address)
{
	static char name[MAJOR_PATH_LEN + 1];
	uint64_t start = 0, end = 0;

	if (!major_named(MAPS, sizeof(MAPS) - 1, address, &start, &end, name))
		return NULL;
	assert_true(address >= start && address < end);
	return name;
}

TEST(the_file_is_what_is_mapped_there_and_memory_without_one_is_swap)
{
	assert_string_equal(named(0x55d520a47000), "/usr/bin/app");
	assert_string_equal(named(0x55d521000fff), "[swap]");
	assert_string_equal(named(0x7f00000fffff), "/tmp/a\nb");
	assert_string_equal(named(0x7f0000200000), "[swap]");
	assert_null(named(0x7f0000100000));
	assert_null(named(0));
}

TEST(of_a_long_path_the_end_is_kept)
{
	char maps[700] = "1000-2000 r--p 00000000 fe:01 7 /", name[MAJOR_PATH_LEN + 1];
	uint64_t start, end;
	size_t at = strlen(maps);

	memset(maps + at, 'x', 500);
	strcpy(maps + at + 500, "/end\n");
	assert_true(major_named(maps, strlen(maps), 0x1800, &start, &end, name));
	assert_int_equal(strlen(name), MAJOR_PATH_LEN);
	assert_string_equal(name + MAJOR_PATH_LEN - 4, "/end");
}

TEST(the_kernel_s_names_are_a_path_from_the_file_system_s_root)
{
	struct mem_file f = {.has_file = 1, .names = {"libc.so.6", "lib", "usr", "/"}};
	char name[MAJOR_PATH_LEN + 1];

	major_path(&f, name);
	assert_string_equal(name, "/usr/lib/libc.so.6");
	assert_true(major_is(&f, "/mnt/usr/lib/libc.so.6"));
	assert_false(major_is(&f, "/usr/lib/libm.so.6"));
	assert_false(major_is(&f, "[unknown file]"));
}

TEST(names_that_do_not_reach_the_root_say_so_and_may_fill_their_places)
{
	struct mem_file f = {.has_file = 1}, none = {0};
	char name[MAJOR_PATH_LEN + 1], longer[2 * MEM_FILE_NAME];

	for (int i = 0; i < MEM_FILE_NAMES; i++)
		memset(f.names[i], 'a' + i, MEM_FILE_NAME); /* without an end */
	major_path(&f, name);
	assert_memory_equal(name, ".../ffff", 8);
	assert_int_equal(strlen(name), MAJOR_PATH_LEN);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_true(major_is(&f, longer));
	major_path(&none, name);
	assert_string_equal(name, "");
}
