/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files through the indexer: made by hand, right and wrong. */
#include "schema/base/array.h"
#include "tests/unit/loaders/index/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "loaders/index/elf/source.h"
#include "schema/base/hash.h"
#include "tests/unit/loaders/index/elfmaker.h"

static const char strings[] = "\0alpha\0beta\0memcpy@@GLIBC_2.14\0_ZN3foo3barEv";
enum { ALPHA = 1, BETA = 7, MEMCPY = 12, FOO_BAR = 31 };

static void simple_library(struct elfmaker *m)
{
	const Elf64_Sym syms[] = {
		{0},
		maker_symbol(ALPHA, STB_GLOBAL, STT_FUNC, MAKER_TEXT, 16),
		maker_symbol(BETA, STB_GLOBAL, STT_OBJECT, MAKER_TEXT + 16, 16),
		maker_symbol(MEMCPY, STB_GLOBAL, STT_GNU_IFUNC, MAKER_TEXT + 32, 8),
		maker_symbol(FOO_BAR, STB_WEAK, STT_FUNC, MAKER_TEXT + 48, 8),
	};

	maker_library(m, 64, syms, 5, strings, sizeof(strings));
}

static struct made made_of(struct elfmaker *m, const struct index_finder *finder)
{
	struct made r = made_of_bytes(m->bytes.buf, m->bytes.len, finder);

	maker_release(m);
	return r;
}

TEST(functions_are_named_and_objects_are_not)
{
	struct elfmaker m;
	struct made r;

	simple_library(&m);
	maker_finish(&m);
	r = made_of(&m, NULL);
	assert_int_equal(r.rc, 0);
	assert_string_equal(made_name(&r, MAKER_TEXT), "alpha");
	assert_string_equal(made_name(&r, MAKER_TEXT + 15), "alpha");
	assert_string_equal(made_name(&r, MAKER_TEXT + 16), "");
	assert_string_equal(made_name(&r, MAKER_TEXT + 33), "memcpy");
	assert_string_equal(made_name(&r, MAKER_TEXT + 50), "foo::bar()");
	assert_string_equal(made_name(&r, MAKER_TEXT + 56), "");
	assert_int_equal(strncmp(r.r.key, "nobuildid-", 10), 0);
	assert_int_equal(strlen(r.r.key), 26);
	made_release(&r);
}

TEST(an_offset_in_the_file_becomes_an_address)
{
	struct elfmaker m;
	struct made r;
	uint64_t v = 0;

	simple_library(&m);
	maker_segment(&m, PT_LOAD, PF_R, 0, 0x90000, 4096);
	maker_finish(&m);
	r = made_of(&m, NULL);
	assert_true(image_offset_to_vaddr(r.img, MAKER_DATA + 3, &v));
	assert_int_equal(v, MAKER_TEXT + 3);
	assert_true(image_offset_to_vaddr(r.img, MAKER_DATA + 64, &v));
	assert_int_equal(v, 0x90000 + MAKER_DATA + 64);
	assert_false(image_offset_to_vaddr(r.img, 4096, &v));
	made_release(&r);
}

TEST(a_file_with_another_symbol_has_another_key)
{
	struct elfmaker m;
	struct made a, b, c;

	simple_library(&m);
	maker_finish(&m);
	a = made_of_bytes(m.bytes.buf, m.bytes.len, NULL);
	b = made_of_bytes(m.bytes.buf, m.bytes.len, NULL);
	*(char *)memmem(m.bytes.buf, m.bytes.len, "alpha", 5) = 'A';
	c = made_of(&m, NULL);
	assert_string_equal(a.r.key, b.r.key);
	assert_string_not_equal(a.r.key, c.r.key);
	made_release(&a);
	made_release(&b);
	made_release(&c);
}

