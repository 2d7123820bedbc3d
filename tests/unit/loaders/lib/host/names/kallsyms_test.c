/* SPDX-License-Identifier: Apache-2.0 */
/* kallsyms: which symbol is chosen, on small tables; every line of this host's /proc/kallsyms as
 * awk reads it; cost. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/names/kallsyms.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

static struct kallsyms *parse(const char *s)
{
	struct kallsyms *k = NULL;

	assert_int_equal(kallsyms_parse(s, strlen(s), &k), 0);
	return k;
}

static void expect(struct kallsyms *k, uint64_t addr, const char *name, const char *module,
		   uint64_t start, uint64_t base)
{
	struct kallsyms_symbol s;

	assert_true(kallsyms_find(k, addr, &s));
	assert_string_equal(s.name, name);
	assert_string_equal(s.module, module);
	assert_int_equal(s.start, start);
	assert_int_equal(s.base, base);
}

static const char table[] = "0000000000000000 A fixed_percpu_data\n"
			    "ffffffff81000000 T startup_64\n"
			    "ffffffff81000000 T _text\n"
			    "ffffffff81000100 t __pfx_one\n"
			    "ffffffff81000110 t one\n"
			    "ffffffff81000200 t two_local\n"
			    "ffffffff81000200 W two_weak\n"
			    "ffffffff81000200 T __two\n"
			    "ffffffff81000200 T two_best\n"
			    "ffffffff81000300 D data\n"
			    "ffffffff81000310 D data2\n"
			    "ffffffff81000400 T last\n"
			    "ffffffff81000500 T _etext\n"
			    "ffffffffc0000010 t m_first\t[nf_tables]\n"
			    "ffffffffc0000080 t m_second\t[nf_tables]\n"
			    "ffffffffc0100000 t bpf_prog_ab12_cd\t[bpf]\n";

TEST(the_kernel_s_own_tables_are_told_when_all_of_them_are_there)
{
	static const char marks[] = "ffffffff81000000 T _stext\n"
				    "ffffffff82000000 T _etext\n"
				    "ffffffff83000000 R __start_orc_unwind_ip\n"
				    "ffffffff83000400 R __stop_orc_unwind_ip\n"
				    "ffffffff83000400 R __start_orc_unwind\n"
				    "ffffffff81000100 T arch_rethook_trampoline\n"
				    "ffffffffc0000000 t _stext\t[liar]\n";
	struct kallsyms *k = parse(marks), *less = parse(marks + 26);
	struct kallsyms_orc orc;

	assert_true(kallsyms_orc(k, &orc));
	assert_int_equal(orc.text, 0xffffffff81000000);
	assert_int_equal(orc.text_end, 0xffffffff82000000);
	assert_int_equal(orc.ips, 0xffffffff83000000);
	assert_int_equal(orc.ips_end, 0xffffffff83000400);
	assert_int_equal(orc.entries, 0xffffffff83000400);
	assert_int_equal(orc.hook, 0xffffffff81000100);
	assert_false(kallsyms_orc(less, &orc));
	kallsyms_free(k);
	kallsyms_free(less);
}

TEST(functions_are_found_by_any_of_their_bytes)
{
	struct kallsyms *k = parse(table);

	expect(k, 0xffffffff81000000, "startup_64", "", 0xffffffff81000000, 0xffffffff81000000);
	expect(k, 0xffffffff8100010f, "__pfx_one", "", 0xffffffff81000100, 0xffffffff81000000);
	expect(k, 0xffffffff81000110, "one", "", 0xffffffff81000110, 0xffffffff81000000);
	expect(k, 0xffffffff810001ff, "one", "", 0xffffffff81000110, 0xffffffff81000000);
	expect(k, 0xffffffffc0000085, "m_second", "nf_tables", 0xffffffffc0000080,
	       0xffffffffc0000010);
	expect(k, 0xffffffffc0100008, "bpf_prog_ab12_cd", "bpf", 0xffffffffc0100000,
	       0xffffffffc0100000);
	assert_int_equal(kallsyms_text(k), 0xffffffff81000000);
	assert_int_equal(kallsyms_count(k), 8);
	assert_int_equal(kallsyms_skipped(k), 0);
	assert_false(kallsyms_hidden(k));
	assert_true(kallsyms_is_text(k, 0xffffffff810004ff));
	assert_false(kallsyms_is_text(k, 0xffffffff81000500));
	kallsyms_free(k);
}

TEST(of_several_names_the_global_with_fewest_underscores_wins)
{
	struct kallsyms *k = parse(table);

	expect(k, 0xffffffff81000234, "two_best", "", 0xffffffff81000200, 0xffffffff81000000);
	kallsyms_free(k);
}

TEST(data_and_the_end_of_the_text_have_no_function)
{
	static const uint64_t none[] = {0,
					0x1000,
					0xffffffff80ffffff,
					0xffffffff81000300,
					0xffffffff81000333,
					0xffffffff81000500,
					0xffffffffb0000000,
					0xffffffffc0010080,
					0xffffffffc0110000,
					UINT64_MAX};
	struct kallsyms *k = parse(table);
	struct kallsyms_symbol s;

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_false(kallsyms_find(k, none[i], &s));
	kallsyms_free(k);
}

TEST(unsorted_lines_give_the_same_table)
{
	struct kallsyms *k =
		parse("ffffffff81000400 T b\nffffffff81000200 T a\nffffffff81000300 T m\t[x]\n");

	expect(k, 0xffffffff810002ff, "a", "", 0xffffffff81000200, 0);
	expect(k, 0xffffffff810003ff, "m", "x", 0xffffffff81000300, 0xffffffff81000300);
	kallsyms_free(k);
}

TEST(zeros_are_recognised_as_hidden)
{
	struct kallsyms *k = parse(
		"0000000000000000 T _text\n0000000000000000 T a\n0000000000000000 t b\t[x]\n");

	assert_true(kallsyms_hidden(k));
	assert_int_equal(kallsyms_count(k), 0);
	kallsyms_free(k);
}

TEST(malformed_lines_are_skipped_and_counted)
{
	struct kallsyms *k =
		parse("\nx\nffffffff81000000\nffffffff81000000 T \nffffffff81000000 T a\t[x\n"
		      "fffffffff81000000 T long\nffffffff81000000 T good");

	assert_int_equal(kallsyms_skipped(k), 5);
	expect(k, 0xffffffff81000001, "good", "", 0xffffffff81000000, 0);
	kallsyms_free(k);
}

TEST(addresses_further_apart_than_4_gib_are_kept_whole)
{
	struct kallsyms *k = parse("ffff800000001000 T low\nffffffff81000000 T high\n");

	expect(k, 0xffff800000001004, "low", "", 0xffff800000001000, 0);
	expect(k, 0xffffffff81000004, "high", "", 0xffffffff81000000, 0);
	kallsyms_free(k);
}

/* The oracle: awk picks the functions that share their address with no other; each must be found at
 * its start under its name. BPF programs are left out, since they load and unload between the two
 * readings. */
