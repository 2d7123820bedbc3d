/* SPDX-License-Identifier: Apache-2.0 */
/* image: the reader, on indexes laid out by hand as in format.h, sound and damaged. */
#include <string.h>

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/image/checksum.h"
#include "schema/image/format.h"
#include "schema/image/go.h"
#include "schema/image/image.h"
#include "tests/unit/test.h"

/* All of a small index in one struct: what a writer would lay out. */
struct small {
	struct image_header head;
	struct image_section table[4];
	struct image_ident_record ident;
	struct image_segment segments[2];
	struct image_symbol_record symbols[4];
	char strings[24];
};

static void seal(struct small *s)
{
	image_checksums_make(s, sizeof(*s));
}

/* a [0x1000, 0x1010), b [0x1010, 0x1018), a again [0x1018, 0x1020), c [0x1040, 0x1050) */
static struct small small(void)
{
	struct small s = {
		.head = {.magic = IMAGE_MAGIC,
			 .version = IMAGE_VERSION,
			 .section_count = 4,
			 .total_size = sizeof(s)},
		.table =
			{
				{IMAGE_SECTION_STRINGS, 1, offsetof(struct small, strings),
				 sizeof(s.strings), 0},
				{IMAGE_SECTION_IDENT, sizeof(s.ident),
				 offsetof(struct small, ident), sizeof(s.ident), 0},
				{IMAGE_SECTION_SEGMENTS, sizeof(s.segments[0]),
				 offsetof(struct small, segments), sizeof(s.segments), 0},
				{IMAGE_SECTION_SYMBOLS, sizeof(s.symbols[0]),
				 offsetof(struct small, symbols), sizeof(s.symbols), 0},
			},
		.ident = {.build_id = {0xab, 0xcd},
			  .build_id_len = 2,
			  .content_hash = 42,
			  .symbol_base = 0x1000,
			  .machine = 62,
			  .flags = IMAGE_IDENT_GO},
		.segments = {{.vaddr = 0, .offset = 0, .file_size = 0x800, .mem_size = 0x800},
			     {.vaddr = 0x1000,
			      .offset = 0x700,
			      .file_size = 0x100,
			      .mem_size = 0x200,
			      .flags = IMAGE_SEGMENT_EXEC}},
		.symbols = {{0, 0x10, 1, 0},
			    {0x10, 8, 3, 0},
			    {0x18, 8, 1, 0x18},
			    {0x40, 0x10, 5, 0}},
		.strings = "\0a\0b\0c",
	};

	seal(&s);
	return s;
}

static const char *name_at(const struct image *img, uint64_t addr, uint64_t *start)
{
	struct image_symbol s;

	if (!image_symbol_at(img, addr, &s))
		return "";
	*start = s.addr;
	return s.name;
}

TEST(a_look_up_finds_the_piece_and_the_functions_start)
{
	struct small s = small();
	struct image *img = NULL;
	uint64_t at = 0;

	assert_int_equal(image_open_bytes(&s, sizeof(s), &img, NULL), 0);
	assert_string_equal(name_at(img, 0xfff, &at), "");
	assert_string_equal(name_at(img, 0x1000, &at), "a");
	assert_string_equal(name_at(img, 0x1011, &at), "b");
	assert_int_equal(at, 0x1010);
	assert_string_equal(name_at(img, 0x101f, &at), "a");
	assert_int_equal(at, 0x1000);
	assert_string_equal(name_at(img, 0x1020, &at), "");
	assert_string_equal(name_at(img, 0x104f, &at), "c");
	assert_string_equal(name_at(img, 0x1050, &at), "");
	assert_string_equal(name_at(img, UINT64_MAX, &at), "");
	assert_string_equal(name_at(img, 0, &at), "");
	assert_int_equal(image_symbol_count(img), 4);
	assert_true(image_ident(img)->go);
	assert_false(image_ident(img)->from_debug_file);
	assert_int_equal(image_ident(img)->content_hash, 42);
	image_close(img);
	image_close(NULL);
}

TEST(the_executable_segment_wins_where_two_share_a_page)
{
	struct small s = small();
	struct image *img = NULL;
	uint64_t v = 0;

	assert_int_equal(image_open_bytes(&s, sizeof(s), &img, NULL), 0);
	assert_true(image_offset_to_vaddr(img, 0x6ff, &v));
	assert_int_equal(v, 0x6ff);
	assert_true(image_offset_to_vaddr(img, 0x700, &v));
	assert_int_equal(v, 0x1000);
	assert_true(image_offset_to_vaddr(img, 0x7ff, &v));
	assert_int_equal(v, 0x10ff);
	assert_false(image_offset_to_vaddr(img, 0x800, &v));
	assert_false(image_offset_to_vaddr(img, UINT64_MAX, &v));
	image_close(img);
}

