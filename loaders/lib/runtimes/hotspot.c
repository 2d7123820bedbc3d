/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/hotspot.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/hotspotcode.h"
#include "schema/base/array.h"
#include "schema/base/mem.h"

#define HEAPS_MAX    8
#define THREADS_MAX  32768
#define SEGMENTS_MAX (1u << 20) /* steps through a heap's map for one blob */
#define SEGMENT_FREE 0xff
#define FRAMES_MAX   4096
#define FRAME_BYTES  (1u << 20)
#define NEAR         65536 /* bytes between the native frame and the anchor */
#define WORD         8ull
#define NEWEST       26 /* the newest JDK that was tested */

/* words from an interpreted frame's base */
#define INTERPRETED_SENDER (-1)
#define INTERPRETED_METHOD (-3)
#define INTERPRETED_BCP    (-8) /* JDK 9 on, which keeps the class, too; before: */
#define INTERPRETED_BCP_8  (-7)
#define INTERPRETED_WORDS  8
#define REG_METHOD         3  /* rbx, where an interpreted frame is being made */
#define REG_BCP            13 /* r13; before a frame is made its caller's sp */

struct heap {
	uint64_t low, high, map;
	uint32_t shift;
};

struct java_thread {
	uint64_t id, at; /* pthread_self(), the JavaThread */
};

struct hotspot {
	struct runtime_budget memory;
	struct hotspotcode code;
	struct hotspot_packing packing;
	bool known; /* what the tables do not say is known of this version */
	struct heap heaps[HEAPS_MAX];
	size_t n_heaps;
	uint64_t low, high; /* all of the code cache */
	uint64_t interpreter, interpreter_end, call_return;
	bool listed;
	bool sampled;                /* a sampled stack is walked */
	struct java_thread *threads; /* own: by id */
	size_t n_threads, cap_threads;
};

static bool word(const struct hotspot *h, uint64_t addr, uint64_t *value)
{
	return runtime_word(&h->memory.counted, addr, value);
}

static bool half(const struct hotspot *h, uint64_t addr, uint32_t *value)
{
	return h->memory.counted.read(h->memory.counted.ctx, addr, value, sizeof(*value));
}

/* A number of 32 bits, unless the table says otherwise. */
static bool member(const struct hotspot *h, uint64_t base, enum hotspot_number which,
		   uint32_t *value)
{
	return hotspotcode_member(&h->code, base, which, sizeof(*value), value);
}

static uint64_t n(const struct hotspot *h, enum hotspot_number which)
{
	return h->code.n[which];
}

/* ---- the process ---- */

static bool is_variable(unsigned i)
{
	return i <= HOTSPOT_CALL_RETURN || i == HOTSPOT_ONE_HEAP;
}

static bool is_constant(unsigned i)
{
	return i == HOTSPOT_HAS_LINES || i == HOTSPOT_CALL_WRAPPER;
}

/* What the tables do not say, by version; 8 is the last one with one heap, and says another
 * version. Of one that is not known the walk asks for proof: how numbers are packed, where an
 * interpreted frame keeps its place. */
static void version_read(struct hotspot *h)
{
	uint32_t version = 0;

	if (h->code.has[HOTSPOT_ONE_HEAP])
		version = 8;
	else if (!h->code.has[HOTSPOT_VERSION] || !half(h, n(h, HOTSPOT_VERSION), &version))
		version = 0;
	h->known = version >= 8 && version <= NEWEST;
	h->packing = (struct hotspot_packing){.proved = h->known, .x = version >= 19};
}

/* The numbers in the process's memory. */
static bool numbers_read(struct hotspot *h, const struct hotspot_layout *l, uint64_t bias)
{
	memcpy(h->code.width, l->width, sizeof(h->code.width));
	for (unsigned i = 0; i < HOTSPOT_N; i++) {
		uint32_t constant = 0;

		h->code.has[i] = l->at[i] != 0;
		if (!l->at[i])
			continue;
		if (l->width[i] > 8)
			return false;
		h->code.n[i] = l->at[i] + bias;
		if (is_constant(i)) {
			if (!half(h, l->at[i] + bias, &constant))
				return false;
			h->code.n[i] = (uint64_t)(int64_t)(int32_t)constant;
		} else if (!is_variable(i) && (!word(h, l->at[i] + bias, &h->code.n[i]) ||
					       h->code.n[i] > UINT16_MAX)) {
			return false;
		}
	}
	version_read(h);
	return true;
}