TEST(the_build_id_is_in_the_key_and_does_not_decide_alone)
{
	static const char note[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xde\xad\xbe\xef";
	char keys[2][IMAGE_KEY_MAX];

	for (int i = 0; i < 2; i++) {
		struct elfmaker m;
		struct made r;

		simple_library(&m);
		maker_section(&m, ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, note,
			      sizeof(note) - 1);
		maker_finish(&m);
		if (i)
			memcpy(memmem(m.bytes.buf, m.bytes.len, "alpha", 5), "gamma", 5);
		r = made_of(&m, NULL);
		strcpy(keys[i], r.r.key);
		assert_int_equal(image_ident(r.img)->build_id_len, 4);
		made_release(&r);
	}
	assert_int_equal(strncmp(keys[0], "deadbeef-", 9), 0);
	assert_int_equal(strncmp(keys[1], "deadbeef-", 9), 0);
	assert_string_not_equal(keys[0], keys[1]);
}

TEST(a_damaged_index_is_refused)
{
	struct elfmaker m;
	struct made r;
	struct image *img = NULL;

	simple_library(&m);
	maker_finish(&m);
	r = made_of(&m, NULL);
	for (size_t i = 0; i < r.r.size; i += 3) {
		((uint8_t *)r.r.data)[i] ^= 0x40;
		/* the padding of the header and of the sections is covered as well */
		assert_int_equal(image_open_bytes(r.r.data, r.r.size, &img, NULL), -EBADMSG);
		((uint8_t *)r.r.data)[i] ^= 0x40;
	}
	for (size_t len = 0; len < r.r.size; len += 7)
		assert_int_equal(image_open_bytes(r.r.data, len, &img, NULL), -EBADMSG);
	made_release(&r);
}

/* ---- debug files ---- */

struct shelf {
	int fd[3];
	uint32_t asked;
};

static int shelf_debuglink(void *ctx, const char *name, uint32_t n)
{
	struct shelf *s = ctx;

	assert_string_equal(name, "x.debug");
	s->asked++;
	return n < 3 ? dup(s->fd[n]) : -1;
}

static int shelf_build_id(void *ctx, const uint8_t *id, size_t len)
{
	struct shelf *s = ctx;

	(void)id;
	assert_int_equal(len, 4);
	s->asked++;
	return dup(s->fd[0]);
}

static int memory_file(const void *data, size_t len)
{
	int fd = memfd_create("debug", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	return fd;
}

TEST(a_debuglink_counts_only_with_its_crc)
{
	struct elfmaker stripped, debug;
	struct shelf shelf = {{-1, -1, -1}, 0};
	const struct index_finder finder = {.ctx = &shelf, .by_debuglink = shelf_debuglink};
	char link[12] = "x.debug";
	uint32_t crc;
	struct made r;

	simple_library(&debug);
	maker_finish(&debug);
	crc = (uint32_t)crc32(0, (const Bytef *)debug.bytes.buf, (uInt)debug.bytes.len);
	memcpy(link + 8, &crc, 4);
	/* first one with the right content but a byte more, then something else, then the right one
	 */
	shelf.fd[1] = memory_file("no elf", 6);
	shelf.fd[2] = memory_file(debug.bytes.buf, debug.bytes.len);
	strbuf_addch(&debug.bytes, 'x');
	shelf.fd[0] = memory_file(debug.bytes.buf, debug.bytes.len);
	maker_release(&debug);

	maker_library(&stripped, 64, NULL, 0, NULL, 0);
	maker_section(&stripped, ".gnu_debuglink", SHT_PROGBITS, 0, link, sizeof(link));
	maker_finish(&stripped);
	r = made_of(&stripped, &finder);
	assert_int_equal(shelf.asked, 3);
	assert_true(image_ident(r.img)->from_debug_file);
	assert_string_equal(made_name(&r, MAKER_TEXT), "alpha");
	made_release(&r);
	for (int i = 0; i < 3; i++)
		close(shelf.fd[i]);
}

TEST(a_debug_file_of_another_build_is_not_used)
{
	static const char ids[2][20] = {"\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xde\xad\xbe\xef",
					"\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xde\xad\xbe\xee"};

	for (int same = 0; same < 2; same++) {
		struct elfmaker stripped, debug;
		struct shelf shelf = {{-1, -1, -1}, 0};
		const struct index_finder finder = {.ctx = &shelf, .by_build_id = shelf_build_id};
		struct made r;

		simple_library(&debug);
		maker_section(&debug, ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, ids[!same], 20);
		maker_finish(&debug);
		shelf.fd[0] = memory_file(debug.bytes.buf, debug.bytes.len);
		maker_release(&debug);
		maker_library(&stripped, 64, NULL, 0, NULL, 0);
		maker_section(&stripped, ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, ids[0], 20);
		maker_finish(&stripped);
		r = made_of(&stripped, &finder);
		assert_int_equal(shelf.asked, 1);
		assert_string_equal(made_name(&r, MAKER_TEXT), same ? "alpha" : "");
		assert_int_equal(image_ident(r.img)->from_debug_file, same);
		made_release(&r);
		close(shelf.fd[0]);
	}
}

TEST(packed_debug_data_names_a_stripped_file)
{
	struct elfmaker stripped, debug;
	uint8_t packed[8192];
	size_t packed_len = 0;
	struct made r;

	simple_library(&debug);
	maker_finish(&debug);
	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL,
						 (uint8_t *)debug.bytes.buf, debug.bytes.len,
						 packed, &packed_len, sizeof(packed)),
			 LZMA_OK);
	maker_release(&debug);
	maker_library(&stripped, 64, NULL, 0, NULL, 0);
	maker_section(&stripped, ".gnu_debugdata", SHT_PROGBITS, 0, packed, packed_len);
	maker_finish(&stripped);
	r = made_of(&stripped, NULL);
	assert_string_equal(made_name(&r, MAKER_TEXT), "alpha");
	assert_string_equal(made_name(&r, MAKER_TEXT + 50), "foo::bar()");
	made_release(&r);
}

