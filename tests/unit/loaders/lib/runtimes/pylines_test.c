/* SPDX-License-Identifier: Apache-2.0 */
/* Line tables: made by hand, and for every instruction of a part of the standard library compared
 * with what Debian's Python itself says. SONDE_PYTHONS=all: pyenv's too. */
#include <stdlib.h>
#include <string.h>

#include <glob.h>
#include <linux/types.h>
#include <stdio.h>
#include <unistd.h>

#include "loaders/lib/runtimes/pylines.h"
#include "probes/runtimes/python_layout.h"
#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

TEST(lines_that_only_grow_hold_from_their_address_on)
{
	static const uint8_t table[] = {6, 1, 50, 200, 0, 100, 4, 2};

	assert_int_equal(pylines_find(PYTHON_LINES_27, table, sizeof(table), 10, 0), 10);
	assert_int_equal(pylines_find(PYTHON_LINES_27, table, sizeof(table), 10, 5), 10);
	assert_int_equal(pylines_find(PYTHON_LINES_27, table, sizeof(table), 10, 6), 11);
	assert_int_equal(pylines_find(PYTHON_LINES_27, table, sizeof(table), 10, 56), 311);
	assert_int_equal(pylines_find(PYTHON_LINES_27, table, sizeof(table), 10, 1000), 313);
	/* the same bytes of 3.6 go back */
	assert_int_equal(pylines_find(PYTHON_LINES_36, table, sizeof(table), 100, 56), 145);
}

TEST(code_without_a_line_says_none)
{
	static const uint8_t table310[] = {4, 1, 4, 0x80, 4, 1};
	/* short form of 2 instructions; none of 1; one line further of 1 */
	static const uint8_t table311[] = {0x81, 0x00, 0xf8, 0x80 | 11 << 3, 0, 0};

	assert_int_equal(pylines_find(PYTHON_LINES_310, table310, sizeof(table310), 7, 2), 8);
	assert_int_equal(pylines_find(PYTHON_LINES_310, table310, sizeof(table310), 7, 4), 0);
	assert_int_equal(pylines_find(PYTHON_LINES_310, table310, sizeof(table310), 7, 8), 9);
	assert_int_equal(pylines_find(PYTHON_LINES_310, table310, sizeof(table310), 7, 12), 0);
	assert_int_equal(pylines_find(PYTHON_LINES_311, table311, sizeof(table311), 7, 2), 7);
	assert_int_equal(pylines_find(PYTHON_LINES_311, table311, sizeof(table311), 7, 4), 0);
	assert_int_equal(pylines_find(PYTHON_LINES_311, table311, sizeof(table311), 7, 6), 8);
	assert_int_equal(pylines_find(PYTHON_LINES_311, table311, sizeof(table311), 7, 8), 0);
}

TEST(what_has_not_begun_is_on_the_first_line)
{
	for (unsigned kind = PYTHON_LINES_27; kind <= PYTHON_LINES_311; kind++)
		assert_int_equal(pylines_find(kind, NULL, 0, 42, -1), 42);
	assert_int_equal(pylines_find(PYTHON_LINES_36, NULL, 0, -5, -1), 0);
	assert_int_equal(pylines_find(9, NULL, 0, 42, 0), 0);
}

/* Prints for each code object: the kind of its table, its first line, bytes an instruction, the
 * table, each instruction's line. */
static const char script[] =
	"import sys, os, dis, binascii\n"
	"v = sys.version_info[:2]\n"
	"kind = 1 if v < (3, 0) else 2 if v < (3, 10) else 3 if v == (3, 10) else 4\n"
	"def codes(c):\n"
	"    yield c\n"
	"    for k in c.co_consts:\n"
	"        if isinstance(k, type(c)):\n"
	"            for x in codes(k): yield x\n"
	"def ranges(c):\n"
	"    if v >= (3, 10): return list(c.co_lines())\n"
	"    s = list(dis.findlinestarts(c))\n"
	"    ends = [a for a, l in s[1:]] + [len(c.co_code)]\n"
	"    return [(a, e, l) for (a, l), e in zip(s, ends)]\n"
	"step = 1 if kind == 1 else 2\n"
	"lib = os.path.dirname(os.__file__)\n"
	"for name in sorted(n for n in os.listdir(lib) if n.endswith('.py'))[:40]:\n"
	"    with open(os.path.join(lib, name), 'rb') as f: text = f.read()\n"
	"    for c in codes(compile(text, name, 'exec')):\n"
	"        table = c.co_lnotab if v < (3, 10) else c.co_linetable\n"
	"        lines = [0] * (len(c.co_code) // step)\n"
	"        for a, e, l in ranges(c):\n"
	"            for i in range(a // step, e // step): lines[i] = l or 0\n"
	"        print('%d %d %d x%s %s .' % (kind, c.co_firstlineno, step, binascii.hexlify(table).decode(), ' '.join(map(str, lines))))\n";

static size_t unhex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++)
		sscanf(hex + 2 * i, "%2hhx", &out[i]);
	return n;
}

/* Returns how many instructions were compared. */
static size_t check_code(char *line)
{
	unsigned kind, step;
	int first, from, to;
	size_t n, count = 0;
	uint8_t *table;
	char *at;

	assert_int_equal(sscanf(line, "%u %d %u x%n%*s%n", &kind, &first, &step, &from, &to), 3);
	if (line[from] == ' ')
		to = from; /* an empty table */
	line[to] = 0;
	table = malloc((size_t)(to - from) / 2 + 1);
	n = unhex(line + from, table);
	at = line + to + 1;
	for (int64_t i = 0; *at && *at != '.'; i += step, count++) {
		unsigned long want = strtoul(at, &at, 10),
			      got = pylines_find(kind, table, n, first, i);

		if (want != got)
			fail_msg("kind %u, code from line %d, byte %ld: line %lu, not %lu", kind,
				 first, (long)i, got, want);
		while (*at == ' ')
			at++;
	}
	free(table);
	return count;
}

static void check_python(const char *program)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	size_t count = 0, cap = 0;
	char *line = NULL;
	FILE *p;

	setenv("SONDE_TEST_SCRIPT", script, 1);
	strbuf_addf(&cmd, "printf %%s \"$SONDE_TEST_SCRIPT\" | '%s' -W ignore -", program);
	p = popen(strbuf_str(&cmd), "r");
	assert_non_null(p);
	while (getline(&line, &cap, p) > 0)
		count += check_code(line);
	assert_int_equal(pclose(p), 0);
	assert_true(count > 50000);
	free(line);
}

TEST(each_instruction_has_the_line_that_python_itself_says)
{
	glob_t found = {0};

	if (access("/usr/bin/python3", X_OK))
		skip_missing("python3");
	check_python("/usr/bin/python3");
	if (getenv("SONDE_PYTHONS"))
		glob("~/.pyenv/versions/*/bin/python", GLOB_TILDE, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_python(found.gl_pathv[i]);
	globfree(&found);
}
