/* SPDX-License-Identifier: Apache-2.0 */
/* insnlen: for each line of hexadecimal digits on stdin, one instruction's bytes: its length as
 * x86insn reads it where more bytes follow; 0: it reads none. */
#include <stdio.h>
#include <string.h>

#include "loaders/lib/code/x86insn.h"

int main(void)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		uint8_t code[32];
		struct x86insn x;
		unsigned byte;
		size_t n = 0;

		memset(code, 0x90, sizeof(code));
		while (n < 16 && sscanf(line + 2 * n, "%2x", &byte) == 1)
			code[n++] = (uint8_t)byte;
		printf("%u\n", x86insn_read(code, sizeof(code), &x) ? x.len : 0u);
	}
	return 0;
}
