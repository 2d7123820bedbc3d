/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* script: what a walk of script frames stands on (runtime.bpf.h): its maps, and its state in one of them. */
#ifndef SONDE_PROBES_RUNTIMES_SCRIPT_BPF_H
#define SONDE_PROBES_RUNTIMES_SCRIPT_BPF_H

#include "probes/runtimes/runtime.h"
#include "probes/unwind_state.bpf.h"

struct python_walk;
static __always_inline void script_look(struct python_walk *p, __u64 addr);
#define PYTHON_LOOK(w, addr) script_look(w, addr)
#include "probes/runtimes/python.h"

const volatile bool runtimes_on = true;
const volatile __u32 names_bytes = 512 * 1024; /* of `names` */

/* Stand-in, as those of unwind.bpf.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TABLES_RUNTIMES);
	__type(key, __u32);
	__type(value, struct tables_runtime);
} runtimes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SCRIPT_OBJECTS);
	__type(key, struct script_key);
	__type(value, __u32);
} objects SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 * 1024);
} names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct script_names);
} names_scratch SEC(".maps");

/* Where a thread's state was found. CPUs may write over one another: it is only believed when the thread's id stands in it. */
struct script_thread {
	__u64 fs_base, state;
	__u64 until_ns; /* state 0: it has none, and is not looked for again before */
	__u64 tgid;
};
#define SCRIPT_THREADS 1024
#define SCRIPT_NONE_NS 100000000ull
#define SCRIPT_SEARCH  1024 /* threads and interpreters that are looked at */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SCRIPT_THREADS);
	__type(key, __u32);
	__type(value, struct script_thread);
} script_threads SEC(".maps");

#define SCRIPT_FRAMES 512 /* of one chunk; a power of two */
#define SCRIPT_POPS   4   /* frames in a step */
#define SCRIPT_SAYS   8
#define SCRIPT_WINDOW 128 /* words; frames of one chunk stand close together, callers below callees */
#define SCRIPT_IDENTITY 4 /* words of an object that tell it from others. Less than 64 bytes are copied word by word, which takes half of
                             what `rep movsb` does */

enum script_phase {
	SCRIPT_OFF = 0, /* no interpreter was met */
	SCRIPT_BEGIN,   /* one was */
	SCRIPT_POP,     /* frames of a chunk are walked */
	SCRIPT_TAKE,    /* the one at hand is met for the first time: its names go to the loader */
	SCRIPT_SAY,     /* they are all there, and wait for their native frame */
	SCRIPT_OVER
};

struct script_walk {
	struct python_walk python;
	__u64 window_at;
	__u64 window[SCRIPT_WINDOW];
	__u64 identity[SCRIPT_IDENTITY];
	__u32 window_bytes, pad2;
	__u64 bias;
	__u64 look, interp; /* of the search for the thread */
	__u64 found;
	__u64 word;         /* of the frame at hand, without its id */
	__u32 runtime, image;
	__u32 n, at;        /* words of the chunk: how many, and how many were said */
	__u32 several;      /* interpreters */
	__u32 next_id;
	__u32 mode;         /* enum python_shape */
	__u32 step;         /* enum python_step, of the frame at hand */
	struct script_key key;
	__u64 words[SCRIPT_FRAMES];
	struct script_tally tally; /* last: the loader reads it */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct script_walk);
} scripts SEC(".maps");

static __always_inline struct script_walk *script_walk_of(struct python_walk *p)
{
	return (struct script_walk *)((char *)p - __builtin_offsetof(struct script_walk, python));
}

static __always_inline struct script_walk *script_walk(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scripts, &zero);
}

static __always_inline struct stack_scratch *script_stack(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratch, &zero);
}

static __always_inline struct tables_runtime *script_layout(const struct script_walk *w)
{
	__u32 i = w->runtime;
	struct tables_runtime *r = bpf_map_lookup_elem(&runtimes, &i);

	return r && r->kind == RUNTIME_PYTHON ? r : NULL;
}

static __always_inline void script_miss(struct script_walk *w, __u32 why)
{
	w->tally.missed[why & 7]++;
}

/* ---- objects ---- */

static __always_inline __u64 script_mix(__u64 h, __u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

#endif
