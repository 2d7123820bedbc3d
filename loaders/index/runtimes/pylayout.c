/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/runtimes/pylayout.h"
#include "schema/base/array.h"

#include <stdlib.h>
#include <string.h>

#define MINOR(version) ((version) >> 16)
/* 0xa, 0xb: alpha, beta; 0xc: candidate; 0xf: final */
#define RELEASED(version) (((version) >> 4 & 0xf) >= 0xc)

/* ---- before 3.13 ---- */

struct row {
	uint32_t minor; /* 0x0308 */
	uint64_t interpreters_at;
	struct python_layout l;
};

#define TEXT_36                                                                    \
	.text_length = 16, .text_state = 32, .text_ascii = 48, .text_compact = 72, \
	.bytes_length = 16, .bytes_data = 32
#define TEXT_312                                                                   \
	.text_length = 16, .text_state = 32, .text_ascii = 40, .text_compact = 56, \
	.bytes_length = 16, .bytes_data = 32
#define OBJECTS                                                                      \
	.shape = PYTHON_OBJECTS, .cframe_frame = PYTHON_NO_CFRAME, .frame_back = 24, \
	.frame_code = 32
#define CODE_38                                                                      \
	.code_size = 176, .code_first_line = 40, .code_file = 104, .code_name = 112, \
	.code_lines = 120
#define CODE_36                                                                     \
	.code_size = 144, .code_first_line = 36, .code_file = 96, .code_name = 104, \
	.code_lines = 112
#define CODE_311                                                                     \
	.code_length = 16, .code_file = 112, .code_name = 120, .code_qualname = 128, \
	.code_lines = 136, .lines = PYTHON_LINES_311

/* clang-format off */
static const struct row rows[] = {
	{0x0207, 0, {OBJECTS, .interp_threads = 8, .thread_id = 144, .thread_frame = 16, .frame_at = 120, .at_scale = 1,
		     .lines = PYTHON_LINES_27, .code_size = 128, .code_first_line = 96, .code_file = 80, .code_name = 88,
		     .code_lines = 104, .bytes_length = 16, .bytes_data = 36}},
	{0x0306, 0, {OBJECTS, .interp_threads = 8, .thread_next = 8, .thread_id = 152, .thread_frame = 24, .frame_at = 120,
		     .at_scale = 1, .lines = PYTHON_LINES_36, CODE_36, TEXT_36}},
	{0x0307, 24, {OBJECTS, .gil = 1264, .interp_threads = 8, .thread_next = 8, .thread_id = 176, .thread_frame = 24, .frame_at = 104,
		      .at_scale = 1, .lines = PYTHON_LINES_36, CODE_36, TEXT_36}},
	{0x0308, 32, {OBJECTS, .gil = 1152, .interp_threads = 8, .thread_next = 8, .thread_id = 176, .thread_frame = 24, .frame_at = 104,
		      .at_scale = 1, .lines = PYTHON_LINES_36, CODE_38, TEXT_36}},
	{0x0309, 32, {OBJECTS, .gil = 352, .interp_threads = 8, .thread_next = 8, .thread_id = 176, .thread_frame = 24, .frame_at = 104,
		      .at_scale = 1, .lines = PYTHON_LINES_36, CODE_38, TEXT_36}},
	{0x030a, 32, {OBJECTS, .gil = 352, .interp_threads = 8, .thread_next = 8, .thread_id = 176, .thread_frame = 24, .frame_at = 96,
		      .at_scale = 2, .lines = PYTHON_LINES_310, CODE_38, TEXT_36}},
	{0x030b, 40, {.shape = PYTHON_CFRAMES, .gil = 360, .interp_threads = 16, .thread_next = 8, .thread_id = 152, .thread_frame = 56,
		      .cframe_frame = 8, .cframe_back = 16, .frame_back = 48, .frame_code = 32, .frame_at = 56, .frame_owner = 68,
		      CODE_311, .code_size = 184, .code_start = 184, .code_first_line = 72, TEXT_36}},
	{0x030c, 40, {.shape = PYTHON_SHIMS, .interp_gil = 384, .interp_threads = 72, .thread_next = 8, .thread_id = 136, .thread_frame = 56,
		      .cframe_frame = 0, .cframe_back = 8, .frame_back = 8, .frame_code = 0, .frame_at = 56, .frame_owner = 70,
		      CODE_311, .code_size = 192, .code_start = 192, .code_first_line = 68, TEXT_312}},
};
/* clang-format on */

bool pylayout_of_version(uint32_t version, struct python_layout *out, uint64_t *interpreters_at)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].minor != MINOR(version) || !RELEASED(version))
			continue;
		*out = rows[i].l;
		out->format = PYTHON_FORMAT;
		out->version = version;
		out->object_type = 8;
		*interpreters_at = rows[i].interpreters_at;
		if (version >> 8 < 0x030704 && MINOR(version) == 0x0307)
			out->gil = 0; /* _PyRuntime was another until 3.7.4 */
		return true;
	}
	return false;
}

/* ---- 3.13 on ---- */

