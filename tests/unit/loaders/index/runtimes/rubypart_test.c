/* SPDX-License-Identifier: Apache-2.0 */
/* The index's section RUBY: what code and tables say, and of the libruby here against nm. */
#include "tests/unit/loaders/index/testing.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <unistd.h>

#include "loaders/index/runtimes/rubypart.h"
#include "schema/base/cleanup.h"
#include "schema/image/format.h"
#include "tests/unit/missing.h"

TEST(a_version_is_a_known_one_or_none)
{
	struct ruby_layout l;

	assert_true(rubypart_layout("3.1.2", &l));
	assert_int_equal(l.version, 0x0301);
	assert_true(rubypart_layout("2.7.8", &l) && rubypart_layout("3.3.10", &l));
	assert_false(rubypart_layout("3.1", &l));
	assert_false(rubypart_layout("3.1.", &l));
	assert_false(rubypart_layout("3.10.1", &l));
	assert_true(rubypart_layout("3.4.11", &l) && !l.lines_checked && l.class_path);
	assert_true(rubypart_layout("4.0.6", &l) && l.lines_checked && !l.class_path);
	assert_false(rubypart_layout("4.1.0", &l));
	assert_false(rubypart_layout("", &l));
}

TEST(the_thread_s_variable_is_taken_in_two_ways)
{
	/* lea 0x100(%rip), %rdi; data16 data16 rex.W call: as __tls_get_addr is called */
	static const uint8_t by_call[] = {
		0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0x66, 0x48, 0x8d, 0x3d, 0x00, 0x01,
		0x00, 0x00, 0x66, 0x66, 0x48, 0xe8, 0x00, 0x00, 0x00, 0x00, 0x48, 0x8b, 0x00, 0xc3};
	static const uint8_t by_fs[] = {0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff,
					0xff, 0xff, 0x48, 0x8b, 0x40, 0x30, 0xc3};
	static const uint8_t other[] = {0x48, 0x8b, 0x05, 0x10, 0x00, 0x00,
					0x00, 0x48, 0x8b, 0x00, 0xc3};
	struct ruby_layout l = {0};

	assert_true(rubypart_local(by_call, sizeof(by_call), 0x1000, &l));
	assert_int_equal(l.tls_slot, 0x1110);
	l = (struct ruby_layout){0};
	assert_true(rubypart_local(by_fs, sizeof(by_fs), 0x1000, &l));
	assert_true(l.tls_offset == -8 && !l.tls_slot);
	assert_false(rubypart_local(other, sizeof(other), 0x1000, &l));
	for (size_t cut = 0; cut < 17; cut++)
		assert_false(rubypart_local(by_call, cut, 0x1000, &l));
}

TEST(the_last_operator_s_id_is_what_its_code_compares_with)
{
	/* shr $4, %rdi; cmp $0xaa, %rax; cmovbe %rax, %rdi; jmp */
	static const uint8_t code[] = {0x48, 0xc1, 0xef, 0x04, 0x48, 0x3d, 0xaa, 0x00, 0x00, 0x00,
				       0x48, 0x0f, 0x46, 0xf8, 0xe9, 0xd4, 0xde, 0xff, 0xff};
	static const uint8_t by_rdi[] = {0x48, 0x81, 0xff, 0xa9, 0x00, 0x00, 0x00, 0xc3};
	static const uint8_t other[] = {0x48, 0x3d, 0xff, 0x0f, 0x00, 0x00, 0xc3};

	assert_int_equal(rubypart_last_op(code, sizeof(code)), 0xaa);
	assert_int_equal(rubypart_last_op(by_rdi, sizeof(by_rdi)), 0xa9);
	assert_int_equal(rubypart_last_op(other, sizeof(other)), 0);
	for (size_t cut = 0; cut < 10; cut++)
		assert_int_equal(rubypart_last_op(code, cut), 0);
}

TEST(two_variables_of_one_structure_are_a_pair)
{
	/* cmp %edi, 0x100(%rip); mov 0x10a(%rip), %rdi */
	static const uint8_t code[] = {0x39, 0x3d, 0x00, 0x01, 0x00, 0x00, 0x48,
				       0x8b, 0x3d, 0x09, 0x01, 0x00, 0x00};
	uint64_t used[RUBYPART_ADDRESSES];
	size_t n = rubypart_addresses(code, sizeof(code), 0x1000, used, 0);

	assert_int_equal(n, 2);
	assert_int_equal(rubypart_pair(used, n), 0x1106);
	assert_int_equal(rubypart_pair(used, 1), 0);
}

TEST(the_longest_run_of_addresses_in_one_function_is_the_loop_s)
{
	static struct rows_span spans[] = {{.lo = 0x5000, .hi = 0x9000, .source = ROWS_EH_FRAME},
					   {.lo = 0, .hi = 0x1000, .source = ROWS_EH_FRAME}};
	const struct rows rows = {.base = 0x10000, .spans = spans, .span_count = 2};
	uint64_t words[400];
	struct elf_range at;

	for (size_t i = 0; i < 400; i++)
		words[i] = i < 160 ? 0x10000 + i :
			   i < 200 ? 7 :
			   i < 380 ? 0x15000 + 8 * i :
				     0x10000;
	assert_true(rubypart_labels(words, 400, &rows, &at));
	assert_true(at.start == 0x15000 && at.end == 0x19000);
	assert_true(rubypart_labels(words, 200, &rows, &at));
	assert_true(at.start == 0x10000);
	assert_false(rubypart_labels(words, RUBYPART_LABELS - 1, &rows, &at));
}

static uint64_t symbol(const char *path, const char *name)
{
	char cmd[512], line[128] = "";
	FILE *p;

	snprintf(cmd, sizeof(cmd), "nm -D '%s' 2>/dev/null | grep -w '%s'", path, name);
	p = popen(cmd, "r");
	assert_non_null(p);
	if (!fgets(line, sizeof(line), p))
		*line = 0;
	pclose(p);
	return strtoull(line, NULL, 16);
}

TEST(libruby_here_is_known)
{
	const struct index_finder no_lines = {.lines = INDEX_LINES_NONE};
	const void *section = NULL;
	struct ruby_layout l;
	struct made m = {0};
	size_t size = 0;
	glob_t g;
	int fd;

	if (glob("/usr/lib/x86_64-linux-gnu/libruby-*.so.[23].[0-9]", 0, NULL, &g)) {
		skip_missing("a libruby of Debian's");
		return;
	}
	fd = open(g.gl_pathv[0], O_RDONLY | O_CLOEXEC);
	m.rc = indexer_run_fd(fd, &no_lines, &m.r, NULL);
	close(fd);
	made_open(&m);
	assert_true(image_part(m.img, IMAGE_SECTION_RUBY, &section, &size));
	assert_int_equal(size, sizeof(l));
	memcpy(&l, section, sizeof(l));
	assert_true(l.symbols && (l.tls_slot || l.vm));
	/* vm_exec_core is inlined there, or comes before it */
	if (symbol(g.gl_pathv[0], "rb_vm_exec"))
		assert_true(l.loop_start[0] <= symbol(g.gl_pathv[0], "rb_vm_exec") &&
			    symbol(g.gl_pathv[0], "rb_vm_exec") - l.loop_end[0] < 0x1000);
	made_release(&m);
	globfree(&g);
}