/* ---- no sections ---- */

/* A library whose only tables are those the loader uses; `gnu` chooses the kind of hash table. */
static void loader_only(struct elfmaker *m, bool gnu)
{
	const Elf64_Sym syms[] = {
		{0},
		maker_symbol(0, STB_GLOBAL, STT_FUNC, 0, 0),
		maker_symbol(ALPHA, STB_GLOBAL, STT_FUNC, MAKER_TEXT, 16),
		maker_symbol(FOO_BAR, STB_WEAK, STT_FUNC, MAKER_TEXT + 48, 8),
	};
	const uint32_t sysv[2] = {1, 4};
	/* 1 bucket, symbols from 2 on, 1 bloom word, shift; bloom (2 words); bucket: 2; chain:
	 * even, odd (the end) */
	const uint32_t hashed[9] = {1, 2, 1, 6, 0, 0, 2, 0x1000, 0x1001};
	Elf64_Dyn dyn[5] = {{.d_tag = DT_SYMTAB},
			    {.d_tag = DT_STRTAB},
			    {.d_tag = DT_STRSZ},
			    {.d_tag = gnu ? DT_GNU_HASH : DT_HASH},
			    {.d_tag = DT_NULL}};
	const Elf64_Shdr *s;

	maker_library(m, 64, NULL, 0, NULL, 0);
	dyn[0].d_un.d_ptr =
		maker_section(m, ".dynsym", SHT_DYNSYM, SHF_ALLOC, syms, sizeof(syms))->sh_addr;
	dyn[1].d_un.d_ptr =
		maker_section(m, ".dynstr", SHT_STRTAB, SHF_ALLOC, strings, sizeof(strings))
			->sh_addr;
	dyn[2].d_un.d_val = sizeof(strings);
	dyn[3].d_un.d_ptr = maker_section(m, ".hash", SHT_HASH, SHF_ALLOC, gnu ? hashed : sysv,
					  gnu ? sizeof(hashed) : sizeof(sysv))
				    ->sh_addr;
	s = maker_section(m, ".dynamic", SHT_DYNAMIC, SHF_ALLOC, dyn, sizeof(dyn));
	maker_segment(m, PT_DYNAMIC, PF_R, s->sh_offset, s->sh_addr, sizeof(dyn));
	m->segments[0].p_filesz = m->segments[0].p_memsz = m->bytes.len;
	maker_finish(m);
	/* and now the section table is gone */
	((Elf64_Ehdr *)m->bytes.buf)->e_shoff = 0;
	((Elf64_Ehdr *)m->bytes.buf)->e_shnum = 0;
	((Elf64_Ehdr *)m->bytes.buf)->e_shstrndx = 0;
}

TEST(a_file_without_sections_is_named_by_its_dynamic_part)
{
	for (int gnu = 0; gnu < 2; gnu++) {
		struct elfmaker m;
		struct made r;

		loader_only(&m, gnu);
		r = made_of(&m, NULL);
		assert_int_equal(r.rc, 0);
		assert_string_equal(made_name(&r, MAKER_TEXT), "alpha");
		assert_string_equal(made_name(&r, MAKER_TEXT + 50), "foo::bar()");
		made_release(&r);
	}
}

