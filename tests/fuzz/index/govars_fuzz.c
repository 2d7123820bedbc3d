/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's variables by instructions: functions of the right names whose instructions the
 * input chooses (so that two of them agree now and then), or whose code it is. What comes out lies
 * where it has to. And the text about modules.
 *
 * covers: loaders/index/go/govars.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/index/go/gopart.h"
#include "loaders/index/go/govars.h"
#include "schema/base/array.h"

#define TEXT 0x401000ull
#define BSS  0x600000ull
#define DATA 0x500000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* clang-format off */
static const char *const names[] = {
	"runtime.mProf_FlushLocked", "runtime.stkbucket", "runtime.mProf_Free", "runtime.mProf_Malloc", "runtime.mProf_NextCycle",
	"runtime.allocmcache", "runtime.profilealloc", "runtime.init", "runtime.ticksPerSecond", "runtime.tickspersecond",
	"runtime.other", "main.stkbucket",
};
/* clang-format on */
#define NAMES ARRAY_SIZE(names)

/* An instruction on a variable, as two bytes say. Its length. */
static size_t instruction(const uint8_t *s, uint64_t at, uint8_t *out)
{
	static const uint8_t opcodes[] = {0x8b, 0x89, 0x8d, 0x3b};
	const uint64_t addr = (s[1] & 0x40 ? DATA : BSS) + (s[1] & 7) * 8 + (s[1] & 8 ? 4 : 0);
	int32_t disp;

	if (s[0] & 0x80) { /* mov $0x80000, %eax */
		memcpy(out, "\xb8\x00\x00\x08\x00", 5);
		return 5;
	}
	out[0] = s[0] & 4 ? 0x48 : 0x40;
	out[1] = opcodes[s[0] & 3];
	out[2] = 0x05;
	disp = (int32_t)(addr - (at + 7));
	memcpy(out + 3, &disp, 4);
	return 7;
}

static bool begins(void *ctx, uint64_t addr)
{
	return *(const uint8_t *)ctx & 1 && addr == DATA + 8;
}

static void check(const struct image_go_record *r)
{
	for (unsigned i = 0; i < IMAGE_GO_VARIABLES; i++) {
		if (!r->variables[i] != !(r->from_code & 1ull << i))
			abort();
		if (r->variables[i] && i != IMAGE_GO_MEM_PROFILE_RATE && i != IMAGE_GO_TICKS &&
		    (r->variables[i] < BSS || r->variables[i] >= BSS + 64))
			abort();
	}
	if (r->variables[IMAGE_GO_MBUCKETS] &&
	    (r->variables[IMAGE_GO_MBUCKETS] == r->variables[IMAGE_GO_XBUCKETS] ||
	     r->variables[IMAGE_GO_XBUCKETS] == r->variables[IMAGE_GO_BBUCKETS]))
		abort();
}

static void variables(const uint8_t *data, size_t len)
{
	struct image_go_record r = {.version = "go1.26", .bss_start = BSS, .bss_end = BSS + 64};
	struct govars g = {0};
	uint8_t code[64 * 7];
	size_t at = 1;

	if (data[0] & 2)
		memcpy(r.version, data[0] & 4 ? "go1.15" : "go1.21", 7);
	if (data[0] & 8)
		r.version[0] = 0;
	while (at + 2 <= len) {
		const char *name = names[data[at] % NAMES];
		const size_t count = data[at + 1] % 64;
		size_t used = 0;

		at += 2;
		for (size_t i = 0; i < count && at + 2 <= len; i++, at += 2)
			used += instruction(data + at, TEXT + used, code + used);
		govars_note(&g, name, code, used, TEXT);
	}
	govars_settle(&g, begins, (void *)data, &r);
	check(&r);
}

static void raw(const uint8_t *data, size_t len)
{
	struct image_go_record r = {.version = "go1.26", .bss_start = TEXT, .bss_end = TEXT + 4096};
	struct govars g = {0};

	for (size_t i = 0; i < NAMES && len; i++)
		govars_note(&g, names[(data[0] + i) % NAMES], data + len * i / NAMES,
			    len - len * i / NAMES, TEXT);
	govars_settle(&g, begins, (void *)data, &r);
}

static void modules(const uint8_t *data, size_t len)
{
	struct image_go_record r = {0};

	gopart_modules((const char *)data, len, &r);
	if (memchr(r.main_path, 0, sizeof(r.main_path)) == NULL ||
	    memchr(r.main_version, 0, sizeof(r.main_version)) == NULL)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 2)
		return 0;
	switch (data[0] % 4) {
	case 0:
	case 1:
		variables(data + 1, len - 1);
		break;
	case 2:
		raw(data + 1, len - 1);
		break;
	default:
		modules(data + 1, len - 1);
	}
	return 0;
}
