/* SPDX-License-Identifier: Apache-2.0 */
/* hsperfdata files: both byte orders, not yet written, damaged in each byte of the header; and
 * which file belongs to a process. */
#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "loaders/host/jvmfile.h"
#include "schema/facts/jvm.h"
#include "tests/unit/test.h"

struct maker {
	uint8_t data[4096];
	size_t len;
	bool little;
	int n;
};

static void put32(struct maker *m, size_t at, uint32_t v)
{
	v = m->little ? htole32(v) : htobe32(v);
	memcpy(m->data + at, &v, sizeof(v));
}

static struct maker begin(bool little)
{
	struct maker m = {.len = 32, .little = little};
	uint32_t magic = htobe32(0xcafec0c0);

	memcpy(m.data, &magic, 4);
	m.data[4] = little;
	m.data[5] = 2;
	m.data[7] = 1;
	put32(&m, 24, 32);
	return m;
}

static void entry(struct maker *m, const char *name, char type, uint32_t vector, const void *data,
		  uint32_t size)
{
	uint32_t name_len = (uint32_t)strlen(name) + 1, at = 20 + (name_len + 7) / 8 * 8,
		 len = at + (size + 7) / 8 * 8;

	put32(m, m->len, len);
	put32(m, m->len + 4, 20);
	put32(m, m->len + 8, vector);
	m->data[m->len + 12] = (uint8_t)type;
	put32(m, m->len + 16, at);
	memcpy(m->data + m->len + 20, name, name_len);
	memcpy(m->data + m->len + at, data, size);
	m->len += len;
	put32(m, 28, (uint32_t)++m->n);
}

static void number(struct maker *m, const char *name, int64_t v)
{
	uint64_t u = m->little ? htole64((uint64_t)v) : htobe64((uint64_t)v);

	entry(m, name, 'J', 0, &u, 8);
}

static struct maker whole(bool little)
{
	struct maker m = begin(little);

	number(&m, "sun.os.hrt.frequency", 2000000000);
	entry(&m, "sun.gc.collector.0.name", 'B', 8, "Copy\0\0\0\0", 8);
	entry(&m, "sun.gc.collector.1.name", 'B', 4, "MSC\0", 4);
	entry(&m, "java.property.java.version", 'B', 16, "17.0.15\0\0\0\0\0\0\0\0\0", 16);
	number(&m, "sun.gc.collector.0.invocations", 7);
	number(&m, "sun.gc.collector.0.time", 3000000);
	number(&m, "sun.gc.generation.0.space.0.used", 100);
	number(&m, "sun.gc.generation.0.space.1.used", 20);
	number(&m, "sun.gc.generation.0.space.2.used", 3);
	number(&m, "sun.gc.generation.1.space.0.used", 1000);
	number(&m, "java.cls.loadedClasses", 50);
	number(&m, "java.cls.sharedLoadedClasses", 400);
	number(&m, "java.cls.unloadedClasses", 5);
	number(&m, "java.cls.sharedUnloadedClasses", 0);
	number(&m, "java.threads.live", -1);
	number(&m, "something.else", 9);
	return m;
}

TEST(both_byte_orders_say_the_same)
{
	for (int little = 0; little < 2; little++) {
		struct maker m = whole(little);
		struct jvmfile f;

		assert_true(jvmfile_parse(m.data, m.len, &f));
		assert_string_equal(f.collector, "Copy, MSC");
		assert_string_equal(f.version, "17.0.15");
		assert_int_equal(f.row.v[JVM_YOUNG_GCS].number, 7);
		assert_int_equal(f.row.v[JVM_YOUNG_GC_US].number, 1500);
		assert_int_equal(f.row.v[JVM_YOUNG_USED].number, 123);
		assert_int_equal(f.row.v[JVM_OLD_USED].number, 1000);
		assert_int_equal(f.row.v[JVM_LOADED].number, 450);
		assert_int_equal(f.row.v[JVM_CLASSES].number, 445);
		assert_false(fact_has(&f.row, JVM_THREADS));
		assert_false(fact_has(&f.row, JVM_FULL_GCS));
	}
}

TEST(one_that_is_not_written_yet_or_not_whole_gives_nothing)
{
	struct maker m = whole(true);
	struct jvmfile f;

	for (size_t len = 0; len < m.len; len++) {
		assert_false(jvmfile_parse(m.data, len, &f));
		assert_int_equal(f.row.set, 0);
	}
	m.data[7] = 0;
	assert_false(jvmfile_parse(m.data, m.len, &f));
}

TEST(times_without_a_frequency_are_not_told)
{
	struct maker m = begin(true);
	struct jvmfile f;

	number(&m, "sun.gc.collector.0.time", 3000000);
	number(&m, "sun.gc.collector.0.invocations", 1);
	assert_true(jvmfile_parse(m.data, m.len, &f));
	assert_false(fact_has(&f.row, JVM_YOUNG_GC_US));
	assert_true(fact_has(&f.row, JVM_YOUNG_GCS));
}

TEST(any_byte_may_be_another_one)
{
	struct maker m = whole(true);
	struct jvmfile f;

	for (size_t i = 0; i < m.len; i++)
		for (int bit = 0; bit < 8; bit++) {
			m.data[i] ^= (uint8_t)(1 << bit);
			if (jvmfile_parse(m.data, m.len, &f))
				for (int c = 0; c < JVM_N; c++)
					assert_true(!fact_has(&f.row, c) || f.row.v[c].number >= 0);
			m.data[i] ^= (uint8_t)(1 << bit);
		}
}

TEST(the_file_is_the_one_that_is_mapped)
{
	static const char maps[] =
		"7fd0-7fd8 r-xp 00000000 fe:00 12 /usr/lib/jvm/libjvm.so\n7fd8767be000-7fd8767c6000 rw-s 00000000 fe:00 9987873    "
		"                /tmp/hsperfdata_a b/13032\n";
	static const char gone[] =
		"7fd8767be000-7fd8767c6000 rw-s 00000000 fe:00 9987873 /tmp/hsperfdata_root/13032 (deleted)\n";
	char path[64], few[10];
	uint64_t ino;

	assert_true(jvmfile_mapped(maps, sizeof(maps) - 1, path, sizeof(path), &ino));
	assert_string_equal(path, "/tmp/hsperfdata_a b/13032");
	assert_int_equal(ino, 9987873);
	assert_false(jvmfile_mapped(maps, sizeof(maps) - 1, few, sizeof(few), &ino));
	assert_false(jvmfile_mapped(gone, sizeof(gone) - 1, path, sizeof(path), &ino));
	assert_false(jvmfile_mapped(maps, 60, path, sizeof(path), &ino));
}