TEST(a_mapping_is_of_the_executable_segment_that_fills_most_of_it)
{
	/* as lld lays them out: the second begins inside the page that the first ends in, two pages
	 * on in memory */
	const struct image_exec seg[] = {{0x201800, 0x1800, 0x1000}, {0x204800, 0x2800, 0x3000}};
	uint64_t v = 7;
	struct small s = small();
	struct image *img = NULL;
	struct image_exec one[2];

	assert_true(
		image_exec_vaddr(seg, 2, 0x1000, 0x2000, &v)); /* begins before its segment does */
	assert_int_equal(v, 0x201000);
	assert_true(image_exec_vaddr(seg, 2, 0x2000, 0x4000, &v));
	assert_int_equal(v, 0x204000);
	assert_true(image_exec_vaddr(seg, 2, 0x3000, 0x1000, &v)); /* a piece of it */
	assert_int_equal(v, 0x205000);
	v = 7;
	assert_false(image_exec_vaddr(seg, 2, 0x6000, 0x1000, &v));
	assert_false(image_exec_vaddr(seg, 2, UINT64_MAX, UINT64_MAX, &v));
	assert_false(image_exec_vaddr(seg, 0, 0x2000, 0x1000, &v));
	assert_int_equal(v, 7);

	assert_int_equal(image_open_bytes(&s, sizeof(s), &img, NULL), 0);
	assert_int_equal(image_exec_segments(img, one, 2), 1);
	assert_int_equal(one[0].vaddr, 0x1000);
	assert_int_equal(one[0].offset, 0x700);
	assert_int_equal(one[0].size, 0x100);
	assert_int_equal(image_exec_segments(img, one, 0), 0);
	image_close(img);
}

/* Each lie has a correct checksum, as an attacker would write it. */
TEST(a_lie_with_a_right_checksum_is_refused)
{
	struct image *img = NULL;

	for (int lie = 0; lie < 21; lie++) {
		struct small s = small();

		switch (lie) {
		case 0:
			s.head.magic[0] = 'X';
			break;
		case 1:
			s.head.version++;
			break;
		case 2:
			s.head.total_size--;
			break;
		case 3:
			s.head.section_count = 3;
			break;
		case 4:
			s.head.section_count = UINT32_MAX;
			break;
		case 5:
			s.table[0].offset = UINT64_MAX - 7;
			break;
		case 6:
			s.table[0].size = UINT64_MAX;
			break;
		case 7:
			s.table[3].stride = 8;
			break;
		case 8:
			s.table[3].size -= 4;
			break;
		case 9:
			s.table[3].offset += 4;
			break;
		case 10:
			s.table[2].kind = IMAGE_SECTION_SYMBOLS;
			break;
		case 11:
			s.strings[sizeof(s.strings) - 1] = 'x';
			break;
		case 12:
			s.symbols[1].start = 0xf;
			break;
		case 13:
			s.symbols[0].size = 0;
			break;
		case 14:
			s.symbols[3].name = sizeof(s.strings);
			break;
		case 15:
			s.symbols[2].back = 0x19;
			break;
		case 16:
			s.ident.build_id_len = 65;
			break;
		case 17:
			s.table[1].size *= 2;
			break;
		case 18:
			s.table[0].size = 0;
			break;
		case 19:
			s.table[3].offset = 8;
			break;
		case 20:
			s.ident.symbol_base = UINT64_MAX - 0x4f;
			break;
		}
		seal(&s);
		assert_int_equal(image_open_bytes(&s, sizeof(s), &img, NULL), -EBADMSG);
		assert_null(img);
	}
}

/* The small index with one more section before the others. */
struct larger {
	struct image_header head;
	struct image_section table[5];
	uint64_t extra[30];
	char rest[sizeof(struct small) - offsetof(struct small, ident)];
};

static struct larger larger(uint32_t kind, uint32_t stride, uint64_t size)
{
	struct small s = small();
	struct larger l = {.head = s.head,
			   .table = {{kind, stride, offsetof(struct larger, extra), size, 0}}};