static bool heap_read(const struct hotspot *h, uint64_t heap, struct heap *out)
{
	uint64_t memory = heap + n(h, HOTSPOT_HEAP_MEMORY);

	return word(h, memory + n(h, HOTSPOT_SPACE_LOW), &out->low) &&
	       word(h, memory + n(h, HOTSPOT_SPACE_HIGH), &out->high) &&
	       word(h, heap + n(h, HOTSPOT_HEAP_MAP) + n(h, HOTSPOT_SPACE_LOW), &out->map) &&
	       member(h, heap, HOTSPOT_HEAP_SHIFT, &out->shift) && out->shift < 16 &&
	       out->low < out->high;
}

/* Its heaps: an array of them, or one. */
static bool heaps_read(struct hotspot *h)
{
	uint64_t array = 0, data = 0, heap = 0;
	uint32_t count = 0;

	if (h->code.has[HOTSPOT_ONE_HEAP]) {
		h->n_heaps = word(h, n(h, HOTSPOT_ONE_HEAP), &heap) && heap_read(h, heap, h->heaps);
		h->low = h->heaps[0].low;
		h->high = h->heaps[0].high;
		return h->n_heaps;
	}
	if (!h->code.has[HOTSPOT_ARRAY_LENGTH] || !h->code.has[HOTSPOT_ARRAY_DATA] ||
	    !h->code.has[HOTSPOT_LOW] || !h->code.has[HOTSPOT_HIGH] ||
	    !word(h, n(h, HOTSPOT_HEAPS), &array) ||
	    !member(h, array, HOTSPOT_ARRAY_LENGTH, &count) || !count || count > HEAPS_MAX ||
	    !word(h, array + n(h, HOTSPOT_ARRAY_DATA), &data) ||
	    !word(h, n(h, HOTSPOT_LOW), &h->low) || !word(h, n(h, HOTSPOT_HIGH), &h->high))
		return false;
	for (; h->n_heaps < count; h->n_heaps++)
		if (!word(h, data + WORD * h->n_heaps, &heap) ||
		    !heap_read(h, heap, &h->heaps[h->n_heaps]))
			return false;
	return h->low < h->high;
}

/* Without its names no interpreted frame is shown; stacks end there. */
static bool interpreter_read(struct hotspot *h)
{
	uint64_t queue = 0, buffer = 0;
	uint32_t size = 0;

	h->interpreter = h->interpreter_end = 0;
	if (!h->code.has[HOTSPOT_INTERPRETER] || !h->code.has[HOTSPOT_BUFFER] ||
	    !h->code.has[HOTSPOT_BUFFER_LIMIT])
		return true;
	if (!word(h, n(h, HOTSPOT_INTERPRETER), &queue) ||
	    !word(h, queue + n(h, HOTSPOT_BUFFER), &buffer) ||
	    !member(h, queue, HOTSPOT_BUFFER_LIMIT, &size))
		return false;
	h->interpreter = buffer;
	h->interpreter_end = buffer + size;
	return true;
}

/* false: also where the JVM has not begun to run Java. */
static bool cache_read(struct hotspot *h)
{
	return heaps_read(h) && interpreter_read(h) &&
	       (!h->code.has[HOTSPOT_CALL_RETURN] ||
		(word(h, n(h, HOTSPOT_CALL_RETURN), &h->call_return) && h->call_return));
}

const char *hotspot_without(const void *section, size_t size)
{
	struct hotspot_layout l;

	if (!runtime_layout_take(&l, sizeof(l), HOTSPOT_FORMAT, section, size))
		return "";
	if (!l.at[HOTSPOT_INTERPRETER] || !l.at[HOTSPOT_BUFFER] || !l.at[HOTSPOT_BUFFER_LIMIT])
		return "interpreted methods";
	if (!l.at[HOTSPOT_NM_PCS] || !l.at[HOTSPOT_PC_OFFSET] || !l.at[HOTSPOT_PC_SCOPE] ||
	    !l.at[HOTSPOT_SIZE_PC])
		return "methods that were inlined, and lines of compiled ones";
	return l.at[HOTSPOT_CONST_FLAGS] && l.at[HOTSPOT_HAS_LINES] ? "" : "lines";
}

