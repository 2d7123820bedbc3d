/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the ring `names`: what they say of an object, and records that lie. */
#include "tests/unit/loaders/lib/runtimes/fake.h"

#include <errno.h>

#include "loaders/lib/runtimes/scriptobject.h"

static struct fake f;
static struct script_names record;

/* Copies as the program does (probes/runtimes/python.bpf.h). */
static void piece(int i, uint32_t from, uint32_t max, uint64_t at, size_t size)
{
	uint32_t n = size < max ? (uint32_t)size : max - 1;

	record.piece_at[i] = at;
	record.piece_size[i] = f.m.read(f.m.ctx, at, record.data + from, n) ? n : 0;
}

static size_t taken(uint64_t code, uint64_t name, uint64_t file, size_t name_size)
{
	uint64_t lines = 0;

	memset(&record, 0, sizeof(record));
	record.id = 7;
	record.image = 3;
	record.bias = FAKE_BIAS;
	record.key.object = code;
	record.layout.kind = RUNTIME_PYTHON;
	record.layout.python = f.l;
	f.m.read(f.m.ctx, code + f.l.code_lines, &lines, sizeof(lines));
	piece(SCRIPT_HEAD, 0, SCRIPT_HEAD_BYTES + 1, code, SCRIPT_HEAD_BYTES);
	piece(SCRIPT_NAME, SCRIPT_NAME_AT, SCRIPT_TEXT_BYTES, name, name_size);
	piece(SCRIPT_FILE, SCRIPT_FILE_AT, SCRIPT_TEXT_BYTES, file, 64);
	piece(SCRIPT_LINES, SCRIPT_LINES_AT, SCRIPT_LINES_BYTES, lines, 32 + 48);
	return offsetof(struct script_names, data) + SCRIPT_LINES_AT + record.piece_size[SCRIPT_LINES];
}

static void an_object_has_the_name_file_and_lines_that_were_copied(void **state)
{
	struct scriptobject o;
	uint64_t name, file;
	size_t size;

	(void)state;
	fake_begin(&f);
	name = fake_ascii(&f, "Class.method");
	file = fake_ascii(&f, "/srv/app.py");
	size = taken(fake_code(&f, name, file, 10), name, file, 64);
	assert_int_equal(scriptobject_read(&record, size, &o), 0);
	assert_int_equal(o.id, 7);
	assert_int_equal(o.image, 3);
	assert_string_equal(scriptobject_function(&o), "Class.method");
	assert_string_equal(scriptobject_file(&o), "/srv/app.py");
	assert_int_equal(scriptobject_first_line(&o), 10);
	assert_int_equal(scriptobject_line(&o, 0), 0);                      /* not known */
	assert_int_equal(scriptobject_line(&o, SCRIPT_PYTHON_NONE - 2), 10); /* not begun */
	assert_int_equal(scriptobject_line(&o, SCRIPT_PYTHON_NONE + 2 * 5), 15);
	assert_int_equal(scriptobject_line(&o, SCRIPT_POSITION_MAX), 0);
	scriptobject_release(&o);
}

static void a_name_that_is_too_long_is_cut(void **state)
{
	char longer[900];
	struct scriptobject o;
	uint64_t name, file;
	size_t size;

	(void)state;
	memset(longer, 'n', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	fake_begin(&f);
	name = fake_ascii(&f, longer);
	file = fake_ascii(&f, "a.py");
	size = taken(fake_code(&f, name, file, 1), name, file, 2000);
	assert_int_equal(scriptobject_read(&record, size, &o), 0);
	assert_int_equal(strlen(scriptobject_function(&o)), PYCODE_TEXT_FIRST + 3);
	assert_string_equal(scriptobject_function(&o) + PYCODE_TEXT_FIRST, "...");
	scriptobject_release(&o);
}

static void what_is_no_code_object_has_no_name(void **state)
{
	struct scriptobject o;
	uint64_t name, file, code;
	size_t size;

	(void)state;
	fake_begin(&f);
	name = fake_ascii(&f, "f");
	file = fake_ascii(&f, "a.py");
	code = fake_code(&f, name, file, 1);
	fake_word(&f, code + 8, FAKE_BASE + 0x999); /* its type */
	size = taken(code, name, file, 64);
	assert_int_equal(scriptobject_read(&record, size, &o), 0);
	assert_null(scriptobject_function(&o));
	assert_null(scriptobject_file(&o));
	assert_int_equal(scriptobject_line(&o, SCRIPT_PYTHON_NONE), 0);
	scriptobject_release(&o);
}

static void a_record_that_is_none_is_refused(void **state)
{
	struct scriptobject o;
	uint64_t name, file;
	size_t size;

	(void)state;
	fake_begin(&f);
	name = fake_ascii(&f, "f");
	file = fake_ascii(&f, "a.py");
	size = taken(fake_code(&f, name, file, 1), name, file, 64);
	assert_int_equal(scriptobject_read(&record, offsetof(struct script_names, data), &o), -EBADMSG);
	assert_int_equal(scriptobject_read(&record, sizeof(record) + 8, &o), -EBADMSG);
	record.layout.kind = 9;
	assert_int_equal(scriptobject_read(&record, size, &o), -EBADMSG);
	record.layout.kind = RUNTIME_PYTHON;
	record.id = 0;
	assert_int_equal(scriptobject_read(&record, size, &o), -EBADMSG);
	record.id = 1;
	record.piece_size[SCRIPT_LINES] = 0xffffffff; /* more than there is */
	assert_int_equal(scriptobject_read(&record, size, &o), 0);
	assert_int_equal(scriptobject_line(&o, SCRIPT_PYTHON_NONE), 0);
	assert_string_equal(scriptobject_function(&o), "f");
	scriptobject_release(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_object_has_the_name_file_and_lines_that_were_copied),
		cmocka_unit_test(a_name_that_is_too_long_is_cut),
		cmocka_unit_test(what_is_no_code_object_has_no_name),
		cmocka_unit_test(a_record_that_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