TEST(a_hash_chain_without_end_stops_at_the_files)
{
	struct elfmaker m;
	struct made r;
	uint32_t *hash;

	loader_only(&m, true);
	hash = memmem(m.bytes.buf, m.bytes.len, "\1\0\0\0\2\0\0\0\1\0\0\0\6\0\0\0", 16);
	hash[8] = 0x1000;
	for (size_t i = 9; (char *)(hash + i + 1) <= m.bytes.buf + m.bytes.len; i++)
		hash[i] &= ~1u;
	hash[0] = 0xffffffff; /* and more buckets than any file holds */
	r = made_of(&m, NULL);
	assert_string_equal(made_name(&r, MAKER_TEXT), "");
	made_release(&r);
}

/* ---- lies ---- */

TEST(what_is_no_program_is_refused)
{
	static const uint16_t types[] = {ET_REL, ET_CORE, ET_NONE, 0xffff};
	struct index_result r;
	struct elfmaker m;

	assert_int_equal(indexer_run_bytes("", 0, NULL, &r, NULL), -ENOEXEC);
	assert_int_equal(indexer_run_bytes("\177ELF", 4, NULL, &r, NULL), -ENOEXEC);
	assert_int_equal(
		indexer_run_bytes(
			"#!/bin/sh\n                                                      ", 64,
			NULL, &r, NULL),
		-ENOEXEC);
	simple_library(&m);
	maker_finish(&m);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		((Elf64_Ehdr *)m.bytes.buf)->e_type = types[i];
		assert_int_equal(indexer_run_bytes(m.bytes.buf, m.bytes.len, NULL, &r, NULL),
				 -ENOEXEC);
	}
	((Elf64_Ehdr *)m.bytes.buf)->e_type = ET_DYN;
	((Elf64_Ehdr *)m.bytes.buf)->e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(indexer_run_bytes(m.bytes.buf, m.bytes.len, NULL, &r, NULL), -ENOEXEC);
	maker_release(&m);
}

TEST(huge_sizes_cost_only_their_section)
{
	struct elfmaker m;
	struct made r;

	simple_library(&m);
	maker_section(&m, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, "x", 1)->sh_size = UINT64_MAX - 3;
	maker_section(&m, ".gnu_debugdata", SHT_PROGBITS, 0, "x", 1)->sh_size = 1ull << 62;
	maker_section(&m, ".note.x", SHT_NOTE, 0, "x", 1)->sh_size = UINT64_MAX;
	maker_section(&m, ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, "x", 1)->sh_size =
		UINT64_MAX / 2;
	maker_section(&m, ".rela", SHT_RELA, SHF_ALLOC, "x", 1)->sh_size = UINT64_MAX / 2;
	maker_finish(&m);
	r = made_of(&m, NULL);
	assert_int_equal(r.rc, 0);
	assert_string_equal(made_name(&r, MAKER_TEXT), "alpha");
	made_release(&r);
}

TEST(names_outside_of_the_string_table_are_no_names)
{
	const Elf64_Sym syms[] = {
		{0},
		maker_symbol(sizeof(strings), STB_GLOBAL, STT_FUNC, MAKER_TEXT, 16),
		maker_symbol(0xffffffff, STB_GLOBAL, STT_FUNC, MAKER_TEXT + 16, 16),
		maker_symbol(ALPHA, STB_GLOBAL, STT_FUNC, MAKER_TEXT + 32, UINT64_MAX),
		maker_symbol(BETA, STB_GLOBAL, STT_FUNC, UINT64_MAX - 1, 16),
	};
	struct elfmaker m;
	struct made r;

	maker_library(&m, 64, syms, 5, strings, sizeof(strings));
	maker_finish(&m);
	r = made_of(&m, NULL);
	assert_int_equal(r.rc, 0);
	assert_int_equal(image_symbol_count(r.img), 1);
	assert_string_equal(made_name(&r, MAKER_TEXT + 63), "alpha");
	assert_string_equal(made_name(&r, MAKER_TEXT + 64), "");
	made_release(&r);
}

/* Every bit of the tables turned, one after the other: whatever comes out, it is an error or a
 * sound index. */