struct hotspot *hotspot_open(const struct runtime_memory *m, const void *section, size_t size,
			     uint64_t bias)
{
	struct hotspot_layout l;
	struct hotspot *h;

	if (!runtime_layout_take(&l, sizeof(l), HOTSPOT_FORMAT, section, size))
		return NULL;
	h = mem_alloc(sizeof(*h));
	*h = (struct hotspot){0};
	runtime_budget_begin(&h->memory, m);
	h->code.m = &h->memory.counted;
	h->code.packing = &h->packing;
	if (numbers_read(h, &l, bias) && cache_read(h))
		return h;
	free(h);
	return NULL;
}

void hotspot_close(struct hotspot *h)
{
	if (!h)
		return;
	free(h->threads);
	free(h);
}

/* ---- threads ---- */

static void thread_add(struct hotspot *h, uint64_t thread)
{
	struct java_thread t = {.at = thread};
	uint64_t os = 0;

	if (!word(h, thread + n(h, HOTSPOT_THREAD_OS), &os) || !os ||
	    !word(h, os + n(h, HOTSPOT_OS_PTHREAD), &t.id) || !t.id)
		return;
	mem_grow(h->threads, h->n_threads, h->cap_threads);
	h->threads[h->n_threads++] = t;
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct java_thread *)a)->id, y = ((const struct java_thread *)b)->id;

	return x < y ? -1 : x > y;
}

/* Threads begin and end while this is read: a changing list may lose some. */
static void threads_read(struct hotspot *h)
{
	uint64_t list = 0, threads = 0, thread = 0;
	uint32_t count = 0;

	h->listed = true;
	if (!h->code.has[HOTSPOT_THREAD_OS] || !h->code.has[HOTSPOT_OS_PTHREAD])
		return;
	if (h->code.has[HOTSPOT_THREADS] && h->code.has[HOTSPOT_LIST_LENGTH] &&
	    h->code.has[HOTSPOT_LIST_THREADS]) {
		if (!word(h, n(h, HOTSPOT_THREADS), &list) ||
		    !member(h, list, HOTSPOT_LIST_LENGTH, &count) ||
		    !word(h, list + n(h, HOTSPOT_LIST_THREADS), &threads))
			return;
		for (uint32_t i = 0;
		     i < count && i < THREADS_MAX && word(h, threads + WORD * i, &thread); i++)
			thread_add(h, thread);
	} else if (h->code.has[HOTSPOT_FIRST_THREAD] && h->code.has[HOTSPOT_THREAD_NEXT] &&
		   word(h, n(h, HOTSPOT_FIRST_THREAD), &thread)) {
		for (int i = 0; thread && i < THREADS_MAX; i++) {
			thread_add(h, thread);
			if (!word(h, thread + n(h, HOTSPOT_THREAD_NEXT), &thread))
				break;
		}
	}
	if (h->n_threads)
		qsort(h->threads, h->n_threads, sizeof(*h->threads), by_id);
}

/* 0: none. Checks that it is still that thread's. */
static uint64_t thread_find(struct hotspot *h, uint64_t fs_base)
{
	const struct java_thread key = {.id = fs_base}, *t;
	uint64_t os = 0, id = 0;

	if (!h->listed)
		threads_read(h);
	t = h->n_threads ? bsearch(&key, h->threads, h->n_threads, sizeof(*h->threads), by_id) :
			   NULL;
	return t && word(h, t->at + n(h, HOTSPOT_THREAD_OS), &os) &&
			       word(h, os + n(h, HOTSPOT_OS_PTHREAD), &id) && id == fs_base ?
		       t->at :
		       0;
}

/* ---- frames ---- */

struct frame {
	uint64_t sp, fp, pc;
};