	memcpy(l.rest, &s.ident, sizeof(l.rest));
	for (int i = 0; i < 4; i++) {
		l.table[i + 1] = s.table[i];
		l.table[i + 1].offset +=
			offsetof(struct larger, rest) - offsetof(struct small, ident);
	}
	l.head.section_count = 5;
	l.head.total_size = sizeof(l);
	return l;
}

static void larger_seal(struct larger *l)
{
	image_checksums_make(l, sizeof(*l));
}

TEST(a_section_of_a_later_kind_is_passed_over)
{
	struct larger l = larger(0x7fffffff, 4, 0);
	struct image *img = NULL;

	larger_seal(&l);
	assert_int_equal(image_open_bytes(&l, sizeof(l), &img, NULL), 0);
	assert_int_equal(image_symbol_count(img), 4);
	image_close(img);
}

TEST(unwind_rows_are_given_out_only_where_their_counts_fit)
{
	/* 1 page, 1 rule, 1 extension, 1 row: 40 + 8 + 8 + 16 + 8 bytes */
	const uint32_t head[10] = {0x1000, 0, 1, 1, 1, 1, 1};
	struct larger l = larger(IMAGE_SECTION_UNWIND, 1, 80);
	struct image *img = NULL;
	const void *data = NULL;
	size_t size = 0;

	memcpy(l.extra, head, sizeof(head));
	larger_seal(&l);
	assert_int_equal(image_open_bytes(&l, sizeof(l), &img, NULL), 0);
	assert_true(image_unwind(img, &data, &size));
	assert_int_equal(size, 80);
	assert_ptr_equal(data, l.extra);
	image_close(take_ptr(img));
	for (int lie = 0; lie < 8; lie++) {
		struct larger m = l;
		uint32_t *h = (uint32_t *)m.extra;

		switch (lie) {
		case 0:
			m.table[0].size = 81;
			break;
		case 1:
			m.table[0].size = 24;
			break;
		case 2:
			h[3] = 2;
			break;
		case 3:
			h[4] = UINT32_MAX;
			break;
		case 4:
			h[5] = 0;
			break;
		case 5:
			m.table[0].stride = 8;
			break;
		case 6:
			m.table[0].offset += 4;
			break;
		case 7:
			h[6] = 3;
			break;
		}
		larger_seal(&m);
		assert_int_equal(image_open_bytes(&m, sizeof(m), &img, NULL), -EBADMSG);
		assert_null(img);
	}
}

TEST(what_is_known_of_go_is_one_record_or_the_index_is_refused)
{
	struct larger l = larger(IMAGE_SECTION_GO, sizeof(struct image_go_record),
				 sizeof(struct image_go_record));
	struct image_go_record *r = (struct image_go_record *)l.extra, out;
	struct image *img = NULL;

	memset(r->version, 'x', sizeof(r->version));
	r->variables[IMAGE_GO_ALLGS] = 7;
	larger_seal(&l);
	assert_int_equal(image_open_bytes(&l, sizeof(l), &img, NULL), 0);
	assert_true(image_go(img, &out));
	assert_int_equal(strlen(out.version), sizeof(out.version) - 1);
	assert_int_equal(out.variables[IMAGE_GO_ALLGS], 7);
	image_close(take_ptr(img));
	l.table[0].size = 0;
	larger_seal(&l);
	assert_int_equal(image_open_bytes(&l, sizeof(l), &img, NULL), -EBADMSG);
	l.table[0] = (struct image_section){IMAGE_SECTION_GO, 8, l.table[0].offset, 8, 0};
	larger_seal(&l);
	assert_int_equal(image_open_bytes(&l, sizeof(l), &img, NULL), -EBADMSG);
	l.table[0].kind = 0x7fffffff;
	larger_seal(&l);
	assert_int_equal(image_open_bytes(&l, sizeof(l), &img, NULL), 0);
	assert_false(image_go(img, &out));
	image_close(img);
}

TEST(what_is_known_of_python_is_given_out_as_it_is)
{
	struct larger l = larger(IMAGE_SECTION_PYTHON, 1, 24);
	const void *data = NULL;
	struct image *img = NULL;
	size_t size = 0;

	larger_seal(&l);
	assert_int_equal(image_open_bytes(&l, sizeof(l), &img, NULL), 0);
	assert_true(image_part(img, IMAGE_SECTION_PYTHON, &data, &size));
	assert_int_equal(size, 24);
	assert_ptr_equal(data, l.extra);
	image_close(take_ptr(img));
	l.table[0].size = UINT64_MAX / 2;
	larger_seal(&l);
	assert_int_equal(image_open_bytes(&l, sizeof(l), &img, NULL), -EBADMSG);
	l.table[0] = (struct image_section){0x7fffffff, 1, l.table[0].offset, 24, 0};
	larger_seal(&l);
	assert_int_equal(image_open_bytes(&l, sizeof(l), &img, NULL), 0);
	assert_false(image_part(img, IMAGE_SECTION_PYTHON, &data, &size));
	image_close(img);
}

