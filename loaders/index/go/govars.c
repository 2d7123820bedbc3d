/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/go/govars.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "loaders/lib/code/x86insn.h"
#include "schema/base/array.h"
#include "schema/image/go.h"

#define LOAD    0x8b
#define STORE   0x89
#define ADDRESS 0x8d

/* ---- functions ---- */

enum function {
	FLUSH_LOCKED,
	STKBUCKET,
	FREE,
	MALLOC,
	NEXT_CYCLE,
	MCACHE,
	PROFILE,
	INIT,
	TICKS,
	FUNCTIONS
};
static_assert(FUNCTIONS == GOVARS_FUNCTIONS, "govars");

static enum function function_of(const char *name)
{
	static const struct {
		const char *name;
		enum function function;
	} known[] = {
		{"mProf_FlushLocked", FLUSH_LOCKED},
		{"stkbucket", STKBUCKET},
		{"mProf_Free", FREE},
		{"mProf_Malloc", MALLOC},
		{"mProf_NextCycle", NEXT_CYCLE},
		{"allocmcache", MCACHE},
		{"profilealloc", PROFILE},
		{"init", INIT},
		{"ticksPerSecond", TICKS},
		{"tickspersecond", TICKS},
	};

	if (strncmp(name, "runtime.", 8))
		return FUNCTIONS;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(name + 8, known[i].name))
			return known[i].function;
	return FUNCTIONS;
}

bool govars_wants(const char *name)
{
	return function_of(name) != FUNCTIONS;
}

/* ---- instructions ---- */

/* mod 0 and register 5: the distance counts from the instruction's end. */
static bool is_use(const struct x86insn *i)
{
	return !i->map && i->has_modrm && !i->mod && (i->rm & 7) == 5;
}

/* mov $GOVARS_RATE, %REG */
static bool is_rate(const struct x86insn *i)
{
	return !i->map && ((i->opcode & 0xf8) == 0xb8 || i->opcode == 0xc7) &&
	       i->imm == GOVARS_RATE;
}

void govars_note(struct govars *g, const char *name, const uint8_t *code, size_t len,
		 uint64_t vaddr)
{
	const enum function which = function_of(name);
	struct x86insn i;

	for (size_t at = 0;
	     which != FUNCTIONS && at < len && x86insn_read(code + at, len - at, &i);) {
		at += i.len;
		if (which == INIT && is_rate(&i))
			g->init_has_rate = true;
		if (is_use(&i) && g->count[which] < GOVARS_USES_MAX)
			g->of[which][g->count[which]++] =
				(struct govars_use){.addr = vaddr + at + (uint64_t)(int64_t)i.disp,
						    .opcode = i.opcode,
						    .wide = i.rex & 8};
	}
}

/* ---- which is which ---- */

static bool in_bss(const struct image_go_record *r, uint64_t addr)
{
	return addr >= r->bss_start && addr < r->bss_end;
}

/* The first variable that begins as 0 and that this function loads; 0: none. */
static uint64_t first_load(const struct govars *u, enum function which, bool wide,
			   const struct image_go_record *r)
{
	for (size_t i = 0; i < u->count[which]; i++) {
		const struct govars_use *x = &u->of[which][i];

		if (x->opcode == LOAD && x->wide == wide && in_bss(r, x->addr))
			return x->addr;
	}
	return 0;
}

static bool is_used(const struct govars *u, enum function which, uint64_t addr)
{
	for (size_t i = 0; i < u->count[which]; i++)
		if (u->of[which][i].addr == addr)
			return true;
	return false;
}

static void take(struct image_go_record *r, enum image_go_variable v, uint64_t addr)
{
	if (!addr || r->variables[v])
		return;
	r->variables[v] = addr;
	r->from_code |= 1ull << v;
}

static void buckets_find(const struct govars *u, struct image_go_record *r)
{
	const uint64_t memory = first_load(u, FLUSH_LOCKED, true, r);
	uint64_t found[3] = {0};
	size_t n = 0;

	for (size_t i = 0; memory && i < u->count[STKBUCKET] && n < 3; i++) {
		const struct govars_use *x = &u->of[STKBUCKET][i];

		if (!x->wide || (x->opcode != LOAD && x->opcode != STORE && x->opcode != ADDRESS) ||
		    !in_bss(r, x->addr) || (!n && x->addr != memory) ||
		    (n && x->addr == found[n - 1]))
			continue;
		found[n++] = x->addr;
	}
	if (n < 3 || found[0] == found[2])
		return;
	take(r, IMAGE_GO_MBUCKETS, found[0]);
	take(r, IMAGE_GO_XBUCKETS, found[1]);
	take(r, IMAGE_GO_BBUCKETS, found[2]);
}

static void cycle_find(const struct govars *u, struct image_go_record *r)
{
	const uint64_t cycle = first_load(u, FREE, false, r);

	if (cycle && is_used(u, MALLOC, cycle) && !r->variables[IMAGE_GO_MPROF] &&
	    !r->variables[IMAGE_GO_MPROF_CYCLE])
		take(r, is_used(u, NEXT_CYCLE, cycle + 4) ? IMAGE_GO_MPROF : IMAGE_GO_MPROF_CYCLE,
		     cycle);
}

static void rate_find(const struct govars *u, govars_begins_fn begins, void *ctx,
		      struct image_go_record *r)
{
	for (size_t i = 0; i < u->count[MCACHE]; i++) {
		const struct govars_use *x = &u->of[MCACHE][i];

		if (x->opcode != LOAD || !x->wide || !is_used(u, PROFILE, x->addr))
			continue;
		if (in_bss(r, x->addr) ? u->init_has_rate && is_used(u, INIT, x->addr) :
					 begins(ctx, x->addr))
			take(r, IMAGE_GO_MEM_PROFILE_RATE, x->addr);
	}
}

/* The layout of `ticks`: lock, padding, val (to Go 1.19); lock, val; lock, startTicks, startTime,
 * val (Go 1.22 on). */
static void ticks_find(const struct govars *u, struct image_go_record *r)
{
	const uint64_t val = first_load(u, TICKS, true, r);
	const unsigned minor = image_go_minor(r->version);

	if (val && minor)
		take(r, IMAGE_GO_TICKS, val - (minor >= 22 ? 24 : minor >= 20 ? 8 : 16));
}

void govars_settle(const struct govars *g, govars_begins_fn begins, void *ctx,
		   struct image_go_record *out)
{
	buckets_find(g, out);
	cycle_find(g, out);
	rate_find(g, begins, ctx, out);
	ticks_find(g, out);
}