static bool blob_find(const struct hotspot *h, uint64_t pc, struct hotspot_blob *b)
{
	const struct heap *heap = NULL;
	uint64_t segment, name = 0, block;
	uint32_t size = 0, frame = 0, offset = 0;
	uint8_t back = 0, used = 0;
	char text[16] = "";

	for (size_t i = 0; i < h->n_heaps; i++)
		if (pc >= h->heaps[i].low && pc < h->heaps[i].high)
			heap = &h->heaps[i];
	if (!heap)
		return false;
	segment = (pc - heap->low) >> heap->shift;
	for (unsigned i = 0;; i++) {
		if (i == SEGMENTS_MAX ||
		    !h->memory.counted.read(h->memory.counted.ctx, heap->map + segment, &back, 1) ||
		    back == SEGMENT_FREE || back > segment)
			return false;
		if (!back)
			break;
		segment -= back;
	}
	block = heap->low + (segment << heap->shift);
	b->at = block + n(h, HOTSPOT_SIZE_BLOCK);
	if (!h->memory.counted.read(h->memory.counted.ctx, block + n(h, HOTSPOT_BLOCK_USED), &used,
				    1) ||
	    !used || !word(h, b->at + n(h, HOTSPOT_BLOB_NAME), &name) ||
	    !member(h, b->at, HOTSPOT_BLOB_SIZE, &size) ||
	    !member(h, b->at, HOTSPOT_BLOB_FRAME, &frame) ||
	    !h->memory.counted.read(h->memory.counted.ctx, name, text, sizeof(text)))
		return false;
	if (h->code.has[HOTSPOT_BLOB_CODE] ?
		    !word(h, b->at + n(h, HOTSPOT_BLOB_CODE), &b->code) :
		    !h->code.has[HOTSPOT_BLOB_CODE_OFFSET] ||
			    !member(h, b->at, HOTSPOT_BLOB_CODE_OFFSET, &offset))
		return false;
	b->code = h->code.has[HOTSPOT_BLOB_CODE] ? b->code : b->at + offset;
	b->size = size;
	b->frame = WORD * frame;
	b->native = !memcmp(text, "native nmethod", sizeof("native nmethod"));
	b->compiled = b->native || !memcmp(text, "nmethod", sizeof("nmethod"));
	return pc >= b->code && pc - b->at < size && (int32_t)frame >= 0 && b->frame <= FRAME_BYTES;
}

/* The caller's sp: where it was called from compiled code, an adapter may have put arguments
 * between. */
static uint64_t interpreted_sp(const struct frame *f, uint64_t sender)
{
	return sender >= f->fp + 2 * WORD && sender - f->fp <= FRAME_BYTES ? sender :
									     f->fp + 2 * WORD;
}

/* Where in its method an interpreted frame is, by the slot that has such a place; -1: neither has.
 */
static int64_t bci_kept(const struct hotspot *h, const struct frame *f, uint64_t method)
{
	uint64_t bcp = 0;
	int64_t bci = -1;

	if (word(h, f->fp + WORD * INTERPRETED_BCP, &bcp))
		bci = hotspotcode_bci(&h->code, method, bcp);
	if (bci < 0 && word(h, f->fp + WORD * INTERPRETED_BCP_8, &bcp))
		bci = hotspotcode_bci(&h->code, method, bcp);
	return bci;
}

/* An interpreted frame becomes its caller's. `now`: where it is, as a register has it; 0: as it was
 * kept. */
static bool interpreted(const struct hotspot *h, struct frame *f, uint64_t now, size_t at,
			struct script_stack *out)
{
	uint64_t method = 0, sender = 0;
	struct script_place place;
	struct frame caller;
	int64_t bci;

	if (!f->fp || f->fp & 7 || f->fp < f->sp ||
	    !word(h, f->fp + WORD * INTERPRETED_METHOD, &method) ||
	    !word(h, f->fp + WORD * INTERPRETED_SENDER, &sender) || !word(h, f->fp, &caller.fp) ||
	    !word(h, f->fp + WORD, &caller.pc))
		return false;
	bci = now ? hotspotcode_bci(&h->code, method, now) : -1;
	bci = bci < 0 ? bci_kept(h, f, method) : bci;
	if ((bci < 0 && !h->known && !hotspotcode_is_native(&h->code, method)) ||
	    !hotspotcode_method(&h->code, method, bci, &place))
		return false;
	script_stack_add(out, at)->place = place;
	caller.sp = interpreted_sp(f, sender);
	*f = caller;
	return true;
}

