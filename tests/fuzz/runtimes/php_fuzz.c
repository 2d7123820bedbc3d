/* SPDX-License-Identifier: Apache-2.0 */
/*
 * php_fuzz: any bytes as the memory of a process, in which PHP's frames are looked for. The first
 * byte's bits: 0x80 the native stack is whole, 0x40 the file is a program; the others lie from
 * BASE on, executor_globals first.
 *
 * covers: loaders/lib/runtimes/php.c probes/runtimes/php.h
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/php.h"
#include "probes/runtimes/php_layout.h"
#include "tests/fuzz/runtimes/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* seeds.sh goes by it. */
static const struct php_layout layout = {
	.format = PHP_FORMAT,
	.globals = BASE,
	.loop_start = {0x100},
	.loop_end = {0x200},
	.current = 0,
	.code = 32,
	.code_count = 28,
	.file = 40,
	.generator_parent = 8,
	.generator_frame = 16,
	.program = 1,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint64_t pc[3] = {0x150, 0x10, 0x160}, nowhere[3], sp[3];
	struct bytes b = {data + 1, len ? len - 1 : 0};
	const struct runtime_memory m = {&b, read_bytes};
	struct runtime_native native = {.sp = sp, .n = 3, .tgid = 7, .tid = 7};
	struct script_stack s = {0};
	struct php *p;

	if (!len)
		return 0;
	native.complete = data[0] & 0x80;
	native.pc = data[0] & 0x40 ? nowhere : pc;
	p = php_open(&m, &layout, sizeof(layout), 0);
	php_stack(p, &native, &s);
	if (s.n > SCRIPT_STACK_MAX)
		abort();
	for (size_t i = 0; i < s.n; i++)
		if (s.frames[i].at > native.n || (i && s.frames[i].at < s.frames[i - 1].at) ||
		    (s.frames[i].place.function &&
		     strlen(s.frames[i].place.function) > 2 * (SCRIPT_TEXT_MAX + 3) + 2))
			abort();
	script_stack_release(&s);
	php_close(p);
	return 0;
}
