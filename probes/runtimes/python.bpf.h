/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* python.bpf: what runtime.bpf.h needs of CPython: reading, the thread's state, code objects and what names them. */
#ifndef SONDE_PROBES_RUNTIMES_PYTHON_BPF_H
#define SONDE_PROBES_RUNTIMES_PYTHON_BPF_H

#include "probes/runtimes/script.bpf.h"

#define PYTHON_TYPE_BASICSIZE 32 /* PyTypeObject.tp_basicsize */
#define PYTHON_TEXT_WIDTH(state) ((state) >> 2 & 7)
#define PYTHON_TEXT_ASCII(state) ((state) >> 6 & 1)

static __always_inline int python_word(__u64 addr, __u64 *value)
{
	return bpf_probe_read_user(value, sizeof(*value), (const void *)addr) ? -1 : 0;
}

/* Frames are read many at once, as far as there is memory: a read costs much the same, however long. */
static __always_inline void script_look(struct python_walk *p, __u64 addr)
{
	struct script_walk *w = script_walk_of(p);
	__u64 from = addr + PYTHON_LOOK_BYTES - sizeof(w->window);

	if (addr - w->window_at < w->window_bytes && addr + PYTHON_LOOK_BYTES <= w->window_at + w->window_bytes)
		return;
	w->window_at = from;
	w->window_bytes = sizeof(w->window);
	if (w->mode != PYTHON_OBJECTS && !bpf_probe_read_user(w->window, sizeof(w->window), (const void *)from))
		return;
	w->window_at = addr;
	w->window_bytes = PYTHON_LOOK_BYTES;
	if (bpf_probe_read_user(w->window, PYTHON_LOOK_BYTES, (const void *)addr))
		w->window_bytes = 0;
}

static __always_inline int python_read(struct python_walk *p, __u64 addr, __u64 *value)
{
	struct script_walk *w = script_walk_of(p);
	__u64 into = addr - w->window_at;

	if (into >= w->window_bytes || (into & 7))
		return python_word(addr, value);
	into >>= 3;
	asm volatile("" : "+r"(into)); /* else the compiler knows better than to mask, and the verifier does not */
	*value = w->window[into & (SCRIPT_WINDOW - 1)];
	return 0;
}

/* ---- the thread's state ---- */

static __always_inline bool python_is_thread(struct script_walk *w, const struct python_layout *l, __u64 state, __u64 fs_base)
{
	__u64 id = 0;

	(void)w;
	return !python_word(state + l->thread_id, &id) && id == fs_base;
}

/* false: there is no interpreter (yet). */
static __always_inline bool python_search_begin(struct script_walk *w, const struct python_layout *l)
{
	__u64 basic = 0;

	w->look = w->interp = w->found = 0;
	if (python_word(l->code_type + w->bias + PYTHON_TYPE_BASICSIZE, &basic) || basic != l->code_size)
		return false;
	return !python_word(l->interpreters + w->bias, &w->interp) && w->interp;
}

static __always_inline int python_search(struct script_walk *w, const struct python_layout *l, __u64 fs_base)
{
	__u64 interp = w->interp, look = w->look, id = 0;

	if (!look) {
		if (!interp || python_word(interp + l->interp_threads, &w->look) || python_word(interp + l->interp_next, &w->interp))
			return 0;
		w->several |= w->interp != 0;
		return 1;
	}
	if (python_word(look + l->thread_id, &id))
		return 0;
	if (id == fs_base) {
		w->found = look;
		return 0;
	}
	return !python_word(look + l->thread_next, &w->look);
}

/* The lock of the newest interpreter, or of all: who waits for it waits on one of its conditions. */
static __always_inline int python_is_gil(struct script_walk *w, const struct python_layout *l, __u64 futex)
{
	__u64 gil = l->gil ? l->gil + w->bias : 0, interp = 0;

	if (l->interp_gil && (python_word(l->interpreters + w->bias, &interp) || python_word(interp + l->interp_gil, &gil)))
		return 0;
	return gil && futex - gil >= PYTHON_GIL_COND && futex - gil < PYTHON_GIL_SIZE;
}

/* ---- code objects ---- */

/* The code of the frame at hand: what tells it from others is made its key. Its names, its file's and its line table's addresses
 * stand side by side in all versions (publish_runtimes.c sees to that). */
