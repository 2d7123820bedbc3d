/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* script: what a walk of script frames needs (runtime.bpf.h): its maps, and its state in one of
 * them. */
#ifndef SONDE_PROBES_RUNTIMES_SCRIPT_BPF_H
#define SONDE_PROBES_RUNTIMES_SCRIPT_BPF_H

#include "probes/runtimes/runtime.h"
#include "probes/lib/unwind_state.bpf.h"

struct python_walk;
static __always_inline void python_look(struct python_walk *p, __u64 addr);
#define PYTHON_LOOK(w, addr) python_look(w, addr)
#include "probes/runtimes/python.h"
struct php_walk;
static __always_inline void php_look(struct php_walk *p, __u64 addr);
static __always_inline void php_look_func(struct php_walk *p, __u64 addr);
#define PHP_LOOK(w, addr)      php_look(w, addr)
#define PHP_LOOK_FUNC(w, addr) php_look_func(w, addr)
#include "probes/runtimes/php.h"
struct ruby_walk;
static __always_inline void ruby_look(struct ruby_walk *p, __u64 addr);
#define RUBY_LOOK(w, addr) ruby_look(w, addr)
#include "probes/runtimes/ruby.h"
struct perl_walk;
static __always_inline void perl_look(struct perl_walk *p, __u64 addr);
static __always_inline void perl_look_sub(struct perl_walk *p, __u64 addr, __u32 bytes);
static __always_inline int perl_knows(struct perl_walk *p);
static __always_inline void perl_keep(struct perl_walk *p);
#define PERL_LOOK(w, addr)            perl_look(w, addr)
#define PERL_LOOK_SUB(w, addr, bytes) perl_look_sub(w, addr, bytes)
#define PERL_KNOWS(w)                 perl_knows(w)
#define PERL_KEEP(w)                  perl_keep(w)
#include "probes/runtimes/perl.h"

const volatile bool runtimes_on = true;
const volatile __u32 runtime_kinds = ~0u; /* bits by enum runtime_kind: what of them is walked */
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

/* The address of a thread's state. CPUs may overwrite each other's entries: it is trusted only if
 * it has the thread's id. Threads that come and go have the same stacks, and so the same fs_base,
 * one after the other. */
struct script_thread {
	__u64 fs_base, state;
	__u64 until_ns; /* state 0: it has none, and is not looked for again before */
	__u64 pid_tgid;
};
#define SCRIPT_THREADS 1024
#define SCRIPT_NONE_NS 50000000ull
#define SCRIPT_SEARCH  1024 /* threads and interpreters that are looked at */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SCRIPT_THREADS);
	__type(key, __u32);
	__type(value, struct script_thread);
} script_threads SEC(".maps");

#define SCRIPT_FRAMES 1024 /* of one chunk; a power of two */
#define SCRIPT_POPS   8    /* frames in a step */
#define SCRIPT_SAYS   8
/* words; frames of one chunk are close together, callers below callees */
#define SCRIPT_WINDOW 512
#define SCRIPT_FIRST  128 /* words of the first of them: most stacks are not deep */
#define SCRIPT_NEAR   32  /* words of an object */
#define SCRIPT_IDENTITY                                                                         \
	4 /* words of an object that tell it from others. Less than 64 bytes are copied word by \
	     word, which takes half of what `rep movsb` does */

enum script_phase {
	SCRIPT_OFF = 0, /* no interpreter was met */
	SCRIPT_BEGIN,   /* one was */
	SCRIPT_POP,     /* frames of a chunk are walked */
	SCRIPT_TAKE,    /* the one at hand is met for the first time: its names go to the loader */
	SCRIPT_SAY,     /* they are all there, and wait for their native frame */
	SCRIPT_OVER
};

/* What identifies a chunk's place. */
enum script_by {
	SCRIPT_BY_MARK, /* an address in its native frame */
	SCRIPT_BY_LOOP, /* the k-th chunk belongs to the k-th native frame of the interpreter's loop
			 */
	SCRIPT_BY_LOOPS /* the same; and what is left where the native stack ends is said there */
};

/* An object whose id was looked up. The loader keeps names for a minute after it has taken an id
 * out of `objects`. */
struct script_known {
	struct script_key key;
	__u64 confirmed_ns;
	__u32 id;
	__u32 walk; /* the last that met it */
};
#define SCRIPT_KNOWN    256 /* a power of two */
#define SCRIPT_KNOWN_NS 10000000000ull

