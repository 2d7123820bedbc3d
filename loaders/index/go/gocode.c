/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/go/gocode.h"

#include <string.h>

static bool have(const struct gocode *c, size_t at, size_t n)
{
	return at <= c->len && n <= c->len - at;
}

static bool is(const struct gocode *c, size_t at, const char *bytes, size_t n)
{
	return have(c, at, n) && !memcmp(c->bytes + at, bytes, n);
}
#define IS(c, at, literal) is(c, at, literal, sizeof(literal) - 1)

static int32_t int32_at(const struct gocode *c, size_t at)
{
	int32_t v;

	memcpy(&v, c->bytes + at, 4);
	return v;
}

/* 55 alone; 41 55 is push %r13, unless the 41 is the distance of a jbe before it. */
bool gocode_pushed_bp(const struct gocode *c, size_t at)
{
	if (at < 1 || !have(c, at - 1, 1) || c->bytes[at - 1] != 0x55)
		return false;
	if (at < 2 || c->bytes[at - 2] != 0x41)
		return true;
	return IS(c, at, "\x48\x89\xe5") || (at >= 3 && c->bytes[at - 3] == 0x76);
}

size_t gocode_stores_bp(const struct gocode *c, size_t at, int32_t *x)
{
	if (IS(c, at, "\x48\x89\x6c\x24") && have(c, at, 5)) {
		*x = (int8_t)c->bytes[at + 4];
		return 5;
	}
	if (IS(c, at, "\x48\x89\xac\x24") && have(c, at, 8)) {
		*x = int32_at(c, at + 4);
		return 8;
	}
	if (IS(c, at, "\x48\x89\x2c\x24")) {
		*x = 0;
		return 4;
	}
	return 0;
}

/* mov x(%reg), %rsp; mov (%reg), %rsp; mov %reg, %rsp; mov (%rsp), %rsp. Its length; 0: none. */
static size_t sp_load(const struct gocode *c, size_t at)
{
	uint8_t rex, op, modrm;

	if (!have(c, at, 3))
		return 0;
	rex = c->bytes[at];
	op = c->bytes[at + 1];
	modrm = c->bytes[at + 2];
	if ((rex == 0x48 || rex == 0x49) && op == 0x8b) {
		if ((modrm & 0xf8) == 0x60 && modrm != 0x64)
			return have(c, at, 4) ? 4 : 0;
		if ((modrm & 0xf8) == 0x20 && modrm != 0x24 && modrm != 0x25)
			return 3;
		return IS(c, at, "\x48\x8b\x24\x24") ? 4 : 0;
	}
	if ((rex == 0x48 || rex == 0x4c) && op == 0x89 && (modrm & 0xc7) == 0xc4)
		return rex == 0x48 && modrm == 0xe4 ? 0 : 3;
	return 0;
}

size_t gocode_loads_sp(const struct gocode *c, size_t from)
{
	for (size_t i = from; i < c->len; i++) {
		size_t n = sp_load(c, i);

		if (n)
			return i + n;
	}
	return GOCODE_NONE;
}

size_t gocode_aligns_sp(const struct gocode *c, size_t from)
{
	for (size_t i = from; i < c->len; i++)
		if (IS(c, i, "\x48\x83\xe4"))
			return have(c, i, 4) ? i + 4 : GOCODE_NONE;
	return GOCODE_NONE;
}

size_t gocode_stores(const struct gocode *c, size_t from, unsigned reg, int32_t *x)
{
	for (size_t i = from; have(c, i, 4); i++) {
		const uint8_t *b = c->bytes + i;

		if (b[0] != 0x48 || b[1] != 0x89 || b[3] != 0x24)
			continue;
		if (b[2] == (0x04 | reg << 3)) {
			*x = 0;
			return i + 4;
		}
		if (b[2] == (0x44 | reg << 3) && have(c, i, 5)) {
			*x = (int8_t)b[4];
			return i + 5;
		}
	}
	return GOCODE_NONE;
}

size_t gocode_frame_pointer(const struct gocode *c, int32_t *cfa)
{
	*cfa = 16;
	for (size_t i = 0; have(c, i, 5); i++) {
		if (IS(c, i, "\x48\x89\xe5") && gocode_pushed_bp(c, i))
			return i + 3;
		if (!IS(c, i, "\x48\x8d\x6c\x24"))
			continue;
		if (!IS(c, i + 5, "\x48\x89\xe5"))
			return i + 5;
		*cfa += (int8_t)c->bytes[i + 4];
		return i + 8;
	}
	return GOCODE_NONE;
}

bool gocode_exit(const struct gocode *c, size_t from, struct gocode_exit *out)
{
	for (size_t i = from; have(c, i, 2); i++) {
		size_t last = IS(c, i, "\x5d\xc3") ? 1 : IS(c, i, "\x5d\xff\xe7") ? 2 : 0;

		if (last) { /* pop %rbp; ret (or jmp *%rdi) */
			*out = (struct gocode_exit){
				.bp_back = i + 1, .at_ret = i + 1, .after = i + 1 + last};
			return true;
		}
		/* mov x(%rsp), %rbp; add $x + 8, %rsp; ret */
		if (IS(c, i, "\x48\x8b\x6c\x24") && IS(c, i + 5, "\x48\x83\xc4") &&
		    have(c, i, 10) && c->bytes[i + 8] == c->bytes[i + 4] + 8 &&
		    c->bytes[i + 9] == 0xc3) {
			*out = (struct gocode_exit){.bp_back = i + 5,
						    .depth = c->bytes[i + 8],
						    .at_ret = i + 9,
						    .after = i + 10};
			return true;
		}
	}
	return false;
}

bool gocode_tls(const struct gocode *c, int32_t *x, bool *got)
{
	*got = false;
	for (size_t i = 0; have(c, i, 9); i++) {
		const uint8_t *b = c->bytes + i;

		if (IS(c, i, "\x64\x48\x8b") && (b[3] & 0xc7) == 0x04 && b[4] == 0x25) {
			*x = int32_at(c, i + 5);
			return true;
		}
		if (IS(c, i, "\x48\xc7\xc1") && IS(c, i + 7, "\x64\x48\x8b")) {
			*x = int32_at(c, i + 3);
			return true;
		}
		if (IS(c, i, "\x48\x8b\x0d") && IS(c, i + 7, "\x64\x48\x8b")) {
			*x = 0;
			*got = true;
			return true;
		}
	}
	return false;
}

bool gocode_curg(const struct gocode *c, int32_t *x)
{
	for (size_t i = 0; have(c, i, 7); i++)
		if (IS(c, i, "\x48\x3b\x83")) {
			*x = int32_at(c, i + 3);
			return true;
		}
	return false;
}

bool gocode_sched_bp(const struct gocode *c, int32_t *x)
{
	for (size_t i = 0; have(c, i, 4); i++)
		if (IS(c, i, "\x48\x89\x6e") || IS(c, i, "\x48\x89\x6f")) {
			*x = (int8_t)c->bytes[i + 3];
			return true;
		}
	return false;
}