static __always_inline bool python_object(struct script_walk *w, const struct python_layout *l)
{
	__u64 code = w->python.code, cookie = 0;
	__u32 last = ((__u32)l->code_lines - l->code_file) >> 3;

	if ((code & 7) || bpf_probe_read_user(w->identity, sizeof(w->identity), (const void *)(code + l->code_file)))
		return false;
	for (__u32 i = 0; i < SCRIPT_IDENTITY; i++)
		if (i <= last)
			cookie = script_mix(cookie, w->identity[i]);
	w->key.object = code;
	w->key.cookie = cookie;
	return true;
}

static __always_inline bool python_is_code(__u64 code, __u64 bias, const struct python_layout *l)
{
	__u64 type = 0;

	return !python_word(code + l->object_type, &type) && type == l->code_type + bias;
}

static __always_inline __u64 python_position(const struct script_walk *w, const struct python_layout *l)
{
	__s64 bytes;

	if (l->shape == PYTHON_OBJECTS)
		bytes = (__s64)w->python.at < 0 ? -2 : (__s64)w->python.at * l->at_scale;
	else
		bytes = (__s64)(w->python.at - w->python.code - l->code_start);
	bytes += SCRIPT_PYTHON_NONE;
	return bytes > 0 && bytes <= (__s64)SCRIPT_POSITION_MAX ? (__u64)bytes : 0;
}

/* Does the interpreter's loop stand there? An address of its file; 3.10 and before. */
static __always_inline bool python_in_loop(const struct python_layout *l, __u64 at)
{
	bool in = false;

	for (int i = 0; i < PYTHON_RANGES; i++)
		in |= at >= l->loop_start[i] && at < l->loop_end[i];
	return in;
}

/* ---- names ---- */

/* Bytes of a text object, its head included. */
static __always_inline __u32 python_text_size(const struct python_layout *l, __u64 object)
{
	__u64 length = 0, state = 0, width = 1, head = l->bytes_data;

	if (python_word(object + (l->lines == PYTHON_LINES_27 ? l->bytes_length : l->text_length), &length))
		return 0;
	if (l->lines != PYTHON_LINES_27) {
		if (bpf_probe_read_user(&state, 4, (const void *)(object + l->text_state)))
			return 0;
		width = PYTHON_TEXT_WIDTH(state);
		head = PYTHON_TEXT_ASCII(state) ? l->text_ascii : l->text_compact;
	}
	if (length > SCRIPT_TEXT_BYTES)
		length = SCRIPT_TEXT_BYTES;
	head += length * width;
	return head < SCRIPT_TEXT_BYTES ? head : SCRIPT_TEXT_BYTES - 1;
}

static __always_inline __u32 python_text_take(__u8 *to, const struct python_layout *l, __u64 object)
{
	__u32 size = object ? python_text_size(l, object) : 0;

	return bpf_probe_read_user(to, size & (SCRIPT_TEXT_BYTES - 1), (const void *)object) ? 0 : size;
}

/* What names the object at hand, as it stands in the process. How many bytes of lines. */
static __always_inline __u32 python_take(struct script_names *out, const struct python_layout *l)
{
	__u64 code = out->key.object, name = 0, file = 0, lines = 0, length = 0;
	__u32 size;

	out->piece_at[SCRIPT_HEAD] = code;
	out->piece_size[SCRIPT_HEAD] = bpf_probe_read_user(out->data, SCRIPT_HEAD_BYTES, (const void *)code) ? 0 : SCRIPT_HEAD_BYTES;
	python_word(code + (l->code_qualname ? l->code_qualname : l->code_name), &name);
	python_word(code + l->code_file, &file);
	python_word(code + l->code_lines, &lines);
	out->piece_at[SCRIPT_NAME] = name;
	out->piece_size[SCRIPT_NAME] = python_text_take(out->data + SCRIPT_NAME_AT, l, name);
	out->piece_at[SCRIPT_FILE] = file;
	out->piece_size[SCRIPT_FILE] = python_text_take(out->data + SCRIPT_FILE_AT, l, file);
	out->piece_at[SCRIPT_LINES] = lines;
	python_word(lines + l->bytes_length, &length);
	length += l->bytes_data;
	size = length < SCRIPT_LINES_BYTES ? length : SCRIPT_LINES_BYTES - 1;
	if (bpf_probe_read_user(out->data + SCRIPT_LINES_AT, size & (SCRIPT_LINES_BYTES - 1), (const void *)lines))
		size = 0;
	out->piece_size[SCRIPT_LINES] = size;
	return size;
}

#endif