/* What tells a sub of Perl from others, by a statement that it runs (perl.bpf.h). */
struct script_perl {
	__u64 process, cop, cv, root, name, seq;
	__u32 cop_seq, read_s;
};
#define SCRIPT_PERLS 128 /* a power of two */

struct script_walk {
	union {
		struct python_walk python;
		struct php_walk php;
		struct ruby_walk ruby;
		struct perl_walk perl;
	};
	__u64 window_at, near_at;
	__u64 window[SCRIPT_WINDOW];
	__u64 near[SCRIPT_NEAR];
	__u64 identity[SCRIPT_IDENTITY];
	__u32 window_bytes, near_bytes;
	__u64 bias;
	__u64 look, interp; /* of the search for the thread */
	__u64 of;           /* script_names.of */
	__u32 what;         /* script_names.what */
	__u32 by;           /* enum script_by */
	__u32 loops;        /* native frames of the loop that were met */
	__u32 kind;         /* enum runtime_kind */
	__u64 found;
	__u64 word; /* of the frame at hand, without its id */
	__u32 runtime, image;
	__u32 n, at;   /* words of the chunk: how many, and how many were said */
	__u32 several; /* interpreters */
	__u32 next_id;
	__u32 mode; /* enum python_shape */
	__u32 more; /* 1: the frame at hand is not its chunk's last */
	__u32 deep; /* the chunk has more frames than fit: it ends here, without a caller */
	struct script_key key;
	__u64 now_ns;
	struct script_known known[SCRIPT_KNOWN];
	struct script_perl perls[SCRIPT_PERLS];
	__u64 words[SCRIPT_FRAMES];
	struct script_tally tally; /* last: the loader reads it */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct script_walk);
} scripts SEC(".maps");

enum { SCRIPT_WALK_FITS = 1 / (sizeof(struct script_walk) <= 32768) }; /* in a per-CPU map */

#define SCRIPT_WALK_OF(p) ((struct script_walk *)(p)) /* they begin in the same place */

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

/* NULL: it is of another kind. */
static __always_inline struct tables_runtime *script_layout(const struct script_walk *w, __u32 kind)
{
	__u32 i = w->runtime;
	struct tables_runtime *r = bpf_map_lookup_elem(&runtimes, &i);

	return r && r->kind == kind ? r : NULL;
}

static __always_inline void script_miss(struct script_walk *w, __u32 why)
{
	w->tally.missed[why & 7]++;
}

