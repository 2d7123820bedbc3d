/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of probes. */
#include "schema/probespec/presets.h"
#include "schema/probespec/spec.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct probespec parsed(const char *text)
{
	struct probespec s;
	struct err e = {0};

	if (probespec_parse(text, &s, &e))
		fail_msg("%s: %s", text, e.what);
	return s;
}

static void refused(const char *text, const char *why)
{
	struct probespec s;
	struct err e = {0};

	assert_int_equal(probespec_parse(text, &s, &e), -EINVAL);
	assert_int_equal(e.exit, EXIT_USAGE);
	if (!strstr(e.what, why))
		fail_msg("%s: '%s' does not say '%s'", text, e.what, why);
}

TEST(a_system_call_has_arguments_conditions_and_sums)
{
	struct probespec s = parsed("mine=syscall:openat(path=str $2, flags=int32 $3) if ret<0 and "
				    "path~'/etc' by path,ret rate 7 stack");

	assert_int_equal(s.at.kind, PROBESPEC_SYSCALL);
	assert_string_equal(s.name, "mine");
	assert_string_equal(s.at.target, "openat");
	assert_string_equal(s.text, "syscall:openat(path=str $2, flags=int32 $3) if ret<0 and "
				    "path~'/etc' by path,ret rate 7 stack");
	assert_int_equal(s.n_args, 2);
	assert_string_equal(s.args[0].name, "path");
	assert_int_equal(s.args[0].type, PROBESPEC_STR);
	assert_int_equal(s.args[0].number, 2);
	assert_int_equal(s.args[1].type, PROBESPEC_INT32);
	assert_int_equal(s.n_conds, 2);
	assert_int_equal(s.conds[0].op, PROBESPEC_LT);
	assert_int_equal(s.conds[0].number, 0);
	assert_true(s.conds[1].is_text);
	assert_string_equal(s.conds[1].text, "/etc");
	assert_int_equal(s.n_by, 2);
	assert_int_equal(s.rate, 7);
	assert_true(s.stack);
	assert_int_equal(probespec_bind(&s, NULL), 0);
	assert_int_equal(s.by[0].arg, 0);
	assert_int_equal(s.by[1].arg, PROBESPEC_RET);
	assert_int_equal(s.conds[0].of.arg, PROBESPEC_RET);
}

TEST(names_of_errors_are_numbers_also_below_zero)
{
	assert_int_equal(parsed("syscall:open ret==-ENOENT").conds[0].number, -ENOENT);
	assert_int_equal(parsed("tracepoint:a:b e==EPERM").conds[0].number, EPERM);
	assert_int_equal(parsed("tracepoint:a:b e & 0x10").conds[0].number, 16);
}

TEST(a_tracepoint_has_fields_by_their_names_or_others)
{
	struct probespec s = parsed("tracepoint:sched:sched_switch(prev_comm, to=next_pid)");

	assert_string_equal(s.at.group, "sched");
	assert_string_equal(s.name, "sched_switch");
	assert_string_equal(s.args[0].field, "prev_comm");
	assert_string_equal(s.args[1].name, "to");
	assert_string_equal(s.args[1].field, "next_pid");
	assert_false(parsed("tracepoint:a:b").at.chosen);
	assert_true(parsed("tracepoint:a:b()").at.chosen);
}

TEST(code_is_a_file_with_a_function_an_offset_or_a_usdt_probe)
{
	struct probespec s = parsed("func:/usr/bin/app:parse(len=int64 @rsi, s=str @rdi+8)");

	assert_string_equal(s.at.group, "/usr/bin/app");
	assert_string_equal(s.at.target, "parse");
	assert_string_equal(s.args[0].reg, "rsi");
	assert_false(s.args[0].deref);
	assert_true(s.args[1].deref);
	assert_int_equal(s.args[1].offset, 8);
	assert_int_equal(parsed("func:/a:0x1f0").at.offset, 0x1f0);
	s = parsed("usdt:/lib/libc.so.6:libc:setjmp");
	assert_string_equal(s.at.provider, "libc");
	assert_string_equal(s.at.target, "setjmp");
	s = parsed("func:/a:main.(*T).f(x=int64 @rax)");
	assert_string_equal(s.at.target, "main.(*T).f");
	assert_int_equal(s.n_args, 1);
}

TEST(a_functions_return_has_what_it_returns_and_its_time)
{
	struct probespec s =
		parsed("func:/a:f%return(len=int64 $2, ret=int32) ret<0 hist ns by len");

	assert_true(s.returns);
	assert_string_equal(s.at.target, "f");
	assert_int_equal(s.n_args, 1);
	assert_true(s.args[0].first);
	assert_int_equal(s.ret_type, PROBESPEC_INT32);
	assert_int_equal(probespec_bind(&s, NULL), 0);
	assert_int_equal(s.hist.arg, PROBESPEC_NS);
	assert_int_equal(s.conds[0].of.arg, PROBESPEC_RET);
	s = parsed("func:/bin/bash:readline%return(ret=str) by ret");
	assert_true(s.args[0].returned);
	assert_false(s.args[0].first);
	assert_int_equal(probespec_bind(&s, NULL), 0);
	assert_int_equal(s.by[0].arg, 0);
	s = parsed("go:/a:main.(*S).handle%return");
	assert_int_equal(s.at.kind, PROBESPEC_GO);
	assert_string_equal(s.at.target, "main.(*S).handle");
	assert_true(s.returns);
}