TEST(a_descriptor_may_be_closed_after_opening)
{
	struct small s = small();
	struct image *img = NULL;
	uint64_t at;
	int fd = memfd_create("index", MFD_CLOEXEC);

	assert_int_equal(image_open_fd(fd, &img, NULL), -EBADMSG);
	assert_int_equal(write(fd, &s, sizeof(s)), sizeof(s));
	assert_int_equal(image_open_fd(fd, &img, NULL), 0);
	close(fd);
	assert_string_equal(name_at(img, 0x1000, &at), "a");
	image_close(img);
	assert_int_equal(image_open_fd(-1, &img, NULL), -EBADF);
}

TEST(one_that_is_mapped_is_known_by_its_file)
{
	struct small s = small();
	struct image *img = NULL;
	int fd = memfd_create("index", MFD_CLOEXEC), again, other;

	assert_int_equal(write(fd, &s, sizeof(s)), sizeof(s));
	assert_int_equal(image_open_fd(fd, &img, NULL), 0);
	again = dup(fd); /* as it comes over a socket */
	close(fd);
	other = memfd_create("index", MFD_CLOEXEC);
	assert_int_equal(write(other, &s, sizeof(s)), sizeof(s));
	assert_true(image_is_of(img, again));
	assert_false(image_is_of(img, other));
	assert_false(image_is_of(img, -1));
	close(again);
	close(other);
	image_close(img);
}

/* Publishing rows reads no names; looking up a name finds them damaged. */
TEST(rows_are_opened_without_the_rest_and_checked_alone)
{
	const uint32_t head[10] = {0x1000, 0, 1, 1, 1, 1, 1};
	struct larger l = larger(IMAGE_SECTION_UNWIND, 1, 80);
	struct image *img = NULL;
	struct image_exec text;
	const void *data = NULL;
	size_t size = 0;
	int fd = memfd_create("index", MFD_CLOEXEC);

	memcpy(l.extra, head, sizeof(head));
	larger_seal(&l);
	l.rest[sizeof(l.rest) - 2] ^= 1; /* in the strings */
	assert_int_equal(pwrite(fd, &l, sizeof(l), 0), sizeof(l));
	assert_int_equal(image_open_fd(fd, &img, NULL), -EBADMSG);
	assert_int_equal(image_open_rows_fd(fd, &img, NULL), 0);
	assert_true(image_unwind(img, &data, &size));
	assert_int_equal(size, 80);
	assert_memory_equal(data, l.extra, size);
	assert_int_equal(image_exec_segments(img, &text, 1), 1);
	assert_int_equal(text.vaddr, 0x1000);
	assert_int_equal(image_symbol_count(img), 0);
	image_close(take_ptr(img));
	for (size_t at = 0; at < sizeof(l); at++) {
		bool in_rows = at >= offsetof(struct larger, extra) &&
			       at < offsetof(struct larger, extra) + size;
		struct larger m = l;

		if (at >= offsetof(struct larger, extra) && !in_rows)
			continue;
		((char *)&m)[at] ^= 0x10;
		assert_int_equal(pwrite(fd, &m, sizeof(m), 0), sizeof(m));
		assert_int_equal(image_open_rows_fd(fd, &img, NULL), -EBADMSG);
	}
	close(fd);
}

TEST(a_sound_one_is_not_hashed_again_but_must_fit_all_the_same)
{
	struct small s = small();
	struct image *img = NULL;
	uint64_t at;
	int fd = memfd_create("index", MFD_CLOEXEC);

	s.head.checksum++;
	assert_int_equal(write(fd, &s, sizeof(s)), sizeof(s));
	assert_int_equal(image_open_fd(fd, &img, NULL), -EBADMSG);
	assert_int_equal(image_open_sound_fd(fd, &img, NULL), 0);
	assert_string_equal(name_at(img, 0x1000, &at), "a");
	image_close(img);
	assert_int_equal(ftruncate(fd, sizeof(s) - 8), 0);
	assert_int_equal(image_open_sound_fd(fd, &img, NULL), -EBADMSG);
	close(fd);
}
