/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspot_fuzz: any bytes as the memory of a JVM, in which a thread's Java frames are looked for,
 * one stretch after the other. They lie from BASE on; HotSpot's numbers about itself are the
 * first words, constants the lower half of theirs, variables are there themselves.
 *
 * covers: loaders/lib/runtimes/hotspot.c loaders/lib/runtimes/hotspotcode.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/hotspot.h"
#include "loaders/lib/runtimes/hotspotcode.h"
#include "schema/base/array.h"
#include "tests/fuzz/runtimes/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Those of JDK 17, or of 25 where the first bit is set: seeds.sh goes by it. */
static struct hotspot_layout layout(unsigned choice)
{
	static const enum hotspot_number newer[] = {
		HOTSPOT_THREADS,           HOTSPOT_LIST_LENGTH,      HOTSPOT_LIST_THREADS,
		HOTSPOT_BLOB_CODE_OFFSET,  HOTSPOT_NM_DEOPT_OFFSET,  HOTSPOT_NM_IMMUTABLE,
		HOTSPOT_NM_IMMUTABLE_SIZE, HOTSPOT_NM_SCOPES_OFFSET, HOTSPOT_NM_MUTABLE,
		HOTSPOT_NM_RELOCATIONS,    HOTSPOT_POOL_SOURCE};
	static const enum hotspot_number older[] = {HOTSPOT_FIRST_THREAD, HOTSPOT_THREAD_NEXT,
						    HOTSPOT_BLOB_CODE,    HOTSPOT_NM_DEOPT,
						    HOTSPOT_NM_PCS_END,   HOTSPOT_NM_SCOPES,
						    HOTSPOT_NM_METADATA,  HOTSPOT_CLASS_SOURCE};
	struct hotspot_layout l = {.format = HOTSPOT_FORMAT};

	for (unsigned i = 0; i < HOTSPOT_N; i++)
		l.at[i] = BASE + 8 * i;
	if (!(choice & 2)) /* else it has one heap, as JDK 8 */
		l.at[HOTSPOT_ONE_HEAP] = 0;
	if (choice & 4) /* a version that says nothing of itself */
		l.at[HOTSPOT_VERSION] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(newer) && !(choice & 1); i++)
		l.at[newer[i]] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(older) && choice & 1; i++)
		l.at[older[i]] = 0;
	return l;
}

static void tables(const uint8_t *data, size_t len)
{
	uint8_t *own = malloc(len + 1);

	memcpy(own, data, len);
	for (unsigned x = 0; x < 2; x++)
		for (uint32_t bci = 0; bci < 40; bci += 13)
			if (hotspot_line_find(own, len, x, bci) > INT32_MAX)
				abort();
	free(own);
}

/* The same by registers, interrupted and from a return address: outside of code that is known, in
 * the interpreter, in compiled code. */
static void sampled(struct hotspot *h, const uint8_t *data, size_t len, struct script_stack *s)
{
	static const uint64_t reg[16] = {[3] = BASE + 0xd00, [13] = BASE + 0x300};
	static const struct {
		uint64_t pc, sp, fp;
	} places[] = {{BASE + 0x900, BASE + 0x500, BASE + 0x540},
		      {BASE + 0x978, BASE + 0x5b0, BASE + 0x5c0},
		      {BASE + 0xa80, BASE + 0x5b0, BASE + 0x5c0}};
	uint8_t code[HOTSPOT_CODE] = {0};
	size_t at = s->n ? s->frames[s->n - 1].at : 0;

	memcpy(code, data, len < sizeof(code) ? len : sizeof(code));
	for (size_t i = 0; i < 2 * ARRAY_SIZE(places) && s->n < SCRIPT_STACK_MAX; i++) {
		const struct hotspot_at from = {.pc = places[i / 2].pc,
						.sp = places[i / 2].sp,
						.fp = places[i / 2].fp,
						.reg = i & 1 ? NULL : reg,
						.code = code};
		struct runtime_follow to = {.at = at};

		hotspot_sampled(h, &from, &to, s);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint64_t pc[4] = {0x100, BASE + 0x900, 0x100, BASE + 0x980};
	static const uint64_t sp[4] = {BASE + 0x400, BASE + 0x500, BASE + 0x600, BASE + 0x700};
	struct bytes b = {data + 1, len ? len - 1 : 0};
	const struct runtime_memory m = {&b, read_bytes};
	struct runtime_native native = {.pc = pc, .sp = sp, .n = 4, .fs_base = 7};
	struct runtime_follow f = {0};
	struct script_stack s = {0};
	struct hotspot_layout l;
	struct hotspot *h;

	if (!len)
		return 0;
	tables(data, len);
	l = layout(data[0]);
	if (!hotspot_without(&l, sizeof(l)))
		abort();
	h = hotspot_open(&m, &l, sizeof(l), 0);
	for (int i = 0; h && i < 4 && hotspot_follow(h, &native, &f, &s); i++) {
		if (f.at >= native.n || f.at < f.from)
			abort();
		f.from = f.at + 1;
		if (!f.goes_on)
			break;
	}
	if (h)
		sampled(h, data, len, &s);
	for (size_t i = 0; i < s.n; i++)
		if (!s.frames[i].place.function || (i && s.frames[i].at < s.frames[i - 1].at))
			abort();
	if (s.n > SCRIPT_STACK_MAX + 7 * HOTSPOT_INLINE_MAX)
		abort();
	script_stack_release(&s);
	hotspot_close(h);
	return 0;
}
