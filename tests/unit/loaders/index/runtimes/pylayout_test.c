/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of members, compared with the headers of Debian's Python: a program compiled with these
 * headers prints them. SONDE_PYTHONS=all: also pyenv's headers; SONDE_PYTHONS=DIR: those under
 * DIR/include. */
#include "schema/base/array.h"
#include "tests/unit/loaders/index/testing.h"

#include <glob.h>
#include <stdio.h>
#include <unistd.h>

#include "loaders/index/runtimes/pylayout.h"
#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"
#include "tests/unit/missing.h"

/* Prints the version, then NAME VALUE lines. From 3.13 on a value is the word of _Py_DebugOffsets
 * that tells it. */
static const char source[] =
	"#define Py_BUILD_CORE 1\n"
	"#include <Python.h>\n"
	"#include <frameobject.h>\n"
	"#include <stddef.h>\n"
	"#include <stdio.h>\n"
	"#if PY_VERSION_HEX >= 0x030e0000\n"
	"#include <internal/pycore_debug_offsets.h>\n"
	"#elif PY_VERSION_HEX >= 0x030d0000\n"
	"#include <internal/pycore_runtime.h>\n"
	"#elif PY_VERSION_HEX >= 0x03090000\n"
	"#include <internal/pycore_interp.h>\n"
	"#include <internal/pycore_runtime.h>\n"
	"#elif PY_VERSION_HEX >= 0x03080000\n"
	"#include <internal/pycore_pystate.h>\n"
	"#elif PY_VERSION_HEX >= 0x03070000\n"
	"#include <internal/pystate.h>\n"
	"#endif\n"
	"#if PY_VERSION_HEX >= 0x03080000\n"
	"#include <internal/pycore_gil.h>\n"
	"#elif PY_VERSION_HEX >= 0x03070000\n"
	"#include <internal/gil.h>\n"
	"#endif\n"
	"#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000\n"
	"#include <internal/pycore_frame.h>\n"
	"#endif\n"
	"#define SAY(name, value) printf(\"%s %lu\\n\", name, (unsigned long)(value))\n"
	"#define AT(name, type, member) SAY(name, offsetof(type, member))\n"
	"int main(void)\n"
	"{\n"
	"	printf(\"%x\\n\", PY_VERSION_HEX);\n"
	"#if PY_VERSION_HEX >= 0x030d0000\n"
	"#define WORD(name, member) SAY(name, offsetof(_Py_DebugOffsets, member) / 8)\n"
	"	WORD(\"interpreters_at\", runtime_state.interpreters_head); WORD(\"interp_next\", interpreter_state.next);\n"
	"	WORD(\"interp_gil\", interpreter_state.ceval_gil); WORD(\"interp_threads\", interpreter_state.threads_head); WORD(\"thread_next\", thread_state.next);\n"
	"	WORD(\"thread_frame\", thread_state.current_frame); WORD(\"thread_id\", thread_state.thread_id);\n"
	"	WORD(\"frame_back\", interpreter_frame.previous); WORD(\"frame_code\", interpreter_frame.executable);\n"
	"	WORD(\"frame_at\", interpreter_frame.instr_ptr); WORD(\"frame_owner\", interpreter_frame.owner);\n"
	"	WORD(\"code_file\", code_object.filename); WORD(\"code_name\", code_object.name); WORD(\"code_qualname\", code_object.qualname);\n"
	"	WORD(\"code_lines\", code_object.linetable); WORD(\"code_first_line\", code_object.firstlineno);\n"
	"	WORD(\"code_start\", code_object.co_code_adaptive); WORD(\"code_size\", code_object.co_code_adaptive);\n"
	"	WORD(\"object_type\", pyobject.ob_type); WORD(\"bytes_length\", bytes_object.ob_size); WORD(\"bytes_data\", bytes_object.ob_sval);\n"
	"	WORD(\"text_state\", unicode_object.state); WORD(\"text_length\", unicode_object.length); WORD(\"text_ascii\", unicode_object.asciiobject_size);\n"
	"#else\n"
	"	AT(\"object_type\", PyObject, ob_type); AT(\"thread_next\", PyThreadState, next); AT(\"thread_id\", PyThreadState, thread_id);\n"
	"	AT(\"code_first_line\", PyCodeObject, co_firstlineno); AT(\"code_file\", PyCodeObject, co_filename);\n"
	"	AT(\"code_name\", PyCodeObject, co_name); AT(\"bytes_length\", PyVarObject, ob_size);\n"
	"#if PY_VERSION_HEX >= 0x03000000\n"
	"	AT(\"text_length\", PyASCIIObject, length); AT(\"text_state\", PyASCIIObject, state);\n"
	"	SAY(\"text_ascii\", sizeof(PyASCIIObject)); SAY(\"text_compact\", sizeof(PyCompactUnicodeObject));\n"
	"	AT(\"bytes_data\", PyBytesObject, ob_sval);\n"
	"#else\n"
	"	AT(\"bytes_data\", PyStringObject, ob_sval);\n"
	"#endif\n"
	"#if PY_VERSION_HEX >= 0x030b0000\n"
	"	AT(\"thread_frame\", PyThreadState, cframe); AT(\"cframe_frame\", _PyCFrame, current_frame); AT(\"cframe_back\", _PyCFrame, previous);\n"
	"	AT(\"frame_back\", _PyInterpreterFrame, previous); AT(\"frame_code\", _PyInterpreterFrame, f_code); AT(\"frame_at\", _PyInterpreterFrame, prev_instr);\n"
	"	AT(\"code_start\", PyCodeObject, co_code_adaptive); AT(\"code_size\", PyCodeObject, co_code_adaptive); AT(\"code_length\", PyVarObject, ob_size);\n"
	"	AT(\"code_qualname\", PyCodeObject, co_qualname); AT(\"code_lines\", PyCodeObject, co_linetable);\n"
	"	AT(\"interp_next\", PyInterpreterState, next); AT(\"interp_threads\", PyInterpreterState, threads.head);\n"
	"#if PY_VERSION_HEX >= 0x030c0000\n"
	"	AT(\"frame_owner\", _PyInterpreterFrame, owner); AT(\"interp_gil\", PyInterpreterState, ceval.gil);\n"
	"	if (FRAME_OWNED_BY_CSTACK != 3) return 1;\n"
	"#else\n"
	"	AT(\"frame_owner\", _PyInterpreterFrame, is_entry);\n"
	"#endif\n"
	"#else\n"
	"	AT(\"thread_frame\", PyThreadState, frame); AT(\"frame_back\", struct _frame, f_back); AT(\"frame_code\", struct _frame, f_code);\n"
	"	AT(\"frame_at\", struct _frame, f_lasti); SAY(\"code_size\", sizeof(PyCodeObject));\n"
	"#if PY_VERSION_HEX >= 0x030a0000\n"
	"	AT(\"code_lines\", PyCodeObject, co_linetable);\n"
	"#else\n"
	"	AT(\"code_lines\", PyCodeObject, co_lnotab);\n"
	"#endif\n"
	"	AT(\"interp_next\", PyInterpreterState, next); AT(\"interp_threads\", PyInterpreterState, tstate_head);\n"
	"#endif\n"
	"#if PY_VERSION_HEX >= 0x03070000\n"
	"	AT(\"interpreters_at\", _PyRuntimeState, interpreters.head);\n"
	"#if PY_VERSION_HEX < 0x030c0000\n"
	"	AT(\"gil\", _PyRuntimeState, ceval.gil);\n"
	"#endif\n"
	"#endif\n"
	"#endif\n"
	"#if PY_VERSION_HEX >= 0x03070000\n"
	"	AT(\"gil_holder\", struct _gil_runtime_state, last_holder); AT(\"gil_locked\", struct _gil_runtime_state, locked);\n"
	"	AT(\"gil_cond\", struct _gil_runtime_state, cond); SAY(\"gil_size\", sizeof(struct _gil_runtime_state));\n"
	"#endif\n"
	"	return 0;\n"
	"}\n";

