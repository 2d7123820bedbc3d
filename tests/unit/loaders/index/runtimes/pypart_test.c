/* SPDX-License-Identifier: Apache-2.0 */
/* The index's section PYTHON against nm and what the interpreters here say of themselves; of a made
 * one with a cold part. SONDE_PYTHONS=all: pyenv's too. */
#include "tests/unit/loaders/index/testing.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <unistd.h>

#include "loaders/index/runtimes/pylayout.h"
#include "loaders/index/runtimes/pypart.h"
#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"
#include "schema/image/format.h"
#include "tests/unit/missing.h"

static int shell(const char *format, ...)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	va_list ap;

	va_start(ap, format);
	strbuf_vaddf(&cmd, format, ap);
	va_end(ap);
	return system(strbuf_str(&cmd));
}

/* The first number that a command says, hexadecimal; 0: none. */
static uint64_t number_of(const char *format, ...)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	char line[128] = "";
	va_list ap;
	FILE *p;

	va_start(ap, format);
	strbuf_vaddf(&cmd, format, ap);
	va_end(ap);
	p = popen(strbuf_str(&cmd), "r");
	assert_non_null(p);
	if (!fgets(line, sizeof(line), p))
		*line = 0;
	pclose(p);
	return strtoull(line, NULL, 16);
}

static bool layout_of(const char *path, struct python_layout *out)
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
	known = image_part(m.img, IMAGE_SECTION_PYTHON, &section, &size);
	if (known) {
		assert_int_equal(size, sizeof(*out));
		memcpy(out, section, sizeof(*out));
	}
	made_release(&m);
	return known;
}

static uint64_t symbol(const char *path, const char *name)
{
	return number_of("nm -D '%s' 2>/dev/null | grep ' %s$'", path, name);
}

static void scratch_make(char *dir)
{
	strcpy(dir, "/tmp/sonde-pypart-XXXXXX");
	assert_non_null(mkdtemp(dir));
}

/* `lib`: what holds the interpreter; `program`: what runs it. */
static void check_interpreter(const char *lib, const char *program, const char *dir)
{
	struct python_layout l, stripped;
	uint64_t loop = symbol(lib, "_PyEval_EvalFrameDefault");
	char copy[64];

	assert_true(layout_of(lib, &l));
	assert_int_equal(
		l.version,
		number_of("'%s' -c 'import sys; print(\"%%x\" %% sys.hexversion)'", program));
	assert_true(l.code_type == symbol(lib, "PyCode_Type") &&
		    l.frame_type == symbol(lib, "PyFrame_Type"));
	if (l.version >> 24 == 2) {
		assert_true(l.text_type == symbol(lib, "PyString_Type") &&
			    l.bytes_type == l.text_type);
		loop = symbol(lib, "PyEval_EvalFrameEx");
	} else {
		assert_true(l.text_type == symbol(lib, "PyUnicode_Type") &&
			    l.bytes_type == symbol(lib, "PyBytes_Type"));
	}
	assert_true(l.shape == PYTHON_OBJECTS ? l.loop_start[0] == loop && l.loop_end[0] > loop :
						!l.loop_end[0]);
	if (l.version >> 16 >= 0x0307)
		assert_true(l.interpreters > symbol(lib, "_PyRuntime") &&
			    l.interpreters < symbol(lib, "_PyRuntime") + 4096);
	else
		assert_true(l.interpreters == number_of("nm '%s' | grep ' interp_head$'", lib));
	snprintf(copy, sizeof(copy), "%s/stripped", dir);
	assert_int_equal(shell("strip -s -o %s '%s'", copy, lib), 0);
	assert_true(layout_of(copy, &stripped));
	assert_memory_equal(&l, &stripped, sizeof(l));
	unlink(copy);
}

TEST(each_interpreter_here_is_known_stripped_or_not)
{
	char dir[64], program[512];
	glob_t libs = {0};

	if (access("/usr/bin/python3", X_OK) || shell("nm --version >/dev/null 2>&1"))
		skip_missing("python3 and nm (binutils)");
	scratch_make(dir);
	/* else its interpreter is in a library, whose name each distribution chooses */
	if (symbol("/usr/bin/python3", "Py_Version"))
		check_interpreter("/usr/bin/python3", "/usr/bin/python3", dir);
	if (getenv("SONDE_PYTHONS"))
		glob("~/.pyenv/versions/*/lib/libpython?.*.so.1.0", GLOB_TILDE, NULL, &libs);
	for (size_t i = 0; i < libs.gl_pathc; i++) {
		snprintf(program, sizeof(program), "%.*s/bin/python",
			 (int)(strstr(libs.gl_pathv[i], "/lib/") - libs.gl_pathv[i]),
			 libs.gl_pathv[i]);
		check_interpreter(libs.gl_pathv[i], program, dir);
	}
	globfree(&libs);
	rmdir(dir);
}

