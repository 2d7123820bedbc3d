/* SPDX-License-Identifier: Apache-2.0 */
/* fake: a piece of memory in place of a process, with CPython objects laid out by hand. */
#ifndef TESTS_RUNTIMES_FAKE_H
#define TESTS_RUNTIMES_FAKE_H

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/pycode.h"
#include "tests/unit/test.h"

#define FAKE_BASE 0x7f0000000000ull
#define FAKE_SIZE 0x40000u
#define FAKE_BIAS 0x5000000ull

struct fake {
	uint8_t bytes[FAKE_SIZE];
	uint64_t next; /* free from here on */
	size_t reads;
	struct runtime_memory m;
	struct python_layout l;
};

static inline bool fake_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct fake *f = ctx;
	uint64_t at = addr - FAKE_BASE;

	f->reads++;
	if (at >= FAKE_SIZE || FAKE_SIZE - at < len)
		return false;
	memcpy(to, f->bytes + at, len);
	return true;
}

static inline void fake_put(struct fake *f, uint64_t addr, const void *data, size_t len)
{
	assert_true(addr >= FAKE_BASE && addr - FAKE_BASE + len <= FAKE_SIZE);
	memcpy(f->bytes + (addr - FAKE_BASE), data, len);
}

static inline void fake_word(struct fake *f, uint64_t addr, uint64_t value)
{
	fake_put(f, addr, &value, sizeof(value));
}

static inline uint64_t fake_room(struct fake *f, size_t size)
{
	uint64_t at = f->next;

	f->next += (size + 15) & ~15ull;
	return at;
}

/* The layout of 3.11; the types are at the beginning of the memory, FAKE_BIAS above the addresses
 * in the layout. */
static inline void fake_begin(struct fake *f)
{
	memset(f, 0, sizeof(*f));
	f->m = (struct runtime_memory){.ctx = f, .read = fake_read};
	f->next = FAKE_BASE + 0x1000;
	f->l = (struct python_layout){
		.format = PYTHON_FORMAT,
		.version = 0x030b02f0,
		.shape = PYTHON_CFRAMES,
		.lines = PYTHON_LINES_311,
		.interpreters = FAKE_BASE + 0x800 - FAKE_BIAS,
		.code_type = FAKE_BASE - FAKE_BIAS,
		.frame_type = FAKE_BASE + 0x100 - FAKE_BIAS,
		.text_type = FAKE_BASE + 0x200 - FAKE_BIAS,
		.bytes_type = FAKE_BASE + 0x300 - FAKE_BIAS,
		.interp_next = 0,
		.interp_threads = 16,
		.thread_next = 8,
		.thread_id = 152,
		.thread_frame = 56,
		.cframe_frame = 8,
		.cframe_back = 16,
		.frame_back = 48,
		.frame_code = 32,
		.frame_at = 56,
		.frame_owner = 68,
		.object_type = 8,
		.code_size = 184,
		.code_start = 184,
		.code_length = 16,
		.code_first_line = 72,
		.code_file = 112,
		.code_name = 120,
		.code_qualname = 128,
		.code_lines = 136,
		.text_length = 16,
		.text_state = 32,
		.text_ascii = 48,
		.text_compact = 72,
		.bytes_length = 16,
		.bytes_data = 32,
	};
	fake_word(f, FAKE_BASE + 32, f->l.code_size); /* tp_basicsize */
}

static inline uint64_t fake_text(struct fake *f, const void *data, uint64_t length, unsigned width,
				 bool ascii)
{
	uint64_t at = fake_room(f, f->l.text_compact + length * width);
	uint32_t state = width << 2 | 1u << 5 | (uint32_t)ascii << 6;

	fake_word(f, at + 8, f->l.text_type + FAKE_BIAS);
	fake_word(f, at + f->l.text_length, length);
	fake_put(f, at + f->l.text_state, &state, sizeof(state));
	fake_put(f, at + (ascii ? f->l.text_ascii : f->l.text_compact), data, length * width);
	return at;
}

static inline uint64_t fake_ascii(struct fake *f, const char *s)
{
	return fake_text(f, s, strlen(s), 1, true);
}

static inline uint64_t fake_bytes(struct fake *f, const void *data, uint64_t length)
{
	uint64_t at = fake_room(f, f->l.bytes_data + length);

	fake_word(f, at + 8, f->l.bytes_type + FAKE_BIAS);
	fake_word(f, at + f->l.bytes_length, length);
	fake_put(f, at + f->l.bytes_data, data, length);
	return at;
}

/* Of 16 instructions, instruction i on line first + i. */
static inline uint64_t fake_code(struct fake *f, uint64_t name, uint64_t file, int32_t first)
{
	uint8_t table[16 * 3];
	uint64_t at = fake_room(f, f->l.code_size + 32);

	for (int i = 0; i < 16; i++) {
		table[3 * i] =
			(uint8_t)(0x80 | (i ? 11 : 10)
						 << 3); /* one instruction, one line further */
		table[3 * i + 1] = table[3 * i + 2] = 0;
	}
	fake_word(f, at + 8, f->l.code_type + FAKE_BIAS);
	fake_word(f, at + 16, 16);
	fake_put(f, at + f->l.code_first_line, &first, sizeof(first));
	fake_word(f, at + f->l.code_file, file);
	fake_word(f, at + f->l.code_name, name);
	if (f->l.code_qualname)
		fake_word(f, at + f->l.code_qualname, name);
	fake_word(f, at + f->l.code_lines, fake_bytes(f, table, sizeof(table)));
	return at;
}

#endif