static uint64_t member(const struct python_layout *l, const char *name, uint64_t interpreters_at)
{
#define MEMBER(m)              \
	if (!strcmp(name, #m)) \
	return l->m
	MEMBER(interp_next);
	MEMBER(interp_threads);
	MEMBER(thread_next);
	MEMBER(thread_id);
	MEMBER(thread_frame);
	MEMBER(cframe_frame);
	MEMBER(cframe_back);
	MEMBER(frame_back);
	MEMBER(frame_code);
	MEMBER(frame_at);
	MEMBER(frame_owner);
	MEMBER(object_type);
	MEMBER(code_size);
	MEMBER(code_length);
	MEMBER(code_start);
	MEMBER(code_first_line);
	MEMBER(code_file);
	MEMBER(code_name);
	MEMBER(code_qualname);
	MEMBER(code_lines);
	MEMBER(text_length);
	MEMBER(text_state);
	MEMBER(text_ascii);
	MEMBER(text_compact);
	MEMBER(bytes_length);
	MEMBER(bytes_data);
	MEMBER(interp_gil);
	MEMBER(gil);
#undef MEMBER
	if (!strncmp(name, "gil_", 4))
		return name[4] == 'h' ? PYTHON_GIL_HOLDER :
		       name[4] == 'l' ? PYTHON_GIL_LOCKED :
		       name[4] == 'c' ? PYTHON_GIL_COND :
					PYTHON_GIL_SIZE;
	if (!strcmp(name, "interpreters_at"))
		return interpreters_at;
	fail_msg("no member %s", name);
	return 0;
}

/* The layout of that version; from 3.13 on of offsets that each tell the number of their word. */
static void layout(uint32_t version, struct python_layout *l, uint64_t *interpreters_at)
{
	uint64_t words[PYLAYOUT_OFFSETS_SIZE / 8];

	if (version >> 16 < 0x030d) {
		assert_true(pylayout_of_version(version, l, interpreters_at));
		return;
	}
	for (size_t i = 0; i < PYLAYOUT_OFFSETS_SIZE / 8; i++)
		words[i] = i;
	memcpy(words, "xdebugpy", 8);
	words[1] = version;
	words[2] = 0;
	assert_true(pylayout_of_offsets(words, sizeof(words), l, interpreters_at));
}

/* `dir` holds Python.h. false: it does not compile here. */
static bool check_headers(const char *dir, const char *scratch)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	uint64_t interpreters_at = 0;
	struct python_layout l;
	char line[128], name[64];
	uint32_t version = 0;
	unsigned long value;
	size_t members = 0;
	FILE *p;

	strbuf_addf(&cmd,
		    "gcc -w -I'%s' -I'%s/internal' -I'%s/..' -o %s/say %s/say.c 2>%s/why && %s/say",
		    dir, dir, dir, scratch, scratch, scratch, scratch);
	p = popen(strbuf_str(&cmd), "r");
	assert_non_null(p);
	if (fgets(line, sizeof(line), p))
		version = (uint32_t)strtoul(line, NULL, 16);
	if (version)
		layout(version, &l, &interpreters_at);
	while (version && fgets(line, sizeof(line), p) &&
	       sscanf(line, "%63s %lu", name, &value) == 2) {
		if (member(&l, name, interpreters_at) != value)
			fail_msg("%x: %s is %lu, not %lu", version, name, value,
				 (unsigned long)member(&l, name, interpreters_at));
		members++;
	}
	assert_true(!pclose(p) || !version);
	assert_true(!version || members >= 15);
	return version;
}

TEST(members_stand_where_the_headers_of_python_say)
{
	char scratch[] = "/tmp/sonde-pylayout-XXXXXX", path[512];
	const char *more = getenv("SONDE_PYTHONS");
	glob_t found = {0};
	size_t good = 0;
	FILE *f;

	assert_non_null(mkdtemp(scratch));
	snprintf(path, sizeof(path), "%s/say.c", scratch);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	glob("/usr/include/python?.*", 0, NULL, &found);
	if (more) {
		snprintf(path, sizeof(path), "%s/include/python?.*",
			 strcmp(more, "all") ? more : "~/.pyenv/versions/*");
		glob(path, GLOB_TILDE | GLOB_APPEND, NULL, &found);
	}
	for (size_t i = 0; i < found.gl_pathc; i++)
		good += check_headers(found.gl_pathv[i], scratch);
	if (more)
		assert_int_equal(good, found.gl_pathc);
	globfree(&found);
	snprintf(path, sizeof(path), "rm -rf %s", scratch);
	assert_int_equal(system(path), 0);
	if (!good)
		skip_missing("Python.h (libpython3-dev)");
}

/* Without a GIL 3.13 keeps frames as with it, and says where its larger objects have their members;
 * from 3.14 on threads have copies of the code. */
TEST(of_builds_without_a_gil_3_13_alone_is_known)
{
	static uint64_t words[PYLAYOUT_OFFSETS_SIZE / 8];
	uint64_t interpreters_at = 0;
	struct python_layout l;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = i;
	memcpy(words, "xdebugpy", 8);
	words[2] = 1;
	words[1] = 0x030d05f0;
	assert_true(pylayout_of_offsets(words, sizeof(words), &l, &interpreters_at));
	words[1] = 0x030e00f0;
	assert_false(pylayout_of_offsets(words, sizeof(words), &l, &interpreters_at));
}
