/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/insn.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int byte_at(const char *bytes, unsigned int i)
{
	unsigned int v;

	return strlen(bytes) >= 2 * (i + 1) && sscanf(bytes + 2 * i, "%2x", &v) == 1 ? (int)v : -1;
}

uint64_t insn_entry(const char *bytes)
{
	return strncmp(bytes, "f30f1efa", 8) ? 0 : 4;
}

static bool is_emulated(const char *bytes)
{
	int first = byte_at(bytes, 0), second = byte_at(bytes, 1);

	if (first == 0x41) /* push %r12 */
		return second >= 0x50 && second <= 0x57;
	if (first == 0x0f) /* jcc, nop */
		return (second >= 0x80 && second <= 0x8f) || second == 0x1f;
	return (first >= 0x50 && first <= 0x57) || (first >= 0x70 && first <= 0x7f) ||
	       first == 0x90 || first == 0xe8 || first == 0xe9 || first == 0xeb;
}

uint64_t insn_price(const char *bytes)
{
	return is_emulated(bytes) ? INSN_EMULATED_NS : INSN_STEPPED_NS;
}