TEST(every_function_of_this_kernel_is_found)
{
	FILE *awk = popen(
		"LC_ALL=C awk '$4 == \"[bpf]\" {next} $2 ~ /^[tTwW]$/ && $1 !~ /^0*$/ {n[$1]++; name[$1]=$3; m[$1]=$4} "
		"$2 !~ /^[tTwW]$/ {o[$1]=1} END {for (a in n) if (n[a]==1 && !o[a]) print a, name[a], m[a]}' "
		"/proc/kallsyms",
		"r");
	char name[512], module[256], line[1024];
	struct kallsyms_symbol s;
	struct kallsyms *k;
	size_t checked = 0;
	uint64_t addr;

	assert_non_null(awk);
	assert_int_equal(kallsyms_load(NULL, &k), 0);
	if (kallsyms_hidden(k)) {
		pclose(awk);
		kallsyms_free(k);
		skip_missing("the right to see kernel addresses (kptr_restrict)");
	}
	while (fgets(line, sizeof(line), awk)) {
		int got = sscanf(line, "%lx %511s [%255[^]]", &addr, name, module);

		assert_true(got >= 2);
		if (!strcmp(name, "_etext") || !strcmp(name, "_einittext") || !strcmp(name, "_end"))
			continue;
		assert_true(kallsyms_find(k, addr, &s));
		assert_int_equal(s.start, addr);
		assert_string_equal(s.name, name);
		assert_string_equal(s.module, got == 3 ? module : "");
		checked++;
	}
	pclose(awk);
	print_message("%zu of %zu functions compared with awk\n", checked, kallsyms_count(k));
	assert_true(checked > 1000);
	kallsyms_free(k);
}

TEST(the_table_is_small_and_quickly_made)
{
	int64_t best = INT64_MAX;
	struct kallsyms *k = NULL;
	char *buf = malloc(64u << 20);
	FILE *f = fopen("/proc/kallsyms", "r");
	size_t len;

	assert_non_null(f);
	len = fread(buf, 1, 64u << 20, f);
	fclose(f);
	for (int i = 0; i < 5; i++) {
		int64_t before = clock_cpu_ns();

		kallsyms_free(k);
		assert_int_equal(kallsyms_parse(buf, len, &k), 0);
		if (clock_cpu_ns() - before < best)
			best = clock_cpu_ns() - before;
	}
	print_message("%zu bytes of text: %.1f ms, %zu bytes held\n", len, (double)best / 1e6,
		      kallsyms_bytes(k));
	assert_true(kallsyms_bytes(k) < 5u << 20);
#if !defined(__SANITIZE_ADDRESS__)
	assert_true(best < 60 * 1000000ll);
#endif
	kallsyms_free(k);
	free(buf);
}