/* Which word of struct _Py_DebugOffsets tells a member. */
struct words {
	uint32_t minor;
	uint8_t interp_next, interp_threads, interp_gil, thread_next, thread_frame, thread_id,
		frame_back, frame_code, frame_at, frame_owner, code_file, code_name, code_qualname,
		code_lines, code_first_line, code_start, object_type, bytes_length, bytes_data,
		text_state, text_length, text_ascii;
};

#define WORD_VERSION 1
/* from 3.14 on each thread may have a copy of the code, in which a frame is: such builds are not
 * known */
#define WORD_FREE_THREADED 2
#define WORD_INTERPRETERS  5

/* clang-format off */
static const struct words words[] = {
	{0x030d, 8, 9, 14, 21, 23, 24, 29, 30, 31, 33, 35, 36, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70},
	{0x030e, 8, 9, 15, 24, 26, 27, 32, 33, 34, 36, 40, 41, 42, 43, 44, 48, 51, 75, 76, 78, 79, 80},
	{0x030f, 8, 9, 15, 24, 26, 30, 40, 41, 42, 44, 48, 49, 50, 51, 52, 56, 59, 87, 88, 90, 91, 92},
};
/* clang-format on */

struct offsets {
	const uint8_t *bytes;
	size_t len;
	bool bad;
};

static uint64_t word_at(struct offsets *o, unsigned i)
{
	uint64_t word = 0;

	if (o->len / 8 <= i)
		o->bad = true;
	else
		memcpy(&word, o->bytes + 8u * i, sizeof(word));
	return word;
}

static uint16_t member(struct offsets *o, unsigned i)
{
	uint64_t word = word_at(o, i);

	o->bad |= word >= PYTHON_NO_CFRAME;
	return (uint16_t)word;
}

static void members_read(struct offsets *o, const struct words *w, struct python_layout *l)
{
	l->interp_next = member(o, w->interp_next);
	l->interp_threads = member(o, w->interp_threads);
	l->interp_gil = member(o, w->interp_gil);
	l->thread_next = member(o, w->thread_next);
	l->thread_frame = member(o, w->thread_frame);
	l->thread_id = member(o, w->thread_id);
	l->frame_back = member(o, w->frame_back);
	l->frame_code = member(o, w->frame_code);
	l->frame_at = member(o, w->frame_at);
	l->frame_owner = member(o, w->frame_owner);
	l->code_file = member(o, w->code_file);
	l->code_name = member(o, w->code_name);
	l->code_qualname = member(o, w->code_qualname);
	l->code_lines = member(o, w->code_lines);
	l->code_first_line = member(o, w->code_first_line);
	l->code_start = member(o, w->code_start);
	l->object_type = member(o, w->object_type);
	l->bytes_length = member(o, w->bytes_length);
	l->bytes_data = member(o, w->bytes_data);
	l->text_state = member(o, w->text_state);
	l->text_length = member(o, w->text_length);
	l->text_ascii = member(o, w->text_ascii);
}

bool pylayout_of_offsets(const void *runtime, size_t len, struct python_layout *out,
			 uint64_t *interpreters_at)
{
	struct offsets o = {.bytes = runtime, .len = len};
	struct python_layout l = {.format = PYTHON_FORMAT,
				  .shape = PYTHON_SHIMS,
				  .lines = PYTHON_LINES_311,
				  .cframe_frame = PYTHON_NO_CFRAME};
	uint64_t version = word_at(&o, WORD_VERSION);

	if (o.bad || memcmp(runtime, "xdebugpy", 8) || version > UINT32_MAX || !RELEASED(version) ||
	    (word_at(&o, WORD_FREE_THREADED) && MINOR(version) != 0x030d))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (words[i].minor != MINOR(version))
			continue;
		members_read(&o, &words[i], &l);
		l.version = (uint32_t)version;
		l.code_size = l.code_start;
		l.code_length = l.bytes_length;                 /* both are PyVarObject's ob_size */
		l.text_compact = (uint16_t)(l.text_ascii + 16); /* utf8_length and utf8 */
		*interpreters_at = member(&o, WORD_INTERPRETERS);
		if (o.bad)
			return false;
		*out = l;
		return true;
	}
	return false;
}

/* ---- the version as text ---- */

uint32_t pylayout_version(const char *text)
{
	uint32_t part[3] = {0}, level = 0xf, serial = 0;
	char *at = (char *)(uintptr_t)text;

	for (int i = 0; i < 3; i++) {
		unsigned long n;

		if (*at < '0' || *at > '9')
			return 0;
		n = strtoul(at, &at, 10);
		if (n > 255 || (i < 2 && *at++ != '.'))
			return 0;
		part[i] = (uint32_t)n;
	}
	if (*at == 'a' || *at == 'b' || !strncmp(at, "rc", 2)) {
		level = *at == 'a' ? 0xa : *at == 'b' ? 0xb : 0xc;
		at += *at == 'r' ? 2 : 1;
		serial = (uint32_t)strtoul(at, &at, 10) & 0xf;
	}
	return *at && *at != '+' ?
		       0 :
		       part[0] << 24 | part[1] << 16 | part[2] << 8 | level << 4 | serial;
}
