/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the ring `names`: what they say of an object, and records that lie. */
#include "tests/unit/loaders/lib/runtimes/fake.h"

#include <errno.h>

#include "loaders/lib/runtimes/scriptobject.h"

static struct fake f;
static struct script_names record;

/* Copies as the programs do (probes/runtimes/NAME.bpf.h): up to `max` bytes. */
static void piece(int i, uint32_t from, uint64_t at, size_t size, size_t max)
{
	uint32_t n = (uint32_t)(size < max ? size : max);

	record.piece[i] = (struct script_piece){
		at, from, f.m.read(f.m.ctx, at, record.data + from, n) ? n : 0};
}

static void taken_begin(uint32_t kind, uint64_t object)
{
	memset(&record, 0, sizeof(record));
	record.id = 7;
	record.image = 3;
	record.bias = FAKE_BIAS;
	record.key.object = object;
	record.layout.kind = kind;
}

static size_t taken(uint64_t code, uint64_t name, uint64_t file, size_t name_size)
{
	uint64_t lines = 0;

	taken_begin(RUNTIME_PYTHON, code);
	record.layout.python = f.l;
	f.m.read(f.m.ctx, code + f.l.code_lines, &lines, sizeof(lines));
	piece(0, 0, code, 160, 160);
	piece(1, 160, name, name_size, SCRIPT_TEXT_BYTES - 1);
	piece(2, 160 + SCRIPT_TEXT_BYTES, file, 64, SCRIPT_TEXT_BYTES - 1);
	piece(3, 160 + 2 * SCRIPT_TEXT_BYTES, lines, 32 + 48, SCRIPT_LINES_BYTES - 1);
	return offsetof(struct script_names, data) + record.piece[3].from + record.piece[3].size;
}

TEST(an_object_has_the_name_file_and_lines_that_were_copied)
{
	struct scriptobject o;
	uint64_t name, file;
	size_t size;

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
	assert_int_equal(scriptobject_line(&o, 0), 0);                       /* not known */
	assert_int_equal(scriptobject_line(&o, SCRIPT_PYTHON_NONE - 2), 10); /* not begun */
	assert_int_equal(scriptobject_line(&o, SCRIPT_PYTHON_NONE + 2 * 5), 15);
	assert_int_equal(scriptobject_line(&o, SCRIPT_POSITION_MAX), 0);
	scriptobject_release(&o);
}

