/* SPDX-License-Identifier: Apache-2.0 */
/* The index's section PHP: of a made file, of the php here, and the layouts against the headers of
 * each version that SONDE_PHP_HEADERS names (folders as /usr/include/php/20220829, separated by
 * colons; without it, what this machine has). */
#include "tests/unit/loaders/index/testing.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <unistd.h>

#include "loaders/index/runtimes/phppart.h"
#include "schema/base/cleanup.h"
#include "schema/image/format.h"
#include "tests/unit/missing.h"

static bool layout_of(const char *path, struct php_layout *out)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	const struct index_finder no_lines = {.lines = INDEX_LINES_NONE};
	const void *section = NULL;
	struct made m = {0};
	size_t size = 0;
	bool known;

	assert_true(fd >= 0);
	m.rc = indexer_run_fd(fd, &no_lines, &m.r, NULL);
	made_open(&m);
	known = image_part(m.img, IMAGE_SECTION_PHP, &section, &size);
	if (known) {
		assert_int_equal(size, sizeof(*out));
		memcpy(out, section, sizeof(*out));
	}
	made_release(&m);
	return known;
}

static uint64_t symbol(const char *path, const char *name)
{
	char cmd[512], line[128] = "";
	FILE *p;

	snprintf(cmd, sizeof(cmd), "nm -D '%s' 2>/dev/null | grep ' %s$'", path, name);
	p = popen(cmd, "r");
	assert_non_null(p);
	if (!fgets(line, sizeof(line), p))
		*line = 0;
	pclose(p);
	return strtoull(line, NULL, 16);
}

TEST(the_interface_s_number_says_the_version)
{
	struct php_layout l;

	assert_int_equal(phppart_interface((const uint8_t *)"xAPI20220829,NTS", 17), 20220829);
	assert_int_equal(
		phppart_interface((const uint8_t *)"APIAPI420220829,NTS\0API20190902,NTS", 36),
		20190902);
	assert_int_equal(phppart_interface((const uint8_t *)"API20220829,NTS", 15),
			 0); /* its end is not there */
	assert_int_equal(phppart_interface((const uint8_t *)"API20220829,TS", 15), 0);
	assert_int_equal(phppart_interface((const uint8_t *)"API20220829,NTS,debug", 22), 0);
	assert_int_equal(phppart_interface((const uint8_t *)"API2022082x,NTS", 16), 0);
	assert_int_equal(phppart_interface(NULL, 0), 0);
	assert_true(phppart_layout(20220829, &l));
	assert_int_equal(l.version, 0x0802);
	assert_false(phppart_layout(20180731, &l)); /* 7.3: frames differ */
	assert_false(phppart_layout(20990101, &l));
}

TEST(an_engine_is_known_by_its_symbols_and_its_number)
{
	char dir[] = "/tmp/sonde-phppart-XXXXXX", cmd[2048];
	struct php_layout l;

	assert_non_null(mkdtemp(dir));
	snprintf(
		cmd, sizeof(cmd),
		"cd %s && printf '%%s' 'char executor_globals[2000]; __attribute__((used)) const char build[] = TEXT; "
		"int execute_ex(int a) { return a * 3; } int main(void) { return execute_ex(2); }' > m.c && "
		"gcc -rdynamic -O1 -DTEXT='\"API20220829,NTS\"' -o one m.c && strip one && "
		"gcc -shared -fPIC -O1 -DTEXT='\"API20220829,NTS\"' -o lib.so m.c && gcc -rdynamic -O1 -DTEXT='\"API20220829,TS\"' -o zts m.c",
		dir);
	assert_int_equal(system(cmd), 0);
	snprintf(cmd, sizeof(cmd), "%s/one", dir);
	assert_true(layout_of(cmd, &l));
	assert_true(l.version == 0x0802 && l.program && l.file == 152);
	assert_true(l.globals == symbol(cmd, "executor_globals") &&
		    l.loop_start[0] == symbol(cmd, "execute_ex") &&
		    l.loop_end[0] > l.loop_start[0]);
	snprintf(cmd, sizeof(cmd), "%s/lib.so", dir);
	assert_true(layout_of(cmd, &l) && !l.program);
	snprintf(cmd, sizeof(cmd), "%s/zts", dir);
	assert_false(layout_of(cmd, &l));
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	assert_int_equal(system(cmd), 0);
}

TEST(php_here_is_known)
{
	struct php_layout l;
	glob_t g;

	if (glob("/usr/bin/php[78].[0-9]", 0, NULL, &g)) {
		skip_missing("a php of Debian's");
		return;
	}
	assert_true(layout_of(g.gl_pathv[0], &l));
	assert_int_equal(l.globals, symbol(g.gl_pathv[0], "executor_globals"));
	assert_int_equal(l.loop_start[0], symbol(g.gl_pathv[0], "execute_ex"));
	assert_true(l.program);
	globfree(&g);
}

/* 0: the headers say the same. */
static int headers_check(const char *folder, const struct php_layout *l)
{
	char cmd[4096], frame[32];

	snprintf(frame, sizeof(frame), "%u", l->generator_frame);
	snprintf(
		cmd, sizeof(cmd),
		"printf '%%s\\n' '#include <stddef.h>' '#include \"php.h\"' '#include \"zend_generators.h\"' '#define IS(t, m, n) _Static_assert(offsetof(t, m) == n, \"\" #m);' "
		"'IS(zend_executor_globals, current_execute_data, %u) IS(zend_op_array, opcodes, %u) IS(zend_op_array, last, %u) IS(zend_op_array, filename, %u)' "
		"'IS(zend_execute_data, opline, 0) IS(zend_execute_data, func, 24) IS(zend_execute_data, This.u1.type_info, 40) IS(zend_execute_data, prev_execute_data, 48)' "
		"'IS(zend_op_array, function_name, 8) IS(zend_op_array, scope, 16) IS(zend_string, len, 16) IS(zend_string, val, 24) IS(zend_class_entry, name, 8)' "
		"'IS(zend_op, lineno, 24) _Static_assert(sizeof(zend_op) == 32 && ZEND_CALL_TOP == 1 << 17 && IS_STRING == 6 && IS_OBJECT == 8, \"\");' "
		"'_Static_assert(!%u || (offsetof(zend_generator, node.parent) == %u && offsetof(zend_generator, execute_data) == %s), \"\");' "
		"| gcc -w -fsyntax-only -I'%s' -I'%s/main' -I'%s/Zend' -I'%s/TSRM' -x c -",
		l->current, l->code, l->code_count, l->file, l->generator_parent,
		l->generator_parent, frame, folder, folder, folder, folder);
	return system(cmd);
}

TEST(layouts_are_those_of_the_headers)
{
	const char *folders = getenv("SONDE_PHP_HEADERS");
	char all[1024] = "", *save = NULL;
	glob_t g;

	if (folders) {
		snprintf(all, sizeof(all), "%s", folders);
	} else if (!glob("/usr/include/php/20[0-9]*", 0, NULL, &g)) {
		snprintf(all, sizeof(all), "%s", g.gl_pathv[0]);
		globfree(&g);
	} else {
		skip_missing("php-dev");
		return;
	}
	for (char *folder = strtok_r(all, ":", &save); folder;
	     folder = strtok_r(NULL, ":", &save)) {
		struct php_layout l;

		assert_true(
			phppart_layout((uint32_t)strtoul(strrchr(folder, '/') + 1, NULL, 10), &l));
		assert_int_equal(headers_check(folder, &l), 0);
	}
}
