/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ruby_fuzz: any bytes as the memory of a process, in which a thread's Ruby frames are looked for.
 * The first byte's bits: 1 texts and classes as in 3.3, 2 the thread is in the VM's list, 4 a
 * program's own variable, 0x80 the native stack is whole; the others lie from BASE on.
 *
 * covers: loaders/lib/runtimes/ruby.c loaders/lib/runtimes/rubycode.c probes/runtimes/ruby.h
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/ruby.h"
#include "probes/runtimes/ruby_layout.h"
#include "tests/fuzz/runtimes/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* seeds.sh goes by it. */
static struct ruby_layout layout(unsigned choice)
{
	struct ruby_layout l = {
		.format = RUBY_FORMAT,
		.tls_slot = BASE + 0x10,
		.symbols = BASE + 0x6c0,
		.loop_start = {0x100},
		.loop_end = {0x200},
		.thread_ec = 40,
		.ec_thread = 48,
		.frame_size = 64,
		.lines = 120,
		.lines_count = 136,
		.lines_index = 144,
		.line_size = 8,
		.text_short = 16,
		.last_op = 169,
		.vm_threads = 0x40,
		.thread_id = 0,
	};

	if (choice & 1) {
		l.text_length = 16;
		l.text_short = 24;
		l.class_path = 152;
	}
	if (choice & 2)
		l.vm = BASE;
	if (choice & 4) {
		l.tls_slot = 0;
		l.tls_offset = 0x68;
	}
	return l;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint64_t pc[3] = {0x150, 0x10, 0x160}, sp[3];
	struct bytes b = {data + 1, len ? len - 1 : 0};
	const struct runtime_memory m = {&b, read_bytes};
	struct runtime_native native = {.pc = pc, .sp = sp, .n = 3, .fs_base = BASE};
	struct script_stack s = {0};
	struct ruby_layout l;
	struct ruby *r;

	if (!len)
		return 0;
	l = layout(data[0]);
	native.complete = data[0] & 0x80;
	r = ruby_open(&m, &l, sizeof(l), 0);
	ruby_stack(r, &native, &s);
	if (s.n > SCRIPT_STACK_MAX)
		abort();
	for (size_t i = 0; i < s.n; i++)
		if (s.frames[i].at > native.n || (i && s.frames[i].at < s.frames[i - 1].at) ||
		    !s.frames[i].place.function)
			abort();
	script_stack_release(&s);
	ruby_close(r);
	return 0;
}
