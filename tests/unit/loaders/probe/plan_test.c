/* SPDX-License-Identifier: Apache-2.0 */
/* From a tracepoint's format and a spec to what the program reads. */
#include <errno.h>
#include <linux/types.h>
#include <string.h>

#include "loaders/probe/format.h"
#include "loaders/probe/plan.h"
#include "tests/unit/test.h"

static const char SWITCH[] = "name: sched_switch\nID: 316\nformat:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			     "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
			     "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
			     "\tfield:__data_loc char[] filename;\toffset:28;\tsize:4;\tsigned:0;\n"
			     "\tfield:unsigned long bits[4];\toffset:32;\tsize:32;\tsigned:0;\n"
			     "\tfield:u64 state;\toffset:64;\tsize:8;\tsigned:0;\n"
			     "\nprint fmt: \"field:int x;\", REC->x\n";

static const char OPENAT[] = "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
			     "\tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;\n"
			     "\tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;\n"
			     "\tfield:int flags;\toffset:32;\tsize:8;\tsigned:0;\n"
			     "\tfield:umode_t mode;\toffset:40;\tsize:8;\tsigned:0;\n";

TEST(fields_are_read_with_their_kinds_and_common_ones_left_out)
{
	struct format_field f[FORMAT_FIELDS];

	assert_int_equal(format_read(SWITCH, strlen(SWITCH), f), 5);
	assert_string_equal(f[0].name, "prev_comm");
	assert_int_equal(f[0].what, FORMAT_CHARS);
	assert_string_equal(f[1].type, "pid_t");
	assert_int_equal(f[1].what, FORMAT_NUMBER);
	assert_true(f[1].is_signed);
	assert_string_equal(f[2].name, "filename");
	assert_int_equal(f[2].what, FORMAT_DATA_LOC);
	assert_int_equal(f[3].what, FORMAT_OTHER);
	assert_int_equal(f[4].offset, 64);
}

TEST(lines_that_are_no_fields_are_passed_over)
{
	static const char *const bad[] = {
		"\tfield:int a;\toffset:70000;\tsize:4;\tsigned:1;\n",
		"\tfield:int a;\toffset:x;\tsize:4;\n",
		"\tfield:;\toffset:8;\tsize:4;\tsigned:1;\n",
		"field:",
		"\tfield:int ];\toffset:8;\tsize:4;\tsigned:1;\n",
	};
	struct format_field f[FORMAT_FIELDS];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(format_read(bad[i], strlen(bad[i]), f), 0);
}

static int make(const char *text, const char *format, struct probespec *s, struct probe_plan *plan,
		struct err *e)
{
	struct format_field f[FORMAT_FIELDS];
	size_t n = format_read(format, strlen(format), f);

	assert_int_equal(probespec_parse(text, s, e), 0);
	return plan_make(s, NULL, &(struct plan_source){.fields = f, .n_fields = n}, plan, e);
}

TEST(a_tracepoint_without_a_choice_has_all_that_can_be_read)
{
	struct probespec s;
	struct probe_plan p;
	struct err e = {0};

	assert_int_equal(make("tracepoint:sched:sched_switch", SWITCH, &s, &p, &e), 0);
	assert_int_equal(s.n_args, 4);
	assert_int_equal(p.args[0].text, PROBE_TEXT_CONTEXT);
	assert_int_equal(p.args[1].size, 4);
	assert_true(p.args[1].is_signed);
	assert_int_equal(p.args[2].text, PROBE_TEXT_DATA_LOC);
	assert_int_equal(p.args[3].offset, 64);
	assert_int_equal(p.conds[0].arg, PROBE_NONE);
	assert_int_equal(p.by[0], PROBE_NONE);
	assert_int_equal(p.hist, PROBE_NONE);
}

TEST(a_field_that_is_not_there_is_refused_with_those_that_are)
{
	struct probespec s;
	struct probe_plan p;
	struct err e = {0};

	assert_int_equal(make("tracepoint:a:b(nope)", SWITCH, &s, &p, &e), -EINVAL);
	assert_non_null(strstr(e.what, "column 16"));
	assert_non_null(strstr(e.what, "prev_comm prev_pid"));
	assert_int_equal(make("tracepoint:a:b(bits)", SWITCH, &s, &p, &e), -EINVAL);
	assert_int_equal(make("tracepoint:a:b(x=int8 $1)", SWITCH, &s, &p, &e), -EINVAL);
}

TEST(a_system_calls_arguments_are_those_of_its_begin)
{
	struct probespec s;
	struct probe_plan p;
	struct err e = {0};

	assert_int_equal(make("syscall:openat ret<0 by filename,ret", OPENAT, &s, &p, &e), 0);
	assert_int_equal(s.n_args, 4);
	assert_int_equal(s.args[0].type, PROBESPEC_INT32);
	assert_int_equal(s.args[1].type, PROBESPEC_STR);
	assert_int_equal(p.args[1].text, PROBE_TEXT_USER);
	assert_int_equal(p.args[1].offset, 1);
	assert_int_equal(s.args[3].type, PROBESPEC_UINT16);
	assert_true(p.ends);
	assert_int_equal(p.conds[0].arg, PROBE_RET);
	assert_true(p.conds[0].is_signed);
	assert_int_equal(p.by[0], 1);
	assert_int_equal(p.by[1], PROBE_RET);
	assert_int_equal(p.hist, PROBE_NS);
	assert_int_equal(make("syscall:openat(x=int32 $7)", OPENAT, &s, &p, &e), -EINVAL);
	assert_int_equal(make("syscall:openat(x=int32 @rdi)", OPENAT, &s, &p, &e), -EINVAL);
}

