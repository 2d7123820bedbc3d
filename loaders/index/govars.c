/* SPDX-License-Identifier: Apache-2.0 */
/* govars: see the header. */
#include "loaders/index/govars.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/region.h"
#include "loaders/index/x86insn.h"

#define CODE_MAX  16384u /* bytes of one function that are looked at */
#define LOAD      0x8b
#define STORE     0x89
#define ADDRESS   0x8d
#define RATE      (512 * 1024)
#define USES_MAX  64u    /* of one function */

/* ---- instructions ---- */

bool govars_next(const uint8_t *code, size_t len, uint64_t vaddr, size_t *pos, struct govars_use *out)
{
	struct x86insn i;

	while (*pos < len && x86insn_read(code + *pos, len - *pos, &i) && i.len) {
		*pos += i.len;
		if (i.map || !i.has_modrm || i.mod || (i.rm & 7) != 5)
			continue;
		*out = (struct govars_use){.addr = vaddr + *pos + (uint64_t)(int64_t)i.disp, .opcode = i.opcode,
					   .wide = i.rex & 8};
		return true;
	}
	return false;
}

/* ---- functions ---- */

enum function { FLUSH_LOCKED, STKBUCKET, FREE, MALLOC, NEXT_CYCLE, MCACHE, PROFILE, INIT, TICKS, FUNCTIONS };

static enum function function_of(const char *name)
{
	static const struct {
		const char *name;
		enum function function;
	} known[] = {
		{"mProf_FlushLocked", FLUSH_LOCKED}, {"stkbucket", STKBUCKET},	   {"mProf_Free", FREE},
		{"mProf_Malloc", MALLOC},	     {"mProf_NextCycle", NEXT_CYCLE}, {"allocmcache", MCACHE},
		{"profilealloc", PROFILE},	     {"init", INIT},		   {"ticksPerSecond", TICKS},
		{"tickspersecond", TICKS},
	};

	if (strncmp(name, "runtime.", 8))
		return FUNCTIONS;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(name + 8, known[i].name))
			return known[i].function;
	return FUNCTIONS;
}

/* What each of them uses, in order. */
struct uses {
	struct govars_use of[FUNCTIONS][USES_MAX];
	size_t count[FUNCTIONS];
	bool init_has_rate; /* runtime.init has the number 512 * 1024 */
};

/* mov $RATE, %REG */
static bool has_rate(const uint8_t *code, size_t len)
{
	struct x86insn i;

	for (size_t pos = 0; pos < len && x86insn_read(code + pos, len - pos, &i) && i.len; pos += i.len)
		if (!i.map && ((i.opcode & 0xf8) == 0xb8 || i.opcode == 0xc7) && i.imm == RATE)
			return true;
	return false;
}

static int uses_of(struct elf_file *f, const struct pclntab_func *func, enum function which, struct uses *u)
{
	cleanup_region struct region r = {0};
	const uint64_t size = func->end - func->start;
	struct govars_use use;
	size_t pos = 0;
	int rc = region_read(f, func->start, size < CODE_MAX ? size : CODE_MAX, &r);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	while (u->count[which] < USES_MAX && govars_next(r.bytes, (size_t)r.len, r.vaddr, &pos, &use))
		u->of[which][u->count[which]++] = use;
	if (which == INIT)
		u->init_has_rate |= has_rate(r.bytes, (size_t)r.len);
	return 0;
}

static int uses_collect(struct elf_file *f, const struct go_table *t, struct uses *u)
{
	int rc = 0;

	for (uint32_t i = 0; i < t->tab.func_count && !rc; i++) {
		struct pclntab_func p;
		enum function which;

		if (!pclntab_func(&t->tab, t->text, i, &p))
			continue;
		which = function_of(p.name);
		if (which != FUNCTIONS)
			rc = uses_of(f, &p, which, u);
	}
	return rc;
}

/* ---- which is which ---- */

static bool in_bss(const struct image_go_record *r, uint64_t addr)
{
	return addr >= r->bss_start && addr < r->bss_end;
}