static __always_inline __u64 script_mix(__u64 h, __u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/* ---- memory ---- */

static __always_inline int script_read(__u64 addr, __u64 *value)
{
	return bpf_probe_read_user(value, sizeof(*value), (const void *)addr) ? -1 : 0;
}

/* By what was read before. */
static __always_inline int script_word(struct script_walk *w, __u64 addr, __u64 *value)
{
	__u64 into = addr - w->near_at;

	if (into < w->near_bytes && !(into & 7)) {
		into >>= 3;
		asm volatile(""
			     : "+r"(into)); /* else the compiler knows better than to mask, and the
					       verifier does not */
		*value = w->near[into & (SCRIPT_NEAR - 1)];
		return 0;
	}
	into = addr - w->window_at;
	if (into < w->window_bytes && !(into & 7)) {
		into >>= 3;
		asm volatile("" : "+r"(into));
		*value = w->window[into & (SCRIPT_WINDOW - 1)];
		return 0;
	}
	return script_read(addr, value);
}

/* Frames are read many at once, of one page: what lies in the next may not be there, and a read
 * that fails is dear. `bytes`: of the one at addr; `down`: those that come next lie below it. */
static __always_inline void script_look(struct script_walk *w, __u64 addr, __u32 bytes, bool down,
					bool many)
{
	__u64 most = w->n ? sizeof(w->window) : SCRIPT_FIRST * 8, page = addr & ~4095ull,
	      end = addr + bytes, size = bytes;

	if (addr - w->window_at < w->window_bytes && end <= w->window_at + w->window_bytes)
		return;
	if (many && down)
		size = end - page < most ? end - page : most;
	else if (many)
		size = page + 4096 - addr < most ? page + 4096 - addr : most;
	if (size < bytes)
		size = bytes;
	asm volatile("" : "+r"(size)); /* as above */
	if (size > sizeof(w->window))
		size = sizeof(w->window);
	w->window_at = down ? end - size : addr;
	w->window_bytes = size;
	if (!bpf_probe_read_user(w->window, size, (const void *)w->window_at))
		return;
	w->window_at = addr;
	w->window_bytes = bytes;
	if (bpf_probe_read_user(w->window, bytes, (const void *)addr))
		w->window_bytes = 0;
}

/* The object at hand, as far as `bytes` go. */
static __always_inline int script_near(struct script_walk *w, __u64 addr, __u32 bytes)
{
	w->near_at = addr;
	w->near_bytes = bytes;
	if (!bpf_probe_read_user(w->near, bytes, (const void *)addr))
		return 0;
	w->near_bytes = 0;
	return -1;
}

/* ---- the thread ---- */

static __always_inline struct script_thread *script_thread_at(const struct stack_scratch *s)
{
	__u32 i = script_mix(s->unwind.fs_base, s->ev.tgid) >> 40 & (SCRIPT_THREADS - 1);

	return bpf_map_lookup_elem(&script_threads, &i);
}

static __always_inline __u64 script_pid_tgid(const struct stack_scratch *s)
{
	return (__u64)s->ev.tgid << 32 | s->ev.tid;
}

static __always_inline bool script_thread_known(const struct script_thread *t,
						const struct stack_scratch *s)
{
	return t && t->fs_base == s->unwind.fs_base && t->pid_tgid == script_pid_tgid(s);
}

static __always_inline void script_thread_keep(struct script_thread *t,
					       const struct stack_scratch *s, __u64 state)
{
	if (!t)
		return;
	t->fs_base = s->unwind.fs_base;
	t->pid_tgid = script_pid_tgid(s);
	t->until_ns = s->ev.time_ns + SCRIPT_NONE_NS;
	t->state = state;
}

/* ---- frames ---- */

static __always_inline void script_end(struct script_walk *w, struct unwind *u, __u32 why)
{
	script_miss(w, why);
	w->n = w->at = 0;
	u->script = SCRIPT_OVER;
	/* below machine code of the interpreter's own all its frames were said, to the outermost */
	if (why == SCRIPT_WHOLE && u->script_free && u->script_said)
		u->end = STACK_END_ROOT;
}

/* Does the chunk have another frame, and room for it? If there is no room, those already found are
 * emitted at once: their native frame is unknown before the chunk's end. */
static __always_inline bool script_goes_on(struct script_walk *w, bool another)
{
	if (another && w->n >= SCRIPT_FRAMES - 1) {
		script_miss(w, SCRIPT_DEEP);
		w->deep = 1;
	}
	return another && !w->deep;
}

/* The frame at hand has its word: it is the chunk's next. false: the chunk is whole. */
static __always_inline bool script_add(struct script_walk *w, struct unwind *u, __u32 id)
{
	__u32 n = w->n;

	w->words[n & (SCRIPT_FRAMES - 1)] = w->word | (__u64)id << SCRIPT_POSITION_BITS;
	w->n = n + 1;
	u->script = w->more ? SCRIPT_POP : SCRIPT_SAY;
	return w->more;
}

static __always_inline __u64 script_word_of(__u32 kind, __u64 position)
{
	return FRAME_SCRIPT | (__u64)kind << SCRIPT_KIND_SHIFT | position;
}

static __always_inline struct script_known *script_known_at(struct script_walk *w, __u64 object)
{
	__u64 i = object * 0x9e3779b97f4a7c15ull >> 48;

	asm volatile("" : "+r"(i)); /* as in script_word */
	return &w->known[i & (SCRIPT_KNOWN - 1)];
}

static __always_inline bool script_is_known(const struct script_walk *w,
					    const struct script_known *k)
{
	return k->key.object == w->key.object && k->key.cookie == w->key.cookie &&
	       k->key.start_ns == w->key.start_ns && k->key.tgid == w->key.tgid &&
	       k->key.exec_id == w->key.exec_id && w->now_ns - k->confirmed_ns < SCRIPT_KNOWN_NS;
}

/* The object's id, if this walk has met it already: the frame keeps the object alive, so its
 * address is not reused. 0: it has not. */
static __always_inline __u32 script_met(struct script_walk *w, __u64 object)
{
	const struct script_known *k = script_known_at(w, object);

	return k->key.object == object && k->walk == (__u32)w->tally.walks ? k->id : 0;
}

/* The frame at hand has its object in w->key. false: something else is next. */
static __always_inline bool script_found(struct script_walk *w, struct unwind *u, __u32 kind,
					 __u64 position)
{
	struct script_known *k = script_known_at(w, w->key.object);
	__u32 *id;

	w->word = script_word_of(kind, position);
	if (!script_is_known(w, k)) {
		id = bpf_map_lookup_elem(&objects, &w->key);
		if (!id) {
			u->script = SCRIPT_TAKE;
			return false;
		}
		k->key = w->key;
		k->id = *id;
		k->confirmed_ns = w->now_ns;
	}
	k->walk = (__u32)w->tally.walks;
	return script_add(w, u, k->id);
}

/* One that is not said was popped; or none, and the last chunk ends. */
static __always_inline bool script_skip(struct script_walk *w, struct unwind *u)
{
	u->script = w->more ? SCRIPT_POP : SCRIPT_SAY;
	return w->more;
}

/* ---- names ---- */

/* NULL: no id is left. */
static __always_inline struct script_names *script_names_begin(struct script_walk *w,
							       const struct tables_runtime *r)
{
	__u32 zero = 0, cpu = bpf_get_smp_processor_id();
	struct script_names *out = bpf_map_lookup_elem(&names_scratch, &zero);

	if (!out || cpu >= 1024 || w->next_id >= (1u << 22) - 1)
		return NULL;
	out->key = w->key;
	out->id = (w->next_id + 1) << 10 | cpu;
	out->image = w->image;
	out->bias = w->bias;
	out->time_ns = bpf_ktime_get_boot_ns();
	out->of = w->of;
	out->what = w->what;
	bpf_probe_read_kernel(&out->layout, sizeof(out->layout), r);
	for (int i = 0; i < SCRIPT_PIECES; i++)
		out->piece[i].size = 0;
	return out;
}

/* Copies `size` bytes, a constant. != 0: not readable. */
static __always_inline int script_piece(struct script_names *out, __u32 i, __u64 addr, __u32 from,
					__u32 bytes)
{
	out->piece[i].at = addr;
	out->piece[i].from = from;
	if (!addr || bpf_probe_read_user(out->data + from, bytes, (const void *)addr))
		return -1;
	out->piece[i].size = bytes;
	return 0;
}

/* Copies a text. */
static __always_inline void script_text(struct script_names *out, __u32 i, __u64 addr, __u32 from,
					__u64 bytes)
{
	__u32 size = bytes < SCRIPT_TEXT_BYTES ? bytes : SCRIPT_TEXT_BYTES - 1;

	out->piece[i].at = addr;
	out->piece[i].from = from;
	size &= SCRIPT_TEXT_BYTES - 1;
	if (addr && !bpf_probe_read_user(out->data + from, size, (const void *)addr))
		out->piece[i].size = size;
}

/* Copies a line table. How many bytes. */
static __always_inline __u32 script_lines(struct script_names *out, __u32 i, __u64 addr, __u32 from,
					  __u64 bytes)
{
	__u32 size = bytes < SCRIPT_LINES_BYTES ? bytes : SCRIPT_LINES_BYTES - 1;

	out->piece[i].at = addr;
	out->piece[i].from = from;
	size &= SCRIPT_LINES_BYTES - 1;
	if (!addr || bpf_probe_read_user(out->data + from, size, (const void *)addr))
		return 0;
	out->piece[i].size = size;
	return size;
}

static __always_inline __u64 script_copied(const struct script_names *out, __u32 from)
{
	return *(const __u64 *)(const void *)(out->data + from);
}

/* Sends the record to the loader, with `size` bytes of data. Returns its id; 0: no room. */
static __always_inline __u32 script_names_send(struct script_walk *w, struct script_names *out,
					       __u32 bytes)
{
	__u64 flags = bpf_ringbuf_query(&names, BPF_RB_AVAIL_DATA) > names_bytes / 2 ?
			      BPF_RB_FORCE_WAKEUP :
			      BPF_RB_NO_WAKEUP;

	if (bytes > SCRIPT_DATA_BYTES)
		bytes = SCRIPT_DATA_BYTES;
	if (bpf_ringbuf_output(&names, out, __builtin_offsetof(struct script_names, data) + bytes,
			       flags))
		return 0;
	w->next_id++;
	w->tally.taken++;
	return out->id;
}

/* The object at hand has this id, from now on. 0: it has none. */
static __always_inline void script_named(struct script_walk *w, struct unwind *u, __u32 id)
{
	if (id)
		bpf_map_update_elem(
			&objects, &w->key, &id,
			BPF_NOEXIST); /* where another CPU was first, both ids are right */
	else
		script_miss(w, SCRIPT_UNNAMED);
	script_add(w, u, id);
}

/* else the compiler does not pass it, and the verifier wants it */
#define SCRIPT_USED(arg) asm volatile("" ::"r"(arg))

#endif