/* The pc at which a compiled frame continues, even if deoptimisation is pending. */
static uint64_t real_pc(const struct hotspot *h, const struct hotspot_blob *b,
			const struct frame *f)
{
	uint64_t deopt = 0, pc = 0;
	uint32_t offset = 0, at = 0;

	if (h->code.has[HOTSPOT_NM_DEOPT])
		word(h, b->at + n(h, HOTSPOT_NM_DEOPT), &deopt);
	else if (h->code.has[HOTSPOT_NM_DEOPT_OFFSET] &&
		 member(h, b->at, HOTSPOT_NM_DEOPT_OFFSET, &offset))
		deopt = b->code + offset;
	if (!deopt || deopt != f->pc || !h->code.has[HOTSPOT_NM_ORIG_PC] ||
	    !member(h, b->at, HOTSPOT_NM_ORIG_PC, &at) || at > b->frame ||
	    !word(h, f->sp + at, &pc) || pc < b->code || pc - b->at >= b->size)
		return f->pc;
	return pc;
}

/* Is there a call before this address? E8, or FF /2 of a register or of memory. */
static bool is_call_before(const struct hotspot *h, uint64_t pc)
{
	uint8_t b[7];

	if (!h->memory.counted.read(h->memory.counted.ctx, pc - sizeof(b), b, sizeof(b)))
		return false;
	return b[2] == 0xe8 || (b[5] == 0xff && (b[6] & 0xf8) == 0xd0) ||
	       (b[4] == 0xff && (b[5] & 0xf8) == 0x50) ||
	       (b[1] == 0xff && ((b[2] & 0xf8) == 0x90 || b[2] == 0x15));
}

/* A compiled frame, or one of a stub. A sampled one may be where native code was called that never
 * stops the thread: nothing describes that place. */
static bool blob(const struct hotspot *h, struct frame *f, size_t at, struct script_stack *out)
{
	struct hotspot_blob b = {0};
	struct script_place place;
	struct frame caller;
	uint64_t sender;

	if (!blob_find(h, f->pc, &b) || b.frame < 2 * WORD)
		return false;
	if (b.native ||
	    (b.compiled && !hotspotcode_scopes(&h->code, &b, real_pc(h, &b, f), at, out))) {
		if ((!b.native && !(h->sampled && is_call_before(h, f->pc))) ||
		    !hotspotcode_own(&h->code, &b, &place))
			return false;
		script_stack_add(out, at)->place = place;
	}
	sender = f->sp + b.frame;
	if (!word(h, sender - WORD, &caller.pc) || !word(h, sender - 2 * WORD, &caller.fp))
		return false;
	caller.sp = sender;
	*f = caller;
	return true;
}

/* From where native code has called Java: its registers, and the anchor of what was before. */
static bool entry(const struct hotspot *h, const struct frame *f, struct runtime_follow *to)
{
	uint64_t wrapper = 0;

	if (!f->fp || f->fp & 7 || !word(h, f->fp, &to->bp) || !word(h, f->fp + WORD, &to->pc))
		return false;
	if (h->code.has[HOTSPOT_CALL_WRAPPER] && h->code.has[HOTSPOT_WRAPPER_ANCHOR] &&
	    !word(h, f->fp + WORD * n(h, HOTSPOT_CALL_WRAPPER), &wrapper))
		return false;
	to->sp = f->fp + 2 * WORD;
	to->cursor = wrapper ? wrapper + n(h, HOTSPOT_WRAPPER_ANCHOR) : 0;
	return true;
}

