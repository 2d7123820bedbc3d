/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/beam/beamrun.h"

#define TRIES       4096u
#define PIECE_WORDS 512u
#define ARRAY_BYTES (1u << 20) /* of one kind of schedulers */
#define PID_MASK    0xfu
#define PID         3u
#define HEAP_NEAR   24u /* words behind `top` */
#define HEAP_MAX    (1ull << 32)
#define SEEN_ENOUGH 2u

void beamrun_begin(struct beamrun *r, const struct runtime_memory *m, const struct beam_layout *l,
		   uint64_t bias)
{
	*r = (struct beamrun){.m = m, .l = l, .bias = bias, .tries = TRIES};
}

bool beamrun_top(struct beamrun *r, uint32_t offset)
{
	if (!r->top)
		r->top = offset;
	return r->top == offset;
}

/* 2. of the head. */
static bool is_process(const struct beamrun *r, uint64_t at)
{
	uint64_t id = 0, w[HEAP_NEAR + 5];

	if (at < 1 << 16 || at & 7 || !runtime_word(r->m, at, &id) || (id & PID_MASK) != PID ||
	    !r->m->read(r->m->ctx, at + r->top - 8, w, sizeof(w)))
		return false;
	for (uint32_t i = 2; i < HEAP_NEAR; i++) {
		uint64_t heap = w[i], end = w[i + 1], words = w[i + 3];

		if (heap && !(heap & 7) && end > heap && words && words < HEAP_MAX &&
		    end - heap == 8 * words && w[1] >= heap && w[1] <= end && w[0] >= heap &&
		    w[0] <= end)
			return true;
	}
	return false;
}

/* Where the data of schedulers has the thread's id; 0: nowhere. */
static uint64_t thread_find(const struct beamrun *r, uint64_t fs_base)
{
	uint64_t array = 0, w[PIECE_WORDS];

	for (size_t k = 0; k < BEAM_SCHEDULERS; k++) {
		if (!r->l->schedulers[k] ||
		    !runtime_word(r->m, r->l->schedulers[k] + r->bias, &array) || array & 7)
			continue;
		for (uint64_t at = array; array && at < array + ARRAY_BYTES; at += sizeof(w)) {
			if (!r->m->read(r->m->ctx, at, w, sizeof(w)))
				break;
			for (uint32_t i = 0; i < PIECE_WORDS; i++)
				if (w[i] == fs_base)
					return at + 8ull * i;
		}
	}
	return 0;
}

static const struct beamrun_thread *thread_get(struct beamrun *r, uint64_t fs_base)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->threads[i].fs_base == fs_base)
			return &r->threads[i];
	if (r->n >= BEAMRUN_THREADS || !fs_base || fs_base & 7)
		return NULL;
	r->threads[r->n] = (struct beamrun_thread){fs_base, thread_find(r, fs_base)};
	return &r->threads[r->n++];
}

/* 3. of the head. */
static void distance_find(struct beamrun *r, const struct beamrun_thread *t, uint64_t process)
{
	uint64_t w[BEAMRUN_WORDS];

	if (!r->tries || !r->top || !r->m->read(r->m->ctx, t->at, w, sizeof(w)))
		return;
	r->tries--;
	for (uint32_t i = 1; i < BEAMRUN_WORDS; i++) {
		bool same = process && w[i] == process;

		if (!is_process(r, w[i]))
			continue;
		if (r->seen[i] < SEEN_ENOUGH)
			r->seen[i]++;
		if (same || r->seen[i] == SEEN_ENOUGH)
			r->distance = i;
		return;
	}
}

bool beamrun_find(struct beamrun *r, uint64_t fs_base, uint64_t process, uint64_t *running)
{
	const struct beamrun_thread *t = r->top ? thread_get(r, fs_base) : NULL;

	if (!t || !t->at)
		return false;
	if (!r->distance)
		distance_find(r, t, process);
	if (!r->distance)
		return false;
	*running = t->at + 8ull * r->distance;
	return true;
}
