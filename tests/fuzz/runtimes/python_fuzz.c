/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_fuzz: any bytes as the memory of a process, in which a thread's Python frames are looked
 * for. The first byte chooses the shape of frames and the kind of texts; the others lie from BASE
 * on.
 *
 * covers: loaders/lib/runtimes/python.c loaders/lib/runtimes/pycode.c probes/runtimes/python.h
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/python.h"
#include "tests/fuzz/runtimes/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The addresses of everything; seeds.sh uses the same. */
static struct python_layout layout(unsigned choice)
{
	struct python_layout l = {
		.format = PYTHON_FORMAT,
		.shape = (__u8)(1 + choice % 3),
		.lines = (__u8)(1 + choice / 3 % 4),
		.at_scale = 1,
		.code_type = BASE,
		.frame_type = BASE + 8,
		.text_type = BASE + 16,
		.bytes_type = BASE + 24,
		.interpreters = BASE + 40,
		.gil = choice & 0x20 ? BASE + 0xb8 : 0,
		.interp_gil = choice & 0x10 ? 16 : 0,
		.loop_start = {0x100},
		.loop_end = {0x200},
		.interp_threads = 8,
		.thread_id = 8,
		.thread_frame = 16,
		.cframe_back = 8,
		.frame_code = 8,
		.frame_at = 16,
		.frame_owner = 24,
		.object_type = 8,
		.code_size = 72,
		.code_start = 72,
		.code_length = 16,
		.code_first_line = 24,
		.code_file = 32,
		.code_name = 40,
		.code_qualname = choice & 1 ? 48 : 0,
		.code_lines = 56,
		.text_length = 16,
		.text_state = 24,
		.text_ascii = 32,
		.text_compact = 48,
		.bytes_length = 16,
		.bytes_data = 24,
	};

	if (choice & 0x40 || l.shape == PYTHON_OBJECTS)
		l.cframe_frame = PYTHON_NO_CFRAME;
	return l;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint64_t pc[4] = {0x150, 0x10, 0x160, 0x170};
	static const uint64_t sp[4] = {BASE, BASE + 0x200, BASE + 0x400, BASE + 0x600};
	struct bytes b = {data + 1, len ? len - 1 : 0};
	const struct runtime_memory m = {&b, read_bytes};
	struct runtime_native native = {.pc = pc, .sp = sp, .n = 4, .fs_base = 7};
	struct script_stack s = {0};
	struct python_layout l;
	struct python *p;

	if (!len)
		return 0;
	l = layout(data[0]);
	native.complete = data[0] & 0x80;
	p = python_open(&m, &l, sizeof(l), 0);
	if (!p)
		return 0;
	python_stack(p, &native, &s);
	python_gil(p, 7, BASE + 0x60);
	if (s.n > PYTHON_STACK_MAX)
		abort();
	for (size_t i = 0; i < s.n; i++)
		if (s.frames[i].at > native.n || (i && s.frames[i].at < s.frames[i - 1].at) ||
		    (s.frames[i].place.function &&
		     strlen(s.frames[i].place.function) > 4 * PYCODE_TEXT_MAX + 3))
			abort();
	script_stack_release(&s);
	python_close(p);
	return 0;
}