static bool anchor_read(const struct hotspot *h, uint64_t anchor, struct frame *f)
{
	return h->code.has[HOTSPOT_ANCHOR_SP] && h->code.has[HOTSPOT_ANCHOR_FP] &&
	       h->code.has[HOTSPOT_ANCHOR_PC] &&
	       word(h, anchor + n(h, HOTSPOT_ANCHOR_SP), &f->sp) && f->sp && !(f->sp & 7) &&
	       word(h, anchor + n(h, HOTSPOT_ANCHOR_FP), &f->fp) &&
	       word(h, anchor + n(h, HOTSPOT_ANCHOR_PC), &f->pc) &&
	       (f->pc || word(h, f->sp - WORD, &f->pc));
}

static void walk(struct hotspot *h, struct frame f, struct runtime_follow *to,
		 struct script_stack *out)
{
	for (int i = 0; i < FRAMES_MAX && out->n < SCRIPT_STACK_MAX; i++) {
		uint64_t sp = f.sp;

		if (h->call_return && f.pc == h->call_return) {
			to->goes_on = entry(h, &f, to);
			break;
		}
		if (f.pc >= h->interpreter && f.pc < h->interpreter_end ?
			    !interpreted(h, &f, 0, to->at, out) :
			    !blob(h, &f, to->at, out))
			break;
		if (f.sp <= sp)
			break;
	}
	out->cut |= !to->goes_on;
}

bool hotspot_follow(struct hotspot *h, const struct runtime_native *native,
		    struct runtime_follow *f, struct script_stack *out)
{
	uint64_t thread;
	struct frame first;

	f->goes_on = false;
	for (f->at = f->from; f->at < native->n; f->at++)
		if (native->pc[f->at] >= h->low && native->pc[f->at] < h->high)
			break;
	if (f->at == native->n || !native->fs_base)
		return false;
	runtime_budget_fresh(&h->memory);
	out->cut |= !h->memory.left;
	thread = f->from ? 0 : thread_find(h, native->fs_base);
	if (!f->from && thread && h->code.has[HOTSPOT_THREAD_ANCHOR])
		f->cursor = thread + n(h, HOTSPOT_THREAD_ANCHOR);
	if (!f->cursor || !anchor_read(h, f->cursor, &first) ||
	    first.sp + NEAR < native->sp[f->at] || first.sp > native->sp[f->at] + NEAR)
		return false;
	walk(h, first, f, out);
	return true;
}

/* ---- sampled threads ---- */

/* Is it a return address into code that HotSpot generated, or into the native caller of Java? */
static bool is_return(const struct hotspot *h, uint64_t pc)
{
	struct hotspot_blob b = {0};

	return (h->call_return && pc == h->call_return) ||
	       (pc >= h->interpreter && pc < h->interpreter_end) ||
	       (blob_find(h, pc, &b) && is_call_before(h, pc));
}

static bool is_return_at(const struct hotspot *h, uint64_t addr, uint64_t *pc)
{
	return word(h, addr, pc) && is_return(h, *pc);
}

/* Length of an instruction by which a method, at its end, checks whether the thread must stop: cmp
 * [r15 + x], rsp; ja; test eax, [..]; mov r10, [r15 + x]; 0: another instruction. */