TEST(a_pair_has_arguments_of_both_hooks_and_one_of_its_keys)
{
	struct probespec s =
		parsed("io=latency from tracepoint:block:block_rq_issue(dev, sector, comm) to "
		       "tracepoint:block:block_rq_complete(error) by tid rate 5");

	assert_true(s.latency);
	assert_string_equal(s.from.target, "block_rq_issue");
	assert_string_equal(s.at.target, "block_rq_complete");
	assert_int_equal(s.n_args, 4);
	assert_true(s.args[2].first);
	assert_false(s.args[3].first);
	assert_int_equal(s.n_key, 1);
	s = parsed(
		"latency from tracepoint:block:block_rq_issue to "
		"tracepoint:block:block_rq_complete(status=error, dev, sector) by dev,sector by dev");
	assert_int_equal(s.n_key, 2);
	assert_int_equal(s.n_args, 3);
	assert_string_equal(s.args[s.key[1].arg].name, "sector");
	assert_string_equal(s.key[1].last.field, "sector");
	assert_string_equal(s.args[2].name, "status");
	assert_int_equal(s.n_by, 1);
}

TEST(a_refusal_says_the_column)
{
	refused("tracepoin:a:b", "column 1:");
	refused("tracepoint:a", "column 13:");
	refused("syscall:openat(path=str 2)", "column 25:");
	refused("syscall:openat(path=str $2", "column 27: , or ) must follow");
	refused("syscall:openat(a=int8 $0)", "arguments are $1");
	refused("syscall:openat ret<", "column 20:");
	refused("syscall:openat ret<'x'", "a text is compared");
	refused("syscall:openat(ret)", "this name is taken");
	refused("func:an app:f", "has no blank here");
	refused("func::f", "a program or library must follow");
	refused("gogc", "this preset wants a file");
	refused("exec:/bin/sh", "not about a file");
	refused("pygc: stack", "a program or library must follow");
	refused("func:/app:f%returns", "a blank or (");
	refused("func:/app:f%return(ns=int64 $1)", "this name is taken");
	refused("syscall:read(error=int64 $1)", "this name is taken");
	refused("usdt:/app:p%return", "a blank or (");
	refused("latency from usdt:/a:b usdt:/a:c by tid", "column 24: to must follow");
	refused("latency from usdt:/a:b to usdt:/a:c", "by must follow");
	refused("latency from usdt:/a:b(x=int64 $1) to usdt:/a:c by x", "column 52: a key is");
	refused("latency from syscall:read to usdt:/a:c by tid",
		"column 14: a system call has two");
	refused("latency from func:/a:b%return to usdt:/a:c by tid", "has its time by itself");
	refused("latency from usdt:/a:b(x=int8 $1) to usdt:/a:c(x=int8 $1) by tid", "is taken");
	refused("syscall:read by a,b,c", "2 arguments at most");
	refused("syscall:read rate 100001", "0 to 100000");
	refused("", "column 1:");
	refused("openfail stack stack2", "column 22:");
}

TEST(an_option_names_what_there_is)
{
	struct probespec s = parsed("syscall:read(fd=int32 $1) by fdd");
	struct err e = {0};

	assert_int_equal(probespec_bind(&s, &e), -EINVAL);
	assert_non_null(strstr(e.what, "it has: fd ret ns"));
	s = parsed("tracepoint:a:b(x) by ret");
	assert_int_equal(probespec_bind(&s, &e), -EINVAL);
	s = parsed("syscall:open(path=str $1) path>1");
	assert_int_equal(probespec_bind(&s, &e), -EINVAL);
}

TEST(presets_are_specs_and_take_more_options)
{
	struct probespec s = parsed("openfail rate 3");

	assert_string_equal(s.name, "openfail");
	assert_int_equal(s.rate, 3);
	assert_string_equal(parsed("x=openfail").name, "x");
	for (const struct probespec_preset *p = PROBESPEC_PRESETS; p->name; p++) {
		char text[64];

		snprintf(text, sizeof(text), p->file ? "%s:/app" : "%s", p->name);
		s = parsed(text);
		assert_true(p->file ? strstr(s.text, "/app:") != NULL : !strcmp(s.text, p->spec));
	}
	s = parsed("x=malloc:/lib/libc.so.6 by size rate 3");
	assert_string_equal(s.at.group, "/lib/libc.so.6");
	assert_string_equal(
		s.text,
		"func:/lib/libc.so.6:malloc(size=uint64 $1) hist size sum size rate 0 by size rate 3");
	assert_string_equal(parsed("malloc").at.group, "libc[.-]*so*");
}

TEST(the_text_of_a_preset_with_options_is_whole_or_refused)
{
	char text[PROBESPEC_TEXT_MAX] = "openfail", want[2 * PROBESPEC_TEXT_MAX];
	size_t n = strlen(text);

	for (int i = 0; i < 30; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " rate 12345");
	snprintf(want, sizeof(want), "%s%s", probespec_preset("openfail", 8)->spec, text + 8);
	assert_string_equal(parsed(text).text, want);
	for (int i = 0; i < 14; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " rate 12345");
	refused(text, "511 bytes at most");
}