TEST(no_turned_bit_leads_out_of_bounds)
{
	struct elfmaker m;

	loader_only(&m, true);
	for (size_t bit = 0; bit < 8 * m.bytes.len; bit++) {
		struct made r;

		m.bytes.buf[bit / 8] ^= (char)(1 << bit % 8);
		r = made_of_bytes(m.bytes.buf, m.bytes.len, NULL);
		made_release(&r);
		m.bytes.buf[bit / 8] ^= (char)(1 << bit % 8);
	}
	maker_release(&m);
}

TEST(no_cut_leads_out_of_bounds)
{
	struct elfmaker m;

	simple_library(&m);
	maker_finish(&m);
	for (size_t len = 0; len < m.bytes.len; len++) {
		char *copy = malloc(len + 1);
		struct made r;

		memcpy(copy, m.bytes.buf, len);
		r = made_of_bytes(copy, len, NULL);
		made_release(&r);
		free(copy);
	}
	maker_release(&m);
}

TEST(a_name_of_four_kilobytes_is_kept_and_a_longer_one_cut)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	const Elf64_Sym syms[] = {
		{0},
		maker_symbol(1, STB_GLOBAL, STT_FUNC, MAKER_TEXT, 16),
		maker_symbol(4098, STB_GLOBAL, STT_FUNC, MAKER_TEXT + 16, 16),
	};
	struct elfmaker m;
	struct made r;

	strbuf_addch(&s, 0);
	for (int i = 0; i < 4096; i++)
		strbuf_addch(&s, 'a');
	strbuf_addch(&s, 0);
	for (int i = 0; i < 100000; i++)
		strbuf_addch(&s, 'b');
	maker_library(&m, 64, syms, 3, s.buf, s.len);
	maker_finish(&m);
	r = made_of(&m, NULL);
	assert_int_equal(strlen(made_name(&r, MAKER_TEXT)), 4096);
	assert_int_equal(strlen(made_name(&r, MAKER_TEXT + 16)), 8191);
	assert_string_equal(made_name(&r, MAKER_TEXT + 16) + 8188, "...");
	made_release(&r);
}

/* ---- reading ---- */

TEST(a_file_that_becomes_shorter_gives_an_error)
{
	uint64_t hash = HASH_SEED, left = SOURCE_BUDGET;
	struct source s;
	void *p = NULL;
	int fd = memory_file("0123456789", 10);

	assert_int_equal(source_init_fd(&s, fd, &hash, &left), 0);
	assert_int_equal(source_read(&s, 2, 3, &p), 0);
	assert_string_equal(p, "234");
	free(p);
	assert_int_equal(source_read(&s, 2, 9, &p), -ERANGE);
	assert_int_equal(source_read(&s, 11, 0, &p), -ERANGE);
	assert_int_equal(source_read(&s, UINT64_MAX, 2, &p), -ERANGE);
	assert_int_equal(ftruncate(fd, 4), 0);
	assert_int_equal(source_read(&s, 2, 8, &p), -ESTALE);
	close(fd);
}

TEST(reads_of_one_file_share_a_budget)
{
	uint64_t hash = HASH_SEED, left = SOURCE_BUDGET;
	struct source s;
	void *p = NULL;
	int fd = memfd_create("sparse", MFD_CLOEXEC);
	int rc, reads = 0;

	assert_int_equal(ftruncate(fd, 100ll << 30), 0);
	assert_int_equal(source_init_fd(&s, fd, &hash, &left), 0);
	assert_int_equal(source_read(&s, 0, 99ull << 30, &p), -EFBIG);
	while (!(rc = source_read(&s, (uint64_t)reads << 30, 64 << 20, &p))) {
		free(p);
		reads++;
	}
	assert_int_equal(rc, -EFBIG);
	assert_int_equal(reads, 7);
	close(fd);
}

TEST(only_regular_files_are_read)
{
	struct index_result r;
	int fds[2], null = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(indexer_run_fd(fds[0], NULL, &r, NULL), -EINVAL);
	assert_int_equal(indexer_run_fd(null, NULL, &r, NULL), -EINVAL);
	assert_int_equal(indexer_run_fd(-1, NULL, &r, NULL), -EBADF);
	close(fds[0]);
	close(fds[1]);
	close(null);
}