static size_t poll_length(const uint8_t *c, size_t left)
{
	static const struct {
		uint8_t bytes[3], n, length;
	} known[] = {
		{{0x49, 0x3b, 0xa7}, 3, 7}, {{0x49, 0x3b, 0x67}, 3, 4}, {{0x0f, 0x87}, 2, 6},
		{{0x85, 0x05}, 2, 6},       {{0x41, 0x85, 0x02}, 3, 3}, {{0x4d, 0x8b, 0x97}, 3, 7},
		{{0xc5, 0xf8, 0x77}, 3, 3},
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (left >= known[i].length && !memcmp(c, known[i].bytes, known[i].n))
			return known[i].length;
	return 0;
}

/* Does the frame end here, its own part of the stack gone? *pops: words of it that are left, below
 * the return address. */
static bool is_leaving(const uint8_t *code, unsigned *pops)
{
	*pops = 0;
	for (size_t i = 0, n; i < HOTSPOT_CODE; i += n) {
		if (code[i] == 0xc3)
			return true;
		n = code[i] == 0x5d ? 1 : poll_length(code + i, HOTSPOT_CODE - i);
		*pops += code[i] == 0x5d;
		if (!n || *pops > 1)
			return false;
	}
	return false;
}

/* The caller of a frame with a return address at `at`, whose fp is kept in the word before where
 * `keeps`. */
static bool leave(const struct hotspot *h, struct frame *f, uint64_t at, bool keeps)
{
	struct frame caller = {.sp = at + WORD, .fp = f->fp};

	if (!is_return_at(h, at, &caller.pc) || (keeps && !word(h, at - WORD, &caller.fp)))
		return false;
	*f = caller;
	return true;
}

/* The caller of a frame of code that was interrupted: decides which part of the frame is set up, or
 * still there. */
static bool blob_leave(const struct hotspot *h, const struct hotspot_blob *b, const uint8_t *code,
		       struct frame *f)
{
	unsigned pops = 0;

	if (is_leaving(code, &pops))
		return leave(h, f, f->sp + WORD * pops, pops);
	if (b->frame >= 2 * WORD && leave(h, f, f->sp + b->frame - WORD, true))
		return true;
	if (leave(h, f, f->sp, false) || leave(h, f, f->sp + WORD, true))
		return true;
	return !b->compiled && f->fp >= f->sp && f->fp - f->sp <= FRAME_BYTES &&
	       leave(h, f, f->fp + WORD, true);
}

/* An interpreted frame that is being made: its base is set up, but not all of its content. */
static bool interpreted_begins(const struct hotspot *h, const struct hotspot_at *at,
			       struct frame *f, struct script_stack *out, size_t place)
{
	struct script_place own;
	struct frame caller;
	uint64_t sender = at->reg[REG_BCP];

	if (f->fp & 7 || f->fp < f->sp || f->fp - f->sp >= INTERPRETED_WORDS * WORD ||
	    !is_return_at(h, f->fp + WORD, &caller.pc) || !word(h, f->fp, &caller.fp) ||
	    (f->fp > f->sp && !word(h, f->fp + WORD * INTERPRETED_SENDER, &sender)))
		return false;
	if (hotspotcode_method(&h->code, at->reg[REG_METHOD], 0, &own))
		script_stack_add(out, place)->place = own;
	caller.sp = interpreted_sp(f, sender);
	*f = caller;
	return true;
}

/* The code is what it was when it was interrupted. */
static bool is_same_code(const struct hotspot *h, uint64_t pc, const uint8_t *code)
{
	uint8_t now[HOTSPOT_CODE];

	return h->memory.counted.read(h->memory.counted.ctx, pc, now, sizeof(now)) &&
	       !memcmp(now, code, sizeof(now));
}

/* The frame that was interrupted becomes its caller's. */
static bool interrupted(struct hotspot *h, const struct hotspot_at *at, struct frame *f,
			struct script_stack *out, size_t place)
{
	struct hotspot_blob b = {0};
	struct script_place own;

	if (!is_same_code(h, at->pc, at->code))
		return false;
	if (f->pc >= h->interpreter && f->pc < h->interpreter_end)
		return interpreted(h, f, at->reg[REG_BCP], place, out) ||
		       leave(h, f, f->sp, false) || interpreted_begins(h, at, f, out, place);
	if (!blob_find(h, f->pc, &b))
		return false;
	if (b.compiled) {
		if (!hotspotcode_own(&h->code, &b, &own))
			return false;
		script_stack_add(out, place)->place = own;
	}
	return blob_leave(h, &b, at->code, f);
}

bool hotspot_sampled(struct hotspot *h, const struct hotspot_at *at, struct runtime_follow *to,
		     struct script_stack *out)
{
	struct frame f = {at->sp, at->fp, at->pc};

	to->goes_on = false;
	if (at->pc < h->low || at->pc >= h->high)
		return false;
	h->memory.left = SCRIPT_READS_MAX;
	runtime_budget_fresh(&h->memory);
	h->n_heaps = 0;
	h->sampled = true;
	if (cache_read(h) && (!at->reg || interrupted(h, at, &f, out, to->at))) {
		to->unnamed = at->reg && !out->n;
		walk(h, f, to, out);
	}
	to->unnamed |= !out->n && !to->goes_on;
	out->cut |= !to->goes_on;
	return true;
}
