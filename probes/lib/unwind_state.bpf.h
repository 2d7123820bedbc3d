/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_state: what a walk of a user stack in a BPF program needs (unwind.bpf.h): its state in a
 * per-CPU map, the published tables, memory, and where frames go. Frames of scripts
 * (runtimes/runtime.bpf.h) have it in common with native ones.
 */
#ifndef SONDE_PROBES_UNWIND_STATE_BPF_H
#define SONDE_PROBES_UNWIND_STATE_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/inflight.bpf.h" /* `processes` */
#include "probes/lib/stack.h"
#include "probes/lib/tables.h"
#include "probes/lib/unwind.h"

/* if each frame of a script has its own native one, two more than the native frames take */
#define UNWIND_STEPS (STACK_USER_MAX * 2)
/* next to the rules, in the 32 KB that an element of a per-CPU map has */
#define UNWIND_FRAMES (STACK_KERNEL_MAX + STACK_USER_MAX)

/*
 * Rules found before, by image and place in it. A stack's callers are much the same from one sample
 * to the next, and at a hundred samples a second each search in the rows, a few hundred
 * nanoseconds, is three misses of cache and TLB; this is one. The rules of an image id never
 * change: ids are not reused, nor are a file's rows made in another way. Only in programs that
 * define UNWIND_REMEMBERS before: in offcpu, 5.10 does not load it.
 */
#define UNWIND_RULE_BITS 10
#define UNWIND_ASK_NS    0x7000ull /* of the time: one sample in eight */

struct unwind_rule {
	__u64 key; /* 0: free */
	__u64 rule;
};

#ifdef UNWIND_REMEMBERS
struct stack_scratch { /* what each sample touches lies close together */
	struct unwind unwind;
	struct stack_event ev;
	__u64 frames[UNWIND_FRAMES]; /* behind ev: the record */
	struct unwind_rule rules[1 << UNWIND_RULE_BITS];
};
#else
struct stack_scratch {
	struct stack_event ev;
	__u64 frames[UNWIND_FRAMES];
	struct unwind unwind;
};
#endif

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_scratch);
} scratch SEC(".maps");

/* Stand-ins: the loader puts sonde-maps' own maps in their place. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} rows SEC(".maps"), mappings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tables_image);
} images SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tables_state);
} tables_state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TABLES_WANTED_BYTES);
} wanted SEC(".maps");

static __always_inline __u64 rows_at(__u32 i)
{
	__u64 *element = bpf_map_lookup_elem(&rows, &i);

	return element ? *element : 0;
}

static __always_inline __u64 mappings_at(__u32 i)
{
	__u64 *element = bpf_map_lookup_elem(&mappings, &i);

	return element ? *element : 0;
}

/* The rule's number by the rows of a page (unwind.h). */
__noinline __u32 unwind_find_row(__u32 first, __u32 count, __u32 in_page, __u32 number)
{
	return UNWIND_SEARCH(rows_at, first, count, in_page, number);
}

