/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/regs.h"

#include <stddef.h>
#include <string.h>

#include "schema/base/array.h"

static const struct {
	const char *names; /* divided by blanks */
	int at;
} REGS[] = {
	{"r15 r15d r15w r15b", 0},  {"r14 r14d r14w r14b", 8},
	{"r13 r13d r13w r13b", 16}, {"r12 r12d r12w r12b", 24},
	{"rbp ebp bp bpl", 32},     {"rbx ebx bx bl", 40},
	{"r11 r11d r11w r11b", 48}, {"r10 r10d r10w r10b", 56},
	{"r9 r9d r9w r9b", 64},     {"r8 r8d r8w r8b", 72},
	{"rax eax ax al", 80},      {"rcx ecx cx cl", 88},
	{"rdx edx dx dl", 96},      {"rsi esi si sil", 104},
	{"rdi edi di dil", 112},    {"rip", 128},
	{"rsp esp sp spl", 152},
};

int regs_named(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; len && i < ARRAY_SIZE(REGS); i++)
		for (const char *at = REGS[i].names; at; at = strchr(at, ' ')) {
			at += *at == ' ';
			if (strcspn(at, " ") == len && !memcmp(at, name, len))
				return REGS[i].at;
		}
	return -1;
}

int regs_argument(uint32_t n)
{
	static const char *const order[] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};

	return n >= 1 && n <= ARRAY_SIZE(order) ? regs_named(order[n - 1]) : -1;
}

int regs_go(uint32_t n)
{
	static const char *const order[] = {"rax", "rbx", "rcx", "rdi", "rsi",
					    "r8",  "r9",  "r10", "r11"};

	return n >= 1 && n <= ARRAY_SIZE(order) ? regs_named(order[n - 1]) : -1;
}