TEST(a_name_that_is_too_long_is_cut)
{
	char longer[900];
	struct scriptobject o;
	uint64_t name, file;
	size_t size;

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

TEST(what_is_no_code_object_has_no_name)
{
	struct scriptobject o;
	uint64_t name, file, code;
	size_t size;

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

TEST(a_record_that_is_none_is_refused)
{
	struct scriptobject o;
	uint64_t name, file;
	size_t size;

	fake_begin(&f);
	name = fake_ascii(&f, "f");
	file = fake_ascii(&f, "a.py");
	size = taken(fake_code(&f, name, file, 1), name, file, 64);
	assert_int_equal(scriptobject_read(&record, offsetof(struct script_names, data) - 1, &o),
			 -EBADMSG);
	assert_int_equal(scriptobject_read(&record, sizeof(record) + 8, &o), -EBADMSG);
	record.layout.kind = 9;
	assert_int_equal(scriptobject_read(&record, size, &o), -EBADMSG);
	record.layout.kind = RUNTIME_PYTHON;
	record.id = 0;
	assert_int_equal(scriptobject_read(&record, size, &o), -EBADMSG);
	record.id = 1;
	record.piece[3].size = 0xffffffff; /* more than there is */
	assert_int_equal(scriptobject_read(&record, size, &o), 0);
	assert_int_equal(scriptobject_line(&o, SCRIPT_PYTHON_NONE), 0);
	assert_string_equal(scriptobject_function(&o), "f");
	scriptobject_release(&o);
}

static uint64_t php_string(const char *s)
{
	uint64_t at = fake_room(&f, 24 + strlen(s) + 1);
	const uint32_t gc[2] = {1, PHP_STRING_TYPE};

	fake_put(&f, at, gc, sizeof(gc));
	fake_word(&f, at + PHP_STRING_LENGTH, strlen(s));
	fake_put(&f, at + PHP_STRING_BYTES, s, strlen(s) + 1);
	return at;
}

TEST(a_function_of_php_has_its_class_and_the_line_that_its_frame_says)
{
	char longer[900];
	uint64_t name, file, class, func;
	struct scriptobject o;

	fake_begin(&f);
	memset(longer, 'd', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = 0;
	name = php_string("basket");
	file = php_string(longer);
	class = fake_room(&f, 16);
	fake_word(&f, class + PHP_CLASS_NAME, php_string("Shop"));
	func = fake_room(&f, PHP_FUNC_SIZE);
	fake_word(&f, func, PHP_SCRIPT);
	fake_word(&f, func + PHP_FUNC_NAME, name);
	fake_word(&f, func + PHP_FUNC_CLASS, class);
	fake_word(&f, func + 152, file);
	fake_word(&f, func + 152 + PHP_FUNC_LINE, 12);
	taken_begin(RUNTIME_PHP, func + 4096); /* its instructions */
	record.layout.php = (struct php_layout){
		.format = PHP_FORMAT, .file = 152, .code = 88, .code_count = 80};
	record.of = func;
	record.what = PHP_SCRIPT;
	piece(0, 0, func, PHP_FUNC_SIZE, PHP_FUNC_SIZE);
	piece(1, 200, name, 24 + 7, 511);
	piece(2, 800, file, 24 + 900, 511);
	piece(3, 1400, class, 16, 16);
	piece(4, 1500, class + 16, 24 + 5, 511);
	assert_int_equal(scriptobject_read(&record, sizeof(record), &o), 0);
	assert_string_equal(scriptobject_function(&o), "Shop::basket");
	assert_int_equal(strlen(scriptobject_file(&o)), SCRIPT_TEXT_FIRST + 3);
	assert_int_equal(scriptobject_first_line(&o), 12);
	assert_int_equal(scriptobject_line(&o, 15), 15);
	assert_int_equal(scriptobject_line(&o, 0), 0);
	scriptobject_release(&o);
	record.piece[4].size = 0; /* without its class it is another name */
	assert_int_equal(scriptobject_read(&record, sizeof(record), &o), 0);
	assert_null(scriptobject_function(&o));
	scriptobject_release(&o);
}

/* One instruction a line, from line 20 on. */
TEST(an_iseq_of_ruby_says_the_line_of_each_instruction)
{
	static const char label[] = "basket";
	uint64_t iseq, body, path, name, rows, index;
	struct scriptobject o;

	fake_begin(&f);
	name = fake_room(&f, 40);
	fake_word(&f, name, RUBY_TYPE_STRING | 6u << 14);
	fake_put(&f, name + 16, label, sizeof(label));
	path = fake_room(&f, 40);
	fake_word(&f, path, RUBY_TYPE_STRING | 4u << 14);
	fake_put(&f, path + 16, "a.rb", 5);
	body = fake_room(&f, 152);
	rows = fake_room(&f, 4 * 8);
	index = fake_room(&f, 48);
	fake_word(&f, body, 4ull << 32);
	fake_word(&f, body + RUBY_BODY_CODE, 0x1000);
	fake_word(&f, body + RUBY_BODY_PATH, path);
	fake_word(&f, body + RUBY_BODY_LABEL, name);
	fake_word(&f, body + 120, rows);
	fake_word(&f, body + 136, 4);
	fake_word(&f, body + 144, index);
	for (uint64_t i = 0; i < 4; i++)
		fake_word(&f, rows + 8 * i, 20 + i);
	fake_word(&f, index, 1 | 2 << 7 | 3 << 14 | 4 << 21);
	iseq = fake_room(&f, 24);
	fake_word(&f, iseq, RUBY_TYPE_MEMO | RUBY_MEMO_ISEQ << 12);
	fake_word(&f, iseq + RUBY_ISEQ_BODY, body);
	taken_begin(RUNTIME_RUBY, iseq);
	record.layout.ruby = (struct ruby_layout){.format = RUBY_FORMAT,
						  .lines = 120,
						  .lines_count = 136,
						  .lines_index = 144,
						  .line_size = 8,
						  .text_short = 16};
	piece(0, 0, iseq, 24, 24);
	piece(1, 40, body, 152, 152);
	piece(2, 200, name, 40, 40);
	piece(3, 240, path, 40, 40);
	piece(4, 280, index, 48, 1024);
	piece(5, 400, rows, 32, SCRIPT_LINES_BYTES);
	assert_int_equal(scriptobject_read(&record, sizeof(record), &o), 0);
	assert_string_equal(scriptobject_function(&o), "basket");
	assert_string_equal(scriptobject_file(&o), "a.rb");
	assert_int_equal(scriptobject_line(&o, 0), 0);
	assert_int_equal(scriptobject_line(&o, 2), 20); /* it says the next one */
	assert_int_equal(scriptobject_line(&o, 5), 23);
	assert_int_equal(scriptobject_line(&o, 6), 0);
	scriptobject_release(&o);
	record.piece[5].size = 16; /* the beginning of its rows */
	assert_int_equal(scriptobject_read(&record, sizeof(record), &o), 0);
	assert_int_equal(scriptobject_line(&o, 3), 21);
	assert_int_equal(scriptobject_line(&o, 5), 0);
	scriptobject_release(&o);
}