/* A library with the symbols of one, whose loop has a part among the cold code. */
static const char made_source[] =
	"int snprintf(char *, unsigned long, const char *, ...);\n"
	"char _PyRuntime[4096], PyCode_Type[400], PyFrame_Type[400], PyUnicode_Type[400], PyBytes_Type[400];\n"
	"static char text[99];\n"
	"const char *Py_GetVersion(void) { snprintf(text, 99, \"%.80s (%.80s)\", \"3.9.18\", \"of a test\"); return text; }\n"
	"__attribute__((cold, noinline)) void rare(int x) { text[x & 63]++; }\n"
	"void other(int);\n"
	"int _PyEval_EvalFrameDefault(int x) {\n"
	"	for (int i = 0; i < x; i++) {\n"
	"		if (__builtin_expect(text[i & 31] == 3, 0)) { rare(i); other(i); rare(x); if (x == 77) rare(3); }\n"
	"		other(i); }\n"
	"	if (__builtin_expect(text[5] == 9, 0)) { rare(1); other(2); }\n"
	"	return x; }\n"
	"void other(int x) { text[x & 15] ^= 1; if (x > 3) rare(x); }\n";

TEST(a_part_of_the_loop_among_the_cold_code_is_found_without_its_symbol)
{
	struct python_layout l, stripped;
	char dir[64], path[96], bare[96];
	FILE *f;

	scratch_make(dir);
	snprintf(path, sizeof(path), "%s/made.c", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(made_source, f);
	fclose(f);
	snprintf(path, sizeof(path), "%s/made.so", dir);
	snprintf(bare, sizeof(bare), "%s/bare.so", dir);
	if (shell("gcc -O2 -fno-ipa-icf -shared -fPIC -o %s %s/made.c", path, dir) ||
	    !number_of("nm %s | grep ' _PyEval_EvalFrameDefault.cold$'", path)) {
		shell("rm -rf %s", dir);
		skip_missing("a gcc that puts cold code aside");
	}
	assert_int_equal(shell("strip -s -o %s %s", bare, path), 0);
	assert_true(layout_of(path, &l) && layout_of(bare, &stripped));
	assert_int_equal(l.version, 0x030912f0);
	assert_true(l.interpreters == symbol(path, "_PyRuntime") + 32);
	assert_true(l.loop_start[0] == symbol(path, "_PyEval_EvalFrameDefault"));
	assert_true(l.loop_start[1] ==
		    number_of("nm %s | grep ' _PyEval_EvalFrameDefault.cold$'", path));
	assert_true(l.loop_end[1] > l.loop_start[1] && !l.loop_end[2]);
	assert_memory_equal(&l, &stripped, sizeof(l));
	shell("rm -rf %s", dir);
}

TEST(a_version_is_read_as_python_writes_it)
{
	assert_int_equal(pylayout_version("3.8.18"), 0x030812f0);
	assert_int_equal(pylayout_version("2.7.18+"), 0x020712f0);
	assert_int_equal(pylayout_version("3.12.0rc2"), 0x030c00c2);
	assert_int_equal(pylayout_version("3.12.0a1"), 0x030c00a1);
	assert_int_equal(pylayout_version("3.12.0b3"), 0x030c00b3);
	assert_int_equal(pylayout_version("3.12"), 0);
	assert_int_equal(pylayout_version("3.12.x"), 0);
	assert_int_equal(pylayout_version("3.12.1 (main"), 0);
	assert_int_equal(pylayout_version("999.1.1"), 0);
	assert_int_equal(pylayout_version("%.80s (%.80s)"), 0);
	assert_int_equal(pylayout_version(""), 0);
}

TEST(versions_that_are_not_known_have_no_layout)
{
	struct python_layout l;
	uint64_t at;

	assert_true(pylayout_of_version(0x030812f0, &l, &at));
	assert_true(pylayout_of_version(0x030c00c1, &l, &at));
	assert_false(pylayout_of_version(0x030c00b1, &l,
					 &at)); /* structures change until the candidates */
	assert_false(pylayout_of_version(0x030500f0, &l, &at));
	assert_false(pylayout_of_version(0x030d00f0, &l, &at));
	assert_false(pylayout_of_version(0, &l, &at));
}

TEST(offsets_that_lie_give_no_layout)
{
	uint64_t words[PYLAYOUT_OFFSETS_SIZE / 8];
	struct python_layout l;
	uint64_t at = 0;

	for (size_t i = 0; i < PYLAYOUT_OFFSETS_SIZE / 8; i++)
		words[i] = 8 * i;
	memcpy(words, "xdebugpy", 8);
	words[1] = 0x030e02f0;
	words[2] = 0;
	assert_true(pylayout_of_offsets(words, sizeof(words), &l, &at));
	assert_int_equal(at, 40);
	assert_int_equal(l.version, 0x030e02f0);
	assert_int_equal(l.code_qualname, 8 * 42);
	for (size_t cut = 0; cut < 81; cut++)
		assert_false(pylayout_of_offsets(words, 8 * cut, &l, &at));
	words[2] = 1; /* without a GIL */
	assert_false(pylayout_of_offsets(words, sizeof(words), &l, &at));
	words[2] = 0;
	words[42] = 0xffff;
	assert_false(pylayout_of_offsets(words, sizeof(words), &l, &at));
	words[42] = 128;
	words[1] = 0x031000f0;
	assert_false(pylayout_of_offsets(words, sizeof(words), &l, &at));
	words[1] = 0x1030e02f0;
	assert_false(pylayout_of_offsets(words, sizeof(words), &l, &at));
	words[1] = 0x030e00a2;
	assert_false(pylayout_of_offsets(words, sizeof(words), &l, &at));
	words[1] = 0x030e02f0;
	memcpy(words, "xdebugpX", 8);
	assert_false(pylayout_of_offsets(words, sizeof(words), &l, &at));
}