/* ---- kept ---- */

static struct kallsyms *kept_of(const struct kallsyms *k, struct strbuf *bytes)
{
	struct kallsyms *kept = NULL;

	kallsyms_pack(k, 77, bytes);
	assert_int_equal(kallsyms_unpack(bytes->buf, bytes->len, 77, &kept), 0);
	return kept;
}

TEST(what_is_kept_answers_as_the_table_did)
{
	static const uint64_t asked[] = {0xffffffff81000050, 0xffffffff81000108, 0xffffffff81000150,
					 0xffffffff81000250, 0xffffffff81000350, 0xffffffff81000450,
					 0xffffffff81000550, 0xffffffffc0000014};
	struct strbuf bytes cleanup_strbuf = STRBUF_INIT;
	struct kallsyms *k = parse(table), *kept = kept_of(k, &bytes);

	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		struct kallsyms_symbol s;

		if (kallsyms_find(k, asked[i], &s))
			expect(kept, asked[i], s.name, s.module, s.start, s.base);
		else
			assert_false(kallsyms_find(kept, asked[i], &s));
	}
	assert_int_equal(kallsyms_text(kept), kallsyms_text(k));
	assert_true(kallsyms_is_text(kept, 0xffffffff81000450));
	kallsyms_free(kept);
	kallsyms_free(k);
}

TEST(bpf_programs_and_the_last_function_of_a_module_are_not_kept)
{
	struct strbuf bytes cleanup_strbuf = STRBUF_INIT;
	struct kallsyms *k = parse(table), *kept = kept_of(k, &bytes);
	struct kallsyms_symbol s;

	assert_true(kallsyms_find(k, 0xffffffffc0100000, &s) &&
		    kallsyms_find(k, 0xffffffffc0000090, &s));
	assert_false(kallsyms_find(kept, 0xffffffffc0100000, &s));
	assert_false(kallsyms_find(kept, 0xffffffffc0000090, &s));
	assert_int_equal(kallsyms_count(kept), kallsyms_count(k) - 2);
	kallsyms_free(kept);
	kallsyms_free(k);
}

TEST(what_was_kept_of_another_boot_or_cut_short_is_refused)
{
	struct strbuf bytes cleanup_strbuf = STRBUF_INIT;
	struct kallsyms *k = parse(table), *kept = NULL;

	kallsyms_pack(k, 77, &bytes);
	assert_int_equal(kallsyms_unpack(bytes.buf, bytes.len, 78, &kept), -ESTALE);
	for (size_t len = 0; len < bytes.len; len++)
		assert_true(kallsyms_unpack(bytes.buf, len, 77, &kept) < 0);
	assert_null(kept);
	kallsyms_free(k);
}

/* The next process uses the cached symbols of this kernel, in a file that other users cannot read;
 * after a change of one byte it does not. */
TEST(a_kept_file_is_taken_as_long_as_it_is_whole)
{
	char dir[] = "/tmp/kallsyms-XXXXXX", path[256];
	struct kallsyms *k, *kept = NULL;
	struct stat st;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(kallsyms_load(NULL, &k), 0);
	if (kallsyms_hidden(k) || !kallsyms_count(k)) {
		kallsyms_free(k);
		skip_missing("the right to see kernel addresses (kptr_restrict)");
	}
	kallsyms_keep(k, dir); /* no images/: nothing is kept */
	assert_int_equal(kallsyms_kept(dir, &kept), -ENOENT);
	snprintf(path, sizeof(path), "%s/images", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	kallsyms_keep(k, dir);
	assert_int_equal(kallsyms_kept(dir, &kept), 0);
	assert_true(kallsyms_count(kept) > 1000 && kallsyms_count(kept) <= kallsyms_count(k));
	assert_int_equal(kallsyms_text(kept), kallsyms_text(k));
	kallsyms_free(kept);
	kallsyms_free(k);
	snprintf(path, sizeof(path), "%s/images/kallsyms", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	f = fopen(path, "r+");
	assert_non_null(f);
	fseek(f, st.st_size / 2, SEEK_SET);
	assert_true(fputc(0xff, f) != EOF && fputc(0x55, f) != EOF);
	fclose(f);
	kept = NULL;
	assert_int_equal(kallsyms_kept(dir, &kept), -EBADMSG);
	assert_null(kept);
	unlink(path);
	snprintf(path, sizeof(path), "%s/images", dir);
	rmdir(path);
	rmdir(dir);
}

TEST(a_file_that_is_not_there_is_an_error)
{
	struct kallsyms *k = NULL;

	assert_int_equal(kallsyms_load("/nonexistent/kallsyms", &k), -ENOENT);
	assert_null(k);
	kallsyms_free(NULL);
}
