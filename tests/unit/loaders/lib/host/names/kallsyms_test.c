/* SPDX-License-Identifier: Apache-2.0 */
/* kallsyms: rules of choice by small tables; every line of this host's /proc/kallsyms as awk reads
 * it; cost. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "loaders/lib/host/names/kallsyms.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "tests/unit/missing.h"

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

static void the_kernel_s_own_tables_are_told_when_all_of_them_are_there(void **state)
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

	(void)state;
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

static void functions_are_found_by_any_of_their_bytes(void **state)
{
	struct kallsyms *k = parse(table);

	(void)state;
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

static void of_several_names_the_global_with_fewest_underscores_wins(void **state)
{
	struct kallsyms *k = parse(table);

	(void)state;
	expect(k, 0xffffffff81000234, "two_best", "", 0xffffffff81000200, 0xffffffff81000000);
	kallsyms_free(k);
}

static void data_and_the_end_of_the_text_have_no_function(void **state)
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

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_false(kallsyms_find(k, none[i], &s));
	kallsyms_free(k);
}

static void unsorted_lines_give_the_same_table(void **state)
{
	struct kallsyms *k =
		parse("ffffffff81000400 T b\nffffffff81000200 T a\nffffffff81000300 T m\t[x]\n");

	(void)state;
	expect(k, 0xffffffff810002ff, "a", "", 0xffffffff81000200, 0);
	expect(k, 0xffffffff810003ff, "m", "x", 0xffffffff81000300, 0xffffffff81000300);
	kallsyms_free(k);
}

static void zeros_are_recognised_as_hidden(void **state)
{
	struct kallsyms *k = parse(
		"0000000000000000 T _text\n0000000000000000 T a\n0000000000000000 t b\t[x]\n");

	(void)state;
	assert_true(kallsyms_hidden(k));
	assert_int_equal(kallsyms_count(k), 0);
	kallsyms_free(k);
}

static void malformed_lines_are_skipped_and_counted(void **state)
{
	struct kallsyms *k =
		parse("\nx\nffffffff81000000\nffffffff81000000 T \nffffffff81000000 T a\t[x\n"
		      "fffffffff81000000 T long\nffffffff81000000 T good");

	(void)state;
	assert_int_equal(kallsyms_skipped(k), 5);
	expect(k, 0xffffffff81000001, "good", "", 0xffffffff81000000, 0);
	kallsyms_free(k);
}

static void addresses_further_apart_than_4_gib_are_kept_whole(void **state)
{
	struct kallsyms *k = parse("ffff800000001000 T low\nffffffff81000000 T high\n");

	(void)state;
	expect(k, 0xffff800000001004, "low", "", 0xffff800000001000, 0);
	expect(k, 0xffffffff81000004, "high", "", 0xffffffff81000000, 0);
	kallsyms_free(k);
}

/* The oracle: awk picks the functions whose address is theirs alone; each must be found at its
 * start under its name. BPF programs come and go between the two readings: they are left out. */
static void every_function_of_this_kernel_is_found(void **state)
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

	(void)state;
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

static void the_table_is_small_and_quickly_made(void **state)
{
	int64_t best = INT64_MAX;
	struct kallsyms *k = NULL;
	char *buf = malloc(64u << 20);
	FILE *f = fopen("/proc/kallsyms", "r");
	size_t len;

	(void)state;
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

static void what_is_kept_answers_as_the_table_did(void **state)
{
	static const uint64_t asked[] = {0xffffffff81000050, 0xffffffff81000108, 0xffffffff81000150,
					 0xffffffff81000250, 0xffffffff81000350, 0xffffffff81000450,
					 0xffffffff81000550, 0xffffffffc0000014};
	struct strbuf bytes cleanup_strbuf = STRBUF_INIT;
	struct kallsyms *k = parse(table), *kept = kept_of(k, &bytes);

	(void)state;
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

static void bpf_programs_and_the_last_function_of_a_module_are_not_kept(void **state)
{
	struct strbuf bytes cleanup_strbuf = STRBUF_INIT;
	struct kallsyms *k = parse(table), *kept = kept_of(k, &bytes);
	struct kallsyms_symbol s;

	(void)state;
	assert_true(kallsyms_find(k, 0xffffffffc0100000, &s) &&
		    kallsyms_find(k, 0xffffffffc0000090, &s));
	assert_false(kallsyms_find(kept, 0xffffffffc0100000, &s));
	assert_false(kallsyms_find(kept, 0xffffffffc0000090, &s));
	assert_int_equal(kallsyms_count(kept), kallsyms_count(k) - 2);
	kallsyms_free(kept);
	kallsyms_free(k);
}

static void what_was_kept_of_another_boot_or_cut_short_is_refused(void **state)
{
	struct strbuf bytes cleanup_strbuf = STRBUF_INIT;
	struct kallsyms *k = parse(table), *kept = NULL;

	(void)state;
	kallsyms_pack(k, 77, &bytes);
	assert_int_equal(kallsyms_unpack(bytes.buf, bytes.len, 78, &kept), -ESTALE);
	for (size_t len = 0; len < bytes.len; len++)
		assert_true(kallsyms_unpack(bytes.buf, len, 77, &kept) < 0);
	assert_null(kept);
	kallsyms_free(k);
}

/* What is kept of this kernel is used by the next one who asks, for nobody else to read; a byte
 * changed, and it is not. */
static void a_kept_file_is_taken_as_long_as_it_is_whole(void **state)
{
	char dir[] = "/tmp/kallsyms-XXXXXX", path[256];
	struct kallsyms *k, *kept = NULL;
	struct stat st;
	FILE *f;

	(void)state;
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

static void a_file_that_is_not_there_is_an_error(void **state)
{
	struct kallsyms *k = NULL;

	(void)state;
	assert_int_equal(kallsyms_load("/nonexistent/kallsyms", &k), -ENOENT);
	assert_null(k);
	kallsyms_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_s_own_tables_are_told_when_all_of_them_are_there),
		cmocka_unit_test(functions_are_found_by_any_of_their_bytes),
		cmocka_unit_test(of_several_names_the_global_with_fewest_underscores_wins),
		cmocka_unit_test(data_and_the_end_of_the_text_have_no_function),
		cmocka_unit_test(unsorted_lines_give_the_same_table),
		cmocka_unit_test(zeros_are_recognised_as_hidden),
		cmocka_unit_test(malformed_lines_are_skipped_and_counted),
		cmocka_unit_test(addresses_further_apart_than_4_gib_are_kept_whole),
		cmocka_unit_test(every_function_of_this_kernel_is_found),
		cmocka_unit_test(the_table_is_small_and_quickly_made),
		cmocka_unit_test(what_is_kept_answers_as_the_table_did),
		cmocka_unit_test(bpf_programs_and_the_last_function_of_a_module_are_not_kept),
		cmocka_unit_test(what_was_kept_of_another_boot_or_cut_short_is_refused),
		cmocka_unit_test(a_kept_file_is_taken_as_long_as_it_is_whole),
		cmocka_unit_test(a_file_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
