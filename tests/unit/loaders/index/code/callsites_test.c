/* SPDX-License-Identifier: Apache-2.0 */
/* Where calls of a function are seen to begin and to end. */
#include "tests/unit/test.h"

#include <errno.h>
#include <string.h>

#include "loaders/index/code/callsites.h"

/* As compilers make them: a check of the stack before the end; a loop before it; a jump to another
 * function; a jump by a pointer; one of Go, that asks for more stack. */
__asm__(".text\n"
	"cs_checked: endbr64\n"
	"cs_checked_begin: push %rbx\n sub $16, %rsp\n mov $7, %eax\n cmp %rdi, %rsi\n"
	"cs_checked_end: jne 1f\n add $16, %rsp\n pop %rbx\n ret\n"
	"1: ud2\n"
	"cs_checked_over: ud2\n"
	"cs_loop: xor %eax, %eax\n"
	"2: inc %eax\n cmp %edi, %eax\n jne 2b\n"
	"cs_loop_ret: ret\n"
	"cs_loop_over: ud2\n"
	"cs_onward: inc %rdi\n jmp cs_loop\n"
	"cs_onward_over: ud2\n"
	"cs_far: test %eax, %eax\n jmp *%rax\n"
	"cs_far_over: ud2\n"
	"cs_copies: mov %rdx, %rcx\n mov %rdi, %rax\n test %rcx, %rcx\n je 4f\n rep movsb\n"
	"4:\n"
	"cs_copies_ret: ret\n"
	"cs_copies_over: ud2\n"
	"cs_calls: push %rbx\n call cs_loop\n mov $1, %eax\n pop %rbx\n"
	"cs_calls_ret: ret\n"
	"cs_calls_over: ud2\n"
	"cs_data: xor %eax, %eax\n jmp 5f\n .byte 0xb8\n" /* of a mov that swallows what follows */
	"5: inc %eax\n mov $0xc3c3c3c3, %ecx\n"
	"cs_data_ret: ret\n"
	"cs_data_over: ud2\n"
	"cs_go: cmp 0x10(%r14), %rsp\n"
	"cs_go_begin: jbe 3f\n push %rbp\n mov %rsp, %rbp\n call cs_loop\n pop %rbp\n"
	"cs_go_ret: ret\n"
	"3: mov %rax, 8(%rsp)\n call cs_loop\n mov 8(%rsp), %rax\n jmp cs_go\n"
	"cs_go_over: ud2\n");

#define LABEL(name_) extern const uint8_t name_[]
LABEL(cs_checked);
LABEL(cs_checked_begin);
LABEL(cs_checked_end);
LABEL(cs_checked_over);
LABEL(cs_loop);
LABEL(cs_loop_ret);
LABEL(cs_loop_over);
LABEL(cs_onward);
LABEL(cs_onward_over);
LABEL(cs_far);
LABEL(cs_far_over);
LABEL(cs_copies);
LABEL(cs_copies_ret);
LABEL(cs_copies_over);
LABEL(cs_calls);
LABEL(cs_calls_ret);
LABEL(cs_calls_over);
LABEL(cs_data);
LABEL(cs_data_ret);
LABEL(cs_data_over);
LABEL(cs_go);
LABEL(cs_go_begin);
LABEL(cs_go_ret);
LABEL(cs_go_over);

static size_t own_memory(void *ctx, uint64_t vaddr, uint8_t *out)
{
	(void)ctx;
	memcpy(out, (const void *)vaddr,
	       X86INSN_MAX); /* NOLINT(performance-no-int-to-ptr): the address of these functions */
	return X86INSN_MAX;
}

static uint64_t end_of(void *ctx, uint64_t start)
{
	(void)ctx;
	return start == (uint64_t)cs_loop ? (uint64_t)cs_loop_over : 0;
}

static struct callsites found(const uint8_t *start, const uint8_t *over, bool go)
{
	const struct codeflow_reader reader = {.read = own_memory};
	const struct callsites_host host = {.reader = &reader, .end_of = end_of};
	struct callsites c;

	assert_int_equal(callsites_find(&host, (uint64_t)start, (uint64_t)over, go, &c), 0);
	return c;
}

TEST(an_end_is_at_an_emulated_instruction_that_each_call_passes_once)
{
	const struct callsites c = found(cs_checked, cs_checked_over, false);

	assert_int_equal(c.n, 2);
	assert_true(c.at[0].begins);
	assert_int_equal(c.at[0].at, (uint64_t)cs_checked_begin); /* behind endbr64 */
	assert_int_equal(c.at[1].at, (uint64_t)cs_checked_end);
	assert_int_equal(c.at[1].when, TLSCODE_NOT_TAKEN);
	assert_int_equal(c.at[1].base, X86_RSP);
	assert_int_equal(c.at[1].frame, 24); /* what was pushed, and the room */
	assert_int_equal(c.at[1].value[0].kind, TLSCODE_REG);
	assert_int_equal(c.unseen, 0);
}

TEST(a_jump_within_a_loop_is_no_end)
{
	const struct callsites c = found(cs_loop, cs_loop_over, false);

	assert_int_equal(c.n, 2);
	assert_int_equal(c.at[1].at, (uint64_t)cs_loop_ret);
	assert_int_equal(c.at[1].when, TLSCODE_ALWAYS);
	assert_int_equal(c.at[1].frame, 0);
}

TEST(an_end_is_behind_all_that_may_take_long)
{
	struct callsites c = found(cs_copies, cs_copies_over, false);

	assert_int_equal(c.n, 2);
	assert_int_equal(c.at[1].at, (uint64_t)cs_copies_ret);
	c = found(cs_calls, cs_calls_over, false);
	assert_int_equal(c.n, 2);
	assert_int_equal(c.at[1].at, (uint64_t)cs_calls_ret); /* though it returns 1 in any case */
}

TEST(data_among_the_code_makes_no_end_within_an_instruction)
{
	const struct callsites c = found(cs_data, cs_data_over, false);

	assert_int_equal(c.n, 2);
	assert_int_equal(c.at[1].at, (uint64_t)cs_data_ret);
}

TEST(a_jump_to_another_function_ends_where_that_one_does)
{
	const struct callsites c = found(cs_onward, cs_onward_over, false);

	assert_int_equal(c.n, 2);
	assert_int_equal(c.at[1].at, (uint64_t)cs_loop_ret);
	assert_true(c.at[1].others);
}

TEST(a_jump_by_a_pointer_is_counted_as_unseen)
{
	const struct callsites c = found(cs_far, cs_far_over, false);

	assert_int_equal(c.n, 1);
	assert_int_equal(c.unseen, 1);
}

TEST(a_function_of_go_begins_where_its_stack_is_large_enough)
{
	const struct callsites c = found(cs_go, cs_go_over, true);

	assert_int_equal(c.n, 2);
	assert_int_equal(c.at[0].at, (uint64_t)cs_go_begin);
	assert_int_equal(c.at[0].when, TLSCODE_NOT_TAKEN);
	assert_int_equal(c.at[0].condition, 6);
	assert_int_equal(c.at[1].at, (uint64_t)cs_go_ret);
}