/* How many of `count` starts from element `first` on are <= at. */
__noinline __u32 unwind_find_mapping(__u32 first, __u32 count, __u64 at)
{
	__u32 from = first;

	for (int i = 0; i < 13 && count; i++) {
		__u32 half = count >> 1;

		if (mappings_at(from + half) <= at) {
			from += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return from - first;
}

static __always_inline int unwind_place(struct unwind *u, __u64 at)
{
	struct tables_image *image;
	__u32 n, word, slot;

	if (!u->slice_count)
		return 0;
	n = unwind_find_mapping(u->slice_first, u->slice_count, at);
	if (!n)
		return 0;
	word = u->slice_first + u->slice_count + (n - 1) * MAPPING_WORDS;
	u->map_end = mappings_at(word);
	if (at >= u->map_end) {
		u->map_start = u->map_end = 0;
		return 0;
	}
	u->map_start = mappings_at(u->slice_first + n - 1);
	u->map_file = mappings_at(word + 1);
	u->map_row = mappings_at(word + 2);
	slot = (__u32)mappings_at(word + 3);
	u->map_state = TABLES_IMAGE_FREE;
	u->map_image = u->map_runtime = 0;
	image = slot ? bpf_map_lookup_elem(&images, &slot) : NULL;
	if (image) {
		u->map_state = image->state;
		u->map_image = image->id;
		u->page_first = image->page_first;
		u->page_count = image->page_count;
		u->rule_first = image->page_first + image->page_count;
		u->ext_first = image->ext_first;
		u->ext_count = image->ext_count;
		u->row_first = image->row_first;
		u->row_count = image->row_count;
		u->use_first = image->use_first;
		u->map_runtime = image->runtime;
		if (!image->used)
			image->used = 1;
	}
	return 1;
}

/* A row of this part is asked for (tables.h, 5). */
static __always_inline void unwind_touch(__u32 use_first, __u32 part)
{
	__u32 i = use_first + (part >> 3);
	__u8 *use = bpf_map_lookup_elem(&rows, &i);

	if (use && !use[part & 7])
		use[part & 7] = 1;
}

static __always_inline __u32 unwind_number(struct unwind *u, __u32 pc)
{
	__u64 page = rows_at(u->page_first + (pc >> TABLES_PAGE_SHIFT));

	if (u->use_first)
		unwind_touch(u->use_first, pc >> (TABLES_PAGE_SHIFT + TABLES_PART_SHIFT));
	if (ROW_PAGE_COUNT(page) == ROW_PAGE_ABSENT)
		return UNWIND_ABSENT;
	return unwind_find_row(2 * u->row_first + ROW_PAGE_FIRST(page), ROW_PAGE_COUNT(page),
			       pc & ((1u << TABLES_PAGE_SHIFT) - 1), ROW_PAGE_NUMBER(page));
}

static __always_inline __u64 unwind_element(struct unwind *u, __u32 i)
{
	(void)u;
	return rows_at(i);
}

#ifdef UNWIND_REMEMBERS
static __always_inline __u64 unwind_rule_at(struct unwind *u, __u64 pc)
{
	struct stack_scratch *s =
		(struct stack_scratch *)((char *)u -
					 __builtin_offsetof(struct stack_scratch, unwind));
	__u64 key = (__u64)u->map_image << 41 | pc; /* of less than 2^32 pages */
	struct unwind_rule *known =
		&s->rules[key * 0x9e3779b97f4a7c15ull >> (64 - UNWIND_RULE_BITS)];
	__u64 rule;

	/* of a file in parts now and then the rows themselves are asked, so that sonde-maps sees
	 * which are in use */
	if (known->key == key && (!u->use_first || s->ev.time_ns & UNWIND_ASK_NS))
		return known->rule;
	rule = unwind_search(u, pc);
	if (rule == UNWIND_RULE_ABSENT && known->key == key)
		return known->rule;
	if (u->map_image && rule != UNWIND_RULE_ABSENT) {
		known->key = key;
		known->rule = rule;
	}
	return rule;
}

#else
static __always_inline __u64 unwind_rule_at(struct unwind *u, __u64 pc)
{
	return unwind_search(u, pc);
}
#endif

/* Reads the window again, from addr on. 0: done. */
__noinline int unwind_fill(__u64 addr)
{
	__u32 zero = 0,
	      rest = 4096 - (addr & 4095); /* to the page's end: the stack's last page is short */
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct unwind *u;

	if (!s)
		return -1;
	u = &s->unwind;
	u->window_at = addr;
	u->window_bytes = sizeof(u->window);
	if (!bpf_probe_read_user(u->window, sizeof(u->window), (const void *)addr))
		return 0;
	u->window_bytes = 0;
	if (rest >= sizeof(u->window) ||
	    bpf_probe_read_user(u->window, rest & (sizeof(u->window) - 1), (const void *)addr))
		return -1;
	u->window_bytes = rest;
	return 0;
}

static __always_inline int unwind_read(struct unwind *u, __u64 addr, __u64 *value)
{
	__u64 into = addr - u->window_at;

	if (addr & 7)
		return bpf_probe_read_user(value, sizeof(*value), (const void *)addr);
	if (into >= u->window_bytes) {
		if (unwind_fill(addr))
			return -1;
		into = 0;
	}
	*value = u->window[into >> 3 & (UNWIND_WINDOW - 1)];
	return 0;
}

static __always_inline void unwind_emit(struct unwind *u, __u64 frame)
{
	struct stack_scratch *s =
		(struct stack_scratch *)((char *)u -
					 __builtin_offsetof(struct stack_scratch, unwind));

	__u64 i = s->ev.n_kernel + u->n;

	asm volatile("" : "+r"(i)); /* else what is compared is not what is used */
	if (i < UNWIND_FRAMES)
		s->frames[i] = frame;
	u->n++;
}

#endif