TEST(all_system_calls_have_their_name_as_first_argument)
{
	struct probespec s;
	struct probe_plan p;
	struct err e = {0};

	assert_int_equal(make("syscalls", "", &s, &p, &e), 0);
	assert_int_equal(s.n_args, 1);
	assert_int_equal(p.args[0].from, PROBE_FROM_CALL_NR);
	assert_int_equal(p.by[0], 0);
}

TEST(which_system_call_it_is_is_there_once_also_where_it_is_asked_for)
{
	struct probespec s;
	struct probe_plan p;
	struct err e = {0};

	assert_int_equal(make("syscall:*(call) by call", "", &s, &p, &e), 0);
	assert_int_equal(s.n_args, 1);
	assert_int_equal(make("syscall:*(x=int64 $1, nr=call) by nr,x", "", &s, &p, &e), 0);
	assert_int_equal(s.n_args, 2);
	assert_int_equal(p.args[1].from, PROBE_FROM_CALL_NR);
	assert_int_equal(make("syscall:*(call=int64 $1)", "", &s, &p, &e), -EINVAL);
	assert_non_null(strstr(e.what, "choose another"));
}

TEST(fields_that_the_kernel_names_alike_are_there_once)
{
	static const char twice[] = "\tfield:int a;\toffset:16;\tsize:8;\tsigned:1;\n"
				    "\tfield:int a;\toffset:24;\tsize:8;\tsigned:1;\n"
				    "\tfield:int ret;\toffset:32;\tsize:8;\tsigned:1;\n"
				    "\tfield:int error;\toffset:40;\tsize:8;\tsigned:1;\n";
	struct probespec s;
	struct probe_plan p;
	struct err e = {0};

	assert_int_equal(make("tracepoint:a:b", twice, &s, &p, &e), 0);
	assert_int_equal(s.n_args, 3);
	assert_int_equal(make("syscall:x", twice, &s, &p, &e), 0);
	assert_int_equal(s.n_args, 1);
}

TEST(characters_of_a_field_end_where_the_field_does)
{
	struct probespec s;
	struct probe_plan p;
	struct err e = {0};

	assert_int_equal(make("tracepoint:a:b(prev_comm)", SWITCH, &s, &p, &e), 0);
	assert_int_equal(p.args[0].text, PROBE_TEXT_CONTEXT);
	assert_int_equal(p.args[0].more, 16);
}

TEST(a_functions_return_keeps_what_its_begin_had)
{
	struct probespec s;
	struct probe_plan p;
	struct err e = {0};

	assert_int_equal(
		make("func:/a:f%return(a=str $1, b=int8 $2, ret=uint32) by ret", "", &s, &p, &e),
		0);
	assert_int_equal(p.pair, PROBE_PAIR_RETURN);
	assert_true(p.args[0].begun && p.args[1].begun && p.ends && p.returns && !p.errors);
	assert_int_equal(p.kept, 1);
	assert_int_equal(p.ret_size, 4);
	assert_false(p.ret_signed);
	assert_int_equal(make("func:/a:f%return(a=str $1, b=str $2, c=str $3)", "", &s, &p, &e),
			 -EINVAL);
	assert_int_equal(make("func:/a:f%return(ret=str)", "", &s, &p, &e), 0);
	assert_int_equal(p.args[0].from, PROBE_FROM_RETURNED);
	assert_false(p.args[0].begun);
}

TEST(go_has_registers_of_its_own_and_texts_with_a_length)
{
	struct probespec s;
	struct probe_plan p;
	struct err e = {0};

	assert_int_equal(make("go:/a:main.f(n=int64 $1, s=str $2)", "", &s, &p, &e), 0);
	assert_int_equal(p.args[0].offset, 80);
	assert_int_equal(p.args[1].offset, 40);
	assert_int_equal(p.args[1].text, PROBE_TEXT_COUNTED);
	assert_int_equal(p.args[1].more, 88);
	assert_int_equal(make("go:/a:main.f(s=str $9)", "", &s, &p, &e), -EINVAL);
	assert_int_equal(make("go:/a:main.f(s=int8 $10)", "", &s, &p, &e), -EINVAL);
}

TEST(code_has_registers_by_name_and_by_number)
{
	struct probespec s;
	struct probe_plan p;
	struct err e = {0};

	assert_int_equal(make("func:/a:f(a=int32 $1, b=uint8 @rsi+4, c=str @rdx)", "", &s, &p, &e),
			 0);
	assert_int_equal(p.args[0].offset, 112);
	assert_int_equal(p.args[0].size, 4);
	assert_int_equal(p.args[1].offset, 104);
	assert_true(p.args[1].deref);
	assert_int_equal(p.args[1].more, 4);
	assert_int_equal(p.args[2].text, PROBE_TEXT_USER);
	assert_int_equal(make("func:/a:f(a=int32 @zz)", "", &s, &p, &e), -EINVAL);
	assert_int_equal(make("func:/a:f(a=int32 $7)", "", &s, &p, &e), -EINVAL);
}