/* The first variable that begins as 0 and that this function loads; 0: none. */
static uint64_t first_load(const struct uses *u, enum function which, bool wide, const struct image_go_record *r)
{
	for (size_t i = 0; i < u->count[which]; i++) {
		const struct govars_use *x = &u->of[which][i];

		if (x->opcode == LOAD && x->wide == wide && in_bss(r, x->addr))
			return x->addr;
	}
	return 0;
}

static bool is_used(const struct uses *u, enum function which, uint64_t addr)
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

static void buckets_find(const struct uses *u, struct image_go_record *r)
{
	const uint64_t memory = first_load(u, FLUSH_LOCKED, true, r);
	uint64_t found[3] = {0};
	size_t n = 0;

	for (size_t i = 0; memory && i < u->count[STKBUCKET] && n < 3; i++) {
		const struct govars_use *x = &u->of[STKBUCKET][i];

		if (!x->wide || (x->opcode != LOAD && x->opcode != STORE && x->opcode != ADDRESS) || !in_bss(r, x->addr) ||
		    (!n && x->addr != memory) || (n && x->addr == found[n - 1]))
			continue;
		found[n++] = x->addr;
	}
	if (n < 3 || found[0] == found[2])
		return;
	take(r, IMAGE_GO_MBUCKETS, found[0]);
	take(r, IMAGE_GO_XBUCKETS, found[1]);
	take(r, IMAGE_GO_BBUCKETS, found[2]);
}

static void cycle_find(const struct uses *u, struct image_go_record *r)
{
	const uint64_t cycle = first_load(u, FREE, false, r);

	if (cycle && is_used(u, MALLOC, cycle) && !r->variables[IMAGE_GO_MPROF] && !r->variables[IMAGE_GO_MPROF_CYCLE])
		take(r, is_used(u, NEXT_CYCLE, cycle + 4) ? IMAGE_GO_MPROF : IMAGE_GO_MPROF_CYCLE, cycle);
}

/* Does it begin as 512 * 1024? */
static int rate_begins(struct elf_file *f, const struct uses *u, const struct image_go_record *r, uint64_t addr, bool *yes)
{
	cleanup_region struct region value = {0};
	int rc;

	*yes = false;
	if (in_bss(r, addr)) {
		*yes = u->init_has_rate && is_used(u, INIT, addr);
		return 0;
	}
	rc = region_read(f, addr, 8, &value);
	if (!rc)
		*yes = region_word(&value, 0, 8) == RATE;
	return rc == -ENOENT ? 0 : rc;
}

static int rate_find(struct elf_file *f, const struct uses *u, struct image_go_record *r)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < u->count[MCACHE]; i++) {
		const struct govars_use *x = &u->of[MCACHE][i];
		bool yes = false;

		if (x->opcode == LOAD && x->wide && is_used(u, PROFILE, x->addr))
			rc = rate_begins(f, u, r, x->addr, &yes);
		if (yes)
			take(r, IMAGE_GO_MEM_PROFILE_RATE, x->addr);
	}
	return rc;
}

/* In `ticks` stand lock, padding, val (to Go 1.19); lock, val; lock, startTicks, startTime, val (Go 1.22 on). */
static void ticks_find(const struct uses *u, struct image_go_record *r)
{
	const uint64_t val = first_load(u, TICKS, true, r);
	unsigned minor;

	if (val && sscanf(r->version, "go1.%3u", &minor) == 1)
		take(r, IMAGE_GO_TICKS, val - (minor >= 22 ? 24 : minor >= 20 ? 8 : 16));
}

int govars_find(struct elf_file *f, const struct go_table *t, struct image_go_record *out)
{
	struct uses *u;
	int rc;

	if (f->machine != EM_X86_64 || !out->bss_start ||
	    (out->variables[IMAGE_GO_MBUCKETS] && out->variables[IMAGE_GO_MEM_PROFILE_RATE]))
		return 0;
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	rc = uses_collect(f, t, u);
	if (!rc) {
		buckets_find(u, out);
		cycle_find(u, out);
		ticks_find(u, out);
		rc = rate_find(f, u, out);
	}
	free(u);
	return rc;
}
