/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perl_fuzz: any bytes as the memory of a process, in which Perl's frames are looked for. The first
 * byte's bits: 0x80 the native stack is whole, 0x40 a build without threads, 0x20 a stash's names
 * lie behind its table; the others lie from BASE on: the key of the interpreter, or PL_curcop and
 * PL_curstackinfo.
 *
 * covers: loaders/lib/runtimes/perl/perl.c loaders/lib/runtimes/perl/perlcode.c
 * probes/runtimes/perl.h
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/perl/perl.h"
#include "probes/runtimes/perl_layout.h"
#include "tests/fuzz/runtimes/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint64_t pc[3] = {0x150, 0x10, 0x160}, sp[3];
	struct bytes b = {data + 1, len ? len - 1 : 0};
	const struct runtime_memory m = {&b, read_bytes};
	struct runtime_native native = {.pc = pc, .sp = sp, .n = 3, .tgid = 7, .tid = 7};
	struct perl_layout layout = {.format = PERL_FORMAT,
				     .loop_start = {0x100},
				     .loop_end = {0x200},
				     .interp_cop = 8,
				     .program = 1};
	struct script_stack s = {0};
	struct perl *p;

	if (!len)
		return 0;
	native.complete = data[0] & 0x80;
	native.fs_base = BASE - PERL_GLIBC_KEYS;
	layout.aux = data[0] & 0x20 ? 0 : 32;
	layout.key = data[0] & 0x40 ? 0 : BASE;
	layout.cop = BASE;
	layout.stackinfo = BASE + 8;
	p = perl_open(&m, &layout, sizeof(layout), 0);
	perl_stack(p, &native, &s);
	if (s.n > SCRIPT_STACK_MAX)
		abort();
	for (size_t i = 0; i < s.n; i++)
		if (s.frames[i].at > native.n || (i && s.frames[i].at < s.frames[i - 1].at) ||
		    !s.frames[i].place.function ||
		    strlen(s.frames[i].place.function) > 4 * (SCRIPT_TEXT_MAX + 3) + 2)
			abort();
	script_stack_release(&s);
	perl_close(p);
	return 0;
}
